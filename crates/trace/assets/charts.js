// The charts: tiles, warp states, timeline, memory, tables.

const SVG = "http://www.w3.org/2000/svg";
const svg = (tag, attributes = {}, ...children) => {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};

const metric = (launch, name) => {
  for (const s of launch.sections) for (const m of s.rows) if (m.name === name) return m;
  return null;
};

const delta = (launch, name) => {
  const m = launch.compare && launch.compare.metrics.find(m => m.name === name);
  if (!m || m.ratio === null || Math.abs(m.ratio - 1) < 0.0005) return null;
  const text = `${m.ratio > 1 ? "+" : ""}${(100 * (m.ratio - 1)).toFixed(1)} % (was ${m.before} ${m.unit})`;
  const worse = ["cycles", "seconds"].includes(name) ? m.ratio > 1 : null;
  return el("span", { class: worse === null ? "" : worse ? "up" : "down" }, text);
};

function tiles(launch) {
  const list = [];
  const tile = (label, value, more = null, share = null) => list.push(el("div", { class: "tile" }, el("span", {}, label), el("b", {}, value), more,
    share === null ? null : el("div", { class: "meter" }, el("i", { style: `width:${Math.max(0, Math.min(100, share))}%` }))));
  tile("Cycles", whole(launch.cycles), delta(launch, "cycles"));
  tile("Duration", launch.time);
  for (const [name, label] of [["compute_throughput_pct", "Compute throughput"], ["memory_throughput_pct", "Memory throughput"], ["achieved_occupancy_pct", "Achieved occupancy"], ["issue_slots_busy_pct", "Issue slots busy"]]) {
    const m = metric(launch, name);
    if (m) tile(label, `${m.number} ${m.unit}`, delta(launch, name), m.value);
  }
  const i = metric(launch, "warp_instructions");
  if (i) tile("Warp instructions", i.number, delta(launch, "warp_instructions"));
  tile("Grid and block", `${launch.launch.grid.join("\u00d7")} of ${launch.launch.block.join("\u00d7")}`, el("span", {}, `${launch.launch.registers} registers, ${launch.launch.ctas_per_sm} CTAs an SM`));
  if (launch.samples) tile("Samples", whole(launch.samples.records), el("span", {}, `${launch.samples.mode}, ${whole(launch.samples.lost)} lost, ${launch.samples.passes} run${launch.samples.passes === 1 ? "" : "s"}`));
  byId("tiles").replaceChildren(...list);
}

function advice(launch, view) {
  const list = launch.advice.map(a => el("div", { class: "advice" },
    el("h3", {}, el("span", {}, a.title, a.place ? " at " : "", a.place ? el("button", { type: "button", class: "jump", onclick: () => { view.goto(a.pc); byId("code").scrollIntoView(); } }, a.place) : null),
      el("span", { class: "gain" }, `up to ${(100 * a.gain).toFixed(0)} % less time`)),
    el("p", {}, a.text)));
  byId("advice-list").replaceChildren(...(list.length ? list : [el("p", { class: "note" }, "No rule found anything to improve.")]));
}

function states(view, choose) {
  const all = view.total.cycles;
  const rows = [...view.total.st].sort((a, b) => b[1] - a[1]);
  const most = rows.length ? rows[0][1] : 1;
  const old = new Map(view.launch.compare ? view.launch.compare.reasons.map(([r, before]) => [r, before]) : []);
  const top = Math.max(most, ...old.values());
  byId("states-chart").replaceChildren(...rows.map(([r, n]) => el("button", {
    type: "button", class: "state", "aria-pressed": String(view.reason === r), "data-reason": R[r].name, onclick: () => choose(view.reason === r ? null : r),
    onmousemove: e => showTip(e, [el("b", {}, `${R[r].name}: ${whole(n)} warp-cycles`), el("p", {}, R[r].meaning), old.has(r) ? el("p", {}, `Before: ${whole(old.get(r))}`) : ""]),
    onmouseleave: hideTip, onblur: hideTip,
  }, el("span", {}, el("span", { class: "dot", style: `background:${R[r].colour}` }), R[r].name),
    el("span", { class: "track" }, el("i", { style: `width:${100 * n / top}%;background:${R[r].colour}` }), old.has(r) ? el("em", { style: `left:${100 * old.get(r) / top}%`, title: "before" }) : null),
    el("span", { class: "n" }, percent(n, all)))));
}

// --- timeline -------------------------------------------------------------------------------------------------------

const WIDE = 1000;

function stacked(t, cycles) {
  const high = 150;
  const totals = t.states.map(s => s.reduce((a, [, n]) => a + n, 0));
  const most = Math.max(1, ...totals);
  const used = new Map();
  for (const step of t.states) for (const [r, n] of step) used.set(r, (used.get(r) || 0) + n);
  const order = [...used.keys()].sort((a, b) => used.get(b) - used.get(a));
  const width = WIDE / t.states.length;
  const base = t.states.map(() => 0);
  const chart = svg("svg", { class: "chart", viewBox: `0 0 ${WIDE} ${high}`, preserveAspectRatio: "none", style: "height:150px", role: "img", "aria-label": "Warp states over time" });
  for (const r of order) {
    let upper = "", lower = "";
    t.states.forEach((step, n) => {
      const found = step.find(([reason]) => reason === r);
      const from = base[n], to = from + (found ? found[1] : 0);
      base[n] = to;
      const x0 = (n * width).toFixed(1), x1 = ((n + 1) * width).toFixed(1);
      upper += `L${x0} ${(high - high * to / most).toFixed(1)}L${x1} ${(high - high * to / most).toFixed(1)}`;
      lower = `L${x1} ${(high - high * from / most).toFixed(1)}L${x0} ${(high - high * from / most).toFixed(1)}` + lower;
    });
    chart.append(svg("path", { d: "M" + upper.slice(1) + lower + "Z", fill: R[r].colour }));
  }
  chart.addEventListener("mousemove", e => {
    const n = stepAt(e, chart, t.states.length);
    const step = [...t.states[n]].sort((a, b) => b[1] - a[1]).slice(0, 7);
    showTip(e, [el("b", {}, `cycles ${whole(n * t.step)} to ${whole(Math.min(cycles, (n + 1) * t.step))}: ${(totals[n] / t.step).toFixed(1)} warps`),
      ...step.map(([r, c]) => el("div", {}, el("span", { class: "dot", style: `background:${R[r].colour}` }), `${R[r].name} ${percent(c, totals[n])}`))]);
  });
  chart.addEventListener("mouseleave", hideTip);
  return chart;
}

const stepAt = (event, node, steps) => {
  const box = node.getBoundingClientRect();
  return Math.max(0, Math.min(steps - 1, Math.floor((event.clientX - box.left) / box.width * steps)));
};

function lines(t, cycles, series, label) {
  const high = 90;
  const chart = svg("svg", { class: "chart", viewBox: `0 0 ${WIDE} ${high}`, preserveAspectRatio: "none", style: "height:90px", role: "img", "aria-label": label });
  const most = Math.max(1e-9, ...series.flatMap(s => s.values));
  for (const s of series) {
    let d = "";
    s.values.forEach((v, n) => {
      const y = (high - 2 - (high - 4) * v / most).toFixed(1);
      d += `${n ? "L" : "M"}${(n * WIDE / s.values.length).toFixed(1)} ${y}L${((n + 1) * WIDE / s.values.length).toFixed(1)} ${y}`;
    });
    chart.append(svg("path", { d, fill: "none", stroke: s.colour, "stroke-width": 2, "vector-effect": "non-scaling-stroke" }));
  }
  chart.addEventListener("mousemove", e => {
    const n = stepAt(e, chart, series[0].values.length);
    showTip(e, [el("b", {}, `cycles ${whole(n * t.step)} to ${whole(Math.min(cycles, (n + 1) * t.step))}`),
      ...series.map(s => el("div", {}, el("span", { class: "dot", style: `background:${s.colour}` }), `${s.name}: ${s.values[n].toFixed(1)} ${s.unit}`))]);
  });
  chart.addEventListener("mouseleave", hideTip);
  const legend = el("div", { class: "axis" }, el("span", {}, ...series.map(s => el("span", { style: "margin-right:1em" }, el("span", { class: "dot", style: `background:${s.colour}` }), s.name))), el("span", {}, `top: ${most.toFixed(1)} ${series[0].unit}`));
  return el("div", {}, legend, chart);
}

function heat(t, launch, key) {
  const sms = t.sms.length, steps = t.states.length;
  const canvas = el("canvas", { width: steps, height: Math.max(1, sms), role: "img", "aria-label": `SM activity: ${key}` });
  canvas.style.height = Math.max(60, Math.min(264, sms * 2)) + "px";
  canvas.style.imageRendering = "pixelated";
  const most = Math.max(1, ...t.sms.flatMap(s => s[key]));
  const context = canvas.getContext("2d");
  const picture = context.createImageData(steps, Math.max(1, sms));
  t.sms.forEach((s, y) => s[key].forEach((v, x) => {
    const at = 4 * (y * steps + x), k = Math.sqrt(v / most);
    // From the panel's blue to a warm yellow; nothing is clear.
    picture.data[at] = 30 + 215 * k;
    picture.data[at + 1] = 70 + 130 * k;
    picture.data[at + 2] = 160 - 110 * k;
    picture.data[at + 3] = v > 0 ? 255 : 0;
  }));
  context.putImageData(picture, 0, 0);
  canvas.addEventListener("mousemove", e => {
    const x = stepAt(e, canvas, steps);
    const box = canvas.getBoundingClientRect();
    const y = Math.max(0, Math.min(sms - 1, Math.floor((e.clientY - box.top) / box.height * sms)));
    const s = t.sms[y];
    showTip(e, [el("b", {}, `SM ${y}, cycles ${whole(x * t.step)} to ${whole(Math.min(launch.cycles, (x + 1) * t.step))}`),
      el("div", {}, `${(s.warps[x] / t.step).toFixed(1)} warps resident`), el("div", {}, `${(s.issued[x] / t.step).toFixed(2)} instructions a cycle`)]);
  });
  canvas.addEventListener("mouseleave", hideTip);
  return canvas;
}

function timeline(launch) {
  const t = launch.timeline;
  byId("timeline").hidden = !t;
  if (!t) return;
  const axis = () => el("div", { class: "axis" }, el("span", {}, "0"), el("span", {}, `${whole(launch.cycles / 2)} cycles`), el("span", {}, whole(launch.cycles)));
  const per = k => t.memory.map(m => m[k] / t.step);
  const box = el("div", {});
  const draw = key => box.replaceChildren(heat(t, launch, key));
  draw("issued");
  byId("timeline-charts").replaceChildren(
    el("h3", {}, "Warps by state"), stacked(t, launch.cycles), axis(),
    el("h3", {}, "SMs, from top to bottom: ", el("select", { "aria-label": "What the SM chart shows", onchange: e => draw(e.target.value) }, el("option", { value: "issued" }, "instructions issued"), el("option", { value: "warps" }, "warps resident"))), box, axis(),
    el("h3", {}, "Memory traffic"),
    lines(t, launch.cycles, [
      { name: "L2", unit: "bytes a cycle", colour: "#5d7fd6", values: per(1).map(v => v * 32) },
      { name: "DRAM read", unit: "bytes a cycle", colour: "#e2574c", values: per(3) },
      { name: "DRAM written", unit: "bytes a cycle", colour: "#f0a13c", values: per(4) },
    ], "Memory traffic over time"), axis());
}

// --- memory ---------------------------------------------------------------------------------------------------------

function memory(launch) {
  const m = name => metric(launch, name);
  const show = name => { const x = m(name); return x ? `${x.number}${x.unit ? " " + x.unit : ""}` : "-"; };
  const box = (title, big, ...small) => el("div", { class: "box" }, el("b", {}, title), el("span", { class: "big" }, big), ...small.map(s => el("small", {}, s)));
  const arrow = text => el("div", { class: "arrow" }, text);
  const flow = el("div", { class: "flow" },
    box("Kernel", `${show("l1_requests")} requests`, `${show("l1_sectors_per_request")} sectors each`, `${show("shared_requests")} to shared memory`),
    arrow(`${show("l1_sectors")} sectors`),
    box("L1", `${show("l1_hit_pct")} found`, `${show("l1_throughput_pct")} of peak`, `${show("bank_conflicts")} bank conflicts in shared memory`),
    arrow(`${show("l2_sectors")} sectors`),
    box("L2", `${show("l2_hit_pct")} found`, `${show("l2_throughput_pct")} of peak`, `${show("l2_far_sectors")} sectors from the far half`),
    arrow(`${show("dram_read_bytes")} read, ${show("dram_write_bytes")} written`),
    box("DRAM", show("dram_bytes_per_second"), `${show("dram_throughput_pct")} of peak`, `${show("dram_row_hit_pct")} row hits`));
  byId("memory-chart").replaceChildren(flow);
}

// Versions of code that were made while the launch ran.
function versions(launch) {
  byId("versions").hidden = launch.versions.length === 0;
  const head = [["Version", ""], ["Block", ""], ["Line", ""], ["Level", "n"], ["Taken", "n"], ["Given up", "n"], ["Executions", "n"], ["Cycles before", "n"], ["Cycles", "n"], ["Checks", "n"], ["Failed", "n"], ["Assumes", ""]];
  const table = el("table", {}, el("tr", {}, ...head.map(([name, kind]) => el("th", { class: kind }, name))));
  for (const v of launch.versions) {
    const numbers = [v.level, v.taken, v.given_up, v.executions, v.before, v.cycles, v.checks, v.failures];
    table.append(el("tr", {}, el("td", {}, `${v.number}`), el("td", {}, `${v.block}`), el("td", {}, v.place || `0x${(16 * v.pc).toString(16)}`), ...numbers.map(n => el("td", { class: "n" }, whole(n))), el("td", {}, v.assumptions.join("; "))));
  }
  byId("versions-list").replaceChildren(el("div", { class: "scroll" }, table));
}

function numbers(launch) {
  const host = byId("numbers-list");
  if (launch.compare) {
    const table = el("table", {}, el("tr", {}, el("th", {}, "Metric"), el("th", { class: "n" }, "Before"), el("th", { class: "n" }, "Now"), el("th", { class: "n" }, "Change")));
    for (const m of launch.compare.metrics) {
      const change = m.ratio === null ? "" : `${m.ratio >= 1 ? "+" : ""}${(100 * (m.ratio - 1)).toFixed(1)} %`;
      table.append(el("tr", {}, el("td", {}, m.label), el("td", { class: "n" }, `${m.before} ${m.unit}`), el("td", { class: "n" }, `${m.after} ${m.after_unit}`), el("td", { class: "n" }, change === "+0.0 %" ? "" : change)));
    }
    host.replaceChildren(el("div", { class: "scroll" }, table));
    return;
  }
  host.replaceChildren(el("div", { class: "numbers" }, ...launch.sections.map(s => {
    const table = el("table", {});
    for (const r of s.rows) table.append(el("tr", {}, el("td", {}, r.label), el("td", { class: "n" }, `${r.number} ${r.unit}`)));
    return el("div", {}, el("h3", {}, s.title), table);
  })));
}
