"""The tables of a model file that say what to do with a mechanism, and how they are read; in plain Python."""

import contextlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._model.units import Units, is_quantity
from .._programs.names import unknown
from .formula import parse
from .grammar import ANALYSES, CHOICES, CONDITION, GOAL, GOALS, SOLVERS, STUDY, SYNTHESIS, TRIGGER, UNITS
from .lines import Path
from .names import names_of
from .read import BROKEN, Reader
from .readings import untold


def needed_table(reader: Reader, outer: Mapping[str, Any], name: str, path: Path = ()) -> dict[str, Any]:
    """A table that must be there, within another one or within the whole file."""
    found = reader.table(outer.get(name, {}), (*path, name))
    if not found:
        raise reader.wrong(f"a table [{'.'.join((*path, name))}] is missing, or empty", path)
    return found


def read_parts(reader: Reader, document: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a mechanism, and what else is said of it."""

    def members(table: str, group: str, kind: str | None = None) -> list[Any]:
        make = lambda name, x, path: reader.made(group, x, path, kind=kind, name=name)
        with reader.going_on():
            return list(reader.members(document.get(table, {}), (table,), make).values())
        return []

    found: dict[str, Any] = {"bodies": members("bodies", "body", "body")}
    found["joints"] = members("joints", "joint") + members("contacts", "contact", "contact")
    found["forces"], found["gauges"] = members("forces", "force"), members("gauges", "gauge")
    if "gravity" in document:
        with reader.going_on():
            found["gravity"] = reader.shaped(reader.number(document["gravity"], ("gravity",)), "point", ("gravity",))
    if "planar" in document:
        with reader.going_on():
            found["planar"] = reader.flag(document["planar"], ("planar",))
    return found | {"units": reader.units}


def asked_section(reader: Reader, document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The table of an analysis that is asked for; where there is none, which analyses the file is made for."""
    there = [other for other in ANALYSES if other in document]
    if name not in document and there:
        others = ", ".join(f"[{other}]" for other in there)
        which = " or ".join(f"`{other}`" for other in there)
        raise reader.wrong(f"there is no table [{name}] in this file; there is {others}: take {which}, or add one", ())
    return read_section(reader, document, name)


def read_section(reader: Reader, document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The table of an analysis, `kinematics` or `simulate`."""
    table = reader.table(document.get(name, {}), (name,))
    reader.only(table, ANALYSES[name], (name,))
    return table


def read_counts(reader: Reader, table: dict, section: str) -> dict[str, Any]:
    """How many steps and events there may be, where a table says so."""
    most, found = {"max_steps": 10**6, "max_events": 10**4}, {}
    for key in set(most) & set(table):
        with reader.going_on():
            found[key] = reader.whole(table[key], (section, key), most[key], 1)
    return found


def read_values(reader: Reader, table: dict, section: str, key: str) -> dict[str, Any]:
    """Numbers by name: an estimate, positions or velocities."""
    return reader.members(table[key], (section, key), lambda _, x, path: reader.number(x, path))


def read_times(reader: Reader, table: dict, section: str) -> Any:
    """The output times that a table asks for."""
    if "ts" in table:
        path = (section, "ts")
        ts = reader.guarded(path, reader.array, reader.number(reader.row(table["ts"], path), path))
        if not ordered(ts[:-1], ts[1:]):
            raise reader.wrong("the output times must increase", path)
        return ts
    if "t1" not in table:
        raise reader.wrong(f"when it ends, `t1`, is missing in [{section}]", (section,))
    n, ends = 201, [0.0, np.inf]  # what is wrong with one of them is told already
    if "outputs" in table:
        with reader.going_on():
            n = reader.whole(table["outputs"], (section, "outputs"), 10**5, 2)
    for i, key in enumerate(("t0", "t1")):
        with reader.going_on():
            ends[i] = reader.shaped(reader.number(table.get(key, 0.0), (section, key)), "number", (section, key))
    if not ordered(ends[0], ends[1]):
        first, last = (float(x) for x in ends)
        raise reader.wrong(f"it must end after it begins, at t = {first:.6g}, got {last:.6g}", (section, "t1"))
    return reader.linspace(ends[0], ends[1] if ends[1] is not np.inf else 1.0, n)


def read_options(reader: Reader, table: dict) -> dict[str, Any]:
    """What `[simulate]` says of how it is done."""
    found = read_counts(reader, table, "simulate")
    for key in [key for key in ("rtol", "atol", "rest_speed", *CHOICES) if key in table]:
        x, path = table[key], ("simulate", key)
        with reader.going_on():
            found[key] = reader.choice(x, CHOICES[key], path) if key in CHOICES else _number(reader, x, path)
            if key not in CHOICES and not ordered(0.0, found[key], equal=key == "rest_speed"):
                raise reader.wrong(f"it must be positive, got {_told(found[key])}", path)
    if "solver" in table:
        with reader.going_on():
            found["solver"] = read_solver(reader, table["solver"])
    with reader.going_on():
        read = lambda name, x, path: read_trigger(reader, x, path)
        found["triggers"] = reader.members(table.get("triggers", {}), ("simulate", "triggers"), read)
    return found


def read_solver(reader: Reader, name: Any) -> str:
    """The name of a solver of a simulation."""
    if not isinstance(name, str) or name not in SOLVERS:
        raise reader.wrong(f"there is no solver {name!r}; there are {', '.join(SOLVERS)}", ("simulate", "solver"))
    return name


def read_trigger(reader: Reader, given: Any, path: Path) -> tuple[Any, bool]:
    """The function of a trigger, and whether it stops the simulation."""
    table = reader.table(given, path)
    reader.only(table, TRIGGER, path)
    text, at = reader.text(table.get("function", ""), (*path, "function")), (*path, "function")
    f = reader.state_function(text, at)
    if not reader.state_variables(text, at):
        raise reader.wrong("the function of a trigger must depend on the state: `t`, `O.q`, `O.v`", path)
    return f, reader.flag(table.get("stop", False), (*path, "stop"))


def read_measures(reader: Reader, given: Any, path: Path) -> dict[str, str]:
    """Measures by name."""
    return reader.members(given, path, lambda _, x, at: read_measure(reader, x, at))


def read_measure(reader: Reader, given: Any, path: Path) -> str:
    """A measure, which is known to be a formula."""
    text = reader.text(given, path)
    reader.guarded(path, parse, text)
    return text


def read_drive(reader: Reader, document: Mapping[str, Any]) -> dict[str, Any]:
    """The drivers: numbers, and formulas of `t`."""
    return reader.members(document.get("drive", {}), ("drive",), lambda _, x, at: reader.function(x, ("t",), at))


def read_free(reader: Reader, document: Mapping[str, Any]) -> list[str]:
    """The drivers that `[equilibrium]` leaves out."""
    at, drivers = ("equilibrium", "free"), document.get("drive", {})
    found = [reader.text(x, at) for x in reader.row(read_section(reader, document, at[0]).get("free", []), at)]
    for name in found:
        if name not in drivers:
            raise reader.wrong(unknown("driver", name, list(drivers)), at)
    return found


def read_of(reader: Reader, document: Mapping[str, Any], section: str) -> str:
    """What `[study]` or `[synthesis]` is about: what it says, or the first analysis that the file has a table for; of
    `[study]`, the first that tells all measures, if one does."""
    given = reader.table(document.get(section, {}), (section,)).get("of")
    there = [of for of in ANALYSES if of in document] or ["simulate"]
    fit = [of for of in there if section != "study" or len(there) == 1 or _tells_all(document, of)]
    found = given or (fit or there)[0]
    if found not in list(ANALYSES):
        either = ", ".join(map(repr, ANALYSES))
        raise reader.wrong(f"`of` must be one of {either}, got {found!r}", (section, "of"))
    return found


def _tells_all(document: Mapping[str, Any], of: str) -> bool:
    """Whether an analysis tells all measures; what is no measure counts for nothing, others complain of it."""
    measures, known, numbers = document.get("measures", {}), names_of(document), document.get("parameters", {})
    for text in measures.values() if isinstance(measures, dict) else ():
        with contextlib.suppress(ValueError, TypeError):
            if untold(text, known, numbers, of) is not None:
                return False
    return True


class StudyTables(NamedTuple):
    """What the tables of a tolerance study hold."""

    of: str
    tolerances: dict[str, Any]
    measures: dict[str, str]
    limits: dict[str, tuple[Any, Any]]
    together: dict[str, Any]


def read_study(reader: Reader, document: Mapping[str, Any], nominal: Mapping[str, Any]) -> StudyTables:
    """The tables of a tolerance study, those of them that there are; `nominal` are the parameters that are numbers."""
    reader.only(reader.table(document.get("study", {}), ("study",)), STUDY, ("study",))

    def tolerance(name: str, x: Any, path: Path) -> Any:
        if name not in nominal:
            raise reader.wrong(f"there is {unknown('parameter that is a number', name, list(nominal))}", path)
        if isinstance(x, dict):
            return reader.made("distribution", x, path)
        found = reader.number(x, path)
        if np.ndim(found) == 0 and not ordered(0.0, found):
            raise reader.wrong(f"a tolerance must be positive, got {_told(found)}", path)
        return found if np.ndim(found) == 0 else list(_ordered_pair(reader, found, path))

    of, tolerances, measures, limits, together = "", {}, {}, {}, {}
    with reader.going_on():
        of = read_of(reader, document, "study")
    with reader.going_on():
        tolerances = reader.members(document.get("tolerances", {}), ("tolerances",), tolerance)
    with reader.going_on():
        measures = read_measures(reader, document.get("measures", {}), ("measures",))
    with reader.going_on():
        reader.only(reader.table(document.get("limits", {}), ("limits",)), document.get("measures", {}), ("limits",))
        limits = reader.members(document.get("limits", {}), ("limits",), lambda _, x, at: read_limits(reader, x, at))
    with reader.going_on():
        varied = {name: x for name, x in nominal.items() if name in document.get("tolerances", {})}
        together = read_together(reader, document, varied)
    return StudyTables(of, tolerances, measures, limits, together)


def read_units(reader: Reader, document: Mapping[str, Any]) -> dict[str, str]:
    """The units of parameters and measures, by name: those that are said, and those of parameters with a unit."""
    measures = reader.table(document.get("measures", {}), ("measures",))
    named, table = (*reader.numbers, *measures), reader.table(document.get("units", {}), ("units",))
    reader.only(table, (*UNITS, *named), ("units",))
    system, given = reader.units or Units(), document.get("parameters", {})
    sound = [name for name, x in given.items() if is_quantity(x) and reader.numbers.get(name) is not BROKEN]
    own = {name: reader.guarded(("parameters", name), system.label_of, given[name]) for name in sound}
    said = {name: x for name, x in table.items() if name in named}
    return own | reader.members(said, ("units",), lambda _, x, at: reader.text(x, at))


def read_system(reader: Reader, document: Mapping[str, Any]) -> Units | None:
    """The units that the table `[units]` says all numbers are in, if it does."""
    table = reader.table(document.get("units", {}), ("units",))
    words = {word: reader.text(table[word], ("units", word)) for word in UNITS if word in table}
    return reader.guarded(("units",), Units.of, words or None)


class Aim(NamedTuple):
    """A goal or a condition of a task."""

    type: str
    measure: str
    numbers: dict[str, Any]
    path: Path


class TaskTables(NamedTuple):
    """What the tables of a task of synthesis hold."""

    of: str
    variables: dict[str, tuple[Any, Any]]
    goals: dict[str, Aim]
    conditions: dict[str, Aim]
    angles: list[str]
    exact: bool
    search: dict[str, Any]


def read_task(reader: Reader, document: Mapping[str, Any], nominal: Mapping[str, Any]) -> TaskTables:
    """The table `[synthesis]`; `nominal` are the parameters that are numbers."""
    where = ("synthesis",)
    table = reader.table(document.get("synthesis", {}), where)
    reader.only(table, SYNTHESIS, where)
    pair = lambda _, x, path: read_limits(reader, x, path)
    goal = lambda _, x, path: _aim(reader, x, path, GOAL)
    condition = lambda _, x, path: _aim(reader, x, path, CONDITION)
    of, variables, goals, conditions, angles, exact, search = "", {}, {}, {}, [], False, {}
    with reader.going_on():
        of = read_of(reader, document, "synthesis")
    with reader.going_on():
        bounds = needed_table(reader, table, "variables", where)
        reader.only(bounds, nominal, (*where, "variables"))
        variables = reader.members(bounds, (*where, "variables"), pair)
    with reader.going_on():
        goals = reader.members(needed_table(reader, table, "goals", where), (*where, "goals"), goal)
    with reader.going_on():
        conditions = reader.members(table.get("conditions", {}), (*where, "conditions"), condition)
    with reader.going_on():
        at = (*where, "angles")
        angles = [reader.text(x, at) for x in reader.row(table.get("angles", []), at)]
    with reader.going_on():
        exact = reader.flag(table.get("exact", False), (*where, "exact"))
    for key in [key for key in ("starts", "seed") if key in table]:
        with reader.going_on():
            search[key] = reader.whole(table[key], (*where, key), 10**6)
    if "draw" in table:
        with reader.going_on():
            search["draw"] = reader.members(table["draw"], (*where, "draw"), pair)
    return TaskTables(of, variables, goals, conditions, angles, exact, search)


def _aim(reader: Reader, given: Any, path: Path, known: tuple[str, ...]) -> Aim:
    table = reader.by_new_names(dict(reader.table(given, path)))
    reader.only(table, known, path)
    kind = table.get("type", GOALS[0])
    if kind not in GOALS:
        raise reader.wrong(f"there is no goal {kind!r}; there are {', '.join(GOALS)}", path)
    measure = read_measure(reader, table.get("measure"), (*path, "measure"))
    numbers = {k: reader.number(table[k], (*path, k)) for k in known if k in table and k not in ("type", "measure")}
    return Aim(kind, measure, numbers, path)


def read_together(reader: Reader, document: Mapping[str, Any], varied: Mapping[str, Any]) -> dict[str, Any]:
    """Which dimensions vary together: the tables `[correlation]` and `[lots]`."""
    correlation = _correlation(reader, document.get("correlation", {}))
    lots = _lots(reader, document.get("lots", {}))
    shapes = {name: () if x is BROKEN else np.shape(x) for name, x in varied.items()}
    each = [f"{name}[{','.join(map(str, i))}]" for name, shape in shapes.items() for i in np.ndindex(*shape) if shape]
    known = [*varied, *each]
    named = {**{("correlation", *pair): pair for pair in correlation}, **{("lots", x): lots[x] for x in lots}}
    for path, names in named.items():
        for name in names:
            if name not in known:
                reader.complain(f"there is {unknown('dimension with a tolerance', name, known)}", path)
    return {"correlation": correlation, "lots": lots}


def _correlation(reader: Reader, given: Any) -> dict[tuple[str, str], float]:
    """Correlations of pairs: a table for the first of each, `crank.rod = 0.5`."""
    row = lambda a, rest, path: reader.members(rest, path, lambda b, x, at: _coefficient(reader, x, at))
    table = reader.members(given, ("correlation",), row)
    return {(a, b): x for a, rest in table.items() for b, x in rest.items()}


def _number(reader: Reader, given: Any, path: Path) -> Any:
    found = reader.number(given, path)
    if np.ndim(found):
        raise reader.wrong("one number is expected, got an array", path)
    return found


def _coefficient(reader: Reader, given: Any, path: Path) -> float:
    found = float(_number(reader, given, path))
    if not -1 <= found <= 1:
        raise reader.wrong(f"a correlation must be between -1 and 1, got {found:.6g}", path)
    return found


def _lots(reader: Reader, given: Any) -> dict[str, list[str]]:
    """Names of the dimensions of each lot."""
    return reader.members(given, ("lots",), lambda _, x, at: [reader.text(n, at) for n in reader.row(x, at)])


def read_limits(reader: Reader, given: Any, path: Path) -> tuple[Any, Any]:
    """A pair; infinite is none."""
    pair = reader.row(given, path)
    if len(pair) != 2:
        raise reader.wrong(f"a pair [lower, upper] is expected, got {len(pair)} number(s)", path)
    low, high = _ordered_pair(reader, [reader.number(x, path) for x in pair], path)
    return tuple(None if np.ndim(x) == 0 and not np.isfinite(x) else x for x in (low, high))  # pyright: ignore


def _ordered_pair(reader: Reader, pair: Any, path: Path) -> tuple[Any, Any]:
    if len(pair) != 2:
        raise reader.wrong(f"a pair [lower, upper] is expected, got {len(pair)} number(s)", path)
    low, high = pair
    try:
        fine = ordered(low, high)
    except ValueError:
        raise reader.wrong("the limits must be numbers, or rows of the same length", path) from None
    if not fine:
        raise reader.wrong(f"the limits are in the wrong order: {_told(low)}, {_told(high)}", path)
    return low, high


def ordered(low: Any, high: Any, equal: bool = False) -> bool:
    """Whether numbers, or rows of them, are below others, as far as they are known."""
    try:
        a, b = np.asarray(low, float), np.asarray(high, float)
    except TypeError:  # of numbers that are not known yet
        return True
    return bool(np.all(a <= b if equal else a < b))


def _told(x: Any) -> str:
    return f"{float(x):.6g}" if np.ndim(x) == 0 else repr(x)
