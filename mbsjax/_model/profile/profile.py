"""A contact profile: elements joined into a boundary."""

import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._programs.custom_types import Matrix4
from ..._programs.modules import AbstractModule
from ..._programs.precision import Threshold, as_float, look, plain_number
from ..._programs.trees import once
from ...frames import PlanarFrame, at
from .base import AbstractCurve, AbstractElement, AbstractPlain, Place
from .curves import Spline
from .drawing import along, draw, new_drawing
from .elements import Circle, Line, Point
from .outline import Outline, outline


_LEAST = Threshold(0.0, 1e-5)  # of the size: no tolerance is finer
_ROWS = 256


class Profile(AbstractModule):
    """The boundary of a body, or a part of it, in a plane of the body: a chain of elements with the material on
    the left. Made by [`mbsjax.Profile.chain`][] and the makers beside it. Every number of the elements is a leaf.

    Elements are numbered from 0 along the chain, the corners between them included; a place has the coordinate
    number + local coordinate (2.4.2-1): 2.25 is a quarter along the third element.
    """

    elements: tuple[AbstractElement, ...]
    frame: PlanarFrame | Matrix4
    closed: bool = eqx.field(static=True)
    corners: tuple[bool, ...] = eqx.field(static=True)
    ends: bool = eqx.field(static=True, default=False)
    names: tuple[str, ...] = eqx.field(static=True, default=())

    @staticmethod
    def chain(
        elements: Iterable[Any],
        *,
        closed: bool = True,
        smooth: bool | Sequence[bool] = False,
        ends: bool = True,
        hole: bool = False,
        frame: Any = None,
        tolerance: float = 1e-9,
        names: Sequence[str] = (),
    ) -> "Profile":
        """Joins elements into a boundary.

        **Arguments:**

        - `elements`: in order, each beginning where the one before ends, the material on the left: counter-clockwise
            round a body, clockwise round a hole in it.
        - `closed`: whether the last one ends where the first begins.
        - `smooth`: junctions that have no corner. At all others a corner is put, which has a number of its own; one
            where the tangents agree, or where the boundary is hollow, has no extent and is never touched. That is
            so whatever the dimensions are, so that elements have the same numbers in all variants.
        - `ends`: whether an open chain ends in points. What comes along beyond its last element then meets that
            point, from whichever side; without it, it meets nothing, and a contact that reaches the end is deleted.
            The points have the last two numbers: where the chain ends, then where it starts. Between its ends an open
            chain has one side: what comes from behind, through the material, is not held up.
        - `hole`: the boundary of a hole, which runs clockwise.
        - `frame`: where its plane lies in the body: `at(x, y, angle)`, or a 4x4 matrix for a plane
            in space; the body's own xy plane by default.
        - `tolerance`: by how much ends may miss each other, as a part of the profile's size.
        - `names`: of the elements, `("flank", "nose", ...)`, by which the viewer tells where contacts are.

        !!! Example

            >>> import mbsjax as mbs
            >>> square = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
            >>> block = Profile.chain([mbs.Line(a, b) for a, b in zip(square, square[1:] + square[:1])])
            >>> block.kinds[:4], block(2.25).position.tolist()
            (('line', 'point', 'line', 'point'), [1.0, 0.25])
        """
        chain: tuple[Any, ...] = tuple(elements)
        if len(chain) == 0:
            raise ValueError("a profile needs at least one element")
        for i, element in enumerate(chain):
            if not isinstance(element, AbstractPlain | AbstractCurve):
                raise ValueError(
                    f"element {i} of a profile must be a Point, Line, Arc, Circle or curve (a subclass of "
                    f"AbstractCurve), got {element!r}"
                )
            if endless(element) and len(chain) > 1:
                raise ValueError(f"element {i} of a profile is closed in itself and cannot be joined with others")
        junctions = len(chain) - (0 if closed else 1)
        if endless(chain[0]):
            closed, smooth = True, True
        rounded = [bool(smooth)] * junctions if isinstance(smooth, bool) else [bool(x) for x in smooth]
        if len(rounded) != junctions:
            raise ValueError(f"`smooth` must tell of {junctions} junctions, got {len(rounded)}")
        if names and (len(names) != len(chain) or not all(isinstance(name, str) and name for name in names)):
            raise ValueError(
                f"`names` of a profile must be a text for each of its {len(chain)} elements, got {names!r}"
            )
        tips = ends and not closed and not isinstance(chain[0], Point) and not isinstance(chain[-1], Point)
        profile = Profile(chain, _frame(frame), closed, tuple(not x for x in rounded), tips, tuple(names))
        most = max(plain_number(tolerance, "the tolerance of a profile", least=0.0), _LEAST())
        look(lambda profile: _check(profile, hole, most), profile)
        return profile

    @property
    def outline(self) -> Outline:
        return outline(self.elements, self.closed, self.corners, self.ends)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each number of the chain is: `"line"`, `"arc"`, ..., `"point"` for corners and ends."""
        return self._numbered([e.kind for e in self.elements], "point", "point")

    @property
    def labels(self) -> tuple[str, ...]:
        """What each number of the chain is called: an element by its name or its kind and number, then `"corner"`
        and `"end"` with their numbers."""
        if len(self.kinds) == 1:
            return self.names or self.kinds
        told = self._numbered(self.names or [e.kind for e in self.elements], "corner", "end")
        plain = self._numbered([not self.names] * len(self.elements), True, True)
        return tuple(f"{what} {i}" if numbered else what for i, (what, numbered) in enumerate(zip(told, plain)))

    def _numbered(self, elements: Sequence[Any], corner: Any, end: Any) -> tuple:
        """Something for each number of the chain: for its elements, for corners, and for ends."""
        corners = [*self.corners, False][: len(elements)]
        found = [x for element, there in zip(elements, corners) for x in ((element, corner) if there else (element,))]
        return (*found, *((end, end) if self.ends else ()))

    def __call__(self, q: Any) -> Place:
        """The place with the coordinate `q` (2.4.2-1)."""
        return _at(self, as_float(q, "a coordinate of a profile"))

    def points(self, fineness: int = 1) -> Float[np.ndarray, "n 2"]:
        """Points along the boundary, in the order of its elements, to draw or to make it; of a closed one, the first
        is not repeated. Lines give their ends, curves as many points as they need, times `fineness`.

        !!! Example

            >>> import mbsjax as mbs
            >>> mbs.polygon([(0.0, 0.0), (2.0, 0.0), (1.0, 1.0)]).points().round(9).tolist()
            [[0.0, 0.0], [2.0, 0.0], [1.0, 1.0]]
        """
        pieces = sampled(self, fineness)
        found = np.concatenate([pieces[0][:1], *(piece[1:] for piece in pieces)])
        return found[:-1] if self.closed else found

    def to_csv(self, path: Any, fineness: int = 8) -> None:
        """Writes its points as a table with the columns x and y; [`mbsjax.from_table`][] makes a smooth curve of it."""
        rows = "".join(f"{x:.17g},{y:.17g}\n" for x, y in self.points(fineness))
        pathlib.Path(path).write_text("x,y\n" + rows)

    def to_dxf(self, path: Any, *, unit: str | None = None) -> None:
        """Writes a drawing: lines, arcs, circles and splines as such, other curves as splines within 1e-7 of their
        size. [`mbsjax.read_dxf`][] reads it. `unit` is what the drawing says of its lengths, which stay as they are:
        `"mm"`, `"cm"`, `"m"`, `"um"`, `"km"`, `"in"` or `"ft"`; by default it has no unit."""
        drawing = new_drawing(unit)
        draw(drawing.modelspace(), self.elements)
        drawing.saveas(path)

    def __repr__(self) -> str:
        kinds = self.kinds
        told = " ".join(kinds) if len(kinds) <= 12 else f"{' '.join(kinds[:6])} ... {kinds[-1]}, {len(kinds)} elements"
        return f"Profile({told}, {'closed' if self.closed else 'open'})"


@once
def _at(profile: Profile, q: Float[Array, ""]) -> Place:
    shape = profile.outline
    n = len(profile.kinds)
    number = jnp.floor(q)
    number = number % n if profile.closed else jnp.clip(number, 0, n - 1)
    return shape.place(number.astype(int), q - jnp.floor(q) if profile.closed else q - number)


def endless(element: AbstractElement) -> bool:
    """Whether an element runs into itself."""
    return isinstance(element, Circle) or (isinstance(element, Spline) and element.closed)


def _frame(given: Any) -> PlanarFrame | Matrix4:
    if given is None:
        return at(0.0, 0.0, 0.0)
    if isinstance(given, PlanarFrame):
        return given
    matrix = as_float(given, "the frame of a profile")
    if matrix.shape != (4, 4):
        raise ValueError(f"the frame of a profile must be made by at(x, y, angle) or be a 4x4 matrix, got {given!r}")
    return matrix


def sampled(profile: Profile, fineness: int = 1) -> list[np.ndarray]:
    """Points along each element of the chain, ends included, as NumPy arrays."""
    points = []
    for element in profile.elements:
        n = element.samples if isinstance(element, AbstractCurve) else 1 if isinstance(element, Line) else 16
        points.append(along(element, np.linspace(0.0, 1.0, n * fineness + 1)))
    return points


def _check(profile: Profile, hole: bool, tolerance: float) -> None:
    """Raises where the elements do not make a boundary."""
    pieces, names = sampled(profile), [e.kind for e in profile.elements]
    everything = np.concatenate(pieces)
    size = max(float(np.ptp(everything, 0).max()), 1e-300)
    for i, piece in enumerate(pieces):
        if not np.all(np.isfinite(piece)):
            raise ValueError(f"element {i} ({names[i]}) of a profile is not finite everywhere")
    for i, (piece, element) in enumerate(zip(pieces, profile.elements)):
        length = np.linalg.norm(np.diff(piece, axis=0), axis=1).sum()
        knife = isinstance(element, AbstractPlain) and float(element.row().turn) > 0 and length == 0
        if length <= 1e-12 * size and not knife:
            raise ValueError(f"element {i} ({names[i]}) of a profile has no length")
    n = len(pieces)
    for i in range(n - (0 if profile.closed else 1)):
        j = (i + 1) % n
        apart = float(np.linalg.norm(pieces[j][0] - pieces[i][-1]))
        if apart > tolerance * size and not (n == 1 and endless(profile.elements[0])):
            raise ValueError(
                f"a profile does not hang together: element {i} ({names[i]}) ends at {_pair(pieces[i][-1])}, and "
                f"element {j} ({names[j]}) begins at {_pair(pieces[j][0])}, {apart:.6g} away"
            )
    _check_crossings(pieces, names, profile.closed)
    if profile.closed:
        x, y = np.concatenate([p[:-1] for p in pieces]).T
        area = float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2
        concave = n == 1 and getattr(profile.elements[0], "concave", False)
        if area < 0 and not (hole or concave):
            raise ValueError(
                "a closed profile runs clockwise, so that its material would lie outside: reverse the order and the "
                "elements, or pass hole=True"
            )
        if area > 0 and hole:
            raise ValueError("the boundary of a hole must run clockwise, with the material on its left")


def _check_crossings(pieces: list[np.ndarray], names: list[str], closed: bool) -> None:
    starts, ends = (np.concatenate([p[k] for p in pieces]) for k in (slice(None, -1), slice(1, None)))
    owner = np.repeat(np.arange(len(pieces)), [len(p) - 1 for p in pieces])
    d = ends - starts
    m = len(d)

    def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]

    for first in range(0, m, _ROWS):  # in blocks, so that long profiles do not need much memory
        i, j = np.meshgrid(np.arange(first, min(first + _ROWS, m)), np.arange(first, m), indexing="ij")
        apart = (j - i >= 2) & ~(closed & (i == 0) & (j == m - 1))
        i, j = i[apart], j[apart]
        between, side = starts[j] - starts[i], cross(d[i], d[j])
        with np.errstate(divide="ignore", invalid="ignore"):
            u, w = cross(between, d[j]) / side, cross(between, d[i]) / side
        inside = (u > 1e-9) & (u < 1 - 1e-9) & (w > 1e-9) & (w < 1 - 1e-9)
        if inside.any():
            k = int(np.flatnonzero(inside)[0])
            a, b = owner[i[k]], owner[j[k]]
            where = starts[i[k]] + u[k] * d[i[k]]
            raise ValueError(
                f"a profile crosses itself near {_pair(where)}: element {a} ({names[a]}) and element {b} ({names[b]})"
            )


def _pair(p: np.ndarray) -> str:
    return f"({p[0]:.6g}, {p[1]:.6g})"
