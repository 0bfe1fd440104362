// Keeps pages of runs fresh with one stream for all tabs of a browser: it opens six connections to a server and no more.
//
//   <div data-live="STREAM_URL" data-run="ID">...outermost elements of the fragment...</div>
//
// Of the tabs that are seen, one leads: it holds a lock, follows the runs of all of them and passes on what comes. A tab
// that nobody sees follows nothing. Where a browser has no locks (http without being localhost), each tab that is seen
// leads itself alone.
import { redrawing, scrolledTables } from "./redraw.js";

const NAME = "clarinet-live";
const GATHER_MS = 150; // for tabs to say what they show, before the stream is opened
const MOST = 40; // runs of one stream, as the server allows: more than 40 tabs are hardly seen at once
const RETRY_MS = 4000; // after a stream the browser gave up on

const followed = new Map(); // run -> function that takes its pieces; of this tab
const me = `${Date.now()}-${Math.random()}`;
const channel = navigator.locks && new BroadcastChannel(NAME);
let address = "";
let isThere = false; // this tab follows
let waiting = null; // for the lock

const leading = { isOn: false, runs: new Map(), stream: null, timer: 0, giveUp: null }; // runs by tab

function show(kind, { run, pieces }) {
  if (kind === "pieces") followed.get(run)?.(pieces);
  else followed.delete(run);
}

function passOn(kind, data) {
  channel?.postMessage({ kind, data });
  show(kind, data);
}

function introduce() {
  channel?.postMessage({ kind: "here", tab: me, runs: [...followed.keys()] });
}

function reopen(after = GATHER_MS) {
  clearTimeout(leading.timer);
  leading.timer = setTimeout(open, after);
}

function open() {
  leading.stream?.close();
  const runs = new Set([...leading.runs.values()].flat());
  if (!leading.isOn || !runs.size) return;
  const url = new URL(address, location.href);
  for (const run of [...runs].slice(-MOST)) url.searchParams.append("run", run);
  const stream = (leading.stream = new EventSource(url));
  stream.addEventListener("pieces", (event) => passOn("pieces", JSON.parse(event.data)));
  stream.addEventListener("end", (event) => {
    const data = JSON.parse(event.data);
    passOn("end", data);
    runs.delete(data.run);
    for (const [tab, theirs] of leading.runs) leading.runs.set(tab, theirs.filter((run) => run !== data.run));
    if (!runs.size) stream.close();
  });
  stream.onerror = () => {
    if (stream.readyState === EventSource.CLOSED) reopen(RETRY_MS); // else the browser connects again by itself
  };
}

function lead() {
  leading.isOn = true;
  leading.runs = new Map([[me, [...followed.keys()]]]);
  channel?.postMessage({ kind: "who" });
  reopen();
  return new Promise((resolve) => (leading.giveUp = resolve));
}

function join() {
  if (isThere || !followed.size) return;
  isThere = true;
  introduce();
  waiting = new AbortController();
  if (channel) navigator.locks.request(NAME, { signal: waiting.signal }, lead).catch(() => {}); // aborted
  else lead();
}

function leave() {
  if (!isThere) return;
  isThere = false;
  channel?.postMessage({ kind: "here", tab: me, runs: [] });
  waiting.abort();
  clearTimeout(leading.timer);
  leading.isOn = false;
  leading.stream?.close();
  leading.giveUp?.();
}

function listen({ data: { kind, tab, runs, data } }) {
  if (kind === "who" && isThere) introduce();
  else if (kind === "here" && leading.isOn) {
    leading.runs.set(tab, runs);
    reopen(); // who comes needs all of it once
  } else if (isThere && data) show(kind, data);
}

for (const element of document.querySelectorAll("[data-live]")) {
  address = element.dataset.live;
  followed.set(element.dataset.run, redrawing(element));
}
if (followed.size) {
  if (channel) channel.onmessage = listen;
  const look = () => (document.visibilityState === "hidden" ? leave() : join());
  document.addEventListener("visibilitychange", look);
  addEventListener("pagehide", leave);
  addEventListener("pageshow", look);
  look();
}

// What htmx fetches leaves wide tables where they are, too; it keeps the focus by its id.
let putBack = () => {};
document.body.addEventListener("htmx:beforeSwap", () => (putBack = scrolledTables()));
document.body.addEventListener("htmx:afterSwap", () => putBack());
