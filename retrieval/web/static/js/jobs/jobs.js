// Long work: begun here, followed as it gets on, and shown as cards. All parts of a page share one connection, which is
// open only while there is work and the page is seen: browsers have few connections to one server.

import { address, change, json } from "../api.js";
import { complain, el } from "../dom.js";
import { figure, moment, t, tn } from "../language.js";

const IDLE = 15_000; // milliseconds between two looks where no work is known
const OPEN = ["queued", "running", "paused"];
const MOST = 20; // names that a card lists

const listeners = new Set();
let known = null; // the jobs as they were told last
let source = null;
let timer = 0;
let asked = 0; // times: an answer that a later one has overtaken is thrown away

/** Whether a job waits, runs or is paused. */
export const isOpen = (job) => OPEN.includes(job.state);

function close() {
  source?.close();
  source = null;
  clearTimeout(timer);
}

function deliver(jobs) {
  known = jobs;
  for (const callback of [...listeners]) callback(jobs);
}

function listen() {
  source = new EventSource(address("/api/jobs/events"));
  source.addEventListener("jobs", ({ data }) => {
    const { jobs } = JSON.parse(data);
    deliver(jobs);
    if (!jobs.some(isOpen)) follow();
  });
  source.addEventListener("error", () => {
    if (source?.readyState === EventSource.CLOSED) follow();
  });
}

/** Listen where there is work, and look now and then where there is none. */
function follow() {
  close();
  if (document.hidden || !listeners.size) return;
  if (known?.some(isOpen)) listen();
  else timer = setTimeout(refresh, IDLE);
}

/** Ask how the work stands. */
export async function refresh() {
  close();
  const mine = (asked += 1);
  try {
    const { jobs } = await json("/api/jobs");
    if (mine === asked) deliver(jobs);
  } finally {
    if (mine === asked) follow();
  }
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : listeners.size && refresh().catch(() => {})));
window.addEventListener("pagehide", close);

/** Have `callback(jobs)` called with all jobs, now and whenever one has changed. Gives what ends that. */
export function watch(callback) {
  listeners.add(callback);
  if (known) callback(known);
  if (listeners.size === 1) refresh().catch(() => {}); // the page's own requests say what is wrong
  return () => {
    listeners.delete(callback);
    if (!listeners.size) close();
  };
}

/** Queue work: `kind` and `fields` as POST /api/jobs takes them. Gives the job. */
export async function begin(kind, fields = {}) {
  const job = await change("POST", "/api/jobs", { kind, ...fields });
  await refresh().catch(() => {});
  return job;
}

/** Wait until a job has ended; gives it. */
export function ended(number) {
  let seen = false; // what was known of the jobs may be older than this one
  return new Promise((resolve) => {
    const stop = watch((jobs) => {
      const job = jobs.find((one) => one.id === number);
      seen ||= Boolean(job);
      if (!seen || (job && isOpen(job))) return;
      queueMicrotask(() => stop());
      resolve(job);
    });
  });
}

// What a card says

const STATES = {
  queued: t("Waiting"),
  running: t("Running"),
  paused: t("Paused"),
  done: t("Done"),
  failed: t("Failed"),
  cancelled: t("Cancelled"),
};
/** What a job does, as a heading. */
const titleOf = ({ title, about }) => (about ? `${title}: ${about}` : title);

/** How long something takes, in words. */
function lasting(seconds) {
  const whole = Math.max(1, Math.round(seconds));
  if (whole < 60) return tn(whole, "{n} second", "{n} seconds");
  const minutes = Math.round(whole / 60);
  if (minutes < 90) return tn(minutes, "{n} minute", "{n} minutes");
  return tn(Math.round(minutes / 60), "{n} hour", "{n} hours");
}

/** What a job waits for. */
function waiting(ahead) {
  if (!ahead) return t("It starts as soon as the jobs before it have ended.");
  const values = { job: titleOf(ahead), collection: ahead.collection };
  if (ahead.here) return t("It starts when this has ended: {job}.", values);
  return ahead.collection
    ? t("It starts when this has ended in the collection {collection}: {job}.", values)
    : t("It starts when this has ended in another collection: {job}.", values);
}

/** How far a running job is. */
function reached({ title_of_step: step, done, of, unit, share: all, seconds_left: left, state, note, waits_for: ahead }) {
  if (state === "queued") return note || waiting(ahead);
  if (!step) return state === "paused" ? "" : t("Starting");
  const share = figure(all ?? (of ? done / of : 0), { style: "percent" });
  const counted = t("{place} of {total}", { place: figure(done), total: figure(of) });
  const amount = unit === "%" ? share : t("{done} of {of} ({share})", { done: figure(done), of: figure(of), share });
  const rest = left === null ? "" : t("about {time} left", { time: lasting(left) });
  return (all === null ? [step, amount, rest] : [share, step, unit === "%" ? "" : counted, rest]).filter(Boolean).join(" · ");
}

/** Pages of IIIF manifests that could not be fetched, and such manifests, with the reasons. */
const unfetched = (result) => (result?.manifests ?? []).flatMap(({ manifest, label, failed, said: reason }) =>
  [...failed.map((one) => [`${label}, ${one.page}`, one.said]), ...(reason ? [[label || manifest, reason]] : [])]);

/** What became of a job that has ended well. */
function outcome({ kind, result }) {
  const { lengths = {} } = result ?? {};
  switch (result ? kind : "") {
    case "index": {
      const { manifests = [] } = result;
      const sum = (count) => manifests.reduce((before, one) => before + count(one), 0);
      const [books, lacking, withdrawn] = [sum((one) => Boolean(one.reason)), sum((one) => one.failed.length), sum((one) => one.withdrawn.length)];
      return [
        manifests.length === 1 && manifests[0].label && `${manifests[0].label}:`,
        result.added ? tn(result.added, "{n} photo was added.", "{n} photos were added.") : t("There were no new photos."),
        lengths.failed > 0 && tn(lengths.failed, "{n} could not be read.", "{n} could not be read."),
        lengths.vanished > 0 && tn(lengths.vanished, "The file of {n} photo is gone.", "The files of {n} photos are gone."),
        books > 0 && tn(books, "{n} manifest could not be fetched.", "{n} manifests could not be fetched."),
        lacking > 0 && tn(lacking, "{n} page could not be fetched.", "{n} pages could not be fetched."),
        withdrawn > 0 && tn(withdrawn, "{n} page is no longer in its manifest: its photo stays.", "{n} pages are no longer in their manifests: their photos stay."),
      ];
    }
    case "group":
      return [result.groups
        ? tn(result.groups, "{n} group of photos that show the same thing was found.", "{n} groups of photos that show the same thing were found.")
        : t("No two photos show the same thing.")];
    case "retrain":
      return [tn(result.words?.after ?? 0, "Photos are compared by {n} pattern now.", "Photos are compared by {n} patterns now.")];
    case "compact": {
      const saved = (result.bytes?.before ?? 0) - (result.bytes?.after ?? 0);
      return [saved > 0 ? t("{size} MB were freed.", { size: figure(saved / 1e6, { maximumFractionDigits: 1 }) }) : t("There was no space to free.")];
    }
    case "remove":
      return [lengths.removed ? tn(lengths.removed, "{n} photo was removed.", "{n} photos were removed.") : t("There was nothing to remove.")];
    case "move":
      return [
        tn(lengths.moved ?? 0, "{n} photo was found there.", "{n} photos were found there."),
        lengths.left > 0 && tn(lengths.left, "{n} photo was not found there, and stays as it was.", "{n} photos were not found there, and stay as they were."),
      ];
    case "metadata":
      return [tn(result.read ?? 0, "{n} file was read.", "{n} files were read.")];
    case "sidecars":
      return [
        tn(result.written ?? 0, "{n} sidecar was written.", "{n} sidecars were written."),
        result.unchanged > 0 && tn(result.unchanged, "{n} already had all of it.", "{n} already had all of it."),
        result.missing > 0 && tn(result.missing, "The file of {n} photo is gone.", "The files of {n} photos are gone."),
        lengths.failed > 0 && tn(lengths.failed, "{n} could not be written.", "{n} could not be written."),
      ];
    case "check":
      return [lengths.damaged ? tn(lengths.damaged, "{n} file is damaged.", "{n} files are damaged.") : t("No file is damaged.")];
    case "improve":
      return [result.switched ? t("Searches find more now: what was learnt is in use.") : t("Nothing was changed: what was learnt does not find more beyond chance.")];
    case "searches": {
      const found = (result.searches ?? []).reduce((sum, one) => sum + (one.found?.length ?? 0), 0);
      return [found ? tn(found, "{n} photo was found.", "{n} photos were found.") : t("Nothing new was found.")];
    }
    default:
      return [];
  }
}

/** Photos that could not be read, pages that could not be fetched, or files that are damaged, with the reasons. */
function troubles({ result }) {
  const failed = (result?.failed ?? []).map(({ name, said: reason }) => [name, reason]);
  const damaged = (result?.damaged ?? []).map(({ file, said: what }) => [file, what]);
  const pages = unfetched(result);
  const all = [...failed, ...pages, ...damaged];
  if (!all.length) return null;
  const { lengths = {} } = result;
  const more = (lengths.failed ?? 0) + pages.length + (lengths.damaged ?? 0) - Math.min(all.length, MOST);
  return el("details", {},
    el("summary", {}, failed.length || pages.length ? t("Which, and why") : t("What is damaged")),
    el("ul", { class: "names" },
      ...all.slice(0, MOST).map(([name, reason]) => el("li", {}, el("span", { class: "what", dir: "auto" }, name), el("span", {}, reason))),
      more > 0 && el("li", {}, tn(more, "and {n} more", "and {n} more"))),
    damaged.length > 0 && el("p", {}, t("Whoever runs this server can repair the collection.")));
}

function button(label, act, card, primary = false) {
  const press = async () => {
    node.disabled = true;
    try {
      await act();
      await refresh();
    } catch (error) {
      card.complaint.textContent = error.message;
      node.disabled = false;
    }
  };
  const node = el("button", { type: "button", class: primary ? "small primary" : "small", onclick: press }, label);
  return node;
}

function buttons(job, card) {
  const post = (act) => () => change("POST", `/api/jobs/${job.id}/${act}`);
  const pause = button(t("Pause"), post("pause"), card);
  const resume = button(t("Go on"), post("resume"), card, true);
  const cancel = button(t("Cancel"), post("cancel"), card);
  const forget = button(t("Remove from the list"), () => change("DELETE", `/api/jobs/${job.id}`), card);
  const again = (kind, fields) => button(t("Try again"), () => begin(kind, fields), card);
  if (job.state === "paused") return [resume, cancel];
  if (isOpen(job)) return [pause, cancel];
  if (job.kind === "index" && job.result?.failed?.length) return [again("index", { source: "failed" }), forget];
  return job.state !== "done" && job.needs_nothing ? [again(job.kind, {}), forget] : [forget];
}

const said = (node, text) => node.textContent !== text && node.replaceChildren(text);

/** A card of a job. Its `update(job)` shows the job as it is then; buttons stay the same while its state does. */
export function jobCard(job) {
  const parts = {
    title: el("h3", {}),
    state: el("span", { class: "state" }),
    bar: el("progress", { "aria-label": t("Progress") }),
    text: el("p", { class: "measure" }),
    more: el("div", {}),
    complaint: el("p", { class: "error", role: "alert" }),
    acts: el("div", { class: "row writes" }),
  };
  const card = el("article", { class: "job panel" },
    el("div", { class: "job-head" }, parts.title, parts.state), parts.bar, parts.text, parts.more, parts.complaint, parts.acts);
  let shown = "";
  card.update = (now) => {
    card.dataset.state = now.state;
    said(parts.title, titleOf(now));
    said(parts.state, STATES[now.state]);
    const going = now.state === "running" || now.state === "paused";
    parts.bar.hidden = !going || (now.state === "paused" && !now.of);
    if (going && now.of) {
      parts.bar.max = now.share === null ? now.of : 1;
      parts.bar.value = now.share ?? now.done;
    } else parts.bar.removeAttribute("value");
    const finished = now.ended && moment(now.ended);
    said(parts.text, isOpen(now) ? reached(now) : [...outcome(now).filter(Boolean), now.error, finished].filter(Boolean).join(" "));
    if (shown === now.state) return;
    shown = now.state;
    parts.complaint.textContent = "";
    parts.more.replaceChildren(...[troubles(now)].filter(Boolean));
    parts.acts.replaceChildren(...buttons(now, parts));
  };
  card.update(job);
  return card;
}

/** Show jobs as cards in a node: cards that are there already are updated, so that the focus stays where it is. */
export function showCards(node, jobs) {
  const cards = new Map([...node.children].map((card) => [card.dataset.job, card]));
  const wanted = jobs.map((job) => {
    const card = cards.get(String(job.id)) ?? jobCard(job);
    card.dataset.job = job.id;
    card.update(job);
    return card;
  });
  for (const card of cards.values()) if (!wanted.includes(card)) card.remove();
  wanted.forEach((card, place) => node.children[place] !== card && node.insertBefore(card, node.children[place] ?? null));
}

/** A small sign that work is going on, for the header: a link to the page of work, hidden while there is none. */
export function sign(node) {
  const link = el("a", { class: "sign", href: address("/work"), hidden: true });
  node.append(link);
  return watch((jobs) => {
    const open = jobs.filter(isOpen);
    const one = open.find((job) => job.state === "running") ?? open[0];
    link.hidden = !one;
    if (!one) return;
    const share = one.of ? figure(one.share ?? one.done / one.of, { style: "percent" }) : "";
    said(link, [titleOf(one), one.state === "running" ? share : STATES[one.state]].filter(Boolean).join(" · "));
    link.classList.toggle("still", one.state !== "running");
  });
}

/** A button that begins work and leads to where it is followed. */
export function workButton(label, kind, fields = {}, primary = false) {
  const press = async () => {
    node.disabled = true;
    try {
      await begin(kind, fields);
      location.assign(address("/work"));
    } catch (error) {
      complain(error);
      node.disabled = false;
    }
  };
  const node = el("button", { type: "button", class: primary ? "small primary writes" : "small writes", onclick: press }, label);
  return node;
}

/** Say in a note what work would be good for, with a button that begins it; hidden where there is nothing to say. */
export function advise(node, text, label, kind) {
  node.hidden = !text;
  node.replaceChildren(...(text ? [el("p", {}, text), el("p", { class: "row" }, workButton(label, kind, {}, true))] : []));
}
