"""Where a curve is nearest to another element: the places from which Newton's method finds their common normals.

Curves may come near each other in several places, and from far off Newton's method finds none or a wrong one. So the
distance is looked at along a whole curve, and its least values are followed downhill.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..._numerics.groups import SE2
from .base import right_of, velocity_and_acceleration
from .common_normal import STRIDE, CommonNormal, PlacedElement, direction, where
from .outline import Outline


_DESCENT = 8  # steps along a curve from a point of it that is nearest to another element,
_FEET = 3  # steps to the foot of a point on a curve,
_PLACES = 3  # and how many places may be nearly as near, each looked for from two points


def nearest_places(A: Outline, B: Outline, X: SE2, e1: Array, e2: Array) -> tuple[tuple[Array, Array], CommonNormal]:
    """Local coordinates of places where two elements are nearest to each other, some of each, from which Newton's
    method finds common normals; and those of two curves from which they were found, with the distances there."""
    s1 = s2 = half = jnp.full(2 * _PLACES, 0.5)
    seen = CommonNormal(half, half, jnp.full_like(half, jnp.inf))
    first, second = PlacedElement(A, None, e1), PlacedElement(B, X, e2)
    if A.curves and B.has_plain:
        s1 = _nearest_to_plain(first, second)
    if B.curves and A.has_plain:
        s2 = _nearest_to_plain(second, first)
    if A.curves and B.curves:
        (*both, seen), curved = _nearest_of_curves(first, second), A.is_curve(e1) & B.is_curve(e2)
        s1, s2 = where(curved, both[0], s1), where(curved, both[1], s2)
    return (s1, s2), seen


def _nearest_to_plain(curve: PlacedElement, plain: PlacedElement) -> Array:
    column, line = plain.column, plain.shape.is_line(plain.e)
    base, normal = column[:2], right_of(direction(column[3]))
    side = jnp.where(column[2] < 0, -1.0, 1.0)
    grid, points = _samples(curve.shape, curve.curve)
    far = jax.vmap(lambda p: _distance_to_plain(p, column, line))(points)

    def on(_: Array, s: Array) -> Array:
        """Where the distance is least, as it changes here."""
        p, v, a = _moving(curve.curve, s)
        off = p - base
        square = jnp.sum(off * off)
        length = jnp.sqrt(jnp.where(square > 0, square, 1.0))  # where it has come to a point it stays
        out = off / length
        n = where(line, normal, side * out)
        across = jnp.sum(v * v) - jnp.sum(out * v) ** 2
        bend = jnp.sum(n * a) + where(line, jnp.zeros_like(across), side * across / length)
        return _onward(s, _downhill(jnp.sum(n * v), bend, grid[1]), curve.shape)

    starts = grid[_lowest(far, curve.shape.endless)]
    return jax.vmap(lambda s: jax.lax.fori_loop(0, _DESCENT, on, s))(starts)


def _nearest_of_curves(first: PlacedElement, second: PlacedElement) -> tuple[Array, Array, CommonNormal]:
    """Where the second curve is nearest to the first, or deepest in it."""
    (grid1, points1), (grid2, points2) = (_samples(x.shape, x.curve) for x in (first, second))

    def at(s: tuple[Array, Array]) -> tuple[Array, Array, Array]:
        """How far the second place is beside the first curve; and the steps to its foot on that curve, and to where
        its distance is least, as both change here."""
        (p1, v1, a1), (p2, v2, a2) = (_moving(x.curve, y) for x, y in zip((first, second), s))
        off, square = p2 - p1, jnp.sum(v1 * v1)
        speed = jnp.sqrt(square)
        n, turning = right_of(v1) / speed, (v1[0] * a1[1] - v1[1] * a1[0]) / square  # of the normal, along v1 / speed
        miss, together = jnp.sum(off * v1), jnp.sum(v1 * v2)
        steep = square - jnp.sum(off * a1)
        less = 1 / jnp.where(steep > 0, steep, square)
        slope = jnp.sum(n * v2) + turning * together * miss * less / speed
        bend = jnp.sum(n * a2) + turning * together**2 * less / speed
        d2 = _downhill(slope, bend, grid2[1])
        return jnp.sum(off * n), miss * less, jnp.stack([(miss + together * d2) * less, d2])

    def foot(_: Any, s: tuple[Array, Array]) -> tuple[Array, Array]:
        return _onward(s[0], jnp.clip(at(s)[1], -grid1[1], grid1[1]), first.shape), s[1]

    def on(_: Any, s: tuple[Array, Array]) -> tuple[Array, Array]:
        d1, d2 = at(s)[2]
        return _onward(s[0], jnp.clip(d1, -grid1[1], grid1[1]), first.shape), _onward(s[1], d2, second.shape)

    near = jnp.argmin(jnp.sum((points2[:, None] - points1) ** 2, -1), 1)
    feet, _ = jax.vmap(lambda *s: jax.lax.fori_loop(0, _FEET, foot, s))(grid1[near], grid2)
    off = points2 - jax.vmap(first.curve)(feet)
    side = jax.vmap(lambda *s: at(s)[0])(feet, grid2)
    far = jnp.sqrt(jnp.sum(off * off, -1)) * jnp.where(side < 0, -1.0, 1.0)
    j = _lowest(far, second.shape.endless)
    seen = CommonNormal(feet[j], grid2[j], far[j])
    return *jax.vmap(lambda *s: jax.lax.fori_loop(0, _DESCENT, on, s))(*seen[:2]), seen


def _moving(curve: Callable[[Array], Array], s: Array) -> tuple[Array, Array, Array]:
    """A point of a curve, and its first and second derivative."""
    return curve(s), *velocity_and_acceleration(curve, s, jnp.ones_like(s))


def _downhill(slope: Array, bend: Array, most: Array) -> Array:
    """The step to where something is least, by Newton's method where it bends upwards; no longer than `most`."""
    return jnp.where(bend > 0, jnp.clip(-slope / jnp.where(bend > 0, bend, 1.0), -most, most), -jnp.sign(slope) * most)


def _onward(s: Array, by: Array, shape: Outline) -> Array:
    return s + by if shape.endless else jnp.clip(s + by, -STRIDE, 1 + STRIDE)


def _lowest(rows: Array, endless: bool) -> Array:
    """The places of the least of some numbers that are no more than those beside them, and the lower ones of these:
    from there it may go down to another place, which is lower still."""
    before, after = jnp.roll(rows, 1), jnp.roll(rows, -1)
    if not endless:
        before, after = before.at[0].set(jnp.inf), after.at[-1].set(jnp.inf)
    k = jax.lax.top_k(-jnp.where((rows <= before) & (rows <= after), rows, jnp.inf), _PLACES)[1]
    return jnp.concatenate([k, (k + jnp.where(before[k] < after[k], -1, 1)) % rows.shape[0]])


def _samples(shape: Outline, curve: Callable[[Array], Array]) -> tuple[Array, Array]:
    grid = jnp.linspace(0.0, 1.0, max(shape.samples, _PLACES), endpoint=not shape.endless)
    return grid, jax.vmap(curve)(grid)


def _distance_to_plain(p: Array, other: Array, line: Any) -> Array:
    """How far a point is from a plain element, ordered so that the least is the shortest normal."""
    d, t, length = p - other[:2], direction(other[3]), other[5]
    along = jnp.sum(d * t) / where(line, length, jnp.ones_like(length))
    beside = jnp.where((along < -0.1) | (along > 1.1), 1e6 * length, 0.0)
    round_ = jnp.sqrt(jnp.sum(d * d)) * jnp.where(other[2] < 0, -1.0, 1.0)
    return where(line, jnp.sum(d * right_of(t)) + beside, round_)
