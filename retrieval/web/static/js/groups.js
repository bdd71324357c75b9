// Albums of photos that are linked by verified matches.

import { address, change, groups as read } from "./api.js";
import { selection, tick } from "./choosing.js";
import { at, complain, el } from "./dom.js";
import { paginate, tiles } from "./grid.js";
import { t, tn } from "./language.js";
import { start } from "./page.js";
import { nameList } from "./photos/list.js";
import { advise } from "./jobs/jobs.js";

const PAGE = 20; // groups on one
const AT_FIRST = 12; // photos of a group, before the rest is asked for

/** Tiles that say which photos are near duplicates of which. */
function entries(photos, names, list) {
  return tiles(photos, { list }, 0).map((tile, place) => {
    tile.prepend(tick(photos[place]));
    const original = photos[place].duplicate_of ?? null;
    if (original === null) return tile;
    const said = names.has(original) ? t("near duplicate of {name}", { name: names.get(original) }) : t("near duplicate of another");
    tile.append(el("p", { class: "measure" }, said));
    return tile;
  });
}

/** Ask for a name, and make an album of a group. */
async function makeAlbum(group, photos) {
  const { ask, field } = await import("./curation/dialogs.js");
  const titled = photos.find((photo) => photo.title)?.title ?? "";
  const [node, input] = field(t("Name"), { required: true, maxlength: 200, value: titled, dir: "auto" });
  const made = await ask(tn(photos.length, "Make an album of {n} photo", "Make an album of {n} photos"), [node], t("Create"),
    () => change("POST", "/api/albums", { name: input.value, photos: photos.map(({ number }) => number) }));
  if (made) location.assign(address("/album", { album: made.album }));
}

function album({ group, photos, links }) {
  const names = new Map(photos.map(({ number, name }) => [number, name]));
  const all = nameList(photos.map(({ number }) => number)); // so that one comes from one to the next of them
  const list = el("ul", { class: "grid" }, ...entries(photos.slice(0, AT_FIRST), names, all));
  const rest = photos.slice(AT_FIRST);
  const more = rest.length && el("button", { type: "button", class: "more small", onclick: () => {
    const added = entries(rest, names, all);
    list.append(...added);
    more.remove();
    added[0].querySelector("a").focus();
  } }, tn(rest.length, "Show {n} more photo", "Show {n} more photos"));
  const title = `group-${group}`;
  return el("section", { class: "album", "aria-labelledby": title },
    el("div", { class: "heading" }, el("h2", { id: title }, t("Group {number}", { number: group })), el("p", { class: "said" }, `${tn(photos.length, "{n} photo", "{n} photos")}, ${tn(links, "{n} pair matches", "{n} pairs match")}`),
      el("button", { type: "button", class: "small writes", onclick: () => makeAlbum(group, photos).catch(complain) }, t("Make an album"))),
    list, more || null);
}

const page = Math.max(Number.parseInt(new URLSearchParams(location.search).get("page") ?? "1", 10) || 1, 1);

async function load() {
  try {
    const { total, groups, out_of_date: old } = await read({ offset: (page - 1) * PAGE, limit: PAGE });
    const pages = Math.max(Math.ceil(total / PAGE), 1);
    at("said").textContent = total
      ? tn(total, "{n} group of photos that show the same thing", "{n} groups of photos that show the same thing")
      : t("No photos show the same thing.");
    at("csv").hidden = at("to-duplicates").hidden = !total;
    advise(at("note"), old && t("Photos were added, hidden or removed since these groups were found."), t("Find groups again"), "group");
    at("groups").replaceChildren(...groups.map(album));
    choose.offer(groups.flatMap(({ photos }) => photos), true);
    const to = (one) => address("/groups", { page: one });
    paginate(at("pages"), page, pages, to, (one) => location.assign(to(one)));
  } catch (error) {
    if (error.status !== 404) return complain(error);
    // No error: it was never asked for.
    const what = t("Cairn can find photos that show the same thing, such as one building from several sides, and copies of photos.");
    advise(at("note"), what, t("Find groups"), "group");
  }
}

// Shown anew without leaving the page, so that what was done can still be undone.
const choose = selection({ container: at("chooser"), rest: () => at("title"), called: t("groups"), changed: (kind) => kind !== "album" && load() });

start(load);
