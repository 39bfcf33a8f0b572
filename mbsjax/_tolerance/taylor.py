"""Tolerance analysis by derivatives: sensitivities, worst case, RSS, contributions, and moments of second order."""

import warnings
from collections.abc import Iterator

import equinox as eqx
import numpy as np

from .._programs.reprs import brief
from .capability import Capability, Moments, capability
from .distribution.base import SCORES, WEIGHTS, AbstractDistribution
from .evaluate import linearized
from .study import Study
from .trial import POOR, Expansion, Trial, trial


class FirstOrder(eqx.Module):
    """A study linearized at its mean dimensions. Rows belong to the values of the study, `study.columns`, columns to
    its contributors, `study.names`.

    - `values`: at the mean dimensions.
    - `slopes`: the sensitivities d(value)/d(dimension), exact: through loops, contacts and events.
    """

    study: Study
    values: np.ndarray
    slopes: np.ndarray

    @property
    def reach(self) -> np.ndarray:
        """How far each contributor moves each value between the limits of its tolerance: half of it, as T in +-T. The
        coordinates of a position share the radius of its zone as they go along the slopes; a zone that grows with a
        size has its largest."""
        low, high = (np.asarray(x) for x in self.study.bounds)
        return self.slopes * self.study.farthest(self.slopes) * (high - low) / 2

    @property
    def middle(self) -> np.ndarray:
        """Values in the middle of all tolerances."""
        low, high = (np.asarray(x) for x in self.study.bounds)
        return self.values + self.slopes @ ((low + high) / 2 - np.asarray(self.study.mean))

    @property
    def worst_case(self) -> np.ndarray:
        """All tolerances at once against us: values are `middle` +- this."""
        return self.reach.sum(1)

    @property
    def rss(self) -> np.ndarray:
        """Root of the sum of squares of `reach`."""
        return np.sqrt((self.reach**2).sum(1))

    @property
    def mrss(self) -> np.ndarray:
        """RSS, inflated half way to the worst case where dimensions are few (the modified RSS of the handbooks)."""
        n = self.reach.shape[1]
        if n == 1:
            return self.rss
        return self.rss + (self.worst_case - self.rss) / (2 * (np.sqrt(n) - 1))

    @property
    def covariance(self) -> np.ndarray:
        """Of the dimensions. The correlation of scores is not quite that of dimensions that are not normal: it is
        carried over by Hermite polynomials (Nataf)."""
        std, scores = np.asarray(self.study.std), _score_correlation(self.study)
        every = [d for d, n in zip(self.study.distributions, self.study.counts) for _ in range(n)]
        parts = np.stack([np.zeros(_TERMS) if d.together else _hermite_parts(d) for d in every])
        powers = scores[..., None] ** np.arange(1, _TERMS + 1)
        correlation = np.einsum("ijk,ik,jk->ij", powers, parts, parts)
        for i, j in np.argwhere(np.abs(scores) == 1):  # one follows the other: no series is needed
            alike = i == j or every[i].together is not None
            correlation[i, j] = 1.0 if alike else _comonotone(every[i], every[j], float(scores[i, j]))
        return std[:, None] * correlation * std

    @property
    def variance_parts(self) -> np.ndarray:
        """The parts of each dimension in the variance of each value; none where all of them cancel each other, or are
        what rounding leaves of the value, or of the others."""
        parts = self.slopes * (self.slopes @ self.covariance)
        each = np.sum((self.slopes * np.asarray(self.study.std)) ** 2, 1, keepdims=True)
        parts = np.where(np.abs(parts) > 1e-28 * each, parts, 0.0)
        rounding = np.nan_to_num((1e-14 * self.values[:, None]) ** 2)
        return np.where(parts.sum(1, keepdims=True) > np.maximum(1e-14 * each, rounding), parts, 0.0)

    @property
    def std(self) -> np.ndarray:
        return np.sqrt(np.sum(self.variance_parts, 1))

    @property
    def contribution(self) -> np.ndarray:
        """The part of each dimension in the variance of each value; all of a row sum to 1. With correlation, a part
        may be negative."""
        parts = self.variance_parts
        whole = parts.sum(1, keepdims=True)
        return np.divide(parts, whole, out=np.zeros_like(parts), where=whole > 0)

    @property
    def moments(self) -> Moments:
        return Moments(self.values, self.std, np.zeros_like(self.values), np.full_like(self.values, 3.0))

    @property
    def capability(self) -> Capability:
        """Of a normal distribution."""
        return capability(self.moments, self.study.lower, self.study.upper)

    @property
    def expansion(self) -> Expansion:
        return Expansion(self.values, self.slopes, None)

    def __repr__(self) -> str:
        return brief(self, values=self.values, slopes=self.slopes)


class SecondOrder(eqx.Module):
    """A study expanded to second order at its mean dimensions.

    - `first`: the [`mbsjax.FirstOrder`][].
    - `curvatures`: second derivatives, one matrix for each value.
    - `moments`: mean, standard deviation, skewness and kurtosis of the values.
    - `misfit`: how far each value is off at a handful of samples, in standard deviations of these. Beyond a tenth or
        so the expansion does not describe it: there is a kink, a jump or more than a parabola, or parts have no value
        (then it is infinite).
    """

    first: FirstOrder
    curvatures: np.ndarray
    moments: Moments
    misfit: np.ndarray

    @property
    def mean_shift(self) -> np.ndarray:
        """How much each dimension's own curvature moves the mean of each value."""
        return np.diagonal(self.curvatures, axis1=1, axis2=2) * np.asarray(self.first.study.std) ** 2 / 2

    @property
    def capability(self) -> Capability:
        """From four moments."""
        study = self.first.study
        return capability(self.moments, study.lower, study.upper)

    @property
    def expansion(self) -> Expansion:
        return Expansion(self.first.values, self.first.slopes, self.curvatures)

    def __repr__(self) -> str:
        return brief(self, self.first, curvatures=self.curvatures, moments=self.moments, misfit=self.misfit)


def first_order(study: Study) -> FirstOrder:
    """Sensitivities of all measures at the mean dimensions, by forward differentiation of the whole analysis: the
    implicit function theorem in assembly, contact and closure, and through the events of a simulation.

    !!! Example

        >>> import mbsjax as mbs
        >>> rod = mbs.Study(lambda p: p, {"a": 3.0, "b": 4.0}, {"a": 0.05, "b": 0.1},
        ...                 {"length": lambda p: (p["a"] ** 2 + p["b"] ** 2) ** 0.5})
        >>> found = mbs.first_order(rod)
        >>> found.slopes.round(9).tolist(), found.worst_case.round(9).tolist(), found.rss.round(6).tolist()
        ([[0.6, 0.8]], [0.11], [0.08544])
    """
    values, slopes = linearized(study, np.asarray(study.mean)[None])
    for name, x, row in zip(study.columns, values[0], slopes[0]):
        if not (np.isfinite(x) and np.all(np.isfinite(row))):
            raise ValueError(f"the measure {name!r}, or its derivative, is not finite at the mean dimensions")
    return FirstOrder(study, values[0], slopes[0])


def second_order(study: Study, first: FirstOrder | None = None) -> SecondOrder:
    """Mean shift, variance, skewness and kurtosis from second derivatives (the method of system moments).

    Second derivatives are central differences, of fourth order, of the exact first ones, over a part of each standard
    deviation: so they hold through contact events too. The moments of the polynomial are exact for normal
    dimensions, correlated or not, and for independent dimensions of any kind that do not interact; in the skewness and
    kurtosis of interactions and of correlated dimensions, these count as normal.

    Where the mean lies on a kink, as that of a fit, of |a - b| or of a maximum over a motion may, there are no second
    derivatives, and what differences make of them means nothing. So the polynomial is compared with the study at a
    handful of samples; measures that it does not describe are named in a warning, and `misfit` tells by how much.

    !!! Example

        The square of a standard normal variate has the mean 1, the variance 2, the skewness sqrt(8), the kurtosis 15.

        >>> import mbsjax as mbs
        >>> square = mbs.Study(lambda p: p, {"x": 0.0}, {"x": mbs.Normal(sigma=1.0)}, {"y": lambda p: p["x"] ** 2})
        >>> [round(float(m[0]), 6) for m in mbs.second_order(square).moments]
        [1.0, 1.414214, 2.828427, 15.0]
    """
    found = expanded(first_order(study) if first is None else first, trial(study))
    poor = [f"{name!r} by {x:.2g}" for name, x in zip(study.columns, found.misfit) if not x <= POOR]
    if poor:
        more = f" and {len(poor) - 3} others" if len(poor) > 3 else ""
        warnings.warn(
            "second order does not describe all measures: at a handful of samples it is off, in standard deviations, "
            f"for {', '.join(poor[:3])}{more}; there may be a kink at the mean dimensions. Believe samples there",
            stacklevel=2,
        )
    return found


def expanded(first: FirstOrder, tried: Trial) -> SecondOrder:
    """The expansion, beside parts that were tried."""
    study = first.study
    d, std = len(study.names), np.asarray(study.std)
    h = 0.1 * std
    away = np.array([1.0, -1.0, 2.0, -2.0])
    points = np.asarray(study.mean) + (away[:, None, None] * np.diag(h)).reshape(-1, d)
    _, slopes = linearized(study, points)
    if not np.all(np.isfinite(slopes)):
        at, k, _ = np.argwhere(~np.isfinite(slopes))[0]
        raise ValueError(
            f"the measure {study.columns[k]!r} has no value, or no derivative, where {study.names[at % d]!r} is "
            f"{abs(away[at // d]) / 10:.1g} sigma from its mean: it cannot be expanded to second order there"
        )
    slopes = slopes.reshape(4, d, *slopes.shape[1:])
    weights = np.array([8.0, -8.0, -1.0, 1.0]) / 12
    H = np.einsum("k,kimj->mij", weights, slopes) / h[:, None]
    H = (H + H.transpose(0, 2, 1)) / 2
    misfit = Expansion(first.values, first.slopes, H).misfit(tried)
    return SecondOrder(first, H, _moments(first, H), misfit)


_TERMS = 24  # of the series that carries correlations over


def _score_correlation(study: Study) -> np.ndarray:
    """One and minus one where a dimension follows another."""
    mixing = np.asarray(study.mixing)
    R = mixing @ mixing.T
    return np.where(np.abs(np.abs(R) - 1) < 1e-12, np.sign(R), R)


def _standard(distribution: AbstractDistribution, side: float = 1.0) -> np.ndarray:
    """The variate, with mean 0 and deviation 1, at the scores or at their negatives."""
    x = (distribution.tabulated() - distribution.shape.mean) / distribution.shape.std
    return x if side > 0 else x[::-1]


def _comonotone(a: AbstractDistribution, b: AbstractDistribution, side: float) -> float:
    """The correlation of two dimensions that follow each other, in the same or the opposite sense."""
    return float(_standard(a) @ (WEIGHTS * _standard(b, side)))


def _hermite_parts(distribution: AbstractDistribution) -> np.ndarray:
    """The parts that Hermite polynomials of the score, 1, 2, ..., have in a variate of mean 0 and deviation 1."""
    x = _standard(distribution)
    h, found = [np.ones_like(SCORES), SCORES], []
    for k in range(1, _TERMS + 1):
        found.append(float(WEIGHTS @ (x * h[k])))
        h.append((SCORES * h[k] - np.sqrt(k) * h[k - 1]) / np.sqrt(k + 1))  # each of deviation 1
    return np.array(found)


def _moments(first: FirstOrder, H: np.ndarray) -> Moments:
    """Cumulants of the polynomial as if all were normal, then the own difference to that of each dimension, zone or lot
    that is not correlated with others."""
    study = first.study
    L = _root(first.covariance)
    cumulants = _normal_cumulants(first.slopes @ L, L.T @ H @ L / 2)
    std = np.asarray(study.std)
    for group, (xi, weights) in _independent(study):
        g, C = first.slopes[:, group] * std[group], H[:, *np.ix_(group, group)] * np.outer(std[group], std[group]) / 2
        own = _cumulants(g @ xi.T + np.einsum("ki,mij,kj->mk", xi, C, xi), weights)
        L = _root(xi.T * weights @ xi)
        cumulants = cumulants + own - _normal_cumulants(g @ L, L.T @ C @ L)
    mean, variance, third, fourth = cumulants
    variance = np.maximum(variance, 0.0)
    safe = np.where(variance > 0, variance, 1.0)
    return Moments(first.values + mean, np.sqrt(variance), third / safe**1.5, 3 + fourth / safe**2)


def _root(covariance: np.ndarray) -> np.ndarray:
    """A square root, also where dimensions that follow others make it singular."""
    size, axes = np.linalg.eigh(covariance)
    return axes * np.sqrt(np.maximum(size, 0.0))


def _independent(study: Study) -> Iterator[tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]]:
    """The numbers that depend on the scores of one dimension or one zone and on no others, with points of these
    numbers, of mean 0 and deviation 1, and their weights."""
    scores = _score_correlation(study)
    every = [(d, k) for d, n in zip(study.distributions, study.counts) for k in range(n)]
    seen: set[int] = set()
    for i, (d, k) in enumerate(every):
        if i in seen or (d.together and k):
            continue
        group = np.flatnonzero(np.any(scores[i : i + (d.together or 1)] != 0, 0))
        among = scores[np.ix_(group, group)]
        if not np.all(np.isin(among, (-1.0, 0.0, 1.0) if d.together else (-1.0, 1.0))):
            continue
        seen.update(group.tolist())
        if d.together:
            nodes, weights = d.nodes()
            yield group, (nodes[:, [every[j][1] for j in group]] / d.shape.std, weights)
        else:
            columns = [_standard(every[j][0], float(scores[i, j])) for j in group]
            yield group, (np.stack(columns, 1), WEIGHTS)


def _normal_cumulants(b: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Of b.z + z.B.z with standard normal z, one row for each."""
    trace = lambda x: np.trace(x, axis1=1, axis2=2)
    B2 = B @ B
    bent = lambda x: np.einsum("mi,mij,mj->m", b, x, b)
    return np.stack(
        [trace(B), 2 * trace(B2) + (b**2).sum(1), 8 * trace(B2 @ B) + 6 * bent(B), 48 * trace(B2 @ B2) + 48 * bent(B2)]
    )


def _cumulants(y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of functions given at points with weights."""
    mean = y @ weights
    y = y - mean[:, None]
    second, third, fourth = ((y**k) @ weights for k in (2, 3, 4))
    return np.stack([mean, second, third, fourth - 3 * second**2])
