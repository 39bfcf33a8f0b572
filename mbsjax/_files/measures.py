"""Measures given as formulas: what is told of a motion or a simulation, by name."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from .._model.joint.joint import coordinate_names
from .._model.mechanism import Mechanism
from .formula import parse, value
from .names import Names
from .readings import POINT, address


class Measure(eqx.Module):
    """A number, or a row of numbers along a motion, as a formula of:

    - parameters, by name, and `t`, the output times;
    - coordinates and gauges: `D` or `D.q`, `D.v`, `D.a`;
    - bodies and their points: `coupler.x`, `coupler.angle`, `coupler.E.y`, `coupler.E.vx`, `coupler.E.ay`;
    - contacts: `C.gap`, `C.force`, `C.q1`, `C.q2`; the times of their events: `C.impact[0]`, `C.released[-1]`;
    - contacts and joints with friction: `A.friction`, its force or moment, `A.sliding`, the speed, `A.load`, the normal
      load, `A.work`, the energy that it has lost; the times of `A.slips[0]`, `A.sticks[0]`, `A.reverses[0]`;
    - `energy`, of a simulation.

    Rows become numbers by `max(...)`, `min`, `mean`, `range`, `first`, `last`, or a place: `D[90]`.
    """

    text: str = eqx.field(static=True)
    tree: tuple = eqx.field(static=True)

    def __init__(self, text: str):
        self.text, self.tree = text, parse(text)

    def __call__(self, outcome: Any, numbers: Mapping[str, Any]) -> Array:
        found = value(self.tree, lambda name: look(outcome, name, numbers))
        return jnp.asarray(found, float)


def names_in(mech: Mechanism) -> Names:
    """What can be named of a mechanism."""
    bodies = {name: mech.body(name) for name in mech.links}
    rubbing = [x.name for x in (*mech.contacts, *mech.joints) if x.friction is not None]
    return Names(
        tuple(bodies),
        {name: tuple(body.points) for name, body in bodies.items()},
        {name: tuple(body.profiles) for name, body in bodies.items()},
        {joint.name: coordinate_names(joint) for joint in mech.joints},
        tuple(contact.name for contact in mech.contacts),
        tuple(gauge.name for gauge in mech.gauges),
        tuple(rubbing),
    )


def look(outcome: Any, name: str, numbers: Mapping[str, Any]) -> Any:
    """What a name in a measure stands for."""
    if name in numbers:
        return numbers[name]
    kind, *what = address(names_in(outcome.mech), name, tuple(numbers))
    if kind == "run":
        if what[0] == "energy" and not hasattr(outcome, "energy"):
            raise ValueError("a driven motion has no energy: simulate it")
        return outcome.ts if what[0] == "t" else outcome.energy
    if kind == "track":
        return getattr(outcome[what[0]], what[1])
    if kind == "contact":
        track = outcome[what[0]]
        if what[1] in ("q1", "q2"):
            return track.q[..., int(what[1][1]) - 1]
        if not hasattr(track, what[1]):
            raise ValueError(f"a driven motion tells no {what[1]} of contact {what[0]!r}: simulate it")
        return getattr(track, what[1])
    if kind == "event":
        if not hasattr(outcome, "events"):
            raise ValueError(f"a motion of joints with play tells no events: {what[1]} of {what[0]!r}")
        return outcome.event_times(*what)
    if kind == "friction":
        if not hasattr(outcome, "friction"):
            raise ValueError(f"a driven motion tells no {what[1]} of {what[0]!r}: simulate it")
        return getattr(outcome.friction(what[0]), "force" if what[1] == "friction" else what[1])
    body, point, which = what
    if which == "angle":
        return outcome.orientation(body).q
    rate, axis = POINT[which]
    if axis == 2 and outcome.mech.planar:
        raise ValueError(f"{name!r}: a planar mechanism has no z")
    return outcome.point(body, point or None)[rate][..., axis]
