// Keys that answer: which they are, and listening to them.

const DEFAULTS = { yes: "y", no: "n", unsure: "u", unusable: "-", undo: "z", zoom: "x", pause: "p" };
const ALWAYS = { arrowright: "yes", arrowleft: "no", arrowdown: "unsure", backspace: "undo" };
const SWITCH = "clarinet:keys";
export const MAP = "clarinet:keymap";

export let map = { ...DEFAULTS };

export let storage = {}; // where it is forbidden, choices hold for this page
try {
  storage = localStorage;
} catch { /* as said */ }

/** What a key means on any layout: if it writes no Latin letter or digit, its place counts. */
export function keyOf({ key, code, shiftKey }) {
  const [, letter, digit] = /^(?:Key(.)|Digit(.))$/.exec(code) ?? [];
  if (/^[a-z0-9]$/i.test(key)) return key.toLowerCase();
  return ((/\p{L}/u.test(key) && letter) || (!shiftKey && digit) || key).toLowerCase();
}

/** Keys for the pictures of a page: whatever nothing else uses. */
export const tileKeys = () => [..."1234567890qwertyuiopasdfghjklzxcvbnm"].filter((key) => !Object.values(map).includes(key));

/** Write each key where the page names it. */
export function label(main) {
  for (const place of main.querySelectorAll("[data-key]")) place.textContent = map[place.dataset.key].toUpperCase();
}

/** Call act(action) for each key that means one, and act("tile", key) for any other, while the box is ticked. */
export function listenToKeys(main, box, act) {
  map = { ...DEFAULTS, yes: main.dataset.yesKey, ...JSON.parse(storage[MAP] ?? "{}") };
  label(main);
  box.checked = storage[SWITCH] !== "off";
  box.addEventListener("change", () => { storage[SWITCH] = box.checked ? "on" : "off"; });
  document.addEventListener("keydown", (event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || !box.checked) return;
    if (event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    const key = keyOf(event);
    const elsewhere = event.target.closest?.("a, summary, button:not([data-tile])");
    if (key === "enter" && elsewhere) return; // it presses what has the focus
    const action = key === "enter" ? "submit" : Object.keys(map).find((name) => map[name] === key) ?? ALWAYS[key];
    if (act(action ?? "tile", key)) event.preventDefault();
  });
}
