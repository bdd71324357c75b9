// The time line: years and months of the photos that are shown, to jump to.

import { at, el } from "../dom.js";
import { t, tn, variant } from "../language.js";
import { calendar } from "./calendar.js";

const NAMES = new Intl.DateTimeFormat(variant, { year: "numeric", month: "long", timeZone: "UTC" });

/** A month as it is read: "2004-07" is "July 2004". */
const monthName = (month) => (month.length < 7 ? month : NAMES.format(new Date(`${month}-01T00:00:00Z`)));

/**
 * Where the months begin in the order of the photos.
 * @param months [{month, photos}], the earliest first
 * @param newest whether the latest photos come first
 * @returns [{month, photos, place}], in the order of the photos
 */
export function places(months, newest) {
  let place = 0;
  return (newest ? months.toReversed() : months).map((one) => {
    const found = { ...one, place };
    place += one.photos;
    return found;
  });
}

/** Headings above photos in the order of their dates: [{place, text}]; none in another order. */
export function headings({ months, undated }, order) {
  if (!["newest", "oldest"].includes(order)) return [];
  const found = places(months, order === "newest");
  const end = found.reduce((sum, { photos }) => sum + photos, 0);
  return [...found.map(({ month, place }) => ({ place, text: monthName(month) })), ...(undated ? [{ place: end, text: t("No date") }] : [])];
}

/** The same by year: [{year, photos, place, months}]. */
export function years(found) {
  const all = [];
  for (const one of found) {
    const year = one.month.slice(0, 4);
    if (all.at(-1)?.year !== year) all.push({ year, photos: 0, place: one.place, months: [] });
    all.at(-1).photos += one.photos;
    all.at(-1).months.push(one);
  }
  return all;
}

/**
 * Fill the time line.
 * @param timeline GET /api/timeline
 * @param order of the photos
 * @param go(place, newest) show the photo of this place in the order of the dates
 * @returns mark(place): show in which year the view is
 */
export function timeline({ months, undated }, order, go) {
  const newest = order !== "oldest";
  const found = places(months, newest);
  const dated = found.reduce((sum, { photos }) => sum + photos, 0);
  const grouped = years(found);
  at("jumping").hidden = at("open-calendar").hidden = !found.length;
  calendar(grouped, monthName, (place) => go(place, newest));
  const options = grouped.map(({ year, months: some }) => el("optgroup", { label: year },
    ...some.map(({ month, photos, place }) => el("option", { value: place }, tn(photos, "{month} ({n} photo)", "{month} ({n} photos)", { month: monthName(month) })))));
  const last = undated > 0 && el("option", { value: dated }, tn(undated, "No date ({n} photo)", "No date ({n} photos)"));
  const select = at("jump");
  select.replaceChildren(el("option", { value: "" }, t("Jump to…")), ...options, last || "");
  select.onchange = () => {
    if (select.value !== "") go(Number(select.value), newest);
    select.value = "";
  };
  // The line itself is as long as the window: it says where in the order the view is, which only holds in that of the dates.
  const rail = at("rail");
  rail.hidden = grouped.length < 2 || !["newest", "oldest"].includes(order);
  if (rail.hidden) return () => {};
  const buttons = grouped.map(({ year, photos, place }) => {
    const button = el("button", { type: "button", class: "rail-year", title: tn(photos, "{year}: {n} photo", "{year}: {n} photos", { year }),
      onclick: () => go(place, newest) }, year);
    button.style.setProperty("flex-grow", photos);
    return button;
  });
  rail.replaceChildren(...buttons);
  return (place) => {
    let current = grouped.findLastIndex((one) => one.place <= place);
    if (place >= dated) current = -1;
    buttons.forEach((button, index) => {
      if (index === current) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    });
  };
}
