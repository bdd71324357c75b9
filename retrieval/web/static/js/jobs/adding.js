// Adding photos in the browser: dropped or chosen files are kept by the server, or a folder of the server's machine is read.

import { address, ask, json } from "../api.js";
import { el } from "../dom.js";
import { figure, t } from "../language.js";
import { folderChooser } from "./folders.js";
import { begin, ended, jobCard, watch } from "./jobs.js";

const PHOTOS = /\.(jpe?g|jpe|jfif|png|tiff?|webp|hei[cf]|hif|avif|bmp|gif|p[pg]m)$/i;
const FILMS = /\.(mp4|m4v|mov|webm|mkv|avi|mpe?g|3gp|wmv)$/i;
const AT_ONCE = 2; // uploads under way
const MOST = 20; // refused files that are listed

/** Send one file, with the folder that it was in; it is not indexed yet. */
function keep({ file, folder }, signal) {
  const body = new FormData();
  body.append("index", "no");
  if (folder) body.append("folder", folder);
  body.append("photos", file, file.name || "photo.jpg");
  return ask(address("/api/photos"), { method: "POST", headers: { "X-Cairn": "1" }, body, signal });
}

/** Send files, a few at a time; `tell(sent, refused)` after each. Gives the refused ones as [name, sentence]. */
async function send(files, tell, signal) {
  const waiting = [...files];
  const refused = [];
  let sent = 0;
  const work = async () => {
    for (let one = waiting.shift(); one && !signal.aborted; one = waiting.shift()) {
      try {
        await keep(one, signal);
        sent += 1;
      } catch (error) {
        if (error.name === "AbortError") return;
        refused.push([one.file.name, error.message]);
        if (error.status === 507 || error.status === 403 || error.status === 0) waiting.length = 0; // the next would not fare better
      }
      tell(sent, refused);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return { sent, refused };
}

/** A chosen file as {file, folder}: the folder is "" where single files were chosen. */
const chosen = (file) => ({ file, folder: (file.webkitRelativePath || "").split("/").slice(0, -1).join("/") });

/** Files of what was dropped, those in folders too, as {file, folder}. */
async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((entry) => entry.isDirectory)) return [...transfer.files].map(chosen);
  const read = async (entry, folder) => {
    if (entry.isFile) return [{ file: await new Promise((resolve, reject) => entry.file(resolve, reject)), folder }];
    const reader = entry.createReader();
    const below = folder ? `${folder}/${entry.name}` : entry.name;
    const found = [];
    for (;;) {
      const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!some.length) break;
      for (const one of some) if (!one.name.startsWith(".")) found.push(...await read(one, below));
    }
    return found;
  };
  return (await Promise.all(entries.map((entry) => read(entry, "")))).flat();
}

/** Follow a job in a node until it has ended, and say so to the page with the event `added`. */
async function follow(node, job) {
  const card = jobCard(job);
  if (!document.getElementById("now")) node.replaceChildren(card); // the page of work shows it anyway
  const stop = watch((jobs) => {
    const now = jobs.find((one) => one.id === job.id);
    if (now) card.update(now);
  });
  const last = await ended(job.id);
  stop();
  node.dispatchEvent(new CustomEvent("added", { bubbles: true, detail: last }));
}

function uploading(progress, complain) {
  const input = el("input", { type: "file", multiple: true, accept: "image/*,video/*,.heic,.heif,.tif,.tiff,.avif", id: "add-files" });
  const whole = el("input", { type: "file", hidden: true, "aria-label": t("A whole folder") });
  whole.webkitdirectory = true;
  const folder = el("button", { type: "button", class: "small", onclick: () => whole.click() }, t("Choose a whole folder"));
  const drop = el("div", { class: "drop" },
    el("label", { for: "add-files" }, t("Drop photos, films or folders here, or choose them")), input, folder, whole,
    el("p", { class: "hint" }, t("The server keeps a copy of them with the collection.")));

  async function take(all) {
    complain(null);
    const isFilm = ({ file }) => FILMS.test(file.name);
    const files = all.filter((one) => one.file.type.startsWith("image/") || PHOTOS.test(one.file.name) || isFilm(one));
    if (!files.length) {
      if (all.length) complain(t("None of these files is a photo or a film."));
      return;
    }
    const stopping = new AbortController();
    const bar = el("progress", { max: files.length, "aria-label": t("Upload") }); // moves by itself until the first has arrived
    const text = el("p", { class: "measure", role: "status" });
    const reasons = el("ul", { class: "names" });
    const tell = (sent, refused) => {
      if (sent + refused.length) bar.value = sent + refused.length;
      text.textContent = t("{sent} of {all} files uploaded", { sent: figure(sent), all: figure(files.length) });
      reasons.replaceChildren(...refused.slice(0, MOST).map(([name, reason]) =>
        el("li", {}, el("span", { class: "what", dir: "auto" }, name), el("span", {}, reason))));
    };
    tell(0, []);
    const cancel = el("button", { type: "button", class: "small", onclick: () => stopping.abort() }, t("Stop uploading"));
    const told = el("div", { class: "stack" });
    progress.replaceChildren(bar, text, cancel, reasons, told);
    drop.classList.add("busy");
    input.disabled = folder.disabled = true;
    try {
      const { sent } = await send(files, tell, stopping.signal);
      cancel.remove();
      if (sent) await follow(told, await begin("index", { source: "uploads", ...(files.some(isFilm) && { films: true }) }));
    } catch (error) {
      complain(error);
    } finally {
      cancel.remove();
      input.disabled = folder.disabled = false;
      input.value = whole.value = "";
      drop.classList.remove("busy");
    }
  }

  for (const one of [input, whole]) one.addEventListener("change", () => take([...one.files].map(chosen)));
  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", async (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (input.disabled) return;
    try {
      await take(await dropped(event.dataTransfer));
    } catch (error) {
      complain(error); // a folder that the browser may not read
    }
  });
  return drop;
}

function choosing({ roots, films }, progress, complain) {
  let place = null;
  const tick = el("input", { type: "checkbox", checked: films });
  const button = el("button", { type: "button", class: "primary", hidden: true, onclick: async () => {
    button.disabled = true;
    complain(null);
    try {
      await follow(progress, await begin("index", { root: place.root, path: place.path, films: tick.checked }));
    } catch (error) {
      complain(error);
    } finally {
      button.disabled = false;
    }
  } }, t("Add these photos"));
  const chooser = folderChooser(roots, (chosen) => {
    place = chosen;
    button.hidden = !chosen.usable;
  }, complain);
  return el("div", { class: "stack" }, chooser, el("label", { class: "tick" }, tick, t("Films too: a photo of each shot")), button);
}

/** A field for the address of a manifest, whose pages the server fetches. */
function fetching(progress, complain) {
  const field = el("input", { type: "url", required: true, maxlength: 4096, id: "add-manifest", placeholder: "https://…/manifest.json" });
  const button = el("button", { class: "primary" }, t("Add these pages"));
  return el("form", { class: "stack", onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    complain(null);
    try {
      await follow(progress, await begin("index", { source: "manifest", address: field.value.trim() }));
    } catch (error) {
      complain(error);
    } finally {
      button.disabled = false;
    }
  } }, el("label", { for: "add-manifest" }, t("Address of an IIIF manifest")), field,
    el("p", { class: "hint" }, t("The server fetches the pages, and keeps them with the collection.")), button);
}

/**
 * Put into a node what photos are added with: a place to drop and choose files, and folders of the server's machine where
 * it allows some. When photos were added the event `added` comes from within the node; its detail is the job.
 */
export async function adding(node) {
  const progress = el("div", { class: "stack" });
  const error = el("p", { class: "error", role: "alert" });
  const complain = (what) => {
    error.textContent = what ? what.message ?? what : "";
  };
  const files = el("section", { class: "panel", "aria-label": t("Photos of this device") }, el("h3", {}, t("From this device")), uploading(progress, complain));
  const ways = el("div", { class: "cards adding" }, files);
  node.classList.add("writes");
  node.replaceChildren(ways, error, progress);
  const { roots, known, films } = await json("/api/roots");
  if (roots.length) {
    ways.append(el("section", { class: "panel", "aria-label": t("Folders of the server") },
      el("h3", {}, t("From a folder of the server")), choosing({ roots, films }, progress, complain)));
  } else {
    files.append(el("p", { class: "hint" }, t("No folder of the server can be chosen: whoever runs this server can allow some with --photos.")));
  }
  ways.append(el("section", { class: "panel", "aria-label": t("Pages of a library") }, el("h3", {}, t("From a library (IIIF)")), fetching(progress, complain)));
  const there = known.filter((one) => one.there);
  if (!there.length) return;
  const names = there.map((one) => one.name || t("uploads"));
  const again = el("button", { type: "button", onclick: async () => {
    again.disabled = true;
    complain(null);
    try {
      await follow(progress, await begin("index", { source: "known" }));
    } catch (problem) {
      complain(problem);
    } finally {
      again.disabled = false;
    }
  } }, t("Look for new photos"));
  ways.append(el("section", { class: "panel", "aria-label": t("Folders of the collection") }, el("h3", {}, t("Where photos came from")),
    el("p", {}, t("Look for new, changed and restored photos in: {folders}", { folders: names.slice(0, 5).join(", ") + (names.length > 5 ? " …" : "") })), again));
}
