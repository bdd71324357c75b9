// In which order one block or plate printed some impressions: each step is shown, and can be decided otherwise.

import { address, change, image, json, photo as read, thumbnail } from "../api.js";
import { boxTool } from "../box.js";
import { at, complain, el } from "../dom.js";
import { figure, fixed, percent, t, tn } from "../language.js";
import { start } from "../page.js";
import { Zoom } from "../photos/zoom.js";
import { parse } from "../query.js";

const fields = new URLSearchParams(location.search);
const asked = { q: fields.get("q") ?? "", photo: fields.getAll("photo") };
const path = "/api/impressions/clock";
const NONE = { leave_out: [], undated: [], dated: [], regions: [], before: [] };
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

let decided = null; // null: what is kept
let kept = null;
const frame = {}; // size of the pictures
let names = new Map(); // of all that were asked for, by number

const year = (value) => figure(Math.round(value), { useGrouping: false });
const between = ([from, to], shown) => (from === to ? shown(from) : t("{from} to {to}", { from: shown(from), to: shown(to) }));

/** Decide something, and read the clock once more. */
function decide(values) {
  const before = decided;
  decided = { ...decided, ...values };
  load().catch((error) => {
    decided = before;
    complain(error);
    at("page").inert = false;
    at("said").textContent = "";
  });
}

const without = (list, one) => list.filter((other) => !same(other, one));
const drop = (text, label, run) => el("li", { class: "row" }, el("span", { dir: "auto" }, text), el("button", { type: "button", class: "small", "aria-label": label, onclick: run }, t("Take back")));

function row(one) {
  const { number, name } = one;
  const count = ({ target: { checked } }) => {
    const [undated, dated] = [decided.undated, decided.dated].map((list) => without(list, number));
    if (checked === one.from_file) (checked ? dated : undated).push(number); // else it is so without a decision
    decide({ undated, dated });
  };
  const tick = el("input", { type: "checkbox", checked: one.counts, "aria-label": t("The date of {name} counts", { name }), onchange: count });
  const date = one.year === null ? "–" : el("label", { class: "tick" }, tick, one.from_file ? t("{year}, in its file", { year: year(one.year) }) : year(one.year));
  return el("tr", {},
    el("td", {}, between(one.places, figure)),
    el("td", {}, el("a", { class: "row", href: address("/photo", { number }) }, el("img", { src: thumbnail(number, 128), alt: "", height: 48 }), el("span", { dir: "auto" }, name))),
    el("td", {}, figure(one.breaks)),
    el("td", {}, fixed(one.line_width, 2)),
    el("td", {}, date),
    el("td", {}, one.years ? t("{year} ({interval})", { year: year(one.read), interval: between(one.years, year) }) : "–"),
    el("td", {}, el("button", { type: "button", class: "small", "aria-label": t("Leave {name} out", { name }), onclick: () => decide({ leave_out: [...decided.leave_out, number] }) }, t("Leave out"))));
}

/** A button for each two: how probable it is that the one of a row is earlier, and whether somebody says so. */
function cell(one, other, probability) {
  if (one.number === other.number) return el("td", {});
  const pair = [one.number, other.number];
  const said = decided.before.some((some) => same(some, pair));
  const values = { one: one.name, other: other.name };
  const label = said ? t("{one} is earlier than {other}, as you say", values) : t("{one} is earlier than {other}: {percent}", { ...values, percent: percent(probability) });
  const before = without(without(decided.before, pair), pair.toReversed());
  return el("td", {}, el("button", { type: "button", class: "small", "aria-pressed": String(said), "aria-label": label, title: label, onclick: () => decide({ before: said ? before : [...before, pair] }) }, percent(probability)));
}

function showLists(photos) {
  const there = new Set(photos.map(({ number }) => number));
  const out = [...names].filter(([number]) => !there.has(number));
  at("out").replaceChildren(...out.map(([number, name]) => decided.leave_out.includes(number)
    ? drop(t("{name} is left out", { name }), t("Take {name} in", { name }), () => decide({ leave_out: without(decided.leave_out, number) }))
    : el("li", { dir: "auto" }, t("{name} does not match", { name }))));
  at("regions").replaceChildren(...decided.regions.map((region) => {
    const said = t("Box from {x0}, {y0} to {x1}, {y1}", Object.fromEntries(["x0", "y0", "x1", "y1"].map((name, place) => [name, Math.round(region[place])])));
    return drop(said, t("Take back: {region}", { region: said }), () => decide({ regions: without(decided.regions, region) }));
  }));
}

function show({ photos, earlier, breaks, pictures, size }) {
  const impressions = tn(photos.length, "{n} impression", "{n} impressions");
  at("said").textContent = t("{impressions}, {breaks}", { impressions, breaks: tn(breaks.length, "{n} break", "{n} breaks") });
  at("rows").replaceChildren(...photos.map(row));
  at("matrix").replaceChildren(
    el("thead", {}, el("tr", {}, el("td", {}), ...photos.map(({ name }) => el("th", { scope: "col", title: name }, el("span", { dir: "auto" }, name))))),
    el("tbody", {}, ...photos.map((one, place) => el("tr", {}, el("th", { scope: "row", dir: "auto" }, one.name), ...photos.map((other, column) => cell(one, other, earlier[place][column]))))));
  showLists(photos);
  const chosen = at("which").value;
  at("which").replaceChildren(...photos.map(({ name, number }) => el("option", { value: number, selected: String(number) === chosen }, name)));
  at("stage").style.setProperty("--ratio", size[0] / size[1]);
  Object.assign(frame, { width: size[0], height: size[1] });
  const draw = () => {
    const place = at("which").selectedIndex;
    at("picture").src = pictures[place];
    at("picture").alt = t("{name} with its lines and breaks", photos[place]);
  };
  at("which").onchange = draw;
  draw();
  for (const one of document.getElementsByName("clock")) one.checked = one.value === decided.clock;
  at("keep").disabled = same(decided, kept);
  at("back").disabled = same(decided, { clock: decided.clock, ...NONE });
  const wanted = { ...asked, decisions: JSON.stringify(decided) };
  at("csv").href = address(path, { ...wanted, format: "csv" });
  at("json").href = address(path, wanted);
}

async function load() {
  complain(null);
  at("said").textContent = t("Comparing…");
  at("page").inert = true;
  const found = await json(path, { ...asked, ...(decided && { decisions: JSON.stringify(decided) }) });
  [decided, kept] = [found.decisions, found.kept];
  show(found);
  at("page").inert = false;
  at("page").hidden = false;
}

start(async () => {
  if (!asked.q) {
    at("said").textContent = t("Open the print clock from an album, or from the occurrences of a saved search.");
    return;
  }
  const { photo: number } = parse(asked.q);
  names = new Map(await Promise.all([...new Set([number, ...asked.photo.map(Number)])].map(async (one) => [one, (await read(one)).name])));
  await load();
  at("stage").append(new Zoom(at("stage"), at("content"), [{ picture: at("picture"), photo: frame }]).controls);
  let region = null;
  const reference = await read(number);
  const tool = boxTool({ ...reference, large: image(number) }, null, (box) => {
    region = box;
    at("leave").disabled = !box;
  }, null, t("Drag to draw a box round what is not to be read, such as a stamp or a tear."));
  at("leave").addEventListener("click", () => {
    decide({ regions: [...decided.regions, region] });
    tool.set(null);
  });
  for (const one of document.getElementsByName("clock")) one.addEventListener("change", () => decide({ clock: one.value }));
  at("back").addEventListener("click", () => decide(NONE));
  at("keep").addEventListener("click", async () => {
    try {
      await change("PUT", `${path}?${new URLSearchParams({ q: asked.q })}`, decided);
      kept = decided;
      at("keep").disabled = true;
    } catch (error) {
      complain(error);
    }
  });
});
