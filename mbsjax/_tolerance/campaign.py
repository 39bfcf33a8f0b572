"""Campaigns: samples too many for one call, one go or one machine, kept in a store of chunks."""

import contextlib
import functools
import math
import pathlib
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .._programs.reprs import brief
from .claims import Claims
from .drawn import AbstractDrawn
from .evaluate import statistics_of, values_of
from .identity import described
from .sample import Sample, bar, part_of
from .sampler import AbstractSampler, counts
from .statistics import Scale, Statistics, scale_of
from .store import COLUMNS, Store, StoreError, StoreWarning, chunk_file, fingerprint
from .study import Evaluation, Study
from .tally import Tally, known
from .workers import Work, made_by, made_here


class Campaign(AbstractDrawn):
    """A finished campaign.

    - `tally`: the statistics of all samples, an [`mbsjax.Tally`][].
    - `path`: the store, a folder or its address; none if only statistics were kept. It is one Parquet dataset, which
        pandas, Polars, DuckDB and Arrow read as it is: a file for each chunk, with the columns `index`, `kind`,
        `sequence` and one for each value. `_manifest.json` tells the study.
    """

    study: Study
    sampler: AbstractSampler
    tally: Tally = eqx.field(static=True)
    store: Store | None = eqx.field(static=True)
    chunk: int = eqx.field(static=True)

    @property
    def path(self) -> pathlib.Path | str | None:
        if self.store is None:
            return None
        return pathlib.Path(self.store.root) if self.store.local else self.store.url

    @property
    def numbers(self) -> range:
        return range(self.tally.n)

    def quantile(self, name: str, p: Any) -> np.ndarray:
        """Quantiles of the finite values of a measure, from its histogram: to a fortieth of its standard deviation."""
        found = self.tally.quantile(p)[:, self.study.slices[known(self.study, name)]]
        return found if np.ndim(p) else np.asarray(found[0])

    def sample(self) -> Sample:
        """All samples, in memory."""
        parts = [found for _, found in self._chunks()]
        return Sample(self.study, self.sampler, self.tally, Evaluation(*map(np.concatenate, zip(*parts))))

    def samples(self) -> Iterator[Sample]:
        """All samples, one chunk after the other, each with its own statistics: memory does not grow with them."""
        for k, found in self._chunks():
            yield part_of(self.study, self.sampler, self.tally.scale, k, self.chunk, self.tally.n, found)

    def _chunks(self) -> Iterator[tuple[int, Evaluation]]:
        if self.store is None:
            raise ValueError("this campaign kept statistics only: its samples need a store")
        n = self.tally.n
        for k in range(-(-n // self.chunk)):
            yield k, self.store.read(k, None, min(self.chunk, n - k * self.chunk))

    def __repr__(self) -> str:
        return brief(self, "no store" if self.path is None else str(self.path), chunk=self.chunk, tally=self.tally)


_WINDOW = 64  # how many chunks that came before their turn are remembered; others are read again


def campaign(
    study: Study,
    n: int,
    store: Any = None,
    *,
    seed: int = 0,
    method: str = "random",
    chunk: int = 4096,
    executor: Executor | None = None,
    until: Mapping[str, float] | None = None,
    progress: bool = True,
) -> Campaign:
    """Samples a study in chunks, on all devices of all processes, and keeps each finished chunk in a store at once.

    Killed, it goes on where it stopped when it is called again, and ends with the same numbers, bit for bit. Called
    with a larger `n`, it adds to a store of random samples. Memory does not grow with `n`. Several campaigns may work
    at one store at the same time: each makes the chunks that no other is at.

    For several hosts, give an `executor`, or call the same on each with one store, or start the same script on each,
    call `jax.distributed.initialize` in it first, and let the store lie where all of them see it.

    **Arguments:**

    - `study`, `n`, `seed`, `method`: as for [`mbsjax.monte_carlo`][].
    - `store`: a folder, or an address that fsspec knows: `"s3://bucket/folder"`. One that belongs to another study is
        refused, be it that a number has changed that the model refers to; a damaged chunk is found and run again.
        Without a store, statistics are all that is kept.
    - `chunk`: how many samples a device runs at once, and a file holds.
    - `executor`: whose workers make the chunks: any executor of `concurrent.futures`, such as a
        `ProcessPoolExecutor` (of new processes, not of forks), `dask.distributed.Client(...).get_executor()` or
        mpi4py's `MPIPoolExecutor`. Give each worker a device of its own. Workers may come and go: a chunk that is lost
        is made by another one. They write to the store themselves.
    - `until`: how precise it is to be, `{"yield": 1e-4}` or `{"measure": 1e-4}`: the campaign stops after the first
        chunk, in their order, with which the standard error of that rate is at most this; `n` is then the most. Only
        for random samples.
    - `progress`: whether to show a bar, with samples per second and the time left.

    !!! Example

        >>> import tempfile, mbsjax as mbs
        >>> study = mbs.Study(lambda p: p, {"a": 2.0}, {"a": 0.3}, {"square": lambda p: p["a"] ** 2},
        ...                   limits={"square": (None, 4.0)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = mbs.campaign(study, 3000, folder, chunk=1000, progress=False)
        ...     len(list(done.path.glob("*.parquet"))), done.tally.n
        (3, 3000)
        >>> mbs.campaign(study, 10**6, chunk=1000, until={"yield": 0.01}, progress=False).tally.n  # 0.5 / 0.01, squared
        3000

        Then `done.worst(10)` tells the worst samples with their dimensions, `done.view(number, "sample.html")` plays
        one of them, and `done.samples()` goes through all of them in the store.
    """
    for name in COLUMNS:
        if name in study.columns:
            raise ValueError(f"a measure of a campaign cannot be called {name!r}: its store has a column of that name")
    n, seed, chunk = counts(samples=n, seed=seed, chunk=chunk)
    until = _precision(until, study, method)
    place, mark, description = None if store is None else Store(store), "", {}
    together = jax.process_count() > 1
    if place is not None:
        description = described(study, seed, method, chunk, None if method == "random" else n)
        mark = fingerprint(description)
    elif together:
        raise ValueError("several processes need a store, where all of them see what each has made")
    work = Work(study, method, n, seed, chunk, place, mark)
    if place is not None and jax.process_index() == 0:
        place.open(description, lambda: _difference(work))
    course = _Course(work, until)
    try:
        (_together if together else _shared)(course, executor, progress)
    except (StoreError, BrokenExecutor) as error:
        again = StoreError if isinstance(error, StoreError) else BrokenExecutor
        raise again(f"{error}. {course.told()}") from error
    return Campaign(study, course.work.plan, course.tally, place, chunk)


class _Course:
    """How far a campaign is. Chunks are counted in the order of their numbers, whoever made them whenever, so that the
    last bit of the statistics does not depend on that, nor which chunk is the last one needed."""

    def __init__(self, work: Work, until: dict[str, float]):
        self.work, self.until = work, until
        self.there: set[int] = set()  # the numbers of the chunks that are made
        self.unfit: set[int] = set()  # of those that are damaged, or too small
        self.look()
        self.next, self.enough = 0, False
        self.ahead: dict[int, Statistics] = {}
        self.tally: Any = None  # from the first chunk on

    @property
    def scale(self) -> Scale | None:
        return None if self.tally is None else self.tally.scale

    @property
    def samples(self) -> int:
        return min(len(self.there) * self.work.chunk, self.work.n)

    @property
    def done(self) -> bool:
        return self.enough or self.next == self.work.count

    def add(self, number: int, statistics: Statistics) -> None:
        if number >= self.next and (self.work.store is None or number - self.next < _WINDOW):
            self.ahead[number] = statistics
        self.advance(sys.maxsize if self.until else 2)  # others may be faster than one reads

    def advance(self, reads: int = sys.maxsize) -> None:
        """Counts the chunks whose turn it is; of those to be read from the store, so many at most."""
        while not self.done and (self.next in self.ahead or reads > 0):
            reads -= self.next not in self.ahead
            if (statistics := self._statistics(self.next)) is None:
                return
            if self.tally is None:
                self.tally = Tally(self.work.study, self.work.plan, statistics.scale)
            self.tally.merge(statistics)
            self.next += 1
            rates = self.tally.rejects if self.until else {}
            self.enough = bool(rates) and all(rates[name][1] <= error for name, error in self.until.items())

    def look(self) -> None:
        """Which chunks others have made."""
        if self.work.store is not None:
            self.there |= {k for k in self.work.store.chunks() if k < self.work.count} - self.unfit

    def read(self, k: int) -> Evaluation | None:
        """A chunk of the store; none where it is not there, or not whole."""
        work = self.work
        if work.store is None or k not in self.there:
            return None
        try:
            found = work.store.read(k, work.mark, work.size(k))
            if len(found.kind) == work.size(k):
                return found  # of more samples, the first ones
        except (ValueError, OSError) as error:  # what pyarrow raises is among these
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            text = f"chunk {k} of {work.store.url} is damaged and is run again: {reason}"
            warnings.warn(text, StoreWarning, stacklevel=2)
        self.unfit.add(k)
        self.there.discard(k)
        return None

    def kept(self, k: int) -> None:
        self.unfit.discard(k)
        self.there.add(k)

    def told(self) -> str:
        """What there is if it ends here."""
        store = self.work.store
        if store is None:
            return "Without a store, nothing is kept"
        self.look()
        return (
            f"{len(self.there)} of {self.work.count} chunks are kept in {store.url}; the same call goes on from there"
        )

    def _statistics(self, k: int) -> Statistics | None:
        if k in self.ahead:
            return self.ahead.pop(k)
        found = self.read(k)
        if found is None:
            return None
        work, scale = self.work, self.scale or scale_of(self.work.study, found)  # the first chunk tells it
        return statistics_of(work.study, work.plan, scale, k, work.chunk, work.n, found)


def _shared(course: _Course, executor: Executor | None, progress: bool) -> None:
    """Makes the chunks that are missing and that no other campaign is at, until there are all."""
    work = course.work
    make = made_here if executor is None else functools.partial(made_by, executor)
    course.advance(sys.maxsize if course.until or len(course.there) == work.count else 1)
    if course.done:
        return
    with contextlib.nullcontext() if work.store is None else Claims(work.store) as claims:

        def kept(k: int) -> None:
            course.kept(k)
            if claims is not None:
                claims.drop(k)

        with bar(work.n, progress, course.samples) as shown:
            while not course.done:
                before, made = course.next, False
                numbers = iter([0]) if course.scale is None else _missing(course, claims)  # all depend on the scale
                with contextlib.closing(make(work, numbers, course.scale, kept)) as chunks:
                    for number, statistics in chunks:
                        made = True
                        course.add(number, statistics)
                        shown.update(work.size(number))
                        if course.done:
                            return
                course.look()
                if not made:
                    course.advance()
                    if course.next == before:
                        time.sleep(0.2)  # others are at what is missing


def _missing(course: _Course, claims: Claims | None) -> Iterator[int]:
    """The numbers of the chunks to make, claimed one by one when they are asked for."""
    for k in range(course.next, course.work.count):
        if course.done:
            return
        if k in course.there or k in course.ahead:
            continue
        if claims is not None:
            if not claims.take(k):
                continue
            if claims.others and k not in course.unfit and claims.store.has(chunk_file(k)):
                claims.drop(k)
                course.look()
                continue
        yield k


def _together(course: _Course, executor: Executor | None, progress: bool) -> None:
    """The processes of `jax.distributed`: all at the same chunks, each writes its own, and all read all."""
    from jax.experimental import multihost_utils

    if executor is not None:
        raise ValueError("`executor` is for one process: those of jax.distributed are workers themselves")
    work, first = course.work, jax.process_index() == 0
    there = np.zeros(work.count, bool)
    if first:
        there = np.array([course.read(k) is not None for k in range(work.count)])
    there = np.asarray(multihost_utils.broadcast_one_to_all(there), bool)
    missing = np.flatnonzero(~there).tolist()
    course.there = set(np.flatnonzero(there).tolist())
    if course.until or not missing:
        course.advance()
        if course.done:
            return
    step = 8 * jax.device_count() if course.until else max(len(missing), 1)
    with bar(work.n, progress and first, course.samples) as shown:
        for at in range(0, len(missing), step):
            block = missing[at : at + step]
            for number, _ in made_here(work, block, _nominal_scale(work.study), lambda k: None):
                shown.update(work.size(number) * jax.process_count())
            multihost_utils.sync_global_devices("mbsjax campaign")
            for k in block:
                course.kept(k)
            course.advance()
            if course.done:
                return
    raise StoreError(f"chunk {course.next}, written by another process, cannot be read")


def _nominal_scale(study: Study) -> Scale:
    """For statistics that nobody looks at."""
    values = np.asarray(study.at_nominal.values, float)
    return Scale(values, np.ones_like(values))


def _precision(until: Any, study: Study, method: str) -> dict[str, float]:
    """The standard errors to reach, by the names of a tally's rejects."""
    if until is None:
        return {}
    if not isinstance(until, Mapping) or not until:
        raise ValueError(f'`until` must name what is to be precise, {{"yield": 1e-4}}, got {until!r}')
    if method != "random":
        raise ValueError(f"`until` is for random samples: {method!r} is laid out for a number of samples")
    for name, error in until.items():
        if name != "yield" and name not in study.labels:
            raise ValueError(
                f"`until` names {name!r}, which is neither 'yield' nor a measure; these are {', '.join(study.labels)}"
            )
        if isinstance(error, bool) or not isinstance(error, (int, float)) or not 0 < error < math.inf:
            raise ValueError(f"`until` of {name!r} must be a positive standard error, got {error!r}")
    return {"" if name == "yield" else name: float(error) for name, error in until.items()}


def _difference(work: Work) -> str:
    """A value in the store that is another one in this study; empty where there is none. The samples of the first chunk
    that can be read are made again."""
    assert work.store is not None
    for k in sorted(x for x in work.store.chunks() if x < work.count):
        try:
            stored = work.store.read(k, work.mark, work.size(k)).values
        except (ValueError, OSError):  # a damaged one, which is found when its turn comes
            continue
        values = values_of(work.study, work.plan, k, work.chunk)[: len(stored)]
        same = np.isclose(values, stored, rtol=1e-6, atol=0.0, equal_nan=True)
        if same.all():
            return ""
        i, j = np.argwhere(~same)[0]
        name, number = work.study.columns[j], k * work.chunk + i
        return f"sample {number} has {name} = {stored[i, j]:.9g}, now {values[i, j]:.9g}"
    return ""
