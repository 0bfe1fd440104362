// The open help: choosing one's own keys, and Escape; loaded when somebody opens it.

/** Give an action another key; a key in use changes places. */
function bind({ map, storage, MAP }, action, key) {
  const other = Object.keys(map).find((name) => map[name] === key);
  if (other) map[other] = map[action];
  map[action] = key;
  storage[MAP] = JSON.stringify(map);
}

/** Let each [data-rebind] button take the next key that is pressed on it. */
export function offerKeys(main, hands, pressKey) {
  const help = main.querySelector("[data-help]");
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || !help.open) return;
    help.open = false;
    help.querySelector("summary").focus();
  });
  for (const button of main.querySelectorAll("[data-rebind]")) {
    button.disabled = false;
    button.addEventListener("click", () => ask(button));
  }

  function ask(button) {
    button.focus(); // not every browser does so on a click
    button.querySelector("kbd").textContent = pressKey;
    const done = new AbortController();
    button.addEventListener("keydown", (event) => {
      if (event.key === "Escape") event.preventDefault(); // it ends the choice, and leaves the help open
      if (["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
      const key = hands.keyOf(event);
      if (key.length === 1 && key.trim()) {
        event.preventDefault();
        event.stopPropagation();
        bind(hands, button.dataset.rebind, key);
      }
      done.abort();
      hands.label(main);
    }, { signal: done.signal });
    button.addEventListener("blur", () => { done.abort(); hands.label(main); }, { signal: done.signal });
  }
}
