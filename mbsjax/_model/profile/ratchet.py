"""Ratchet wheel and pawl."""

import jax.numpy as jnp
import numpy as np

from ..._programs.custom_types import Number
from ..._programs.precision import number, positive, value, whole
from .base import AbstractElement
from .elements import Arc, Line
from .profile import Profile
from .shapes import direction


def ratchet_wheel(teeth: int, outer_radius: Number, root_radius: Number, *, undercut: Number = 0.0) -> Profile:
    """A ratchet wheel about the origin. The steep flanks look clockwise: held by a pawl the wheel turns only
    counter-clockwise. The tip of tooth 0 is on x.

    **Arguments:**

    - `teeth`: their number, at least 3.
    - `outer_radius`, `root_radius`: of the circles through the tips and through the feet of the steep flanks.
    - `undercut`: the angle by which the steep flanks lean back from the radius, so that they draw the pawl in.

    A tooth has two elements, its steep flank and its back: with the corners, four numbers of the chain.

    !!! Example

        >>> wheel = ratchet_wheel(12, 50.0, 42.0, undercut=0.1)
        >>> wheel.kinds[:4], wheel(1.0).position.round(9).tolist()
        (('line', 'point', 'line', 'point'), [50.0, 0.0])
    """
    teeth = whole(teeth, "the number of teeth of a ratchet wheel", 3)
    outer = positive(outer_radius, "the outer radius of a ratchet wheel")
    root = positive(root_radius, "the root radius of a ratchet wheel")
    lean = number(undercut, "the undercut of a ratchet wheel")
    if value(root) >= value(outer):
        raise ValueError(
            f"the root radius of a ratchet wheel, {value(root):.6g}, is not below its outer {value(outer):.6g}"
        )
    # the flank's line passes the center at this distance
    off = outer * jnp.sin(lean)
    if abs(value(off)) >= value(root):
        raise ValueError(f"a steep flank that leans back by {value(lean):.6g} never meets the root of a ratchet wheel")
    foot = jnp.arcsin(off / root) - lean
    if abs(value(foot)) >= 2 * np.pi / teeth:
        raise ValueError(
            f"a steep flank that leans back by {value(lean):.6g} cuts away the next tooth of a ratchet wheel"
        )
    elements: list[AbstractElement] = []
    for k in range(teeth):
        here, there = 2 * np.pi * k / teeth, 2 * np.pi * (k + 1) / teeth
        tip = outer * direction(jnp.asarray(here))
        elements += [Line(root * direction(here + foot), tip), Line(tip, root * direction(there + foot))]
    return Profile.chain(elements, names=[f"{side} of tooth {k}" for k in range(teeth) for side in ("flank", "back")])


def pawl(length: Number, nose_radius: Number, hub_radius: Number) -> Profile:
    """A pawl about its pivot, its nose on x: two rounds and their common tangents, so numbers 0 to 3 of the chain are
    nose, upper side, hub, lower side.

    **Arguments:**

    - `length`: from the pivot to the center of the round nose.
    - `nose_radius`, `hub_radius`: of the rounds.

    A pivot that lies `length` behind the nose on the tangent of the wheel takes the load as pure thrust.

    !!! Example

        >>> pawl(40.0, 2.0, 5.0)(0.5).position[0].round(9).item()
        42.0
    """
    l = positive(length, "the length of a pawl")  # noqa: E741
    nose, hub = positive(nose_radius, "the nose radius of a pawl"), positive(hub_radius, "the hub radius of a pawl")
    if abs(value(hub) - value(nose)) >= value(l):
        raise ValueError(f"one round of a pawl swallows the other: they are only {value(l):.6g} apart")
    slope = jnp.arccos((hub - nose) / l)  # of the normal of its upper side
    up, down = direction(slope), direction(-slope)
    tip = jnp.stack([l, jnp.zeros_like(l)])
    return Profile.chain(
        [
            Arc(tip, nose, -slope, 2 * slope),
            Line(tip + nose * up, hub * up),
            Arc((0.0, 0.0), hub, slope, 2 * np.pi - 2 * slope),
            Line(hub * down, tip + nose * down),
        ],
        smooth=True,
        names=("nose", "upper side", "hub", "lower side"),
    )
