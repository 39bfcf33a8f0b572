// The clock: playing, stepping, and going to a time or an event.
let now = start, playing = was.playing || false, speed = 1, loop = was.loop ?? true, last = 0, dirty = true, current = -2;
const jump = t => { now = Math.min(Math.max(+t || 0, start), finish); dirty = true };
const remember = () => {
  try { history.replaceState(null, "", "#t=" + now) } catch { /* in a frame without an address */ }
};
const seek = t => { jump(t); if (!playing) remember() };
const play = () => { if (now >= finish) jump(start); playing = true; dirty = true };
const pause = () => { if (playing) { playing = false; remember() } dirty = true };
const toggle = () => playing ? pause() : play();
const step = d => {
  pause();
  let i = frameAt(T, now);
  if (d > 0) i = Math.min(i + 1, T.length - 1);
  else while (i > 0 && T[i] >= now) i--;  // several frames may have one time
  seek(T[i]);
};
const nextEvent = d => {
  pause();
  const found = data.events.filter(e => d > 0 ? e.t > now + 1e-9 * span : e.t < now - 1e-9 * span);
  if (found.length) seek(found[d > 0 ? 0 : found.length - 1].t);
};
const fromHash = () => {
  const found = /[#&]t=([-+.\deE]+)/.exec(location.hash);
  if (found) { playing = false; jump(parseFloat(found[1])) }
};
const tick = time => {
  if (life.signal.aborted) return;
  if (playing) {
    now += Math.min((time - last) / 1000, .1) * speed;
    if (now >= finish) { if (loop) now = start; else { now = finish; pause() } }
    dirty = true;
  }
  last = time;
  if (dirty) { dirty = false; show() }
  requestAnimationFrame(tick);
};
