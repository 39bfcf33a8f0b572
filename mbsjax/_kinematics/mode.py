"""The mode of a driven motion: what stays the same between two events (thesis 2.5)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._events.places import Places


class Mode(NamedTuple):
    """Which contacts are active, on which elements, and what rests.

    The freedoms that no driver moves and no contact holds rest. Each of the n freedoms of a mechanism beyond its
    drivers has a resting coordinate and one equation: that it stands where it is held, or, once a contact has taken
    hold of it, that the gap of this contact is zero. So shapes do not depend on which contacts are active.
    """

    rests: Int[Array, "n *lanes"]  # freedoms
    owner: Int[Array, "n *lanes"]  # the contact whose gap is kept zero instead; -1 for none
    held: Float[Array, "n *lanes"]
    drift: Float[Array, "n *lanes"]  # how fast `held` moves while a body drops: then time stands still,
    clock: Float[Array, "*lanes"]  # 0 instead of 1
    places: Places  # where each contact was last
    push: Float[Array, "c *lanes"]  # in which direction a contact moves the coordinate that it took: 1 or -1

    @staticmethod
    def shapes(n: int, c: int, dtype: Any) -> "Mode":
        """That of n freedoms and c contacts, as shapes of arrays."""
        freedoms, numbers, contacts, clock = (
            jax.ShapeDtypeStruct(shape, kind)
            for shape, kind in (((n,), jax.dtypes.canonicalize_dtype(int)), ((n,), dtype), ((c,), dtype), ((), dtype))
        )
        places = Places.shapes(c, dtype)
        return Mode(freedoms, freedoms, numbers, numbers, clock, places, contacts)  # pyright: ignore

    @property
    def active(self) -> Bool[Array, "c *lanes"]:
        numbers = np.arange(self.push.shape[0]).reshape(-1, *(1,) * self.owner.ndim)
        return jnp.any(self.owner[None] == numbers, 1)
