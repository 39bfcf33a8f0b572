from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._programs.custom_types import Numbers
from .base import AbstractFlatPair
from .joint import Frame, Joint


class UniversalPair(AbstractFlatPair):
    kind: ClassVar[str] = "universal"
    coordinates: ClassVar[tuple[str, ...]] = ("angle_a", "angle_b")
    lengths: ClassVar[tuple[bool, ...]] = (False, False)

    def phi(self, q: Float[Array, "2"]) -> Float[Array, "4 4"]:
        (c1, c2), (s1, s2) = jnp.cos(q), jnp.sin(q)
        o, i = 0 * c1, 0 * c1 + 1
        rows = (
            (c1 * c2, -c1 * s2, s1, o),
            (s1 * c2, -s1 * s2, -c1, o),
            (s2, c2, o, o),
            (o, o, o, i),
        )
        return jnp.stack([jnp.stack(row) for row in rows])


def Universal(
    name: str, body_a: str, body_b: str, frame_a: Frame = None, frame_b: Frame = None, *, start: Numbers | None = None
) -> Joint:
    """Two angles about crossing, perpendicular axes: z of frame k-, then z of frame k+ (A.1-17).

    The axes stay perpendicular whatever the angles, so no position is singular. (A.1-19) as printed
    has sines and cosines exchanged: the second axis is (sin q1, -cos q1, 0).

    !!! Example

        >>> Universal("cardan", "shaft", "yoke").phi((0.0, 0.0))[:3, 2].tolist()
        [0.0, -1.0, 0.0]
    """
    return Joint(name, body_a, body_b, UniversalPair(), frame_a, frame_b, start=start)
