"""Where contacts are."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Places(NamedTuple):
    """The elements of the first and of the second profile that contacts are on, and the local coordinates there."""

    e1: Int[Array, "*c"]
    e2: Int[Array, "*c"]
    s1: Float[Array, "*c"]
    s2: Float[Array, "*c"]

    @staticmethod
    def shapes(c: int, dtype: Any) -> "Places":
        """Those of c contacts, as shapes of arrays."""
        elements, numbers = (jax.ShapeDtypeStruct((c,), kind) for kind in (jax.dtypes.canonicalize_dtype(int), dtype))
        return Places(elements, elements, numbers, numbers)  # pyright: ignore

    def where(self, chosen: Bool[Array, "*c"], others: "Places") -> "Places":
        """These for the chosen contacts, others for the others."""
        return Places(*(jnp.where(chosen, x, y) for x, y in zip(self, others)))
