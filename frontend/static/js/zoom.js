// A drawing that people look at closer: by wheel, two fingers, buttons and keys. A drag moves it.
const CLOSEST = 40; // times
const STEP = 1.6;
const PART = 0.2; // of what is shown: how far an arrow key moves
const DRAGGED = 5; // pixels: less is a click
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** Lets a drawing be zoomed; `tools` has its buttons and an output. Gives a function that says whether a click ends a drag. */
export function zooming(drawing, tools) {
  const whole = drawing.viewBox.baseVal;
  const [width, height] = [whole.width, whole.height];
  const signs = drawing.querySelectorAll("defs > *");
  const buttons = Object.fromEntries([...tools.querySelectorAll("[data-zoom]")].map((button) => [button.dataset.zoom, button]));
  const fingers = new Map(); // by pointer: where it is on the screen
  let [scale, left, top] = [1, 0, 0];
  let moved = 0; // pixels since the first finger came

  function look(nextLeft, nextTop) {
    left = Math.max(0, Math.min(width - width / scale, nextLeft));
    top = Math.max(0, Math.min(height - height / scale, nextTop));
    drawing.setAttribute("viewBox", `${left} ${top} ${width / scale} ${height / scale}`);
    drawing.toggleAttribute("data-zoomed", scale > 1);
    for (const sign of signs) sign.setAttribute("transform", `scale(${1 / scale})`); // else points that are near hide each other
    buttons.in.disabled = scale >= CLOSEST;
    buttons.out.disabled = buttons.whole.disabled = scale <= 1;
    tools.querySelector("output").textContent = `${Math.round(100 * scale)} %`;
  }

  /** The place stays where it is on the screen: by default the middle. */
  function zoom(factor, { x, y } = { x: left + width / scale / 2, y: top + height / scale / 2 }) {
    const next = Math.max(1, Math.min(CLOSEST, scale * factor));
    const kept = scale / next;
    scale = next;
    look(x - (x - left) * kept, y - (y - top) * kept);
  }

  const place = ({ x, y }) => new DOMPoint(x, y).matrixTransform(drawing.getScreenCTM().inverse());
  const middle = () => [...fingers.values()].reduce((sum, each) => ({ x: sum.x + each.x / fingers.size, y: sum.y + each.y / fingers.size }), { x: 0, y: 0 });
  const spread = () => { const [one, other] = fingers.values(); return other ? Math.hypot(one.x - other.x, one.y - other.y) : 0; };
  const lift = (event) => fingers.delete(event.pointerId);

  buttons.in.addEventListener("click", () => zoom(STEP));
  buttons.out.addEventListener("click", () => zoom(1 / STEP));
  buttons.whole.addEventListener("click", () => zoom(0));
  drawing.addEventListener("wheel", (event) => {
    if (event.deltaY > 0 && scale <= 1) return; // the page scrolls on
    event.preventDefault();
    zoom(STEP ** (-Math.sign(event.deltaY) * Math.min(1, Math.abs(event.deltaY) / 100)), place(event));
  }, { passive: false });
  drawing.addEventListener("keydown", (event) => {
    const step = ARROWS[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== drawing) return;
    if (step && scale > 1) look(left + step[0] * PART * width / scale, top + step[1] * PART * height / scale);
    else if (event.key === "+" || event.key === "=") zoom(STEP);
    else if (event.key === "-") zoom(1 / STEP);
    else if (event.key === "0") zoom(0);
    else return;
    event.preventDefault();
  });
  drawing.addEventListener("dragstart", (event) => event.preventDefault()); // points are links
  drawing.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    if (!fingers.size) moved = 0;
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  });
  drawing.addEventListener("pointermove", (event) => {
    if (!event.buttons) lift(event); // it was let go elsewhere
    if (!fingers.has(event.pointerId)) return;
    const [was, wide] = [middle(), spread()];
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    const now = middle();
    moved += Math.hypot(now.x - was.x, now.y - was.y) + Math.abs(spread() - wide);
    if (moved < DRAGGED) return;
    drawing.setPointerCapture(event.pointerId);
    const [from, to] = [place(was), place(now)];
    look(left + from.x - to.x, top + from.y - to.y);
    if (wide) zoom(spread() / wide, place(now));
  });
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) drawing.addEventListener(end, lift);

  drawing.setAttribute("tabindex", "0");
  tools.hidden = false;
  look(0, 0);
  return () => moved >= DRAGGED;
}
