// Where one is signed in, and the way out of each device.

import { change, json } from "../api.js";
import { at, complain, el } from "../dom.js";
import { moment, t, tn } from "../language.js";
import { start } from "../page.js";
import { server } from "../root.js";

/** A device in words: what its browser and its system are called, as far as they are known. */
function device({ browser, system }) {
  if (browser && system) return t("{browser} on {system}", { browser, system });
  return browser || system || t("Unknown device");
}

function row(one) {
  const when = { dateStyle: "medium", timeStyle: "short" };
  const leave = async () => {
    complain(null);
    try {
      await change("DELETE", `/api/sessions/${encodeURIComponent(one.id)}`);
      await load();
    } catch (error) {
      complain(error);
    }
  };
  return el("li", { class: "panel" },
    el("div", {},
      el("strong", {}, device(one)), one.current && el("span", { class: "here" }, t("This device")),
      el("p", { class: "hint" }, t("Since {begun}, last used {used} from {address}", { begun: moment(one.begun, when), used: moment(one.used, when), address: one.address }))),
    !one.current && el("button", { class: "small", type: "button", "aria-label": t("Sign out: {device}", { device: device(one) }), onclick: leave }, t("Sign out")));
}

async function load() {
  const { sessions } = await json("/api/sessions");
  at("said").textContent = tn(sessions.length, "{n} device", "{n} devices");
  at("sessions").replaceChildren(...sessions.map(row));
  at("sessions").setAttribute("aria-busy", "false");
  at("everywhere").hidden = false;
}

start(async () => {
  at("everywhere").addEventListener("click", async () => {
    try {
      await change("DELETE", "/api/sessions");
      location.assign(`${server}/login`);
    } catch (error) {
      complain(error);
    }
  });
  await load();
});
