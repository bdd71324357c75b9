// How a photo is cited: whose it is, what it is called and when it was taken, where it comes from, and an address that lasts.

import { address } from "../api.js";
import { copy } from "../choosing.js";
import { el } from "../dom.js";
import { calledBy } from "../grid.js";
import { moment, t, taken } from "../language.js";

/** The text of a citation, as of today. */
function text(photo) {
  const { Attribution: attribution = [], Source: source = [], "IIIF canvas": canvas = [] } = photo.others ?? {};
  const what = [attribution.join("; ").replace(/[.\s]+$/, ""), t("“{title}”", { title: calledBy(photo) }), photo.taken && taken(photo.taken)];
  const day = moment(Date.now(), { dateStyle: "long" });
  const link = new URL(address(photo.link), location.href).href;
  const where = [source[0] ?? canvas[0], t("{link} (seen on {day})", { link, day })];
  return [what, where].map((some) => some.filter(Boolean).join(", ")).join(". ");
}

/** The citation of a photo, with a button that copies it; null where its content is not known. */
export function citation(photo) {
  if (!photo.link) return null;
  const cited = text(photo);
  const said = el("span", { class: "said", role: "status" });
  const button = el("button", { type: "button", class: "small", onclick: async () => {
    said.textContent = (await copy(cited)) ? t("Copied") : "";
  } }, t("Copy"));
  return el("div", { class: "stack" }, el("span", { id: "citation", dir: "auto" }, cited), el("div", { class: "row" }, button, said));
}
