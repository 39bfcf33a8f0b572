from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from ... import frames
from ..._programs.custom_types import Number, Numbers
from ..._programs.precision import number, value
from ..friction import AbstractFriction, joint_friction
from .base import AbstractFlatPair
from .joint import Frame, Joint


class ScrewPair(AbstractFlatPair):
    kind: ClassVar[str] = "screw"
    lead: Float[Array, ""]

    coordinates: ClassVar[tuple[str, ...]] = ("travel",)
    lengths: ClassVar[tuple[bool, ...]] = (True,)

    def phi(self, q: Float[Array, "1"]) -> Float[Array, "4 4"]:
        return helix(2 * jnp.pi * q[0] / self.lead, q[0])


class CylindricalPair(AbstractFlatPair):
    kind: ClassVar[str] = "cylindrical"
    coordinates: ClassVar[tuple[str, ...]] = ("angle", "travel")
    lengths: ClassVar[tuple[bool, ...]] = (False, True)

    def phi(self, q: Float[Array, "2"]) -> Float[Array, "4 4"]:
        return helix(q[0], q[1])


def helix(angle: Float[Array, ""], travel: Float[Array, ""]) -> Float[Array, "4 4"]:
    """A turn about z and a travel along it."""
    turn = frames.embed(frames.PlanarFrame(0 * angle, 0 * angle, angle))
    return turn.at[2, 3].set(travel)


def Screw(
    name: str,
    body_a: str,
    body_b: str,
    frame_a: Frame = None,
    frame_b: Frame = None,
    *,
    lead: Number,
    axis: Numbers | None = None,
    start: Numbers | None = None,
    friction: AbstractFriction | None = None,
) -> Joint:
    """A screw along z: one travel, with a turn for every `lead` (A.1-2, whose last entry is 1).

    Its twist has 2 pi / lead where (A.1-5) prints 2 pi / q. A negative lead is a left-hand thread.
    Forces act on its travel by name: a spring against it is `Spring("vice", stiffness=...)`. `friction`: a
    [`mbsjax.JointFriction`][] with the mean `radius` of the thread, or a [`mbsjax.DryTorque`][].

    !!! Example

        >>> Screw("vice", "ground", "jaw", lead=0.004).phi(0.004)[2, 3].item()
        0.004
    """
    lead = number(lead, f"the lead of screw {name!r}")
    if value(lead) == 0:
        raise ValueError(f"the lead of screw {name!r} must not be zero")
    friction = joint_friction(friction, name, needs=("radius",))
    return Joint(name, body_a, body_b, ScrewPair(lead), frame_a, frame_b, axis=axis, start=start, friction=friction)


def Cylindrical(
    name: str,
    body_a: str,
    body_b: str,
    frame_a: Frame = None,
    frame_b: Frame = None,
    *,
    axis: Numbers | None = None,
    start: Numbers | None = None,
) -> Joint:
    """An angle about z and a travel along it (A.1-7).

    !!! Example

        >>> Cylindrical("sleeve", "rod", "collar").phi((0.0, 2.0))[2, 3].item()
        2.0
    """
    return Joint(name, body_a, body_b, CylindricalPair(), frame_a, frame_b, axis=axis, start=start)
