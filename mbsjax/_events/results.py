"""How an analysis ended, in words."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from .._programs.precision import is_concrete
from .._programs.reprs import short


class RESULTS(eqx.Enumeration):
    """How an analysis ended. Values are sentences of advice, `RESULTS[sol.result]`; compare with `==`.

    - `successful`.
    - `not_assembled`, `overlapping`: there is no position to begin from, or bodies overlap in it.
    - `locked`, `jammed`, `fell`: a driven motion cannot go on.
    - `no_equilibrium`: no position of rest was found.
    - `not_closed`: a position was found whose loops, gauges or contacts are open.
    - `max_steps_reached`, `max_events_reached`, `step_too_small`, `nonfinite`: a simulation or a motion gave up.
    - `painleve`: friction and rigid bodies contradict each other.

    !!! Example

        >>> RESULTS.successful, bool(RESULTS.successful == RESULTS.locked)
        (RESULTS.successful, False)
    """

    successful = ""
    not_assembled = (
        "The loops of the mechanism could not be closed: either it cannot be assembled with these dimensions, "
        "or the estimate is poor. Try `estimate=` nearer to an assembled position."
    )
    locked = (
        "The mechanism locked: from there on, no position near the last one satisfies both the loops and the drivers. "
        "With `throw=False` the motion up to there is returned, and `stopped_at` tells when."
    )
    max_steps_reached = (
        "The maximum number of steps was reached. Increase `max_steps`; in kinematics, where it counts between two "
        "output times, give a finer time grid."
    )
    nonfinite = "A coordinate or a driver became infinite or NaN. Check the driver functions over the time grid."
    jammed = (
        "The mechanism jammed: a contact closed, and neither a driver, nor another contact, nor a coordinate at rest "
        "can give way. `motion.events` tells which contacts hold it."
    )
    max_events_reached = "The maximum number of contact events was reached. Increase `max_events`."
    fell = "A body whose contact presses it on dropped, and met nothing on its way. Extend the profile."
    no_equilibrium = "No position of rest was found near the estimate: the forces do not vanish anywhere near."
    overlapping = "Bodies interpenetrate at the start: check the dimensions, or give an estimate from outside."
    step_too_small = (
        "The step that the tolerance asks for became too small. Is a force discontinuous without a switch, or a "
        "contact very stiff? Try a larger tolerance, or an implicit solver such as `diffrax.Kvaerno5()`."
    )
    painleve = (
        "A sliding contact has no force that keeps its bodies apart, or several (Painleve's paradox): friction presses "
        "them together harder than it lets them part. The bodies are not rigid there: give the contact a `law`, or "
        "take a smaller coefficient of friction."
    )
    not_closed = (
        "A loop, a gauge or an active contact is open, by more than 1e-10 of the mechanism's size, in a position that "
        "was found: a singular position is near. Try a finer time grid, smaller tolerances, or another `estimate=`."
    )


_made: Any = RESULTS
_Member: Any = type(RESULTS.successful)
_where = RESULTS.where


class Result(_Member):
    """A member of the enumeration, or a batch of them. It shows its name: that of a success has no sentence to show."""

    def __repr__(self) -> str:
        title, names, value = self._enumeration.__name__, list(self._enumeration._name_to_item), self._value
        if not isinstance(value, np.ndarray | jax.Array) or not is_concrete(value):
            return f"{title}<{short(value)}>"
        if not value.ndim:
            return f"{title}.{names[int(value)]}"
        counted = zip(*np.unique(np.asarray(value), return_counts=True))
        return f"{title}<{', '.join(f'{n} {names[k]}' for k, n in counted)}>"


def _named_where(pred: Any, a: Any, b: Any) -> Any:
    return Result(_where(pred, a, b)._value, _made)


_made._name_to_item.update({name: Result(item._value, _made) for name, item in _made._name_to_item.items()})
_made.where = staticmethod(_named_where)


_CODES = (*RESULTS._name_to_item, "stopped")


def code(name: str) -> int:
    """The number by which loops tell a result. A simulation may also be "stopped", by a trigger."""
    return _CODES.index(name)


def result_of(number: Int[Array, ""]) -> RESULTS:
    """The result with this number. What a trigger stopped is successful."""
    value = jnp.where(number == code("stopped"), 0, number)
    return Result(value.astype(_made.successful._value.dtype), _made)
