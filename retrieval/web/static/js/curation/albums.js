// All albums, as covers; a new one is made here.

import { address, change, json, thumbnail } from "../api.js";
import { at, el } from "../dom.js";
import { t, tn } from "../language.js";
import { start } from "../page.js";
import { ask, field } from "./dialogs.js";

const EAGER = 12; // covers that are loaded at once

function cover({ album, name, cover: number, photos }, place) {
  const picture = number === null
    ? el("span", { class: "empty-cover" }, t("Empty"))
    : el("img", { alt: "", src: thumbnail(number, 512), loading: place < EAGER ? null : "lazy", decoding: "async" });
  return el("li", {}, el("a", { href: address("/album", { album }) },
    el("span", { class: "frame" }, picture),
    el("span", { class: "called", title: name, dir: "auto" }, name),
    el("span", { class: "measure" }, tn(photos, "{n} photo", "{n} photos"))));
}

async function make() {
  const [node, input] = field(t("Name"), { required: true, maxlength: 200, dir: "auto" });
  const made = await ask(t("New album"), [node], t("Create"), () => change("POST", "/api/albums", { name: input.value }));
  if (made) location.assign(address("/album", { album: made.album }));
}

start(async () => {
  at("new-album").addEventListener("click", make);
  const { albums } = await json("/api/albums");
  at("albums").replaceChildren(...albums.map(cover));
  at("said").textContent = albums.length ? tn(albums.length, "{n} album", "{n} albums") : "";
  at("empty").hidden = albums.length > 0;
});
