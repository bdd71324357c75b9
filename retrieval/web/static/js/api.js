// What the server is asked. Every failure is an Error whose message is a sentence that can be shown.

import { t } from "./language.js";
import { root, server } from "./root.js";

const PATIENCE = 5; // seconds that a busy server may ask us to wait before we ask again
const TRIES = 3;
const MOST_PHOTOS = 10_000; // that a request may name

class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function sentence(answer) {
  try {
    const { detail, said = detail } = await answer.json();
    if (typeof said === "string" && said) return said;
  } catch {
    // No JSON: said below.
  }
  return t("The server answered with the error {status}.", { status: answer.status });
}

/** Fetch; a busy server (503) is asked again. Throws Refused, or AbortError where `signal` says so. */
export async function ask(target, options = {}) {
  for (let left = TRIES - 1; ; left -= 1) {
    let answer;
    try {
      answer = await fetch(target, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refused(t("The server does not answer. Is it still running?"), 0);
    }
    if (answer.ok) return answer;
    if (answer.status === 401) {
      // Signed out meanwhile: back here after signing in.
      location.assign(signInAddress(location.pathname + location.search));
    }
    const wait = Number(answer.headers.get("Retry-After") || 1);
    if (answer.status !== 503 || left === 0 || !(wait <= PATIENCE)) {
      throw new Refused(await sentence(answer), answer.status);
    }
    await new Promise((resolve) => setTimeout(resolve, 1000 * wait));
    options.signal?.throwIfAborted();
  }
}

/** Where people sign in; `next`: the address that they come back to. */
const signInAddress = (next) => `${server}/login?${new URLSearchParams({ next })}`;

/** An address of the server with the fields that say something: undefined, null and "" are left out, lists are repeated. */
export function address(path, fields = {}) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") search.append(name, one);
    }
  }
  // Colons and commas of boxes may stand in a query as they are; it reads better.
  const text = search.toString().replaceAll("%3A", ":").replaceAll("%2C", ",");
  const whole = path.startsWith("/") ? root + path : path;
  return text ? `${whole}?${text}` : whole;
}

/** What the server says at an address, as JSON. */
export const json = async (path, fields, signal) => (await ask(address(path, fields), { signal })).json();

/** Have the server change something: `method` is POST, PUT, PATCH or DELETE. Gives its answer, null where it is empty. */
export async function change(method, path, body, signal) {
  // No other site can send this header, nor JSON, without being asked first.
  const headers = body === undefined ? { "X-Cairn": "1" } : { "X-Cairn": "1", "Content-Type": "application/json" };
  const answer = await ask(address(path), { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal });
  return answer.status === 204 ? null : answer.json();
}

/**
 * Have the server change many photos, some thousand with each request; `field`: what their list is called, `rest`: the
 * other fields, `tell(done, total)`: called between requests. Gives its answers; an error has those of the requests
 * before it, `done`.
 */
export async function changeMany(method, path, field, entries, rest = {}, tell = () => {}) {
  const answers = [];
  for (let from = 0; from < entries.length; from += MOST_PHOTOS) {
    if (entries.length > MOST_PHOTOS) tell(from, entries.length);
    try {
      answers.push(await change(method, path, { [field]: entries.slice(from, from + MOST_PHOTOS), ...rest }));
    } catch (error) {
      throw Object.assign(error, { done: answers });
    }
  }
  return answers;
}

/** Numbers of some photos. */
export const numbers = (photos) => photos.map(({ number }) => number);

/** Numbers of the photos that several answers call changed. */
export const allChanged = (answers) => answers.flatMap(({ changed }) => changed);

export const health = () => json("/api/health");
export const collection = () => json("/api/collection");
export const folders = () => json("/api/folders");
export const tags = (fields) => json("/api/tags", fields);
export const photos = (fields, signal) => json("/api/photos", fields, signal);
export const photo = (number) => json(`/api/photos/${encodeURIComponent(number)}`);
export const groups = (fields) => json("/api/groups", fields);

export const thumbnail = (number, size = 256) => address(`/api/photos/${number}/thumbnail`, { size });
export const image = (number, size = 1600) => address(`/api/photos/${number}/image`, { size });

/** An upload as a browser can show it: {picture: Blob, width, height}, the size of the upright original. */
export async function preview(file, signal) {
  const body = new FormData();
  body.append("photo", file, file.name || "photo");
  const answer = await ask(address("/api/preview"), { method: "POST", headers: { "X-Cairn": "1" }, body, signal });
  const size = (name) => Number(answer.headers.get(name));
  return { picture: await answer.blob(), width: size("X-Photo-Width"), height: size("X-Photo-Height") };
}

/** The body of a request with uploads. `queries`: see query.js; `files`: those that their `upload` counts. */
function multipart(fields, queries, files) {
  const body = new FormData();
  const asked = queries.map(({ photo: number, file, box }) => ({
    photo: file ? null : number,
    upload: file ? files.indexOf(file) : null,
    box,
  }));
  body.append("request", JSON.stringify({ ...fields, queries: asked }));
  for (const file of files) body.append("photos", file, file.name || "photo");
  return body;
}

/** Send queries the simple way, or with their files where a photo was uploaded. */
function send(path, queries, fields, signal) {
  const files = [...new Set(queries.map((query) => query.file).filter(Boolean))];
  if (!files.length) {
    const q = queries.map(({ photo: number, box }) => (box ? `${number}:${box.join(",")}` : String(number)));
    return ask(address(path, { q, ...fields }), { signal });
  }
  const { format, ...rest } = fields;
  const body = multipart(rest, queries, files);
  return ask(address(path, { format }), { method: "POST", headers: { "X-Cairn": "1" }, body, signal });
}

/** Search. `fields`: match, engine, expand, top, turns, similarity, and filters (filters.js). */
export const search = async (queries, fields, signal) => (await send("/api/search", queries, fields, signal)).json();

/** Photos to take away, by their numbers: their files (form "zip") or a contact sheet ("sheet"), as a Blob. */
export async function take(numbers, form) {
  const headers = { "X-Cairn": "1", "Content-Type": "application/json" };
  return (await ask(address("/api/export"), { method: "POST", headers, body: JSON.stringify({ photos: numbers, form }) })).blob();
}

/** How a query and a photo match; with `format` "csv" or "jpg" the answer is a file. Gives the Response. */
export const match = (query, number, fields, signal) =>
  send("/api/match", [query], { ...fields, photo: Number(number) }, signal);

/** Two impressions of a block or plate in one frame; the query is a photo of the collection. */
export const impressions = async (query, number, fields) =>
  (await send("/api/impressions", [query], { ...fields, photo: Number(number) })).json();

/** Address of how they match, for a query without an upload. */
export const matchAddress = (query, number, fields) =>
  address("/api/match", { q: query.box ? `${query.photo}:${query.box.join(",")}` : query.photo, photo: number, ...fields });
