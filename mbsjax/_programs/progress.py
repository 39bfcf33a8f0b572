"""A bar for long work."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from .waiting import told_by


class _Silent:
    def update(self, n: int) -> None:
        pass

    def set_postfix_str(self, text: str) -> None:
        pass


@contextlib.contextmanager
def bar(n: int, shown: bool, done: int = 0, unit: str = "samples") -> Iterator[Any]:
    """A progress bar, with the rate and the time left, which also says when a program is compiled; one that shows
    nothing if not asked for."""
    if not shown:
        yield _Silent()
        return
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError('a progress bar needs tqdm: pip install "mbsjax[campaign]"') from error
    with (
        tqdm(total=n, initial=done, unit=f" {unit}", unit_scale=True, file=sys.stderr) as found,
        told_by(found.set_postfix_str),
    ):
        yield found
