// The dataflow graph of a job: chains as cards, operators as their rows, edges with their kind. dagre places the
// cards; the drawing is our own, and an event changes texts and classes of what is there.

import { bytes, count, duration, el, rate, setText, svg } from "./dom.js";

const WIDTH = 316;
const HEAD = 34;
const ROW = 46;
const FOOT = 12;
const BUSY = 0.8;
const PRESSED = 0.1;

export class Graph {
  constructor(onChoose) {
    this.onChoose = onChoose;
    this.node = el("div", { class: "graph", tabindex: "0", role: "group", "aria-label": "Dataflow graph" });
    this.shape = "";
    this.rows = new Map();
    this.chosen = null;
    this.vertical = matchMedia("(max-width: 720px)");
  }

  update(graph, delay) {
    const shape = JSON.stringify([this.vertical.matches, graph.edges, graph.chains.map((chain) =>
      [chain.chain, chain.parallelism, chain.operators.map((operator) => operator.operator_id)])]);
    if (shape !== this.shape) {
      this.shape = shape;
      this.draw(graph);
    }
    for (const chain of graph.chains) this.refresh(chain, delay);
    this.refreshEdges(graph);
  }

  draw(graph) {
    const layout = new dagre.graphlib.Graph({ multigraph: true });
    layout.setGraph({ rankdir: this.vertical.matches ? "TB" : "LR", ranksep: 44, nodesep: 34, marginx: 20, marginy: 20 });
    layout.setDefaultEdgeLabel(() => ({}));
    for (const chain of graph.chains) {
      layout.setNode(String(chain.chain), { width: WIDTH, height: HEAD + ROW * chain.operators.length + FOOT });
    }
    graph.edges.forEach((edge, at) => layout.setEdge(String(edge.source), String(edge.target),
      { label: edgeLabel(edge), width: labelWidth(edgeLabel(edge)), height: 18, labelpos: "c" }, String(at)));
    dagre.layout(layout);
    const { width, height } = layout.graph();
    this.rows.clear();
    this.chains = new Map();
    this.edges = graph.edges.map((edge, at) => this.edge(edge, layout.edge(String(edge.source), String(edge.target), String(at))));
    const cards = graph.chains.map((chain) => this.card(chain, layout.node(String(chain.chain))));
    // shrunk to fit, but not so far that it cannot be read
    const scale = Math.min(1, Math.max(0.72, ((this.node.clientWidth || 1200) - 4) / width));
    this.node.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${height}`, width: width * scale, height: height * scale },
      this.edges.map((edge) => edge.group), cards));
  }

  card(chain, { x, y, width, height }) {
    const group = svg("g", { class: "chain", transform: `translate(${x - width / 2} ${y - height / 2})` });
    const shares = ["busy", "pressed", "idle"].map((name) => svg("rect", { class: `part-${name}`, y: HEAD - 5, height: 4 }));
    const busy = svg("text", { class: "faint", x: width - 12, y: 21, "text-anchor": "end" });
    const role = chain.is_source ? "source chain" : "chain";
    group.append(svg("rect", { class: "card", width, height, rx: 10 }),
      svg("text", { class: "faint", x: 12, y: 21 }, `${role} ${chain.chain} · ×${chain.parallelism}`), busy, ...shares);
    chain.operators.forEach((operator, at) => group.append(this.row(operator, HEAD + at * ROW, width)));
    this.chains.set(chain.chain, { group, shares, busy, width });
    return group;
  }

  row(operator, y, width) {
    const choose = () => { this.choose(operator.operator_id); this.onChoose(operator.operator_id); };
    const texts = Object.fromEntries(["rate", "lag", "state"].map((name) => [name, svg("text", { class: name })]));
    const group = svg("g", { class: "row", tabindex: "0", role: "button", transform: `translate(0 ${y})`,
      onclick: choose, onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); } } },
      svg("rect", { x: 3, y: 1, width: width - 6, height: ROW - 2, rx: 6 }),
      svg("title", {}, operator.name), svg("text", { class: "title", x: 12, y: 19 }, clip(operator.name, 30)));
    texts.rate.setAttribute("x", width - 12); texts.rate.setAttribute("y", 19);
    texts.lag.setAttribute("x", 12); texts.lag.setAttribute("y", 36); texts.lag.classList.add("faint");
    texts.state.setAttribute("x", width - 12); texts.state.setAttribute("y", 36);
    texts.state.setAttribute("text-anchor", "end"); texts.state.classList.add("faint");
    group.append(texts.rate, texts.lag, texts.state);
    this.rows.set(operator.operator_id, { group, ...texts });
    return group;
  }

  edge(edge, { points, x, y, label, width }) {
    const path = svg("path", { class: "edge", d: curve(points) });
    const end = points[points.length - 1];
    const before = points[points.length - 2];
    const angle = Math.atan2(end.y - before.y, end.x - before.x) * 180 / Math.PI;
    const tip = svg("path", { class: "tip", d: "M0 0 L-9 -4.5 L-9 4.5 Z", transform: `translate(${end.x} ${end.y}) rotate(${angle})` });
    return { path, tip, source: edge.source, group: svg("g", {}, path, tip,
      svg("rect", { class: "chip", x: x - width / 2, y: y - 9, width, height: 18, rx: 9 }),
      svg("text", { class: "edge-text", x, y: y + 4 }, label)) };
  }

  refresh(chain, delay) {
    const card = this.chains.get(chain.chain);
    const { busy, backpressured, idle } = chain.operators[0];
    const inner = card.width - 24;
    let x = 12;
    [busy, backpressured, idle].forEach((share, at) => {
      card.shares[at].setAttribute("x", x);
      card.shares[at].setAttribute("width", Math.max(0, share * inner));
      x += share * inner;
    });
    card.group.classList.toggle("pressed", backpressured >= PRESSED && backpressured > busy);
    card.group.classList.toggle("busy", busy >= BUSY);
    const words = [`${Math.round(busy * 100)} % busy`];
    if (backpressured >= PRESSED) words.push(`${Math.round(backpressured * 100)} % pressed`);
    setText(card.busy, words.join(" · "));
    for (const operator of chain.operators) {
      const row = this.rows.get(operator.operator_id);
      const isSink = !operator.rows_out && operator.rows_in;
      setText(row.rate, rate(isSink ? operator.rows_in_per_second : operator.rows_out_per_second));
      const stuck = delay !== null && delay.is_stuck && delay.operator_id === operator.operator_id;
      row.group.classList.toggle("stuck", stuck);
      setText(row.lag, stuck ? `▲ watermark waits${operator.watermark_lag_ms === null ? "" : `, lag ${duration(operator.watermark_lag_ms)}`}`
        : operator.watermark_lag_ms === null ? rowsText(isSink ? operator.rows_in : operator.rows_out) : `watermark lag ${duration(operator.watermark_lag_ms)}`);
      setText(row.state, operator.state_bytes || operator.spilled_bytes ? `state ${bytes(operator.state_bytes + operator.spilled_bytes)}` : operator.pending ? `${count(operator.pending)} pending` : "");
      row.group.setAttribute("aria-label", `${operator.name}: ${rate(operator.rows_out_per_second)} out, ${Math.round(busy * 100)} percent busy`);
    }
  }

  refreshEdges(graph) {
    const last = new Map(graph.chains.map((chain) => [chain.chain, chain.operators[chain.operators.length - 1]]));
    for (const edge of this.edges) {
      const flows = (last.get(edge.source)?.rows_out_per_second ?? 0) > 0;
      edge.path.classList.toggle("flows", flows);
      edge.tip.classList.toggle("flows", flows);
    }
  }

  choose(id) {
    for (const [operator, row] of this.rows) row.group.classList.toggle("chosen", operator === id);
  }
}

export function legend() {
  return el("div", { class: "legend" },
    el("span", {}, el("i", { class: "busy" }), "busy"),
    el("span", {}, el("i", { class: "pressed" }), "backpressured"),
    el("span", {}, el("i", {}), "idle"),
    el("span", {}, "of its busiest subtask, over the last seconds"));
}

function rowsText(rows) {
  return `${count(rows)} row${rows === 1 ? "" : "s"}`;
}

function edgeLabel(edge) {
  if (edge.columns.length) return `${edge.kind} by ${clip(edge.columns.join(", "), 20)}`;
  return edge.kind === "partition" ? "to one subtask" : edge.kind;
}

function labelWidth(label) {
  return label.length * 5.9 + 14;
}

function clip(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function curve(points) {
  if (points.length < 3) return `M${points.map((point) => `${point.x} ${point.y}`).join("L")}`;
  let path = `M${points[0].x} ${points[0].y}`;
  for (let at = 1; at < points.length - 2; at += 1) {
    const middle = { x: (points[at].x + points[at + 1].x) / 2, y: (points[at].y + points[at + 1].y) / 2 };
    path += `Q${points[at].x} ${points[at].y} ${middle.x} ${middle.y}`;
  }
  const [control, end] = points.slice(-2);
  return `${path}Q${control.x} ${control.y} ${end.x} ${end.y}`;
}
