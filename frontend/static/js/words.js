// Words and figures of the annotation screen.

/** "1 answer", "2 answers". */
export const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** Thousands apart, by a space. */
export const grouped = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, " ");

/** "a cat", "an owl", "an 8", "a one", "a unicycle": by sound as far as letters tell. */
export function article(name) {
  if (/^(8|11$|18$)/.test(name)) return "an";
  return /^(?!one\b|once\b|uni|use|eu)[aeiou]/i.test(name) ? "an" : "a";
}

/** A rough time, from seconds. */
export function duration(seconds) {
  if (seconds < 90) return "1 min";
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}
