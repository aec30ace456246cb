// The query box: rows as they come. A row of a changing result is drawn again where it stands.

import { post, stream } from "./api.js";
import { count, el, empty, errorNotice, panel, put, setText } from "./dom.js";

const SHOWN = 300;
const KEY = "penstock.query";

export function showQuery(main, status) {
  document.title = "Query · penstock";
  const box = new QueryBox(main, status);
  return () => box.stop();
}

class QueryBox {
  constructor(main) {
    this.running = null;
    this.text = el("textarea", { spellcheck: "false", "aria-label": "SQL", autocapitalize: "off", autocomplete: "off",
      placeholder: "SELECT name, state, rows_in_per_second FROM system.jobs",
      oninput: () => this.keep(),
      onkeydown: (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); this.run(); } } });
    this.text.value = sessionStorage.getItem(KEY) ?? "";
    this.runButton = el("button", { class: "main", onclick: () => this.run() }, "Run");
    this.stopButton = el("button", { disabled: true, onclick: () => this.stop() }, "Stop");
    this.planButton = el("button", { onclick: () => this.plan() }, "Plan");
    this.state = el("span", { class: "state soft small", role: "status" }, "Ctrl+Enter runs it");
    this.result = el("div", {});
    put(main, el("h1", {}, "Query"), el("section", { class: "panel" }, this.text,
      el("div", { class: "bar-row" }, this.runButton, this.stopButton, this.planButton, this.state)), this.result);
    this.text.focus();
  }

  // The text outlives a look at another page.
  keep() {
    sessionStorage.setItem(KEY, this.text.value);
  }

  get sql() {
    this.keep();
    return this.text.value;
  }

  async run() {
    this.stop();
    const running = this.running = new AbortController();
    this.runButton.disabled = true;
    this.stopButton.disabled = false;
    setText(this.state, "starting…");
    put(this.result);
    let rows = null;
    try {
      await stream("POST", "/query/stream", { sql: this.sql }, (name, data) => {
        if (name === "columns") rows = this.begin(data);
        else if (name === "rows") { rows.add(data); setText(this.state, rows.state); }
        else if (name === "progress") setText(this.state, `${count(data.rows)} rows, ${data.elapsed_s.toFixed(1)} s`);
        else if (name === "failure") put(this.result, errorNotice(data.error));
        else if (name === "end") this.end(data, rows);
      }, running.signal);
    } catch (error) {
      if (!running.signal.aborted) put(this.result, errorNotice(error.error ?? { message: error.message }));
    }
    if (this.running === running) this.idle(running.signal.aborted ? "stopped" : null);
  }

  begin(data) {
    if (!data.columns.length) return null;
    const rows = data.verbatim ? new Lines() : data.finite || data.mode === "append" ? new AppendedRows(data) : new ChangingRows(data);
    put(this.result, panel("Result", nature(data), rows.node));
    return rows;
  }

  end(data, rows) {
    if (rows === null) put(this.result, panel("Done", "", el("div", { class: "pad" }, data.note ?? "done")));
    else if (!rows.total) put(rows.node, empty("No rows."));
    setText(this.state, rows === null ? "done" : `${count(data.rows)} rows, ${(data.elapsed_s ?? 0).toFixed(2)} s`);
  }

  // Aborting the request ends the query in the server.
  stop() {
    this.running?.abort();
  }

  idle(text) {
    this.running = null;
    this.runButton.disabled = false;
    this.stopButton.disabled = true;
    if (text) setText(this.state, `${text}; ${this.state.textContent}`);
  }

  async plan() {
    this.stop();
    setText(this.state, "");
    try {
      const { plan } = await post("/explain", { sql: this.sql });
      put(this.result, panel("Plan", "nothing was started", el("pre", { class: "plan", tabindex: "0" }, plan)));
    } catch (error) {
      put(this.result, errorNotice(error.error ?? { message: error.message }));
    }
  }
}

function nature(data) {
  if (data.finite) return "";
  if (data.mode === "append") return "an endless result, newest first";
  return data.key ? "an endless result whose rows are updated in place" : "an endless result whose rows change";
}

function header(columns) {
  return el("thead", {}, el("tr", {}, columns.map((column) => el("th", { scope: "col", class: numeric(column) ? "num" : null, title: column.type }, column.name))));
}

function numeric(column) {
  return /^(TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DECIMAL)/.test(column.type);
}

function show(cell, value) {
  const text = value === null ? "NULL" : typeof value === "object" ? JSON.stringify(value) : String(value);
  cell.classList.toggle("null", value === null);
  setText(cell, text);
}

function line(columns, values) {
  return el("tr", {}, columns.map((column, at) => {
    const cell = el("td", { class: numeric(column) ? "num" : null });
    show(cell, values[at]);
    return cell;
  }));
}

// Text that is shown as it is: plans, statements, help.
class Lines {
  constructor() {
    this.total = 0;
    this.node = el("pre", { class: "plan", tabindex: "0" });
  }

  add({ data }) {
    this.total += data[0].length;
    this.node.append(`${data[0].join("\n")}\n`);
  }

  get state() { return `${count(this.total)} lines`; }
}

class Rows {
  constructor({ columns }) {
    this.columns = columns;
    this.total = 0;
    this.body = el("tbody", {});
    this.node = el("div", { class: "rows", tabindex: "0", role: "region", "aria-label": "Rows" }, el("table", {}, header(columns), this.body));
  }
}

// Rows that stay as they are: of a result that ends the first ones, of an endless one the newest.
class AppendedRows extends Rows {
  constructor(data) {
    super(data);
    this.finite = data.finite;
  }

  add({ data }) {
    const length = data[0]?.length ?? 0;
    this.total += length;
    // the oldest of an event that is larger than the table are not drawn at all
    for (let row = this.finite ? 0 : Math.max(0, length - SHOWN); row < length; row += 1) {
      const made = () => line(this.columns, data.map((column) => column[row]));
      if (!this.finite) this.body.prepend(made());
      else if (this.body.childElementCount < SHOWN) this.body.append(made());
      else break;
    }
    while (this.body.childElementCount > SHOWN) this.body.lastChild.remove();
  }

  get state() {
    const shown = this.body.childElementCount;
    return shown < this.total ? `${count(this.total)} rows, ${this.finite ? "the first" : "the newest"} ${shown} are shown` : `${count(this.total)} rows`;
  }
}

// Rows by their key, or by all of their values where there is none. A row may be there several times.
class ChangingRows extends Rows {
  constructor(data) {
    super(data);
    this.key = data.key;
    this.changes = 0;
    this.rows = new Map();
  }

  add({ ops, data }) {
    const changed = new Map();
    ops.forEach((op, at) => {
      const values = data.map((column) => column[at]);
      const key = JSON.stringify(this.key ? this.key.map((index) => values[index]) : values);
      this.changes += 1;
      if (op === "+I" || op === "+U") this.insert(key, values, changed);
      // the new version of a row follows its old one, so that one is only replaced
      else if (op === "-D" || !this.key) this.remove(key);
    });
    this.draw(changed);
    this.total = this.rows.size;
  }

  insert(key, values, changed) {
    const known = this.rows.get(key);
    if (known && this.key) {
      // of several versions in one event only the last is drawn
      if (known.node && !changed.has(known)) changed.set(known, known.values);
      known.values = values;
      return;
    }
    if (known) { known.count += 1; return; }
    const row = { values, count: 1, node: null };
    this.rows.set(key, row);
    if (this.body.childElementCount < SHOWN) {
      row.node = line(this.columns, values);
      this.body.append(row.node);
    }
  }

  draw(changed) {
    const cells = [];
    for (const [row, before] of changed) {
      row.values.forEach((value, at) => {
        if (JSON.stringify(value) === JSON.stringify(before[at]) || !row.node) return;
        show(row.node.children[at], value);
        cells.push(row.node.children[at]);
      });
    }
    // taken away and set again, so that the animation begins anew; the layout is asked for once
    for (const cell of cells) cell.classList.remove("fresh");
    void this.body.offsetWidth;
    for (const cell of cells) cell.classList.add("fresh");
  }

  remove(key) {
    const row = this.rows.get(key);
    if (!row) return;
    row.count -= 1;
    if (row.count > 0) return;
    this.rows.delete(key);
    row.node?.remove();
    // a row that had no room takes the free one
    if (row.node && this.rows.size >= SHOWN) {
      for (const other of this.rows.values()) {
        if (other.node) continue;
        other.node = line(this.columns, other.values);
        this.body.append(other.node);
        break;
      }
    }
  }

  get state() {
    const shown = this.body.childElementCount;
    return `${count(this.changes)} changes, ${count(this.rows.size)} rows${shown < this.rows.size ? `, ${shown} are shown` : ""}`;
  }
}
