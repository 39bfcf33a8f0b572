"""Sampling: Monte Carlo, Latin hypercubes, Sobol sequences, and importance sampling for rare rejects."""

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from ._extremes import DesignPoint
from ._sampler import AbstractSampler, Random, sampler
from ._study import Evaluation, Study
from ._tally import Tally


class Sample(eqx.Module):
    """Samples of a study.

    - `values`: one row for each sample, in the order of `study.columns`; NaN where there is none.
    - `kind`: the class of each, a number of [`mbsjax.CLASSES`][].
    - `sequence`: a number that stands for its sequence of contact events.
    - `tally`: the statistics, an [`mbsjax.Tally`][].
    """

    study: Study
    sampler: AbstractSampler
    found: Evaluation
    tally: Tally

    @property
    def values(self) -> np.ndarray:
        return self.found.values

    @property
    def kind(self) -> np.ndarray:
        return self.found.kind

    @property
    def sequence(self) -> np.ndarray:
        return self.found.sequence

    def __getitem__(self, name: str) -> np.ndarray:
        """All values of a measure."""
        return self.values[:, self.study.slices[name]]

    def dimensions(self, index: Any) -> np.ndarray:
        """The dimensions of samples, by their numbers: they are made anew, not stored."""
        return np.asarray(_drawn(self.study, self.sampler, jnp.atleast_1d(jnp.asarray(index))))

    def outcome(self, index: int) -> Any:
        """What the model gives for sample number `index`: to look at an example."""
        return self.study.outcome(jnp.asarray(self.dimensions(index)[0]))

    def quantile(self, name: str, p: Any) -> np.ndarray:
        """Quantiles of the finite values of a measure."""
        return np.nanquantile(self[name], np.asarray(p, float), axis=0)

    def passage(self, name: str) -> np.ndarray:
        """Along a stroke: the part of the samples that have left their limits, or stopped, up to each place."""
        at = self.study.slices[name]
        x, lower, upper = self[name], np.asarray(self.study.lower)[at], np.asarray(self.study.upper)[at]
        out = ~((x >= lower) & (x <= upper))
        return np.maximum.accumulate(out.reshape(len(out), -1), axis=1).mean(0)


def monte_carlo(
    study: Study, n: int, *, seed: int = 0, method: str = "random", chunk: int = 1024, progress: bool = False
) -> Sample:
    """Samples a study: every sample in one vectorised program, on all devices there are.

    Every sample is counted: those that cannot be assembled, jam, come out on another branch or go through another
    sequence of contacts are classes of their own.

    **Arguments:**

    - `study`, `n`: what, and how many.
    - `seed`: samples are a function of the seed and their number alone.
    - `method`: `"random"`, `"latin"` for Latin hypercubes or `"sobol"` for scrambled Sobol sequences, of which a power
        of two is best; these two in 16 independent groups, which standard errors come from.
    - `chunk`: how many samples a device runs at once. The last bits of the values may depend on it.
    - `progress`: whether to show a progress bar.

    **Returns:** an [`mbsjax.Sample`][]. For more samples than fit into memory, or one go, see [`mbsjax.campaign`][].

    !!! Example

        >>> import mbsjax as mbs
        >>> study = mbs.Study(lambda p: p, {"a": 2.0}, {"a": mbs.Uniform(1.0)}, {"square": lambda p: p["a"] ** 2},
        ...                   limits={"square": (None, 4.0)})
        >>> sample = mbs.monte_carlo(study, 4096, method="sobol")
        >>> float(sample.tally.mean[0].round(3)), sample.tally.rejects["square"][0]
        (4.333, 0.5)
    """
    plan = sampler(method, n, len(study.names), seed)
    tally = Tally(study, plan.groups, method == "random")
    parts = []
    with bar(n, progress) as shown:
        for index, found in chunks(study, plan, n, chunk):
            tally.add(index, plan.group(index), *found)
            parts.append(found)
            shown.update(len(index))
    return Sample(study, plan, joined(parts), tally)


def joined(parts: list[Evaluation]) -> Evaluation:
    """One chunk after the other."""
    return Evaluation(*(np.concatenate(x) for x in zip(*parts)))


class Rare(NamedTuple):
    """A probability from importance sampling: its value, its standard error, and the samples it took."""

    probability: float
    error: float
    samples: int


def importance(study: Study, point: DesignPoint, n: int, *, seed: int = 0, chunk: int = 1024) -> Rare:
    """The probability of breaking a limit, from samples about the design point that [`mbsjax.form`][] found for it:
    for rejects of a few ppm, which plain sampling would hardly meet. A sample without a value counts as a reject.

    !!! Example

        >>> import mbsjax as mbs
        >>> study = mbs.Study(lambda p: p, {"a": 0.0}, {"a": mbs.Normal(sigma=1.0)}, {"a": lambda p: p["a"]},
        ...                   limits={"a": (None, 5.0)})
        >>> rare = mbs.importance(study, mbs.form(study)[0], 4096)
        >>> abs(rare.probability - 2.8665e-7) < 3 * rare.error < 3e-8
        True
    """
    center = jnp.asarray(point.scores)
    plan = Random(jax.random.key(seed), center)
    k = study.columns.index(point.value)
    total = square = 0.0
    for index, found in chunks(study, plan, n, chunk):
        y = found.values[:, k]
        good = y >= point.limit if point.side == "lower" else y <= point.limit
        u = np.asarray(_scores(plan, jnp.asarray(index)))
        weight = np.where(good, 0.0, np.exp(-u @ point.scores + point.scores @ point.scores / 2))
        total, square = total + weight.sum(), square + (weight**2).sum()
    p = total / n
    return Rare(float(p), float(np.sqrt(max(square / n - p**2, 0.0) / n)), n)


def chunks(
    study: Study, plan: AbstractSampler, n: int, chunk: int, wanted: list[int] | None = None
) -> Iterator[tuple[np.ndarray, Evaluation]]:
    """Runs chunks of samples, one on each device at a time, and gives those of this process: their numbers and values.

    Each device runs the same program over `chunk` samples, however many devices there are, so that their number does
    not change a bit of the results.
    """
    if chunk < 1:
        raise ValueError(f"a chunk must have at least one sample, got {chunk}")
    wanted = list(range(-(-n // chunk))) if wanted is None else wanted
    mesh = Mesh(np.array(jax.devices()), ("samples",))
    sharding = NamedSharding(mesh, PartitionSpec("samples"))
    width = mesh.size
    for start in range(0, len(wanted), width):
        mine = wanted[start : start + width]
        numbers = np.array(mine + [mine[-1]] * (width - len(mine)))
        index = (numbers[:, None] * chunk + np.arange(chunk)).reshape(-1)
        placed = jax.make_array_from_callback(index.shape, sharding, lambda at, index=index: index[at])
        found = _run(study, plan, placed, mesh)
        pieces = zip(*(x.addressable_shards for x in jax.tree_util.tree_leaves(found)))
        for shards in sorted(pieces, key=lambda s: s[0].index[0].start or 0):
            at = (shards[0].index[0].start or 0) // chunk
            if at < len(mine):
                number = mine[at]
                count = min(chunk, n - number * chunk)
                part = Evaluation(*(np.asarray(s.data)[:count] for s in shards))
                yield number * chunk + np.arange(count), part


@eqx.filter_jit
def _run(study: Study, plan: AbstractSampler, index: Array, mesh: Mesh) -> Evaluation:
    dynamic, static = eqx.partition((study, plan), eqx.is_array)

    def on_one(dynamic: Any, index: Array) -> Evaluation:
        study, plan = eqx.combine(dynamic, static)
        return jax.vmap(lambda i: study(study.dimensions(plan.scores(i))))(index)

    every = PartitionSpec("samples")
    return jax.shard_map(on_one, mesh=mesh, in_specs=(PartitionSpec(), every), out_specs=every, check_vma=False)(
        dynamic, index
    )


@eqx.filter_jit
def _scores(plan: AbstractSampler, index: Array) -> Array:
    return jax.vmap(plan.scores)(index)


@eqx.filter_jit
def _drawn(study: Study, plan: AbstractSampler, index: Array) -> Array:
    return jax.vmap(lambda i: study.dimensions(plan.scores(i)))(index)


class _Silent:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def update(self, n: int) -> None:
        pass


def bar(n: int, shown: bool, done: int = 0) -> Any:
    """A progress bar of samples, with their rate and the time left."""
    if not shown:
        return _Silent()
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError('a progress bar needs tqdm: pip install "mbsjax[campaign]"') from error
    return tqdm(total=n, initial=done, unit=" samples", unit_scale=True, file=sys.stderr)
