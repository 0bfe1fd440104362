// Keys press what names them by data-key. On the page of one picture arrows lead to the ones beside it, and Escape back
// to where it was opened; on cards that are judged they hold for the one that has the focus.
import { keyOf } from "./hands.js";

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.repeat || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (event.target.closest?.("input, textarea, select")) return;
  const pressedBy = [event.key, keyOf(event)].map((key) => `[data-key="${CSS.escape(key)}"]`).join();
  const card = event.target.closest?.("[role=group]");
  const pressed = card?.querySelector(pressedBy) ?? document.querySelector(`:is(${pressedBy}):not([role=group] *)`);
  if (!pressed) return;
  event.preventDefault();
  pressed.click();
});
