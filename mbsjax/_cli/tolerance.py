"""The command `tolerance`: a report of a tolerance study."""

import contextlib
import pathlib
from typing import Any

import click

from .console import computes, show, working, wrote
from .load import load_model
from .options import SEED, changes_option, file_argument, output_options, results_folder


@click.command()
@file_argument
@changes_option
@output_options
@click.option("--samples", "-n", type=click.IntRange(0), default=0, show_default=True, help="How many, beside slopes.")
@click.option("--rare", type=click.IntRange(0), default=0, show_default=True, help="Samples for rare rejects (ppm).")
@SEED
@click.option("--second/--first", default=True, show_default=True, help="Expand to second order, or first alone.")
@click.option("--worst/--no-worst", default=True, show_default=True, help="Look for the exact worst case.")
@click.option("--target", type=click.FloatRange(0.0, min_open=True), help="A Cpk, or a yield below 1.  [default: 1.33]")
@click.option("--what-if", type=click.Path(path_type=pathlib.Path), metavar="FILE", help="Other tolerances and limits.")
@computes
def tolerance(
    file: pathlib.Path,
    changes: tuple,
    output: Any,
    overwrite: bool,
    samples: int,
    rare: int,
    seed: int,
    second: bool,
    worst: bool,
    target: float | None,
    what_if: pathlib.Path | None,
) -> None:
    """Which dimensions matter, and what their tolerances do: sensitivities, worst case, RSS, yield. Writes tables and a
    page in which tolerances can be changed; what it saves can be analyzed with --what-if.

    \b
    Example:
      mbsjax tolerance four_bar.toml -n 4096
    """
    from .._tolerance.report import TARGET, tolerance as analyze

    model = load_model(file, changes)
    if what_if is not None:
        model = model.what_if(what_if)
    units = model.units
    results_folder(output, file, "tolerance", overwrite)
    with working("the nominal mechanism"):
        study = model.study()
    with working("tolerances"):
        known = {name: unit for name, unit in units.items() if name in (*study.choice.names, *study.labels)}
        goal = TARGET if target is None else target
        report = analyze(
            study, samples=samples, rare=rare, seed=seed, second=second, worst=worst, target=goal, units=known
        )
    folder = results_folder(output, file, "tolerance", overwrite, make=True)
    plays = model.play_parts()
    for table in [*report.tables, *([] if plays is None else [plays.table])]:
        show(table)
    wrote(*report.to_csv(folder), report.to_json(folder / "report.json"))
    with contextlib.suppress(ImportError):
        wrote(report.to_html(folder / "report.html", title=model.title))
