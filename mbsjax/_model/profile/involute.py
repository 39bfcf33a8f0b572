"""Involute spur gears."""

from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._programs.custom_types import Number
from ..._programs.precision import number, positive, value, whole
from .base import AbstractCurve, AbstractElement
from .elements import Arc, Line
from .profile import Profile
from .shapes import direction


_LEAST_ROLL = 0.02  # an involute has no direction where it leaves its base circle


class Involute(AbstractCurve):
    """An involute of a circle about the origin: the path of the end of a taut thread unwound from it.

    **Arguments:**

    - `radius`: of the base circle.
    - `angle`: where the thread leaves it at first, from x.
    - `start`, `end`: the angles of unwinding between which it runs, positive counter-clockwise. On a tooth they are
        both positive and growing on the flank that looks clockwise, both negative and growing on the other.

    The direction of travel turns evenly with the coordinate.

    !!! Example

        >>> flank = Involute(10.0, 0.0, 0.1, 0.5)
        >>> round(flank(1.0).angle.item(), 9), round(1 / flank(1.0).curvature.item(), 9)
        (0.5, 5.0)
    """

    kind: ClassVar[str] = "involute"
    radius: Float[Array, ""]
    angle: Float[Array, ""]
    start: Float[Array, ""]
    end: Float[Array, ""]

    def __init__(self, radius: Any, angle: Any, start: Any, end: Any):
        self.radius = positive(radius, "the base radius of an involute")
        self.angle = number(angle, "the angle of an involute")
        self.start, self.end = number(start, "the start of an involute"), number(end, "the end of an involute")
        first, last = value(self.start), value(self.end)
        if first * last <= 0:
            raise ValueError(
                f"an involute must not reach its base circle, where it has no direction: unwound from "
                f"{first:.6g} to {last:.6g}"
            )

    def position(self, s: Float[Array, ""]) -> Float[Array, "2"]:
        roll = self.start + (self.end - self.start) * s
        along = self.angle + roll
        return self.radius * (direction(along) - roll * direction(along + jnp.pi / 2))

    @property
    def samples(self) -> int:
        return 12


class _Tooth(NamedTuple):
    """The numbers of a tooth whose middle is on x; its lower half is described, the upper one is its mirror image."""

    base: Array
    tip: Array
    root: Array
    angle: Array  # where the involute would begin on the base circle, negative
    first: Array  # how far it is unwound where it begins,
    last: Array  # and at the tip


def involute_gear(
    module: Number,
    teeth: int,
    *,
    pressure_angle: Number = np.pi / 9,
    shift: Number = 0.0,
    backlash: Number = 0.0,
    addendum: Number = 1.0,
    dedendum: Number = 1.25,
) -> Profile:
    """A spur gear about the origin, the middle of tooth 0 on x.

    **Arguments:**

    - `module`, `teeth`: m and z; the reference circle has the diameter m z.
    - `pressure_angle`: of the rack, 20 degrees by default.
    - `shift`: of the profile, outwards, in modules.
    - `backlash`: by how much a tooth is thinner, measured along the reference circle.
    - `addendum`, `dedendum`: from the reference circle to tip and root of an unshifted gear, in modules.

    A tooth has six elements: line, involute, tip, involute, line, root; with the corners, ten numbers of the chain. The
    involutes begin where a rack with the same addendum would begin to cut them; the lines go on from there, straight
    to the root, and are never reached by a fitting gear. A gear that the rack would undercut is refused.

    Two gears mesh at the distance m (z1 + z2) / 2 if their shifts are opposite: with a tooth of the first pointing at
    the second, which lies in the direction x, turn that by pi + pi / z2.

    !!! Example

        >>> gear = involute_gear(2.0, 20)
        >>> gear.kinds[:10]
        ('line', 'involute', 'point', 'arc', 'point', 'involute', 'line', 'point', 'arc', 'point')
        >>> gear(3.5).position[0].round(9).item()  # the middle of the tip of tooth 0
        22.0
    """
    t = _tooth(module, teeth, pressure_angle, shift, backlash, addendum, dedendum)
    # the line goes on along the involute's tangent, which passes the center at the distance base * first
    height = jnp.sqrt(t.root**2 - (t.base * t.first) ** 2)
    foot = t.angle + t.first - jnp.arctan2(t.base * t.first, height)
    top = t.angle + t.last - jnp.arctan(t.last)
    space = 2 * np.pi / teeth + 2 * foot
    if value(space) <= 0:
        raise ValueError(
            f"there is no room between the teeth of an involute gear: {-value(space):.6g} is missing at the root"
        )
    elements: list[AbstractElement] = []
    for k in range(teeth):
        turned = 2 * np.pi * k / teeth
        up = Involute(t.base, turned + t.angle, t.first, t.last)
        down = Involute(t.base, turned - t.angle, -t.last, -t.first)
        elements += [
            Line(t.root * direction(turned + foot), up.position(jnp.asarray(0.0))),
            up,
            Arc((0.0, 0.0), t.tip, turned + top, -2 * top),
            down,
            Line(down.position(jnp.asarray(1.0)), t.root * direction(turned - foot)),
            Arc((0.0, 0.0), t.root, turned - foot, space),
        ]
    return Profile.chain(elements, smooth=[True, False, False, True, False, False] * teeth)


def involute_flank(
    module: Number,
    teeth: int,
    *,
    pressure_angle: Number = np.pi / 9,
    shift: Number = 0.0,
    backlash: Number = 0.0,
    addendum: Number = 1.0,
    clockwise: bool = True,
) -> Profile:
    """One flank of tooth 0 of an [`mbsjax.involute_gear`][]: the one that looks clockwise, or the other.

    !!! Example

        >>> involute_flank(2.0, 20)
        Profile(involute, open)
    """
    t = _tooth(module, teeth, pressure_angle, shift, backlash, addendum, 1.25)
    up, down = Involute(t.base, t.angle, t.first, t.last), Involute(t.base, -t.angle, -t.last, -t.first)
    return Profile.chain([up if clockwise else down], closed=False, ends=False)  # a part of a gear


def _tooth(
    module: Any, teeth: int, pressure_angle: Any, shift: Any, backlash: Any, addendum: Any, dedendum: Any
) -> _Tooth:
    teeth = whole(teeth, "the number of teeth of an involute gear", 4)
    m, alpha = positive(module, "the module of a gear"), positive(pressure_angle, "the pressure angle of a gear")
    x, j = number(shift, "the profile shift of a gear"), number(backlash, "the backlash of a gear")
    high, deep = positive(addendum, "the addendum of a gear"), positive(dedendum, "the dedendum of a gear")
    if value(deep) <= value(high):
        raise ValueError(
            f"the dedendum of a gear, {value(deep):.6g}, must be more than its addendum, {value(high):.6g}"
        )
    base = m * teeth / 2 * jnp.cos(alpha)
    tip, root = m * (teeth / 2 + high + x), m * (teeth / 2 - deep + x)
    thickness = (np.pi / 2 + 2 * x * jnp.tan(alpha) - j / m) / teeth  # half of it, as an angle, at the reference circle
    angle = -(thickness + jnp.tan(alpha) - alpha)
    first = jnp.tan(alpha) - (high - x) / (teeth / 2 * jnp.sin(alpha) * jnp.cos(alpha))
    if value(first) < -0.01:
        least = value(high) - teeth / 2 * np.sin(value(alpha)) ** 2
        raise ValueError(
            f"{teeth} teeth with a profile shift of {value(x):.6g} are undercut: shift by at least {least:.4g}, or "
            "take more teeth"
        )
    last = jnp.sqrt((tip / base) ** 2 - 1)
    if value(angle + last - jnp.arctan(last)) >= 0:
        raise ValueError(
            f"the teeth of a gear of {teeth} with a profile shift of {value(x):.6g} are pointed below their tips"
        )
    return _Tooth(base, tip, root, angle, jnp.maximum(first, _LEAST_ROLL), last)
