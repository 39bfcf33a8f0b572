"""A table that a loop writes its rows into."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


class Record(eqx.Module):
    """A table with a row for each of many trees of arrays, packed into two arrays, of real numbers and of others, with
    all lanes on one last axis: few writes, in place, are cheaper than many."""

    reals: Float[Array, "n f l"]
    others: Int[Array, "n i l"]

    @staticmethod
    def _packed(row, lanes: int) -> list[Array]:
        leaves = jax.tree_util.tree_leaves(row)
        size = int(np.prod(leaves[0].shape[leaves[0].ndim - lanes :], dtype=int))
        flat = [x.reshape(-1, size) for x in leaves]
        real = [jnp.issubdtype(x.dtype, jnp.floating) for x in flat]
        return [
            jnp.concatenate([x for x, r in zip(flat, real) if r]),
            jnp.concatenate([x.astype(int) for x, r in zip(flat, real) if not r]),
        ]

    @staticmethod
    def blank(row, n: int, lanes: int) -> "Record":
        """n times the same row."""
        return Record(*(jnp.tile(x, (n, 1, 1)) for x in Record._packed(row, lanes)))

    def written(self, i: Array, row, lane: Array | None = None) -> "Record":
        """With another row number i; beyond the end, nothing is written. The lanes are those of the table, unless it is
        told which they are."""
        each = jnp.arange(self.reals.shape[2]) if lane is None else lane

        def write(table: Array, x: Array) -> Array:
            return table.at[i.reshape(-1), :, each].set(x.T, mode="drop", unique_indices=True)

        reals, others = self._packed(row, i.ndim)
        return Record(write(self.reals, reals), write(self.others, others))

    def read(self, like, lanes: int):
        """All rows, as trees like this one."""
        leaves, structure = jax.tree_util.tree_flatten(like)
        at, found = [0, 0], []
        for x in leaves:
            other = int(not jnp.issubdtype(x.dtype, jnp.floating))
            size = int(np.prod(x.shape[: x.ndim - lanes], dtype=int))
            table = self.others if other else self.reals
            found.append(table[:, at[other] : at[other] + size].reshape(table.shape[0], *x.shape).astype(x.dtype))
            at[other] += size
        return jax.tree_util.tree_unflatten(structure, found)
