// What pages say, in the reader's language: English stands in the code, other languages in languages/CODE.json.

import { root } from "./root.js";

/** The language of the page, as the server chose it: "en", "de". */
export const language = document.documentElement.lang || "en";

/** How the reader writes numbers and dates: by the browser's own variant of the language, such as "en-GB", where it has one. */
export const variant = navigator.languages.find((one) => one.split("-")[0] === language) ?? language;

const messages = await (async () => {
  if (language === "en") return {};
  try {
    return await (await fetch(`${root}/static/languages/${language}.json`)).json();
  } catch {
    return {}; // English is better than nothing
  }
})();

const plural = new Intl.PluralRules(language);

/** Put values in place of {name}. */
const filled = (text, values) => text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));

/** Say a sentence: `text` in English, with {name} where values stand. */
export function t(text, values = {}) {
  return filled(messages[text] ?? text, values);
}

/** Say a sentence that depends on a number: {n} stands for it, as the language writes it. */
export function tn(number, one, several, values = {}) {
  const forms = messages[several] ?? { one, other: several };
  const form = forms[plural.select(number)] ?? forms.other;
  return filled(form, { n: figure(number), ...values });
}

/**
 * A sentence with elements in it: `text` as `t` or `tn` gave it, `nodes` for the {names} that are left. Gives what `el` takes.
 * Texts from data go in as nodes too where a sentence has some, so that what looks like {a name} in them stays as it is.
 */
export const parts = (text, nodes) => text.split(/\{(\w+)\}/).map((part, place) => (place % 2 ? nodes[part] : part));

/** A number as the reader writes it. */
export const figure = (number, options = {}) => number.toLocaleString(variant, options);

/** A number with so many digits after the point. */
export const fixed = (number, digits) => figure(number, { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false });

/** A probability in percent, never so rounded that it were certain or impossible: "98%", ">99%", "<1%". */
export function percent(probability) {
  const whole = (part) => figure(part, { style: "percent" });
  if (Math.round(100 * probability) > 99) return `>${whole(0.99)}`;
  return Math.round(100 * probability) < 1 ? `<${whole(0.01)}` : whole(probability);
}

/** A moment as the reader writes it. */
export const moment = (date, options = { dateStyle: "medium", timeStyle: "short" }) => new Date(date).toLocaleString(variant, options);

/** When a photo was taken, as far as that is known (1923, 1923-05, 1923-05-17, 1923-05-17T10:00:00), as the reader writes it. */
export function taken(text) {
  if (!/^\d{4}-\d\d/.test(text)) return text;
  const styles = text.length > 10 ? { dateStyle: "medium", timeStyle: "medium" } : text.length > 7 ? { dateStyle: "medium" } : { year: "numeric", month: "long" };
  const date = new Date(`${text.slice(0, 7)}${text.slice(7, 10) || "-01"}T${text.slice(11, 19) || "00:00:00"}Z`);
  return Number.isNaN(date.getTime()) ? text : date.toLocaleString(variant, { ...styles, timeZone: "UTC" }); // the camera's own time
}
