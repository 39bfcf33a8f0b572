"""A bar for long work."""

import sys
from typing import Any


class _Silent:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def update(self, n: int) -> None:
        pass

    def set_postfix_str(self, text: str) -> None:
        pass


def bar(n: int, shown: bool, done: int = 0, unit: str = "samples") -> Any:
    """A progress bar, with the rate and the time left; one that shows nothing if not asked for."""
    if not shown:
        return _Silent()
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError('a progress bar needs tqdm: pip install "mbsjax[campaign]"') from error
    return tqdm(total=n, initial=done, unit=f" {unit}", unit_scale=True, file=sys.stderr)
