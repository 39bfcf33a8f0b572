"""A tolerance study in a few lines: whether each measure is good enough, and which dimensions matter most."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy

from .._dynamics.outcome import CLASSES
from .belief import Belief, Order, RejectEstimate, SampledYield, believe
from .capability import Capability
from .sample import Sample
from .study import Study
from .taylor import FirstOrder, SecondOrder
from .trial import Trial


class Summary(NamedTuple):
    """A measure in a line.

    - `measure`, and `at`: which of the study's values stands for it; of a row along a stroke, that at the worst place.
    - `belief`: the yield, by the method to believe.
    - `cpk`, and what it is of: an order, the samples, or the survivors, the samples that have a value.
    - `verdict`: `"pass"` or `"fail"`; empty without limits.
    - `contributor`, `part`: the dimension that contributes most to the variance, and how much.
    """

    measure: str
    at: int
    belief: Belief
    cpk: float
    cpk_of: str
    verdict: str
    contributor: str
    part: float


class Found(NamedTuple):
    """What the methods found; `contribution` is that of `first`, `able` what each order says of the limits, `tried` the
    parts that tell how far these can be believed."""

    study: Study
    first: FirstOrder
    second: SecondOrder | None
    tried: Trial | None
    sample: Sample | None
    estimates: Mapping[str, RejectEstimate]
    contribution: np.ndarray
    able: dict[str, Capability]

    @property
    def best(self) -> str:
        """The highest order that there is."""
        return list(self.able)[-1]


def gathered(
    study: Study,
    first: FirstOrder,
    second: SecondOrder | None,
    tried: Trial | None,
    sample: Sample | None,
    estimates: Mapping[str, RejectEstimate],
) -> Found:
    """All of it, worked out once."""
    able = {"first order": first.capability} | ({} if second is None else {"second order": second.capability})
    return Found(study, first, second, tried, sample, estimates, first.contribution, able)


def summary(found: Found, target: float) -> list[Summary]:
    """All measures, in their order."""
    return [_measure(found, name, target) for name in found.study.slices]


def worst_place(found: Found, name: str) -> int:
    """Which value stands for a measure: along a stroke, the one of least yield, or without limits of most variation."""
    at = found.study.slices[name]
    if isinstance(at, int):
        return at
    able = found.able[found.best]
    good, cpk = able.good[at], able.cpk[at]
    if not np.isfinite(cpk).any():
        return at.start + int(np.argmax(found.first.std[at]))
    return at.start + int(np.lexsort((np.where(np.isnan(cpk), np.inf, cpk), good))[0])


def survivors(sample: Sample, at: int) -> bool:
    """Whether some samples have no value, so that statistics are of those that have one."""
    return bool(sample.tally.count[at] < sample.tally.n)


def _measure(found: Found, name: str, target: float) -> Summary:
    study, sample = found.study, found.sample
    k, where = worst_place(found, name), study.slices[name]
    limited = any(np.isfinite(np.asarray(limit)[where]).any() for limit in (study.lower, study.upper))
    sampled, estimate = _sampled(sample, name, where), found.estimates.get(name)
    along = not isinstance(where, int)
    orders = order_yields(found, name) if limited else [Order(np.nan)] * len(found.able)
    second = orders[1] if len(orders) > 1 else None
    belief = believe(orders[0], second, sampled, estimate, along=along, limited=limited)
    if not limited and not belief.method and sample is not None:
        belief = belief._replace(why=belief.why + _spread(found.first.std[k], sample, k))
    able, of = found.able[found.best], found.best
    if belief.method == "sampled" and sample is not None:
        able, of = sample.tally.capability, "survivors" if survivors(sample, k) else "samples"
    cpk = float(able.cpk[k]) if limited else np.nan
    part = found.contribution[k]
    i = int(np.argmax(part))
    verdict = judged(belief, cpk, target) if limited else ""
    return Summary(name, k, belief, cpk, of if limited else "", verdict, study.names[i], float(part[i]))


def order_yields(found: Found, name: str) -> list[Order]:
    """What each order says of a measure with limits; along a stroke, at the worst place, with an error that reaches
    what it says of the whole."""
    k, tried = worst_place(found, name), found.tried
    every = np.atleast_1d(np.arange(len(found.study.columns))[found.study.slices[name]])
    lower, upper = (np.asarray(x)[every] for x in (found.study.lower, found.study.upper))
    orders = []
    for able, order in zip(found.able.values(), (found.first, found.second)):
        good = float(able.good[k])
        if order is None or tried is None:
            orders.append(Order(good))
            continue
        error = order.expansion.yield_error(tried, every, lower, upper, good)
        orders.append(Order(good, error, float(order.expansion.misfit(tried)[k])))
    return orders


def _spread(std: float, sample: Sample, k: int) -> str:
    """Whether samples spread otherwise than derivatives have it, by more than three of their standard errors."""
    found, error = float(sample.tally.std[k]), float(sample.tally.errors.std[k])
    if not abs(found - std) > max(3 * error, 0.1 * std):
        return ""
    return f"; samples have a sigma of {found:.3g}, derivatives of {std:.3g}: believe the samples"


def _sampled(sample: Sample | None, name: str, at: int | slice) -> SampledYield | None:
    if sample is None:
        return None
    tally = sample.tally
    rejects, error = tally.rejects[name]
    failed = 1 - float(np.min(tally.count[at])) / max(tally.n, 1)
    changed = sum(tally.classes[CLASSES.index(x)] for x in ("changed sequence", "changed branch")) / max(tally.n, 1)
    return SampledYield(rejects, error, tally.n, failed, float(changed))


def judged(belief: Belief, cpk: float, target: float) -> str:
    """Whether a measure reaches its target: a yield, if it is below 1, or else a Cpk. For a Cpk there must not be more
    rejects, by two standard errors, than a normal distribution has that keeps it on both sides."""
    if target < 1:
        return "pass" if belief.good >= target else "fail"
    most = 2 * float(scipy.special.ndtr(-3 * target))
    error = 2 * belief.error if np.isfinite(belief.error) else 0.0
    known = belief.method in ("sampled", "reliability")
    return "pass" if cpk >= target and not (known and 1 - belief.good - error > most) else "fail"


class Rank(NamedTuple):
    """A dimension among all: its largest contribution to any measure, which one, and those to all measures."""

    name: str
    largest: float
    measure: str
    parts: tuple[float, ...]


def ranking(found: Found) -> list[Rank]:
    """All dimensions, by their largest contribution to the variance of any measure; numbers of an array together."""
    study = found.study
    places = [worst_place(found, name) for name in study.slices]
    ends = np.cumsum(study.counts).tolist()
    ranks = []
    for label, end, count in zip(group_names(study), ends, study.counts):
        parts = found.contribution[places, end - count : end].sum(1)
        j = int(np.argmax(parts))
        ranks.append(Rank(label, float(parts[j]), study.labels[j], tuple(parts.tolist())))
    return sorted(ranks, key=lambda r: (-r.largest, -sum(r.parts)))


def group_names(study: Study) -> list[str]:
    """Names of the dimensions as tolerances were given: one for all numbers of an array."""
    starts, leaves = np.cumsum((0, *study.counts))[:-1].tolist(), study.choice.leaves
    shapes = [np.shape(leaves[place]) for place in study.choice.places]
    return [study.names[k].rpartition("[")[0] if shape else study.names[k] for k, shape in zip(starts, shapes)]
