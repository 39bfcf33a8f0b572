"""The command `synthesize`: dimensions that do better."""

import contextlib
import pathlib
from typing import Any

import click

from .console import OUT, computes, show, working, wrote
from .load import load_model
from .options import changes_option, file_argument, output_options, results_folder


@click.command()
@file_argument
@changes_option
@output_options
@click.option("--starts", "-n", type=click.IntRange(1), help="How many searches; by default what the file says.")
@click.option("--seed", type=click.IntRange(0), help="Of the starts.")
@computes
def synthesize(
    file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, starts: int | None, seed: int | None
) -> None:
    """Which dimensions do better: searches from many starts, and writes the file with the best ones.

    \b
    Example:
      mbsjax synthesize four_bar_path.toml --starts 256
    """
    from .._synthesis.synthesize import synthesize as search

    model = load_model(file, changes)
    results_folder(output, file, "synthesize", overwrite)
    options = model.search()
    options |= {k: x for k, x in (("starts", starts), ("seed", seed)) if x is not None}
    with working("the task"):
        task = model.task()
    OUT.print(task, markup=False)
    found = search(task, progress=True, **options)
    OUT.print(found, markup=False)
    if not found.designs:
        raise RuntimeError("no start led to a design")
    folder = results_folder(output, file, "synthesize", overwrite, make=True)
    show(found.table())
    show(found.before_and_after())
    (folder / "designs.csv").write_text(found.table(len(found.designs)).to_csv())
    best = folder / f"{file.stem}.toml"
    best.write_text(model.changed(found.best.dimensions), encoding="utf-8")
    wrote(folder / "designs.csv", best)
    with contextlib.suppress(ImportError):
        import matplotlib

        matplotlib.use("Agg")
        from ..plots import save

        wrote(save(found.plot_history(), folder / "history.png"))
    if "interrupted" in found.ended or sum(found.ended.values()) < options.get("starts", 1):
        raise KeyboardInterrupt
    if not found.best.met:
        raise RuntimeError("the best design does not keep all conditions")
