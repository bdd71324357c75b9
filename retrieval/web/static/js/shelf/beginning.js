// A collection without photos yet: the work that brings them, or what it is begun with.

import { json } from "../api.js";
import { el } from "../dom.js";
import { t } from "../language.js";
import { adding } from "../work/adding.js";
import { isOpen, jobCard, watch } from "../work/jobs.js";

const LOOK = 3000; // milliseconds between two looks for the first photos
const begun = new WeakSet(); // nodes that say so already

/** Put into a node how photos come in; `shown()` shows them, once some are there. */
export function beginning(node, shown) {
  if (begun.has(node)) return;
  begun.add(node);
  node.classList.add("beginning");
  const now = el("div", { class: "stack" });
  const ways = el("div", { class: "stack" });
  const title = el("h2", {});
  node.replaceChildren(title, now, ways);
  let cards = new Map();
  let offered = false;

  const stop = watch((jobs) => {
    const work = jobs.filter((job) => job.kind === "index" && isOpen(job));
    title.textContent = work.length ? t("Your photos are being added: they appear here as they come.") : t("Add your photos");
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
