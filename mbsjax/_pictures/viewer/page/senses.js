// Senses: which way drivers move, whether springs pull or push, and the positive sense of coordinates.
const arc = (center, axis, radius, from, sweep, n = 24) => {  // about an axis, as points
  const out = unit(axis), other = Math.abs(out[2]) < .9 ? [0, 0, 1] : [1, 0, 0];
  const u = data.planar ? [1, 0, 0] : unit(cross(other, out)), v = data.planar ? [0, 1, 0] : cross(out, u);
  return Array.from({ length: n + 1 }, (_, k) => {
    const a = from + sweep * k / n;
    return add(add(center, u, radius * Math.cos(a)), v, radius * Math.sin(a));
  });
};
const drawTurn = (center, axis, radius, way, color, width, words) => {
  const list = arc(center, axis, radius, way > 0 ? .35 : Math.PI - .35, way * 2.1);
  item(5, add(center, eye.out, size), () => {
    polyline(list.slice(0, -8), color, width);
    drawArrow(list[list.length - 9], list[list.length - 1], color, width, 5 + 2 * width);
    const thin = width < 1.5;  // the sense of a coordinate is told beside the joint, what acts on it above
    if (words) text(list[thin ? 0 : 12], words, color, thin ? 6 : 4, thin ? 8 : -10, 600);
  });
};
const drawWay = (from, along, length, color, width, words) => {
  const to = add(from, along, length);
  item(5, add(from, eye.out, size), () => {
    const [, d] = drawArrow(from, to, color, width, 5 + 2 * width);
    if (words) text(to, words, color, d[0] < -.3 ? -6 : 6, -10, 600);
  });
};
const axisOf = (j, X) => data.planar && !j.travel ? [0, 0, 1] : unit(turned(X, j.axes[0]));
const drawDriver = (d, i) => {
  const way = Math.sign(d.speed[i]), px = 1 / view.scale;
  if (!way) return;
  if (d.gauge !== null) {
    const tie = data.ties.find(x => x.name === d.gauge);
    if (!tie) return;
    const [p, q] = endsOf(tie), along = unit(add(q, p, -1));
    drawWay(q, scaled(along, way), 34 * px, paint.accent, 3, d.name);
    return;
  }
  const j = data.joints[d.joint], X = poses[j.bodies[0]], q = placed(poses[j.bodies[1]], j.places[1]);
  if (d.turns) drawTurn(q, axisOf(j, X), 30 * px, way, paint.accent, 3, d.name);
  else drawWay(q, scaled(unit(turned(X, j.axes[0])), way), 44 * px, paint.accent, 3, d.name);
};
const drawPush = (x, i) => {  // what a spring does to what it holds
  const push = x.push[i], px = 1 / view.scale;
  if (!(Math.abs(push) > 1e-9 * Math.max(...x.push.map(Math.abs), 1e-300))) return;
  const color = paint.kind("shifted"), words = x.seat ? x.name : `${x.name} ${push < 0 ? "pulls" : "pushes"}`;
  if (x.turns) {
    const j = data.joints[x.joint], X = poses[j.bodies[0]], q = placed(poses[j.bodies[1]], j.places[1]);
    drawTurn(q, axisOf(j, X), 22 * px, Math.sign(push), color, 2, `${x.name}: ${push < 0 ? "−" : "+"}`);
    return;
  }
  const [p, q] = endsOf(x), j = x.seat && data.joints[x.joint];
  const along = j ? unit(turned(poses[j.bodies[0]], j.axes[0])) : unit(add(q, p, -1)), way = Math.sign(push);
  drawWay(q, scaled(along, way), 30 * px, color, 2, words);
  if (!j) drawWay(p, scaled(along, -way), 30 * px, color, 2, "");
};
const drawSense = j => {  // where its coordinates grow
  const X = poses[j.bodies[0]], q = placed(poses[j.bodies[1]], j.places[1]), px = 1 / view.scale;
  if (j.turns.length !== 1) return;
  if (j.turns[0]) drawTurn(q, axisOf(j, X), 15 * px, 1, paint.soft, 1.2, `${j.name}+`);
  else drawWay(q, unit(turned(X, j.axes[0])), 28 * px, paint.soft, 1.2, `${j.name}+`);
};
const drawSenses = i => {
  const driven = data.drivers.map(d => d.joint);
  data.joints.forEach((j, k) => { if (!driven.includes(k)) drawSense(j) });
  data.drivers.forEach(d => drawDriver(d, i));
  for (const x of data.ties) if (x.push) drawPush(x, i);
};
