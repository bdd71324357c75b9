// Results that are chosen: a tick on each, a bar that counts them, and what can be done with them.

import { take } from "./api.js";
import { at, el, save } from "./dom.js";
import { toCsv, toJson, toNames } from "./exporting.js";
import { t, tn } from "./language.js";

let offered = new Map(); // entries by their numbers, in order
let chosen = new Set(); // numbers
let collecting = false;
let last = null; // tick that was clicked last: where a range begins

/** The tick of a result. */
export const tick = ({ number, name }) => el("input", { type: "checkbox", class: "pick", value: number, "aria-label": t("Select {name}", { name }) });

const ticks = () => [...at("results").querySelectorAll(".pick")];
const entries = () => [...offered.values()].filter(({ number }) => chosen.has(number));

/** Let these results be chosen; `keep`: those that are chosen stay so. */
export function offerChoice(results, keep) {
  offered = new Map(results.map((entry) => [entry.number, entry]));
  choose(keep ? [...chosen].filter((number) => offered.has(number)) : []);
  at("choose-found").hidden = !results.some((entry) => entry.found);
}

function choose(numbers) {
  chosen = new Set(numbers);
  for (const one of ticks()) one.checked = chosen.has(Number(one.value));
  const inside = at("choice").contains(document.activeElement);
  at("choice").hidden = !chosen.size;
  at("chosen").textContent = chosen.size ? tn(chosen.size, "{n} photo selected", "{n} photos selected") : "";
  at("copied").textContent = "";
  if (inside && !chosen.size) at("results-title").focus({ preventScroll: true }); // the bar is hidden now
}

/** A tick was clicked: with Shift, all from the last one to it become as it is. */
function pick(target, range) {
  const seen = ticks().filter((one) => one.checkVisibility()); // not those that are folded away
  const ends = [seen.indexOf(last), seen.indexOf(target)].sort((a, b) => a - b);
  const changed = range && ends[0] >= 0 ? seen.slice(ends[0], ends[1] + 1) : [target];
  const numbers = new Set(chosen);
  for (const one of changed) numbers[target.checked ? "add" : "delete"](Number(one.value));
  last = target;
  choose(numbers);
}

async function copy(text) {
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

/** Have the server make a file of the chosen photos, and keep it. */
async function collect(form, name) {
  if (collecting) return;
  collecting = true;
  at("copied").textContent = t("Collecting the photos…");
  try {
    save(await take([...chosen], form), name);
    at("copied").textContent = "";
  } catch (error) {
    at("copied").textContent = error.message || String(error);
  }
  collecting = false;
}

/** Listen to the ticks, the bar and the keys. */
export function listenToChoice() {
  at("results").addEventListener("click", (event) => {
    if (event.target.matches(".pick")) pick(event.target, event.shiftKey);
  });
  at("results").addEventListener("keydown", (event) => {
    if (event.key === "Escape" && chosen.size && event.target.closest(".pick, #choice")) choose([]);
  });
  at("choose-found").addEventListener("click", () => {
    choose([...chosen, ...[...offered.values()].filter(({ found }) => found).map(({ number }) => number)]);
  });
  at("choose-none").addEventListener("click", () => choose([]));
  at("save-csv").addEventListener("click", () => save(new Blob([toCsv(entries())], { type: "text/csv;charset=utf-8" }), "results.csv"));
  at("save-json").addEventListener("click", () => save(new Blob([toJson(entries())], { type: "application/json" }), "results.json"));
  at("save-files").addEventListener("click", () => collect("zip", "photos.zip"));
  at("save-sheet").addEventListener("click", () => collect("sheet", "contact-sheet.pdf"));
  at("copy-names").addEventListener("click", async () => {
    const done = await copy(toNames(entries()));
    at("copied").textContent = done ? tn(chosen.size, "{n} name copied", "{n} names copied") : t("This browser does not let a page copy: save a file.");
  });
}
