"""What a program is made for."""

import contextlib
import contextvars
from collections.abc import Iterator


_values_only = contextvars.ContextVar("values only", default=False)


@contextlib.contextmanager
def values_only() -> Iterator[None]:
    """What is traced within is asked for its values: what derivatives alone need is kept where somebody takes some all
    the same, and not else."""
    token = _values_only.set(True)
    try:
        yield
    finally:
        _values_only.reset(token)


def asked_for_values_only() -> bool:
    return _values_only.get()
