// Filters of photos: fields of a form, fields of an address, and what the fields offer.

import { folders, tags } from "./api.js";
import { at, el } from "./dom.js";
import { asksFor, fields as known } from "./fields.js";
import { figure, fixed, t, tn } from "./language.js";

export const TEXTS = ["words", "name", "folder", "taken_from", "taken_to"];
const ASKED = known.filter(({ filter }) => filter);
const MORE = [...ASKED.map(({ name }) => name), "pages", "near", "within", "album", "hidden"]; // that only addresses have
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
function addressFilters(search = location.search) {
  const fields = new URLSearchParams(search);
  return { ...Object.fromEntries(TEXTS.map((name) => [name, fields.get(name) ?? ""])), tag: fields.getAll("tag") };
}

export function fillFilters(form, filters) {
  for (const name of TEXTS) form.elements[name].value = filters[name];
  form.elements.tag.value = joinTags(filters.tag);
}

/** All filters of an address: those that forms have no fields for, such as of a place of the map, too. */
export function everyFilter(search = location.search) {
  const fields = new URLSearchParams(search);
  const more = Object.fromEntries(MORE.map((name) => [name, fields.get(name) ?? ""]));
  return { ...addressFilters(search), ...more, without_tag: fields.getAll("without_tag"), where: fields.getAll("where") };
}

/** Whether they ask for anything. */
export const asks = (filters) => Object.values(filters).some((value) => value.length > 0);

/** The filters in force, one by one: {text, rest}, what it asks for and the filters without it. `names`: of albums, by ids. */
export function inForce(filters, names = new Map()) {
  const [latitude, longitude, kilometres] = (filters.near ?? "").split(",").map(Number);
  const sides = (filters.within ?? "").split(",").map(Number);
  const says = {
    words: (value) => t("Words: {value}", { value }),
    name: (value) => t("Name: {value}", { value }),
    folder: (value) => t("Folder: {value}", { value }),
    taken_from: (value) => t("From {value}", { value }),
    taken_to: (value) => t("Until {value}", { value }),
    ...Object.fromEntries(ASKED.map((field) => [field.name, (value) => asksFor(field, value)])),
    pages: (value) => t("Pages: {value}", { value }),
    near: () => t("Within {kilometres} km of {latitude}, {longitude}", {
      kilometres: figure(kilometres, { maximumSignificantDigits: 3 }), latitude: fixed(latitude, 2), longitude: fixed(longitude, 2),
    }),
    within: () => t("Around {latitude}, {longitude}", { latitude: fixed((sides[0] + sides[2]) / 2, 2), longitude: fixed((sides[1] + sides[3]) / 2, 2) }),
    album: (value) => (names.has(value) ? t("Album: {value}", { value: names.get(value) }) : t("In one album")),
    hidden: () => t("Hidden photos"),
    tag: (value) => t("Tag: {value}", { value }),
    without_tag: (value) => t("Without tag: {value}", { value }),
    where: (value) => value,
  };
  return Object.entries(filters).flatMap(([name, value]) => {
    if (!Array.isArray(value)) return value ? [{ text: says[name](value), rest: { ...filters, [name]: "" } }] : [];
    return value.map((one, place) => ({ text: says[name](one), rest: { ...filters, [name]: value.filter((_, other) => other !== place) } }));
  });
}

/** Offer the collection's folders and tags in the fields; a tag is offered behind those that are there already. */
export async function offer(form) {
  const [{ folders: all }, { tags: offered }] = await Promise.all([folders(), tags({ limit: MOST })]);
  at("folders").replaceChildren(...all.slice(0, 2 * MOST).map(({ folder }) => el("option", { value: folder })));
  const field = form.elements.tag;
  const show = () => {
    const before = splitTags(field.value.slice(0, field.value.lastIndexOf(";") + 1));
    const left = offered.filter(({ tag }) => !before.includes(tag));
    at("tags").replaceChildren(
      ...left.map(({ tag, photos }) => el("option", { value: joinTags([...before, tag]) }, tn(photos, "{tag} ({n} photo)", "{tag} ({n} photos)", { tag }))),
    );
  };
  field.addEventListener("input", show);
  show();
}
