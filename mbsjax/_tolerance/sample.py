"""Sampling: Monte Carlo, Latin hypercubes, Sobol sequences."""

import os
import warnings
from typing import Any

import equinox as eqx
import numpy as np

from .._programs.progress import bar
from .._programs.reprs import brief, has_numbers
from .drawn import AbstractDrawn
from .evaluate import CHUNK, joined, sampled_in_chunks, statistics_of
from .sampler import AbstractSampler, counts, sampler
from .statistics import Scale
from .study import Evaluation, Study
from .tally import Tally, known


class Sample(AbstractDrawn):
    """Samples of a study.

    - `values`: one row for each sample, in the order of `study.columns`; NaN where there is none.
    - `kind`: the class of each, a number of [`mbsjax.CLASSES`][].
    - `sequence`: a number that stands for its sequence of contact events.
    - `tally`: the statistics, an [`mbsjax.Tally`][].
    - `first`: the number of the first sample among all, where these are a part of a campaign.

    Rows are counted from 0; `worst`, `outcome` and `view` speak of numbers among all.

    !!! Example

        >>> import mbsjax as mbs
        >>> study = mbs.Study(lambda p: p, {"a": 2.0, "b": 1.0}, {"a": mbs.Uniform(1.0), "b": mbs.Uniform(0.1)},
        ...                   {"area": lambda p: p["a"] * p["b"]}, limits={"area": (None, 3.0)})
        >>> sample = mbs.monte_carlo(study, 4096)
        >>> first, second = sample.worst(2)
        >>> area = first.dimensions["a"] * first.dimensions["b"]
        >>> first.margin < second.margin < 0, bool(abs(area - sample["area"].max()) < 1e-12)
        (True, True)
        >>> float(sample.quantiles(0.5)["area"].round(1)), sample.regression("area").slopes.round(1).tolist()
        (2.0, [1.0, 2.0])
    """

    study: Study
    sampler: AbstractSampler
    tally: Tally = eqx.field(static=True)
    found: Evaluation
    first: int = eqx.field(static=True, default=0)

    @property
    def numbers(self) -> range:
        return range(self.first, self.first + len(self.kind))

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
        """The dimensions of samples, by their rows: they are made anew, not stored."""
        return self.drawn(self.first + np.atleast_1d(np.arange(len(self.kind))[index]))

    def quantile(self, name: str, p: Any) -> np.ndarray:
        """Quantiles of the finite values of a measure."""
        x = self[known(self.study, name)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # where no sample has a value, NaN
            return np.asarray(np.nanquantile(np.where(np.isfinite(x), x, np.nan), np.asarray(p, float), axis=0))

    def passage(self, name: str) -> np.ndarray:
        """Along a stroke: the part of the samples that have left their limits, or stopped, up to each place."""
        at = self.study.slices[name]
        x, lower, upper = self[name], np.asarray(self.study.lower)[at], np.asarray(self.study.upper)[at]
        out = ~((x >= lower) & (x <= upper))
        return np.maximum.accumulate(out.reshape(len(out), -1), axis=1).mean(0)

    def __repr__(self) -> str:
        found: Any = self.found.values
        if has_numbers(found):
            found = {name: found[..., at] for name, at in self.study.slices.items()}
        return brief(self, values=found, tally=self.tally)


def monte_carlo(
    study: Study, n: int, *, seed: int = 0, method: str = "random", chunk: int = CHUNK, progress: bool = False
) -> Sample:
    """Samples a study: every sample in one vectorized program, on all devices there are.

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
    n, seed, chunk = counts(samples=n, seed=seed, chunk=chunk)
    _check_memory(study, n)
    plan = sampler(method, n, len(study.names), seed)
    chunks = []
    with bar(n, progress) as shown:
        for done in sampled_in_chunks(study, plan, n, chunk):
            chunks.append(done)
            shown.update(len(done.index))
    tally = Tally(study, plan, chunks[0].statistics.scale)
    for done in chunks:
        tally.merge(done.statistics)
    return Sample(study, plan, tally, joined(chunks))


def _check_memory(study: Study, n: int) -> None:
    """Raises where the values of all samples do not fit into the memory of this machine."""
    need, have = 8 * n * (study.lower.size + 2), _memory()  # the values, how it ended, and its sequence of contacts
    if need > have:
        raise ValueError(
            f"{n} samples of {study.lower.size} value(s) take {need / 1e9:.3g} GB, and this machine has "
            f"{have / 1e9:.3g} GB of memory: `campaign` makes as many without keeping them, or in a store"
        )


def _memory() -> float:
    """Of this machine, in bytes; infinite where it does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return np.inf


def part_of(
    study: Study, plan: AbstractSampler, scale: Scale, number: int, chunk: int, n: int, found: Evaluation
) -> Sample:
    """One chunk of a campaign, with its own statistics."""
    tally = Tally(study, plan, scale)
    tally.merge(statistics_of(study, plan, scale, number, chunk, n, found))
    return Sample(study, plan, tally, found, number * chunk)
