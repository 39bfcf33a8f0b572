"""The mode of a simulation: what stays the same between two events."""

from typing import NamedTuple

from jaxtyping import Array, Bool, Float

from .._events.places import Places


class Mode(NamedTuple):
    """Which contacts are active and where, on which sides of zero the switches are, and which pairs with friction slide
    which way."""

    active: Bool[Array, "c *lanes"]
    places: Places  # where each contact was last
    approach: Float[Array, "c *lanes"]  # the speed at which each contact closed
    signs: Float[Array, "n *lanes"]  # of the switches: of the forces, then of the triggers
    slide: Float[Array, "r *lanes"]  # 1 or -1; 0 where they stick
