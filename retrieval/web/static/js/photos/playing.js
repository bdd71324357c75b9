// The film that a photo is a frame of, played from there.

import { address } from "../api.js";
import { el } from "../dom.js";
import { t } from "../language.js";

/** A button that plays the film of a photo; null where it is no frame of one, or the server gives out no files. */
export function playing(photo) {
  if (photo.film === null) return null;
  const source = address(`/api/photos/${photo.number}/film`);
  const time = new Date(1000 * photo.film).toISOString().slice(11, 19);
  const place = el("div", { class: "stack" }, el("div", { class: "row" }, el("button", { type: "button", class: "small", onclick: () => {
    const video = el("video", { controls: true, autoplay: true, src: `${source}#t=${photo.film}` });
    video.addEventListener("error", () => place.replaceChildren(
      el("span", { class: "hint" }, t("This browser does not play such films.")), el("a", { href: source, download: true }, t("Save the film"))));
    place.replaceChildren(video);
  } }, t("Play from {time}", { time }))));
  return place;
}
