"""The task of synthesis of a model file: its table `[synthesis]`."""

from typing import Any

from .._synthesis.goal import Match, Minimax, Minimize, Within
from .._synthesis.task import Task
from .document import Document
from .measures import Measure
from .open_analysis import OpenMeasure, open_analysis
from .tables import Aim, read_task


_GOALS = {"match": Match, "minimax": Minimax, "minimize": Minimize}


def task_of(file: Document) -> Task:
    """The task."""
    reader = file.reader()
    tables = read_task(reader, file.document, file.nominal)
    start = {name: file.nominal[name] for name in tables.variables}
    model = open_analysis(file, tables.of, tuple(start))

    def made(kind: Any, aim: Aim) -> Any:
        return reader.guarded(aim.path, kind, OpenMeasure(model.file, Measure(aim.measure), aim.path), **aim.numbers)

    goals = {name: made(_GOALS[aim.type], aim) for name, aim in tables.goals.items()}
    conditions = {name: made(Within, aim) for name, aim in tables.conditions.items()}
    more = {"conditions": conditions, "angles": tables.angles, "exact": tables.exact}
    return reader.guarded(("synthesis",), Task, model, start, tables.variables, goals, **more)
