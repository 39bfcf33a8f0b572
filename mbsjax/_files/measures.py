"""Measures given as formulas: what is told of a motion or a simulation, by name."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from .._events.kinds import EVENTS
from .._model.mechanism import Mechanism, unknown
from .formula import names, parse, value


_POINT = {"x": (0, 0), "y": (0, 1), "z": (0, 2), "vx": (1, 0), "vy": (1, 1), "vz": (1, 2)}
_POINT |= {"ax": (2, 0), "ay": (2, 1), "az": (2, 2)}
_TRACK = ("q", "v", "a")
_CONTACT = ("gap", "force", "q1", "q2", "active", "sliding")
_FRICTION = ("friction", "sliding", "load", "work")  # of contacts and joints that have it
_SLIPS = ("sticks", "slips", "reverses")  # and their events


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

    def check(self, mech: Mechanism, numbers: Mapping[str, Any]) -> None:
        """Raises where it names something that is not there."""
        for name in names(self.tree):
            if name not in numbers:
                address(mech, name, list(numbers))


def address(mech: Mechanism, name: str, parameters: Any = ()) -> tuple[str, ...]:
    """What a dotted name means: ("track", coordinate or gauge, rate), ("contact", name, what), ("event", contact,
    kind), ("friction", contact or joint, what), ("point", body, point, what), ("run", what)."""
    if name in ("t", "energy"):
        return "run", name
    whole = [*mech.coordinates, *(g.name for g in mech.gauges)]
    if name in whole:
        return "track", name, "q"
    first, _, last = name.rpartition(".")
    if first in whole and last in _TRACK:
        return "track", first, last
    if first in _rubbing(mech) and last in (*_FRICTION, *_SLIPS):
        return "friction" if last in _FRICTION else "event", first, last
    if first in [c.name for c in mech.contacts] and last in _CONTACT:
        return "contact", first, last
    if last in _FRICTION and first in [x.name for x in (*mech.contacts, *mech.joints)]:
        raise ValueError(f"{name!r}: {first!r} has no friction")
    if first in [c.name for c in mech.contacts]:
        if last in EVENTS:
            return "event", first, last
        known = dict.fromkeys([*_CONTACT, *_FRICTION, *EVENTS])
        raise ValueError(unknown(f"reading of contact {first!r}", last, list(known)))
    if first in mech.links:
        if last == "angle" or last in _POINT:
            return "point", first, "", last
        raise ValueError(unknown(f"reading of body {first!r}", last, ["angle", *_POINT, *mech.body(first).points]))
    body, _, point = first.rpartition(".")
    if body in mech.links and point in mech.body(body).points and last in _POINT:
        return "point", body, point, last
    known = [*parameters, "t", *whole, *(c.name for c in mech.contacts), *mech.links]
    known += [f"{b.name}.{point}.{what}" for b in mech.bodies for point in b.points for what in ("x", "y")]
    raise ValueError(unknown("reading", name, known))


def _rubbing(mech: Mechanism) -> list[str]:
    """The contacts, then the joints, that have friction: in this order they are counted in the log of events."""
    return [x.name for x in (*mech.contacts, *mech.joints) if x.friction is not None]


def look(outcome: Any, name: str, numbers: Mapping[str, Any]) -> Any:
    """What a name in a measure stands for."""
    if name in numbers:
        return numbers[name]
    kind, *what = address(outcome.mech, name, list(numbers))
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
    rate, axis = _POINT[which]
    if axis == 2 and outcome.mech.planar:
        raise ValueError(f"{name!r}: a planar mechanism has no z")
    return outcome.point(body, point or None)[rate][..., axis]
