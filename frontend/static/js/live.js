// Keeps a server-rendered fragment fresh while server-sent events arrive.
//
//   <div data-live="EVENTS_URL" data-fragment="PAGE_URL">...fragment...</div>
//
// Every "update" event fetches the fragment (HX-Request: true) into the element; "end" fetches it once more and
// closes. A fragment that renders with [data-live-done] in it ends the stream too.

const PAUSE_MS = 500; // least time between two fetches, so a fast stream cannot flood the server
const RETRY_MS = 4000; // after a stream the browser gave up on

function follow(element) {
  const { live: eventsUrl, fragment: fragmentUrl } = element.dataset;
  let stream = null;
  let loading = false;
  let again = false;
  let ended = false;

  async function refresh() {
    if (loading) {
      again = true;
      return;
    }
    loading = true;
    try {
      await window.htmx.ajax("GET", fragmentUrl, { target: element, swap: "innerHTML" });
    } catch {
      again = !ended; // the network is away: the next event, or the retry, brings it back
    }
    if (element.querySelector("[data-live-done]")) end();
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    loading = false;
    if (again) {
      again = false;
      refresh();
    }
  }

  function end() {
    ended = true;
    stream?.close();
  }

  function open() {
    if (ended || !element.isConnected) return;
    stream = new EventSource(eventsUrl);
    stream.addEventListener("update", refresh);
    stream.addEventListener("end", () => {
      end();
      refresh();
    });
    stream.onerror = () => {
      if (stream.readyState !== EventSource.CLOSED || ended) return; // the browser reconnects by itself
      refresh();
      setTimeout(open, RETRY_MS);
    };
  }

  // What the reader unfolded stays unfolded.
  const summaries = () => [...element.querySelectorAll("details > summary")];
  let unfolded = new Set();
  element.addEventListener("htmx:beforeSwap", () => {
    unfolded = new Set(summaries().filter((summary) => summary.parentElement.open).map((summary) => summary.textContent));
  });
  element.addEventListener("htmx:afterSwap", () => {
    for (const summary of summaries()) summary.parentElement.open ||= unfolded.has(summary.textContent);
  });

  open();
  addEventListener("pagehide", () => stream?.close());
  addEventListener("pageshow", (event) => event.persisted && open());
}

for (const element of document.querySelectorAll("[data-live]")) follow(element);

// A wide table that the reader scrolled stays where it was when its fragment comes anew; htmx keeps the focus by its id.
const wide = () => document.querySelectorAll("[role=region][id]");
let places = new Map();
document.body.addEventListener("htmx:beforeSwap", () => {
  places = new Map([...wide()].map((region) => [region.id, region.scrollLeft]));
});
document.body.addEventListener("htmx:afterSwap", () => {
  for (const region of wide()) region.scrollLeft = places.get(region.id) ?? region.scrollLeft;
});
