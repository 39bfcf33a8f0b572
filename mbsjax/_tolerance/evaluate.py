"""A study at many points at once: values, classes and slopes, on all devices there are."""

from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float

from .._programs.trees import lasting, without_unused
from .study import Evaluation, Study


CHUNK = 1024
"""How many samples a device runs at once, unless told otherwise."""


def evaluated(study: Study, x: np.ndarray, chunk: int = CHUNK) -> Evaluation:
    """Values and classes at many points."""
    return joined([found for _, found in evaluated_in_chunks(study, PointTable(jnp.asarray(x)), len(x), chunk)])


class PointTable(eqx.Module):
    """Points from a table, by their numbers."""

    x: Float[Array, "n d"]

    def __call__(self, index: Array) -> Array:
        return self.x[jnp.minimum(index, self.x.shape[0] - 1)]


def joined(parts: list[Evaluation]) -> Evaluation:
    """One chunk after the other."""
    return Evaluation(*(np.concatenate(x) for x in zip(*parts)))


def evaluated_in_chunks(
    study: Study, points: Callable[[Array], Array], n: int, chunk: int, wanted: list[int] | None = None
) -> Iterator[tuple[np.ndarray, Evaluation]]:
    """Evaluates points number 0 ... n - 1 in chunks, one on each device at a time, and gives the chunks of this
    process: the numbers of its points, and what was found.

    Each device runs the same programs over `chunk` points, however many devices there are, so that their number does
    not change a bit of the results. `points` gives the dimensions of a point from its number.
    """
    wanted = list(range(-(-n // chunk))) if wanted is None else wanted
    mesh = Mesh(np.array(jax.devices()), ("samples",))
    sharding = NamedSharding(mesh, PartitionSpec("samples"))
    width = mesh.size
    for start in range(0, len(wanted), width):
        mine = wanted[start : start + width]
        numbers = np.array(mine + [mine[-1]] * (width - len(mine)))
        index = (numbers[:, None] * chunk + np.arange(chunk)).reshape(-1)
        placed = jax.make_array_from_callback(index.shape, sharding, lambda at, index=index: index[at])
        x = _on_each(points, placed, mesh)
        found = _on_each(study, x, mesh)
        pieces = zip(*(leaf.addressable_shards for leaf in found))
        for shards in sorted(pieces, key=lambda s: s[0].index[0].start or 0):
            at = (shards[0].index[0].start or 0) // chunk
            if at < len(mine):
                count = min(chunk, n - mine[at] * chunk)
                yield mine[at] * chunk + np.arange(count), Evaluation(*(np.asarray(s.data)[:count] for s in shards))


@eqx.filter_jit
def _on_each(f: Any, rows: Array, mesh: Mesh) -> Any:
    """A function of one row, over all rows, those of each device by themselves."""
    numbers, structure = eqx.partition(f, eqx.is_array)

    def here(numbers: Any, rows: Array) -> Any:
        return jax.vmap(without_unused(eqx.combine(numbers, structure), rows[0]))(rows)

    every = PartitionSpec("samples")
    split = jax.shard_map(here, mesh=mesh, in_specs=(PartitionSpec(), every), out_specs=every, check_vma=False)
    return split(numbers, rows)


def linearized(study: Study, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and slopes at many points."""
    values, slopes = in_rows(_linearized, study, x)
    return values, np.where(np.isfinite(values)[..., None], slopes, np.nan)  # what has no value has no slope


def in_rows(f: Callable, study: Study, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A function of a study and many points, that gives two arrays: a fixed number of points at a time, so that it is
    compiled once."""
    n, size = len(x), 8
    rows = np.concatenate([x, np.repeat(x[-1:], -n % size, 0)]).reshape(-1, size, x.shape[1])
    parts = [[np.asarray(y) for y in f(study, jnp.asarray(part))] for part in rows]
    first, second = (np.concatenate(y)[:n] for y in zip(*parts))
    return first, second


@lasting
def _linearized(study: Study, x: Float[Array, "n d"]) -> tuple[Array, Array]:
    values = without_unused(lambda x: study(x).values, x[0])

    def twice(x: Array) -> tuple[Array, Array]:
        y = values(x)
        return y, y

    slopes, found = jax.vmap(jax.jacfwd(twice, has_aux=True))(x)
    return found, slopes
