// Albums of photos that are linked by verified matches.

import { address, groups as read } from "./api.js";
import { at, count, el } from "./dom.js";
import { paginate, tiles } from "./grid.js";
import { complain, start } from "./page.js";

const PAGE = 20; // groups on one
const AT_FIRST = 12; // photos of a group, before the rest is asked for

function album({ group, photos, links }) {
  const list = el("ul", { class: "grid" }, ...tiles(photos.slice(0, AT_FIRST), {}, 0));
  const rest = photos.slice(AT_FIRST);
  const more = rest.length && el("button", { type: "button", class: "more small", onclick: () => {
    const added = tiles(rest, {}, 0);
    list.append(...added);
    more.remove();
    added[0].querySelector("a").focus();
  } }, `Show ${count(rest.length, "more photo")}`);
  const title = `group-${group}`;
  return el("section", { class: "album", "aria-labelledby": title },
    el("div", { class: "heading" }, el("h2", { id: title }, `Group ${group}`), el("p", { class: "said" }, `${count(photos.length, "photo")}, ${count(links, "link")}`)),
    list, more || null);
}

start(async () => {
  const page = Math.max(Number.parseInt(new URLSearchParams(location.search).get("page") ?? "1", 10) || 1, 1);
  try {
    const { total, groups } = await read({ offset: (page - 1) * PAGE, limit: PAGE });
    const pages = Math.max(Math.ceil(total / PAGE), 1);
    at("said").textContent = total ? `${count(total, "group")} of photos that show the same thing` : "No photos show the same thing.";
    at("csv").hidden = !total;
    at("groups").replaceChildren(...groups.map(album));
    const to = (one) => address("/groups", { page: one });
    paginate(at("pages"), page, pages, to, (one) => location.assign(to(one)));
  } catch (error) {
    if (error.status !== 404) return complain(error);
    at("never").hidden = false; // no error: it was never asked for
    at("never").textContent = error.message;
  }
});
