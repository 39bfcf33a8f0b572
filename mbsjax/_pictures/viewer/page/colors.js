// Colors of bodies and events in light and dark pages, and how numbers are written.
const scheme = matchMedia("(prefers-color-scheme: dark)");
let paint = {};
const restyle = () => {
  const style = getComputedStyle(document.documentElement), dark = scheme.matches ? 1 : 0;
  for (const name of ["card", "ink", "soft", "rule", "grid", "accent", "ground"])
    paint[name] = style.getPropertyValue("--" + name).trim();
  const tint = color => !dark ? color : color === COLORS.ink ? paint.ink : blend(color, "#ffffff", .35);
  paint.force = tint(COLORS.force);
  document.documentElement.style.setProperty("--force", paint.force);
  paint.kind = kind => tint(COLORS.events[kind] || COLORS.soft);
  paint.body = i => i === 0 ? paint.ground : tint(COLORS.bodies[(i - 1) % COLORS.bodies.length]);
  paint.bodyFill = i => blend(paint.card, paint.body(i), dark ? .34 : .26);
  for (const x of document.querySelectorAll("[data-kind]")) x.style.setProperty("--kind", paint.kind(x.dataset.kind));
  for (const x of document.querySelectorAll("[data-body]")) x.style.background = paint.body(+x.dataset.body);
};
const blend = (a, b, s) => {
  const [p, q] = [a, b].map(c => [1, 3, 5].map(k => parseInt(c.slice(k, k + 2), 16)));
  return "#" + p.map((x, k) => Math.round(mix(x, q[k], s)).toString(16).padStart(2, "0")).join("");
};
const number = (x, digits = 4) => {
  if (!Number.isFinite(x)) return "–";
  const plain = x === 0 || (Math.abs(x) < 1e6 && Math.abs(x) >= 1e-4);
  return plain ? String(+x.toPrecision(digits)) : x.toExponential(2);
};
