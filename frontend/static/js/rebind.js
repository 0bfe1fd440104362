// Choosing one's own keys; loaded when somebody opens the help.

/** Give an action another key; a key in use changes places. */
function bind({ map, storage, MAP }, action, key) {
  const other = Object.keys(map).find((name) => map[name] === key);
  if (other) map[other] = map[action];
  map[action] = key;
  storage[MAP] = JSON.stringify(map);
}

/** Let each [data-rebind] button take the next key that is pressed on it. */
export function offerKeys(main, hands, pressKey) {
  for (const button of main.querySelectorAll("[data-rebind]")) {
    button.disabled = false;
    button.addEventListener("click", () => ask(button));
  }

  function ask(button) {
    button.focus(); // not every browser does so on a click
    button.querySelector("kbd").textContent = pressKey;
    const done = new AbortController();
    button.addEventListener("keydown", (event) => {
      if (["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
      if (event.key.length === 1 && event.key.trim()) {
        event.preventDefault();
        event.stopPropagation();
        bind(hands, button.dataset.rebind, event.key.toLowerCase());
      }
      done.abort();
      hands.label(main);
    }, { signal: done.signal });
    button.addEventListener("blur", () => { done.abort(); hands.label(main); }, { signal: done.signal });
  }
}
