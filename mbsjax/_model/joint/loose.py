"""The freedoms that play gives to a joint."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ... import frames
from ..._numerics.groups import SE2
from .base import KEEP, AbstractFlatPair, AbstractPlanarPair
from .prismatic import PrismaticPair


class LoosePair(AbstractPlanarPair):
    """Some of the freedoms x, y and angle in the plane: of a pin in a bore or slot, a block in a guide, a wheel."""

    kind: ClassVar[str] = "loose"
    free: tuple[str, ...] = eqx.field(static=True)

    @property
    def coordinates(self) -> tuple[str, ...]:
        return self.free

    @property
    def lengths(self) -> tuple[bool, ...]:
        return tuple(name != "angle" for name in self.coordinates)

    @property
    def lift(self) -> np.ndarray:
        return PrismaticPair.lift if self.coordinates == ("y", "angle") else KEEP

    @property
    def screws(self) -> np.ndarray | None:
        if "angle" in self.coordinates and len(self.coordinates) > 1:
            return None
        return np.eye(3)[:, [("angle", "x", "y").index(name) for name in self.coordinates]]

    def planar(self, q: Float[Array, " nq"]) -> SE2:
        zero = jnp.zeros_like(q[0])
        x, y, angle = (q[self.coordinates.index(n)] if n in self.coordinates else zero for n in ("x", "y", "angle"))
        turned = (jnp.cos(angle), jnp.sin(angle)) if "angle" in self.coordinates else (zero + 1, zero)
        return SE2(*turned, x, y, angle)


class LooseBallPair(AbstractFlatPair):
    """A ball that can move in its cavity."""

    kind: ClassVar[str] = "looseball"
    coordinates: ClassVar[tuple[str, ...]] = ("x", "y", "z")
    lengths: ClassVar[tuple[bool, ...]] = (True, True, True)

    def phi(self, q: Float[Array, "3"]) -> Float[Array, "4 4"]:
        return frames.translation(q)
