"""The command `info`: what a mechanism is made of."""

import pathlib

import click

from .console import OUT, cell, computes, show, working
from .load import load_model
from .options import changes_option, file_argument


@click.command()
@file_argument
@changes_option
@computes
def info(file: pathlib.Path, changes: tuple[str, ...]) -> None:
    """What a mechanism is made of: bodies, joints, loops, degrees of freedom, redundant equations.

    \b
    Example:
      mbsjax info four_bar.toml
    """
    model = load_model(file, changes)
    with working("looking at the mechanism"):
        text = repr(model.mechanism())
    OUT.print(model.title, style="bold", markup=False)
    OUT.print(text, markup=False)
    if model.parameters:
        from .._pictures.table import Table

        OUT.print()
        given = model.document.get("parameters", {})
        rows = [(n, cell(x), given[n] if isinstance(given[n], str) else "") for n, x in model.parameters.items()]
        show(Table("parameters", ("name", "value", "formula"), rows))
