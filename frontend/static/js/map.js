// The feature map for pointers: the picture nearest to one is shown, and opened by a click. Without this, points are small links.
import { zooming } from "./zoom.js";

const map = document.querySelector("[data-map]");
const peek = document.querySelector("[data-peek]");
const NEAR = 22; // pixels of the screen: about a finger's half
const isDrag = zooming(map, document.querySelector("[data-tools]"));

const points = [...map.querySelectorAll("a")].map((link) => {
  const use = link.querySelector("use");
  return { link, href: link.getAttribute("href"), x: use.x.baseVal.value, y: use.y.baseVal.value, isFaint: link.parentNode.hasAttribute("opacity") };
});

/** The point nearest to the pointer, or none in reach; faint ones give way. */
function nearest(event) {
  const scale = map.getScreenCTM();
  let found = null, least = NEAR;
  for (const point of points) {
    const distance = Math.hypot(scale.a * point.x + scale.e - event.clientX, scale.d * point.y + scale.f - event.clientY);
    if (!point.isFaint && distance < least) [found, least] = [point, distance];
  }
  return found;
}

map.addEventListener("pointermove", (event) => {
  const point = event.pointerType === "mouse" && !event.buttons && nearest(event);
  peek.hidden = !point;
  if (!point || peek.dataset.of === point.href) return;
  peek.dataset.of = point.href;
  const [, id] = point.href.match(/\/(\d+)(\?|$)/);
  peek.querySelector("img").src = point.link.parentNode.dataset.images.replace("{example_id}", id);
  peek.querySelector("span").textContent = point.link.querySelector("title").textContent;
});
map.addEventListener("pointerleave", () => { peek.hidden = true; });
map.addEventListener("click", (event) => {
  if (event.detail && isDrag()) return event.preventDefault();
  const point = nearest(event);
  if (!point || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  location.assign(point.href);
});
