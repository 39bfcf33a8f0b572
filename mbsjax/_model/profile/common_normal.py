"""The common normal of two elements of profiles, in the frame of the first one; `X` is the pose of the second there.

The normal n points out of the first body, and q3 n leads from its place to the place on the second.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ..._numerics.groups import SE2
from ..._programs.trees import once
from .base import right_of, tangent
from .outline import Outline


_STEPS = 5  # of Newton's method on a curve, from a neighboring place
STRIDE = 0.15  # of a curve's coordinate, the longest step


class CommonNormal(NamedTuple):
    """A common normal: the local coordinates of its ends, and its length, negative where the bodies overlap."""

    s1: Float[Array, ""]
    s2: Float[Array, ""]
    gap: Float[Array, ""]


@once
def common_normal(
    A: Outline, B: Outline, X: SE2, e1: Int[Array, ""], e2: Int[Array, ""], s1: Float[Array, ""], s2: Float[Array, ""]
) -> CommonNormal:
    """The common normal of two elements: closed form for points, lines, arcs and circles, Newton's method from
    (s1, s2) on curves. Its places may lie beyond the ends of the elements: that is how one knows to go on to the next.

    Derivatives are those of the exact solution.
    """
    found = (
        _normal_with_curves(A, B, X, e1, e2, s1, s2)
        if A.curves or B.curves
        else constant_curvature_normal(A, B, X, e1, e2)
    )
    return found._replace(s1=wrapped(A, found.s1), s2=wrapped(B, found.s2))


def _normal_with_curves(A: Outline, B: Outline, X: SE2, e1: Array, e2: Array, s1: Array, s2: Array) -> CommonNormal:
    """The common normal of two elements, where there are curves among those that they may be."""
    curve_a, curve_b = A.is_curve(e1), B.is_curve(e2)
    found = CommonNormal(s1, s2, jnp.full_like(s1, jnp.inf))
    if A.has_plain and B.has_plain:
        found = constant_curvature_normal(A, B, X, e1, e2)
    first, second = (PlacedElement(shape, x, e) for shape, x, e in ((A, None, e1), (B, X, e2)))
    if A.curves and B.has_plain:
        found = _select(curve_a & ~curve_b, _normal_of_curve_and_plain(first, s1, second), found)
    if B.curves and A.has_plain:
        s, other, gap = _normal_of_curve_and_plain(second, s2, first)
        found = _select(curve_b & ~curve_a, CommonNormal(other, s, gap), found)
    if A.curves and B.curves:
        found = _select(curve_a & curve_b, _normal_of_two_curves(first, second, s1, s2), found)
    return found


def _in_first_frame(column: Array, X: SE2) -> Array:
    """The numbers of an element of the second profile, in the frame of the first."""
    x, y = column[0], column[1]
    place = jnp.stack([X.x + X.c * x - X.s * y, X.y + X.s * x + X.c * y])
    return jnp.concatenate([place, column[2:3], column[3:4] + X.angle, column[4:]])


def where(condition: Any, x: Array, y: Any) -> Array:
    """x where a condition holds, y elsewhere; what is known beforehand is not asked."""
    if isinstance(condition, np.ndarray | np.bool_):
        if np.all(condition):
            return x
        if not np.any(condition):
            return y
    return jnp.where(condition, x, y)


def _select(condition: Any, a: CommonNormal, b: CommonNormal) -> CommonNormal:
    return CommonNormal(*(where(condition, x, y) for x, y in zip(a, b)))


def wrapped(shape: Outline, s: Array) -> Array:
    return s - jax.lax.stop_gradient(jnp.floor(s)) if shape.endless else s


def direction(angle: Array) -> Array:
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)])


def _local_coordinate(column: Array, line: Any, t: Array, point: Array, normal: Array) -> Array:
    """The local coordinate on plain elements of points, where their normals have a direction; t is the direction in
    which they begin."""
    start, turn, length = column[3], column[4], column[5]
    on_line = jnp.sum((point - column[:2]) * t, 0) / where(line, length, jnp.ones_like(length))
    angle = jnp.arctan2(normal[0], -normal[1]) - start - turn / 2
    angle = angle - 2 * jnp.pi * jax.lax.stop_gradient(jnp.round(angle / (2 * jnp.pi)))
    round_ = jnp.abs(turn) > 0
    on_arc = jnp.where(round_, angle / jnp.where(round_, turn, 1.0) + 0.5, jnp.inf)
    return where(line, on_line, on_arc)


def constant_curvature_normal(A: Outline, B: Outline, X: SE2, e1: Any, e2: Any) -> CommonNormal:
    """Of elements that are no curves, of one pair or many. Centers and lines: base_b - base_a = (r_a + r_b + q3) n for
    arcs; a line brings its own n."""
    lines = A.is_line(e1), B.is_line(e2)
    line = np.stack(lines) if all(isinstance(x, np.ndarray | np.bool_) for x in lines) else jnp.stack(lines)
    both = jnp.stack([A.column(e1), _in_first_frame(B.column(e2), X)], 1)  # numbers, sides
    base, radius, t = both[:2], both[2], direction(both[3])
    d = base[:, 1] - base[:, 0]
    square = jnp.sum(d * d, 0)
    length, reach = jnp.sqrt(jnp.where(square > 0, square, 1.0)), radius[0] + radius[1]
    n = jnp.where(reach < 0, -1.0, 1.0) * d / length  # -1: inside a bore
    right = right_of(t)
    n = where(lines[0], right[:, 0], where(lines[1], -right[:, 1], n))
    gap = jnp.sum(d * n, 0) - reach
    normals = jnp.stack([n, -n], 1)
    feet = base + radius * normals
    s = _local_coordinate(both, line, t, feet[:, ::-1], normals)
    return CommonNormal(s[0], s[1], where(lines[0] & lines[1], jnp.full_like(gap, jnp.inf), gap))


class PlacedElement(NamedTuple):
    """An element of a profile, which stands at X in the frame of the first one: nowhere else, if that is None."""

    shape: Outline
    X: SE2 | None
    e: Array

    @property
    def curve(self) -> Callable[[Array], Array]:
        along, X = self.shape.curve(self.e), self.X
        return along if X is None else lambda s: X.apply(along(s))

    @property
    def column(self) -> Array:
        column = self.shape.column(self.e)
        return column if self.X is None else _in_first_frame(column, self.X)


@eqx.filter_custom_jvp
def _newton_normal(
    defect: Callable, invert: Callable, first: PlacedElement, second: PlacedElement, s: Array
) -> tuple[Array, Array]:
    """The coordinates near s, by Newton's method, where nothing is missing to a common normal, and its length: `defect`
    tells both. Derivatives are those of the exact solution, to any order."""
    miss = lambda s: defect(first, second, s)[0]

    def step(_: Array, s: Array) -> Array:
        return s - jnp.clip(invert(miss, s)(miss(s)), -STRIDE, STRIDE)

    s = jax.lax.fori_loop(0, _STEPS, step, s)
    return s, defect(first, second, s)[1]


@_newton_normal.def_jvp
def _newton_normal_jvp(primals, tangents):
    defect, invert, first, second, s = primals
    s, gap = _newton_normal(*primals)
    # no motion along the elements changes the length
    _, (missing, opening) = eqx.filter_jvp(lambda a, b: defect(a, b, s), (first, second), tangents[2:4])
    return (s, gap), (-invert(lambda s: defect(first, second, s)[0], s)(missing), opening)


def _inverse_of_one(miss: Callable[[Array], Array], s: Array) -> Callable[[Array], Array]:
    slope = jax.jvp(miss, (s,), (jnp.ones_like(s),))[1]
    return lambda value: value / jnp.where(slope == 0, 1.0, slope)


def _inverse_of_two(miss: Callable[[Array], Array], s: Array) -> Callable[[Array], Array]:
    (a, c), (b, d) = (jax.jvp(miss, (s,), (jnp.array(way),))[1] for way in ((1.0, 0.0), (0.0, 1.0)))
    det = a * d - b * c
    det = jnp.where(det == 0, 1.0, det)
    return lambda value: jnp.stack([d * value[0] - b * value[1], a * value[1] - c * value[0]]) / det


def _normal_of_curve_and_plain(first: PlacedElement, s: Array, second: PlacedElement) -> CommonNormal:
    """A curve (whose coordinate comes first) and a plain element."""
    s, gap = _newton_normal(_defect_of_curve_and_plain, _inverse_of_one, first, second, jax.lax.stop_gradient(s))
    other, line = second.column, second.shape.is_line(second.e)
    p, t = tangent(first.curve, s)
    return CommonNormal(s, _local_coordinate(other, line, direction(other[3]), p, -right_of(t)), gap)


def _defect_of_curve_and_plain(first: PlacedElement, second: PlacedElement, s: Array) -> tuple[Array, Array]:
    """Seen from the center of a plain element, or along its line, a curve is perpendicular."""
    other, line = second.column, second.shape.is_line(second.e)
    p, t = tangent(first.curve, s)
    off, n, normal = other[:2] - p, right_of(t), right_of(direction(other[3]))
    along, beyond = jnp.sum(off * t), jnp.sum(off * n) - other[2]
    return where(line, jnp.sum(t * normal), along), where(line, jnp.sum(off * normal) * jnp.sum(n * normal), beyond)


def _normal_of_two_curves(first: PlacedElement, second: PlacedElement, s1: Array, s2: Array) -> CommonNormal:
    s, gap = _newton_normal(
        _defect_of_two_curves, _inverse_of_two, first, second, jax.lax.stop_gradient(jnp.stack([s1, s2]))
    )
    return CommonNormal(s[0], s[1], gap)


def _defect_of_two_curves(first: PlacedElement, second: PlacedElement, s: Array) -> tuple[Array, Array]:
    """The line from one curve to the other is perpendicular to the first, and this parallel to the second."""
    (p1, t1), (p2, t2) = tangent(first.curve, s[0]), tangent(second.curve, s[1])
    off = p2 - p1
    return jnp.stack([jnp.sum(off * t1), t1[0] * t2[1] - t1[1] * t2[0]]), jnp.sum(off * right_of(t1))
