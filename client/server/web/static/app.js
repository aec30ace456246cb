// The pages by the part of the address after '#', and the sign-in.

import { ApiError, get, post } from "./api.js";
import { el, errorNotice, put, setText, table, panel } from "./dom.js";
import { showJob } from "./job.js";
import { showJobs } from "./jobs.js";
import { showQuery } from "./query.js";

const main = document.getElementById("main");
let leave = () => {};
let opened = 0;
export const status = { may_run: false };

async function open() {
  leave();
  leave = () => {};
  // of two pages that are opened one after the other, the later one stays, whichever answer comes first:
  // otherwise the first would replace what is being typed into the second
  const mine = ++opened;
  const isLeft = () => mine !== opened;
  const [page, id] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const name = page === "" || page === "jobs" ? "jobs" : page;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  try {
    const answer = await get("/status");
    if (isLeft()) return;
    Object.assign(status, answer);
    const who = status.principal === "local" ? "local" : `${status.principal}, ${status.role}`;
    setText(document.getElementById("who"), `${who} · ${status.version}`);
    if (status.principal !== "local") {
      document.getElementById("who").append(" ", el("a", { href: "#/", onclick: signOut }, "Sign out"));
    }
    const fail = (error) => put(main, errorNotice(error.error ?? { message: error.message }));
    if (name === "jobs" && id) leave = showJob(main, id, status, fail);
    else if (name === "jobs") leave = showJobs(main, fail);
    else if (name === "query") leave = showQuery(main, status);
    else if (name === "sessions") await showSessions(isLeft);
    else put(main, errorNotice({ message: "There is no such page." }));
  } catch (error) {
    if (isLeft()) return;
    if (error instanceof ApiError && error.status === 401) showSignIn();
    else put(main, errorNotice(error.error ?? { message: `The server cannot be reached: ${error.message}` }));
  }
}

async function showSessions(isLeft) {
  document.title = "Sessions · penstock";
  const { columns, data } = await get("/sessions");
  if (isLeft()) return;
  const rows = data[0].map((_, row) => data.map((column) => column[row]));
  put(main, el("h1", {}, "Sessions"), panel("Open sessions", `${rows.length}`,
    table(columns.map((column, at) => ({ title: column.name, cell: (row) => row[at] ?? "–" })), rows)));
}

function showSignIn() {
  document.title = "Sign in · penstock";
  // a link that is followed before the sign-in leaves the form as it is filled in, and the focus in its field
  if (main.querySelector("form.sign-in")) return;
  const problem = el("div", {});
  const field = (name, label, type) => el("label", { class: "field" }, label,
    el("input", { name, type, autocomplete: type === "password" ? "current-password" : "username" }));
  const form = el("form", { class: "panel sign-in", onsubmit: async (event) => {
    event.preventDefault();
    const { token, user, password } = Object.fromEntries(new FormData(form));
    try {
      await post("/login", token ? { token } : { user, password });
      open();
    } catch (error) {
      put(problem, errorNotice(error.error ?? { message: error.message }));
    }
  } },
    el("header", {}, el("h2", {}, "Sign in")),
    el("div", { class: "pad" }, problem, field("user", "User"), field("password", "Password", "password"),
      el("p", { class: "soft" }, "or"), field("token", "Token", "password"),
      el("p", {}, el("button", { class: "main" }, "Sign in"))));
  put(main, form);
  form.querySelector("input").focus();
}

async function signOut(event) {
  event.preventDefault();
  await post("/logout", {});
  setText(document.getElementById("who"), "");
  open();
}

addEventListener("hashchange", () => {
  open();
  if (!main.querySelector("form.sign-in")) main.focus();
});
open();
