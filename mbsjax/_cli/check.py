"""The command `check`: what is wrong with model files."""

import pathlib

import click

from .console import BAD, ERR, OUT, prepared, safe
from .load import load_model


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@click.option("--build", is_flag=True, help="Build the mechanisms too: finds profiles that do not close, loose bodies.")
@safe
def check(files: tuple[pathlib.Path, ...], build: bool) -> None:
    """Reads model files and tells all that is wrong with them, with line, key and remedy. Nothing is built, so that it
    takes no time; numbers that are out of range are found with --build.

    \b
    Example:
      mbsjax check four_bar.toml cam.toml
    """
    from .._files.check import check_text
    from .._files.errors import FileError
    from .._files.text import read_text

    wrong = 0
    for file in files:
        try:
            mistakes, found = ([], []) if file.suffix.lower() == ".dyn" else check_text(read_text(file), str(file))
            if not mistakes and (build or not found):
                prepared()
                found = load_model(file).check()
        except (FileError, ValueError) as error:
            mistakes, found = [error], []
        for error in mistakes:
            ERR.print("error:", style="bold red", end=" ")
            ERR.print(str(error), markup=False, soft_wrap=True)
        if not mistakes:
            OUT.print(f"{file}: {', '.join(found)}", markup=False)
        wrong += len(mistakes)
    if wrong:
        raise SystemExit(BAD)
