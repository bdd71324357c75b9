// What lies in the bin, and how it is put back: one photo, or those that are ticked.

import { address, change, json } from "../api.js";
import { at, complain, el } from "../dom.js";
import { nameLine } from "../grid.js";
import { moment, t, tn } from "../language.js";
import { start } from "../page.js";
import { notice } from "./notice.js";

const MOST = 1000; // that are listed
const EAGER = 24; // pictures that are loaded at once

let busy = false;

const ticks = () => [...at("binned").querySelectorAll(".pick")];
const chosen = () => ticks().filter(({ checked }) => checked).map(({ value }) => value);

function tile({ id, name, moved }, place) {
  const picture = el("img", { alt: "", src: address(`/api/bin/${id}/picture`), loading: place < EAGER ? null : "lazy", decoding: "async" });
  picture.addEventListener("error", () => picture.remove()); // a file that no picture can be made of
  return el("li", { class: "photo-tile" },
    el("input", { type: "checkbox", class: "pick", value: id, "aria-label": t("Select {name}", { name }) }),
    el("span", { class: "frame" }, picture),
    nameLine("span", name),
    el("span", { class: "hint" }, t("Moved here {date}", { date: moment(moved, { dateStyle: "medium", timeStyle: "short" }) })),
    el("button", { type: "button", class: "small", "aria-label": t("Put {name} back", { name }), onclick: () => putBack([id]) }, t("Put back")));
}

function mark() {
  const [all, some] = [ticks().length, chosen().length];
  at("all").checked = all > 0 && some === all;
  at("all").indeterminate = some > 0 && some < all;
  at("back").disabled = !some;
  at("back").textContent = some ? tn(some, "Put {n} photo back", "Put {n} photos back") : t("Put back");
}

async function load() {
  const there = await json("/api/bin", { limit: MOST });
  at("binned").replaceChildren(...there.map(tile));
  at("content").hidden = !there.length;
  at("empty").hidden = there.length > 0;
  at("said").textContent = there.length ? tn(there.length, "{n} photo", "{n} photos") : "";
  mark();
}

/** Put files back, and say what became of their photos. */
async function putBack(entries) {
  if (busy || !entries.length) return;
  busy = true;
  try {
    complain(null);
    const { moved, failed, job } = await change("POST", "/api/bin/back", { entries });
    const said = [
      moved.length && tn(moved.length, "{n} photo is back where it was.", "{n} photos are back where they were."),
      job !== null && t("What the collection had forgotten is added again: it appears when that is done."),
      ...new Set(failed.map(({ reason }) => reason)),
    ];
    await load();
    at("title").focus({ preventScroll: true }); // what had the focus is gone
    const again = async () => {
      await change("POST", "/api/bin", { photos: moved.map(({ number }) => number) });
      await load();
    };
    notice(said.filter(Boolean).join(" "), moved.length && job === null ? again : null);
  } catch (error) {
    complain(error);
  }
  busy = false;
}

start(async () => {
  at("all").addEventListener("change", ({ target }) => {
    for (const one of ticks()) one.checked = target.checked;
    mark();
  });
  at("binned").addEventListener("change", mark);
  at("back").addEventListener("click", () => putBack(chosen()));
  await load();
});
