"""Contact coordinates of all pairs of elements, and their derivatives (thesis 2.4, A.2).

The truth comes from NumPy: positions by formulas of our own, poses made by laying the contact frames of two chosen
places against each other, and a search over all pairs of places that knows nothing of normals.
"""

import functools
import itertools
import zlib
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import mbsjax as mbs
from mbsjax._model.profile.common_normal import common_normal
from mbsjax._model.profile.outline import outline
from mbsjax._numerics.groups import SE2
from tests.curves import TAU, brute_force, matrix, on_circle, polar, polish, ring, straight, through, turned


class Shape(NamedTuple):
    """An element, and the same curve in NumPy: positions, and the first derivative, of the local coordinate."""

    element: mbs.AbstractElement
    position: object
    velocity: object
    closed: bool = False
    hollow: bool = False
    knots: int = 1  # the third derivative jumps at multiples of 1 / knots


POLAR = dict(coefficients=(1.3, 0.25, -0.1), orders=(0, 1, 3), start=0.4, end=2.6)
POLAR_REST = dict(reference=0.9, scale=1.2, center=(0.2, -0.1))
SHAPES = {
    "point": Shape(
        mbs.Point((0.3, -0.2), normal=(0.6, -0.8), turn=2.5),
        lambda s: np.broadcast_to([0.3, -0.2], (*np.shape(s), 2)),
        # a point has no length: its tangent turns with s
        lambda s: on_circle((0.0, 0.0), 1.0, np.arctan2(-0.8, 0.6) + np.pi / 2 - 1.25, 2.5)[0](s),
    ),
    "line": Shape(mbs.Line((-1.1, 0.3), (1.4, 0.8)), *straight((-1.1, 0.3), (1.4, 0.8))),
    "arc": Shape(mbs.Arc((0.2, -0.4), 1.3, 0.5, 2.2), *on_circle((0.2, -0.4), 1.3, 0.5, 2.2)),
    "circle": Shape(mbs.Circle((0.3, 0.1), 0.9, 0.7), *on_circle((0.3, 0.1), 0.9, 0.7, TAU), closed=True),
    "polynomial": Shape(mbs.Polynomial(*POLAR.values(), **POLAR_REST), *polar(*POLAR.values(), *POLAR_REST.values())),
    "spline": Shape(mbs.Spline.through(ring(12, 1.4, 0.9)), *through(ring(12, 1.4, 0.9)), closed=True, knots=12),
    "hollow arc": Shape(
        mbs.Arc((0.1, 0.5), 3.2, 2.9, 2.4, concave=True), *on_circle((0.1, 0.5), 3.2, 2.9, -2.4), hollow=True
    ),
    "bore": Shape(
        mbs.Circle((-0.2, 0.3), 3.5, 0.4, concave=True),
        *on_circle((-0.2, 0.3), 3.5, 0.4, -TAU),
        closed=True,
        hollow=True,
    ),
}
CONVEX = [name for name, shape in SHAPES.items() if not shape.hollow]
HOLLOW = [name for name, shape in SHAPES.items() if shape.hollow]
PAIRS = [p for p in itertools.product(CONVEX, CONVEX) if p not in (("point", "point"), ("line", "line"))]
# inside a hollow fits what is curved more: nothing flat
PAIRS += [p for h in HOLLOW for c in CONVEX if c != "line" for p in ((h, c), (c, h))]


def profile_of(kind):
    return mbs.Profile.chain([SHAPES[kind].element], closed=SHAPES[kind].closed)


def unit(v):
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def right_of(t):
    return np.stack([t[..., 1], -t[..., 0]], -1)


def facing(a, b, s1, s2, gap):
    """The pose of `b` at which its outward normal at s2 points against that of `a` at s1, a gap away."""
    t1, t2 = unit(a.velocity(s1)), unit(b.velocity(s2))
    angle = np.arctan2(t1[..., 1], t1[..., 0]) + np.pi - np.arctan2(t2[..., 1], t2[..., 0])
    origin = a.position(s1) + gap[..., None] * right_of(t1) - turned(angle, b.position(s2))
    return np.concatenate([origin, angle[..., None]], -1)


K = 3  # poses a pair


def away_from_knots(s, knots):
    """Where the third derivative does not jump, so that differences can be compared with derivatives."""
    cell = np.floor(s * knots)
    return (cell + 0.25 + 0.5 * (s * knots - cell)) / knots if knots > 1 else s


@functools.cache
def apart(first, second):
    """Random poses whose common normal is the shortest way between the two curves: poses, (s1, s2, gap), distances."""
    a, b = SHAPES[first], SHAPES[second]
    rng = np.random.default_rng(zlib.crc32(f"{first} {second}".encode()))
    m = 40
    s1, s2 = (away_from_knots(rng.uniform(0.12, 0.88, m), shape.knots) for shape in (a, b))
    gap = rng.uniform(0.05, 0.6, m)
    poses = facing(a, b, s1, s2, gap)
    distance, places = brute_force(a.position, b.position, poses, wrap_a=a.closed, wrap_b=b.closed)
    kept = np.flatnonzero(np.abs(distance - gap) < 1e-5)[:K]
    assert len(kept) == K, f"only {len(kept)} poses of {first} and {second}"
    polished = [polish(a.position, b.position, poses[k], places[k], a.closed, b.closed)[0] for k in kept]
    return poses[kept], np.stack([s1, s2, gap], 1)[kept], np.array(polished)


def in_contact(first, second):
    """Poses apart and overlapping, and their coordinates. Apart, the gap is the distance found by brute force;
    overlapping, it is minus the depth along the common normal, which is known because the poses are made from it."""
    poses, truth, distance = apart(first, second)
    np.testing.assert_allclose(distance, truth[:, 2], atol=1e-9)  # the oracles agree
    deep = np.stack([truth[:, 0], truth[:, 1], np.linspace(-0.005, -0.03, K)], 1)
    overlapping = facing(SHAPES[first], SHAPES[second], *deep.T)
    expected = np.concatenate([np.concatenate([truth[:, :2], distance[:, None]], 1), deep])
    return np.concatenate([poses, overlapping]), expected


def report(pairs_wrong, what):
    assert not pairs_wrong, f"{what} of {sorted({'-'.join(PAIRS[k]) for k in pairs_wrong})}"


def wrong_rows(got, expected, rows, tolerance):
    """Which rows differ by more than the tolerance, relative to the largest number of the row where that is above 1."""
    scale = np.ones(len(PAIRS))
    np.maximum.at(scale, rows, np.abs(expected).reshape(len(rows), -1).max(1))
    off = np.abs(got - expected).reshape(len(rows), -1).max(1) / scale[rows]
    return [int(r) for r in rows[~(off <= tolerance)]]


CURVED = ("polynomial", "spline")
# pairs of plain elements, and of each curve with some: the others share a compilation below
PUBLIC = [p for p in PAIRS if not set(p) & set(CURVED)]
PUBLIC += [("polynomial", "line"), ("arc", "polynomial"), ("bore", "spline"), ("spline", "circle")]


@pytest.mark.parametrize("first, second", PUBLIC, ids=[f"{a}-{b}" for a, b in PUBLIC])
def test_coordinates_are_those_of_a_brute_force_search_and_close_the_loop(first, second):
    profiles = profile_of(first), profile_of(second)

    @jax.jit
    @jax.vmap
    def solve(pose):
        q = mbs.contact_coordinates(*profiles, mbs.PlanarFrame(*pose))
        return q, mbs.contact_matrix(*profiles, q)

    poses, expected = in_contact(first, second)
    q, X = solve(poses)
    np.testing.assert_allclose(q, expected, atol=1e-8, rtol=0)
    np.testing.assert_allclose(X, [matrix(pose) for pose in poses], atol=1e-11)


# --- derivatives: all kinds of elements in one outline, so that all pairs share one compilation

KINDS = tuple(SHAPES)
NUMBERS, STRUCTURE = eqx.partition(
    (tuple(s.element for s in SHAPES.values()), tuple(s.element for s in SHAPES.values())), eqx.is_inexact_array
)
LEAVES, UNRAVEL = ravel_pytree(NUMBERS)
OWNERS = np.concatenate(
    [
        np.full(x.size, side * len(KINDS) + k)
        for side, elements in enumerate(NUMBERS)
        for k, element in enumerate(elements)
        for x in jax.tree_util.tree_leaves(element)
    ]
)


class Case(NamedTuple):
    """Arguments of `coordinates`: the pose, the numbers of all elements of both sides, which elements, and a place
    near the contact."""

    pose: np.ndarray
    leaves: np.ndarray
    e1: np.ndarray
    e2: np.ndarray
    near: np.ndarray


def coordinates(case):
    """s1, s2 and the gap of two elements whose numbers are traced; the core of `contact_coordinates`."""
    first, second = eqx.combine(UNRAVEL(case.leaves), STRUCTURE)
    A, B = outline(first, False, ()), outline(second, False, ())
    X = SE2.of(mbs.PlanarFrame(*case.pose))
    return jnp.stack(common_normal(A, B, X, case.e1, case.e2, case.near[0], case.near[1]))


@functools.cache
def cases():
    """One pose of each pair, the coordinates there, and which leaves it depends on."""
    rows, truths = [], []
    for first, second in PAIRS:
        poses, truth, _ = apart(first, second)
        e1, e2 = KINDS.index(first), KINDS.index(second)
        rows.append(Case(poses[0], np.asarray(LEAVES), np.array(e1), np.array(e2), truth[0, :2] + 0.01))
        truths.append(truth[0])
    return Case(*(np.stack(x) for x in zip(*rows))), np.array(truths)


CHUNK = 1024


def in_chunks(function, case):
    """`function` over any number of rows with one compilation."""
    n = len(case.e1)
    parts = []
    for k in range(0, n, CHUNK):
        rows = np.minimum(np.arange(k, k + CHUNK), n - 1)
        parts.append(np.asarray(function(Case(*(x[rows] for x in case)))))
    return np.concatenate(parts)[:n]


def differences(function, case, directions, h=1e-3):
    """Derivatives of the rows of `function` along (row, column of (pose, leaves)) by central differences of fourth
    order."""
    rows, columns = directions
    shifted = []
    for step in (-2 * h, -h, h, 2 * h):
        z = np.concatenate([case.pose, case.leaves], 1)[rows]
        z[np.arange(len(rows)), columns] += step
        shifted.append(Case(z[:, :3], z[:, 3:], case.e1[rows], case.e2[rows], case.near[rows]))
    f = in_chunks(function, Case(*(np.concatenate(x) for x in zip(*shifted)))).reshape(4, len(rows), -1)
    return (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)


def own_columns(case):
    """(row, column) of all numbers that matter to each row: its pose and the leaves of its two elements."""
    mine = (OWNERS == case.e1[:, None]) | (OWNERS == len(KINDS) + case.e2[:, None])
    return np.nonzero(np.concatenate([np.ones((len(mine), 3), bool), mine], 1))


def gap_of(pose, leaves, case):
    return coordinates(case._replace(pose=pose, leaves=leaves))[2]


@pytest.mark.long
def test_coordinates_and_first_derivatives_of_all_pairs():
    """Coordinates against brute force, loops that close, and derivatives of s1, s2 and the gap with respect to the pose
    and every leaf, forward and reverse, against differences; the gap's against the wrench of the normal."""
    value = jax.jit(jax.vmap(coordinates))
    poses, expected = (np.concatenate(x) for x in zip(*(in_contact(*p) for p in PAIRS)))
    rows = np.repeat(np.arange(len(PAIRS)), 2 * K)
    e1, e2 = (np.array([KINDS.index(p[side]) for p in PAIRS])[rows] for side in (0, 1))
    near = expected[:, :2] + 0.01
    q = in_chunks(value, Case(poses, np.tile(LEAVES, (len(rows), 1)), e1, e2, near))
    report(wrong_rows(q, expected, rows, 1e-8), "coordinates")
    shape = outline(tuple(s.element for s in SHAPES.values()), False, ())
    (p1, angle1, _), (p2, angle2, _) = (
        jax.jit(jax.vmap(shape.place))(e, q[:, side]) for side, e in enumerate((e1, e2))
    )
    for k, pose in enumerate(poses):
        first, second = (matrix((*p[k], angle[k] + np.pi)) for p, angle in ((p1, angle1), (p2, angle2)))
        loop = first @ matrix((0.0, q[k, 2], np.pi)) @ np.linalg.inv(second)
        np.testing.assert_allclose(loop, matrix(pose), atol=1e-11, err_msg="-".join(PAIRS[rows[k]]))

    @jax.jit
    @jax.vmap
    def forward(case, tangent):
        return jax.jvp(
            lambda pose, leaves: coordinates(case._replace(pose=pose, leaves=leaves)),
            (case.pose, case.leaves),
            (tangent[:3], tangent[3:]),
        )[1]

    case, truth = cases()
    rows, columns = own_columns(case)
    tangents = np.eye(3 + len(LEAVES))[columns]
    ahead = np.asarray(forward(Case(*(x[rows] for x in case)), tangents))
    report(wrong_rows(ahead, differences(value, case, (rows, columns)), rows, 1e-6), "forward derivatives")

    # the gap grows as the place on b moves along the normal of a
    for k, (first, second) in enumerate(PAIRS):
        a, b = SHAPES[first], SHAPES[second]
        n = right_of(unit(a.velocity(truth[k, 0])))
        arm = turned(case.pose[k, 2], b.position(truth[k, 1]))
        wrench = np.array([n[0], n[1], arm[0] * n[1] - arm[1] * n[0]])
        of_pose = ahead[(rows == k) & (columns < 3), 2]
        np.testing.assert_allclose(of_pose, wrench, atol=1e-9, err_msg=f"{first}-{second}")

    gradient = jax.jit(jax.vmap(lambda case: jnp.concatenate(jax.grad(gap_of, (0, 1))(case.pose, case.leaves, case))))
    back = np.asarray(gradient(case))
    report(wrong_rows(back[rows, columns], ahead[:, 2], rows, 1e-11), "reverse derivatives")
    others = np.ones(back.shape, bool)
    others[rows, columns] = False
    assert (back[others] == 0).all()  # of elements that take no part


@pytest.mark.long
def test_second_derivatives_of_all_pairs():
    """Second derivatives of the gap with respect to the pose, against differences of first ones."""
    case, _ = cases()

    @jax.jit
    @jax.vmap
    def second(case, u, v):
        slope = lambda pose: jax.jvp(lambda p: gap_of(p, case.leaves, case), (pose,), (u,))[1]
        return jax.jvp(slope, (case.pose,), (v,))

    pairs, i, j = (x.ravel() for x in np.meshgrid(np.arange(len(PAIRS)), np.arange(3), np.arange(3), indexing="ij"))
    u, v = np.eye(3)[i], np.eye(3)[j]
    here = Case(*(x[pairs] for x in case))
    bends = np.asarray(second(here, u, v)[1])
    h = 1e-3
    f = [np.asarray(second(here._replace(pose=here.pose + step * v), u, v)[0]) for step in (-2 * h, -h, h, 2 * h)]
    numeric = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)
    report(wrong_rows(bends, numeric, pairs, 1e-6), "second derivatives")


@pytest.mark.long
@pytest.mark.parametrize("other, order", [("curve", 3), ("circle", 4)])
def test_higher_derivatives_on_curves_are_those_of_circles(other, order):
    """A disc that is drawn as a curve, and grows, rolls past another: places and gap in closed form."""

    def ring(r):
        return mbs.Curve(lambda s: (r * jnp.cos(TAU * s), r * jnp.sin(TAU * s)))

    def moving(t):
        r = 2 + 0.3 * jnp.sin(t), 1 + 0.1 * t**2
        return r, (4 + t**3, 1 - jnp.cos(2 * t), t)

    def found(t):
        r, (x, y, turn) = moving(t)
        second = ring(r[1]) if other == "curve" else mbs.Circle((0.0, 0.0), r[1])
        A, B = (outline((element,), True, ()) for element in (ring(r[0]), second))
        first = jnp.zeros((), int)
        met = common_normal(
            A, B, SE2.of(mbs.frames.PlanarFrame(x, y, turn)), first, first, jnp.asarray(0.01), jnp.asarray(0.42)
        )
        return jnp.stack(met)

    def exact(t):
        r, (x, y, turn) = moving(t)
        towards = jnp.arctan2(y, x)
        return jnp.stack([towards / TAU, (towards + jnp.pi - turn) / TAU, jnp.hypot(x, y) - r[0] - r[1]])

    def orders(f):
        def slopes(t):
            results = [f]
            for _ in range(order):
                results.append(lambda t, g=results[-1]: jax.jvp(g, (t,), (jnp.ones(()),))[1])
            return jnp.stack([g(t) for g in results])

        return np.asarray(jax.jit(slopes)(jnp.asarray(0.3)))

    np.testing.assert_allclose(orders(found), orders(exact), rtol=1e-9, atol=1e-9)
