// The calendar of the photos that are shown: years, and their months with how many photos each has, to jump to.

import { at, el } from "../dom.js";
import { figure, t, tn, variant } from "../language.js";

const SHORT = new Intl.DateTimeFormat(variant, { month: "short", timeZone: "UTC" });
const KEYS = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -4, ArrowDown: 4 };

/** A month of a year; what is known of no month alone is the whole year's. */
function cell({ month, photos, place }, called, go) {
  const short = month.length < 7 ? t("No month") : SHORT.format(new Date(`${month}-01T00:00:00Z`));
  const label = tn(photos, "{month} ({n} photo)", "{month} ({n} photos)", { month: called(month) });
  return el("li", {}, el("button", { type: "button", class: "month", "aria-label": label, onclick: () => go(place) },
    el("span", {}, short), el("span", { class: "entry-count" }, figure(photos))));
}

/**
 * Fill the calendar, and let its button open it.
 * @param grouped years as timeline.js has them: [{year, photos, months: [{month, photos, place}]}]
 * @param called(month) a month as it is read
 * @param go(place) show the photo of a place in the order of the dates
 */
export function calendar(grouped, called, go) {
  const dialog = at("calendar");
  const choose = (place) => {
    dialog.close();
    go(place);
  };
  at("years").replaceChildren(...grouped.map(({ year, photos, months }) => el("section", { "aria-labelledby": `year-${year}` },
    el("h3", { id: `year-${year}` }, year, " ", el("span", { class: "entry-count" }, tn(photos, "{n} photo", "{n} photos"))),
    el("ul", { class: "months" }, ...months.toSorted((one, other) => one.month.localeCompare(other.month)).map((one) => cell(one, called, choose))))));
  at("open-calendar").onclick = () => dialog.showModal();
  at("close-calendar").onclick = () => dialog.close();
  dialog.onkeydown = (event) => {
    const all = [...dialog.querySelectorAll(".month")];
    const next = all[all.indexOf(document.activeElement) + (KEYS[event.key] ?? NaN)];
    if (!next || !all.includes(document.activeElement)) return;
    event.preventDefault();
    next.focus();
  };
}
