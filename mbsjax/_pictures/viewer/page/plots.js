// Plots: what is plotted over the time, or over something else, can be chosen in each of them.
const PAD = { left: 46, right: 8, top: 6, bottom: 16 };
const signals = new Map([...data.panels, ...data.more].map(s => [s.key, s]));
const titled = s => {  // the quantity and its unit
  if (!s) return timeTitle;
  return (s.of === s.quantity ? s.of : `${s.of}: ${s.quantity}`) + (s.unit ? ` (${s.unit})` : "");
};
const timeTitle = "t" + (data.time_unit ? ` (${data.time_unit})` : "");
const leftOf = (line, i) => {  // the value just before a frame, where it jumps there
  const event = eventAt.get(i);
  return line.before && event !== undefined ? line.before[event] : line.y[i];
};
const valueAt = (line, i, j, part) => {
  const next = leftOf(line, j);
  return Number.isFinite(next) ? mix(line.y[i], next, part) : line.y[i];
};
const limits = arrays => {
  let low = Infinity, high = -Infinity;
  for (const y of arrays) for (const v of y) if (Number.isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v) }
  if (!(low <= high)) [low, high] = [0, 1];
  const edge = (high - low) * .06 || Math.abs(high) * .1 || 1;
  return [low - edge, high + edge];
};
const among = (s, key) => lanes.flatMap(lane => lane === data ? [] : [...lane.panels, ...lane.more]
  .filter(x => x.key === key && x.lines.length === s.lines.length).map(x => ({ T: lane.T, lines: x.lines })));

let plots = [];
const range = plot => {  // the ranges of both axes
  const s = plot.signal = signals.get(plot.key), x = plot.abscissa = signals.get(plot.over) || null;
  plot.others = x || lanes.length > 40 ? [] : among(s, plot.key);
  const every = [...s.lines.flatMap(l => [l.y, ...(l.band || [])]), ...plot.others.flatMap(o => o.lines.map(l => l.y))];
  [plot.low, plot.high] = limits(every);
  [plot.left, plot.right] = x ? limits([x.lines[0].y]) : [start, start + span];
  plot.back.setAttribute("aria-label", `${titled(s)} over ${titled(x)}`);
};
const chooser = (chosen, first, change) => {
  const select = document.createElement("select");
  for (const [key, s] of [...(first ? [["", null]] : []), ...signals])
    select.append(new Option(titled(s), key, false, key === chosen));
  on(select, "change", () => change(select.value));
  return select;
};
const makePlot = (key, over) => {
  const box = document.createElement("div"), head = document.createElement("p"), value = document.createElement("span");
  const holder = document.createElement("div"), foot = document.createElement("label");
  const back = document.createElement("canvas"), front = document.createElement("canvas");
  const plot = { box, key, over, value, back, front, width: 1, height: 1 };
  const changed = () => { range(plot); drawPlot(plot); dirty = true };
  const y = chooser(key, false, now => { plot.key = now; changed() });
  const x = chooser(over, true, now => { plot.over = now; changed() });
  const close = document.createElement("button");
  y.setAttribute("aria-label", "what is plotted"); x.setAttribute("aria-label", "over what");
  close.textContent = "×"; close.title = "remove this plot"; close.setAttribute("aria-label", close.title);
  on(close, "click", () => { plots = plots.filter(p => p !== plot); box.remove() });
  box.className = "card plot"; back.setAttribute("role", "img");
  foot.append(x); head.append(y, value, close); holder.append(back, front); box.append(head, holder, foot);
  $("plots").insertBefore(box, $("add"));
  plot.x = v => PAD.left + (v - plot.left) / (plot.right - plot.left) * (plot.width - PAD.left - PAD.right);
  plot.y = v => PAD.top + (plot.high - v) / (plot.high - plot.low) * (plot.height - PAD.top - PAD.bottom);
  plot.at = i => plot.abscissa ? plot.abscissa.lines[0].y[i] : T[i];
  on(front, "pointerdown", e => { front.setPointerCapture(e.pointerId); seek(timeOf(plot, e)) });
  on(front, "pointermove", e => { if (e.buttons) seek(timeOf(plot, e)) });
  plots.push(plot);
  range(plot);
  return plot;
};
const timeOf = (plot, e) => {  // over the time, where it was clicked; else the time of the nearest point
  const r = plot.front.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
  if (!plot.abscissa) return start + (x - PAD.left) / (r.width - PAD.left - PAD.right) * span;
  let best = 0, least = Infinity;
  for (const line of plot.signal.lines) T.forEach((_, i) => {
    const d = (plot.x(plot.at(i)) - x) ** 2 + (plot.y(line.y[i]) - y) ** 2;
    if (d < least) { least = d; best = i }
  });
  return T[best];
};
const sized = c => {
  const ratio = Math.min(devicePixelRatio || 1, 3), w = c.clientWidth, h = c.clientHeight, g = c.getContext("2d");
  if (c.width !== Math.round(w * ratio) || c.height !== Math.round(h * ratio)) {
    c.width = Math.round(w * ratio);
    c.height = Math.round(h * ratio);
  }
  g.setTransform(ratio, 0, 0, ratio, 0, 0); g.clearRect(0, 0, w, h);
  return [g, w, h];
};
const color = k => paint.body(k + 1);
const drawAxes = (plot, g, w, h) => {
  const right = w - PAD.right, bottom = h - PAD.bottom;
  g.font = "10.5px system-ui, sans-serif"; g.lineWidth = 1; g.strokeStyle = paint.grid; g.fillStyle = paint.soft;
  const dy = nice((plot.high - plot.low) / 3.2), dx = nice((plot.right - plot.left) / Math.max(2, w / 75));
  for (let k = Math.ceil(plot.low / dy); k * dy <= plot.high; k++) {
    const y = Math.round(plot.y(k * dy)) + .5; g.beginPath(); g.moveTo(PAD.left, y); g.lineTo(right, y); g.stroke();
    g.textAlign = "right"; g.textBaseline = "middle"; g.fillText(number(+(k * dy).toPrecision(9), 5), PAD.left - 5, y);
  }
  for (let k = Math.ceil(plot.left / dx - 1e-9); k * dx <= plot.right + 1e-9 * (plot.right - plot.left); k++) {
    const x = Math.round(plot.x(k * dx)) + .5; g.beginPath(); g.moveTo(x, PAD.top); g.lineTo(x, bottom); g.stroke();
    g.textAlign = "center";
    g.textBaseline = "top";
    const words = number(+(k * dx).toPrecision(9), 5), half = g.measureText(words).width / 2;
    g.fillText(words, Math.min(x, w - half - 1), bottom + 3);
  }
  if (!plot.abscissa) for (const e of data.events) {
    g.globalAlpha = e.kind === "transition" ? .45 : .7;
    g.strokeStyle = paint.kind(e.kind);
    g.beginPath();
    g.moveTo(plot.x(e.t), PAD.top);
    g.lineTo(plot.x(e.t), bottom);
    g.stroke();
  }
  g.globalAlpha = 1;
};
const drawBand = (plot, g, [low, high]) => {
  let run = [];
  const flush = () => {
    if (run.length > 1) {
      g.beginPath();
      run.forEach(i => g.lineTo(plot.x(T[i]), plot.y(high[i])));
      run.reverse().forEach(i => g.lineTo(plot.x(T[i]), plot.y(low[i])));
      g.closePath();
      g.globalAlpha = .24;
      g.fill();
      g.globalAlpha = 1;
    }
    run = [];
  };
  T.forEach((_, i) => { if (Number.isFinite(low[i])) run.push(i); else flush() }); flush();
};
const drawLine = (plot, g, line) => {
  g.beginPath(); let down = false;
  T.forEach((_, i) => {
    const x = plot.x(plot.at(i)), y = line.y[i], left = leftOf(line, i);
    if (!Number.isFinite(y)) { down = false; return }
    if (down && left !== y && Number.isFinite(left)) g.lineTo(x, plot.y(left));
    if (down) g.lineTo(x, plot.y(y)); else g.moveTo(x, plot.y(y));
    down = true;
  });
  g.lineWidth = 1.6; g.lineJoin = "round"; g.stroke();
};
const drawPlot = plot => {
  const [g, w, h] = sized(plot.back), s = plot.signal;
  plot.width = w; plot.height = h;
  drawAxes(plot, g, w, h);
  g.save(); g.beginPath(); g.rect(PAD.left, 0, w - PAD.right - PAD.left + 2, h); g.clip();
  for (const other of plot.others) other.lines.forEach((line, k) => {
    g.beginPath();
    other.T.forEach((t, i) => { if (Number.isFinite(line.y[i])) g.lineTo(plot.x(t), plot.y(line.y[i])) });
    g.globalAlpha = .3; g.strokeStyle = color(k); g.lineWidth = 1; g.stroke(); g.globalAlpha = 1;
  });
  s.lines.forEach((line, k) => {
    g.fillStyle = g.strokeStyle = color(k);
    if (line.band && !plot.abscissa) drawBand(plot, g, line.band);
    drawLine(plot, g, line);
  });
  if (plot.abscissa) for (const e of data.events) for (const line of s.lines) {
    g.beginPath(); g.arc(plot.x(plot.at(e.frame)), plot.y(line.y[e.frame]), 2.4, 0, 7);
    g.fillStyle = paint.kind(e.kind); g.fill();
  }
  g.restore();
};
const drawCursor = plot => {
  const [g, , h] = sized(plot.front), [i, j, part] = between(T, now), s = plot.signal, over = plot.abscissa;
  const x = plot.x(over ? valueAt(over.lines[0], i, j, part) : now);
  if (!over) {
    g.strokeStyle = paint.ink;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(x, PAD.top);
    g.lineTo(x, h - PAD.bottom);
    g.stroke();
  }
  const said = s.lines.map((line, k) => {
    const y = valueAt(line, i, j, part);
    if (Number.isFinite(y)) {
      g.beginPath();
      g.arc(x, plot.y(y), 3.4, 0, 7);
      g.fillStyle = color(k);
      g.fill();
      g.lineWidth = 1.4;
      g.strokeStyle = paint.card;
      g.stroke();
    }
    const b = document.createElement("b");  // also the legend: in the color of its line
    b.textContent = (line.label ? line.label + " " : "") + number(Math.abs(y) < 1e-9 * (plot.high - plot.low) ? 0 : y, 5);
    if (s.lines.length > 1) b.style.color = color(k);
    return b;
  });
  plot.value.replaceChildren(...said.flatMap((b, k) => k ? [" ", b] : [b]));
};
const openPlots = () => {
  const chosen = was.chosen || data.panels.map(p => [p.key, p.over || ""]);
  for (const [key, over] of chosen) if (signals.has(key)) makePlot(key, signals.has(over) ? over : "");
  $("add").hidden = !signals.size;
  on($("add"), "click", () => {
    const used = plots.map(p => p.key), key = [...signals.keys()].find(k => !used.includes(k)) || [...signals.keys()][0];
    drawPlot(makePlot(key, ""));
    dirty = true;
  });
};
