"""Which of several methods to believe about a yield, and why."""

from typing import NamedTuple

import numpy as np

from .._programs.reprs import by_fields


_APART = 3.0  # standard errors between numbers that disagree
_FEW = 10  # rejected samples, below which they tell little of a rate
NO_LIMITS = "it has no limits"  # and so there is no yield


class RejectEstimate(NamedTuple):
    """The probability that a measure leaves its limits, as a method of its own found it; of a measure along a stroke,
    that it leaves them anywhere.

    - `probability`, `error`: of a reject, and its standard error.
    - `trusted`: whether the method stands by it.
    """

    probability: float
    error: float
    trusted: bool = True

    __repr__ = by_fields


class SampledYield(NamedTuple):
    """What samples say of one measure.

    - `rejects`, `error`: the part of all samples that is out of limits or has no value, and its standard error.
    - `n`: how many samples.
    - `failed`: the part that has no value.
    - `changed`: the part that has one, but by another branch or sequence of contacts than the nominal one.
    """

    rejects: float
    error: float
    n: int
    failed: float = 0.0
    changed: float = 0.0


class Belief(NamedTuple):
    """The method to believe about the yield of a measure.

    - `method`: `"first order"`, `"second order"`, `"sampled"` or `"reliability"`; empty without limits.
    - `good`: the yield by that method; `error`: its standard error, NaN where the method has none.
    - `why`: in a sentence.
    """

    method: str
    good: float
    error: float
    why: str

    __repr__ = by_fields


def believe(
    first: float,
    second: float | None = None,
    sampled: SampledYield | None = None,
    estimate: RejectEstimate | None = None,
    *,
    along: bool = False,
    limited: bool = True,
) -> Belief:
    """The method to believe, of those that there are.

    **Arguments:**

    - `first`, `second`: the yield at first and at second order; along a stroke, that of the worst place.
    - `sampled`, `estimate`: what samples, and a method for rare rejects, say.
    - `along`: whether the measure is a row along a stroke.
    - `limited`: whether the measure has limits.

    !!! Example

        Five of a hundred parts cannot be assembled: the samples know, derivatives do not.

        >>> found = believe(0.765, 0.771, SampledYield(0.261, 0.0069, 4096, failed=0.05))
        >>> found.method, round(found.good, 3)
        ('sampled', 0.739)
        >>> found.why
        '5 % of the samples have no value, which derivatives cannot see'
    """
    lost = sampled is not None and sampled.failed > 0
    if not limited and not lost:
        return Belief("", np.nan, np.nan, NO_LIMITS)
    if estimate is not None and limited:
        found = _rare(sampled, estimate)
        if found is not None:
            return found
    if sampled is not None:
        return _checked(first, second, sampled, along)
    return _unchecked(first, second, along)


def _rare(sampled: SampledYield | None, estimate: RejectEstimate) -> Belief | None:
    """The estimate, unless it is not trusted, or the samples know better."""
    if not estimate.trusted or not np.isfinite(estimate.probability):
        return None
    say = lambda why: Belief("reliability", 1 - estimate.probability, estimate.error, why)
    if sampled is None:
        return say("it follows the limit itself, not an expansion at the mean; there are no samples to check it")
    apart = abs(sampled.rejects - estimate.probability) / max(np.hypot(sampled.error, estimate.error), 1e-300)
    if apart > _APART:
        return None
    if sampled.rejects * sampled.n < _FEW:
        return say(f"rejects are too rare for {sampled.n} samples, which agree as far as they can tell")
    if estimate.error < sampled.error:
        return say("it agrees with the samples, and its error is smaller")
    return None


def _checked(first: float, second: float | None, sampled: SampledYield, along: bool) -> Belief:
    """By derivatives, where the samples confirm them."""
    good, error = 1 - sampled.rejects, sampled.error
    say = lambda why: Belief("sampled", good, error, why)
    if sampled.failed > 0:
        return say(f"{100 * sampled.failed:.3g} % of the samples have no value, which derivatives cannot see")
    if along:
        return say("a part is rejected that leaves the limits anywhere along the stroke; derivatives see one place")
    best, method = (first, "first order") if second is None else (second, "second order")
    apart = lambda x: abs(x - good) / error if error > 0 else (0.0 if x == good else np.inf)
    changed = f"; {100 * sampled.changed:.3g} % of them go another way than the nominal" if sampled.changed > 0 else ""
    if not apart(best) <= _APART:
        which = "first order differs" if second is None else "first and second order differ"
        if second is not None and apart(first) <= _APART:
            which = "second order differs"
        return say(f"{which} from the samples by {apart(best):.2g} of their standard errors{changed}")
    believe = lambda why: Belief(method, best, np.nan, why)
    if sampled.rejects * sampled.n < _FEW:
        count = round(sampled.rejects * sampled.n)
        return believe(f"{count} of {sampled.n} samples are rejected, too few to tell more; they do not contradict it")
    if second is None:
        return believe("it agrees with the samples within their error")
    if apart(first) > _APART:
        return believe(
            f"it agrees with the samples within their error; first order, which misses the curvature, is off by "
            f"{apart(first):.2g} of their standard errors"
        )
    return believe("first order, second order and the samples agree")


def _unchecked(first: float, second: float | None, along: bool) -> Belief:
    """By derivatives alone."""
    best, method = (first, "first order") if second is None else (second, "second order")
    place = " It is the yield at the worst place: along the whole stroke it is at most that." if along else ""
    if second is None:
        return Belief(method, best, np.nan, f"nothing else was asked for, so nothing confirms it.{place}".strip("."))
    room = max(min(1 - second, 1 - first), 0.0)
    if abs(second - first) <= 0.1 * room + 1e-9:
        why = "first and second order agree; there are no samples to check them"
    else:
        why = f"first order says {first:.6g} and misses the curvature; there are no samples to check either"
    return Belief(method, best, np.nan, f"{why}{'.' * bool(place)}{place}".strip("."))
