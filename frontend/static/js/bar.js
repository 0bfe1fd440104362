// How far somebody is. What is to come is a guess that may grow; the bar stays where it was then.

/** The furthest share of their answers so far, between 0 and 1; kept as long as the tab. */
export function furthest(owner, answered, waiting) {
  const key = `clarinet:${owner}:bar`;
  let before = 0;
  try {
    before = Number(sessionStorage.getItem(key)) || 0;
  } catch { /* storage is forbidden: the bar begins anew with the page */ }
  const now = waiting === null || answered + waiting === 0 ? 0 : answered / (answered + waiting);
  const share = Math.max(before, now);
  try {
    sessionStorage.setItem(key, String(share));
  } catch { /* as above */ }
  return share;
}
