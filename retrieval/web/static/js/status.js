// What the collection holds, what is wrong with it, and what to do next; in words, with the figures folded away.

import { address, collection as read, health } from "./api.js";
import { at, el } from "./dom.js";
import { figure, t, tn } from "./language.js";
import { start } from "./page.js";
import { workButton } from "./jobs/jobs.js";
import { awayFolders, awaySentence } from "./photos/away.js";

const UNITS = [t("bytes"), t("KB"), t("MB"), t("GB"), t("TB")];
const MOST = 1000; // names that are listed for one reason
const SHORT = 12; // figures of a fingerprint

function size(bytes) {
  const power = bytes < 1000 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), UNITS.length - 1);
  return `${figure(bytes / 1000 ** power, { maximumFractionDigits: power ? 1 : 0 })} ${UNITS[power]}`;
}

function show(value) {
  if (value === null || value === undefined || value === "") return t("none");
  if (typeof value === "boolean") return value ? t("yes") : t("no");
  if (typeof value === "number") return figure(value, { maximumFractionDigits: 4 });
  if (/^[0-9a-f]{64}$/.test(value)) return el("code", { title: value }, `${value.slice(0, SHORT)}…`);
  const [, photos, of] = /^(\d+) photos of (.*)$/.exec(value) ?? []; // what a vocabulary was made from
  return of ? tn(Number(photos), "{n} photo of {collection}", "{n} photos of {collection}", { collection: of }) : String(value);
}

const TITLES = {
  images: t("Photos"), features: t("Features"), words: t("Words"), segments: t("Segments"), missing: t("Files that are gone"), removed: t("Removed photos"), text_masked: t("Photos whose printed text was left out"), removed_for_good: t("Removed for good"),
  name: t("Name"), dim: t("Dimensions"), fingerprint: t("Fingerprint"), foreign: t("From another program"), descriptor: t("Descriptor"), signature: t("Signature"), augmentation: t("Augmentation"),
  recall_at_1: t("Recall at 1"), trained_on: t("Trained on"), imbalance: t("Imbalance"),
  postings: t("Postings"), geometry: t("Geometry"), signatures: t("Signatures"), notes: t("Notes"),
};
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
    [t("Photos it was made from"), show(trained.images)],
    [t("Their distance"), show(trained.quantisation_error)],
    [t("Other photos"), show(added.images)],
    [t("Their distance"), added.images ? show(added.quantisation_error) : t("none")],
    [t("Drift"), ratio === null ? t("unknown") : t("{ratio} times as far", { ratio: show(ratio) })],
  ];
}

/** What can be searched. */
function holdings({ images, features, missing, removed }) {
  const by = tn(features, "{n} detail", "{n} details");
  const gone = tn(missing,
    "The file of {n} photo is no longer where it was. The photo is still found, but cannot be shown.",
    "The files of {n} photos are no longer where they were. The photos are still found, but cannot be shown.");
  return [
    images ? tn(images, "{n} photo can be searched, by {features}.", "{n} photos can be searched, by {features}.", { features: by }) : t("There are no photos yet."),
    missing > 0 && gone,
    removed > 0 && tn(removed, "{n} removed photo still takes space on the disk.", "{n} removed photos still take space on the disk."),
  ].filter(Boolean);
}

/** What the measure of its fit comes to. */
const ADVICE = {
  good: () => t("They suit what was added."),
  unknown: () => t("Too few photos were added to tell whether they suit them."),
  poor: ({ drift }) => tn(drift.added.images,
    "They do not suit the {n} photo that was added: learn new ones.",
    "They do not suit the {n} photos that were added: learn new ones."),
  outgrown: ({ words }) => tn(words,
    "The collection has outgrown its {n} pattern: learn more.",
    "The collection has outgrown its {n} patterns: learn more."),
};

/** What the server does not offer, and what it is to be started with. */
function refusals({ originals, folders, role }) {
  return [
    !originals && t("The files of photos cannot be downloaded: whoever runs this server can allow it with --originals."),
    role === "write" && !folders && t("No folder of the server can be chosen: whoever runs this server can allow some with --photos."),
  ].filter(Boolean);
}

/** How well the vocabulary fits. */
function fit(vocabulary) {
  if (!vocabulary) return [t("Nothing was learnt yet: that is done with the first photos.")];
  const { ratio, added, trained, fit: state } = vocabulary.drift;
  const made = tn(vocabulary.words,
    "Photos are compared by {n} small pattern, learnt from {source}.",
    "Photos are compared by {n} small patterns, learnt from {source}.", { source: show(vocabulary.trained_on) });
  if (!added.images && trained.images) return [made, t("All photos of the collection were among those, so they suit it.")];
  const worse = Math.round(100 * (ratio - 1));
  const tells = ratio !== null && state !== "unknown";
  const compared = tells && (worse > 0
    ? tn(added.images,
      "The {n} photo that they were not made from is described {percent} less closely.",
      "The {n} photos that they were not made from are described {percent} less closely.",
      { percent: figure(worse / 100, { style: "percent" }) })
    : tn(added.images,
      "The {n} photo that they were not made from is described just as closely.",
      "The {n} photos that they were not made from are described just as closely."));
  return [made, compared, ADVICE[state](vocabulary)].filter(Boolean);
}

/** What to do: what each step is for, what does it, and the command line that does the same. */
function steps({ images, failed, missing, removed, vocabulary }) {
  const all = [];
  const add = (label, primary = false) => el("a", { class: primary ? "button small primary writes" : "button small writes", href: address("/work") }, label);
  const look = () => workButton(t("Look again"), "index", { source: "known" });
  if (!images) all.push([t("There are no photos yet."), [add(t("Add photos"), true)], "index"]);
  if (failed.length) {
    all.push([tn(failed.length,
      "Repair or replace the photo that could not be read, then try it again.",
      "Repair or replace the photos that could not be read, then try them again."), [workButton(t("Try again"), "index", { source: "failed" })], "index"]);
  }
  if (missing) {
    all.push([tn(missing,
      "Connect the drive of the photo whose file is gone and look again. Is it gone for good? Then remove it.",
      "Connect the drive of the photos whose files are gone and look again. Are they gone for good? Then remove them."),
    [look(), workButton(t("Remove them"), "remove", { missing: true })], "remove --missing"]);
  }
  if (removed) all.push([t("Free the space of what was removed."), [workButton(t("Free space"), "compact")], "compact"]);
  if (vocabulary && ["poor", "outgrown"].includes(vocabulary.drift.fit)) {
    all.push([t("Learn new patterns from all photos, by which they are then compared; searches go on meanwhile."), [workButton(t("Learn new patterns"), "retrain", {}, true)], "retrain"]);
  }
  const needed = all.length;
  if (images) {
    all.push([needed ? t("Or:") : t("Nothing needs to be done. You can add more photos, find photos that show the same thing, or check that no file is damaged."),
      [add(t("Add photos")), workButton(t("Find groups"), "group"), workButton(t("Check all files"), "check"),
        el("a", { class: "button small writes", href: address("/improve") }, t("Improve search"))], "group"]);
  }
  if (images) {
    all.push([t("Did another program edit metadata? Read it again. Sidecars are files next to the photos, in which other programs find the titles, tags, dates and albums entered here; no photo is changed."),
      [workButton(t("Read files again"), "metadata"), workButton(t("Write sidecars"), "sidecars")], "metadata --write-sidecars"]);
  }
  return all;
}

/** The same on a command line. */
function commandLines(all, name) {
  const place = /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
  const line = (command) => {
    const [verb, ...options] = command.split(" ");
    return ["cairn", verb, place, ...(verb === "index" ? [t("FOLDER")] : options)].join(" ");
  };
  const lines = [...new Set([...all.map(([, , command]) => command), "index", "check"])].map(line);
  return lines.map((one) => el("li", {}, el("code", {}, one)));
}

const paragraphs = (id, sentences) => at(id).replaceChildren(...sentences.map((one) => el("p", {}, one)));

/** Reasons, the most frequent first, each with the names of its photos folded away. */
function failures(failed) {
  const byReason = new Map();
  for (const { name, said: reason } of failed) {
    if (!byReason.has(reason)) byReason.set(reason, []);
    byReason.get(reason).push(name);
  }
  const sorted = [...byReason].sort((one, other) => other[1].length - one[1].length);
  return sorted.flatMap(([reason, names]) => folded(tn(names.length, "{n} photo: {reason}.", "{n} photos: {reason}.", { reason }), names));
}

/** Names of photos, folded away below a sentence. */
function folded(sentence, names) {
  return [el("details", {}, el("summary", {}, sentence),
    el("ul", { class: "names" }, ...names.slice(0, MOST).map((name) => el("li", { dir: "auto" }, name)),
      names.length > MOST && el("li", {}, t("and {n} more that are not listed here", { n: figure(names.length - MOST) }))))];
}

start(async () => {
  const [facts, server, gone] = await Promise.all([read(), health(), awayFolders()]);
  const { descriptor, vocabulary, bytes, failed = [], featureless = [], text_only: textOnly = [], bytes_per_feature: each, ...plain } = facts;
  at("said").textContent = failed.length
    ? tn(failed.length, "{n} photo could not be read", "{n} photos could not be read")
    : facts.images ? t("Every photo was read") : "";
  paragraphs("holdings", [...holdings(facts), ...gone.map(awaySentence), ...refusals(server)]);
  paragraphs("fit", fit(vocabulary));
  const all = steps({ ...facts, failed });
  at("steps").replaceChildren(...all.map(([text, acts]) => el("li", {}, el("p", {}, text), el("div", { class: "row" }, ...acts))));
  at("commands").replaceChildren(...commandLines(all, server.collection));
  at("never").hidden = !featureless.length;
  const ofText = new Set(textOnly);
  const others = featureless.filter((name) => !ofText.has(name));
  at("featureless").replaceChildren(
    ...(others.length ? folded(tn(others.length, "{n} photo: it is blank, blurred or too small.", "{n} photos: they are blank, blurred or too small."), others) : []),
    ...(textOnly.length ? folded(tn(textOnly.length, "{n} photo: it shows nothing but text, which is left out.", "{n} photos: they show nothing but text, which is left out."), textOnly) : []),
  );
  at("failures").hidden = !failed.length;
  at("failed").replaceChildren(...failures(failed), ...(failed.length ? [el("p", { class: "row" }, workButton(t("Try again"), "index", { source: "failed" }))] : []));
  const counts = Object.entries(plain).filter(([, value]) => typeof value !== "object");
  at("cards").replaceChildren(
    card(t("Collection"), rows(Object.fromEntries(counts))),
    card(t("Descriptor"), rows(descriptor)),
    card(t("Vocabulary"), vocabulary ? vocabularyRows(vocabulary) : [[t("Words"), t("none")]]),
    card(t("Space"), [...rows(bytes, size), ...(typeof each === "number" ? [[t("For each feature"), t("{n} bytes", { n: show(each) })]] : [])]),
  );
  at("page").hidden = false;
});
