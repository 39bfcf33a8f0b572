"""Profiles from DXF drawings."""

from typing import Any

import numpy as np

from ..._model.profile.drawing import CODES
from ..._model.profile.profile import Profile
from ..._model.profile.shapes import MOST_POINTS
from .boundary import boundary
from .options import UNITS, checked, factor
from .pieces import Piece, bspline, elliptic, segment


_METERS = {CODES[name]: meters for name, meters in UNITS.items()}  # of $INSUNITS


def read_dxf(
    path: Any,
    *,
    layer: str | None = None,
    index: int | None = None,
    hole: bool = False,
    closed: bool | None = None,
    unit: str | None = None,
    tolerance: float = 1e-6,
) -> Profile:
    """A profile from a DXF drawing: its lines, arcs, circles, polylines, ellipses and splines, joined end to end.

    **Arguments:**

    - `path`: of the drawing.
    - `layer`: the name of the layer to read; all of them by default.
    - `index`: which boundary, where there are several: the largest is number 0.
    - `hole`: whether it is the boundary of a hole. A closed boundary is turned round as it must be, with the material
        on its left; an open one runs as its first entity is drawn that has a direction, which an arc has not.
    - `closed`: whether it must be closed, or may be open. By default it may, unless its ends nearly meet.
    - `unit`: of the lengths in the profile: `"m"`, `"cm"`, `"mm"`, `"um"`, `"km"`, `"in"` or `"ft"`; that of the
        drawing by default, which leaves all numbers as they are.
    - `tolerance`: by how much ends that meet may miss each other, as a part of the drawing's size.

    What is drawn twice counts once. Lines, arcs and splines up to the third degree become elements as they are;
    ellipses and other splines become splines through points of theirs, within 1e-7 of their size.

    !!! Example

        >>> import tempfile, os, mbsjax as mbs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = os.path.join(folder, "plate.dxf")
        ...     mbs.polygon([(0.0, 0.0), (4.0, 0.0), (4.0, 3.0), (0.0, 3.0)], 1.0).to_dxf(file)
        ...     read_dxf(file).kinds
        ('line', 'arc', 'line', 'arc', 'line', 'arc', 'line', 'arc')
    """
    name = checked(path)
    pieces, meters = _pieces(name, layer)
    name = name if layer is None else f"{name}, layer {layer!r}"
    scale = factor(unit, meters, name)
    if scale != 1:
        pieces = [p.scaled(scale) for p in pieces]
    return boundary(pieces, name, index=index, hole=hole, closed=closed, tolerance=tolerance)


def _pieces(name: str, layer: str | None) -> tuple[list[Piece], float | None]:
    """The curves of a layer, and how many meters the drawing's unit is."""
    try:
        import ezdxf
        from ezdxf.lldxf.const import DXFError
    except ImportError as error:
        raise ImportError('a DXF drawing needs ezdxf: pip install "mbsjax[dxf]"') from error
    found: list[Piece] = []
    layers: dict[str, None] = {}
    try:
        drawing = ezdxf.readfile(name)  # pyright: ignore
        for entity in drawing.modelspace():
            on = entity.dxf.get("layer", "0")
            layers[on] = None
            if layer is None or on == layer:
                found += _read(entity)
            if len(found) > MOST_POINTS:
                break
        meters = _METERS.get(drawing.header.get("$INSUNITS", 0))
    except (DXFError, OSError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, OSError) and not isinstance(error, UnicodeError) and error.errno:
            raise
        raise ValueError(f"{name}: it is not a DXF drawing that can be read: {str(error)[:200]}") from error
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if layer is not None and layer not in layers:
        raise ValueError(f"{name}: there is nothing on the layer {layer!r}; there are {', '.join(map(repr, layers))}")
    return found, meters


def _read(entity: Any) -> list[Piece]:
    kind, dxf = entity.dxftype(), entity.dxf
    if kind == "LINE":
        return segment(dxf.start, dxf.end)
    if kind in ("CIRCLE", "ARC"):
        mirrored = np.array([np.sign(_upright(entity)), 1.0])  # seen from below, x runs to the left
        first, last = (dxf.start_angle, dxf.end_angle) if kind == "ARC" else (0.0, 360.0)
        turn = (last - first) % 360 or 360.0
        u, v = np.eye(2) * dxf.radius * mirrored
        return elliptic(np.array(dxf.center)[:2] * mirrored, u, v, np.deg2rad(first), np.deg2rad(turn))
    if kind in ("LWPOLYLINE", "POLYLINE"):
        return [piece for part in entity.virtual_entities() for piece in _read(part)]
    if kind == "ELLIPSE":
        major = np.array(dxf.major_axis)[:2]
        minor = np.array([-major[1], major[0]]) * dxf.ratio * np.sign(_upright(entity))
        turn = (dxf.end_param - dxf.start_param) % (2 * np.pi) or 2 * np.pi
        return elliptic(dxf.center, major, minor, dxf.start_param, turn)
    if kind == "SPLINE":
        tool = entity.construction_tool()
        return bspline(tool.degree, tool.knots(), [tuple(p) for p in tool.control_points], tool.weights() or None)
    return []


def _upright(entity: Any) -> float:
    """The z component of the direction that an entity is seen from."""
    x, y, z = entity.dxf.get("extrusion", (0.0, 0.0, 1.0))
    if abs(x) + abs(y) > 1e-9 * abs(z):
        raise ValueError(f"the {entity.dxftype()} at {tuple(entity.dxf.center)} does not lie in the xy plane")
    return z
