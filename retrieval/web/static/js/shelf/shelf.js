// The collections: each a cover that leads into it; and making the first one, where there is none.

import { address, change, health, json } from "../api.js";
import { ask, field } from "../curation/dialogs.js";
import { at, complain, el } from "../dom.js";
import { figure, moment, t, tn } from "../language.js";
import { start } from "../page.js";
import { making } from "./making.js";

const LOOK = 5000; // milliseconds between two looks where work is under way
let timer = 0;

function size(bytes) {
  if (bytes >= 1e9) return t("{n} GB", { n: figure(bytes / 1e9, { maximumFractionDigits: 1 }) });
  return t("{n} MB", { n: figure(bytes / 1e6, { maximumFractionDigits: bytes < 1e7 ? 1 : 0 }) });
}

function facts({ photos, bytes, changed }) {
  const said = [photos === null ? t("It cannot be read: open it to see why.") : tn(photos, "{n} photo", "{n} photos"), size(bytes)];
  if (changed) said.push(moment(changed, { dateStyle: "medium" }));
  return said.join(" · ");
}

async function rename({ name, title }) {
  const [node, input] = field(t("Name of the collection"), { value: title, maxlength: 100, required: true });
  if (await ask(t("Rename the collection"), [node], t("Rename"), () => change("PATCH", `/api/collections/${encodeURIComponent(name)}`, { title: input.value }))) await load();
}

async function discard({ name, title }) {
  const what = el("p", {}, t("“{title}” will be moved to the folder bin, next to your collections. Photos in your folders stay where they are; uploaded photos move with it.", { title }));
  const gone = await ask(t("Move to the bin?"), [what], t("Move to the bin"), () => change("DELETE", `/api/collections/${encodeURIComponent(name)}`));
  if (!gone) return;
  await load();
  at("said").textContent = t("“{title}” is in the bin now.", { title });
  at("bin").open = true;
  at("bin").querySelector("button")?.focus();
}

async function putBack({ folder }) {
  try {
    const { title } = await change("POST", `/api/bin/${encodeURIComponent(folder)}/back`);
    await load();
    at("said").textContent = t("“{title}” is back.", { title });
    at("new").focus();
  } catch (error) {
    complain(error);
  }
}

/** The collections in the bin, folded away. */
async function showBin() {
  if ((await health()).role === "read") return; // it stays hidden
  const { collections } = await json("/api/bin").catch(() => ({ collections: [] })); // who may not see it, sees none
  at("bin").hidden = !collections.length;
  at("bin-title").textContent = tn(collections.length, "{n} collection in the bin", "{n} collections in the bin");
  at("binned").replaceChildren(...collections.map((one) => el("li", { class: "row" },
    el("span", { dir: "auto" }, one.title),
    one.moved && el("span", { class: "hint" }, t("Moved here {date}", { date: moment(one.moved, { dateStyle: "medium", timeStyle: "short" }) })),
    el("button", { type: "button", class: "small", "aria-label": t("Put “{title}” back", { title: one.title }), onclick: () => putBack(one) }, t("Put back")))));
}

function card(one, place) {
  const source = one.cover && address(`/api/collections/${encodeURIComponent(one.name)}/cover`, { size: 512, of: one.cover.number }); // another address for another cover
  const picture = source
    ? el("img", { alt: "", src: source, loading: place < 8 ? null : "lazy", decoding: "async" })
    : el("span", { class: "no-cover" }, one.jobs ? t("Photos are being added") : t("No photos yet"));
  const menu = el("details", { class: "pop writes" },
    el("summary", { class: "quiet", "aria-label": t("More for “{title}”", { title: one.title }) }, "⋯"),
    el("div", { class: "sheet" },
      el("button", { type: "button", onclick: () => rename(one) }, t("Rename")),
      el("button", { type: "button", onclick: () => discard(one) }, t("Move to the bin"))));
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  menu.addEventListener("focusout", ({ relatedTarget }) => {
    if (relatedTarget && !menu.contains(relatedTarget)) menu.open = false;
  });
  return el("li", { class: "volume" },
    el("a", { href: address(one.address) },
      el("span", { class: "cover" }, picture, one.jobs > 0 && source && el("span", { class: "busy" }, t("Work is under way"))),
      el("span", { class: "called", dir: "auto" }, one.title)),
    el("p", { class: "measure" }, facts(one)), menu);
}

async function load() {
  clearTimeout(timer);
  const { collections } = await json("/api/collections");
  const none = collections.length === 0;
  at("head").hidden = none;
  at("shelf").replaceChildren(...collections.map(card));
  at("shelf").setAttribute("aria-busy", "false");
  at("said").textContent = none ? "" : tn(collections.length, "{n} collection", "{n} collections");
  if (none) await making(at("make"), true, () => {});
  else if (at("make").querySelector("h1")) at("make").hidden = true; // the first one has come back
  await showBin();
  if (collections.some(({ jobs }) => jobs)) {
    timer = setTimeout(async () => {
      // Not while somebody has a menu open, or the focus on a card.
      if (document.hidden || at("shelf").contains(document.activeElement)) timer = setTimeout(() => load().catch(complain), LOOK);
      else await load().catch(complain);
    }, LOOK);
  }
}

start(async () => {
  at("new").addEventListener("click", () => making(at("make"), false, () => {
    at("make").hidden = true;
    at("new").focus();
  }).catch(complain));
  await load();
});
