// One photo, as large as the window: with the box tool, what is known of it, and the photos before and after it.

import { address, image, photo as read, thumbnail } from "./api.js";
import { boxTool } from "./box.js";
import { editFacts } from "./curation/editing.js";
import { at, complain, el } from "./dom.js";
import { fields, shown } from "./fields.js";
import { calledBy } from "./grid.js";
import { figure, fixed, moment, t, tn } from "./language.js";
import { entitle, start } from "./page.js";
import { citation } from "./photos/citing.js";
import { listAddress, numbersOf } from "./photos/list.js";
import { objects } from "./photos/objects.js";
import { playing } from "./photos/playing.js";
import { drawing, fullScreen, keys, panel, swipe } from "./photos/viewer.js";
import { photoAddress } from "./photos/wall.js";
import { format, pending, searchAddress } from "./query.js";
import { offerCover } from "./shelf/cover.js";

const SIZES = [1600, 2560, 4096]; // of pictures that are asked for

/** A place, as maps say it. */
function position({ latitude, longitude }) {
  const [north, east] = [latitude, longitude].map((value) => fixed(Math.abs(value), 5));
  return [
    latitude < 0 ? t("{degrees}° S", { degrees: north }) : t("{degrees}° N", { degrees: north }),
    longitude < 0 ? t("{degrees}° W", { degrees: east }) : t("{degrees}° E", { degrees: east }),
  ].join(", ");
}

/** A field of a photo, as a row; links lead to photos that say the same. */
function row(field, photo) {
  const value = photo[field.name];
  const link = (path, filters, text = shown(field, value)) => el("a", { href: address(path, filters), dir: "auto" }, text);
  if (field.kind === "degrees") return field.name === "latitude" && value !== null && [t("Position"), link("/map", { at: [value, photo.longitude, 12].join(",") }, position(photo))];
  if (!value || value.length === 0 || (field.name === "caption" && value === photo.title)) return null;
  if (field.kind === "date") return [field.label, link("/", { taken_from: value.slice(0, 10), taken_to: value.slice(0, 10) })];
  if (field.kind === "tags") return [field.label, el("ul", { class: "tags" }, ...value.map((tag) => el("li", {}, link("/", { tag }, tag))))];
  return [field.label, field.facet ? link("/", { [field.name]: value }) : shown(field, value)];
}

/** What is known of a photo, as terms and descriptions; all of it is text, whatever it says. */
function facts(photo) {
  const link = (text, path, filters) => el("a", { href: address(path, filters), dir: "auto" }, text);
  const rows = [
    [t("Name"), photo.name],
    ...fields.map((field) => row(field, photo)).filter(Boolean),
    [t("Folder"), photo.folder && link(photo.folder, "/", { folder: photo.folder })],
    [t("Size"), t("{width} × {height} pixels", { width: photo.width, height: photo.height })],
    [t("Details to recognise"), figure(photo.features)],
    [t("Film"), playing(photo)],
    [t("Added"), photo.date_added && moment(photo.date_added)],
    ...Object.entries(photo.others ?? {}).map(([name, values]) => [name, values.join("; ")]),
    [t("Cite as"), citation(photo)],
  ];
  return rows.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
}

const asked = new URLSearchParams(location.search);
const list = asked.get("list") ?? "";
const known = new Map(); // promises of photos, by numbers
let numbers = []; // of the list
let current = null; // the photo that is shown
let wanted = null; // the number that was asked for last
let tool = null; // the box tool with the photo
const unsay = offerCover(() => current);

function know(number) {
  if (!known.has(number)) known.set(number, read(number).catch((error) => {
    known.delete(number);
    throw error;
  }));
  return known.get(number);
}

/** The picture's address, as large as the window needs it. */
function large(number) {
  const side = Math.max(innerWidth, innerHeight) * Math.min(devicePixelRatio, 2);
  return image(number, SIZES.find((size) => 1.2 * size >= side) ?? SIZES.at(-1));
}

const neighbour = (way) => {
  const place = numbers.indexOf(current?.number);
  return place < 0 ? undefined : numbers[place + way];
};

function showBox(photo, mode) {
  const { q, ...options } = pending();
  const update = (box) => {
    const own = format({ photo: photo.number, upload: null, box });
    at("search").href = searchAddress([own], { engine: options.engine });
    at("search").textContent = box ? t("Search with this box") : t("Search with the whole photo");
    at("add").hidden = !q.length;
    at("add").href = searchAddress([...q, own], options);
    at("add").textContent = tn(q.length, "Add to the query of {n} photo", "Add to the query of {n} photos");
  };
  tool = boxTool({ ...photo, large: large(photo.number) }, null, update, {
    free: true,
    // A photo that is zoomed is moved, unless a box is to be drawn; edges of a box that is there are always moved.
    pans: (event) => !mode.is() && !event.target.dataset?.edge,
    starts: (event) => event.pointerType !== "touch" || mode.is(), // fingers turn to the next photo
  });
  tool.content.style.setProperty("background-image", `url("${thumbnail(photo.number, 512)}")`); // until the large one is there
  at("box-part").replaceChildren(...at("tool").querySelectorAll(".box-numbers, .hint"));
  tool.surface.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && tool.box && !event.defaultPrevented) at("search").click();
  });
  update(null);
  if (mode.is()) tool.surface.focus({ preventScroll: true });
}

function showPlace() {
  const place = numbers.indexOf(current.number);
  at("place").textContent = place < 0 ? "" : t("{place} of {total}", { place: figure(place + 1), total: figure(numbers.length) });
  for (const [id, way] of [["previous", -1], ["next", 1]]) {
    const number = neighbour(way);
    at(id).hidden = number === undefined;
    if (number === undefined) continue;
    at(id).href = photoAddress(number, list, pending());
    know(number).catch(() => {});
    new Image().src = large(number);
  }
  at("close").href = listAddress(list, current.number);
}

/** Say anew what is known of a photo, after it was edited. */
async function refresh(number) {
  const photo = await read(number);
  known.set(number, Promise.resolve(photo));
  if (current.number === number) {
    showFacts(photo);
    entitle(calledBy(photo));
  }
  return photo;
}

/** Say what is known of a photo, and why it cannot be found by what it shows, where that is so. */
function showFacts(photo) {
  at("facts").replaceChildren(...facts(photo));
  at("featureless").hidden = photo.features > 0;
}

async function show(number, mode) {
  wanted = number;
  const photo = await know(number);
  if (wanted !== number) return; // another one was asked for meanwhile
  current = photo;
  complain(null);
  unsay();
  entitle(calledBy(photo));
  showFacts(photo);
  at("editing").replaceChildren();
  editFacts(at("editing"), photo, () => refresh(number));
  at("page").hidden = false;
  showBox(photo, mode);
  showPlace();
  objects(tool.content, photo, at("objects")).catch(() => {}); // the photo is seen without them
}

start(async () => {
  const number = asked.get("number");
  if (!/^\d+$/.test(number ?? "")) throw new Error(t("The address names no photo: pick one from the photos."));
  // Whether the page before this one is the list, so that going back is the way to it.
  if (sessionStorage.getItem("cairn.entered")) history.replaceState({ entered: true }, "");
  sessionStorage.removeItem("cairn.entered");
  at("close").href = listAddress(list, Number(number));
  const toggle = panel();
  const mode = drawing();
  const turn = async (way) => {
    const next = neighbour(way);
    if (next === undefined) return;
    history.replaceState(history.state, "", photoAddress(next, list, pending()));
    await show(next, mode).catch(complain);
  };
  const leave = () => {
    if (current) sessionStorage.setItem("cairn.viewed", current.number);
    if (history.state?.entered) history.back();
    else location.assign(at("close").href);
  };
  const plain = (event) => !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
  for (const [id, act] of [["previous", () => turn(-1)], ["next", () => turn(1)], ["close", leave]]) {
    at(id).addEventListener("click", (event) => {
      if (!plain(event)) return;
      event.preventDefault();
      act();
    });
  }
  at("full").addEventListener("click", fullScreen);
  swipe({ turn, leave, off: () => mode.is() || tool?.zoom.zoomed });
  const zoom = (event) => tool?.zoom.key(event) ?? false;
  keys({
    ArrowLeft: (event) => zoom(event) || turn(-1), ArrowRight: (event) => zoom(event) || turn(1), ArrowUp: zoom, ArrowDown: zoom,
    "+": zoom, "=": zoom, "-": zoom, 0: zoom, Escape: () => (tool?.zoom.zoomed ? tool.zoom.fit() : leave()),
    i: toggle, f: fullScreen, b: () => mode.set(!mode.is()),
  });
  await show(Number(number), mode);
  numbers = await numbersOf(list);
  showPlace();
});
