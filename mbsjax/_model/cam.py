"""Cam design: what follows from a program, a follower and a base circle."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._programs.custom_types import Number, Numbers
from .._programs.deprecated import renamed_arguments, warn_renamed
from .._programs.modules import AbstractModule
from .._programs.precision import AGREEING, as_float, look, positive
from .._programs.reprs import by_fields
from .._programs.trees import once
from ..frames import PlanarFrame, at
from .friction import AbstractFriction
from .joint.joint import Frame, Joint, frame_of
from .joint.prismatic import Prismatic
from .joint.revolute import Revolute
from .play import Play
from .profile.base import velocity_and_acceleration
from .profile.followers import (
    AbstractFollower,
    FlatFace,
    Oscillating,
    Translating,
    cam_elements,
    course_at,
    turned,
)
from .profile.motion_laws import SVAJ, Peak, Program, peak, slope
from .profile.profile import Profile
from .profile.shapes import direction


class CamTable(NamedTuple):
    """A cam over its angle: what `cam(theta)` gives, of a [`mbsjax.Cam`][] and cam angles in radians, as many as are
    given.

    - `lift`, `velocity`, `acceleration`, `jerk`: of the follower.
    - `pressure_angle`: between the normal of the cam and the motion of the follower's contact point, or of the
        roller's center; positive where the cam pushes the follower aside as in a rise.
    - `radius`: of curvature of the cam's profile, negative where it is hollow, infinite where it is straight.
    - `pitch_radius`: the same of the path of a roller's center or a knife's edge; `None` for flat faces.
    - `excursion`: of the contact from the middle of a flat face; `None` for others.
    - `contact`: where the contact is, in the fixed frame.
    """

    lift: Float[Array, "*n"]
    velocity: Float[Array, "*n"]
    acceleration: Float[Array, "*n"]
    jerk: Float[Array, "*n"]
    pressure_angle: Float[Array, "*n"]
    radius: Float[Array, "*n"]
    pitch_radius: Float[Array, "*n"] | None
    excursion: Float[Array, "*n"] | None
    contact: Float[Array, "*n 2"]

    __repr__ = by_fields


class CamExtremes(NamedTuple):
    """Where a cam is at its limits: an [`mbsjax.Peak`][] each, with a cam angle `at` and a `value`.

    - `pressure_angle`: the largest in absolute value.
    - `pitch_curvature`: the largest of the path of a roller's center or a knife's edge; its inverse is the least convex
        radius. `None` for flat faces.
    - `radius`: the least radius of curvature of the profile under a flat face; `None` for others.
    - `excursion`: the largest on a flat face in absolute value; `None` for others.
    """

    pressure_angle: Peak
    pitch_curvature: Peak | None
    radius: Peak | None
    excursion: Peak | None

    __repr__ = by_fields


class CamWarning(NamedTuple):
    """What is wrong with a cam: what `kind` of trouble, at which cam angle it is worst, and by how much."""

    kind: str
    theta: float
    amount: float
    message: str

    def __str__(self) -> str:
        return self.message


class Cam(AbstractModule):
    """A disc cam that turns counter-clockwise about the origin, and its follower.

    **Arguments:**

    - `program`: the lift over the cam angle.
    - `follower`: [`mbsjax.Translating`][] or [`mbsjax.Oscillating`][].
    - `base_radius`: of the base circle, the cam itself at lift 0. The prime circle, on which the center of a roller is
        then, is larger by the roller's radius.

    !!! Example

        >>> import mbsjax as mbs
        >>> quarter = jnp.pi / 2
        >>> lift = mbs.Program(
        ...     [mbs.Rise("cycloidal", quarter, 20.0), mbs.Dwell(quarter), mbs.Fall("cycloidal", 2 * quarter, 20.0)]
        ... )
        >>> cam = mbs.Cam(lift, mbs.Translating(mbs.Roller(10.0)), base_radius=20.0)
        >>> for warning in cam.warnings():
        ...     print(warning)
        the pressure angle is 33.1631 deg at the cam angle 40.3609 deg, over its limit of 30 deg
        >>> cam.profile()
        Profile(camcurve arc camcurve, closed)
    """

    program: Program
    follower: AbstractFollower
    base_radius: Float[Array, ""]

    @renamed_arguments(programme="program")
    def __init__(self, program: Program, follower: AbstractFollower, base_radius: Any):
        self.program, self.follower = program, follower
        self.base_radius = positive(base_radius, "the base radius of a cam")
        follower.home(self.base_radius)  # complains

    @property
    def programme(self) -> Program:
        warn_renamed("`cam.programme`", "`cam.program`")
        return self.program

    def __call__(self, theta: Numbers, speed: Numbers = 1.0) -> CamTable:
        """The cam at these angles, in radians: a [`mbsjax.CamTable`][]. Derivatives are per radian, or at a speed of
        the cam in radians per unit of time.

        !!! Example

            >>> import mbsjax as mbs
            >>> lift = mbs.Program([mbs.Rise("harmonic", jnp.pi, 2.0), mbs.Fall("harmonic", jnp.pi, 2.0)])
            >>> table = mbs.Cam(lift, mbs.Translating(mbs.FlatFace(1.5)), 3.0)(jnp.linspace(0.0, 2 * jnp.pi, 5))
            >>> table.radius.round(9).tolist(), table.excursion.round(9).tolist()  # an eccentric disc
            ([4.0, 4.0, 4.0, 4.0, 4.0], [0.0, 1.0, 0.0, -1.0, 0.0])
        """
        return _table(self, as_float(theta, "a cam angle"), as_float(speed, "the speed of a cam"))

    def svaj(self, theta: Numbers, speed: Numbers = 1.0) -> SVAJ:
        """Lift, velocity, acceleration and jerk of the follower."""
        return self.program.svaj(theta, speed)

    def frame(self, theta: Numbers) -> PlanarFrame:
        """Where the follower's own frame is in the fixed one, at these cam angles."""
        y = self.follower.home(self.base_radius) + self.program(theta)
        return self.follower.frame(y)

    def profile(self) -> Profile:
        """The cam's profile, in the frame that turns with it: one element for each segment, the last one first, since
        its coordinate runs counter-clockwise, against the order in which the follower meets it. Smooth if the
        velocity of the program is.
        """
        look(_check_possible, self)
        names = [f"{'dwell' if s.dwells else 'segment'} {k}" for k, s in enumerate(self.program.segments)][::-1]
        return Profile.chain(cam_elements(self.program, self.follower, self.base_radius), smooth=True, names=names)

    def follower_profile(self) -> Profile:
        """The outline of the follower's tip in the follower's own frame: a circle, a line, or a point."""
        return Profile.chain([self.follower.element()], closed=False)

    def shaft(
        self, name: str, body_a: str, body_b: str, *, cam_at: Frame = None, follower_at: Frame = None, **more: Any
    ) -> Joint:
        """The joint that the cam turns on, a [`mbsjax.Revolute`][]: its coordinate is the cam angle.

        **Arguments:**

        - `body_a`, `body_b`: what carries the cam, and the cam.
        - `cam_at`: where the fixed frame of the cam is in `body_a`, its origin in the cam's center; there, by default.
        - `follower_at`: where the follower's own frame is in `body_a` at lift 0, in place of `cam_at`.
        - further ones, such as `start`, as for a [`mbsjax.Revolute`][].

        !!! Example

            >>> import mbsjax as mbs
            >>> lift = mbs.Program([mbs.Rise("cycloidal", jnp.pi, 0.1), mbs.Fall("cycloidal", jnp.pi, 0.1)])
            >>> cam = mbs.Cam(lift, mbs.Oscillating(mbs.Roller(1.0), pivot=5.0, arm=4.0), 2.0)
            >>> shaft = cam.shaft("O", "ground", "cam", follower_at=(0.0, 0.0))  # the arm lies level at lift 0
            >>> round(float(shaft.frame_a.x), 9), round(float(shaft.frame_a.y), 9)
            (-4.0, -3.0)
        """
        return Revolute(name, body_a, body_b, self._places(cam_at, follower_at)[0], **more)

    def guide(
        self,
        name: str,
        body_a: str,
        body_b: str,
        *,
        cam_at: Frame = None,
        follower_at: Frame = None,
        start: Numbers | None = None,
        friction: AbstractFriction | None = None,
        play: Number | Play | None = None,
        length: Number | None = None,
    ) -> Joint:
        """The joint that the follower moves in: a [`mbsjax.Prismatic`][] or a [`mbsjax.Revolute`][]. Its coordinate is
        the lift; of an oscillating follower with its pivot on the right, which turns clockwise as it is lifted, the
        lift with the other sign.

        **Arguments:**

        - `body_a`, `body_b`: what carries the follower, and the follower, whose frame is that of `follower_profile`.
        - `cam_at`, `follower_at`: as for `shaft`.
        - `start`, `friction`, `play`, `length`: of the joint.

        !!! Example

            >>> import mbsjax as mbs
            >>> lift = mbs.Program([mbs.Rise("cycloidal", jnp.pi, 2.0), mbs.Fall("cycloidal", jnp.pi, 2.0)])
            >>> cam = mbs.Cam(lift, mbs.Translating(mbs.Roller(1.0), offset=3.0), 4.0)
            >>> cam.guide("guide", "ground", "follower").interlink(0.0)[:2, 3].round(9).tolist()
            [3.0, 4.0]
        """
        home = self._places(cam_at, follower_at)[1]
        more: dict[str, Any] = {"start": start, "friction": friction, "play": play}
        if isinstance(self.follower, Translating):
            along = PlanarFrame(home.x, home.y, home.angle + np.pi / 2)
            return Prismatic(name, body_a, body_b, along, at(0.0, 0.0, np.pi / 2), length=length, **more)
        if length is not None:
            raise ValueError(f"joint {name!r} has no length: its follower turns")
        return Revolute(name, body_a, body_b, home, **more)

    def _places(self, cam_at: Any, follower_at: Any) -> tuple[PlanarFrame, PlanarFrame]:
        """The fixed frame of the cam, and the follower's own one at lift 0, in the body that carries both."""
        if cam_at is not None and follower_at is not None:
            raise ValueError("where a cam is follows from `follower_at`: leave out `cam_at`, or the other way round")
        home = self.follower.frame(self.follower.home(self.base_radius))
        given = frame_of(cam_at if follower_at is None else follower_at, None, "the place of a cam")
        if not isinstance(given, PlanarFrame):
            raise ValueError("the place of a cam must be a point of the plane or made by at(x, y, angle), in numbers")
        if follower_at is None:
            return given, _within(given, home)
        turned_back = PlanarFrame(given.x, given.y, given.angle - home.angle)
        return _within(turned_back, PlanarFrame(-home.x, -home.y, 0 * home.angle)), given

    def extremes(self) -> CamExtremes:
        """The largest pressure angle, curvature and excursion over a turn, and the cam angles, in radians, where they
        are: an [`mbsjax.CamExtremes`][].

        !!! Example

            >>> import mbsjax as mbs
            >>> lift = mbs.Program([mbs.Rise("harmonic", jnp.pi, 2.0), mbs.Fall("harmonic", jnp.pi, 2.0)])
            >>> found = mbs.Cam(lift, mbs.Translating(mbs.FlatFace(1.5)), 3.0).extremes()  # an eccentric disc
            >>> round(abs(float(found.excursion.value)), 6), round(float(found.radius.value), 6)
            (1.0, 4.0)
        """
        return _extremes(self)

    def warnings(self, *, pressure_angle: float | None = None) -> tuple[CamWarning, ...]:
        """What is wrong with the cam.

        - `"velocity"`: the velocity jumps where two segments meet, and the profile has a corner.
        - `"undercut"`: the roller is too large: the path of its center is curved more sharply than itself, and the cam
            made with it would not lead it along.
        - `"convexity"`: the profile would have to be hollow, or turn back on itself, and a flat face cannot follow.
        - `"face"`: the contact leaves the flat face.
        - `"pressure angle"`: it is over its limit, 30 degrees for translating followers and 45 for oscillating ones
            unless given.
        """
        usual = np.pi / 4 if isinstance(self.follower, Oscillating) else np.pi / 6
        return tuple(_warnings(self, usual if pressure_angle is None else pressure_angle))

    __repr__ = by_fields


def _check_possible(cam: Cam) -> None:
    for warning in (w for w in cam.warnings() if w.kind in ("undercut", "convexity", "velocity")):
        raise ValueError(f"there is no such cam: {warning}")


@renamed_arguments(programme="program")
def least_base_radius(program: Program, follower: AbstractFollower, *, pressure_angle: Any = np.pi / 6) -> Peak:
    """The smallest base circle of a cam with a translating follower, and the cam angle that decides: with a roller or
    a knife edge by a limit of the pressure angle, with a flat face by the convexity of the cam.

    !!! Example

        >>> import mbsjax as mbs
        >>> lift = mbs.Program([mbs.Rise("harmonic", jnp.pi / 2, 20.0), mbs.Fall("harmonic", 3 * jnp.pi / 2, 20.0)])
        >>> round(mbs.least_base_radius(lift, mbs.Translating(mbs.FlatFace(20.0))).value.item(), 6)
        20.0
    """
    if not isinstance(follower, Translating):
        raise ValueError("the least base radius has a closed form only for translating followers")
    return _least_base_radius(program, follower, positive(pressure_angle, "the limit of the pressure angle"))


@once
def _least_base_radius(program: Program, follower: Translating, limit: Float[Array, ""]) -> Peak:
    rounding, e = follower.tip.rounding(), follower.offset

    def needed(s: Array, v: Array, a: Array) -> list[Array]:
        return [-(s + a) if rounding is None else jnp.abs(v - e) / jnp.tan(limit) - s]

    ((at, y),) = _over_segments(program, needed)
    return Peak(at, y if rounding is None else jnp.sqrt(y**2 + e**2) - rounding)


def _within(outer: PlanarFrame, inner: PlanarFrame) -> PlanarFrame:
    """A frame that is given in another one."""
    c, s = jnp.cos(outer.angle), jnp.sin(outer.angle)
    return PlanarFrame(
        outer.x + c * inner.x - s * inner.y, outer.y + s * inner.x + c * inner.y, outer.angle + inner.angle
    )


class _Spot(NamedTuple):
    pressure_angle: Array
    pitch_curvature: Array | None
    radius: Array
    excursion: Array | None
    contact: Array


def _spot(cam: Cam, s: Float[Array, ""], v: Float[Array, ""], a: Float[Array, ""]) -> _Spot:
    """The geometry at one cam angle, from the lift and its first two derivatives: more does not enter."""
    follower, tip = cam.follower, cam.follower.tip
    home, zero = follower.home(cam.base_radius), jnp.zeros_like(s)
    course = lambda t: course_at(follower, lambda t: home + s + t * (v + t * a / 2), t)
    here = course(zero)
    p, n, rounding = tip.touch(here), tip.normal(here), tip.rounding()
    motion = follower.heading(p if rounding is None else here.o)
    pressure = jnp.arctan2(motion[0] * n[1] - motion[1] * n[0], jnp.dot(motion, n))
    if isinstance(tip, FlatFace):
        # seen from the cam, the contact moves along the face, while the face turns by 1 - a'
        touch = lambda t: turned(tip.touch(course(t)), -t)
        along = jnp.dot(slope(touch)(zero), direction(here.a))
        return _Spot(pressure, None, along / (1 - here.da), tip.excursion(here), p)
    w, dw = here.v, slope(lambda t: course(t).v)(zero)
    square = jnp.sum(w**2)
    curvature = (1 - (w[0] * dw[1] - w[1] * dw[0]) / square) / jnp.sqrt(square)
    return _Spot(pressure, curvature, 1 / curvature - rounding, None, p)


@once
def _table(cam: Cam, theta: Float[Array, "*n"], speed: Float[Array, ""]) -> CamTable:
    motion = cam.program.svaj(theta)
    spot = jax.vmap(lambda s, v, a: _spot(cam, s, v, a))(*(x.reshape(-1) for x in motion[:3]))
    spot = jax.tree_util.tree_map(lambda x: x.reshape(theta.shape + x.shape[1:]), spot)
    pitch = None if spot.pitch_curvature is None else 1 / spot.pitch_curvature
    s, v, a, j = (x * speed**k for k, x in enumerate(motion))
    return CamTable(s, v, a, j, spot.pressure_angle, spot.radius, pitch, spot.excursion, spot.contact)


def _over_segments(program: Program, f: Callable) -> list[Peak]:
    """The largest value over a turn, where segments meet on both sides, of each of a list f(s, v, a)."""
    angles = jnp.stack([s.angle for s in program.segments])

    def one(k: Array, start: Array, angle: Array) -> Peak:
        lift = lambda t: program.on(k, t)
        return peak(lambda t: f(lift(t), *velocity_and_acceleration(lift, t, jnp.ones_like(t))), start, start + angle)

    peaks = jax.vmap(one)(jnp.arange(len(angles)), program.starts, angles)
    best = jnp.argmax(peaks.value, 0)
    return [Peak(peaks.at[k, i], peaks.value[k, i]) for i, k in enumerate(best)]


@once
def _extremes(cam: Cam) -> CamExtremes:
    def wanted(s: Array, v: Array, a: Array) -> list[Array]:
        spot = _spot(cam, s, v, a)
        pressure = jnp.abs(spot.pressure_angle)
        if spot.pitch_curvature is not None:
            return [pressure, spot.pitch_curvature]
        assert spot.excursion is not None
        return [pressure, -spot.radius, jnp.abs(spot.excursion)]

    pressure, *others = _over_segments(cam.program, wanted)
    if len(others) == 1:
        return CamExtremes(pressure, others[0], None, None)
    return CamExtremes(pressure, None, Peak(others[0].at, -others[0].value), others[1])


@once
def _velocities(program: Program) -> tuple[Array, Array]:
    """Of the lift at the start of each segment and at the end of the one before."""
    n = len(program.segments)
    before = (np.arange(n) - 1) % n
    angles = jnp.stack([s.angle for s in program.segments])
    ends = program.starts + angles
    velocity = jax.vmap(lambda k, t: slope(lambda t: program.on(k, t))(t))
    return velocity(jnp.arange(n), program.starts), velocity(jnp.asarray(before), ends[before])


def _warnings(cam: Cam, limit: float):
    def where(theta: Array) -> str:
        return f"at the cam angle {np.rad2deg(float(theta)):.6g} deg"

    after, before = _velocities(cam.program)
    size = max(float(jnp.max(jnp.abs(after))), float(jnp.max(jnp.abs(before))))
    steps = jnp.abs(after - before)
    scale = max(float(abs(s.height) / s.angle) for s in cam.program.segments)
    if float(steps.max()) > AGREEING() * max(size, scale):
        k = int(jnp.argmax(steps))
        theta, jump = cam.program.starts[k], float(after[k] - before[k])
        yield CamWarning("velocity", float(theta), jump, f"the velocity jumps by {jump:.6g} per rad {where(theta)}")

    found = cam.extremes()
    tip, rounding = cam.follower.tip, cam.follower.tip.rounding()
    if found.pitch_curvature is not None and rounding is not None:
        at, curvature = found.pitch_curvature
        excess = float(rounding) - 1 / float(curvature) if float(curvature) > 0 else -np.inf
        if excess >= 0 and float(rounding) > 0:
            yield CamWarning(
                "undercut",
                float(at),
                excess,
                f"the cam is undercut {where(at)}: the path of the roller's center has a radius of "
                f"{1 / float(curvature):.6g} there, less by {excess:.6g} than the roller's, {float(rounding):.6g}",
            )
    if found.radius is not None and float(found.radius.value) <= 0:
        at, radius = found.radius
        yield CamWarning(
            "convexity",
            float(at),
            -float(radius),
            f"the cam would not be convex {where(at)}: its radius of curvature is {float(radius):.6g} there, and a "
            "flat face loses contact; a larger base circle helps",
        )
    if found.excursion is not None and isinstance(tip, FlatFace):
        at, excursion = found.excursion
        excess = float(excursion - tip.half_width)
        if excess > 0:
            yield CamWarning(
                "face",
                float(at),
                excess,
                f"the contact leaves the flat face {where(at)}: it is {float(excursion):.6g} from the middle, "
                f"{excess:.6g} beyond the end",
            )
    at, pressure = found.pressure_angle
    if float(pressure) > limit:
        yield CamWarning(
            "pressure angle",
            float(at),
            float(pressure) - limit,
            f"the pressure angle is {np.rad2deg(float(pressure)):.6g} deg {where(at)}, over its limit of "
            f"{np.rad2deg(limit):.6g} deg",
        )
