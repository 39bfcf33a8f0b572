"""The mode of a simulation: what stays the same between two events."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
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

    @staticmethod
    def shapes(c: int, n: int, r: int, dtype: Any) -> "Mode":
        """That of c contacts, n switches and r pairs with friction, as shapes of arrays."""
        contacts, switches, pairs = (jax.ShapeDtypeStruct((k,), dtype) for k in (c, n, r))
        on = jax.ShapeDtypeStruct((c,), jnp.dtype(bool))
        return Mode(on, Places.shapes(c, dtype), contacts, switches, pairs)  # pyright: ignore

    def sided(self, switches: Float[Array, "n *lanes"]) -> "Mode":
        """The mode with its switches on the sides that these values are on. What is zero is not positive: a force that
        acts while something moves does not act at rest."""
        return self._replace(signs=signs_of(switches))


def signs_of(switches: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """On which side of zero each switch is."""
    return jnp.where(switches > 0, jnp.ones_like(switches), -1.0)
