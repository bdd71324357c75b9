// One query and one photo: which of their features match, and the two laid over each other.

import { address, image, impressions, match, matchAddress, photo as read } from "./api.js";
import { at, complain, corners, el, outline, save, svg } from "./dom.js";
import { apply, ellipse, invert, toCss } from "./homography.js";
import { figure, fixed, parts, percent, t, tn } from "./language.js";
import { entitle, start } from "./page.js";
import { together, Zoom } from "./photos/zoom.js";
import { parse, resolve } from "./query.js";

const FLICKER = 500; // milliseconds that each photo is seen: two changes a second, below what is unsafe

const MOST_DRAWN = 400; // matches: more would cover what they join, as those of two copies do

// Side by side

class Pair {
  constructor(host, query, photo, found) {
    this.host = host;
    const step = Math.max(found.matches.length / MOST_DRAWN, 1);
    this.matches = found.matches.filter((_, place) => Math.floor(place / step) !== Math.floor((place - 1) / step));
    this.all = found.matches.length;
    this.chosen = -1;
    this.photos = [{ ...query, source: query.large }, { ...photo, source: image(photo.number) }];
    this.images = this.photos.map(({ name, width, height, source }) => el("img", { src: source, alt: name, width, height }));
    this.views = this.images.map((picture) => el("div", { class: "zoom-view" }, el("div", { class: "zoom-content" }, picture)));
    const titles = [t("Query: {name}"), t("Photo: {name}")];
    const figures = this.views.map((view, side) => {
      const { width, height } = this.photos[side];
      const figure = el("figure", {}, el("figcaption", {}, ...parts(titles[side], { name: this.#title(side) })), view);
      figure.style.setProperty("--ratio", width / height);
      figure.style.setProperty("--width", `${width}px`);
      return figure;
    });
    // Ellipses are drawn in the pixels of the originals and scaled by their group; lines join the two pictures.
    const clips = this.views.map((_, side) => svg("clipPath", { id: `view-${side}` }, svg("rect")));
    this.clips = clips.map((clip) => clip.firstChild);
    this.sides = this.photos.map((_, side) => svg("g", {}, this.#outline(side, found), ...this.matches.map((one, place) => this.#spot(one, side, place))));
    this.lines = this.matches.map((one, place) => this.#line(place));
    at("which").textContent = this.#drawn();
    const title = tn(this.matches.length, "{n} matching detail, joined by lines", "{n} matching details, joined by lines");
    const sides = this.sides.map((group, side) => svg("g", { "clip-path": `url(#view-${side})` }, group));
    this.drawing = svg("svg", { role: "img", "aria-label": title }, svg("defs", {}, ...clips), ...sides, ...this.lines);
    // Hundreds of lines would hide what they join: the more there are, the fainter.
    this.drawing.style.setProperty("--strength", Math.min(Math.max(80 / this.matches.length, 0.15), 0.75));
    host.replaceChildren(...figures, this.drawing);
    const place = () => this.#place();
    this.zooms = this.views.map((view, side) =>
      new Zoom(view, view.firstChild, [{ picture: this.images[side], photo: this.photos[side] }]));
    const back = found.homography && invert(found.homography);
    const scaled = (from, to) => ([x, y]) => [((x + 0.5) * to.width) / from.width - 0.5, ((y + 0.5) * to.height) / from.height - 0.5];
    together(this.zooms, this.photos, back
      ? [(point) => apply(found.homography, point), (point) => apply(back, point)]
      : [scaled(...this.photos), scaled(...this.photos.toReversed())], place);
    this.views.forEach((view, side) => {
      view.append(this.zooms[side].controls);
      // Lines lie over the photos, and would keep the pointer from them.
      this.zooms[side].listen(this.drawing, ({ clientX: x, clientY: y }) => {
        const seen = view.getBoundingClientRect();
        return x >= seen.left && x < seen.right && y >= seen.top && y < seen.bottom;
      });
    });
    new ResizeObserver(place).observe(host);
    this.images.forEach((picture) => picture.addEventListener("load", place));
    place();
  }

  #title(side) {
    const { name, upload, number } = this.photos[side];
    return upload ? name : el("a", { href: address("/photo", { number }) }, name);
  }

  /** The query's box, and where it lies in the photo. */
  #outline(side, { query, region }) {
    const shown = query.box && (side ? region : corners(query.box));
    return svg("g", {}, ...(shown ? outline(shown) : []));
  }

  #spot(one, side, place) {
    const [x, y] = side ? one.photo : one.query;
    const { rx, ry, degrees } = ellipse(side ? one.photo_ellipse : one.query_ellipse);
    return svg("ellipse", { class: "spot", "data-match": place, rx, ry, transform: `translate(${x} ${y}) rotate(${degrees})` });
  }

  #line(place) {
    const group = svg("g", { class: "match", "data-match": place },
      svg("line", { class: "join" }), svg("line", { class: "reach" }),
      svg("circle", { class: "dot", r: 2 }), svg("circle", { class: "dot", r: 2 }));
    group.addEventListener("pointerenter", () => this.choose(place));
    group.addEventListener("pointerleave", () => this.choose(-1));
    return group;
  }

  /** Where a point of a photo's original is in the drawing. */
  #shown(side, [x, y]) {
    const { scale, left, top } = this.places[side];
    return [left + (x + 0.5) * scale[0], top + (y + 0.5) * scale[1]];
  }

  /** Whether a point of the drawing is on a photo, as far as that is seen. */
  #sees(side, x, y) {
    const { seen } = this.places[side];
    return x > seen.x - 1 && x < seen.x + seen.width + 1 && y > seen.y - 1 && y < seen.y + seen.height + 1;
  }

  #place() {
    const origin = this.host.getBoundingClientRect();
    this.places = this.images.map((picture, side) => {
      const seen = picture.getBoundingClientRect();
      const { width, height } = this.photos[side];
      return { scale: [seen.width / width, seen.height / height], left: seen.left - origin.left, top: seen.top - origin.top };
    });
    this.views.forEach((view, side) => {
      const seen = view.getBoundingClientRect();
      const here = { x: seen.left - origin.left, y: seen.top - origin.top, width: seen.width, height: seen.height };
      for (const [name, value] of Object.entries(here)) this.clips[side].setAttribute(name, value);
      this.places[side].seen = here;
    });
    this.sides.forEach((group, side) => {
      const [x, y] = this.places[side].scale;
      const [left, top] = this.#shown(side, [0, 0]);
      group.setAttribute("transform", `matrix(${x} 0 0 ${y} ${left} ${top})`);
    });
    this.lines.forEach((group, place) => {
      const [[x1, y1], [x2, y2]] = [this.#shown(0, this.matches[place].query), this.#shown(1, this.matches[place].photo)];
      const [join, reach, one, other] = group.children;
      group.classList.toggle("outside", !(this.#sees(0, x1, y1) && this.#sees(1, x2, y2)));
      for (const line of [join, reach]) {
        for (const [name, value] of Object.entries({ x1, y1, x2, y2 })) line.setAttribute(name, value);
      }
      for (const [dot, cx, cy] of [[one, x1, y1], [other, x2, y2]]) {
        dot.setAttribute("cx", cx);
        dot.setAttribute("cy", cy);
      }
    });
  }

  /** Highlight one match; -1: none. */
  choose(place) {
    this.chosen = place;
    this.host.classList.toggle("picking", place >= 0);
    for (const marked of this.drawing.querySelectorAll(".chosen")) marked.classList.remove("chosen");
    if (place >= 0) {
      for (const part of this.drawing.querySelectorAll(`[data-match="${place}"]`)) part.classList.add("chosen");
      // On top, once: what is moved while it is pressed is not clicked.
      if (this.drawing.lastChild !== this.lines[place]) this.drawing.append(this.lines[place]);
      if (this.zooms[0].zoomed && this.lines[place].classList.contains("outside")) this.#turnTo(place);
    }
    const points = place >= 0 && [this.matches[place].query, this.matches[place].photo].map((point) => point.map(Math.round).join(", "));
    at("which").textContent = points
      ? t("Match {number} of {all}: {query} ↔ {photo}", { number: place + 1, all: this.matches.length, query: points[0], photo: points[1] })
      : this.#drawn();
  }

  /** How many matches are drawn, where these are not all. */
  #drawn() {
    const values = { n: figure(this.matches.length), all: figure(this.all) };
    return this.matches.length < this.all ? t("{n} of {all} matches are drawn", values) : "";
  }

  /** Move the photos, which are zoomed, to a match. */
  #turnTo(place) {
    const [zoom, { width, height }] = [this.zooms[0], this.photos[0]];
    const [x, y] = this.matches[place].query;
    zoom.to(zoom.factor, zoom.middle, [(x + 0.5) / width, (y + 0.5) / height]);
  }

  step(by) {
    const { length } = this.matches;
    if (length) this.choose(this.chosen < 0 ? (by > 0 ? 0 : length - 1) : (this.chosen + by + length) % length);
  }
}

function showPair(query, photo, found) {
  const pair = new Pair(at("pair"), query, photo, found);
  at("pair-tools").hidden = !found.matches.length;
  at("lines").addEventListener("change", () => at("pair").classList.toggle("without-lines", !at("lines").checked));
  at("spots").addEventListener("change", () => at("pair").classList.toggle("without-spots", !at("spots").checked));
  at("previous").addEventListener("click", () => pair.step(-1));
  at("next").addEventListener("click", () => pair.step(1));
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.target.matches("input:not([type=checkbox]), select, textarea")) return;
    if (pair.zooms[0].key(event)) event.preventDefault();
  });
}

// Over each other

/** Let a slider fade, and a button flicker, what lies over something else, by a property of `styled`. */
function fade(button, slider, styled, period = FLICKER) {
  let timer = 0;
  const opacity = (value) => styled.style.setProperty("--opacity", value);
  const still = () => opacity(slider.value / 100);
  const flicker = (on) => {
    clearInterval(timer);
    button.setAttribute("aria-pressed", String(on));
    if (!on) return still();
    let seen = true;
    opacity(1);
    timer = setInterval(() => opacity((seen = !seen) ? 1 : 0), period);
  };
  const flickering = () => button.getAttribute("aria-pressed") === "true";
  slider.addEventListener("input", () => flicker(false));
  button.addEventListener("click", () => flicker(!flickering()));
  still();
  return { flicker, flickering };
}

function showOverlay(query, photo, found) {
  at("overlay").hidden = false;
  const stage = at("stage");
  stage.style.setProperty("--ratio", photo.width / photo.height);
  const above = el("img", { class: "above", src: query.large, alt: t("{name}, laid over it", { name: query.name }) });
  const below = el("img", { class: "below", src: image(photo.number), alt: photo.name });
  const content = el("div", { class: "zoom-content" }, below, above);
  stage.replaceChildren(content);
  const zoom = new Zoom(stage, content, [{ picture: below, photo }, { picture: above, photo: query }]);
  stage.append(zoom.controls);

  const place = () => {
    const seen = { width: content.clientWidth, height: content.clientHeight };
    // Before the transform the query is as large as the photo: what is then enlarged stays sharp.
    const shown = { width: seen.width, height: (seen.width * query.height) / query.width };
    above.style.setProperty("width", `${shown.width}px`);
    above.style.setProperty("height", `${shown.height}px`);
    above.style.setProperty("transform", toCss(found.homography, query, shown, photo, seen));
  };
  new ResizeObserver(place).observe(content);
  place();

  const { box } = found.query;
  at("only-box").hidden = !box;
  const only = at("only-box").querySelector("input");
  const clip = () => {
    const [x0, y0, x1, y1] = box ?? [];
    const part = (value, size) => `${(100 * (value + 0.5)) / size}%`;
    const { width, height } = query;
    const inset = `inset(${part(y0, height)} ${part(width - 1 - x1, width)} ${part(height - 1 - y1, height)} ${part(x0, width)})`;
    above.style.setProperty("clip-path", box && only.checked ? inset : "none");
  };
  only.addEventListener("change", clip);
  clip();

  const { flicker, flickering } = fade(at("flicker"), at("opacity"), above);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=range], [type=checkbox])")) return;
    if (event.key === "f" || event.key === "F") flicker(!flickering());
    else if (event.key === "Escape" && flickering()) flicker(false);
  });
}

// Compare impressions

/** What is told of two impressions. */
function impressionFacts(told, query, photo) {
  const displaced = { share: told.displacement === null ? "?" : fixed(told.displacement, 2) };
  const verdicts = {
    "one block": () => t("Both were printed from one block: lines are in the same places, within {share} of their width.", displaced),
    "cut alike": () => t("Two blocks that are cut alike: a quarter of the lines is displaced by {share} of their width or more.", displaced),
    unsure: () => t("It is not certain whether both were printed from one block: lines are too fine, too few, or displaced by part of their width."),
  };
  const lacks = (one, other, side) => tn(told.breaks[side], "{percent} of the ink of {one} is not in {other}: {n} break", "{percent} of the ink of {one} is not in {other}: {n} breaks",
    { percent: percent(told.missing[side]), one: one.name, other: other.name });
  return [verdicts[told.verdict](), lacks(query, photo, 0), lacks(photo, query, 1)];
}

/** Show two impressions in one frame: the one over the other, in two colours, or what differs. */
function showImpressions(told, query, photo) {
  const { pictures, size } = told;
  const [said, ...facts] = impressionFacts(told, query, photo);
  at("impressions-said").textContent = said;
  at("impressions-facts").replaceChildren(...facts.map((fact) => el("p", {}, fact)));
  at("impressions-page").hidden = false;
  const stage = at("impressions-stage");
  stage.style.setProperty("--ratio", size[0] / size[1]);
  const below = el("img", { class: "below", src: pictures.reference, alt: query.name });
  const above = el("img", { class: "below laid", src: pictures.photo, alt: t("{name}, laid over it", { name: photo.name }) });
  const content = el("div", { class: "zoom-content" }, below, above);
  stage.replaceChildren(content);
  stage.append(new Zoom(stage, content, [{ picture: below, photo: { width: size[0], height: size[1] } }]).controls);
  // Who wants no motion sees each for longer.
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches ? 4 * FLICKER : FLICKER;
  const { flicker } = fade(at("impressions-flicker"), at("impressions-opacity"), stage, calm);
  const choose = (what) => {
    flicker(false);
    const fades = what === "fade";
    below.src = fades ? pictures.reference : pictures[what];
    above.hidden = !fades;
    at("impressions-legend").hidden = fades;
    at("impressions-flicker").disabled = at("impressions-opacity").disabled = !fades;
  };
  for (const one of document.getElementsByName("impressions")) one.addEventListener("change", () => choose(one.value));
  choose("fade");
}

function offerImpressions(query, photo, fields) {
  at("impressions").hidden = false;
  const [begin, said] = [at("impressions-begin"), at("impressions-said")];
  begin.addEventListener("click", async () => {
    begin.disabled = true;
    said.textContent = t("Comparing…");
    try {
      showImpressions(await impressions(query, photo.number, fields), query, photo);
      begin.hidden = true;
    } catch (error) {
      said.textContent = "";
      begin.disabled = false;
      complain(error);
    }
  });
}

// Downloads

function offerDownloads(query, photo, fields) {
  const kinds = [[t("CSV of the matches"), "csv", "match.csv"], [t("JSON of the matches"), null, "match.json"], [t("Picture"), "jpg", "match.jpg"]];
  at("downloads").replaceChildren(...kinds.map(([text, format, name]) => {
    const asked = { ...fields, format };
    if (!query.file) return el("a", { class: "button", href: matchAddress(query, photo.number, asked), download: name }, text);
    // An upload has to be sent along.
    return el("button", { type: "button", onclick: async () => {
      try {
        save(await (await match(query, photo.number, asked)).blob(), name);
      } catch (error) {
        complain(error);
      }
    } }, text);
  }));
}

/** What the comparison says, in a sentence. */
function verdict({ homography, found, probability, inliers, is_of_text: ofText }) {
  const values = { percent: percent(probability) };
  if (homography && ofText) return t("The same text? All matching details are in printed text: the same type looks alike on different pages.");
  if (!homography) return t("It is not certain that these photos show the same thing ({percent} likely): the matching details are not arranged alike in both.", values);
  return found
    ? tn(inliers, "These photos show the same thing: {percent} likely, {n} detail is arranged alike in both", "These photos show the same thing: {percent} likely, {n} details are arranged alike in both", values)
    : tn(inliers, "These photos show the same thing, perhaps: {percent} likely, {n} detail is arranged alike in both", "These photos show the same thing, perhaps: {percent} likely, {n} details are arranged alike in both", values);
}

/** Lead to the matches of the results before and after this one, where one comes from results. */
function offerNeighbours() {
  let matches = [];
  try {
    matches = JSON.parse(sessionStorage.getItem("cairn.matches")) ?? [];
  } catch {
    return; // the browser keeps nothing
  }
  const place = matches.indexOf(location.pathname + location.search);
  for (const [id, href] of [["earlier", matches[place - 1]], ["later", matches[place + 1]]]) {
    at(id).hidden = place < 0 || !href;
    if (!at(id).hidden) at(id).href = href;
  }
}

start(async () => {
  offerNeighbours();
  const fields = new URLSearchParams(location.search);
  const [text, number] = [fields.get("q"), fields.get("photo")];
  if (!text || !/^\d+$/.test(number ?? "")) throw new Error(t("The address names no match: search first, then follow a result."));
  at("back").href = `${address("/search")}?${fields.get("from") ?? address("", { q: text }).slice(1)}`;
  const asked = Object.fromEntries(["engine", "turns", "turn", "full", "similarity", "augmented", "mirrored"].map((name) => [name, fields.get(name) ?? undefined]));
  const query = await resolve(parse(text));
  const photo = await read(number);
  entitle(t("{query} and {photo}", { query: query.name, photo: photo.name }));
  at("said").textContent = t("Comparing…");
  let found;
  try {
    found = await (await match(query, number, asked)).json();
  } finally {
    at("said").textContent = "";
  }
  // The server clips a box to the photo, and knows the sizes: what it says counts.
  Object.assign(query, { width: found.query.width, height: found.query.height, number: query.photo });
  at("page").hidden = false;
  at("said").textContent = verdict(found);
  at("said").title = t("Score {score}", { score: fixed(found.score, 3) });
  showPair(query, photo, found);
  if (found.homography) showOverlay(query, photo, found);
  if (found.homography && !query.file && String(query.number ?? query.photo) !== number) offerImpressions(query, photo, asked);
  offerDownloads(query, photo, asked);
});
