// When and where a motif occurs: a bar for each year, or some years, and a map. Each leads to the first row of its photos.

import { thumbnail } from "../api.js";
import { at, el, svg } from "../dom.js";
import { figure, t, tn } from "../language.js";
import { drawLand, readOutline, TILE } from "../photos/land.js";
import { fit, gather, project } from "../photos/mercator.js";

const MOST_BARS = 60;
const SPANS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]; // years of a bar
const [WIDTH, HEIGHT, FOOT, HEAD] = [640, 150, 22, 16]; // of the timeline
const EDGE = 40; // pixels that stay free around what the map shows
const CELL = 64; // pixels: photos nearer than that are gathered
const MOST_ZOOM = 9;

let outline = null;

function lead(event, number) {
  event.preventDefault();
  const row = at(`find-${number}`);
  row.scrollIntoView({ block: "center" });
  row.focus({ preventScroll: true });
}

const year = ({ taken }) => Number.parseInt(/^-?\d{1,4}/.exec(taken ?? "")?.[0], 10);

/** Draw how many photos are of which years. Returns whether any is. */
export function drawYears(finds) {
  const dated = finds.filter((find) => Number.isFinite(year(find)));
  at("years").hidden = !dated.length;
  if (!dated.length) return false;
  const [first, last] = [Math.min(...dated.map(year)), Math.max(...dated.map(year))];
  const span = SPANS.find((one) => (last - first + 1) / one <= MOST_BARS) ?? SPANS.at(-1);
  const start = Math.floor(first / span) * span;
  const bars = Array.from({ length: Math.floor((last - start) / span) + 1 }, () => []);
  for (const find of dated) bars[Math.floor((year(find) - start) / span)].push(find);
  const most = Math.max(...bars.map(({ length }) => length));
  const [wide, high] = [Math.min(WIDTH / bars.length, 48), HEIGHT - FOOT - HEAD];
  const every = Math.ceil(48 / wide); // bars between two labels
  const plain = (number) => figure(number, { useGrouping: false });
  const drawn = bars.flatMap((some, place) => {
    const from = start + place * span;
    const [x, middle] = [place * wide, (place + 0.5) * wide];
    const label = place % every === 0 && svg("text", { x: middle, y: HEIGHT - 6, "text-anchor": "middle", "aria-hidden": "true" }, plain(from));
    if (!some.length) return [label];
    const tall = Math.max((some.length / most) * high, 3);
    const years = span === 1 ? plain(from) : t("{first} to {last}", { first: plain(from), last: plain(from + span - 1) });
    const said = tn(some.length, "{years}: {n} photo", "{years}: {n} photos", { years });
    return [label, svg("a", { href: `#find-${some[0].number}`, "aria-label": said, onclick: (event) => lead(event, some[0].number) },
      svg("title", {}, said),
      svg("rect", { x: x + 1, y: HEAD + high - tall, width: Math.max(wide - 2, 1), height: tall, rx: 2 }),
      svg("text", { x: middle, y: HEAD + high - tall - 4, "text-anchor": "middle" }, figure(some.length)))];
  });
  at("timeline").replaceChildren(svg("svg", { class: "timeline", viewBox: `0 0 ${Math.max(bars.length * wide, 48)} ${HEIGHT}`, role: "group", "aria-label": t("Photos by year") }, ...drawn));
  at("timeline").firstChild.style.setProperty("max-width", `${Math.max(bars.length * wide, 48)}px`);
  const undated = finds.length - dated.length;
  at("undated").textContent = undated ? tn(undated, "{n} photo has no date.", "{n} photos have no date.") : "";
  return true;
}

/** Draw where photos are. Returns whether any says so. */
export function drawPlaces(finds) {
  const placed = finds.filter(({ latitude, longitude }) => latitude !== null && longitude !== null);
  at("places").hidden = !placed.length;
  if (!placed.length) return false;
  at("charts").hidden = false; // it has a size from now on
  const points = placed.map(({ latitude, longitude }) => project(latitude, longitude));
  const [xs, ys] = [0, 1].map((axis) => points.map((point) => point[axis]));
  const size = [at("view").clientWidth, at("view").clientHeight];
  const [x, y, zoom] = fit([Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)], ...size, MOST_ZOOM, EDGE, 0);
  const side = TILE * 2 ** zoom;
  const draw = (world) => drawLand(at("land"), world, { x, y, zoom }, size);
  draw(null);
  outline ??= readOutline();
  outline.then(draw, () => { outline = null; }); // without the land, places still stand
  at("clusters").replaceChildren(...gather(xs, ys, CELL / side).map((cluster) => {
    const find = placed[cluster.place];
    const where = find.place ?? t("{latitude}, {longitude}", { latitude: figure(find.latitude), longitude: figure(find.longitude) });
    const said = tn(cluster.count, "{place}: {n} photo", "{place}: {n} photos", { place: where });
    const item = el("li", { class: "cluster" }, el("a", { href: `#find-${find.number}`, "aria-label": said, title: said, onclick: (event) => lead(event, find.number) },
      el("img", { src: thumbnail(find.number), alt: "" }),
      cluster.count > 1 && el("span", { class: "cluster-count" }, figure(cluster.count))));
    item.style.setProperty("transform", `translate(${(cluster.x - x) * side + size[0] / 2}px, ${(cluster.y - y) * side + size[1] / 2}px)`);
    return item;
  }));
  return true;
}
