"""Mechanisms with contact joints, simulated exactly and differentiable throughout."""

import ast as _ast
import importlib as _importlib
import pathlib as _pathlib
from typing import Any as _Any

from ._programs import deprecated as _deprecated, xla as _xla  # noqa: F401  (flags are set before XLA starts)
from ._programs.version import VERSION as __version__  # noqa: F401


_RENAMED = {
    "Linearisation": "Linearization",
    "Minimise": "Minimize",
    "Programme": "Program",
    "linearise": "linearize",
}


def _found() -> dict[str, str]:
    """The public names, and the module of each, from the import lines of `__init__.pyi`. Modules are imported when they
    are needed: `mbsjax --help` does without JAX."""
    lines = _ast.parse(_pathlib.Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    imports = [line for line in lines if isinstance(line, _ast.ImportFrom)]
    return {name.name: f".{line.module or name.name}" for line in imports for name in line.names}


_MODULES = _found()
__all__ = sorted(_MODULES)  # pyright: ignore


def __getattr__(name: str) -> _Any:
    if name in _RENAMED:
        _deprecated.warn_renamed(f"mbsjax.{name}", f"mbsjax.{_RENAMED[name]}")
        return getattr(_importlib.import_module(__name__), _RENAMED[name])
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = _importlib.import_module(_MODULES[name], __name__)
    if _MODULES[name] != f".{name}":  # not a module itself
        _importlib.import_module("._kinematics.summary", __name__)  # what a mechanism is printed as
        globals()[name] = found = getattr(found, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
