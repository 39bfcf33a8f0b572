// Pictures that follow what is changed: the distribution of a measure, and the bands of one along a stroke.

const SVG = document.createRange().createContextualFragment("<svg></svg>").firstChild.namespaceURI;

function svg(tag, attributes = {}, ...children) {
  const found = document.createElementNS(SVG, tag);
  for (const [name, x] of Object.entries(attributes)) found.setAttribute(name, x);
  found.append(...children);
  return found;
}

const path = (points, closed = false) =>
  `M${points.map(([x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`).join("L")}${closed ? "Z" : ""}`;

function ticks(low, high, count = 6) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((x) => x * power).find((x) => x >= raw);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.max(Math.floor(high / step + 1e-9) - first + 1, 0) }, (_, i) => (first + i) * step);
}

const label0 = (tick, size) => (Math.abs(tick) < 1e-9 * size ? "0" : brief(tick).replace("-", "−"));

const WIDE = 460, HIGH = 210, LEFT = 12, RIGHT = 12, TOP = 26, BOTTOM = 34;

function axis(chart, low, high, x, label) {
  chart.append(svg("path", { d: `M${LEFT},${HIGH - BOTTOM}H${WIDE - RIGHT}`, class: "axis" }));
  const far = Math.max(Math.abs(low), Math.abs(high));
  for (const tick of ticks(low, high)) {
    chart.append(svg("path", { d: `M${x(tick)},${HIGH - BOTTOM}v4`, class: "axis" }));
    const text = label0(tick, far);
    chart.append(svg("text", { x: x(tick), y: HIGH - BOTTOM + 15, class: "tick" }, text));
  }
  chart.append(svg("text", { x: (WIDE + LEFT - RIGHT) / 2, y: HIGH - 4, class: "label" }, label));
}

function legend(chart, entries) {
  let x = LEFT;
  for (const [kind, text] of entries) {
    chart.append(svg("path", { d: `M${x},9h16`, class: `key ${kind}` }));
    chart.append(svg("text", { x: x + 20, y: 13, class: "key" }, text));
    x += 32 + 5.7 * text.length;
  }
}

// The density of first and second order, the samples as they were found, and the limits.
function density(m, value) {
  const chart = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "chart", role: "img" });
  const told = best(value), spreads = [told, value.first].filter((x) => x.std > 0);
  if (!spreads.length) return chart;
  const ends = spreads.flatMap((x) => [x.mean - 4 * x.std, x.mean + 4 * x.std]);
  if (m.histogram) ends.push(m.histogram.low, m.histogram.high);
  for (const limit of [value.lower, value.upper]) {
    if (Math.abs(limit - told.mean) < 12 * told.std) ends.push(limit);
  }
  let low = Math.min(...ends), high = Math.max(...ends);
  [low, high] = [low - 0.03 * (high - low), high + 0.03 * (high - low)];
  const x = (v) => LEFT + ((v - low) / (high - low)) * (WIDE - LEFT - RIGHT);
  const at = Array.from({ length: 161 }, (_, i) => low + ((high - low) * i) / 160);
  const curves = [["first", value.first], ["second", value.second]].filter(([, c]) => c !== null && c.std > 0)
    .map(([name, moments]) => {
      const below = at.map(distribution(moments));
      return [name, at.slice(1).map((v, i) => [(v + at[i]) / 2, (below[i + 1] - below[i]) / (v - at[i])])];
    });
  const bars = [];
  if (m.histogram) {
    const { low: from, high: to, counts } = m.histogram, n = counts.reduce((a, b) => a + b, 0), step = (to - from) / counts.length;
    counts.forEach((c, i) => bars.push([from + i * step, from + (i + 1) * step, c / n / step]));
  }
  const top = 1.05 * Math.max(...curves.flatMap(([, c]) => c.map((p) => p[1])), ...bars.map((b) => b[2]));
  const y = (v) => HIGH - BOTTOM - (v / top) * (HIGH - TOP - BOTTOM);
  for (const [from, to, h] of bars) {
    const out = (from + to) / 2 < value.lower || (from + to) / 2 > value.upper;
    chart.append(svg("rect", { x: x(from), y: y(h), width: x(to) - x(from), height: y(0) - y(h), class: out ? "bar out" : "bar" }));
  }
  for (const [name, points] of curves) chart.append(svg("path", { d: path(points.map(([a, b]) => [x(a), y(b)])), class: name }));
  for (const limit of [value.lower, value.upper]) {
    if (limit >= low && limit <= high) chart.append(svg("path", { d: `M${x(limit)},${TOP - 6}V${HIGH - BOTTOM}`, class: "limit" }));
  }
  axis(chart, low, high, x, m.unit ? `${m.name} [${m.unit}]` : m.name);
  const keys = curves.map(([name]) => [name, `${name} order`]);
  legend(chart, [...keys, ...(bars.length ? [["samples", "samples, as analyzed"]] : []), ["limit", "limits"]]);
  return chart;
}

// Along a stroke, less the nominal course: worst case, RSS, limits.
function bands(m, values) {
  const chart = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "chart", role: "img" });
  const at = data.places[m.name] ? numbers(data.places[m.name]) : Float64Array.from(values, (_, i) => i);
  const from = at.reduce((a, b) => Math.min(a, b)), to = at.reduce((a, b) => Math.max(a, b));
  const off = (f) => values.map((v, i) => [at[i], f(v) - v.nominal]);
  const lines = { worst: [off((v) => v.worst_lower), off((v) => v.worst_upper)], rss: [off((v) => v.rss_lower), off((v) => v.rss_upper)] };
  const limits = [off((v) => v.lower), off((v) => v.upper)].filter((line) => line.every((p) => Number.isFinite(p[1])));
  const ends = Object.values(lines).flat(2).map((p) => p[1]).concat(limits.flat().map((p) => p[1]));
  let low = Math.min(...ends), high = Math.max(...ends);
  if (!(high > low)) [low, high] = [low - 1, high + 1];
  const left = LEFT + 44, x = (v) => left + ((v - from) / (to - from || 1)) * (WIDE - left - RIGHT);
  const y = (v) => HIGH - BOTTOM - ((v - low) / (high - low)) * (HIGH - TOP - BOTTOM);
  const drawnAt = (line) => line.map(([a, b]) => [x(a), y(b)]);
  for (const [name, [lower, upper]] of Object.entries(lines)) {
    chart.append(svg("path", { d: path([...drawnAt(lower), ...drawnAt(upper).reverse()], true), class: `band ${name}` }));
  }
  for (const line of limits) chart.append(svg("path", { d: path(drawnAt(line)), class: "limit" }));
  for (const tick of ticks(low, high, 5)) {
    chart.append(svg("text", { x: left - 6, y: y(tick) + 3.5, class: "tick end" }, label0(tick, high - low)));
    chart.append(svg("path", { d: `M${left},${y(tick)}H${WIDE - RIGHT}`, class: "grid" }));
  }
  axis(chart, from, to, x, `${m.unit ? `${m.name} [${m.unit}]` : m.name} less nominal, along the stroke`);
  legend(chart, [["worst", "worst case"], ["rss", "RSS"], ["limit", "limits"]]);
  return chart;
}
