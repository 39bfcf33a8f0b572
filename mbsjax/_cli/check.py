"""The command `check`: what is wrong with model files."""

import pathlib

import click

from .console import BAD, ERR, OUT, safe
from .load import load_model


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@safe
def check(files: tuple[pathlib.Path, ...]) -> None:
    """Reads model files and says what is wrong with them, and where.

    \b
    Example:
      mbsjax check four_bar.toml cam.toml
    """
    from .._files.read import FileError

    wrong = 0
    for file in files:
        try:
            OUT.print(f"{file}: {', '.join(load_model(file).check())}", markup=False)
        except (FileError, ValueError) as error:
            wrong += 1
            ERR.print("error:", style="bold red", end=" ")
            ERR.print(str(error), markup=False, soft_wrap=True)
    if wrong:
        raise SystemExit(BAD)
