// From cards to pages and back; loaded with the other view.

/** What is at hand is shown anew; pages ask first for what their blocks lack. */
export function change(screen, queue, mode, view) {
  const before = screen.view;
  if (before === view) return;
  screen.view = view;
  screen.main.dataset.mode = mode;
  // A page that was taken back is open again.
  queue.ahead = [...before.drop(), ...queue.ahead].map((item) => (
    Object.assign(item, { page: undefined, value: item.page ? undefined : item.value })));
  before.leave();
  screen.remark(""); // it was about what the other view showed
  history.replaceState(null, "", `?mode=${mode}`);
  screen.lock(screen.stopped);
  screen.show();
  screen.idle();
  queue.refill();
}
