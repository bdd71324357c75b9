// Elements without markup: every text from data becomes a text node, so a photo named <img onerror=…> stays a name.

import { figure, t } from "./language.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return node;
}

/** An HTML element: attributes (those that start with "on" are listeners), then children; strings become text. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element, made as `el` makes HTML. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** The element of the page with this id. */
export const at = (id) => document.getElementById(id);

/** The viewBox in which a photo's coordinates are those of its pixels: (0, 0) is the centre of the top-left one. */
export const pixels = (width, height) => `-0.5 -0.5 ${width} ${height}`;

/** An outline that is seen on light and on dark photos. `points`: corners [x, y]. */
export function outline(points) {
  const corners = points.map((point) => point.join(",")).join(" ");
  return [svg("polygon", { class: "halo", points: corners }), svg("polygon", { class: "region", points: corners })];
}

/** Corners of a box, in order round it. */
export const corners = ([x0, y0, x1, y1]) => [[x0, y0], [x1, y0], [x1, y1], [x0, y1]];

/** Run when nothing has called for `wait` milliseconds. */
export function debounce(action, wait) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), wait);
  };
}

/** Shows in an element for how many seconds something has been waited for, between `start` and `stop`. */
export function stopwatch(node) {
  let timer = 0;
  const stop = () => clearInterval(timer);
  const start = () => {
    stop();
    const begun = performance.now();
    const show = () => {
      node.textContent = t("{seconds} s", { seconds: figure(Math.round((performance.now() - begun) / 1000)) });
    };
    show();
    timer = setInterval(show, 1000);
  };
  return { start, stop };
}

/** Have the browser keep a file. */
export function save(blob, name) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Show a sentence in the page's place for errors; an empty one hides it. */
export function complain(error, id = "error") {
  if (error && error.name === "AbortError") return;
  at(id).textContent = error ? error.message || String(error) : "";
}

let pressed = false;
const waiting = []; // functions
document.addEventListener("pointerdown", () => (pressed = true), { capture: true });
// A drag and a scroll cancel a press; the menu of a right click may take its end.
for (const name of ["pointerup", "pointercancel", "contextmenu"]) {
  document.addEventListener(name, () => {
    pressed = false;
    for (const act of waiting.splice(0)) setTimeout(act);
  }, { capture: true });
}

/** Act once no button is pressed: what moves on the page meanwhile would not be clicked. */
export function afterPress(act) {
  if (pressed) waiting.push(act);
  else act();
}
