"""The command `montecarlo`: the samples of a tolerance study."""

import pathlib
from typing import Any

import click

from .console import safe, show, working, wrote
from .load import load_model
from .options import SEED, changes_option, file_argument


_METHODS = click.Choice(["random", "latin", "sobol"])


@click.command()
@file_argument
@changes_option
@click.option("--samples", "-n", type=click.IntRange(1), default=10000, show_default=True, help="How many.")
@SEED
@click.option("--method", type=_METHODS, default="random", show_default=True, help="How they are spread.")
@click.option("--chunk", type=click.IntRange(1), default=4096, show_default=True, help="How many at once.")
@click.option(
    "--output", "-o", type=click.Path(path_type=pathlib.Path), metavar="FOLDER", help="Where chunks are kept."
)
@click.option("--resume", is_flag=True, help="Go on with the samples of a folder that exists.")
@safe
def montecarlo(
    file: pathlib.Path,
    changes: tuple,
    samples: int,
    seed: int,
    method: str,
    chunk: int,
    output: Any,
    resume: bool,
) -> None:
    """Samples a tolerance study by the hundred thousand, on all devices; killed, it goes on with --resume.

    \b
    Example:
      mbsjax montecarlo four_bar.toml -n 100000 -o samples
      mbsjax montecarlo four_bar.toml -n 100000 -o samples --resume
    """
    from .._pictures.table import Table
    from .._tolerance.campaign import campaign

    model = load_model(file, changes)
    folder = output or pathlib.Path(f"{file.stem}_montecarlo")
    if folder.exists() and any(folder.iterdir()) and not resume:
        raise click.UsageError(f"the folder {folder} is not empty: name another one by -o, or say --resume")
    with working("the nominal mechanism"):
        study = model.study()
    done = campaign(study, samples, folder, seed=seed, method=method, chunk=chunk)
    tally = done.tally
    moments, errors = tally.moments, tally.errors
    names = ("mean", "sigma", "skewness", "kurtosis")
    rows = [(f"{name}, standard error", *_pairs(x, e)) for name, x, e in zip(names, moments, errors)]
    rows += [("least", *map(float, tally.least)), ("largest", *map(float, tally.largest))]
    show(Table(f"{samples} samples", ("", *study.columns), rows))
    rejects = [(name, 1e6 * float(rate), 1e6 * float(error)) for name, (rate, error) in tally.rejects.items()]
    if rejects:
        show(Table("rejects", ("measure", "ppm", "standard error"), rejects))
    show(_classes(tally))
    wrote(folder)


def _pairs(values: Any, errors: Any) -> list[str]:
    return [f"{float(x):.8g} +- {float(e):.2g}" for x, e in zip(values, errors)]


def _classes(tally: Any) -> Any:
    from .._dynamics.outcome import CLASSES
    from .._pictures.table import Table

    rows = [(name, int(n)) for name, n in zip(CLASSES, tally.classes) if n]
    return Table("what became of them", ("class", "samples"), rows)
