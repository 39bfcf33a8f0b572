"""Rows of numbers along a motion, read by name, as they are shown."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._dynamics.solution import ContactForce
from .._model.mechanism import Mechanism
from .._programs.names import unknown
from .quantities import PARTS, Quantity, quantity, shown


class Series(NamedTuple):
    """A quantity at all outputs, in the unit in which it is shown."""

    name: str
    quantity: Quantity
    y: np.ndarray


def read(motion: Any, name: str, rate: Any = 0) -> list[Series]:
    """What a name means, one row of numbers or several, each with its own name."""
    mech: Mechanism = motion.mech
    found = []
    for own, y in _rows(motion, name, rate):
        what = quantity(mech, own, rate)
        found.append(Series(own, what, shown(mech.units, what.kind) * y))
    return found


def read_one(motion: Any, name: str, rate: Any = 0) -> Series:
    """What a name means, if that is one row of numbers."""
    found = read(motion, name, rate)
    if len(found) != 1:
        raise ValueError(f"{name!r} has several coordinates: name one of {', '.join(s.name for s in found)}")
    return found[0]


def at_events(motion: Any, series: Series, rate: Any) -> np.ndarray:
    """The values at the events: of a coordinate as it was then, of others between the outputs."""
    if motion.events is None:
        return np.zeros(0)
    n, mech = int(motion.events.count), motion.mech
    if rate == 0 and series.name in mech.coordinates:
        then = np.asarray(motion.events.q)[:n, mech.stored(series.name)[0]]
        return shown(mech.units, series.quantity.kind) * then
    return np.interp(np.asarray(motion.events.t)[:n], np.asarray(motion.ts), series.y)


def _rows(motion: Any, name: str, rate: Any) -> list[tuple[str, np.ndarray]]:
    mech: Mechanism = motion.mech
    joints, gauges, contacts = ([x.name for x in members] for members in (mech.joints, mech.gauges, mech.contacts))
    base, _, part = name.partition(".")
    if base in contacts:
        return [(name, _contact(motion, base, part or "gap", rate))]
    if name not in (*mech.coordinates, *joints, *gauges):
        known = [*mech.coordinates, *gauges, *contacts]
        raise ValueError(unknown("coordinate, gauge or contact", name, known))
    values = np.asarray(motion[name][rate])
    if values.ndim == 1:
        return [(name, values)]
    parts: Sequence[Any] = mech.joint(name).pair.coordinates
    parts = parts if len(parts) == values.shape[1] else range(values.shape[1])
    return [(f"{name}.{p}", column) for p, column in zip(parts, values.T)]


_PLACES = ("q1", "q2", "gap")


def _contact(motion: Any, name: str, part: str, rate: Any) -> np.ndarray:
    track = motion[name]
    pressed = isinstance(track, ContactForce)
    if part not in PARTS:
        raise ValueError(unknown(f"part of contact {name!r}", part, [*PARTS]))
    if part not in _PLACES and not pressed:
        raise ValueError(f"a driven motion tells no {part} of contact {name!r}: simulate it")
    if part not in _PLACES and rate == 0:
        y = np.asarray(getattr(track, part))
        return y if part == "force" else np.where(np.asarray(track.active), y, np.nan)
    if pressed and rate > 0 and (part, rate) != ("gap", 1):
        raise ValueError(f"a simulation does not tell the {('', 'rate', 'second rate')[rate]} of '{name}.{part}'")
    rows = np.asarray(track[rate])
    y = rows if rows.ndim == 1 else rows[:, _PLACES.index(part)]
    return np.where(np.isfinite(y), y, np.nan)
