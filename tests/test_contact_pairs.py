"""Contact coordinates of all pairs of elements, and of the closest pair of two profiles (thesis 2.4, A.2).

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
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize

import mbsjax as mbs
from mbsjax._groups import SE2
from mbsjax._profile.closest import meet
from mbsjax._profile.outline import outline


TAU = 2 * np.pi
# compiling is nearly all of the time here, and what is compiled runs once
jitted = functools.partial(
    jax.jit, compiler_options={"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
)


class Shape(NamedTuple):
    """An element, and the same curve in NumPy: positions, and the first derivative, of the local coordinate."""

    element: mbs.AbstractElement
    position: object
    velocity: object
    closed: bool = False
    hollow: bool = False
    knots: int = 1  # the third derivative jumps at multiples of 1 / knots


def on_circle(center, radius, start, turn):
    center = np.asarray(center)

    def position(s):
        angle = start + turn * np.asarray(s)
        return center + radius * np.stack([np.cos(angle), np.sin(angle)], -1)

    def velocity(s):
        angle = start + turn * np.asarray(s)
        return radius * turn * np.stack([-np.sin(angle), np.cos(angle)], -1)

    return position, velocity


def straight(start, end):
    start, end = np.asarray(start), np.asarray(end)
    return (
        lambda s: start + np.asarray(s)[..., None] * (end - start),
        lambda s: np.broadcast_to(end - start, (*np.shape(s), 2)),
    )


def polar(coefficients, orders, start, end, reference, scale, center):
    center = np.asarray(center)

    def parts(s):
        angle = start + (end - start) * np.asarray(s)
        x = (angle - reference) / scale
        r = sum(c * x**n for c, n in zip(coefficients, orders))
        dr = sum(c * n * x ** max(n - 1, 0) for c, n in zip(coefficients, orders)) / scale
        out, across = np.stack([np.cos(angle), np.sin(angle)], -1), np.stack([-np.sin(angle), np.cos(angle)], -1)
        return center + r[..., None] * out, (dr[..., None] * out + r[..., None] * across) * (end - start)

    return lambda s: parts(s)[0], lambda s: parts(s)[1]


def through(points):
    """The periodic cubic spline through points at equal steps: the same curve as a closed uniform B-spline."""
    n = len(points)
    cubic = CubicSpline(np.arange(n + 1) / n, np.concatenate([points, points[:1]]), bc_type="periodic")
    return cubic, cubic.derivative()


def ring(n, rx, ry):
    """Points round an oval that is not symmetric."""
    angle = TAU * np.arange(n) / n
    return np.stack([rx * np.cos(angle) + 0.1 * np.cos(2 * angle), ry * np.sin(angle) + 0.05], 1)


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


def turned(angle, p):
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * p[..., 0] - s * p[..., 1], s * p[..., 0] + c * p[..., 1]], -1)


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


def brute_force(a, b, poses, *, wrap_a=False, wrap_b=False, n=161):
    """The least distance between two curves, and the places: all pairs of n places each, then ever finer grids round
    the best pair."""
    grid = np.linspace(0.0, 1.0, n)
    pa, pb = a(grid), b(grid)
    u = np.empty((len(poses), 2))
    for k, pose in enumerate(poses):
        there = pose[:2] + turned(pose[2], pb)
        square = (pa[:, None, 0] - there[:, 0]) ** 2 + (pa[:, None, 1] - there[:, 1]) ** 2
        u[k] = grid[list(np.unravel_index(np.argmin(square), (n, n)))]
    half = grid[1]
    steps = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 7)] * 2, indexing="ij"), -1).reshape(-1, 2)
    every = np.arange(len(poses))
    for _ in range(50):
        tries = u[:, None] + half * steps
        for axis, wrap in enumerate((wrap_a, wrap_b)):
            if not wrap:
                tries[..., axis] = np.clip(tries[..., axis], 0.0, 1.0)
        between = poses[:, None, :2] + turned(poses[:, None, 2], b(tries[..., 1] % 1.0 if wrap_b else tries[..., 1]))
        between = between - a(tries[..., 0] % 1.0 if wrap_a else tries[..., 0])
        best = np.argmin((between**2).sum(-1), 1)
        u, half = tries[every, best], half * 0.7
    return np.linalg.norm(between[every, best], axis=-1), u


def polish(a, b, pose, u, wrap_a=False, wrap_b=False):
    """The distance, from a grid's answer, to the last digits, and the places."""

    def square(u):
        between = pose[:2] + turned(pose[2], b(u[1] % 1.0 if wrap_b else u[1])) - a(u[0] % 1.0 if wrap_a else u[0])
        return between @ between

    bounds = [(x - 0.05, x + 0.05) if wrap else (0.0, 1.0) for x, wrap in zip(u, (wrap_a, wrap_b))]
    options = {"ftol": 1e-16, "gtol": 1e-12}
    found = minimize(square, u, jac="3-point", bounds=bounds, method="L-BFGS-B", options=options)
    return np.sqrt(found.fun), found.x


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


def matrix(pose):
    c, s = np.cos(pose[2]), np.sin(pose[2])
    return np.array([[c, -s, 0, pose[0]], [s, c, 0, pose[1]], [0, 0, 1, 0], [0, 0, 0, 1.0]])


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

    @jitted
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
    return jnp.stack(meet(A, B, X, case.e1, case.e2, case.near[0], case.near[1]))


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


def test_coordinates_and_first_derivatives_of_all_pairs():
    """Coordinates against brute force, loops that close, and derivatives of s1, s2 and the gap with respect to the pose
    and every leaf, forward and reverse, against differences; the gap's against the wrench of the normal."""
    value = jitted(jax.vmap(coordinates))
    poses, expected = (np.concatenate(x) for x in zip(*(in_contact(*p) for p in PAIRS)))
    rows = np.repeat(np.arange(len(PAIRS)), 2 * K)
    e1, e2 = (np.array([KINDS.index(p[side]) for p in PAIRS])[rows] for side in (0, 1))
    near = expected[:, :2] + 0.01
    q = in_chunks(value, Case(poses, np.tile(LEAVES, (len(rows), 1)), e1, e2, near))
    report(wrong_rows(q, expected, rows, 1e-8), "coordinates")
    shape = outline(tuple(s.element for s in SHAPES.values()), False, ())
    (p1, angle1, _), (p2, angle2, _) = (jitted(jax.vmap(shape.place))(e, q[:, side]) for side, e in enumerate((e1, e2)))
    for k, pose in enumerate(poses):
        first, second = (matrix((*p[k], angle[k] + np.pi)) for p, angle in ((p1, angle1), (p2, angle2)))
        loop = first @ matrix((0.0, q[k, 2], np.pi)) @ np.linalg.inv(second)
        np.testing.assert_allclose(loop, matrix(pose), atol=1e-11, err_msg="-".join(PAIRS[rows[k]]))

    @jitted
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

    gradient = jitted(jax.vmap(lambda case: jnp.concatenate(jax.grad(gap_of, (0, 1))(case.pose, case.leaves, case))))
    back = np.asarray(gradient(case))
    report(wrong_rows(back[rows, columns], ahead[:, 2], rows, 1e-11), "reverse derivatives")
    others = np.ones(back.shape, bool)
    others[rows, columns] = False
    assert (back[others] == 0).all()  # of elements that take no part


def test_second_derivatives_of_all_pairs():
    """Second derivatives of the gap with respect to the pose, against differences of first ones."""
    case, _ = cases()

    @jitted
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
        met = meet(A, B, SE2.of(mbs.frames.PlanarFrame(x, y, turn)), first, first, jnp.asarray(0.01), jnp.asarray(0.42))
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

        return np.asarray(jitted(slopes)(jnp.asarray(0.3)))

    np.testing.assert_allclose(orders(found), orders(exact), rtol=1e-9, atol=1e-9)


# --- the closest pair of elements of two profiles


class Chain(NamedTuple):
    """A closed profile, and its elements in NumPy."""

    profile: mbs.Profile
    positions: list
    endless: bool = False


def polygon(*points):
    ends = list(zip(points, points[1:] + points[:1]))
    return Chain(mbs.Profile.chain([mbs.Line(a, b) for a, b in ends]), [straight(a, b)[0] for a, b in ends])


def thesis_cam():
    """Thesis 4.4."""
    points = ((15.0, 20.0), (-35.0, 10.0), (-35.0, -10.0), (15.0, -20.0))
    ends = list(itertools.pairwise(points))
    arc = mbs.Arc.between((15.0, -20.0), (15.0, 20.0), (15.0, 0.0))
    return Chain(
        mbs.Profile.chain([arc, *(mbs.Line(a, b) for a, b in ends)]),
        [on_circle((15.0, 0.0), 20.0, -np.pi / 2, np.pi)[0], *(straight(a, b)[0] for a, b in ends)],
    )


def smooth_ring(n, rx, ry):
    return Chain(mbs.Profile.chain([mbs.Spline.through(ring(n, rx, ry))]), [through(ring(n, rx, ry))[0]], True)


def fixed_bodies():
    return {
        "cam": thesis_cam(),
        "notched": polygon(
            (-30.0, -20.0), (30.0, -20.0), (30.0, 20.0), (12.0, 20.0), (3.0, -8.0), (-15.0, 20.0), (-30.0, 20.0)
        ),
        "oval": smooth_ring(16, 35.0, 15.0),
        "L": polygon((-25.0, -20.0), (25.0, -20.0), (25.0, -5.0), (-10.0, -5.0), (-10.0, 20.0), (-25.0, 20.0)),
    }


def moving_bodies():
    return {
        "disc": Chain(
            mbs.Profile.chain([mbs.Circle((1.0, 0.5), 5.0)]), [on_circle((1.0, 0.5), 5.0, 0.0, TAU)[0]], True
        ),
        "square": polygon((-4.0, -5.0), (6.0, -5.0), (6.0, 5.0), (-4.0, 5.0)),
        "pebble": smooth_ring(10, 8.0, 5.0),
    }


def encloses(corners, points):
    """Whether a polygon holds any of the points: a ray to the right crosses it an odd number of times."""
    (x1, y1), (x2, y2) = corners.T, np.roll(corners, -1, 0).T
    x, y = points[..., 0, None], points[..., 1, None]
    above = (y1 > y) != (y2 > y)
    with np.errstate(divide="ignore", invalid="ignore"):
        return ((above & (x < x1 + (y - y1) / (y2 - y1) * (x2 - x1))).sum(-1) % 2).any(-1).astype(bool)


def separated(a, b, rng, count):
    """Random poses at which the bodies do not overlap."""
    grid = np.linspace(0.0, 1.0, 40, endpoint=False)
    pa, pb = (np.concatenate([p(grid) for p in chain.positions]) for chain in (a, b))
    poses = np.concatenate([rng.uniform(-50.0, 50.0, (6 * count, 2)), rng.uniform(-np.pi, np.pi, (6 * count, 1))], 1)
    there = poses[:, None, :2] + turned(poses[:, None, 2], pb)
    back = turned(-poses[:, None, 2], pa - poses[:, None, :2])
    return poses[~(encloses(pa, there) | encloses(pb, back))][:count]


def all_element_pairs(a, b, poses):
    """Distances and places of all pairs of elements by brute force: (pairs, poses), (pairs, poses, 2)."""
    numbers, distances, places = [], [], []
    for (i, p), (j, r) in itertools.product(enumerate(a.positions), enumerate(b.positions)):
        n = 121 if a.endless or b.endless else 25
        d, u = brute_force(p, r, poses, wrap_a=a.endless, wrap_b=b.endless, n=n)
        # grids narrow down too fast where the curves run on side by side
        for k in np.flatnonzero(d < np.min([d, *distances], 0) + 0.01 * np.min([d, *distances], 0) + 0.1):
            d[k], u[k] = polish(p, r, poses[k], u[k], a.endless, b.endless)
        numbers.append((i, j))
        distances.append(d)
        places.append(u)
    return np.array(numbers), np.array(distances), np.array(places)


def number_of(place, element, chain):
    """The number that a place must have, corners counted; -1 where that is too close to call."""
    if chain.endless:
        return 0
    n = 2 * len(chain.positions)
    if 1e-3 < place < 1 - 1e-3:
        return 2 * element
    return (2 * element + (1 if place > 0.5 else -1)) % n if min(place, 1 - place) < 1e-7 else -1


GLOBAL = list(itertools.product(("cam", "notched", "oval", "L"), ("disc", "square", "pebble")))


@pytest.mark.parametrize("first, second", GLOBAL, ids=[f"{a}-{b}" for a, b in GLOBAL])
def test_the_closest_pair_of_elements_is_that_of_a_brute_force_search(first, second):
    a, b = fixed_bodies()[first], moving_bodies()[second]
    poses = separated(a, b, np.random.default_rng(zlib.crc32(f"{first} {second}".encode())), 60)
    assert len(poses) == 60
    numbers, distances, places = all_element_pairs(a, b, poses)
    best, every = np.argmin(distances, 0), np.arange(len(poses))

    @jitted
    @jax.vmap
    def solve(pose):
        q = mbs.contact_coordinates(a.profile, b.profile, mbs.PlanarFrame(*pose))
        return q, mbs.contact_matrix(a.profile, b.profile, q)

    q, X = (np.asarray(x) for x in solve(poses))
    np.testing.assert_allclose(q[:, 2], distances[best, every], atol=1e-8, rtol=0)
    np.testing.assert_allclose(X, [matrix(pose) for pose in poses], atol=1e-11)

    # the elements, where no other place is as close
    compared = 0
    for k in every:
        u = places[best[k], k]
        i, j = numbers[best[k]]
        close = np.flatnonzero(distances[:, k] < distances[best[k], k] + 1e-3)
        spots = [
            np.concatenate(
                [
                    a.positions[m](places[r, k, 0] % 1.0 if a.endless else places[r, k, 0]),
                    b.positions[n](places[r, k, 1] % 1.0 if b.endless else places[r, k, 1]),
                ]
            )
            for r, (m, n) in zip(close, numbers[close])
        ]
        expected = number_of(u[0], i, a), number_of(u[1], j, b)
        if np.ptp(spots, 0).max() < 1e-2 and min(expected) >= 0:
            compared += 1
            assert tuple(np.floor(q[k, :2]).astype(int)) == expected, f"pose {poses[k]}"
    assert compared > 0.7 * len(poses)


# --- conventions


def test_a_corner_turns_from_one_neighbour_to_the_next():
    """The decimal parts 0 and 1 of a corner agree with its neighbours; in between the normal turns evenly."""
    profile = thesis_cam().profile
    places = jitted(jax.vmap(lambda q: (profile(q).position, profile(q).normal)))
    count = len(profile.kinds)
    assert profile.kinds == ("arc", "point", "line", "point", "line", "point", "line", "point")
    ends = np.arange(count + 1.0)
    before, after = places(ends - 1e-12), places(ends)
    np.testing.assert_allclose(before[0], after[0], atol=1e-9)
    np.testing.assert_allclose(before[1], after[1], atol=1e-9)
    for corner in (1, 3, 5, 7):
        position, normal = places(corner + np.linspace(0.0, 1.0 - 1e-12, 9))
        np.testing.assert_allclose(position, np.tile(position[0], (9, 1)), atol=1e-12)
        start, end = normal[0], normal[-1]
        whole = np.arctan2(start[0] * end[1] - start[1] * end[0], start @ end)
        assert whole > 0
        even = [turned(whole * f, np.asarray(start)) for f in np.linspace(0.0, 1.0, 9)]
        np.testing.assert_allclose(normal, even, atol=1e-9)


def test_a_hollow_corner_is_never_touched():
    """A small disc above the inner corner of an L touches one of the two sides."""
    profile = fixed_bodies()["L"].profile
    small = mbs.Profile.chain([mbs.Circle((0.0, 0.0), 1.0)])
    poses = np.random.default_rng(0).uniform((-9.0, -4.0, -3.0), (-5.0, 0.0, 3.0), (50, 3))
    solve = jitted(jax.vmap(lambda p: mbs.contact_coordinates(profile, small, mbs.PlanarFrame(*p))))
    q = np.asarray(solve(poses))
    to_floor, to_wall = poses[:, 1] + 5.0 - 1.0, poses[:, 0] + 10.0 - 1.0
    np.testing.assert_allclose(q[:, 2], np.minimum(to_floor, to_wall), atol=1e-12)
    np.testing.assert_array_equal(np.floor(q[:, 0]), np.where(to_floor < to_wall, 4, 6))


def planar(rows):
    (a, b, x), (c, d, y) = rows
    return np.array([[a, b, 0, x], [c, d, 0, y], [0, 0, 1, 0], [0, 0, 0, 1.0]])


def in_its_own_frame(place, x, y, angle):
    """phi_p, the contact frame seen from the particular frame of the element (2.4.1), and phi_f, the way back."""
    X = mbs.frames.compose(mbs.frames.inverse(mbs.frames.embed(mbs.at(x, y, angle))), mbs.frames.embed(place.frame))
    return X, mbs.frames.compose(mbs.frames.rotation((0.0, 0.0, 1.0), jnp.pi), mbs.frames.inverse(X))


@pytest.mark.parametrize("s", [0.0, 0.3, 0.9])
def test_contact_frames_are_those_of_the_thesis(s):
    """(2.4.3-6), (2.4.3-11), (2.4.3-16), (2.4.3-21), (A.2-1), (A.2-6), (A.2-13), and (A.2-10) corrected. The y axis of
    the frame of an arc points to its first point, a line's x axis along it, a corner's y axis back along what follows.
    """
    R = 1.3
    for element, turn in ((mbs.Arc((0.2, -0.4), R, 0.5, 2.2), 2.2), (mbs.Circle((0.2, -0.4), R, 0.5), TAU)):
        p, f = in_its_own_frame(element(s), 0.2, -0.4, 0.5 - np.pi / 2)
        c, d = np.cos(turn * s), np.sin(turn * s)
        np.testing.assert_allclose(p, planar(((c, -d, -R * d), (d, c, R * c))), atol=1e-14)
        np.testing.assert_allclose(f, planar(((-c, -d, 0), (d, -c, R))), atol=1e-14)
    start, end = np.array([-1.1, 0.3]), np.array([1.4, 0.8])
    p, f = in_its_own_frame(mbs.Line(start, end)(s), *start, np.arctan2(*(end - start)[::-1]))
    along = s * np.linalg.norm(end - start)
    np.testing.assert_allclose(p, planar(((-1, 0, along), (0, -1, 0))), atol=1e-14)
    np.testing.assert_allclose(f, planar(((1, 0, -along), (0, 1, 0))), atol=1e-14)
    # the corner (1, 0) between lines along x and along (-1, 2)
    wedge = mbs.Profile.chain([mbs.Line((0, 0), (1, 0)), mbs.Line((1, 0), (0, 2))], closed=False)
    follows = np.arctan2(2.0, -1.0)
    inner = np.pi - follows
    p, f = in_its_own_frame(wedge(1 + s), 1.0, 0.0, follows + np.pi - np.pi / 2)
    angle = s * (np.pi - inner) + inner
    c, d = np.cos(angle), np.sin(angle)
    np.testing.assert_allclose(p, planar(((d, c, 0), (-c, d, 0))), atol=1e-14)
    np.testing.assert_allclose(f, planar(((-d, c, 0), (-c, -d, 0))), atol=1e-14)


def test_operators_of_the_thesis():
    """Q = dphi/dq phi^-1 of the preceding element: (2.4.3-10), (2.4.3-20), (A.2-12), and (A.2-5) with the range of the
    corner and a sign that agrees with (A.2-1)."""
    disc = mbs.Profile.chain([mbs.Circle((0.0, 0.0), 1.0)])
    spin = np.zeros((4, 4))
    spin[0, 1], spin[1, 0] = -1.0, 1.0
    slide = np.zeros((4, 4))
    slide[0, 3] = 1.0
    wedge = mbs.Profile.chain([mbs.Line((0, 0), (1, 0)), mbs.Line((1, 0), (0, 2))], closed=False)
    for profile, q1, center, expected in (
        (mbs.Profile.chain([mbs.Arc((0.2, -0.4), 1.3, 0.5, 2.2)], closed=False), 0.3, (0.2, -0.4), 2.2 * spin),
        (mbs.Profile.chain([mbs.Circle((0.2, -0.4), 1.3)]), 0.3, (0.2, -0.4), TAU * spin),
        (mbs.Profile.chain([mbs.Line((0.2, -0.4), (2.2, -0.4))], closed=False), 0.3, (0.2, -0.4), 2.0 * slide),
        (wedge, 1.3, (1.0, 0.0), np.arctan2(2.0, -1.0) * spin),
    ):
        phi = lambda q1, profile=profile: mbs.contact_matrix(profile, disc, jnp.stack([q1, 0.2, 0.1]))
        X, dX = jax.jvp(phi, (jnp.array(q1),), (jnp.array(1.0),))
        origin = mbs.frames.translation((*center, 0.0))
        Q = mbs.frames.compose(mbs.frames.inverse(origin), dX, mbs.frames.inverse(X), origin)
        np.testing.assert_allclose(Q, expected, atol=1e-12)


# --- smooth curves in a chain


def test_a_curve_given_by_a_function():
    """An ellipse by a plain function: the gap of a disc is the distance of its centre less its radius."""
    ellipse = lambda s: (3.5 * jnp.cos(TAU * s), 1.5 * jnp.sin(TAU * s))
    profile = mbs.Profile.chain([mbs.Curve(ellipse)])
    disc = mbs.Profile.chain([mbs.Circle((0.0, 0.0), 0.5)])
    angles = np.linspace(0.1, 6.2, 20)
    poses = np.stack([5.0 * np.cos(angles), 4.0 * np.sin(angles), 0 * angles], 1)
    q = jitted(jax.vmap(lambda p: mbs.contact_coordinates(profile, disc, mbs.PlanarFrame(*p))))(poses)
    points = lambda s: np.stack([3.5 * np.cos(TAU * s), 1.5 * np.sin(TAU * s)], -1)
    center = lambda s: np.zeros((*np.shape(s), 2))
    distance, _ = brute_force(points, center, poses, wrap_a=True)
    np.testing.assert_allclose(q[:, 2], distance - 0.5, atol=1e-8, rtol=0)


def test_an_open_spline():
    """The spline through points on a parabola, natural at its ends, against SciPy's."""
    table = np.array([(2.0, 0.0), (1.0, 0.75), (0.0, 1.0), (-1.0, 0.75), (-2.0, 0.0)])
    profile = mbs.Profile.chain([mbs.Spline.through(table, closed=False)], closed=False)
    cubic = CubicSpline(np.linspace(0.0, 1.0, 5), table, bc_type="natural")
    disc = mbs.Profile.chain([mbs.Circle((0.0, 0.0), 0.5)])
    poses = np.stack([np.linspace(-1.5, 1.5, 10), np.full(10, 2.5), np.zeros(10)], 1)
    q = jitted(jax.vmap(lambda p: mbs.contact_coordinates(profile, disc, mbs.PlanarFrame(*p))))(poses)
    distance, place = brute_force(cubic, lambda s: np.zeros((*np.shape(s), 2)), poses)
    assert (0.01 < place[:, 0]).all() and (place[:, 0] < 0.99).all()
    np.testing.assert_allclose(q[:, 2], distance - 0.5, atol=1e-8, rtol=0)
