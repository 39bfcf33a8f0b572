"""The area inside a profile by Green's theorem: closed forms of lines and arcs, SciPy's splines for the others."""

import numpy as np
from scipy.interpolate import BSpline

import mbsjax as mbs


def area(profile: mbs.Profile) -> float:
    """Half the integral of x dy - y dx: negative round a hole."""
    return sum(_part(e) for e in profile.elements)


def _part(e) -> float:
    if isinstance(e, mbs.Line):
        return float(np.cross([*e.start, 0.0], [*e.end, 0.0])[2]) / 2
    if isinstance(e, mbs.Spline):
        n, control = e.segments, np.asarray(e.control)
        control = np.concatenate([control, control[:3]]) if e.closed else control
        curve = BSpline(np.arange(-3.0, n + 4), control, 3)
        nodes, weights = np.polynomial.legendre.leggauss(3)  # exact for polynomials of the fifth degree
        x = (np.arange(n)[:, None] + (nodes + 1) / 2).ravel()
        (px, py), (dx, dy) = curve(x).T, curve(x, 1).T
        return float(np.tile(weights, n) @ (px * dy - py * dx)) / 4
    turn = 2 * np.pi if isinstance(e, mbs.Circle) else float(e.turn)
    a, r = float(e.start), float(e.radius)
    b = a - turn if e.concave else a + turn
    (x, y), chord = np.asarray(e.center), r * np.array([np.cos(b) - np.cos(a), np.sin(b) - np.sin(a)])
    return (r * r * (b - a) + x * chord[1] - y * chord[0]) / 2
