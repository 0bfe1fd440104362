// After a no: which class the picture shows. Loaded only where the campaign asks for it.

const NONE = -1;

/** `tileKeys` are the keys that nothing else uses. */
export function makeWhich({ main, find }, { tileKeys }) {
  const panel = find("which");
  const search = find("which-find");
  const names = [...panel.querySelectorAll("[data-shows]")];
  const classes = names.filter((button) => Number(button.dataset.shows) !== NONE);
  let current = null; // { asked, done }
  let from = null; // what had the focus

  const offered = () => classes.filter((button) => !button.hidden);

  function offer() {
    const wanted = (search?.value ?? "").trim().toLocaleLowerCase();
    for (const button of classes) {
      const name = button.querySelector("span").textContent.toLocaleLowerCase();
      button.hidden = Number(button.dataset.shows) === current.asked || !name.includes(wanted);
    }
    const keys = search ? [] : tileKeys(); // what is typed goes into the search
    classes.forEach((button, place) => { // hidden ones, too: a key always means the same class
      const hint = button.querySelector("kbd");
      hint.textContent = keys[place]?.toUpperCase();
      hint.hidden = !keys[place];
    });
  }

  function close() {
    panel.hidden = true;
    delete main.dataset.naming;
    const had = panel.contains(document.activeElement);
    current = null;
    if (search) search.value = "";
    if (had) from?.focus();
  }

  function end(shows) {
    const { done } = current;
    close();
    done(shows);
  }

  for (const button of names) button.addEventListener("click", () => current && end(Number(button.dataset.shows)));
  find("which-back").addEventListener("click", () => current && close());
  search?.addEventListener("input", offer);
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && event.target === search) offered()[0]?.click();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    get isOpen() { return current !== null; },
    close: () => current && close(),
    /** `done(position)` once one is named; -1: none of them. Going back calls nothing. */
    ask(asked, done) {
      current = { asked, done };
      from = document.activeElement;
      offer();
      panel.hidden = false;
      panel.scrollTop = 0;
      main.dataset.naming = "";
      (search && matchMedia("(hover: hover)").matches ? search : find("which-title")).focus();
    },
    act(action, key) {
      if (action === "undo" || key === "escape") close();
      else if (action === "unsure") end(NONE);
      else if (action === "tile") {
        const place = tileKeys().indexOf(key);
        const button = classes[place];
        if (search || !button || button.hidden) return false;
        end(Number(button.dataset.shows));
      } else return false;
      return true;
    },
  };
}
