// All sets of near duplicates, or of similar shots, at once: small, each with what is proposed; decided about together.

import { address, allChanged, change, changeMany, numbers, thumbnail } from "../api.js";
import { at, complain, el } from "../dom.js";
import { figure, t, tn } from "../language.js";
import { notice } from "./notice.js";

const PAGE = 50; // sets that are asked for together

/** Photos of a set that go if its best stays, and those that stay with it. */
export function parted([best, ...rest]) {
  return { go: numbers(rest.filter(({ stays }) => !stays)), stay: numbers([best, ...rest.filter(({ stays }) => stays)]) };
}

/**
 * Show all sets at once.
 * @param read(offset, limit) GET /api/duplicates
 * @param reasons(words) why the first of a set is the best, as a sentence
 * @param one(place) address of the page that shows a set alone
 * @param update(page) say what the page says of all sets
 */
export async function showAll({ read, reasons, one, update }) {
  let shown = []; // {set, place, tick}
  let offset = 0;
  const chosen = () => shown.filter(({ tick }) => tick.checked);
  const count = () => {
    const sets = chosen();
    const go = sets.reduce((sum, { set }) => sum + parted(set.photos).go.length, 0);
    at("chosen-sets").textContent = tn(sets.length, "{n} set selected", "{n} sets selected");
    at("hide-chosen").textContent = tn(go, "Hide {n} photo, keep the best", "Hide {n} photos, keep the best");
    at("hide-chosen").disabled = !go;
    at("keep-chosen").disabled = !sets.length;
    at("all-sets").checked = sets.length > 0 && sets.length === shown.length;
  };
  const item = (set, place) => {
    const tick = el("input", { type: "checkbox", checked: set.proposed === "hide", onchange: count });
    const picture = (photo, index) => el("li", { class: index ? null : "kept" },
      el("img", { src: thumbnail(photo.number, 128), alt: photo.name, title: photo.name, loading: "lazy" }),
      index ? photo.stays && el("span", { class: "badge" }, t("Stays")) : el("span", { class: "badge" }, t("Best")));
    const title = t("Set {place}", { place: figure(place + 1) });
    return [tick, el("li", { class: "set-line" },
      el("label", { class: "tick writes" }, tick, el("span", { class: "unseen" }, t("Select the set")), " ", title),
      el("ul", { class: "set-photos", "aria-label": title }, ...set.photos.map(picture)),
      el("p", { class: "said" }, set.proposed === "hide" ? reasons(set.reasons) : t("Proposed: keep all.")),
      el("a", { class: "button small", href: one(place), "aria-label": t("Look at set {place}", { place: figure(place + 1) }) }, t("Look at it")))];
  };
  const more = async () => {
    const page = await read(offset, PAGE);
    update(page);
    page.sets.forEach((set, index) => {
      const place = offset + index;
      const [tick, node] = item(set, place);
      shown.push({ set, place, tick });
      at("set-list").append(node);
    });
    offset += PAGE;
    at("more-sets").hidden = offset >= page.total;
    at("all").hidden = !shown.length;
    count();
  };
  const reload = async () => {
    shown = [];
    offset = 0;
    at("set-list").replaceChildren();
    await more();
    (shown.length ? at("chosen-sets") : at("title")).focus({ preventScroll: true });
  };
  const kept = (photos) => change("POST", "/api/duplicates/kept", { photos });
  const askAgain = (photos) => change("POST", "/api/duplicates/ask", { photos });
  const decide = async (act) => {
    complain(null);
    for (const id of ["hide-chosen", "keep-chosen"]) at(id).disabled = true;
    try {
      const { said, undo } = await act(chosen().map(({ set }) => set));
      await reload();
      notice(said, async () => {
        await undo();
        await reload();
      });
    } catch (error) {
      complain(error);
      count();
    }
  };
  at("hide-chosen").classList.add("primary");
  at("hide-chosen").addEventListener("click", () => decide(async (sets) => {
    const parts = sets.map(({ photos }) => parted(photos)).filter(({ go }) => go.length);
    const go = parts.flatMap((one) => one.go);
    const changed = allChanged(await changeMany("POST", "/api/hidden", "photos", go, { because: "duplicate" }));
    const left = parts.map(({ stay }) => stay).filter((stay) => stay.length > 1);
    for (const stay of left) await kept(stay);
    return { said: tn(changed.length, "{n} photo hidden.", "{n} photos hidden."), undo: async () => {
      await changeMany("POST", "/api/hidden/show", "photos", changed);
      for (const stay of left) await askAgain(stay);
    } };
  }));
  at("keep-chosen").addEventListener("click", () => decide(async (sets) => {
    for (const { photos } of sets) await kept(numbers(photos));
    return { said: tn(sets.length, "All photos of {n} set are kept.", "All photos of {n} sets are kept."), undo: async () => {
      for (const { photos } of sets) await askAgain(numbers(photos));
    } };
  }));
  at("all-sets").addEventListener("change", () => {
    for (const { tick } of shown) tick.checked = at("all-sets").checked;
    count();
  });
  at("more-sets").addEventListener("click", () => more().catch(complain));
  await more();
}
