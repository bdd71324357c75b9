// Photos of the user's own. The server keeps none: this browser does (IndexedDB), for a day, so that going back, reloading
// and the match page find them. A file is sent along with each request that needs it.

import { preview } from "./api.js";
import { t } from "./language.js";

const STORE = "photos";
const DAY = 24 * 60 * 60 * 1000;
const memory = new Map(); // where a browser keeps nothing (private windows), uploads last as long as the page

function finished(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

let opening = null;

function database() {
  opening ??= (async () => {
    const request = indexedDB.open("cairn-uploads", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
    const opened = await finished(request);
    const store = opened.transaction(STORE, "readwrite").objectStore(STORE);
    for (const key of await finished(store.getAllKeys())) {
      if (Number.parseInt(key.slice(1), 36) < Date.now() - DAY) store.delete(key);
    }
    return opened;
  })();
  return opening;
}

/** A new identity: "u", the time, which tells its age, and something random. */
function identity() {
  const random = crypto.getRandomValues(new Uint32Array(1))[0].toString(36);
  return `u${Date.now().toString(36).padStart(9, "0")}-${random}`;
}

/** Take a file in: {id, name, file, picture, width, height}. Throws the server's sentence where it is no photo. */
export async function take(file) {
  const entry = { id: identity(), name: file.name || t("Pasted photo"), file, ...(await preview(file)) };
  memory.set(entry.id, entry);
  try {
    const opened = await database();
    await finished(opened.transaction(STORE, "readwrite").objectStore(STORE).put(entry));
  } catch {
    // It stays in memory.
  }
  return entry;
}

/** An upload that was taken in earlier; throws where this browser no longer has it. */
export async function find(id) {
  if (!memory.has(id)) {
    let entry;
    try {
      const opened = await database();
      entry = await finished(opened.transaction(STORE).objectStore(STORE).get(id));
    } catch {
      // The same as not there.
    }
    if (!entry) throw new Error(t("This browser no longer has the uploaded photo of this search: upload it again."));
    memory.set(id, entry);
  }
  return memory.get(id);
}
