"""Profiles from DXF drawings."""

import os
from typing import Any

import numpy as np

from .._model.profile.base import AbstractElement
from .._model.profile.curves import Spline
from .._model.profile.elements import Arc, Circle, Line
from .._model.profile.profile import Profile
from .._model.profile.shapes import MOST_POINTS


_LARGEST = 1 << 24  # bytes of a drawing


def read_dxf(path: Any, *, layer: str | None = None, hole: bool = False, tolerance: float = 1e-6) -> Profile:
    """A profile from a DXF drawing: its lines, arcs, circles, polylines, ellipses and splines, joined end to end.

    **Arguments:**

    - `path`: of the drawing.
    - `layer`: the name of the layer to read; all of them by default.
    - `hole`: whether it is the boundary of a hole. A closed boundary is turned round as it must be, with the material
        on its left; an open one runs as its first entity is drawn.
    - `tolerance`: by how much ends may miss each other, as a part of the drawing's size. They are drawn together.

    Ellipses and splines become a spline through points of theirs, to about a part in 1e6 of their size.

    !!! Example

        >>> import tempfile, os, mbsjax as mbs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = os.path.join(folder, "plate.dxf")
        ...     mbs.polygon([(0.0, 0.0), (4.0, 0.0), (4.0, 3.0), (0.0, 3.0)], 1.0).to_dxf(file)
        ...     read_dxf(file).kinds
        ('line', 'arc', 'line', 'arc', 'line', 'arc', 'line', 'arc')
    """
    name = os.fspath(path)
    pieces = _pieces(name, layer)
    if not pieces:
        raise ValueError(f"{name}: there is no line, arc, circle, polyline or spline in it" + _of(layer))
    if len(pieces) > MOST_POINTS:
        raise ValueError(f"{name}: there are more than {MOST_POINTS} lines and arcs in it")
    lone = [p for p in pieces if isinstance(p, Circle) or (isinstance(p, Spline) and p.closed)]
    if lone:
        if len(pieces) > 1:
            raise ValueError(f"{name}: a closed curve and other entities do not make one boundary; give a `layer`")
        piece = lone[0]
        if isinstance(piece, Circle):
            return Profile.chain([Circle(piece.center, piece.radius, concave=hole)])
        control = np.asarray(piece.control)
        return Profile.chain([Spline(control[::-1] if (_area(control) < 0) != hole else control)], hole=hole)
    chain, closed = _joined(pieces, tolerance, name)
    if closed and (_area(np.concatenate([_points(e) for e in chain])) < 0) != hole:
        chain = [_turned(e) for e in reversed(chain)]
    smooth = [_smooth(a, b) for a, b in zip(chain, chain[1:] + chain[:1] * closed)]
    try:
        return Profile.chain(chain, closed=closed, smooth=smooth, hole=hole and closed, tolerance=tolerance)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _of(layer: str | None) -> str:
    return "" if layer is None else f" on the layer {layer!r}"


def _pieces(name: str, layer: str | None) -> list[AbstractElement]:
    try:
        import ezdxf
        from ezdxf.lldxf.const import DXFError
    except ImportError as error:
        raise ImportError('a DXF drawing needs ezdxf: pip install "mbsjax[dxf]"') from error
    if os.path.getsize(name) > _LARGEST:
        raise ValueError(f"{name}: a drawing must not be larger than {_LARGEST} bytes")
    found: list[AbstractElement] = []
    try:
        space = ezdxf.readfile(name).modelspace()  # pyright: ignore
        for entity in space:
            if layer is None or entity.dxf.get("layer", "0") == layer:
                found += _read(entity)
            if len(found) > MOST_POINTS:
                break
    except (DXFError, OSError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, OSError) and not isinstance(error, UnicodeError) and error.errno:
            raise
        raise ValueError(f"{name}: it is not a DXF drawing that can be read: {str(error)[:200]}") from error
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    return found


def _read(entity: Any) -> list[AbstractElement]:
    kind, dxf = entity.dxftype(), entity.dxf
    if kind == "LINE":
        return _line(dxf.start, dxf.end)
    if kind == "CIRCLE":
        return [Circle(_xy(dxf.center), dxf.radius)]
    if kind == "ARC":
        turn = (dxf.end_angle - dxf.start_angle) % 360 or 360.0
        return [Arc(_xy(dxf.center), dxf.radius, np.deg2rad(dxf.start_angle), np.deg2rad(turn))]
    if kind in ("LWPOLYLINE", "POLYLINE"):
        return [piece for part in entity.virtual_entities() for piece in _read(part)]
    if kind in ("SPLINE", "ELLIPSE"):
        tool = entity.construction_tool()
        fine = np.array([_xy(p) for p in (tool.approximate(400) if kind == "SPLINE" else tool.vertices(
            tool.params(401)))])  # fmt: skip
        closed = bool(np.allclose(fine[0], fine[-1], atol=1e-9 * np.ptp(fine)))
        return [Spline.through(fine[:-1:2] if closed else fine[::2], closed=closed)]
    return []


def _xy(point: Any) -> tuple[float, float]:
    return float(point[0]), float(point[1])


def _line(a: Any, b: Any) -> list[AbstractElement]:
    a, b = _xy(a), _xy(b)
    return [] if a == b else [Line(a, b)]


def _ends(e: AbstractElement) -> np.ndarray:
    return np.array([e(0.0).position, e(1.0).position])


def _points(e: AbstractElement) -> np.ndarray:
    return np.array([e(s).position for s in (0.0, 0.25, 0.5, 0.75)])


def _area(p: np.ndarray) -> float:
    x, y = p.T
    return float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2


def _turned(e: AbstractElement) -> AbstractElement:
    """The same curve in the other direction."""
    if isinstance(e, Line):
        return Line(e.end, e.start)
    if isinstance(e, Arc):
        sign = -1 if e.concave else 1
        return Arc(e.center, e.radius, e.start + sign * e.turn, e.turn, concave=not e.concave)
    assert isinstance(e, Spline)
    return Spline(e.control[::-1], closed=False)


def _joined(pieces: list[AbstractElement], tolerance: float, name: str) -> tuple[list[AbstractElement], bool]:
    """The pieces in a row, each beginning where the one before ends."""
    ends = np.array([_ends(e) for e in pieces])
    size = float(np.ptp(ends.reshape(-1, 2), 0).max())
    left, chain = list(range(1, len(pieces))), [pieces[0]]
    first, last = ends[0]
    while left:
        found = None
        for at_end, place in ((True, last), (False, first)):
            away = np.linalg.norm(ends[left] - place, axis=2)
            k, side = np.unravel_index(int(away.argmin()), away.shape)
            if away[k, side] <= tolerance * size:
                found = left.pop(int(k)), int(side), at_end
                break
        if found is None:
            raise ValueError(
                f"{name}: its entities do not make one boundary: nothing goes on from ({last[0]:.6g}, {last[1]:.6g}), "
                f"and {len(left)} are left"
            )
        k, side, at_end = found
        piece = pieces[k] if (side == 0) == at_end else _turned(pieces[k])
        far = ends[k][1 - side]
        chain = [*chain, piece] if at_end else [piece, *chain]
        first, last = (first, far) if at_end else (far, last)
    return chain, len(chain) > 1 and bool(np.linalg.norm(first - last) <= tolerance * size)


def _smooth(a: AbstractElement, b: AbstractElement) -> bool:
    turn = float(b(0.0).angle - a(1.0).angle)
    return abs((turn + np.pi) % (2 * np.pi) - np.pi) < 1e-6
