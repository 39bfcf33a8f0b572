"""The command `simulate`: a motion under forces."""

import pathlib
from typing import Any

import click

from .analysis import analyze, motion_command


@click.command()
@motion_command
def simulate(
    file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, kind: str, pictures: str, over: str | None
) -> None:
    """How a mechanism moves under its forces, with its contacts and impacts.

    \b
    Example:
      mbsjax simulate cam_roller.toml --set stiffness=1.5
    """
    analyze(file, changes, output, overwrite, kind, pictures, over, "simulate")
