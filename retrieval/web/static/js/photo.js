// One photo of the collection, with the box tool.

import { address, image, photo as read } from "./api.js";
import { boxTool } from "./box.js";
import { at, el } from "./dom.js";
import { figure, fixed, moment, t, tn } from "./language.js";
import { entitle, start } from "./page.js";
import { format, pending, searchAddress } from "./query.js";

/** A place, as maps say it. */
function position({ latitude, longitude }) {
  const [north, east] = [latitude, longitude].map((value) => fixed(Math.abs(value), 5));
  return [
    latitude < 0 ? t("{degrees}° S", { degrees: north }) : t("{degrees}° N", { degrees: north }),
    longitude < 0 ? t("{degrees}° W", { degrees: east }) : t("{degrees}° E", { degrees: east }),
  ].join(", ");
}

/** What is known of a photo, as terms and descriptions; all of it is text, whatever it says. */
function facts(photo) {
  const place = photo.latitude !== null && photo.latitude !== undefined;
  const tags = photo.tags.map((tag) => el("li", {}, el("a", { href: address("/", { tag }) }, tag)));
  const rows = [
    [t("Title"), photo.title],
    [t("Taken"), photo.taken?.replace("T", " ")],
    [t("Camera"), photo.camera],
    [t("Position"), place && position(photo)],
    [t("Tags"), tags.length > 0 && el("ul", { class: "tags" }, ...tags)],
    [t("Folder"), photo.folder],
    [t("Size"), t("{width} × {height} pixels", { width: photo.width, height: photo.height })],
    [t("Features"), figure(photo.features)],
    [t("Added"), photo.date_added && moment(photo.date_added)],
    ...Object.entries(photo.others ?? {}).map(([name, values]) => [name, values.join("; ")]),
  ];
  return rows.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
}

start(async () => {
  const fields = new URLSearchParams(location.search);
  const number = fields.get("number");
  if (!/^\d+$/.test(number ?? "")) throw new Error(t("The address names no photo: pick one from the photos."));
  const photo = await read(number);
  entitle(photo.name);
  at("facts").replaceChildren(...facts(photo));
  at("page").hidden = false;

  const { q, ...options } = pending();
  const update = (box) => {
    const own = format({ photo: photo.number, upload: null, box });
    at("search").href = searchAddress([own], { engine: options.engine });
    at("search").textContent = box ? t("Search with this box") : t("Search with the whole photo");
    at("add").hidden = !q.length;
    at("add").href = searchAddress([...q, own], options);
    at("add").textContent = tn(q.length, "Add to the query of {n} photo", "Add to the query of {n} photos");
  };
  boxTool({ ...photo, large: image(photo.number) }, null, update);
  update(null);
});
