// Searches that were made lately in this browser, which alone keeps them.

const KEY = "cairn.recent";
const MOST = 12;

/** Those that were made last: {address, names, when, numbers (of photos of the collection)}. */
export function recentSearches() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((one) => typeof one?.address === "string" && one.address.startsWith("?") && Array.isArray(one.names)) : [];
  } catch {
    return []; // this browser keeps nothing
  }
}

/** Keep a search that was just answered. */
export function rememberSearch({ queries, here }) {
  const address = here.slice(here.indexOf("?"));
  const names = queries.map(({ name }) => name);
  const numbers = queries.map(({ photo }) => photo);
  keep([{ address, names, numbers, when: Date.now() }, ...recentSearches().filter((one) => one.address !== address)].slice(0, MOST));
}

/** Forget them all. */
export const forgetRecent = () => keep([]);

function keep(searches) {
  try {
    localStorage.setItem(KEY, JSON.stringify(searches));
  } catch {
    // It is a convenience.
  }
}
