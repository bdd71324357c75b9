// What the collection holds.

import { collection as read } from "./api.js";
import { at, count, el } from "./dom.js";
import { start } from "./page.js";

const UNITS = ["bytes", "KB", "MB", "GB", "TB"];

function size(bytes) {
  const power = bytes < 1000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), UNITS.length - 1);
  return `${(bytes / 1000 ** power).toLocaleString("en", { maximumFractionDigits: power ? 1 : 0 })} ${UNITS[power]}`;
}

function show(value) {
  if (value === null || value === undefined || value === "") return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return value.toLocaleString("en", { maximumFractionDigits: 4 });
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const title = (key) => key.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());

function card(name, rows) {
  const list = el("dl", { class: "facts" }, ...rows.flatMap(([key, value]) => [el("dt", {}, key), el("dd", {}, value)]));
  return el("section", { class: "panel" }, el("h2", {}, name), list);
}

const rows = (object, text = show) => Object.entries(object ?? {}).map(([key, value]) => [title(key), text(value)]);

start(async () => {
  const { descriptor, vocabulary, bytes, failed = [], bytes_per_feature: each, ...plain } = await read();
  const counts = Object.entries(plain).filter(([, value]) => typeof value !== "object");
  at("cards").replaceChildren(
    card("Collection", rows(Object.fromEntries(counts))),
    card("Descriptor", rows(descriptor)),
    card("Vocabulary", rows(vocabulary)),
    card("Space", [...rows(bytes, size), ...(typeof each === "number" ? [["For each feature", `${show(each)} bytes`]] : [])]),
  );
  at("said").textContent = failed.length ? `${count(failed.length, "photo")} could not be indexed` : "Every photo was indexed";
  at("failures").hidden = !failed.length;
  at("failed").replaceChildren(...failed.map(({ name, reason }) => el("tr", {}, el("td", {}, name), el("td", {}, reason))));
});
