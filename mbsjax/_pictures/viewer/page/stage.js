// The stage: the grid, the variants, the paths of points, and all items.
const nice = x => {
  const e = 10 ** Math.floor(Math.log10(x)), m = x / e;
  return e * (m < 1.5 ? 1 : m < 3.5 ? 2 : m < 7.5 ? 5 : 10);
};
const drawGrid = () => {
  if (!data.planar) {
    const low = (points || []).reduce((z, p) => Math.min(z, p[2]), Infinity), h = nice(size / 6);
    const c = [Math.round(view.focus[0] / h), Math.round(view.focus[1] / h)], n = 5;
    ctx.beginPath();
    for (let k = -n; k <= n; k++) {
      trace([[(c[0] + k) * h, (c[1] - n) * h, low], [(c[0] + k) * h, (c[1] + n) * h, low]]);
      trace([[(c[0] - n) * h, (c[1] + k) * h, low], [(c[0] + n) * h, (c[1] + k) * h, low]]);
    }
    stroke(paint.grid, 1);
    const o = [40, H - (W < 600 ? 80 : 38)];
    ["#d1242f", "#1a7f4b", "#2f6fde"].forEach((color, k) => {
      const name = "xyz"[k], u = eye.right[k], v = eye.up[k];
      ctx.beginPath(); ctx.moveTo(...o); ctx.lineTo(o[0] + 24 * u, o[1] - 24 * v); stroke(color, 1.8);
      ctx.fillStyle = paint.soft;
      ctx.font = "11px system-ui, sans-serif";
      ctx.textAlign = "center";
      ctx.textBaseline = "middle";
      ctx.fillText(name, o[0] + 32 * u, o[1] - 32 * v);
    });
    return;
  }
  const h = nice(80 / view.scale), left = view.focus[0] - W / 2 / view.scale, low = view.focus[1] - H / 2 / view.scale;
  ctx.font = "10.5px system-ui, sans-serif"; ctx.fillStyle = paint.soft; ctx.globalAlpha = .8; ctx.beginPath();
  const name = k => number(+(k * h).toPrecision(10), 6);
  for (let k = Math.ceil(left / h); k * h < left + W / view.scale; k++) {
    const x = Math.round(seen([k * h, 0, 0])[0]) + .5; ctx.moveTo(x, 0); ctx.lineTo(x, H);
    ctx.textAlign = "center"; ctx.textBaseline = "bottom"; if (x > 40 && x < W - 20) ctx.fillText(name(k), x, H - 4);
  }
  for (let k = Math.ceil(low / h); k * h < low + H / view.scale; k++) {
    const y = Math.round(seen([0, k * h, 0])[1]) + .5; ctx.moveTo(0, y); ctx.lineTo(W, y);
    ctx.textAlign = "left"; ctx.textBaseline = "middle"; if (y > 44 && y < H - 20) ctx.fillText(name(k), 5, y);
  }
  ctx.globalAlpha = 1;
  ctx.globalCompositeOperation = "destination-over";
  stroke(paint.grid, 1);
  ctx.globalCompositeOperation = "source-over";
};
const drawGhosts = () => {
  ctx.lineJoin = "round";
  data.bodies.forEach((_, k) => {
    if (k === 0) return;
    ctx.globalAlpha = Math.min(Math.max(2.2 / Math.sqrt(variants.length) * .3, .09), .5);
    for (const v of variants) {
      const b = v.bodies[k], [i, j, s] = between(v.T, now);
      if (now > v.T[v.T.length - 1] + 1e-9 * span) continue;
      const X = poseAt(b.pose, i, j, s);
      ctx.beginPath();
      for (const o of b.outlines) trace(o.points.map(p => placed(X, p)), o.closed);
      for (const line of b.lines) trace(line.map(p => placed(X, p)));
      if (b.plate) trace(b.plate.map(p => placed(X, p)), true);
      stroke(paint.body(k), 1.1);
    }
  });
  ctx.globalAlpha = 1;
};
const path = (b, p) => Array.from(T, (_, i) => placed(poseAt(b.pose, i, i, 0), p));
const paths = data.bodies.flatMap((b, k) => k ? b.points.map(([, p]) => [k, path(b, p)]) : []);
const shown = was.shown || { ghosts: true, paths: true, names: false, senses: T.length < 2 };
const drawStage = () => {
  const ratio = canvas.width / W, [i, j, s] = between(T, now);
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0); ctx.clearRect(0, 0, W, H); look();
  poses = data.bodies.map(b => poseAt(b.pose, i, j, s));
  drawGrid();
  if (shown.paths) for (const [k, list] of paths) {
    ctx.globalAlpha = .55;
    polyline(list, paint.body(k), 1.3);
    ctx.globalAlpha = 1;
  }
  items = []; labels = {}; written = [];
  data.bodies.forEach((b, k) => drawBody(b, k, poses[k]));
  data.joints.forEach(drawJoint); data.ties.forEach(drawTie);
  pressed.forEach(c => drawContact(c, i, j, s));
  data.events.forEach(drawFlash);
  if (shown.senses) drawSenses(i);
  if (shown.names) data.bodies.forEach((b, k) => {
    const own = b.outlines.length ? b.outlines[0].points : b.plate || b.lines[0] || (b.block ? [b.block[0]] : []);
    if (k && own.length) {
      const at = placed(poses[k], middle(own));
      item(6, add(at, eye.out, size), () => text(at, b.name, paint.body(k), 9, 11, 600));
    }
  });
  let ghosts = shown.ghosts && variants.length > 0;
  items.map((x, k) => [...x, k]).sort((a, b) => a[0] - b[0] || a[2] - b[2]).forEach(([layer, draw]) => {
    if (ghosts && (!data.planar || layer >= 3)) { ghosts = false; drawGhosts() }
    draw();
  });
  if (ghosts) drawGhosts();
  drawTexts();
};
