// Drawing: everything becomes an item with a layer (in space, a depth) and is painted from back to front.
let items = [];
const item = (layer, at, draw) => items.push([data.planar ? layer : depth(at) / size + layer * .004, draw]);
const trace = (list, closed) => {
  let down = false;
  for (const p of list) { const [x, y] = seen(p); if (down) ctx.lineTo(x, y); else ctx.moveTo(x, y); down = true }
  if (closed) ctx.closePath();
};
const stroke = (color, width, dash = []) => {
  ctx.strokeStyle = color;
  ctx.lineWidth = width;
  ctx.setLineDash(dash);
  ctx.stroke();
  ctx.setLineDash([]);
};
const polyline = (list, color, width, dash) => { ctx.beginPath(); trace(list, false); stroke(color, width, dash) };
const disc = (p, r, fill, line, width = 1.6) => {
  const [x, y] = seen(p);
  ctx.beginPath(); ctx.arc(x, y, r, 0, 7); ctx.fillStyle = fill; ctx.fill();
  if (line) stroke(line, width);
};
// Words are written last, the more important ones first, each beside its point where none is yet; if there is no such
// place, it is left out.
let written = [];
const text = (p, words, color, dx = 8, dy = -8, weight = 500) =>
  written.push({ at: seen(p), words, color, dx, dy, weight, alpha: ctx.globalAlpha });
const drawTexts = () => {
  const taken = [];
  for (const { at: [x, y], words, color, dx, dy, weight, alpha } of written.sort((a, b) => b.weight - a.weight)) {
    ctx.font = `${weight} 12px system-ui, sans-serif`;
    const width = ctx.measureText(words).width;
    const places = [[dx, dy], [dx, -dy], [-dx, dy], [-dx, -dy], [dx, dy - 14], [dx, 14 - dy], [-dx, dy - 14], [-dx, 14 - dy]];
    const boxes = places.map(([u, v]) => [u < 0 ? x + u - width : x + u, y + v - 7, width, 14]);
    const free = boxes.find(b => b[0] >= 2 && b[0] + width <= W - 2 && taken.every(o =>
      b[0] >= o[0] + o[2] + 2 || o[0] >= b[0] + b[2] + 2 || b[1] >= o[1] + o[3] || o[1] >= b[1] + b[3]));
    if (!free) continue;
    taken.push(free);
    ctx.globalAlpha = alpha;
    ctx.textAlign = "left"; ctx.textBaseline = "middle";
    ctx.lineWidth = 3.5; ctx.strokeStyle = paint.card; ctx.lineJoin = "round";
    ctx.strokeText(words, free[0], free[1] + 7); ctx.fillStyle = color; ctx.fillText(words, free[0], free[1] + 7);
  }
  ctx.globalAlpha = 1;
};
const middle = list => scaled(list.reduce((sum, p) => add(sum, p), [0, 0, 0]), 1 / list.length);
const hatch = (a, b, side, color) => {  // short strokes beside the line from a to b
  const [p, q] = [seen(a), seen(b)], length = Math.hypot(q[0] - p[0], q[1] - p[1]);
  const n = Math.max(2, Math.round(length / 6));
  if (!(length > 1) || n > 4000) return;
  const d = [(q[0] - p[0]) / length, (q[1] - p[1]) / length], m = [d[1] * side, -d[0] * side];
  ctx.beginPath();
  for (let k = 0; k <= n; k++) {
    const x = p[0] + d[0] * length * k / n, y = p[1] + d[1] * length * k / n;
    ctx.moveTo(x, y); ctx.lineTo(x + 5.5 * m[0] - 4 * d[0], y + 5.5 * m[1] - 4 * d[1]);
  }
  stroke(color, 1);
};
const band = (list, closed, width) => {  // the material beside a boundary, on its left
  const n = list.length, at = k => list[closed ? (k + n) % n : Math.min(Math.max(k, 0), n - 1)];
  return list.map((p, k) => { const d = unit(add(at(k + 1), at(k - 1), -1)); return add(p, [-d[1], d[0], 0], width) });
};
const symbol = () => Math.min(Math.max(.011 * size * view.scale, 3.2), 7);
