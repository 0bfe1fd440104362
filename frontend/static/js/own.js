// One's own figures, at a break and at the end: counts, pace, agreement. Loaded with the first of these.

const PERCENT = 100;
const TENTHS = new Intl.NumberFormat(document.documentElement.lang, { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** Write them into the places; without a network nothing is told. */
export async function tell(main, say) {
  const response = await fetch(main.dataset.figuresUrl, { headers: { Accept: "application/json" }, credentials: "same-origin" });
  if (!response.ok) return;
  const { answers, mean_ms: ms, agreement, agreement_over: count, agreement_judged: judged } = await response.json();
  const sentences = [say("own", answers)];
  if (ms !== null) sentences.push(say("own_pace", { seconds: TENTHS.format(ms / 1000) }));
  if (agreement !== null) sentences.push(say("own_agreement", { percent: Math.round(PERCENT * agreement), count, judged }));
  for (const place of main.querySelectorAll("[data-own]")) place.textContent = sentences.join(" ");
}
