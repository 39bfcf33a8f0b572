"""Curves of a drawing in plain NumPy: segments, circular arcs and cubics, which become elements as they are."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..._model.profile.base import AbstractElement
from ..._model.profile.cubics import CONTROL, beside, coefficients
from ..._model.profile.curves import Spline
from ..._model.profile.elements import Arc, Circle, Line


_SAME = 1e-10  # of its size: what differs less is the same
_NUDGE = 1e-6  # of its chord: how far the handle of a cubic is drawn out that has no direction at an end


@dataclass(frozen=True)
class Segment:
    """A straight line from `a` to `b`."""

    a: np.ndarray
    b: np.ndarray
    directed: bool = True  # whether the drawing tells which way it runs

    def at(self, s: Any) -> np.ndarray:
        return self.a + np.multiply.outer(s, self.b - self.a)

    @property
    def tangents(self) -> tuple[np.ndarray, np.ndarray]:
        return self.b - self.a, self.b - self.a

    @property
    def endless(self) -> bool:
        return False

    def area(self) -> float:
        """Half the integral of x dy - y dx."""
        return float(self.a[0] * self.b[1] - self.a[1] * self.b[0]) / 2

    def turned(self) -> "Segment":
        return Segment(self.b, self.a)

    def scaled(self, by: float) -> "Segment":
        return Segment(self.a * by, self.b * by)

    def element(self) -> AbstractElement:
        return Line(self.a, self.b)


@dataclass(frozen=True)
class Turn:
    """An arc: from the angle `start` by `turn`, which is negative if it runs clockwise; a full turn is a circle."""

    center: np.ndarray
    radius: float
    start: float
    turn: float
    directed: bool = False

    def at(self, s: Any) -> np.ndarray:
        angle = self.start + self.turn * np.asarray(s)
        return self.center + self.radius * np.stack([np.cos(angle), np.sin(angle)], -1)

    @property
    def tangents(self) -> tuple[np.ndarray, np.ndarray]:
        first, last = ((-np.sin(x), np.cos(x)) for x in (self.start, self.start + self.turn))
        return np.sign(self.turn) * np.array(first), np.sign(self.turn) * np.array(last)

    @property
    def endless(self) -> bool:
        return abs(self.turn) > 2 * np.pi * (1 - _SAME)

    def area(self) -> float:
        a, b = self.at(0.0) - self.center, self.at(1.0) - self.center
        across = float(self.center[0] * (b - a)[1] - self.center[1] * (b - a)[0])
        return (self.radius**2 * self.turn + across) / 2

    def turned(self) -> "Turn":
        return Turn(self.center, self.radius, self.start + self.turn, -self.turn, self.directed)

    def scaled(self, by: float) -> "Turn":
        return Turn(self.center * by, self.radius * by, self.start, self.turn, self.directed)

    def element(self) -> AbstractElement:
        start = self.start - 2 * np.pi * round(self.start / (2 * np.pi))
        if self.endless:
            return Circle(self.center, self.radius, start, concave=self.turn < 0)
        return Arc(self.center, self.radius, start, abs(self.turn), concave=self.turn < 0)


@dataclass(frozen=True)
class Cubics:
    """A uniform cubic B-spline, as the element `Spline` has it: of one segment, any cubic there is."""

    control: np.ndarray
    endless: bool = False
    directed: bool = True

    @property
    def coefficients(self) -> np.ndarray:
        return coefficients(self.control, self.endless)

    def at(self, s: Any) -> np.ndarray:
        c = self.coefficients
        x = np.asarray(s) * c.shape[1]
        k = np.clip(np.floor(x).astype(int), 0, c.shape[1] - 1)
        u = (x - k)[..., None]
        return c[0, k] + u * (c[1, k] + u * (c[2, k] + u * c[3, k]))

    @property
    def tangents(self) -> tuple[np.ndarray, np.ndarray]:
        c = self.coefficients
        return c[1, 0], c[1, -1] + 2 * c[2, -1] + 3 * c[3, -1]

    def area(self) -> float:
        c, (nodes, weights) = self.coefficients, np.polynomial.legendre.leggauss(3)  # exact for the fifth degree
        u = (nodes[:, None, None] + 1) / 2
        p = c[0] + u * (c[1] + u * (c[2] + u * c[3]))
        d = c[1] + u * (2 * c[2] + u * 3 * c[3])
        return float(np.sum(weights[:, None] * (p[..., 0] * d[..., 1] - p[..., 1] * d[..., 0]))) / 4

    def turned(self) -> "Cubics":
        return Cubics(self.control[::-1], self.endless)

    def scaled(self, by: float) -> "Cubics":
        return Cubics(self.control * by, self.endless)

    def element(self) -> AbstractElement:
        return Spline(self.control, closed=self.endless)


Piece = Segment | Turn | Cubics


def segment(a: Any, b: Any) -> list[Piece]:
    a, b = np.array(a, float)[:2], np.array(b, float)[:2]
    return [Segment(a, b)] if np.any(a != b) else []


def elliptic(center: Any, u: Any, v: Any, start: float, turn: float, *, directed: bool = False) -> list[Piece]:
    """center + u cos t + v sin t, for t from `start` by `turn`: an arc, if it is a circle's."""
    center, u, v = (np.array(x, float)[:2] for x in (center, u, v))
    radius = float(np.sqrt((u @ u + v @ v) / 2))
    if radius == 0 or turn == 0 or not np.isfinite(radius):
        return []
    turn = float(np.clip(turn, -2 * np.pi, 2 * np.pi))
    if abs(u @ u - v @ v) <= 2 * _SAME * radius**2 and abs(u @ v) <= _SAME * radius**2:
        sign = float(np.sign(u[0] * v[1] - u[1] * v[0]))
        # the radius as it is written, where the axes are those of the drawing
        exact = float(np.abs(u).max()) if np.count_nonzero(u) == 1 else radius
        return [Turn(center, exact, float(np.arctan2(u[1], u[0])) + sign * float(start), sign * turn, directed)]

    def position(s: np.ndarray) -> np.ndarray:
        t = (start + turn * s)[:, None]
        return center + u * np.cos(t) + v * np.sin(t)

    t = start + turn * np.array([0.0, 1.0])[:, None]
    ends = turn * (v * np.cos(t) - u * np.sin(t))
    closed = abs(turn) > 2 * np.pi * (1 - _SAME)
    return [Cubics(beside(position, ends, closed=closed), closed)]


def bezier(points: Any) -> list[Piece]:
    """A Bezier curve of the second or third degree, exactly."""
    P = np.array(points, float)
    if len(P) == 3:
        P = np.array([P[0], P[0] + 2 / 3 * (P[1] - P[0]), P[2] + 2 / 3 * (P[1] - P[2]), P[2]])
    if not np.any(P != P[0]):
        return []
    P = _with_directions(P)
    c = np.array([P[0], 3 * (P[1] - P[0]), 3 * (P[0] - 2 * P[1] + P[2]), P[3] - 3 * P[2] + 3 * P[1] - P[0]])
    return _cubics([c], [1.0])


def _with_directions(P: np.ndarray) -> np.ndarray:
    """The same control points, with those drawn apart that leave an end without a direction."""
    size = np.ptp(P, 0).max()
    same = lambda a, b: np.abs(a - b).max() <= _SAME * size
    if same(P[0], P[1]) and same(P[2], P[3]):
        return P[0] + np.arange(4)[:, None] / 3 * (P[3] - P[0])
    P = P.copy()
    if same(P[0], P[1]):
        P[1] = P[0] + _NUDGE * (P[2] - P[0])
    if same(P[3], P[2]):
        P[2] = P[3] + _NUDGE * (P[1] - P[3])
    return P


def bspline(degree: int, knots: Any, control: Any, weights: Any = None) -> list[Piece]:
    """A B-spline: up to the third degree exactly; a rational one as arcs, if it is such, or as a spline beside it."""
    from scipy.interpolate import BSpline  # here, as most do without it

    t, P = np.asarray(knots, float), np.asarray(control, float)[:, :2]
    w = np.ones(len(P)) if weights is None else np.asarray(weights, float)
    if degree < 1 or len(t) != len(P) + degree + 1 or len(P) < degree + 1 or len(w) != len(P):
        raise ValueError(
            f"a spline of degree {degree} has {len(P)} control points and {len(t)} knots, which do not fit"
        )
    if np.any(np.diff(t) < 0) or not np.all(np.isfinite(t)) or not np.all(np.isfinite(P)):
        raise ValueError("the knots of a spline must not fall, and its numbers must be finite")
    if np.any(w <= 0):
        raise ValueError("the weights of a spline must be positive")
    first, last = t[degree], t[-degree - 1]
    if not last > first:
        raise ValueError("the knots of a spline have no extent")
    breaks, repeated = np.unique(t[(t >= first) & (t <= last)], return_counts=True)
    if degree <= 3 and np.ptp(w) <= _SAME * w.max():
        spline, widths, factorial = BSpline(t, P, degree), np.diff(breaks), (1, 1, 2, 6)
        taylor = [spline(breaks[:-1], nu=m) * widths[:, None] ** m / factorial[m] for m in range(degree + 1)]
        padded = np.stack([*taylor, *[np.zeros_like(taylor[0])] * (3 - degree)], 1)
        return _cubics(list(padded), widths.tolist())
    whole = BSpline(t, np.column_stack([P * w[:, None], w]), degree)
    corners = [first, *(b for b, n in zip(breaks[1:-1], repeated[1:-1]) if n >= degree), last]
    found: list[Piece] = []
    for a, b in pairwise(corners):
        found += _rational(whole, a, b)
    return found


def _rational(whole: Any, a: float, b: float) -> list[Piece]:
    """A part of a rational spline."""

    def position(s: np.ndarray) -> np.ndarray:
        h = whole(np.clip(a + (b - a) * s, a, np.nextafter(b, a)))
        return h[:, :2] / h[:, 2:]

    p = position(np.linspace(0.0, 1.0, 33))
    middle = p - p.mean(0)
    # a circle: |p|^2 = 2 c p + const
    (cx, cy, k), *_ = np.linalg.lstsq(np.column_stack([2 * middle, np.ones(len(p))]), np.sum(middle**2, 1), rcond=None)
    radius = float(np.sqrt(max(k + cx**2 + cy**2, 0.0)))
    size = float(np.ptp(p, 0).max())
    away = np.abs(np.hypot(*(middle - (cx, cy)).T) - radius).max()
    if away < _SAME * size and radius < 1e6 * size:
        center = p.mean(0) + (cx, cy)
        angles = np.unwrap(np.arctan2(*(p - center).T[::-1]))
        return [Turn(center, radius, float(angles[0]), float(angles[-1] - angles[0]), directed=True)]
    h, d = whole([a, np.nextafter(b, a)]), whole([a, np.nextafter(b, a)], 1)
    ends = (b - a) * (d[:, :2] - h[:, :2] / h[:, 2:] * d[:, 2:]) / h[:, 2:]
    return [Cubics(beside(position, ends))]


def _cubics(coefficients: list[np.ndarray], widths: list[float]) -> list[Piece]:
    """Segments of polynomials, as few uniform splines as there can be: those of equal width that go on into each
    other with their curvature are one. Straight ones are lines."""
    size = max(float(np.abs(c[1:]).max()) for c in coefficients)
    same = lambda a, b: np.abs(a - b).max() <= _SAME * size
    found: list[Piece] = []
    wide = 0.0
    for c, width in zip(coefficients, widths):
        last = found[-1] if found else None
        control = CONTROL @ c
        if np.abs(c[2:]).max() <= 1e-13 * size:
            found += segment(c[0], c[:2].sum(0))
        elif isinstance(last, Cubics) and abs(wide - width) <= _SAME * width and same(last.control[-3:], control[:3]):
            found[-1] = Cubics(np.concatenate([last.control, control[3:]]))
        else:
            found.append(Cubics(control))
        wide = width
    if len(found) == 1 and isinstance(found[0], Cubics):
        control = found[0].control
        if len(control) > 6 and same(control[:3], control[-3:]):
            return [Cubics(control[:-3], True)]
    return found
