// The collection: a grid of photos, filtered by name, folder, date and tags. The address says what is shown.

import { address, photos } from "./api.js";
import { at, debounce, el } from "./dom.js";
import { addressFilters, asks, fillFilters, formFilters, offer } from "./filters.js";
import { paginate, tiles } from "./grid.js";
import { figure, parts, t, tn } from "./language.js";
import { complain, start } from "./page.js";
import { pending, searchAddress } from "./query.js";

const PAGE = 60; // photos on one
const form = at("filter");
let request = new AbortController();

function shown() {
  const page = Number.parseInt(new URLSearchParams(location.search).get("page") ?? "1", 10);
  return { filters: addressFilters(), page: page >= 1 ? page : 1 };
}

const to = (filters, page) => address("/", { ...filters, page: page > 1 ? page : null, ...pending() });

function sentence(total, filtered) {
  if (!total) return filtered ? t("No photo passes the filter") : t("No photos yet: run cairn index");
  return filtered ? tn(total, "{n} photo passes the filter", "{n} photos pass the filter") : tn(total, "{n} photo", "{n} photos");
}

async function load() {
  request.abort();
  request = new AbortController();
  const { filters, page } = shown();
  try {
    const found = await photos({ offset: (page - 1) * PAGE, limit: PAGE, ...filters }, request.signal);
    const pages = Math.max(Math.ceil(found.total / PAGE), 1);
    if (page > pages && found.total) {
      history.replaceState(null, "", to(filters, pages));
      return await load();
    }
    complain(null);
    at("photos").replaceChildren(...tiles(found.photos, pending()));
    const filtered = asks(filters);
    at("clear").hidden = found.total > 0 || !filtered;
    at("clear").href = address("/", pending());
    const what = sentence(found.total, filtered);
    at("said").textContent = pages > 1 ? t("{what}, page {page} of {pages}", { what, page: figure(page), pages: figure(pages) }) : what;
    const go = (one) => location.assign(to(filters, one));
    paginate(at("pages"), page, pages, (one) => to(filters, one), go);
  } catch (error) {
    complain(error);
  }
}

function filter(write) {
  history[write](null, "", to(formFilters(form), 1));
  load();
}

function fillForm() {
  const { filters } = shown();
  fillFilters(form, filters);
  if (filters.taken_from || filters.taken_to || filters.tag.length) at("more").open = true;
}

function offerQuery() {
  const { q, ...fields } = pending();
  at("adding").hidden = !q.length;
  if (!q.length) return;
  const back = el("a", { href: searchAddress(q, fields) }, t("back to the results"));
  at("adding").replaceChildren(...parts(
    tn(q.length, "Pick a photo to add to your query of {n} photo, or go {back}.", "Pick a photo to add to your query of {n} photos, or go {back}."), { back }));
}

start(async () => {
  fillForm();
  offerQuery();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    filter("pushState");
  });
  // A date that is half written is left until it is whole.
  form.addEventListener("input", debounce(() => form.checkValidity() && filter("replaceState"), 250));
  window.addEventListener("popstate", () => {
    fillForm();
    load();
  });
  await load();
  await offer(form);
});
