// Vectors, poses, and interpolation between frames.
const add = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const scaled = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const unit = a => scaled(a, 1 / (Math.hypot(...a) || 1));
const mix = (a, b, s) => a + (b - a) * s;
const frameAt = (ts, t) => {  // the last frame that is not later
  let low = 0, high = ts.length - 1;
  while (low < high) { const middle = (low + high + 1) >> 1; if (ts[middle] <= t) low = middle; else high = middle - 1 }
  return low;
};
const between = (ts, t) => {
  const i = frameAt(ts, t), j = Math.min(i + 1, ts.length - 1), d = ts[j] - ts[i];
  return [i, j, d > 0 ? Math.min(Math.max((t - ts[i]) / d, 0), 1) : 0];
};
const poseAt = (c, i, j, s) => {  // a rotation matrix by rows, then the origin
  if (c.length === 3) {
    const a = mix(c[2][i], c[2][j], s), cos = Math.cos(a), sin = Math.sin(a);
    const R = [[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]];
    return { R, p: [mix(c[0][i], c[0][j], s), mix(c[1][i], c[1][j], s), 0] };
  }
  const e = [3, 4, 5, 6].map(k => c[k][i]), f = [3, 4, 5, 6].map(k => c[k][j]);
  const d = e.reduce((sum, x, k) => sum + x * f[k], 0);
  const sign = d < 0 ? -1 : 1, angle = Math.acos(Math.min(Math.abs(d), 1)), sine = Math.sin(angle);
  const u = sine < 1e-4 ? 1 - s : Math.sin((1 - s) * angle) / sine;
  const v = sign * (sine < 1e-4 ? s : Math.sin(s * angle) / sine);
  const q = e.map((x, k) => u * x + v * f[k]), n = Math.hypot(...q) || 1, [w, x, y, z] = q.map(a => a / n);
  return {
    R: [[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
      [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
      [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]],
    p: [0, 1, 2].map(k => mix(c[k][i], c[k][j], s)),
  };
};
const turned = (X, v) => [dot(X.R[0], v), dot(X.R[1], v), dot(X.R[2], v)];
const placed = (X, p) => add(turned(X, p), X.p);
