"""Array types shared by the whole package."""

from typing import Any

from jaxtyping import Array, Float


Numbers = Any  # a number, an array, or nested rows of them; `as_float` checks them
Vector3 = Float[Array, "*#batch 3"]
Matrix4 = Float[Array, "*#batch 4 4"]
Twist = Float[Array, "*#batch 6"]
