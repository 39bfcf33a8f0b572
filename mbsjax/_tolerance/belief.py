"""Which of several methods to believe about a yield, and why."""

from typing import NamedTuple

import numpy as np

from .._programs.reprs import by_fields
from .trial import POOR


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
    - `good`: the yield by that method; `error`: its standard error. Where another method, which is not refuted,
        differs by more than that, the error reaches it.
    - `why`: in a sentence.
    """

    method: str
    good: float
    error: float
    why: str

    __repr__ = by_fields


class Order(NamedTuple):
    """What an expansion says of a measure: the yield, how far that may be off, and how far the expansion is off itself,
    at a handful of samples, in standard deviations of these."""

    good: float
    error: float = np.nan
    misfit: float = 0.0


def believe(
    first: float | Order,
    second: float | Order | None = None,
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
    orders = {"first order": first, "second order": second}
    known = {name: x if isinstance(x, Order) else Order(x) for name, x in orders.items() if x is not None}
    trusted = estimate is not None and limited and estimate.trusted and np.isfinite(estimate.probability)
    if estimate is not None and trusted:
        found = _rare(sampled, estimate)
        if found is not None:
            return found
    found = _unchecked(known, along) if sampled is None else _checked(known, sampled, along)
    if estimate is None or not trusted or sampled is None:
        return found
    apart = abs(sampled.rejects - estimate.probability)
    if apart > _APART * np.hypot(sampled.error, estimate.error):  # both claim to know
        told = f"{found.why}; the estimate of rare rejects contradicts the samples: {estimate.probability:.3g}"
        found = found._replace(error=max(found.error, apart), why=told)
    return found


def _rare(sampled: SampledYield | None, estimate: RejectEstimate) -> Belief | None:
    """The estimate, unless the samples know better."""
    say = lambda why, error=estimate.error: Belief("reliability", 1 - estimate.probability, error, why)
    if sampled is None:
        return say("it follows the limit itself, not an expansion at the mean; there are no samples to check it")
    apart, both = abs(sampled.rejects - estimate.probability), np.hypot(sampled.error, estimate.error)
    if apart > _APART * max(both, 1e-300):
        return None
    error = max(estimate.error, apart) if apart > both else estimate.error
    if sampled.rejects * sampled.n < _FEW:
        return say(f"rejects are too rare for {sampled.n} samples, which agree as far as they can tell", error)
    if estimate.error < sampled.error:
        return say("it agrees with the samples, and its error is smaller", error)
    return None


def _checked(orders: dict[str, Order], sampled: SampledYield, along: bool) -> Belief:
    """By derivatives, where the samples confirm them and are less sure."""
    good, error = 1 - sampled.rejects, sampled.error
    say = lambda why, error=error: Belief("sampled", good, error, why)
    if sampled.failed > 0:
        return say(f"{100 * sampled.failed:.3g} % of the samples have no value, which derivatives cannot see")
    if along:
        return say("a part is rejected that leaves the limits anywhere along the stroke; derivatives see one place")
    method, best = list(orders.items())[-1]
    first, second = orders["first order"], orders.get("second order")
    if not best.misfit <= POOR:
        return say(f"{_poor(method, best)}; samples see it as it is")
    apart = lambda x: abs(x.good - good) / error if error > 0 else (0.0 if x.good == good else np.inf)
    changed = f"; {100 * sampled.changed:.3g} % of them go another way than the nominal" if sampled.changed > 0 else ""
    if not apart(best) <= _APART:
        which = "first order differs" if second is None else "first and second order differ"
        if second is not None and apart(first) <= _APART:
            which = "second order differs"
        return say(f"{which} from the samples by {apart(best):.2g} of their standard errors{changed}")
    # none of the two is refuted: the statement reaches both
    wide = max(error, abs(best.good - good))
    if best.error > error:
        why = f"{method} says {best.good:.6g} and does not contradict; by itself it is known to {best.error:.2g} only"
        return say(why, wide)
    own = error if np.isnan(best.error) else best.error
    believe = lambda why: Belief(method, best.good, max(own, wide if wide > error else 0.0), why)
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


def _poor(method: str, x: Order) -> str:
    if np.isinf(x.misfit):
        return f"some of a handful of samples have no value, which {method} cannot see"
    return (
        f"{method} does not describe it: at a handful of samples it is off by {x.misfit:.2g} of their standard "
        "deviation, as at a kink"
    )


def _unchecked(orders: dict[str, Order], along: bool) -> Belief:
    """By derivatives alone."""
    method, best = list(orders.items())[-1]
    first, second = orders["first order"], orders.get("second order")
    place = " It is the yield at the worst place: along the whole stroke it is at most that." if along else ""
    error = best.error
    if second is not None and np.isnan(error):
        error = abs(second.good - first.good)
    say = lambda why: Belief(method, best.good, error, f"{why}{'.' * bool(place)}{place}".strip("."))
    if not best.misfit <= POOR:
        return say(f"{_poor(method, best)}; there are no samples to see it as it is")
    if second is None:
        return say("nothing else was asked for, so nothing confirms it")
    room = max(min(1 - second.good, 1 - first.good), 0.0)
    if abs(second.good - first.good) <= 0.1 * room + 1e-9:
        return say("first and second order agree; there are no samples to check them")
    return say(f"first order says {first.good:.6g} and misses the curvature; there are no samples to check either")
