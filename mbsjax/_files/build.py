"""From the tables of a model file to a mechanism, and to what an analysis takes."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from .._events.trigger import Trigger
from .._model.mechanism import Mechanism
from .._model.points import PointName
from .._programs.precision import as_float, numpy_of
from ..frames import at
from .functions import Components, Formula, Switched, Watch
from .grammar import SOLVERS
from .lines import Path
from .read import Reader
from .tables import read_options, read_parts
from .words import WORDS


class Builder(Reader):
    """A reader that makes the parts of a mechanism, and functions of formulas."""

    def construct(self, group: str, kind: str, path: Path, found: dict[str, Any]) -> Any:
        if kind == "actuator" and "switches" in found and isinstance(found.get("function"), Formula):
            found["function"] = Switched(found["function"])
        return self.guarded(path, WORDS[group][kind], **found)

    def array(self, given: Any) -> Any:
        return jnp.asarray(given, float)

    def linspace(self, first: Any, last: Any, count: int) -> Any:
        return jnp.asarray(numpy_of(first, last).linspace(first, last, count), float)

    def formula(self, text: str, variables: tuple[str, ...], path: Path) -> Any:
        return self.guarded(path, Formula, text, variables, self.numbers)

    def components(self, given: Any, path: Path) -> Any:
        parts, single = super().components(given, path), not isinstance(given, list)
        if any(isinstance(p, Formula) for p in parts):
            fixed = lambda p: p if isinstance(p, Formula) else as_float(p, "a component of a load")
            return Components(tuple(fixed(p) for p in parts), single)
        return parts[0] if single else parts

    def frame(self, given: Any, path: Path) -> Any:
        found = super().frame(given, path)
        if isinstance(found, dict) and "point" in found:
            axis = found["axis"]
            axis = None if axis is None else self.guarded(path, as_float, axis, "the axis of a frame")
            return PointName(found["point"], axis)
        return self.guarded(path, at, **found) if isinstance(found, dict) else found

    def point_of(self, body: str, given: Any, path: Path) -> None:
        super().point_of(body, given.name if isinstance(given, PointName) else given, path)


def mechanism(reader: Builder, document: Mapping[str, Any]) -> Mechanism:
    """The mechanism of a file."""
    parts = read_parts(reader, document)
    try:
        return Mechanism(**parts)
    except ValueError as error:
        raise reader.wrong(error, _culprit(str(error), document)) from error


def _culprit(problem: str, document: Mapping[str, Any]) -> Path:
    """The table that a complaint about the whole mechanism names first."""
    named = [
        (problem.index(f"{name!r}"), (table, name))
        for table in ("joints", "contacts", "gauges", "forces", "bodies")
        for name in document.get(table, {})
        if f"{name!r}" in problem
    ]
    return min(named)[1] if named else ()


def options(reader: Builder, table: dict[str, Any]) -> dict[str, Any]:
    """How a simulation is done."""
    found = read_options(reader, table)
    if "solver" in found:
        import diffrax  # here, as most do without

        found["solver"] = getattr(diffrax, SOLVERS[found["solver"]])()
    triggers = found["triggers"].items()
    place = lambda name: ("simulate", "triggers", name)
    return found | {
        "triggers": [reader.guarded(place(n), Trigger, n, Watch(f), stop=stop) for n, (f, stop) in triggers]
    }
