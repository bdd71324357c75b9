// A map of the photos that say where they were taken: an outline of the land that is kept here, and photos gathered on it.

import { address, json, thumbnail } from "../api.js";
import { at, complain, debounce, el } from "../dom.js";
import { everyFilter, inForce } from "../filters.js";
import { figure, t, tn } from "../language.js";
import { start } from "../page.js";
import { drawLand, readOutline, TILE } from "./land.js";
import { fit, gather, project, unproject, within } from "./mercator.js";

const EDGE = 40; // pixels: a picture stands out that far from its place
const ASIDE = 40; // pixels at the right of the map, where its buttons are
const CELL = 84; // pixels: photos nearer than that are gathered
const MOST = 18; // zoom
const STEP = 90; // pixels that a key moves the map
const CLICK = 5; // pixels: less is no drag
const view = at("view");
const canvas = at("land");
const drawn = new Map(); // list items by keys of clusters
const levels = new Map(); // clusters by zoom
let world = null;
let [xs, ys, numbers] = [[], [], []];
let now = { x: 0.5, y: 0.4, zoom: 1 };
let frame = 0;

const scale = () => TILE * 2 ** now.zoom;
const size = () => [view.clientWidth, view.clientHeight];

/** The photos as they are gathered at a zoom. */
function clusters(level) {
  if (!levels.has(level)) {
    if (levels.size > 4) levels.clear();
    levels.set(level, gather(xs, ys, CELL / (TILE * 2 ** level)));
  }
  return levels.get(level);
}

function marker(cluster) {
  const number = numbers[cluster.place];
  const box = within(cluster.box);
  const [latitude, longitude] = unproject(cluster.x, cluster.y).map((one) => one.toFixed(5));
  const href = cluster.count === 1
    ? address("/photo", { number, list: address("", { ...everyFilter(), within: box }).slice(1) })
    : address("/", { ...everyFilter(), within: box });
  const label = tn(cluster.count, "{n} photo at {latitude}, {longitude}", "{n} photos at {latitude}, {longitude}", { latitude, longitude });
  return el("li", { class: "cluster" }, el("a", { href, "aria-label": label, title: label, draggable: "false" },
    el("img", { src: thumbnail(number), alt: "", draggable: "false", decoding: "async" }),
    cluster.count > 1 && el("span", { class: "cluster-count" }, figure(cluster.count))));
}

function drawClusters() {
  const level = Math.max(Math.floor(now.zoom), 0);
  const [width, height] = size();
  const side = scale();
  const kept = new Set();
  for (const cluster of clusters(level)) {
    const [x, y] = [(cluster.x - now.x) * side + width / 2, (cluster.y - now.y) * side + height / 2];
    if (x < -40 || y < -40 || x > width + 40 || y > height + 40) continue;
    const key = `${level}:${cluster.place}`;
    kept.add(key);
    if (!drawn.has(key)) {
      drawn.set(key, marker(cluster));
      at("clusters").append(drawn.get(key));
    }
    drawn.get(key).style.setProperty("transform", `translate(${x}px, ${y}px)`);
  }
  for (const [key, item] of drawn) {
    if (kept.has(key)) continue;
    if (item.contains(document.activeElement)) view.focus({ preventScroll: true });
    item.remove();
    drawn.delete(key);
  }
}

const remember = debounce(() => {
  const [latitude, longitude] = unproject(now.x, now.y);
  const here = [latitude.toFixed(5), longitude.toFixed(5), now.zoom.toFixed(2)].join(",");
  history.replaceState(null, "", address("/map", { ...everyFilter(), at: here }));
}, 300);

function show(x, y, zoom, keep = true) {
  const [width, height] = size();
  const least = Math.log2(Math.max(width, height) / TILE / 2);
  now = {
    zoom: Math.min(Math.max(zoom, Math.min(least, 1)), MOST),
    x: Math.min(Math.max(x, 0), 1),
    y: Math.min(Math.max(y, 0), 1),
  };
  if (keep) remember();
  if (frame) return;
  frame = requestAnimationFrame(() => {
    frame = 0;
    drawLand(canvas, world, now, size());
    drawClusters();
  });
}

/** Zoom so that what is at a point of the window stays there. */
function zoomAt(zoom, left, top) {
  const [width, height] = size();
  const [dx, dy] = [left - width / 2, top - height / 2];
  const before = scale();
  const to = Math.min(Math.max(zoom, 0), MOST);
  const after = TILE * 2 ** to;
  show(now.x + dx / before - dx / after, now.y + dy / before - dy / after, to);
}

const zoomBy = (by) => zoomAt(now.zoom + by, ...size().map((one) => one / 2));
const pan = (dx, dy) => show(now.x + dx / scale(), now.y + dy / scale(), now.zoom);

function showAll(keep = true) {
  if (!xs.length) { // most of the world
    const [width, height] = size();
    return show(0.5, 0.4, Math.max(1, Math.log2(Math.min(width, 1.6 * height) / TILE)), keep);
  }
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  for (let place = 0; place < xs.length; place += 1) {
    box[0] = Math.min(box[0], xs[place]);
    box[1] = Math.min(box[1], ys[place]);
    box[2] = Math.max(box[2], xs[place]);
    box[3] = Math.max(box[3], ys[place]);
  }
  show(...fit(box, ...size(), 12, EDGE, ASIDE), keep);
}

function listen() {
  const fingers = new Map();
  let moved = 0;
  const spot = (event) => {
    const { left, top } = view.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  view.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    if (!fingers.size) moved = 0;
    fingers.set(event.pointerId, spot(event));
  });
  view.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const [x, y] = spot(event);
    moved += Math.hypot(x - before[0], y - before[1]);
    if (moved < CLICK) return;
    view.setPointerCapture(event.pointerId); // not before: a click on a photo is one
    const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
    fingers.set(event.pointerId, [x, y]);
    if (!other) {
      pan(before[0] - x, before[1] - y);
      return;
    }
    const apart = ([a, b]) => Math.hypot(a - other[0], b - other[1]);
    zoomAt(now.zoom + Math.log2(Math.max(apart([x, y]), 1) / Math.max(apart(before), 1)), (x + other[0]) / 2, (y + other[1]) / 2);
  });
  for (const end of ["pointerup", "pointercancel"]) view.addEventListener(end, (event) => fingers.delete(event.pointerId));
  view.addEventListener("click", (event) => {
    if (moved >= CLICK) event.preventDefault(); // the end of a drag
  }, { capture: true });
  view.addEventListener("dblclick", (event) => {
    if (!event.target.closest("a")) zoomAt(now.zoom + 1, ...spot(event));
  });
  view.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    zoomAt(now.zoom - (event.deltaY * lines) / (event.ctrlKey ? 60 : 250), ...spot(event));
  }, { passive: false });
  const keys = {
    ArrowLeft: () => pan(-STEP, 0), ArrowRight: () => pan(STEP, 0), ArrowUp: () => pan(0, -STEP), ArrowDown: () => pan(0, STEP),
    "+": () => zoomBy(1), "=": () => zoomBy(1), "-": () => zoomBy(-1), Home: () => showAll(),
  };
  view.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  at("nearer").addEventListener("click", () => zoomBy(1));
  at("farther").addEventListener("click", () => zoomBy(-1));
  at("whole").addEventListener("click", () => showAll());
  new ResizeObserver(() => show(now.x, now.y, now.zoom, false)).observe(view);
  const again = () => show(now.x, now.y, now.zoom, false);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  new MutationObserver(again).observe(document.documentElement, { attributes: true }); // the scheme that was chosen
}

async function load() {
  const filters = everyFilter();
  at("to-wall").href = address("/", filters);
  at("chips").replaceChildren(...inForce(filters).map(({ text, rest }) => el("li", {},
    el("a", { class: "wall-chip", href: address("/map", rest), "aria-label": t("Remove the filter {text}", { text }) },
      el("span", { dir: "auto" }, text), el("span", { class: "cross", "aria-hidden": "true" }, "×")))));
  const found = await json("/api/places", filters);
  numbers = found.numbers;
  const points = numbers.map((_, place) => project(found.latitudes[place], found.longitudes[place]));
  xs = Float64Array.from(points, ([x]) => x);
  ys = Float64Array.from(points, ([, y]) => y);
  levels.clear();
  at("said").textContent = numbers.length
    ? tn(numbers.length, "{n} photo says where it was taken", "{n} photos say where they were taken")
    : t("No photo says where it was taken.");
}

start(async () => {
  listen();
  const outline = readOutline().then((found) => {
    world = found;
    show(now.x, now.y, now.zoom, false);
  }).catch(complain);
  await load();
  const here = (new URLSearchParams(location.search).get("at") ?? "").split(",").map(Number);
  if (here.length === 3 && here.every(Number.isFinite)) show(...project(here[0], here[1]), here[2], false);
  else showAll(false);
  await outline;
});
