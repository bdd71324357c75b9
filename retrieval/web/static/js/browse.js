// The collection: a wall of photos, filtered and in an order. The address says what is shown, and where one is in it.

import { address, changeMany, json, numbers } from "./api.js";
import { selection } from "./choosing.js";
import { at, complain, debounce, el } from "./dom.js";
import { asks, everyFilter, fillFilters, formFilters, inForce, offer } from "./filters.js";
import { parts, t, tn } from "./language.js";
import { recount, start } from "./page.js";
import { drawer } from "./photos/drawer.js";
import { headings, timeline } from "./photos/timeline.js";
import { photoAddress, Wall } from "./photos/wall.js";
import { pending, searchAddress } from "./query.js";
import { isOpen, watch } from "./jobs/jobs.js";
import { beginning } from "./shelf/beginning.js";

const ORDERS = ["name", "newest", "oldest", "added"];
const OFTEN = 20000; // milliseconds between two looks for photos that a job adds
const form = at("filter");
let request = new AbortController();
let mark = () => {};
let wall = null;
let laid = null; // what the wall shows, as the server said it
let albums = new Map(); // names by ids, as texts

function shown() {
  const fields = new URLSearchParams(location.search);
  const [order, first] = [fields.get("order"), fields.get("at")];
  return { filters: everyFilter(), order: ORDERS.includes(order) ? order : "name", first: /^\d+$/.test(first ?? "") ? Number(first) : null };
}

const ordered = (order) => (order === "name" ? null : order);
const to = (filters, order, first = null) => address("/", { ...filters, order: ordered(order), at: first, ...pending() });

function sentence(total, filtered) {
  if (!total) return filtered ? t("No photo passes the filter") : "";
  return filtered ? tn(total, "{n} photo passes the filter", "{n} photos pass the filter") : tn(total, "{n} photo", "{n} photos");
}

function showState(total, { filters, order }) {
  const filtered = asks(filters);
  at("said").textContent = sentence(total, filtered);
  at("clear").hidden = !filtered;
  at("clear").href = to({}, order);
  at("to-map").href = address("/map", filters);
  at("empty").hidden = total > 0 || filtered;
  if (!at("empty").hidden) beginning(at("empty"), () => showNew(true));
  at("choose-all").hidden = !total;
  at("chips").replaceChildren(...inForce(filters, albums).map(({ text, rest }) => el("li", {},
    el("a", { class: "wall-chip", href: to(rest, order), "aria-label": t("Remove the filter {text}", { text }) },
      el("span", { dir: "auto" }, text), el("span", { class: "cross", "aria-hidden": "true" }, "×")))));
}

async function load() {
  request.abort();
  request = new AbortController();
  const { signal } = request;
  const state = shown();
  const { filters, order, first } = state;
  try {
    sessionStorage.removeItem("cairn.entered");
    if (filters.album && !albums.has(filters.album)) {
      const all = (await json("/api/albums", {}, signal)).albums;
      albums = new Map(all.map(({ album, name }) => [String(album), name]));
    }
    const [layout, dates] = await Promise.all([
      json("/api/layout", { ...filters, order: ordered(order) }, signal), json("/api/timeline", filters, signal)]);
    complain(null);
    const same = laid?.numbers.length === layout.numbers.length && laid.numbers.every((number, place) => number === layout.numbers[place]);
    laid = layout;
    showState(layout.numbers.length, state);
    mark = timeline(dates, order, jump);
    // One who comes back from a photo is where that photo is.
    const viewed = Number(sessionStorage.getItem("cairn.viewed") ?? NaN);
    sessionStorage.removeItem("cairn.viewed");
    const focused = at("photos").contains(document.activeElement) ? wall.numbers[wall.current] : NaN; // it goes with what is shown
    const groups = headings(dates, order);
    const alike = same && JSON.stringify(groups) === JSON.stringify(wall.groups);
    if (!alike) wall.show(layout, first, groups);
    const place = layout.numbers.indexOf(Number.isNaN(viewed) && !alike ? focused : viewed);
    if (place >= 0) wall.focus(place);
    mark(wall.view[1]);
  } catch (error) {
    complain(error);
  }
}

/** Have hidden photos shown again. */
async function showAgain(photos) {
  await changeMany("POST", "/api/hidden/show", "photos", numbers(photos));
  const undo = () => changeMany("POST", "/api/hidden", "photos", numbers(photos));
  return { said: tn(photos.length, "{n} photo is shown again.", "{n} photos are shown again."), undo, kind: "hide" };
}

/** Photos were changed: ask for their names again too. */
function anew() {
  wall.forget();
  laid = null;
  load();
}

/** Show photos that have been added. Nothing else of the page changes: somebody may be typing. */
async function showNew(always = false) {
  const changed = await recount().catch(() => false); // the next look tells
  if (always || changed) anew();
}

/** Show what work that changes photos has added, now and then, and once it has ended, without being asked to. */
function follow() {
  let over = null; // numbers of the jobs that had ended
  let looked = Date.now();
  watch((jobs) => {
    const ended = jobs.filter((job) => !isOpen(job));
    const news = over && ended.some(({ id, changes_photos: changes }) => !over.has(id) && changes);
    over = new Set(ended.map(({ id }) => id));
    const grows = jobs.some(({ state, changes_photos: changes }) => state === "running" && changes);
    if (!news && !(grows && Date.now() - looked > OFTEN)) return;
    looked = Date.now();
    showNew(news); // also if there are as many as before
  });
}

/** Show a place of the order of the dates. */
async function jump(place, newest) {
  const { filters, order } = shown();
  const dated = newest ? "newest" : "oldest";
  if (order !== dated) {
    history.pushState(null, "", to(filters, dated));
    at("order").value = dated;
    await load();
  }
  wall.scrollTo(Math.min(place, wall.numbers.length - 1));
  mark(wall.view[1]);
}

function show(write, filters, order = shown().order) {
  history[write](null, "", to(filters, order));
  fillForm();
  panel.fill();
  load();
}

/** What the form asks for, and what only the address does. */
const asked = () => ({ ...everyFilter(), ...formFilters(form) });

function fillForm() {
  const { filters, order } = shown();
  fillFilters(form, filters);
  at("order").value = order;
}

function offerQuery() {
  const { q, ...fields } = pending();
  at("adding").hidden = !q.length;
  if (!q.length) return;
  const back = el("a", { href: searchAddress(q, fields) }, t("back to the results"));
  at("adding").replaceChildren(...parts(
    tn(q.length, "Pick a photo to add to your query of {n} photo, or go {back}.", "Pick a photo to add to your query of {n} photos, or go {back}."), { back }));
}

/** The list that a photo's page goes through: filters and order, as an address has them. */
function list() {
  const { filters, order } = shown();
  return address("", { ...filters, order: ordered(order) }).slice(1);
}

const panel = drawer(() => shown().filters, (filters) => show("pushState", filters));

start(async () => {
  history.scrollRestoration = "manual"; // the address says where one is
  wall = new Wall(at("photos"), {
    link: (number) => photoAddress(number, list(), pending()),
    choose: (own) => selection({
      container: at("photos"), place: at("main"), rest: () => at("photos").querySelector("a[tabindex='0']"), photo: (number) => own.photo(number),
      between: (one, other) => own.between(one, other), changed: anew, called: t("photos"),
      actions: [{ id: "show-again", label: t("Show again"), writes: true, fits: () => Boolean(shown().filters.hidden), run: showAgain }],
    }),
    onView: (place, end) => {
      const { filters, order } = shown();
      history.replaceState(null, "", to(filters, order, place ? wall.numbers[place] : null));
      mark(end);
    },
  });
  at("choose-all").addEventListener("click", () => wall.selection.toggle(wall.numbers, true));
  fillForm();
  offerQuery();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    panel.close();
    show("pushState", asked());
  });
  // A date that is half written is left until it is whole.
  const typed = debounce(() => {
    if (!form.checkValidity()) return;
    history.replaceState(null, "", to(asked(), shown().order));
    load();
  }, 250);
  form.addEventListener("input", (event) => event.target.matches("input") && typed());
  at("drawer").addEventListener("input", typed); // its fields belong to the form, but do not lie in it
  at("order").addEventListener("change", () => show("pushState", asked(), at("order").value));
  addEventListener("popstate", () => {
    fillForm();
    panel.fill();
    load();
  });
  addEventListener("pageshow", (event) => event.persisted && load());
  await load();
  follow();
  await offer(form);
});
