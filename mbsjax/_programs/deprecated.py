"""Names that have changed: the old ones work for one more version, and warn."""

import functools
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar


_P = ParamSpec("_P")
_R = TypeVar("_R")


def warn_renamed(old: str, new: str, stacklevel: int = 3) -> None:
    """Tells who uses an old name of the new one."""
    warnings.warn(f"{old} is now called {new}; the old name goes with the next version", DeprecationWarning, stacklevel)


def renamed_arguments(**names: str) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """A function that also takes arguments by the old names: `old="new"`.

    !!! Example

        >>> import warnings
        >>> area = renamed_arguments(colour="color")(lambda color: color.upper())
        >>> with warnings.catch_warnings(record=True):
        ...     area(colour="red")
        'RED'
    """

    def decorate(f: Callable[_P, _R]) -> Callable[_P, _R]:
        @functools.wraps(f)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            for old, new in names.items():
                if old in kwargs and new not in kwargs:
                    warn_renamed(f"the argument `{old}`", f"`{new}`")
                    kwargs[new] = kwargs.pop(old)
            return f(*args, **kwargs)

        return call

    return decorate
