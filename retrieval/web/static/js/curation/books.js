// Which books share pictures: a matrix, and a list whose entries open the pages that match.

import { address, json, thumbnail } from "../api.js";
import { at, el, svg } from "../dom.js";
import { advise } from "../jobs/jobs.js";
import { figure, t, tn } from "../language.js";
import { start } from "../page.js";
import { format } from "../query.js";

const MOST = 60; // books in the matrix
const DRAWN = 40; // books in the network
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

/** The books that share most, as many as are shown, in their order. */
function most(books, pairs, number) {
  const sums = new Map(books.map((book) => [book, 0]));
  for (const { first, second, pictures: shared } of pairs) for (const one of [first, second]) sums.set(one, sums.get(one) + shared);
  const kept = new Set([...sums].sort(([, one], [, other]) => other - one).slice(0, number).map(([book]) => book));
  return books.filter((book) => kept.has(book));
}

/** A row and a column for each book; of many, those that share most. */
function matrix(books, pairs) {
  const places = new Map(pairs.flatMap(({ first, second }, place) => [[`${first}\n${second}`, place], [`${second}\n${first}`, place]]));
  const shown = most(books, pairs, MOST);
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

/** Books on a circle, and a line for each two that share pictures; of many, those that share most. */
function network(books, pairs) {
  const listed = pairs.slice(0, LISTED);
  const shown = most(books, listed, DRAWN);
  const around = 2 * Math.PI / shown.length;
  const spot = new Map(shown.map((book, place) => [book, [Math.sin(place * around), -Math.cos(place * around)]]));
  const [radius, aside] = [Math.max(120, shown.length * 9), 190]; // room for names at the sides
  const along = (book, far) => spot.get(book).map((one) => (one * far).toFixed(1));
  const largest = Math.max(...listed.map((one) => one.pictures));
  const line = ({ first, second, pictures: number }, place) => {
    const said = t("{book} and {other}: {pictures}", { book: first, other: second, pictures: pictures(number) });
    const [ends, bend] = [[along(first, radius), along(second, radius)], shown.length > 3 ? 0.25 : 0.8]; // bent to the middle
    const middle = [0, 1].map((axis) => (ends[0][axis] / 2 + ends[1][axis] / 2) * bend);
    const d = `M${ends[0]} Q${middle} ${ends[1]}`;
    const width = 1.5 + 6 * Math.sqrt(number / largest);
    return svg("a", { href: `#pair-${place}`, "aria-label": said, onclick: (event) => open(event, place) },
      svg("title", {}, said), svg("path", { class: "near", d }), svg("path", { d, "stroke-width": width.toFixed(1) }));
  };
  const name = (book) => {
    const [x, y] = along(book, radius + 12);
    const anchor = Math.abs(x) < 8 ? "middle" : x > 0 ? "start" : "end";
    const [cx, cy] = along(book, radius);
    const short = book.length > 28 ? `${book.slice(0, 27)}…` : book;
    return svg("g", { "aria-hidden": "true" }, svg("title", {}, book), svg("circle", { cx, cy, r: 5 }),
      svg("text", { x, y: Number(y) + (anchor === "middle" ? Math.sign(y) * 6 + 4 : 4), "text-anchor": anchor, dir: "auto" }, short));
  };
  const [wide, high] = [radius + aside, radius + 40];
  const lines = listed.map((one, place) => [one, place]).filter(([{ first, second }]) => spot.has(first) && spot.has(second));
  at("network").hidden = shown.length < 2;
  at("drawing").replaceChildren(svg("svg", { viewBox: `${-wide} ${-high} ${2 * wide} ${2 * high}`, role: "group", "aria-label": t("Which books share pictures") },
    ...lines.map((one) => line(...one)), ...shown.map(name)));
  at("drawing").firstChild.style.setProperty("max-width", `${2 * wide}px`);
}

start(async () => {
  const { books, pairs, total, grouped } = await json("/api/books");
  at("said").textContent = books.length ? tn(books.length, "{n} book has pictures in common", "{n} books have pictures in common") : t("No books share pictures, as far as is known.");
  advise(at("note"), !grouped && t("Groups have not been searched for yet: they show what books share besides what you searched for."), t("Find groups"), "group");
  at("csv").hidden = at("pages-csv").hidden = at("wide").hidden = !total;
  network(books, pairs);
  matrix(books, pairs);
  at("pairs").replaceChildren(...pairs.slice(0, LISTED).map(entry));
  at("more").hidden = total <= LISTED;
  at("more").textContent = tn(total - LISTED, "{n} more pair of books is in the file.", "{n} more pairs of books are in the file.");
});
