"""Where two profiles meet: the pair of their elements that is closest.

All of it happens in the frame of the first profile; `X` is the pose of the second one there.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from ..._numerics.groups import SE2, pick, rowwise
from ..._programs.precision import Threshold
from ..._programs.trees import frozen, tree_where
from .base import Place
from .common_normal import STRIDE, CommonNormal, common_normal, constant_curvature_normal, wrapped
from .nearest_places import nearest_places
from .outline import Outline


_SLACK = Threshold(1e-9, 1e-5)  # a place counts as on its element if its coordinate is outside [0, 1] by less
_DEEP = 0.02  # of the size of the profiles: elements that overlap by more, and were never apart, lie behind each other
_DEEPER = 10  # times that, of elements that were apart when a step began
_OVERLAP = Threshold(1e-9, 1e-5)  # of the size of the profiles: elements that overlap by less touch
_MISSED = Threshold(1e-7, 1e-5)  # of the distances: places that miss a common normal by less are its ends


class ClosestPair(NamedTuple):
    """Elements of two profiles, and the local coordinates of a common normal on them."""

    e1: Int[Array, ""]
    e2: Int[Array, ""]
    s1: Float[Array, ""]
    s2: Float[Array, ""]
    gap: Float[Array, ""]


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
    rings = A.is_ring and B.is_ring  # what is nearest is never behind one of two boundaries that have no others
    left = functools.partial(_left, skip, radius, same)
    plain = np.array([A.groups[i] < 0 and B.groups[j] < 0 for i, j in zip(*pairs)], dtype=bool)
    if curves:
        times = jnp.ones(len(e1)) if apart is None else jnp.where(apart > -jnp.inf, _DEEPER, 1.0)
        A_, B_, X_, size_ = frozen((A, B, X, size))  # which pair it is has no derivative
        found, bent, at, common = _normals_with_curves(A_, B_, X_, pairs, size_, times * _DEEP * size_, left)
    else:
        found, bent, at, common = _normals_of_plain(A, B, X, pairs, skip is not None)
    gap = frozen(found.gap)
    clear, far = _prolonged(A, B, pairs, plain, found._replace(gap=gap))
    good = pick(A.has_extent, e1) & pick(B.has_extent, e2) & jnp.isfinite(gap) & common
    shortest = bent > 0  # else it is the longest normal in its neighborhood
    good &= shortest
    ranges = [(s >= -_SLACK()) & (s <= 1 + _SLACK()) for s in (found.s1, found.s2)]
    on_both = ranges[0] & ranges[1]
    beyond, extended = good & ~on_both, good  # plain elements without end, curves by the longest step
    for shape, e, s, inside in ((A, e1, found.s1, ranges[0]), (B, e2, found.s2, ranges[1])):
        beyond &= inside | (clear <= -shape.least_overlap_beyond(e, s))
        extended &= (np.array(shape.groups)[e] < 0) | ((s >= -STRIDE) & (s <= 1 + STRIDE))
    if not anywhere:
        good &= on_both
    outside = (extended | plain & shortest) & (clear > -_OVERLAP() * size)
    if at is not None:
        elsewhere = ~left(at.T)
        good, beyond = good & elsewhere, beyond & elsewhere
    disc = _disc_radius(A, B)
    score = gap if rings else jnp.abs(gap + disc) - disc
    if apart is not None:
        assert radius is not None
        # behind a hollow corner no normal meets an element: there one has passed the surface that goes on from it
        entered = (apart > -jnp.inf) & (clear <= 0)
        good |= entered & beyond
        deepest = jnp.inf if rings else jnp.maximum(_DEEP * size, 2 * disc)
        good &= entered | outside | (((radius < 0) | ~plain) & (gap > -deepest))
        score = jnp.where(entered, clear, score)
    score = jnp.where(good, score, jnp.inf)
    k = jnp.argmin(score)
    best = CommonNormal(*(_at(x, k) for x in found))
    e1, e2, there = (_at(jnp.asarray(x), k) for x in (e1, e2, good))
    if curves:
        exact = common_normal(A, B, X, e1, e2, best.s1, best.s2)
        near = exact.gap < best.gap + _OVERLAP() * size  # else it is a place that was seen
        best = tree_where(near, exact, best) if rings else exact
    best = best._replace(gap=jnp.where(there, best.gap, jnp.inf))
    return ClosestPair(e1, e2, *best), jnp.where(outside, far, -jnp.inf)


def _left(skip: Array | None, radius: Array | None, same: Array | None, at: Array) -> Array:
    """Which of places [pairs, ..., 2] on the first profile are left out."""
    if skip is None or radius is None:
        return jnp.zeros(at.shape[:-1], bool)
    off = at - frozen(skip)
    near = jnp.sum(off * off, -1) <= radius * jnp.abs(radius)
    return near if same is None else near & same.reshape(-1, *[1] * (near.ndim - 1))


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


def _normals_of_plain(A: Outline, B: Outline, X: SE2, pairs: tuple[np.ndarray, np.ndarray], placed: bool):
    """The common normals of all pairs, in closed form; the sums of the curvatures there, the places on the first
    profile, if they are asked for, and whether there is one."""
    found = constant_curvature_normal(A, B, X, *pairs)
    found = found._replace(s1=wrapped(A, found.s1), s2=wrapped(B, found.s2))
    at = A.plain_place(pairs[0], found.s1).position if placed else None
    return found, A.curvature(pairs[0]) + B.curvature(pairs[1]), at, jnp.isfinite(found.s1 + found.s2)


def _normals_with_curves(
    A: Outline, B: Outline, X: SE2, pairs: tuple[np.ndarray, np.ndarray], size: Array, deep: Array, left: Any
):
    """The common normals of all pairs where curves are among them; the sums of the curvatures there, the places on the
    first profile, and whether it is a common normal that was found.

    Curves may be near each other in several places. Of those that are not `left` out the deepest counts, where bodies
    may have come to overlap, else the nearest: those that overlap by more than `deep` lie behind each other. Where one
    ring is deep in another it may have no normal: there a place that was seen on the way to it stands for it.
    """
    e1, e2 = (jnp.asarray(x) for x in pairs)
    rings = A.is_ring and B.is_ring

    def found(i: Array, j: Array, s1: Array, s2: Array, seen: CommonNormal):
        normal = common_normal(A, B, X, i, j, s1, s2)
        on_a, on_b = A.place(i, normal.s1), B.place(j, normal.s2)
        common, bent = _is_common(on_a, on_b, X, normal.gap, size), on_a.curvature + on_b.curvature
        if not rings:
            return normal, on_a.position, bent, common
        known = common & (bent > 0) & (normal.gap <= seen.gap)
        mine = (normal, on_a.position, bent, common)
        other = (seen, A.place(i, seen.s1).position, jnp.ones_like(bent), jnp.ones_like(common))
        return tree_where(known, mine, other)

    def of_pair(i: Array, j: Array):
        starts, seen = nearest_places(A, B, X, i, j)
        return jax.vmap(lambda *s: found(i, j, *s))(*starts, seen)

    normals, places, bent, common = rowwise(of_pair, len(e1))(e1, e2)
    gap, good = normals.gap, common & (bent > 0) & ~left(places)
    for s in normals[:2]:
        good &= (s >= -_SLACK()) & (s <= 1 + _SLACK())
    score = gap if rings else jnp.where(gap > -deep[:, None], gap, jnp.abs(gap))
    k = jnp.argmin(jnp.where(good, score, jnp.inf), 1)
    take = lambda x: jnp.take_along_axis(x, k[:, None], 1, mode="promise_in_bounds")[:, 0]
    at = jnp.stack([take(places[..., 0]), take(places[..., 1])])
    return CommonNormal(*map(take, normals)), take(bent), at, take(common)


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
