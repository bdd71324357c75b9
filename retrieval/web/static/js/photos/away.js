// Folders of photos that are not there: said on every page, with what can be done about it.

import { json } from "../api.js";
import { at, el } from "../dom.js";
import { t, tn } from "../language.js";

/** The folders that have gone, or whose drive is not connected: [{id, name, photos}]. */
export const awayFolders = async () => (await json("/api/away")).folders;

/** What is the matter with one, in a sentence. */
export const awaySentence = ({ name, photos }) => tn(photos,
  "The folder {folder} cannot be found: searches still find its {n} photo, but it cannot be shown.",
  "The folder {folder} cannot be found: searches still find its {n} photos, but they cannot be shown.", { folder: name });

/** Choose where a folder is now, and have its photos looked for there. */
async function ask(node, folder, complain) {
  const [{ folderChooser }, { begin, ended, jobCard, watch }] = await Promise.all([import("../jobs/folders.js"), import("../jobs/jobs.js")]);
  const { roots } = await json("/api/roots");
  if (!roots.length) {
    throw new Error(t("No folder of the server can be chosen: whoever runs this server can allow some with --photos."));
  }
  let place = null;
  const here = el("button", { type: "button", class: "small primary", disabled: true, onclick: async () => {
    here.disabled = true;
    complain(null);
    try {
      const job = await begin("move", { folder: folder.id, root: place.root, path: place.path });
      const card = jobCard(job);
      node.replaceChildren(card);
      const stop = watch((jobs) => {
        const now = jobs.find((one) => one.id === job.id);
        if (now) card.update(now);
      });
      const last = await ended(job.id);
      stop();
      if (last?.state === "done") node.append(el("p", { class: "row" }, again()));
    } catch (error) {
      complain(error);
      here.disabled = false;
    }
  } }, t("It is this folder"));
  node.replaceChildren(folderChooser(roots, (chosen) => {
    place = chosen;
    here.disabled = !chosen.usable;
  }, complain), el("p", { class: "row" }, here));
}

/** The page again: with the pictures that can be had now, if the folder is back. */
const again = () => el("button", { type: "button", class: "small", onclick: () => location.reload() }, t("Look again"));

function note(folder) {
  const error = el("p", { class: "error", role: "alert" });
  const complain = (what) => {
    error.textContent = what ? what.message : "";
  };
  const where = el("div", { class: "stack" });
  const open = el("button", { type: "button", class: "small writes", onclick: async () => {
    open.disabled = true;
    await ask(where, folder, complain).catch(complain);
    open.disabled = false;
  } }, t("Where is it now?"));
  return el("div", { class: "note" }, el("p", {}, awaySentence(folder)), el("p", { class: "row" }, again(), open), where, error);
}

/** Say at the top of the page which folders are not there. */
export async function tellAway() {
  const folders = await awayFolders();
  if (!folders.length) return;
  const bar = document.querySelector(".viewer-bar");
  const notes = el("section", { class: "away", id: "away", "aria-label": t("Missing folders") }, ...folders.map(note));
  if (bar) bar.after(notes);
  else at("main").prepend(notes);
}
