"""Which code does not change while a program runs."""

import functools
import sys
import sysconfig
from typing import Any


# what these define does not change while a program runs; nor does what the standard library defines
_LIBRARIES = frozenset(
    "IPython _pytest beartype builtins chex click cloudpickle diffrax equinox flax fsspec hypothesis jax jaxlib jaxopt "
    "jaxtyping lineax matplotlib mbsjax ml_dtypes numpy optax optimistix pandas polars pyarrow pytest scipy sympy tqdm "
    "xarray".split()
)


def label(f: Any) -> str:
    """How a function is called in a text."""
    name = getattr(f, "__qualname__", None)
    return name if isinstance(name, str) else type(f).__qualname__


def root(module: Any) -> str:
    """The package of a module."""
    return module.partition(".")[0] if isinstance(module, str) else ""


@functools.cache
def is_library(package: str) -> bool:
    """Whether what a package defines does not change while a program runs."""
    if package in _LIBRARIES:
        return True
    if package not in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(package), "__file__", None)  # a user may have a module of that name
    return file is None or file.startswith(sysconfig.get_paths()["stdlib"])
