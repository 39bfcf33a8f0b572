from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ... import frames
from ..._programs.custom_types import Matrix4, Number, Numbers
from ..play import Play
from .base import AbstractPair
from .joint import Frame, Joint


class SphericalPair(AbstractPair):
    kind: ClassVar[str] = "spherical"
    coordinates: ClassVar[tuple[str, ...]] = ("rotation_x", "rotation_y", "rotation_z")
    lengths: ClassVar[tuple[bool, ...]] = (False, False, False)

    @property
    def rest(self) -> tuple[float, ...]:
        return (1.0, 0.0, 0.0, 0.0)

    @property
    def slots(self) -> tuple[int | None, ...]:
        return (None, None, None)

    def phi(self, q: Float[Array, "4"]) -> Float[Array, "4 4"]:
        return frames.pose(frames.quaternion_matrix(q), jnp.zeros_like(q[1:]))

    def retract(self, q: Float[Array, "4"], d: Float[Array, "3"]) -> Float[Array, "4"]:
        e = frames.quaternion_product(q, frames.quaternion_exp(d))
        return e / jnp.sqrt(jnp.sum(e * e))

    @property
    def play_places(self) -> int:
        return 3

    def displacement(self, play: Play) -> tuple[Matrix4, None]:
        return frames.translation(play.size * play.lies), None


class FreePair(AbstractPair):
    kind: ClassVar[str] = "free"
    coordinates: ClassVar[tuple[str, ...]] = ("rotation_x", "rotation_y", "rotation_z", "x", "y", "z")
    lengths: ClassVar[tuple[bool, ...]] = (False, False, False, True, True, True)

    @property
    def rest(self) -> tuple[float, ...]:
        return (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @property
    def slots(self) -> tuple[int | None, ...]:
        return (None, None, None, 4, 5, 6)

    def phi(self, q: Float[Array, "7"]) -> Float[Array, "4 4"]:
        return frames.pose(frames.quaternion_matrix(q[:4]), q[4:])

    def retract(self, q: Float[Array, "7"], d: Float[Array, "6"]) -> Float[Array, "7"]:
        return jnp.concatenate([SphericalPair().retract(q[:4], d[:3]), q[4:] + d[3:]])


def Spherical(
    name: str,
    body_a: str,
    body_b: str,
    frame_a: Frame = None,
    frame_b: Frame = None,
    *,
    start: Numbers | None = None,
    play: Number | Play | None = None,
) -> Joint:
    """A ball joint. It stores Euler parameters (e0, e1, e2, e3); its degrees of freedom are rotations about
    the axes of frame k+, so that, unlike the Euler angles of (A.1-11), no position is singular.
    `play`: how far the ball can go from the middle of its cavity, or a [`mbsjax.Play`][].

    !!! Example

        >>> Spherical("ball", "rod", "slider").phi((0.0, 1.0, 0.0, 0.0)).diagonal().tolist()
        [1.0, -1.0, -1.0, 1.0]
    """
    return Joint(name, body_a, body_b, SphericalPair(), frame_a, frame_b, start=start, play=play)


def Free(
    name: str, body_a: str, body_b: str, frame_a: Frame = None, frame_b: Frame = None, *, start: Numbers | None = None
) -> Joint:
    """Six degrees of freedom: Euler parameters as in [`mbsjax.Spherical`][], then the position in frame k-.

    For a body of a spatial mechanism that nothing else connects (thesis 2.2.2).

    !!! Example

        >>> Free("float", "ground", "top").phi((1.0, 0, 0, 0, 1.0, 2.0, 3.0))[:3, 3].tolist()
        [1.0, 2.0, 3.0]
    """
    return Joint(name, body_a, body_b, FreePair(), frame_a, frame_b, start=start)
