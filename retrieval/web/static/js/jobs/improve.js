// Improve search: learn from the collection's own photos, and say what it is worth.

import { address, json, photos, thumbnail } from "../api.js";
import { at, complain, corners, el } from "../dom.js";
import { figure, moment, t, tn } from "../language.js";
import { start } from "../page.js";
import { calledBy, frame } from "../grid.js";
import { format } from "../query.js";
import { begin, isOpen, showCards, watch } from "./jobs.js";

const SECONDS = 2; // for each photo, roughly, on one core: to learn, to judge and to index anew
const TIMES = 5; // as long as adding the photos took, where that is known: four to learn and judge, one to index anew

function duration(seconds) {
  const minutes = Math.max(1, Math.round(seconds / 60));
  if (minutes < 90) return tn(minutes, "about a minute", "about {n} minutes");
  return tn(Math.round(minutes / 60), "about an hour", "about {n} hours");
}

/** What came of it, in a sentence of the reader's language. */
function sentence({ verdict, before, searches, switched }) {
  if (!searches || !searches.queries) return t("It cannot be said whether search would get better: too few of the photos show the same thing. Nothing was changed.");
  const which = (searches.verified.difference ?? 0) >= (searches.words.difference ?? 0) ? searches.verified : searches.words;
  const values = { queries: figure(searches.queries), won: figure(which.won ?? 0), lost: figure(which.lost ?? 0), name: before.descriptor };
  if (verdict === "better" && switched) {
    return t("Search finds more now: of {queries} searches, {won} find more than before and {lost} less. All photos were read again with what was learnt.", values);
  }
  if (verdict === "better") return t("Search would find more: of {queries} searches, {won} find more and {lost} less.", values);
  if (verdict === "worse") return t("What was learnt finds less: of {queries} searches, {won} find more and {lost} less. Everything stays as it was.", values);
  if (verdict === "same") return t("What was learnt finds no more than before: of {queries} searches, {won} find more and {lost} less. Everything stays as it was.", values);
  return t("It cannot be said whether search would get better: too few of the photos show the same thing. Nothing was changed.");
}

const points = (share) => (share === null || share === undefined ? "–" : figure(100 * share, { maximumFractionDigits: 1, minimumFractionDigits: 1 }));

function facts({ before, after, searches, seconds, at: when }) {
  const rows = [
    [t("Done"), moment(when)],
    [t("Took"), duration(seconds.total ?? 0)],
    [t("Described with before"), before.descriptor],
    [t("Learnt"), after?.descriptor],
    [t("Scenes searched for"), searches && figure(searches.scenes)],
    [t("Photos searched"), searches && figure(searches.photos)],
    [t("Mean average precision, verified"), before.map && after?.map && t("{before} before, {after} with what was learnt", { before: points(before.map.verified), after: points(after.map.verified) })],
    [t("Mean average precision, by words"), before.map && after?.map && t("{before} before, {after} with what was learnt", { before: points(before.map.words), after: points(after.map.words) })],
  ];
  return rows.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
}

/** In words, what a quick look says: whether enough photos show the same thing. */
function lookSentence({ photos, looked, alike, scenes, enough }) {
  const values = { photos: figure(photos), looked: figure(looked) };
  const what = scenes === null
    ? tn(alike, "Of {looked} photos that were looked at, {n} shows the same thing as another.", "Of {looked} photos that were looked at, {n} show the same thing as another.", values)
    : tn(scenes, "{alike} of {photos} photos show the same thing as another: {n} thing or place in all.", "{alike} of {photos} photos show the same thing as another: {n} things or places in all.", { ...values, alike: figure(alike) });
  return `${what} ${enough ? t("That is enough to tell whether search gets better.") : t("That is most likely too little to tell whether search gets better: you may save the time.")}`;
}

/** Look, before anything begins, whether it is worth it. */
async function look() {
  at("look").textContent = t("Looking whether enough photos show the same thing…");
  try {
    const found = await json("/api/improve/look");
    at("look").textContent = lookSentence(found);
    at("begin").classList.toggle("primary", found.enough);
  } catch {
    at("look").textContent = ""; // it can be begun all the same
  }
}

/** Pictures of what is found now and was not before: what was searched for, and the photo that is found. */
async function showGained({ gained, switched }) {
  at("gained-part").hidden = !gained.length;
  if (!gained.length) return;
  const numbers = [...new Set(gained.flatMap(({ photo, found }) => [photo, found]))];
  const there = new Map((await photos({ numbers })).photos.map((one) => [one.number, one]));
  at("gained-title").textContent = switched ? t("Found now, but not before") : t("Would be found, but is not found now");
  const shown = gained.filter(({ photo, found }) => there.has(photo) && there.has(found));
  at("gained-part").hidden = !shown.length;
  at("gained").replaceChildren(...shown.map(({ photo, box, found }) => {
    const [query, other] = [there.get(photo), there.get(found)];
    const names = { name: calledBy(query), found: calledBy(other) };
    return el("li", {}, el("a", { href: address("/match", { q: format({ photo, upload: null, box }), photo: found }), "aria-label": t("{name}, found in {found}", names) },
      frame(query, { region: corners(box), source: thumbnail(photo), alt: "" }), el("span", { "aria-hidden": "true" }, "→"),
      frame(other, { source: thumbnail(found), alt: "" })));
  }));
}

/** How long it takes, by what took how long here: it itself when it was last done, or else adding the photos. */
function promised({ last, photos }, jobs) {
  if (last?.searches) return last.seconds.total;
  const [added] = jobs.filter(({ kind, state, result }) => kind === "index" && state === "done" && result?.added)
    .toSorted((one, other) => other.result.added - one.result.added);
  if (!added) return 60 + SECONDS * photos;
  return (TIMES * photos * added.result.seconds.total) / added.result.added;
}

async function show() {
  const [state, { jobs }] = await Promise.all([json("/api/improve"), json("/api/jobs")]);
  const seconds = promised(state, jobs);
  at("takes").textContent = t("For {photos} this takes {time}. You can stop it, and continue later where it stopped.", {
    photos: tn(state.photos, "{n} photo", "{n} photos"),
    time: duration(seconds),
  });
  let reason = "";
  if (state.foreign) reason = t("Another program described the details of these photos: Cairn cannot learn to do it better.");
  else if (state.photos < 2) reason = t("There are no photos to learn from yet.");
  else if (state.missing) {
    reason = tn(state.missing, "The file of one photo is missing: restore it, or remove the photo from the collection first.",
      "The files of {n} photos are missing: restore them, or remove the photos from the collection first.");
  }
  at("why-not").textContent = reason;
  at("why-not").hidden = !reason;
  at("begin").dataset.refused = reason ? "yes" : "";
  at("begin").disabled = Boolean(reason);
  at("begin").textContent = state.interrupted ? t("Continue improving search") : t("Improve search for these photos");
  at("verdict").hidden = !state.last;
  if (state.last) {
    const said = sentence(state.last);
    at("sentence").textContent = said;
    at("figures").replaceChildren(...facts(state.last));
    await showGained(state.last);
    at("picture").hidden = !(state.picture && state.last.searches?.queries);
    if (state.picture) {
      at("picture").src = address(state.picture, { at: state.last.at });
      at("picture").alt = said;
    }
  }
  at("page").hidden = false;
}

/** Follow the work, and show what came of it when it has ended. */
function follow() {
  let before = null;
  watch((jobs) => {
    const job = jobs.findLast(({ kind }) => kind === "improve");
    const open = Boolean(job && isOpen(job));
    at("begin").disabled = open || at("begin").dataset.refused === "yes";
    showCards(at("progress"), job && (open || job.state === "failed") ? [job] : []);
    const ended = job && !open ? `${job.id} ${job.state}` : "";
    if (before !== null && ended && ended !== before) show().catch(complain);
    before = ended;
  });
}

start(async () => {
  at("begin").addEventListener("click", async () => {
    complain(null);
    at("begin").disabled = true;
    try {
      await begin("improve");
    } catch (error) {
      at("begin").disabled = false;
      complain(error);
    }
  });
  await show();
  if (!at("begin").dataset.refused) look();
  follow();
});
