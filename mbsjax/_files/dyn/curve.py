"""The curves of `.DYN` files as profiles: what the files leave out is found from the neighbors."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy

from ... import frames
from ..._model.profile.base import AbstractElement
from ..._model.profile.curves import Polynomial
from ..._model.profile.elements import Arc, Circle, Line
from ..._model.profile.profile import Profile, sampled


LOOSE = 1e-5  # by how much ends may miss each other, as a part of the curve's size,
TIGHT = 1e-9  # and from which part on that is told
GRID = np.arange(1, 7201) / 20  # degrees from the start of a polynomial


class Part(NamedTuple):
    """An element of a curve, as far as a file tells. Angles are in degrees, points are in the frame of the link."""

    kind: str
    line: int
    pinit: np.ndarray | None = None
    pend: np.ndarray | None = None
    center: np.ndarray | None = None
    concave: bool = False
    radius: float = 0.0
    coefficients: tuple[float, ...] = ()
    orders: tuple[int, ...] = ()
    offset: float = 0.0  # of the polar angle at its start from the polynomial's reference
    scale: float = 1.0

    def polar(self, degrees: Any) -> Any:
        """The radius of a polynomial, so far from its start."""
        x = (self.offset + np.asarray(-degrees if self.concave else degrees)) / self.scale
        return sum(c * x**n for c, n in zip(self.coefficients, self.orders))


def profile_of(parts: Sequence[Part], normal: Any, note: Callable[[int, str], None]) -> Profile:
    """The profile that the elements of a curve make."""
    frame, parts = _in_plane(parts, np.asarray(normal, float))
    body = [part for part in parts if part.kind != "point"]
    follows = [b.kind == "point" for b in (*parts[1:], parts[0])]
    for part, next_is_point in zip(parts, follows):
        if part.kind == "point" and (next_is_point or part is parts[0]):
            raise ValueError(f"POINT in line {part.line}: expected an element with a length before and after it")
    corners = [corner for part, corner in zip(parts, follows) if part.kind != "point"]
    elements = _elements(body, note)
    pieces = sampled(Profile(tuple(elements), frames.at(0.0, 0.0, 0.0), False, ()))
    size = max(float(np.ptp(np.concatenate(pieces), axis=0).max()), 1e-300)
    gaps = [float(np.linalg.norm(b[0] - a[-1])) for a, b in zip(pieces, (*pieces[1:], pieces[0]))]
    closed = gaps[-1] <= LOOSE * size
    if corners[-1] and not closed:
        raise ValueError(f"POINT in line {parts[-1].line}: expected an element after it, or a curve that is closed")
    for part, gap in zip(body, gaps if closed else gaps[:-1]):
        if gap > TIGHT * size:
            note(part.line, f"this {part.kind} ends {gap:.2g} from where the next element begins, which is left so")
    outline = np.concatenate([piece[:-1] for piece in pieces])
    x, y = outline.T
    hole = bool(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) < 0)
    smooth = [not corner for corner in (corners if closed else corners[:-1])]
    return Profile.chain(
        elements, closed=closed, smooth=smooth, hole=closed and hole, frame=frame, tolerance=LOOSE
    )  # fmt: skip


def _in_plane(parts: Sequence[Part], normal: np.ndarray) -> tuple[Any, list[Part]]:
    """The plane of a curve, None for that of the link, and the parts with points in it."""
    given = [p for part in parts for p in (part.pinit, part.pend, part.center) if p is not None]
    if not given:
        raise ValueError("expected an element with points")
    points = np.array([np.append(p, np.zeros(3 - len(p))) for p in given])
    length = np.linalg.norm(normal)
    if not length > 0:
        raise ValueError("NORMAL VECTOR: expected a direction, got zeros")
    n = normal / length
    height = points @ n
    if np.ptp(height) > LOOSE * max(float(np.ptp(points, axis=0).max()), 1e-300):
        raise ValueError("expected points in a plane across the NORMAL VECTOR")
    X = None
    if n.tolist() != [0.0, 0.0, 1.0] or points[:, 2].any():
        X = np.asarray(frames.from_axis(n * height[0], n))

    def flat(p: np.ndarray | None) -> np.ndarray | None:
        if p is None or X is None:
            return p if p is None else p[:2]
        return (X[:3, :3].T @ (np.append(p, np.zeros(3 - len(p))) - X[:3, 3]))[:2]

    return X, [p._replace(pinit=flat(p.pinit), pend=flat(p.pend), center=flat(p.center)) for p in parts]


def _elements(parts: list[Part], note: Callable[[int, str], None]) -> list[AbstractElement]:
    """The elements in order. One without a start begins where the one before ends; one without an end, where the next
    begins, and the last where the first does."""
    first = parts[0].pinit if parts[0].pinit is not None else parts[-1].pend
    if first is None and parts[0].kind != "circle":
        raise ValueError(f"line {parts[0].line}: expected PINIT of the first element")
    elements, here = [], first
    for part, after in itertools.zip_longest(parts, parts[1:]):
        start = here if part.pinit is None else part.pinit
        end = part.pend
        if end is None:
            end = first if after is None else after.pinit
            if after is None and part.kind != "circle":
                note(part.line, f"this {part.kind} has no PEND: taken to end where the curve begins")
        if part.kind == "polynomial" and end is None:
            here = _polynomial_end(part, start, _first_radius(part.center, after, first), note)
            end = here
        if part.kind != "circle" and (start is None or end is None):
            raise ValueError(f"line {part.line}: {part.kind}: expected {'PINIT' if start is None else 'PEND'}")
        elements.append(_element(part, start, end))
        here = end
    return elements


def _element(part: Part, start: Any, end: Any) -> AbstractElement:
    center: Any = part.center
    if part.kind == "line":
        return Line(start, end)
    if part.kind == "circle":
        begin = 0.0 if start is None else _angle(start - center)
        return Circle(center, part.radius, begin, concave=part.concave)
    a, b = _angle(start - center), _angle(end - center)
    turn = ((a - b) if part.concave else (b - a)) % (2 * math.pi)
    turn = 2 * math.pi if turn < 1e-9 else turn
    if part.kind == "polynomial":
        last = a - turn if part.concave else a + turn
        return Polynomial(
            part.coefficients, part.orders, a, last, reference=a - math.radians(part.offset),
            scale=math.radians(part.scale), center=center,
        )  # fmt: skip
    radius = np.linalg.norm((end if part.pinit is None else start) - center)
    if not abs(np.linalg.norm(end - center) - radius) <= LOOSE * radius:
        raise ValueError(f"line {part.line}: arc: expected PINIT and PEND at the same distance from CENTRE")
    return Arc(center, radius, a, turn, concave=part.concave)


def _angle(way: np.ndarray) -> float:
    return math.atan2(way[1], way[0])


def _first_radius(center: Any, after: Part | None, first: Any) -> float | None:
    """The radius that the next element begins with, about the center of a polynomial."""
    if after is None or after.center is None or list(after.center) != list(center):
        return None
    if after.kind == "polynomial":
        return float(after.polar(0.0))
    end = first if after.pend is None else after.pend
    return float(np.linalg.norm(end - center))


def _polynomial_end(part: Part, start: Any, radius: float | None, note: Callable[[int, str], None]) -> np.ndarray:
    """Where a polynomial without PEND ends: at the angle where it first comes to the radius of what follows."""
    if radius is None:
        raise ValueError(f"line {part.line}: polynomial: expected PEND, which the next element does not tell either")
    off = part.polar(GRID) - radius
    away = np.flatnonzero(np.abs(off) > LOOSE * radius)
    near = [i for i in np.flatnonzero(off[:-1] * off[1:] <= 0) if away.size and i >= away[0]]
    if not near:
        raise ValueError(
            f"line {part.line}: polynomial: expected PEND, since it never comes to the radius {radius:.9g}"
        )
    turn: Any = scipy.optimize.brentq(lambda x: part.polar(x) - radius, GRID[near[0]], GRID[near[0] + 1], xtol=1e-13)
    for i in (near[0], near[0] + 1):
        turn = GRID[i] if abs(off[i]) <= 1e-15 * radius else turn  # where it is flat, no other digits are sure
    note(
        part.line, f"this polynomial has no PEND: taken to end after {turn:.6g} degrees, at the radius of what follows"
    )
    angle = _angle(start - part.center) + math.radians(-turn if part.concave else turn)
    assert part.center is not None
    return part.center + radius * np.array([math.cos(angle), math.sin(angle)])
