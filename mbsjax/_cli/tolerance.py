"""The command `tolerance`: a report of a tolerance study."""

import contextlib
import dataclasses
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
@click.option("--second/--first", default=True, show_default=True, help="Expand to second order, or stop at slopes.")
@click.option("--worst/--no-worst", default=None, help="Exact worst case; only measures with limits by default.")
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
    worst: bool | None,
    target: float | None,
    what_if: pathlib.Path | None,
) -> None:
    """Which dimensions matter, and what their tolerances do: sensitivities, worst case, RSS, yield. Writes tables and a
    page in which tolerances can be changed; what it saves can be analyzed with --what-if.

    \b
    Example:
      mbsjax tolerance four_bar.toml -n 4096
    """
    from .._tolerance.analysis import slopes, steps
    from .._tolerance.report import TARGET

    model = load_model(file, changes)
    if what_if is not None:
        model = model.what_if(what_if)
    units = model.units
    results_folder(output, file, "tolerance", overwrite)
    with working("the nominal mechanism"):
        study = model.study()
    known = {name: unit for name, unit in units.items() if name in (*study.choice.names, *study.labels)}
    inside = worst if worst is not None else "limited" if second else False
    ahead = steps(study, samples, seed, second=second, worst=inside, progress=False, rare=rare)
    numbered = lambda i, name: f"step {i + 1} of {len(ahead) + 1}, {name}"
    with working(numbered(0, "slopes")):
        report = slopes(study, seed=seed, target=TARGET if target is None else target, units=known)
    folder = results_folder(output, file, "tolerance", overwrite, make=True)
    shown = report.slope_tables
    for table in shown:
        show(table)
    interrupted = False
    try:
        written = _write(report, folder)
        for i, step in enumerate(ahead, 1):
            with working(numbered(i, step.name)):
                report = dataclasses.replace(report, **step.found(report))
            written = _write(report, folder)
    except KeyboardInterrupt:
        interrupted = True  # what is there is kept
        written = _write(report, folder)
    plays = None if interrupted else model.play_parts()
    for table in [*report.tables, *([] if plays is None else [plays.table])]:
        if table not in shown:
            show(table)
    wrote(*written)
    with contextlib.suppress(ImportError):
        page = report.to_html(folder / "report.html", title=model.title, mechanism=False)
        wrote(page)
        if not interrupted:
            with working("the mechanism in the page"):  # a program of its own, which may take a while
                report.to_html(page, title=model.title)
    if interrupted:
        raise KeyboardInterrupt


def _write(report: Any, folder: pathlib.Path) -> list[pathlib.Path]:
    return [*report.to_csv(folder), report.to_json(folder / "report.json")]
