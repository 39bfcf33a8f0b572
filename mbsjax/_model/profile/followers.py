"""Followers of cams, and the cam's profile as the envelope of its follower.

The cam's center is the origin of the fixed frame, and the cam is turned by theta, counter-clockwise. The tip of the
follower has a frame at o, turned by a, its y axis away from the cam. Seen from the cam its origin moves with
v = o' - z x o, a dash for the derivative with respect to theta: clockwise round the cam.
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._programs.modules import AbstractModule
from ..._programs.precision import number, positive, value
from ..._programs.reprs import by_fields
from ...frames import PlanarFrame, at
from .base import AbstractCurve, AbstractElement
from .elements import Arc, Circle, Line, Point
from .motion_laws import Program, as_law
from .shapes import direction


class Course(NamedTuple):
    """The frame of a follower's tip, and its derivatives with respect to the cam angle."""

    o: Float[Array, "2"]
    a: Float[Array, ""]
    do: Float[Array, "2"]
    da: Float[Array, ""]

    @property
    def v(self) -> Float[Array, "2"]:
        return self.do - left(self.o)


class AbstractTip(AbstractModule):
    """What touches the cam."""

    @abc.abstractmethod
    def touch(self, course: Course) -> Float[Array, "2"]:
        """The point of contact, in the fixed frame: where the tip's outline, seen from the cam, moves along itself."""

    @abc.abstractmethod
    def normal(self, course: Course) -> Float[Array, "2"]:
        """Out of the cam at the contact."""

    @abc.abstractmethod
    def rounding(self) -> Float[Array, ""] | None:
        """The radius of a round tip."""

    @abc.abstractmethod
    def element(self, position: Float[Array, "2"]) -> AbstractElement:
        """Its outline about a position in the follower's frame."""

    __repr__ = by_fields


class Roller(AbstractTip):
    """A roller.

    !!! Example

        >>> Roller(8.0).radius.item()
        8.0
    """

    radius: Float[Array, ""]

    def __init__(self, radius: Any):
        self.radius = positive(radius, "the radius of a roller")

    def touch(self, course: Course) -> Float[Array, "2"]:
        return course.o - self.radius * self.normal(course)

    def normal(self, course: Course) -> Float[Array, "2"]:
        return _normal_of_path(course)

    def rounding(self) -> Float[Array, ""] | None:
        return self.radius

    def element(self, position: Float[Array, "2"]) -> AbstractElement:
        return Circle(position, self.radius, -np.pi / 2)


class Knife(AbstractTip):
    """A sharp edge.

    !!! Example

        >>> Knife().rounding().item()
        0.0
    """

    def touch(self, course: Course) -> Float[Array, "2"]:
        return course.o

    def normal(self, course: Course) -> Float[Array, "2"]:
        return _normal_of_path(course)

    def rounding(self) -> Float[Array, ""] | None:
        return jnp.zeros(())

    def element(self, position: Float[Array, "2"]) -> AbstractElement:
        return Point(position)


class FlatFace(AbstractTip):
    """A flat face, square to the motion of a translating follower.

    **Arguments:**

    - `half_width`: how far it extends to either side.

    !!! Example

        >>> FlatFace(25.0).half_width.item()
        25.0
    """

    half_width: Float[Array, ""]

    def __init__(self, half_width: Any):
        self.half_width = positive(half_width, "the half width of a flat face")

    def excursion(self, course: Course) -> Float[Array, ""]:
        """Where on the face the contact is, from its middle along its x axis."""
        # a point u along the face keeps to it, seen from the cam, if its velocity has no part across the face
        return jnp.dot(left(direction(course.a)), course.v) / (1 - course.da)

    def touch(self, course: Course) -> Float[Array, "2"]:
        return course.o + self.excursion(course) * direction(course.a)

    def normal(self, course: Course) -> Float[Array, "2"]:
        return left(direction(course.a))

    def rounding(self) -> Float[Array, ""] | None:
        return None

    def element(self, position: Float[Array, "2"]) -> AbstractElement:
        half = jnp.stack([self.half_width, jnp.zeros_like(self.half_width)])
        return Line(position - half, position + half)


class AbstractFollower(AbstractModule):
    """How the tip moves: a coordinate of the follower, its value at lift 0 and the lift together, decides."""

    tip: eqx.AbstractVar[AbstractTip]

    @abc.abstractmethod
    def home(self, base_radius: Float[Array, ""]) -> Float[Array, ""]:
        """The coordinate with the tip on the base circle."""

    @abc.abstractmethod
    def tip_frame(self, y: Float[Array, ""]) -> tuple[Float[Array, "2"], Float[Array, ""]]:
        """Origin and angle of the tip's frame."""

    @abc.abstractmethod
    def frame(self, y: Float[Array, "*n"]) -> PlanarFrame:
        """The follower's own frame."""

    @abc.abstractmethod
    def heading(self, p: Float[Array, "2"]) -> Float[Array, "2"]:
        """The direction in which a lift moves the follower's point at `p`, a unit vector."""

    @abc.abstractmethod
    def element(self) -> AbstractElement:
        """The tip's outline in the follower's own frame."""

    __repr__ = by_fields


class Translating(AbstractFollower):
    """A follower that slides along the y axis of the fixed frame, away from the cam. Its own frame has its origin in
    the center of the roller, at the edge of the knife or in the middle of the face, at (offset, y).

    **Arguments:**

    - `tip`: a `Roller`, a `Knife` or a `FlatFace`.
    - `offset`: of its line of motion from the cam's center, along x.

    !!! Example

        >>> round(Translating(Roller(1.0), offset=3.0).home(jnp.array(4.0)).item(), 9)
        4.0
    """

    tip: AbstractTip
    offset: Float[Array, ""]

    def __init__(self, tip: AbstractTip, *, offset: Any = 0.0):
        self.tip = tip
        self.offset = number(offset, "the offset of a follower")

    def home(self, base_radius: Float[Array, ""]) -> Float[Array, ""]:
        rounding = self.tip.rounding()
        if rounding is None:
            return base_radius
        prime = base_radius + rounding
        if value(prime) <= abs(value(self.offset)):
            raise ValueError(
                f"a follower with the offset {value(self.offset):.6g} passes by the prime circle of radius "
                f"{value(prime):.6g}"
            )
        return jnp.sqrt(prime**2 - self.offset**2)

    def tip_frame(self, y: Float[Array, ""]) -> tuple[Float[Array, "2"], Float[Array, ""]]:
        return jnp.stack([self.offset, y]), jnp.zeros_like(y)

    def frame(self, y: Float[Array, "*n"]) -> PlanarFrame:
        return at(jnp.broadcast_to(self.offset, y.shape), y, jnp.zeros_like(y))

    def heading(self, p: Float[Array, "2"]) -> Float[Array, "2"]:
        return jnp.array([0.0, 1.0])

    def element(self) -> AbstractElement:
        return self.tip.element(jnp.zeros(2))


class Oscillating(AbstractFollower):
    """A follower that swings about a pivot on the x axis of the fixed frame, above the cam; its lift is an angle. Its
    own frame has its origin in the pivot and the tip at (-arm, offset); with the pivot on the left, at (arm, offset).

    **Arguments:**

    - `tip`: a `Roller`, a `Knife` or a `FlatFace`, which is parallel to the arm.
    - `pivot`: its distance from the cam's center; negative, it lies on the left.
    - `arm`: the length of the arm, to the center of the roller, the edge of the knife or the middle of the face.
    - `offset`: of the tip from the line of the arm, away from the cam; for a flat face.

    The coordinate psi is the angle of the arm above the line from the pivot to the cam's center; lift adds to it.

    !!! Example

        >>> rocker = Oscillating(Roller(1.0), pivot=5.0, arm=4.0)
        >>> psi = rocker.home(jnp.array(2.0))  # the triangle with sides 3, 4 and 5
        >>> [round(x.item(), 9) for x in rocker.tip_frame(psi)[0]]
        [1.8, 2.4]
    """

    tip: AbstractTip
    pivot: Float[Array, ""]
    arm: Float[Array, ""]
    offset: Float[Array, ""]

    def __init__(self, tip: AbstractTip, *, pivot: Any, arm: Any, offset: Any = 0.0):
        self.tip = tip
        self.pivot = number(pivot, "the pivot of a follower")
        self.arm = positive(arm, "the arm of a follower")
        self.offset = number(offset, "the offset of a follower")
        if value(self.pivot) == 0:
            raise ValueError("the pivot of a follower must not be the center of the cam")

    @property
    def _side(self) -> Float[Array, ""]:
        return jax.lax.stop_gradient(jnp.sign(self.pivot))

    def home(self, base_radius: Float[Array, ""]) -> Float[Array, ""]:
        rounding, d, l, f = self.tip.rounding(), jnp.abs(self.pivot), self.arm, self.offset  # noqa: E741
        if rounding is None:
            sine = (base_radius - f) / d
            self._check_reach(sine, base_radius)
            return jnp.arcsin(sine)
        prime = base_radius + rounding
        reach = jnp.sqrt(l**2 + f**2)
        cosine = (d**2 + reach**2 - prime**2) / (2 * d * reach)
        self._check_reach(cosine, prime)
        return jnp.arccos(cosine) - jnp.arctan2(f, l)

    def _check_reach(self, ratio: Float[Array, ""], circle: Float[Array, ""]) -> None:
        if abs(value(ratio)) >= 1:
            pivot, arm, radius = value(self.pivot), value(self.arm), value(circle)
            raise ValueError(
                f"a follower with its pivot at {pivot:.6g} and an arm of {arm:.6g} cannot lie on a circle of radius "
                f"{radius:.6g} about the cam's center"
            )

    def tip_frame(self, y: Float[Array, ""]) -> tuple[Float[Array, "2"], Float[Array, ""]]:
        a = -self._side * y
        along = direction(a)
        return self._center - self._side * self.arm * along + self.offset * left(along), a

    @property
    def _center(self) -> Float[Array, "2"]:
        return jnp.stack([self.pivot, jnp.zeros_like(self.pivot)])

    def frame(self, y: Float[Array, "*n"]) -> PlanarFrame:
        return at(jnp.broadcast_to(self.pivot, y.shape), jnp.zeros_like(y), -self._side * y)

    def heading(self, p: Float[Array, "2"]) -> Float[Array, "2"]:
        across = -self._side * left(p - self._center)
        return across / jnp.sqrt(jnp.sum(across**2))

    def element(self) -> AbstractElement:
        return self.tip.element(jnp.stack([-self._side * self.arm, self.offset]))


class CamCurve(AbstractCurve):
    """The part of a cam's profile that serves one segment of a program. Its coordinate runs against the cam angle,
    since a follower goes clockwise round a cam that turns counter-clockwise.

    **Arguments:**

    - `follower`, `y`: and its coordinate at the start of the segment.
    - `law`, `theta`, `angle`, `height`: of the segment; `theta` is the cam angle at which it begins.

    !!! Example

        >>> rise = CamCurve(Translating(Knife()), 10.0, "cycloidal", 0.0, jnp.pi / 2, 2.0)
        >>> rise(1.0).position.round(9).tolist(), rise(0.0).position.round(9).tolist()
        ([0.0, 10.0], [12.0, 0.0])
    """

    kind: ClassVar[str] = "camcurve"
    follower: AbstractFollower
    y: Float[Array, ""]
    theta: Float[Array, ""]
    angle: Float[Array, ""]
    height: Float[Array, ""]
    law: Callable

    def __init__(self, follower: AbstractFollower, y: Any, law: Any, theta: Any, angle: Any, height: Any):
        self.follower = follower
        self.law = as_law(law)
        self.y, self.theta = number(y, "the coordinate of a follower"), number(theta, "the cam angle of a segment")
        self.angle = positive(angle, "the cam angle of a segment")
        self.height = number(height, "the height of a segment")

    def position(self, s: Float[Array, ""]) -> Float[Array, "2"]:
        theta = self.theta + self.angle * (1 - s)
        y = lambda t: self.y + self.height * self.law((t - self.theta) / self.angle)
        course = course_at(self.follower, y, theta)
        return turned(self.follower.tip.touch(course), -theta)

    @property
    def samples(self) -> int:
        return 32


def course_at(follower: AbstractFollower, y: Callable, theta: Float[Array, ""]) -> Course:
    """The tip's course at a cam angle, the follower's coordinate being a function of it."""
    (o, a), (do, da) = jax.jvp(lambda t: follower.tip_frame(y(t)), (theta,), (jnp.ones_like(theta),))
    return Course(o, a, do, da)


def cam_elements(program: Program, follower: AbstractFollower, base_radius: Float[Array, ""]) -> list[AbstractElement]:
    """The elements of a cam's profile, counter-clockwise: the last segment of the program comes first. While the
    follower dwells they are arcs."""
    elements: list[AbstractElement] = []
    ys = follower.home(base_radius) + program.levels
    for segment, theta, y in reversed(list(zip(program.segments, program.starts, ys))):
        if segment.dwells:
            x, y = follower.tip.touch(Course(*follower.tip_frame(y), jnp.zeros(2), jnp.zeros(())))
            start = jnp.arctan2(y, x) - theta - segment.angle
            elements.append(Arc((0.0, 0.0), jnp.sqrt(x**2 + y**2), start, segment.angle))
        else:
            elements.append(CamCurve(follower, y, segment.law, theta, segment.angle, segment.height))
    return elements


def left(p: Float[Array, "2"]) -> Float[Array, "2"]:
    """Turned by a quarter turn."""
    return jnp.stack([-p[1], p[0]])


def turned(p: Float[Array, "2"], angle: Float[Array, ""]) -> Float[Array, "2"]:
    return jnp.cos(angle) * p + jnp.sin(angle) * left(p)


def _normal_of_path(course: Course) -> Float[Array, "2"]:
    v = course.v
    return left(v) / jnp.sqrt(jnp.sum(v**2))
