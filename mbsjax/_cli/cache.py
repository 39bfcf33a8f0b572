"""The command `cache`: the programs that are kept between runs."""

import click

from .console import OUT, safe


@click.command()
@click.option("--clear", is_flag=True, help="Deletes them, and what JAX keeps there.")
@safe
def cache(clear: bool) -> None:
    """The compiled programs that are kept between runs: where, how many, how large. What JAX keeps in the same folder
    is counted with them.

    \b
    Examples:
      mbsjax cache
      mbsjax cache --clear
    """
    from .._programs.kept import delete, files
    from .._programs.prepare import programs_folder

    folder = programs_folder(click.get_current_context().find_root().obj["cache"])
    found = files(folder)
    size = sum(x.stat().st_size for x in found if x.exists()) / 1e6
    if clear:
        delete(found)
    OUT.print(f"{folder}: {len(found)} files, {size:.1f} MB{', deleted' if clear else ''}", markup=False)
