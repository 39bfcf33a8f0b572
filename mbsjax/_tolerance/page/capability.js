// What moments say of limits: as mbsjax.capability does it.

const SCORES = Float64Array.from({ length: 18001 }, (_, i) => -9 + i * (18 / 18000));
SCORES[18000] = 9;

// The expansion of Cornish and Fisher at the scores, cut where it would turn back.
function cornishFisher(s, kurtosis) {
  const k = kurtosis - 3, n = SCORES.length, middle = (n - 1) / 2, w = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const z = SCORES[i];
    w[i] = z + ((z * z - 1) * s) / 6 + ((z ** 3 - 3 * z) * k) / 24 - ((2 * z ** 3 - 5 * z) * s * s) / 36;
  }
  for (let i = middle + 1; i < n; i++) w[i] = Math.max(w[i], w[i - 1]);
  for (let i = middle - 1; i >= 0; i--) w[i] = Math.min(w[i], w[i + 1]);
  return w;
}

function interpolated(x, xs, ys) {
  const last = xs.length - 1;
  if (x <= xs[0]) return ys[0];
  if (x >= xs[last]) return ys[last];
  let low = 0, high = last; // xs[low] <= x < xs[high]
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle;
    else high = middle;
  }
  return ((ys[high] - ys[low]) / (xs[high] - xs[low])) * (x - xs[low]) + ys[low];
}

// The part of a distribution with these moments below x, as a function of x.
function distribution({ mean, std, skewness = 0, kurtosis = 3 }) {
  if (!(std > 0)) return (x) => (x === -Infinity ? 0 : x === Infinity ? 1 : Number(mean < x));
  if (skewness === 0 && kurtosis === 3) return (x) => ndtr((x - mean) / std);
  const w = cornishFisher(skewness, kurtosis);
  return (x) => (x === -Infinity ? 0 : x === Infinity ? 1 : ndtr(interpolated((x - mean) / std, w, SCORES)));
}

function capability(moments, lower, upper) {
  const { mean, std, skewness = 0, kurtosis = 3 } = moments, room = upper - lower;
  const mirrored = { mean: -mean, std, skewness: -skewness, kurtosis };
  const below = Number.isFinite(lower) ? distribution(moments)(lower) : 0;
  const above = Number.isFinite(upper) ? distribution(mirrored)(-upper) : 0;
  return {
    cp: Number.isFinite(room) ? room / (6 * std) : NaN,
    cpk: Math.min(upper - mean, mean - lower) / (3 * std),
    below, above, good: 1 - below - above,
  };
}
