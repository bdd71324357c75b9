// A wall of photos: as many as there are, of which only those near the view are in the document.

import { address, photos as read, thumbnail } from "../api.js";
import { tick } from "../choosing.js";
import { el } from "../dom.js";
import { callLine } from "../grid.js";
import { figure, t } from "../language.js";
import { beside, boxes, justify, rowAt, rowHeight, rowOf, total } from "./justified.js";

const GAP = 4; // pixels between photos
const AROUND = 0.75; // windows above and below the view that are kept ready
const FAST = 3; // windows a second: who scrolls faster sees no photo anyway
const CALM = 90; // milliseconds after which a view that moved fast is filled
const ASKED = 200; // names that are asked for at once, at most
const KNOWN = 5000; // photos whose names are remembered

export class Wall {
  /**
   * @param host the list element
   * @param link(number) address of a photo's page
   * @param choose(wall) gives the selection of the photos: see choosing.js
   * @param onView(first, last) told the places of the first row in view, when they have changed and the view is at rest
   */
  constructor(host, { link, choose, onView = () => {} }) {
    this.host = host;
    this.link = link;
    this.onView = onView;
    this.numbers = [];
    this.layout = justify([], 1, 1, GAP);
    this.groups = [];
    this.shown = new Map(); // list items by places
    this.headings = new Map(); // list items by rows
    this.known = new Map(); // photos by numbers
    this.current = 0; // the place that the Tab key reaches
    this.told = -1;
    this.seen = { y: 0, at: 0 };
    this.width = 0;
    addEventListener("scroll", () => this.#soon(), { passive: true });
    host.addEventListener("keydown", (event) => this.#key(event));
    host.addEventListener("click", (event) => this.#click(event));
    host.addEventListener("focusin", (event) => this.#focused(event));
    new ResizeObserver(() => this.#resized()).observe(host);
    this.selection = choose(this);
    this.selection.listen(() => this.#mark());
  }

  /** A photo as far as it is known. */
  photo(number) {
    return this.known.get(number) ?? { number, name: t("Photo {number}", { number }) };
  }

  /** The photos from one number to another; those that were never in view get their names as these come. */
  between(one, other) {
    const ends = [one, other].map((number) => this.numbers.indexOf(number)).sort((a, b) => a - b);
    if (ends[0] < 0) return [this.photo(other)];
    const some = this.numbers.slice(ends[0], ends[1] + 1);
    this.#learn(some.filter((number) => !this.known.has(number))).catch(() => {}); // they go by their numbers
    return some.map((number) => this.photo(number));
  }

  /** Ask for all names again, as photos were changed. */
  forget() {
    this.known = new Map();
  }

  async #learn(numbers) {
    for (let first = 0; first < numbers.length; first += ASKED) {
      const { photos } = await read({ numbers: numbers.slice(first, first + ASKED) });
      this.selection.add(photos.filter(({ number }) => this.selection.has(number)));
    }
  }

  /**
   * Show photos. `numbers`, `ratios`: of each (GET /api/layout); `at`: number of the photo that is seen first; `groups`:
   * [{place, text}], headings above photos.
   */
  show({ numbers, ratios }, at = null, groups = []) {
    this.numbers = numbers;
    this.ratios = ratios;
    this.groups = groups;
    this.told = -1;
    this.#clear();
    this.#lay();
    const place = at === null ? -1 : numbers.indexOf(at);
    this.current = Math.max(place, 0);
    if (place >= 0) this.scrollTo(place);
    else if (scrollY > this.#top) scrollTo(0, 0);
    this.#draw();
  }

  /** The places of the first photo in view, and of the last one in its row. */
  get view() {
    if (!this.numbers.length) return [0, 0];
    const y = scrollY + this.#bar - this.#top;
    let row = rowAt(this.layout, Math.max(y, 0));
    if (this.layout.tops[row] + this.layout.heights[row] / 2 < y && row + 1 < this.layout.heights.length) row += 1;
    return [this.layout.starts[row], this.layout.starts[row + 1] - 1];
  }

  /** Bring a photo's row to the top of the view. */
  scrollTo(place) {
    const row = rowOf(this.layout, place);
    scrollTo(0, row ? this.#top + this.#above(row) - this.#bar : 0);
    this.#draw();
  }

  /** Give a photo the focus, and bring it into view. */
  focus(place) {
    this.#reach(place);
    this.#reveal(place);
    this.#draw();
    this.shown.get(place)?.firstElementChild.focus({ preventScroll: true });
  }

  get #top() {
    return this.host.getBoundingClientRect().top + scrollY;
  }

  /** Height of what sticks to the top of the window. */
  get #bar() {
    const stuck = [...document.querySelectorAll(".bar, .wall-bar")].filter((node) => getComputedStyle(node).position === "sticky");
    return stuck.reduce((sum, node) => sum + node.offsetHeight, 0);
  }

  /** Where a row begins, with its heading. */
  #above(row) {
    return this.layout.heads.get(row)?.top ?? this.layout.tops[row];
  }

  #clear() {
    for (const item of [...this.shown.values(), ...this.headings.values()]) item.remove();
    this.shown.clear();
    this.headings.clear();
  }

  #lay() {
    this.width = this.host.clientWidth;
    this.layout = justify(this.ratios ?? [], this.width, rowHeight(this.width), GAP, this.groups);
    this.host.style.setProperty("height", `${total(this.layout)}px`);
  }

  #resized() {
    if (this.host.clientWidth === this.width || !this.host.clientWidth) return;
    const [first] = this.view;
    const moved = scrollY > this.#top;
    const focused = this.host.contains(document.activeElement);
    this.#clear();
    this.#lay();
    if (moved) this.scrollTo(first);
    this.#draw();
    if (focused) this.shown.get(this.current)?.firstElementChild.focus({ preventScroll: true }); // it went with what was shown
  }

  #soon() {
    if (this.frame) return;
    this.frame = requestAnimationFrame((now) => {
      this.frame = 0;
      const passed = Math.max(now - this.seen.at, 1);
      const fast = Math.abs(scrollY - this.seen.y) / innerHeight / (passed / 1000) > FAST && passed < 500;
      this.seen = { y: scrollY, at: now };
      this.#draw(!fast);
    });
    clearTimeout(this.calm);
    this.calm = setTimeout(() => {
      this.#draw();
      this.#tell();
    }, CALM);
  }

  #tell() {
    const [first, end] = this.view;
    if (first === this.told || !this.numbers.length) return;
    this.told = first;
    this.onView(first, end);
  }

  /** Have in the document what is near the view; `fill`: with pictures. */
  #draw(fill = true) {
    if (!this.numbers.length) return;
    const y = scrollY - this.#top;
    const [low, high] = [y - AROUND * innerHeight, y + (1 + AROUND) * innerHeight];
    const rows = [rowAt(this.layout, Math.max(low, 0)), rowAt(this.layout, Math.max(high, 0))];
    const [from, to] = [this.layout.starts[rows[0]], this.layout.starts[rows[1] + 1]];
    const kept = this.host.contains(document.activeElement) ? this.current : -1; // what has the focus stays
    for (const [place, item] of this.shown) {
      if ((place >= from && place < to) || place === kept) continue;
      item.querySelector("img").removeAttribute("src"); // a picture that is still on its way is not waited for
      item.remove();
      this.shown.delete(place);
    }
    for (let row = rows[0]; row <= rows[1]; row += 1) {
      if (this.shown.has(this.layout.starts[row]) && this.shown.has(this.layout.starts[row + 1] - 1)) continue;
      for (const box of boxes(this.layout, row)) if (!this.shown.has(box.place)) this.#put(box);
    }
    this.#head(rows);
    if (!this.shown.has(this.current)) this.#reach(from);
    if (!fill) return;
    for (const item of this.shown.values()) this.#picture(item);
    this.#name();
  }

  /** Have the headings of some rows in the document, each before the photos of its row. */
  #head([from, to]) {
    for (const [row, item] of this.headings) {
      if (row >= from && row <= to) continue;
      item.remove();
      this.headings.delete(row);
    }
    for (let row = from; row <= to; row += 1) {
      const head = this.layout.heads.get(row);
      if (!head) continue;
      const item = this.headings.get(row) ?? el("li", { class: "wall-date" }, el("h2", {}, head.text));
      item.style.setProperty("top", `${head.top}px`);
      this.headings.set(row, item);
      const first = this.shown.get(this.layout.starts[row]);
      if (first.previousElementSibling !== item) first.before(item);
    }
  }

  /** Let the Tab key reach a photo that is in the document. */
  #reach(place) {
    this.shown.get(this.current)?.firstElementChild.setAttribute("tabindex", "-1");
    this.current = place;
    this.shown.get(place)?.firstElementChild.setAttribute("tabindex", "0");
  }

  #put({ place, left, top, width, height }) {
    const number = this.numbers[place];
    const picture = el("img", { alt: "", decoding: "async", draggable: "false" });
    const link = el("a", { href: this.link(number), tabindex: place === this.current ? 0 : -1, "data-place": place }, picture);
    const pick = tick(this.photo(number));
    pick.tabIndex = -1; // the key x does it
    pick.checked = this.selection.has(number);
    const item = el("li", { class: "wall-photo", "aria-setsize": this.numbers.length, "aria-posinset": place + 1 }, link, pick);
    item.classList.toggle("picked", pick.checked);
    for (const [name, value] of Object.entries({ left, top, width, height })) item.style.setProperty(name, `${value}px`);
    this.shown.set(place, item);
    this.#say(item, place);
    // In the order of the places, which is that of screen readers and of the Tab key.
    const next = this.shown.get(place + 1);
    if (next?.isConnected) next.before(item);
    else this.#insert(item, place);
  }

  #insert(item, place) {
    const before = this.shown.get(place - 1);
    if (before?.isConnected) before.after(item);
    else {
      const after = [...this.host.children].find((one) => Number(one.firstElementChild.dataset.place) > place); // no heading has one
      this.host.insertBefore(item, after ?? null);
    }
  }

  #picture(item) {
    const picture = item.querySelector("img");
    if (picture.hasAttribute("src")) return;
    const longer = Math.max(item.offsetWidth, item.offsetHeight) * Math.min(devicePixelRatio, 2);
    picture.src = thumbnail(this.numbers[Number(item.firstElementChild.dataset.place)], longer > 300 ? 512 : 256);
  }

  /** Show which photos are selected. */
  #mark() {
    for (const [place, item] of this.shown) item.classList.toggle("picked", this.selection.has(this.numbers[place]));
  }

  /** Say what a photo is called, where that is known. */
  #say(item, place) {
    const link = item.firstElementChild;
    const photo = this.known.get(this.numbers[place]);
    if (!photo) {
      link.setAttribute("aria-label", t("Photo {place} of {total}", { place: figure(place + 1), total: figure(this.numbers.length) }));
      return;
    }
    link.setAttribute("aria-label", photo.title ? `${photo.title}, ${photo.name}` : photo.name);
    item.querySelector(".pick").setAttribute("aria-label", t("Select {name}", { name: photo.name }));
    if (item.querySelector(".wall-caption")) return;
    link.append(el("span", { class: "wall-caption", "aria-hidden": "true" }, callLine(photo)));
  }

  /** Ask for the names of what is shown. */
  async #name() {
    const missing = [...this.shown.keys()].map((place) => this.numbers[place]).filter((number) => !this.known.has(number));
    if (!missing.length || this.asking) return;
    this.asking = true;
    const { known } = this;
    const some = missing.slice(0, ASKED);
    try {
      const { photos } = await read({ numbers: some });
      for (const photo of photos) known.set(photo.number, photo);
      for (const number of some) if (!known.has(number)) known.set(number, null); // removed meanwhile
      while (known.size > KNOWN) known.delete(known.keys().next().value);
      for (const [place, item] of this.shown) this.#say(item, place);
    } catch {
      return; // photos without their names are still photos
    } finally {
      this.asking = false;
    }
    this.#name();
  }

  #reveal(place) {
    const row = rowOf(this.layout, place);
    const [top, height] = [this.layout.tops[row] + this.#top, this.layout.heights[row]];
    if (top - this.#bar < scrollY) scrollTo(0, this.#above(row) + this.#top - this.#bar - GAP);
    else if (top + height > scrollY + innerHeight) scrollTo(0, top + height - innerHeight + GAP);
  }

  #focused(event) {
    const place = event.target.dataset?.place;
    if (place === undefined || Number(place) === this.current) return;
    this.#reach(Number(place));
  }

  #key(event) {
    if (event.altKey || event.metaKey || !event.target.closest("[data-place]")) return;
    const { current } = this;
    const end = this.numbers.length - 1;
    const row = rowOf(this.layout, current);
    const [first, final] = event.ctrlKey ? [0, end] : [this.layout.starts[row], this.layout.starts[row + 1] - 1];
    const page = () => Math.max(Math.floor(innerHeight / (this.layout.heights[row] + GAP)) - 1, 1);
    const leap = (way) => {
      let place = current;
      for (let left = page(); left > 0; left -= 1) place = beside(this.layout, place, way);
      return place;
    };
    const moves = {
      ArrowLeft: () => Math.max(current - 1, 0),
      ArrowRight: () => Math.min(current + 1, end),
      ArrowUp: () => beside(this.layout, current, -1),
      ArrowDown: () => beside(this.layout, current, 1),
      PageUp: () => leap(-1),
      PageDown: () => leap(1),
      Home: () => first,
      End: () => final,
    };
    if (moves[event.key]) {
      const place = moves[event.key]();
      if (event.shiftKey) this.selection.add(this.between(this.numbers[current], this.numbers[place]));
      this.focus(place);
    } else if ((event.key === " " || event.key === "x") && !event.ctrlKey) {
      this.#tick(current, event.shiftKey);
    } else if (event.key === "Escape" && this.selection.numbers().length) {
      this.selection.clear();
    } else {
      return;
    }
    event.preventDefault();
  }

  #click(event) {
    const place = event.target.closest("a[data-place]")?.dataset.place;
    // While some are selected, a click with Shift or Ctrl selects too; else it opens the photo.
    if (place === undefined || !(event.shiftKey || event.ctrlKey || event.metaKey) || !this.selection.numbers().length) return;
    event.preventDefault();
    this.#tick(Number(place), event.shiftKey);
  }

  /** Click a photo's tick. */
  #tick(place, shiftKey) {
    this.shown.get(place)?.querySelector(".pick").dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, shiftKey }));
    this.#reach(place);
  }
}

/** Address of a photo's page, from which one comes to the next of a list: `list` holds the filters and the order. */
export const photoAddress = (number, list, fields = {}) => address("/photo", { number, list, ...fields });
