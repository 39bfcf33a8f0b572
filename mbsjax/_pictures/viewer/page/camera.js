// The camera: an orthographic view, of planar mechanisms from above.
const canvas = $("stage"), ctx = canvas.getContext("2d");
const view = was.view || { focus: [0, 0, 0], scale: 1, yaw: -.9, pitch: .42 };
let W = 1, H = 1, eye = {}, size = 1, poses = [];
const look = () => {
  if (data.planar) { eye = { right: [1, 0, 0], up: [0, 1, 0], out: [0, 0, 1] }; return }
  const { yaw, pitch } = view;
  const out = [Math.cos(pitch) * Math.cos(yaw), Math.cos(pitch) * Math.sin(yaw), Math.sin(pitch)];
  const right = [-Math.sin(yaw), Math.cos(yaw), 0];
  eye = { right, up: cross(out, right), out };
};
const seen = p => {
  const d = add(p, view.focus, -1);
  return [W / 2 + dot(eye.right, d) * view.scale, H / 2 - dot(eye.up, d) * view.scale];
};
const depth = p => dot(eye.out, p);
const reach = list => {
  const there = list.filter(Number.isFinite);
  return there.reduce((a, b) => Math.max(a, b), -Infinity) - there.reduce((a, b) => Math.min(a, b), Infinity) || 0;
};
const corners = faces => faces.filter((_, k) => k % Math.ceil(faces.length / 200) === 0).flatMap(face => face.corners);
const cloud = () => {  // points of all bodies at some of the frames
  const points = [], every = Math.max(1, Math.floor(T.length / 90));
  const gather = (bodies, i) => bodies.forEach((b, k) => {
    const X = poseAt(b.pose, i, i, 0);
    const thin = Math.max(1, Math.floor(b.outlines.reduce((n, o) => n + o.points.length, 0) / 60));
    const own = [
      ...b.outlines.flatMap(o => o.points.filter((_, m) => m % thin === 0)), ...b.lines.flat(), ...(b.plate || []),
      ...(meshes[k] && bodies === data.bodies ? corners(meshes[k]) : []),
      ...(b.points || []).map(p => p[1]), ...(b.block ? [b.block[0]] : []),
    ];
    for (const p of own) points.push(placed(X, p));
    if (bodies === data.bodies) for (const x of [...data.joints, ...data.ties]) x.bodies.forEach((body, side) => {
      if (body === k && x.kind !== "planar" && x.kind !== "free") points.push(placed(X, x.places[side]));
    });
  });
  for (let i = 0; i < T.length; i += every) {
    gather(data.bodies, i);
    for (const j of data.joints) if (["gear", "rolling", "rack"].includes(j.kind)) {
      const ends = j.bodies.map((k, side) => placed(poseAt(data.bodies[k].pose, i, i, 0), j.places[side]));
      wheels(j, ...ends).forEach((r, side) => points.push(add(ends[side], [r, r, 0]), add(ends[side], [-r, -r, 0])));
    }
  }
  gather(data.bodies, T.length - 1);
  const extent = Math.max(...[0, 1, 2].map(k => reach(points.map(p => p[k]))));
  for (const x of data.ties) if (x.seat)  // springs along a slide stand beyond its travel
    points.push(seatOf(x, poseAt(data.bodies[x.bodies[0]].pose, 0, 0, 0), extent));
  for (const v of variants) for (let k = 0; k < 6; k++) gather(v.bodies, Math.floor(k * (v.T.length - 1) / 5));
  return points.filter(p => p.every(Number.isFinite));
};
let points = null;
const measure = () => {  // how large everything is, seen from here
  points = points || cloud();
  const all = points.length ? points : [[0, 0, 0]];
  look();
  const range = axis => all.reduce(([a, b], p) => {
    const x = dot(axis, p);
    return [Math.min(a, x), Math.max(b, x)];
  }, [Infinity, -Infinity]);
  const ranges = [eye.right, eye.up, eye.out].map(range), widths = ranges.map(([a, b]) => b - a);
  size = Math.max(...widths) || 1;
  return [ranges, widths];
};
const fit = () => {
  const [ranges, widths] = measure();
  const center = ranges.map(([a, b]) => (a + b) / 2);
  view.focus = [eye.right, eye.up, eye.out].reduce((sum, axis, k) => add(sum, axis, center[k]), [0, 0, 0]);
  const edge = Math.min(64, W / 9, H / 7);
  view.scale = Math.min(...[W, H].map((x, k) => (x - 2 * edge) / Math.max(widths[k], .08 * size)));
  dirty = true;
};
const zoom = (factor, x = W / 2, y = H / 2) => {
  const before = view.scale, basis = 1 / size;
  view.scale = Math.min(Math.max(before * factor, 5 * basis), 2e5 * basis);
  const k = 1 / before - 1 / view.scale;
  view.focus = add(add(view.focus, eye.right, (x - W / 2) * k), eye.up, -(y - H / 2) * k);
  dirty = true;
};
const pan = (dx, dy) => {
  view.focus = add(add(view.focus, eye.right, -dx / view.scale), eye.up, dy / view.scale);
  dirty = true;
};
const turn = (dx, dy) => {
  view.yaw -= dx * .008;
  view.pitch = Math.min(Math.max(view.pitch + dy * .008, -1.57), 1.57);
  look();
  dirty = true;
};
