"""Curves in NumPy, and the shortest way between two of them by a search that knows nothing of normals."""

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize


TAU = 2 * np.pi


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


def turned(angle, p):
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * p[..., 0] - s * p[..., 1], s * p[..., 0] + c * p[..., 1]], -1)


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


def matrix(pose):
    c, s = np.cos(pose[2]), np.sin(pose[2])
    return np.array([[c, -s, 0, pose[0]], [s, c, 0, pose[1]], [0, 0, 1, 0], [0, 0, 0, 1.0]])
