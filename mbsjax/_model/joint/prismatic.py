from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._numerics.groups import SE2
from ..._programs.custom_types import Number, Numbers
from ...frames import PlanarFrame
from ..friction import AbstractFriction, joint_friction
from ..play import Play, guide_play
from .base import AbstractPlanarPair
from .joint import Frame, Joint


class PrismaticPair(AbstractPlanarPair):
    kind: ClassVar[str] = "prismatic"
    coordinates: ClassVar[tuple[str, ...]] = ("travel",)
    lengths: ClassVar[tuple[bool, ...]] = (True,)
    # the axes y, z, x of the frame in the plane become x, y, z of the frame in space
    lift: ClassVar[np.ndarray] = np.eye(4)[[2, 0, 1, 3]]
    screws: ClassVar[np.ndarray] = np.array([[0.0], [1.0], [0.0]])

    def planar(self, q: Float[Array, "1"]) -> SE2:
        zero = jnp.zeros_like(q[0])
        return SE2(zero + 1, zero, q[0], zero, zero)

    @property
    def play_places(self) -> int:
        return 2

    @property
    def play_discs(self) -> tuple[int, ...]:
        return 1, 1  # each end by itself

    def displacement(self, play: Play) -> tuple[None, PlanarFrame]:
        front, rear = play.size * play.lies
        assert play.length is not None  # a guide's play has one
        return None, PlanarFrame(0 * front, (front + rear) / 2, jnp.arctan2(front - rear, play.length))


def Prismatic(
    name: str,
    body_a: str,
    body_b: str,
    frame_a: Frame = None,
    frame_b: Frame = None,
    *,
    axis: Numbers | None = None,
    start: Numbers | None = None,
    friction: AbstractFriction | None = None,
    play: Number | Play | None = None,
    length: Number | None = None,
) -> Joint:
    """A slide: one travel, along z of a frame in space, along x of a frame in the plane (2.3.3-3).

    (2.3.3-4) as printed has its 1 at (2,4); it belongs at (3,4). Frames, `axis` and `start` as in
    [`mbsjax.Joint`][]. `friction`: a [`mbsjax.JointFriction`][], perhaps with the `length` of the guide, or a
    [`mbsjax.DryTorque`][]. `play`: how far each end of the block, which has a `length`, can go to either side of its
    guide on `body_a`, or a [`mbsjax.Play`][].

    !!! Example

        >>> guide = Prismatic("guide", "ground", "follower", axis=(0.0, 1.0))
        >>> guide.interlink(0.25)[:3, 3].round(12).tolist()
        [0.0, 0.25, 0.0]
    """
    friction = joint_friction(friction, name, takes=("length",))
    pair, play = PrismaticPair(), guide_play(play, length, name)
    return Joint(name, body_a, body_b, pair, frame_a, frame_b, axis=axis, start=start, friction=friction, play=play)
