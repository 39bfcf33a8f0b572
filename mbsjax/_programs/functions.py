"""Plain functions, compared by what they say: the same code that refers to the same values is the same function.

JAX keeps a compiled program for each function it was made of. A lambda that is written anew on every call, or in a cell
of a notebook that is run again, would be compiled anew each time.
"""

import builtins
import dis
import types
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .precision import is_concrete
from .reprs import short


# what these define does not change while a program runs
_LIBRARIES = frozenset(
    {"builtins", "diffrax", "equinox", "jax", "jaxlib", "lineax", "math", "mbsjax", "numpy", "optax", "scipy"}
)
_SIMPLE = (type(None), type(...), bool, int, float, complex, str, bytes)


class Plain:
    """A plain function. It equals another one of the same code if all that both refer to, by name or from around them,
    can be compared and is equal; else only itself."""

    def __init__(self, function: Callable):
        self.function = function
        try:
            self.key, self.known = _function(function, ()), True
            self.hash = hash(self.key)
        except (TypeError, ValueError, RecursionError):
            self.key, self.known, self.hash = function, False, hash(function)

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Plain) and self.hash == other.hash and self.key == other.key

    def __hash__(self) -> int:
        return self.hash

    def __reduce__(self) -> Any:
        return Plain, (self.function,)

    def __repr__(self) -> str:
        return short(self.function)


def _function(f: types.FunctionType | Any, around: tuple) -> tuple:
    """All that tells a function from others; raises where that cannot be said. `around` are those that refer to it."""
    if not isinstance(f, types.FunctionType):
        raise TypeError("only plain functions show what they do")
    if f.__code__ in around:
        return ("again", around.index(f.__code__))
    around = (*around, f.__code__)
    names = sorted(set(_globals(f.__code__)))
    bound = [vars(builtins).get(n) if n not in f.__globals__ else f.__globals__[n] for n in names]
    held = [cell.cell_contents for cell in f.__closure__ or ()]
    return f.__code__, tuple(_value(x, around) for x in (f.__defaults__, f.__kwdefaults__, held, bound))


def _globals(code: types.CodeType) -> Iterator[str]:
    """The global names that a function, or one within it, reads."""
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_GLOBAL":
            yield step.argval
        elif step.opname == "IMPORT_NAME" and not _library(step.argval):
            raise TypeError("a module may change")
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _globals(inner)


def _value(x: Any, around: tuple) -> Any:
    """A value as something to compare; raises where it may change unseen."""
    if isinstance(x, _SIMPLE):
        return type(x), repr(x)
    if isinstance(x, (tuple, list)):
        return type(x), tuple(_value(y, around) for y in x)
    if isinstance(x, dict):
        return type(x), tuple((_value(k, around), _value(y, around)) for k, y in x.items())
    if isinstance(x, (np.ndarray, np.generic, jax.Array)):
        if not is_concrete(x) or x.dtype.hasobject:
            raise TypeError("there is no value yet")
        return type(x), x.shape, x.dtype, getattr(x, "weak_type", None), np.asarray(x).tobytes()
    if isinstance(x, types.ModuleType) and _library(x.__name__):
        return x
    if isinstance(x, eqx.Module) and _library(type(x).__module__):
        leaves, structure = jax.tree_util.tree_flatten(x)
        return structure, tuple(_value(leaf, around) for leaf in leaves)
    if (
        callable(x)
        and _library(getattr(x, "__module__", None))
        and "<locals>" not in getattr(x, "__qualname__", "<locals>")
    ):
        return x
    return _function(x, around)


def _library(module: Any) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _LIBRARIES
