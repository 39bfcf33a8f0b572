// What there is to show: the content of the page, unpacked: one motion, or several lanes to choose from.
const $ = id => document.getElementById(id), content = JSON.parse($("data").textContent);
const lanes = [content, ...content.lanes];
const KINDS = { float32: Float32Array, float64: Float64Array, uint8: Uint8Array, uint16: Uint16Array };
const unpack = x => {
  if (x === null) return null;
  if (Array.isArray(x)) return new Float64Array(x[0]).fill(x[1]);
  const bytes = Uint8Array.from(atob(x.bytes), c => c.charCodeAt(0)), found = new KINDS[x.kind](bytes.buffer);
  if (x.kind !== "uint16") return found;
  return Float32Array.from(found, v => v === 65535 ? NaN : x.low + (x.high - x.low) * v / 65534);
};
const three = p => p.length === 2 ? [p[0], p[1], 0] : p;
const rows = columns => Array.from(columns[0], (_, i) => three(columns.map(c => c[i])));
const opened = (body, planar) => {
  body.pose = body.pose.map(unpack);
  for (const o of body.outlines) {
    o.points = rows(o.points.map(unpack));
    o.area = o.points.reduce((sum, p, i) => {
      const q = o.points[(i + 1) % o.points.length];
      return sum + p[0] * q[1] - p[1] * q[0];
    }, 0) / 2;
    o.solid = o.closed && (o.area > 0 || !planar);
  }
  body.lines = body.lines.map(line => line.map(three));
  body.plate = body.plate && body.plate.map(three);
};
for (const lane of lanes) {
  lane.T = unpack(lane.t);
  for (const b of lane.bodies) {
    opened(b, lane.planar);
    b.points = b.points.map(([name, p]) => [name, three(p)]);
    b.block = b.block && b.block.map(three);
  }
  for (const v of lane.variants) { v.T = unpack(v.t); v.bodies.forEach(b => opened(b, lane.planar)) }
  for (const x of [...lane.joints, ...lane.ties]) {
    x.places = x.places.map(three);
    x.axes = x.axes && x.axes.map(three);
    x.push = x.push && unpack(x.push);
  }
  for (const d of lane.drivers) d.speed = unpack(d.speed);
  for (const c of [...lane.contacts, ...lane.reactions]) {
    c.on = unpack(c.on); c.force = unpack(c.force); c.before = unpack(c.before);
    c.point = rows(c.point.map(unpack)); c.normal = rows(c.normal.map(unpack));
    const f = c.friction;
    if (f) { f.force = unpack(f.force); f.before = unpack(f.before); f.sticks = unpack(f.sticks); f.along = rows(f.along.map(unpack)) }
  }
  for (const p of [...lane.panels, ...lane.more]) for (const l of p.lines) {
    l.y = unpack(l.y); l.band = l.band && l.band.map(unpack); l.before = unpack(l.before);
  }
}
for (const look of Object.values(content.looks)) {
  look.points = rows(look.points.map(unpack));
  look.faces = unpack(look.faces);
}
