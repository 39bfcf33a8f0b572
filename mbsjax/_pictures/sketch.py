"""A mechanism as lines, areas and symbols, in one position or in several."""

from typing import Any, NamedTuple

import numpy as np

from .._model.force.spring import Spring
from .._model.gauge import Distance
from .._model.joint.gear import GearPair, RackPair, RollingPair
from .._model.joint.joint import Joint
from .._model.mechanism import GROUND, Mechanism
from .scene import Mark, Shape, mark, poses, shapes
from .style import COLORS, INK, KINDS, RED, SOFT
from .symbols import across, arrow, coil, fill, hatched, label, line, pin, pivot


SLIDES = ("prismatic", "cylindrical", "screw")


class Touching(NamedTuple):
    """A contact that is closed: where, the normal out of the first body, and the force, if it is known; with friction,
    that as a vector, and whether it holds. Or a joint, with the direction of its force."""

    name: str
    point: np.ndarray
    normal: np.ndarray
    force: float | None
    friction: np.ndarray | None = None
    sticks: bool = False


def into(X: np.ndarray, points: np.ndarray) -> np.ndarray:
    n = points.shape[-1]
    return points @ X[:n, :n].T + X[:n, 3]


class Sketch:
    """A mechanism to be drawn in the positions of some rows of coordinates."""

    def __init__(self, mech: Mechanism, q: Any):
        self.mech, self.dim = mech, 2 if mech.planar else 3
        self.shapes = {s.body: s for s in shapes(mech)}
        self.X = poses(mech, q)
        self.marks = {(j.name, side): mark(mech, j, side) for j in mech.joints for side in "ab"}
        self.rods = [g for g in self._gauges() if isinstance(g, Distance)]
        self.colors = {name: COLORS[i % len(COLORS)] for i, name in enumerate(mech.links[1:])} | {GROUND: INK}
        some = np.unique(np.linspace(0, len(q) - 1, 60).astype(int))
        every = {name: self._extent(shape) for name, shape in self.shapes.items()}
        bounds = np.concatenate([self.at(i, name, points) for i in some for name, points in every.items()])
        self.low, self.high = bounds.min(0), bounds.max(0)
        self.size = float((self.high - self.low).max()) or 1.0
        self.u = 0.02 * self.size  # half a symbol

    def _gauges(self) -> list[Any]:
        """Those that hold a value, and those of springs."""
        springs = [f.on for f in self.mech.forces if isinstance(f, Spring)]
        named = [on for on in springs if isinstance(on, str)]
        held = [g for g in self.mech.gauges if g.value is not None or g.name in named]
        return held + [on for on in springs if not isinstance(on, str)]

    def places(self, shape: Shape) -> np.ndarray:
        """Joints and points of a body, the ends of rods and springs on it; where there is only one of these, also its
        center of mass."""
        rods = [end for rod in self.rods for end, owner in zip(self.feet(rod), rod.bodies) if owner == shape.body]
        shape = shape._replace(points=shape.points | {f"{i}": end for i, end in enumerate(rods)})
        body, places = self.mech.body(shape.body), shape.skeleton
        if len(places) == 1 and float(body.mass) > 0:
            center = np.asarray(body.center)[None, : self.dim]
            places = np.unique(np.concatenate([places, center]), axis=0)
        return places

    def _extent(self, shape: Shape) -> np.ndarray:
        """All points that there are of a body."""
        return np.concatenate([self.places(shape).reshape(-1, self.dim), *(o.points for o in shape.outlines)])

    def feet(self, rod: Distance) -> list[np.ndarray]:
        """The ends of a rod, each in the frame of its body."""
        return [np.resize([*np.asarray(p), 0.0], self.dim) for p in (rod.point_a, rod.point_b)]

    def at(self, row: Any, body: str, points: Any) -> np.ndarray:
        """Points of a body in ground."""
        return into(self.X[row, self.mech.links.index(body)], np.asarray(points).reshape(-1, self.dim))

    def seen(self, row: Any, joint: Joint, side: str) -> Mark:
        """A joint as seen on one of its bodies, in ground."""
        body, m = (joint.body_a if side == "a" else joint.body_b), self.marks[joint.name, side]
        place, end = self.at(row, body, [m.place, m.place + m.axis])
        return Mark(m.joint, m.kind, place, end - place)

    def travels(self, joint: Joint) -> np.ndarray:
        """How far a slide is out in each of the rows."""
        n, a, b = self.dim, self.marks[joint.name, "a"], self.marks[joint.name, "b"]
        X_A, X_B = (self.X[:, self.mech.links.index(body)] for body in (joint.body_a, joint.body_b))
        apart = X_B[:, :n, :n] @ b.place + X_B[:, :n, 3] - (X_A[:, :n, :n] @ a.place + X_A[:, :n, 3])
        return np.sum(apart * (X_A[:, :n, :n] @ a.axis), 1)

    def bodies(self, axes: Any, row: Any, alpha: Any = 1.0) -> None:
        for shape in self.shapes.values():
            if shape.body != GROUND:
                self._body(axes, row, shape, alpha)
        for rod in self.rods:
            if rod.value is not None:
                line(axes, self._ends(row, rod), INK, 1.2, alpha, 3.4)
        for joint in self.mech.joints:
            self._wheels(axes, row, joint, alpha)

    def _body(self, axes: Any, row: Any, shape: Shape, alpha: Any) -> None:
        color, here = self.colors[shape.body], lambda points: self.at(row, shape.body, points)
        fill(axes, [here(o.points) for o in shape.outlines if o.closed], color, alpha)
        for outline in shape.outlines:
            points = here(outline.points)
            lw = 1.1 if outline.closed else 1.8
            line(axes, np.concatenate([points, points[:1]]) if outline.closed else points, color, lw, alpha, 3.5)
        for bone in bones(shape):
            line(axes, here(bone), color, 2.2, (0.45 if shape.outlines else 1.0) * alpha, 3.2)
        if not shape.outlines:
            hull = _hull(self.places(shape))
            if len(hull) > 2:
                fill(axes, [here(hull)], color, alpha)
            if len(hull) > 1:
                line(axes, here(np.concatenate([hull, hull[:1]])), color, 2.2 if len(hull) == 2 else 1.4, alpha, 3.5)
            if len(hull) < 2 and not any(m.kind == "prismatic" for m in shape.marks):
                for axis in np.eye(self.dim):  # nothing else to see of it than its frame
                    line(axes, here([0 * axis, 2.5 * self.u * axis]), color, 1.4, alpha, 3.5)

    def _ends(self, row: Any, rod: Distance) -> np.ndarray:
        return np.concatenate([self.at(row, body, end) for body, end in zip(rod.bodies, self.feet(rod))])

    def _wheels(self, axes: Any, row: Any, joint: Joint, alpha: Any) -> None:
        """Pitch circles of gears, unless the wheels have outlines."""
        pair, (a, b) = joint.pair, (self.seen(row, joint, side) for side in "ab")
        if isinstance(pair, GearPair):
            d, k = float(np.linalg.norm(b.place - a.place)), float(pair.ratio)
            radii = abs(d * k / (1 + k)), abs(d / (1 + k))
        elif isinstance(pair, RollingPair):
            radii = abs(float(pair.radius_a)), abs(float(pair.radius_b))
        elif isinstance(pair, RackPair):
            radii = None, abs(float(pair.radius))
            reach = (abs(self.travels(joint)).max() + radii[1]) * a.axis
            line(axes, np.stack([a.place - reach, a.place + reach]), self.colors[joint.body_a], 1.4, alpha, 3.3)
        else:
            return
        turn = np.linspace(0, 2 * np.pi, 97)
        for wheel, body, radius in ((a, joint.body_a, radii[0]), (b, joint.body_b, radii[1])):
            if radius is None or self.shapes[body].outlines:
                continue
            rim = np.stack([np.cos(turn), np.sin(turn), 0 * turn], 1)[:, : self.dim] * radius
            if self.dim == 3:
                rim = rim @ across(wheel.axis)
            line(axes, wheel.place + rim, self.colors[body], 0.9, alpha, 3.3, ls="-.")
            spoke = self.at(row, body, [0 * wheel.place, np.eye(self.dim)[0] * radius])
            line(axes, spoke, self.colors[body], 0.9, alpha, 3.3)

    def joints(self, axes: Any, row: Any) -> None:
        """Ground, and the symbols of joints, springs and points of interest."""
        self._ground(axes)
        for joint in self.mech.joints:
            a, b = (self.seen(row, joint, side) for side in "ab")
            if self.dim == 3:
                self._joint_in_space(axes, joint, a, b)
            elif a.kind == "prismatic":
                self._slide(axes, joint, a, b)
            elif a.kind == "pinslot":
                along = self.u * (2.5 * a.axis), self.u * np.array([-a.axis[1], a.axis[0]])
                out = max(abs(float((b.place - a.place) @ a.axis)), self.u) * a.axis
                for side in (-0.8, 0.8):
                    ends = [a.place - along[0], a.place + out + along[0]] + side * along[1]
                    line(axes, ends, self.colors[joint.body_a], 1.0, 1.0, 3.6)
                pin(axes, b.place, self.u)
            elif a.kind == "fixed":
                axes.plot(*a.place, "s", color=INK, ms=3, zorder=6)
            elif a.kind == "revolute":
                if GROUND in (joint.body_a, joint.body_b):
                    pivot(axes, a.place, self.u)
                pin(axes, a.place, self.u)
        for rod in self.rods:
            ends = self._ends(row, rod)
            if rod.value is None:
                line(axes, coil(ends, self.u), INK, 0.9, 1.0, 3.1)
            for end in ends:
                pin(axes, end, 0.7 * self.u)
        for shape in self.shapes.values():
            for point in shape.points.values():
                here, inside = self.at(row, shape.body, point)[0], self.colors[shape.body]
                axes.plot(*here, "o", color=INK, mfc=inside, ms=3.5, mew=0.6, zorder=6)

    def _ground(self, axes: Any) -> None:
        shape = self.shapes[GROUND]
        for outline in shape.outlines:
            points = np.concatenate([outline.points, outline.points[:1]]) if outline.closed else outline.points
            if self.dim == 2:
                hatched(axes, points, self.u, 1)
            else:
                line(axes, points, INK, 1.2, 1.0, 2.0)

    def _slide(self, axes: Any, joint: Joint, a: Mark, b: Mark) -> None:
        """A block on a rail; a body with outlines has a stem in a guide instead."""
        u, out, across = self.u, self.travels(joint), np.array([-a.axis[1], a.axis[0]])
        color, grounded = self.colors[joint.body_b], joint.body_a == GROUND
        rail = [a.place + (x * a.axis) - (0.9 * u) * across for x in (out.min() - 4 * u, out.max() + 4 * u)]
        outlines = self.shapes[joint.body_b].outlines
        if not outlines:
            hatched(axes, np.array(rail), u) if grounded else line(axes, np.array(rail), SOFT, 1.2, 1.0, 2.0)
            corners = [
                b.place + u * (x * a.axis + 0.9 * y * across) for x, y in ((-1.7, -1), (1.7, -1), (1.7, 1), (-1.7, 1))
            ]
            fill(axes, [np.array(corners)], color, 1.0, 3.3, paper=True)
            line(axes, np.array([*corners, corners[0]]), color, 1.1, 1.0, 3.5)
        elif grounded:
            home = self.marks[joint.name, "b"]
            reach = np.concatenate([o.points for o in outlines]) - home.place
            side = 1.0 if out.mean() >= ((self.low + self.high) / 2 - a.place) @ a.axis else -1.0  # outwards
            depth = float((side * reach @ home.axis).max())
            stem = [b.place + side * x * a.axis for x in (depth, depth + np.ptp(out) + 8 * u)]
            near = side * (float((side * out).max()) + depth + 2 * u)
            line(axes, np.array(stem), color, 2.2, 0.6, 3.1)
            for way in (-1, 1):
                ends = [a.place + near * a.axis, a.place + (near + side * 4 * u) * a.axis]
                ends = np.array(ends) + way * 0.7 * u * across
                hatched(axes, ends if way * side > 0 else ends[::-1], u)

    def _joint_in_space(self, axes: Any, joint: Joint, a: Mark, b: Mark) -> None:
        if a.kind == "composite":
            line(axes, np.stack([a.place, b.place]), SOFT, 1.0, 1.0, 3.3)
        if a.kind in ("planar", "free"):
            return
        if a.kind == "revolute" or a.kind in SLIDES:
            slides = a.kind in SLIDES
            ends = [a.place - 4 * self.u * a.axis, (b.place if slides else a.place) + 4 * self.u * a.axis]
            line(axes, np.array(ends), INK, 0.9, 1.0, 4.0, ls="-." if slides else "-")
        face = INK if GROUND in (joint.body_a, joint.body_b) else "white"
        marker = "P" if a.kind == "universal" else "s" if a.kind in SLIDES else "o"
        axes.plot(*b.place, marker, color=INK, mfc=face, ms=4.5, mew=0.9, zorder=6)

    def contacts(self, axes: Any, found: list[Touching], largest: Any) -> None:
        """Points, normals, and arrows of forces as long as they are strong; `largest` is the longest."""
        for touch in found:
            ends = touch.point + 4 * self.u * touch.normal * np.array([[-1.0], [1.0]])
            line(axes, ends, RED, 0.6, 1.0, 5.0, ls="--")
            axes.plot(*touch.point, "o", color=RED, ms=3, zorder=7)
            if touch.force is not None and largest:
                scale = self._scale(largest)
                arrow(axes, touch.point, touch.normal * (touch.force * scale))
                if touch.friction is not None:
                    color, *_ = KINDS["sticks" if touch.sticks else "slips"]
                    arrow(axes, touch.point, touch.friction * scale, color)

    def reactions(self, axes: Any, found: list[Touching], largest: Any) -> None:
        """Arrows of the forces of joints."""
        for touch in found:
            arrow(axes, touch.point, touch.normal * ((touch.force or 0.0) * self._scale(largest)), INK)

    def _scale(self, largest: float) -> float:
        """The length of an arrow for a force of one."""
        return 0.22 * self.size / largest

    def labels(self, axes: Any, row: Any) -> None:
        """The names of bodies, joints and points."""
        named: dict[tuple, list[Any]] = {}
        for joint in self.mech.joints:
            place, fixed = self.seen(row, joint, "b").place, GROUND in (joint.body_a, joint.body_b)
            aside = np.array([-2.4, 0.4, 0.0] if fixed else [1.6, 1.6, 1.6])[: self.dim] * self.u
            named.setdefault(tuple(np.round(place / self.u)), [place + aside]).append(joint.name)
        for place, *names in named.values():
            label(axes, place, ", ".join(names), INK)
        for shape in self.shapes.values():
            for name, point in shape.points.items():
                label(axes, self.at(row, shape.body, point)[0] + 1.3 * self.u, name, INK)
            places = self.places(shape)
            if shape.outlines:
                places = np.concatenate([o.points for o in shape.outlines])
            if shape.body != GROUND and len(places):
                here = self.at(row, shape.body, places)
                beside = -4.0 * self.u * np.eye(self.dim)[1] * (len(places) == 1)
                if len(_hull(places)) == 2 and self.dim == 2:
                    along = here[-1] - here[0]
                    beside = self.u * np.array([3.6 * along[1], -1.6 * along[0]]) / np.linalg.norm(along)  # wide words
                label(axes, here.mean(0) + beside, shape.body, self.colors[shape.body])


def bones(shape: Shape) -> list[np.ndarray]:
    """Lines from the first joint of a body with outlines to those of its outlines, joints and points that it does not
    lie within."""
    if not shape.outlines or not shape.marks:
        return []
    hub = shape.marks[0].place
    rims = [o.points for o in shape.outlines if o.closed]
    ends = [o.points.mean(0) if o.closed else o.points[len(o.points) // 2] for o in shape.outlines
            if not (o.closed and _inside(o.points, hub))]  # fmt: skip
    others = [m.place for m in shape.marks[1:]] + list(shape.points.values())
    ends += [p for p in others if not any(_inside(rim, p) for rim in rims)]
    return [np.stack([hub, end]) for end in ends if np.linalg.norm(end - hub) > 0]


def _inside(rim: np.ndarray, point: np.ndarray) -> bool:
    """Whether a closed outline goes round a point, in its xy plane."""
    d = rim[:, :2] - point[:2]
    angles = np.unwrap(np.arctan2(*np.concatenate([d, d[:1]]).T[::-1]))
    return bool(abs(angles[-1] - angles[0]) > np.pi)


def _hull(places: np.ndarray) -> np.ndarray:
    """The corners of a link: in the plane, of the polygon round its places; in space, all of them in a row."""
    if len(places) < 3 or places.shape[1] == 3:
        return places
    d = places - places[0]
    if np.linalg.matrix_rank(d, tol=1e-9 * np.abs(d).max()) < 2:
        return places[[0, -1]]
    from scipy.spatial import ConvexHull

    return places[ConvexHull(places).vertices]
