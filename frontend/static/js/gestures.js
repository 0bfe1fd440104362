// Fingers and mouse on the picture: a swipe answers, two fingers or a double tap enlarge, a drag moves what is enlarged.

const SWIPE_PX = 72;
const TAP_MS = 300;
const TAP_PX = 24;
const ENLARGED = 2.5;
const MOST = 8;

/** `held()` gives { question, picture } while one can be answered; a swipe counts only for that on which it began. */
export function listenToPicture(stage, held, give) {
  const fingers = new Map();
  let grip = null; // where one finger began, and on which question
  let lastTap = null;
  let scale = 1;
  let x = 0;
  let y = 0;

  function place(dx = 0) {
    stage.toggleAttribute("data-enlarged", scale > 1);
    const picture = held()?.picture;
    if (!picture) return;
    picture.style.scale = scale === 1 ? "" : String(scale);
    picture.style.translate = scale === 1 ? (dx ? `${dx}px` : "") : `${x}px ${y}px`;
  }

  function lean(dx) {
    if (Math.abs(dx) > SWIPE_PX) stage.dataset.lean = dx > 0 ? "yes" : "no";
    else delete stage.dataset.lean;
    place(dx);
  }

  function reset() {
    [scale, x, y, grip] = [1, 0, 0, null];
    lean(0);
  }

  /** What is under the point stays under it; the picture never leaves the stage. */
  function enlarge(to, point) {
    const box = stage.getBoundingClientRect();
    const from = scale;
    scale = Math.min(MOST, Math.max(1, to));
    const [px, py] = point ? [point.x - box.x - box.width / 2, point.y - box.y - box.height / 2] : [0, 0];
    pan(px - ((px - x) * scale) / from, py - ((py - y) * scale) / from);
  }

  function pan(toX, toY) {
    const within = (value, size) => Math.max(((1 - scale) * size) / 2, Math.min(((scale - 1) * size) / 2, value));
    x = within(toX, stage.clientWidth);
    y = within(toY, stage.clientHeight);
    place();
  }

  const toggle = (point) => (scale > 1 ? reset() : enlarge(ENLARGED, point));

  function onDown(event) {
    const now = held();
    if (!now || event.target.closest("button, a")) return;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    grip = fingers.size === 1 ? { ...now, x: event.clientX, touch: event.pointerType !== "mouse" } : null;
  }

  function onMove(event) {
    const finger = fingers.get(event.pointerId);
    if (!finger) return;
    const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
    const to = { x: event.clientX, y: event.clientY };
    if (other) {
      const apart = (a, b) => Math.hypot(a.x - b.x, a.y - b.y) || 1;
      enlarge((scale * apart(to, other)) / apart(finger, other), { x: (to.x + other.x) / 2, y: (to.y + other.y) / 2 });
    } else if (scale > 1) {
      pan(x + to.x - finger.x, y + to.y - finger.y);
    } else if (grip?.touch) {
      lean(to.x - grip.x);
    }
    fingers.set(event.pointerId, to);
  }

  function onUp(event) {
    if (!fingers.delete(event.pointerId) || !grip) return;
    const { question, x: from, touch } = grip;
    const dx = event.type === "pointerup" ? event.clientX - from : 0;
    grip = null;
    if (scale === 1) lean(0);
    if (event.type !== "pointerup" || held()?.question !== question) return;
    if (scale === 1 && touch && Math.abs(dx) > SWIPE_PX) give(dx > 0 ? "yes" : "no");
    else if (Math.abs(dx) < TAP_PX) onTap({ x: event.clientX, y: event.clientY, at: event.timeStamp });
  }

  function onTap(tap) {
    const isSecond = lastTap && tap.at - lastTap.at < TAP_MS && Math.hypot(tap.x - lastTap.x, tap.y - lastTap.y) < TAP_PX;
    lastTap = isSecond ? null : tap;
    if (isSecond) toggle(tap);
  }

  stage.addEventListener("pointerdown", onDown);
  addEventListener("pointermove", onMove);
  addEventListener("pointerup", onUp);
  addEventListener("pointercancel", onUp);
  return { toggle, reset };
}
