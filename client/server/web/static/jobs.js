// The list of jobs.

import { watch } from "./api.js";
import { bytes, count, duration, el, empty, panel, pill, put, rate, setText, short, table } from "./dom.js";

export function showJobs(main, fail) {
  document.title = "Jobs · penstock";
  const summary = el("span", { class: "soft" });
  const body = el("div", {});
  put(main, el("div", { class: "head" }, el("h1", {}, "Jobs"), summary), body);
  return watch("/jobs/stream", (_, { jobs }) => {
    const running = jobs.filter((job) => job.state === "RUNNING").length;
    const failed = jobs.filter((job) => job.state === "FAILED").length;
    setText(summary, `${running} running${failed ? `, ${failed} failed` : ""}, ${jobs.length} in all`);
    // a link that has the focus keeps it over the next second
    const focused = document.activeElement?.dataset?.job;
    put(body, jobs.length ? panel("All jobs", "newest first", list(jobs)) : el("section", { class: "panel" },
      empty("No job has been started yet. A continuous INSERT starts one:",
        "INSERT INTO counts SELECT k, COUNT(*) FROM ticks GROUP BY k")));
    if (focused) body.querySelector(`[data-job="${CSS.escape(focused)}"]`)?.focus();
  }, fail);
}

function list(jobs) {
  return table([
    { title: "Job", class: "name", cell: name },
    { title: "State", cell: (job) => pill(job.state) },
    { title: "Rows in", class: "num", label: "in", cell: (job) => flow(job.rows_in_per_second, job.rows_in) },
    { title: "Rows out", class: "num", label: "out", cell: (job) => flow(job.rows_out_per_second, job.rows_out) },
    { title: "Watermark lag", class: "num", label: "lag", cell: (job) => duration(job.watermark_lag_ms) },
    { title: "State size", class: "num", label: "state", cell: (job) => bytes(job.state_bytes) },
    { title: "Checkpoints", class: "num", label: "checkpoints", cell: checkpoints },
    { title: "Restarts", class: "num", label: "restarts", cell: (job) => count(job.restarts) },
    { title: "Uptime", class: "num", label: "up", cell: (job) => (job.uptime_ms ? duration(job.uptime_ms) : "–") },
  ], jobs, { class: "cards", caption: "All jobs, newest first" });
}

function name(job) {
  const problem = job.state === "FAILED" && job.failure ? `${job.failure.code}: ${job.failure.message}` : null;
  return el("div", {},
    el("a", { href: `#/jobs/${encodeURIComponent(job.job_id)}`, "data-job": job.job_id }, job.name),
    el("div", { class: "soft small mono" }, job.job_id),
    problem ? el("div", { class: "small" }, problem) : null);
}

function flow(perSecond, all) {
  return el("span", { title: `${count(all)} rows in all` }, `${rate(perSecond)} `, el("span", { class: "soft small" }, `Σ ${short(all)}`));
}

function checkpoints(job) {
  return job.checkpoints_failed ? `${count(job.checkpoints_completed)} (${job.checkpoints_failed} failed)` : count(job.checkpoints_completed);
}
