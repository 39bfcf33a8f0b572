"""Numbers picked from a PyTree of dimensions by name, as a vector, and back."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._programs.precision import as_float, is_concrete


class Choice(eqx.Module):
    """Leaves of a PyTree, chosen by name or by a function, as one vector.

    - `values`: their numbers, one after the other; `names`: one for each number, `"knots[3]"` in an array.
    - `keys`: a name for each leaf; `counts`: how many numbers each has.
    """

    arrays: tuple
    values: Float[Array, " d"]
    names: tuple[str, ...] = eqx.field(static=True)
    keys: tuple[str, ...] = eqx.field(static=True)
    places: tuple[int, ...] = eqx.field(static=True)
    counts: tuple[int, ...] = eqx.field(static=True)
    others: tuple = eqx.field(static=True)  # what else the tree holds: texts, numbers that models may look at
    structure: Any = eqx.field(static=True)

    def __init__(self, tree: Any, given: Mapping[str, Any], twice: str):
        leaves, self.structure = jax.tree_util.tree_flatten(tree)
        where = {name: leaf_number(name, tree, x) for name, x in given.items()}
        self.keys, self.places = tuple(where), tuple(where.values())
        if len(set(self.places)) < len(self.places):
            name = next(n for i, n in enumerate(where) if self.places[i] in self.places[:i])
            raise ValueError(f"the dimension {name!r} has two {twice}")
        parts = [as_float(leaves[i], f"the dimension {name!r}") for name, i in where.items()]
        self.counts = tuple(x.size for x in parts)
        self.names = tuple(label for name, x in zip(where, parts) for label in labels(name, x.shape))
        self.values = jnp.concatenate([x.reshape(-1) for x in parts])
        if not is_concrete(self.values):
            raise ValueError("studies and tasks look at values: make them outside jit, vmap and grad, call them within")
        for i, part in zip(self.places, parts):
            leaves[i] = part
        self.arrays, self.others = eqx.partition(tuple(leaves), lambda x: isinstance(x, jax.Array | np.ndarray))

    @property
    def leaves(self) -> list:
        """All leaves of the tree."""
        return list(eqx.combine(self.arrays, self.others))

    def parts(self, x: Float[Array, " d"]) -> list[Array]:
        """The numbers of each leaf."""
        return jnp.split(x, np.cumsum(self.counts)[:-1].tolist())

    def each(self, numbers: Any) -> Float[Array, " d"]:
        """One number for each leaf, as often as the leaf has numbers; or as many as it has."""
        return jnp.concatenate([jnp.broadcast_to(jnp.ravel(x), (n,)) for x, n in zip(numbers, self.counts)])

    def place(self, x: Float[Array, " d"], tree: Any = None) -> Any:
        """The PyTree with these numbers; `tree`, if not the one chosen from, has the others."""
        leaves = self.leaves if tree is None else jax.tree_util.tree_leaves(tree)
        for i, part in zip(self.places, self.parts(x)):
            leaves[i] = part.reshape(jnp.shape(leaves[i]))
        return jax.tree_util.tree_unflatten(self.structure, leaves)


def labels(name: str, shape: tuple[int, ...]) -> list[str]:
    """A name for each number of an array."""
    return [f"{name}[{','.join(map(str, i))}]" if shape else name for i in np.ndindex(*shape)]


def picks(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and callable(given[0]) and not isinstance(given[0], eqx.Module)


def leaf_number(name: str, nominal: Any, given: Any) -> int:
    """The number of the leaf that a name, or a function, stands for."""
    paths, structure = jax.tree_util.tree_flatten_with_path(nominal)
    if picks(given):
        marks = [object() for _ in paths]
        try:
            found = given[0](jax.tree_util.tree_unflatten(structure, marks))
        except (TypeError, AttributeError, KeyError, IndexError) as error:
            raise ValueError(
                f"the function that picks the dimension {name!r} does not lead to a leaf: {error}"
            ) from error
        if not any(found is mark for mark in marks):
            raise ValueError(f"the function that picks the dimension {name!r} must give one number or array, a leaf")
        return [found is mark for mark in marks].index(True)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths]
    if name not in names:
        near = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        raise ValueError(f"there is no dimension {name!r}; the dimensions are {near}")
    return names.index(name)
