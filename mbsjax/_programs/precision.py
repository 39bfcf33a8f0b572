"""How every number of a mechanism is checked and converted, in one place."""

import contextlib
import operator
import warnings
from collections.abc import Callable
from numbers import Number
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.interpreters.partial_eval import DynamicJaxprTracer
from jaxtyping import Array, Float


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
    """`x` as a floating-point JAX array; `what` names the culprit when it cannot be. Texts and truth values are no
    numbers, though NumPy makes numbers of them: who gives `"3"` or `True` meant something else."""
    numbers, seen = x, is_concrete(x)
    try:
        if not all(map(_is_real, jax.tree_util.tree_leaves(x, is_leaf=lambda leaf: leaf is None))):
            raise TypeError
        numbers = np.asarray(x, dtype=float) if seen else x
        array = jnp.asarray(numbers, dtype=jnp.result_type(float))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} must be made of real numbers, got {x!r}") from error
    if seen and not np.all(np.isfinite(numbers)):
        raise ValueError(f"{what} must be finite, got {numbers.tolist()!r}")
    if array.dtype != jnp.float64:
        _warn_once()
    return array


def _is_real(x: Any) -> bool:
    """Whether all of a number or an array are real numbers. Tables may hold these as objects."""
    dtype = x.dtype if isinstance(x, jax.Array) else np.asarray(x).dtype
    if dtype.hasobject:
        return all(isinstance(y, Number) and not isinstance(y, bool | complex) for y in np.ravel(x))
    return jnp.issubdtype(dtype, np.integer) or jnp.issubdtype(dtype, np.floating)


def number(
    x: Any, what: str, *, above: float | None = None, least: float | None = None, most: float | None = None
) -> Float[Array, ""]:
    """`x` as one number, which is `above` something, or at `least` and at `most` so much, as far as it can be seen."""
    found = as_float(x, what)
    if found.shape != ():
        raise ValueError(f"{what} must be one number, got {x!r}")
    if (seen := visible(x)) is not None:  # as given: under `jit` even a constant becomes a traced array
        _check_range(float(np.asarray(seen[0], dtype=float)), what, above, least, most)
    return found


def plain_number(
    x: Any, what: str, *, above: float | None = None, least: float | None = None, most: float | None = None
) -> float:
    """`x` as a number of Python: an option, which is neither traced nor differentiated."""
    if not is_concrete(x) or np.ndim(x) or not _is_real(x) or not np.isfinite(float(x)):
        raise ValueError(f"{what} must be one number, got {x!r}")
    _check_range(float(x), what, above, least, most)
    return float(x)


def _check_range(x: float, what: str, above: float | None, least: float | None, most: float | None) -> None:
    if (above is not None and x <= above) or (least is not None and x < least) or (most is not None and x > most):
        raise ValueError(f"{what} must {_asked(above, least, most)}, got {x:.6g}")


def _asked(above: float | None, least: float | None, most: float | None) -> str:
    """What is asked of a number, in words."""
    if least is not None and most is not None:
        return f"be between {least:.6g} and {most:.6g}"
    limits = {"above": above, "at least": least, "at most": most}
    told = " and ".join(f"{word} {limit:.6g}" for word, limit in limits.items() if limit is not None)
    return {"above 0": "be positive", "at least 0": "not be negative"}.get(told, f"be {told}")


def positive(x: Any, what: str) -> Float[Array, ""]:
    """One number above zero."""
    return number(x, what, above=0.0)


def whole(x: Any, what: str, least: int) -> int:
    """`x` as a whole number, at `least` so large: a number of teeth, of samples, of steps."""
    given: Any = None if isinstance(x, bool) else int(x) if isinstance(x, float) and x.is_integer() else x
    try:
        n = operator.index(given)
    except TypeError as error:
        raise ValueError(f"{what} must be a whole number, got {x!r}") from error
    if n < least:
        raise ValueError(f"{what} must be at least {least}, got {n}")
    return n


def is_concrete(*trees: Any) -> bool:
    """Whether no leaf is being traced, so that NumPy may compute with it. To look at a number, ask `visible` or
    `value`: a number that is being differentiated can be looked at too."""
    return not any(isinstance(x, Tracer) for x in jax.tree_util.tree_leaves(trees))


def visible(*trees: Any) -> Any:
    """The trees without derivatives, if Python may look at their numbers; None, if these are not there yet, as under
    `jit` and `vmap`. What is going to be looked at is asked for, all of it, and the trees that come back are looked at:
    what was computed under `grad` from numbers that are not differentiated is differentiated all the same.

    !!! Example

        >>> jax.grad(lambda x: 3 * x if visible(x)[0] > 0 else x)(2.0).item()
        3.0
        >>> jax.jit(lambda x: 3 * x if visible(x) is None else x)(2.0).item()
        6.0
    """
    leaves, structure = jax.tree_util.tree_flatten(trees)
    for i, x in enumerate(leaves):
        if isinstance(x, DynamicJaxprTracer):  # asked first: to take its derivative off would be an equation
            return None
        if isinstance(x, Tracer):
            leaves[i] = jax.lax.stop_gradient(x)
            if isinstance(leaves[i], Tracer):
                return None
    return jax.tree_util.tree_unflatten(structure, leaves)


def look(check: Callable[..., None], *trees: Any) -> None:
    """Calls a function that looks at trees and computes with them, if their numbers are visible. Under `jit`, what is
    computed from constants would be traced: it is computed at once."""
    if (seen := visible(*trees)) is not None:
        traced = isinstance(jax.device_put(0.0), Tracer)
        with jax.ensure_compile_time_eval() if traced else contextlib.nullcontext():
            check(*seen)


def value(x: Any) -> np.ndarray:
    """A number, or an array of them, to be compared with others: NaN where Python cannot look at it, which is neither
    too large nor too small. So conditions say what is wrong, as in `value(mass) < 0`."""
    seen = visible(x)
    return np.full(jnp.shape(x), np.nan) if seen is None else np.asarray(seen[0])


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
