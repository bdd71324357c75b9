// The collection: a grid of photos, filtered by name and folder. The address says what is shown.

import { address, folders, photos } from "./api.js";
import { at, count, debounce, el } from "./dom.js";
import { paginate, tiles } from "./grid.js";
import { complain, start } from "./page.js";
import { pending, searchAddress } from "./query.js";

const PAGE = 60; // photos on one
const form = at("filter");
let request = new AbortController();

function shown() {
  const fields = new URLSearchParams(location.search);
  const page = Number.parseInt(fields.get("page") ?? "1", 10);
  return { name: fields.get("name") ?? "", folder: fields.get("folder") ?? "", page: page >= 1 ? page : 1 };
}

const to = (fields, page) =>
  address("/", { name: fields.name, folder: fields.folder, page: page > 1 ? page : null, ...pending() });

async function load() {
  request.abort();
  request = new AbortController();
  const { name, folder, page } = shown();
  try {
    const found = await photos({ offset: (page - 1) * PAGE, limit: PAGE, name, folder }, request.signal);
    const pages = Math.max(Math.ceil(found.total / PAGE), 1);
    if (page > pages && found.total) {
      history.replaceState(null, "", to({ name, folder }, pages));
      return await load();
    }
    complain(null);
    at("photos").replaceChildren(...tiles(found.photos, pending()));
    const filtered = name || folder;
    const what = found.total || filtered ? count(found.total, "photo") : "No photos yet: run cairn index";
    at("said").textContent = `${what}${filtered && found.total ? " pass the filter" : ""}${pages > 1 ? `, page ${page} of ${pages.toLocaleString("en")}` : ""}`;
    const go = (one) => location.assign(to({ name, folder }, one));
    paginate(at("pages"), page, pages, (one) => to({ name, folder }, one), go);
  } catch (error) {
    complain(error);
  }
}

function filter(write) {
  history[write](null, "", to({ name: form.elements.name.value.trim(), folder: form.elements.folder.value.trim() }, 1));
  load();
}

function fillForm() {
  const { name, folder } = shown();
  form.elements.name.value = name;
  form.elements.folder.value = folder;
}

function offerQuery() {
  const { q, ...fields } = pending();
  at("adding").hidden = !q.length;
  if (!q.length) return;
  at("adding").replaceChildren(
    `Pick a photo to add to your query of ${count(q.length, "photo")}, or go `,
    el("a", { href: searchAddress(q, fields) }, "back to the results"), ".",
  );
}

start(async () => {
  fillForm();
  offerQuery();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    filter("pushState");
  });
  form.addEventListener("input", debounce(() => filter("replaceState"), 250));
  window.addEventListener("popstate", () => {
    fillForm();
    load();
  });
  await load();
  const { folders: all } = await folders();
  at("folders").replaceChildren(...all.slice(0, 1000).map(({ folder }) => el("option", { value: folder })));
});
