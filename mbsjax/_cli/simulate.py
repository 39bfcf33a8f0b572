"""The command `simulate`: a motion under forces."""

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
def simulate(file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, kind: str, pictures: str) -> None:
    """How a mechanism moves under its forces, with its contacts and impacts.

    \b
    Example:
      mbsjax simulate cam_roller.toml --set stiffness=1.5
    """
    analyze(file, changes, output, overwrite, kind, pictures, "simulate")
