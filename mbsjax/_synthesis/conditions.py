"""What designers ask of a mechanism: functions to measure it by, for conditions and goals."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._kinematics.motion import Motion
from .._kinematics.track import ContactTrack
from .._programs.precision import as_float
from ..frames import PlanarFrame


def grashof(crank: Any, coupler: Any, rocker: Any, ground: Any) -> Float[Array, "3"]:
    """How far a crank-rocker is from a four-bar whose crank cannot turn: three margins, all positive if it can go round
    and is the shortest link. (Of a drag link, whose ground is the shortest, they are not.)

    The crank passes both positions in line with the ground if a triangle of coupler and rocker closes there: ground +
    crank < coupler + rocker, and |coupler - rocker| < ground - crank.

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.grashof(1.0, 3.0, 3.5, 4.0).tolist()
        [1.5, 2.5, 3.5]
    """
    a, b, c, d = (as_float(x, "a length") for x in (crank, coupler, rocker, ground))
    return jnp.stack([b + c - a - d, d - a + b - c, d - a + c - b])


def increasing(x: Any) -> Float[Array, " n"]:
    """Differences of a row of numbers, such as the crank angles of points to be passed in order: positive if they are.

    !!! Example

        >>> increasing(jnp.array([1.0, 2.0, 4.0])).tolist()
        [1.0, 2.0]
    """
    return jnp.diff(as_float(x, "a row of numbers"))


def inside(points: Any, corners: Any) -> Float[Array, "n sides"]:
    """How far points lie within the sides of a convex region, whose corners are given counter-clockwise: positive
    inside. To keep pivots in the room there is.

    !!! Example

        >>> inside((1.0, 0.5), [(0.0, 0.0), (4.0, 0.0), (4.0, 2.0), (0.0, 2.0)]).tolist()
        [[0.5, 3.0, 1.5, 1.0]]
    """
    p, c = jnp.atleast_2d(as_float(points, "points")), as_float(corners, "the corners of a region")
    if p.shape[1] != 2 or c.ndim != 2 or c.shape[1] != 2 or c.shape[0] < 3:
        raise ValueError(f"points and corners must be pairs, at least three corners; got {p.shape} and {c.shape}")
    side = jnp.roll(c, -1, 0) - c
    inward = jnp.stack([-side[:, 1], side[:, 0]], 1) / jnp.linalg.norm(side, axis=1, keepdims=True)
    return jnp.sum((p[:, None] - c) * inward, -1)


def transmission_angle(motion: Motion, at: str, towards: tuple[str, str]) -> Float[Array, " times"]:
    """The angle between two links that meet in the joint `at`, towards the joints at their other ends: between coupler
    and rocker of a four-bar, say. From 0 to 90 degrees, in radians; at 90 all of the force moves the rocker.

    !!! Example

        >>> import mbsjax as mbs
        >>> four_bar = mbs.Mechanism(
        ...     [mbs.Body("crank"), mbs.Body("coupler"), mbs.Body("rocker")],
        ...     [mbs.Revolute("A", "ground", "crank"), mbs.Revolute("B", "crank", "coupler", (1.0, 0.0)),
        ...      mbs.Revolute("C", "coupler", "rocker", (4.0, 0.0), (3.0, 0.0)),
        ...      mbs.Revolute("D", "ground", "rocker", (6.0, 0.0), start=2.0)])
        >>> motion = mbs.kinematics(four_bar, {"A": 0.0}, [0.0])
        >>> float(jnp.rad2deg(mbs.transmission_angle(motion, "C", ("B", "D")))[0].round(9))
        90.0
    """
    here, one, other = (_joint_at(motion, name) for name in (at, *towards))
    a, b = one - here, other - here
    along, across = jnp.sum(a * b, -1), jnp.linalg.norm(jnp.cross(_spatial(a), _spatial(b)), axis=-1)
    return jnp.arctan2(across, jnp.abs(along))


def pressure_angle(motion: Motion, contact: str) -> Float[Array, " times"]:
    """The angle between the common normal of a contact and the way in which the second body moves there, in radians; 0
    while it rests.

    !!! Example

        >>> import mbsjax as mbs
        >>> cam = mbs.Mechanism(
        ...     [mbs.Body("cam", profiles={"rim": mbs.eccentric(2.0, 1.0)}),
        ...      mbs.Body("follower", profiles={"roller": mbs.disc(1.0)})],
        ...     [mbs.Revolute("O", "ground", "cam"),
        ...      mbs.Prismatic("P", "ground", "follower", axis=(0.0, 1.0), start=3.0),
        ...      mbs.Contact("C", "cam.rim", "follower.roller", active=True)])
        >>> turn = mbs.kinematics(cam, {"O": lambda t: t}, [0.0, jnp.pi / 2])
        >>> round(float(jnp.sin(mbs.pressure_angle(turn, "C")[0])), 9)  # eccentricity over both radii
        0.333333333
    """
    track = motion[contact]
    if not isinstance(track, ContactTrack):
        raise ValueError(f"a pressure angle is one of a contact, and {contact!r} is none")
    body = motion.mech.contact(contact).body_b
    origin, turning = motion.point(body), motion.orientation(body)
    arm = _spatial(track.point - origin.q)
    spin = jnp.stack([0 * turning.v, 0 * turning.v, turning.v], -1) if motion.mech.planar else turning.v
    way, normal = _spatial(origin.v) + jnp.cross(spin, arm), _spatial(track.normal)
    across = jnp.cross(way, normal)
    still = jnp.sum(way**2, -1) == 0
    square = jnp.sum(across**2, -1)
    sine = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
    return jnp.where(still, 0.0, jnp.arctan2(sine, jnp.abs(jnp.sum(way * normal, -1))))


def hertz_pressure(force: Any, radius: Any, width: Any, modulus: Any) -> Array:
    """The largest pressure between two cylinders along a line of length `width` (Hertz): sqrt(F E / (pi w R)).

    - `radius`: R with 1/R = 1/R1 + 1/R2, hollow ones negative.
    - `modulus`: E with 1/E = (1 - nu1^2)/E1 + (1 - nu2^2)/E2.

    !!! Example

        >>> round(float(hertz_pressure(1000.0, 0.01, 0.01, 1.15e11)) / 1e6)
        605
    """
    pressed = jnp.maximum(as_float(force, "a force"), 0.0)
    R, w, E = as_float(radius, "a radius"), as_float(width, "a width"), as_float(modulus, "a modulus")
    square = pressed * E / (jnp.pi * w * R)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)


def _joint_at(motion: Motion, name: str) -> Array:
    """Where a joint is: the origin of its frame on the first body."""
    joint = motion.mech.joint(name)
    frame = joint.frame_a
    place = jnp.stack([frame.x, frame.y]) if isinstance(frame, PlanarFrame) else frame[:3, 3]
    return motion.point(joint.body_a, place).q


def _spatial(x: Array) -> Array:
    return x if x.shape[-1] == 3 else jnp.concatenate([x, jnp.zeros(x.shape[:-1] + (1,))], -1)
