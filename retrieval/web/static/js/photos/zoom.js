// Zoom: a photo grows by wheel, pinch, double click and keys, and is dragged about. Larger pictures are fetched as they are
// needed, and of photos larger than any picture the tiles that are seen.

import { address, image, json } from "../api.js";
import { debounce, el } from "../dom.js";
import { t } from "../language.js";

const LARGEST = 4096; // longer side of a picture of a whole photo, pixels
const CLOSEST = 4; // screen pixels to one of the photo
const STEP = 1.5; // of a key or a button
const DOUBLE = 2.5; // of a double click
const CLICK = 5; // screen pixels: less is no drag
const WAIT = 120; // milliseconds of rest before more pixels are asked for
const ARROWS = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/** The parts of a photo that are larger than its pictures, laid over its picture in tiles. */
class Tiles {
  constructor(picture, number) {
    this.number = number;
    this.layer = el("div", { class: "tiles", "aria-hidden": "true" });
    picture.after(this.layer);
    this.shown = new Map(); // pictures by level, column and row
    this.info = null;
    this.state = "unknown"; // then "asked", and "ready" or "none"
  }

  async #begin(seen, shown) {
    this.state = "asked";
    try {
      this.info = await json(`/api/iiif/${this.number}/info.json`);
      if (Math.max(this.info.width, this.info.height) <= LARGEST) throw new Error();
      await this.#tile(this.#wanted(seen, shown)[0]).decode(); // the photo is cut now; that takes a while, once
      this.state = "ready";
    } catch {
      this.state = "none"; // the picture is all that there is
      this.layer.replaceChildren();
    }
    return this.state === "ready";
  }

  /** Which tiles are seen, those in the middle first: {level, x, y, side}, in pixels of the level. */
  #wanted([left, top, right, bottom], width) {
    const level = Math.min(Math.max(Math.floor(Math.log2(this.info.width / width)), 0), this.info.tiles[0].scaleFactors.length - 1);
    const side = this.info.tiles[0].width * 2 ** level;
    const found = [];
    for (let x = Math.floor((left * this.info.width) / side) * side; x < right * this.info.width; x += side) {
      for (let y = Math.floor((top * this.info.height) / side) * side; y < bottom * this.info.height; y += side) found.push({ level, x, y, side });
    }
    const [cx, cy] = [((left + right) * this.info.width - side) / 2, ((top + bottom) * this.info.height - side) / 2];
    return found.sort((a, b) => Math.hypot(a.x - cx, a.y - cy) - Math.hypot(b.x - cx, b.y - cy));
  }

  #tile({ level, x, y, side }) {
    const name = `${level} ${x} ${y}`;
    if (!this.shown.has(name)) {
      const [width, height] = [Math.min(side, this.info.width - x), Math.min(side, this.info.height - y)];
      const size = [width, height].map((value) => Math.ceil(value / 2 ** level)).join(",");
      const picture = el("img", { alt: "", src: address(`/api/iiif/${this.number}/${[x, y, width, height].join(",")}/${size}/0/default.jpg`) });
      const part = (value, all) => `${(100 * value) / all}%`;
      const { info } = this;
      for (const [property, value] of [["left", part(x, info.width)], ["top", part(y, info.height)], ["width", part(width, info.width)], ["height", part(height, info.height)]]) {
        picture.style.setProperty(property, value);
      }
      this.layer.append(picture);
      this.shown.set(name, picture);
    }
    return this.shown.get(name);
  }

  /**
   * Show what is seen.
   *
   * @param seen [left, top, right, bottom] as parts of the photo
   * @param width of the whole photo in pixels of the screen
   */
  async show(seen, width) {
    if (this.state === "unknown" && !(await this.#begin(seen, width))) return;
    if (this.state !== "ready") return;
    const wanted = new Set(this.#wanted(seen, width).map((one) => this.#tile(one)));
    this.last = wanted;
    await Promise.allSettled([...wanted].map((picture) => picture.decode()));
    for (const [name, picture] of this.shown) {
      if (wanted.has(picture) || wanted !== this.last) continue;
      picture.remove();
      this.shown.delete(name);
    }
  }
}

export class Zoom {
  /**
   * @param view element in which the photo is seen, and which cuts off what is beyond it
   * @param content element that grows; it is positioned, and fills its parent as long as nothing is zoomed
   * @param pictures [{picture, photo}]: an <img> that fills the content, and {width, height, number} of its photo; without
   *   a number, no more of it can be had. Where there is one alone, it comes in tiles, too
   * @param options.free whether a wheel zooms at once; otherwise the page scrolls, until something is zoomed
   * @param options.pans asked with each press that begins on a photo that is zoomed: whether it drags the photo
   * @param options.starts asked with each press on a photo that is not zoomed: whether others may have it
   * @param options.onChange told after each change
   */
  constructor(view, content, pictures, { free = false, pans = () => true, starts = () => true, onChange = () => {} } = {}) {
    Object.assign(this, { view, content, frame: content.parentElement, pictures, free, pans, starts, onChange });
    this.factor = 1;
    this.left = 0; // of the content, in widths of the frame
    this.top = 0;
    this.pointers = new Map(); // places by their numbers
    this.grip = null; // what a drag or a pinch began with
    const [only] = pictures;
    this.tiles = pictures.length === 1 && only.photo.number !== undefined ? new Tiles(only.picture, only.photo.number) : null;
    this.sharpen = debounce(() => this.#sharpen(), WAIT);
    this.listen(view);
    this.controls = this.#bar();
    new ResizeObserver(() => this.to(this.factor)).observe(view);
  }

  /** Listen to the pointer on an element, such as the view or what lies over it; `when` is asked with each event. */
  listen(node, when = () => true) {
    const acts = { wheel: this.#wheel, dblclick: this.#double, pointerdown: this.#down, pointermove: this.#move, pointerup: this.#up, pointercancel: this.#up };
    for (const [name, act] of Object.entries(acts)) {
      node.addEventListener(name, (event) => when(event) && act.call(this, event), { capture: true, passive: false });
    }
  }

  get zoomed() {
    return this.factor > 1;
  }

  /** The largest factor. */
  get most() {
    const { width } = this.frame.getBoundingClientRect();
    return Math.max(DOUBLE, ...this.pictures.map(({ photo }) => (CLOSEST * photo.width) / (width || 1)));
  }

  /** Where a point of the screen is in the content, as parts of it. */
  part(x, y) {
    const seen = this.content.getBoundingClientRect();
    return [(x - seen.left) / seen.width, (y - seen.top) / seen.height];
  }

  /** The middle of what is seen, on the screen. */
  get middle() {
    const seen = this.view.getBoundingClientRect();
    return [seen.left + seen.width / 2, seen.top + seen.height / 2];
  }

  /** Zoom to a factor; the point (u, v) of the photo, as parts of it, comes to (x, y) on the screen. */
  to(factor, [x, y] = this.middle, [u, v] = this.part(x, y), tell = true) {
    const frame = this.frame.getBoundingClientRect();
    const view = this.view.getBoundingClientRect();
    if (!frame.width) return;
    this.factor = Math.min(Math.max(factor, 1), this.most);
    const place = (point, part, from, size, low, high) => {
      const grown = this.factor * size;
      const wanted = point - part * grown;
      // What is larger than the view leaves no gap at its edges; what is smaller keeps to the middle.
      if (grown <= high - low + 1) return (this.zoomed ? (low + high - grown) / 2 - from : 0) / size;
      return (Math.min(Math.max(wanted, high - grown), low) - from) / size;
    };
    this.left = place(x, u, frame.left, frame.width, view.left, view.right);
    this.top = place(y, v, frame.top, frame.height, view.top, view.bottom);
    if (!this.zoomed) [this.left, this.top] = [0, 0];
    const percent = (value) => `${100 * value}%`;
    this.content.style.setProperty("left", percent(this.left));
    this.content.style.setProperty("top", percent(this.top));
    this.content.style.setProperty("width", percent(this.factor));
    this.content.style.setProperty("height", percent(this.factor));
    this.view.classList.toggle("zoomed", this.zoomed);
    this.controls.classList.toggle("on", this.zoomed);
    this.less.disabled = !this.zoomed;
    this.more.disabled = this.factor >= this.most;
    if (this.zoomed) this.sharpen();
    if (tell) this.onChange(this);
  }

  /** All of the photo again. */
  fit() {
    this.to(1);
  }

  /** Move by pixels of the screen. */
  pan(dx, dy) {
    const [x, y] = this.middle;
    this.to(this.factor, [x + dx, y + dy], this.part(x, y));
  }

  /** Do what a key asks for; whether it asks for something. `arrows`: whether those are asked, too. */
  key(event, arrows = true) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === "+" || event.key === "=") this.to(this.factor * STEP);
    else if (event.key === "-") this.to(this.factor / STEP);
    else if (event.key === "0") this.fit();
    else if (arrows && this.zoomed && ARROWS[event.key]) {
      const { width, height } = this.view.getBoundingClientRect();
      const [x, y] = ARROWS[event.key];
      this.pan((x * width) / 5, (y * height) / 5);
    } else return false;
    return true;
  }

  #bar() {
    const button = (text, label, keys, act) => el("button", { type: "button", class: "small", title: label, "aria-label": label, "aria-keyshortcuts": keys, onclick: act }, text);
    this.less = button("−", t("Zoom out"), "-", () => this.to(this.factor / STEP));
    this.more = button("+", t("Zoom in"), "+", () => this.to(this.factor * STEP));
    this.less.disabled = true;
    return el("div", { class: "zoom-bar", role: "group", "aria-label": t("Zoom") }, this.less, this.more,
      el("button", { type: "button", class: "small fit", "aria-keyshortcuts": "0", onclick: () => this.fit() }, t("Fit")));
  }

  #wheel(event) {
    const speed = event.deltaMode === 1 ? 0.05 : 0.0016;
    const factor = this.factor * Math.exp(-event.deltaY * (event.ctrlKey ? 6 : 1) * speed);
    if (!(this.free || event.ctrlKey || this.zoomed) || (factor < 1 && !this.zoomed)) return;
    event.preventDefault();
    const here = [event.clientX, event.clientY];
    this.to(factor, here, this.part(...here));
  }

  #double(event) {
    if (event.target.closest("button, a")) return;
    const here = [event.clientX, event.clientY];
    this.to(this.zoomed ? 1 : DOUBLE, here, this.part(...here));
  }

  /** Where the fingers are, in the middle, and how far they are apart. */
  #fingers() {
    const [a, b = a] = [...this.pointers.values()];
    return { here: [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2], apart: Math.hypot(a[0] - b[0], a[1] - b[1]) };
  }

  #down(event) {
    if (event.target.closest("button, a, input")) return;
    if (event.isPrimary) this.pointers.clear(); // the end of an earlier one was not heard
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    const pinches = this.pointers.size === 2 && event.pointerType === "touch";
    const drags = this.zoomed && (event.button === 1 || (event.button === 0 && this.pans(event)));
    if (pinches || drags) {
      this.#hold(drags && !pinches);
      event.preventDefault();
      event.stopPropagation();
    } else if (!this.zoomed && !this.starts(event)) event.stopPropagation();
  }

  #hold(drags) {
    const { here, apart } = this.#fingers();
    this.grip = { part: this.part(...here), from: here, apart, factor: this.factor, moved: !drags };
  }

  #move(event) {
    if (!this.pointers.has(event.pointerId)) return;
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (!this.grip) return;
    event.stopPropagation();
    const { here, apart } = this.#fingers();
    const { part, from, factor } = this.grip;
    this.grip.moved ||= Math.hypot(here[0] - from[0], here[1] - from[1]) > CLICK;
    if (!this.grip.moved) return;
    this.view.classList.add("dragging");
    if (!this.view.hasPointerCapture(event.pointerId)) this.view.setPointerCapture(event.pointerId);
    this.to(this.pointers.size > 1 && this.grip.apart ? (factor * apart) / this.grip.apart : this.factor, here, part);
  }

  #up(event) {
    if (!this.pointers.delete(event.pointerId) || !this.grip) return;
    if (this.pointers.size) this.#hold(false);
    else {
      this.grip = null;
      this.view.classList.remove("dragging");
    }
  }

  /** Have as many pixels as can be seen. */
  #sharpen() {
    const seen = this.content.getBoundingClientRect();
    const view = this.view.getBoundingClientRect();
    const scale = Math.min(devicePixelRatio, 2);
    for (const one of this.pictures) {
      const { picture, photo } = one;
      const most = Math.min(LARGEST, Math.max(photo.width, photo.height));
      const has = Math.max(picture.naturalWidth, picture.naturalHeight);
      if (photo.number === undefined || one.larger || !has || has >= most || Math.max(seen.width, seen.height) * scale <= has) continue;
      one.larger = new Image();
      one.larger.src = image(photo.number, LARGEST);
      one.larger.decode().then(() => {
        picture.src = one.larger.src;
      }, () => {}); // what is shown stays
    }
    const { photo } = this.pictures[0];
    if (!this.tiles || Math.max(photo.width, photo.height) <= LARGEST || Math.max(seen.width, seen.height) * scale <= LARGEST) return;
    const within = (value) => Math.min(Math.max(value, 0), 1);
    const [left, top] = this.part(view.left, view.top).map(within);
    const [right, bottom] = this.part(view.right, view.bottom).map(within);
    this.tiles.show([left, top, right, bottom], seen.width * scale);
  }
}

/** Have two views show the same place: `maps` take points of each photo, in its pixels, to the other. `done` follows. */
export function together([one, other], photos, maps, done) {
  const follow = (from, to, side) => {
    const [photo, target] = [photos[side], photos[1 - side]];
    const map = maps[side];
    const [u, v] = from.part(...from.middle);
    const [x, y] = [u * photo.width - 0.5, v * photo.height - 0.5];
    const [x1, y1] = map([x, y]);
    // How much larger the other photo shows things here: the square root of the map's determinant.
    const step = photo.width / 100;
    const [xa, ya] = map([x + step, y]);
    const [xb, yb] = map([x, y + step]);
    const grows = Math.sqrt(Math.abs((xa - x1) * (yb - y1) - (xb - x1) * (ya - y1))) / step;
    const scale = from.content.getBoundingClientRect().width / photo.width / grows;
    const factor = (scale * target.width) / to.frame.getBoundingClientRect().width;
    if (![x1, y1, factor].every(Number.isFinite)) return;
    to.to(from.zoomed ? Math.max(factor, 1.01) : 1, to.middle, [(x1 + 0.5) / target.width, (y1 + 0.5) / target.height], false);
  };
  one.onChange = () => {
    follow(one, other, 0);
    done();
  };
  other.onChange = () => {
    follow(other, one, 1);
    done();
  };
}
