// The mechanism at its mean dimensions, with the dimensions named, and as derivatives predict it where these deviate.

const COLORS = ["#0b62a4", "#b4530a", "#2e7d32", "#7b3fa0", "#a01c4b", "#00707d", "#6d5a00", "#4a5568"];
let deviations = new Float64Array(D), exaggeration = 1, row = 0;

const drawing = data.drawing && unpacked(data.drawing);

function unpacked(d) {
  const dim = d.planar ? 2 : 3;
  const rows = (text, n) => {
    const flat = numbers(text);
    return Array.from({ length: flat.length / n }, (_, i) => flat.subarray(i * n, (i + 1) * n));
  };
  const bodies = d.bodies.map((b) => ({
    ...b, places: rows(b.places, dim), slopes: rows(b.place_slopes, dim * D), axes: rows(b.axes, dim),
    outlines: b.outlines.map((o, i) => ({
      points: rows(o, dim), closed: b.closed[i], stem: b.stems[i],
      slopes: Object.entries(b.outline_slopes[i]).map(([k, text]) => [Number(k), rows(text, dim)]),
    })),
  }));
  const size = d.planar ? 3 : 7;
  return { ...d, dim, size, bodies, t: numbers(d.t), poses: numbers(d.poses), slopes: numbers(d.pose_slopes) };
}

// The pose of a body in a row, at first order: x, y, angle, or x, y, z and Euler parameters.
function pose(row, body, delta) {
  const { size, poses, slopes, bodies } = drawing, start = (row * bodies.length + body) * size;
  return Array.from({ length: size }, (_, i) => {
    let x = poses[start + i];
    if (delta) for (let k = 0; k < D; k++) x += slopes[(start + i) * D + k] * delta[k];
    return x;
  });
}

function placed(p, X) {
  if (drawing.planar) {
    const [c, s] = [Math.cos(X[2]), Math.sin(X[2])];
    return [X[0] + c * p[0] - s * p[1], X[1] + s * p[0] + c * p[1]];
  }
  const n = Math.hypot(X[3], X[4], X[5], X[6]), [w, x, y, z] = [X[3] / n, X[4] / n, X[5] / n, X[6] / n];
  const R = [
    [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
    [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
    [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
  ];
  return R.map((r, i) => X[i] + r[0] * p[0] + r[1] * p[1] + r[2] * p[2]);
}

// Points of ground as they are seen: in space from the right and above.
const seen = (p) => (drawing.planar ? [p[0], -p[1]] : [0.8 * p[1] - 0.6 * p[0], -(0.85 * p[2] - 0.42 * (0.8 * p[0] + 0.6 * p[1]))]);

const local = (b, i, delta) => {
  const p = Array.from(b.places[i]);
  if (delta) p.forEach((_, a) => { for (let k = 0; k < D; k++) p[a] += b.slopes[i][a * D + k] * delta[k]; });
  return p;
};
const rim = (o, delta) => o.points.map((point, i) => {
  const p = Array.from(point);
  if (delta) for (const [k, slopes] of o.slopes) p.forEach((_, a) => (p[a] += slopes[i][a] * delta[k]));
  return p;
});

// All lines of the mechanism in a row, as they are seen: of each its body, points, and what it is.
function lines(row, delta) {
  const found = [], X = drawing.bodies.map((_, b) => pose(row, b, delta)), ends = drawing.bodies.map(() => []);
  drawing.bodies.forEach((b, at) => {
    const here = (p) => seen(placed(p, X[at]));
    for (const o of b.outlines) {
      const points = rim(o, delta), middle = points[0].map((_, a) => points.reduce((s, p) => s + p[a], 0) / points.length);
      found.push({ body: at, points: points.map(here), closed: o.closed, kind: "outline" });
      if (o.stem && b.places.length) found.push({ body: at, points: [local(b, 0, delta), middle].map(here), kind: "stem" });
    }
    for (const line of b.lines) {
      const points = line.map((i) => here(local(b, i, delta))), closed = line.length > 2 && line[0] === line[line.length - 1];
      found.push({ body: at, points, closed, kind: "link" });
    }
    b.joints.forEach(([name, kind, side], i) => {
      const p = local(b, i, delta), along = p.map((x, a) => x + b.axes[i][a]);
      found.push({ body: at, points: [here(p), here(along)], kind: "joint", name, pair: kind, side });
    });
    ends[at] = b.places.slice(b.places.length - drawing.ties.filter(([, both]) => both.includes(at)).length).map((_, i, all) =>
      here(local(b, b.places.length - all.length + i, delta)));
  });
  for (const [kind, both] of drawing.ties) found.push({ body: -1, points: both.map((b) => ends[b].shift()), kind });
  return found;
}

function extent() {
  const every = [];
  for (let r = 0; r < drawing.rows; r++) for (const line of lines(r, null)) every.push(...(line.kind === "joint" ? line.points.slice(0, 1) : line.points));
  const [xs, ys] = [0, 1].map((a) => every.map((p) => p[a]));
  const low = [xs, ys].map((v) => v.reduce((a, b) => Math.min(a, b))), high = [xs, ys].map((v) => v.reduce((a, b) => Math.max(a, b)));
  const size = Math.max(high[0] - low[0], high[1] - low[1]) || 1;
  return { low, high, size };
}

function image(row, delta, box, kind) {
  const unit = 0.012 * box.size, layer = svg("g", { class: kind });
  for (const line of lines(row, delta)) {
    const color = kind === "nominal" ? "#8a94a0" : line.body < 1 ? "#333" : COLORS[(line.body - 1) % COLORS.length];
    const [a, b] = line.points;
    if (line.kind === "joint") {
      if (line.body === 0 && line.pair === "revolute" && drawing.planar && kind !== "nominal") {
        layer.append(svg("path", { d: path6([a, [a[0] - unit, a[1] + 2 * unit], [a[0] + unit, a[1] + 2 * unit]], true), class: "ground" }));
      }
      if (line.side === 0) continue;
      const turn = (Math.atan2(b[1] - a[1], b[0] - a[0]) * 180) / Math.PI;
      if (line.pair === "prismatic" && drawing.planar) {
        const length = Math.hypot(b[0] - a[0], b[1] - a[1]), step = [0, 1].map((i) => (7 * unit * (b[i] - a[i])) / length);
        layer.append(svg("path", { d: path6([[a[0] - step[0], a[1] - step[1]], [a[0] + step[0], a[1] + step[1]]]), class: "rail" }));
        layer.append(svg("rect", { x: -1.8 * unit, y: -unit, width: 3.6 * unit, height: 2 * unit, stroke: color, class: "block",
          transform: `translate(${a[0]},${a[1]}) rotate(${turn})` }));
      } else if (line.pair !== "prismatic") layer.append(svg("circle", { cx: a[0], cy: a[1], r: 0.75 * unit, stroke: color, class: "pin" }));
      continue;
    }
    const fill = line.closed && kind !== "nominal" ? `${color}22` : "none";
    layer.append(svg("path", { d: path6(line.points, line.closed), stroke: color, fill, class: line.kind }));
  }
  return layer;
}

// Coordinates have any size: six digits of them.
const path6 = (points, closed) => `M${points.map((p) => p.map((x) => x.toPrecision(8)).join(",")).join("L")}${closed ? "Z" : ""}`;

// Lines that show where dimensions are, with their names; names that would cover each other go apart.
function names(row, box) {
  const layer = svg("g", { class: "names" }), taken = [], em = 0.032 * box.size, put = [];
  for (const [name, every] of Object.entries(drawing.named)) {
    for (const { body, ends } of every) {
      const [a, b] = ends.map((p) => seen(placed(p, pose(row, body, null)))), length = Math.hypot(b[0] - a[0], b[1] - a[1]);
      if (length > 1e-6 * box.size) layer.append(svg("path", { d: path6([a, b]), class: "dimension" }));
      const across = length > 0 ? [-(b[1] - a[1]) / length, (b[0] - a[0]) / length] : [0, -1];
      const middle = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2], wide = 0.3 * em * name.length + 0.3 * em;
      const places = [0.7, -0.7, 1.5, -1.5, 2.3, -2.3, 3.1, -3.1, 4, -4].map((k) => {
        const out = k * em + Math.sign(k) * Math.abs(across[0]) * wide;
        return [middle[0] + across[0] * out, middle[1] + across[1] * out];
      });
      const free = (p) => taken.every((q) => Math.abs(p[0] - q[0]) > wide + q[2] || Math.abs(p[1] - q[1]) > 1.05 * em);
      const p = places.find(free) ?? places[0];
      taken.push([...p, wide]);
      put.push(svg("text", { x: p[0], y: p[1] + 0.33 * em, "font-size": em }, name));
    }
  }
  layer.append(...put);
  return layer;
}

function drawMechanism() {
  const box = drawMechanism.box ?? (drawMechanism.box = extent()), pad = 0.14 * box.size;
  const width = box.high[0] - box.low[0] + 2 * pad, height = box.high[1] - box.low[1] + 2 * pad;
  const stage = document.getElementById("stage"), delta = deviations.map((x) => x * exaggeration);
  stage.setAttribute("viewBox", `${box.low[0] - pad} ${box.low[1] - pad} ${width} ${height}`);
  const moved = deviations.some((x) => x !== 0), layers = moved ? [image(row, null, box, "nominal")] : [];
  layers.push(image(row, moved ? delta : null, box, "changed"));
  if (document.getElementById("show-names").checked) layers.push(names(row, box));
  stage.replaceChildren(...layers);
  document.getElementById("time").textContent = drawing.rows > 1 ? `t = ${short(drawing.t[row])}` : "";
}

// What the measures become where the dimensions deviate from their means: at first order, and at second where there is.
function predicted() {
  return data.measures.map((m, j) => {
    const k = result.measures[j].at, g = SLOPES.subarray(k * D, (k + 1) * D), first = VALUES[k] + dot(deviations, g);
    return { first, second: CURVED.has(k) ? first + dot(deviations, times(curvature(k), deviations)) / 2 : null };
  });
}

function showPredicted() {
  predicted().forEach(({ first, second }, j) => {
    show(document.querySelector(`[data-predicted="${j}.first"]`), first, "number");
    const cell = document.querySelector(`[data-predicted="${j}.second"]`);
    if (cell) show(cell, second, "number");
  });
}

function startMechanism() {
  const stage = document.getElementById("stage");
  if (!drawing || !stage) return;
  row = Math.floor((drawing.rows - 1) / 3);
  const position = document.getElementById("position");
  position.value = row;
  position.addEventListener("input", () => { row = Number(position.value); drawMechanism(); });
  document.getElementById("exaggeration").addEventListener("change", (e) => { exaggeration = Number(e.target.value); drawMechanism(); });
  document.getElementById("show-names").addEventListener("change", drawMechanism);
  for (const slider of document.querySelectorAll("[data-slider]")) {
    slider.addEventListener("input", () => { slide(); });
  }
  document.getElementById("level").addEventListener("click", () => {
    for (const slider of document.querySelectorAll("[data-slider]")) slider.value = 0;
    slide();
  });
  slide();
}

// Sliders go from limit to limit of the tolerances as they are now: -1 is the lower, 1 the upper one, 0 the mean.
function slide() {
  for (const slider of document.querySelectorAll("[data-slider]")) {
    const i = Number(slider.dataset.slider), x = Number(slider.value), at = data.groups.findIndex((g) => i >= g.start && i < g.start + g.count);
    const g = result.groups[at], end = x < 0 ? g.mean - g.lower : g.upper - g.mean;
    deviations[i] = x === 0 ? 0 : x * Math.max(end, 0);
    show(slider.parentElement.querySelector("output"), deviations[i], "number");
  }
  drawMechanism();
  showPredicted();
}
