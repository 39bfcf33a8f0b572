"""The external Geneva drive: slotted wheel, locking disc and pin."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..._programs.custom_types import Number
from ..._programs.precision import number, positive, value, whole
from ..._programs.reprs import by_fields
from .base import AbstractElement
from .elements import Arc, Line
from .profile import Profile
from .shapes import direction, disc


class Geneva(NamedTuple):
    """The profiles of a Geneva drive. Made by [`mbsjax.geneva`][].

    - `wheel`: about its own center, the middle of slot 0 on x.
    - `lock`, `pin`: about the center of the crank, the pin on x.
    """

    wheel: Profile
    lock: Profile
    pin: Profile

    __repr__ = by_fields


def geneva(
    slots: int,
    center_distance: Number,
    pin_radius: Number,
    *,
    clearance: Number = 0.0,
    lock_radius: Number | None = None,
    depth: Number | None = None,
) -> Geneva:
    """An external Geneva drive with the crank a = c sin(pi / n), so that the pin enters a slot along its middle: the
    wheel begins and ends its step of 2 pi / n without a shock.

    With the crank turned by alpha from the line to the wheel's center, the pin is in a slot while
    |alpha| < pi / 2 - pi / n, and the middle of that slot is turned by beta = atan(a sin(alpha) / (c - a cos(alpha)))
    from the line to the crank, the other way round. The wheel rests otherwise.

    **Arguments:**

    - `slots`: n, at least 3.
    - `center_distance`: c, from the crank's center to the wheel's.
    - `pin_radius`: of the pin.
    - `clearance`: between pin and wall on each side, and between the locking disc and the wheel.
    - `lock_radius`: of the locking disc, a - 3 pin radii by default. Its cut-out begins where the pin enters.
    - `depth`: by how much the slots are deeper than the pin needs, a quarter of its radius by default.

    The walls of a slot begin where the pin enters. Each sector of the wheel has the same six elements: wall, round end,
    wall, tip, locking arc, tip; with the corners, a slot is ten numbers of the chain.

    !!! Example

        >>> drive = geneva(4, 100.0, 5.0)
        >>> drive.wheel.kinds[:10]
        ('line', 'arc', 'line', 'point', 'arc', 'point', 'arc', 'point', 'arc', 'point')
        >>> drive.pin(0.0).position[0].round(6).item()  # a + pin radius
        75.710678
    """
    n = whole(slots, "the number of slots of a Geneva wheel", 3)
    c, r = positive(center_distance, "the center distance of a Geneva drive"), positive(pin_radius, "the pin radius")
    gap = number(clearance, "the clearance of a Geneva drive")
    step = np.pi / n
    a, b = c * np.sin(step), c * np.cos(step)  # the pin enters b from the wheel's center
    lock = positive(a - 3 * r if lock_radius is None else lock_radius, "the radius of a Geneva drive's locking disc")
    w = r + gap
    bottom = c - a - (r / 4 if depth is None else number(depth, "the depth of a Geneva wheel's slots"))
    _check(n, *(value(x) for x in (c, a, jnp.sqrt(b * b + w * w), w, lock + gap, bottom, gap)))
    elements: list[AbstractElement] = []
    for k in range(n):
        elements += _sector(2 * step * k, step, c, b, w, lock + gap, bottom)
    wheel = Profile.chain(elements, smooth=[True, True, False, False, False, False] * n)

    # The cut-out ends on the line of centers when the pin enters and leaves: there the wheel begins to move towards the
    # disc on one side, away on the other. Round about the wheel it would touch the horns of wheels with many slots.
    half = np.pi / 2 - step
    edge = lock * direction(jnp.asarray(half))
    deepest = 0.75 * jnp.minimum(c - jnp.sqrt(b * b + w * w), edge[0])
    middle = (lock**2 - deepest**2) / (edge[0] - deepest) / 2
    rim = Arc((0.0, 0.0), lock, half, 2 * np.pi - 2 * half)
    cut = Arc.between(edge * jnp.array([1.0, -1.0]), edge, jnp.stack([middle, jnp.zeros_like(middle)]), concave=True)
    return Geneva(wheel, Profile.chain([rim, cut]), disc(r, jnp.stack([a, jnp.zeros_like(a)])))


def _sector(
    turned: float, step: float, c: Array, b: Array, w: Array, lock: Array, bottom: Array
) -> list[AbstractElement]:
    """From the mouth of one slot to the mouth of the next; `lock` is the radius of the wheel's locking arcs."""
    x, y = direction(jnp.asarray(turned)), direction(jnp.asarray(turned + np.pi / 2))
    outer = jnp.sqrt(b * b + w * w)
    mouth = jnp.arctan2(w, b)
    horn = step - jnp.arccos((outer**2 + c**2 - lock**2) / (2 * outer * c))  # where locking arc and tip meet
    crank = c * direction(jnp.asarray(turned + step))
    first, last = (outer * direction(turned + angle) for angle in (horn, 2 * step - horn))
    return [
        Line(b * x - w * y, bottom * x - w * y),
        Arc(bottom * x, w, turned - np.pi / 2, np.pi, concave=True),
        Line(bottom * x + w * y, b * x + w * y),
        Arc((0.0, 0.0), outer, turned + mouth, horn - mouth),
        Arc.between(first, last, crank, radius=lock, concave=True),
        Arc((0.0, 0.0), outer, turned + 2 * step - horn, horn - mouth),
    ]


def _check(
    n: int,
    c: np.ndarray,
    a: np.ndarray,
    outer: np.ndarray,
    w: np.ndarray,
    lock: np.ndarray,
    bottom: np.ndarray,
    gap: np.ndarray,
) -> None:
    """Raises where there is no such drive; what cannot be seen is NaN."""
    if float(gap) < 0:
        raise ValueError(f"the clearance of a Geneva drive must not be negative, got {float(gap):.6g}")
    lip = float(a - w - lock)
    if lip <= 0:
        raise ValueError(
            f"the locking arcs of a Geneva wheel cut into its slots by {-lip:.6g}: the locking disc's radius, its "
            f"clearance and half the slot's width must be less than the crank, {float(a):.6g}, together"
        )
    if float(c - outer) >= float(lock):
        raise ValueError(
            f"the locking disc of a Geneva drive, of radius {float(lock - gap):.6g}, does not reach its wheel: it must "
            f"be more than {float(c - outer - gap):.6g}"
        )
    wall = float(bottom) * np.sin(np.pi / n) - float(w)
    if wall <= 0:
        raise ValueError(f"the {n} slots of a Geneva wheel run into one another by {-wall:.6g} at their round ends")
