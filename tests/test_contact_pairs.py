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

import mbsjax as mbs


TAU = 2 * np.pi


class Shape(NamedTuple):
    """An element, and the same curve in NumPy: positions, and the first derivative, of the local coordinate."""

    element: mbs.AbstractElement
    position: object
    velocity: object
    closed: bool = False
    hollow: bool = False
    knots: int = 1  # the third derivative jumps at multiples of 1 / knots
    inset: float = 0.0  # of an arc: 1 / curvature


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


def brute_force(a, b, poses, span_a=(0.0, 1.0), span_b=(0.0, 1.0), wrap_a=False, wrap_b=False, n=161):
    """The least distance between two curves: all pairs of n places each, then ever finer grids round the best pair."""
    grid_a, grid_b = np.linspace(*span_a, n), np.linspace(*span_b, n)
    pa, pb = a(grid_a), b(grid_b)
    u = np.empty((len(poses), 2))
    for k, pose in enumerate(poses):
        there = pose[:2] + turned(pose[2], pb)
        i, j = np.unravel_index(np.argmin(((pa[:, None] - there[None]) ** 2).sum(-1)), (n, n))
        u[k] = grid_a[i], grid_b[j]
    half = np.array([grid_a[1] - grid_a[0], grid_b[1] - grid_b[0]])
    steps = np.stack(np.meshgrid(*[np.linspace(-1.0, 1.0, 9)] * 2, indexing="ij"), -1).reshape(-1, 2)
    for _ in range(60):
        tries = u[:, None] + half * steps
        for axis, (span, wrap) in enumerate(((span_a, wrap_a), (span_b, wrap_b))):
            if not wrap:
                tries[..., axis] = np.clip(tries[..., axis], *span)
        apart = poses[:, None, :2] + turned(poses[:, None, 2], b(tries[..., 1])) - a(tries[..., 0])
        best = np.argmin((apart**2).sum(-1), 1)
        u = tries[np.arange(len(u)), best]
        half = half * 0.7
    return np.linalg.norm(apart[np.arange(len(u)), best], axis=-1), u


K = 3  # poses a pair


def seed(*names):
    return np.random.default_rng(zlib.crc32(" ".join(names).encode()))


@functools.cache
def apart(first, second):
    """Random poses with a positive gap whose common normal is the shortest way between the two curves, and the
    coordinates there."""
    a, b = SHAPES[first], SHAPES[second]
    rng = seed(first, second)
    m = 40
    s1, s2 = (_away_from_knots(rng.uniform(0.12, 0.88, m), shape.knots) for shape in (a, b))
    gap = rng.uniform(0.05, 0.6, m)
    poses = facing(a, b, s1, s2, gap)
    distance, _ = brute_force(a.position, b.position, poses, wrap_a=a.closed, wrap_b=b.closed)
    kept = np.flatnonzero(np.abs(distance - gap) < 1e-6)[:K]
    assert len(kept) == K, f"only {len(kept)} poses of {first} and {second}"
    return poses[kept], np.stack([s1, s2, gap], 1)[kept], distance[kept]


def _away_from_knots(s, knots):
    cell = np.floor(s * knots)
    return (cell + 0.25 + 0.5 * (s * knots - cell)) / knots if knots > 1 else s


class Solved(NamedTuple):
    """Both profiles and the pose in one vector z = (x, y, angle, leaves); the contact coordinates are a function of
    it."""

    leaves: np.ndarray
    values: object
    derivatives: object


@functools.cache
def solved(first, second):
    a, b = profile_of(first), profile_of(second)
    numbers, structure = eqx.partition((a, b), eqx.is_inexact_array)
    leaves, unravel = ravel_pytree(numbers)

    def coordinates(z, elements=None):
        a, b = eqx.combine(unravel(z[3:]), structure)
        return mbs.contact_coordinates(a, b, mbs.PlanarFrame(z[0], z[1], z[2]), elements)

    def everything(z):
        gap = lambda pose: coordinates(jnp.concatenate([pose, z[3:]]), (0, 0))[2]
        forward = jax.jacfwd(lambda z: coordinates(z, (0, 0)))(z)
        backward = jax.grad(lambda z: coordinates(z, (0, 0))[2])(z)
        return coordinates(z, (0, 0)), forward, backward, jax.jacfwd(jax.grad(gap))(z[:3])

    return Solved(np.asarray(leaves), jax.jit(jax.vmap(coordinates)), jax.jit(jax.vmap(everything)))


def points_of(first, second):
    poses, truth, distance = apart(first, second)
    pair = solved(first, second)
    return pair, np.concatenate([poses, np.tile(pair.leaves, (K, 1))], 1), truth, distance
