"""Joints with play made to what they are in dynamics: free within their clearance."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .. import frames
from .._programs.custom_types import Matrix4
from .._programs.precision import value
from ..frames import PlanarFrame
from .body import Body
from .friction import JointFriction
from .joint.base import AbstractPair, AbstractPlanarPair, Pose
from .joint.clearance import Clearance
from .joint.gear import GearPair
from .joint.joint import Joint
from .joint.loose import LooseBallPair, LoosePair
from .joint.planar import PinSlotPair
from .joint.prismatic import PrismaticPair
from .joint.revolute import RevolutePair
from .joint.spherical import SphericalPair
from .mechanism import Mechanism
from .play import Play


_KINDS = {  # the kind of clearance, and the freedoms that the play gives
    RevolutePair: ("bore", ("x", "y")),
    PinSlotPair: ("slot", ("y",)),
    PrismaticPair: ("guide", ("y", "angle")),
    GearPair: ("backlash", ("angle",)),
    SphericalPair: ("cavity", ("x", "y", "z")),
}

Frame = PlanarFrame | Matrix4


def loosened(mech: Mechanism) -> Mechanism:
    """The mechanism with its joints free within their play; [`mbsjax.state`][] and [`mbsjax.simulate`][] use it.

    Of a joint `"B"` with play remains the joint `"B"`, with its coordinates, its friction and what names it, to a piece
    without mass, `"B seat"`. How that lies in the play is a joint of its own, `"B play"`: x and y of a pin in its bore
    along the axes of frame k-, y of a pin in a slot, y and angle of a block in its guide, the angle of a wheel b,
    x, y and z of a ball in its cavity. A contact holds it: `"B bore"`, `"B slot"`, `"B front"` and `"B rear"` of a
    guide, `"B backlash"`, `"B cavity"`. Where no joint has play, it is the mechanism itself.

    !!! Example

        >>> import mbsjax as mbs
        >>> arm = mbs.Mechanism([mbs.Body("arm")], [mbs.Revolute("O", "ground", "arm", play=0.01)])
        >>> loose = mbs.loosened(arm)
        >>> loose.coordinates, loose.contacts[0].name
        (('O', 'O play.x', 'O play.y'), 'O bore')
    """
    if all(joint.play is None for joint in mech.joints):
        return mech
    bodies, joints, contacts = list(mech.bodies), [], list(mech.contacts)
    for joint in mech.joints:
        if joint.play is None:
            joints.append(joint)
            continue
        parted, held = _parted(joint, joint.play)
        bodies.append(Body(_seat(joint)))
        joints += parted
        contacts += held
    joints = (*joints, *contacts)
    rest = {name: getattr(mech, name) for name in ("forces", "gravity", "planar", "units")}
    return Mechanism(bodies, joints, mech.gauges, **rest)


def _seat(joint: Joint) -> str:
    return f"{joint.name} seat"


def _parted(joint: Joint, play: Play) -> tuple[list[Joint], list[Clearance]]:
    """A joint and its play, each a joint; and the contacts that hold the play."""
    _check(joint, play)
    if type(joint.pair) not in _KINDS:
        raise ValueError(
            f"joint {joint.name!r} is of a kind of the user's own: nobody knows how it moves within its play"
        )
    kind, free = _KINDS[type(joint.pair)]
    D, E = joint.pair.displacement(play)
    whole = joint.body_a, joint.body_b, joint.frame_a, joint.frame_b
    flat = isinstance(joint.frame_a, PlanarFrame) and isinstance(joint.frame_b, PlanarFrame)
    own = PlanarFrame(*jnp.zeros(3)) if flat else jnp.eye(4)
    first = joint.body_a, _seat(joint), joint.frame_a, own
    second = _seat(joint), joint.body_b, own, joint.frame_b
    where, others = (first, second) if E is None else (second, first)  # the play comes before the joint, or behind it
    pair = LooseBallPair() if kind == "cavity" else LoosePair(free)
    loose = _joint(f"{joint.name} play", where, pair, start=_start(E if D is None else D, free))
    kept = _joint(joint.name, others, joint.pair, start=joint.start if joint.given else None, friction=joint.friction)
    kept = eqx.tree_at(lambda j: j.start, kept, joint.start)
    # what rubs turns with the bodies; else the joint carries what its play does
    return [kept, loose], _clearances(joint, play, kind, *(where if play.friction is None else whole))


def _joint(name: str, where: tuple[str, str, Frame, Frame], pair: AbstractPair, **more: Any) -> Joint:
    body_a, body_b, frame_a, frame_b = where
    return Joint(name, body_a, body_b, pair, frame_a, frame_b, **more)


def _check(joint: Joint, play: Play) -> None:
    what = f"the play of joint {joint.name!r}"
    if value(play.size) <= 0:
        raise ValueError(f"{what} must be positive where it moves within it: leave it out, if it has none")
    if play.friction is None:
        return
    if isinstance(joint.pair, GearPair | SphericalPair):
        raise ValueError(f"{what} cannot have friction: gears and balls rub in more ways than one")
    if isinstance(joint.friction, JointFriction):
        raise ValueError(f"joint {joint.name!r} has friction, and so has its play: give one of them")
    if play.radius is None and not isinstance(joint.pair, PrismaticPair):
        raise ValueError(f"{what} has friction, and needs the radius of its pin")


def _start(pose: Pose | None, free: tuple[str, ...]) -> Float[Array, " n"]:
    """Where it lies in its play."""
    if isinstance(pose, PlanarFrame):
        return jnp.stack([getattr(pose, name) for name in free])
    assert pose is not None
    return pose[:3, 3]


def _clearances(
    joint: Joint, play: Play, kind: str, body_a: str, body_b: str, frame_a: Frame, frame_b: Frame
) -> list[Clearance]:
    frame_a, frame_b = (_in_plane(joint, frame) for frame in (frame_a, frame_b))
    if kind == "guide":
        assert play.length is not None
        ends = (("front", play.length / 2), ("rear", -play.length / 2))
        return [
            Clearance(f"{joint.name} {name}", kind, body_a, body_b, frame_a, _along(frame_b, way), play)
            for name, way in ends
        ]
    if isinstance(joint.pair, GearPair) and play.radius is None:
        # any radius will do that makes a length of the angle: that of the pitch circle
        radius = jax.lax.stop_gradient(jnp.abs(joint.start[1] / (1 + joint.pair.ratio)))
        play = eqx.tree_at(lambda p: p.radius, play, radius, is_leaf=lambda x: x is None)
    return [Clearance(f"{joint.name} {kind}", kind, body_a, body_b, frame_a, frame_b, play)]


def _in_plane(joint: Joint, frame: Frame) -> Frame:
    """A frame of a joint with x along the plane in which it moves, z across: as frames in the plane are."""
    if isinstance(frame, PlanarFrame) or not isinstance(joint.pair, AbstractPlanarPair):
        return frame
    return frames.compose(frame, jnp.asarray(joint.pair.lift.T))


def _along(frame: Frame, way: Array) -> Frame:
    """A frame that is some way off along x."""
    if isinstance(frame, PlanarFrame):
        return PlanarFrame(frame.x + way * jnp.cos(frame.angle), frame.y + way * jnp.sin(frame.angle), frame.angle)
    return frames.compose(frame, frames.translation(way * jnp.array([1.0, 0.0, 0.0])))
