// A query as the address says it, NUMBER[:x0,y0,x1,y1], with an upload's identity (u…) in place of a number; and what is
// known about its photo.

import { address, image, photo, thumbnail } from "./api.js";
import { t } from "./language.js";
import { find } from "./uploads.js";

const FORM = /^(\d+|u[0-9a-z]+-[0-9a-z]+)(?::([^:]+))?$/;

/** Read one; throws where it is none. */
export function parse(text) {
  const found = FORM.exec(text);
  const box = found?.[2] === undefined ? null : found[2].split(",").map(Number);
  if (!found || (box && (box.length !== 4 || !box.every(Number.isFinite)))) {
    throw new Error(t("The address names the photo {text}, which is neither NUMBER nor NUMBER:x0,y0,x1,y1.", { text }));
  }
  const [, who] = found;
  return who.startsWith("u") ? { photo: null, upload: who, box } : { photo: Number(who), upload: null, box };
}

/** Write one. */
export function format({ photo: number, upload, box }) {
  const who = upload ?? String(number);
  return box ? `${who}:${box.join(",")}` : who;
}

const urls = new Map(); // of uploads' pictures

function url(upload) {
  if (!urls.has(upload.id)) urls.set(upload.id, URL.createObjectURL(upload.picture));
  return urls.get(upload.id);
}

/** Add what is needed to show and to send it: name, width, height, small and large (addresses of pictures), file. */
export async function resolve(query) {
  if (query.upload === null) {
    const { name, width, height, features } = await photo(query.photo);
    return { ...query, name, width, height, features, small: thumbnail(query.photo), large: image(query.photo), file: null };
  }
  const upload = await find(query.upload);
  const { name, width, height, file } = upload;
  return { ...query, name, width, height, small: url(upload), large: url(upload), file };
}

/** What surrounds a region [[x, y], …] of a photo, as a box; null where that is next to nothing. */
export function surround(region, { width, height }) {
  if (!region) return null;
  const within = (value, most) => Math.round(Math.min(Math.max(value, 0), most - 1));
  const xs = region.map(([x]) => within(x, width));
  const ys = region.map(([, y]) => within(y, height));
  const box = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  return box[2] - box[0] < 8 || box[3] - box[1] < 8 ? null : box;
}

/** The query that is being put together while another photo is picked for it: fields of the page's address. */
export function pending(search = location.search) {
  const fields = new URLSearchParams(search);
  return { q: fields.getAll("q"), match: fields.get("match"), engine: fields.get("engine") };
}

/** Address of the search page for queries (as texts) and options. */
export const searchAddress = (q, fields = {}) => address("/search", { q, ...fields });
