// How far somebody is. What is to come is a guess that may grow; the bar stays where it was then. An undo takes it back.

/** Draw the furthest share of their answers so far; it is kept as long as the tab. */
export function draw(main, { answered, waiting }) {
  const key = `clarinet:${main.dataset.owner}:bar`;
  let before = {};
  try {
    before = JSON.parse(sessionStorage.getItem(key)) ?? {};
  } catch { /* storage is forbidden: the bar begins anew with the page */ }
  if (waiting !== null) { // the server has said how far they are
    const now = answered + waiting === 0 ? 0 : answered / (answered + waiting);
    before = { answered, share: answered < (before.answered ?? 0) ? now : Math.max(before.share ?? 0, now) };
  }
  try {
    sessionStorage.setItem(key, JSON.stringify(before));
  } catch { /* as above */ }
  main.querySelector("[data-bar]").value = before.share ?? 0;
}
