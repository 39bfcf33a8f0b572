// Joints.

// slides: how far each goes, so that its rail is as long as it must be
for (const j of data.joints) if (["prismatic", "cylindrical", "screw", "pinslot"].includes(j.kind)) {
  let low = Infinity, high = -Infinity;
  for (let i = 0; i < T.length; i += Math.max(1, Math.floor(T.length / 300))) {
    const [A, B] = j.bodies.map(k => poseAt(data.bodies[k].pose, i, i, 0));
    const x = dot(add(placed(B, j.places[1]), placed(A, j.places[0]), -1), turned(A, j.axes[0]));
    low = Math.min(low, x);
    high = Math.max(high, x);
  }
  j.travel = [low, high];
}
const ring = (X, center, r, n = 48) => Array.from({ length: n }, (_, k) => {
  const a = 2 * Math.PI * k / n;
  return placed(X, add(center, [r * Math.cos(a), r * Math.sin(a), 0]));
});
let labels = {};
const wheels = (j, p, q) => {  // the pitch radii
  const d = Math.hypot(...add(q, p, -1));
  return j.radii || [Math.abs(d * j.ratio / (1 + j.ratio)), Math.abs(d / (1 + j.ratio))];
};
const drawRail = (j, p, along, r) => {
  const more = .06 * size, [a, b] = [add(p, along, j.travel[0] - more), add(p, along, j.travel[1] + more)];
  item(j.kind === "pinslot" ? 1.5 : 0, middle([a, b]), () => {
    if (j.kind === "pinslot") {
      ctx.lineCap = "round";
      polyline([a, b], paint.body(j.bodies[0]), 2 * r + 5);
      polyline([a, b], paint.card, 2 * r + 2);
      ctx.lineCap = "butt";
      return;
    }
    polyline([a, b], paint.body(j.bodies[0]), 1.6, j.kind === "prismatic" ? [] : [6, 4]);
    if (j.bodies[0] === 0 && data.planar && j.kind === "prismatic")
      hatch(a, b, along[0] < -.5 ? 1 : -1, paint.ground);
  });
};
const drawWheels = (j, X, Y, p, q, along) => {
  wheels(j, p, q).forEach((radius, side) => {
    if (!(radius > 0)) return;
    const Z = side ? Y : X, list = ring(Z, j.places[side], radius), color = paint.body(j.bodies[side]);
    item(side + 1, middle(list), () => {
      ctx.beginPath();
      trace(list, true);
      ctx.fillStyle = paint.bodyFill(j.bodies[side]);
      ctx.globalAlpha = .45;
      ctx.fill();
      ctx.globalAlpha = 1;
      stroke(color, 1.5, [5, 3]);
      polyline([list[0], list[24]], color, 1); polyline([list[12], list[36]], color, 1);
    });
  });
  const rack = [add(p, along, -.3 * size), add(p, along, .3 * size)];
  if (j.kind === "rack") item(1, p, () => polyline(rack, paint.body(j.bodies[0]), 1.6));
};
const drawSupport = (mark, r) => {  // of a joint to the ground
  const [x, y] = seen(mark), w = 1.9 * r, h = 2.7 * r;
  ctx.beginPath(); ctx.moveTo(x, y); ctx.lineTo(x - w, y + h); ctx.lineTo(x + w, y + h); ctx.closePath();
  ctx.fillStyle = blend(paint.card, paint.ground, .22);
  ctx.fill();
  ctx.lineJoin = "round";
  stroke(paint.ground, 1.4);
  ctx.beginPath(); ctx.moveTo(x - 1.6 * w, y + h); ctx.lineTo(x + 1.6 * w, y + h);
  for (let k = -3; k <= 3; k++) { ctx.moveTo(x + k * w / 2.1, y + h); ctx.lineTo(x + k * w / 2.1 - 4, y + h + 5) }
  stroke(paint.ground, 1.2);
};
const drawSymbol = (j, p, q, mark, along, r) => {
  const grounded = j.bodies.includes(0);
  if (!data.planar && ["revolute", "cylindrical", "screw"].includes(j.kind)) {
    const half = scaled(along, .03 * size);
    item(3, add(mark, eye.out, .01 * size), () => {
      ctx.lineCap = "round";
      polyline([add(mark, half, -1), add(mark, half)], paint.ink, 2 * r + 1);
      const inside = grounded ? blend(paint.card, paint.ground, .5) : paint.card;
      polyline([add(mark, half, -1), add(mark, half)], inside, 2 * r - 2);
      ctx.lineCap = "butt";
    });
  } else if (["revolute", "pinslot"].includes(j.kind)) {
    const layer = j.bodies.some(k => data.bodies[k].outlines.length) ? 3.5 : .5;
    if (grounded) item(layer, mark, () => drawSupport(mark, r));
    item(4, mark, () => disc(mark, r, paint.card, paint.ink));
  } else if (j.kind === "spherical" || j.kind === "universal") {
    item(4, add(mark, eye.out, .012 * size), () => {
      disc(mark, r + 1.5, paint.card, paint.ink);
      disc(mark, r - 1.5, paint.ink);
    });
  } else if (j.kind === "composite") {
    item(4, add(q, eye.out, .012 * size), () => disc(q, r, paint.card, paint.ink));
    item(4, add(p, eye.out, .012 * size), () => disc(p, r, paint.card, paint.ink));
  } else if (j.kind === "fixed") {
    item(4, mark, () => {
      const [x, y] = seen(mark);
      ctx.fillStyle = paint.ink;
      ctx.fillRect(x - r * .7, y - r * .7, 1.4 * r, 1.4 * r);
    });
  } else if (j.kind === "gear" || j.kind === "rolling") {
    item(4, p, () => disc(p, r * .7, paint.card, paint.ink)); item(4, q, () => disc(q, r * .7, paint.card, paint.ink));
  } else if (j.kind === "prismatic" && data.bodies[j.bodies[1]].outlines.length) {
    item(4, q, () => {
      const d = scaled(along, 1.1 * r / view.scale);
      polyline([add(q, d, -1), add(q, d)], paint.ink, 1.4);
      disc(q, 2, paint.ink);
    });
  }
};
const drawJointName = (j, p, mark, along) => {
  const at = j.travel ? add(p, along, j.travel[1] + .06 * size) : mark, place = seen(at).map(Math.round).join();
  const n = labels[place] = (labels[place] ?? -1) + 1;
  // where joints coincide, one above the other
  item(6, add(at, eye.out, size), () => text(at, j.name, paint.ink, 9, -11 - 13 * n, 600));
};
const drawJoint = j => {
  const [X, Y] = j.bodies.map(k => poses[k]), [p, q] = [placed(X, j.places[0]), placed(Y, j.places[1])], r = symbol();
  const along = unit(turned(X, j.axes[0]));
  const mark = j.bodies[0] === 0 && !j.travel ? p : q;
  if (j.travel) drawRail(j, p, along, r);
  if (["gear", "rolling", "rack"].includes(j.kind) && data.planar) drawWheels(j, X, Y, p, q, along);
  if (j.kind === "composite")
    item(1.5, middle([p, q]), () => polyline([p, q], paint.soft, 1.6, [4, 3]));
  drawSymbol(j, p, q, mark, along, r);
  if (shown.names && j.kind !== "planar" && j.kind !== "free") drawJointName(j, p, mark, along);
};
