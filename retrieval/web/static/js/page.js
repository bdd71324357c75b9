// What every page does: say whose collection it is, and show what went wrong as a sentence.

import { health } from "./api.js";
import { at } from "./dom.js";
import { tn } from "./language.js";

/** Show a sentence in the page's place for errors; an empty one hides it. */
export function complain(error, id = "error") {
  if (error && error.name === "AbortError") return;
  at(id).textContent = error ? error.message || String(error) : "";
}

/** Run a page. */
export async function start(main) {
  health()
    .then(({ collection, images, originals }) => {
      document.body.classList.toggle("no-originals", originals === false);
      at("collection").textContent = `${collection} · ${tn(images, "{n} photo", "{n} photos")}`;
    })
    .catch(() => {}); // the page's own request says what is wrong
  try {
    await main();
  } catch (error) {
    complain(error);
  }
}

/** Set the heading of a page that shows one thing, and the window's title with it. */
export function entitle(text) {
  at("title").textContent = text;
  document.title = `${text} · Cairn`;
}
