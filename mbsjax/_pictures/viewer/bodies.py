"""Bodies in the page: their poses, their outlines, and what holds their parts together."""

from typing import Any

import numpy as np

from ..._model.mechanism import GROUND
from ..scene import Shape, shapes
from .keyframes import Keyframes
from .packing import packed, rounded


_FINENESS = 4


def bodies(frames: Keyframes) -> list[dict]:
    """All bodies, the ground first."""
    mech = frames.mech
    return [_body(shape, frames.poses[shape.body], mech.planar) for shape in shapes(mech, _FINENESS)]


def _body(shape: Shape, poses: np.ndarray, planar: bool) -> dict:
    lines, plate = _lines_and_plate(shape, planar)
    wheel = any(m.kind in ("gear", "rolling", "rack") for m in shape.marks)
    alone = not (shape.outlines or lines or plate is not None or wheel or shape.body == GROUND)
    slide = next((m for m in shape.marks if m.kind in ("prismatic", "cylindrical")), None)
    seat = shape.marks[0] if slide is None and shape.marks else slide
    return {
        "name": shape.body,
        "pose": [packed(x) for x in poses.T],
        "outlines": _outlines(shape),
        "lines": [rounded(line) for line in lines],
        "plate": None if plate is None else rounded(plate),
        "block": [rounded(seat.place), rounded(seat.axis)] if alone and seat is not None else None,
        "points": [[name, rounded(p)] for name, p in shape.points.items()],
    }


def variant_bodies(frames: Keyframes) -> dict:
    """The bodies of a variant, of which thin outlines are drawn: fewer digits will do."""
    bodies = []
    for shape in shapes(frames.mech, _FINENESS):
        lines, plate = _lines_and_plate(shape, frames.mech.planar)
        bodies.append(
            {
                "pose": [packed(x, np.uint16) for x in frames.poses[shape.body].T],
                "outlines": _outlines(shape, np.uint16),
                "lines": [rounded(x) for x in lines],
                "plate": None if plate is None else rounded(plate),
            }
        )
    return {"t": packed(frames.t), "bodies": bodies}


def _outlines(shape: Shape, kind: Any = np.float32) -> list[dict]:
    return [
        {"closed": o.closed, "points": [packed(x, kind) for x in _thinned(o.points, o.closed).T]}
        for o in shape.outlines
    ]


def _lines_and_plate(shape: Shape, planar: bool) -> tuple[list[np.ndarray], np.ndarray | None]:
    """How the parts of a body hang together: lines, and the plate that a link with three joints or more is."""
    if shape.body == GROUND:
        return [], None
    places = shape.skeleton
    if not shape.outlines:
        if len(places) < 2:
            return [], None
        if not planar:
            pairs = [(i, j) for i in range(len(places)) for j in range(i)] if len(places) < 5 else []
            return [places[[i, j]] for i, j in pairs] or [places], None
        hull = _hull(places)
        return ([], hull) if len(hull) > 2 else ([places[[0, -1]]], None)
    if len(places) == 0:
        return [], None
    base = shape.marks[0].place if shape.marks else places[0]
    reach = max(float(np.ptp(np.concatenate([o.points for o in shape.outlines]), axis=0).max()), 1e-12)
    lines, home = [], [o for o in shape.outlines if _within(base, o.points, o.closed)]
    for outline in shape.outlines:
        near = _nearest(base, outline.points, outline.closed)
        if not any(outline is o for o in home) and np.linalg.norm(near - base) > 1e-6 * reach:
            lines.append(np.stack([base, near]))
    for place in places:
        inside = any(_within(place, o.points, o.closed) for o in home)
        if not inside and np.linalg.norm(place - base) > 1e-6 * reach:
            lines.append(np.stack([base, place]))
    return lines, None


def _within(p: np.ndarray, points: np.ndarray, closed: bool) -> bool:
    if not closed or len(p) == 3:
        return False
    (x, y), (u, v) = (points - p).T, (np.roll(points, -1, 0) - p).T
    crosses = (y > 0) != (v > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        right = x - y * (u - x) / (v - y) > 0
    return bool(np.sum(crosses & right) % 2)


def _nearest(p: np.ndarray, points: np.ndarray, closed: bool) -> np.ndarray:
    starts, ends = (points, np.roll(points, -1, 0)) if closed else (points[:-1], points[1:])
    d = ends - starts
    s = np.clip(np.sum((p - starts) * d, 1) / np.maximum(np.sum(d * d, 1), 1e-300), 0, 1)
    on = starts + s[:, None] * d
    return on[np.argmin(np.linalg.norm(on - p, axis=1))]


def _hull(points: np.ndarray) -> np.ndarray:
    """The convex hull, counter-clockwise; two points where they lie on a line."""

    def half(points: np.ndarray) -> list[np.ndarray]:
        chain: list[np.ndarray] = []
        for p in points:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], p) <= flat:
                chain.pop()
            chain.append(p)
        return chain[:-1]

    flat = 1e-6 * float(np.ptp(points, axis=0).max()) ** 2
    ordered = points[np.lexsort(points.T[::-1])]
    return np.array(half(ordered) + half(ordered[::-1]))


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _thinned(points: np.ndarray, closed: bool) -> np.ndarray:
    """Without points on the straight way between their neighbors."""
    if len(points) < 3:
        return points
    before, after = np.roll(points, 1, 0) - points, np.roll(points, -1, 0) - points
    a, b = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300) for x in (before, after))
    keep = np.linalg.norm(a + b, axis=1) > 1e-7
    if not closed:
        keep[[0, -1]] = True
    return points[keep]
