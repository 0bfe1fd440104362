// Keys and swipes that answer.

const KEYS = { y: "yes", arrowright: "yes", n: "no", arrowleft: "no", u: "unsure", arrowdown: "unsure", z: "undo", backspace: "undo" };
const SWIPE_PX = 72;
const REMEMBERED = "clarinet:keys";

/** A box that switches the keys off and on; this browser remembers it. */
function remember(box) {
  try {
    box.checked = localStorage.getItem(REMEMBERED) !== "off";
    box.addEventListener("change", () => localStorage.setItem(REMEMBERED, box.checked ? "on" : "off"));
  } catch {
    // storage is forbidden: the box holds for this page
  }
}

/** Call act("yes" | "no" | "unsure" | "undo") for each key that means one, while the box is ticked. */
export function listenToKeys(box, act) {
  remember(box);
  document.addEventListener("keydown", (event) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || !box.checked) return;
    if (event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    const action = KEYS[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    act(action);
  });
}

/** Let the picture follow the finger; past a threshold its direction is the answer. `held()` gives { question, picture } while
 *  there is something to answer, else null; a swipe counts only for the question on which it began. */
export function listenToSwipes(stage, held, give) {
  let grip = null;

  function lean(dx) {
    grip.picture.style.translate = dx ? `${dx}px` : "";
    if (Math.abs(dx) > SWIPE_PX) stage.dataset.lean = dx > 0 ? "yes" : "no";
    else delete stage.dataset.lean;
  }

  function onUp(event) {
    if (event.pointerId !== grip?.id) return;
    const { question, x } = grip;
    const dx = event.type === "pointerup" ? event.clientX - x : 0;
    lean(0);
    grip = null;
    if (held()?.question === question && Math.abs(dx) > SWIPE_PX) give(dx > 0 ? "yes" : "no");
  }

  stage.addEventListener("pointerdown", (event) => {
    const now = event.pointerType === "mouse" ? null : held();
    if (now) grip = { ...now, id: event.pointerId, x: event.clientX };
  });
  addEventListener("pointermove", (event) => {
    if (event.pointerId === grip?.id) lean(event.clientX - grip.x);
  });
  addEventListener("pointerup", onUp);
  addEventListener("pointercancel", onUp);
}
