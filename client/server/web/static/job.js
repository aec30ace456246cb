// One job: its graph, what holds it up, and the tabs below.

import { get, post, watch } from "./api.js";
import { RateChart, histogram } from "./charts.js";
import { confirmAction } from "./dialog.js";
import { bytes, count, duration, el, empty, errorNotice, eventTime, micros, moment, panel, percent, pill, put, rate, setText, short, table, toast } from "./dom.js";
import { Graph, legend } from "./graph.js";

const TABS = ["Operators", "Splits", "Checkpoints", "Events", "Rejected rows", "Latency", "Settings"];

export function showJob(main, id, status, fail) {
  const page = new JobPage(main, id, status);
  const stop = watch(`/jobs/${encodeURIComponent(id)}/stream`, (_, job) => page.update(job), fail);
  return () => { stop(); page.close(); };
}

class JobPage {
  constructor(main, id, status) {
    this.id = id;
    this.mayRun = status.may_run;
    this.job = null;
    this.tab = TABS[0];
    this.operator = null;
    this.title = el("h1", {}, id);
    this.pill = el("span", {});
    this.actions = el("div", { class: "actions" });
    this.notices = el("div", { "aria-live": "polite" });
    this.figures = el("dl", { class: "figures" });
    this.graph = new Graph((operator) => { this.operator = operator; this.select("Operators"); });
    this.chart = new RateChart();
    this.tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Facts of the job" });
    this.body = el("div", { role: "tabpanel", tabindex: "-1" });
    this.statement = el("details", {}, el("summary", {}, "Statement"), el("pre", {}));
    this.bottleneck = el("span", { class: "soft small" });
    this.buttons();
    put(main, el("p", { class: "crumb" }, el("a", { href: "#/" }, "Jobs"), " / ", el("span", { class: "soft mono" }, id)),
      el("div", { class: "head" }, this.title, this.pill, this.actions), this.statement, this.notices, this.figures,
      el("section", { class: "panel" }, el("header", {}, el("h2", {}, "Dataflow"), this.bottleneck), this.graph.node, legend()),
      panel("Throughput", "since this page was opened", this.chart.node), this.tabs, this.body);
    this.drawTabs();
  }

  close() {
    this.chart.close();
  }

  update(job) {
    this.job = job;
    const { summary } = job;
    document.title = `${summary.name} · penstock`;
    setText(this.title, summary.name);
    put(this.pill, pill(summary.state));
    setText(this.statement.querySelector("pre"), job.statement || "This job was started without a statement, by the Table API.");
    setText(this.bottleneck, job.bottleneck);
    this.graph.update(job.graph, job.delay);
    this.chart.add(job.read_at_ms || Date.now(), summary.rows_in_per_second, summary.rows_out_per_second);
    this.refreshNotices(job);
    this.refreshFigures(job);
    this.refreshButtons(job);
    this.refreshTabs();
    this.show();
  }

  refreshNotices(job) {
    const { summary, delay } = job;
    const notices = [];
    if (summary.failure && summary.state === "FAILED") {
      notices.push(el("div", { class: "notice bad", role: "alert" }, el("strong", {}, `The job has failed. ${summary.failure.code}: `),
        summary.failure.message, summary.failure.hint ? el("div", {}, summary.failure.hint) : null,
        summary.failure.detail ? el("pre", {}, summary.failure.detail) : null));
    } else if (summary.failure && summary.restarts) {
      notices.push(el("div", { class: "notice warn" }, el("strong", {}, `Restarted ${count(summary.restarts)}×, last after ${summary.failure.code}: `), summary.failure.message));
    }
    if (delay?.is_stuck) notices.push(el("div", { class: "notice warn", id: "watermark" }, el("strong", {}, "Event time is held up. "), delay.sentence));
    if (!summary.rows_out && !over(summary)) notices.push(el("div", { class: "notice" }, el("strong", {}, "No output yet. "), sentence(summary.verdict)));
    const text = notices.map((notice) => notice.textContent).join("\n");
    if (text !== this.noticeText) {
      this.noticeText = text;
      put(this.notices, notices);
    }
  }

  refreshFigures(job) {
    const { summary } = job;
    const last = job.checkpoints[job.checkpoints.length - 1];
    const all = [
      ["Rows in", rate(summary.rows_in_per_second), `Σ ${short(summary.rows_in)}`],
      ["Rows out", rate(summary.rows_out_per_second), `Σ ${short(summary.rows_out)}`],
      ["Watermark lag", duration(summary.watermark_lag_ms), ""],
      ["State", bytes(summary.state_bytes), ""],
      ["Last checkpoint", last ? duration(last.duration_ms) : "–", last ? bytes(last.size_bytes) : ""],
      ["Restarts", count(summary.restarts), "", summary.restarts > 0],
      ["Late / bad rows", `${short(summary.late_rows)} / ${short(summary.bad_rows)}`, "", summary.late_rows + summary.bad_rows > 0],
      ["Uptime", summary.uptime_ms ? duration(summary.uptime_ms) : "–", `×${summary.parallelism}`],
    ];
    put(this.figures, all.map(([name, value, note, alarm]) =>
      el("div", { class: alarm ? "alarm" : null }, el("dt", {}, name), el("dd", {}, value, " ", note ? el("small", {}, note) : null))));
  }

  buttons() {
    const make = (text, act, kind) => el("button", { class: kind, onclick: () => act.call(this) }, text);
    this.stopButton = make("Stop…", this.stop);
    this.saveButton = make("Savepoint…", this.save);
    this.rescaleButton = make("Rescale…", this.rescale);
    this.cancelButton = make("Cancel…", this.cancel, "danger");
    put(this.actions, this.stopButton, this.saveButton, this.rescaleButton, this.cancelButton);
  }

  refreshButtons(job) {
    this.actions.hidden = over(job.summary) || !this.mayRun;
    this.rescaleButton.disabled = this.saveButton.disabled = !job.can_rescale;
    this.rescaleButton.title = this.saveButton.title = job.can_rescale ? "" : "The job writes no checkpoints";
  }

  async act(question, path, body) {
    const values = await confirmAction(question);
    if (values === null) return;
    toast("The request is running…");
    try {
      toast((await post(`/jobs/${encodeURIComponent(this.id)}/${path}`, body(values))).note);
    } catch (error) {
      put(this.notices, errorNotice(error.error ?? { message: error.message }));
      this.noticeText = "";
      toast("The request was refused.");
    }
  }

  stop() {
    return this.act({ title: `Stop ${this.job.summary.name}?`, action: "Stop the job",
      text: "The job takes one more checkpoint, commits its output and ends. The same statement continues from there.",
      fields: [{ name: "drain", type: "checkbox", label: "Drain: close all windows first. The job cannot be resumed then." }] },
    "stop", (values) => ({ drain: values.drain }));
  }

  save() {
    return this.act({ title: `Take a savepoint of ${this.job.summary.name}?`, action: "Take a savepoint",
      text: "The job takes a checkpoint, which is copied to a directory that another job can start from. The job continues.",
      fields: [{ name: "directory", type: "text", label: "Directory", placeholder: "empty: that of the setting" },
        { name: "stop", type: "checkbox", label: "Stop the job with it." }] },
    "savepoint", (values) => ({ directory: values.directory, stop: values.stop }));
  }

  rescale() {
    return this.act({ title: `Rescale ${this.job.summary.name}?`, action: "Rescale the job",
      text: "The job takes a checkpoint and continues from it with another number of subtasks.",
      fields: [{ name: "parallelism", type: "number", label: "Parallelism", value: this.job.summary.parallelism, min: 1, required: true }] },
    "rescale", (values) => ({ parallelism: Number(values.parallelism) }));
  }

  cancel() {
    return this.act({ title: `Cancel ${this.job.summary.name}?`, action: "Cancel the job", danger: true,
      text: "The job ends at once, without a checkpoint. Output that is not committed is dropped." },
    "cancel", () => ({}));
  }

  drawTabs() {
    put(this.tabs, TABS.map((name) => el("button", { role: "tab", "data-tab": name, onclick: () => this.select(name),
      onkeydown: (event) => this.move(event, name) }, name, el("span", { class: "count", hidden: true }))));
    this.refreshTabs();
  }

  move(event, name) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = TABS[(TABS.indexOf(name) + step + TABS.length) % TABS.length];
    this.select(next);
    this.tabs.querySelector(`[data-tab="${next}"]`).focus();
  }

  refreshTabs() {
    const job = this.job;
    const counts = job === null ? {} : { Splits: job.splits.length, Checkpoints: job.summary.checkpoints_completed,
      Events: job.events.length, "Rejected rows": job.summary.late_rows + job.summary.bad_rows };
    for (const button of this.tabs.children) {
      const chosen = button.dataset.tab === this.tab;
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
      const badge = button.querySelector(".count");
      const number = counts[button.dataset.tab];
      badge.hidden = !number;
      setText(badge, number ? short(number) : "");
      badge.classList.toggle("bad", ["Events", "Rejected rows"].includes(button.dataset.tab));
    }
  }

  select(name) {
    this.tab = name;
    this.rejected = null;
    this.refreshTabs();
    this.show(true);
  }

  show(selected = false) {
    if (this.job === null) return;
    // a request of its own: rows of users are not sent each second
    if (this.tab === "Rejected rows") { if (selected) this.showRejected(); return; }
    put(this.body, { Operators: operators, Splits: splits, Checkpoints: checkpoints, Events: events, Latency: latency, Settings: settings }[this.tab](this.job, this.operator));
  }

  async showRejected() {
    put(this.body, panel("Rejected rows", "", empty("Loading…")));
    try {
      const { late, bad } = await get(`/jobs/${encodeURIComponent(this.id)}/rejected-rows`);
      const made = [...late.map((one) => stored("Late rows", one)), ...bad.map((one) => stored("Records that could not be read", one))];
      put(this.body, made.length ? made : panel("Rejected rows", "", empty("No row was late, and no bad record is stored. A table with 'on-error' = 'table' stores them.")));
    } catch (error) {
      put(this.body, errorNotice(error.error ?? { message: error.message }));
    }
  }
}

function over(summary) {
  return ["FINISHED", "CANCELED", "FAILED"].includes(summary.state);
}

function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function operators(job, chosen) {
  return panel("Operators", "inputs first", table([
    { title: "Operator", class: "name", cell: (one) => el("div", {}, el("strong", {}, one.name), el("div", { class: "soft small mono" }, one.operator_id)) },
    { title: "×", class: "num", label: "subtasks", cell: (one) => one.parallelism },
    { title: "Rows in", class: "num", label: "in", cell: (one) => flow(one.rows_in_per_second, one.rows_in) },
    { title: "Rows out", class: "num", label: "out", cell: (one) => flow(one.rows_out_per_second, one.rows_out) },
    { title: "Busy", label: "busy", cell: shares },
    { title: "Watermark", class: "num wide", label: "watermark", cell: (one) => eventTime(one.watermark_ms) },
    { title: "Lag", class: "num", label: "lag", cell: (one) => duration(one.watermark_lag_ms) },
    { title: "State", class: "num", label: "state", cell: (one) => (one.state_entries ? `${short(one.state_entries)} entries, ${bytes(one.state_bytes + one.spilled_bytes)}` : "–") },
    { title: "Late / bad", class: "num", label: "late / bad", cell: (one) => `${short(one.late_rows)} / ${short(one.bad_rows)}` },
    { title: "Counters", class: "wide", label: "counters", cell: (one) => Object.entries(one.counters).map(([name, value]) => `${name.replaceAll("_", " ")} ${count(value)}`).join(", ") || "–" },
  ], job.operators, { class: "cards", rowClass: (one) => (one.operator_id === chosen ? "mark" : null), caption: "Operators of the job" }));
}

function flow(perSecond, all) {
  return el("span", {}, rate(perSecond), el("span", { class: "soft small" }, ` Σ ${short(all)}`));
}

function shares(one) {
  const draw = (share, name) => { const part = el("span", { class: name }); part.style.width = `${share * 100}%`; return part; };
  return el("div", { class: "shares", role: "img", "aria-label": `${percent(one.busy)} busy, ${percent(one.backpressured)} backpressured`,
    title: `${percent(one.busy)} busy, ${percent(one.backpressured)} backpressured, ${percent(one.idle)} idle` },
  draw(one.busy, "busy"), draw(one.backpressured, "pressed"));
}

function splits(job) {
  const rows = [...job.splits].sort((a, b) => b.delays_watermark - a.delays_watermark || (b.pending ?? 0) - (a.pending ?? 0));
  return panel("Splits", job.delay ? job.delay.sentence : "", rows.length ? table([
    { title: "Split", class: "mono", cell: (one) => one.split },
    { title: "Source", cell: (one) => one.operator },
    { title: "Read", class: "num", cell: (one) => count(one.rows) },
    { title: "Rate", class: "num", cell: (one) => (one.rows_per_second === null ? "–" : rate(one.rows_per_second)) },
    { title: "Pending", class: "num", cell: (one) => count(one.pending) },
    { title: "Last event", class: "num", cell: (one) => eventTime(one.last_event_ms) },
    { title: "Watermark", class: "num", cell: (one) => eventTime(one.watermark_ms) },
    { title: "", cell: (one) => (one.delays_watermark ? "watermark waits for it" : one.idle ? "idle" : "") },
  ], rows, { rowClass: (one) => (one.delays_watermark && job.delay?.is_stuck ? "mark" : null) }) : empty("No split is open."));
}

function checkpoints(job) {
  const newest = [...job.checkpoints].reverse();
  return el("div", {}, job.checkpoint_failure ? el("div", { class: "notice warn" }, el("strong", {}, "The last failed checkpoint: "), job.checkpoint_failure) : null,
    panel("Checkpoints", `${count(job.summary.checkpoints_completed)} completed, ${count(job.summary.checkpoints_failed)} failed`,
      newest.length ? table([
        { title: "Id", class: "num", cell: (one) => one.checkpoint_id },
        { title: "Kind", cell: (one) => one.kind },
        { title: "Completed", class: "num", cell: (one) => moment(one.completed_at_ms) },
        { title: "Duration", class: "num", cell: (one) => duration(one.duration_ms) },
        { title: "Size", class: "num", cell: (one) => bytes(one.size_bytes) },
        { title: "Written", class: "num", cell: (one) => bytes(one.new_bytes) },
        { title: "In flight", class: "num", cell: (one) => (one.channel_state_rows ? `${count(one.channel_state_rows)} rows` : "–") },
      ], newest.slice(0, 20)) : empty("No checkpoint is complete yet.", "SET 'execution.checkpointing.interval' = '10 s'")),
    job.checkpoint_parts.length ? panel("Parts of the newest", "by task", table([
      { title: "Task", cell: (one) => one.task },
      { title: "Subtask", class: "num", cell: (one) => one.subtask },
      { title: "Written after", class: "num", cell: (one) => duration(one.duration_ms) },
      { title: "Size", class: "num", cell: (one) => bytes(one.size_bytes) },
      { title: "Alignment", class: "num", cell: (one) => duration(one.alignment_ms) },
      { title: "Rows blocked", class: "num", cell: (one) => duration(one.blocked_ms) },
    ], job.checkpoint_parts)) : null);
}

function events(job) {
  const newest = [...job.events].reverse();
  return panel("Restarts, failures and warnings", newest.length ? `the latest ${newest.length}` : "", newest.length ? table([
    { title: "Time", class: "num", cell: (one) => moment(one.at_ms) },
    { title: "Event", cell: (one) => one.kind.toLowerCase() },
    { title: "", cell: (one) => one.text },
  ], newest) : empty("Nothing has gone wrong."));
}

function latency(job) {
  const all = job.operators.flatMap((one) => one.latency.map((figures) => ({ ...figures, operator: one.name }))).filter((one) => one.count);
  if (!all.length) return panel("Latency", "", empty("Latency is measured by markers, which are off.", "SET 'metrics.latency.interval' = '1 s'"));
  return el("div", {}, all.map((one) => panel(`${one.source} → ${one.operator}, subtask ${one.subtask}`,
    `median ${micros(one.p50_us)}, p95 ${micros(one.p95_us)}, p99 ${micros(one.p99_us)}, most ${micros(one.max_us)}, ${count(one.count)} markers`,
    el("div", { class: "pad" }, histogram(one.octaves)))));
}

function settings(job) {
  const all = Object.entries(job.settings);
  return panel("Settings", "what was set when the job was started; secrets are masked", all.length
    ? el("div", { class: "pad" }, el("dl", { class: "facts" }, all.flatMap(([key, value]) => [el("dt", { class: "mono" }, key), el("dd", { class: "mono" }, value)])))
    : empty("All settings have their defaults."));
}

function stored(title, one) {
  const rows = one.columns.length ? one.data[0].map((_, row) => one.data.map((column) => column[row])) : [];
  return panel(title, one.table, rows.length ? table(one.columns.map((column, at) => ({ title: column.name,
    cell: (row) => (row[at] === null ? el("span", { class: "null" }, "NULL") : typeof row[at] === "object" ? JSON.stringify(row[at]) : String(row[at])) })), rows)
    : empty(one.note ?? "No rows are stored."));
}
