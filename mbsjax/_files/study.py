"""The tolerance study of a model file: `[tolerances]`, `[correlation]`, `[lots]`, `[measures]` and `[limits]`."""

from .._tolerance.play.parts import PlayParts, play_parts
from .._tolerance.play.study import play_study
from .._tolerance.study import Study
from .analyses import made, run
from .document import Document
from .measures import Measure
from .open_analysis import OpenMeasure, open_analysis
from .tables import needed_table, read_measures, read_of, read_study


def study_of(file: Document) -> Study:
    """The study; of the motion of joints with play, that of `mbsjax.play_study`."""
    for name in ("tolerances", "measures"):
        needed_table(file.reader(), file.document, name)
    of, tolerances, measures, limits, more = read_study(file.reader(), file.document, file.nominal)
    varied = {name: file.nominal[name] for name in tolerances}
    model = open_analysis(file, of, tuple(varied))
    every = {name: OpenMeasure(model.file, Measure(f), ("measures", name)) for name, f in measures.items()}
    make = play_study if of == "kinematics" and _has_play(file) else Study
    return file.reader().guarded(("tolerances",), make, model, varied, tolerances, every, limits=limits, **more)


def play_parts_of(file: Document) -> PlayParts | None:
    """How much the play of each joint does to its measures; None of a mechanism without play, or of other analyses."""
    if read_of(file.reader(), file.document, "study") != "kinematics" or not _has_play(file):
        return None
    reader = file.reader()
    table = read_measures(reader, needed_table(reader, file.document, "measures"), ("measures",))
    read = lambda f, path: lambda run: reader.guarded(path, f, run, reader.numbers)
    return play_parts(
        run(file, "kinematics"), {name: read(Measure(f), ("measures", name)) for name, f in table.items()}
    )


def _has_play(file: Document) -> bool:
    return any(joint.play is not None for joint in made(file, None).joints)
