"""Plots in the page: what is plotted, with the range of all variants."""

import numpy as np

from ..._dynamics.solution import Solution
from ..._programs.names import unknown
from .keyframes import Keyframes, reached
from .packing import packed


def panels(first: Keyframes, others: list[Keyframes], names: list[str] | None) -> list[dict]:
    mech, contacts = first.mech, [c.name for c in first.mech.contacts]
    gauges = [g.name for g in mech.gauges]
    if names is None:
        stored = [s for j in mech.joints for s in j.pair.slots]
        chosen = [name for name, slot in zip(mech.coordinates, stored) if slot is not None]
        chosen += [g.name for g in mech.gauges if g.value is None] + contacts
    else:
        chosen = names
        known = [*mech.coordinates, *(j.name for j in mech.joints if j.pair.rest), *gauges, *contacts]
        for name in chosen:
            if name not in known:
                raise ValueError(f"plots names {unknown('coordinate, joint, gauge or contact', name, known)}")
    panels = []
    for name in chosen:
        for label, columns, field in _readings(first, name):
            y = first.read(name, field).reshape(len(first.t), -1)
            finite = y[np.isfinite(y)]
            size = max(np.abs(finite).max(initial=0.0), first.size if field == "gap" else 1e-3)
            if names is None and (finite.size == 0 or np.ptp(finite) <= 1e-9 * size):
                continue
            lines = [
                {"label": column, "y": packed(y[:, i]), "band": _band(first.t, y[:, i], others, name, field, i)}
                for i, column in enumerate(columns)
            ]
            panels.append({"label": label, "lines": lines, "jumps": field in ("force", "friction")})
    return panels


def _readings(frames: Keyframes, name: str) -> list[tuple[str, list[str], str]]:
    """What is plotted of a name: the label, those of the curves, and the field of its track."""
    mech = frames.mech
    if name in [c.name for c in mech.contacts]:
        fields = ["gap"]
        if isinstance(frames.motions[0], Solution):
            fields += ["force"] if mech.contact(name).friction is None else ["force", "friction"]
        return [(f"{name}: {field}", [""], field) for field in fields]
    columns = [""]
    joint = next((j for j in mech.joints if j.name == name), None)
    if joint is not None and len(joint.pair.rest) > 1:
        columns = [f"e{i}" for i in range(len(joint.pair.rest))]
        for coordinate, slot in zip(joint.pair.coordinates, joint.pair.slots):
            if slot is not None:
                columns[slot] = coordinate
    return [(name, columns, "q")]


def _band(t: np.ndarray, y: np.ndarray, others: list[Keyframes], name: str, field: str, i: int) -> list | None:
    """The least and the largest of all variants."""
    if not others:
        return None
    every = [y]
    for other in others:
        ts, there = np.asarray(other.motions[0].ts), reached(other.motions[0])
        its = other.read_motion(0, name, field).reshape(len(ts), -1)[there, i]
        every.append(np.interp(t, ts[there], its, left=np.nan, right=np.nan))
    rows = np.stack(every)
    there = np.isfinite(rows)
    low, high = np.where(there, rows, np.inf).min(0), np.where(there, rows, -np.inf).max(0)
    return [packed(np.where(there.any(0), x, np.nan)) for x in (low, high)]
