"""Uniform cubic splines in plain NumPy: their control points from polynomials and from curves, and for drawings."""

from collections.abc import Callable
from typing import Any

import numpy as np


FITTED = 1e-7  # of its size: by how much a curve that no element is may miss the spline in its place
_MOST = 4096  # segments of such a spline
# control points, from the coefficients of 1, u, u^2, u^3 of one segment: its polar form at (-2, -1, 0), (-1, 0, 1),
# (0, 1, 2), (1, 2, 3)
CONTROL = np.array([[1.0, -1, 2 / 3, 0], [1, 0, -1 / 3, 0], [1, 1, 2 / 3, 0], [1, 2, 11 / 3, 6]])


def coefficients(control: np.ndarray, closed: bool) -> np.ndarray:
    """Of 1, u, u^2, u^3, for each segment of a spline: (4, segments, 2)."""
    P = np.concatenate([control, control[:3]]) if closed else control
    return np.tensordot(np.linalg.inv(CONTROL), np.stack([P[k : len(P) - 3 + k] for k in range(4)]), 1)


def beside(
    position: Callable[[np.ndarray], np.ndarray], ends: np.ndarray | None = None, *, closed: bool = False
) -> np.ndarray:
    """The control points of a spline through points of a smooth curve over [0, 1], so many that it misses it by less
    than `FITTED` of its size; `ends` are its derivatives there, if they are known."""
    from scipy.interpolate import CubicSpline  # here, as most do without it

    n = 8
    while True:
        s = np.linspace(0.0, 1.0, n + 1)
        p = np.array(position(s))
        size = float(np.ptp(p, 0).max())
        if closed:
            p[-1] = p[0]
        how: Any = "periodic" if closed else "not-a-knot" if ends is None else ((1, ends[0]), (1, ends[1]))
        spline, between = CubicSpline(s, p, bc_type=how), (s[:-1] + s[1:]) / 2
        away = float(np.abs(spline(between) - position(between)).max())
        if away < FITTED * size:
            break
        if n == _MOST:
            raise ValueError("a curve is not smooth enough to be followed by a spline")
        better = 1.2 * n * (away / FITTED / size) ** 0.25 if away < 1e-2 * size else 2 * n
        n = min(int(np.ceil(better)), _MOST)
    windows = np.tensordot(CONTROL, spline.c[::-1] / float(n) ** np.arange(4)[:, None, None], 1)
    chain = np.concatenate([windows[0], windows[1:, -1]])
    return chain[:-3] if closed else chain


def clamped(control: np.ndarray, closed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Control points and knots of the same spline as drawings have it, which begins and ends in a control point."""
    c = coefficients(control, closed)
    n = c.shape[1]
    knots = np.concatenate([np.zeros(3), np.arange(n + 1.0), np.full(3, float(n))])
    found = []
    for i in range(n + 3):
        k = min(i, n - 1)  # a segment that this control point shapes
        x, y, z = knots[i + 1 : i + 4] - k
        found.append(np.array([1.0, (x + y + z) / 3, (x * y + y * z + z * x) / 3, x * y * z]) @ c[:, k])
    return np.array(found), knots
