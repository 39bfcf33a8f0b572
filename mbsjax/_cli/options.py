"""Arguments and options that commands share, and the files and folders that they name."""

import pathlib
from collections.abc import Callable

import click


SEED = click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the samples.")


def file_argument(f: Callable) -> Callable:
    return click.argument("file", type=click.Path(path_type=pathlib.Path))(f)


def changes_option(f: Callable) -> Callable:
    help = "Another value of a parameter, a number or a formula; may be given several times."
    return click.option("--set", "-s", "changes", multiple=True, metavar="NAME=VALUE", help=help)(f)


def output_options(f: Callable) -> Callable:
    f = click.option("--overwrite", is_flag=True, help="Whether the folder may exist; files in it are replaced.")(f)
    help = "Folder for the results; by default the file's name with that of the command."
    return click.option("--output", "-o", type=click.Path(path_type=pathlib.Path), metavar="FOLDER", help=help)(f)


def results_folder(
    output: pathlib.Path | None, file: pathlib.Path, command: str, overwrite: bool, make: bool = False
) -> pathlib.Path:
    """Where results go: refused at once if it may not be used, made when there are some."""
    folder = output or pathlib.Path(f"{file.stem}_{command}")
    if folder.exists() and not folder.is_dir():
        raise click.UsageError(f"{folder} is not a folder")
    if folder.exists() and any(folder.iterdir()) and not overwrite:
        raise click.UsageError(f"the folder {folder} is not empty: name another one by -o, or say --overwrite")
    if make:
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def new_file(path: pathlib.Path, overwrite: bool) -> pathlib.Path:
    """A file to write: refused if it is there and may not be replaced; its folder is made."""
    if path.exists() and not overwrite:
        raise click.UsageError(f"{path} exists: name another file by -o, or say --overwrite")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
