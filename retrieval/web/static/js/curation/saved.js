// Saved searches: run, rename, favourite, standing or not, forget; what standing ones have found; recent searches.

import { address, change, json, thumbnail } from "../api.js";
import { at, complain, el } from "../dom.js";
import { frame, nameLine } from "../grid.js";
import { moment, percent, t, tn } from "../language.js";
import { start } from "../page.js";
import { ask, field } from "./dialogs.js";
import { notice } from "./notice.js";
import { forgetRecent, recentSearches } from "./recent.js";
import { addressOf, standingFields } from "./saving.js";

let searches = [];

/** Do something, show the list anew, and keep the focus on the search that it was done with. */
async function perform(search, act) {
  try {
    complain(null);
    await act();
    await load();
    at(`saved-${search.id}`)?.querySelector("h2")?.focus({ preventScroll: true });
  } catch (error) {
    complain(error);
  }
}

const set = (search, fields) => perform(search, () => change("PATCH", `/api/saved/${search.id}`, fields));

async function run(search) {
  try {
    location.assign(await addressOf(search));
  } catch (error) {
    complain(error);
  }
}

function edit(search) {
  const [line, input] = field(t("Name"), { required: true, maxlength: 200, value: search.name });
  const { nodes, values } = standingFields(search);
  return ask(t("Change “{name}”", { name: search.name }), [line, ...nodes], t("Save"), async () => {
    await change("PATCH", `/api/saved/${search.id}`, { name: input.value, ...values() });
    return true;
  }).then((done) => done && perform(search, async () => {}));
}

function forget(search) {
  const fields = [el("p", {}, t("Its results are deleted too; the photos and their tags stay."))];
  return ask(t("Delete “{name}”?", { name: search.name }), fields, t("Delete"), async () => {
    await change("DELETE", `/api/saved/${search.id}`);
    return true;
  }).then(async (done) => {
    if (!done) return;
    await load();
    notice(t("“{name}” is deleted.", { name: search.name }));
    at("title").focus();
  });
}

/** The photos that a standing search has found, with where, the new ones first. */
async function showFinds(search, place) {
  const finds = await json(`/api/saved/${search.id}/finds`);
  const tile = (one) => el("li", { class: one.seen ? "photo-tile" : "photo-tile new" },
    el("a", { href: address("/photo", { number: one.number }) },
      frame(one, { region: one.region, alt: "" }),
      nameLine("span", one.name)),
    el("p", { class: "measure" }, one.probability === null ? "" : t("{percent} likely", { percent: percent(one.probability) })));
  const ordered = [...finds.filter(({ seen }) => !seen), ...finds.filter(({ seen }) => seen)];
  place.replaceChildren(el("ul", { class: "grid" }, ...ordered.map(tile)));
}

function finds(search) {
  if (!search.found) return search.standing ? el("p", { class: "said" }, t("Nothing was found in new photos yet.")) : null;
  const place = el("div", {});
  const title = search.new ? tn(search.new, "{n} new photo", "{n} new photos") : tn(search.found, "{n} photo found", "{n} photos found");
  const seen = search.new > 0 && el("button", { type: "button", class: "small writes", onclick: () => perform(search, () => change("POST", `/api/saved/${search.id}/seen`, {})) }, t("Mark as seen"));
  const list = el("details", { class: "finds", open: search.new > 0 }, el("summary", {}, title), place);
  const fill = () => {
    if (list.open && !place.children.length) showFinds(search, place).catch(complain);
  };
  list.addEventListener("toggle", fill);
  fill();
  return el("div", { class: "stack" }, list, seen && el("div", { class: "row" }, seen));
}

function card(search) {
  const { id, name, favourite, standing, uploaded, cover, tag } = search;
  const picture = cover !== null ? thumbnail(cover, 256) : uploaded ? address(`/api/saved/${id}/photo`) : null;
  const parts = [
    standing && t("Looks at new photos"),
    standing && tag && t("Tags them {tag}", { tag }),
    t("Saved {when}", { when: moment(search.created, { dateStyle: "medium" }) }),
  ].filter(Boolean);
  const star = el("button", { type: "button", class: "small writes", "aria-pressed": String(favourite), "aria-label": t("Favourite: {name}", { name }), onclick: () => set(search, { favourite: !favourite }) }, favourite ? "★" : "☆");
  return el("li", { class: "panel saved", id: `saved-${id}` },
    el("div", { class: "saved-head" },
      el("span", { class: "frame" }, picture && el("img", { src: picture, alt: "", loading: "lazy" })),
      el("div", { class: "stack" },
        el("h2", { tabindex: -1, dir: "auto" }, name),
        el("p", { class: "said" }, parts.join(" · ")),
        el("div", { class: "row" },
          el("button", { type: "button", class: "small primary", "aria-label": t("Search for {name}", { name }), onclick: () => run(search) }, t("Search")),
          el("a", { class: "button small", href: address("/motif", { search: id }), "aria-label": t("Occurrences of {name}", { name }) }, t("Occurrences")),
          star,
          el("button", { type: "button", class: "small writes", "aria-label": t("Change {name}", { name }), onclick: () => edit(search) }, t("Change")),
          el("button", { type: "button", class: "small writes", "aria-label": t("Delete {name}", { name }), onclick: () => forget(search) }, t("Delete"))))),
    finds(search));
}

async function load() {
  searches = await json("/api/saved");
  const fresh = searches.reduce((sum, one) => sum + one.new, 0);
  const counted = searches.length ? tn(searches.length, "{n} search", "{n} searches") : "";
  at("said").textContent = fresh ? t("{searches}, {found}", { searches: counted, found: tn(fresh, "{n} new photo", "{n} new photos") }) : counted;
  at("nothing").hidden = searches.length > 0;
  at("searches").replaceChildren(...searches.map(card));
}

function showRecent() {
  const recent = recentSearches();
  at("recent").hidden = !recent.length;
  at("recent-searches").replaceChildren(...recent.map(({ address: to, names, numbers, when }) => el("li", {},
    el("a", { class: "recent", href: address("/search") + to },
      el("span", { class: "frame" }, Number.isInteger(numbers?.[0]) ? el("img", { src: thumbnail(numbers[0], 256), alt: "", loading: "lazy" }) : null),
      el("span", { class: "called", dir: "auto" }, names.join(", ")),
      el("span", { class: "said" }, moment(when))))));
}

start(async () => {
  at("forget-recent").addEventListener("click", () => {
    forgetRecent();
    showRecent();
    at("title").focus();
  });
  showRecent();
  await load();
});
