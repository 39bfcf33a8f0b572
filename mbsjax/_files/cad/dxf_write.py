"""Mechanisms as DXF drawings: a layer for each body."""

import re
from itertools import pairwise
from typing import Any

import numpy as np

from ..._model.mechanism import Mechanism
from ..._model.profile.drawing import draw, new_drawing, placed, unit_of_length
from ..._model.profile.profile import Profile
from ..._pictures.mechanism import view
from ..._pictures.scene import Shape, poses, shapes
from ...frames import PlanarFrame, at


_SYMBOL = 0.01  # of the mechanism's size: the height of its names


def write_dxf(
    what: Any, path: Any, *, time: float | None = None, own_frames: bool = False, unit: str | None = None
) -> None:
    """Writes a drawing of a mechanism: a layer for each body, with its name, its joints and points of interest as
    points, and, if it has no profile, lines between them; a layer `"body.profile"` for each profile.

    **Arguments:**

    - `what`: a planar [`mbsjax.Mechanism`][], to be assembled; a position of one (an [`mbsjax.Assembly`][],
        `motion.at(3)`); a [`mbsjax.Motion`][] or [`mbsjax.Solution`][].
    - `path`: of the drawing.
    - `time`: of a motion, which of its output times: the nearest one. By default the first.
    - `own_frames`: draw each body in its own frame, as a part to be made, not where it stands; of any mechanism.
    - `unit`: of a mechanism without [`mbsjax.Units`][], what the drawing says of its lengths, which stay as they are:
        `"mm"`, `"cm"`, `"m"`, `"um"`, `"km"`, `"in"` or `"ft"`; by default the drawing has no unit.

    `read_dxf(path, layer="cam.rim")` reads a profile again: lines, arcs, circles and splines as they were to the last
    digits, other curves as splines within 1e-7 of their size. Characters that names of layers cannot have are `_`.

    !!! Example

        >>> import os, tempfile, mbsjax as mbs
        >>> cam = mbs.Body("cam", profiles={"rim": mbs.disc(2.0, (0.5, 0.0))})
        >>> mech = mbs.Mechanism([cam], [mbs.Revolute("O", "ground", "cam", start=0.3)])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = os.path.join(folder, "cam.dxf")
        ...     write_dxf(mech, file, own_frames=True)
        ...     mbs.read_dxf(file, layer="cam.rim").elements[0].center.tolist()
        [0.5, 0.0]
    """
    mech, stands = (what, {}) if own_frames and isinstance(what, Mechanism) else _posed(what, time)
    if not (own_frames or mech.planar):
        raise ValueError("a drawing shows planar mechanisms; that of a spatial one has its bodies in their own_frames")
    drawing = new_drawing(unit_of_length(mech.units, unit))
    space, found = drawing.modelspace(), shapes(mech)
    spread = [p for s in found for p in (*s.skeleton, *(o.points for o in s.outlines))]
    size = float(np.ptp(np.concatenate([np.atleast_2d(p)[:, :2] for p in spread]), 0).max()) if spread else 1.0
    for shape in found:
        name = _layer(shape.body)
        drawing.layers.add(name)
        pose = None if own_frames else stands[shape.body]
        for key, profile in mech.body(shape.body).profiles.items():
            layer = _layer(f"{shape.body}.{key}")
            drawing.layers.add(layer)
            draw(space, profile.elements, _composed(pose, profile), layer)
        _marks(space, shape, pose, name, _SYMBOL * (size or 1.0))
    drawing.saveas(path)


def _posed(what: Any, time: float | None) -> tuple[Mechanism, dict[str, PlanarFrame]]:
    """The mechanism, and where its bodies stand."""
    seen = view(what)
    row = 0
    if time is not None:
        if seen.t is None:
            raise ValueError(f"`time` is that of a motion, got {type(what).__name__}")
        if not seen.t[0] <= time <= seen.t[-1]:
            raise ValueError(f"the motion runs from {seen.t[0]:.6g} to {seen.t[-1]:.6g}, and `time` is {time:.6g}")
        row = int(np.abs(seen.t - time).argmin())
    X = poses(seen.mech, seen.q[row : row + 1])[0]
    flat = [at(A[0, 3], A[1, 3], np.arctan2(A[1, 0], A[0, 0])) for A in X]
    return seen.mech, dict(zip(seen.mech.links, flat))


def _composed(pose: PlanarFrame | None, profile: Profile) -> PlanarFrame | None:
    """Where the plane of a profile lies; one in space is drawn as it is in its plane."""
    inner = profile.frame
    if not isinstance(inner, PlanarFrame) or not any(map(float, (inner.x, inner.y, inner.angle))):
        return pose
    if pose is None:
        return inner
    x, y = placed([float(inner.x), float(inner.y)], pose)
    return at(x, y, pose.angle + inner.angle)


def _marks(space: Any, shape: Shape, pose: PlanarFrame | None, layer: str, height: float) -> None:
    """The name of a body, its joints and points, and lines between them if it has no profile."""
    on = {"layer": layer}
    put = lambda p: placed(np.asarray(p)[:2], pose).tolist()
    places = [*((m.joint, m.place) for m in shape.marks), *shape.points.items()]
    for name, place in places:
        space.add_point(put(place), dxfattribs=on)
        space.add_text(name, height=height, dxfattribs=on).set_placement(put(place))
    if not shape.outlines:
        for a, b in pairwise(shape.skeleton):
            space.add_line(put(a), put(b), dxfattribs=on)
    drawn = [p for _, p in places] + [o.points.mean(0) for o in shape.outlines]
    if drawn:
        space.add_text(shape.body, height=1.5 * height, dxfattribs=on).set_placement(put(np.mean(drawn, 0)))


def _layer(name: str) -> str:
    return re.sub(r'[<>/\\":;?*|=`,]', "_", name)
