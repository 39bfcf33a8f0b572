"""A table that a loop writes its rows into."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


def packed(tree: Any, lanes: int) -> tuple[Array, Array]:
    """A tree of arrays as two, of real numbers and of others: all numbers of a lane on the first axis, all lanes on the
    last."""
    leaves = jax.tree_util.tree_leaves(tree)
    size = int(np.prod(leaves[0].shape[leaves[0].ndim - lanes :], dtype=int))
    flat = [x.reshape(-1, size) for x in leaves]
    real = [jnp.issubdtype(x.dtype, jnp.floating) for x in flat]
    none = jnp.zeros((0, size))
    return (
        jnp.concatenate([none, *(x for x, r in zip(flat, real) if r)]),
        jnp.concatenate([none.astype(int), *(x.astype(int) for x, r in zip(flat, real) if not r)]),
    )


def unpacked(tables: tuple[Array, Array], like: Any, lanes: tuple[int, ...], behind: int) -> Any:
    """The tree that was packed, from tables that may have axes before; it is like this one, which has its lanes on the
    last `behind` axes."""
    leaves, structure = jax.tree_util.tree_flatten(like)
    at, found = [0, 0], []
    for x in leaves:
        other = int(not jnp.issubdtype(x.dtype, jnp.floating))
        own = x.shape[: x.ndim - behind]
        size = int(np.prod(own, dtype=int))
        table = tables[other]
        part = table[..., at[other] : at[other] + size, :]
        found.append(part.reshape(*table.shape[:-2], *own, *lanes).astype(x.dtype))
        at[other] += size
    return jax.tree_util.tree_unflatten(structure, found)


class Record(eqx.Module):
    """A table with a row for each of many trees of arrays, packed into two arrays: few writes, in place, are cheaper
    than many."""

    reals: Float[Array, "n f l"]
    others: Int[Array, "n i l"]

    @staticmethod
    def blank(row, n: int, lanes: int) -> "Record":
        """n times the same row."""
        return Record(*(jnp.tile(x, (n, 1, 1)) for x in packed(row, lanes)))

    def written(self, i: Array, row, lane: Array | None = None) -> "Record":
        """With another row number i; beyond the end, nothing is written. The lanes are those of the table, unless it is
        told which they are."""
        each = jnp.arange(self.reals.shape[2]) if lane is None else lane

        def write(table: Array, x: Array) -> Array:
            return table.at[i.reshape(-1), :, each].set(x.T, mode="drop", unique_indices=True)

        reals, others = packed(row, i.ndim)
        return Record(write(self.reals, reals), write(self.others, others))

    def read(self, like, lanes: int):
        """All rows, as trees like this one."""
        x = jax.tree_util.tree_leaves(like)[0]
        return unpacked((self.reals, self.others), like, x.shape[x.ndim - lanes :], lanes)
