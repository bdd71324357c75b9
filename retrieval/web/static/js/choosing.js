// Photos that are chosen: a tick on each, a bar that counts them, and what can be done with them.
//
// A page that lets photos be chosen puts `tick(photo)` into each tile and calls once
//
//   const chosen = selection({
//     container,             // the element in which ticks come and go: clicks and keys are listened to here
//     place,                 // whose last child the bar becomes; container, where it is left out
//     rest,                  // element (or a function that gives it) that gets the focus when the bar goes away
//     photo: (number) => …,  // the photo of a tick: {number, name, title, …}; where it is left out, see `offer`
//     between: (a, b) => …,  // photos from number a to number b, for Shift; where it is left out, the ticks between
//     actions: [{ id, label, run, writes, fits }],
//                            // what else this page does with photos, first in the bar: `run(photos, chosen)` may give
//                            // (a promise of) what is said then: a text, or {said, undo, kind}; `writes`: not for those
//                            // who may only read; `fits(photos)`: whether it makes sense of them
//     changed: (kind, photos) => …, // photos were changed ("edit", "album", "hide", "remove", or an action's kind): show them anew
//     called: t("results"),  // how saved tables are called
//   });
//
// and uses chosen.offer(photos, keep) when it shows other photos (a list page), or chosen.refresh() when ticks have come
// (a page that makes and drops tiles as one scrolls), chosen.set(photo, on), chosen.has(number), chosen.numbers(),
// chosen.photos(), chosen.clear() and chosen.listen((size) => …). A page that knows numbers alone, such as a wall of many
// thousand photos, uses chosen.toggle(numbers, on), chosen.has(number) and chosen.size: what is missing of a photo is asked for.

import { photos as read, take } from "./api.js";
import { at, el, save } from "./dom.js";
import { toCsv, toJson, toNames } from "./exporting.js";
import { t, tn } from "./language.js";

const AT_ONCE = 200; // photos that are asked for together

/** The tick of a photo. */
export const tick = ({ number, name }) => el("input", { type: "checkbox", class: "pick", value: number, "aria-label": t("Select {name}", { name }) });

/** Copy a text; gives whether the browser lets a page do so. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // not allowed where the address is not secure: the old way
    const before = document.activeElement;
    const area = el("textarea", { class: "unseen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    before?.focus({ preventScroll: true });
    return done;
  }
}

/** A button that opens a small menu of others; it closes when one is chosen, by Escape and by a click elsewhere. */
function menu(id, label, ...entries) {
  const node = el("details", { class: "menu", id }, el("summary", { class: "button small" }, label), el("div", { class: "entries" }, ...entries));
  node.addEventListener("click", (event) => {
    if (!event.target.closest("button")) return;
    node.open = false;
    node.querySelector("summary").focus(); // the button is not seen any more
  });
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !node.open) return;
    event.stopPropagation(); // it is the menu that is left, not the selection
    node.open = false;
    node.querySelector("summary").focus();
  });
  document.addEventListener("click", (event) => {
    if (!node.contains(event.target)) node.open = false;
  });
  return node;
}

/** Let photos of a page be chosen: see above. */
export function selection({ container, place = container, rest = null, photo = null, between = null, actions = [], changed = () => {}, called = "photos" }) {
  const chosen = new Map(); // photos by their numbers
  const listeners = [];
  let offered = new Map(); // photos by their numbers, in order
  let last = null; // number of the tick that was clicked last: where a range begins
  let busy = false;

  const ticks = () => [...container.querySelectorAll(".pick")];
  const find = (number) => photo?.(number) ?? offered.get(number) ?? chosen.get(number) ?? { number };
  const inOrder = () => {
    const known = [...offered.values()].filter(({ number }) => chosen.has(number));
    return known.length === chosen.size ? known : [...chosen.values()];
  };

  /** Ask for what is not known of the chosen photos, of all of which names are needed. */
  async function complete() {
    const unknown = [...chosen.values()].filter(({ name }) => name === undefined).map(({ number }) => number);
    for (let from = 0; from < unknown.length; from += AT_ONCE) {
      const found = await read({ numbers: unknown.slice(from, from + AT_ONCE) });
      for (const one of found.photos) if (chosen.has(one.number)) chosen.set(one.number, one);
    }
    return inOrder().filter(({ name }) => name !== undefined); // others are not there any more
  }

  const counted = el("span", { id: "chosen", role: "status" });
  const told = el("span", { class: "said", id: "copied", role: "status" });
  const button = (id, label, run, { writes = false, named = false } = {}) => {
    const node = el("button", { type: "button", class: writes ? "small writes" : "small", id }, label);
    node.addEventListener("click", () => perform(run, named));
    return node;
  };
  const own = actions.map((one) => [one, button(one.id, one.label, one.run, one)]);
  const bar = el("div", { class: "choice", id: "choice", role: "group", "aria-label": t("Selected photos"), hidden: true },
    counted, told,
    el("div", { class: "acts" },
      ...own.map(([, node]) => node),
      button("to-album", t("Add to album"), dialog("askAlbum"), { writes: true }),
      button("edit-tags", t("Tags"), dialog("askTags"), { writes: true }),
      button("edit-photos", t("Title and caption"), dialog("askDetails"), { writes: true }),
      button("hide-photos", t("Hide"), dialog("hidePhotos"), { writes: true }),
      button("remove-photos", t("Remove"), dialog("askRemoval"), { writes: true }),
      menu("save", t("Save"),
        button("save-files", t("Photos as a ZIP file"), () => collect("zip", "photos.zip")),
        button("save-sheet", t("Contact sheet (PDF)"), () => collect("sheet", "contact-sheet.pdf")),
        button("save-png", t("Contact sheet (PNG)"), () => collect("png", "contact-sheet.png")),
        button("save-csv", t("Table (CSV)"), (photos) => save(new Blob([toCsv(photos)], { type: "text/csv;charset=utf-8" }), `${called}.csv`), { named: true }),
        button("save-json", t("Table (JSON)"), (photos) => save(new Blob([toJson(photos)], { type: "application/json" }), `${called}.json`), { named: true }),
        button("copy-names", t("Copy names"), async (photos) => {
          const done = await copy(toNames(photos));
          return done ? tn(photos.length, "{n} name copied", "{n} names copied") : t("This browser does not let a page copy: save a file.");
        }, { named: true })),
      el("button", { type: "button", class: "small", id: "choose-none", onclick: () => clear() }, t("Select none"))));
  place.append(bar);

  /** Have the server make a file of the chosen photos, and keep it. */
  async function collect(form, name) {
    told.textContent = t("Collecting the photos…");
    save(await take([...chosen.keys()], form), name);
    return "";
  }

  /** What one of the dialogs does, which are loaded when they are needed. */
  function dialog(name) {
    return async (photos) => (await import("./curation/dialogs.js"))[name](photos);
  }

  /** Do something with the chosen photos, one thing at a time, and say how it went. */
  async function perform(run, named) {
    if (busy || !chosen.size) return;
    busy = true;
    try {
      const photos = named ? await complete() : inOrder();
      const answer = await run(photos, chooser);
      const { said = "", undo = null, kind = null } = typeof answer === "string" ? { said: answer } : answer ?? {};
      if (kind) changed(kind, photos);
      if (kind === "remove" || kind === "hide") clear(); // they are not there any more
      if (undo || (said && !chosen.size)) {
        const { notice } = await import("./curation/notice.js");
        notice(said, undo && (async () => {
          await undo();
          changed(kind, photos);
        }));
      } else {
        told.textContent = said;
      }
    } catch (error) {
      told.textContent = error.message || String(error);
    }
    busy = false;
  }

  /** Show what is chosen. */
  function show() {
    for (const one of ticks()) one.checked = chosen.has(Number(one.value));
    const inside = bar.contains(document.activeElement);
    const size = chosen.size;
    const photos = size ? inOrder() : [];
    for (const [{ fits }, node] of own) node.hidden = Boolean(fits) && !fits(photos);
    container.classList.toggle("choosing", size > 0);
    bar.hidden = !size;
    counted.textContent = size ? tn(size, "{n} photo selected", "{n} photos selected") : "";
    told.textContent = "";
    document.documentElement.style.setProperty("--choice", `${bar.offsetHeight}px`); // what is said stands above it
    if (inside && !size) (typeof rest === "function" ? rest() : rest)?.focus({ preventScroll: true }); // the bar is hidden now
    for (const listener of listeners) listener(size);
  }

  function put(photos, on) {
    for (const one of photos) {
      if (!one) continue;
      if (on) chosen.set(one.number, one);
      else chosen.delete(one.number);
    }
    show();
  }

  function clear() {
    chosen.clear();
    last = null;
    show();
  }

  /** A tick was clicked: with Shift, all from the last one to it become as it is. */
  function pick(target, range) {
    const number = Number(target.value);
    let photos = [find(number)];
    if (range && last !== null && last !== number) {
      if (between) {
        photos = between(last, number);
      } else {
        const seen = ticks().filter((one) => one.checkVisibility()).map((one) => Number(one.value)); // not what is folded away
        const ends = [seen.indexOf(last), seen.indexOf(number)].sort((a, b) => a - b);
        if (ends[0] >= 0) photos = seen.slice(ends[0], ends[1] + 1).map(find);
      }
    }
    last = number;
    put(photos, target.checked);
  }

  container.addEventListener("click", (event) => {
    if (event.target.matches(".pick")) pick(event.target, event.shiftKey);
  });
  for (const node of new Set([container, bar])) {
    node.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !chosen.size || !event.target.closest(".pick, #choice")) return;
      event.stopPropagation();
      clear();
    });
  }

  const chooser = {
    /** Let these photos be chosen; `keep`: those that are chosen stay so. */
    offer(photos, keep) {
      offered = new Map(photos.map((one) => [one.number, one]));
      for (const number of [...chosen.keys()]) {
        if (keep && offered.has(number)) chosen.set(number, offered.get(number));
        else chosen.delete(number);
      }
      show();
    },
    refresh: show,
    set: (one, on) => put([one], on),
    toggle: (numbers, on) => put(numbers.map(find), on),
    get size() {
      return chosen.size;
    },
    add: (photos) => put(photos, true),
    has: (number) => chosen.has(number),
    numbers: () => inOrder().map(({ number }) => number),
    photos: inOrder,
    clear,
    listen: (listener) => listeners.push(listener),
  };
  return chooser;
}

// The results of a search

let results = null;
let found = []; // photos that are surely right

/** Let these results be chosen; `keep`: those that are chosen stay so; `sure`: those that are surely right, without the query. */
export function offerChoice(photos, keep, sure = []) {
  found = sure;
  results?.offer(photos, keep);
  at("choose-found").hidden = !found.length;
}

/** Let results be chosen; `more`: further options of `selection`, such as `actions`. */
export function listenToChoice(more = {}) {
  results = selection({ container: at("results"), rest: () => at("results-title"), called: "results", ...more });
  at("choose-found").addEventListener("click", () => results.add(found));
  return results;
}
