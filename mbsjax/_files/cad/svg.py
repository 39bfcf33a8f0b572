"""Profiles from SVG drawings: path data, basic shapes, transforms."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._model.profile.profile import Profile
from .boundary import boundary
from .options import UNITS, factor, text
from .pieces import Piece, bezier, elliptic, segment


_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_SHAPES = ("path", "line", "polyline", "polygon", "rect", "circle", "ellipse")
_HIDDEN = ("defs", "symbol", "clipPath", "mask", "marker", "pattern")  # drawn only where they are used
_ARGUMENTS = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "A": 7, "Z": 0}
_LABEL = "{http://www.inkscape.org/namespaces/inkscape}label"


def read_svg(
    path: Any,
    *,
    id: str | None = None,
    index: int | None = None,
    hole: bool = False,
    closed: bool | None = None,
    unit: str | None = None,
    tolerance: float = 1e-6,
) -> Profile:
    """A profile from an SVG drawing: its paths, lines, polygons, rectangles, circles and ellipses, joined end to end.

    **Arguments:**

    - `path`: of the drawing.
    - `id`: of the shape or group to read, or the name of its layer (Inkscape's label); all shapes by default.
    - `index`, `hole`, `closed`, `tolerance`: as in [`mbsjax.read_dxf`][]. An open boundary runs as its first
        curve does.
    - `unit`: of the lengths in the profile, as in [`mbsjax.read_dxf`][]: it follows from the `width` and the `viewBox`
        of the drawing, with 96 pixels to an inch. By default the numbers are those of the drawing.

    In a drawing y points down. The profile has y up: a point (x, y) of the drawing is (x, -y), so that it looks as it
    does on the screen. Lines, circular arcs and Bezier curves become elements as they are, if transforms leave circles
    round; elliptic arcs become splines within 1e-7 of their size. A Bezier curve whose handle lies in its own end has
    no direction there; it is moved by less than 1e-6 of its size.

    !!! Example

        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "part.svg")
        ...     _ = file.write_text('<svg><path id="lever" d="M0 0 H4 A1 1 0 0 0 4 -2 H0 Z"/></svg>')
        ...     read_svg(file, id="lever").kinds
        ('line', 'arc', 'line', 'point', 'line', 'point')
    """
    name, content = text(path)
    try:
        root = _parsed(content)
        flip = np.array([[1.0, 0, 0], [0, -1, 0]])
        found = list(_shapes(root, flip, id is None, id))
        if id is not None and not found:
            known = ", ".join(map(repr, _names(root))) or "none"
            raise ValueError(f"there is no shape with the id or in the layer {id!r}; there are {known}")
        pieces = [p for shape, matrix in found for p in _read(shape, matrix)]
        scale = factor(unit, _meters(root), name)
    except ValueError as error:
        raise ValueError(str(error) if str(error).startswith(name) else f"{name}: {error}") from error
    pieces = [p.scaled(scale) for p in pieces] if scale != 1 else pieces
    name = name if id is None else f"{name}, {id!r}"
    return boundary(pieces, name, index=index, hole=hole, closed=closed, tolerance=tolerance)


def _parsed(content: str) -> ET.Element:
    if "<!ENTITY" in content:
        raise ValueError("it defines entities, which are not read")
    try:
        root = ET.fromstring(content)
    except (ET.ParseError, ValueError) as error:
        raise ValueError(f"it is not an SVG drawing that can be read: {error}") from error
    if _tag(root) != "svg":
        raise ValueError(f"it is not an SVG drawing: its root is <{_tag(root)}>")
    return root


def _tag(node: ET.Element) -> str:
    return node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""


def _names(root: ET.Element) -> list[str]:
    hidden = {inner for n in root.iter() if _tag(n) in _HIDDEN for inner in n.iter()}
    nodes = [n for n in root.iter() if _tag(n) in (*_SHAPES, "g") and n not in hidden]
    return list(dict.fromkeys(x for n in nodes for x in (n.get("id"), n.get(_LABEL)) if x))


def _shapes(root: ET.Element, matrix: np.ndarray, inside: bool, id: str | None) -> Iterator[tuple[ET.Element, Any]]:
    """Shapes below a node that belong to what is asked for, and how each is moved."""
    stack = [(root, matrix, inside)]
    while stack:
        node, matrix, inside = stack.pop()
        inside = inside or id in (node.get("id"), node.get(_LABEL))
        if node is not root:
            matrix = _product(matrix, _transform(node.get("transform", "")))
        if inside and _tag(node) == "use":
            raise ValueError("a <use> is not read: make it a shape of its own (unlink the clone)")
        if inside and _tag(node) in _SHAPES:
            yield node, matrix
        if _tag(node) not in _HIDDEN:
            stack += [(child, matrix, inside) for child in reversed(node)]


def _meters(root: ET.Element) -> float | None:
    """How long one unit of the drawing is: of its viewBox, or a pixel."""
    pixel = UNITS["in"] / 96
    width = re.fullmatch(rf"\s*({_NUMBER})\s*([a-z]*)\s*", root.get("width", ""))
    box = _numbers(root.get("viewBox", ""))
    if width is None or float(width[1]) <= 0 or (box and len(box) != 4):
        return None if box else pixel
    units = UNITS | {"": pixel, "px": pixel, "pt": UNITS["in"] / 72, "pc": UNITS["in"] / 6}
    if width[2] not in units:
        raise ValueError(f"an unknown unit {width[2]!r} of its width")
    return float(width[1]) * units[width[2]] / box[2] if box and box[2] > 0 else pixel


# -- transforms: 2x3 matrices ----------------------------------------------------------------------------------


def _product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.column_stack([A[:, :2] @ B[:, :2], A[:, :2] @ B[:, 2] + A[:, 2]])


def _transform(given: str) -> np.ndarray:
    matrix = np.eye(2, 3)
    for kind, numbers in re.findall(r"(\w+)\s*\(([^)]*)\)", given):
        x = _numbers(numbers)
        counts = {"translate": (1, 2), "scale": (1, 2), "rotate": (1, 3), "skewX": (1,), "skewY": (1,), "matrix": (6,)}
        if len(x) not in counts.get(kind, ()):
            raise ValueError(f"a transform that cannot be read: {kind}({numbers})")
        if kind == "translate":
            one = np.array([[1.0, 0, x[0]], [0, 1, x[1] if len(x) > 1 else 0.0]])
        elif kind == "scale":
            one = np.array([[x[0], 0, 0], [0, x[-1], 0]])
        elif kind == "rotate":
            c, s = np.cos(np.deg2rad(x[0])), np.sin(np.deg2rad(x[0]))
            R, about = np.array([[c, -s], [s, c]]), np.array(x[1:] or [0.0, 0.0])
            one = np.column_stack([R, about - R @ about])
        elif kind == "matrix":
            one = np.array(x).reshape(3, 2).T
        else:
            t = np.tan(np.deg2rad(x[0]))
            one = np.array([[1.0, t, 0], [0, 1, 0]] if kind == "skewX" else [[1.0, 0, 0], [t, 1, 0]])
        matrix = _product(matrix, one)
    return matrix


def _numbers(given: str) -> list[float]:
    return [float(x) for x in re.findall(_NUMBER, given)]


def _length(node: ET.Element, key: str, default: float = 0.0) -> float:
    given = node.get(key)
    if given is None:
        return default
    if not re.fullmatch(rf"\s*{_NUMBER}(px)?\s*", given):
        raise ValueError(f"`{key}` of <{_tag(node)}> must be a number, got {given!r}")
    return _numbers(given)[0]


# -- shapes ----------------------------------------------------------------------------------------------------


class _Pen:
    """Draws curves where a matrix puts them."""

    def __init__(self, matrix: np.ndarray):
        self.matrix, self.pieces = matrix, list[Piece]()
        self.here = self.begin = np.zeros(2)

    def _moved(self, p: Any) -> np.ndarray:
        return self.matrix[:, :2] @ p + self.matrix[:, 2]

    def move(self, p: np.ndarray) -> None:
        self.here = self.begin = p

    def line(self, p: np.ndarray) -> None:
        self.pieces += segment(self._moved(self.here), self._moved(p))
        self.here = p

    def curve(self, *points: np.ndarray) -> None:
        self.pieces += bezier([self._moved(p) for p in (self.here, *points)])
        self.here = points[-1]

    def ellipse(self, center: Any, u: Any, v: Any, start: float, turn: float) -> None:
        M = self.matrix[:, :2]
        self.pieces += elliptic(self._moved(center), M @ u, M @ v, start, turn, directed=True)

    def arc(self, radii: np.ndarray, tilt: float, large: bool, sweep: bool, p: np.ndarray) -> None:
        """To a point, on an ellipse (SVG 1.1, appendix F.6)."""
        radii = np.abs(radii)
        if not radii.all() or not np.any(p != self.here):
            return self.line(p)
        c, s = np.cos(np.deg2rad(tilt)), np.sin(np.deg2rad(tilt))
        R = np.array([[c, -s], [s, c]])
        half = R.T @ (self.here - p) / 2 / radii  # where the ellipse is the unit circle
        far = float(half @ half)
        if far > 1:
            radii, half, far = radii * np.sqrt(far), half / np.sqrt(far), 1.0
        aside = np.sqrt(max(1 / far - 1, 0.0)) * (-1 if large == sweep else 1)
        middle = aside * np.array([half[1], -half[0]])
        first, last = (np.arctan2(*x[::-1]) for x in (half - middle, -half - middle))
        turn = (last - first) % (2 * np.pi) - (0 if sweep else 2 * np.pi)
        center = R @ (radii * middle) + (self.here + p) / 2
        self.ellipse(center, R[:, 0] * radii[0], R[:, 1] * radii[1], float(first), float(turn))
        self.here = p


def _read(node: ET.Element, matrix: np.ndarray) -> list[Piece]:
    pen, kind = _Pen(matrix), _tag(node)
    if kind == "path":
        _path(pen, node.get("d", ""))
    elif kind in ("polyline", "polygon", "line"):
        ends = [_length(node, key) for key in ("x1", "y1", "x2", "y2")]
        numbers = ends if kind == "line" else _numbers(node.get("points", ""))
        points = np.array(numbers[: len(numbers) // 2 * 2]).reshape(-1, 2)
        if len(points):
            pen.move(points[0])
        for p in [*points[1:], *points[:1]] if kind == "polygon" else points[1:]:
            pen.line(p)
    elif kind == "rect":
        _rectangle(pen, node)
    else:
        r = _length(node, "r")
        rx, ry = (r, r) if kind == "circle" else (_length(node, "rx"), _length(node, "ry"))
        pen.ellipse((_length(node, "cx"), _length(node, "cy")), (rx, 0.0), (0.0, ry), 0.0, 2 * np.pi)
    return pen.pieces


def _rectangle(pen: _Pen, node: ET.Element) -> None:
    x, y, w, h = (_length(node, key) for key in ("x", "y", "width", "height"))
    rx = _length(node, "rx", _length(node, "ry"))
    ry = _length(node, "ry", rx)
    r = np.array([min(rx, w / 2), min(ry, h / 2)])
    corners = np.array([[x, y], [x + w, y], [x + w, y + h], [x, y + h]])
    for k, (a, b) in enumerate(zip(corners, np.roll(corners, -1, 0))):
        along = np.sign(b - a) * r
        if k == 0:
            pen.move(a + along)
        pen.line(b - along)
        after = np.sign(corners[(k + 2) % 4] - b) * r
        pen.arc(r, 0.0, False, True, b + after)


def _path(pen: _Pen, data: str) -> None:
    """Draws path data."""
    command, handle = "", None  # of the curve before, for a smooth one
    for command, x in _commands(data):
        kind, here = command.upper(), pen.here
        relative = command.islower()
        to = np.array(x[-2:]) + (here if relative else 0.0) if kind not in "HVZ" else here
        points = [np.array(x[k : k + 2]) + (here if relative else 0.0) for k in range(0, len(x) - 1, 2)]
        mirrored = here if handle is None else 2 * here - handle[1]
        if kind == "M":
            pen.move(to)
        elif kind == "L":
            pen.line(to)
        elif kind in "HV":
            to = here.copy()
            to["HV".index(kind)] = x[0] + (to["HV".index(kind)] if relative else 0.0)
            pen.line(to)
        elif kind in "CS":
            points = points if kind == "C" else [mirrored if handle and handle[0] == "C" else here, *points]
            pen.curve(*points)
        elif kind in "QT":
            points = points if kind == "Q" else [mirrored if handle and handle[0] == "Q" else here, *points]
            pen.curve(*points)
        elif kind == "A":
            pen.arc(np.array(x[:2]), x[2], bool(x[3]), bool(x[4]), to)
        else:
            pen.line(pen.begin)
        handle = ("C" if kind in "CS" else "Q", points[-2]) if kind in "CSQT" else None


def _commands(data: str) -> Iterator[tuple[str, list[float]]]:
    """The commands of path data, each with its numbers; flags of arcs may stand without a space behind them."""
    space, place, command = re.compile(r"[\s,]*"), 0, ""
    number, flag = re.compile(_NUMBER), re.compile("[01]")
    while (place := space.match(data, place).end()) < len(data):  # pyright: ignore
        if data[place].upper() in _ARGUMENTS:
            command, place = data[place], place + 1
        elif not command or command in "Zz":
            raise ValueError(f"path data that cannot be read, at {data[place : place + 20]!r}")
        kind, x = command.upper(), []
        for k in range(_ARGUMENTS[kind]):
            place = space.match(data, place).end()  # pyright: ignore
            found = (flag if kind == "A" and k in (3, 4) else number).match(data, place)
            if found is None:
                raise ValueError(
                    f"path data that cannot be read: {command!r} needs more numbers, at {data[place:][:20]!r}"
                )
            x.append(float(found[0]))
            place = found.end()
        yield command, x
        command = {"M": "L", "m": "l"}.get(command, command)
