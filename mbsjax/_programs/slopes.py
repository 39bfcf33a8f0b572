"""A function with its slopes, as one program that can be kept."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .precision import as_float
from .trees import as_function, lasting


_MANY = 16  # numbers for each result, from which on reverse mode is worth its longer compiling


def value_and_slopes(f: Callable, x: Any, *, reverse: bool | None = None) -> tuple[Any, Any]:
    """The value of a function and its derivatives with respect to all numbers of its argument.

    As `jax.value_and_grad`, for functions that return any arrays. But it is one program, which is compiled once however
    often the function is written down anew; and with [`mbsjax.keep_programs`][] the next process finds it, and does not
    even trace.

    **Arguments:**

    - `f`: a function of one argument, made of JAX operations: of a number, an array, a dict or any other tree of them,
        a mechanism. It may return a number, an array, or a tree of them.
    - `x`: where its value and slopes are wanted.
    - `reverse`: whether in reverse mode; by default, where there are many more numbers in `x` than in the value.

    **Returns:** the value, and a tree like it that has its derivatives, trees like `x`, in the places of arrays.

    !!! Example

        How the time that a ball falls depends on its height and on gravity.

        >>> import mbsjax as mbs
        >>> value, slopes = mbs.value_and_slopes(lambda x: jnp.sqrt(2 * x["h"] / x["g"]), {"h": 2.0, "g": 9.0})
        >>> round(float(value), 6), {name: round(float(s), 6) for name, s in slopes.items()}
        (0.666667, {'g': -0.037037, 'h': 0.166667})
    """
    x = jax.tree_util.tree_map(_as_array, x)
    return _value_and_slopes(as_function(f, x, of=x), x, reverse)


def _as_array(leaf: Any) -> Any:
    plain = isinstance(leaf, int | float | np.number) and not isinstance(leaf, bool)
    return as_float(leaf, "a number") if plain or eqx.is_inexact_array(leaf) else leaf


@lasting
def _value_and_slopes(f: Callable, x: Any, reverse: bool | None) -> tuple[Any, Any]:
    numbers, rest = eqx.partition(x, eqx.is_inexact_array)

    def both(numbers: Any) -> tuple[Any, Any]:
        y = jax.tree_util.tree_map(jnp.asarray, f(eqx.combine(numbers, rest)))
        return y, y

    if reverse is None:
        count = lambda tree: sum(x.size for x in jax.tree_util.tree_leaves(tree))
        reverse = count(numbers) > _MANY * count(jax.eval_shape(both, numbers)[0])
    slopes, y = (jax.jacrev if reverse else jax.jacfwd)(both, has_aux=True)(numbers)
    return y, slopes
