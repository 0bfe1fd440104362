const UNLIKELY_MS = 120_000; // as of an answer: longer than this, somebody was away
const HELD = 20;
const REFILL_BELOW = 12;

/** "a cat", "an owl", "an 8", "an hour", "an X-ray", "a one", "a unicycle": by sound as far as letters tell. */
function article(name) {
  const spelt = /^[A-Z](?![a-z])[^AEIOUY]*$/.test(name); // an X-ray, a TV
  if (spelt) return /^[AEFHILMNORSX]/.test(name) ? "an" : "a";
  if (/^(8|1[18](?!\d)|heir|honest|honou?r|hour)/i.test(name)) return "an";
  return /^(?!one\b|once\b|uni(?!n|m|de)|us[aeu]|ut[ei]|uk[ru]|ufo|eu|ew)[aeiou]/i.test(name) ? "an" : "a";
}

/** `gestures` loads what fingers need, once the first picture is up; `naming` what asks for a class after a no. */
export function makeCard(screen, queue, { say }, gestures, naming = null) {
  const { main, find } = screen;
  const stage = find("stage");
  const question = find("question");
  let picture = find("picture");
  let current = null;
  let shownAt = null; // performance.now() of the first frame with the picture
  let namingSince = null; // the same of the no after which a class is named
  let shownClass = null;
  const held = () => (current && !screen.stopped ? { question: current, picture } : null);
  let zoom = null;
  let listening = null;
  let which = null;
  const asksWhich = naming && find("which");
  const prepareWhich = () => naming().then(([{ makeWhich }, hands]) => { which ??= makeWhich(screen, hands); });
  if (asksWhich) prepareWhich().catch(() => {}); // the next no tries again
  const listen = () => (listening ??= gestures()
    .then(([{ listenToPicture }]) => { zoom = listenToPicture(stage, held, give); })
    .catch(() => { listening = null; })); // the next picture tries again

  /** Put the next picture up; the old one stays until it can be painted whole. */
  function show() {
    const next = current ? null : queue.ahead[0];
    if (!next?.ready) return;
    queue.ahead.shift();
    zoom?.reset();
    current = next;
    shownAt = null;
    main.dataset.painting = "";
    screen.pause(null);
    next.image.alt = picture.alt;
    next.image.dataset.picture = "";
    picture.replaceWith(next.image);
    picture = next.image;
    ask(next);
    screen.enable();
    // Two frames: the first is about to paint the picture, the second says that it has.
    requestAnimationFrame(() => requestAnimationFrame((now) => {
      if (current !== next) return;
      delete main.dataset.painting;
      shownAt = document.hidden ? null : now;
      main.dataset.shown = next.id;
      listen();
    }));
    screen.tell();
  }

  function ask({ class_name: name, candidate_class: position }) {
    question.toggleAttribute("data-new", shownClass !== null && shownClass !== position);
    shownClass = position;
    screen.ask(say(`ask_${article(name)}`, { name: "\n" }), name, position);
  }

  function give(value) {
    if (!current || "painting" in main.dataset || screen.stopped || queue.undoing || which?.isOpen) return; // a bouncing key must not answer what nobody has seen
    const ms = shownAt === null ? null : performance.now() - shownAt;
    const item = current;
    if (asksWhich && !which && value === "no") { // a no without a class would say less than was asked for
      prepareWhich().then(() => { if (current === item) give(value); }, () => screen.remark(say("which_offline")));
    } else if (which && value === "no") {
      namingSince = performance.now();
      which.ask(current.candidate_class, (shows) => {
        const took = performance.now() - (namingSince ?? NaN);
        settle({ value, shows, named_ms: took < UNLIKELY_MS ? Math.round(took) : null }, ms);
      });
    }
    else settle({ value }, ms);
  }

  function settle({ value, ...named }, ms) {
    const item = current;
    current = null;
    queue.settle([{ item, value, ...named }], ms);
    const button = main.querySelector(`[data-answer="${value}"]`);
    button.dataset.pressed = "";
    setTimeout(() => delete button.dataset.pressed, 120);
  }

  return {
    one_class: false,
    /** Whether what is done now is about the class that is named. A break is not: it goes back to the question. */
    names(action) {
      if (action === "pause") which?.close();
      return which?.isOpen;
    },
    wanted: () => HELD, // questions to hold
    isStocked: () => queue.ahead.length >= (queue.isScarce ? 1 : REFILL_BELOW),
    onLeased() {},
    shown: () => (current ? [current] : []),
    show,
    drop() {
      which?.close();
      zoom?.reset();
      const items = this.shown();
      current = shownClass = null;
      return items;
    },
    /** The stage without a picture, for the other view. */
    leave() {
      const blank = new Image();
      Object.assign(blank, { alt: picture.alt, hidden: true });
      blank.dataset.picture = "";
      picture.replaceWith(blank);
      picture = blank;
    },
    away(ms) {
      const later = (since) => (ms === null || since === null ? null : since + ms);
      [shownAt, namingSince] = [later(shownAt), later(namingSince)];
    },
    act(action, key) {
      if (which?.isOpen) return which.act(action, key);
      if (["yes", "no", "unsure", "unusable"].includes(action)) give(action);
      else if (action === "zoom" && held()) listen().then(() => zoom?.toggle());
      else return false;
      return true;
    },
  };
}
