// Answers that the server has not acknowledged, and the way there.
//
// Each has a key in localStorage by which the server knows it: nothing loses one or counts it twice.

const BATCH = 200; // most answers in one request
const TIMEOUT_MS = 15_000;

const { owner, answersUrl } = document.querySelector("[data-annotate]").dataset;
const csrf = document.querySelector('meta[name="csrf-token"]').content;
const prefix = `clarinet:${owner}:`;

export const kept = new Map(); // key -> answer, oldest first
export let durable = true;
export let goesOn = true; // as the last answers were told

function safely(action) {
  try {
    action();
  } catch {
    durable = false; // storage is full or forbidden: answers live as long as this page
  }
}

export function keep(answer) {
  kept.set(answer.key, answer);
  safely(() => localStorage.setItem(prefix + answer.key, JSON.stringify({ ...answer, at: Date.now() })));
}

function forget(key) {
  kept.delete(key);
  safely(() => localStorage.removeItem(prefix + key));
}

/** Answers left by an earlier page, or by another tab that has closed. */
export function recall() {
  const found = [];
  safely(() => {
    for (const [name, text] of Object.entries(localStorage)) {
      if (name.startsWith(prefix)) found.push(JSON.parse(text));
    }
  });
  for (const { at: _, ...answer } of found.sort((a, b) => a.at - b.at)) kept.set(answer.key, answer);
}

/** Version 4; crypto.randomUUID asks for https or localhost, and phones use plain LAN addresses. */
export const uuid = () => "10000000-1000-4000-8000-100000000000".replace(/[018]/g, (digit) =>
  (digit ^ (crypto.getRandomValues(new Uint8Array(1))[0] & (15 >> (digit / 4)))).toString(16));

export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `The server answered ${status}.`);
    this.status = status;
    this.problem = problem;
  }
}

/** POST JSON. Throws Refusal for a refusal that repeating does not mend, and any other error when it may. */
export async function post(url, body, keepalive = false) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json", "X-CSRF-Token": csrf },
    body: JSON.stringify(body),
    credentials: "same-origin",
    keepalive,
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (response.status === 204) return null;
  if (response.ok) return response.json();
  if (response.status >= 500 || response.status === 429 || response.status === 408) throw new Error(String(response.status));
  throw new Refusal(response.status, await response.json().catch(() => ({})));
}

/** Hand over everything kept; `onNews` gets what was refused or known.
 *  The last request asks for the `next` questions; gives those that may be had. */
export async function send(onNews, next) {
  const here = new Set(kept.keys());
  let given;
  while (here.size) {
    const batch = [...kept.values()].filter((answer) => here.has(answer.key)).slice(0, BATCH);
    if (!batch.length) break;
    for (const answer of batch) here.delete(answer.key);
    given = await sendBatch(batch, onNews, here.size ? undefined : next);
  }
  return given;
}

async function sendBatch(batch, onNews, next) {
  let results, given;
  try {
    ({ results, next: given, goes_on: goesOn } = await post(answersUrl, { answers: batch, next }));
  } catch (error) {
    const mine = error instanceof Refusal && [400, 404, 409, 413, 422].includes(error.status);
    if (!mine || isAboutCampaign(error)) throw error;
    if (batch.length > 1) {
      for (const answer of batch) await sendBatch([answer], onNews); // one bad answer must not hold up the others
      return;
    }
    results = [{ key: batch[0].key, status: "refused", detail: error.message }];
  }
  const news = results.filter((result) => result.status === "refused");
  for (const result of results) forget(result.key);
  if (news.length) onNews(news);
  return given;
}

/** Hand over what fits one request while the page goes away. Kept until acknowledged: sent again next time. */
export function sendLeaving() {
  post(answersUrl, { answers: [...kept.values()].slice(0, BATCH) }, true).catch(() => {});
}

/** The campaign itself takes nothing now (paused, closed, gone): answers stay kept until it does. */
const isAboutCampaign = (error) => /campaign/.test(error.problem.type ?? "") || error.status === 404;
