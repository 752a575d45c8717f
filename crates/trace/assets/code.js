// Source, PTX and machine code side by side: rows with bars by reason, linked by the instructions that they share.

const data = JSON.parse(document.getElementById("data").textContent);
const R = data.reasons;
const SELECTED = R.findIndex(r => r.name === "selected");
const byId = id => document.getElementById(id);
const el = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null) continue;
    if (key === "class") node.className = value;
    else if (key === "style") node.style.cssText = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key in node && key !== "role" && !key.startsWith("aria")) node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter(c => c !== null && c !== undefined));
  return node;
};
const whole = n => Math.round(n).toLocaleString("en-US");
const percent = (n, all, digits = 1) => (all > 0 ? (100 * n / all).toFixed(digits) : "0.0") + " %";
const short = name => name.split(/[\\/]/).pop();

// --- tooltips -------------------------------------------------------------------------------------------------------

const tip = byId("tip");
const showTip = (event, nodes) => {
  tip.replaceChildren(...nodes);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, innerWidth - box.width - 6);
  const y = event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18;
  tip.style.left = Math.max(4, x) + "px";
  tip.style.top = Math.max(4, y) + "px";
};
const hideTip = () => { tip.hidden = true; };

// --- what a row costs -----------------------------------------------------------------------------------------------

const MEASURES = [
  ["all", "warp-cycles, all states"],
  ["stalls", "warp-cycles stalled"],
  ["x", "executed instructions"],
  ["sectors", "memory sectors"],
  ["conflicts", "bank conflicts"],
];

/// Adds up instructions: cycles by reason, executions, work.
const sum = list => {
  const st = new Map();
  let x = 0, samples = 0;
  const work = [0, 0, 0, 0, 0, 0];
  for (const i of list) {
    for (const [r, n] of i.st) st.set(r, (st.get(r) || 0) + n);
    x += i.x;
    samples += i.samples || 0;
    i.work.forEach((n, k) => { work[k] += n; });
  }
  let cycles = 0;
  for (const n of st.values()) cycles += n;
  return { st, x, work, cycles, samples };
};

const measured = (cost, view) => {
  if (view.reason !== null) return cost.st.get(view.reason) || 0;
  switch (view.measure) {
    case "stalls": return cost.cycles - (cost.st.get(SELECTED) || 0);
    case "x": return cost.x;
    case "samples": return cost.samples;
    case "sectors": return cost.work[2];
    case "conflicts": return cost.work[5];
    default: return cost.cycles;
  }
};

/// Pieces of a bar: reason and amount, the largest first.
const pieces = (cost, view) => {
  if (["x", "sectors", "conflicts", "samples"].includes(view.measure) && view.reason === null) return [[-1, measured(cost, view)]];
  let list = [...cost.st];
  if (view.reason !== null) list = list.filter(([r]) => r === view.reason);
  else if (view.measure === "stalls") list = list.filter(([r]) => r !== SELECTED);
  return list.sort((a, b) => b[1] - a[1]);
};

// --- panes ----------------------------------------------------------------------------------------------------------

class Pane {
  constructor(view, key, title) {
    this.view = view;
    this.key = key;
    this.title = title;
    this.rows = [];
    this.selected = -1;
    this.heading = el("header");
    this.list = el("div", { class: "list", tabIndex: 0, role: "listbox", "aria-label": title, id: "list-" + key });
    this.root = el("div", { class: "pane", id: "pane-" + key }, this.heading, this.list);
    this.list.addEventListener("keydown", e => this.keydown(e));
    this.list.addEventListener("click", e => this.click(e));
    this.list.addEventListener("mousemove", e => this.hover(e));
    this.list.addEventListener("mouseleave", hideTip);
  }

  /// Rows: { no, text, list of instructions, head }.
  fill(rows) {
    this.rows = rows.map((row, n) => ({ ...row, n, cost: sum(row.list) }));
    this.byInstruction = new Map();
    for (const row of this.rows) for (const i of row.list) {
      if (!this.byInstruction.has(i.pc)) this.byInstruction.set(i.pc, []);
      this.byInstruction.get(i.pc).push(row);
    }
    this.selected = -1;
    this.draw();
  }

  draw() {
    const view = this.view;
    const most = Math.max(1, ...this.rows.map(r => measured(r.cost, view)));
    const all = measured(view.total, view);
    const nodes = this.rows.map(row => {
      const value = measured(row.cost, view);
      const bar = el("span", { class: "sb", "aria-hidden": "true" });
      if (value > 0) for (const [r, n] of pieces(row.cost, view)) {
        const width = 100 * n / most;
        if (width < 0.4) continue;
        bar.append(el("i", { style: `width:${width}%;background:${r < 0 ? "var(--accent)" : R[r].colour}`, "data-r": r }));
      }
      const parts = [
        el("span", { class: "no" }, row.no),
        el("span", { class: "pc" }, value > 0 ? percent(value, all) : ""),
      ];
      if (view.before) parts.push(this.difference(row, all));
      parts.push(bar, el("span", { class: "tx" }, row.text || " "));
      const worst = [...row.cost.st].sort((a, b) => b[1] - a[1])[0];
      const label = `${row.no} ${row.text.trim()}` + (value > 0 ? `, ${percent(value, all)}` + (worst ? `, ${R[worst[0]].name}` : "") : "");
      row.node = el("div", {
        class: "row" + (row.head ? " head" : row.list.length ? "" : " cold"), role: "option", id: `${this.key}-${row.n}`,
        "aria-label": label, "aria-selected": "false", "data-n": row.n,
      }, ...parts);
      return row.node;
    });
    this.root.classList.toggle("diff", Boolean(view.before));
    if (nodes.length) this.list.replaceChildren(...nodes);
    else this.list.replaceChildren(el("p", { class: "empty" }, this.none || "There is nothing to show."));
    if (this.selected >= 0) this.mark(this.selected);
  }

  difference(row, all) {
    if (!row.place || this.view.measure !== "all" || this.view.reason !== null) return el("span", { class: "de" });
    const old = this.view.before.get(row.place) || 0;
    const change = row.cost.cycles - old;
    const share = 100 * change / Math.max(1, all);
    const text = Math.abs(share) < 0.05 ? "" : (share > 0 ? "+" : "") + share.toFixed(1);
    return el("span", { class: "de " + (change > 0 ? "up" : "down") }, text);
  }

  row(event) {
    const node = event.target.closest(".row");
    return node ? this.rows[+node.dataset.n] : null;
  }

  click(event) {
    const row = this.row(event);
    if (!row) return;
    const piece = event.target.closest("i");
    this.view.select(this, row.n);
    if (piece && +piece.dataset.r >= 0) this.view.toCause(row, +piece.dataset.r);
  }

  hover(event) {
    const row = this.row(event);
    if (!row || !row.list.length) return hideTip();
    const piece = event.target.closest("i");
    const cost = row.cost;
    const nodes = [el("b", {}, `${whole(cost.cycles)} warp-cycles, executed ${whole(cost.x)} times`)];
    const reasons = piece && +piece.dataset.r >= 0 ? [[+piece.dataset.r, cost.st.get(+piece.dataset.r)]] : [...cost.st].sort((a, b) => b[1] - a[1]).slice(0, 6);
    for (const [r, n] of reasons) {
      nodes.push(el("div", {}, el("span", { class: "dot", style: `background:${R[r].colour}` }), `${R[r].name} ${percent(n, cost.cycles)} (${whole(n)})`));
    }
    if (reasons.length) nodes.push(el("p", {}, R[reasons[0][0]].meaning));
    if (piece && reasons.length && this.view.causesOf(row.list, reasons[0][0]).length) nodes.push(el("p", {}, "Click to go to what it waited for."));
    showTip(event, nodes);
  }

  keydown(event) {
    const page = Math.max(1, Math.floor(this.list.clientHeight / 18) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
    if (event.key in steps && this.rows.length) {
      const to = Math.max(0, Math.min(this.rows.length - 1, this.selected + steps[event.key]));
      this.view.select(this, to);
    } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      this.view.focusNext(this, event.key === "ArrowRight" ? 1 : -1);
    } else if (event.key === "Enter" && this.selected >= 0) {
      this.view.toCause(this.rows[this.selected], null);
    } else return;
    event.preventDefault();
  }

  mark(n) {
    for (const row of this.rows) if (row.node) {
      row.node.classList.toggle("sel", row.n === n);
      row.node.setAttribute("aria-selected", String(row.n === n));
    }
    this.selected = n;
    if (n >= 0) this.list.setAttribute("aria-activedescendant", `${this.key}-${n}`);
  }

  /// Marks the rows of instructions; scrolls to the first.
  link(pcs) {
    let first = null;
    for (const row of this.rows) {
      const on = row.list.some(i => pcs.has(i.pc));
      row.node.classList.toggle("linked", on);
      if (on && !first) first = row;
    }
    if (first) this.show(first);
    return first;
  }

  show(row) {
    const top = row.node.offsetTop - this.list.offsetTop;
    if (top < this.list.scrollTop || top > this.list.scrollTop + this.list.clientHeight - 40) {
      this.list.scrollTop = top - this.list.clientHeight / 3;
    }
  }
}

// --- the three panes of a launch ------------------------------------------------------------------------------------

class CodeView {
  constructor() {
    this.measure = "all";
    this.reason = null;
    this.before = null;
    this.back = [];
    this.panes = [
      new Pane(this, "source", "Source"),
      new Pane(this, "ptx", "PTX"),
      new Pane(this, "machine", "Machine code"),
    ];
    const tabs = document.querySelector(".pane-tabs");
    const host = document.querySelector(".panes");
    for (const pane of this.panes) {
      host.append(pane.root);
      tabs.append(el("button", { type: "button", role: "tab", "aria-selected": "false", "aria-controls": pane.root.id, onclick: () => this.front(pane) }, pane.title));
    }
    this.front(this.panes[0]);
  }

  front(pane) {
    this.panes.forEach((p, n) => {
      p.root.classList.toggle("front", p === pane);
      document.querySelectorAll(".pane-tabs button")[n].setAttribute("aria-selected", String(p === pane));
    });
  }

  load(launch) {
    this.launch = launch;
    this.code = launch.code;
    if (launch.samples) this.code.forEach((i, n) => { i.samples = launch.samples.counts[n] || 0; });
    this.at = new Map(this.code.map(i => [i.pc, i]));
    this.total = sum(this.code);
    this.before = launch.compare ? new Map(launch.compare.lines.map(([place, old]) => [place, old])) : null;
    this.causes = new Map();
    for (const [pc, reason, words, cause, cycles, count] of launch.causes) {
      if (!this.causes.has(pc)) this.causes.set(pc, []);
      this.causes.get(pc).push({ pc, reason, words, cause, cycles, count });
    }
    const [source, ptx, machine] = this.panes;
    // The file with the most cost comes first.
    this.files = launch.files.map((f, n) => ({ ...f, n, cost: sum(this.code.filter(i => i.src[0] && i.src[0][0] === n)).cycles }));
    this.files = this.files.filter(f => this.code.some(i => i.src.some(([file]) => file === f.n)));
    this.files.sort((a, b) => b.cost - a.cost || a.n - b.n);
    if (this.files.length) {
      const pick = el("select", { "aria-label": "Source file", onchange: e => this.openFile(+e.target.value) },
        ...this.files.map(f => el("option", { value: f.n }, `${short(f.name)} (${percent(f.cost, this.total.cycles)})`)));
      source.heading.replaceChildren(this.files.length > 1 ? pick : el("b", {}, short(this.files[0].name)));
      this.pick = pick;
      this.openFile(this.files[0].n);
    } else {
      source.heading.replaceChildren(el("b", {}, "Source"));
      source.none = "The program has no source lines: compile it with nvcc -lineinfo.";
      source.fill([]);
    }
    ptx.heading.replaceChildren(el("b", {}, short(launch.ptx.name) || "PTX"));
    ptx.none = "There is no PTX text: the program came as an image.";
    const byLine = new Map();
    for (const i of this.code) {
      if (!byLine.has(i.ptx)) byLine.set(i.ptx, []);
      byLine.get(i.ptx).push(i);
    }
    ptx.fill(launch.ptx.lines.map((text, n) => ({ no: String(launch.ptx.first + n), text: text.replaceAll("\t", "  "), list: byLine.get(launch.ptx.first + n) || [] })));
    const rows = [];
    let fn = null;
    for (const i of this.code) {
      if (i.fn !== fn) { rows.push({ no: "", text: i.fn + ":", list: [], head: true }); fn = i.fn; }
      rows.push({ no: (i.pc * 16).toString(16).padStart(4, "0"), text: i.text, list: [i] });
    }
    machine.heading.replaceChildren(el("b", {}, `Machine code (${launch.machine.name})`));
    machine.fill(rows);
    this.rank();
  }

  openFile(n) {
    const file = this.files.find(f => f.n === n);
    const pane = this.panes[0];
    this.file = n;
    if (this.pick) this.pick.value = String(n);
    const lines = new Map();
    for (const i of this.code) if (i.src[0] && i.src[0][0] === n) {
      const line = i.src[0][1];
      if (!lines.has(line)) lines.set(line, []);
      lines.get(line).push(i);
    }
    let numbers = file.lines.map((_, k) => file.first + k);
    // Lines that call what was inlined have no cost of their own; without a text, only those with a cost are known.
    if (!file.lines.length) numbers = [...lines.keys()].sort((a, b) => a - b);
    const text = line => (file.lines[line - file.first] ?? "(the file was not found)").replaceAll("\t", "  ");
    pane.fill(numbers.map(line => ({ no: String(line), text: text(line), list: lines.get(line) || [], place: `${short(file.name)}:${line}` })));
  }

  redraw() {
    this.panes.forEach(p => p.draw());
    this.rank();
    if (this.current) this.select(this.current[0], this.current[1], true);
  }

  /// Rows of the first pane that has any, the hottest first.
  rank() {
    const pane = this.panes.find(p => p.rows.some(r => r.list.length)) || this.panes[2];
    this.ranked = pane.rows.filter(r => measured(r.cost, this) > 0).sort((a, b) => measured(b.cost, this) - measured(a.cost, this) || a.n - b.n);
    this.rankPane = pane;
    this.rankAt = -1;
  }

  hottest(step) {
    if (!this.ranked.length) return;
    this.rankAt = Math.max(0, Math.min(this.ranked.length - 1, this.rankAt + step));
    const row = this.ranked[this.rankAt];
    this.front(this.rankPane);
    this.select(this.rankPane, row.n);
    this.rankPane.list.focus({ preventScroll: true });
  }

  focusNext(pane, step) {
    const n = this.panes.indexOf(pane);
    const next = this.panes[(n + step + this.panes.length) % this.panes.length];
    this.front(next);
    next.list.focus({ preventScroll: true });
    if (next.selected < 0 && this.current) {
      const row = next.rows.find(r => r.node.classList.contains("linked"));
      if (row) this.select(next, row.n);
    }
  }

  select(pane, n, quiet = false) {
    this.current = [pane, n];
    const row = pane.rows[n];
    if (!row) return;
    const pcs = new Set(row.list.map(i => i.pc));
    for (const other of this.panes) {
      if (other !== pane) other.mark(-1);
      if (other !== pane || !pcs.size) other.link(pcs);
      else other.rows.forEach(r => r.node.classList.toggle("linked", r !== row && r.list.some(i => pcs.has(i.pc))));
    }
    pane.mark(n);
    if (!quiet) pane.show(row);
    this.detail(pane, row);
  }

  /// Shows an instruction in all panes.
  goto(pc, remember = true) {
    const i = this.at.get(pc);
    if (!i) return;
    if (remember && this.current) this.back.push(this.current.concat(this.file));
    if (i.src[0] && i.src[0][0] !== this.file) this.openFile(i.src[0][0]);
    const machine = this.panes[2];
    const row = machine.rows.find(r => r.list[0] === i);
    this.select(machine, row.n);
    const front = this.panes.find(p => p.root.classList.contains("front"));
    const seen = front.rows.find(r => r.node.classList.contains("linked")) || null;
    if (front !== machine && seen) front.show(seen);
  }

  goBack() {
    const last = this.back.pop();
    if (!last) return;
    if (last[2] !== undefined && last[2] !== this.file) this.openFile(last[2]);
    this.select(last[0], last[1]);
  }

  causesOf(list, reason) {
    const found = new Map();
    for (const i of list) for (const c of this.causes.get(i.pc) || []) {
      if (reason !== null && c.reason !== reason) continue;
      const key = `${c.cause} ${c.reason} ${c.words}`;
      const sum = found.get(key) || { ...c, cycles: 0, count: 0 };
      sum.cycles += c.cycles;
      sum.count += c.count;
      found.set(key, sum);
    }
    return [...found.values()].sort((a, b) => b.cycles - a.cycles);
  }

  /// Goes to what a row waited for longest.
  toCause(row, reason) {
    const cause = this.causesOf(row.list, reason)[0];
    if (cause) this.goto(cause.cause);
  }

  place(i) {
    if (i.src[0]) return `${short(this.launch.files[i.src[0][0]].name)}:${i.src[0][1]}`;
    return i.ptx ? `PTX ${i.ptx}` : "";
  }

  detail(pane, row) {
    const host = byId("detail");
    const cost = row.cost;
    if (!row.list.length) {
      host.replaceChildren(el("div", { class: "what" }, `${row.no}  ${row.text.trim()}`), el("p", { class: "note" }, "No instruction comes from this line."));
      return;
    }
    const what = el("div", { class: "what" }, el("b", {}, `${row.place || row.no} `), row.text.trim());
    const calls = row.list[0].src.slice(1).map(([f, line]) => `${short(this.launch.files[f].name)}:${line}`);
    if (calls.length) what.append(el("span", { class: "note" }, `  inlined at ${calls.join(", ")}`));
    const reasons = el("table", {}, el("tr", {}, el("th", {}, "State"), el("th", { class: "n" }, "Warp-cycles"), el("th", { class: "n" }, "of it"), el("th", { class: "n" }, "of all")));
    for (const [r, n] of [...cost.st].sort((a, b) => b[1] - a[1])) {
      reasons.append(el("tr", { title: R[r].meaning }, el("td", {}, el("span", { class: "dot", style: `background:${R[r].colour}` }), R[r].name),
        el("td", { class: "n" }, whole(n)), el("td", { class: "n" }, percent(n, cost.cycles)), el("td", { class: "n" }, percent(n, this.total.cycles))));
    }
    const [threads, requests, sectors, hits, ideal, conflicts] = cost.work;
    const facts = [`executed ${whole(cost.x)} times by a warp`];
    if (threads && cost.x) facts.push(`${(threads / cost.x).toFixed(1)} of 32 threads active`);
    if (sectors) facts.push(`${(sectors / requests).toFixed(1)} sectors a request (at best ${(ideal / requests).toFixed(1)}), ${percent(hits, sectors)} found in L1`);
    if (conflicts) facts.push(`${(conflicts / requests).toFixed(1)} bank conflicts a request`);
    if (cost.samples) facts.push(`${whole(cost.samples)} samples`);
    const causes = this.causesOf(row.list, null).slice(0, 8);
    const table = el("table", {}, el("tr", {}, el("th", {}, "Waited for"), el("th", {}, ""), el("th", { class: "n" }, "Warp-cycles"), el("th", { class: "n" }, "Times")));
    for (const c of causes) {
      const i = this.at.get(c.cause);
      table.append(el("tr", {}, el("td", {}, el("button", { type: "button", class: "jump", onclick: () => this.goto(c.cause) }, `${this.place(i)} ${i.text}`)),
        el("td", {}, el("span", { class: "dot", style: `background:${R[c.reason].colour}`, title: R[c.reason].name }), c.words),
        el("td", { class: "n" }, whole(c.cycles)), el("td", { class: "n" }, whole(c.count))));
    }
    host.replaceChildren(what, el("div", { class: "what note" }, facts.join(" \u00b7 ")), el("div", { class: "scroll" }, reasons),
      el("div", { class: "scroll" }, causes.length ? table : el("p", { class: "note" }, "It waited for no other instruction.")));
  }
}
