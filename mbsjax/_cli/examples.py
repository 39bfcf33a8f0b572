"""The command `examples`: model files to begin with."""

import importlib.resources
import pathlib
import re
import shutil
from typing import Any

import click

from .console import OUT, safe, wrote
from .options import new_file


@click.command()
@click.argument("name", required=False)
@click.option("--output", "-o", type=click.Path(path_type=pathlib.Path), metavar="FILE", help="Where to copy it.")
@click.option("--overwrite", is_flag=True, help="Whether the file may exist.")
@safe
def examples(name: str | None, output: Any, overwrite: bool) -> None:
    """Lists the examples, or copies one out.

    \b
    Example:
      mbsjax examples
      mbsjax examples latch
    """
    from .._pictures.table import Table

    folder = importlib.resources.files("mbsjax") / "examples"
    files = {f.name.removesuffix(".toml"): f for f in folder.iterdir() if f.name.endswith(".toml")}
    if name is None:
        question = re.compile(r"# Question: (.*)")
        rows = [(n, (question.match(files[n].read_text(encoding="utf-8")) or [n, n])[1]) for n in sorted(files)]
        table = Table("examples", ("name", "what it answers"), rows)
        OUT.print(str(table), markup=False)
        return
    name = name.removesuffix(".toml")
    if name not in files:
        raise click.UsageError(f"there is no example {name!r}; there are {', '.join(sorted(files))}")
    path = new_file(output or pathlib.Path(f"{name}.toml"), overwrite)
    with importlib.resources.as_file(files[name]) as file:
        shutil.copyfile(file, path)
    wrote(path)
