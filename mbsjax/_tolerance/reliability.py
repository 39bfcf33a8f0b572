"""Probabilities of breaking limits, from a few per cent to a few in a billion, each found in two independent ways."""

from collections.abc import Sequence

import equinox as eqx
import numpy as np
import scipy

from .._programs.reprs import brief, has_numbers, head
from .design_points import DesignPoint, Found, Limit, design_points, limits_of, search, spread, states
from .evaluate import CHUNK
from .sampler import counts
from .study import Study
from .subset import Rare, Walk, subset, values_at


class LimitReliability(eqx.Module):
    """How likely one limit is broken.

    - `value`, `side`: which one; of a row of values along a stroke, it is broken where one of them breaks it.
    - `probability`, `error`: to be believed, if `trusted`, with its standard error; `method` says how it was found,
        `why` why it is believed, or not.
    - `points`: the design points, the nearest first.
    - `form`: their probabilities, summed, for limits that are planes. `breitung`, `hohenbichler`: with the curvature of
        the limits there (second-order reliability method); NaN at a kink, or where limits bend too much.
    - `importance`: from samples about the design points; `subset`: from subset simulation, which does not know them.
    """

    value: str = eqx.field(static=True)
    side: str = eqx.field(static=True)
    probability: np.float64
    error: np.float64
    trusted: np.bool_
    method: str = eqx.field(static=True)
    why: str = eqx.field(static=True)
    points: tuple[DesignPoint, ...]
    form: np.float64
    breitung: np.float64
    hohenbichler: np.float64
    importance: Rare
    subset: Rare

    def __repr__(self) -> str:
        if not has_numbers(self.probability) or np.ndim(self.probability):
            return brief(self, self.value, side=self.side, probability=self.probability, error=self.error)
        doubt = "" if self.trusted else "  NOT TRUSTED"
        told = f"{self.value}, {self.side} limit: {self.probability:.4g} +- {self.error:.2g}, {self.method}{doubt}"
        return f"{told} ({self.why})"


class Reliability(eqx.Module):
    """What [`mbsjax.reliability`][] found.

    - `limits`: one [`mbsjax.LimitReliability`][] for each limit.
    - `reject`: the probability that any limit is broken, or that there is no value, with its standard error.
    - `trusted`: whether all of it is.
    """

    limits: tuple[LimitReliability, ...]
    reject: Rare

    @property
    def good(self) -> float:
        """The yield: the part that keeps all limits."""
        return float(1 - self.reject.probability)

    @property
    def trusted(self) -> bool:
        return bool(all(x.trusted for x in self.limits))

    def of(self, name: str) -> tuple[LimitReliability, ...]:
        """The limits of a measure."""
        found = tuple(x for x in self.limits if x.value == name)
        if not found:
            known = ", ".join(dict.fromkeys(x.value for x in self.limits)) or "none"
            raise KeyError(f"there is no limit of {name!r}; there are limits of {known}")
        return found

    def __repr__(self) -> str:
        if not has_numbers(self.reject) or np.ndim(self.reject.probability):
            return brief(self, reject=self.reject, limits=[x.value for x in self.limits])
        lines = [f"Reliability: {1e6 * self.reject.probability:.5g} +- {1e6 * self.reject.error:.2g} ppm rejects"]
        return head("\n".join([*lines, *(f"  {x!r}" for x in self.limits)]))


def reliability(
    study: Study, n: int = 8192, *, starts: int = 8, check: bool = True, seed: int = 0, chunk: int = CHUNK
) -> Reliability:
    """How likely each limit of a study is broken, and any of them.

    Subset simulation (Au and Beck) walks out to each limit, wherever it is broken. From where it arrives, and from
    other starts, the design points are searched ([`mbsjax.form`][]), as many as there are. Importance sampling from the
    mixture of normal distributions about all of them then gives the probability, with a standard error. Both estimates
    must agree: where they do not, the result says so and is not `trusted`.

    **Arguments:**

    - `study`: with limits; a sample without a value breaks all of them.
    - `n`: samples of the mixture. The check takes 2048 plain samples; for limits that fewer than one in a hundred of
        them break, it is subset simulation with four times as many for each factor of ten.
    - `starts`: of the search for design points, beside those from subset simulation.
    - `check`: without it there is no subset simulation, and no result is `trusted`.
    - `seed`, `chunk`: as in [`mbsjax.monte_carlo`][].

    !!! Example

        Both sides of x^2 > 25 count, though a search from the middle finds one of them.

        >>> import mbsjax as mbs
        >>> normal = mbs.Normal(sigma=1.0)
        >>> bent = mbs.Study(lambda p: p, {"x": 0.0, "z": 0.0}, {"x": normal, "z": normal},
        ...                  {"y": lambda p: p["x"] ** 2 + 0.01 * p["z"]}, limits={"y": (None, 25.0)})
        >>> found = mbs.reliability(bent).limits[0]
        >>> bool(found.trusted), bool(abs(found.probability - 5.73e-7) < 3 * found.error < 1e-7)
        (True, True)
    """
    n, seed, chunk = counts(samples=n, seed=seed, chunk=chunk)
    limits, rng, d = limits_of(study, rows="whole"), np.random.default_rng(seed), len(study.names)
    if not limits:
        raise ValueError("a study without limits has none that could be broken: give it `limits`")
    unchecked = Walk(Rare(np.nan, np.nan, 0), np.zeros((0, d)))
    walks = _walks(study, limits, rng, chunk, 2048) if check else [unchecked] * len(limits)
    found = search(study, limits, [np.concatenate([spread(d, starts, seed), _apart(w.arrived, starts)]) for w in walks])
    sampled = mixed(study, limits, [_centers(*x) for x in zip(found, walks)], n, rng, chunk)
    doubtful = [k for k, (s, w) in enumerate(zip(sampled, walks)) if check and not _agree(s, w.estimate)]
    if doubtful:  # once more, with more of everything
        again = _walks(study, [limits[k] for k in doubtful], rng, chunk, 8192)
        for k, walk in zip(doubtful, again):
            starts_here = np.concatenate([found[k].points, _apart(walk.arrived, 32)])
            (found[k],), walks[k] = search(study, [limits[k]], [starts_here]), walk
        sampled = mixed(study, limits, [_centers(*x) for x in zip(found, walks)], n, rng, chunk)
    points = design_points(study, limits, found)
    told = tuple(_told(study, *x) for x in zip(limits, found, points, sampled, [w.estimate for w in walks]))
    return Reliability(told, _any(told, sampled[-1]))


def _walks(study: Study, limits: list[Limit], rng: np.random.Generator, chunk: int, n: int) -> list[Walk]:
    """Subset simulation out to each limit, from the same plain samples."""
    u = rng.normal(size=(n, len(study.names)))
    values = values_at(study, u, chunk) if limits else u
    return [subset(study, limit, u, values, rng, chunk) for limit in limits]


def _agree(sampled: Rare, walk: Rare) -> bool:
    return bool(abs(sampled.probability - walk.probability) <= 3.5 * np.hypot(sampled.error, walk.error))


def _any(told: Sequence[LimitReliability], sampled: Rare) -> Rare:
    """Rejects of all limits together: from importance sampling; where it does not do for one of the limits, their sum,
    which is not less."""
    if all(x.method == "importance sampling" for x in told):
        return sampled
    error = float(np.linalg.norm([x.error for x in told]))
    return Rare(min(sum(x.probability for x in told), 1.0), error, sampled.samples)


def importance(
    study: Study, points: DesignPoint | Sequence[DesignPoint], n: int, *, seed: int = 0, chunk: int = CHUNK
) -> Rare:
    """The probability of breaking a limit, from samples about its design points, which [`mbsjax.form`][] found: for
    rejects of a few ppm, which plain sampling would hardly meet. A sample without a value counts as a reject.

    It cannot know of design points that it is not told of; [`mbsjax.reliability`][] looks for them and checks.

    !!! Example

        >>> import mbsjax as mbs
        >>> study = mbs.Study(lambda p: p, {"a": 0.0}, {"a": mbs.Normal(sigma=1.0)}, {"a": lambda p: p["a"]},
        ...                   limits={"a": (None, 5.0)})
        >>> rare = mbs.importance(study, mbs.form(study), 4096)
        >>> bool(abs(rare.probability - 2.8665e-7) < 3 * rare.error < 5e-8)
        True
    """
    n, seed, chunk = counts(samples=n, seed=seed, chunk=chunk)
    points = [points] if isinstance(points, DesignPoint) else list(points)
    if not points or any((p.value, p.side) != (points[0].value, points[0].side) for p in points):
        raise ValueError("importance sampling needs the design points of one limit, of one side")
    first = points[0]
    if np.isinf(first.beta):
        return Rare(float(first.probability), 0.0, 0)
    for p in points:
        if not p.converged:
            raise ValueError(f"the design point of {p.value!r} at its {p.side} limit was not found")
    (limit,) = [x for x in limits_of(study, rows="each") if (x.name, x.side) == (first.value, first.side)]
    centers = np.stack([p.scores for p in points])
    return mixed(study, [limit], [centers], n, np.random.default_rng(seed), chunk)[0]


def _apart(u: np.ndarray, count: int) -> np.ndarray:
    """A few of many points: the one nearest to the middle, then those farthest from all before."""
    if not len(u):
        return u
    kept = [int(np.argmin((u**2).sum(1)))]
    away = np.full(len(u), np.inf)
    while len(kept) < min(count, len(u)):
        away = np.minimum(away, np.linalg.norm(u - u[kept[-1]], axis=1))
        kept.append(int(np.argmax(away)))
    return u[kept]


def _centers(found: Found, walk: Walk) -> np.ndarray:
    """Where importance sampling looks: at the design points that matter, not at those a thousand times less likely;
    where none was found, where subset simulation arrived."""
    u = found.points
    if found.sign < 0:  # broken at the medians: these will do
        return u[:0]
    if not len(u):
        return _apart(walk.arrived, 4)
    square = (u**2).sum(1)
    return u[square <= square.min() + 2 * np.log(1e3)][:16]


def mixed(
    study: Study, limits: list[Limit], centers: list[np.ndarray], n: int, rng: np.random.Generator, chunk: int
) -> list[Rare]:
    """Importance sampling from the mixture of the standard normal distributions about all centers and about the
    medians: the probability of breaking each limit, and at last any of them. Of each part of the mixture as many are
    drawn as its weight has (stratified), a fifth about the medians."""
    d = len(study.names)
    every = np.concatenate([np.zeros((1, d)), *centers])
    weight = np.concatenate([[1.0], *(np.full(len(c), 4.0 / max(len(c), 1)) for c in centers)])
    size = np.maximum((n * weight / weight.sum()).astype(int), 2)
    size[0] = max(size[0] + n - size.sum(), 2)
    part = np.repeat(np.arange(len(every)), size)
    u = every[part] + rng.normal(size=(len(part), d))
    values = values_at(study, u, chunk)
    # log of q / phi, where q is the mixture
    odds = scipy.special.logsumexp(u @ every.T - (every**2).sum(1) / 2, b=size / size.sum(), axis=1)
    broken = np.stack([limit.broken(values) for limit in limits] + [_out(limits, values)], 1)
    each = np.where(broken, np.exp(-odds)[:, None], 0.0)
    p, variance = np.zeros(len(limits) + 1), np.zeros(len(limits) + 1)
    for k, count in enumerate(size):
        x = each[part == k]
        p += x.sum(0) / size.sum()
        variance += count / size.sum() ** 2 * x.var(0, ddof=1)
    # what was never met is not impossible: at most one in n of the density where it would be
    far = [float((c**2).sum(1).min()) if len(c) else 0.0 for c in centers]
    never = np.exp(-np.array([*far, min(far, default=0.0)]) / 2) / n
    error = np.sqrt(np.maximum(variance, 0.0))
    return [Rare(float(x), float(e if x > 0 else m), int(size.sum())) for x, e, m in zip(p, error, never)]


def _out(limits: list[Limit], values: np.ndarray) -> np.ndarray:
    out = ~np.isfinite(values).all(1)
    for limit in limits:
        out = out | limit.broken(values)
    return np.asarray(out)


def _told(
    study: Study, limit: Limit, found: Found, points: list[DesignPoint], sampled: Rare, walk: Rare
) -> LimitReliability:
    """Which estimate to believe, and why."""
    curved = [sorm(study, limit, u) if done else (np.nan, np.nan) for u, done in zip(found.points, found.done)]
    sums = np.sum(curved, 0) if curved and found.sign > 0 else (np.nan, np.nan)
    method, trusted = "importance sampling", True
    p, error = sampled.probability, sampled.error
    if not found.reached and not walk.probability > 0 and found.sign > 0:
        p, error, method, why = 0.0, walk.error, "search", "no sample and no search reached the limit"
    elif np.isnan(walk.probability):
        trusted, why = False, "it was not checked"
    elif walk.probability == 0 and p > 0 and p < 1e-30:
        trusted, why = False, "too far out for subset simulation, which would check it"
    elif _agree(sampled, walk) and sampled.error > walk.error and sampled.error**2 * sampled.samples > (12 * p) ** 2:
        # as if most samples were lost: the design points do not cover the limit, and errors are larger than they seem
        p, error, method, trusted = walk.probability, walk.error, "subset simulation", False
        less = f"{sampled.probability:.3g} +- {sampled.error:.1g}"
        why = f"samples about {len(found.points)} design point(s) tell less: {less}"
    elif _agree(sampled, walk):
        why = f"subset simulation agrees: {walk.probability:.3g} +- {walk.error:.1g}"
    elif sampled.probability > walk.probability:
        trusted, why = False, f"subset simulation found less: {walk.probability:.3g} +- {walk.error:.1g}"
    else:
        p, error, method = walk.probability, walk.error, "subset simulation"
        trusted, why = False, f"samples about {len(found.points)} design point(s) found less: {sampled.probability:.3g}"
    form = min(float(sum(x.probability for x in points)), 1.0)
    return LimitReliability(
        value=limit.name,
        side=limit.side,
        probability=np.float64(p),
        error=np.float64(error),
        trusted=np.bool_(trusted),
        method=method,
        why=why,
        points=tuple(points),
        form=np.float64(form),
        breitung=np.float64(sums[0]),
        hohenbichler=np.float64(sums[1]),
        importance=sampled,
        subset=walk,
    )


def sorm(study: Study, limit: Limit, u: np.ndarray) -> tuple[float, float]:
    """The probability beyond a design point with the curvature of the limit there: Breitung's, and with the correction
    of Hohenbichler and Rackwitz."""
    beta = float(np.linalg.norm(u))
    kappa = curvatures(study, limit, u)
    ratio = np.exp(scipy.stats.norm.logpdf(beta) - scipy.special.log_ndtr(-beta))
    found = []
    for b in (beta, ratio):
        bent = 1 + b * kappa
        found.append(float(scipy.special.ndtr(-beta) / np.sqrt(np.prod(bent))) if np.all(bent > 1e-3) else np.nan)
    return found[0], found[1]


def curvatures(study: Study, limit: Limit, u: np.ndarray) -> np.ndarray:
    """The main curvatures of a limit at a design point, positive where it bends away from the medians; NaN at a kink.
    Central differences, of fourth order, of exact gradients."""
    d = len(u)
    if d == 1:
        return np.zeros(0)
    away = 0.02 * np.array([1.0, -1.0, 2.0, -2.0])
    at = u + (away[:, None, None] * np.eye(d)).reshape(-1, d)
    _, g = states(study, [limit] * (4 * d + 1), np.concatenate([u[None], at]), np.ones(4 * d + 1))
    slopes = g[1:].reshape(4, d, d)
    near, far = (slopes[0] - slopes[1]) / 0.04, (slopes[2] - slopes[3]) / 0.08
    if not np.abs(near - far).max() < 0.1 * (np.abs(far).max() + np.linalg.norm(g[0])):
        return np.full(d - 1, np.nan)
    H = (4 * near - far) / 3
    tangent = scipy.linalg.null_space(u[None])
    return np.linalg.eigvalsh(tangent.T @ (H + H.T) @ tangent / 2) / np.linalg.norm(g[0])
