"""The task of synthesis of a model file: its table `[synthesis]`."""

from typing import Any, NamedTuple

import equinox as eqx

from .._synthesis.goal import Within
from .._synthesis.task import Task
from .analyses import analysis_of
from .document import Document
from .open_analysis import OpenFile, OpenMeasure, open_analysis
from .read import Reader
from .tables import GOALS, SYNTHESIS, needed_table, read_limits, read_measures


class TaskTables(NamedTuple):
    """What a file says of a task."""

    of: str
    variables: dict[str, Any]
    goals: dict[str, Any]
    conditions: dict[str, Any]
    more: dict[str, Any]


def task_tables(file: Document) -> TaskTables:
    """What a file says of its task; raises where something is wrong."""
    reader, table = file.section("synthesis", SYNTHESIS)
    of, where = analysis_of(file, "synthesis"), ("synthesis",)
    bounds = needed_table(reader, table, "variables", where)
    reader.only(bounds, file.nominal, (*where, "variables"))
    variables = {n: read_limits(reader, x, (*where, "variables", n)) for n, x in bounds.items()}
    goals = {
        name: _measured(file, reader, x, (*where, "goals", name), GOALS, ("target", "weight"))
        for name, x in needed_table(reader, table, "goals", where).items()
    }
    conditions = {
        name: _measured(file, reader, x, (*where, "conditions", name), {"": Within}, ("lower", "upper", "scale"))
        for name, x in reader.table(table.get("conditions", {}), (*where, "conditions")).items()
    }
    angles = [reader.text(x, (*where, "angles")) for x in reader.row(table.get("angles", []), (*where, "angles"))]
    exact = reader.flag(table.get("exact", False), (*where, "exact"))
    return TaskTables(of, variables, goals, conditions, {"angles": angles, "exact": exact})


def _measured(
    file: Document, reader: Reader, given: Any, path: tuple[str, ...], kinds: dict[str, Any], numbers: tuple[str, ...]
) -> Any:
    """A goal or a condition."""
    table = reader.by_new_names(dict(reader.table(given, path)))
    reader.only(table, (*("type",) * (len(kinds) > 1), "measure", *numbers), path)
    kind = table.get("type", next(iter(kinds)))
    if kind not in kinds:
        raise reader.wrong(f"there is no goal {kind!r}; there are {', '.join(kinds)}", path)
    f = read_measures(reader, {"measure": table.get("measure")}, path)["measure"]
    more = {k: reader.number(table[k], (*path, k)) for k in numbers if k in table}
    return reader.guarded(path, kinds[kind], OpenMeasure(OpenFile(file, ()), f, path), **more)


def task_of(file: Document) -> Task:
    """The task."""
    of, variables, goals, conditions, more = task_tables(file)
    start = {name: file.nominal[name] for name in variables}
    model = open_analysis(file, of, tuple(start))
    read = lambda x: eqx.tree_at(lambda x: x.measure, x, OpenMeasure(model.file, x.measure.formula, x.measure.path))
    goals, conditions = ({name: read(x) for name, x in every.items()} for every in (goals, conditions))
    where = ("synthesis",)
    return file.reader().guarded(where, Task, model, start, variables, goals, conditions=conditions, **more)


def search_of(file: Document) -> dict[str, Any]:
    """What it says of the search."""
    reader, table = file.section("synthesis", SYNTHESIS)
    found: dict[str, Any] = {
        key: reader.whole(table[key], ("synthesis", key), 10**6) for key in ("starts", "seed") if key in table
    }
    if "draw" in table:
        given = reader.table(table["draw"], ("synthesis", "draw"))
        found["draw"] = {n: read_limits(reader, x, ("synthesis", "draw", n)) for n, x in given.items()}
    return found
