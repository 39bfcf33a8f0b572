"""Where two profiles meet: the common normal of two elements, and the pair of elements that is closest.

All of it happens in the frame of the first profile; `X` is the pose of the second one there. The common normal n
points out of the first body, and q3 n leads from its place to the place on the second.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._groups import SE2
from .._trees import frozen, once
from .base import Place, Row
from .outline import Outline


_STEPS = 5  # of Newton's method on a curve, from a neighbouring place; the last two carry derivatives
_STRIDE = 0.15  # of a curve's coordinate, the longest step
_SLACK = 1e-9  # a place counts as on its element if its coordinate is outside [0, 1] by less
_DEEP = 0.02  # of the size of the profiles: elements that overlap by more, and were never apart, lie behind each other
_OVERLAP = 1e-9  # of the size of the profiles: elements that overlap by less touch


class Meeting(NamedTuple):
    """A common normal: the local coordinates of its ends, and its length, negative where the bodies overlap."""

    s1: Float[Array, ""]
    s2: Float[Array, ""]
    gap: Float[Array, ""]


class Pairing(NamedTuple):
    """Elements of two profiles, and the local coordinates of a common normal on them."""

    e1: Int[Array, ""]
    e2: Int[Array, ""]
    s1: Float[Array, ""]
    s2: Float[Array, ""]
    gap: Float[Array, ""]


@once
def meet(
    A: Outline, B: Outline, X: SE2, e1: Int[Array, ""], e2: Int[Array, ""], s1: Float[Array, ""], s2: Float[Array, ""]
) -> Meeting:
    """The common normal of two elements: closed form for points, lines, arcs and circles, Newton's method from
    (s1, s2) on curves. Its places may lie beyond the ends of the elements: that is how one knows to go on to the next.

    Derivatives are those of the exact solution, to third order: two steps of Newton's method leave an error of
    fourth order in all that moves.
    """
    a, b = A.row(e1), _moved(B.row(e2), X)
    line_a, line_b = A.is_line(e1), B.is_line(e2)
    found = _plain(a, b, line_a, line_b)
    if A.curves:
        on_a = _on_curve(A.curve(e1), s1, b, line_b)
        found = _select(A.is_curve(e1) & ~B.is_curve(e2), on_a, found)
    if B.curves:
        moved = lambda s: X.apply(B.curve(e2)(s))
        s, other, gap = _on_curve(moved, s2, a, line_a)
        found = _select(B.is_curve(e2) & ~A.is_curve(e1), Meeting(other, s, gap), found)
    if A.curves and B.curves:
        moved = lambda s: X.apply(B.curve(e2)(s))
        both = _between_curves(A.curve(e1), moved, s1, s2)
        found = _select(A.is_curve(e1) & B.is_curve(e2), both, found)
    return Meeting(_within(A, found.s1), _within(B, found.s2), found.gap)


def closest(
    A: Outline,
    B: Outline,
    X: SE2,
    pairs: tuple[np.ndarray, np.ndarray],
    *,
    same: Bool[Array, " pairs"] | None = None,
    skip: Float[Array, "2"] | None = None,
    radius: Float[Array, ""] | None = None,
    apart: Float[Array, " pairs"] | None = None,
    anywhere: bool = False,
) -> tuple[Pairing, Float[Array, " pairs"]]:
    """The pair of elements with the shortest common normal, its gap infinite where there is none; and the gaps of the
    pairs that are apart, each on the outer side of the other, whether or not a common normal meets them; those of the
    others are minus infinity.

    A body that does not overlap another is as far from it as the shortest common normal is long, whichever side it
    points to: it begins outside both. So the shortest one is the true one, and where bodies overlap
    slightly, it tells by how much. Bodies that have come to overlap since it was told which pairs were `apart` do so
    where one of these is no longer: then the pair that is deepest counts, however near another one is. Pairs that were
    never apart count where the overlap is slight: one body may have come over the edge of the other. (Where the bodies
    touch already, only curves do: Newton's method may not have found their normal before.)

    Of the pairs `same`, places of the first profile within `radius` of the point `skip`, where the bodies touch, are
    left out; it is negative where they do not. `anywhere`, places beyond the ends of the elements count too.
    """
    e1, e2 = (jnp.asarray(x) for x in pairs)
    A_, B_, X_ = frozen((A, B, X))  # which pair it is has no derivative
    starts1, starts2 = jax.vmap(lambda i, j: _begin(A_, B_, X_, i, j))(e1, e2)
    found = jax.vmap(lambda i, j, s1, s2: meet(A_, B_, X_, i, j, s1, s2))(e1, e2, starts1, starts2)
    on_a, on_b = jax.vmap(A_.place)(e1, found.s1), jax.vmap(B_.place)(e2, found.s2)
    good = A.there[e1] & B.there[e2] & jnp.isfinite(found.gap)
    good &= on_a.curvature + on_b.curvature > 0  # else it is the longest normal in its neighbourhood
    lengths = [x for side in (A_.rows, B_.rows) for x in (side.x, side.y, side.radius, side.length)]
    size = jnp.max(jnp.abs(jnp.concatenate(lengths)))
    good &= jax.vmap(lambda a, b, gap: _is_common(a, b, X_, gap, size))(on_a, on_b, found.gap)
    places = ((A_, e1, found.s1), (B_, e2, found.s2))
    ranges = [(s >= -_SLACK) & (s <= 1 + _SLACK) for _, _, s in places]
    beyond = good & ~(ranges[0] & ranges[1])
    for (shape, e, s), inside in zip(places, ranges):
        beyond &= inside | (found.gap <= -shape.behind(e, s))
    for inside in () if anywhere else ranges:
        good &= inside
    plain = np.array([A.groups[i] < 0 and B.groups[j] < 0 for i, j in zip(*pairs)], dtype=bool)
    outside = (good | plain) & (found.gap > -_OVERLAP * size)
    if skip is not None and radius is not None:
        near = jnp.hypot(*(on_a.position - frozen(skip)).T) <= radius
        elsewhere = ~(near if same is None else near & same)
        good, beyond = good & elsewhere, beyond & elsewhere
    score = jnp.abs(found.gap)
    if apart is not None:
        assert radius is not None
        # behind a hollow corner no normal meets an element: there one has passed the surface that goes on from it
        entered = (apart > -jnp.inf) & (found.gap <= 0)
        good |= entered & beyond
        good &= entered | outside | (((radius < 0) | ~plain) & (found.gap > -_DEEP * size))
        score = jnp.where(entered, found.gap, score)
    score = jnp.where(good, score, jnp.inf)
    k = jnp.argmin(score)
    best = meet(A, B, X, e1[k], e2[k], found.s1[k], found.s2[k])
    return Pairing(e1[k], e2[k], best.s1, best.s2, jnp.where(good[k], best.gap, jnp.inf)), jnp.where(
        outside, found.gap, -jnp.inf
    )


def _is_common(a: Place, b: Place, X: SE2, gap: Array, size: Array) -> Array:
    """Whether two places are the ends of a common normal: where there is none, Newton's method does not find one."""
    p, n = X.apply(b.position), X.rotate(b.normal)
    off, turned = p - a.position - gap * a.normal, n + a.normal
    size = size + jnp.abs(gap) + jnp.sum(jnp.abs(p)) + jnp.sum(jnp.abs(a.position))
    return (jnp.sum(jnp.abs(off)) <= 1e-7 * size) & (jnp.sum(jnp.abs(turned)) <= 1e-6)


def element_pairs(
    A: Outline, B: Outline, of_a: tuple[int, ...], of_b: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of elements that can have a common normal: two lines cannot."""
    pairs = [(i, j) for i in of_a for j in of_b if not (A.lines[i] and B.lines[j])]
    e1, e2 = np.array(pairs, dtype=int).reshape(-1, 2).T
    return e1, e2


def _moved(row: Row, X: SE2) -> Row:
    x, y = X.apply(jnp.stack([row.x, row.y]))
    return row._replace(x=x, y=y, start=row.start + X.angle)


def _select(condition: Array, a: Meeting, b: Meeting) -> Meeting:
    return Meeting(*(jnp.where(condition, x, y) for x, y in zip(a, b)))


def _within(shape: Outline, s: Array) -> Array:
    return s - jax.lax.stop_gradient(jnp.floor(s)) if shape.endless else s


def _direction(angle: Array) -> Array:
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)])


def _right_of(t: Array) -> Array:
    return jnp.stack([t[1], -t[0]])


def _along(row: Row, line: Array, point: Array, normal: Array) -> Array:
    """The local coordinate on a plain element of a point, where its normal has a direction."""
    t = _direction(row.start)
    on_line = ((point[0] - row.x) * t[0] + (point[1] - row.y) * t[1]) / jnp.where(line, row.length, 1.0)
    angle = jnp.arctan2(normal[0], -normal[1]) - row.start - row.turn / 2
    angle = angle - 2 * jnp.pi * jax.lax.stop_gradient(jnp.round(angle / (2 * jnp.pi)))
    round_ = jnp.abs(row.turn) > 0
    on_arc = jnp.where(round_, angle / jnp.where(round_, row.turn, 1.0) + 0.5, jnp.inf)
    return jnp.where(line, on_line, on_arc)


def _plain(a: Row, b: Row, line_a: Array, line_b: Array) -> Meeting:
    """Centres and lines: base_b - base_a = (r_a + r_b + q3) n for arcs; a line brings its own n."""
    d = jnp.stack([b.x - a.x, b.y - a.y])
    square = jnp.sum(d * d)
    length = jnp.sqrt(jnp.where(square > 0, square, 1.0))
    outside = jnp.where(a.radius + b.radius < 0, -1.0, 1.0)  # -1: inside a bore
    n = outside * d / length
    n = jnp.where(line_b, -_right_of(_direction(b.start)), n)
    n = jnp.where(line_a, _right_of(_direction(a.start)), n)
    gap = jnp.sum(d * n) - a.radius - b.radius
    on_a = jnp.stack([a.x, a.y]) + a.radius * n
    on_b = jnp.stack([b.x, b.y]) - b.radius * n
    s1 = _along(a, line_a, on_b, n)
    s2 = _along(b, line_b, on_a, -n)
    return Meeting(s1, s2, jnp.where(line_a & line_b, jnp.inf, gap))


def _tangent(curve: Callable[[Array], Array], s: Array) -> tuple[Array, Array]:
    """The point, and the unit tangent."""
    p, v = jax.jvp(curve, (s,), (jnp.ones_like(s),))
    return p, v / jnp.sqrt(jnp.sum(v * v))


def _polished(step: Callable[[Array], Array], s: Array) -> Array:
    """s after a few steps, of which the last two carry derivatives."""

    def moved(s: Array) -> Array:
        return s + jnp.clip(step(s), -_STRIDE, _STRIDE)

    s = jax.lax.stop_gradient(jax.lax.fori_loop(0, _STEPS - 2, lambda _, s: moved(s), jax.lax.stop_gradient(s)))
    return moved(moved(s))


def _on_curve(curve: Callable[[Array], Array], s: Array, other: Row, line: Array) -> Meeting:
    """A curve (whose coordinate comes first) and a plain element: seen from its centre, or along its line, the
    curve is perpendicular."""
    base, normal = jnp.stack([other.x, other.y]), _right_of(_direction(other.start))

    def miss(s: Array) -> Array:
        p, t = _tangent(curve, s)
        return jnp.where(line, jnp.sum(t * normal), jnp.sum((base - p) * t))

    def step(s: Array) -> Array:
        value, slope = jax.jvp(miss, (s,), (jnp.ones_like(s),))
        return -value / jnp.where(slope == 0, 1.0, slope)

    s = _polished(step, s)
    p, t = _tangent(curve, s)
    n = _right_of(t)
    return Meeting(s, _along(other, line, p, -n), jnp.sum((base - p) * n) - other.radius)


def _between_curves(first: Callable[[Array], Array], second: Callable[[Array], Array], s1: Array, s2: Array) -> Meeting:
    def miss(s: Array) -> Array:
        (p1, t1), (p2, t2) = _tangent(first, s[0]), _tangent(second, s[1])
        return jnp.stack([jnp.sum((p2 - p1) * t1), t1[0] * t2[1] - t1[1] * t2[0]])

    def step(s: Array) -> Array:
        value = miss(s)
        J = jax.jacfwd(miss)(s)
        det = J[0, 0] * J[1, 1] - J[0, 1] * J[1, 0]
        det = jnp.where(det == 0, 1.0, det)
        return -jnp.stack([J[1, 1] * value[0] - J[0, 1] * value[1], J[0, 0] * value[1] - J[1, 0] * value[0]]) / det

    s = _polished(step, jnp.stack([s1, s2]))
    (p1, t1), (p2, _) = _tangent(first, s[0]), _tangent(second, s[1])
    return Meeting(s[0], s[1], jnp.sum((p2 - p1) * _right_of(t1)))


def _begin(A: Outline, B: Outline, X: SE2, e1: Array, e2: Array) -> tuple[Array, Array]:
    """Local coordinates from which Newton's method finds the shortest common normal of two elements."""
    half = jnp.full((), 0.5)
    if not A.curves and not B.curves:
        return half, half
    s1 = s2 = half
    moved = lambda s: X.apply(B.curve(e2)(s))
    if A.curves:
        grid1, points1 = _samples(A, A.curve(e1))
        k = jnp.argmin(jax.vmap(lambda p: _far(p, _moved(B.row(e2), X), B.is_line(e2)))(points1))
        s1 = grid1[k]
    if B.curves:
        grid2, points2 = _samples(B, moved)
        k = jnp.argmin(jax.vmap(lambda p: _far(p, A.row(e1), A.is_line(e1)))(points2))
        s2 = grid2[k]
    if A.curves and B.curves:
        apart = jnp.sum((points1[:, None] - points2[None]) ** 2, -1)
        k1, k2 = jnp.unravel_index(jnp.argmin(apart), apart.shape)
        curved = A.is_curve(e1) & B.is_curve(e2)
        s1, s2 = jnp.where(curved, grid1[k1], s1), jnp.where(curved, grid2[k2], s2)
    return s1, s2


def _samples(shape: Outline, curve: Callable[[Array], Array]) -> tuple[Array, Array]:
    grid = jnp.linspace(0.0, 1.0, shape.samples, endpoint=not shape.endless)
    return grid, jax.vmap(curve)(grid)


def _far(p: Array, other: Row, line: Array) -> Array:
    """How far a point is from a plain element, ordered so that the least is the shortest normal."""
    d = jnp.stack([p[0] - other.x, p[1] - other.y])
    t = _direction(other.start)
    along = jnp.sum(d * t) / jnp.where(line, other.length, 1.0)
    beside = jnp.where((along < -0.1) | (along > 1.1), 1e6 * other.length, 0.0)
    round_ = jnp.sqrt(jnp.sum(d * d)) * jnp.where(other.radius < 0, -1.0, 1.0)
    return jnp.where(line, jnp.sum(d * _right_of(t)) + beside, round_)
