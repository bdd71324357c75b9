// What other photos show of a photo, outlined on it: from the links that `cairn group` found, without a search.

import { address, json, thumbnail } from "../api.js";
import { el, pixels, svg } from "../dom.js";
import { t, tn } from "../language.js";
import { format, searchAddress, surround } from "../query.js";

const KEPT = "cairn.objects"; // whether outlines are shown, in the browser's own store
const SHOWN = 12; // photos of an object that are shown at once

function remembered() {
  try {
    return localStorage.getItem(KEPT) !== "no";
  } catch {
    return true; // the browser keeps nothing
  }
}

function remember(shown) {
  try {
    localStorage.setItem(KEPT, shown ? "yes" : "no");
  } catch {
    // It is asked again next time.
  }
}

/** Start the job that links photos; the button says how it went. */
function offerGroups() {
  const said = el("p", { class: "hint", role: "status" });
  const button = el("button", {
    type: "button",
    class: "small writes",
    onclick: async () => {
      button.disabled = true;
      try {
        const { begin } = await import("../jobs/jobs.js");
        await begin("group", {});
        said.replaceChildren(t("The photos are being compared."), " ", el("a", { href: address("/work") }, t("See the progress")));
      } catch (error) {
        said.textContent = error.message;
        button.disabled = false;
      }
    },
  }, t("Find out"));
  return [el("p", { class: "hint" }, t("Whether other photos show parts of this one is not known yet.")), button, said];
}

/**
 * Outline what other photos show of a photo, and list it.
 *
 * @param node element over which the outlines lie: positioned, with the picture filling it, such as the box tool's canvas
 * @param photo {number, width, height}
 * @param panel element that is filled with the switch and the list
 */
export async function objects(node, photo, panel) {
  const found = await json(`/api/photos/${photo.number}/objects`);
  if (!found.grouped) {
    panel.replaceChildren(...offerGroups());
    return;
  }
  if (!found.objects.length) {
    panel.replaceChildren(el("p", { class: "hint" }, t("No other photo is known to show a part of this one.")));
    return;
  }

  const layer = svg("svg", { class: "objects", viewBox: pixels(photo.width, photo.height), "aria-hidden": "true" });
  const details = el("div", { class: "object-photos", hidden: true });
  let parts = 0;
  const entries = found.objects.map((object) => {
    if (!object.whole) parts += 1;
    const name = object.whole ? t("All of this photo") : t("Part {n} of this photo", { n: parts });
    const points = object.region.map((point) => point.join(",")).join(" ");
    const mark = svg("g", { class: object.whole ? "object whole" : "object" },
      svg("polygon", { class: "halo", points }),
      svg("polygon", { class: "region", points }),
      svg("polygon", { class: "catch", points }));
    const button = el("button", { type: "button", class: "small", "aria-expanded": "false" },
      name, " · ", tn(object.photos.length, "{n} photo", "{n} photos"));
    return { object, name, mark, button };
  });

  const open = (chosen) => {
    for (const { mark, button } of entries) {
      const is = button === chosen?.button;
      button.setAttribute("aria-expanded", String(is));
      mark.classList.toggle("open", is);
    }
    details.hidden = !chosen;
    if (!chosen) return;
    const { object, name } = chosen;
    const box = surround(object.region, photo);
    const own = format({ photo: photo.number, upload: null, box: object.whole ? null : box });
    details.replaceChildren(
      el("ul", { class: "object-grid", "aria-label": name }, ...object.photos.slice(0, SHOWN).map((number) =>
        el("li", {}, el("a", { href: address("/photo", { number }) },
          el("img", { src: thumbnail(number, 128), alt: t("Photo {number}", { number }), loading: "lazy" }))))),
      el("a", { class: "button small", href: searchAddress([own]) }, t("Search for all photos of this")));
  };

  for (const entry of entries) {
    const toggle = () => open(entry.button.getAttribute("aria-expanded") === "true" ? null : entry);
    const light = (on) => entry.mark.classList.toggle("lit", on);
    entry.button.addEventListener("click", toggle);
    for (const [event, on] of [["mouseenter", true], ["mouseleave", false], ["focus", true], ["blur", false]]) {
      entry.button.addEventListener(event, () => light(on));
    }
    // Only the line itself: a box is still drawn across what is outlined.
    const line = entry.mark.lastElementChild;
    line.addEventListener("pointerdown", (event) => event.stopPropagation());
    line.addEventListener("click", toggle);
    line.append(svg("title", {}, entry.name));
    layer.append(entry.mark);
  }

  const list = el("ul", { class: "object-list" }, ...entries.map(({ button }) => el("li", {}, button)));
  const shown = el("input", { type: "checkbox", id: "objects-shown" });
  const show = () => {
    layer.toggleAttribute("hidden", !shown.checked);
  };
  shown.checked = remembered();
  shown.addEventListener("change", () => {
    remember(shown.checked);
    show();
  });
  show();
  node.append(layer);
  panel.replaceChildren(
    el("h2", {}, t("Found in other photos")),
    el("div", { class: "object-switch" }, shown, el("label", { for: "objects-shown" }, t("Outline on the photo"))),
    list,
    details);
}
