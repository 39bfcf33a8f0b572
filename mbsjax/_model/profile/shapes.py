"""Plain profiles: discs, bores, slots, polygons with round corners, and tables of points."""

import os
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._programs.custom_types import Number, Numbers
from ..._programs.precision import AGREEING, as_float, number, positive, value, visible
from .base import AbstractElement, point_of
from .curves import Spline
from .elements import Arc, Circle, Line
from .profile import Profile


MOST_POINTS = 5000  # of a table: a spline through them is found from as many equations


def disc(radius: Number, center: Numbers = (0.0, 0.0)) -> Profile:
    """A round disc.

    !!! Example

        >>> disc(2.0)(0.25).normal.round(9).tolist()
        [0.0, 1.0]
    """
    return Profile.chain([Circle(center, radius)])


def bore(radius: Number, center: Numbers = (0.0, 0.0)) -> Profile:
    """A round hole; its coordinate runs clockwise.

    !!! Example

        >>> (bore(2.0)(0.25).normal.round(9) + 0.0).tolist()  # out of the material, towards the center
        [0.0, 1.0]
    """
    return Profile.chain([Circle(center, radius, concave=True)])


def eccentric(radius: Number, eccentricity: Number, angle: Number = 0.0) -> Profile:
    """A round disc that turns about the origin, its center `eccentricity` away in the direction `angle`.

    !!! Example

        >>> eccentric(2.0, 0.5)(0.5).position.round(9).tolist()
        [-1.5, 0.0]
    """
    e, angle = number(eccentricity, "the eccentricity of a disc"), number(angle, "the angle of an eccentric")
    return disc(radius, e * direction(angle))


def slot(start: Numbers, end: Numbers, width: Number, *, mouth: bool = False) -> Profile:
    """A straight slot with round ends, in a body: the path of a pin of diameter `width` from `start` to `end`.

    **Arguments:**

    - `start`, `end`: the centers of its round ends.
    - `width`: from wall to wall.
    - `mouth`: whether the slot is open at `end`: there are only two walls and the round end at `start` then.

    !!! Example

        >>> slot((0.0, 0.0), (10.0, 0.0), 4.0).kinds
        ('line', 'arc', 'line', 'arc')
        >>> slot((0.0, 0.0), (10.0, 0.0), 4.0, mouth=True)(1.0).position.round(9).tolist()
        [0.0, -2.0]
    """
    a, b = point_of(start, "the start of a slot"), point_of(end, "the end of a slot")
    w = positive(width, "the width of a slot") / 2
    d = b - a
    angle = jnp.arctan2(d[1], d[0])
    aside = w * direction(angle + jnp.pi / 2)
    # the material is outside, so the boundary runs clockwise: along the left wall, seen from the start
    left, right = Line(a + aside, b + aside), Line(b - aside, a - aside)
    first = Arc(a, w, angle - jnp.pi / 2, jnp.pi, concave=True)
    if mouth:
        return Profile.chain([right, first, left], closed=False, smooth=True)
    last = Arc(b, w, angle + jnp.pi / 2, jnp.pi, concave=True)
    return Profile.chain([left, last, right, first], smooth=True, hole=True)


def polygon(
    vertices: Numbers,
    radius: Numbers = 0.0,
    *,
    hollow: Sequence[int] | None = None,
    hole: bool = False,
    frame: Any = None,
) -> Profile:
    """A polygon, its corners rounded.

    **Arguments:**

    - `vertices`: counter-clockwise round the body, clockwise round a hole.
    - `radius`: of its corners, one number or one for each vertex. A corner of radius 0 stays sharp.
    - `hollow`: the numbers of the vertices where the boundary is hollow. Found from the vertices, unless these are
        traced.
    - `hole`, `frame`: as for [`mbsjax.Profile.chain`][].

    !!! Example

        >>> plate = polygon([(0.0, 0.0), (4.0, 0.0), (4.0, 3.0), (0.0, 3.0)], 1.0)
        >>> plate.kinds[:2], plate(0.0).position.round(9).tolist()
        (('line', 'arc'), [1.0, 0.0])
    """
    v = as_float(vertices, "the vertices of a polygon")
    if v.ndim != 2 or v.shape[1] != 2 or len(v) < 3:
        raise ValueError(f"a polygon needs at least three vertices in the plane, got shape {v.shape}")
    n = len(v)
    r = as_float(radius, "the corner radius of a polygon")
    if r.shape not in ((), (n,)):
        raise ValueError(f"a polygon of {n} vertices needs one corner radius, or {n}, got shape {r.shape}")
    rounded = [True] * n
    if (seen := visible(radius)) is not None:  # as given: under `jit` even a constant becomes a traced array
        given = np.broadcast_to(np.asarray(seen[0], float), (n,))
        if given.min() < 0:
            k = int(given.argmin())
            raise ValueError(f"the corner radius of a polygon at vertex {k} must not be negative, got {given[k]:.6g}")
        rounded = [bool(x > 0) for x in given]
    r = jnp.broadcast_to(r, (n,))
    if hollow is None and any(rounded):
        if (seen := visible(vertices)) is None:
            raise ValueError(
                "which corners of a polygon are hollow cannot be seen while its vertices are traced: say `hollow`"
            )
        corners = np.asarray(seen[0], float)
        (x0, y0), (x1, y1) = ((corners - np.roll(corners, k, 0)).T * k for k in (1, -1))
        hollow = np.flatnonzero(x0 * y1 - y0 * x1 < 0).tolist()

    ahead = jnp.roll(v, -1, 0) - v
    length = jnp.sqrt(jnp.sum(ahead**2, 1))
    out_angle = jnp.arctan2(ahead[:, 1], ahead[:, 0])
    turn = out_angle - jnp.roll(out_angle, 1)
    turn = turn - 2 * jnp.pi * jnp.round(turn / (2 * jnp.pi))
    hollow = hollow or ()
    sides = [-1.0 if k in hollow else 1.0 for k in range(n)]
    cut = jnp.where(jnp.asarray(rounded), r * jnp.tan(jnp.abs(turn) / 2), 0.0)
    _check_rounding(value(turn), value(cut), value(length), rounded)

    elements: list[AbstractElement] = []
    smooth: list[bool] = []
    for k in range(n):
        to = (k + 1) % n
        d = direction(out_angle[k])
        elements.append(Line(v[k] + cut[k] * d, v[to] - cut[to] * d))
        smooth.append(rounded[to])
        if rounded[to]:
            side, concave = sides[to], sides[to] < 0
            center = v[to] - cut[to] * d + side * r[to] * direction(out_angle[k] + jnp.pi / 2)
            start = out_angle[k] - side * jnp.pi / 2
            elements.append(Arc(center, r[to], start, side * turn[to], concave=concave))
            smooth.append(True)
    return Profile.chain(elements, smooth=smooth, hole=hole, frame=frame)


def _check_rounding(turn: np.ndarray, cut: np.ndarray, length: np.ndarray, rounded: list[bool]) -> None:
    n = len(rounded)
    for k in range(n):
        if rounded[k] and abs(turn[k]) < 1e-9:
            raise ValueError(f"vertex {k} of a polygon is no corner and cannot be rounded")
        to = (k + 1) % n
        if (rounded[k] or rounded[to]) and cut[k] + cut[to] >= length[k] * (1 - 1e-9):
            raise ValueError(
                f"the corner radius of a polygon is too large: between vertices {k} and {to} the corners take "
                f"{cut[k] + cut[to]:.6g} of an edge {length[k]:.6g} long"
            )


def from_table(points: Any, *, closed: bool = True, hole: bool = False, frame: Any = None) -> Profile:
    """A spline through a table of points.

    **Arguments:**

    - `points`: an array of rows x, y, or the path of a CSV file of them. Blank lines, lines that begin with `#`, and a
        first line of names are passed over. The material lies on the left.
    - `closed`: whether the last point is followed by the first, which may be repeated.
    - `hole`, `frame`: as for [`mbsjax.Profile.chain`][].

    !!! Example

        >>> angles = jnp.linspace(0.0, 2 * jnp.pi, 25)
        >>> rim = from_table(jnp.stack([3 * jnp.cos(angles), 2 * jnp.sin(angles)], 1))
        >>> rim.kinds, (rim(0.25).position.round(6) + 0.0).tolist()
        (('spline',), [0.0, 2.0])
    """
    table: Any = _read(os.fspath(points)) if isinstance(points, (str, os.PathLike)) else points
    xy = as_float(table, "a table of points")
    if xy.ndim != 2 or xy.shape[1] != 2:
        raise ValueError(f"a table of points needs two columns, x and y, got shape {xy.shape}")
    if len(xy) > MOST_POINTS:
        raise ValueError(f"a table of points must not have more than {MOST_POINTS} of them, got {len(xy)}")
    if closed and len(xy) > 1 and (seen := visible(table)) is not None:  # as given: what is made of it may be traced
        rows = np.asarray(seen[0], float)
        if np.all(np.abs(rows[0] - rows[-1]) <= AGREEING() * np.ptp(rows, 0)):
            xy = xy[:-1]
    return Profile.chain([Spline.through(xy, closed=closed)], closed=closed, hole=hole, frame=frame)


def _read(path: str) -> Float[np.ndarray, "n 2"]:
    rows, first = [], True
    with open(path, encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            fields = [x.strip() for x in line.split(",")]
            values = [_number(x) for x in fields]
            names = first and all(x is None for x in values)
            first = False
            if names:
                continue
            if len(values) != 2 or None in values or not np.all(np.isfinite(np.array(values, float))):
                raise ValueError(f"{path}, line {number}: expected two numbers, x and y, got {line.strip()!r}")
            rows.append(values)
            if len(rows) > MOST_POINTS:
                raise ValueError(f"{path}: there are more than {MOST_POINTS} points in it")
    if not rows:
        raise ValueError(f"{path}: there are no points in it")
    return np.array(rows, float)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def direction(angle: Float[Array, ""]) -> Float[Array, "2"]:
    """The unit vector at an angle from x."""
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)])
