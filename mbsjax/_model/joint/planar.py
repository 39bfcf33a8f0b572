from typing import ClassVar

import numpy as np
from jaxtyping import Array, Float

from ..._numerics.groups import SE2
from ..._programs.custom_types import Number, Numbers
from ...frames import PlanarFrame
from ..play import Play
from .base import KEEP, AbstractPlanarPair
from .joint import Frame, Joint


class PlanarPair(AbstractPlanarPair):
    kind: ClassVar[str] = "planar"
    coordinates: ClassVar[tuple[str, ...]] = ("angle", "x", "y")
    lengths: ClassVar[tuple[bool, ...]] = (False, True, True)
    lift: ClassVar[np.ndarray] = KEEP

    def planar(self, q: Float[Array, "3"]) -> SE2:
        return SE2.of(PlanarFrame(q[1], q[2], q[0]))


class PinSlotPair(AbstractPlanarPair):
    kind: ClassVar[str] = "pinslot"
    coordinates: ClassVar[tuple[str, ...]] = ("angle", "travel")
    lengths: ClassVar[tuple[bool, ...]] = (False, True)
    lift: ClassVar[np.ndarray] = KEEP

    def planar(self, q: Float[Array, "2"]) -> SE2:
        return SE2.of(PlanarFrame(q[1], 0 * q[0], q[0]))

    @property
    def play_places(self) -> int:
        return 1

    def displacement(self, play: Play) -> tuple[PlanarFrame, None]:
        (y,) = play.size * play.lies
        return PlanarFrame(0 * y, y, 0 * y), None


def Planar(
    name: str, body_a: str, body_b: str, frame_a: Frame = None, frame_b: Frame = None, *, start: Numbers | None = None
) -> Joint:
    """Free motion in a plane: angle, x, y (A.1-21).

    The entries of (A.1-22) at (1,4) and (2,4) are +q3 and -q2. A planar mechanism uses this joint
    for a body that nothing else connects.

    !!! Example

        >>> Planar("float", "ground", "plate").phi((0.0, 1.0, 2.0))[:2, 3].tolist()
        [1.0, 2.0]
    """
    return Joint(name, body_a, body_b, PlanarPair(), frame_a, frame_b, start=start)


def PinSlot(
    name: str,
    body_a: str,
    body_b: str,
    frame_a: Frame = None,
    frame_b: Frame = None,
    *,
    axis: Numbers | None = None,
    start: Numbers | None = None,
    play: Number | Play | None = None,
) -> Joint:
    """A pin of `body_b` in a straight slot of `body_a` along x: angle and travel.

    Haug's planar revolute-translational composite joint (3.3.17): the distance of the slot from a
    point is part of the frame. With `axis`, a direction in the plane, the slot runs along it.
    `play`: how far the pin can go from the middle of the slot, or a [`mbsjax.Play`][].

    !!! Example

        >>> PinSlot("slot", "arm", "slider").phi((0.0, 0.7))[0, 3].item()
        0.7
    """
    return Joint(name, body_a, body_b, PinSlotPair(), frame_a, frame_b, axis=axis, start=start, play=play)
