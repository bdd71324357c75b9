// One album: its photos in its order, and what can be done with it and with those that are chosen.

import { address, allChanged, change, changeMany, json, numbers } from "../api.js";
import { selection, tick } from "../choosing.js";
import { afterPress, at, complain, el } from "../dom.js";
import { tiles } from "../grid.js";
import { t, tn } from "../language.js";
import { entitle, start } from "../page.js";
import { ask, field } from "./dialogs.js";
import { notice } from "./notice.js";

const MOST_IMPRESSIONS = 24; // that the print clock reads at once
const PAGE = 120; // photos that are asked for together
const album = new URLSearchParams(location.search).get("album") ?? "";
const path = `/api/albums/${encodeURIComponent(album)}`;
let facts = null;
let shown = []; // photos
let reading = null; // what is asked for now: another answer is thrown away

const choose = selection({
  container: at("chooser"),
  rest: () => at("title"),
  called: "album",
  actions: [
    { id: "take-out", label: t("Take out"), writes: true, run: takeOut },
    { id: "split", label: t("Split off"), writes: true, run: split },
    { id: "cover", label: t("Make it the cover"), writes: true, run: makeCover, fits: (photos) => photos.length === 1 },
    { id: "to-front", label: t("Move to the front"), writes: true, run: moveToFront },
  ],
  changed: () => reload(),
});

function describe(said) {
  facts = said;
  entitle(said.name);
  at("title").dir = "auto";
  at("said").textContent = tn(said.photos, "{n} photo", "{n} photos");
  at("empty").hidden = said.photos > 0;
  at("tools").hidden = false;
  at("narrow").href = address("/", { album });
  at("narrow").hidden = !said.photos;
  for (const item of at("photos").children) markCover(item);
}

function markCover(item) {
  const is = Number(item.dataset.number) === facts.cover;
  item.querySelector(".is-cover")?.remove();
  if (is) item.append(el("span", { class: "is-cover" }, t("Cover")));
}

/** Show the photos behind those that are shown. */
async function more() {
  if (reading || shown.length >= facts.photos) return;
  const mine = (reading = {});
  try {
    const { photos } = await json(`${path}/photos`, { offset: shown.length, limit: PAGE });
    if (mine !== reading) return;
    const items = tiles(photos, { list: `album=${album}&order=album` }, shown.length ? 0 : undefined);
    items.forEach((item, place) => {
      item.dataset.number = photos[place].number;
      item.prepend(tick(photos[place]));
      markCover(item);
    });
    at("photos").append(...items);
    shown = [...shown, ...photos];
    choose.offer(shown, true);
    at("clock").hidden = shown.length < 2 || facts.photos > MOST_IMPRESSIONS;
    at("clock").href = address("/clock", { q: String(shown[0]?.number), photo: numbers(shown) });
    reading = null;
    if (photos.length && at("end").getBoundingClientRect().top < innerHeight) await more();
  } catch (error) {
    if (mine === reading) reading = null;
    complain(error);
  }
}

/** Show the album anew, as it is now. */
async function reload() {
  describe(await json(path));
  reading = null; // what was asked for meanwhile is of the album as it was
  shown = [];
  at("photos").replaceChildren();
  await more();
}

async function takeOut(photos) {
  const changed = allChanged(await changeMany("POST", `${path}/remove`, "photos", numbers(photos)));
  choose.clear();
  await reload();
  return {
    said: tn(changed.length, "{n} photo taken out.", "{n} photos taken out."),
    undo: changed.length ? () => changeMany("POST", `${path}/photos`, "photos", changed) : null,
    kind: "album",
  };
}

async function split(photos) {
  const [node, input] = field(t("Name of the new album"), { required: true, maxlength: 200, dir: "auto" });
  const made = await ask(tn(photos.length, "Split off {n} photo", "Split off {n} photos"), [node], t("Split off"),
    () => change("POST", `${path}/split`, { photos: numbers(photos), name: input.value }));
  if (!made) return null;
  choose.clear();
  return {
    said: t("The album “{name}” is made.", { name: made.name }),
    undo: () => change("POST", `${path}/merge`, { albums: [made.album] }),
    kind: "album",
  };
}

async function makeCover([{ number }]) {
  describe(await change("PATCH", path, { cover: number }));
  return t("It is the cover now.");
}

async function moveToFront(photos) {
  const chosen = new Set(numbers(photos));
  const first = shown.find(({ number }) => !chosen.has(number));
  if (!first) return null;
  await change("POST", `${path}/move`, { photos: [...chosen], before: first.number });
  await reload();
  return tn(chosen.size, "{n} photo moved.", "{n} photos moved.");
}

/** Let the name be written where it stands: Enter keeps it, Escape leaves it. */
function rename() {
  const title = at("title");
  const input = el("input", { class: "in-place", value: facts.name, maxlength: 200, "aria-label": t("Name of the album"), dir: "auto" });
  let done = false;
  const end = async (keep, back = true) => {
    if (done) return;
    done = true;
    const [before, name] = [facts.name, input.value.trim()];
    title.textContent = before;
    if (back) title.focus();
    if (!keep || !name || name === before) return;
    try {
      describe(await change("PATCH", path, { name }));
      notice(t("The album is now called “{name}”.", { name: facts.name }), async () => describe(await change("PATCH", path, { name: before })));
    } catch (error) {
      complain(error);
    }
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") end(true);
    if (event.key === "Escape") end(false);
  });
  input.addEventListener("blur", () => afterPress(() => end(true, false)));
  complain(null);
  title.replaceChildren(input);
  input.select();
}

async function merge() {
  const { albums } = await json("/api/albums");
  const others = albums.filter((one) => String(one.album) !== album);
  if (!others.length) return notice(t("There is no other album."));
  const ticks = others.map((one) => [one, el("input", { type: "checkbox" })]);
  const list = el("div", { class: "many" }, ...ticks.map(([one, box]) =>
    el("label", { class: "tick" }, box, el("span", { dir: "auto" }, one.name), el("span", { class: "hint" }, tn(one.photos, "{n} photo", "{n} photos")))));
  const merged = await ask(t("Merge into “{name}”", { name: facts.name }), [el("p", { class: "hint" }, t("The photos of these albums are put in here, and the albums are deleted.")), list], t("Merge"), async () => {
    const ids = ticks.filter(([, box]) => box.checked).map(([one]) => one.album);
    if (!ids.length) throw new Error(t("Choose an album."));
    return change("POST", `${path}/merge`, { albums: ids });
  });
  if (merged) await reload();
}

async function remove() {
  const gone = await ask(t("Delete the album “{name}”?", { name: facts.name }), [el("p", {}, t("Its photos stay in the collection."))], t("Delete"),
    () => change("DELETE", path));
  if (!gone) return;
  const back = async () => {
    const made = await change("POST", "/api/albums", { name: gone.name, photos: gone.numbers, cover: gone.cover });
    location.replace(address("/album", { album: made.album }));
  };
  at("photos").replaceChildren();
  at("tools").hidden = true;
  at("said").textContent = t("This album is deleted.");
  choose.clear();
  at("title").focus();
  notice(t("The album “{name}” is deleted.", { name: gone.name }), back);
}

start(async () => {
  if (!/^\d+$/.test(album)) throw new Error(t("The address names no album."));
  const listen = (id, kind, action) => at(id).addEventListener(kind, () => Promise.resolve(action()).catch(complain));
  listen("rename", "click", rename);
  listen("merge", "click", merge);
  listen("delete", "click", remove);
  listen("share", "click", async () => {
    const { shareAlbum } = await import("./sharing.js");
    await shareAlbum(facts);
  });
  listen("order", "change", async () => {
    const order = at("order").value;
    if (order) await change("PATCH", path, { order });
    at("order").value = "";
    await reload();
  });
  new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && facts && more(), { rootMargin: "600px" }).observe(at("end"));
  await reload();
});
