"""Entries of arrays as numbers of their own: some are known, the others are computed."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from jax.extend.core import Jaxpr


Entries = np.ndarray  # of objects: a number of NumPy where it is known, else a `Number`


class Number:
    """A number that is computed: an entry of an array that is given, an operation on others, or an entry of what an
    operation on whole arrays gives."""

    __slots__ = ("args", "dtype", "op")

    def __init__(self, op: Any, args: tuple, dtype: Any):
        self.op, self.args, self.dtype = op, args, dtype


class Block(NamedTuple):
    """An operation that is left on whole arrays."""

    equation: Any
    program: Jaxpr  # that it is in
    given: list[Entries]


def known(x: Any) -> bool:
    return isinstance(x, np.generic)


def entries(shape: tuple[int, ...], items: Iterable[Any]) -> Entries:
    found = np.empty(math.prod(shape), object)
    for i, x in enumerate(items):
        found[i] = x
    return found.reshape(shape)
