from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._numerics.groups import SE2
from .base import KEEP, AbstractPlanarPair
from .joint import Frame, Joint


class FixedPair(AbstractPlanarPair):
    kind: ClassVar[str] = "fixed"
    coordinates: ClassVar[tuple[str, ...]] = ()
    lengths: ClassVar[tuple[bool, ...]] = ()
    lift: ClassVar[np.ndarray] = KEEP

    def planar(self, q: Float[Array, "0"]) -> SE2:
        return SE2.origin(jnp.zeros((), q.dtype))


def Fixed(name: str, body_a: str, body_b: str, frame_a: Frame = None, frame_b: Frame = None) -> Joint:
    """No degree of freedom: phi is the identity. Frames as in [`mbsjax.Joint`][].

    !!! Example

        >>> Fixed("weld", "ground", "frame").phi(()).tolist() == jnp.eye(4).tolist()
        True
    """
    return Joint(name, body_a, body_b, FixedPair(), frame_a, frame_b)
