// Inputs, and all that follows them.

let result = computed(edits);
const base = result, apart = differences(base), broken = data.measures.map((_, j) => !(apart[j] < 1e-6));

const changedLimits = (j) => edits.limits[j].lower !== null || edits.limits[j].upper !== null;
const changedGroup = (at) => {
  const now = edits.groups[at], was = data.groups[at];
  return now.lower !== was.lower || now.upper !== was.upper || now.shift !== was.shift || now.sigma !== null;
};
const changes = () => data.groups.filter((_, at) => changedGroup(at)).length + data.measures.filter((_, j) => changedLimits(j)).length;

function show(cell, x, kind) {
  cell.textContent = FORMATS[kind](x);
  cell.title = x === null || typeof x === "string" ? "" : (WHOLE[kind] ?? String)(x);
}

const read = (from, route) => route.split(".").reduce((x, name) => (x === null || x === undefined ? x : x[name]), from);
const same = (a, b) => Object.is(a, b) || Math.abs(a - b) <= 1e-12 * Math.max(Math.abs(a), Math.abs(b)) || typeof a === "object";

// The yield to be shown of a measure: by the method to believe, or, once something has changed, what derivatives predict.
function verdict(j) {
  const m = data.measures[j], now = result.measures[j], limited = Number.isFinite(now.lower) || Number.isFinite(now.upper);
  if (!limited) return { good: null, method: "", cpk: null, of: "", word: "no limits", error: null };
  if (changes() === 0 && m.method) return { good: m.believed, method: m.method, cpk: m.cpk, of: m.cpk_of, word: null, error: m.error };
  const method = m.method === "first order" || now.second === null ? "first order" : "second order";
  const { good, cpk } = method === "first order" ? now.first : now.second;
  const passes = data.target < 1 ? good >= data.target : cpk >= data.target;
  const error = predictedError(m, j, method, good);
  if (m.cpk_of === "survivors") return { good, method, cpk, of: "", word: "run again", error };
  const sure = m.method === method || m.method === "";
  return { good, method, cpk, of: method, word: sure ? (passes ? "pass" : "fail") : `${passes ? "pass" : "fail"}, predicted`, error };
}

// Of so many rejects as are predicted, the part by which the same order was off as analyzed, and by which that was known.
function predictedError(m, j, method, good) {
  if (m.believed === null || m.error === null) return null;
  const then = 1 - (method === "first order" ? base.measures[j].first : base.measures[j].second).good;
  const off = Math.abs(1 - m.believed - then) + m.error;
  return then > 0 ? Math.min((off / then) * (1 - good), 1) : off;
}

function refreshSummary() {
  data.measures.forEach((m, j) => {
    const line = document.querySelector(`[data-summary="${j}"]`), cell = (name) => line.querySelector(`[data-cell="${name}"]`);
    const told = verdict(j), edited = changes() > 0, now = result.measures[j];
    show(cell("yield"), told.good, "yield");
    cell("error").textContent = told.error ? ` ± ${(100 * told.error).toPrecision(2)}` : "";
    cell("method").textContent = told.method || "–";
    show(cell("cpk"), told.cpk, "number");
    cell("of").textContent = told.of === "survivors" ? "survivors only" : told.of === "samples" ? "Ppk" : "";
    if (cell("verdict").dataset.was === undefined) cell("verdict").dataset.was = cell("verdict").textContent;
    const word = told.word ?? cell("verdict").dataset.was;
    cell("verdict").textContent = word;
    cell("verdict").className = `left verdict ${word.split(",")[0].replace(" ", "-")}`;
    const i = now.part.indexOf(Math.max(...now.part));
    cell("contributor").textContent = data.dimensions[i];
    show(cell("part"), now.part[i], "part");
    const limited = Number.isFinite(now.lower) || Number.isFinite(now.upper);
    document.querySelector(`[data-section="${j}"]`).classList.toggle("unlimited", !limited);
    for (const name of ["yield", "cpk"]) cell(name).classList.toggle("changed", edited && limited);
  });
}

function refresh() {
  result = computed(edits);
  for (const cell of document.querySelectorAll("[data-live]")) {
    const x = read(result, cell.dataset.live), was = read(base, cell.dataset.live);
    show(cell, x, cell.dataset.as ?? "number");
    cell.classList.toggle("changed", typeof x === "string" ? x !== was : !same(x, was));
    if (!same(x, was) && typeof x === "number") cell.title += ` (was ${(WHOLE[cell.dataset.as] ?? String)(was)})`;
  }
  for (const bar of document.querySelectorAll("[data-bar]")) bar.style.width = `${Math.min(100 * Math.max(read(result, bar.dataset.bar), 0), 100)}%`;
  refreshSummary();
  refreshInputs();
  refreshCharts();
  const n = changes();
  document.getElementById("changes").textContent = n ? `${n} change${n > 1 ? "s" : ""}: numbers in blue are predicted by derivatives` : "nothing is changed";
  document.body.classList.toggle("what-if", n > 0);
  document.getElementById("shifted").hidden = !result.dims.moved.some((x) => x !== 0);
  for (const id of ["reset", "save"]) document.getElementById(id).disabled = id === "reset" && n === 0;
  if (drawing && document.getElementById("stage")) slide();
}

function refreshCharts() {
  data.measures.forEach((m, j) => {
    const holder = document.querySelector(`[data-chart="${j}"]`);
    if (!holder) return;
    const values = result.values.slice(m.start, m.start + m.count);
    holder.replaceChildren(m.along ? bands(m, values) : density(m, values[0]));
  });
}

// Inputs show what holds, but for the one that is being typed in.
function refreshInputs() {
  for (const input of document.querySelectorAll("input[data-group]")) {
    const at = Number(input.dataset.group), field = input.dataset.field, now = edits.groups[at], was = data.groups[at];
    const own = { tolerance: typedTolerance(now), shift: typed(now.shift), sigma: now.sigma === null ? brief(result.groups[at].std) : typed(now.sigma) };
    const differs = { tolerance: now.lower !== was.lower || now.upper !== was.upper, shift: now.shift !== was.shift, sigma: now.sigma !== null };
    if (input !== document.activeElement) { input.value = own[field]; input.classList.remove("wrong"); }
    input.classList.toggle("edited", differs[field]);
    if (field === "sigma") input.title = String(result.groups[at].std);
  }
  for (const input of document.querySelectorAll("input[data-measure]")) {
    const j = Number(input.dataset.measure), side = input.dataset.field, now = result.measures[j][side];
    if (input !== document.activeElement) { input.value = typed(now); input.classList.remove("wrong"); }
    input.classList.toggle("edited", edits.limits[j][side] !== null);
  }
}

// What an input says, put into the edits; false if it makes no sense.
function edit(input) {
  const text = input.value, field = input.dataset.field;
  if (input.dataset.group !== undefined) {
    const at = Number(input.dataset.group), group = data.groups[at], was = group0(at);
    if (field === "tolerance") {
      const found = text.trim() === "" ? was : parsedTolerance(text, group.one_sided);
      if (found === null || (group.round && found.lower !== -found.upper)) return false;
      Object.assign(edits.groups[at], { lower: found.lower, upper: found.upper });
    } else if (field === "shift") {
      const x = text.trim() === "" ? was.shift : parsed(text);
      if (!Number.isFinite(x) || (group.round && x !== was.shift)) return false; // a shift would need a direction
      edits.groups[at].shift = x;
    } else {
      const x = text.trim() === "" ? null : parsed(text);
      if (x !== null && !(x > 0 && Number.isFinite(x))) return false;
      edits.groups[at].sigma = x;
    }
    return true;
  }
  const j = Number(input.dataset.measure), x = text.trim() === "" ? (field === "lower" ? -Infinity : Infinity) : parsed(text);
  const [lower, upper] = limitsOf(data.measures[j].start, edits);
  if (Number.isNaN(x) || !(field === "lower" ? x < upper : lower < x)) return false;
  edits.limits[j][field] = x === LIMITS[field][data.measures[j].start] ? null : x;
  return true;
}

function reset() {
  edits = initial();
  document.activeElement?.blur();
  refresh();
}

function sortByRank() {
  const table = document.querySelector("#dimensions tbody");
  const rank = (line) => result.groups[Number(line.dataset.line)].rank;
  table.append(...[...table.children].sort((a, b) => rank(a) - rank(b)));
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([toml(edits)], { type: "application/toml" }));
  link.download = "what_if.toml";
  link.click();
  URL.revokeObjectURL(link.href);
}

for (const input of document.querySelectorAll("input[data-group], input[data-measure]")) {
  input.disabled = false;
  input.addEventListener("input", () => {
    const sensible = edit(input);
    input.classList.toggle("wrong", !sensible);
    if (sensible) refresh();
  });
  input.addEventListener("blur", refreshInputs);
}
document.getElementById("reset").addEventListener("click", reset);
document.getElementById("save").addEventListener("click", save);
document.getElementById("sort").addEventListener("click", sortByRank);
document.getElementById("print").addEventListener("click", () => window.print());
let opened = [];
window.addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const d of opened) d.open = true;
});
window.addEventListener("afterprint", () => { for (const d of opened) d.open = false; });

const lost = data.measures.filter((_, j) => broken[j]).map((m) => m.name);
if (lost.length) {
  const note = document.getElementById("broken");
  note.hidden = false;
  note.textContent = `This page cannot recompute ${lost.join(", ")}: its tolerances are of a kind that it does not know. Only the numbers as analyzed hold.`;
  for (const input of document.querySelectorAll("input[data-group], input[data-measure]")) input.disabled = true;
}
refreshCharts();
refreshInputs();
startMechanism();

window.mbsjax = {
  state: () => ({ measures: result.measures.map((m) => ({ ...m, slopes: Array.from(m.slopes) })), groups: result.groups, edits }),
  toml: () => toml(edits), apart: () => Array.from(apart), ndtr, predicted,
  pose: (row, body, delta) => pose(row, body, delta), lines: (row, delta) => lines(row, delta),
};
