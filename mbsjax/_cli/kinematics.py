"""The command `kinematics`: a driven motion."""

import pathlib
from typing import Any

import click

from .analysis import FORMAT, PICTURES, analyze
from .console import computes
from .options import changes_option, file_argument, output_options


@click.command()
@file_argument
@changes_option
@output_options
@FORMAT
@PICTURES
@computes
def kinematics(file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, kind: str, pictures: str) -> None:
    """How a driven mechanism moves: a table, pictures and a page to play it.

    \b
    Example:
      mbsjax kinematics four_bar.toml --set crank=1.2 -o longer_crank
    """
    analyze(file, changes, output, overwrite, kind, pictures, "kinematics")
