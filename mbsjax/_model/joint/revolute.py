from typing import ClassVar

import numpy as np
from jaxtyping import Array, Float

from ..._numerics.groups import SE2
from ..._programs.custom_types import Number, Numbers
from ...frames import PlanarFrame
from ..friction import AbstractFriction, joint_friction
from ..play import Play
from .base import KEEP, AbstractPlanarPair
from .joint import Frame, Joint


class RevolutePair(AbstractPlanarPair):
    kind: ClassVar[str] = "revolute"
    coordinates: ClassVar[tuple[str, ...]] = ("angle",)
    lengths: ClassVar[tuple[bool, ...]] = (False,)
    lift: ClassVar[np.ndarray] = KEEP
    screws: ClassVar[np.ndarray] = np.array([[1.0], [0.0], [0.0]])

    def planar(self, q: Float[Array, "1"]) -> SE2:
        zero = 0 * q[0]
        return SE2.of(PlanarFrame(zero, zero, q[0]))

    @property
    def play_places(self) -> int:
        return 2

    def displacement(self, play: Play) -> tuple[PlanarFrame, None]:
        x, y = play.size * play.lies
        return PlanarFrame(x, y, 0 * x), None


def Revolute(
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
) -> Joint:
    """A hinge about z: one angle, continuous over many turns (2.3.3-1).

    Frames, `axis` and `start` as in [`mbsjax.Joint`][]. `friction`: a [`mbsjax.JointFriction`][] with the `radius` of
    the pin, or a [`mbsjax.DryTorque`][]. `play`: how far the pin can go from the middle of its bore, or a
    [`mbsjax.Play`][].

    !!! Example

        >>> Revolute("O", "ground", "crank").phi(0.0).diagonal().tolist()
        [1.0, 1.0, 1.0, 1.0]
    """
    friction = joint_friction(friction, name, needs=("radius",))
    pair = RevolutePair()
    return Joint(name, body_a, body_b, pair, frame_a, frame_b, axis=axis, start=start, friction=friction, play=play)
