// How far somebody is. What is to come is a guess that may grow; the bar stays where it was then.

/** Draw the furthest share of their answers so far; it is kept as long as the tab. */
export function draw(main, { answered, waiting }) {
  const key = `clarinet:${main.dataset.owner}:bar`;
  let before = 0;
  try {
    before = Number(sessionStorage.getItem(key)) || 0;
  } catch { /* storage is forbidden: the bar begins anew with the page */ }
  const now = waiting === null || answered + waiting === 0 ? 0 : answered / (answered + waiting);
  const share = Math.max(before, now);
  try {
    sessionStorage.setItem(key, String(share));
  } catch { /* as above */ }
  main.querySelector("[data-bar]").value = share;
}
