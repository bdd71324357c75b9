// What every page does: the header, and whose collection it is.

import { showUser } from "./access/signing.js";
import { health } from "./api.js";
import { at, complain, el } from "./dom.js";
import { t, tn } from "./language.js";

// Header

/** What opens below its button closes by Escape, which gives the button the focus back, and by a click elsewhere. */
function closing(button, inside, isOpen, close) {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isOpen()) return;
    const within = inside.contains(document.activeElement) || document.activeElement === document.body;
    close();
    if (within) button.focus();
  });
  const leave = (event) => {
    const next = event.type === "focusout" ? event.relatedTarget : event.target;
    if (isOpen() && next && !inside.contains(next) && !button.contains(next)) close();
  };
  document.addEventListener("pointerdown", leave);
  inside.addEventListener("focusout", leave);
}

function menu() {
  const button = at("menu");
  if (!button) return; // a page of no collection
  const isOpen = () => button.getAttribute("aria-expanded") === "true";
  const open = (is) => button.setAttribute("aria-expanded", String(is));
  button.addEventListener("click", () => open(!isOpen()));
  closing(button, at("nav"), isOpen, () => open(false));
}

const THEME = "cairn-theme"; // as theme.js reads it

function settings() {
  const sheet = at("settings");
  closing(sheet.querySelector("summary"), sheet, () => sheet.open, () => {
    sheet.open = false;
  });
  at("language").addEventListener("change", () => {
    document.cookie = `cairn-language=${at("language").value}; path=/; max-age=31536000; samesite=lax`;
    location.reload();
  });
  const { dataset } = document.documentElement;
  at("theme").value = dataset.theme ?? "";
  at("theme").addEventListener("change", () => {
    const { value } = at("theme");
    if (value) dataset.theme = value;
    else delete dataset.theme;
    try {
      localStorage.setItem(THEME, value);
    } catch {
      // It holds for this page.
    }
  });
}

/** Lead back to the list of collections, where there is one: from the mark, and in words where there is room. */
function leadBack(shelf) {
  const mark = document.querySelector(".mark");
  mark.href = shelf;
  mark.setAttribute("aria-label", t("Cairn: all collections"));
  at("collection").before(el("a", { class: "to-shelf", href: shelf }, t("All collections")));
}

/** Have a photo's page know that going back leads to the list that it was opened from: see photo.js. */
function leave(event) {
  const link = event.target.closest?.("a[href]");
  const plain = !event.defaultPrevented && !event.button && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  if (!plain || !link?.pathname.endsWith("/photo")) return;
  try {
    sessionStorage.setItem("cairn.entered", "1");
  } catch {
    // Then the way back is the wall's.
  }
}

let counted = null; // photos, as it is said above the page

function showCollection(name, images) {
  counted = images;
  at("collection").replaceChildren(name, images ? el("span", { class: "count" }, ` · ${tn(images, "{n} photo", "{n} photos")}`) : ""); // or none yet
}

/** Say above the page how many photos there are now; whether that has changed. */
export async function recount() {
  const { collection, images } = await health();
  const changed = images !== counted;
  showCollection(collection, images);
  return changed;
}

/** Run a page. */
export async function start(main) {
  document.addEventListener("click", leave);
  menu();
  settings();
  health()
    .then(({ collection, images, originals, role, session, shelf, user }) => {
      document.body.classList.toggle("no-originals", originals === false);
      document.body.classList.toggle("read-only", role === "read");
      showUser(user, session);
      if (shelf) leadBack(shelf);
      if (!collection) return;
      showCollection(collection, images);
      import("./photos/away.js").then(({ tellAway }) => tellAway()).catch(() => {}); // the page does without
      // Not above: pages of no collection do without.
      import("./jobs/jobs.js").then(({ sign }) => sign(at("sign"))).catch(() => {});
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
