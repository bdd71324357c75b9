// Search: photos asked for (of the collection, or the user's own), options, results. The address says all of it, so that
// going back, reloading and sharing work; an upload is named in it, and lies in this browser (uploads.js).

import { address, collection, search } from "./api.js";
import { boxTool } from "./box.js";
import { afterPress, at, complain, corners, el, stopwatch } from "./dom.js";
import { TEXTS, joinTags, offer, splitTags } from "./filters.js";
import { frame, nameLine } from "./grid.js";
import { t } from "./language.js";
import { start } from "./page.js";
import { format, parse, resolve, searchAddress } from "./query.js";
import { rememberSearch } from "./curation/recent.js";
import { anyResults, clearResults, listenToResults, moreThan, showResults } from "./results.js";
import { take } from "./uploads.js";

const DEFAULTS = {
  match: "any", engine: at("engine").options[0].value, expand: "none", global_descriptors: "none", turns: "8", top: "20", similarity: "1", augmented: "1", mirrored: "",
  words: "", name: "", folder: "", taken_from: "", taken_to: "", tag: "",
};

const SOON = 300; // milliseconds in which most answers come: before that, nothing is said of waiting
const SKELETONS = 6; // tiles
const NARROW = matchMedia("(max-width: 48rem)");

const form = at("options");
let queries = []; // each as query.js resolves it
let open = -1; // which of them is in the box tool
let request = new AbortController();
let turning = new AbortController(); // of the look at turned views, which ends with the request too
let waits = 0; // timer
let growing = false; // more is asked for of what is shown, which stays
const clock = stopwatch(at("elapsed"));
const turningClock = stopwatch(at("turning-elapsed"));

// Options

function options() {
  const given = Object.fromEntries(new FormData(form));
  return Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, given[name]?.trim() ?? { similarity: "0", augmented: "0", mirrored: "" }[name]]));
}

/** Those that are not as they are anyway: what the address needs to say. */
function said() {
  const { tag, ...others } = options();
  const unusual = Object.entries(others).filter(([name, value]) => value !== DEFAULTS[name]);
  return { ...Object.fromEntries(unusual), tag: splitTags(tag) };
}

function fillOptions(fields) {
  for (const [name, usual] of Object.entries(DEFAULTS)) {
    const value = name === "tag" ? joinTags(fields.getAll(name)) : fields.get(name) ?? usual;
    const control = form.elements[name];
    if (control.type === "checkbox") control.checked = control.value === value;
    else control.value = value;
    if (control.tagName === "SELECT" && control.selectedIndex < 0) control.value = usual;
  }
  if (Object.keys(DEFAULTS).some((name) => !["match", "words"].includes(name) && fields.has(name))) at("more").open = true;
}

// Queries

const here = () => searchAddress(queries.map(format), said());

function chip(query, place) {
  const box = query.box && corners(query.box);
  const { name } = query;
  return el("li", { class: place === open ? "chip open" : "chip" },
    frame(query, { region: box, source: query.small, eager: true }),
    nameLine("span", name, { "aria-hidden": "true" }), // the picture says it
    el("span", { class: "row" },
      el("button", { type: "button", class: "small", "aria-label": query.box ? t("Change the box on {name}", { name }) : t("Draw a box on {name}", { name }), onclick: () => edit(place) }, t("Box")),
      el("button", { type: "button", class: "small", "aria-label": t("Remove {name} from the query", { name }), onclick: () => drop(place) }, t("Remove"))));
}

function showQueries() {
  at("chips").replaceChildren(...queries.map(chip));
  at("several").hidden = queries.length < 2;
  at("run").disabled = !queries.length;
  const { match, engine } = said();
  at("pick").href = address("/", { q: queries.map(format), match, engine });
  at("pick").textContent = queries.length ? t("or add one from the collection") : t("or pick one from the collection");
  at("welcome").hidden = queries.length > 0;
}

function edit(place) {
  open = place;
  at("editor").hidden = place < 0;
  showQueries();
  if (place < 0) return;
  const query = queries[place];
  at("editor-title").textContent = t("Draw a box on {name}", { name: query.name });
  const tool = boxTool({ ...query, number: query.photo ?? undefined }, query.box, (box) => {
    queries[place] = { ...queries[place], box };
    showQueries();
  });
  tool.surface.focus({ preventScroll: true });
  at("editor").scrollIntoView({ block: "nearest" });
}

function drop(place) {
  queries = queries.filter((_, one) => one !== place);
  edit(-1);
  go(here());
  (document.querySelector("#chips button") ?? at("upload")).focus();
}

// Uploads

/** Take files into the query; what is no photo is said beside the upload, and the rest stays as it was. */
async function add(files) {
  const problems = [];
  for (const file of files) {
    at("reading").textContent = t("Reading {name}…", { name: file.name });
    try {
      const upload = await take(file);
      queries = [...queries, await resolve({ photo: null, upload: upload.id, box: null })];
    } catch (error) {
      problems.push(files.length > 1 ? `${file.name}: ${error.message}` : error.message);
    }
    at("reading").textContent = "";
  }
  at("upload-error").textContent = problems.join(" ");
  if (problems.length < files.length) edit(queries.length - 1);
}

function listen() {
  at("more").addEventListener("toggle", async () => {
    at("alike").hidden = !(await collection()).global_descriptors; // it has none
  }, { once: true });
  at("upload").addEventListener("change", async () => {
    await add([...at("upload").files]);
    at("upload").value = "";
  });
  document.addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (!files.length) return; // text, into a field
    event.preventDefault();
    add(files);
  });
  const carries = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!carries(event)) return;
    event.preventDefault();
    at("drop").classList.add("over");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) at("drop").classList.remove("over");
  });
  document.addEventListener("drop", (event) => {
    at("drop").classList.remove("over");
    if (!carries(event)) return;
    event.preventDefault();
    add([...event.dataTransfer.files]);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    run();
  });
  at("run-box").addEventListener("click", run);
  // An option that changes an answer that is shown, or waited for, asks again.
  form.addEventListener("change", () => afterPress(() => {
    const waited = at("results").getAttribute("aria-busy") === "true";
    if ((anyResults() || waited) && queries.length && here() !== location.pathname + location.search) run();
  }));
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.here");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(link.getAttribute("href"));
    at("results-title").focus({ preventScroll: true }); // the link is about to go
    scrollTo({ top: 0 });
  });
  at("save-search").addEventListener("click", async () => {
    const { askToSave } = await import("./curation/saving.js");
    await askToSave([...queries], how());
  });
  at("show-more").addEventListener("click", showMore);
  at("stop").addEventListener("click", () => turning.abort());
  at("cancel").addEventListener("click", cancel);
  window.addEventListener("popstate", load);
}

function run() {
  const wrong = TEXTS.map((name) => form.elements[name]).find((field) => !field.checkValidity());
  if (wrong) {
    at("more").open = true; // or nobody would see what is said beside it
    wrong.reportValidity();
    return;
  }
  edit(-1);
  go(here());
}

/** Ask for more results; those that are shown stay where they are. */
async function showMore() {
  const before = document.querySelectorAll("#results .result").length;
  at("top").value = moreThan(Number(options().top));
  growing = true;
  at("show-more").disabled = true;
  history.pushState(null, "", here());
  await load();
  growing = at("show-more").disabled = false;
  const next = [...document.querySelectorAll("#found .result, #perhaps .result")][before];
  if (next) at("similar").open ||= at("perhaps").contains(next);
  (next?.querySelector("a") ?? at("results-title")).focus({ preventScroll: true }); // where reading goes on
}

// Results

/** What an answer is for: the queries and options as they are now, which may be changed before it is completed. */
const asking = () => ({ queries: [...queries], said: said(), top: Number(options().top), here: here() });

/** The options as the server takes them, those that are not as they are anyway. */
function how() {
  const { top, turns, similarity, augmented, mirrored, ...others } = said();
  return {
    ...others,
    ...(top && { top: Number(top) }),
    ...(turns && { turns: Number(turns) }),
    ...(similarity && { similarity: false }),
    ...(augmented && { augmented: false }),
    ...(mirrored && { mirrored: true }),
  };
}

function show(answer, asked, completes = false) {
  at("save-search").hidden = false;
  if (!completes) rememberSearch(asked);
  showResults(answer, asked, completes);
  if (!completes && NARROW.matches && !scrollY) at("results-title").scrollIntoView(); // the query stands above it there
  at("similarity").hidden = !answer.similarity && !new URLSearchParams(location.search).has("similarity"); // it has none
  at("augmented").hidden = !answer.augmented && !new URLSearchParams(location.search).has("augmented"); // nothing is borrowed
  const others = Object.fromEntries(Object.entries(asked.said).filter(([name]) => name !== "tag" && !TEXTS.includes(name)));
  at("clear").hidden = answer.results.length > 0 || !answer.filter;
  at("clear").href = searchAddress(asked.queries.map(format), others);
}

// The address is the truth

function go(to) {
  if (to !== location.pathname + location.search) history.pushState(null, "", to);
  load();
}

async function load() {
  request.abort();
  turning.abort();
  request = new AbortController();
  const { signal } = request;
  at("clear").hidden = at("save-search").hidden = true;
  complain(null);
  showTurning("");
  busy(true);
  try {
    await answer(signal);
  } catch (error) {
    if (error.name === "AbortError") return; // another one has begun
    clearResults();
    complain(error);
  }
  busy(false);
}

function busy(is) {
  clearTimeout(waits);
  if (is && !growing) waits = setTimeout(() => showWaiting(true), SOON);
  else showWaiting(false);
  at("results").classList.toggle("stale", is);
  at("results").setAttribute("aria-busy", String(is));
}

/** Show that an answer is waited for, since when, and where it will stand. */
function showWaiting(is) {
  const pressed = document.activeElement === at("cancel"); // and hidden now: the focus goes on
  if (is) clock.start();
  else clock.stop();
  at("waiting").hidden = at("skeletons").hidden = !is;
  at("results").hidden = is;
  if (is) {
    at("how").hidden = true;
    at("note").textContent = "";
  }
  if (pressed && !is) at("results-title").focus({ preventScroll: true });
}

/** Give up the search that is waited for. */
function cancel() {
  request.abort();
  clearResults(t("The search was cancelled"));
  busy(false);
  if (!at("run").disabled) at("run").focus();
}

async function answer(signal) {
  const fields = new URLSearchParams(location.search);
  fillOptions(fields);
  const texts = fields.getAll("q");
  const known = new Map(queries.map((query) => [format(query), query]));
  const resolved = await Promise.all(texts.map((text) => known.get(text) ?? resolve(parse(text))));
  signal.throwIfAborted();
  queries = resolved;
  edit(-1);
  if (!queries.length) {
    clearResults();
    return;
  }
  at("said").textContent = t("Searching…");
  const { similarity, augmented, mirrored, turns, top, tag, ...others } = options();
  // Where the server has a learnt similarity it is used, unless we say not to.
  const scored = similarity === DEFAULTS.similarity ? undefined : false;
  const asked = asking();
  const how = { ...others, tag: splitTags(tag), top: Number(top), similarity: scored, augmented: augmented === DEFAULTS.augmented, mirrored: mirrored === "1", text: true };
  // Upright comes first, many times as quickly; the same list is completed by what turned views find.
  const upright = await search(asked.queries, { ...how, turns: 1 }, signal);
  show(upright, asked);
  if (Number(turns) === 1 || upright.passing === 0) return;
  const complete = () => turn(asked, { ...how, turns: Number(turns), every_turn: true }, upright);
  at("look").onclick = complete;
  if (upright.sure) showTurning("offered"); // they can hardly change the answer
  else complete();
}

// Turned views

/** Look at turned views of the query, and complete the answer that is shown; what goes wrong leaves it as it is. */
async function turn(asked, how, upright) {
  turning = new AbortController();
  const { signal } = turning;
  const { signal: whole } = request;
  complain(null);
  showTurning("looking");
  try {
    const answer = await search(asked.queries, how, signal);
    answer.seconds.total += upright.seconds.total;
    show(answer, asked, true);
    showTurning("done");
  } catch (error) {
    if (whole.aborted) return; // another search has begun
    showTurning("offered");
    if (!signal.aborted) complain(error);
  }
}

/** "looking", "offered" (not looked at), "done", or "" where there is no answer that turned views might complete. */
function showTurning(state) {
  const pressed = [at("look"), at("stop")].includes(document.activeElement); // and hidden now: the focus goes on
  at("results").dataset.turned = state;
  at("turning").hidden = state !== "looking";
  if (state === "looking") turningClock.start();
  else turningClock.stop();
  at("look").hidden = state !== "offered";
  if (pressed) at({ looking: "stop", offered: "look" }[state] ?? "results-title").focus({ preventScroll: true });
}

start(async () => {
  listen();
  listenToResults(load);
  const skeleton = () => el("li", { class: "skeleton" }, el("span", { class: "frame" }), el("span", { class: "line" }));
  at("skeletons").replaceChildren(...Array.from({ length: SKELETONS }, skeleton));
  showQueries();
  await load();
  await offer(form);
});
