// A new collection: what it is called, and where its photos are. Everything else has a default.

import { address, change, json } from "../api.js";
import { el } from "../dom.js";
import { t } from "../language.js";
import { folderChooser } from "../jobs/folders.js";

/** Fill a section with the form of a new collection. `first`: there is none yet; `leave()`: the visitor thought better of it. */
export async function making(section, first, leave) {
  const problem = el("p", { class: "error", role: "alert" });
  const complain = (error) => {
    problem.textContent = error ? error.message || String(error) : "";
  };
  const { roots } = await json("/api/roots");
  let folder = null;
  let named = false; // by the visitor, and not after the folder

  const name = el("input", { id: "title", type: "text", autocomplete: "off", maxlength: 100, required: true, placeholder: t("Holidays") });
  name.addEventListener("input", () => {
    named = name.value !== "";
  });

  const way = (value, text, hint, checked) => el("label", { class: "way" },
    el("input", { type: "radio", name: "way", value, checked }), el("span", {}, el("strong", {}, text), el("span", { class: "hint" }, hint)));
  const here = roots.length > 0;
  const ways = el("fieldset", { class: "ways" }, el("legend", {}, t("Photos")),
    here && way("folder", t("From a folder of this computer"), t("They stay where they are, and are not changed."), true),
    way("upload", t("Upload them"), t("Drop photos or folders in the next step: copies are kept in the collection."), !here));
  const chooser = here && folderChooser(roots, (chosen) => {
    folder = chosen;
    if (!named) name.value = chosen.path ? chosen.name : "";
    mark();
  }, complain);

  const fine = el("input", { id: "fine", type: "checkbox" });
  const films = el("input", { id: "films", type: "checkbox" });
  const ignored = el("input", { id: "ignored", type: "checkbox" });
  const options = el("details", { class: "options" }, el("summary", {}, t("Options")),
    el("div", { class: "stack" }, el("label", { class: "tick" }, fine, t("Find smaller things too: takes twice the time and space")),
      el("label", { class: "tick" }, films, t("Films too: a photo of each shot")),
      el("label", { class: "tick" }, ignored, t("Pages of books: leave out printed text, so that pictures match and type does not"))));
  const yes = el("button", { type: "submit", class: "primary" }, t("Make the collection"));
  const no = el("button", { type: "button", hidden: first, onclick: leave }, t("Cancel"));
  const form = el("form", { class: "stack" }, el("div", { class: "field" }, el("label", { for: "title" }, t("Name of the collection")), name),
    ways, chooser, options, problem, el("div", { class: "row" }, yes, no));
  const uploads = () => form.elements.way.value === "upload";

  function mark() {
    if (chooser) chooser.hidden = uploads();
    yes.disabled = !uploads() && !folder?.usable;
  }
  ways.addEventListener("change", mark);

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    complain(null);
    yes.disabled = true;
    const place = uploads() ? {} : { root: folder.root, path: folder.path };
    try {
      const made = await change("POST", "/api/collections", { title: name.value, ...place, detail: fine.checked ? "fine" : "usual", ...(ignored.checked ? { ignore: "text" } : {}), films: films.checked || null });
      location.assign(address(made.address));
    } catch (error) {
      complain(error);
      mark();
    }
  });

  const title = first
    ? [el("h1", { id: "make-title" }, t("Find every photo that shows the same thing")),
      el("p", { class: "lead" }, t("Make a collection of your photos: then draw a box round anything, and see where else it is."))]
    : [el("h2", { id: "make-title" }, t("New collection"))];
  section.replaceChildren(...title, form);
  section.hidden = false;
  mark();
  name.focus();
}
