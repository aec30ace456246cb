// Elements and texts. Whatever comes from the server becomes a text node or an attribute, never HTML.

export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

export function put(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  return parent;
}

// Changes a text only when it differs: a selection in it stays, and a screen reader is not called again.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function toast(text) {
  const node = document.getElementById("toast");
  node.textContent = text;
  node.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { node.hidden = true; }, 6000);
}

// -- numbers and times

export function count(value) {
  return value === null || value === undefined ? "–" : Number(value).toLocaleString("en");
}

export function short(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size < 10_000) return Number(value).toLocaleString("en");
  for (const [unit, of] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (size >= of) return `${(value / of).toFixed(size / of < 100 ? 1 : 0)} ${unit}`;
  }
  return String(value);
}

export function rate(value) {
  return `${short(value)}/s`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  for (const [unit, of] of [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (value >= of) return `${(value / of).toFixed(value / of < 10 ? 1 : 0)} ${unit}`;
  }
  return `${value} B`;
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  const sign = ms < 0 ? "−" : "";
  const size = Math.abs(ms);
  if (size < 1) return `${sign}${size.toFixed(2)} ms`;
  if (size < 1000) return `${sign}${size.toFixed(size < 10 ? 1 : 0)} ms`;
  const s = size / 1000;
  if (s < 60) return `${sign}${s.toFixed(1)} s`;
  if (s < 3600) return `${sign}${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${sign}${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${sign}${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function micros(us) {
  return duration(us / 1000);
}

// A moment of the clock, as the reader's machine has it.
export function moment(ms) {
  if (!ms) return "–";
  return new Date(ms).toLocaleString("sv", { hour12: false });
}

// Event time has no zone: it is shown as the rows have it.
export function eventTime(ms) {
  return ms === null || ms === undefined ? "–" : new Date(ms).toISOString().replace("T", " ").replace(/\.?0*Z$/, "");
}

export function percent(share) {
  return `${Math.round(share * 100)} %`;
}

// -- parts of pages

export function pill(state) {
  return el("span", { class: `pill ${state}` }, state.toLowerCase());
}

export function panel(title, note, ...children) {
  return el("section", { class: "panel" },
    el("header", {}, el("h2", {}, title), note ? el("span", { class: "soft small" }, note) : null), ...children);
}

export function table(columns, rows, options = {}) {
  const cells = (row) => columns.map((column) => {
    const value = column.cell(row);
    return el("td", { class: column.class, "data-label": column.label }, value instanceof Node ? value : String(value ?? "–"));
  });
  return el("div", { class: "scroll" }, el("table", { class: options.class },
    options.caption ? el("caption", { class: "skip" }, options.caption) : null,
    el("thead", {}, el("tr", {}, columns.map((column) => el("th", { scope: "col", class: column.class }, column.title)))),
    el("tbody", {}, rows.map((row) => el("tr", { class: options.rowClass?.(row) }, cells(row))))));
}

export function empty(text, code) {
  return el("div", { class: "empty" }, text, code ? el("code", { class: "mono" }, code) : null);
}

export function errorNotice(error) {
  return el("div", { class: "notice bad", role: "alert" },
    el("strong", {}, error.code ? `${error.code}: ` : "", error.message),
    error.hint ? el("div", {}, error.hint) : null,
    error.line ? el("pre", {}, error.text) : null,
    error.detail && !error.line ? el("pre", {}, error.detail) : null);
}
