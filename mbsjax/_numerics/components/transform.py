"""A function of arrays, computed entry by entry."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.interpreters import partial_eval

from .graph import Graph


MOST_OPERATIONS = 1000  # operations; a function that has more is left as it is: compilers take too long over it


def by_components(f: Callable, lanes: int) -> Callable:
    """f of arrays that may have lanes behind, for values alone, not for derivatives. One that is large, or is for a
    single lane, is left as it is."""

    def call(*args: Any) -> Any:
        if not lanes:
            return f(*args)
        arrays, rest = eqx.partition(args, eqx.is_array)
        leaves, structure = jax.tree_util.tree_flatten(arrays)
        one = [jax.ShapeDtypeStruct(x.shape[: x.ndim - lanes], x.dtype) for x in leaves]
        whole, like = jax.make_jaxpr(
            lambda *each: f(*eqx.combine(jax.tree_util.tree_unflatten(structure, each), rest)), return_shape=True
        )(*one)
        needed, _ = partial_eval.dce_jaxpr(whole.jaxpr, [True] * len(whole.jaxpr.outvars), instantiate=True)
        graph = Graph(needed, whole.consts)
        if graph.size > MOST_OPERATIONS:
            return f(*args)
        found = graph.computed(leaves, np.broadcast_shapes(*(x.shape[x.ndim - lanes :] for x in leaves)))
        return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(like), found)

    return call
