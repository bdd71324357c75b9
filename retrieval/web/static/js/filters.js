// Filters of photos: fields of a form, fields of an address, and what the fields offer.

import { folders, tags } from "./api.js";
import { at, el } from "./dom.js";
import { tn } from "./language.js";

export const TEXTS = ["name", "folder", "taken_from", "taken_to"];
const MOST = 500; // that a field offers

/** Tags as a field has them, parted by semicolons. */
export const splitTags = (text) => text.split(";").map((tag) => tag.trim()).filter(Boolean);
export const joinTags = (list) => list.join("; ");

/** The filters of a form, as the address and the server have them. */
export function formFilters(form) {
  const texts = Object.fromEntries(TEXTS.map((name) => [name, form.elements[name].value.trim()]));
  return { ...texts, tag: splitTags(form.elements.tag.value) };
}

/** Those of an address. */
export function addressFilters(search = location.search) {
  const fields = new URLSearchParams(search);
  return { ...Object.fromEntries(TEXTS.map((name) => [name, fields.get(name) ?? ""])), tag: fields.getAll("tag") };
}

export function fillFilters(form, filters) {
  for (const name of TEXTS) form.elements[name].value = filters[name];
  form.elements.tag.value = joinTags(filters.tag);
}

/** Whether they ask for anything. */
export const asks = (filters) => filters.tag.length > 0 || TEXTS.some((name) => filters[name]);

/** Offer the collection's folders and tags in the fields; a tag is offered behind those that are there already. */
export async function offer(form) {
  const [{ folders: all }, { tags: known }] = await Promise.all([folders(), tags({ limit: MOST })]);
  at("folders").replaceChildren(...all.slice(0, 2 * MOST).map(({ folder }) => el("option", { value: folder })));
  const field = form.elements.tag;
  const show = () => {
    const before = splitTags(field.value.slice(0, field.value.lastIndexOf(";") + 1));
    const left = known.filter(({ tag }) => !before.includes(tag));
    at("tags").replaceChildren(
      ...left.map(({ tag, photos }) => el("option", { value: joinTags([...before, tag]) }, tn(photos, "{tag} ({n} photo)", "{tag} ({n} photos)", { tag }))),
    );
  };
  field.addEventListener("input", show);
  show();
}
