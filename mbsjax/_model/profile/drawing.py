"""Elements as entities of a DXF drawing."""

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._programs.trees import once
from ...frames import PlanarFrame
from ..units import Units
from .base import AbstractElement
from .cubics import beside, clamped
from .curves import Spline
from .elements import Arc, Circle, Line, Point


# how drawings call units of length, in $INSUNITS
CODES = {"in": 1, "ft": 2, "mm": 4, "cm": 5, "m": 6, "km": 7, "um": 13}


def new_drawing(unit: str | None) -> Any:
    """An empty drawing, which says what the unit of its lengths is; None: it says none."""
    if unit is not None and unit not in CODES:
        raise ValueError(f"an unknown unit {unit!r}; there are {', '.join(CODES)}")
    try:
        import ezdxf
    except ImportError as error:
        raise ImportError('a DXF drawing needs ezdxf: pip install "mbsjax[dxf]"') from error
    return ezdxf.new("R2010", units=0 if unit is None else CODES[unit])  # pyright: ignore


def unit_of_length(units: Units | None, asked: str | None = None) -> str | None:
    """What a drawing can say of the unit of its lengths: that of a model, or the one asked for; None if it is not
    known, or none that drawings have."""
    if units is None:
        return asked
    if asked not in (None, units.length):
        raise ValueError(f"the mechanism has its lengths in {units.length!r}, and `unit` is {asked!r}")
    own = units.length.replace("µ", "u")
    return own if own in CODES else None


def placed(points: Any, frame: PlanarFrame | None) -> np.ndarray:
    """Points where a frame puts them."""
    if frame is None:
        return np.asarray(points)
    c, s = np.cos(float(frame.angle)), np.sin(float(frame.angle))
    return np.asarray(points) @ np.array([[c, s], [-s, c]]) + np.array([float(frame.x), float(frame.y)])


def draw(space: Any, elements: Iterable[AbstractElement], frame: PlanarFrame | None = None, layer: str = "0") -> None:
    """Adds elements, where a frame puts them: lines, arcs, circles and splines as such, other curves as splines
    beside them."""
    angle = 0.0 if frame is None else float(frame.angle)
    put, on = lambda p: placed(p, frame).tolist(), {"layer": layer}
    for e in elements:
        if isinstance(e, Line):
            space.add_line(put(e.start), put(e.end), dxfattribs=on)
        elif isinstance(e, Circle):
            space.add_circle(put(e.center), float(e.radius), dxfattribs=on)
        elif isinstance(e, Arc):
            ends = float(e.start) + angle, float(e.start + (-e.turn if e.concave else e.turn)) + angle
            space.add_arc(put(e.center), float(e.radius), *np.rad2deg(sorted(ends)).tolist(), dxfattribs=on)
        elif not isinstance(e, Point):
            closed = isinstance(e, Spline) and e.closed
            control = np.asarray(e.control) if isinstance(e, Spline) else beside(lambda s, e=e: along(e, s))
            points, knots = clamped(control, closed)
            spline = space.add_spline(dxfattribs={**on, "degree": 3})
            spline.control_points, spline.knots = [(*p, 0.0) for p in put(points)], knots.tolist()


def along(element: AbstractElement, s: Any) -> np.ndarray:
    """Points of an element."""
    return np.asarray(_along(element, jnp.asarray(s)))


@once
def _along(element: AbstractElement, s: Float[Array, " n"]) -> Float[Array, "n 2"]:
    return jax.vmap(lambda x: element(x).position)(s)
