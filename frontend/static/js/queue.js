// Questions on their way in and answers on their way out.
//
//   ahead   questions leased to this person, whose pictures are decoded before they are shown
//   kept    answers the server has not acknowledged (answers.js)
//   line    requests, one at a time, in order: answers leave before questions are asked for

const SEND_AFTER_MS = 200; // a short wait lets quick answers share a request
const LOOK_AGAIN_MS = 8_000; // when there was nothing to ask
const BACKOFF_MS = [1_000, 2_000, 4_000, 8_000, 15_000];
const UNDO_LIMIT = 30;
const PACE_OVER = 20; // answers the pace is taken from
const MOST_ZOOM = 24; // larger, small ones are harder to read
const UNLIKELY_MS = 120_000; // longer than this, somebody was away

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** `taking` loads what an undo needs. */
export function makeQueue(screen, answers, { say }, taking) {
  const { Refusal, keep, kept, post, uuid } = answers;
  const { dataset } = screen.main;
  const settled = new Set(); // ids answered here, which may be leased to us while their answers travel
  let leasedUntil = 0; // local clock
  let leaseMs = 0;
  const lost = new Set(); // ids whose picture did not load: asked again when nothing else is left
  let scarce = null; // the view that got fewer cards than it asked for, or no picture more for a page
  let refilling = false;
  let sendTimer = 0;
  let lookTimer = 0;
  let retryTimer = 0;
  const paces = [];

  const queue = {
    ahead: [], // { id, image_url, candidate_class, class_name, image, ready; value and page after an undo }
    answered: 0, // by me, as the server last said, plus what is kept
    waiting: null, // questions still to be asked in the campaign
    failures: 0,
    undoing: false,
    undoable: 0,
    get isScarce() { return scarce === screen.view; },
    get canUndo() { return queue.undoable > 0 && !queue.undoing; },
    /** Milliseconds an answer takes; null before the first. */
    get pace() { return [...paces].sort((a, b) => a - b)[Math.floor(paces.length / 2)] ?? null; },
    refill, settle, undo, renew, leave, forget, isIdle: false,
    hold: () => deliver(lease),
    // Where nothing new is wanted nothing else would send.
    retry: () => (isFull() ? deliver(send) : refill()),
  };

  /** Keys of the last answers, by page or card: what one undo takes back, also after a reload. */
  const groups = {
    key: `clarinet:${dataset.owner}:groups`,
    read: () => {
      try {
        return [JSON.parse(sessionStorage.getItem(groups.key))].flat().filter(Array.isArray);
      } catch {
        return []; // storage is forbidden: an undo takes one answer
      }
    },
    write: (pages) => {
      try {
        sessionStorage.setItem(groups.key, JSON.stringify(pages.filter((keys) => keys.length).slice(-UNDO_LIMIT)));
      } catch { /* as above */ }
    },
  };

  let line = Promise.resolve();
  /** Run one thing after everything asked for before. */
  function inTurn(action) {
    const result = line.then(action);
    line = result.catch(() => {});
    return result;
  }

  async function decode(item) {
    const image = new Image();
    item.image = image;
    image.draggable = false;
    // The first picture must not share the line.
    image.fetchPriority = screen.view.shown().length || queue.ahead[0] !== item ? "low" : "high";
    for (let attempt = 0; !item.ready; attempt++) {
      try {
        image.src = item.image_url;
        await image.decode();
        image.style.maxWidth = `${MOST_ZOOM * image.naturalWidth}px`;
        image.style.maxHeight = `${MOST_ZOOM * image.naturalHeight}px`;
        item.ready = true;
      } catch {
        if (attempt === 3) {
          queue.ahead = queue.ahead.filter((other) => other !== item);
          lost.add(item.id);
          refill(); // others waited for it
          break;
        }
        await wait(BACKOFF_MS[attempt]);
      }
    }
    screen.show();
  }

  /** Gives how many are new. */
  function take(questions) {
    const here = [...queue.ahead, ...screen.view.shown()].map((item) => item.id);
    const known = new Set([...here, ...settled, ...lost]);
    const fresh = questions.filter(({ id }) => !known.has(id)).map((question) => ({ ...question, ready: false }));
    queue.ahead.push(...fresh);
    fresh.forEach(decode);
    return fresh.length;
  }

  async function lease() {
    const { view } = screen;
    const count = view.wanted();
    const before = [...settled];
    const next = { count, one_class: view.one_class };
    const answer = (await answers.send(heard, next)) ?? await post(dataset.questionsUrl, next);
    const unsent = new Set([...kept.values()].map((item) => item.question_id));
    const sent = before.filter((id) => !unsent.has(id));
    leaseMs = 1000 * answer.lease_s;
    leasedUntil = Date.now() + leaseMs;
    queue.answered = answer.answered_by_me + kept.size;
    queue.waiting = Math.max(0, answer.waiting - kept.size);
    queue.undoable = Math.max(queue.undoable, Math.min(UNDO_LIMIT, queue.answered));
    for (const id of sent) settled.delete(id); // leased again: an undo whose reply got lost
    const fresh = take(answer.questions);
    scarce = (view.one_class ? !fresh : answer.questions.length < count) ? view : null;
    if (view === screen.view) view.onLeased();
    if (!screen.view.shown().length && !queue.ahead.length) {
      lookAgain(answer.waiting > 0 ? "held" : "done");
    }
    screen.show();
    screen.enable();
    screen.tell();
  }

  function lookAgain(panel) {
    screen.pause(panel);
    lost.clear();
    clearTimeout(lookTimer);
    lookTimer = setTimeout(refill, LOOK_AGAIN_MS);
  }

  const isFull = () => refilling || screen.isLocked() || screen.view.isStocked();

  function refill() {
    if (isFull()) return;
    refilling = true;
    deliver(lease).then((went) => {
      refilling = false;
      if (went && !queue.isScarce) refill(); // what came may not make a page yet
    });
  }

  /** Gives whether it went. */
  const deliver = (action) => inTurn(async () => {
    try {
      await action();
      recovered();
      return true;
    } catch (error) {
      failed(error);
      return false;
    }
  });

  function heard(results) {
    const refused = results.filter((result) => result.status === "refused");
    if (!refused.length) return;
    queue.answered -= refused.length;
    const gone = new Set(refused.map((result) => result.key));
    groups.write(groups.read().map((keys) => keys.filter((key) => !gone.has(key)))); // nothing to take back
    const reasons = [...new Set(refused.map((result) => result.detail))].filter(Boolean).join(" ");
    screen.remark(`${say("refused", { count: refused.length })} ${reasons}`);
  }

  /** Take answers to what was shown: `ms` each, or null if not known. The next picture comes first. */
  function settle(given, ms) {
    const likely = ms !== null && ms >= 0 && ms < UNLIKELY_MS;
    for (const { item } of given) settled.add(item.id);
    queue.answered += given.length;
    queue.waiting = Math.max(0, (queue.waiting ?? 0) - given.length);
    queue.undoable = Math.min(UNDO_LIMIT, queue.undoable + given.length);
    if (likely) paces.push(ms);
    if (paces.length > PACE_OVER) paces.shift();
    screen.show();
    screen.idle();
    const answered = given.map(({ item, ...said }) => (
      { question_id: item.id, ...said, response_ms: likely ? Math.round(ms) : null, page: given.length, key: uuid() }));
    groups.write([...groups.read(), answered.map(({ key }) => key)]);
    answered.forEach(keep);
    if (queue.failures > 0) { // the retry that waits takes everything along
      screen.tell();
      return;
    }
    clearTimeout(sendTimer);
    sendTimer = setTimeout(sendSoon, SEND_AFTER_MS);
    refill();
  }

  const send = () => answers.send(heard);
  const lastly = () => send().then(() => answers.goesOn || lease()); // refused in words
  const sendSoon = () => kept.size && deliver(lastly);

  async function undo() {
    if (!queue.canUndo || screen.isLocked()) return;
    queue.undoing = true;
    screen.enable();
    try {
      const [{ takeBack }] = await taking();
      await inTurn(() => takeBack(screen, queue, { post, say, send, groups, limit: UNDO_LIMIT, settled, decode, recovered, failed }));
    } catch {
      screen.remark(say("undo_offline")); // it did not load
    } finally {
      queue.undoing = false;
      screen.enable();
      screen.show();
    }
  }

  function recovered() {
    if (queue.failures > 0) screen.remark(say("sent"));
    queue.failures = 0;
    clearTimeout(retryTimer);
    if (screen.stopped === "offline" || screen.stopped === "stopped") refill();
    screen.tell();
  }

  function failed(error) {
    if (error instanceof Refusal) {
      if (error.status === 401 || error.status === 403) {
        screen.lock("signed-out");
        return;
      }
      screen.find("title").textContent = error.problem.title || say("stopped");
      screen.find("detail").textContent = error.message;
      screen.find("again").hidden = error.problem.state === "closed" || error.status === 404;
      screen.view.drop();
      queue.ahead = [];
      lookAgain("stopped");
      return;
    }
    queue.failures += 1;
    screen.show(); // a page that waited for more of its class
    if (!screen.view.shown().length && !queue.ahead.some((item) => item.ready)) screen.pause("offline");
    screen.tell();
    clearTimeout(retryTimer);
    retryTimer = setTimeout(queue.retry, BACKOFF_MS[Math.min(queue.failures, BACKOFF_MS.length) - 1]);
  }

  /** Drop what was leased: it may be somebody else's now, or answered in another tab. */
  function forget() {
    screen.view.drop();
    queue.ahead = [];
    scarce = null;
    screen.idle();
    refill();
  }

  function renew() {
    if (queue.isIdle || document.hidden || screen.stopped || !leaseMs) return;
    if (Date.now() > leasedUntil) {
      forget();
      return;
    }
    inTurn(() => post(dataset.renewUrl, {}))
      .then(() => { leasedUntil = Date.now() + leaseMs; })
      .catch((error) => { if (error instanceof Refusal) failed(error); });
  }

  /** A followed link gives the questions back; unsent answers need theirs. */
  function leave(isFollowing) {
    if (kept.size) answers.sendLeaving();
    else if (isFollowing && screen.stopped !== "elsewhere") post(dataset.releaseUrl, {}, true).catch(() => {});
  }

  return queue;
}
