"""Where two profiles meet: the common normal of two elements, and the pair of elements that is closest.

All of it happens in the frame of the first profile; `X` is the pose of the second one there. The common normal n
points out of the first body, and q3 n leads from its place to the place on the second.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..._numerics.groups import SE2, pick
from ..._programs.precision import Threshold
from ..._programs.trees import frozen, once
from .base import Place, right_of, tangent
from .outline import Outline


_STEPS = 5  # of Newton's method on a curve, from a neighboring place
_STRIDE = 0.15  # of a curve's coordinate, the longest step
_SLACK = Threshold(1e-9, 1e-5)  # a place counts as on its element if its coordinate is outside [0, 1] by less
_DEEP = 0.02  # of the size of the profiles: elements that overlap by more, and were never apart, lie behind each other
_OVERLAP = Threshold(1e-9, 1e-5)  # of the size of the profiles: elements that overlap by less touch
_MISSED = Threshold(1e-7, 1e-5)  # of the distances: places that miss a common normal by less are its ends


class CommonNormal(NamedTuple):
    """A common normal: the local coordinates of its ends, and its length, negative where the bodies overlap."""

    s1: Float[Array, ""]
    s2: Float[Array, ""]
    gap: Float[Array, ""]


class ClosestPair(NamedTuple):
    """Elements of two profiles, and the local coordinates of a common normal on them."""

    e1: Int[Array, ""]
    e2: Int[Array, ""]
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
        else _constant_curvature_normal(A, B, X, e1, e2)
    )
    return found._replace(s1=_wrapped(A, found.s1), s2=_wrapped(B, found.s2))


def _normal_with_curves(A: Outline, B: Outline, X: SE2, e1: Array, e2: Array, s1: Array, s2: Array) -> CommonNormal:
    """The common normal of two elements, where there are curves among those that they may be."""
    curve_a, curve_b = A.is_curve(e1), B.is_curve(e2)
    found = CommonNormal(s1, s2, jnp.full_like(s1, jnp.inf))
    if A.has_plain and B.has_plain:
        found = _constant_curvature_normal(A, B, X, e1, e2)
    first, second = (_PlacedElement(shape, x, e) for shape, x, e in ((A, None, e1), (B, X, e2)))
    if A.curves and B.has_plain:
        found = _select(curve_a & ~curve_b, _normal_of_curve_and_plain(first, s1, second), found)
    if B.curves and A.has_plain:
        s, other, gap = _normal_of_curve_and_plain(second, s2, first)
        found = _select(curve_b & ~curve_a, CommonNormal(other, s, gap), found)
    if A.curves and B.curves:
        found = _select(curve_a & curve_b, _normal_of_two_curves(first, second, s1, s2), found)
    return found


def closest_pair(
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
) -> tuple[ClosestPair, Float[Array, " pairs"]]:
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
    e1, e2 = pairs
    size = jnp.maximum(A.size, B.size)
    curves = bool(A.curves or B.curves)
    plain = np.array([A.groups[i] < 0 and B.groups[j] < 0 for i, j in zip(*pairs)], dtype=bool)
    if curves:
        A_, B_, X_, size_ = frozen((A, B, X, size))  # which pair it is has no derivative
        found, bent, at, common = _normals_with_curves(A_, B_, X_, pairs, size_)
    else:
        found = _constant_curvature_normal(A, B, X, e1, e2)
        found = found._replace(s1=_wrapped(A, found.s1), s2=_wrapped(B, found.s2))
        bent = A.curvature(e1) + B.curvature(e2)
        at = A.plain_place(e1, found.s1).position if skip is not None else None
        common = jnp.isfinite(found.s1 + found.s2)
    gap = frozen(found.gap)
    clear, far = _prolonged(A, B, pairs, plain, found._replace(gap=gap))
    good = pick(A.has_extent, e1) & pick(B.has_extent, e2) & jnp.isfinite(gap) & common
    shortest = bent > 0  # else it is the longest normal in its neighborhood
    good &= shortest
    ranges = [(s >= -_SLACK()) & (s <= 1 + _SLACK()) for s in (found.s1, found.s2)]
    on_both = ranges[0] & ranges[1]
    beyond = good & ~on_both
    for shape, e, s, inside in ((A, e1, found.s1, ranges[0]), (B, e2, found.s2, ranges[1])):
        beyond &= inside | (clear <= -shape.least_overlap_beyond(e, s))
    if not anywhere:
        good &= on_both
    outside = (good | plain & shortest) & (clear > -_OVERLAP() * size)
    if skip is not None and radius is not None:
        assert at is not None
        off = at - frozen(skip)[:, None]
        near = jnp.sum(off * off, 0) <= radius * jnp.abs(radius)
        elsewhere = ~(near if same is None else near & same)
        good, beyond = good & elsewhere, beyond & elsewhere
    disc = _disc_radius(A, B)
    score = jnp.abs(gap + disc) - disc
    if apart is not None:
        assert radius is not None
        # behind a hollow corner no normal meets an element: there one has passed the surface that goes on from it
        entered = (apart > -jnp.inf) & (clear <= 0)
        good |= entered & beyond
        deepest = jnp.maximum(_DEEP * size, 2 * disc)
        good &= entered | outside | (((radius < 0) | ~plain) & (gap > -deepest))
        score = jnp.where(entered, clear, score)
    score = jnp.where(good, score, jnp.inf)
    k = jnp.argmin(score)
    best = CommonNormal(*(_at(x, k) for x in found))
    e1, e2, there = (_at(jnp.asarray(x), k) for x in (e1, e2, good))
    if curves:
        best = common_normal(A, B, X, e1, e2, best.s1, best.s2)
    best = best._replace(gap=jnp.where(there, best.gap, jnp.inf))
    return ClosestPair(e1, e2, *best), jnp.where(outside, far, -jnp.inf)


def _prolonged(
    A: Outline, B: Outline, pairs: tuple[np.ndarray, np.ndarray], plain: np.ndarray, found: CommonNormal
) -> tuple[Array, Array]:
    """The gaps of pairs, concave arcs prolonged by their tangents; and how far it is to the arcs themselves, at least.

    __________           What is between an arc and its tangents is on their outer side, wherever it stands. The circle
       c      `.         does not tell: seen from c, far from its center, it has been passed. The radius w of the arc
               |         and that of a disc differ by w - r. If the disc's center is d from that of the arc, and the
    ___________/         direction misses the arc by x, the nearest tangent is w - r - d cos(x) away, and the arc is met
                         no sooner than after d sin(x). Their gap, w - r - d, tells d."""
    gap, hollow, missed = found.gap, np.zeros_like(plain), 0.0
    for shape, e, s in ((A, pairs[0], found.s1), (B, pairs[1], found.s2)):
        concave = np.array(shape.hollow)[e] & plain
        if concave.any():
            beyond = jnp.maximum(jnp.abs(frozen(s) - 0.5) - 0.5, 0.0) * jnp.abs(shape.column(e)[4])
            hollow, missed = hollow | concave, missed + jnp.where(concave, beyond, 0.0)
    if not hollow.any():
        return gap, gap
    reach = frozen(A.column(pairs[0])[2] + B.column(pairs[1])[2])
    away = gap + reach
    clear = away * jnp.cos(missed) - reach
    aside = -away * jnp.sin(jnp.minimum(missed, jnp.pi / 2))
    return jnp.where(hollow, clear, gap), jnp.where(hollow, jnp.maximum(clear, aside), gap)


def _disc_radius(A: Outline, B: Outline) -> Any:
    """The radius of the profile that is a disc; of two, of the smaller one; zero, if none is. Where a place of the
    other profile is nearer to its center than that they overlap, whatever else is near. The shortest way to part leads
    back as long as the center has not passed that place, and on from then on."""
    radii = [frozen(shape.table[2, 0]) for shape in (A, B) if shape.is_disc]
    return functools.reduce(jnp.minimum, radii) if radii else 0.0


def _at(x: Array, k: Array) -> Array:
    """x[k], where k is a place of x."""
    return x.at[k].get(mode="promise_in_bounds", wrap_negative_indices=False)


def _normals_with_curves(A: Outline, B: Outline, X: SE2, pairs: tuple[np.ndarray, np.ndarray], size: Array):
    """The common normals of all pairs where curves are among them; the sums of the curvatures there, the places on the
    first profile, and whether it is a common normal that was found."""
    e1, e2 = (jnp.asarray(x) for x in pairs)
    starts1, starts2 = jax.vmap(lambda i, j: _newton_start(A, B, X, i, j))(e1, e2)
    found = jax.vmap(lambda i, j, s1, s2: common_normal(A, B, X, i, j, s1, s2))(e1, e2, starts1, starts2)
    on_a, on_b = jax.vmap(A.place)(e1, found.s1), jax.vmap(B.place)(e2, found.s2)
    common = jax.vmap(lambda a, b, gap: _is_common(a, b, X, gap, size))(on_a, on_b, found.gap)
    return found, on_a.curvature + on_b.curvature, on_a.position.T, common


def _is_common(a: Place, b: Place, X: SE2, gap: Array, size: Array) -> Array:
    """Whether two places are the ends of a common normal: where there is none, Newton's method does not find one."""
    p, n = X.apply(b.position), X.rotate(b.normal)
    off, turned = p - a.position - gap * a.normal, n + a.normal
    size = size + jnp.abs(gap) + jnp.sum(jnp.abs(p)) + jnp.sum(jnp.abs(a.position))
    return (jnp.sum(jnp.abs(off)) <= _MISSED() * size) & (jnp.sum(jnp.abs(turned)) <= 10 * _MISSED())


def element_pairs(
    A: Outline, B: Outline, of_a: tuple[int, ...], of_b: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of elements that can have a common normal: two lines cannot."""
    pairs = [(i, j) for i in of_a for j in of_b if not (A.lines[i] and B.lines[j])]
    e1, e2 = np.array(pairs, dtype=int).reshape(-1, 2).T
    return e1, e2


def _in_first_frame(column: Array, X: SE2) -> Array:
    """The numbers of an element of the second profile, in the frame of the first."""
    x, y = column[0], column[1]
    place = jnp.stack([X.x + X.c * x - X.s * y, X.y + X.s * x + X.c * y])
    return jnp.concatenate([place, column[2:3], column[3:4] + X.angle, column[4:]])


def _where(condition: Any, x: Array, y: Any) -> Array:
    """x where a condition holds, y elsewhere; what is known beforehand is not asked."""
    if isinstance(condition, np.ndarray | np.bool_):
        if np.all(condition):
            return x
        if not np.any(condition):
            return y
    return jnp.where(condition, x, y)


def _select(condition: Any, a: CommonNormal, b: CommonNormal) -> CommonNormal:
    return CommonNormal(*(_where(condition, x, y) for x, y in zip(a, b)))


def _wrapped(shape: Outline, s: Array) -> Array:
    return s - jax.lax.stop_gradient(jnp.floor(s)) if shape.endless else s


def _direction(angle: Array) -> Array:
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)])


def _local_coordinate(column: Array, line: Any, t: Array, point: Array, normal: Array) -> Array:
    """The local coordinate on plain elements of points, where their normals have a direction; t is the direction in
    which they begin."""
    start, turn, length = column[3], column[4], column[5]
    on_line = jnp.sum((point - column[:2]) * t, 0) / _where(line, length, jnp.ones_like(length))
    angle = jnp.arctan2(normal[0], -normal[1]) - start - turn / 2
    angle = angle - 2 * jnp.pi * jax.lax.stop_gradient(jnp.round(angle / (2 * jnp.pi)))
    round_ = jnp.abs(turn) > 0
    on_arc = jnp.where(round_, angle / jnp.where(round_, turn, 1.0) + 0.5, jnp.inf)
    return _where(line, on_line, on_arc)


def _constant_curvature_normal(A: Outline, B: Outline, X: SE2, e1: Any, e2: Any) -> CommonNormal:
    """Of elements that are no curves, of one pair or many. Centers and lines: base_b - base_a = (r_a + r_b + q3) n for
    arcs; a line brings its own n."""
    lines = A.is_line(e1), B.is_line(e2)
    line = np.stack(lines) if all(isinstance(x, np.ndarray | np.bool_) for x in lines) else jnp.stack(lines)
    both = jnp.stack([A.column(e1), _in_first_frame(B.column(e2), X)], 1)  # numbers, sides
    base, radius, t = both[:2], both[2], _direction(both[3])
    d = base[:, 1] - base[:, 0]
    square = jnp.sum(d * d, 0)
    length, reach = jnp.sqrt(jnp.where(square > 0, square, 1.0)), radius[0] + radius[1]
    n = jnp.where(reach < 0, -1.0, 1.0) * d / length  # -1: inside a bore
    right = right_of(t)
    n = _where(lines[0], right[:, 0], _where(lines[1], -right[:, 1], n))
    gap = jnp.sum(d * n, 0) - reach
    normals = jnp.stack([n, -n], 1)
    feet = base + radius * normals
    s = _local_coordinate(both, line, t, feet[:, ::-1], normals)
    return CommonNormal(s[0], s[1], _where(lines[0] & lines[1], jnp.full_like(gap, jnp.inf), gap))


class _PlacedElement(NamedTuple):
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
    defect: Callable, invert: Callable, first: _PlacedElement, second: _PlacedElement, s: Array
) -> tuple[Array, Array]:
    """The coordinates near s, by Newton's method, where nothing is missing to a common normal, and its length: `defect`
    tells both. Derivatives are those of the exact solution, to any order."""
    miss = lambda s: defect(first, second, s)[0]

    def step(_: Array, s: Array) -> Array:
        return s - jnp.clip(invert(miss, s)(miss(s)), -_STRIDE, _STRIDE)

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


def _normal_of_curve_and_plain(first: _PlacedElement, s: Array, second: _PlacedElement) -> CommonNormal:
    """A curve (whose coordinate comes first) and a plain element."""
    s, gap = _newton_normal(_defect_of_curve_and_plain, _inverse_of_one, first, second, jax.lax.stop_gradient(s))
    other, line = second.column, second.shape.is_line(second.e)
    p, t = tangent(first.curve, s)
    return CommonNormal(s, _local_coordinate(other, line, _direction(other[3]), p, -right_of(t)), gap)


def _defect_of_curve_and_plain(first: _PlacedElement, second: _PlacedElement, s: Array) -> tuple[Array, Array]:
    """Seen from the center of a plain element, or along its line, a curve is perpendicular."""
    other, line = second.column, second.shape.is_line(second.e)
    p, t = tangent(first.curve, s)
    off, n, normal = other[:2] - p, right_of(t), right_of(_direction(other[3]))
    along, beyond = jnp.sum(off * t), jnp.sum(off * n) - other[2]
    return _where(line, jnp.sum(t * normal), along), _where(line, jnp.sum(off * normal) * jnp.sum(n * normal), beyond)


def _normal_of_two_curves(first: _PlacedElement, second: _PlacedElement, s1: Array, s2: Array) -> CommonNormal:
    s, gap = _newton_normal(
        _defect_of_two_curves, _inverse_of_two, first, second, jax.lax.stop_gradient(jnp.stack([s1, s2]))
    )
    return CommonNormal(s[0], s[1], gap)


def _defect_of_two_curves(first: _PlacedElement, second: _PlacedElement, s: Array) -> tuple[Array, Array]:
    """The line from one curve to the other is perpendicular to the first, and this parallel to the second."""
    (p1, t1), (p2, t2) = tangent(first.curve, s[0]), tangent(second.curve, s[1])
    off = p2 - p1
    return jnp.stack([jnp.sum(off * t1), t1[0] * t2[1] - t1[1] * t2[0]]), jnp.sum(off * right_of(t1))


def _newton_start(A: Outline, B: Outline, X: SE2, e1: Array, e2: Array) -> tuple[Array, Array]:
    """Local coordinates from which Newton's method finds the shortest common normal of two elements."""
    half = jnp.full((), 0.5)
    if not A.curves and not B.curves:
        return half, half
    s1 = s2 = half
    moved = lambda s: X.apply(B.curve(e2)(s))
    if A.curves:
        grid1, points1 = _samples(A, A.curve(e1))
        k = jnp.argmin(
            jax.vmap(lambda p: _distance_to_plain(p, _in_first_frame(B.column(e2), X), B.is_line(e2)))(points1)
        )
        s1 = grid1[k]
    if B.curves:
        grid2, points2 = _samples(B, moved)
        k = jnp.argmin(jax.vmap(lambda p: _distance_to_plain(p, A.column(e1), A.is_line(e1)))(points2))
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


def _distance_to_plain(p: Array, other: Array, line: Any) -> Array:
    """How far a point is from a plain element, ordered so that the least is the shortest normal."""
    d, t, length = p - other[:2], _direction(other[3]), other[5]
    along = jnp.sum(d * t) / _where(line, length, jnp.ones_like(length))
    beside = jnp.where((along < -0.1) | (along > 1.1), 1e6 * length, 0.0)
    round_ = jnp.sqrt(jnp.sum(d * d)) * jnp.where(other[2] < 0, -1.0, 1.0)
    return _where(line, jnp.sum(d * right_of(t)) + beside, round_)
