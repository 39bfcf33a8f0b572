// The lane that is shown: its times, and what ends with it when another is chosen.
const life = new AbortController();
const on = (target, kind, act, options = {}) => target.addEventListener(kind, act, { signal: life.signal, ...options });
const T = data.T, start = T[0], finish = T[T.length - 1], span = finish - start || 1;
const variants = data.ghosts ? lanes.filter(lane => lane !== data) : data.variants;
// frames of events, with the numbers of their values before them
const eventAt = new Map(data.events.filter(e => e.kind !== "bifurcation").map((e, i) => [e.frame, i]));
for (const id of ["marks", "events", "speed"]) $(id).replaceChildren();
document.querySelector(".legend").replaceChildren();
document.querySelectorAll(".plot").forEach(x => x.remove());
