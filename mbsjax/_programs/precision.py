"""How every number of a mechanism is checked and converted, in one place."""

import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array


_warned = False


class Threshold(NamedTuple):
    """A number that tells noise from what is meant: in double precision, and in single precision."""

    double: float
    single: float

    def __call__(self) -> float:
        """That of the precision in use."""
        return self.double if jnp.result_type(float) == jnp.float64 else self.single


ROUNDING = Threshold(1e-12, 1e-6)  # of numbers that were computed: what differs by less is the same
TINY = Threshold(1e-300, 1e-30)  # more than nothing: to divide by
AGREEING = Threshold(1e-9, 1e-5)  # of numbers that were given: what differs by less was meant to be the same


def as_float(x: Any, what: str) -> Array:
    """`x` as a floating-point JAX array; `what` names the culprit when it cannot be."""
    try:
        if is_concrete(x):
            x = np.asarray(x, dtype=float)
        array = jnp.asarray(x, dtype=jnp.result_type(float))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must be made of real numbers, got {x!r}") from error
    if isinstance(x, np.ndarray) and not np.all(np.isfinite(x)):
        raise ValueError(f"{what} must be finite, got {x.tolist()!r}")
    if array.dtype != jnp.float64:
        _warn_once()
    return array


def is_concrete(*trees: Any) -> bool:
    """Whether no leaf is being traced, so that Python may look at the values."""
    return not any(isinstance(x, Tracer) for x in jax.tree_util.tree_leaves(trees))


def numpy_of(*arrays: Any) -> Any:
    """The module to compute with: NumPy where the numbers are known, for every operation of JAX that stands alone is a
    program to compile."""
    return np if is_concrete(arrays) else jnp


def known(x: Any) -> Any:
    """An array, of NumPy where its numbers are known."""
    return np.asarray(x) if is_concrete(x) else x


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "mbsjax is computing in float32; closing loops to engineering accuracy needs "
            'float64: call jax.config.update("jax_enable_x64", True) before building a mechanism.',
            stacklevel=4,
        )
