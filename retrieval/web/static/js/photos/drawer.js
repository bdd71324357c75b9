// The drawer of the photos page: albums, folders as a tree, tags, cameras and other fields with their numbers, to narrow down what is shown.

import { json } from "../api.js";
import { at, complain, el } from "../dom.js";
import { fields, shown } from "../fields.js";
import { figure, t, tn } from "../language.js";

const MOST = 60; // tags and values of fields that are listed before the rest is asked for

/** Folders as a tree: {name, path, own, all: photos in it and below, below: [the same]}. */
export function tree(folders) {
  const root = { path: "", below: new Map(), own: 0, all: 0 };
  for (const { folder, photos } of folders) {
    let node = root;
    node.all += photos;
    for (const name of folder ? folder.split("/") : []) {
      if (!node.below.has(name)) node.below.set(name, { name, path: node.path ? `${node.path}/${name}` : name, below: new Map(), own: 0, all: 0 });
      node = node.below.get(name);
      node.all += photos;
    }
    node.own += photos;
  }
  const plain = (node) => ({ ...node, below: [...node.below.values()].map(plain) });
  return plain(root);
}

const choice = (text, photos, chosen, onclick) => el("button", { type: "button", class: "entry", "aria-pressed": String(chosen), onclick },
  el("span", { class: "entry-name", dir: "auto", title: text }, text), el("span", { class: "entry-count" }, figure(photos)));

/** A level of the tree; what lies below a folder is made when it is opened. */
function level(nodes, chosen, pick) {
  return el("ul", { class: "folder-level" }, ...nodes.map((node) => {
    const button = choice(node.name, node.all, node.path === chosen, () => pick(node.path === chosen ? "" : node.path));
    if (!node.below.length) return el("li", { class: "folder-leaf" }, button);
    const inside = el("div", { hidden: true });
    const twist = el("button", { type: "button", class: "twist", "aria-expanded": "false", "aria-label": t("Folders in {folder}", { folder: node.path }) });
    const open = (on) => {
      if (on && !inside.children.length) inside.append(level(node.below, chosen, pick));
      inside.hidden = !on;
      twist.setAttribute("aria-expanded", String(on));
    };
    twist.addEventListener("click", () => open(inside.hidden));
    if (`${chosen}/`.startsWith(`${node.path}/`) && chosen !== node.path) open(true);
    return el("li", {}, el("div", { class: "folder-line" }, twist, button), inside);
  }));
}

/** A list of entries {text, photos}, and `value` where it is not the text; long ones are folded. */
function entries(node, all, chosen, pick) {
  const item = ({ text, photos, value = text }) => el("li", {}, choice(text, photos, chosen.includes(value), () => pick(value)));
  const list = el("ul", { class: "entries" }, ...all.slice(0, MOST).map(item));
  const rest = all.slice(MOST);
  const more = rest.length > 0 && el("button", { type: "button", class: "small", onclick: () => {
    list.append(...rest.map(item));
    more.remove();
  } }, tn(rest.length, "Show {n} more", "Show {n} more"));
  node.replaceChildren(list, more || "");
}

/** What a facet offers: of a number, the photos that have so much or more. */
function choices(field, values) {
  if (field.kind !== "number") return values.map(({ value, photos }) => ({ text: shown(field, value), photos, value }));
  let all = 0;
  return values.toSorted((one, other) => other.value - one.value).map(({ value, photos }) => {
    all += photos;
    return { text: t("{value} or more", { value: shown(field, value) }), photos: all, value };
  });
}

/**
 * Fill the drawer and let it open.
 * @param current() the filters that are in force
 * @param change(filters) what to show now
 */
export function drawer(current, change) {
  const dialog = at("drawer");
  let known = null;
  const fill = () => {
    if (!known) return;
    const filters = current();
    const top = tree(known.folders).below;
    at("folder-part").hidden = !top.length;
    at("folder-tree").replaceChildren(level(top, filters.folder, (folder) => change({ ...filters, folder })));
    at("album-part").hidden = !known.albums.length;
    entries(at("album-list"), known.albums.map(({ album, name, photos }) => ({ text: name, photos, value: String(album) })), [filters.album],
      (album) => change({ ...filters, album: filters.album === album ? "" : album }));
    at("hidden-part").hidden = !known.hidden && !filters.hidden;
    entries(at("hidden-list"), [{ text: t("Hidden photos"), photos: known.hidden, value: "true" }], [filters.hidden],
      (hidden) => change({ ...filters, hidden: filters.hidden ? "" : hidden }));
    at("tag-part").hidden = !known.tags.length;
    const toggled = (list, one) => (list.includes(one) ? list.filter((other) => other !== one) : [...list, one]);
    entries(at("tag-list"), known.tags.map(({ tag, photos }) => ({ text: tag, photos })), filters.tag,
      (tag) => change({ ...filters, tag: toggled(filters.tag, tag) }));
    at("facets").replaceChildren(...known.facets.filter(({ values }) => values.length).map(({ field: name, values }) => {
      const field = fields.find((one) => one.name === name);
      const list = el("div", {});
      entries(list, choices(field, values), [filters[name]], (value) => change({ ...filters, [name]: filters[name] === value ? "" : value }));
      return el("section", { "aria-labelledby": `${name}-title` }, el("h3", { id: `${name}-title` }, field.facet), list);
    }));
    at("year-part").hidden = !known.years.length;
    const year = filters.taken_from === filters.taken_to ? filters.taken_from : "";
    entries(at("year-list"), known.years.map((one) => ({ text: one.year, photos: one.photos })), [year],
      (one) => change({ ...filters, taken_from: year === one ? "" : one, taken_to: year === one ? "" : one }));
  };
  const load = async () => {
    const [facets, { total: hidden }] = await Promise.all([json("/api/facets", current()), json("/api/photos", { hidden: true, limit: 0 })]);
    known = { ...facets, hidden };
    fill();
  };
  at("open-drawer").addEventListener("click", () => {
    dialog.showModal();
    load().catch(complain);
  });
  at("close-drawer").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // beside it
  });
  /** Count anew what is shown now, while it is open. */
  const refresh = () => {
    fill();
    if (dialog.open) load().catch(complain);
  };
  return { fill: refresh, close: () => dialog.close() };
}
