// The controls, the list of events, and what keys and the pointer do.
const ICONS = { play: "M4 2.5v11l9-5.5z", pause: "M4 2.5h3v11H4zM9 2.5h3v11H9z" };
const places = Math.max(0, Math.min(9, Math.ceil(Math.log10(20000 / span))));
const clean = t => number(+t.toFixed(places), 9);  // event times, as many digits as tell them apart
const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(5000 / span))));
const clockWords = () => `t = ${now.toFixed(digits)}${data.time_unit ? " " + data.time_unit : ""}`;
let icon = "";
const show = () => {
  drawStage(); plots.forEach(drawCursor);
  const done = (now - start) / span;
  $("slider").value = now; $("slider").style.setProperty("--done", `calc(7px + (100% - 14px) * ${done})`);
  $("clock").textContent = clockWords() + " ";
  const of = document.createElement("small"); of.textContent = `/ ${number(finish, 5)}`; $("clock").append(of);
  const wanted = playing ? "pause" : "play";
  if (icon !== wanted) {
    icon = wanted;
    $("play").querySelector("path").setAttribute("d", ICONS[icon]);
    $("play").setAttribute("aria-label", icon);
  }
  let k = -1; data.events.forEach((e, i) => { if (e.t <= now + 1e-9 * span) k = i });
  if (k !== current) {
    current = k;
    for (const list of [$("events").children, $("marks").children]) [...list].forEach((x, i) => {
      const button = x.tagName === "LI" ? x.firstChild : x;
      if (i === k) button.setAttribute("aria-current", "true"); else button.removeAttribute("aria-current");
    });
    const li = $("events").children[k], box = $("events");
    const beyond = li && li.offsetTop + li.offsetHeight > box.scrollTop + box.clientHeight;
    if (li && (beyond || li.offsetTop < box.scrollTop)) box.scrollTop = li.offsetTop - box.clientHeight / 2;
  }
};
const impulseWords = e => {
  const own = e.impulses.reduce((sum, x) => Math.hypot(sum, x[1], x[2]), 0);
  return own ? ` (impulse ${told("impulse", own)})` : "";
};
const tip = (words, x, y) => {
  $("tip").hidden = !words; if (!words) return;
  $("tip").textContent = words; const r = $("tip").getBoundingClientRect();
  $("tip").style.left = Math.min(Math.max(x - r.width / 2, 6), innerWidth - r.width - 6) + "px";
  $("tip").style.top = (y - r.height - 8) + "px";
};
data.events.forEach((e, i) => {
  const mark = document.createElement("button"), li = document.createElement("li");
  const row = document.createElement("button");
  mark.style.left = 100 * (e.t - start) / span + "%"; mark.setAttribute("aria-label", e.text); mark.tabIndex = -1;
  on(mark, "pointerenter", () => {
    const r = mark.getBoundingClientRect();
    tip(e.text, r.left + r.width / 2, r.top);
  });
  on(mark, "pointerleave", () => tip(""));
  const dot = document.createElement("i"), when = document.createElement("b"), what = document.createElement("span");
  when.textContent = clean(e.t);
  what.textContent = e.words + impulseWords(e);
  row.title = e.text;
  row.append(dot, when, what);
  li.append(row);
  for (const x of [mark, row]) {
    x.dataset.kind = e.kind;
    x.dataset.event = i;
    on(x, "click", () => { pause(); seek(e.t) });
  }
  $("marks").append(mark); $("events").append(li);
});
document.querySelector("h1").textContent = content.title;
const count = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
document.querySelector("header p").textContent = [
  data.kind,
  data.planar ? "planar" : "spatial",
  T.length > 1 ? count(data.outputs, "output") : "",
  data.events.length ? count(data.events.length, "event") : "",
  variants.length ? count(variants.length, data.ghosts ? "further lane" : "variant") : "",
  content.idle ? `${count(content.idle, "variant")} without motion` : "",
].filter(Boolean).join(" · ");
document.querySelector(".end").hidden = !data.end;
if (data.end) {
  const p = document.querySelector(".end");
  const when = data.end.t === null ? "early" : `at t = ${number(data.end.t, 9)} of ${number(data.until, 6)}`;
  p.textContent = `Ended ${when}. ${data.end.why}`;
}
document.querySelector("aside").hidden = !data.events.length;
document.querySelector("main").classList.toggle("plain", !data.events.length);
document.querySelector(".transport").hidden = T.length < 2;
data.bodies.forEach((b, k) => {
  if (!k) return;
  const chip = document.createElement("span"), dot = document.createElement("i");
  dot.dataset.body = k;
  chip.append(dot, b.name);
  document.querySelector(".legend").append(chip);
});
$("slider").min = start; $("slider").max = finish;
on($("slider"), "input", e => seek(e.target.value));
const natural = span >= 3 && span <= 60 ? 1 : nice(span / 8);
for (const f of [.05, .1, .25, .5, 1, 2, 5, 10])
  $("speed").append(new Option(`${number(f * natural, 3)}×`, f * natural, f === 1, f === 1));
speed = was.speed || natural;
$("speed").value = speed;
on($("speed"), "change", e => { speed = +e.target.value });
on($("play"), "click", toggle);
const press = (id, value) => $(id).setAttribute("aria-pressed", value);
on($("loop"), "click", () => { loop = !loop; press("loop", loop) });
for (const id of ["ghosts", "paths", "names", "senses"]) press(id, shown[id]);
press("loop", loop);
for (const id of ["ghosts", "paths", "names", "senses"]) on($(id), "click", () => {
  shown[id] = !shown[id];
  press(id, shown[id]);
  dirty = true;
});
$("ghosts").hidden = !variants.length; $("paths").hidden = !paths.length || T.length < 2;
on($("fit"), "click", fit);
if (!data.planar) $("drags").textContent = "drag: turn   shift + drag: move";

const held = new Map();
on(canvas, "pointerdown", e => {
  canvas.setPointerCapture(e.pointerId);
  held.set(e.pointerId, [e.clientX, e.clientY]);
});
on(canvas, "pointermove", e => {
  const before = held.get(e.pointerId); if (!before) return;
  const dx = e.clientX - before[0], dy = e.clientY - before[1];
  if (held.size === 2) {
    const [other] = [...held].filter(([id]) => id !== e.pointerId).map(x => x[1]);
    const r = canvas.getBoundingClientRect(), apart = p => Math.hypot(p[0] - other[0], p[1] - other[1]);
    zoom(apart([e.clientX, e.clientY]) / (apart(before) || 1), other[0] - r.left, other[1] - r.top);
    if (!data.planar) pan(dx / 2, dy / 2);
  } else if (data.planar || e.shiftKey || e.buttons & 6) pan(dx, dy); else turn(dx, dy);
  held.set(e.pointerId, [e.clientX, e.clientY]);
});
for (const kind of ["pointerup", "pointercancel"]) on(canvas, kind, e => held.delete(e.pointerId));
on(canvas, "wheel", e => {
  e.preventDefault();
  const r = canvas.getBoundingClientRect();
  zoom(Math.exp(-e.deltaY * (e.deltaMode ? .05 : .0015)), e.clientX - r.left, e.clientY - r.top);
}, { passive: false });
on(canvas, "dblclick", fit);
on(canvas, "contextmenu", e => e.preventDefault());
on(document, "keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.target.tagName === "SELECT" || e.target.id === "over") return;
  const actions = {
    " ": () => e.target.tagName === "BUTTON" && e.target.id !== "play" ? false : toggle(),
    ArrowLeft: () => e.shiftKey ? nextEvent(-1) : step(-1),
    ArrowRight: () => e.shiftKey ? nextEvent(1) : step(1),
    Home: () => seek(start),
    End: () => seek(finish),
    f: fit,
    l: () => $("loop").click(),
    "+": () => zoom(1.25),
    "-": () => zoom(.8),
  };
  if (actions[e.key] && actions[e.key]() !== false) e.preventDefault();
});
on(window, "hashchange", fromHash);
on(scheme, "change", () => { restyle(); plots.forEach(drawPlot); dirty = true });
let fitted = "view" in was;
const [, [wide, tall]] = measure();  // narrow pages have a stage as high as the mechanism needs it
document.documentElement.style.setProperty("--tall", Math.round(100 * tall / Math.max(wide, .01 * size)));
const resize = () => {
  const ratio = Math.min(devicePixelRatio || 1, 3); W = canvas.clientWidth || 1; H = canvas.clientHeight || 1;
  canvas.width = Math.round(W * ratio); canvas.height = Math.round(H * ratio);
  if (!fitted) { fit(); fitted = W > 1 } else if (!points) measure();
  plots.forEach(drawPlot); dirty = false; show();
};
openPlots();
restyle(); look(); fromHash();
if ("now" in was) jump(was.now);
const observer = new ResizeObserver(resize);
observer.observe(canvas);
resize(); requestAnimationFrame(t => { last = t; tick(t) });

// for pages that embed this one, and for tests
window.mbsjax = {
  state: () => {
    const active = data.contacts.filter(c => c.on[frameAt(T, now)]).map(c => c.name);
    return { t: now, playing, speed, loop, view: structuredClone(view), event: current, active, lane };
  },
  choose,
  jump: t => { seek(t); dirty = false; show() }, play, pause, fit,
  project: (body, p) => seen(placed(poses[data.bodies.findIndex(b => b.name === body)], three(p))),
  color: body => {
    const k = data.bodies.findIndex(b => b.name === body);
    return { line: paint.body(k), fill: paint.bodyFill(k) }
  },
};
return {
  leave: () => {  // what the next lane goes on with
    life.abort();
    observer.disconnect();
    return { now, playing, speed, loop, view, shown, chosen: plots.map(p => [p.key, p.over]) };
  },
};
