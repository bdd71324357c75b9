// Thumbnails that load when they come near, and page links that reach any of many thousand pages.

import { address, thumbnail } from "./api.js";
import { el, svg, outline, pixels } from "./dom.js";
import { figure, t } from "./language.js";

const FIRST = 12; // so many are loaded at once, as they are seen at once
const END = 12; // characters of a name that stay: they tell photos apart
const letters = new Intl.Segmenter();

/**
 * A photo's name on one line: where it does not fit, its middle is left out (by the style sheet: start…end).
 * The whole name is its title, and its text. A link says it in one piece to those who hear it.
 */
export function nameLine(tag, name, attributes = {}) {
  const all = [...letters.segment(name)].map(({ segment }) => segment);
  const cut = all.length > END + 2 ? all.length - END : all.length;
  const [start, end] = [all.slice(0, cut).join(""), all.slice(cut).join("")];
  return el(tag, { class: "name", title: name, dir: "auto", "aria-label": tag === "a" ? name : null, ...attributes },
    el("span", { class: "start" }, start), end && el("span", { class: "end" }, end));
}

/** What a photo is called: its title, or its name where it has none. */
export const calledBy = ({ title, name }) => title || name;

/** What a photo is called, on one line; its name is the tooltip of a title. */
export const callLine = (photo) => photo.title
  ? el("span", { class: "title", title: `${photo.title} (${photo.name})`, dir: "auto", "aria-hidden": "true" }, photo.title)
  : nameLine("span", photo.name, { "aria-hidden": "true" });

/** A photo in a frame; `region`: corners [x, y] in its pixels, drawn over it. */
export function frame(photo, { region = null, alt = photo.name, eager = false, source = thumbnail(photo.number) } = {}) {
  const picture = el("img", { alt, loading: eager ? null : "lazy", decoding: "async", src: source });
  if (!source.startsWith("blob:")) picture.srcset = `${source} 1x, ${thumbnail(photo.number, 512)} 2x`;
  const drawn = region && photo.width
    ? svg("svg", { viewBox: pixels(photo.width, photo.height), "aria-hidden": "true" }, ...outline(region))
    : null;
  return el("span", { class: "frame" }, picture, drawn);
}

/** List items that link to the photos. `fields`: carried along in the links. */
export function tiles(photos, fields = {}, eager = FIRST) {
  return photos.map((photo, place) => {
    const href = address("/photo", { number: photo.number, ...fields });
    // The name is read once, from the text; the picture says nothing that the text does not.
    const link = el("a", { href }, frame(photo, { eager: place < eager, alt: photo.title ? `${photo.title}, ${photo.name}` : photo.name }), callLine(photo));
    return el("li", { class: "photo-tile" }, link);
  });
}

/** Page numbers to link to: the first, the last, and those around the one shown; null stands for a gap. */
export function window(page, pages) {
  const shown = [...new Set([1, page - 1, page, page + 1, pages])].filter((one) => one >= 1 && one <= pages);
  return shown.flatMap((one, place) => {
    const before = place ? shown[place - 1] : one - 1;
    if (one - before === 2) return [one - 1, one];
    return one - before > 2 ? [null, one] : [one];
  });
}

/** Fill a <nav>. `to(page)`: address of a page; `go(page)`: show one, called by "Go to page". */
export function paginate(nav, page, pages, to, go) {
  nav.hidden = pages < 2;
  if (pages < 2) return;
  const entry = (one) =>
    el("li", {}, one === null
      ? el("span", { class: "gap" }, "…")
      : el("a", { href: to(one), "aria-label": t("Page {number}", { number: one }), "aria-current": one === page ? "page" : null }, figure(one)));
  const step = (text, one) => one >= 1 && one <= pages && el("li", {}, el("a", { href: to(one), rel: one < page ? "prev" : "next" }, text));
  const input = el("input", { id: "go-to", type: "number", min: 1, max: pages, required: true, inputmode: "numeric" });
  const form = el("form", {}, el("label", { for: "go-to" }, t("Go to page")), input, el("button", { type: "submit" }, t("Go")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go(Math.min(Math.max(Math.round(Number(input.value)), 1), pages));
  });
  nav.replaceChildren(
    el("ul", {}, step(t("Previous"), page - 1), ...window(page, pages).map(entry), step(t("Next"), page + 1)),
    pages > 5 ? form : "",
  );
}
