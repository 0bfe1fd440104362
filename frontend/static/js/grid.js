// A page of pictures and one class: tap those that show it, send them all with one key.

const MOST = 30; // pictures on a desk's page
const MOST_NARROW = 15;
const LEAST = 12;
const FEW = 6; // fewer wait for more of their class
const MOST_HELD = 100; // the server leases no more to one person
const NARROW_PX = 640;
const TOO_SOON_MS = 300; // a bouncing key must not send an unseen page
const NEXT = { no: "yes", yes: "unsure", unsure: "unusable", unusable: "no" };

export function makeGrid(screen, queue, { say }, { tileKeys }) {
  const { main, find } = screen;
  const sheet = find("sheet");
  const pattern = find("tile-pattern");
  let page = null; // { items, shownAt }; each item has its .value
  let shownClass = null; // of this page, or the last
  let short = null; // how often in a row the server was asked and left no page; null: not asked yet

  /** Questions that can stand on one page: of one class, and together if taken back. */
  const groups = () => queue.ahead.map((item) => queue.ahead.filter(
    (other) => other.candidate_class === item.candidate_class && other.page === item.page));
  const isPage = (group) => group.length >= FEW;

  /** What is left of a block waits for more of its class, or until all is done. */
  function following() {
    const found = groups();
    if (queue.ahead[0]?.page) return found[0];
    if (short === null && !queue.failures) return [];
    const mayWait = short < 2 && !queue.isScarce && !queue.failures;
    return found.find((group) => group[0].candidate_class === shownClass) ?? found.find(isPage)
      ?? (mayWait ? [] : found.reduce((most, group) => (group.length > most.length ? group : most), []));
  }

  /** In pages of even size. */
  function cut(group) {
    const most = innerWidth < NARROW_PX ? MOST_NARROW : MOST;
    return group.slice(0, Math.min(most, Math.max(LEAST, Math.ceil(group.length / Math.ceil(group.length / most)))));
  }

  function show() {
    const items = page ? [] : cut(following());
    if (!items.length || !items.every((item) => item.ready)) return;
    queue.ahead = queue.ahead.filter((item) => !items.includes(item));
    const next = { items, shownAt: null, upAt: performance.now() };
    page = next;
    shownClass = items[0].candidate_class;
    screen.pause(null);
    const hadFocus = sheet.contains(document.activeElement);
    sheet.replaceChildren(...next.items.map(tile));
    arrange();
    if (hadFocus) sheet.firstElementChild.focus();
    const { class_name: name, candidate_class: position } = next.items[0];
    screen.ask(say("mark", { name: "\n" }), name, position);
    countMarked();
    screen.enable();
    requestAnimationFrame(() => requestAnimationFrame((now) => {
      if (page !== next) return;
      next.shownAt = document.hidden ? null : now;
      main.dataset.shown = next.items[0].id;
    }));
    screen.tell();
    queue.refill();
  }

  function tile(item, index) {
    const button = pattern.content.firstElementChild.cloneNode(true);
    item.value ??= "no";
    item.image.alt = "";
    delete item.image.dataset.picture;
    button.prepend(item.image);
    button.dataset.hint = (tileKeys()[index] ?? "").toUpperCase(); // drawn by the sheet, no part of the name
    button.addEventListener("click", () => mark(index));
    return draw(button, item, index);
  }

  function draw(button, item, index) {
    button.dataset.value = item.value;
    button.setAttribute("aria-label", say("tile", { number: index + 1, answer: say(item.value) }));
    button.querySelector("[data-word]").textContent = item.value === "no" ? "" : say(item.value);
    return button;
  }

  function mark(index) {
    const item = page?.items[index];
    if (!item || screen.stopped) return;
    item.value = NEXT[item.value];
    draw(sheet.children[index], item, index);
    countMarked();
  }

  function countMarked() {
    const count = page.items.filter((item) => item.value !== "no").length;
    find("submit-words").textContent = count ? say("submit", { count }) : say("submit_none");
  }

  /** As large as the pictures can be without scrolling. */
  function arrange() {
    const count = page?.items.length ?? 0;
    let best = { side: 0 };
    for (let columns = 1; columns <= count; columns++) {
      const rows = Math.ceil(count / columns);
      const side = Math.min(sheet.clientWidth / columns, sheet.clientHeight / rows);
      if (side > best.side) best = { side, columns, rows };
    }
    if (best.side) sheet.style.gridTemplate = `repeat(${best.rows}, minmax(0, 1fr)) / repeat(${best.columns}, minmax(0, 1fr))`;
  }

  function submit() {
    if (!page || screen.stopped || queue.undoing || performance.now() - page.upAt < TOO_SOON_MS) return;
    const { items, shownAt } = page;
    const ms = shownAt === null ? null : (performance.now() - shownAt) / items.length;
    page = null;
    queue.settle(items.map((item) => ({ item, value: item.value })), ms);
  }

  addEventListener("resize", arrange);
  find("submit").addEventListener("click", submit);
  return {
    one_class: true,
    wanted: () => Math.min(MOST_HELD, MOST + queue.ahead.length + (page?.items.length ?? 0)),
    isStocked: () => following().length > 0,
    onLeased() { short = groups().some(isPage) ? 0 : short + 1; },
    shown: () => page?.items ?? [],
    show,
    drop() {
      const items = this.shown();
      page = null;
      return items;
    },
    leave() {
      sheet.replaceChildren();
      shownClass = short = null;
    },
    away: (ms) => { if (page) page.shownAt = ms === null || page.shownAt === null ? null : page.shownAt + ms; },
    act(action, key) {
      if (action === "submit") submit();
      else if (tileKeys().includes(key)) mark(tileKeys().indexOf(key));
      else return false;
      return true;
    },
  };
}
