"""Short representations: numbers as numbers, functions by their names, shapes where there are no numbers yet."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .precision import is_concrete


_MOST = 9  # numbers, or members of a list, that are shown one by one
_LONG = 400  # characters of a part, beyond which its kind is enough


def brief(what: Any, *parts: Any, **fields: Any) -> str:
    """An object in one line: its class, and the parts of it that tell most. Those that are None are left out.

    !!! Example

        >>> brief(RuntimeError(), "cam", mass=np.array(5.0), inertia=None, law=abs)
        "RuntimeError('cam', mass=5.0, law=abs)"
    """
    told = [short(x) for x in parts] + [f"{name}={short(x)}" for name, x in fields.items() if x is not None]
    return f"{type(what).__name__}({', '.join(told)})"


def by_fields(self: Any) -> str:
    """A module or a named tuple in one line, with all its fields, its name first: a `__repr__` for those of few and
    small fields."""
    names = self._fields if isinstance(self, tuple) else [f.name for f in dataclasses.fields(self)]  # pyright: ignore
    fields = {name: getattr(self, name, None) for name in names}
    parts = [fields.pop("name")] if "name" in fields else []
    return brief(self, *parts, **fields)


def short(x: Any) -> str:
    """Any value in few characters.

    !!! Example

        >>> short(np.array([1.0, 1 / 3])), short(np.linspace(0.0, 2.0, 201)), short({"a": np.sin})
        ('[1.0, 0.333333]', 'f64[201] in [0.0, 2.0]', "{'a': sin}")
        >>> jax.eval_shape(lambda x: print(short(x)), np.zeros((3, 4)))
        f64[3,4]
    """
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return _array(x)
    if isinstance(x, float):
        return _number(x)
    if isinstance(x, Mapping):
        return f"{{{_row([f'{k!r}: {short(v)}' for k, v in x.items()])}}}"
    if isinstance(x, list) or type(x) is tuple:
        row = _row([short(y) for y in x])
        return f"[{row}]" if isinstance(x, list) else f"({row}{',' * (len(x) == 1)})"
    if isinstance(x, functools.partial):
        return short(x.func)
    if callable(x) and hasattr(x, "__name__"):
        return x.__name__
    made = type(x).__repr__  # none of its own: a dump of all that is in it, or an address
    if made is eqx.Module.__repr__ or getattr(made, "__module__", None) == "collections":
        told = by_fields(x)
        return told if len(told) <= _LONG else type(x).__name__
    return type(x).__name__ if made is object.__repr__ else repr(x)


def has_numbers(*trees: Any) -> bool:
    """Whether all leaves are arrays with values: neither traced, nor shapes, nor left out."""
    leaves = jax.tree_util.tree_leaves(trees, is_leaf=lambda x: x is None)
    return all(isinstance(x, (jax.Array, np.ndarray, np.generic)) for x in leaves) and is_concrete(leaves)


def unless_zero(x: Any) -> Any:
    """Numbers, or None where all of them are known to be zero."""
    leaves = jax.tree_util.tree_leaves(x)
    return None if has_numbers(x) and not any(np.any(np.asarray(leaf) != 0) for leaf in leaves) else x


def head(text: str, most: int = 8) -> str:
    """The first lines of a text, and how many more there are."""
    lines = text.splitlines()
    more = len(lines) - most
    return text if more <= 1 else "\n".join([*lines[:most], f"  ... {more} more lines: `print` tells all"])


def _row(told: list[str]) -> str:
    if len(told) > _MOST:
        told = [*told[:2], f"... {len(told) - 3} more ...", told[-1]]
    return ", ".join(told)


def _number(x: float) -> str:
    return repr(float(f"{x:.6g}"))


def _array(x: Any) -> str:
    kind = getattr(x.dtype, "kind", "")
    shape = f"{_kind(x.dtype)}[{','.join(map(str, x.shape))}]"
    if kind not in tuple("fiub") or not has_numbers(x):
        return shape
    x = np.asarray(x)
    if x.size <= _MOST:
        return _nested(x.tolist())
    if kind == "b":
        return shape
    there = x[np.isfinite(x)]
    return f"{shape} in {_nested([there.min().item(), there.max().item()])}" if there.size else f"{shape} of none"


def _kind(dtype: Any) -> str:
    return f"{dtype.kind}{8 * dtype.itemsize}" if getattr(dtype, "kind", "") in tuple("fiuc") else str(dtype)


def _nested(x: Any) -> str:
    if isinstance(x, list):
        return f"[{', '.join(map(_nested, x))}]"
    return _number(x) if isinstance(x, float) else repr(x)
