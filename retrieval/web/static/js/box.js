// The box tool: a rectangle on a photo, drawn by mouse, finger or keys, or typed as four numbers. Corners are pixels of the
// upright original: the drawing's coordinates are theirs (see `pixels`), the browser converts.

import { at, corners, el, outline, pixels, svg } from "./dom.js";
import { parts, t } from "./language.js";
import { Zoom } from "./photos/zoom.js";

const EDGES = { nw: [0, 1], n: [null, 1], ne: [2, 1], e: [2, null], se: [2, 3], s: [null, 3], sw: [0, 3], w: [0, null] };
const SIDES = { n: [0, 1, 2, 1], e: [2, 1, 2, 3], s: [0, 3, 2, 3], w: [0, 1, 0, 3] }; // from corner to corner, as places in a box
const NAMES = [t("Left"), t("Top"), t("Right"), t("Bottom")];
const SMALLEST = 6; // screen pixels: less is a click, not a box
const KNOB = 5; // radius of a handle as drawn, screen pixels
const GRIP = 14; // and as caught
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const key = (name) => el("kbd", {}, name);

let tools = 0;

class BoxTool {
  /**
   * @param host element that the tool fills
   * @param photo {name, width, height, large, number}: large is the address of its picture; number is left out of uploads
   * @param box [x0, y0, x1, y1] or null
   * @param onChange told the box, or null, after each change
   * @param zooming options of its `Zoom`; without them, a button says whether a drag draws or moves a photo that is zoomed
   * @param purpose sentence that says what a box does
   */
  constructor(host, photo, box = null, onChange = () => {}, zooming = null, purpose = t("Drag to draw a box; without one, the whole photo is searched for.")) {
    this.photo = photo;
    this.box = null;
    this.onChange = onChange;
    this.drag = null;
    tools += 1;
    const id = `box-${tools}`;

    this.drawing = svg("g");
    this.surface = svg("svg", {
      viewBox: pixels(photo.width, photo.height),
      tabindex: 0,
      role: "application",
      "aria-label": t("Box on {name}", { name: photo.name }),
      "aria-describedby": `${id}-hint`,
    }, svg("rect", { x: -0.5, y: -0.5, width: photo.width, height: photo.height, fill: "transparent" }), this.drawing);
    this.picture = el("img", { src: photo.large, alt: photo.name, draggable: "false" });
    this.content = el("div", { class: "zoom-content" }, this.picture, this.surface);
    this.canvas = el("div", { class: "box-canvas" }, this.content);
    this.canvas.style.setProperty("--ratio", photo.width / photo.height);

    this.inputs = NAMES.map((name, place) => {
      const most = (place % 2 ? photo.height : photo.width) - 1;
      return el("input", { id: `${id}-${place}`, type: "number", min: 0, max: most, step: "any", inputmode: "numeric", onchange: () => this.#typed() });
    });
    this.clearer = el("button", { type: "button", onclick: () => this.set(null) }, t("Clear"));
    this.spoken = el("p", { class: "unseen", role: "status" });
    this.problem = el("p", { class: "error", role: "alert" });
    const numbers = el("fieldset", { class: "box-numbers", "aria-label": t("Corners of the box in pixels") },
      ...this.inputs.map((input, place) => el("div", { class: "field" }, el("label", { for: input.id }, NAMES[place]), input)),
      this.clearer);
    const hint = el("p", { class: "hint", id: `${id}-hint` },
      purpose, " ", ...parts(t("By keys: {enter} draws one, {arrows} move it, {both} resize it, {escape} clears it; {plus}, {minus} and {zero} zoom, as wheel, fingers and a double click do."), {
        enter: key(t("Enter")), arrows: key(t("arrows")), escape: key(t("Esc")), plus: key("+"), minus: key("−"), zero: key("0"),
        both: el("span", {}, key(t("Shift")), " + ", key(t("arrows"))),
      }));
    const root = el("div", { class: "box-tool" }, this.canvas, numbers, this.problem, hint, this.spoken);
    host.replaceChildren(root);
    this.#zoom(zooming ? root : this.canvas, zooming);

    this.picture.addEventListener("error", () => {
      this.problem.textContent = t("The picture cannot be shown: its file may have been moved since it was added.");
    });
    this.surface.addEventListener("pointerdown", (event) => this.#down(event));
    this.surface.addEventListener("pointermove", (event) => this.#move(event));
    this.surface.addEventListener("pointerup", (event) => this.#up(event));
    this.surface.addEventListener("pointercancel", () => this.#cancel());
    this.surface.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#draw()).observe(this.content);
    this.set(box, false);
  }

  /** Have the photo zoomed in an element. */
  #zoom(view, zooming) {
    const mover = el("button", { type: "button", class: "small mover", "aria-pressed": "false", onclick: () => {
      mover.setAttribute("aria-pressed", String(mover.getAttribute("aria-pressed") !== "true"));
    } }, t("Move the photo"));
    const moves = () => mover.getAttribute("aria-pressed") === "true";
    this.zoom = new Zoom(view, this.content, [{ picture: this.picture, photo: this.photo }], {
      pans: moves,
      ...zooming,
      onChange: ({ grip }) => {
        if (grip) this.#cancel(); // two fingers: what the first one began is no box
        this.#draw();
      },
    });
    if (!zooming) this.zoom.controls.append(mover);
    view.append(this.zoom.controls);
  }

  /** Set the box: corners in any order, clipped to the photo and rounded to pixels; null clears it. */
  set(box, tell = true) {
    this.box = box ? this.#clip(box) : null;
    this.problem.textContent = "";
    this.#draw();
    this.inputs.forEach((input, place) => {
      input.value = this.box ? this.box[place] : "";
    });
    this.clearer.disabled = !this.box;
    if (!tell) return;
    const [x0, y0, x1, y1] = this.box ?? [];
    this.spoken.textContent = this.box ? t("Box from {x0}, {y0} to {x1}, {y1}", { x0, y0, x1, y1 }) : t("No box");
    this.onChange(this.box);
  }

  #clip([x0, y0, x1, y1]) {
    const within = (value, size) => Math.round(Math.min(Math.max(value, 0), size - 1));
    const xs = [x0, x1].map((x) => within(x, this.photo.width)).sort((a, b) => a - b);
    const ys = [y0, y1].map((y) => within(y, this.photo.height)).sort((a, b) => a - b);
    return [xs[0], ys[0], xs[1], ys[1]];
  }

  #typed() {
    const values = this.inputs.map((input) => (input.value === "" ? Number.NaN : Number(input.value)));
    if (values.some(Number.isNaN)) {
      // The first numbers of a box are typed one by one: wait for the rest.
      if (values.every(Number.isNaN) && this.box) this.set(null);
      return;
    }
    if (values[2] <= values[0] || values[3] <= values[1]) {
      this.problem.textContent = t("Right must be more than Left, and Bottom more than Top.");
      return;
    }
    this.set(values);
  }

  /** Original pixels per screen pixel. */
  get #scale() {
    const { width } = this.content.getBoundingClientRect();
    return width ? this.photo.width / width : 1;
  }

  #point(event) {
    const there = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.surface.getScreenCTM().inverse());
    return [there.x, there.y];
  }

  #down(event) {
    if (event.button !== 0 || !event.isPrimary) return;
    const edge = event.target.dataset?.edge;
    const kind = edge ? "resize" : event.target.classList.contains("inside") ? "move" : "draw";
    this.drag = { kind, edge, from: this.#point(event), before: this.box, at: [event.clientX, event.clientY] };
    this.surface.setPointerCapture(event.pointerId);
    this.surface.focus({ preventScroll: true });
    event.preventDefault();
  }

  #move(event) {
    if (!this.drag) return;
    const [x, y] = this.#point(event);
    const { kind, edge, from, before } = this.drag;
    if (kind === "draw") {
      this.box = this.#clip([from[0], from[1], x, y]);
    } else if (kind === "move") {
      this.box = this.#shift(before, x - from[0], y - from[1]);
    } else {
      const moved = [...before];
      const [i, j] = EDGES[edge];
      if (i !== null) moved[i] = x;
      if (j !== null) moved[j] = y;
      this.box = this.#clip(moved);
    }
    this.#draw();
  }

  #up(event) {
    if (!this.drag) return;
    this.#move(event);
    const { before } = this.drag;
    this.drag = null;
    const least = SMALLEST * this.#scale;
    const [x0, y0, x1, y1] = this.box ?? [0, 0, 0, 0];
    if (x1 - x0 < least || y1 - y0 < least) {
      this.box = before;
      this.#draw();
    } else {
      this.set(this.box);
    }
  }

  #cancel() {
    if (this.drag) this.box = this.drag.before;
    this.drag = null;
    this.#draw();
  }

  /** The box moved, all of it kept in the photo. */
  #shift([x0, y0, x1, y1], dx, dy) {
    const right = Math.min(Math.max(dx, -x0), this.photo.width - 1 - x1);
    const down = Math.min(Math.max(dy, -y0), this.photo.height - 1 - y1);
    return this.#clip([x0 + right, y0 + down, x1 + right, y1 + down]);
  }

  #key(event) {
    const { width, height } = this.photo;
    const step = Math.max(1, Math.round(Math.max(width, height) / 100));
    if (event.key === "Enter" && !this.box) {
      this.set([width / 4, height / 4, (3 * width) / 4, (3 * height) / 4]);
    } else if (event.key === "Escape" && (this.box || this.drag)) {
      this.drag = null;
      this.set(null);
    } else if (ARROWS[event.key] && this.box && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const [dx, dy] = ARROWS[event.key].map((way) => way * step);
      const [x0, y0, x1, y1] = this.box;
      this.set(event.shiftKey ? [x0, y0, Math.max(x1 + dx, x0 + step), Math.max(y1 + dy, y0 + step)] : this.#shift(this.box, dx, dy));
    } else if (!this.zoom.key(event)) {
      return;
    }
    event.preventDefault();
  }

  #draw() {
    if (!this.box) {
      this.drawing.replaceChildren();
      return;
    }
    const [x0, y0, x1, y1] = this.box;
    const { width, height } = this.photo;
    const shade = `M-0.5,-0.5h${width}v${height}h${-width}zM${x0},${y0}V${y1}H${x1}V${y0}z`;
    const places = Object.entries(EDGES).map(([edge, [i, j]]) => [edge, i === null ? (x0 + x1) / 2 : this.box[i], j === null ? (y0 + y1) / 2 : this.box[j]]);
    this.drawing.replaceChildren(
      svg("path", { class: "shade", d: shade, "fill-rule": "evenodd" }),
      svg("rect", { class: "inside", x: x0, y: y0, width: x1 - x0, height: y1 - y0 }),
      ...outline(corners(this.box)),
      ...Object.entries(SIDES).map(([edge, ends]) => {
        const [a, b, c, d] = ends.map((place) => this.box[place]);
        return svg("line", { class: "grip", "data-edge": edge, x1: a, y1: b, x2: c, y2: d });
      }),
      ...places.flatMap(([edge, cx, cy]) => [
        svg("circle", { class: "knob", cx, cy, r: KNOB * this.#scale }),
        svg("circle", { class: "grip", "data-edge": edge, cx, cy, r: GRIP * this.#scale }),
      ]),
    );
  }
}

/** The box tool in the page's element with the id "tool". */
export const boxTool = (...options) => new BoxTool(at("tool"), ...options);
