// Words and figures of the annotation screen. The messages stand in the page, in its language.

const texts = JSON.parse(document.querySelector("[data-texts]").textContent);
const plurals = new Intl.PluralRules(document.documentElement.lang);

/** Thousands apart, by a space. */
const grouped = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, " ");

/** A message, with its form for values.count where it has two. */
export function say(name, values = {}) {
  const text = Array.isArray(texts[name]) ? texts[name][plurals.select(values.count) === "one" ? 0 : 1] : texts[name];
  return text.replace(/\{(\w+)\}/g, (_, key) => (typeof values[key] === "number" ? grouped(values[key]) : values[key]));
}

/** A rough time, from seconds. */
export function duration(seconds) {
  if (seconds < 5400) return say("minutes", { count: seconds < 90 ? 1 : Math.round(seconds / 60) });
  return say("hours", { count: Math.round(seconds / 3600) });
}
