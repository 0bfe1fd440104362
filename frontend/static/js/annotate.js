// The annotation screen: its parts, and what both views share.

const RENEW_MS = 60_000;
const SLOW_MS = 300; // before, waiting shows nothing
const LATER_MS = 1_500;
const REMARK_MS = 6_000;

// Parts lie beside this file, at this version's address.
const load = (...names) => Promise.all(names.map((name) => import(`./${name}.js`)));
const later = (name, use) => load(name).then(([part]) => use(part)).catch(() => {});
const [answers, words, hands, { makeQueue }] = await load("answers", "words", "hands", "queue");
const { kept, recall } = answers;
const { say } = words;

const main = document.querySelector("[data-annotate]");
const find = (name) => main.querySelector(`[data-${name}]`);
const all = (name) => main.querySelectorAll(`[data-${name}]`);
let lastRemark = 0;
let awaySince = null;

const screen = {
  main,
  find,
  view: null, // card or grid
  stopped: null, // name of the panel shown instead of a question
  /** Panels that only the person, or another tab, takes away. */
  isLocked: () => ["break", "practice", "elsewhere", "signed-out"].includes(screen.stopped),
  pause(name) {
    if (!screen.isLocked()) screen.lock(name);
  },
  lock(name) {
    screen.stopped = name;
    for (const panel of all("pause")) panel.hidden = panel.dataset.pause !== name;
    find("picture").hidden = name !== null || main.dataset.mode !== "card";
    find("sheet").inert = name !== null;
    for (const part of ["question", "about"]) find(part)?.toggleAttribute("data-blank", name !== null);
    screen.enable();
    if (/break|done|stopped/.test(name)) later("own", (own) => own.tell(main, say));
  },
  show() {
    if (!queue.undoing && !screen.isLocked()) screen.view.show();
  },
  /** Nothing is decoded: say so when it lasts. */
  idle() {
    screen.enable();
    setTimeout(() => {
      if (!screen.view.shown().length && !screen.stopped) screen.pause(queue.failures > 0 ? "offline" : "loading");
    }, SLOW_MS);
  },
  enable() {
    const isReady = screen.view.shown().length > 0 && screen.stopped === null;
    for (const button of main.querySelectorAll("[data-answer], [data-submit], [data-zoom]")) button.disabled = !isReady;
    find("undo").disabled = !queue.canUndo || screen.isLocked();
  },
  /** The sentence has a line break where the name goes. */
  ask(sentence, name, position) {
    const [before, after] = sentence.split("\n");
    find("before").textContent = before;
    find("class-name").textContent = name;
    find("question").toggleAttribute("data-long", name.length > 36); // a phone's line
    find("after").textContent = after;
    for (const guide of all("guide")) guide.hidden = Number(guide.dataset.guide) !== position;
  },
  remark(text) {
    find("remark").textContent = text;
    lastRemark = performance.now();
  },
  tell() {
    const { answered, waiting, failures, pace } = queue;
    find("mine").textContent = say("questions", { count: answered });
    if (waiting !== null) find("progress").textContent = say(waiting ? "progress" : "all", { done: answered, all: answered + waiting });
    later("bar", (bar) => bar.draw(main, queue));
    find("pace").textContent = pace && waiting ? words.duration((pace * waiting) / 1000) : "";
    if (failures > 0 && kept.size > 0) screen.remark(say(answers.durable ? "kept" : "kept_here", { count: kept.size }));
    else if (failures === 0 && performance.now() - lastRemark > REMARK_MS) find("remark").textContent = "";
  },
};

const queue = makeQueue(screen, answers, words, () => load("undo"));
const views = {};
const makers = {
  async card() {
    const [{ makeCard }] = await load("card");
    return makeCard(screen, queue, words, () => load("gestures"), () => load("which", "hands"));
  },
  async grid() {
    const [{ makeGrid }] = await load("grid");
    return makeGrid(screen, queue, words, hands);
  },
};

/** Load a view; what failed is tried again. */
const prepare = (mode) => (views[mode] ??= makers[mode]().catch((error) => {
  delete views[mode];
  throw error;
}));

const prepareChange = (mode) => Promise.all([prepare(mode), load("change")]);

async function changeTo(mode) {
  const [view, [{ change }]] = await prepareChange(mode);
  change(screen, queue, mode, view);
}

/** A break: no time is counted, and no lease renewed. */
function rest() {
  if (screen.isLocked()) return;
  awaySince = performance.now();
  screen.lock("break");
  find("go-on").focus();
}

function goOn() {
  const view = screen.view;
  screen.lock(null);
  view.away(performance.now() - awaySince);
  awaySince = null;
  find("rest").focus();
  queue.renew();
  screen.show();
  screen.idle();
  queue.refill();
}

function act(action, key) {
  if (screen.view.names?.(action)) return screen.view.act(action, key);
  if (action === "undo") queue.undo();
  else if (action === "pause") (screen.stopped === "break" ? goOn : rest)();
  else return screen.view.act(action, key);
  return true;
}

async function begin() {
  screen.view = await prepare(main.dataset.mode);
  recall();
  const elsewhere = () => screen.lock("elsewhere");
  let takeOver = () => {};
  later("tabs", (tabs) => { takeOver = tabs.onlyTab(`clarinet:${main.dataset.owner}`, elsewhere); });
  const on = (name, action) => find(name)?.addEventListener("click", action);
  for (const button of all("answer")) button.addEventListener("click", () => act(button.dataset.answer));
  on("undo", queue.undo);
  on("zoom", () => act("zoom"));
  on("rest", () => act("pause"));
  on("go-on", goOn);
  for (const mode of ["card", "grid"]) on(`to-${mode}`, () => changeTo(mode));
  on("take-over", () => {
    takeOver();
    recall();
    screen.lock("loading"); // what was shown here may be answered by now
    queue.forget();
  });
  hands.listenToKeys(main, find("keys"), act);
  find("help").addEventListener("toggle", async () => {
    const [{ offerKeys }] = await load("rebind");
    offerKeys(main, hands, say("press_key"));
  }, { once: true });
  addEventListener("online", queue.retry);
  let isFollowing = false;
  document.addEventListener("click", (event) => { isFollowing = Boolean(event.target.closest("a[href]")); });
  addEventListener("pagehide", () => queue.leave(isFollowing));
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) screen.view.away(null); // time away is not time spent on the question
    else queue.renew();
  });
  later("idle", (idle) => idle.watch(screen, queue, answers));
  setInterval(queue.renew, RENEW_MS);
  if (find("practice-next")) await later("practice", (part) => part.practise(screen, words, answers, load));
  screen.idle();
  queue.refill();
  const { other } = main.dataset;
  setTimeout(() => { // to be there without a network
    load("undo").catch(() => {});
    if (other) prepareChange(other).catch(() => {});
  }, LATER_MS);
}

begin();
