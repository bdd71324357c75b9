// The list of photos that one goes through from one to the next, as the address of a photo's page names it.

import { address, json } from "../api.js";

const MOST = 100; // numbers that an address holds; more are kept by the browser until it is closed
const KEY = "cairn.list.";

/**
 * Name a list of photos that no filter gives, such as results: text for the field `list` of a photo's address.
 * @param numbers of the photos, in order
 */
export function nameList(numbers) {
  if (numbers.length <= MOST) return address("", { numbers: numbers.join(",") }).slice(1);
  const text = numbers.join(",");
  let sum = 0;
  for (const letter of text) sum = (sum * 31 + letter.charCodeAt(0)) >>> 0;
  const kept = sum.toString(36);
  try {
    sessionStorage.setItem(KEY + kept, text);
  } catch {
    return ""; // no room: the photos are gone through by name
  }
  return `kept=${kept}`;
}

/** The numbers of a list's photos, in order. `list`: filters and an order (?name=…&order=newest), an album, or what `nameList` gave. */
export async function numbersOf(list) {
  const fields = new URLSearchParams(list);
  const named = fields.get("numbers") ?? (fields.has("kept") ? sessionStorage.getItem(KEY + fields.get("kept")) : null);
  if (named !== null) return named.split(",").filter((one) => /^\d+$/.test(one)).map(Number);
  const asked = Object.fromEntries([...new Set(fields.keys())].map((name) => [name, fields.getAll(name)]));
  return (await json("/api/layout", asked)).numbers;
}

/** Address of the page that shows a list. */
export function listAddress(list, number) {
  const fields = new URLSearchParams(list);
  if (fields.has("numbers") || fields.has("kept")) return address("/", { at: number });
  if (fields.get("order") === "album") return address("/album", { album: fields.get("album") });
  const asked = Object.fromEntries([...new Set(fields.keys())].map((name) => [name, fields.getAll(name)]));
  return address("/", { ...asked, at: number });
}
