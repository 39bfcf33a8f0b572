"""The command `montecarlo`: the samples of a tolerance study."""

import contextlib
import multiprocessing
import pathlib
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any

import click

from .console import ERR, computes, show, working, wrote
from .load import load_model
from .options import SEED, changes_option, file_argument


_METHODS = click.Choice(["random", "latin", "sobol"])
_SECONDS = 10  # to find a scheduler


@click.command()
@file_argument
@changes_option
@click.option("--samples", "-n", type=click.IntRange(1), default=10000, show_default=True, help="How many.")
@SEED
@click.option("--method", type=_METHODS, default="random", show_default=True, help="How they are spread.")
@click.option("--chunk", type=click.IntRange(1), help="How many at once.  [default: 4096; on a CPU at most N/8]")
@click.option("--until", "goals", multiple=True, metavar="NAME=ERROR", help="Stop when the rate is known this well.")
@click.option("--output", "-o", metavar="STORE", help="Where chunks are kept: a folder, or s3://bucket/folder.")
@click.option("--no-store", is_flag=True, help="Keep no samples, statistics only.")
@click.option("--resume", is_flag=True, help="Go on with the samples of a store that exists.")
@click.option("--workers", metavar="N|ADDRESS", help="So many processes, or those of a Dask scheduler.")
@computes
def montecarlo(
    file: pathlib.Path,
    changes: tuple,
    samples: int,
    seed: int,
    method: str,
    chunk: int | None,
    goals: tuple[str, ...],
    output: str | None,
    no_store: bool,
    resume: bool,
    workers: str | None,
) -> None:
    """Samples a tolerance study by the hundred thousand, on all devices; killed, it goes on with --resume.

    \b
    Example:
      mbsjax montecarlo four_bar.toml -n 100000 -o samples
      mbsjax montecarlo four_bar.toml -n 100000 -o samples --resume
      mbsjax montecarlo four_bar.toml -n 100000000 --until yield=1e-4 --no-store --workers tcp://host:8786
    """
    from .._pictures.table import Table
    from .._tolerance.campaign import campaign
    from .._tolerance.store import Store

    if no_store and (output or resume):
        raise click.UsageError("--no-store keeps nothing: it goes without --output and --resume")
    store = None if no_store else output or f"{file.stem}_montecarlo"
    if store is not None and not resume and Store(store).names():
        raise click.UsageError(f"the folder {store} is not empty: name another one by -o, or say --resume")
    until = dict(map(_goal, goals)) or None
    size = chunk or (None if store is None else Store(store).chunk) or _chunk(samples)
    model = load_model(file, changes)
    with working("the nominal mechanism"):
        study = model.study()
    with _executor(workers) as executor:
        try:
            done = campaign(study, samples, store, seed=seed, method=method, chunk=size, executor=executor, until=until)
        except KeyboardInterrupt:
            if store is not None:
                ERR.print(f"samples so far are kept in {store}: --resume goes on with them", markup=False)
            raise
    tally = done.tally
    moments, errors = tally.moments, tally.errors
    names = ("mean", "sigma", "skewness", "kurtosis")
    rows = [(f"{name}, standard error", *_pairs(x, e)) for name, x, e in zip(names, moments, errors)]
    rows += [("least", *map(float, tally.least)), ("largest", *map(float, tally.largest))]
    show(Table(f"{tally.n} samples", ("", *study.columns), rows))
    rejects = [(name, 1e6 * float(rate), 1e6 * float(error)) for name, (rate, error) in tally.rejects.items()]
    if rejects:
        show(Table("rejects", ("measure", "ppm", "standard error"), rejects))
    show(_classes(tally))
    if store is not None:
        wrote(store)


def _chunk(samples: int) -> int:
    """How many samples at once: on a CPU so few that the bar moves, and that all of them are wanted."""
    import jax

    return min(4096, -(-samples // 8)) if jax.default_backend() == "cpu" else 4096


def _goal(text: str) -> tuple[str, float]:
    name, _, error = text.rpartition("=")
    try:
        return name.strip(), float(error)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not NAME=ERROR, like yield=1e-4", param_hint="--until") from None


@contextlib.contextmanager
def _executor(workers: str | None) -> Iterator[Executor | None]:
    """The workers: none but this process, so many processes here, or those of a Dask scheduler."""
    if workers is None:
        yield None
    elif workers.isdecimal():
        if int(workers) < 1:
            raise click.BadParameter("there must be at least one", param_hint="--workers")
        # an interrupt is for this process: the others finish their chunks
        quiet = {"initializer": signal.signal, "initargs": (signal.SIGINT, signal.SIG_IGN)}
        pool = ProcessPoolExecutor(int(workers), mp_context=multiprocessing.get_context("spawn"), **quiet)
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)
    else:
        try:
            from distributed import Client
        except ImportError as error:
            raise ImportError('--workers with an address needs Dask: pip install "mbsjax[cluster]"') from error
        try:
            client = Client(workers, timeout=_SECONDS)
        except (OSError, ValueError) as error:
            raise click.BadParameter(f"no scheduler answers at {workers}: {error}", param_hint="--workers") from None
        with client:
            yield client.get_executor()


def _pairs(values: Any, errors: Any) -> list[str]:
    return [f"{float(x):.8g} +- {float(e):.2g}" for x, e in zip(values, errors)]


def _classes(tally: Any) -> Any:
    from .._dynamics.outcome import CLASSES
    from .._pictures.table import Table

    rows = [(name, int(n)) for name, n in zip(CLASSES, tally.classes) if n]
    return Table("what became of them", ("class", "samples"), rows)
