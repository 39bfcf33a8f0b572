"""A study at many points at once: values, classes and slopes, on all devices there are."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float

from .._programs.purpose import values_only
from .._programs.trees import lasting, thorough, without_unused
from .._programs.waiting import explained, traced
from .sampler import AbstractSampler
from .statistics import (
    FIRST,
    Scale,
    Statistics,
    chunk_statistics,
    frame_of,
    layout_of,
    mesh_of,
    numbers_of,
    on_host,
    scale_of,
)
from .study import Evaluation, Study


CHUNK = 1024
"""How many samples a device runs at once, unless told otherwise."""


def evaluated(study: Study, x: np.ndarray, chunk: int = CHUNK) -> Evaluation:
    """Values and classes at many points."""
    return joined(evaluated_in_chunks(study, PointTable(jnp.asarray(x)), len(x), chunk))


class PointTable(eqx.Module):
    """Points from a table, by their numbers."""

    x: Float[Array, "n d"]

    def __call__(self, index: Array) -> Array:
        return self.x[jnp.minimum(index, self.x.shape[0] - 1)]


def joined(chunks: Iterable["Chunk"]) -> Evaluation:
    """What was found, one chunk after the other."""
    return Evaluation(*(np.concatenate(x) for x in zip(*(chunk.found for chunk in chunks if chunk.found))))


class Chunk(NamedTuple):
    """Samples number `index`; what was found, where values are wanted; their statistics, where there are."""

    number: int
    index: np.ndarray
    found: Any
    statistics: Any


class DrawnDimensions(eqx.Module):
    """The dimensions of samples, by their numbers."""

    study: Study
    sampler: AbstractSampler

    def __call__(self, index: Array) -> Array:
        return self.study.dimensions(self.sampler.scores(index))


class _Round(NamedTuple):
    """Chunks that run at the same time, one on each device; some may be there only to keep all devices alike."""

    numbers: list[int]
    x: Array
    found: Evaluation
    scale: Scale | None = None
    statistics: Statistics | None = None


def evaluated_in_chunks(study: Study, points: Callable[[Array], Array], n: int, chunk: int) -> Iterator[Chunk]:
    """Evaluates points number 0 ... n - 1 in chunks, one on each device at a time, and gives the chunks of this
    process.

    Each device runs the same programs over `chunk` points, however many devices there are, so that their number does
    not change a bit of the results. `points` gives the dimensions of a point from its number.
    """
    for now in _one_ahead(_rounds(study, points, n, chunk, None, _all_devices())):
        yield from _fetched(now, n, chunk)


def sampled_in_chunks(
    study: Study,
    plan: AbstractSampler,
    n: int,
    chunk: int,
    wanted: Iterable[int] | None = None,
    *,
    scale: Scale | None = None,
    values: bool = True,
) -> Iterator[Chunk]:
    """Evaluates the samples of a plan in the same way, all chunks or those that are `wanted`, with their statistics;
    without their values if these are not wanted.

    Statistics are taken about a `scale`. Where it is not given, the first chunk wanted must be the first of all, which
    tells it. The devices go on with the next chunks while one looks at the last: numbers are asked for when it is
    their turn.
    """
    rounds = _rounds(study, DrawnDimensions(study, plan), n, chunk, wanted, _all_devices())
    for now in _one_ahead(_with_statistics(rounds, study, plan, n, chunk, scale)):
        yield from _fetched(now, n, chunk, values)


def _with_statistics(
    rounds: Iterator[_Round], study: Study, plan: AbstractSampler, n: int, chunk: int, scale: Scale | None
) -> Iterator[_Round]:
    mesh, layout, frame = _all_devices(), layout_of(study, plan, chunk), None
    for now in rounds:
        scale = scale or _scale_of_first(study, now.found, min(n, chunk))
        frame = frame or frame_of(study, scale)
        group = _placed(_groups(plan, _padded(now.numbers, mesh), chunk, n), mesh)
        found = chunk_statistics(group, now.x, now.found, frame, layout, numbers_of(mesh))
        yield now._replace(scale=scale, statistics=found)


def statistics_of(
    study: Study, plan: AbstractSampler, scale: Scale, number: int, chunk: int, n: int, found: Evaluation
) -> Statistics:
    """The statistics of a chunk whose values are known: the same bits as when it was evaluated."""
    mesh = Mesh(np.array(jax.local_devices()[:1]), ("samples",))
    group, index = _groups(plan, [number], chunk, n), number * chunk + np.arange(chunk)
    whole = Evaluation(*(np.concatenate([x, np.repeat(x[-1:], chunk - len(x), 0)]) for x in found))
    x = on_each(DrawnDimensions(study, plan), _placed(index, mesh), mesh)
    types = (x.dtype for x in study.at_nominal)  # a store may keep them in others
    whole = Evaluation(*(_placed(np.asarray(x, dtype), mesh) for x, dtype in zip(whole, types)))
    frame, layout = frame_of(study, scale), layout_of(study, plan, chunk)
    own = chunk_statistics(_placed(group, mesh), x, whole, frame, layout, numbers_of(mesh))
    return on_host(own, scale, number, chunk, found.sequence)


def values_of(study: Study, plan: AbstractSampler, number: int, chunk: int) -> np.ndarray:
    """The values of a chunk, made by one device of this process: the same bits as on any other like it."""
    mesh = Mesh(np.array(jax.local_devices()[:1]), ("samples",))
    x = on_each(DrawnDimensions(study, plan), _placed(number * chunk + np.arange(chunk), mesh), mesh)
    return np.asarray(on_each(study, x, mesh).values)


def _rounds(
    study: Study, points: Callable, n: int, chunk: int, wanted: Iterable[int] | None, mesh: Mesh
) -> Iterator[_Round]:
    remaining = iter(range(-(-n // chunk)) if wanted is None else wanted)
    while numbers := list(itertools.islice(remaining, mesh.size)):
        index = (np.array(_padded(numbers, mesh))[:, None] * chunk + np.arange(chunk)).reshape(-1)
        x = on_each(points, _placed(index, mesh), mesh)
        with explained():
            found = on_each(study, x, mesh)
        yield _Round(numbers, x, found)


def _one_ahead(rounds: Iterator[_Round]) -> Iterator[_Round]:
    """Each round when the next one has been sent to the devices."""
    last = next(rounds, None)
    while last is not None:
        now = next(rounds, None)
        yield last
        last = now


def _fetched(now: _Round, n: int, chunk: int, values: bool = True) -> Iterator[Chunk]:
    statistics = _by_place(now.statistics)
    for at, found in _by_place(now.found).items():
        if at < len(now.numbers):
            number = now.numbers[at]
            index = number * chunk + np.arange(min(chunk, n - number * chunk))
            every = Evaluation(*(np.asarray(x)[: len(index)] for x in found)) if values else None
            own = on_host(statistics[at], now.scale, number, chunk, found.sequence) if now.scale else None
            yield Chunk(number, index, every, own)


def _by_place(arrays: Any) -> dict[int, Any]:
    """What the devices of this process have, by their places in the round."""
    leaves, structure = jax.tree_util.tree_flatten(arrays)
    found = {}
    for shards in zip(*(leaf.addressable_shards for leaf in leaves)):
        at = (shards[0].index[0].start or 0) // shards[0].data.shape[0]
        found[at] = jax.tree_util.tree_unflatten(structure, [shard.data for shard in shards])
    return dict(sorted(found.items()))


def _scale_of_first(study: Study, found: Evaluation, count: int) -> Scale:
    first = _by_place(found).get(0)
    if first is None:  # another process has it
        like = np.asarray(study.at_nominal.values, float)
        scale = Scale(np.zeros_like(like), np.zeros_like(like))
    else:
        few = first.values[:FIRST] if len(first.values) > FIRST else first.values  # the others stay on the device
        scale = scale_of(study, first._replace(values=np.asarray(few)[:count]))
    return of_first_process(scale)


def of_first_process(x: Any) -> Any:
    """What the first process says."""
    if jax.process_count() == 1:
        return x
    from jax.experimental import multihost_utils

    return multihost_utils.broadcast_one_to_all(x)


def _groups(plan: AbstractSampler, numbers: list[int], chunk: int, n: int) -> np.ndarray:
    index = (np.array(numbers)[:, None] * chunk + np.arange(chunk)).reshape(-1)
    return np.where(index < n, plan.group(index), -1).astype(np.int32)


def _all_devices() -> Mesh:
    return Mesh(np.array(jax.devices()), ("samples",))


def _padded(numbers: list[int], mesh: Mesh) -> list[int]:
    return numbers + [numbers[-1]] * (mesh.size - len(numbers))


def _placed(rows: np.ndarray, mesh: Mesh) -> Array:
    """Rows, those of each chunk on its device."""
    sharding = NamedSharding(mesh, PartitionSpec("samples"))
    return jax.make_array_from_callback(rows.shape, sharding, lambda at: rows[at])


def on_each(f: Any, rows: Array, mesh: Mesh) -> Any:
    """A function of one row, over all rows, those of each device by themselves."""
    return _on_each(f, rows, numbers_of(mesh))


def prepare_samples(study: Study, plan: AbstractSampler, chunk: int) -> None:
    """The program that evaluates samples on one device is made from now on."""
    mesh = _all_devices()
    if mesh.size == 1:
        x = on_each(DrawnDimensions(study, plan), _placed(np.arange(chunk), mesh), mesh)
        _on_each.shapes(study, x, numbers_of(mesh))


@thorough
def _on_each(f: Any, rows: Array, devices: tuple[int, ...]) -> Any:
    mesh, (numbers, structure) = mesh_of(devices), eqx.partition(f, eqx.is_array)

    def here(numbers: Any, rows: Array) -> Any:
        traced("samples")
        with values_only():
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
