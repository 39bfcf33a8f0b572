// A study as it is in the page: what was changed, and what follows from that by the derivatives at the mean dimensions.

const data = JSON.parse(document.getElementById("data").textContent);
const numbers = (text) => new Float64Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
const VALUES = numbers(data.values), SLOPES = numbers(data.slopes), CORRELATION = numbers(data.correlation);
const NOMINAL_VALUES = numbers(data.nominal_values), NOMINAL = numbers(data.nominal);
const LIMITS = { lower: numbers(data.lower), upper: numbers(data.upper) };
const CURVATURES = data.curvatures === null ? null : numbers(data.curvatures);
const D = data.dimensions.length, M = VALUES.length;
const CURVED = new Map(data.curved.map((k, at) => [k, at]));
const MEASURE_OF = new Int32Array(M);
data.measures.forEach((m, j) => MEASURE_OF.fill(j, m.start, m.start + m.count));
for (const group of data.groups) group.products = numbers(group.products);

// What can be changed. A sigma that is null follows the tolerance.
const initial = () => ({
  groups: data.groups.map(({ lower, upper, shift }) => ({ lower, upper, shift, sigma: null })),
  limits: data.measures.map(() => ({ lower: null, upper: null })), // null: as it was
});
let edits = initial();

// Where a dimension lies: deviations from nominal.
function spread(group, { lower, upper, shift, sigma }) {
  const widened = (group.scale * (upper - lower)) / (group.upper - group.lower);
  const scale = sigma === null ? widened : sigma / group.std;
  const anchor = group.one_sided ? lower : (lower + upper) / 2;
  const mean = anchor - scale * group.center + shift + scale * group.mean;
  return { lower, upper, mean, std: scale * group.std };
}

// All dimensions, one number each: means and their changes, deviations, halves and middles of the tolerances.
function dimensions(edits) {
  const found = { std: [], moved: [], half: [], aside: [], alone: [], products: [] };
  data.groups.forEach((group, at) => {
    const was = spread(group, group0(at)), now = spread(group, edits.groups[at]);
    for (let i = 0; i < group.count; i++) {
      found.std.push(now.std);
      found.moved.push(now.mean - was.mean);
      found.half.push((now.upper - now.lower) / 2);
      found.aside.push((now.lower + now.upper) / 2 - now.mean);
      found.alone.push(group.alone[i]);
      found.products.push(group.products);
    }
  });
  return found;
}
const group0 = (at) => ({ ...data.groups[at], sigma: null });

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const matrix = (f) => Array.from({ length: D }, (_, i) => Float64Array.from({ length: D }, (_, j) => f(i, j)));
const times = (A, x) => A.map((row) => dot(row, x));
const product = (A, B) => matrix((i, j) => A[i].reduce((sum, a, k) => sum + a * B[k][j], 0));
const trace = (A, B) => A.reduce((sum, row, i) => sum + row.reduce((s, a, j) => s + a * B[j][i], 0), 0);

const limitsOf = (k, edits) => {
  const given = edits.limits[MEASURE_OF[k]];
  return [given.lower ?? LIMITS.lower[k], given.upper ?? LIMITS.upper[k]];
};

// One value: sums over its tolerances, and its moments and yield at first and second order.
function expanded(k, dims, covariance, edits) {
  const g = SLOPES.subarray(k * D, (k + 1) * D), v = times(covariance, g), [lower, upper] = limitsOf(k, edits);
  const mean = VALUES[k] + dot(g, dims.moved), variance = dot(g, v), std = Math.sqrt(variance);
  const reach = Array.from(g, (x, i) => Math.abs(x) * dims.half[i]);
  for (const { start, count } of data.groups.filter((group) => group.round)) { // a circle reaches along the slopes
    const size = Math.hypot(...g.subarray(start, start + count));
    for (let i = start; i < start + count; i++) reach[i] *= size > 0 ? Math.abs(g[i]) / size : 0;
  }
  const worst = reach.reduce((a, b) => a + b, 0), rss = Math.sqrt(dot(reach, reach));
  const mrss = D === 1 ? rss : rss + (worst - rss) / (2 * (Math.sqrt(D) - 1)), middle = mean + dot(g, dims.aside);
  const found = {
    at: k, nominal: NOMINAL_VALUES[k], lower, upper, middle, worst, rss, mrss, reach, slopes: g,
    worst_lower: middle - worst, worst_upper: middle + worst, rss_lower: middle - rss, rss_upper: middle + rss,
    part: Array.from(g, (x, i) => (variance > 0 ? (x * v[i]) / variance : 0)),
    first: { mean, std, ...capability({ mean, std }, lower, upper) },
    second: null, mean_shift: null,
  };
  if (CURVED.has(k)) {
    const H = curvature(k), moments = secondMoments(k, H, dims, covariance);
    found.second = { ...moments, ...capability(moments, lower, upper) };
    found.mean_shift = dims.std.map((s, i) => (H[i][i] * s * s) / 2);
  }
  return found;
}

function curvature(k) {
  const start = CURVED.get(k) * D * D;
  return matrix((i, j) => CURVATURES[start + i * D + j]);
}

// Cumulants of the polynomial as if all dimensions were normal, then the own difference to that of each dimension that
// is not correlated with others: as mbsjax.second_order does it. Where means have moved, the polynomial is taken there.
function secondMoments(k, H, dims, covariance) {
  const bent = times(H, dims.moved), g = Array.from(SLOPES.subarray(k * D, (k + 1) * D), (x, i) => x + bent[i]);
  const base = VALUES[k] + dot(SLOPES.subarray(k * D, (k + 1) * D), dims.moved) + dot(bent, dims.moved) / 2;
  const v = times(covariance, g), half = times(H, v).map((x) => x / 2);
  const A = product(H, covariance).map((row) => row.map((x) => x / 2)), A2 = product(A, A);
  const identity = matrix((i, j) => Number(i === j));
  const total = [
    trace(A, identity), 2 * trace(A, A) + dot(g, v), 8 * trace(A2, A) + 6 * dot(v, half),
    48 * trace(A2, A2) + 48 * dot(half, times(covariance, half)),
  ];
  for (let i = 0; i < D; i++) {
    if (!dims.alone[i]) continue;
    const b = g[i] * dims.std[i], c = (H[i][i] * dims.std[i] ** 2) / 2, own = cumulants(b, c, dims.products[i]);
    const normal = [c, 2 * c * c + b * b, 8 * c ** 3 + 6 * b * b * c, 48 * c ** 4 + 48 * b * b * c * c];
    own.forEach((x, n) => (total[n] += x - normal[n]));
  }
  const [mean, variance, third, fourth] = total, safe = variance > 0 ? variance : 1;
  return {
    mean: base + mean, std: Math.sqrt(variance), skewness: third / safe ** 1.5, kurtosis: 3 + fourth / safe ** 2,
  };
}

// Of b x + c x^2, from the products of a standardized variate x.
function cumulants(b, c, [first, second, ...p]) {
  const [two, three, four] = [[1, 2, 1], [1, 3, 3, 1], [1, 4, 6, 4, 1]].map((binomial, n) => {
    const start = [0, 3, 7][n], power = n + 2;
    return binomial.reduce((sum, x, j) => sum + x * b ** j * c ** (power - j) * p[start + j], 0);
  });
  return [b * first + c * second, two, three, four - 3 * two * two];
}

// Everything that follows from the edits: all values, of each measure the one that stands for it, all groups.
function computed(edits) {
  const dims = dimensions(edits), covariance = matrix((i, j) => dims.std[i] * CORRELATION[i * D + j] * dims.std[j]);
  const values = Array.from({ length: M }, (_, k) => expanded(k, dims, covariance, edits));
  const measures = data.measures.map((m) => worstPlace(values.slice(m.start, m.start + m.count)));
  const groups = data.groups.map((group, at) => {
    const parts = measures.map((m) => m.part.slice(group.start, group.start + group.count).reduce((a, b) => a + b, 0));
    const largest = Math.max(...parts);
    return { ...spread(group, edits.groups[at]), parts, largest, of: data.measures[parts.indexOf(largest)].name };
  });
  const order = groups.map((_, i) => i).sort((a, b) => groups[b].largest - groups[a].largest);
  order.forEach((at, i) => (groups[at].rank = i + 1));
  return { values, measures, groups, dims };
}

const best = (value) => value.second ?? value.first;

function worstPlace(values) {
  if (values.length === 1) return values[0];
  const limited = values.some((v) => Number.isFinite(best(v).cpk));
  const before = (a, b) => {
    if (!limited) return b.first.std - a.first.std;
    return best(a).good - best(b).good || best(a).cpk - best(b).cpk;
  };
  return values.reduce((least, v) => (before(v, least) < 0 ? v : least));
}

// How far the page is from what was found before anything was changed: the largest difference of each measure.
function differences(base) {
  const told = Object.fromEntries(Object.entries(data.check).map(([name, text]) => [name, numbers(text)]));
  const apart = (a, b, size) => (Number.isNaN(a) && Number.isNaN(b) ? 0 : Math.abs(a - b) / size);
  const found = new Float64Array(data.measures.length);
  base.values.forEach((v, k) => {
    const size = Math.max(told.std[k], 1e-12 * Math.abs(VALUES[k]), 1e-300), n = CURVED.get(k);
    let most = Math.max(...["middle", "worst", "rss"].map((x) => apart(v[x], told[x][k], size)),
      apart(v.first.std, told.std[k], size), apart(v.first.good, told.good[k], 1));
    if (v.second !== null) {
      most = Math.max(most, apart(v.second.mean, told.mean2[n], size), apart(v.second.std, told.std2[n], size),
        ...["skewness", "kurtosis", "good"].map((x) => apart(v.second[x], told[`${x}2`][n], 1)));
    }
    if (!(most <= found[MEASURE_OF[k]])) found[MEASURE_OF[k]] = most;
  });
  return found;
}
