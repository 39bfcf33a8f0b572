"""Statistics of one chunk of samples, made on the device that has them: what comes to the host is small."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Bool, Float, Int, Integer

from .._dynamics.outcome import CLASSES
from .._programs.reprs import by_fields
from .._programs.trees import once, thorough
from .sampler import AbstractSampler
from .study import Evaluation, Study


BINS = 480
REACH = 6.0
WORST = 32
_DISTINCT = 256
_BLOCKS = 8
FIRST = 4096


class Scale(NamedTuple):
    """About what number the sums of each value are taken, and in what unit: mean and standard deviation of the first
    samples. It shifts no result, but keeps the sums precise, and tells where the histograms lie: within six units."""

    origin: np.ndarray
    width: np.ndarray

    __repr__ = by_fields


def scale_of(study: Study, found: Evaluation) -> Scale:
    """From the first chunk, of which a few thousand samples do; where none has a value, from the nominal one."""
    values = np.asarray(found.values[:FIRST], float)
    there = np.isfinite(values)
    known = there.sum(0)
    middle = np.where(there, values, 0.0).sum(0) / np.maximum(known, 1)
    middle = np.where(known > 0, middle, np.asarray(study.at_nominal.values))
    square = np.where(there, values - middle, 0.0) ** 2
    std = np.sqrt(square.sum(0) / np.maximum(known - 1, 1))
    rounded = lambda x: x.astype(study.lower.dtype).astype(float)  # as the device has it
    return Scale(rounded(middle), rounded(np.where(std > 0, std, 1.0)))


class Statistics(NamedTuple):
    """Of one chunk. Values enter as z, their distance from the origin in units of the scale.

    - `n`: how many samples; `classes`, `examples`: of each class how many, and the number of the first or -1.
    - `sequences`, `of_sequence`, `first_of_sequence`: those that there are, how often, and where first.
    - `powers`, `drawn`, `rejects`, `tails`: by independent group: for each value the sums of z^k of the finite ones,
        k = 0 ... 4; how many samples; how many rejects of each measure, and of all; for each value how many lie below
        and above the limits.
    - `least`, `largest`, `bins`: of each value, with a histogram whose ends are open.
    - `products`: of the samples that go as the nominal one, and of all with a value: for each measure that is one
        number the sums of all products of (1, standardized dimensions, z).
    - `margins`, `numbers`, `values`: for each measure, the samples with the smallest margins, smallest first.
    - `scale`: what they are taken about.
    """

    n: Any
    classes: Any
    examples: Any
    sequences: Any
    of_sequence: Any
    first_of_sequence: Any
    powers: Any
    drawn: Any
    rejects: Any
    tails: Any
    least: Any
    largest: Any
    bins: Any
    products: Any
    margins: Any
    numbers: Any
    values: Any
    scale: Any = None

    __repr__ = by_fields


class Frame(NamedTuple):
    """What statistics are taken about: the scale, the limits, and the mean and standard deviation of the dimensions.
    Units are given by their reciprocals: how to divide is up to the compiler."""

    origin: Any
    per_width: Any
    lower: Any
    upper: Any
    mean: Any
    per_std: Any


def frame_of(study: Study, scale: Scale) -> Frame:
    lower, upper, mean, std = map(np.asarray, (study.lower, study.upper, *_mean_and_std(study)))
    return Frame(scale.origin, 1 / scale.width, lower, upper, mean, 1 / np.where(std > 0, std, 1.0))


@once
def _mean_and_std(study: Study) -> tuple[Array, Array]:
    return study.mean, study.std


class Layout(NamedTuple):
    """What the program depends on: the sizes of the measures, and how many groups there are; of how many of these a
    chunk can have samples, one group after the other, or none where neighbors are of different groups."""

    sizes: tuple[int, ...]
    groups: int
    runs: int

    @property
    def ends(self) -> list[tuple[int, int]]:
        ends = np.cumsum([max(size, 1) for size in self.sizes]).tolist()
        return [(end - max(size, 1), end) for size, end in zip(self.sizes, ends)]


def layout_of(study: Study, plan: AbstractSampler, chunk: int) -> Layout:
    return Layout(study.sizes, plan.groups, plan.runs(chunk))


def numbers_of(mesh: Mesh) -> tuple[int, ...]:
    """Of the devices of a mesh, by which programs are found."""
    return tuple(device.id for device in mesh.devices.flat)


def mesh_of(devices: tuple[int, ...]) -> Mesh:
    known = {device.id: device for device in jax.devices()}
    return Mesh(np.array([known[k] for k in devices]), ("samples",))


@thorough
def chunk_statistics(
    group: Array, x: Array, found: Evaluation, frame: Frame, layout: Layout, devices: tuple[int, ...]
) -> Any:
    """The statistics of the chunk that each device has; numbers of samples are those of their rows. `group` is -1 where
    there is no sample any more."""

    def here(group: Array, x: Array, found: Evaluation, frame: Frame) -> Any:
        return jax.tree_util.tree_map(lambda leaf: leaf[None], _statistics(group, x, found, frame, layout))

    each, every = PartitionSpec("samples"), PartitionSpec()
    specs = (each, each, each, every)
    split = jax.shard_map(here, mesh=mesh_of(devices), in_specs=specs, out_specs=each, check_vma=False)
    return split(group, x, found, frame)


def on_host(found: Statistics, scale: Scale, number: int, chunk: int, sequence: Any) -> Statistics:
    """What a device found, with the numbers of the samples. `sequence` is the column of all sequences, which is looked
    at only where there are too many."""
    found = jax.tree_util.tree_map(lambda leaf: np.asarray(leaf)[0], found)
    numbered = lambda rows: np.where(rows < 0, -1, number * chunk + rows.astype(np.int64))
    distinct = found.of_sequence > 0
    sequences = found.sequences[distinct], found.of_sequence[distinct], found.first_of_sequence[distinct]
    if distinct.sum() > _DISTINCT:
        keys, first, counts = np.unique(np.asarray(sequence)[: int(found.n)], return_index=True, return_counts=True)
        sequences = keys, counts, first
    return found._replace(
        n=int(found.n),
        examples=numbered(found.examples),
        sequences=sequences[0],
        of_sequence=sequences[1],
        first_of_sequence=numbered(sequences[2]),
        numbers=numbered(found.numbers),
        scale=scale,
    )


def _statistics(group: Array, x: Array, found: Evaluation, frame: Frame, layout: Layout) -> Statistics:
    values, kind, sequence = found
    drawn = group >= 0
    z, there = _standardized(values, drawn, frame)
    powers, *counted = _by_group(values, group, frame, layout)
    classes, examples = _classes(kind, drawn)
    sequences, of_sequence, first_of_sequence = _sequences(sequence, drawn)
    margins, rows = _worst(values, z, there, frame, layout)
    return Statistics(
        n=jnp.sum(drawn, dtype=jnp.int32),
        classes=classes,
        examples=examples,
        sequences=sequences,
        of_sequence=of_sequence,
        first_of_sequence=first_of_sequence,
        powers=powers,
        drawn=counted[0],
        rejects=counted[1],
        tails=counted[2],
        least=jnp.min(jnp.where(there, values, jnp.inf), 0),
        largest=jnp.max(jnp.where(there, values, -jnp.inf), 0),
        bins=_histograms(z, there),
        products=_products((x - frame.mean) * frame.per_std, z, there, kind, layout),
        margins=margins,
        numbers=rows,
        values=values[jnp.maximum(rows, 0)],
    )


def _standardized(values: Array, drawn: Array, frame: Frame) -> tuple[Array, Array]:
    """Distances from the origin in units of the scale, zero where there is no value; and where there is one."""
    there = jnp.isfinite(values) & drawn[..., None]
    return jnp.where(there, (values - frame.origin) * frame.per_width, 0.0), there


def _by_group(values: Array, group: Int[Array, " n"], frame: Frame, layout: Layout) -> tuple[Array, ...]:
    """By group: sums of powers of all values; how many samples, rejects by measure and of all, values in the tails."""

    def terms(values: Array, drawn: Array) -> tuple[Array, ...]:
        z, there = _standardized(values, drawn, frame)
        power = [there.astype(z.dtype)]
        for _ in range(4):
            power.append(power[-1] * z)
        low, high = there & (values < frame.lower), there & (values > frame.upper)
        wrong = low | high | ~there
        bad = jnp.stack([jnp.any(wrong[..., a:b], -1) for a, b in layout.ends], -1) & drawn[..., None]
        bad = jnp.concatenate([bad, jnp.any(bad, -1, keepdims=True)], -1)
        return *power, *(mark.astype(jnp.int32) for mark in (drawn, bad, low, high))

    def of_run(run: Array) -> tuple[Array, ...]:
        return jax.tree_util.tree_map(lambda x: x[0], _sums(terms, (values, group == group[0] + run), 1))

    if not layout.runs:
        sums = _sums(terms, (values, group >= 0), layout.groups)
        sums = [jnp.roll(x, group[0], 0) for x in sums]
    else:
        run = jnp.arange(layout.runs)
        empty = lambda x: jnp.zeros((layout.groups, *x.shape[1:]), x.dtype)
        sums = [empty(x).at[group[0] + run].set(x, mode="drop") for x in jax.lax.map(of_run, run)]
    *powers, drawn, bad, low, high = sums
    return jnp.stack(powers, 1), drawn, bad, jnp.stack([low, high], 1)


def _sums(terms: Callable, rows: tuple[Array, ...], turn: int) -> Any:
    """Sums of `terms(*rows)` by the place in a turn of so many rows. Their order is written here, and left neither to
    the compiler nor to the machine: blocks one after the other, in a block halves added to halves."""
    inner = -(-len(rows[0]) // (turn * _BLOCKS))
    missing = -len(rows[0]) % (turn * inner)
    padded = lambda x: jnp.pad(x, [(0, missing)] + [(0, 0)] * (x.ndim - 1))
    blocks = tuple(padded(x).reshape(-1, inner, turn, *x.shape[1:]) for x in rows)

    def folded(x: Array) -> Array:
        while len(x) > 1:
            half = len(x) // 2
            x = jnp.concatenate([x[:half] + x[half : 2 * half], x[2 * half :]])
        return x[0]

    def add(sums: Any, block: tuple[Array, ...]) -> tuple[Any, None]:
        return jax.tree_util.tree_map(lambda a, x: a + folded(x), sums, terms(*block)), None

    like = jax.eval_shape(lambda block: terms(*block), tuple(x[0, 0] for x in blocks))
    start = jax.tree_util.tree_map(lambda x: jnp.zeros(x.shape, x.dtype), like)
    return jax.lax.scan(add, start, blocks)[0]


def _classes(kind: Int[Array, " n"], drawn: Bool[Array, " n"]) -> tuple[Array, Array]:
    of = (kind[:, None] == jnp.arange(len(CLASSES))) & drawn[:, None]
    return jnp.sum(of, 0, dtype=jnp.int32), jnp.where(jnp.any(of, 0), jnp.argmax(of, 0), -1)


def _sequences(sequence: Integer[Array, " n"], drawn: Bool[Array, " n"]) -> tuple[Array, Array, Array]:
    """The first distinct ones, one more than are kept, which tells that there are too many; how often, where first."""
    n = len(sequence)
    key = jnp.where(drawn, sequence, sequence[0])  # the first row is always a sample
    key, row = jax.lax.sort((key, jnp.arange(n, dtype=jnp.int32)), num_keys=1)
    new = jnp.concatenate([jnp.ones(1, bool), key[1:] != key[:-1]])
    start = jnp.sort(jnp.where(new, jnp.arange(n, dtype=jnp.int32), n))[: _DISTINCT + 2]
    start = jnp.pad(start, (0, _DISTINCT + 2 - len(start)), constant_values=n)
    at = jnp.minimum(start[:-1], n - 1)
    beyond = jnp.where((key[at] == sequence[0]) & (start[:-1] < n), jnp.sum(~drawn, dtype=jnp.int32), 0)
    return key[at], start[1:] - start[:-1] - beyond, row[at]


def _histograms(z: Float[Array, "n m"], there: Bool[Array, "n m"]) -> Int[Array, "m bins"]:
    m = z.shape[1]
    place = jnp.clip(jnp.floor((z + REACH) * (BINS / (2 * REACH))), -1, BINS).astype(jnp.int32) + 1
    place = jnp.where(there, place + (BINS + 2) * jnp.arange(m, dtype=jnp.int32), m * (BINS + 2))
    empty = jnp.zeros(m * (BINS + 2), jnp.int32)
    return empty.at[place.reshape(-1)].add(1, mode="drop").reshape(m, BINS + 2)


def _products(x: Array, z: Array, there: Array, kind: Array, layout: Layout) -> Float[Array, "2 s k k"]:
    single = jnp.array([a for (a, _), size in zip(layout.ends, layout.sizes) if not size], int)

    def products(used: Array) -> Array:
        def of(column: Array) -> Array:
            rows = jnp.where(used[:, column, None], jnp.c_[jnp.ones(len(x)), x, z[:, column]], 0.0)
            return _sums(lambda row: row[..., :, None] * row[..., None, :], (rows,), 1)[0]

        return jax.lax.map(of, single)

    return jax.lax.map(products, jnp.stack([there & (kind == 0)[:, None], there]))


def _worst(values: Array, z: Array, there: Array, frame: Frame, layout: Layout) -> tuple[Array, Array]:
    """Of each measure the smallest margins, and their rows, -1 where there are no more. The margin is the distance to
    the nearest limit, in units of the scale, anywhere along a row; without limits, how far a value is from the origin,
    with a minus. What has no value has no margin."""
    inside = jnp.minimum(values - frame.lower, frame.upper - values) * frame.per_width
    limited = jnp.isfinite(frame.lower) | jnp.isfinite(frame.upper)
    margins = []
    for a, b in layout.ends:
        margin = jnp.where(jnp.any(limited[a:b]), jnp.min(inside[:, a:b], 1), -jnp.max(jnp.abs(z[:, a:b]), 1))
        margins.append(jnp.where(jnp.all(there[:, a:b], 1), margin, jnp.inf))
    margin = jnp.stack(margins)
    row = jnp.broadcast_to(jnp.arange(len(z), dtype=jnp.int32), margin.shape)
    margin, row = (x[:, :WORST] for x in jax.lax.sort((margin, row), num_keys=1))
    return margin, jnp.where(jnp.isfinite(margin), row, -1)
