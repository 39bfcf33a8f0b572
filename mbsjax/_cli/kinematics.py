"""The command `kinematics`: a driven motion."""

import pathlib
from typing import Any

import click

from .analysis import FORMAT, analysis_command, analyze


@click.command()
@FORMAT
@analysis_command
def kinematics(file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, kind: str, pictures: str) -> None:
    """How a driven mechanism moves: a table, pictures and a page to play it.

    \b
    Example:
      mbsjax kinematics four_bar.toml --set crank=1.2 -o longer_crank
    """
    analyze(file, changes, output, overwrite, kind, pictures, "kinematics")
