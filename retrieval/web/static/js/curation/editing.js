// What is known of one photo, edited where it stands: its stars, whether it is a favourite, its title, its caption, its date, its tags,
// and the albums it is in.

import { address, json } from "../api.js";
import { el } from "../dom.js";
import { t, tn } from "../language.js";
import { askAlbum, askDetails, askTags, edit } from "./dialogs.js";
import { notice } from "./notice.js";

const MOST_STARS = 5;

/** Stars and the mark of a favourite, as buttons that are pressed: {node, show(photo)}. `change(fields)`: edits the photo. */
function marks(photo, change) {
  const stars = Array.from({ length: MOST_STARS }, (_, place) => el("button", { type: "button", class: "star", onclick: () => {
    const pressed = stars[place].getAttribute("aria-pressed") === "true";
    change({ rating: pressed ? 0 : place + 1 }); // pressed again: no stars but those of the file
  } }));
  const heart = el("button", { type: "button", class: "star heart", "aria-label": t("Favourite"), title: t("Favourite"), onclick: () => change({ favourite: heart.getAttribute("aria-pressed") !== "true" }) });
  const show = ({ rating, favourite }) => {
    for (const [place, star] of stars.entries()) {
      star.classList.toggle("on", place < (rating ?? 0));
      star.textContent = place < (rating ?? 0) ? "★" : "☆";
      star.setAttribute("aria-pressed", String(place + 1 === rating));
      const label = tn(place + 1, "{n} star", "{n} stars");
      star.setAttribute("aria-label", label);
      star.title = label;
    }
    heart.classList.toggle("on", favourite);
    heart.textContent = favourite ? "♥" : "♡";
    heart.setAttribute("aria-pressed", String(Boolean(favourite)));
  };
  show(photo);
  const node = el("div", { class: "marks writes" },
    el("div", { role: "group", "aria-label": t("Rating") }, ...stars), heart);
  return { node, show };
}

/**
 * Add what is needed to edit a photo below its facts. `node`: where the buttons are put; `photo`: {number, name, …};
 * `changed()`: called after each edit, and each undoing, to show the photo anew, which it gives. Gives the buttons' element.
 */
export function editFacts(node, photo, changed = () => {}) {
  const anew = async () => {
    const [fresh] = await Promise.all([changed(), show()]);
    if (fresh) own.show(fresh);
  };
  const perform = async (question) => {
    try {
      const done = await question([photo]);
      if (!done) return;
      await anew();
      notice(done.said, done.undo && (async () => {
        await done.undo();
        await anew();
      }));
    } catch (error) {
      notice(error.message || String(error));
    }
  };
  const own = marks(photo, (fields) => perform((photos) => edit(photos, fields)));
  const act = (label, id, question) => el("button", { type: "button", class: "small", id, onclick: () => perform(question) }, label);
  const albums = el("ul", { class: "tags", "aria-label": t("Albums") });
  const show = async () => {
    const { albums: all } = await json(`/api/photos/${photo.number}/albums`);
    albums.replaceChildren(...all.map(({ album, name }) => el("li", {}, el("a", { href: address("/album", { album }), dir: "auto" }, name))));
    albums.hidden = !all.length;
  };
  const bar = el("div", { class: "stack", id: "edit-facts" }, own.node, albums,
    el("div", { class: "row writes" },
      act(t("Title and caption"), "edit-details", askDetails), act(t("Tags"), "edit-tags", askTags), act(t("Add to album"), "to-album", askAlbum)),
    el("a", { class: "writes hint", href: address("/import") }, t("Import a table of many photos")));
  node.append(bar);
  show().catch((error) => notice(error.message || String(error)));
  return bar;
}
