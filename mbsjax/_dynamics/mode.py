"""The mode of a simulation: what stays the same between two events."""

from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int


class Mode(NamedTuple):
    """Which contacts are active and where, and on which sides of zero the switches are."""

    active: Bool[Array, "c *lanes"]
    e1: Int[Array, "c *lanes"]  # the elements of each contact
    e2: Int[Array, "c *lanes"]
    s1: Float[Array, "c *lanes"]  # and where on them it was last
    s2: Float[Array, "c *lanes"]
    approach: Float[Array, "c *lanes"]  # the speed at which each contact closed
    signs: Float[Array, "n *lanes"]  # of the switches: of the forces, then of the triggers

    @property
    def places(self) -> tuple[Array, ...]:
        return self.e1, self.e2, self.s1, self.s2

    def at(self, places: tuple[Array, ...]) -> "Mode":
        """With the contacts in other places."""
        e1, e2, s1, s2 = places
        return self._replace(e1=e1, e2=e2, s1=s1, s2=s2)
