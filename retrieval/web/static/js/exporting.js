// Results and other photos as files and text to keep, made in the browser of what the API gave.

import { fields } from "./fields.js";

const OF_RESULTS = ["name", "title", "probability", "found", "region"];
const OF_PHOTOS = ["name", ...fields.map(({ name }) => name)];
const MARK = "\ufeff"; // of UTF-8, or spreadsheets take it for another encoding
const FORMULA = /^[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]/; // what a spreadsheet may calculate

const columns = (entries) => entries.some((entry) => "probability" in entry) ? OF_RESULTS : OF_PHOTOS;

function cell(value) {
  const text = typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value);
  // An apostrophe makes a text of a formula: photos and titles may have any name.
  return `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

/** A table (RFC 4180, all cells quoted); a region is a JSON list of its corners. */
export function toCsv(entries) {
  const names = columns(entries);
  const rows = [names, ...entries.map((entry) => names.map((name) => name === "tags" ? entry.tags?.join("; ") : entry[name]))];
  return MARK + rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** The same as JSON, names as they are. */
export function toJson(entries) {
  const names = columns(entries);
  return `${JSON.stringify(entries.map((entry) => Object.fromEntries(names.map((name) => [name, entry[name]]))), null, 2)}\n`;
}

/** Names, one a line. */
export const toNames = (entries) => entries.map(({ name }) => name).join("\n");
