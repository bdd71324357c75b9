// Work: what is going on, what waits, what has ended; and photos are added here.

import { health } from "../api.js";
import { at } from "../dom.js";
import { t, tn } from "../language.js";
import { start } from "../page.js";
import { adding } from "./adding.js";
import { isOpen, refresh, showCards, watch } from "./jobs.js";

start(async () => {
  let begun = false;
  watch((jobs) => {
    const now = jobs.filter((job) => job.state === "running" || job.state === "paused");
    const waiting = jobs.filter((job) => job.state === "queued");
    const past = jobs.filter((job) => !isOpen(job)).reverse();
    showCards(at("now"), now);
    showCards(at("waiting"), waiting);
    showCards(at("past"), past);
    at("now-section").hidden = !now.length;
    at("waiting-section").hidden = !waiting.length;
    at("past-section").hidden = !past.length;
    const open = now.length + waiting.length;
    const text = open ? tn(open, "{n} job", "{n} jobs") : t("Nothing is running");
    if (at("said").textContent !== text) at("said").textContent = text;
    if (!begun) at("add").open = !open && !past.length;
    begun = true;
  });
  const add = async () => {
    at("add").hidden = (await health()).role === "read";
    if (!at("add").hidden) await adding(at("adding"));
  };
  await Promise.all([refresh(), add()]);
});
