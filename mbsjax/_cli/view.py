"""The command `view`: a page to play a motion."""

import pathlib
from typing import Any

import click

from .analysis import page_of, run_analysis
from .console import computes, wrote
from .load import load_model
from .options import changes_option, file_argument, new_file


@click.command()
@file_argument
@changes_option
@click.option("--of", type=click.Choice(["kinematics", "simulate"]), help="What to show; simulate if the file has it.")
@click.option("--output", "-o", type=click.Path(path_type=pathlib.Path), metavar="FILE", help="The page to write.")
@click.option("--overwrite", is_flag=True, help="Whether the page may exist.")
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@computes
def view(file: pathlib.Path, changes: tuple, of: str | None, output: Any, overwrite: bool, show: bool) -> None:
    """One page to play a motion or a simulation, that needs nothing else.

    \b
    Example:
      mbsjax view cam_roller.toml --open
    """
    model = load_model(file, changes)
    path = new_file(output or pathlib.Path(f"{file.stem}.html"), overwrite)
    of = of or ("simulate" if "simulate" in model.document else "kinematics")
    run, problem = run_analysis(model, of)
    wrote(page_of(model, run).save(path))
    if show:
        click.launch(str(path))
    if problem:
        raise RuntimeError(problem)
