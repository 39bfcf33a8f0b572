"""The tables of a model file that say what to do with a mechanism: their keys, and how they are read."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._events.trigger import Trigger
from .._model.mechanism import unknown
from .._programs.precision import is_concrete, numpy_of
from .._synthesis.goal import Match, Minimax, Minimize
from .._tolerance.parameters import labels
from .formula import Formula
from .measures import Measure
from .read import Reader, Watch


TABLES = ("bodies", "joints", "contacts", "gauges", "forces", "drive", "kinematics", "simulate")
_STUDY = ("study", "tolerances", "correlation", "lots", "measures", "limits", "units", "synthesis")
KEYS = ("title", "gravity", "planar", "parameters", *TABLES, *_STUDY)
KINEMATICS = ("t0", "t1", "outputs", "ts", "estimate", "max_steps", "max_events")
SIMULATE = (
    "t1", "outputs", "ts", "positions", "velocities", "estimate", "solver", "rtol", "atol", "rest_speed", "impacts",
    "restitution", "max_steps", "max_events", "triggers",
)  # fmt: skip
ANALYSES = {"kinematics": KINEMATICS, "simulate": SIMULATE}  # and the keys of their tables
SYNTHESIS = ("of", "variables", "goals", "conditions", "angles", "exact", "starts", "seed", "draw")
CHOICES = {"impacts": ("together", "in turn"), "restitution": ("newton", "poisson")}  # of [simulate]
SOLVERS = {"tsit5": "Tsit5", "dopri8": "Dopri8", "kvaerno5": "Kvaerno5"}  # as diffrax calls them
GOALS = {"match": Match, "minimax": Minimax, "minimize": Minimize}


def needed_table(reader: Reader, outer: dict, name: str, path: tuple[str, ...] = ()) -> dict[str, Any]:
    """A table that must be there, within another one or within the whole file."""
    found = reader.table(outer.get(name, {}), (*path, name))
    if not found:
        raise reader.wrong(f"a table [{'.'.join((*path, name))}] is missing, or empty", path)
    return found


def read_counts(reader: Reader, table: dict, section: str) -> dict[str, Any]:
    """How many steps and events there may be, where a table says so."""
    most = {"max_steps": 10**6, "max_events": 10**4}
    return {k: reader.whole(table[k], (section, k), n, 1) for k, n in most.items() if k in table}


def read_values(reader: Reader, table: dict, section: str, key: str) -> dict[str, Any]:
    """Numbers by name: an estimate, positions or velocities."""
    path = (section, key)
    return {name: reader.number(x, (*path, name)) for name, x in reader.table(table[key], path).items()}


def read_times(reader: Reader, table: dict, section: str) -> Array:
    """The output times that a table asks for."""
    if "ts" in table:
        reader.row(table["ts"], (section, "ts"))
        return reader.guarded((section, "ts"), jnp.asarray, reader.number(table["ts"], (section, "ts")), float)
    if "t1" not in table:
        raise reader.wrong(f"when it ends, `t1`, is missing in [{section}]", (section,))
    t0, t1 = (reader.number(table.get(k, 0.0), (section, k)) for k in ("t0", "t1"))
    n = reader.whole(table.get("outputs", 201), (section, "outputs"), 10**5, 2)
    return jnp.asarray(numpy_of(t0, t1).linspace(t0, t1, n), float)


def read_solver(reader: Reader, name: Any) -> Any:
    """A solver of a simulation, one of diffrax."""
    import diffrax  # here, as most do without

    if not isinstance(name, str) or name not in SOLVERS:
        raise reader.wrong(f"there is no solver {name!r}; there are {', '.join(SOLVERS)}", ("simulate", "solver"))
    return getattr(diffrax, SOLVERS[name])()


def read_options(reader: Reader, table: dict) -> dict[str, Any]:
    """What `[simulate]` says of how it is done."""
    found = read_counts(reader, table, "simulate")
    for key in ("rtol", "atol", "rest_speed"):
        if key in table:
            found[key] = reader.number(table[key], ("simulate", key))
    for key, known in CHOICES.items():
        if key in table and table[key] not in known:
            either = " or ".join(f'"{x}"' for x in known)
            raise reader.wrong(f"{either} is expected, got {table[key]!r}", ("simulate", key))
        found |= {key: table[key]} if key in table else {}
    if "solver" in table:
        found["solver"] = read_solver(reader, table["solver"])
    triggers = reader.table(table.get("triggers", {}), ("simulate", "triggers"))
    return found | {"triggers": [read_trigger(reader, name, x) for name, x in triggers.items()]}


def read_trigger(reader: Reader, name: str, given: Any) -> Trigger:
    """A trigger of a simulation."""
    path = ("simulate", "triggers", name)
    table = reader.table(given, path)
    reader.only(table, ("function", "stop"), path)
    f = reader.state_function(reader.text(table.get("function", ""), (*path, "function")), (*path, "function"))
    if not isinstance(f, Formula):
        raise reader.wrong("the function of a trigger must depend on the state: `t`, `O.q`, `O.v`", path)
    stop = reader.flag(table.get("stop", False), (*path, "stop"))
    return reader.guarded(path, Trigger, name, Watch(f), stop=stop)


def read_measures(reader: Reader, given: Any, path: tuple[str, ...]) -> dict[str, Measure]:
    """Measures by name."""
    table = reader.table(given, path)
    return {name: reader.guarded((*path, name), Measure, reader.text(x, (*path, name))) for name, x in table.items()}


def read_together(reader: Reader, document: dict[str, Any], varied: dict[str, Any]) -> dict[str, Any]:
    """Which dimensions vary together: the tables `[correlation]` and `[lots]`."""
    correlation = _correlation(reader, document.get("correlation", {}))
    lots = _lots(reader, document.get("lots", {}))
    known = list(dict.fromkeys([*varied, *(y for name, x in varied.items() for y in labels(name, np.shape(x)))]))
    named = {**{("correlation", *pair): pair for pair in correlation}, **{("lots", x): lots[x] for x in lots}}
    for path, names in named.items():
        for name in names:
            if name not in known:
                raise reader.wrong(f"there is {unknown('dimension with a tolerance', name, known)}", path)
    return {"correlation": correlation, "lots": lots}


def _correlation(reader: Reader, given: Any) -> dict[tuple[str, str], float]:
    """Correlations of pairs: a table for the first of each, `crank.rod = 0.5`."""
    table = reader.table(given, ("correlation",))
    pairs = {(a, b): x for a, rest in table.items() for b, x in reader.table(rest, ("correlation", a)).items()}
    return {pair: _number(reader, x, ("correlation", *pair)) for pair, x in pairs.items()}


def _number(reader: Reader, given: Any, path: tuple[str, ...]) -> float:
    found = reader.number(given, path)
    if np.ndim(found):
        raise reader.wrong("one number is expected, got an array", path)
    return float(found)


def _lots(reader: Reader, given: Any) -> dict[str, list[str]]:
    """Names of the dimensions of each lot."""
    table = reader.table(given, ("lots",))
    return {
        lot: [reader.text(x, ("lots", lot)) for x in reader.row(names, ("lots", lot))] for lot, names in table.items()
    }


def read_limits(reader: Reader, given: Any, path: tuple[str, ...]) -> tuple[Any, Any]:
    """A pair; infinite is none."""
    pair = reader.row(given, path)
    if len(pair) != 2:
        raise reader.wrong(f"a pair [lower, upper] is expected, got {len(pair)} number(s)", path)
    low, high = (reader.number(x, path) for x in pair)
    if is_concrete(low, high) and not np.all(np.asarray(low) < np.asarray(high)):
        raise reader.wrong(f"the limits are in the wrong order: {low!r}, {high!r}", path)
    return tuple(None if np.ndim(x) == 0 and not np.isfinite(x) else x for x in (low, high))  # pyright: ignore
