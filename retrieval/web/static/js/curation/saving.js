// Saving a search, and having it asked again.

import { address, ask as fetchSafely } from "../api.js";
import { el } from "../dom.js";
import { t } from "../language.js";
import { searchAddress, format } from "../query.js";
import { take } from "../uploads.js";
import { ask, field } from "./dialogs.js";
import { notice } from "./notice.js";

/** Fields of a question: whether new photos are searched for it, and which tag they get. */
export function standingFields({ standing = false, tag = "" } = {}) {
  const tick = el("input", { type: "checkbox", checked: standing });
  const [line, input] = field(t("Tag for what is found (optional)"), { value: tag ?? "", maxlength: 200 });
  line.hidden = !standing;
  tick.addEventListener("change", () => {
    line.hidden = !tick.checked;
  });
  return { nodes: [el("label", { class: "tick" }, tick, t("Look for it in photos that are added later")), line], values: () => ({ standing: tick.checked, tag: tick.checked ? input.value : "" }) };
}

/** Ask for a name, and save a search. `queries`: as query.js resolves them; `how`: options as the server takes them. */
export async function askToSave(queries, how) {
  const files = queries.filter(({ file }) => file);
  if (files.length > 1) {
    notice(t("A search with several photos of your own cannot be saved: save it with one."));
    return;
  }
  const [line, input] = field(t("Name"), { required: true, maxlength: 200, placeholder: t("The red motorcycle") });
  const { nodes, values } = standingFields();
  const saved = await ask(t("Save this search"), [line, ...nodes], t("Save"), async () => {
    const body = new FormData();
    const asked = queries.map(({ photo, file, name, box }) => ({ ...(file ? { name } : { photo }), ...(box && { box }) }));
    body.append("request", JSON.stringify({ name: input.value, queries: asked, options: how, ...values() }));
    for (const { file } of files) body.append("photo", file, file.name || "photo");
    return (await fetchSafely(address("/api/saved"), { method: "POST", headers: { "X-Cairn": "1" }, body })).json();
  });
  if (saved) notice(t("“{name}” is saved. You find it under Saved.", { name: saved.name }));
}

/** Address of the search page for a saved search; a photo from elsewhere is taken into this browser first. */
export async function addressOf({ id, queries, options }) {
  let upload = null;
  if (queries.some(({ photo }) => photo === null)) {
    const { name } = queries.find(({ photo }) => photo === null);
    const blob = await (await fetchSafely(address(`/api/saved/${id}/photo`))).blob();
    ({ id: upload } = await take(new File([blob], name ?? "photo.jpg", { type: "image/jpeg" })));
  }
  const texts = queries.map(({ photo, box }) => format({ photo, upload: photo === null ? upload : null, box }));
  const said = Object.fromEntries(Object.entries(options).map(([name, value]) => [name, typeof value === "boolean" ? Number(value) : value]));
  return searchAddress(texts, said);
}
