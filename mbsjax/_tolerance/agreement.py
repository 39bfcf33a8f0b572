"""Whether estimates of a probability that were found in different ways agree, and which of them to believe."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .design_points import Found
from .subset import Rare, Walk


SAMPLED = "importance sampling"
_APART = 3.5  # standard errors between estimates that disagree


class Judged(NamedTuple):
    """An estimate, how it was found, whether it is to be believed, and why."""

    probability: float
    error: float
    method: str
    trusted: bool
    why: str


def confirmed(sampled: Rare, walks: Sequence[Walk]) -> bool:
    """Whether a walk found as much, and none more: a walk may pass by what another one meets, but none meets what is
    not there."""
    known = [w for w in walks if np.isfinite(w.estimate.probability)]
    more = [w for w in known if w.estimate.probability > sampled.probability]
    return any(_agree(sampled, w) for w in known) and all(_agree(sampled, w) for w in more)


def referee(sampled: Rare, walks: Sequence[Walk], d: int) -> Walk:
    """The walk to compare with: of those that agree the surest, or else the one that found most."""
    known = [w for w in walks if np.isfinite(w.estimate.probability)]
    if not known:
        return Walk(Rare(np.nan, np.nan, 0), np.zeros((0, d)))
    if confirmed(sampled, walks):
        return min((w for w in known if _agree(sampled, w)), key=lambda w: w.estimate.error)
    return max(known, key=lambda w: w.estimate.probability)


def judged(found: Found, sampled: Rare, walk: Walk) -> Judged:
    """Which estimate to believe: that of samples about design points, or that of a walk which does not know them."""
    p, error, other = sampled.probability, sampled.error, walk.estimate
    told = f"{other.probability:.3g} +- {other.error:.1g}"
    if not found.reached and not other.probability > 0 and found.sign > 0:
        bound = error if np.isnan(other.error) else other.error
        return Judged(0.0, bound, "search", True, "no sample and no search reached the limit")
    if np.isnan(other.probability):
        return Judged(p, error, SAMPLED, False, "it was not checked")
    if other.probability == 0 and 0 < p < 1e-30:
        return Judged(p, error, SAMPLED, False, f"too far out for {walk.name}, which would check it")
    about = f"samples about {len(found.points)} design point(s)"
    agree = _agree(sampled, walk)
    if agree and error > other.error and error**2 * sampled.samples > (12 * p) ** 2:
        # as if most samples were lost: the design points do not cover the limit, and errors are larger than they seem
        why = f"{about} tell less: {p:.3g} +- {error:.1g}"
        return Judged(other.probability, other.error, walk.name, False, why)
    if agree:
        return Judged(p, error, SAMPLED, True, f"{walk.name} agrees: {told}")
    apart = abs(p - other.probability)  # the larger one is told, with an error that reaches the other
    if p > other.probability:
        return Judged(p, max(error, apart), SAMPLED, False, f"{walk.name} found less: {told}")
    why = f"{about} found less: {p:.3g} +- {error:.1g}"
    return Judged(other.probability, max(other.error, apart), walk.name, False, why)


def _agree(sampled: Rare, walk: Walk) -> bool:
    p, error = walk.estimate.probability, walk.estimate.error
    if p < sampled.probability:
        error = max(error, walk.slack * p)
    return bool(abs(sampled.probability - p) <= _APART * np.hypot(sampled.error, error))
