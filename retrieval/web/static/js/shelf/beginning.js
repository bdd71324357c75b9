// A collection without photos yet: the work that brings them, or what it is begun with.

import { address, json } from "../api.js";
import { el } from "../dom.js";
import { figure, t } from "../language.js";
import { adding } from "../jobs/adding.js";
import { isOpen, jobCard, watch } from "../jobs/jobs.js";

const LOOK = 3000; // milliseconds between two looks for the first photos
const GLIMPSES = 60; // pictures of what is being added
const AT_ONCE = 12; // of them, before it is known how many there are
const begun = new WeakSet(); // nodes that say so already

/** Look at one of them, as large as the window. */
function look(source, label) {
  const close = el("button", { type: "button", onclick: () => dialog.close() }, t("Close"));
  const dialog = el("dialog", { class: "glimpse", "aria-label": label, onclose: () => dialog.remove() }, el("img", { src: source, alt: label }), close);
  document.body.append(dialog);
  dialog.showModal();
}

/** List the first of the photos that a job adds, as small pictures: those that there are, and that can be shown. */
function glimpses(job, list, from) {
  const most = Math.min(GLIMPSES, job.of || AT_ONCE);
  for (let place = from; place < most; place += 1) {
    const label = t("Photo {number}", { number: figure(place + 1) });
    const source = `/api/jobs/${job.id}/photos/${place}`;
    const picture = el("img", { alt: "", decoding: "async" });
    const entry = el("li", { hidden: true },
      el("button", { type: "button", "aria-label": label, onclick: () => look(address(source, { large: true }), label) }, picture));
    picture.addEventListener("load", () => { entry.hidden = false; });
    picture.addEventListener("error", () => entry.remove());
    picture.src = address(source);
    list.append(entry);
  }
  return Math.max(from, most);
}

/** Put into a node how photos come in; `shown()` shows them, once some are there. */
export function beginning(node, shown) {
  if (begun.has(node)) return;
  begun.add(node);
  node.classList.add("beginning");
  const now = el("div", { class: "stack" });
  const ways = el("div", { class: "stack" });
  const title = el("h2", {});
  const pictures = el("ul", { class: "glimpses", "aria-label": t("The first of the photos that are being added"), hidden: true });
  let seen = { id: null, most: 0 }; // the job whose photos are shown, and how many
  node.replaceChildren(title, now, pictures, ways);
  let cards = new Map();
  let offered = false;

  const stop = watch((jobs) => {
    const work = jobs.filter((job) => job.kind === "index" && isOpen(job));
    title.textContent = work.length ? t("Your photos are being read. You can look at the first of them meanwhile, and search as soon as they are indexed.") : t("Add your photos");
    const first = work.find((job) => job.state === "running") ?? work[0];
    if (first && seen.id !== first.id) {
      seen = { id: first.id, most: 0 };
      pictures.replaceChildren();
    }
    if (first) seen.most = glimpses(first, pictures, seen.most);
    pictures.hidden = !work.length;
    const kept = new Map();
    for (const job of work) {
      const card = cards.get(job.id) ?? jobCard(job);
      card.update(job);
      kept.set(job.id, card);
    }
    if ([...kept.keys()].join() !== [...cards.keys()].join()) now.replaceChildren(...kept.values());
    cards = kept;
    ways.hidden = work.length > 0;
    if (!work.length && !offered) {
      offered = true;
      adding(ways).catch((error) => ways.append(el("p", { class: "error", role: "alert" }, error.message)));
    }
  });
  const timer = setInterval(async () => {
    if (document.hidden) return;
    try {
      if (!(await json("/api/photos", { limit: 0 })).total) return;
    } catch {
      return; // the next look may tell
    }
    clearInterval(timer);
    stop();
    begun.delete(node);
    shown();
  }, LOOK);
}
