// Photos that are no match of what is searched for: of a photo of the collection, or of an upload, by its content.

import { address, ask, change } from "../api.js";

const forget = (fields) => ask(address("/api/rejections", fields), { method: "DELETE", headers: { "X-Cairn": "1" } });

/** How the server knows a query: {photo} or {upload}; null where it does not. */
function known({ photo, upload }, sha256) {
  if (upload === null) return { photo };
  return sha256 ? { upload: sha256 } : null;
}

/** By the query that each was found with: [how the server knows it, numbers]. */
function byQuery(entries, queries, uploads = []) {
  const numbers = new Map();
  for (const { number, query_index: which = 0 } of entries) numbers.set(which, [...(numbers.get(which) ?? []), number]);
  return [...numbers].map(([which, some]) => [known(queries[which], uploads[which]), some]).filter(([one]) => one);
}

/** Remember that results are no match of the queries that they were found with. Gives {undo}. */
export async function rejectAll(entries, queries, uploads) {
  const parts = byQuery(entries, queries, uploads);
  for (const [query, photos] of parts) await change("POST", "/api/rejections", { ...query, photos });
  const undo = async () => {
    for (const [query, photos] of parts) await forget({ ...query, photos });
  };
  return { undo };
}

/** Forget that photos are no match of any of some queries. */
export async function takeBack(numbers, queries, uploads = []) {
  for (const [which, one] of queries.entries()) {
    const query = known(one, uploads[which]);
    if (query) await forget({ ...query, photos: numbers });
  }
}
