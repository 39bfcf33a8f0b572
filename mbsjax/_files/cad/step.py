"""Profiles from STEP files: the boundaries of plane faces."""

from typing import Any, NamedTuple

import numpy as np

from ..._model.mechanism import unknown
from ..._model.profile.profile import Profile
from .boundary import boundary
from .options import factor, text
from .part21 import Entity, Ref, Word, entities
from .pieces import Piece, bspline, elliptic, segment


_PREFIXES = {"": 1.0, "MILLI": 1e-3, "CENTI": 1e-2, "DECI": 0.1, "MICRO": 1e-6, "NANO": 1e-9, "KILO": 1e3}
_FLAT = 1e-6  # of its size: how far a curve of a plane face may lie off its plane


def read_step(
    path: Any,
    *,
    face: str | int | None = None,
    index: int | None = None,
    hole: bool = False,
    unit: str | None = None,
    tolerance: float = 1e-6,
) -> Profile:
    """A profile from a plane face of a STEP file (AP203, AP214 or AP242): the edges of one of its boundaries.

    **Arguments:**

    - `path`: of the file.
    - `face`: its name, that of the layer it is on, or its number among the plane faces, from 0 in the order of the
        file; needed if there are several.
    - `index`, `hole`, `tolerance`: as in [`mbsjax.read_dxf`][]. The outer boundary of a face is number 0, its holes
        follow by size.
    - `unit`: of the lengths in the profile, as in [`mbsjax.read_dxf`][]; by default the numbers are those of the file.

    x and y of the profile are those of the face's plane (its AXIS2_PLACEMENT_3D). Lines, circles and B-splines up to
    the third degree become elements as they are; ellipses and other splines become arcs, where they are such, or
    splines within 1e-7 of their size. Only text is read, no other program is needed.

    !!! Example

        >>> import pathlib, tempfile
        >>> lines = [
        ...     "ISO-10303-21; HEADER; ENDSEC; DATA;",
        ...     "#1=CARTESIAN_POINT('',(0.,0.,0.)); #2=AXIS2_PLACEMENT_3D('',#1,$,$); #3=PLANE('',#2);",
        ...     "#4=CARTESIAN_POINT('',(5.,0.,0.)); #5=VERTEX_POINT('',#4); #6=CIRCLE('',#2,5.);",
        ...     "#7=EDGE_CURVE('',#5,#5,#6,.T.); #8=ORIENTED_EDGE('',*,*,#7,.T.); #9=EDGE_LOOP('',(#8));",
        ...     "#10=FACE_OUTER_BOUND('',#9,.T.); #11=ADVANCED_FACE('rim',(#10),#3,.T.);",
        ...     "ENDSEC; END-ISO-10303-21;",
        ... ]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "disc.step")
        ...     _ = file.write_text(" ".join(lines))
        ...     read_step(file, face="rim")
        Profile(circle, closed)
    """
    name, content = text(path)
    try:
        file = _File(entities(content))
        faces = file.faces()
        if not faces:
            raise ValueError("there is no plane face in it (ADVANCED_FACE on a PLANE)")
        number = _face(faces, face)
        pieces = file.edges(faces[number])
        scale = factor(unit, file.meters(), name)
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError) as error:
        if isinstance(error, ValueError) and str(error).startswith(name):
            raise
        hint = (
            "" if isinstance(error, ValueError) else f"it is not a STEP file that can be read: {type(error).__name__} "
        )
        raise ValueError(f"{name}: {hint}{error}") from error
    pieces = [p.scaled(scale) for p in pieces] if scale != 1 else pieces
    name = f"{name}, face {number}"
    return boundary(pieces, name, index=index, hole=hole, closed=True, tolerance=tolerance)


class _Frame(NamedTuple):
    """An AXIS2_PLACEMENT_3D: its origin, and its axes as rows."""

    origin: np.ndarray
    axes: np.ndarray

    def local(self, p: np.ndarray) -> np.ndarray:
        return self.axes @ (p - self.origin)


class _Face(NamedTuple):
    number: int  # of the entity
    names: tuple[str, ...]
    plane: _Frame
    bounds: list[Any]

    def __str__(self) -> str:
        x, y, z = self.plane.axes[2].round(6) + 0.0
        return (
            f"{' '.join(map(repr, self.names)) or 'no name'}, normal ({x:g}, {y:g}, {z:g}), {len(self.bounds)} bound(s)"
        )


def _face(faces: list[_Face], wanted: str | int | None) -> int:
    listed = "; ".join(f"{k}: {face}" for k, face in enumerate(faces[:12])) + ("; ..." if len(faces) > 12 else "")
    if isinstance(wanted, str):
        found = [k for k, face in enumerate(faces) if wanted in face.names]
        if not found:
            raise ValueError(unknown("plane face", wanted, sorted({n for face in faces for n in face.names})))
    elif wanted is not None:
        found = [wanted] if 0 <= wanted < len(faces) else []
    else:
        found = list(range(len(faces)))
    if len(found) != 1:
        what = f"there are {len(found)} plane faces" if found else f"there is no plane face {wanted!r}"
        raise ValueError(f"{what}; choose one by name or number, `face`: {listed}")
    return found[0]


class _File:
    """The entities of a file, and what of them makes faces."""

    def __init__(self, found: dict[int, Entity]):
        self.found = found

    def get(self, ref: Any, *kinds: str) -> list[Any]:
        """The parameters of an entity, which is of one of these kinds."""
        entity = self.found.get(ref.number, {}) if isinstance(ref, Ref) else {}
        for kind in kinds:
            if kind in entity:
                return entity[kind]
        number = f"#{ref.number}" if isinstance(ref, Ref) else repr(ref)
        raise ValueError(f"{number} must be a {' or '.join(kinds)}, and is {' '.join(entity) or 'not there'}")

    def is_a(self, ref: Any, kind: str) -> bool:
        return isinstance(ref, Ref) and kind in self.found.get(ref.number, {})

    def faces(self) -> list[_Face]:
        """All plane faces."""
        layers: dict[int, list[str]] = {}
        for entity in self.found.values():
            for (name, *_), *_, items in [x for x in (entity.get("PRESENTATION_LAYER_ASSIGNMENT"),) if x]:
                for item in items:
                    layers.setdefault(item.number, []).append(name)
        found = []
        for number, entity in self.found.items():
            given = entity.get("ADVANCED_FACE") or entity.get("FACE_SURFACE")
            if given and self.is_a(given[2], "PLANE"):
                names = tuple(x for x in (*given[0], *layers.get(number, ())) if x and x != "NONE")
                found.append(_Face(number, names, self.frame(self.get(given[2], "PLANE")[1]), given[1]))
        return found

    def vector(self, ref: Any, *kinds: str) -> np.ndarray:
        return np.array([*self.get(ref, *kinds)[1], 0.0, 0.0][:3], float)

    def point(self, ref: Any) -> np.ndarray:
        return self.vector(ref, "CARTESIAN_POINT")

    def frame(self, ref: Any) -> _Frame:
        _, place, *more = self.get(ref, "AXIS2_PLACEMENT_3D")
        axis, toward = (self.vector(x, "DIRECTION") if isinstance(x, Ref) else None for x in (*more, None, None)[:2])
        z = np.array([0.0, 0, 1]) if axis is None else axis / np.linalg.norm(axis)
        x = np.eye(3)[0 if abs(z[0]) < 0.9 else 1] if toward is None else toward
        x = x - z * (x @ z)
        x = x / np.linalg.norm(x)
        return _Frame(self.point(place), np.array([x, np.cross(z, x), z]))

    def edges(self, face: _Face) -> list[Piece]:
        """The curves of all bounds of a face, in its plane."""
        found: list[Piece] = []
        for bound in face.bounds:
            loop = self.get(bound, "FACE_OUTER_BOUND", "FACE_BOUND")[1]
            if self.is_a(loop, "POLY_LOOP"):
                corners = [self._flat(face, self.point(p)) for p in self.get(loop, "POLY_LOOP")[1]]
                found += [s for a, b in zip(corners, corners[1:] + corners[:1]) for s in segment(a, b)]
                continue
            for oriented in self.get(loop, "EDGE_LOOP")[1]:
                found += self.edge(face, self.get(oriented, "ORIENTED_EDGE")[3])
        return found

    def edge(self, face: _Face, ref: Any) -> list[Piece]:
        _, first, last, curve, sense = self.get(ref, "EDGE_CURVE")
        a, b = (self.point(self.get(v, "VERTEX_POINT")[1]) for v in (first, last))
        while any(self.is_a(curve, kind) for kind in ("SURFACE_CURVE", "SEAM_CURVE", "INTERSECTION_CURVE")):
            curve = self.get(curve, "SURFACE_CURVE", "SEAM_CURVE", "INTERSECTION_CURVE")[1]
        ends = self._flat(face, a), self._flat(face, b)
        if self.is_a(curve, "LINE"):
            return segment(*ends)
        if self.is_a(curve, "CIRCLE") or self.is_a(curve, "ELLIPSE"):
            return self._conic(face, curve, *((a, b) if sense == Word("T") else (b, a)))
        return self._spline(face, curve, *ends)

    def _flat(self, face: _Face, p: np.ndarray, size: float = 0.0) -> np.ndarray:
        """A point in the plane of a face."""
        x, y, z = face.plane.local(p)
        if abs(z) > _FLAT * max(size, abs(x), abs(y)):
            raise ValueError(f"the face #{face.number} is not plane: a point of its edge lies {z:.3g} off its plane")
        return np.array([x, y])

    def _conic(self, face: _Face, curve: Any, a: np.ndarray, b: np.ndarray) -> list[Piece]:
        """A circle or an ellipse from a to b, in the direction of its frame; all of it, if they are one point."""
        _, place, *radii = self.get(curve, "CIRCLE", "ELLIPSE")
        frame, size = self.frame(place), np.array([radii[0], radii[-1]])
        across = face.plane.axes @ (frame.axes * np.array([*size, 1.0])[:, None]).T
        if np.abs(across[2, :2]).max() > _FLAT * size.max():
            raise ValueError(f"the face #{face.number} is not plane: a circle of its edge is tilted")
        start, end = (np.arctan2(*(frame.local(p)[:2] / size)[::-1]) for p in (a, b))
        turn = (end - start) % (2 * np.pi)
        turn = 2 * np.pi if np.linalg.norm(a - b) <= 1e-9 * size.max() else turn
        center = self._flat(face, frame.origin, float(size.max()))
        return elliptic(center, across[:2, 0], across[:2, 1], float(start), float(turn), directed=True)

    def _spline(self, face: _Face, curve: Any, a: np.ndarray, b: np.ndarray) -> list[Piece]:
        entity = self.found[curve.number]
        if "RATIONAL_B_SPLINE_CURVE" in entity or "B_SPLINE_CURVE" in entity:
            degree, control, *_ = entity["B_SPLINE_CURVE"]
            weights = entity.get("RATIONAL_B_SPLINE_CURVE", [None])[0]
            counts, knots, *_ = self.get(curve, "B_SPLINE_CURVE_WITH_KNOTS")
        else:
            given = self.get(curve, "LINE", "CIRCLE", "ELLIPSE", "B_SPLINE_CURVE_WITH_KNOTS")
            _, degree, control, _, _, _, counts, knots, *_ = given
            weights = None
        points = np.array([self.point(p) for p in control])
        size = float(np.ptp(points, 0).max())
        flat = np.array([self._flat(face, p, size) for p in points])
        pieces = bspline(int(degree), np.repeat(knots, np.array(counts, int)), flat, weights)
        for end in (a, b):
            away = min(float(np.linalg.norm(end - p.at(s))) for p in pieces for s in (0.0, 1.0))
            if away > 1e-5 * size:
                raise ValueError(
                    f"the spline #{curve.number} goes beyond its edge, which ends at ({end[0]:.6g}, {end[1]:.6g}): "
                    "write the file with curves that are cut at their ends"
                )
        return pieces

    def meters(self) -> float | None:
        """How long the unit of the file is."""
        for entity in self.found.values():
            for unit in (entity.get("GLOBAL_UNIT_ASSIGNED_CONTEXT") or [[]])[0]:
                if self.is_a(unit, "LENGTH_UNIT"):
                    return self._length(unit)
        return None

    def _length(self, unit: Any) -> float:
        entity = self.found[unit.number]
        if "SI_UNIT" in entity:
            prefix = entity["SI_UNIT"][0]
            return _PREFIXES[prefix.name]
        measure = self.get(entity["CONVERSION_BASED_UNIT"][1], "LENGTH_MEASURE_WITH_UNIT", "MEASURE_WITH_UNIT")
        number = measure[-2][0] if isinstance(measure[-2], list) else measure[-2]
        return float(number) * self._length(measure[-1])
