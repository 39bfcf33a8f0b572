"""The command `kinematics`: a driven motion."""

import pathlib
from typing import Any

import click

from .analysis import analyze, motion_command


@click.command()
@motion_command
def kinematics(
    file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, kind: str, pictures: str, over: str | None
) -> None:
    """How a driven mechanism moves: a table, pictures and a page to play it.

    \b
    Example:
      mbsjax kinematics four_bar.toml --set crank=1.2 -o longer_crank
    """
    analyze(file, changes, output, overwrite, kind, pictures, over, "kinematics")
