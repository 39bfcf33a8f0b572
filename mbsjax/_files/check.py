"""All that is wrong with a model file, found in plain Python: nothing is built."""

from collections.abc import Mapping
from typing import Any

from .errors import FileError
from .grammar import ANALYSES, KEYS
from .lines import Path, line_numbers
from .names import Names, names_of
from .read import Reader, is_formula, parameters
from .readings import check_measure, untold
from .tables import (
    read_counts,
    read_drive,
    read_free,
    read_options,
    read_parts,
    read_section,
    read_study,
    read_system,
    read_task,
    read_times,
    read_units,
    read_values,
)
from .text import read_tables


def check_text(text: str, source: str) -> tuple[list[FileError], list[str]]:
    """The mistakes of a text, by line, and what it holds, in words.

    !!! Example

        >>> found, _ = check_text("[bodies.rod]\\nmas = 1.0\\ncenter = 'x'", "rod.toml")
        >>> for mistake in found:
        ...     print(mistake)
        rod.toml, line 2, bodies.rod.mas: the key 'mas' has no meaning here; did you mean 'mass'?
        rod.toml, line 3, bodies.rod.center: there is no 'x' for the formula 'x'; there are pi, deg
    """
    try:
        document = read_tables(text, source)
    except FileError as error:
        return [error], []
    return check_tables(document, line_numbers(text), source)


def check_tables(
    document: Mapping[str, Any], lines: Mapping[Path, int], source: str
) -> tuple[list[FileError], list[str]]:
    """The mistakes of these tables, by line, and what they hold, in words."""
    mistakes: list[FileError] = []
    known = names_of(document)
    reader = Reader(source, lines, {}, known, mistakes)
    reader.only(document, KEYS, ())
    with reader.going_on():
        reader.text(document.get("title", ""), ("title",))
    with reader.going_on():
        reader.units = read_system(reader, document)
    with reader.going_on():
        reader.numbers = parameters(reader, document.get("parameters", {}), {})
    read_parts(reader, document)
    _check_names(reader, document)
    found = [f"{len(reader.numbers)} parameters", f"{len(known.bodies) - 1} moving bodies"]
    with reader.going_on():
        read_drive(reader, document)
        drive = document.get("drive", {})
        _refer(reader, drive, known, ("drive",))
        found += [f"{len(drive)} drivers"] * bool(drive)
    for name in ANALYSES:
        if name in document:
            with reader.going_on():
                n = _check_section(reader, document, known, name)
                found.append(f"{name} at {n} times" if n else f"an {name}")
    found += _check_study(reader, document, known)
    return sorted(mistakes, key=lambda error: error.line or 0), found


def _check_names(reader: Reader, document: Mapping[str, Any]) -> None:
    """Every body, joint, contact, gauge and force has a name of its own, without dots."""
    seen: dict[str, str] = {}
    for table, what in (("joints", "joint"), ("contacts", "contact"), ("gauges", "gauge"), ("bodies", "body")):
        members = document.get(table, {})
        for name in members if isinstance(members, dict) else ():
            if not name or "." in name:
                reader.complain(f"the name of a {what} must be a text without dots, got {name!r}", (table, name))
            if table != "bodies" and name in seen:
                reader.complain(f"the name {name!r} is given to a {what} and a {seen[name]}", (table, name))
            seen.setdefault(name, what)


def _refer(reader: Reader, given: Mapping[str, Any], known: Names, path: Path) -> None:
    """Complains of names that are no coordinates, joints or gauges."""
    reader.only([name for name in given if not known.is_vague(name)], known.driven, path)


def _check_section(reader: Reader, document: Mapping[str, Any], known: Names, name: str) -> int:
    table = read_section(reader, document, name)
    if name == "simulate":
        read_options(reader, table)
    else:
        read_counts(reader, table, name)
    for key in [key for key in ("estimate", "positions", "velocities", "fixed") if key in table]:
        with reader.going_on():
            read_values(reader, table, name, key)
            _refer(reader, table[key], known, (name, key))
    if name == "equilibrium":
        with reader.going_on():
            read_free(reader, document)
        reader.number(table.get("t", 0.0), (name, "t"))
        return 0
    return len(read_times(reader, table, name))


def check_told(reader: Reader, document: Mapping[str, Any], known: Names, of: str, text: str, path: Path) -> None:
    """Raises where an analysis does not tell what a measure is made of."""
    name = reader.guarded(path, untold, text, known, reader.numbers, of)
    if name is None:
        return
    can = [x for x in ANALYSES if untold(text, known, reader.numbers, x) is None]
    section = path[0] if path[0] == "synthesis" else "study"
    there = [x for x in can if x in document or (x == "inverse" and "kinematics" in document)]
    remedy = " or ".join(f'of = "{x}"' for x in there or can)
    needs = "" if there else f", and a table [{can[0]}]" if can else ""
    raise reader.wrong(f"the analysis {of!r} does not tell {name!r}: it takes {remedy} in [{section}]{needs}", path)


def _check_study(reader: Reader, document: Mapping[str, Any], known: Names) -> list[str]:
    """Measures, tolerances, units and the task of synthesis; what there is of them, in words."""
    found: list[str] = []
    given = document.get("parameters", {})
    nominal = {name: x for name, x in reader.numbers.items() if not is_formula(given.get(name))}
    of, measures = "", {}
    with reader.going_on():
        of, _, measures, *_ = read_study(reader, document, nominal)
    for name, text in measures.items():
        with reader.going_on():
            reader.guarded(("measures", name), check_measure, text, known, reader.numbers)
            if of:
                check_told(reader, document, known, of, text, ("measures", name))
    found += [f"{len(measures)} measures"] * bool(measures) + ["a tolerance study"] * bool(document.get("tolerances"))
    if "units" in document:
        with reader.going_on():
            found.append(f"{len(read_units(reader, document))} units")
    if "synthesis" in document:
        with reader.going_on():
            task = read_task(reader, document, nominal)
            for aim in (*task.goals.values(), *task.conditions.values()):
                with reader.going_on():
                    at = (*aim.path, "measure")
                    reader.guarded(at, check_measure, aim.measure, known, reader.numbers)
                    if task.of:
                        check_told(reader, document, known, task.of, aim.measure, at)
            found.append("a task of synthesis")
    return found
