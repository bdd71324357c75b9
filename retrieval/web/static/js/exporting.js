// Results as files and text to keep, made in the browser of what the API gave.

const COLUMNS = ["name", "title", "probability", "found", "region"];
const MARK = "\ufeff"; // of UTF-8, or spreadsheets take it for another encoding
const FORMULA = /^[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]/; // what a spreadsheet may calculate

const kept = (entry) => Object.fromEntries(COLUMNS.map((name) => [name, entry[name]]));

function cell(value) {
  const text = typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value);
  // An apostrophe makes a text of a formula: photos and titles may have any name.
  return `"${(FORMULA.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
}

/** A table (RFC 4180, all cells quoted); a region is a JSON list of its corners. */
export function toCsv(entries) {
  const rows = [COLUMNS, ...entries.map((entry) => COLUMNS.map((name) => entry[name]))];
  return MARK + rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** The same as JSON, names as they are. */
export const toJson = (entries) => `${JSON.stringify(entries.map(kept), null, 2)}\n`;

/** Names, one a line. */
export const toNames = (entries) => entries.map(({ name }) => name).join("\n");
