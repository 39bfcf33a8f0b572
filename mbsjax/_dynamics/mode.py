"""The mode of a simulation: what stays the same between two events."""

from typing import NamedTuple

from jaxtyping import Array, Bool, Float

from .._events.places import Places


class Mode(NamedTuple):
    """Which contacts are active and where, and on which sides of zero the switches are."""

    active: Bool[Array, "c *lanes"]
    places: Places  # where each contact was last
    approach: Float[Array, "c *lanes"]  # the speed at which each contact closed
    signs: Float[Array, "n *lanes"]  # of the switches: of the forces, then of the triggers
