"""The tolerance study of a model file: `[tolerances]`, `[correlation]`, `[lots]`, `[measures]` and `[limits]`."""

from typing import Any, NamedTuple

from .._model.mechanism import unknown
from .._tolerance.play.parts import PlayParts, play_parts
from .._tolerance.play.study import play_study
from .._tolerance.study import Study
from .analyses import analysis_of, made, run
from .document import Document
from .measures import Measure
from .open_analysis import OpenMeasure, open_analysis
from .tables import needed_table, read_limits, read_measures, read_together


class StudyTables(NamedTuple):
    """What a file says of a study."""

    of: str
    tolerances: dict[str, Any]
    measures: dict[str, Measure]
    limits: dict[str, Any]
    together: dict[str, Any]


def study_tables(file: Document) -> StudyTables:
    """What a file says of its study; raises where something is wrong."""
    reader, _ = file.section("study", ("of",))
    of, nominal = analysis_of(file, "study"), file.nominal
    tolerances: dict[str, Any] = {}
    for name, x in needed_table(reader, file.document, "tolerances").items():
        path = ("tolerances", name)
        if name not in nominal:
            raise reader.wrong(f"there is {unknown('parameter that is a number', name, list(nominal))}", path)
        tolerances[name] = reader.made("distribution", x, path) if isinstance(x, dict) else reader.number(x, path)
    measures = read_measures(reader, needed_table(reader, file.document, "measures"), ("measures",))
    bounds = reader.table(file.document.get("limits", {}), ("limits",))
    reader.only(bounds, measures, ("limits",))
    limits = {n: read_limits(reader, x, ("limits", n)) for n, x in bounds.items()}
    varied = {name: nominal[name] for name in tolerances}
    return StudyTables(of, tolerances, measures, limits, read_together(reader, file.document, varied))


def study_of(file: Document) -> Study:
    """The study; of the motion of joints with play, that of `mbsjax.play_study`."""
    of, tolerances, measures, limits, more = study_tables(file)
    varied = {name: file.nominal[name] for name in tolerances}
    model = open_analysis(file, of, tuple(varied))
    every = {name: OpenMeasure(model.file, f, ("measures", name)) for name, f in measures.items()}
    make = play_study if of == "kinematics" and _has_play(file) else Study
    return file.reader().guarded(("tolerances",), make, model, varied, tolerances, every, limits=limits, **more)


def play_parts_of(file: Document) -> PlayParts | None:
    """How much the play of each joint does to its measures; None of a mechanism without play, or of other analyses."""
    if analysis_of(file, "study") != "kinematics" or not _has_play(file):
        return None
    reader = file.reader()
    table = read_measures(reader, needed_table(reader, file.document, "measures"), ("measures",))
    read = lambda f, path: lambda run: reader.guarded(path, f, run, reader.numbers)
    return play_parts(run(file, "kinematics"), {name: read(f, ("measures", name)) for name, f in table.items()})


def _has_play(file: Document) -> bool:
    return any(joint.play is not None for joint in made(file, None).joints)
