"""The command `view`: a page to play a motion."""

import pathlib
from typing import TYPE_CHECKING, Any

import click

from .analysis import page_of, run_analysis
from .console import computes, wrote
from .load import load_model
from .options import changes_option, file_argument, new_file


if TYPE_CHECKING:
    from .._files.model import Model


@click.command()
@file_argument
@changes_option
@click.option(
    "--of",
    type=click.Choice(["model", "kinematics", "simulate", "inverse"]),
    help="What to show; simulate if the file has it. `model`: where it starts, before anything is computed.",
)
@click.option(
    "--plot", "plots", multiple=True, metavar="NAME", help="What to plot: A, A.v, 'A.v over A', C.force, energy."
)
@click.option("--output", "-o", type=click.Path(path_type=pathlib.Path), metavar="FILE", help="The page to write.")
@click.option("--overwrite", is_flag=True, help="Whether the page may exist.")
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@computes
def view(
    file: pathlib.Path, changes: tuple, of: str | None, plots: tuple, output: Any, overwrite: bool, show: bool
) -> None:
    """One page to play a motion or a simulation, that needs nothing else. Of a model: which way its drivers move it,
    and what its springs do.

    \b
    Example:
      mbsjax view cam_roller.toml --open
    """
    model = load_model(file, changes)
    path = new_file(output or pathlib.Path(f"{file.stem}.html"), overwrite)
    of = of or ("simulate" if "simulate" in model.document else "kinematics")
    run, problem = (None, "") if of == "model" else run_analysis(model, of)
    page = _page_of_model(model) if run is None else page_of(model, run, plots=plots or None)
    wrote(page.save(path))
    if show:
        click.launch(str(path))
    if problem:
        raise RuntimeError(problem)


def _page_of_model(model: "Model") -> Any:
    """The mechanism of a file as it is assembled, near the positions that the file gives."""
    from .._files.tables import read_values
    from .._pictures.viewer.view import view

    near: dict[str, Any] = {}
    for section, key in (("kinematics", "estimate"), ("simulate", "estimate"), ("simulate", "positions")):
        if key in model.document.get(section, {}):
            near |= read_values(model.reader(), model.document[section], section, key)
    return view(model.mechanism(), drive=model.drive(), estimate=near or None, title=model.title)
