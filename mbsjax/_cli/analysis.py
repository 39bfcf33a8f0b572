"""Analyses of a model file, and the results that they leave in a folder: a table, pictures and a page to play."""

import pathlib
from typing import TYPE_CHECKING, Any

import click

from .console import OUT, cell, show, working, wrote
from .load import load_model
from .options import results_folder


if TYPE_CHECKING:
    from .._files.model import Model

FORMAT = click.option(
    "--format", "kind", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True, help="Of the table."
)

PICTURES = click.option(
    "--pictures", type=click.Choice(["png", "svg", "pdf"]), default="png", show_default=True, help="As which files."
)


def analyze(
    file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, kind: str, pictures: str, of: str
) -> None:
    """Runs one analysis of a model file, and writes its results; what the commands `kinematics` and `simulate` do."""
    model = load_model(file, changes)
    results_folder(output, file, of, overwrite)
    run, problem = run_analysis(model, of)
    folder = results_folder(output, file, of, overwrite, make=True)
    OUT.print(run, markup=False)
    table = run.to_csv(folder / "results.csv") if kind == "csv" else run.to_parquet(folder / "results.parquet")
    with working("pictures"):
        written = [table, *draw(run, folder, pictures), page_of(model, run).save(folder / "view.html")]
    wrote(*written)
    if of == model.analysis:
        measures(model, run)
    if problem:
        raise RuntimeError(problem)


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


def measures(model: "Model", run: Any) -> None:
    """Prints what the measures of a file are of a run."""
    from .._pictures.columns import table_with_units

    units = model.units
    rows = [(name, cell(x), units.get(name, "")) for name, x in model.measured(run).items()]
    if rows:
        OUT.print()
        show(table_with_units("measures", ("name", "value"), rows))


def page_of(model: "Model", run: Any, **options: Any) -> Any:
    """The page that plays a run, an `mbsjax.Viewer`."""
    from .._pictures.viewer.view import view

    return view(run, title=model.title, **options)


def draw(
    run: Any, folder: pathlib.Path, kind: str, names: tuple[str, ...] = ("ghosts", "contacts")
) -> list[pathlib.Path]:
    """Pictures of a run, by the functions of `mbsjax.plots`; nothing where matplotlib is missing."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    from .. import plots

    found = []
    for name in names:
        if name == "contacts" and not run.mech.contacts:
            continue
        found.append(plots.save(getattr(plots, name)(run), folder / f"{name}.{kind}"))
    return found
