// What was done, in a line at the foot of the window that goes away by itself, with a way back.

import { el } from "../dom.js";
import { t } from "../language.js";

const SECONDS = 12;
const region = el("div", { class: "notices", role: "status" }); // here from the beginning, or it would not be heard
document.body.append(region);
let timer = 0;

/** Say what was done; `undo`: takes it back. What was said before goes. */
export function notice(said, undo = null) {
  const away = () => region.replaceChildren();
  const say = (text) => region.replaceChildren(el("p", { class: "notice" }, text));
  const back = undo && el("button", { type: "button", class: "small", id: "undo" }, t("Undo"));
  back?.addEventListener("click", async () => {
    clearTimeout(timer);
    try {
      await undo();
      say(t("Undone"));
    } catch (error) {
      say(error.message || String(error));
    }
    timer = setTimeout(away, 1000 * SECONDS);
  });
  const line = el("p", { class: "notice" }, el("span", {}, said), back);
  region.replaceChildren(line);
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => (line.matches(":hover, :focus-within") ? wait() : away()), 1000 * SECONDS);
  };
  wait();
}
