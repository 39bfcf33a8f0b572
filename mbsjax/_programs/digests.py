"""Digests of rows of tokens and of arrays, the same in every process."""

import functools
import hashlib
import weakref
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np


def digest_of(tokens: Iterable[bytes]) -> bytes:
    return hashlib.blake2b(b"".join([b"%d:%b" % (len(x), x) for x in tokens]), digest_size=32).digest()


def array_digest(x: np.ndarray) -> bytes:
    """Of the numbers of an array; shape and kind are not in it."""
    row: Any = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
    return hashlib.blake2b(row, digest_size=32).digest()


kind_of = functools.cache(str)  # of a dtype, which takes its time to say it

_known: dict[int, tuple[Any, bytes]] = {}  # of JAX arrays that live, and do not change


def jax_digest(x: jax.Array) -> bytes:
    """The same of a JAX array. It is brought from its device only once."""
    number = id(x)
    if number not in _known:
        raw = jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x
        _known[number] = weakref.ref(x, lambda _: _known.pop(number, None)), array_digest(np.asarray(raw))
    return _known[number][1]
