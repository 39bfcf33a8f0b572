"""Trees of numbers and functions, without derivatives or with all their numbers as leaves."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ._precision import is_concrete


def frozen(tree: Any) -> Any:
    """The tree without derivatives."""
    return jax.tree_util.tree_map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, tree)


def opened(f: Any) -> Any:
    """A function of one number whose traced numbers are leaves, also those that a plain function has closed over: what
    is not a leaf can be neither differentiated implicitly nor batched."""
    if isinstance(f, eqx.Module):
        return f
    converted = eqx.filter_closure_convert(f, jnp.zeros(()))
    return f if is_concrete(converted) else converted
