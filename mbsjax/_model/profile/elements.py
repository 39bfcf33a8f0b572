"""The elements of constant curvature: point, line, arc and circle."""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._programs.custom_types import Number, Numbers
from ..._programs.precision import AGREEING, ROUNDING, known, number, numpy_of, positive, value
from ...frames import check_length
from .base import AbstractPlain, Row, point_of


class Point(AbstractPlain):
    """A corner, or the edge of a knife: the normal turns from one side to the other (thesis 2.4.1, A.2-1).

    **Arguments:**

    - `position`: where it is.
    - `normal`: the outward normal in the middle of its range.
    - `turn`: the angle by which the normal turns, half a turn by default.

    `Profile.chain` puts corners between elements by itself.

    !!! Example

        >>> edge = Point((0.0, 0.0), normal=(0.0, -1.0))
        >>> (edge(0.5).normal + 0.0).round(9).tolist()
        [0.0, -1.0]
    """

    kind: ClassVar[str] = "point"
    concave: ClassVar[bool] = False
    position: Float[Array, "2"]
    start: Float[Array, ""]
    turn: Float[Array, ""]

    def __init__(self, position: Numbers, normal: Numbers = (0.0, -1.0), turn: Number = jnp.pi):
        self.position = point_of(position, "the position of a point")
        n = point_of(normal, "the normal of a point")
        check_length(n, "the normal of a point")
        self.turn = positive(turn, "the turn of a point")
        xp, (x, y) = numpy_of(n, self.turn), known(n)
        self.start = jnp.asarray(xp.arctan2(x, -y) - known(self.turn) / 2)

    def row(self) -> Row:
        x, y = self.position
        zero = jnp.zeros_like(x)
        return Row(x, y, zero, self.start, self.turn, zero)


class Line(AbstractPlain):
    """A straight line from `start` to `end`.

    !!! Example

        >>> Line((0.0, 0.0), (2.0, 0.0))(0.25).position.tolist()
        [0.5, 0.0]
    """

    kind: ClassVar[str] = "line"
    concave: ClassVar[bool] = False
    start: Float[Array, "2"]
    end: Float[Array, "2"]

    def __init__(self, start: Any, end: Numbers):
        self.start = point_of(start, "the start of a line")
        self.end = point_of(end, "the end of a line")
        if np.all(value(self.start) == value(self.end)):
            raise ValueError(f"a line from {value(self.start).tolist()} to itself has no length")

    def row(self) -> Row:
        d, (x, y) = self.end - self.start, self.start
        zero = jnp.zeros_like(x)
        return Row(x, y, zero, jnp.arctan2(d[1], d[0]), zero, jnp.sqrt(jnp.sum(d * d)))


class Arc(AbstractPlain):
    """An arc of a circle.

    **Arguments:**

    - `center`, `radius`: of the circle.
    - `start`: the direction from the center to the first point, an angle from x.
    - `turn`: the angle of the arc, positive.
    - `concave`: a convex arc runs counter-clockwise, its material on the side of the center; a concave arc runs
        clockwise, its material outside.

    !!! Example

        >>> quarter = Arc((0.0, 0.0), 2.0, 0.0, jnp.pi / 2)
        >>> quarter(1.0).position.round(9).tolist(), quarter(1.0).normal.round(9).tolist()
        ([0.0, 2.0], [0.0, 1.0])
    """

    kind: ClassVar[str] = "arc"
    center: Float[Array, "2"]
    radius: Float[Array, ""]
    start: Float[Array, ""]
    turn: Float[Array, ""]
    concave: bool = eqx.field(static=True)

    def __init__(self, center: Numbers, radius: Number, start: Any, turn: Number, *, concave: bool = False):
        self.center = point_of(center, "the center of an arc")
        self.radius = positive(radius, "the radius of an arc")
        self.start = number(start, "the start of an arc")
        self.turn = positive(turn, "the turn of an arc")
        self.concave = concave
        if value(self.turn) > 2 * np.pi * (1 + ROUNDING()):
            raise ValueError(f"an arc cannot turn by more than a full turn, got {float(value(self.turn)):.6g}")

    @staticmethod
    def between(
        start: Any,
        end: Numbers,
        center: Numbers | None = None,
        *,
        radius: Number | None = None,
        concave: bool = False,
        long: bool = False,
    ) -> "Arc":
        """The arc from one point to another, about a center, or with a radius (then the shorter one, unless `long`).

        !!! Example

            >>> Arc.between((1.0, 0.0), (0.0, 1.0), (0.0, 0.0)).turn.item() * 2 / jnp.pi
            1.0
        """
        a, b = (known(point_of(p, f"the {what} of an arc")) for p, what in ((start, "start"), (end, "end")))
        sign = -1.0 if concave else 1.0
        if center is None:
            if radius is None:
                raise ValueError("an arc between two points needs its center or its radius")
            r = known(positive(radius, "the radius of an arc"))
            xp, chord = numpy_of(a, b, r), b - a
            half = xp.sqrt(xp.sum(chord * chord)) / 2
            if value(half) > value(r) * (1 + ROUNDING()):
                raise ValueError(
                    f"no arc of radius {value(r):.6g} runs from {value(a).tolist()} to {value(b).tolist()}, which are "
                    f"{2 * value(half):.6g} apart"
                )
            away = xp.sqrt(xp.maximum(r * r - half * half, 0.0)) * (-sign if long else sign)
            c = (a + b) / 2 + away * xp.stack([-chord[1], chord[0]]) / (2 * half)
        else:
            c = known(point_of(center, "the center of an arc"))
            xp = numpy_of(a, b, c)
            r, other = (xp.sqrt(xp.sum((p - c) ** 2)) for p in (a, b))
            given = r if radius is None else known(positive(radius, "the radius of an arc"))
            if any(abs(value(x) - value(given)) > AGREEING() * value(given) for x in (r, other)):
                raise ValueError(
                    f"the ends of an arc about {value(c).tolist()} are {value(r):.9g} and {value(other):.9g} from its "
                    f"center, and its radius is {value(given):.9g}"
                )
            r = given
        first, last = (xp.arctan2((p - c)[1], (p - c)[0]) for p in (a, b))
        turn = sign * (last - first)
        return Arc(c, r, first, turn - 2 * np.pi * xp.floor(turn / (2 * np.pi)), concave=concave)

    def row(self) -> Row:
        sign = -1.0 if self.concave else 1.0
        x, y = self.center
        return Row(x, y, sign * self.radius, self.start + sign * jnp.pi / 2, sign * self.turn, jnp.zeros_like(x))


class Circle(AbstractPlain):
    """A full circle; concave, a bore. Its local coordinate begins at the angle `start` from x.

    !!! Example

        >>> Circle((0.0, 0.0), 2.0)(0.25).position.round(9).tolist()
        [0.0, 2.0]
    """

    kind: ClassVar[str] = "circle"
    center: Float[Array, "2"]
    radius: Float[Array, ""]
    start: Float[Array, ""]
    concave: bool = eqx.field(static=True)

    def __init__(self, center: Numbers, radius: Number, start: Any = 0.0, *, concave: bool = False):
        self.center = point_of(center, "the center of a circle")
        self.radius = positive(radius, "the radius of a circle")
        self.start = number(start, "the start of a circle")
        self.concave = concave

    def row(self) -> Row:
        return Arc(self.center, self.radius, self.start, 2 * jnp.pi, concave=self.concave).row()
