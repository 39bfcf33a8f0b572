// Tolerances and limits as tables of a model file.

const key = (name) => (/^[A-Za-z0-9_-]+$/.test(name) ? name : quoted(name));
const ESCAPES = { "\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const quoted = (text) => `"${text.replace(/[\\"\u0000-\u001f\u007f]/g,
  (c) => ESCAPES[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`)}"`;

function tomlNumber(x) {
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  const text = String(x);
  return /[.e]/.test(text) ? text : `${text}.0`;
}
const tomlValue = (x) => (typeof x === "number" ? tomlNumber(x) : typeof x === "string" ? quoted(x) : String(x));
const pair = (lower, upper) => `[${tomlNumber(lower)}, ${tomlNumber(upper)}]`;

function tolerance(group, { lower, upper, shift, sigma }) {
  const even = group.one_sided ? lower === 0 : lower === -upper, wide = group.kind === "position" || group.kind === "profile_zone";
  const tol = even ? tomlNumber(wide ? 2 * upper : upper) : pair(lower, upper); // zones are given by their width
  const own = spread(group, { lower, upper, shift, sigma });
  const usual = shift === 0 && Math.abs(own.std - capable(group, lower, upper)) < 1e-12 * own.std;
  if (usual && group.kind === "normal") return tol;
  const more = Object.entries(group.more).map(([name, x]) => `, ${name} = ${tomlValue(x)}`).join("");
  const spreadOut = usual ? "" : `, sigma = ${tomlNumber(own.std)}`;
  const shifted = shift === 0 ? "" : `, shift = ${tomlNumber(shift)}`;
  return `{type = ${quoted(group.kind)}, tol = ${tol}${more}${spreadOut}${shifted}}`;
}
// The standard deviation of a process that keeps its limits with a cpk of 1, which need not be said.
const capable = (group, lower, upper) => (group.std * (upper - lower)) / group.ends;

function toml(edits) {
  const was = initial(), lines = ["# Tolerances and limits of a what-if, to stand in place of those of a model file.",
    "", "[tolerances]"];
  const entry = (name, now, before) => lines.push(`${key(name)} = ${now}${now === before ? "" : `  # was ${before}`}`);
  data.groups.forEach((g, at) => g.saved && entry(g.name, tolerance(g, edits.groups[at]), tolerance(g, was.groups[at])));
  lines.push("", "[limits]");
  data.measures.forEach((m, j) => {
    const before = [LIMITS.lower[m.start], LIMITS.upper[m.start]], now = limitsOf(m.start, edits);
    if (!m.even) {
      const rows = ["lower", "upper"].map((side) => LIMITS[side].subarray(m.start, m.start + m.count));
      lines.push(`${key(m.name)} = [${rows.map((row) => `[${Array.from(row, tomlNumber).join(", ")}]`).join(", ")}]`);
    } else if (before.some(Number.isFinite) || now.some(Number.isFinite)) entry(m.name, pair(...now), pair(...before));
  });
  return `${lines.join("\n")}\n`;
}
