// Links that show one album to whoever has them: made, listed and ended. The address of a link is told once.

import { address, change, health, json } from "../api.js";
import { el } from "../dom.js";
import { t, taken } from "../language.js";

const SPANS = [[7, t("a week")], [30, t("30 days")], [92, t("three months")], [365, t("a year")]];

function entry(link, refresh, complain) {
  const end = el("button", { type: "button", class: "small", "aria-label": t("End the link that is valid until {day}", { day: taken(link.expires) }), onclick: async () => {
    end.disabled = true;
    try {
      await change("DELETE", `/api/shared/${link.id}`);
      await refresh(t("The link is ended."));
    } catch (error) {
      complain(error);
      end.disabled = false;
    }
  } }, t("End it"));
  const until = link.over ? t("was valid until {day}", { day: taken(link.expires) }) : t("valid until {day}", { day: taken(link.expires) });
  const made = t("made on {day}", { day: taken(link.created.slice(0, 10)) });
  return el("li", { class: "row" }, el("span", {}, [until, made, link.by].filter(Boolean).join(" · ")), end);
}

/** Ask about the links to an album. */
export async function shareAlbum({ album, name }) {
  const { user } = await health();
  const problem = el("p", { class: "error", role: "alert" });
  const said = el("p", { class: "said", role: "status" });
  const list = el("ul", { class: "links" });
  const span = el("select", { id: "share-span" }, ...SPANS.map(([days, label]) => el("option", { value: days, selected: days === 30 }, label)));
  const link = el("input", { id: "share-link", type: "text", readonly: true, onfocus: () => link.select() });
  const copy = el("button", { type: "button", class: "small", onclick: async () => {
    link.select();
    try {
      await navigator.clipboard.writeText(link.value);
      said.textContent = t("Copied");
    } catch {
      said.textContent = t("Copy it with Ctrl+C."); // the browser lets no page do so here
    }
  } }, t("Copy"));
  const shown = el("div", { class: "field", hidden: true }, el("label", { for: "share-link" }, t("The link, which is shown only now")), link, el("div", { class: "row" }, copy));
  const complain = (error) => {
    problem.textContent = error?.message ?? "";
  };
  const refresh = async (text = "") => {
    const { links } = await json("/api/shared", { album });
    complain(null);
    list.replaceChildren(...links.map((one) => entry(one, refresh, complain)));
    said.textContent = text || (links.length ? "" : t("It is not shared yet."));
  };
  const make = el("button", { type: "button", class: "primary", onclick: async () => {
    make.disabled = true;
    try {
      const { path } = await change("POST", `/api/albums/${album}/shared`, { days: Number(span.value) });
      await refresh();
      link.value = new URL(address(path), location.href).href;
      shown.hidden = false;
      link.focus();
    } catch (error) {
      complain(error);
    }
    make.disabled = false;
  } }, t("Make a link"));
  const close = el("button", { type: "button", onclick: () => dialog.close() }, t("Close"));
  const dialog = el("dialog", { class: "question", "aria-labelledby": "share-title" },
    el("div", { class: "stack" },
      el("h2", { id: "share-title", dir: "auto" }, t("Share “{name}”", { name })),
      el("p", { class: "hint" }, t("Whoever has the link sees the photos of this album at viewing size until its last day: no files, no places, and nothing else of the collection.")),
      user === null && el("p", { class: "hint" }, t("So far the link opens only on this computer. Whoever runs this server can let other computers in, with a password for each person.")),
      list, said,
      el("div", { class: "field" }, el("label", { for: "share-span" }, t("Valid for")), span),
      shown, problem,
      el("div", { class: "row" }, make, close)));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  await refresh();
  dialog.showModal();
}
