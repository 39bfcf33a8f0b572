// Colors of bodies and events in light and dark pages, and how numbers are written.
const LIGHT = ["#3569b0", "#d07a1f", "#2f8f5b", "#b03a6f", "#7257ad", "#856339", "#1f8a99", "#8a8a1e"];
const DARK = ["#6fa3ef", "#f0a457", "#63c48d", "#e67fab", "#a993ea", "#c4a27a", "#5cc3d2", "#c9c95c"];
const EVENTS = {
  closed: ["#1a7f4b", "#4fc98a"], impact: ["#d1242f", "#ff7b72"], released: ["#2f6fde", "#79b0ff"],
  transition: ["#8b94a3", "#8b949e"], shifted: ["#7a57c9", "#b79bff"], deleted: ["#9a6700", "#e0b04a"],
  jammed: ["#8f0f1c", "#ff4d57"], switched: ["#0f8a94", "#4fc7d1"], triggered: ["#bf6a02", "#f0a13c"],
  bifurcation: ["#b1339b", "#f07ad9"],
  sticks: ["#3d4450", "#c4ccd6"], slips: ["#c77700", "#ffb84d"], reverses: ["#b5541c", "#ff9a66"],
};
const scheme = matchMedia("(prefers-color-scheme: dark)");
let paint = {};
const restyle = () => {
  const style = getComputedStyle(document.documentElement), dark = scheme.matches ? 1 : 0;
  for (const name of ["card", "ink", "soft", "rule", "grid", "accent", "force", "ground"])
    paint[name] = style.getPropertyValue("--" + name).trim();
  paint.kind = kind => (EVENTS[kind] || ["#8b94a3", "#8b949e"])[dark];
  paint.body = i => i === 0 ? paint.ground : (dark ? DARK : LIGHT)[(i - 1) % LIGHT.length];
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
