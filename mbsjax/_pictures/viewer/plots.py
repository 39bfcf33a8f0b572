"""Plots in the page: every quantity that can be plotted, and which of them are shown when it opens."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..._dynamics.inverse_dynamics import Efforts
from ..._model.force.spring import Spring
from ..._model.mechanism import Mechanism
from ..._model.units import unit_label
from ..._programs.names import unknown
from ..quantities import PARTS, is_length, moved, pushed, quantity, shown
from .forces import actors
from .keyframes import Keyframes, reached
from .packing import packed


_RATES = {"q": 0, "v": 1, "a": 2}
_OVER = " over "
_MOST = 6  # plots that a page opens with


class Signal(NamedTuple):
    """A quantity along a motion. `read(frames, k)` gives its rows for motion `k` of some frames."""

    key: str
    of: str
    quantity: str
    dimension: str  # of its unit: "angle", "length", "force", ...; "number" for none
    columns: list[str]
    read: Callable[[Keyframes, int], np.ndarray]

    @property
    def label(self) -> str:
        return self.of if self.key in (self.of, f"{self.of}.q") else f"{self.of}: {self.quantity}"

    def rows(self, frames: Keyframes) -> np.ndarray:
        """Its values in all frames."""
        return self._every(frames)[frames.order]

    def before(self, frames: Keyframes) -> np.ndarray:
        """Its values just before each event."""
        return self._every(frames)[frames.before]

    def _every(self, frames: Keyframes) -> np.ndarray:
        return frames.every(lambda k: _columns(self.read(frames, k)))


def signals(frames: Keyframes) -> list[Signal]:
    """All that can be plotted of a motion."""
    mech = frames.mech
    reactions = [] if frames.efforts is None else [_reaction(mech, joint.name) for joint in mech.joints]
    return [
        *_coordinates(frames), *_gauges(mech), *_points(mech), *_contacts(frames), *_dynamics(frames), *reactions
    ]  # fmt: skip


def panels(first: Keyframes, others: list[Keyframes], asked: list[str] | None) -> tuple[list[dict], list[dict]]:
    """The plots that the page opens with, and what else can be chosen there."""
    known = signals(first)
    shown = _usual(first, known) if asked is None else [pair for name in asked for pair in _asked(first, known, name)]
    panels = [_packed(first, others, s) | {"over": over and over.key} for s, over in shown]
    keys, every = [s.key for s, _ in shown], [*known, *(over for _, over in shown if over is not None)]
    more = {s.key: s for s in every if s.key not in keys}
    return panels, [_packed(first, [], s) for s in more.values()]


def _usual(frames: Keyframes, known: list[Signal]) -> list[tuple[Signal, Signal | None]]:
    """What moves: coordinates, gauges that are not held, gaps and forces of contacts. Of efforts, first these, and
    last the reactions of joints. Of many, only what is driven, then forces of contacts and joints, then what is
    known first."""
    held = [g.name for g in frames.mech.gauges if g.value is not None]
    points = [f"{b.name}.{p}" for b in frames.mech.bodies for p in b.points]
    forces = [f.name for f in frames.mech.forces]
    found = [s for s in known if frames.efforts is not None and s.key.endswith(".effort")]
    for s in known:
        usual = s.key.endswith((".q", ".gap", ".force", ".friction", ".reaction"))
        if usual and s.of not in (*held, *points, *forces) and _moves(frames, s):
            found.append(s)
    driven = [name for name, _ in frames.drivers]
    first = sorted(found, key=lambda s: (s.of not in driven, not s.key.endswith((".force", ".reaction"))))[:_MOST]
    return [(s, None) for s in found if s in first]


def _moves(frames: Keyframes, signal: Signal) -> bool:
    y = signal.rows(frames)
    finite = y[np.isfinite(y)]
    size = max(np.abs(finite).max(initial=0.0), frames.size if signal.quantity == "gap" else 1e-3)
    return finite.size > 0 and bool(np.ptp(finite) > 1e-9 * size)


def _asked(frames: Keyframes, known: list[Signal], name: str) -> list[tuple[Signal, Signal | None]]:
    """What a name of the argument `plots` stands for: `"A"`, `"A.v"`, `"A.v over A.q"`, `"C"`, `"A.reaction"`."""
    name, _, over = name.partition(_OVER)
    if over:
        return [(s, _asked(frames, known, over)[0][0]) for s, _ in _asked(frames, known, name)]
    by_key = {s.key: s for s in known}
    for key in (name, f"{name}.q"):
        if key in by_key:
            return [(by_key[key], None)]
    contact = [s for s in known if s.of == name]
    if contact:
        return [(s, None) for s in contact]
    joint, _, what = name.rpartition(".")
    if what == "reaction" and frames.acting(0) is not None and joint in [j.name for j in frames.mech.joints]:
        return [(_reaction(frames.mech, joint), None)]
    raise ValueError(
        f"plots names {unknown('coordinate, joint, gauge or contact', name, [*dict.fromkeys(s.of for s in known)])}; "
        f"all there is: {', '.join(by_key)}"
    )


def _packed(first: Keyframes, others: list[Keyframes], signal: Signal) -> dict:
    units = first.mech.units
    scale = shown(units, signal.dimension)
    y, before = scale * signal.rows(first), scale * signal.before(first)
    after = y[[frame for event, frame in first.events if event.kind != "bifurcation"]]
    lines = [
        {
            "label": column,
            "y": packed(y[:, i]),
            "band": _band(first.t, y[:, i], others, signal, i, scale),
            "before": packed(before[:, i]) if _jumps(y[:, i], before[:, i], after[:, i]) else None,
        }
        for i, column in enumerate(signal.columns)
    ]
    told = {"key": signal.key, "of": signal.of, "label": signal.label, "quantity": signal.quantity}
    return told | {"unit": unit_label(units, signal.dimension), "lines": lines, "over": None}


def _jumps(y: np.ndarray, before: np.ndarray, after: np.ndarray) -> bool:
    """Whether a quantity is not the same on both sides of all events, as far as can be seen."""
    largest = np.abs(y[np.isfinite(y)]).max(initial=0.0)
    return not np.allclose(before, after, rtol=0.0, atol=1e-9 * largest, equal_nan=True)


def _track(name: str, field: str) -> Callable[[Keyframes, int], np.ndarray]:
    return lambda frames, k: frames.read_motion(k, name, field)


def _coordinates(frames: Keyframes) -> list[Signal]:
    mech, found = frames.mech, []
    names = iter(mech.coordinates)
    for joint in mech.joints:
        pair = joint.pair
        slots = dict(zip(pair.coordinates, pair.slots))
        if len(pair.rest) > 1:
            what = "Euler parameters" if None in pair.slots else "coordinates"
            columns = [f"e{i}" for i in range(len(pair.rest))]
            for coordinate, slot in slots.items():
                if slot is not None:
                    columns[slot] = coordinate
            found.append(Signal(joint.name, joint.name, what, "number", columns, _track(joint.name, "q")))
        for slot, name in zip(pair.slots, names):
            if slot is not None:
                found += _rates(mech, name)
    return found


def _rates(mech: Mechanism, name: str) -> list[Signal]:
    """The position, velocity and acceleration of a coordinate or gauge."""
    return [
        Signal(f"{name}.{field}", name, *quantity(mech, name, rate), [""], _track(name, field))
        for field, rate in _RATES.items()
    ]


def _gauges(mech: Mechanism) -> list[Signal]:
    return [signal for gauge in mech.gauges for signal in _rates(mech, gauge.name)]


def _points(mech: Mechanism) -> list[Signal]:
    found = []
    for body in mech.bodies:
        for point in body.points:
            name = f"{body.name}.{point}"
            for field, rate in _RATES.items():
                columns, read = list("xy" if mech.planar else "xyz"), _track(name, field)
                words, kind = moved(True, rate) if rate else ("position", "length")
                found.append(Signal(f"{name}.{field}", name, words, kind, columns, read))
    return found


def _contacts(frames: Keyframes) -> list[Signal]:
    found = []
    for contact in frames.mech.contacts:
        fields = ["gap"]
        if frames.acting(0) is not None:
            fields += ["force"] if contact.friction is None else ["force", "friction"]
        for field in fields:
            known = field == "gap" or frames.efforts is None
            read = _track(contact.name, field) if known else _pressed(contact.name, field)
            key = f"{contact.name}.{field}"
            found.append(Signal(key, contact.name, *PARTS[field], [""], read))
    return found


def _pressed(name: str, field: str) -> Callable[[Keyframes, int], np.ndarray]:
    """The force of a contact, or its friction, of efforts."""

    def read(frames: Keyframes, k: int) -> np.ndarray:
        efforts = frames.acting(k)
        return np.asarray(efforts[name] if field == "force" else efforts.friction(name).force)

    return read


def _dynamics(frames: Keyframes) -> list[Signal]:
    """Forces of springs, positive where they pull, and of actuators, where they push; of simulations and efforts, what
    drivers push with, and energies."""
    mech, found = frames.mech, []
    for i, actor in enumerate(actors(mech)):
        sign = -1.0 if isinstance(actor.force, Spring) else 1.0
        read = lambda frames, k, i=i, sign=sign: sign * frames.pushes(k)[:, i]
        kind = pushed(not actor.turns)
        found.append(Signal(f"{actor.name}.force", actor.name, kind, kind, [""], read))
    run = frames.acting(0)
    if run is None:
        return found
    names = run.names if isinstance(run, Efforts) else [mech.coordinates[k] for k in run.plant.problem.columns]
    for name in names:
        kind = pushed(bool(is_length(mech, name)))
        read = lambda frames, k, name=name: np.asarray(frames.acting(k).effort(name))
        found.append(Signal(f"{name}.effort", name, f"driving {kind}", kind, [""], read))
    return [*found, Signal("energy", "energy", "energy", "energy", ["kinetic", "potential", "total"], _energies)]


def _energies(frames: Keyframes, k: int) -> np.ndarray:
    run = frames.acting(k)
    return np.stack([run.kinetic, run.potential, run.kinetic + run.potential], 1)


def _reaction(mech: Mechanism, joint: str) -> Signal:
    """The force that a joint transmits, in ground, and its size."""
    dim = 2 if mech.planar else 3

    def read(frames: Keyframes, k: int) -> np.ndarray:
        force = np.asarray(frames.acting(k).reaction(joint).force_ground)[:, :dim]
        return np.column_stack([force, np.linalg.norm(force, axis=1)])

    return Signal(f"{joint}.reaction", joint, "reaction", "force", [*"xyz"[:dim], "|F|"], read)


def _columns(rows: Any) -> np.ndarray:
    return np.asarray(rows).reshape(len(rows), -1)


def _band(t: np.ndarray, y: np.ndarray, others: list[Keyframes], signal: Signal, i: int, scale: float) -> list | None:
    """The least and the largest of all variants."""
    if not others:
        return None
    every = [y]
    for other in others:
        ts, there = np.asarray(other.motions[0].ts), reached(other.motions[0])
        its = scale * _columns(signal.read(other, 0))[there, i]
        every.append(np.interp(t, ts[there], its, left=np.nan, right=np.nan))
    rows = np.stack(every)
    there = np.isfinite(rows)
    low, high = np.where(there, rows, np.inf).min(0), np.where(there, rows, -np.inf).max(0)
    return [packed(np.where(there.any(0), x, np.nan)) for x in (low, high)]
