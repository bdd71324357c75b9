// The photo that stands for a collection, where that is one of several.

import { change } from "../api.js";
import { at, complain } from "../dom.js";
import { t } from "../language.js";
import { root, server } from "../root.js";

/** Let a photo be made the cover; `current()` gives the photo that is shown. Gives what forgets what was said of it. */
export function offerCover(current) {
  at("cover-part").hidden = server === root; // a collection that is alone has no cover
  at("use-as-cover").addEventListener("click", async () => {
    const name = root.slice(root.lastIndexOf("/") + 1);
    try {
      complain(null);
      await change("PUT", new URL(`${server}/api/collections/${name}/cover`, location.href).href, { photo: current().number });
      at("cover-said").textContent = t("This photo is the cover of the collection now.");
    } catch (error) {
      complain(error);
    }
  });
  return () => {
    at("cover-said").textContent = "";
  };
}
