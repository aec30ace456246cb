// Rates over the last minutes (uPlot), and the histogram of latencies.

import { el, micros, short, svg } from "./dom.js";

const POINTS = 240;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Rows in and out per second, for as long as the page is shown.
export class RateChart {
  constructor() {
    this.node = el("div", { class: "chart" });
    this.data = [[], [], []];
    this.chart = null;
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.redraw = () => { this.chart?.destroy(); this.draw(); };
    this.scheme.addEventListener("change", this.redraw);
    this.resize = new ResizeObserver(() => this.chart?.setSize({ width: this.width(), height: 180 }));
  }

  width() {
    return Math.max(240, this.node.clientWidth - 16);
  }

  add(atMs, rowsIn, rowsOut) {
    [atMs / 1000, rowsIn, rowsOut].forEach((value, at) => {
      this.data[at].push(value);
      if (this.data[at].length > POINTS) this.data[at].shift();
    });
    if (this.chart === null && this.node.isConnected) this.draw();
    this.chart?.setData(this.data);
  }

  draw() {
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
    this.chart = new uPlot({
      width: this.width(), height: 180,
      legend: { live: true },
      cursor: { y: false },
      scales: { y: { range: (_, __, high) => [0, Math.max(10, high * 1.1)] } },
      axes: [{ ...axis, space: 90, values: (_, values) => values.map((value) => new Date(value * 1000).toLocaleTimeString("sv")) }, { ...axis, size: 56, values: (_, values) => values.map((value) => short(value)) }],
      series: [{ value: "{HH}:{mm}:{ss}" },
        { label: "rows in/s", stroke: colour("--accent"), width: 2, points: { show: false }, value: (_, value) => short(value) },
        { label: "rows out/s", stroke: colour("--busy"), width: 2, points: { show: false }, dash: [6, 4], value: (_, value) => short(value) }],
    }, this.data, this.node);
    this.resize.observe(this.node);
  }

  close() {
    this.scheme.removeEventListener("change", this.redraw);
    this.resize.disconnect();
    this.chart?.destroy();
  }
}

// How many markers took how long: one bar a doubling of the time.
export function histogram(octaves) {
  const most = Math.max(...octaves, 1);
  const first = octaves.findIndex((count) => count > 0);
  const bars = [];
  octaves.forEach((count, at) => {
    if (at < first) return;
    const from = at === 0 ? 0 : 8 * 2 ** at;
    bars.push(el("span", { class: "num" }, `${micros(from)} – ${micros(16 * 2 ** at)}`),
      el("div", { class: "bar" }, svg("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("rect", { width: (100 * count) / most, height: 10 }))),
      el("span", { class: "num" }, short(count)));
  });
  return el("div", { class: "bars" }, bars);
}
