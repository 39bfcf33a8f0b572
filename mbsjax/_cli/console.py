"""What commands print, and how they fail: tables, progress, complaints and exit codes."""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import click
from rich.console import Console
from rich.table import Table as RichTable


OUT, ERR = Console(soft_wrap=True, highlight=False), Console(stderr=True, highlight=False)
FAILED, BAD = 1, 2  # exit codes: what was asked for did not succeed; what was asked for makes no sense


def safe(command: Callable) -> Callable:
    """Complaints of the library become a line on standard error and an exit code."""

    @functools.wraps(command)
    def run(*given: Any, **more: Any) -> None:
        try:
            command(*given, **more)
        except click.ClickException:
            raise
        except KeyboardInterrupt:
            ERR.print("interrupted", style="yellow")
            raise SystemExit(130) from None
        except (ValueError, ImportError) as error:
            _complain(error, BAD)
        except OSError as error:
            _complain(f"{error.filename}: {error.strerror}" if error.filename else error, BAD)
        except RuntimeError as error:
            _complain(error, FAILED)

    return run


def computes(command: Callable) -> Callable:
    """A command that needs JAX, which is made ready for it first."""

    @functools.wraps(command)
    def run(*given: Any, **more: Any) -> None:
        prepared()
        command(*given, **more)

    return safe(run)


def prepared() -> None:
    """Makes JAX ready, as the options before the command say."""
    from .._programs.prepare import prepare

    prepare(**click.get_current_context().find_root().obj)


def _complain(error: Any, code: int) -> None:
    ERR.print("error:", style="bold red", end=" ")
    ERR.print(str(error), markup=False, soft_wrap=True)
    raise SystemExit(code) from None


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """Says on standard error what is being done, and how long it took."""
    from .._programs.waiting import told_by

    began, said = time.perf_counter(), []

    def tell(text: str) -> None:
        if ERR.is_terminal:
            status.update(f"{what}: {text}" if text else f"{what} ...")
        elif text and text.partition(" ... ")[0] not in said:  # one line for each is enough for a file
            said.append(text.partition(" ... ")[0])
            ERR.print(f"{what}: {text}", style="dim", markup=False, soft_wrap=True)

    with ERR.status(f"{what} ...") as status, told_by(tell):
        yield
    ERR.print(f"{what}: {time.perf_counter() - began:.1f} s", style="dim")


def show(table: Any) -> None:
    """A table of the library, numbers with six digits."""
    from .._pictures.table import shown

    table = table._replace(rows=[tuple(map(_short, row)) for row in table.rows])
    if not OUT.is_terminal:
        OUT.print(f"{table}\n", markup=False)
        return
    drawn = RichTable(title=table.title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for k, column in enumerate(table.columns):
        drawn.add_column(str(column), justify="left" if k == 0 else "right", no_wrap=True)
    for row in table.rows:
        drawn.add_row(*(_plain(shown(x)) for x in row))
    OUT.print(drawn)
    OUT.print()


def _short(x: Any) -> Any:
    return float(f"{x:.6g}") if isinstance(x, float) else x


def _plain(text: str) -> str:
    return text.replace("[", r"\[")


def cell(x: Any) -> Any:
    """A number for a table; several of them as text."""
    import numpy as np

    return float(x) if np.ndim(x) == 0 else str(np.asarray(x).tolist())


def wrote(*paths: Any) -> None:
    for path in paths:
        OUT.print(f"wrote {path}", markup=False)
