// What the collection holds, what is wrong with it, and what to do next; in words, with the figures folded away.

import { collection as read, health } from "./api.js";
import { at, count, el } from "./dom.js";
import { start } from "./page.js";

const UNITS = ["bytes", "KB", "MB", "GB", "TB"];
const MOST = 1000; // names that are listed for one reason
const SHORT = 12; // figures of a fingerprint

function size(bytes) {
  const power = bytes < 1000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), UNITS.length - 1);
  return `${(bytes / 1000 ** power).toLocaleString("en", { maximumFractionDigits: power ? 1 : 0 })} ${UNITS[power]}`;
}

function show(value) {
  if (value === null || value === undefined || value === "") return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return value.toLocaleString("en", { maximumFractionDigits: 4 });
  if (/^[0-9a-f]{64}$/.test(value)) return el("code", { title: value }, `${value.slice(0, SHORT)}…`);
  return String(value).replace(/^1 photos /, "1 photo ");
}

const TITLES = { images: "Photos", dim: "Dimensions", missing: "Files that are gone", removed: "Removed photos" };
const title = (key) => TITLES[key] ?? key.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());

function card(name, rows) {
  const list = el("dl", { class: "facts" }, ...rows.flatMap(([key, value]) => [el("dt", {}, key), el("dd", {}, value)]));
  return el("section", { class: "panel" }, el("h3", {}, name), list);
}

const rows = (object, text = show) => Object.entries(object ?? {}).map(([key, value]) => [title(key), text(value)]);

/** Rows of a vocabulary; what it is measured by is its mean squared distance from the features that it stands for. */
function vocabularyRows({ drift: { trained, added, ratio }, ...plain }) {
  return [
    ...rows(plain),
    ["Photos it was made from", show(trained.images)],
    ["Their distance", show(trained.quantisation_error)],
    ["Other photos", show(added.images)],
    ["Their distance", added.images ? show(added.quantisation_error) : "none"],
    ["Drift", ratio === null ? "unknown" : `${show(ratio)} times as far`],
  ];
}

const isOne = (number, one, several) => (number === 1 ? one : several);

/** What can be searched. */
function holdings({ images, features, missing, removed }) {
  const gone = isOne(missing,
    "The file of 1 photo is no longer where it was indexed. The photo is still found, but cannot be shown.",
    `The files of ${count(missing, "photo")} are no longer where they were indexed. The photos are still found, but cannot be shown.`);
  return [
    images ? `${count(images, "photo")} can be searched, by ${count(features, "feature")}.` : "There are no photos yet.",
    missing > 0 && gone,
    removed > 0 && `${count(removed, "removed photo")} still ${isOne(removed, "takes", "take")} room on the disk.`,
  ].filter(Boolean);
}

/** How well the vocabulary fits. */
function fit(vocabulary) {
  if (!vocabulary) return ["There is no vocabulary yet: it is made when the first photos are indexed."];
  const { ratio, added, trained, fit: state, advice } = vocabulary.drift;
  const made = `Photos are compared by ${count(vocabulary.words, "visual word")}, made from ${show(vocabulary.trained_on)}.`;
  if (!added.images && trained.images) return [made, "All photos of the collection were among those, so the words fit."];
  const others = isOne(added.images, "The 1 photo that they were not made from is", `The ${count(added.images, "photo")} that they were not made from are`);
  const worse = Math.round(100 * (ratio - 1));
  const tells = ratio !== null && state !== "unknown";
  const compared = tells && `${others} described ${worse > 0 ? `${worse}% less closely` : "just as closely"}.`;
  return [made, compared, advice].filter(Boolean);
}

/** What to do: sentences with commands in them, as lists of texts and elements. */
function steps(facts, name) {
  const place = /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
  const command = (verb, rest = "") => el("code", {}, `cairn ${verb} ${place}${rest}`);
  const { images, failed, missing, removed, vocabulary } = facts;
  const all = [];
  if (!images) all.push(["Add photos: ", command("index", " FOLDER"), ", with the folder where they are."]);
  if (failed.length) {
    all.push([`Mend or replace ${isOne(failed.length, "the photo", "the photos")} that could not be indexed, then run `, command("index", " FOLDER"), " again, with the folder of your photos."]);
  }
  if (missing) {
    const gone = isOne(missing, "the photo whose file is", "the photos whose files are");
    all.push([`Connect the drive of ${gone} gone and run `, command("index", " FOLDER"), ` again. ${isOne(missing, "Is it", "Are they")} gone for good? `, command("remove", " --missing"), ` takes ${isOne(missing, "it", "them")} out.`]);
  }
  if (removed) all.push(["Give back the room of what was removed: ", command("compact"), "."]);
  if (vocabulary && ["poor", "outgrown"].includes(vocabulary.drift.fit)) all.push(["Make a new vocabulary from all photos: ", command("retrain"), "."]);
  if (!all.length) all.push(["Nothing needs to be done. Add more photos with ", command("index", " FOLDER"), ", or look for photos that show the same thing with ", command("group"), "."]);
  return all;
}

const paragraphs = (id, sentences) => at(id).replaceChildren(...sentences.map((one) => el("p", {}, one)));

/** Reasons, the most frequent first, each with the names of its photos folded away. */
function failures(failed) {
  const byReason = new Map();
  for (const { name, reason } of failed) {
    if (!byReason.has(reason)) byReason.set(reason, []);
    byReason.get(reason).push(name);
  }
  const sorted = [...byReason].sort((one, other) => other[1].length - one[1].length);
  return sorted.map(([reason, names]) => el("details", {},
    el("summary", {}, `${count(names.length, "photo")}: ${reason.replace(/\.$/, "")}.`),
    el("ul", { class: "names" }, ...names.slice(0, MOST).map((name) => el("li", { dir: "auto" }, name)),
      names.length > MOST && el("li", {}, `and ${(names.length - MOST).toLocaleString("en")} more, which cairn info lists`))));
}

start(async () => {
  const [facts, { collection: name }] = await Promise.all([read(), health()]);
  const { descriptor, vocabulary, bytes, failed = [], bytes_per_feature: each, ...plain } = facts;
  at("said").textContent = failed.length ? `${count(failed.length, "photo")} could not be indexed` : facts.images ? "Every photo was indexed" : "";
  paragraphs("holdings", holdings(facts));
  paragraphs("fit", fit(vocabulary));
  at("steps").replaceChildren(...steps(facts, name).map((step) => el("li", {}, ...step)));
  at("failures").hidden = !failed.length;
  at("failed").replaceChildren(...failures(failed));
  const counts = Object.entries(plain).filter(([, value]) => typeof value !== "object");
  at("cards").replaceChildren(
    card("Collection", rows(Object.fromEntries(counts))),
    card("Descriptor", rows(descriptor)),
    card("Vocabulary", vocabulary ? vocabularyRows(vocabulary) : [["Words", "none"]]),
    card("Space", [...rows(bytes, size), ...(typeof each === "number" ? [["For each feature", `${show(each)} bytes`]] : [])]),
  );
  at("page").hidden = false;
});
