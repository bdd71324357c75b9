// Choosing a folder of photos of the server's machine, among those it lets choose.

import { json } from "../api.js";
import { el } from "../dom.js";
import { t, tn } from "../language.js";

/** What lies in a folder, in a sentence. */
function inside({ photos, films, folders }) {
  if (photos && folders.length) return tn(photos, "{n} photo here, and those in its folders", "{n} photos here, and those in its folders");
  if (photos) return tn(photos, "{n} photo", "{n} photos");
  if (films) return tn(films, "{n} film", "{n} films");
  return folders.length ? t("The photos in its folders") : t("There are no photos and no folders in it.");
}

/** A node to choose a folder in. `chosen({root, path, name, usable})` is told of the one that is open. */
export function folderChooser(roots, chosen, complain) {
  const crumbs = el("ol", { class: "crumbs" });
  const list = el("ul", { class: "folder-list" });
  const holds = el("p", { class: "hint", role: "status" });

  async function open(root, path, focus = true) {
    complain(null);
    let found;
    try {
      found = await json(`/api/roots/${root}/folders`, { path });
    } catch (error) {
      complain(error);
      return;
    }
    const steps = path.split("/").filter(Boolean);
    const top = roots.find((one) => one.root === root).name;
    crumbs.replaceChildren(...[top, ...steps].map((name, place) => el("li", {}, place === steps.length
      ? el("span", { "aria-current": "location", tabindex: "-1", dir: "auto" }, name)
      : el("button", { type: "button", class: "small", dir: "auto", onclick: () => open(root, steps.slice(0, place).join("/")) }, name))));
    list.replaceChildren(...found.folders.map((one) => el("li", {},
      el("button", { type: "button", dir: "auto", onclick: () => open(root, one.path) }, one.name))));
    list.hidden = !found.folders.length;
    holds.textContent = inside(found);
    chosen({ root, path, name: steps.at(-1) ?? top, usable: found.photos + found.films > 0 || found.folders.length > 0 });
    if (focus) crumbs.querySelector("[aria-current]").focus();
  }

  const choice = roots.length > 1 && el("select", { "aria-label": t("Where"), onchange: () => open(Number(choice.value), "", false) },
    ...roots.map((one) => el("option", { value: one.root }, one.name)));
  open(roots[0].root, "", false);
  return el("div", { class: "folders", role: "group", "aria-label": t("Folder of photos") }, choice, crumbs, list, holds);
}
