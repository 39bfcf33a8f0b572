"""What a name in a measure means, in plain Python."""

from collections.abc import Mapping

from .._events.kinds import EVENTS
from .._programs.names import unknown
from .formula import names, parse
from .names import Names


POINT = {"x": (0, 0), "y": (0, 1), "z": (0, 2), "vx": (1, 0), "vy": (1, 1), "vz": (1, 2)}
POINT |= {"ax": (2, 0), "ay": (2, 1), "az": (2, 2)}
_TRACK = ("q", "v", "a")
_CONTACT = ("gap", "force", "q1", "q2", "active", "sliding")
_FRICTION = ("friction", "sliding", "load", "work")  # of contacts and joints that have it
_SLIPS = ("sticks", "slips", "reverses")  # and their events
RUN = ("energy", "kinetic", "potential", "power")  # of the whole mechanism
_JOINT = ("fx", "fy", "fz", "reaction", "across", "moment")
_DRIVER = ("effort", "power")
_FORCE = ("force", "length", "rate")


def check_measure(text: str, known: Names, parameters: Mapping) -> None:
    """Raises where a measure is no formula, or names something that is not there."""
    for name in names(parse(text)):
        if name not in parameters and not known.is_vague(name):
            address(known, name, tuple(parameters))


def untold(text: str, known: Names, parameters: Mapping, of: str) -> str | None:
    """The first name in a measure that an analysis does not tell; None if it tells all of them."""
    for name in names(parse(text)):
        if name not in parameters and not known.is_vague(name):
            if of not in tellers(*address(known, name, tuple(parameters))):
                return name
    return None


def tellers(kind: str, *what: str) -> tuple[str, ...]:
    """The analyses that tell what a name means, which is given as `address` tells it.

    !!! Example

        >>> tellers("track", "A", "v"), tellers("impulse", "C", "impulse")
        (('kinematics', 'simulate', 'inverse'), ('simulate',))
    """
    moving, acting = ("kinematics", "simulate", "inverse"), ("simulate", "inverse", "equilibrium")
    last = what[-1]
    if kind == "impulse" or (kind, last) == ("contact", "sliding"):
        return ("simulate",)
    if kind == "friction" or last == "power":
        return ("simulate", "inverse")
    if kind in ("reaction", "effort", "force") or (kind, last) == ("contact", "force") or last in RUN:
        return acting
    if kind == "event" or (kind == "track" and last != "q") or (kind == "point" and POINT.get(last, (0, 0))[0]):
        return moving
    return (*moving, "equilibrium")


def address(known: Names, name: str, parameters: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What a dotted name means: ("track", coordinate or gauge, rate), ("contact", name, what), ("event", contact,
    kind), ("friction", contact or joint, what), ("point", body, point, what), ("run", what); or a force."""
    if name == "t":
        return "run", name
    force = _force_address(known, name)
    if force is not None:
        return force
    whole = [*known.coordinates, *known.gauges]
    if name in whole:
        return "track", name, "q"
    first, _, last = name.rpartition(".")
    if first in whole and last in _TRACK:
        return "track", first, last
    if first in known.rubbing and last in (*_FRICTION, *_SLIPS):
        return "friction" if last in _FRICTION else "event", first, last
    if first in known.contacts and last in _CONTACT:
        return "contact", first, last
    if last in _FRICTION and first in (*known.contacts, *known.joints):
        raise ValueError(f"{name!r}: {first!r} has no friction")
    if first in known.contacts:
        if last in EVENTS:
            return "event", first, last
        every = dict.fromkeys([*_CONTACT, *_FRICTION, *EVENTS])
        raise ValueError(unknown(f"reading of contact {first!r}", last, list(every)))
    if first in known.bodies:
        if last == "angle" or last in POINT:
            return "point", first, "", last
        raise ValueError(unknown(f"reading of body {first!r}", last, ["angle", *POINT, *known.points[first]]))
    body, _, point = first.rpartition(".")
    if body in known.bodies and point in known.points[body] and last in POINT:
        return "point", body, point, last
    every = [*parameters, "t", *RUN, *whole, *known.contacts, *known.forces, *known.bodies]
    every += [f"{b}.{point}.{what}" for b in known.bodies for point in known.points[b] for what in ("x", "y")]
    raise ValueError(unknown("reading", name, every))


def _force_address(known: Names, name: str) -> tuple[str, ...] | None:
    """What a dotted name of a force means: ("reaction", joint, what), ("effort", coordinate or gauge, what), ("force",
    spring, actuator or load, what), ("impulse", contact, what), ("run", what); None if it is no such name."""
    if name in RUN:
        return "run", name
    first, _, last = name.rpartition(".")
    for kind, owners, told in (
        ("reaction", known.joints, _JOINT),
        ("effort", (*known.coordinates, *known.gauges), _DRIVER),
        ("impulse", known.contacts, ("impulse",)),
        ("force", known.forces, _FORCE),
    ):
        if first in owners and last in told:
            return kind, first, last
    return None
