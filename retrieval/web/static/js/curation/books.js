// Which books share pictures: a matrix, and a list whose entries open the pages that match.

import { address, json, thumbnail } from "../api.js";
import { at, el } from "../dom.js";
import { advise } from "../jobs/jobs.js";
import { figure, t, tn } from "../language.js";
import { start } from "../page.js";
import { format } from "../query.js";

const MOST = 60; // books in the matrix
const LISTED = 500; // pairs of books in the list

const pictures = (number) => tn(number, "{n} picture", "{n} pictures");

function matching({ first_page: one, second_page: other, numbers, box, searches }) {
  const whole = box?.map(Math.round);
  const href = address("/match", { q: format({ photo: numbers[0], upload: null, box: whole }), photo: numbers[1] });
  return el("li", {}, el("a", { href },
    ...numbers.map((number) => el("img", { src: thumbnail(number, 128), alt: "", loading: "lazy" })),
    el("span", { dir: "auto" }, t("{page} and {other}", { page: one, other }))),
  searches.length > 0 && el("span", { class: "hint", dir: "auto" }, searches.join(", ")));
}

function entry({ first, second, pictures: number, pages }, place) {
  const list = el("ul", { class: "set-photos" });
  const fill = () => list.children.length || list.append(...pages.map(matching));
  return el("li", {}, el("details", { id: `pair-${place}`, ontoggle: fill },
    el("summary", {}, el("span", { dir: "auto" }, first), " – ", el("span", { dir: "auto" }, second), " ", el("span", { class: "said" }, pictures(number))), list));
}

/** Open an entry of the list. */
function open(event, place) {
  event.preventDefault();
  const details = at(`pair-${place}`);
  details.open = true;
  details.scrollIntoView({ block: "center" });
  details.querySelector("summary").focus({ preventScroll: true });
}

/** A row and a column for each book; of many, those that share most. */
function matrix(books, pairs) {
  const sums = new Map(books.map((book) => [book, 0]));
  const places = new Map();
  pairs.forEach(({ first, second, pictures: number }, place) => {
    for (const [one, other] of [[first, second], [second, first]]) {
      sums.set(one, sums.get(one) + number);
      places.set(`${one}\n${other}`, place);
    }
  });
  const most = new Set([...sums].sort(([, one], [, other]) => other - one).slice(0, MOST).map(([book]) => book));
  const shown = books.filter((book) => most.has(book));
  const cell = (one, other) => {
    const place = places.get(`${one}\n${other}`);
    if (place === undefined) return el("td", {});
    const number = pairs[place].pictures;
    const said = t("{book} and {other}: {pictures}", { book: one, other, pictures: pictures(number) });
    return el("td", { class: "shares" }, place < LISTED ? el("a", { href: `#pair-${place}`, title: said, "aria-label": said, onclick: (event) => open(event, place) }, figure(number)) : figure(number));
  };
  at("matrix").replaceChildren(
    el("thead", {}, el("tr", {}, el("td", {}), ...shown.map((book) => el("th", { scope: "col", title: book }, el("span", { dir: "auto" }, book))))),
    el("tbody", {}, ...shown.map((book) => el("tr", {}, el("th", { scope: "row", dir: "auto" }, book), ...shown.map((other) => cell(book, other))))));
}

start(async () => {
  const { books, pairs, total, grouped } = await json("/api/books");
  at("said").textContent = books.length ? tn(books.length, "{n} book has pictures in common", "{n} books have pictures in common") : t("No books share pictures, as far as is known.");
  advise(at("note"), !grouped && t("Groups were not looked for: they tell what books share besides what you searched for."), t("Find groups"), "group");
  at("csv").hidden = at("pages-csv").hidden = at("wide").hidden = !total;
  matrix(books, pairs);
  at("pairs").replaceChildren(...pairs.slice(0, LISTED).map(entry));
  at("more").hidden = total <= LISTED;
  at("more").textContent = tn(total - LISTED, "{n} more pair of books is in the file.", "{n} more pairs of books are in the file.");
});
