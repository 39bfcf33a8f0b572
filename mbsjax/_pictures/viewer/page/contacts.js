// Contacts with their forces, reactions of joints at rest, and events that have just happened.
// forces are drawn to scale; a twentieth of them exceeds the one that has the full length
const pressed = [...data.contacts, ...data.reactions];
const forces = pressed.flatMap(c => c.force ? Array.from(c.force).filter(f => f > 0) : []).sort((a, b) => a - b);
const largest = forces.length ? forces[Math.floor(.95 * (forces.length - 1))] : 1;
const told = (kind, x) => {  // a number with its unit
  const [factor, unit] = data.shown[kind];
  return number(factor * x, 3) + (unit ? " " + unit : "");
};
const drawArrow = (p, e, color, width, head) => {  // from one place to another; returns its length and direction
  const [x, y] = seen(p), [u, v] = seen(e), flat = Math.hypot(u - x, v - y);
  const d = [(u - x) / (flat || 1), (v - y) / (flat || 1)];
  if (flat > head) {
    ctx.beginPath();
    ctx.moveTo(x, y);
    ctx.lineTo(u - d[0] * head * .8, v - d[1] * head * .8);
    stroke(color, width);
    ctx.beginPath();
    ctx.moveTo(u, v);
    for (const m of [-.45, .45]) ctx.lineTo(u - (d[0] + m * d[1]) * head, v - (d[1] - m * d[0]) * head);
    ctx.fillStyle = color; ctx.fill();
  }
  return [flat, d];
};
const long = force => Math.min(Math.abs(force) / largest, 1.5) * Math.min(80, H / 5) / view.scale;
const drawContact = (c, i, j, s) => {
  if (!c.on[i] || !c.point[i].every(Number.isFinite)) return;
  const event = eventAt.get(j), whole = (c.on[j] || event !== undefined) && c.point[j].every(Number.isFinite);
  const k = whole ? s : 0;
  const p = c.point[i].map((x, m) => mix(x, c.point[whole ? j : i][m], k));
  const n = unit(c.normal[i].map((x, m) => mix(x, c.normal[whole ? j : i][m], k)));
  const between = x => mix(x.force[i], event === undefined ? x.force[j] : x.before[event], k);
  const force = c.force && between(c);
  item(5, add(p, eye.out, size), () => {
    const e = add(p, n, force === null ? 30 / view.scale : long(force)), head = force === null ? 5 : 8;
    const [flat, d] = drawArrow(p, e, paint.force, force === null ? 1.4 : 2.4, head);
    const f = c.friction;
    if (f) {
      const rubs = between(f);
      drawArrow(p, add(p, f.along[i], Math.sign(rubs) * long(rubs)), paint.kind(f.sticks[i] ? "sticks" : "slips"), 2.4, 8);
    }
    disc(p, 3.6, paint.force, paint.card, 1.4);
    const words = [shown.names ? c.name : "", force === null ? "" : told("force", force)].filter(Boolean).join(": ");
    if (words) text(flat > head ? e : p, words, paint.force, d[0] < -.3 ? -8 : 8, -7, 600);
  });
};
const impulses = data.events.flatMap(e => e.impulses.map(x => Math.hypot(x[1], x[2])));
const strongest = Math.max(...impulses, 1e-300);
const drawImpulse = (c, frame, normal, along, strength) => {
  const p = c.point[frame];
  if (!p.every(Number.isFinite)) return;
  item(6, add(p, eye.out, size), () => {
    const far = Math.min(110, H / 4) / view.scale / strongest, impact = paint.kind("impact");
    let e = add(p, c.normal[frame], normal * far);
    if (c.friction) e = add(e, c.friction.along[frame], along * far);
    ctx.globalAlpha = Math.max(strength, .05);
    const [flat, d] = drawArrow(p, e, impact, 5, 14);
    const words = told("impulse", Math.hypot(normal, along));
    text(flat > 14 ? e : p, words, impact, d[0] < -.3 ? -8 : 8, -12, 650);
    ctx.globalAlpha = 1;
  });
};
const drawFlash = e => {  // an event that has just happened: a ring, and the impulses of an impact, which fade
  const c = data.contacts.find(c => c.name === e.name);
  const lasts = Math.min(.5 * speed, .08 * span), age = (now - e.t) / lasts;
  if (!c || now < e.t - 1e-12 * span || age > 1) return;
  for (const [k, normal, along] of e.impulses) drawImpulse(data.contacts[k], e.frame, normal, along, 1 - age);
  const p = c.point[e.frame];
  if (!p.every(Number.isFinite)) return;
  item(6, add(p, eye.out, size), () => {
    const [x, y] = seen(p), grown = Math.max(age, .15);
    ctx.globalAlpha = 1 - .8 * grown;
    ctx.beginPath();
    ctx.arc(x, y, 6 + 14 * grown, 0, 7);
    stroke(paint.kind(e.kind), 2.2);
    ctx.globalAlpha = 1;
  });
};
