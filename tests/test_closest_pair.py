"""The closest pair of elements of two profiles, and what contact coordinates mean on a chain (thesis 2.4).

The truth comes from NumPy: a search over all pairs of places that knows nothing of normals.
"""

import itertools
import zlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline

import mbsjax as mbs
from tests.curves import TAU, brute_force, matrix, on_circle, polish, ring, straight, through, turned


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


@pytest.mark.long
@pytest.mark.parametrize("first, second", GLOBAL, ids=[f"{a}-{b}" for a, b in GLOBAL])
def test_the_closest_pair_of_elements_is_that_of_a_brute_force_search(first, second):
    a, b = fixed_bodies()[first], moving_bodies()[second]
    poses = separated(a, b, np.random.default_rng(zlib.crc32(f"{first} {second}".encode())), 60)
    assert len(poses) == 60
    numbers, distances, places = all_element_pairs(a, b, poses)
    best, every = np.argmin(distances, 0), np.arange(len(poses))

    @jax.jit
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


def test_a_corner_turns_from_one_neighbor_to_the_next():
    """The decimal parts 0 and 1 of a corner agree with its neighbors; in between the normal turns evenly."""
    profile = thesis_cam().profile
    places = jax.jit(jax.vmap(lambda q: (profile(q).position, profile(q).normal)))
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
    solve = jax.jit(jax.vmap(lambda p: mbs.contact_coordinates(profile, small, mbs.PlanarFrame(*p))))
    q = np.asarray(solve(poses))
    to_floor, to_wall = poses[:, 1] + 5.0 - 1.0, poses[:, 0] + 10.0 - 1.0
    np.testing.assert_allclose(q[:, 2], np.minimum(to_floor, to_wall), atol=1e-12)
    np.testing.assert_array_equal(np.floor(q[:, 0]), np.where(to_floor < to_wall, 4, 6))


@pytest.mark.parametrize("samples", [1, 2, 65])
def test_a_corner_touches_a_curve_that_few_places_show_or_one_of_them_exactly(samples):
    """Half way, the corner stands on the top of a parabola: of 65 places, that is one."""
    parabola = mbs.Curve(lambda s: (2 - 4 * s, 1 - (2 - 4 * s) ** 2), samples=samples)
    hill = mbs.Profile.chain([parabola, mbs.Line((-2.0, -3.0), (2.0, -3.0))])
    wedge = polygon((0.0, 0.0), (1.0, -0.5), (1.0, 0.5)).profile
    solve = jax.jit(jax.vmap(lambda pose: mbs.contact_coordinates(hill, wedge, mbs.PlanarFrame(*pose))))
    q = np.asarray(solve(np.array([[0.0, 1.0, np.pi / 2], [0.0, 1.25, np.pi / 2]])))
    np.testing.assert_allclose(q[:, 2], [0.0, 0.25], atol=1e-12)
    np.testing.assert_allclose(q[:, 0], 0.5, atol=1e-9)


def test_the_nearer_one_of_two_places_close_together_is_found():
    """Two bumps of a curve less than two of its 16 steps apart, wherever these fall, under a level line."""
    a, leans, begins = 0.005, (4e-5, -4e-5), np.linspace(-0.57, -0.43, 32)
    block = polygon((2.0, 0.0), (2.0, 1.0), (-2.0, 1.0), (-2.0, 0.0)).profile

    @jax.jit
    @jax.vmap
    def gap(begin, lean):
        x = lambda s: begin + 1 - s
        curve = mbs.Curve(lambda s: (x(s), a * x(s) ** 2 - x(s) ** 4 - lean * x(s)), samples=16)
        ends = [(begin, -2.0), (begin + 1, -2.0)]
        rest = [mbs.Line((begin, curve(1.0).position[1]), ends[0]), mbs.Line(*ends)]
        hill = mbs.Profile.chain([curve, *rest, mbs.Line(ends[1], (begin + 1, curve(0.0).position[1]))])
        return mbs.contact_coordinates(hill, block, mbs.PlanarFrame(*jnp.array([0.0, 0.1, 0.0])))[2]

    for lean in leans:
        tops = np.roots([-4, 0, 2 * a, -lean])
        high = max(a * x**2 - x**4 - lean * x for x in tops.real[np.abs(tops.imag) < 1e-12])
        np.testing.assert_allclose(gap(begins, jnp.full(32, lean)), 0.1 - high, rtol=0, atol=1e-12)


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
    """An ellipse by a plain function: the gap of a disc is the distance of its center less its radius."""
    ellipse = lambda s: (3.5 * jnp.cos(TAU * s), 1.5 * jnp.sin(TAU * s))
    profile = mbs.Profile.chain([mbs.Curve(ellipse)])
    disc = mbs.Profile.chain([mbs.Circle((0.0, 0.0), 0.5)])
    angles = np.linspace(0.1, 6.2, 20)
    poses = np.stack([5.0 * np.cos(angles), 4.0 * np.sin(angles), 0 * angles], 1)
    q = jax.jit(jax.vmap(lambda p: mbs.contact_coordinates(profile, disc, mbs.PlanarFrame(*p))))(poses)
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
    q = jax.jit(jax.vmap(lambda p: mbs.contact_coordinates(profile, disc, mbs.PlanarFrame(*p))))(poses)
    distance, place = brute_force(cubic, lambda s: np.zeros((*np.shape(s), 2)), poses)
    assert (0.01 < place[:, 0]).all() and (place[:, 0] < 0.99).all()
    np.testing.assert_allclose(q[:, 2], distance - 0.5, atol=1e-8, rtol=0)
