// The fields of metadata: the server's table, with what each is called in the reader's language.

import { figure, t, taken } from "./language.js";

/** {name, word: in tables, kind: date, text, degrees, number, mark or tags, label, facet: heading of its values, filter: whether photos can be asked for by it}. */
export const fields = JSON.parse(document.documentElement.dataset.fields ?? "[]");

const SHOWN = { date: taken, number: (value) => figure(Number(value)), mark: () => t("yes") };

/** A value as people read it. */
export const shown = ({ kind }, value) => (SHOWN[kind] ?? String)(value);

/** What a filter asks for: a part of a text, the least number, a mark. */
export function asksFor({ kind, label }, value) {
  if (kind === "mark") return label;
  if (kind === "number") return t("{field}: {value} or more", { field: label, value: figure(Number(value)) });
  return t("{field}: {value}", { field: label, value });
}
