"""How an analysis ended, in words."""

import equinox as eqx
from jaxtyping import Array, Int


class RESULTS(eqx.Enumeration):
    """How an analysis ended. Values are sentences of advice; compare with `==`.

    !!! Example

        >>> bool(RESULTS.successful == RESULTS.successful)
        True
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
        "The maximum number of steps was reached (in kinematics, between two output times). Increase `max_steps`, or "
        "give a finer time grid."
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


_CODES = (*RESULTS._name_to_item, "stopped")


def code(name: str) -> int:
    """The number by which loops tell a result. A simulation may also be "stopped", by a trigger."""
    return _CODES.index(name)


def result_of(number: Int[Array, ""]) -> RESULTS:
    """The result with this number. What a trigger stopped is successful."""
    found = RESULTS.successful
    for i, name in enumerate(_CODES[1:-1], 1):
        found = RESULTS.where(number == i, getattr(RESULTS, name), found)
    return found
