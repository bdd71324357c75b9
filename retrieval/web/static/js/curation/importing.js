// A table that says something of the photos: chosen, looked at, understood otherwise where need be, and imported.

import { address, ask } from "../api.js";
import { at, complain, el } from "../dom.js";
import { fields } from "../fields.js";
import { t, tn } from "../language.js";
import { start } from "../page.js";

const MEANINGS = [
  ["photo", t("Which photo")],
  ...fields.map(({ word, label }) => [word, label]),
  ["text", t("Kept as it is")],
];
let table = null; // the file
let columns = {}; // meanings that were chosen, by header
let asked = null; // what is being waited for: an earlier answer is thrown away

async function send(action) {
  const mine = (asked = new AbortController());
  const body = new FormData();
  body.append("request", JSON.stringify({ columns, replace: at("replace").checked }));
  body.append("table", table, table.name || "table.csv");
  complain(null);
  at("import").disabled = true;
  try {
    const answer = await ask(address(`/api/tables/${action}`), { method: "POST", headers: { "X-Cairn": "1" }, body, signal: mine.signal });
    return await answer.json();
  } finally {
    at("import").disabled = false;
  }
}

function choice({ header, means }) {
  const select = el("select", { "aria-label": t("What the column {header} says", { header }) },
    ...MEANINGS.map(([value, label]) => el("option", { value, selected: value === means }, label)));
  select.addEventListener("change", () => {
    // What was understood stays so, but for the one that said the same: only tags and texts may be several.
    const single = !["tags", "text"].includes(select.value);
    if (single) for (const [other, meaning] of Object.entries(columns)) if (meaning === select.value) columns[other] = "text";
    columns[header] = select.value;
    look();
  });
  return select;
}

function show(told) {
  columns = Object.fromEntries(told.columns.filter(({ header }) => header).map(({ header, means }) => [header, means]));
  at("preview").hidden = false;
  at("preview-title").textContent = tn(told.photos, "{n} photo of the collection is in the table", "{n} photos of the collection are in the table");
  at("notes").hidden = !told.said.length;
  at("notes").replaceChildren(...told.said.map((note) => el("li", { dir: "auto" }, note)));
  at("columns").replaceChildren(
    el("thead", {},
      el("tr", {}, ...told.columns.map(({ header }) => el("th", { scope: "col", dir: "auto" }, header))),
      el("tr", {}, ...told.columns.map((column) => el("td", {}, column.header ? choice(column) : "")))),
    el("tbody", {}, ...told.sample.map((cells) => el("tr", {}, ...told.columns.map((_, place) => el("td", { dir: "auto", title: cells[place] }, cells[place] ?? ""))))));
  const lines = [...told.unmatched, ...told.warnings].sort((a, b) => a.line - b.line);
  at("problems").hidden = !lines.length;
  at("problems-title").textContent = tn(lines.length, "{n} line to look at", "{n} lines to look at");
  at("lines").replaceChildren(...lines.map(({ line, what, said }) => el("li", { dir: "auto" }, t("Line {line}: {what}: {reason}", { line, what: what || "–", reason: said }))));
  at("import").hidden = !told.photos;
}

/** Have the table looked at, as it is understood now. */
async function look() {
  asked?.abort();
  try {
    show(await send("preview"));
  } catch (error) {
    complain(error);
  }
}

start(async () => {
  at("file").addEventListener("change", async () => {
    [table] = at("file").files;
    if (!table) return;
    columns = {};
    at("said").textContent = "";
    at("preview").hidden = true;
    await look();
  });
  at("import").addEventListener("click", async () => {
    try {
      const told = await send("import");
      at("preview").hidden = true;
      at("file").value = "";
      at("said").textContent = tn(told.photos, "The table was imported for {n} photo.", "The table was imported for {n} photos.");
      at("title").focus();
    } catch (error) {
      complain(error);
    }
  });
});
