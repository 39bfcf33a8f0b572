"""Importance sampling about design points, and what it can know of its own error."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy

from .design_points import DesignPoint, limits_of
from .evaluate import CHUNK
from .sampler import counts
from .study import Study
from .subset import Rare, values_at


_MOST = 16  # centers of one event


class Event(NamedTuple):
    """Something that may become of a part.

    - `happens`: of values, whether it does.
    - `points`: design points, beyond which it happens as far as planes tell.
    - `arrived`: scores where it happens, spread there as parts are, as far as each of several walks could tell.
    """

    happens: Callable[[np.ndarray], np.ndarray]
    points: np.ndarray
    arrived: tuple[np.ndarray, ...] = ()


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
    event = Event(limit.broken, centers if first.beta > 0 else centers[:0])
    return mixed(study, [event], [], [centers], n, np.random.default_rng(seed), chunk)[0]


class Mixture(NamedTuple):
    """A mixture of standard normal distributions about `centers`, of which so many samples each are drawn."""

    centers: np.ndarray
    sizes: np.ndarray

    def log_odds(self, u: np.ndarray) -> np.ndarray:
        """The logarithm of its density over that of the parts."""
        each = u @ self.centers.T - (self.centers**2).sum(1) / 2
        return scipy.special.logsumexp(each, b=self.sizes / self.sizes.sum(), axis=1)


def mixture(centers: Sequence[np.ndarray], n: int, d: int) -> Mixture:
    """About the centers of all events, and a part about the medians."""
    every = np.concatenate([np.zeros((1, d)), *centers])
    weight = np.concatenate([[1.0], *(np.full(len(c), 4.0 / max(len(c), 1)) for c in centers)])
    sizes = np.maximum((n * weight / weight.sum()).astype(int), 2)
    sizes[0] = max(sizes[0] + n - sizes.sum(), 2)
    return Mixture(every, sizes)


def centers_of(points: np.ndarray, arrived: np.ndarray) -> np.ndarray:
    """Where importance sampling looks for an event: at the design points that matter, not at those a thousand times
    less likely; and where walks arrived that these do not cover, the least covered first."""
    square = (points**2).sum(1)
    kept = points[square <= square.min(initial=np.inf) + 2 * np.log(1e3)][:_MOST]
    if not len(kept) and len(arrived):
        kept = arrived[[np.argmin((arrived**2).sum(1))]]
    if not len(arrived):
        return kept
    usual = 3.0 - (kept**2).sum(1).min() / 2  # the logarithm of the largest weight at a plane limit, and some more
    while len(kept) < _MOST:
        weight = -mixture([kept], 1 << 20, arrived.shape[1]).log_odds(arrived)
        if not weight.max() > usual:
            break
        kept = np.concatenate([kept, arrived[[np.argmax(weight)]]])
    return kept


def mixed(
    study: Study,
    events: Sequence[Event],
    unions: Sequence[Sequence[int]],
    centers: Sequence[np.ndarray],
    n: int,
    rng: np.random.Generator,
    chunk: int,
) -> list[Rare]:
    """The probabilities of events, and then of unions of these, by importance sampling from the mixture about all
    centers. Of each part of the mixture as many are drawn as its weight has (stratified)."""
    d = len(study.names)
    mix = mixture(centers, n, d)
    part = np.repeat(np.arange(len(mix.sizes)), mix.sizes)
    u = mix.centers[part] + rng.normal(size=(len(part), d))
    drawn = _Drawn(mix, part, u, np.exp(-mix.log_odds(u)) / len(part))
    values = values_at(study, u, chunk)
    happens = [event.happens(values) for event in events]
    missed = [_uncovered(event, x, drawn) for event, x in zip(events, happens)]
    found = [_estimated(event.points, x, m, drawn) for event, x, m in zip(events, happens, missed)]
    for union in unions:
        points = np.concatenate([events[k].points for k in union])
        any_of_them, worst = np.any([happens[k] for k in union], 0), max(missed[k] for k in union)
        found.append(_estimated(points, any_of_them, worst, drawn))
    return found


class _Drawn(NamedTuple):
    """Samples of a mixture: of which part each is, its scores, and what it counts for."""

    mix: Mixture
    part: np.ndarray
    u: np.ndarray
    weight: np.ndarray


def _estimated(points: np.ndarray, happens: np.ndarray, missed: float, drawn: _Drawn) -> Rare:
    """The sum of the weights where it happens. What is known of it, that planes at its design points have the
    probability of a normal tail each, is made use of (a control variate): a limit that is a plane has no error but
    that of what was not seen."""
    mix, part, u, weight = drawn
    n, met = len(u), np.where(happens, weight, 0.0)
    beta = np.linalg.norm(points, axis=1)
    beyond = np.sum(u @ points.T >= beta**2, 1) * weight
    known = float(scipy.special.ndtr(-beta).sum())
    C = np.zeros((2, 2))
    for k, size in enumerate(mix.sizes):
        C += size * np.cov(np.stack([met, beyond])[:, part == k])
    c = float(np.clip(C[0, 1] / C[1, 1], 0.0, 1.0)) if C[1, 1] > 0 else 0.0
    p = met.sum() - c * (beyond.sum() - known)
    if not p > 0:
        c, p = 0.0, met.sum()
    if not p > 0:  # what was never met is not impossible: at most one in n of the density where it would be
        near = float((mix.centers[1:] ** 2).sum(1).min(initial=0.0))
        return Rare(0.0, np.exp(-near / 2) / n, n)
    variance = C[0, 0] - 2 * c * C[0, 1] + c**2 * C[1, 1]
    one = float((met**2).sum() / met.sum()) if met.any() else 0.0  # a region that one sample would meet may be missed
    return Rare(min(p, 1.0), np.sqrt(max(variance, 0.0) + one**2 + missed**2), n)


def _uncovered(event: Event, happens: np.ndarray, drawn: _Drawn) -> float:
    """How much of the probability lies where the mixture has less than a sample, as far as walks tell that arrived
    there."""
    p, most = float(drawn.weight[happens].sum()), 0.0
    for arrived in event.arrived:
        if len(arrived):
            odds = np.sort(np.exp(drawn.mix.log_odds(arrived))) * len(drawn.u)  # the least covered first
            samples = np.cumsum(odds) * p / len(odds)  # that are to be expected in the part up to each
            most = max(most, p * float(np.mean(samples < 1)))
    return most
