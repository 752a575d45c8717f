// The page as a whole: launches, keys, theme.

const view = new CodeView();
const sections = [["summary", "Summary"], ["advice", "Advice"], ["states", "States"], ["code", "Code"], ["timeline", "Timeline"], ["memory", "Memory"], ["numbers", "Numbers"]];
document.querySelector("nav").append(...sections.map(([id, name]) => el("a", { href: "#" + id }, name)));

function choose(reason) {
  view.reason = reason;
  const filter = byId("filter");
  filter.hidden = reason === null;
  if (reason !== null) filter.replaceChildren(el("span", { class: "chip" }, `only ${R[reason].name}`, el("button", { type: "button", "aria-label": "Show all states", onclick: () => choose(null) }, "\u00d7")));
  states(view, choose);
  view.redraw();
}

function open(n) {
  const launch = data.launches[n];
  view.current = null;
  view.back = [];
  view.reason = null;
  byId("filter").hidden = true;
  byId("kernel").textContent = launch.kernel;
  byId("subtitle").textContent = `${launch.machine.name}: ${launch.machine.sms} SM${launch.machine.sms === 1 ? "" : "s"} at ${launch.machine.clock_mhz} MHz` + (launch.compare ? " \u00b7 compared with an earlier profile" : "");
  const measures = launch.samples ? MEASURES.concat([["samples", "samples of the trace cells"]]) : MEASURES;
  byId("measure").replaceChildren(...measures.map(([value, name]) => el("option", { value }, name)));
  view.measure = "all";
  view.load(launch);
  tiles(launch);
  advice(launch, view);
  states(view, choose);
  versions(launch);
  timeline(launch);
  memory(launch);
  numbers(launch);
  const hot = view.ranked[0];
  if (hot) view.select(view.rankPane, hot.n);
}

if (data.launches.length > 1) {
  byId("launch-label").hidden = false;
  byId("launch").append(...data.launches.map((l, n) => el("option", { value: n }, `${n + 1}. ${l.kernel} (${whole(l.cycles)} cycles)`)));
  byId("launch").addEventListener("change", e => open(+e.target.value));
}
byId("measure").addEventListener("change", e => { view.measure = e.target.value; view.redraw(); });
byId("hot-next").addEventListener("click", () => view.hottest(1));
byId("hot-prev").addEventListener("click", () => view.hottest(-1));

// --- theme: what the reader chose is kept where the browser allows it -------------------------------------------------

const kept = { get: () => { try { return localStorage.getItem("warploom-theme"); } catch { return null; } }, set: v => { try { localStorage.setItem("warploom-theme", v); } catch { /* a file may have no store */ } } };
const theme = kept.get();
if (theme) document.documentElement.dataset.theme = theme;
const flip = () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  kept.set(root.dataset.theme);
};
byId("theme").addEventListener("click", flip);

// --- keys -----------------------------------------------------------------------------------------------------------

const KEYS = [
  ["n, p", "next and previous hottest line", { n: () => view.hottest(1), p: () => view.hottest(-1) }],
  ["\u2191 \u2193 PgUp PgDn Home End", "move in the code", {}],
  ["\u2190 \u2192", "to the pane beside", {}],
  ["Enter", "go to what the line waited for", {}],
  ["Backspace", "back to where you came from", { Backspace: () => view.goBack() }],
  ["t", "light or dark", { t: flip }],
  ["?", "these keys", { "?": () => byId("keys").showModal() }],
];
byId("keys-table").append(...KEYS.map(([keys, what]) => el("tr", {}, el("td", {}, el("kbd", {}, keys)), el("td", {}, what))));
byId("help").addEventListener("click", () => byId("keys").showModal());
document.addEventListener("keydown", e => {
  if (e.ctrlKey || e.altKey || e.metaKey || /^(SELECT|INPUT|TEXTAREA)$/.test(e.target.tagName)) return;
  for (const [, , acts] of KEYS) if (acts[e.key]) {
    acts[e.key]();
    e.preventDefault();
    return;
  }
});

open(0);
