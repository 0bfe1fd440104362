// The annotation screen: one picture, one question, one key.
//
// Three queues, each with one owner:
//   ahead   questions leased to this person whose pictures are decoded, or being decoded, before they are shown
//   kept    answers the server has not acknowledged; they live in localStorage under one key each, so that a crash, a second
//           tab or a dead network loses none and counts none twice (the server knows an answer by its key)
//   line    requests, one at a time, in order: answers leave before questions are asked for

const LEASE = 20; // questions asked for at once
const REFILL_BELOW = 12;
const BATCH = 200; // most answers in one request
const SEND_AFTER_MS = 200; // a short wait lets quick answers share a request
const RENEW_MS = 60_000;
const LOOK_AGAIN_MS = 8_000; // when there was nothing to ask
const TIMEOUT_MS = 15_000;
const BACKOFF_MS = [1_000, 2_000, 4_000, 8_000, 15_000];
const SLOW_MS = 300; // before this, waiting shows nothing
const SWIPE_PX = 72;
const PACE_OVER = 20; // answers the pace is taken from
const MOST_ZOOM = 24; // an 8 x 8 picture the size of the screen is harder to read, not easier
const LONG_NAME = 36; // characters that fit one line of a phone
const UNLIKELY_MS = 120_000; // longer than this, somebody was away: no response time is reported

const KEYS = { y: "yes", arrowright: "yes", n: "no", arrowleft: "no", u: "unsure", arrowdown: "unsure", z: "undo", backspace: "undo" };
const WORDS = { yes: "yes", no: "no", unsure: "can't tell" };

const main = document.querySelector("[data-annotate]");
const find = (name) => main.querySelector(`[data-${name}]`);
const csrf = document.querySelector('meta[name="csrf-token"]').content;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

/** randomUUID exists only on https and localhost; on a plain LAN address the same is made from random bytes. */
function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** "a cat", "an owl", "an 8", "a one", "a unicycle": by sound as far as letters tell. */
function article(name) {
  if (/^(8|11$|18$)/.test(name)) return "an";
  return /^(?!one\b|once\b|uni|use|eu)[aeiou]/i.test(name) ? "an" : "a";
}

// --- Answers that the server has not acknowledged ------------------------------------------------------------------

const prefix = `clarinet:${main.dataset.owner}:`;
const kept = new Map(); // key -> answer, oldest first
let durable = true;

function keep(answer) {
  kept.set(answer.key, answer);
  try {
    localStorage.setItem(prefix + answer.key, JSON.stringify({ ...answer, at: Date.now() }));
  } catch {
    durable = false; // storage is full or forbidden: the answer lives as long as this page
  }
}

function forget(key) {
  kept.delete(key);
  try {
    localStorage.removeItem(prefix + key);
  } catch {
    durable = false;
  }
}

/** Answers left by an earlier page, or by another tab that has closed. */
function recall() {
  const found = [];
  try {
    for (const [name, text] of Object.entries(localStorage)) {
      if (name.startsWith(prefix)) found.push(JSON.parse(text));
    }
  } catch {
    durable = false;
  }
  for (const { at: _, ...answer } of found.sort((a, b) => a.at - b.at)) kept.set(answer.key, answer);
}

// --- Talking to the server ---------------------------------------------------------------------------------------

class Refusal extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `The server answered ${status}.`);
    this.status = status;
    this.problem = problem;
  }
}

/** POST JSON. Throws Refusal for a refusal that repeating does not mend, and any other error when it may. */
async function post(url, body, keepalive = false) {
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

let line = Promise.resolve();
/** Run one thing after everything asked for before. */
function inTurn(action) {
  const result = line.then(action);
  line = result.catch(() => {});
  return result;
}

// --- State -------------------------------------------------------------------------------------------------------

const ahead = []; // { id, image_url, candidate_class, class_name, image, ready, broken }
const settled = new Set(); // ids answered here: the server may still lease them to us while their answers travel
let current = null;
let shownAt = null; // performance.now() of the first frame with the picture
let shownClass = null;
let answered = 0; // by me, as the server last said, plus what is kept
let waiting = null; // questions still to be asked in the campaign
let leasedUntil = 0; // local clock
let leaseMs = 0;
let scarce = false; // the server had fewer than we asked for: ask again only when none is left
let undoable = 0;
let undoing = false;
let failures = 0;
let stopped = null; // name of the pause shown instead of a question
let sendTimer = 0;
let lookTimer = 0;
let retryTimer = 0;
const paces = [];

// --- What is on the screen ---------------------------------------------------------------------------------------

const stage = find("stage");
const question = find("question");
const buttons = [...main.querySelectorAll("[data-answer]")];
let picture = find("picture");
let lastRemark = 0;

function remark(words) {
  find("remark").textContent = words;
  lastRemark = performance.now();
}

function pause(name) {
  stopped = name;
  for (const panel of main.querySelectorAll("[data-pause]")) panel.hidden = panel.dataset.pause !== name;
  picture.hidden = name !== null;
  question.toggleAttribute("data-blank", name !== null);
  enable();
}

function enable() {
  for (const button of buttons) button.disabled = !current || stopped !== null;
  find("undo").disabled = undoing || undoable === 0;
}

function duration(seconds) {
  if (seconds < 90) return "1 min";
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

function tell() {
  const grouped = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, " ");
  if (waiting !== null) find("progress").textContent = `${grouped(answered)} of ${grouped(answered + waiting)}`;
  const middle = [...paces].sort((a, b) => a - b)[Math.floor(paces.length / 2)];
  find("pace").textContent = middle && waiting ? `~${duration((middle * waiting) / 1000)}` : "";
  if (failures > 0 && kept.size > 0) {
    const where = durable ? "on this device" : "in this page only; do not close it";
    remark(`${plural(kept.size, "answer")} wait${kept.size === 1 ? "s" : ""} for the network, kept ${where}.`);
  } else if (failures === 0 && performance.now() - lastRemark > 6000) {
    find("remark").textContent = "";
  }
}

/** Put the next decoded picture up; the old one stays until the new one can be painted whole. */
function show() {
  if (current || undoing || stopped === "signed-out") return;
  while (ahead.length && ahead[0].broken) ahead.shift();
  const next = ahead[0];
  if (!next?.ready) return;
  ahead.shift();
  current = next;
  shownAt = null;
  if (stopped) pause(null);

  next.image.alt = picture.alt;
  next.image.dataset.picture = "";
  picture.replaceWith(next.image);
  picture = next.image;
  question.removeAttribute("data-blank");
  question.toggleAttribute("data-new", shownClass !== null && shownClass !== next.candidate_class);
  shownClass = next.candidate_class;
  find("article").textContent = `Is this ${article(next.class_name)}`;
  find("class-name").textContent = next.class_name;
  question.toggleAttribute("data-long", next.class_name.length > LONG_NAME);
  for (const guide of main.querySelectorAll("[data-guide]")) guide.hidden = Number(guide.dataset.guide) !== next.candidate_class;
  enable();
  // Two frames: the first is about to paint the picture, the second says that it has.
  requestAnimationFrame(() => requestAnimationFrame((now) => {
    if (current !== next) return;
    shownAt = document.hidden ? null : now;
    main.dataset.shown = next.id;
  }));
  tell();
}

// --- Questions ---------------------------------------------------------------------------------------------------

async function decode(item) {
  item.image = new Image();
  item.image.draggable = false;
  item.image.fetchPriority = current || ahead[0] !== item ? "low" : "high"; // the first picture must not share the line
  for (let attempt = 0; !item.ready; attempt++) {
    try {
      item.image.src = item.image_url;
      await item.image.decode();
      item.image.style.maxWidth = `${MOST_ZOOM * item.image.naturalWidth}px`;
      item.image.style.maxHeight = `${MOST_ZOOM * item.image.naturalHeight}px`;
      item.ready = true;
    } catch {
      if (attempt === 3) {
        item.broken = true; // its lease runs out, and somebody else may see it
        break;
      }
      await wait(BACKOFF_MS[attempt]);
    }
  }
  show();
}

function take(questions) {
  const known = new Set(ahead.map((item) => item.id));
  if (current) known.add(current.id);
  for (const one of questions) {
    if (known.has(one.id) || settled.has(one.id)) continue;
    const item = { ...one, ready: false, broken: false };
    ahead.push(item);
    decode(item);
  }
}

async function lease() {
  const answer = await post(main.dataset.questionsUrl, { count: LEASE });
  leaseMs = 1000 * answer.lease_s;
  leasedUntil = Date.now() + leaseMs;
  answered = answer.answered_by_me + kept.size;
  waiting = Math.max(0, answer.waiting - kept.size);
  undoable = Math.max(undoable, Math.min(10, answered));
  scarce = answer.questions.length < LEASE;
  take(answer.questions);
  find("mine").textContent = plural(answered, "question");
  if (!current && ahead.length === 0) {
    pause(answer.waiting > 0 ? "held" : "done");
    clearTimeout(lookTimer);
    lookTimer = setTimeout(refill, LOOK_AGAIN_MS);
  }
  show();
  enable();
  tell();
}

let refilling = false;
function refill() {
  if (refilling || ahead.length >= (scarce ? 1 : REFILL_BELOW)) return;
  refilling = true;
  inTurn(async () => {
    try {
      await send();
      await lease();
      recovered();
    } catch (error) {
      failed(error);
    } finally {
      refilling = false;
    }
  });
}

// --- Answers -----------------------------------------------------------------------------------------------------

/** Hand over everything kept. Leaves what the server did not acknowledge. */
async function send() {
  const here = new Set(kept.keys());
  while (here.size) {
    const batch = [...kept.values()].filter((answer) => here.has(answer.key)).slice(0, BATCH);
    if (!batch.length) return;
    for (const answer of batch) here.delete(answer.key);
    await sendBatch(batch);
  }
}

async function sendBatch(batch) {
  let results;
  try {
    ({ results } = await post(main.dataset.answersUrl, { answers: batch }));
  } catch (error) {
    const mine = error instanceof Refusal && [400, 404, 409, 413, 422].includes(error.status);
    if (!mine || isAboutCampaign(error)) throw error;
    if (batch.length > 1) {
      for (const answer of batch) await sendBatch([answer]); // one bad answer must not hold up the others
      return;
    }
    results = [{ key: batch[0].key, status: "refused", detail: error.message }];
  }
  const refused = results.filter((result) => result.status === "refused");
  for (const result of results) forget(result.key);
  if (refused.length) {
    answered -= refused.length;
    const reasons = [...new Set(refused.map((result) => result.detail))].filter(Boolean).join(" ");
    remark(`${plural(refused.length, "answer")} did not count. ${reasons}`);
  }
}

/** The campaign itself takes nothing now (paused, closed, gone): answers stay kept until it does. */
const isAboutCampaign = (error) => /campaign/.test(error.problem.type ?? "") || error.status === 404;

function give(value) {
  if (!current || stopped || undoing) return;
  const now = performance.now();
  const elapsed = shownAt === null ? null : Math.round(now - shownAt);
  const likely = elapsed !== null && elapsed >= 0 && elapsed < UNLIKELY_MS;
  const answer = { question_id: current.id, value, response_ms: likely ? elapsed : null, key: uuid() };
  settled.add(current.id);
  current = null;
  answered += 1;
  waiting = Math.max(0, (waiting ?? 1) - 1);
  undoable = Math.min(10, undoable + 1);
  if (likely) {
    paces.push(elapsed);
    if (paces.length > PACE_OVER) paces.shift();
  }
  show(); // the next picture first; everything else may wait a moment
  if (!current) idle();
  keep(answer);
  press(value);
  if (failures > 0) return; // the retry that waits takes everything along
  clearTimeout(sendTimer);
  sendTimer = setTimeout(sendSoon, SEND_AFTER_MS);
  refill();
}

function sendSoon() {
  inTurn(async () => {
    if (!kept.size) return;
    try {
      await send();
      recovered();
    } catch (error) {
      failed(error);
    }
  });
}

/** Nothing decoded is at hand: say so, but only when it lasts. */
function idle() {
  enable();
  setTimeout(() => {
    if (!current && !stopped) pause(failures > 0 ? "offline" : "loading");
  }, SLOW_MS);
}

function press(value) {
  const button = main.querySelector(`[data-answer="${value}"]`);
  button.dataset.pressed = "";
  setTimeout(() => delete button.dataset.pressed, 120);
}

function undo() {
  if (undoing || undoable === 0 || stopped === "signed-out") return;
  undoing = true;
  enable();
  inTurn(async () => {
    try {
      await send();
      const { question: back, undone_value: value } = await post(main.dataset.undoUrl, {});
      recovered();
      if (!back) {
        undoable = 0;
        remark("There is nothing left to undo.");
        return;
      }
      settled.delete(back.id);
      answered = Math.max(0, answered - 1);
      waiting = (waiting ?? 0) + 1;
      undoable = Math.max(0, undoable - 1);
      if (current) ahead.unshift(current);
      current = null;
      shownClass = null;
      const item = { ...back, ready: false, broken: false };
      ahead.unshift(item);
      await decode(item);
      remark(`Undone: you had said ${WORDS[value]}.`);
    } catch (error) {
      if (error instanceof Refusal && error.status === 409) {
        undoable = 0;
        remark(error.message);
      } else {
        failed(error);
        remark("Undo needs the network. Nothing was changed.");
      }
    } finally {
      undoing = false;
      enable();
      show();
    }
  });
}

// --- When it does not work ---------------------------------------------------------------------------------------

function recovered() {
  if (failures > 0) remark("Everything is sent.");
  failures = 0;
  clearTimeout(retryTimer);
  if (stopped === "offline" || stopped === "stopped") refill();
  tell();
}

function failed(error) {
  if (error instanceof Refusal) {
    if (error.status === 401 || error.status === 403) {
      pause("signed-out");
      return;
    }
    find("title").textContent = error.problem.title || "This campaign takes no answers now";
    find("detail").textContent = error.message;
    current = null;
    ahead.length = 0;
    pause("stopped");
    clearTimeout(lookTimer);
    lookTimer = setTimeout(refill, LOOK_AGAIN_MS);
    return;
  }
  failures += 1;
  if (!current && !ahead.some((item) => item.ready)) pause("offline");
  tell();
  clearTimeout(retryTimer);
  retryTimer = setTimeout(retry, BACKOFF_MS[Math.min(failures, BACKOFF_MS.length) - 1]);
}

function retry() {
  if (ahead.length < REFILL_BELOW) refill();
  else sendSoon();
}

/** Leases that ran out while the page slept may be somebody else's now: ask which are still ours. */
function checkLeases() {
  if (leaseMs && Date.now() > leasedUntil) {
    ahead.length = 0;
    current = null;
    idle();
    refill();
  }
}

function renew() {
  if (document.hidden || stopped || !leaseMs) return;
  if (Date.now() > leasedUntil) {
    checkLeases();
    return;
  }
  inTurn(() => post(main.dataset.renewUrl, {}))
    .then(() => { leasedUntil = Date.now() + leaseMs; })
    .catch((error) => { if (error instanceof Refusal) failed(error); });
}

/** Following a link gives the questions back. A reload must find them again, and looks the same as a closed tab: there the
 *  leases run out by themselves. Unsent answers need their leases, so they go first and alone. */
let following = false;
function leave() {
  if (kept.size) {
    const answers = [...kept.values()].slice(0, BATCH);
    post(main.dataset.answersUrl, { answers }, true).catch(() => {}); // kept until acknowledged, so sent again next time
  } else if (following) {
    post(main.dataset.releaseUrl, {}, true).catch(() => {});
  }
}

// --- Hands -------------------------------------------------------------------------------------------------------

function onKey(event) {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || !find("keys").checked) return;
  if (event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
  const action = KEYS[event.key.toLowerCase()];
  if (!action) return;
  event.preventDefault();
  if (action === "undo") undo();
  else give(action);
}

/** Follow the finger; past a threshold its direction is the answer. */
let grip = null;
function onDown(event) {
  if (event.pointerType === "mouse" || !current || stopped) return;
  grip = { id: event.pointerId, x: event.clientX, y: event.clientY, of: current };
}
function lean(dx) {
  picture.style.translate = dx ? `${dx}px` : "";
  if (Math.abs(dx) > SWIPE_PX) stage.dataset.lean = dx > 0 ? "yes" : "no";
  else delete stage.dataset.lean;
}
function onMove(event) {
  if (event.pointerId !== grip?.id) return;
  lean(event.clientX - grip.x);
}
function onUp(event) {
  if (event.pointerId !== grip?.id) return;
  const { of, x } = grip;
  const dx = event.type === "pointerup" ? event.clientX - x : 0;
  grip = null;
  lean(0);
  if (current === of && Math.abs(dx) > SWIPE_PX) give(dx > 0 ? "yes" : "no");
}

// --- Begin -------------------------------------------------------------------------------------------------------

function begin() {
  recall();
  for (const button of buttons) button.addEventListener("click", () => give(button.dataset.answer));
  find("undo").addEventListener("click", undo);
  document.addEventListener("keydown", onKey);
  stage.addEventListener("pointerdown", onDown);
  addEventListener("pointermove", onMove);
  addEventListener("pointerup", onUp);
  addEventListener("pointercancel", onUp);
  addEventListener("online", retry);
  document.addEventListener("click", (event) => { following = Boolean(event.target.closest("a[href]")); });
  addEventListener("pagehide", leave);
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) shownAt = null; // time away is not time spent on the question
    else renew();
  });
  setInterval(renew, RENEW_MS);

  const keys = find("keys");
  try {
    keys.checked = localStorage.getItem("clarinet:keys") !== "off";
    keys.addEventListener("change", () => localStorage.setItem("clarinet:keys", keys.checked ? "on" : "off"));
  } catch {
    durable = false;
  }
  idle();
  refill();
}

begin();
