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
