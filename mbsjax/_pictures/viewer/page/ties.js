// Rods, springs, dampers and actuators: what is between two points, or along the coordinate of a joint.
const HALF = 6;  // half the width of a spring, in pixels
// a spring along a slide is drawn beside the travel, on the side from which it presses the slide
for (const x of data.ties) if (x.joint !== null && x.joint !== undefined && !x.turns && data.joints[x.joint].travel) {
  const { travel } = data.joints[x.joint], mean = x.push.reduce((sum, v) => sum + v, 0);
  x.seat = mean < 0 ? [travel[1], 1] : [travel[0], -1];
}
const seatOf = (x, X, extent = size) => {  // where a spring along a slide stands
  const j = data.joints[x.joint], along = unit(turned(X, j.axes[0])), [at, side] = x.seat;
  return add(placed(X, j.places[0]), along, at + side * .18 * extent);
};
const endsOf = x => {
  const [X, Y] = x.bodies.map(k => poses[k]), q = placed(Y, x.places[1]);
  return [x.seat ? seatOf(x, X) : placed(X, x.places[0]), q];
};
const across = (a, b, list) => {  // places along (a part) and across (pixels) of the line from a to b, as pixels
  const length = Math.hypot(b[0] - a[0], b[1] - a[1]) || 1, d = [(b[0] - a[0]) / length, (b[1] - a[1]) / length];
  return list.map(([s, h]) => [a[0] + d[0] * length * s - d[1] * h, a[1] + d[1] * length * s + d[0] * h]);
};
const lines = (list, width = 1.4) => {
  ctx.beginPath(); ctx.lineJoin = "round";
  list.forEach((p, k) => k ? ctx.lineTo(...p) : ctx.moveTo(...p));
  stroke(paint.soft, width);
};
const drawSpring = (a, b, shift) => {
  const n = 9, coils = Array.from({ length: 2 * n + 1 }, (_, k) =>
    [.12 + .76 * k / (2 * n), shift + (k === 0 || k === 2 * n ? 0 : k % 2 ? HALF : -HALF)]);
  lines(across(a, b, [[0, 0], [.06, 0], [.06, shift], ...coils, [.94, shift], [.94, 0], [1, 0]]));
};
const drawDamper = (a, b, shift) => {
  lines(across(a, b, [[0, 0], [.06, 0], [.06, shift], [.4, shift]]));
  lines(across(a, b, [[.66, shift - HALF], [.4, shift - HALF], [.4, shift + HALF], [.66, shift + HALF]]));
  lines(across(a, b, [[.55, shift - HALF + 1.5], [.55, shift + HALF - 1.5]]), 2.4);
  lines(across(a, b, [[.55, shift], [.94, shift], [.94, 0], [1, 0]]));
};
const shortest = x => {  // that it ever is
  const far = Array.from(T, (_, i) => {
    const [p, q] = x.bodies.map((k, side) => placed(poseAt(data.bodies[k].pose, i, i, 0), x.places[side]));
    return Math.hypot(...add(q, p, -1));
  });
  return far.filter(Number.isFinite).reduce((a, b) => Math.min(a, b), Infinity);
};
const drawActuator = (a, b, driven, part) => {  // a cylinder that is as long always, and a rod that comes out of it
  const end = .88 * part, tube = across(a, b, [[.08 * part, -HALF], [end, -HALF], [end, HALF], [.08 * part, HALF]]);
  lines(across(a, b, [[end, 0], [1, 0]]), 3);
  lines(across(a, b, [[0, 0], [.08 * part, 0]]), 3);
  ctx.beginPath(); tube.forEach((p, k) => k ? ctx.lineTo(...p) : ctx.moveTo(...p)); ctx.closePath();
  ctx.fillStyle = blend(paint.card, driven ? paint.accent : paint.soft, .25); ctx.fill();
  stroke(driven ? paint.accent : paint.soft, 1.5);
};
const drawSpiral = (p, x) => {  // a torsion spring around a joint
  const [u, v] = seen(p), r = symbol();
  ctx.beginPath();
  for (let k = 0; k <= 60; k++) {
    const a = 4 * Math.PI * k / 60, d = r + 3 + 9 * k / 60;
    ctx.lineTo(u + d * Math.cos(a), v - d * Math.sin(a));
  }
  stroke(paint.soft, x.kind === "damper" ? 2.6 : 1.3);
};
const drawTie = x => {
  const [p, q] = endsOf(x);
  if (x.turns) {
    if (x.kind !== "actuator") item(3.2, add(q, eye.out, .01 * size), () => drawSpiral(q, x));
    return;
  }
  item(x.seat ? .3 : 1.5, middle([p, q]), () => {
    const [a, b] = [seen(p), seen(q)], both = x.kind === "spring damper";
    if (x.kind === "rod") {
      ctx.lineCap = "round";
      polyline([p, q], paint.soft, 4);
      polyline([p, q], paint.card, 1.6);
      ctx.lineCap = "butt";
    } else if (x.kind === "drive" || x.kind === "actuator") {
      x.shortest = x.shortest ?? shortest(x);
      drawActuator(a, b, x.kind === "drive", x.seat ? .5 : Math.min(x.shortest / Math.hypot(...add(q, p, -1)), 1));
    } else {
      if (x.kind !== "damper") drawSpring(a, b, both ? -HALF - 1 : 0);
      if (x.kind !== "spring") drawDamper(a, b, both ? HALF + 2 : 0);
    }
    if (shown.names && !(shown.senses && x.push) && x.kind !== "rod") text(middle([p, q]), x.name, paint.soft, 10, -10, 550);
    if (x.seat) lines(across(a, b, [[0, -10], [0, 10]]), 2);
    for (const at of x.seat ? [q] : [p, q]) disc(at, 2.6, paint.card, paint.soft, 1.4);
  });
};
