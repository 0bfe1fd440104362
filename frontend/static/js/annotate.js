// The annotation screen: one picture, one question, one key.
//
// Three queues, each with one owner:
//   ahead   questions leased to this person whose pictures are decoded, or being decoded, before they are shown
//   kept    answers the server has not acknowledged (answers.js)
//   line    requests, one at a time, in order: answers leave before questions are asked for

const LEASE = 20; // questions asked for at once
const REFILL_BELOW = 12;
const SEND_AFTER_MS = 200; // a short wait lets quick answers share a request
const RENEW_MS = 60_000;
const LOOK_AGAIN_MS = 8_000; // when there was nothing to ask
const BACKOFF_MS = [1_000, 2_000, 4_000, 8_000, 15_000];
const SLOW_MS = 300; // before this, waiting shows nothing
const PACE_OVER = 20; // answers the pace is taken from
const MOST_ZOOM = 24; // an 8 x 8 picture the size of the screen is harder to read, not easier
const LONG_NAME = 36; // characters that fit one line of a phone
const UNLIKELY_MS = 120_000; // longer than this, somebody was away: no response time is reported

const WORDS = { yes: "yes", no: "no", unsure: "can't tell" };

// The parts carry the same version as this file: a browser that kept old ones must not mix them with new ones.
const { search } = new URL(import.meta.url);
const [answers, { listenToKeys, listenToSwipes }, { article, duration, grouped, plural }] = await Promise.all(
  ["answers", "hands", "words"].map((name) => import(`./${name}.js${search}`)),
);
const { Refusal, keep, kept, post, recall, sendLeaving, uuid } = answers;

const main = document.querySelector("[data-annotate]");
const find = (name) => main.querySelector(`[data-${name}]`);
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

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

function tell() {
  if (waiting !== null) find("progress").textContent = `${grouped(answered)} of ${grouped(answered + waiting)}`;
  const middle = [...paces].sort((a, b) => a - b)[Math.floor(paces.length / 2)];
  find("pace").textContent = middle && waiting ? `~${duration((middle * waiting) / 1000)}` : "";
  if (failures > 0 && kept.size > 0) {
    const where = answers.durable ? "on this device" : "in this page only; do not close it";
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
      await answers.send(refused);
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

function refused(results) {
  answered -= results.length;
  const reasons = [...new Set(results.map((result) => result.detail))].filter(Boolean).join(" ");
  remark(`${plural(results.length, "answer")} did not count. ${reasons}`);
}

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
      await answers.send(refused);
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
      await answers.send(refused);
      const { undone: [{ question: back, value }] } = await post(main.dataset.undoUrl, {});
      recovered();
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
  if (kept.size) sendLeaving();
  else if (following) post(main.dataset.releaseUrl, {}, true).catch(() => {});
}

// --- Begin -------------------------------------------------------------------------------------------------------

function begin() {
  recall();
  for (const button of buttons) button.addEventListener("click", () => give(button.dataset.answer));
  find("undo").addEventListener("click", undo);
  listenToKeys(find("keys"), (action) => (action === "undo" ? undo() : give(action)));
  listenToSwipes(stage, () => (current && !stopped ? { question: current, picture } : null), give);
  addEventListener("online", retry);
  document.addEventListener("click", (event) => { following = Boolean(event.target.closest("a[href]")); });
  addEventListener("pagehide", leave);
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) shownAt = null; // time away is not time spent on the question
    else renew();
  });
  setInterval(renew, RENEW_MS);
  idle();
  refill();
}

begin();
