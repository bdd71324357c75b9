// Questions about photos that are chosen: which album, which tags, which title and date, whether to remove them.
// Each gives what was done as {said, undo, kind}, or null where nothing was.

import { allChanged, change, changeMany, json, numbers, photos as read, tags as allTags } from "../api.js";
import { el } from "../dom.js";
import { joinTags, splitTags } from "../filters.js";
import { figure, t, tn } from "../language.js";

const SUGGESTED = 500;
let counter = 0;

/**
 * Ask something. `fields`: what the form has; `accept`: what its button says; `act(tell)`: does it, and gives the answer;
 * `tell(done, total)` shows how far it is. What goes wrong is said in the dialog, which stays. Gives null where the
 * question was left.
 */
export function ask(title, fields, accept, act) {
  const id = `dialog-${(counter += 1)}`;
  const problem = el("p", { class: "error", role: "alert" });
  const progress = el("p", { class: "hint", role: "status" });
  const tell = (done, total) => {
    progress.textContent = t("{done} of {total} photos so far", { done: figure(done), total: figure(total) });
  };
  const yes = el("button", { type: "submit", class: "primary" }, accept);
  const no = el("button", { type: "button" }, t("Cancel"));
  const form = el("form", { class: "stack", method: "dialog" }, el("h2", { id }, title), ...fields, problem, progress, el("div", { class: "row" }, yes, no));
  const dialog = el("dialog", { class: "question", "aria-labelledby": id }, form);
  document.body.append(dialog);
  return new Promise((resolve) => {
    let answer = null;
    let work = null; // what is being done: it cannot be left before it has ended
    no.addEventListener("click", () => dialog.close());
    dialog.addEventListener("cancel", (event) => yes.disabled && event.preventDefault());
    dialog.addEventListener("close", async () => {
      await work;
      dialog.remove();
      resolve(answer);
    });
    const perform = async () => {
      try {
        answer = await act(tell);
        dialog.close();
      } catch (error) {
        problem.textContent = error.message || String(error);
      }
      progress.textContent = "";
      yes.disabled = no.disabled = false;
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      yes.disabled = no.disabled = true;
      problem.textContent = "";
      work = perform();
    });
    dialog.showModal();
  });
}

/** A field with its label. */
export function field(label, attributes, ...after) {
  const id = `field-${(counter += 1)}`;
  const input = attributes.rows ? el("textarea", { id, ...attributes }) : el("input", { id, type: "text", autocomplete: "off", ...attributes });
  return [el("div", { class: "field" }, el("label", { for: id }, label), input, ...after), input];
}

/** What may be typed into a field. */
function suggestions(values) {
  const id = `list-${(counter += 1)}`;
  return el("datalist", { id }, ...values.map((value) => el("option", { value })));
}

const sum = (answers, name) => answers.reduce((total, one) => total + one[name], 0);

/** As `changeMany`, with what is to be said if only some of it was done: [answers, sentence]. */
async function asFarAsPossible(...request) {
  try {
    return [await changeMany(...request), []];
  } catch (error) {
    if (!error.done?.length) throw error;
    return [error.done, [error.message]];
  }
}

/** What can be edited of photos, of any number of them: see POST /api/photos/summary. */
async function summary(photos) {
  const parts = await changeMany("POST", "/api/photos/summary", "photos", numbers(photos));
  if (parts.length === 1) return parts[0];
  const tags = new Map();
  for (const one of parts.flatMap((part) => part.tags)) {
    const key = one.tag.toUpperCase().toLowerCase(); // "Straße" and "STRASSE" are one tag
    const known = tags.get(key) ?? { ...one, photos: 0, imported: 0 };
    tags.set(key, { ...known, photos: known.photos + one.photos, imported: known.imported + one.imported });
  }
  const all = (name) => [...new Set(parts.flatMap((part) => part[name]))];
  const often = [...tags.values()].sort((one, other) => other.photos - one.photos || one.tag.localeCompare(other.tag));
  return { tags: often, titles: all("titles"), captions: all("captions"), dates: all("dates") };
}

/** Have photos changed; `fields`: as PATCH /api/photos takes them. Gives what was done. */
export async function edit(photos, fields, tell) {
  const [done, failed] = await asFarAsPossible("PATCH", "/api/photos", "photos", numbers(photos), fields, tell);
  const [changed, kept] = ["changed", "kept"].map((name) => sum(done, name));
  const undo = () => changeMany("PATCH", "/api/photos", "restore", done.flatMap(({ before }) => before));
  const said = [tn(changed, "{n} photo changed.", "{n} photos changed.")];
  if (kept) said.push(tn(kept, "{n} photo keeps a tag that is in its file.", "{n} photos keep a tag that is in their files."));
  return { said: [...said, ...failed].join(" "), undo: changed ? undo : null, kind: "edit" };
}

/** Put photos at the end of an album; gives the numbers of those that were not in it. */
const putIn = async (album, some, tell) => allChanged(await changeMany("POST", `/api/albums/${album}/photos`, "photos", some, {}, tell));

/** Put photos into an album, or into a new one. */
export async function askAlbum(photos) {
  const { albums } = await json("/api/albums");
  const names = albums.map(({ name }) => name);
  const list = suggestions(names);
  const [node, input] = field(t("Album, or the name of a new one"), { required: true, maxlength: 200, list: list.id, dir: "auto" }, list);
  const same = () => albums.find(({ name }) => name.toLowerCase() === input.value.trim().toLowerCase());
  const hint = el("p", { class: "hint", role: "status" });
  input.addEventListener("input", () => {
    const there = same();
    hint.textContent = !input.value.trim() ? "" : there ? tn(there.photos, "There is {n} photo in it.", "There are {n} photos in it.") : t("A new album will be created.");
  });
  return ask(tn(photos.length, "Add {n} photo to an album", "Add {n} photos to an album"), [node, hint], t("Add"), async (tell) => {
    const there = same();
    if (!there) {
      const made = await change("POST", "/api/albums", { name: input.value });
      albums.push(made); // if only some photos get there, another try goes on
      await putIn(made.album, numbers(photos), tell);
      return { said: t("The album “{name}” is made.", { name: made.name }), undo: () => change("DELETE", `/api/albums/${made.album}`), kind: "album" };
    }
    const changed = await putIn(there.album, numbers(photos), tell);
    const undo = () => changeMany("POST", `/api/albums/${there.album}/remove`, "photos", changed);
    const said = changed.length ? tn(changed.length, "{n} photo added to “{name}”.", "{n} photos added to “{name}”.", { name: there.name })
      : t("They are in “{name}” already.", { name: there.name });
    return { said, undo: changed.length ? undo : null, kind: "album" };
  });
}

/** Let a field of tags suggest those of the collection, behind those that are there already. */
async function suggestTags(input, list) {
  const { tags: known } = await allTags({ limit: SUGGESTED });
  const show = () => {
    const before = splitTags(input.value.slice(0, input.value.lastIndexOf(";") + 1));
    const left = known.filter(({ tag }) => !before.includes(tag));
    list.replaceChildren(...left.map(({ tag }) => el("option", { value: joinTags([...before, tag]) })));
  };
  input.addEventListener("input", show);
  show();
}

/** Give photos tags, and take others from them. */
export async function askTags(photos) {
  const { tags } = await summary(photos);
  const list = suggestions([]);
  const [node, input] = field(t("Add tags, with ; between them"), { list: list.id, dir: "auto" }, list);
  await suggestTags(input, list);
  const ticks = tags.map(({ tag, photos: of, imported }) => [tag, el("input", { type: "checkbox", disabled: imported === 0 }), of, imported]);
  const removal = ticks.length > 0 && el("fieldset", { class: "stack" },
    el("legend", {}, t("Remove tags")),
    el("div", { class: "many" }, ...ticks.map(([tag, tick, of, imported]) =>
      el("label", { class: "tick" }, tick, el("span", { dir: "auto" }, tag), el("span", { class: "hint" }, imported ? tn(of, "{n} photo", "{n} photos") : t("in the file"))))));
  return ask(tn(photos.length, "Tags of {n} photo", "Tags of {n} photos"), [node, removal], t("Save"), (tell) => {
    const gone = ticks.filter(([, tick]) => tick.checked).map(([tag]) => tag);
    return edit(photos, { tags_add: splitTags(input.value), tags_remove: gone }, tell);
  });
}

/** Give photos a title, a caption and a date; what is left as it is stays so. */
export async function askDetails(photos) {
  const { titles, captions, dates } = await summary(photos);
  const one = (values) => values.length === 1 ? values[0] : "";
  const several = (values) => values.length > 1 ? t("several") : null;
  const [title, titleInput] = field(t("Title"), { maxlength: 1000, value: one(titles), placeholder: several(titles), dir: "auto" });
  const [caption, captionInput] = field(t("Caption"), { maxlength: 10000, rows: 3, placeholder: several(captions), dir: "auto" });
  captionInput.value = one(captions);
  const [date, dateInput] = field(t("Taken"), { maxlength: 40, value: one(dates), placeholder: several(dates) ?? "1923-05-17" });
  const hint = el("p", { class: "hint" }, t("A date such as 1923, 1923-05 or 1923-05-17. If you empty a field, the value in the photo's file is used again."));
  return ask(tn(photos.length, "Title, caption and date of {n} photo", "Title, caption and date of {n} photos"), [title, caption, date, hint], t("Save"), (tell) => {
    const fields = {};
    if (titleInput.value.trim() !== one(titles)) fields.title = titleInput.value;
    if (captionInput.value.trim() !== one(captions)) fields.caption = captionInput.value;
    if (dateInput.value.trim() !== one(dates)) fields.taken = dateInput.value;
    return Object.keys(fields).length ? edit(photos, fields, tell) : null;
  });
}

/** Leave photos out of lists and answers. */
export async function hidePhotos(photos) {
  const [done, failed] = await asFarAsPossible("POST", "/api/hidden", "photos", numbers(photos));
  const hidden = allChanged(done);
  const undo = () => changeMany("POST", "/api/hidden/show", "photos", hidden);
  const said = [tn(hidden.length, "{n} photo hidden.", "{n} photos hidden."), ...failed].join(" ");
  return { said, undo: hidden.length ? undo : null, kind: "hide" };
}

/** Take photos out of the collection, after a question. */
export async function askRemoval(photos) {
  const good = el("input", { type: "checkbox" });
  const first = photos.slice(0, 3);
  const named = first.every(({ name }) => name !== undefined) ? first : (await read({ numbers: numbers(first) })).photos;
  const names = named.map(({ name }) => el("li", { class: "name", dir: "auto", title: name }, name));
  if (photos.length > 3) names.push(el("li", { class: "hint" }, tn(photos.length - 3, "and {n} other", "and {n} others")));
  const fields = [
    el("ul", { class: "names" }, ...names),
    el("p", {}, t("Their files stay where they are. Albums and tags of these photos are kept until the collection is compacted.")),
    el("label", { class: "tick" }, good, t("Keep them out for good, even when their folders are added again")),
  ];
  return ask(tn(photos.length, "Remove {n} photo from the collection?", "Remove {n} photos from the collection?"), fields, t("Remove"), async (tell) => {
    const request = ["POST", "/api/photos/remove", "photos", numbers(photos), { for_good: good.checked }];
    const [done, failed] = await asFarAsPossible(...request, tell);
    const said = tn(sum(done, "removed"), "{n} photo removed.", "{n} photos removed.");
    return { said: [said, ...failed].join(" "), kind: "remove" };
  });
}
