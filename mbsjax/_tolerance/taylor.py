"""Tolerance analysis by derivatives: sensitivities, worst case, RSS, contributions, and moments of second order."""

import equinox as eqx
import numpy as np

from .._programs.reprs import brief
from .capability import Capability, Moments, capability
from .distribution.base import SCORES, WEIGHTS, AbstractDistribution
from .evaluate import linearized
from .study import Study


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
        """How far each contributor moves each value between the limits of its tolerance: half of it, as T in +-T."""
        low, high = (np.asarray(x) for x in self.study.bounds)
        return np.abs(self.slopes) * (high - low) / 2

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
        parts = np.stack(
            [_hermite_parts(d) for d, n in zip(self.study.distributions, self.study.counts) for _ in range(n)]
        )
        powers = scores[..., None] ** np.arange(1, parts.shape[1] + 1)
        correlation = np.where(np.eye(len(std)) > 0, 1.0, np.einsum("ijk,ik,jk->ij", powers, parts, parts))
        return std[:, None] * correlation * std

    @property
    def std(self) -> np.ndarray:
        return np.sqrt(np.sum(self.slopes * (self.slopes @ self.covariance), 1))

    @property
    def contribution(self) -> np.ndarray:
        """The part of each dimension in the variance of each value; all of a row sum to 1. With correlation, a part
        may be negative."""
        parts = self.slopes * (self.slopes @ self.covariance)
        whole = parts.sum(1, keepdims=True)
        return np.divide(parts, whole, out=np.zeros_like(parts), where=whole > 0)

    @property
    def moments(self) -> Moments:
        return Moments(self.values, self.std, np.zeros_like(self.values), np.full_like(self.values, 3.0))

    @property
    def capability(self) -> Capability:
        """Of a normal distribution."""
        return capability(self.moments, self.study.lower, self.study.upper)

    def __repr__(self) -> str:
        return brief(self, values=self.values, slopes=self.slopes)


class SecondOrder(eqx.Module):
    """A study expanded to second order at its mean dimensions.

    - `first`: the [`mbsjax.FirstOrder`][].
    - `curvatures`: second derivatives, one matrix for each value.
    - `moments`: mean, standard deviation, skewness and kurtosis of the values.
    """

    first: FirstOrder
    curvatures: np.ndarray
    moments: Moments

    @property
    def mean_shift(self) -> np.ndarray:
        """How much each dimension's own curvature moves the mean of each value."""
        return np.diagonal(self.curvatures, axis1=1, axis2=2) * np.asarray(self.first.study.std) ** 2 / 2

    @property
    def capability(self) -> Capability:
        """From four moments."""
        study = self.first.study
        return capability(self.moments, study.lower, study.upper)

    def __repr__(self) -> str:
        return brief(self, self.first, curvatures=self.curvatures, moments=self.moments)


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

    !!! Example

        The square of a standard normal variate has the mean 1, the variance 2, the skewness sqrt(8), the kurtosis 15.

        >>> import mbsjax as mbs
        >>> square = mbs.Study(lambda p: p, {"x": 0.0}, {"x": mbs.Normal(sigma=1.0)}, {"y": lambda p: p["x"] ** 2})
        >>> [round(float(m[0]), 6) for m in mbs.second_order(square).moments]
        [1.0, 1.414214, 2.828427, 15.0]
    """
    first = first_order(study) if first is None else first
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
    return SecondOrder(first, H, _moments(first, H))


def _score_correlation(study: Study) -> np.ndarray:
    mixing = np.asarray(study.mixing)
    return mixing @ mixing.T


def _hermite_parts(distribution: AbstractDistribution, terms: int = 24) -> np.ndarray:
    """The parts that Hermite polynomials of the score, 1, 2, ..., have in a variate of mean 0 and deviation 1."""
    x = (distribution.tabulated() - distribution.shape.mean) / distribution.shape.std
    h, found = [np.ones_like(SCORES), SCORES], []
    for k in range(1, terms + 1):
        found.append(float(WEIGHTS @ (x * h[k])))
        h.append((SCORES * h[k] - np.sqrt(k) * h[k - 1]) / np.sqrt(k + 1))  # each of deviation 1
    return np.array(found)


def _moments(first: FirstOrder, H: np.ndarray) -> Moments:
    """Cumulants of the polynomial as if all were normal, then the own difference to that of each dimension that is not
    correlated with others."""
    study = first.study
    L = np.linalg.cholesky(first.covariance)
    alone = np.abs(_score_correlation(study) - np.eye(len(study.names))).max(1) == 0
    b, B = first.slopes @ L, L.T @ H @ L / 2
    cumulants = _normal_cumulants(b, B)
    every = [d for d, n in zip(study.distributions, study.counts) for _ in range(n)]
    std = np.asarray(study.std)
    for i, distribution in enumerate(every):
        if not alone[i]:
            continue
        shape = distribution.shape
        xi = (distribution.tabulated() - shape.mean) / shape.std
        g, c = first.slopes[:, i] * std[i], H[:, i, i] * std[i] ** 2 / 2
        own = _cumulants(g[:, None] * xi + c[:, None] * xi**2)
        normal = _normal_cumulants(g[:, None], c[:, None, None])
        cumulants = cumulants + own - normal
    mean, variance, third, fourth = cumulants
    safe = np.where(variance > 0, variance, 1.0)
    return Moments(first.values + mean, np.sqrt(variance), third / safe**1.5, 3 + fourth / safe**2)


def _normal_cumulants(b: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Of b.z + z.B.z with standard normal z, one row for each."""
    trace = lambda x: np.trace(x, axis1=1, axis2=2)
    B2 = B @ B
    bent = lambda x: np.einsum("mi,mij,mj->m", b, x, b)
    return np.stack(
        [trace(B), 2 * trace(B2) + (b**2).sum(1), 8 * trace(B2 @ B) + 6 * bent(B), 48 * trace(B2 @ B2) + 48 * bent(B2)]
    )


def _cumulants(y: np.ndarray) -> np.ndarray:
    """Of functions of one variate, given at its `SCORES`."""
    assert y.shape[-1] == len(SCORES)
    mean = y @ WEIGHTS
    y = y - mean[:, None]
    second, third, fourth = ((y**k) @ WEIGHTS for k in (2, 3, 4))
    return np.stack([mean, second, third, fourth - 3 * second**2])
