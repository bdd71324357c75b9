// What the photo page does beside showing a photo: to the next one by keys, buttons and fingers, the panel, the way back.

import { at } from "../dom.js";

const FAR = 50; // screen pixels: less is no swipe
const PANEL = "cairn.panel";
const WIDE = matchMedia("(min-width: 64rem)");

/** Whether keys mean something else there. */
const typing = (target) => Boolean(target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable], dialog"));

/** Show or hide the panel; remembered on wide screens. */
export function panel() {
  const button = at("info");
  const show = (on) => {
    at("panel").hidden = !on;
    button.setAttribute("aria-expanded", String(on));
  };
  const toggle = () => {
    show(at("panel").hidden);
    if (WIDE.matches) localStorage.setItem(PANEL, at("panel").hidden ? "closed" : "open");
  };
  button.addEventListener("click", toggle);
  show(WIDE.matches && localStorage.getItem(PANEL) !== "closed");
  return toggle;
}

/** The mode in which fingers draw a box; the mouse always does. */
export function drawing() {
  const button = at("draw");
  const set = (on) => {
    button.setAttribute("aria-pressed", String(on));
    at("viewer").classList.toggle("drawing", on);
    if (on) at("tool").querySelector(".box-canvas svg")?.focus({ preventScroll: true });
  };
  const is = () => button.getAttribute("aria-pressed") === "true";
  button.addEventListener("click", () => set(!is()));
  return { set, is };
}

/** Have fingers that move sideways turn to the next photo, and down go back, unless they draw or the photo is zoomed. */
export function swipe({ turn, leave, off }) {
  let from = null;
  const stage = at("tool");
  const begin = (event) => {
    if (event.pointerType !== "touch" || off() || (visualViewport?.scale ?? 1) > 1.01) return;
    from = event.isPrimary ? [event.clientX, event.clientY] : null;
  };
  const end = (event) => {
    if (!from || !event.isPrimary) return;
    const [x, y] = [event.clientX - from[0], event.clientY - from[1]];
    from = null;
    if (Math.abs(x) > FAR && Math.abs(x) > 1.5 * Math.abs(y)) turn(x < 0 ? 1 : -1);
    else if (y > 2 * FAR && y > 1.5 * Math.abs(x)) leave();
  };
  stage.addEventListener("pointerdown", begin, { capture: true });
  stage.addEventListener("pointerup", end);
  stage.addEventListener("pointercancel", () => {
    from = null;
  });
}

/** Listen to the keys. `acts`: what each does. */
export function keys(acts) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (act && act(event) !== false) event.preventDefault();
  });
}

/** All of the screen for the photo, or no more. */
export function fullScreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen().catch(() => {});
}
