// A screen that nobody touches gives its questions back: others may wait for them.

const IDLE_MS = 300_000; // without a key, a finger or a pointer that moves
const LOOK_MS = 60_000;

/** Whoever comes back holds again what nobody took. */
export function watch(screen, queue, { post, kept }) {
  let lastActive = Date.now();
  const active = () => {
    lastActive = Date.now();
    if (!queue.isIdle) return;
    queue.isIdle = false;
    if (screen.stopped) return;
    if (screen.view.one_class) queue.hold(); // the marks of a page stay
    else queue.forget();
  };
  for (const type of ["keydown", "pointerdown", "pointermove", "wheel"]) {
    addEventListener(type, active, { capture: true, passive: true });
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden) active(); });
  setInterval(() => {
    if (queue.isIdle || screen.stopped || kept.size || Date.now() - lastActive < IDLE_MS) return;
    queue.isIdle = true;
    post(screen.main.dataset.releaseUrl, {}).catch(() => {}); // else they run out by themselves
  }, LOOK_MS);
}
