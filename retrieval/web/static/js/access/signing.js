// Who is signed in, and the way out, in the header.

import { ask } from "../api.js";
import { el } from "../dom.js";
import { t } from "../language.js";
import { server } from "../root.js";

/** Show in the header who is signed in; `user` is null where there is no password, and `session` false where another server signs in. */
export function showUser(user, session) {
  const bar = document.querySelector("header.bar");
  if (!user || !bar || bar.querySelector(".signed-in")) return;
  const leave = async () => {
    await ask(`${server}/logout`, { method: "POST", headers: { "X-Cairn": "1" } }).catch(() => {}); // the login page says how it is
    location.assign(`${server}/login`);
  };
  const name = session ? el("a", { class: "hint", href: `${server}/account`, title: t("Where you are signed in") }, user) : el("span", { class: "hint" }, user);
  bar.append(el("span", { class: "signed-in" }, name, session && el("button", { class: "small", type: "button", onclick: leave }, t("Sign out"))));
}
