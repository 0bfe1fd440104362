// Brings what is shown up to what the server shows now, and touches nothing that is the same. What a reader unfolded, a
// script drew or the keyboard stands on stays: compared is what the server said before with what it says now.

const parser = new DOMParser();
const token = document.querySelector("meta[name=csrf-token]")?.content ?? "";

/** The element of some HTML; its forms get this page's own token, for what is sent to all pages has none. */
function parse(html) {
  const element = parser.parseFromString(html, "text/html").body.firstElementChild;
  for (const input of element.querySelectorAll("input[name=csrf_token]")) input.setAttribute("value", token);
  return element;
}

const summaries = (element) => [...element.querySelectorAll("details > summary")];
const unfoldedIn = (element) =>
  new Set(summaries(element).filter((summary) => summary.parentElement.open).map((summary) => summary.textContent));

function unfold(element, unfolded) {
  for (const summary of summaries(element)) summary.parentElement.open ||= unfolded.has(summary.textContent);
  window.htmx?.process(element);
}

function replace(shown, after) {
  const fresh = document.importNode(after, true);
  const unfolded = unfoldedIn(shown);
  shown.replaceWith(fresh);
  unfold(fresh, unfolded);
}

function change(shown, before, after) {
  if (before.isEqualNode(after)) return;
  if (before.nodeName !== after.nodeName || shown.nodeName !== after.nodeName) {
    shown.replaceWith(document.importNode(after, true));
  } else if (after.nodeType !== Node.ELEMENT_NODE) {
    shown.nodeValue = after.nodeValue;
  } else if (
    before.childNodes.length !== after.childNodes.length ||
    before.childNodes.length !== shown.childNodes.length
  ) {
    replace(shown, after);
  } else {
    for (const { name } of before.attributes) if (!after.hasAttribute(name)) shown.removeAttribute(name);
    for (const { name, value } of after.attributes) {
      if (before.getAttribute(name) !== value) shown.setAttribute(name, value);
    }
    // A list of its own: replacing one of them changes the live one.
    const children = [...shown.childNodes];
    children.forEach((child, index) => change(child, before.childNodes[index], after.childNodes[index]));
  }
}

const wide = () => document.querySelectorAll("[role=region][id]");

/** Gives a function that puts wide tables back to where the reader has scrolled them by now. */
export function scrolledTables() {
  const places = new Map([...wide()].map((region) => [region.id, region.scrollLeft]));
  return () => {
    for (const region of wide()) region.scrollLeft = places.get(region.id) ?? region.scrollLeft;
  };
}

/** Redraws; what is scrolled, and the keyboard, stay where they are. */
function inPlace(draw) {
  const putBack = scrolledTables();
  const focused = document.activeElement?.id;
  draw();
  putBack();
  if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus();
}

/** Gives a function that takes the pieces of an element as the server shows them now, null for each that is as it was. */
export function redrawing(element) {
  let before = [...element.cloneNode(true).children];
  return (pieces) => {
    if (pieces.includes(null) && pieces.length !== before.length) return; // they come as a whole in a moment
    const after = pieces.map((html, index) => (html === null ? before[index] : parse(html)));
    inPlace(() => {
      if (after.length === before.length && after.length === element.children.length) {
        const shown = [...element.children];
        shown.forEach((child, index) => change(child, before[index], after[index]));
      } else {
        const unfolded = unfoldedIn(element);
        element.replaceChildren(...after.map((piece) => document.importNode(piece, true)));
        unfold(element, unfolded);
      }
    });
    before = after;
    document.dispatchEvent(new Event("live:redrawn"));
  };
}
