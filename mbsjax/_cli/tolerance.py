"""The command `tolerance`: a report of a tolerance study."""

import contextlib
import pathlib
from typing import Any

import click

from .console import safe, show, working, wrote
from .load import load_model
from .options import SEED, changes_option, file_argument, output_options, results_folder


@click.command()
@file_argument
@changes_option
@output_options
@click.option("--samples", "-n", type=click.IntRange(0), default=0, show_default=True, help="How many, beside slopes.")
@SEED
@click.option("--second/--first", default=True, show_default=True, help="Expand to second order, or first alone.")
@click.option("--worst/--no-worst", default=True, show_default=True, help="Look for the exact worst case.")
@safe
def tolerance(
    file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, samples: int, seed: int, second: bool, worst: bool
) -> None:
    """Which dimensions matter, and what their tolerances do: sensitivities, worst case, RSS, yield.

    \b
    Example:
      mbsjax tolerance four_bar.toml -n 4096
    """
    from .._tolerance.report import tolerance as analyze

    model = load_model(file, changes)
    results_folder(output, file, "tolerance", overwrite)
    with working("the nominal mechanism"):
        study = model.study()
    with working("tolerances"):
        report = analyze(study, samples=samples, seed=seed, second=second, worst=worst)
    folder = results_folder(output, file, "tolerance", overwrite, make=True)
    plays = model.play_parts()
    for table in [*report.tables, *([] if plays is None else [plays.table])]:
        show(table)
    wrote(*report.to_csv(folder), report.to_json(folder / "report.json"))
    with contextlib.suppress(ImportError):
        wrote(report.to_html(folder / "report.html", title=model.title))
