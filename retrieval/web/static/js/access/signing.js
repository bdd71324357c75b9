// Who is signed in, and the way out.

import { ask } from "../api.js";
import { at, el } from "../dom.js";
import { t } from "../language.js";
import { server } from "../root.js";

/** What shows who is signed in; `session` is false where another server signs people in. */
function signedIn(user, session, kind) {
  const leave = async () => {
    await ask(`${server}/logout`, { method: "POST", headers: { "X-Cairn": "1" } }).catch(() => {}); // the login page says how it is
    location.assign(`${server}/login`);
  };
  const name = session ? el("a", { class: "hint", href: `${server}/account`, title: t("Where you are signed in") }, user) : el("span", { class: "hint" }, user);
  return el("span", { class: `signed-in ${kind}` }, name, session && el("button", { class: "small", type: "button", onclick: leave }, t("Sign out")));
}

/** Show who is signed in: in the header where there is room, else among the settings; `user` is null where there is no password. */
export function showUser(user, session) {
  const bar = document.querySelector("header.bar");
  if (!user || !bar || bar.querySelector(".signed-in")) return;
  bar.append(signedIn(user, session, "wide"));
  at("account").append(signedIn(user, session, "narrow"));
  at("account").hidden = false;
}
