// One photo of the collection, with the box tool.

import { address, image, photo as read } from "./api.js";
import { boxTool } from "./box.js";
import { at, count, el } from "./dom.js";
import { entitle, start } from "./page.js";
import { format, pending, searchAddress } from "./query.js";

const degrees = (value, [positive, negative]) => `${Math.abs(value).toFixed(5)}° ${value < 0 ? negative : positive}`;

/** What is known of a photo, as terms and descriptions; all of it is text, whatever it says. */
function facts(photo) {
  const place = photo.latitude !== null && photo.latitude !== undefined;
  const tags = photo.tags.map((tag) => el("li", {}, el("a", { href: address("/", { tag }) }, tag)));
  const rows = [
    ["Title", photo.title],
    ["Taken", photo.taken?.replace("T", " ")],
    ["Camera", photo.camera],
    ["Position", place && `${degrees(photo.latitude, "NS")}, ${degrees(photo.longitude, "EW")}`],
    ["Tags", tags.length > 0 && el("ul", { class: "tags" }, ...tags)],
    ["Folder", photo.folder],
    ["Size", `${photo.width} × ${photo.height} pixels`],
    ["Features", photo.features.toLocaleString("en")],
    ["Added", photo.date_added && new Date(photo.date_added).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" })],
    ...Object.entries(photo.others ?? {}).map(([name, values]) => [name, values.join("; ")]),
  ];
  return rows.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
}

start(async () => {
  const fields = new URLSearchParams(location.search);
  const number = fields.get("number");
  if (!/^\d+$/.test(number ?? "")) throw new Error("The address names no photo: pick one from the photos.");
  const photo = await read(number);
  entitle(photo.name);
  at("facts").replaceChildren(...facts(photo));
  at("page").hidden = false;

  const { q, ...options } = pending();
  const update = (box) => {
    const own = format({ photo: photo.number, upload: null, box });
    at("search").href = searchAddress([own], { engine: options.engine });
    at("search").textContent = box ? "Search with this box" : "Search with the whole photo";
    at("add").hidden = !q.length;
    at("add").href = searchAddress([...q, own], options);
    at("add").textContent = `Add to the query of ${count(q.length, "photo")}`;
  };
  boxTool({ ...photo, large: image(photo.number) }, null, update);
  update(null);
});
