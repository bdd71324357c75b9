// What is known of one photo, edited where it stands: its title, its date, its tags, and the albums it is in.

import { address, json } from "../api.js";
import { el } from "../dom.js";
import { t } from "../language.js";
import { askAlbum, askDetails, askTags } from "./dialogs.js";
import { notice } from "./notice.js";

/**
 * Add what is needed to edit a photo below its facts. `node`: where the buttons are put; `photo`: {number, name, …};
 * `changed()`: called after each edit, and each undoing, to show the photo anew. Gives the buttons' element.
 */
export function editFacts(node, photo, changed = () => {}) {
  const act = (label, id, question) => el("button", { type: "button", class: "small", id, onclick: async () => {
    try {
      const done = await question([photo]);
      if (!done) return;
      await Promise.all([show(), changed()]);
      notice(done.said, done.undo && (async () => {
        await done.undo();
        await Promise.all([show(), changed()]);
      }));
    } catch (error) {
      notice(error.message || String(error));
    }
  } }, label);
  const albums = el("ul", { class: "tags", "aria-label": t("Albums") });
  const show = async () => {
    const { albums: all } = await json(`/api/photos/${photo.number}/albums`);
    albums.replaceChildren(...all.map(({ album, name }) => el("li", {}, el("a", { href: address("/album", { album }), dir: "auto" }, name))));
    albums.hidden = !all.length;
  };
  const bar = el("div", { class: "stack", id: "edit-facts" }, albums,
    el("div", { class: "row writes" },
      act(t("Title and date"), "edit-details", askDetails), act(t("Tags"), "edit-tags", askTags), act(t("Add to album"), "to-album", askAlbum)),
    el("a", { class: "writes hint", href: address("/import") }, t("Import a table of many photos")));
  node.append(bar);
  show().catch((error) => notice(error.message || String(error)));
  return bar;
}
