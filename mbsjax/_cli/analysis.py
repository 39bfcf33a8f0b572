"""Analyses of a model file, and the results that they leave in a folder: a table, pictures and a page to play."""

import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .console import OUT, cell, computes, show, working, wrote
from .load import load_model
from .options import changes_option, file_argument, output_options, results_folder


if TYPE_CHECKING:
    from .._files.model import Model

_FORMAT = click.option(
    "--format", "kind", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True, help="Of the table."
)

_OVER = click.option("--over", metavar="NAME", help="A coordinate, over which to draw curves.  [default: time]")

_PICTURES = click.option(
    "--pictures", type=click.Choice(["png", "svg", "pdf"]), default="png", show_default=True, help="As which files."
)


def analysis_command(command: Callable) -> Callable:
    """What all commands have that analyze one file and leave results in a folder."""
    for option in (computes, _PICTURES, output_options, changes_option, file_argument):
        command = option(command)
    return command


def motion_command(command: Callable) -> Callable:
    """What those have beside that whose results are along a motion."""
    return _FORMAT(_OVER(analysis_command(command)))


def analyze(
    file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, kind: str, pictures: str, over: Any, of: str
) -> None:
    """Runs one analysis of a model file, and writes its results; what the commands `kinematics` and `simulate` do."""
    model = load_model(file, changes)
    run, problem, folder = analyzed(model, file, output, overwrite, of, over)
    OUT.print(str(run), markup=False)
    table = run.to_csv(folder / "results.csv") if kind == "csv" else run.to_parquet(folder / "results.parquet")
    with working("pictures"):
        written = [table, *_events(run, folder), *draw(run, folder, pictures, ("ghosts", "contacts", "curves"), over)]
        written.append(page_of(model, run).save(folder / "view.html"))
    wrote(*written)
    measures(model, run, of)
    if problem:
        raise RuntimeError(problem)


def analyzed(
    model: "Model", file: pathlib.Path, output: Any, overwrite: bool, of: str, over: str | None = None
) -> tuple[Any, str, Any]:
    """A run, why it ended before its time, if it did, and the folder for its results: what would be refused is, before
    anything is computed."""
    from .._programs.names import unknown

    model.check_measures(of)
    if over is not None and over not in (known := model.mechanism().coordinates):
        raise click.BadParameter(unknown("coordinate", over, list(known)), param_hint="'--over'")
    results_folder(output, file, of, overwrite)
    run, problem = run_analysis(model, of)
    return run, problem, results_folder(output, file, of, overwrite, make=True)


def _events(run: Any, folder: pathlib.Path) -> list[pathlib.Path]:
    """The events of a run as a table, where it can have some."""
    from .._dynamics.solution import Solution
    from .._pictures.table import Table

    if run.events is None:
        return []
    simulated = isinstance(run, Solution)
    names, rows = [contact.name for contact in run.mech.contacts], []
    for i, event in enumerate(run.events.list(run.mech, run.triggers) if simulated else run.events.list(run.mech)):
        hit = simulated and event.contact in names
        impulse = float(run.events.impulse[i, names.index(event.contact)]) if hit else ""
        rows.append((event.t, event.kind, event.contact, *event.pairs, impulse))
    path = folder / "events.csv"
    path.write_text(Table("events", ("t", "kind", "contact", "from", "to", "impulse"), rows).to_csv(), encoding="utf-8")
    return [path]


def run_analysis(model: "Model", of: str) -> tuple[Any, str]:
    """A run, and why it ended before its time, if it did. Where it cannot even begin, the complaint of the library."""
    from .._files.errors import FileError

    with working(of):
        try:
            return model.run(of), ""
        except FileError as error:
            if not isinstance(error.__cause__, RuntimeError):
                raise
            return model.run(of, throw=False), str(error)


def measures(model: "Model", run: Any, of: str) -> None:
    """Prints what the measures of a file are of a run, or of which analysis they are taken."""
    from .._pictures.columns import table_with_units

    if of != model.analysis:
        if model.document.get("measures"):
            other = f'the measures are taken of the analysis "{model.analysis}": run that one'
            OUT.print(f'\n{other}, or say of = "{of}" in [study]', markup=False)
        return
    units = model.units
    rows = [(name, cell(x), units.get(name, "")) for name, x in model.measured(run).items()]
    if rows:
        OUT.print()
        show(table_with_units("measures", ("name", "value"), rows))
        if model.system is not None:
            parts = (model.system.length, model.system.mass, model.system.time)
            OUT.print(f"Formulas are worked out in {', '.join(parts)} and radians; units beside them convert nothing.")


def page_of(model: "Model", run: Any, **options: Any) -> Any:
    """The page that plays a run, an `mbsjax.Viewer`."""
    from .._pictures.viewer.view import view

    return view(run, title=model.title, **options)


def draw(
    run: Any,
    folder: pathlib.Path,
    kind: str,
    names: tuple[str, ...] = ("ghosts", "contacts"),
    over: str | None = None,
) -> list[pathlib.Path]:
    """Pictures of a run, by the functions of `mbsjax.plots`; nothing where matplotlib is missing. Curves are drawn
    over a coordinate, or over time."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    from .. import plots

    found = []
    for name in names:
        if not {"contacts": run.mech.contacts, "curves": run.mech.coordinates}.get(name, True):
            continue
        make = _curves if name == "curves" else getattr(plots, name)
        against = {"against": over} if name in ("curves", "efforts") else {}
        found.append(plots.save(make(run, **against), folder / f"{name}.{kind}"))
    return found


def _curves(run: Any, against: str | None) -> Any:
    """Angles and travels with their velocities and accelerations, side by side, and below them forces of contacts."""
    import matplotlib.pyplot as plt

    from .. import plots
    from .._dynamics.solution import Solution
    from .._pictures.quantities import lengths

    stored = [slot is not None for joint in run.mech.joints for slot in joint.pair.slots]
    along = [(name, length) for (name, length), there in zip(lengths(run.mech).items(), stored, strict=True) if there]
    sides = [names for kind in (False, True) if (names := [name for name, length in along if length == kind])]
    forces = [f"{contact.name}.force" for contact in run.mech.contacts] if isinstance(run, Solution) else []
    rows = 3 + bool(forces)
    size = (6.0 * len(sides), 1.0 + 1.8 * rows)
    figure, axes = plt.subplots(rows, len(sides), figsize=size, squeeze=False, layout="constrained", sharex=True)
    for k, names in enumerate(sides):
        plots.curves(run, names, rates=(0, 1, 2), against=against, axes=axes[:3, k])
    if forces:
        plots.curves(run, forces, against=against, axes=axes[3, 0])
        for axis in axes[3, 1:]:
            figure.delaxes(axis)
    return axes[0, 0]
