// The answer on the search page: a sentence, the photos that show what was asked for, surely or likely, and below them,
// folded away, those that are only possibly similar.

import { address, photo as read, thumbnail } from "./api.js";
import { listenToChoice, offerChoice, tick } from "./choosing.js";
import { at, el } from "./dom.js";
import { rejectAll, takeBack } from "./curation/rejections.js";
import { notice } from "./curation/notice.js";
import { frame, nameLine } from "./grid.js";
import { fixed, percent, t, tn } from "./language.js";
import { nameList } from "./photos/list.js";
import { format, searchAddress, surround } from "./query.js";

const MOST_REJECTED = 60; // photos called no match that are shown
const LIKELY = 0.8; // probability from which a photo that is not found is called likely

/** How strongly a result shows what was asked for, in a word; `ofText`: whether it matches in printed text alone. */
export const strength = ({ found, probability }, ofText = false) => ofText ? t("The same text?") : found ? t("Sure") : probability >= LIKELY ? t("Likely") : t("Perhaps");

/** Whether a result is shown at once: it is found, or likely. */
const isShown = ({ found, probability }) => found || probability >= LIKELY;

/** Whether a photo of the collection is itself one of those that are searched with. */
const isQuery = (entry, queries) => queries.some(({ photo, upload }) => upload === null && photo === entry.number);

/** The answer in a sentence. The photos that are searched with do not count. */
export function sentence(answer, asked) {
  const parts = [sureSentence(answer, asked)];
  const others = answer.results.filter((entry) => isShown(entry) && !isQuery(entry, asked.queries));
  const alike = others.filter(({ number }) => !isOfText(answer, number));
  const likely = alike.filter((entry) => !entry.found).length;
  if (likely) {
    parts.push(likely < alike.length
      ? tn(likely, "{n} other probably does", "{n} others probably do")
      : tn(likely, "{n} probably does", "{n} probably do"));
  }
  const text = others.length - alike.length;
  if (text) parts.push(tn(text, "{n} matches in printed text alone", "{n} match in printed text alone"));
  return parts.join(", ");
}

/** Whether a result matches in printed text alone, which looks alike on different pages. */
const isOfText = ({ text_alone: numbers = [] }, number) => numbers.includes(number);

function sureSentence(answer, { queries, top }) {
  const { results, passing } = answer;
  if (passing === 0) return t("No photo of the collection passes the filters");
  const found = results.filter((entry) => entry.found && !isOfText(answer, entry.number));
  const others = found.filter((entry) => !isQuery(entry, queries)).length;
  const besides = others < found.length; // what is searched with is there too
  if (!others) return besides ? t("No other photo surely shows this") : t("No photo surely shows this");
  if (found.length === top) { // as many as were asked for
    return besides
      ? tn(others, "{n} other photo or more show this", "{n} other photos or more show this")
      : tn(others, "{n} photo or more show this", "{n} photos or more show this");
  }
  return besides
    ? tn(others, "{n} other photo shows this", "{n} other photos show this")
    : tn(others, "{n} photo shows this", "{n} photos show this");
}

// A tile

/** Say what other turns may change of a result: its place, and how strongly it shows what was asked for. */
function grade(item, entry, own, ofText) {
  const word = item.querySelector(".strength");
  word.textContent = own ? t("The photo you search with") : strength(entry, ofText);
  item.querySelector(".wrong").hidden = own; // it shows itself
  const likely = percent(entry.probability);
  word.title = t("{percent} likely to show this", { percent: likely });
  item.querySelector(".rank").textContent = `${entry.rank}.`;
  item.querySelector(".exact .number").textContent = t("{percent} likely, score {score}", { percent: likely, score: fixed(entry.score, 3) });
  item.querySelector("a").setAttribute("aria-label", t("Result {rank}, {name}: see the match", { rank: entry.rank, name: entry.name }));
}

function tile(entry, turned, { queries, said, here }) {
  const asked = queries[entry.query_index ?? 0] ?? queries[0];
  const { engine, similarity, augmented } = said;
  const turns = turned ? said.turns : "1";
  const box = surround(entry.region, entry);
  const own = format({ photo: entry.number, upload: null, box });
  const match = address("/match", { q: format(asked), photo: entry.number, engine, turns, turn: entry.turn, full: entry.full ? undefined : false, similarity, augmented, mirrored: entry.mirrored || undefined, from: here.split("?")[1] });
  const photo = { href: address("/photo", { number: entry.number, q: queries.map(format) }) };
  const { name, title } = entry;
  const look = { region: entry.region, alt: name, eager: entry.rank <= 12, source: thumbnail(entry.number, isShown(entry) ? 512 : 256) };
  return el("li", { class: "result" },
    tick(entry),
    el("a", { href: match }, frame(entry, look)),
    title ? el("a", { class: "title", title: `${title} (${name})`, dir: "auto", ...photo }, title) : nameLine("a", name, photo),
    el("p", { class: "measure" }, el("strong", { class: "strength" }), entry.mirrored && t(", mirror image")),
    el("p", { class: "exact" }, title && nameLine("span", name), el("span", { class: "rank" }), el("span", { class: "number" })),
    el("div", { class: "row" },
      el("a", { class: "button small here", href: searchAddress([own], { engine, similarity, augmented }), "aria-label": box ? t("Search this region of {name}", { name }) : t("Search this: {name}", { name }) }, box ? t("Search this region") : t("Search this")),
      el("a", { class: "button small here", href: searchAddress([...queries.map(format), own], said), "aria-label": t("Add {name} to the query", { name }) }, t("Add to query")),
      el("button", { type: "button", class: "small writes wrong", "aria-label": t("{name} is not a match", { name }), onclick: () => callNoMatch([entry]) }, t("Not a match"))));
}

// Photos that are no match

let last = null; // the answer that is shown, as `showResults` had it
let again = () => {}; // searches once more
const gone = new Set(); // numbers of results that were called no match while they were shown

/** Remember that photos are no match of what is searched for, and take them away; gives what was done, as a bar says it. */
async function drop(entries) {
  if (!last) return null;
  const { answer, asked } = last;
  const wrong = entries.filter((entry) => !isQuery(entry, asked.queries));
  if (!wrong.length) return t("The photo that you search with always matches itself.");
  const done = await rejectAll(wrong, asked.queries, answer.uploads);
  for (const { number } of wrong) gone.add(number);
  const rejected = [...new Set([...(answer.rejected ?? []), ...wrong.map(({ number }) => number)])];
  showResults({ ...answer, rejected }, asked, true);
  const undo = async () => {
    await done.undo();
    again();
  };
  return { said: tn(wrong.length, "{n} photo is now marked as not a match.", "{n} photos are now marked as not a match."), undo };
}

async function callNoMatch(entries) {
  try {
    const { said, undo } = await drop(entries);
    notice(said, undo);
    at("results-title").focus({ preventScroll: true }); // the button has gone
  } catch (error) {
    notice(error.message || String(error));
  }
}

/** Listen to what is done with results; `search`: searches once more. */
export function listenToResults(search) {
  again = search;
  listenToChoice({
    actions: [{ id: "no-match-chosen", label: t("Not a match"), run: drop, writes: true }],
    changed: (kind) => {
      if (kind === "hide" || kind === "remove") again();
    },
  });
  at("rejected").addEventListener("toggle", showRejected);
}

/** Show the photos that are no match, once somebody asks for them. */
async function showRejected() {
  const { answer: { rejected = [], uploads }, asked } = last ?? { answer: {} };
  if (!at("rejected").open) return;
  const photos = await Promise.all(rejected.slice(0, MOST_REJECTED).map((number) => read(number).catch(() => null)));
  if (last?.asked !== asked) return; // another answer is shown by now
  at("no-match").replaceChildren(...photos.filter(Boolean).map((one) => el("li", { class: "result" },
    el("a", { href: address("/photo", { number: one.number }) }, frame(one, { alt: one.name })),
    nameLine("span", one.name),
    el("div", { class: "row" },
      el("button", { type: "button", class: "small writes", "aria-label": t("{name} is a match after all", { name: one.name }), onclick: async () => {
        try {
          await takeBack([one.number], asked.queries, uploads);
          again();
          at("results-title").focus({ preventScroll: true });
        } catch (error) {
          notice(error.message || String(error));
        }
      } }, t("It is a match"))))));
}

// All of them

const shown = () => [...at("results").querySelectorAll(".result")];

function fill(list, items) {
  for (const item of [...list.children]) if (!items.includes(item)) item.remove();
  for (const [place, item] of items.entries()) if (list.children[place] !== item) list.insertBefore(item, list.children[place] ?? null);
}

/** Show results in place of those that are shown: what is the same stays where it is, with its picture and the focus. */
function replace(answer, asked, completes) {
  const { results, turned } = answer;
  const before = shown();
  const known = new Map(before.map((item) => [item.dataset.entry, item]));
  const kept = before.find((item) => item.getBoundingClientRect().bottom > 0); // what is being read
  const top = kept?.getBoundingClientRect().top;
  const list = nameList(results.map(({ number }) => number)); // so that a photo's page leads to those before and after it
  const wanted = results.map((entry) => {
    const { rank, score, probability, ...same } = entry; // other turns change the scores of what was found upright
    const text = `${asked.here} ${JSON.stringify(same)}`; // its links say what was asked
    const item = known.get(text) ?? tile(entry, turned, asked);
    item.dataset.entry = text;
    item.querySelector("a.title, a.name").href = address("/photo", { number: entry.number, list, q: asked.queries.map(format) });
    grade(item, entry, isQuery(entry, asked.queries), isOfText(answer, entry.number));
    return item;
  });
  fill(at("found"), wanted.filter((_, place) => isShown(results[place])));
  fill(at("perhaps"), wanted.filter((_, place) => !isShown(results[place])));
  offerChoice(results, completes, results.filter((entry) => entry.found && !isQuery(entry, asked.queries) && !isOfText(answer, entry.number)));
  try { // so that the page of a match leads to the next one
    sessionStorage.setItem("cairn.matches", JSON.stringify(shown().map((item) => item.querySelector("a[href*='/match?']")?.getAttribute("href"))));
  } catch {
    // The browser keeps nothing: there are no links to the next match.
  }
  const similar = at("perhaps").children.length;
  at("similar").hidden = !similar;
  at("similar-title").textContent = tn(similar, "{n} photo is possibly similar", "{n} photos are possibly similar");
  if (!completes) at("similar").open = false; // else as the reader left it
  if (kept?.isConnected && top < 0) scrollBy({ top: kept.getBoundingClientRect().top - top });
}

/** How the answer was found, for those who want to know. */
function explain(answer) {
  const engine = at("engine").querySelector(`[value="${CSS.escape(answer.engine)}"]`);
  const by = { how: engine?.textContent ?? answer.engine, engine: answer.engine };
  const facts = [
    t("Compared by: {how} (engine {engine}).", by),
    (engine?.dataset.verified === "none" || answer.global_descriptors === "alone") && t("The positions of things in the photos were not checked."),
    answer.turned ? t("Turned views were looked at.") : t("Upright views were looked at."),
    t("The search took {seconds} s.", { seconds: fixed(answer.seconds.total, 2) }),
  ];
  at("facts").textContent = facts.filter(Boolean).join(" ");
  at("how").hidden = false;
}

/** Show an answer. `asked`: {queries, said, top, here}, what it is for; `completes`: whether to the answer that is shown. */
export function showResults(given, asked, completes) {
  if (!completes) gone.clear();
  const left = given.results.filter(({ number }) => !gone.has(number)); // an answer that was asked for before may have them
  const rejected = [...new Set([...(given.rejected ?? []), ...gone])];
  const answer = { ...given, results: left, rejected };
  last = { answer, asked };
  replace(answer, asked, completes);
  at("more-results").hidden = given.results.length < asked.top || !moreThan(asked.top);
  at("shown-so-far").textContent = tn(given.results.length, "The best {n} is shown.", "The best {n} are shown.");
  at("rejected").hidden = !rejected.length;
  if (!completes) at("rejected").open = false;
  at("rejected-title").textContent = tn(rejected.length, "{n} photo you marked as not a match", "{n} photos you marked as not a match");
  showRejected();
  explain(answer);
  const notes = [];
  if (!answer.results.length && answer.passing !== 0) {
    notes.push(asked.queries.every(({ features }) => features === 0)
      ? t("Cairn found nothing to recognise in this photo: it may be blank, blurred or very small. Searches by photo do not find it; words do.")
      : t("A larger box, or another choice in the options, may find more."));
  }
  if (answer.missing_shards?.length) notes.push(t("Part of the collection is not available: its photos were not searched."));
  for (const { name, said: remark } of answer.remarks ?? []) notes.push(t("{name}: {remark}.", { name, remark }));
  at("note").textContent = notes.join(" ");
  at("said").textContent = sentence(answer, asked);
}

/** The next number of results that may be asked for; undefined: there is none. */
export const moreThan = (top) => [...at("top").options].map(({ value }) => Number(value)).find((one) => one > top);

/** Take away what is shown; `said` stands in place of the answer. */
export function clearResults(said = "") {
  fill(at("found"), []);
  fill(at("perhaps"), []);
  offerChoice([]);
  last = null;
  at("similar").hidden = at("how").hidden = at("rejected").hidden = at("more-results").hidden = true;
  at("note").textContent = "";
  at("said").textContent = said;
}

/** Whether results are shown. */
export const anyResults = () => shown().length > 0;
