// The occurrences of a saved search in all photos: by book and page, each with a category that can be chosen.

import { address, change, json, photo as read } from "../api.js";
import { at, complain, corners, el } from "../dom.js";
import { frame } from "../grid.js";
import { percent, t, taken, tn } from "../language.js";
import { entitle, start } from "../page.js";
import { format } from "../query.js";
import { ask, field } from "./dialogs.js";

const PROPOSED = ["same block", "copy", "same motif", "not related"]; // as the server calls them
const MOST_IMPRESSIONS = 24; // that the print clock reads at once
const AROUND = 0.05; // of a region is shown around it
const ANOTHER = "\n"; // no category is called so
const fields = new URLSearchParams(location.search);
const id = Number.parseInt(fields.get("search") ?? "", 10);

let search = null;
let finds = [];
let wanted = fields.get("category"); // null: all; "": those without one

const calledCategory = (category) => ({
  "": t("No category"),
  "same block": t("same block"),
  copy: t("copy"),
  "same motif": t("same motif"),
  "not related": t("not related"),
})[category] ?? category;

/** All categories: those that are proposed, then others that photos have. */
const categories = () => [...new Set([...PROPOSED, ...finds.map(({ category }) => category).filter(Boolean).sort()])];

const counted = (number, category) => t("{category} ({count})", { category: calledCategory(category), count: number });

const option = (value, text, chosen) => el("option", { value, selected: chosen }, text);

async function put(find, category) {
  complain(null);
  await change("PATCH", `/api/saved/${id}/finds`, { photos: [find.number], category });
  find.category = category || null;
  show();
  at(`category-${find.number}`)?.focus(); // gone where the filter leaves it out now
}

/** Ask for a category of one's own. */
async function another(find) {
  const [line, input] = field(t("Category"), { required: true, maxlength: 200, dir: "auto" });
  const done = await ask(t("Another category"), [line], t("Save"), async () => {
    await put(find, input.value.trim());
    return true;
  });
  if (!done) show();
}

function menu(find) {
  const options = ["", ...categories()].map((one) => option(one, one ? calledCategory(one) : "–", one === (find.category ?? "")));
  return el("select", {
    class: "writes", id: `category-${find.number}`, autocomplete: "off",
    "aria-label": t("Category of {book}, {page}", { book: find.book, page: find.page_label }),
    onchange: ({ target }) => target.value === ANOTHER ? another(find) : put(find, target.value).catch(complain),
  }, ...options, option(ANOTHER, t("Another …"), false));
}

/** What lies in a region of a photo, and a little around it; the whole photo where there is no region. */
function detail(photo, region) {
  const whole = () => frame(photo, { region, alt: "" });
  if (!region || !photo.width) return whole();
  const [x, y] = [0, 1].map((axis) => {
    const [ends, side] = [region.map((point) => point[axis]), axis ? photo.height : photo.width];
    const [least, most] = [Math.min(...ends), Math.max(...ends)];
    const around = (most - least) * AROUND;
    const from = Math.min(Math.max(least - around, 0), side - 1);
    return [from, Math.max(Math.min(most + around, side) - from, 1)].map((value) => ((100 * value) / side).toFixed(3));
  });
  const source = address(`/api/iiif/${photo.number}/pct:${x[0]},${y[0]},${x[1]},${y[1]}/!256,256/0/default.jpg`);
  const shown = el("span", { class: "frame" }, el("img", { alt: "", loading: "lazy", src: source, onerror: () => shown.replaceWith(whole()) }));
  return shown;
}

/** The page of the match with what is searched with, or that of a photo which is that itself. */
function link(find) {
  const [query] = search.queries;
  if (search.queries.length !== 1 || query.photo === null || query.photo === find.number) return address("/photo", { number: find.number });
  return address("/match", { q: format({ ...query, upload: null }), photo: find.number });
}

function row(find) {
  const own = search.queries.some(({ photo }) => photo === find.number);
  const cell = (name, ...content) => el("td", { "data-name": name }, ...content);
  return el("tr", {},
    el("td", { class: "shown" }, el("a", { href: link(find), "aria-label": t("Compare {name}", { name: find.name }) }, detail(find, find.region))),
    cell(t("Book"), el("a", { href: address("/photo", { number: find.number }), title: find.name, dir: "auto" }, find.book)),
    cell(t("Page"), el("span", { dir: "auto" }, find.page_label)),
    cell(t("Date"), find.taken ? taken(find.taken) : "–"),
    cell(t("Place"), el("span", { dir: "auto" }, find.place ?? "–")),
    cell(t("Probability"), own ? t("searched with") : find.probability === null ? t("added by hand") : percent(find.probability)),
    cell(t("Category"), menu(find), el("span", { class: "reads", dir: "auto" }, find.category ? calledCategory(find.category) : "–")));
}

function show() {
  const number = new Map();
  for (const { category } of finds) number.set(category ?? "", (number.get(category ?? "") ?? 0) + 1);
  if (wanted !== null && !number.has(wanted)) wanted = null;
  const shown = finds.filter(({ category }) => wanted === null || (category ?? "") === wanted);
  const choices = ["", ...categories()].filter((one) => number.has(one));
  at("category").replaceChildren(
    option(ANOTHER, t("All ({count})", { count: finds.length }), wanted === null),
    ...choices.map((one) => option(one, counted(number.get(one), one), one === wanted)));
  const books = new Set(shown.map(({ book }) => book)).size;
  at("said").textContent = shown.length ? t("{photos} in {books}", { photos: tn(shown.length, "{n} photo", "{n} photos"), books: tn(books, "{n} book", "{n} books") }) : "";
  at("csv").href = address(`/api/saved/${id}/finds.csv`) + (wanted === null ? "" : `?${new URLSearchParams({ category: wanted })}`);
  at("csv").hidden = at("filter").hidden = at("occurrences").hidden = !finds.length;
  at("nothing").hidden = finds.length > 0;
  const [query] = search.queries;
  at("clock").hidden = shown.length < 2 || shown.length > MOST_IMPRESSIONS;
  at("clock").href = address("/clock", {
    q: query.photo === null ? String(shown[0]?.number) : format({ ...query, upload: null }),
    photo: shown.map(({ number: one }) => one),
  });
  at("rows").replaceChildren(...shown.map(row));
  try { // so that the page of a match leads to the next one
    sessionStorage.setItem("cairn.matches", JSON.stringify(shown.map(link).filter((one) => one.includes("/match?"))));
  } catch {
    // The browser keeps nothing: there are no links to the next match.
  }
}

async function load() {
  [search, finds] = await Promise.all([json("/api/saved").then((all) => all.find((one) => one.id === id)), json(`/api/saved/${id}/finds`)]);
  entitle(search.name);
  const [{ photo, box } = { photo: null }] = search.queries;
  at("cover").replaceChildren(photo === null
    ? el("span", { class: "frame" }, el("img", { src: address(`/api/saved/${id}/photo`), alt: "" }))
    : detail(await read(photo), box && corners(box)));
  at("head").hidden = false;
  show();
}

start(async () => {
  at("category").addEventListener("change", () => {
    wanted = at("category").value === ANOTHER ? null : at("category").value;
    history.replaceState(null, "", `?${new URLSearchParams({ search: id, ...(wanted !== null && { category: wanted }) })}`);
    show();
  });
  at("ask").addEventListener("click", async () => {
    at("ask").disabled = true;
    at("said").textContent = t("Searching …");
    try {
      complain(null);
      await change("POST", `/api/saved/${id}/ask`);
      await load();
    } catch (error) {
      complain(error);
      show();
    }
    at("ask").disabled = false;
  });
  await load();
});
