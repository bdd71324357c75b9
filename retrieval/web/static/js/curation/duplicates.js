// Near duplicates, or similar shots, one set after another: side by side or flickering, the best one proposed; keep,
// hide, or to the bin. All sets at once are shown by duplicate_list.js.

import { address, change, image, json, numbers } from "../api.js";
import { at, complain, el } from "../dom.js";
import { nameLine } from "../grid.js";
import { figure, t, taken, tn } from "../language.js";
import { start } from "../page.js";
import { Zoom } from "../photos/zoom.js";
import { notice } from "./notice.js";
import { advise } from "../jobs/jobs.js";

const FAST = 450; // milliseconds that each photo is shown for while they flicker
const SIDE = 1024; // pixels of the pictures

const asking = new URLSearchParams(location.search);
const similar = asking.get("list") === "similar"; // shots, in place of copies
const atOnce = asking.get("view") === "all"; // all sets, in place of one after another

let total = 0;
let place = 0; // of the set that is shown, among those that are not decided
let shown = null; // that set
let chosen = 0; // number of the photo that is kept
let canBin = false;
let busy = false;
let timer = 0;
let asked = 0; // times: an answer that a later one has overtaken is thrown away
let zooms = []; // of the photos of the set
const done = []; // what was decided, to be taken back

const WHY = {
  there: () => t("the files of others are gone"),
  link: () => t("others are links"),
  kind: () => t("others are parts, framed, negatives, turned, mirrored, or without colours"),
  said: () => t("it has a title, a caption, tags or an album"),
  copy: () => t("the names of others say that they are copies"),
  resolution: () => t("it has the most pixels"),
  date: () => t("it was taken first"),
  name: () => t("the names of others are numbered"),
  format: () => t("its format loses less"),
  folder: () => t("others lie in a folder of copies"),
  size: () => t("its file is the largest"),
};

const reasons = (words) => words.length ? t("Proposed: {reasons}.", { reasons: words.map((word) => WHY[word]()).join(", ") }) : t("Proposed: nothing tells them apart.");

// What a photo is of the original of its set.
const KINDS = {
  copy: (name) => t("a copy of {name}", { name }),
  part: (name) => t("a part of {name}", { name }),
  framed: (name) => t("{name} with a frame or bars", { name }),
  negative: (name) => t("a negative of {name}", { name }),
  grey: (name) => t("{name} without its colours", { name }),
  turned: (name) => t("{name}, turned or mirrored", { name }),
};

// Why it is not cleared away.
const STAYS = {
  said: () => t("stays: has a title, a caption, tags or an album"),
  kind: () => t("stays: shows what others do not"),
};

function kindLine({ kind }) {
  const original = shown.photos.find((one) => !one.kind) ?? shown.photos[0];
  return kind && el("p", { class: "kind" }, KINDS[kind](original.name));
}

const megabytes = (bytes) => bytes === null ? null : t("{size} MB", { size: figure(bytes / 1e6, { maximumFractionDigits: 1, minimumFractionDigits: 1 }) });

function facts(photo) {
  const row = (name, value, better) => value && [el("dt", {}, name), el("dd", { class: better ? "better" : null }, value)];
  const pixels = (one) => (one.width ?? 0) * (one.height ?? 0);
  const most = (measure) => shown.photos.every((one) => measure(one) <= measure(photo)) && shown.photos.some((one) => measure(one) < measure(photo));
  return el("dl", { class: "facts" },
    ...[
      row(t("Size"), photo.width && `${figure(photo.width)} × ${figure(photo.height)}`, most(pixels)),
      row(t("Taken"), photo.taken ? taken(photo.taken) : t("not known")),
      row(t("Format"), photo.format.toUpperCase() || null),
      row(t("File"), megabytes(photo.size), most((one) => one.size ?? 0)),
      row(t("Folder"), photo.folder || null),
    ].filter(Boolean).flat());
}

/** A photo that is zoomed together with the others of its set. */
function zoomable(photo) {
  const picture = el("img", { src: image(photo.number, SIDE), alt: photo.name, draggable: "false" });
  const view = el("div", { class: "zoom-view" }, el("div", { class: "zoom-content" }, picture));
  const { width, height } = photo.width && photo.height ? photo : { width: SIDE, height: SIDE };
  view.style.setProperty("--ratio", width / height);
  const onChange = (zoom) => {
    const seen = zoom.part(...zoom.middle);
    for (const other of zooms) if (other !== zoom) other.to(zoom.factor, other.middle, seen, false);
  };
  const zoom = new Zoom(view, view.firstChild, [{ picture, photo: { width, height, number: photo.number } }], { onChange });
  view.append(zoom.controls);
  zooms.push(zoom);
  return view;
}

function candidate(photo, index) {
  const radio = el("input", { type: "radio", name: "keep", value: photo.number, checked: photo.number === chosen, onchange: () => choose(photo.number) });
  return el("li", { class: photo.number === chosen ? "candidate kept" : "candidate" },
    zoomable(photo),
    el("label", { class: "tick writes" }, radio, el("kbd", {}, String(index + 1)), el("span", { class: "badge" }, photo.number === chosen ? t("Kept") : t("Keep this one"))),
    nameLine("a", photo.name, { href: address("/photo", { number: photo.number }) }),
    kindLine(photo),
    photo.stays && el("p", { class: "stays" }, STAYS[photo.stays]()),
    facts(photo));
}

function choose(number) {
  chosen = number;
  for (const [index, node] of [...at("candidates").children].entries()) {
    const is = shown.photos[index].number === number;
    node.classList.toggle("kept", is);
    node.querySelector("input").checked = is;
    node.querySelector(".badge").textContent = is ? t("Kept") : t("Keep this one");
  }
  propose();
}

/** Numbers of the photos beside the chosen one: of those that stay whatever is done, and of those that may go. */
function others() {
  const left = (shown?.photos ?? []).filter(({ number }) => number !== chosen);
  return { stay: numbers(left.filter(({ stays }) => stays)), go: numbers(left.filter(({ stays }) => !stays)) };
}

/** Say which of the others stay, and propose to hide the others or to keep all. */
function propose() {
  const { stay, go } = others();
  at("stay").hidden = !stay.length;
  at("stay").textContent = tn(stay.length, "{n} other stays, whichever you keep.", "{n} others stay, whichever you keep.");
  for (const id of ["hide-others", "bin-others"]) at(id).disabled = !go.length;
  const proposed = shown?.proposed === "hide" && go.length ? "hide-others" : "keep-all";
  for (const id of ["hide-others", "keep-all"]) at(id).classList.toggle("primary", id === proposed);
}

// Flicker

function stopFlicker() {
  clearInterval(timer);
  timer = 0;
  at("flicker").setAttribute("aria-pressed", "false");
  at("stage").hidden = true;
  at("stage").replaceChildren();
  at("candidates").hidden = false;
  zooms.length = at("candidates").children.length; // without those of the stage
}

/** Show the photos one after the other at the same place, zoomed alike; those who want no motion see each for longer. */
function flicker() {
  if (timer) return stopFlicker();
  const pictures = shown.photos.map((photo, index) => el("figure", { hidden: index > 0 },
    zoomable(photo), el("figcaption", {}, `${index + 1}. ${photo.name}`)));
  const own = zooms.slice(-pictures.length);
  at("stage").replaceChildren(...pictures);
  at("stage").hidden = false;
  at("candidates").hidden = true;
  at("flicker").setAttribute("aria-pressed", "true");
  let current = 0;
  const turn = () => {
    const last = own[current];
    if (last.grip) return; // somebody drags it
    const seen = last.part(...last.middle);
    current = (current + 1) % pictures.length;
    for (const [index, node] of pictures.entries()) node.hidden = index !== current;
    own[current].to(last.factor, own[current].middle, seen, false);
  };
  timer = setInterval(turn, matchMedia("(prefers-reduced-motion: reduce)").matches ? 4 * FAST : FAST);
}

// Sets

const read = (offset, limit = 1) => json("/api/duplicates", { offset, limit, similar: similar || null });

/** Say what there is of both lists, and lead to them. */
function describe(page) {
  ({ total, bin: canBin } = page);
  advise(at("note"), page.out_of_date && t("Photos were added, hidden or removed since these groups were found."), t("Find groups again"), "group");
  at("copies").textContent = t("Copies ({count})", { count: figure(page.copies) });
  at("similar").textContent = t("Similar shots ({count})", { count: figure(page.similar) });
  at("copies").href = address("/duplicates", { view: atOnce ? "all" : null });
  at("similar").href = address("/duplicates", { list: "similar", view: atOnce ? "all" : null });
  at(similar ? "similar" : "copies").setAttribute("aria-current", "page");
  at("one-view").href = address("/duplicates", { list: similar ? "similar" : null });
  at("all-view").href = address("/duplicates", { list: similar ? "similar" : null, view: "all" });
  at(atOnce ? "all-view" : "one-view").setAttribute("aria-current", "page");
  at("lists").hidden = false;
  at("views").hidden = !total;
  const none = similar ? t("There are no similar shots to decide about.") : t("There are no duplicates to decide about.");
  at("said").textContent = total ? tn(total, "{n} set to decide about", "{n} sets to decide about") : none;
  at("to-bin").hidden = !canBin;
}

/** Show a set, or the next one in a direction: files that several photos lead to are counted, but are no set. */
async function show(next, focus = true, step = 1) {
  stopFlicker();
  place = Math.max(0, next);
  const mine = (asked += 1);
  let page = await read(place);
  while (mine === asked && !page.sets.length && page.total) {
    const last = page.total - 1;
    if (place > last) place = last;
    else if (step > 0 ? place < last : place > 0) place += step;
    else break;
    page = await read(place);
  }
  if (mine !== asked) return;
  describe(page);
  [shown = null] = page.sets;
  at("review").hidden = !shown && !done.length;
  at("candidates").hidden = !shown;
  at("different").hidden = !shown || !similar;
  for (const id of ["keep-all", "flicker"]) at(id).disabled = !shown;
  at("bin-others").hidden = !canBin;
  at("undo-last").disabled = !done.length;
  at("previous-set").disabled = place === 0;
  at("next-set").disabled = place >= total - 1;
  at("why").textContent = shown?.proposed === "hide" ? reasons(shown.reasons) : "";
  at("set-title").textContent = shown ? t("Set {place} of {total}", { place: figure(place + 1), total: figure(total) }) : t("Everything is decided");
  chosen = shown?.photos[0].number ?? 0;
  propose();
  zooms = [];
  at("candidates").replaceChildren(...(shown?.photos ?? []).map(candidate));
  if (focus) at("set-title").focus({ preventScroll: true });
}

/** Decide about the set that is shown; `act` gives {said, undo}. */
async function decide(act) {
  if (busy || !shown) return;
  busy = true;
  try {
    complain(null);
    const { said, undo } = await act();
    if (undo) done.push({ undo, place });
    await show(place);
    notice(said, undo && takeBack);
  } catch (error) {
    complain(error);
  }
  busy = false;
}

async function takeBack() {
  if (busy || !done.length) return;
  busy = true;
  const last = done.at(-1);
  try {
    complain(null);
    await last.undo();
    done.pop();
    await show(last.place);
    notice(t("Undone"));
  } catch (error) {
    complain(error);
  }
  busy = false;
}

const keep = (photos) => change("POST", "/api/duplicates/kept", { photos });
const askAgain = (photos) => change("POST", "/api/duplicates/ask", { photos });

const keepAll = () => decide(async () => {
  const photos = shown.photos.map(({ number }) => number);
  await keep(photos);
  return { said: t("All photos are kept."), undo: () => askAgain(photos) };
});

/** Decide by clearing the others away; what stays of them is kept with the chosen one, and not asked about again. */
function clear(act) {
  const { stay, go } = others();
  if (!go.length) return null;
  return decide(async () => {
    const { said, undo } = await act(go);
    if (!stay.length || !undo) return { said, undo };
    const left = [chosen, ...stay];
    await keep(left);
    return { said, undo: async () => { await undo(); await askAgain(left); } };
  });
}

const hideOthers = () => clear(async (photos) => {
  const { changed } = await change("POST", "/api/hidden", { photos, because: "duplicate" });
  return { said: tn(changed.length, "{n} photo hidden.", "{n} photos hidden."), undo: () => change("POST", "/api/hidden/show", { photos: changed }) };
});

const binOthers = () => canBin && clear(async (photos) => {
  const { moved, failed } = await change("POST", "/api/bin", { photos });
  const said = [moved.length && tn(moved.length, "{n} photo moved to the bin.", "{n} photos moved to the bin."), ...new Set(failed.map(({ reason }) => reason))];
  const back = async () => {
    const { failed: left } = await change("POST", "/api/bin/back", { entries: [...new Set(moved.map(({ id }) => id))] });
    if (left.length) throw new Error(left.map(({ reason }) => reason).join(" "));
  };
  return { said: said.filter(Boolean).join(" "), undo: moved.length ? back : null };
});

// Keys

const KEYS = {
  f: flicker, " ": flicker, h: hideOthers, k: keepAll, z: takeBack, Delete: binOthers,
  ArrowLeft: () => place > 0 && show(place - 1, true, -1), ArrowRight: () => place < total - 1 && show(place + 1),
};
const WRITING = new Set(["h", "k", "z", "Delete"]);

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("dialog, select, input:not([type=radio])")) return;
  if ([" ", "ArrowLeft", "ArrowRight"].includes(event.key) && event.target.closest("button, a, summary, input")) return; // theirs
  if (!shown && event.key !== "z") return;
  if (zooms.find(({ view }) => view.checkVisibility())?.key(event, false)) return event.preventDefault();
  const index = Number(event.key) - 1;
  if (shown && event.key !== " " && shown.photos[index]) {
    choose(shown.photos[index].number);
  } else {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (!KEYS[key] || (WRITING.has(key) && document.body.classList.contains("read-only"))) return;
    Promise.resolve(KEYS[key]()).catch(complain);
  }
  event.preventDefault();
}

start(async () => {
  if (similar) at("hide-others").before(at("keep-all"));
  const listen = (id, act) => at(id).addEventListener("click", () => Promise.resolve(act()).catch(complain));
  listen("hide-others", hideOthers);
  listen("keep-all", keepAll);
  listen("bin-others", binOthers);
  listen("undo-last", takeBack);
  listen("flicker", flicker);
  listen("previous-set", KEYS.ArrowLeft);
  listen("next-set", KEYS.ArrowRight);
  document.addEventListener("keydown", press);
  try {
    if (atOnce) {
      const { showAll } = await import("./duplicate_list.js");
      await showAll({ read, reasons, update: describe, one: (number) => address("/duplicates", { list: similar ? "similar" : null, set: number }) });
    } else await show(Number(asking.get("set") ?? 0) || 0, false);
  } catch (error) {
    if (error.status !== 404) throw error;
    // No error: groups were never looked for.
    advise(at("note"), t("Duplicates are found together with groups, which have not been searched for yet."), t("Find groups"), "group");
  }
});
