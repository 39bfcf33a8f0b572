// Plots.
const PAD = { left: 46, right: 8, top: 6, bottom: 16 };
const plots = data.panels.map(panel => {
  const box = document.createElement("div"), head = document.createElement("p"), name = document.createElement("b");
  const value = document.createElement("span"), holder = document.createElement("div");
  const back = document.createElement("canvas"), front = document.createElement("canvas");
  box.className = "card plot";
  name.textContent = panel.label;
  name.style.fontWeight = 600;
  head.append(name, value);
  holder.append(back, front);
  box.append(head, holder);
  $("plots").append(box);
  const values = panel.lines.flatMap(l => [l.y, ...(l.band || [])]).flatMap(y => Array.from(y).filter(Number.isFinite));
  let low = values.reduce((a, b) => Math.min(a, b), Infinity);
  let high = values.reduce((a, b) => Math.max(a, b), -Infinity);
  if (!(low <= high)) [low, high] = [0, 1];
  const edge = (high - low) * .06 || Math.abs(high) * .1 || 1;
  const plot = { panel, value, back, front, low: low - edge, high: high + edge, width: 1, height: 1 };
  plot.x = t => PAD.left + (t - start) / span * (plot.width - PAD.left - PAD.right);
  plot.y = y => PAD.top + (plot.high - y) / (plot.high - plot.low) * (plot.height - PAD.top - PAD.bottom);
  const go = e => {
    const r = front.getBoundingClientRect();
    seek(start + (e.clientX - r.left - PAD.left) / (r.width - PAD.left - PAD.right) * span);
  };
  front.addEventListener("pointerdown", e => { front.setPointerCapture(e.pointerId); go(e) });
  front.addEventListener("pointermove", e => { if (e.buttons) go(e) });
  return plot;
});
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
const drawPlot = plot => {
  const [g, w, h] = sized(plot.back), { panel } = plot, right = w - PAD.right, bottom = h - PAD.bottom;
  plot.width = w; plot.height = h;
  g.font = "10.5px system-ui, sans-serif"; g.lineWidth = 1; g.strokeStyle = paint.grid; g.fillStyle = paint.soft;
  const dy = nice((plot.high - plot.low) / 3.2), dx = nice(span / Math.max(2, w / 75));
  for (let k = Math.ceil(plot.low / dy); k * dy <= plot.high; k++) {
    const y = Math.round(plot.y(k * dy)) + .5; g.beginPath(); g.moveTo(PAD.left, y); g.lineTo(right, y); g.stroke();
    g.textAlign = "right"; g.textBaseline = "middle"; g.fillText(number(+(k * dy).toPrecision(9), 5), PAD.left - 5, y);
  }
  for (let k = Math.ceil(start / dx - 1e-9); k * dx <= finish + 1e-9 * span; k++) {
    const x = Math.round(plot.x(k * dx)) + .5; g.beginPath(); g.moveTo(x, PAD.top); g.lineTo(x, bottom); g.stroke();
    g.textAlign = "center";
    g.textBaseline = "top";
    g.fillText(number(+(k * dx).toPrecision(9), 5), Math.min(x, w - 10), bottom + 3);
  }
  for (const e of data.events) {
    const x = plot.x(e.t);
    g.globalAlpha = e.kind === "transition" ? .45 : .7;
    g.strokeStyle = paint.kind(e.kind);
    g.beginPath();
    g.moveTo(x, PAD.top);
    g.lineTo(x, bottom);
    g.stroke();
  }
  g.globalAlpha = 1; g.save(); g.beginPath(); g.rect(PAD.left, 0, right - PAD.left + 2, h); g.clip();
  panel.lines.forEach((line, k) => {
    if (line.band) {
      const [low, high] = line.band; let run = [];
      const flush = () => {
        if (run.length > 1) {
          g.beginPath();
          run.forEach(i => g.lineTo(plot.x(T[i]), plot.y(high[i])));
          run.reverse().forEach(i => g.lineTo(plot.x(T[i]), plot.y(low[i])));
          g.closePath();
          g.globalAlpha = .24;
          g.fillStyle = color(k);
          g.fill();
          g.globalAlpha = 1;
        }
        run = [];
      };
      T.forEach((_, i) => { if (Number.isFinite(low[i])) run.push(i); else flush() }); flush();
    }
    g.beginPath(); let down = false;
    T.forEach((t, i) => {
      const y = line.y[i];
      if (!Number.isFinite(y)) { down = false; return }
      if (down && panel.jumps && isEvent[i] && Number.isFinite(line.y[i - 1]))
        g.lineTo(plot.x(t), plot.y(line.y[i - 1]));
      if (down) g.lineTo(plot.x(t), plot.y(y)); else g.moveTo(plot.x(t), plot.y(y));
      down = true;
    });
    g.strokeStyle = color(k); g.lineWidth = 1.6; g.lineJoin = "round"; g.stroke();
  });
  g.restore();
};
const valueAt = (panel, { y }, i, j, s) =>
  panel.jumps && isEvent[j] || !Number.isFinite(y[j]) ? y[i] : mix(y[i], y[j], s);
const drawCursor = plot => {
  const [g, , h] = sized(plot.front), x = plot.x(now), [i, j, s] = between(T, now);
  g.strokeStyle = paint.ink;
  g.lineWidth = 1;
  g.beginPath();
  g.moveTo(x, PAD.top);
  g.lineTo(x, h - PAD.bottom);
  g.stroke();
  const said = plot.panel.lines.map((line, k) => {
    const y = valueAt(plot.panel, line, i, j, s);
    if (Number.isFinite(y)) {
      g.beginPath();
      g.arc(x, plot.y(y), 3.4, 0, 7);
      g.fillStyle = color(k);
      g.fill();
      g.lineWidth = 1.4;
      g.strokeStyle = paint.card;
      g.stroke();
    }
    return (line.label ? line.label + " " : "") + number(Math.abs(y) < 1e-9 * (plot.high - plot.low) ? 0 : y, 5);
  });
  plot.value.textContent = said.join("   ");
};
