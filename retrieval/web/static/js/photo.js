// One photo of the collection, with the box tool.

import { image, photo as read } from "./api.js";
import { boxTool } from "./box.js";
import { at, count, el } from "./dom.js";
import { entitle, start } from "./page.js";
import { format, pending, searchAddress } from "./query.js";

function facts(photo) {
  const rows = [
    ["Folder", photo.folder],
    ["Size", `${photo.width} × ${photo.height} pixels`],
    ["Features", photo.features.toLocaleString("en")],
    ["Taken", photo.taken],
    ["Added", photo.date_added && new Date(photo.date_added).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" })],
    ["Tags", photo.tags?.join(", ")],
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
