"""Campaigns: samples too many for one call, one go or one machine, kept in a store of chunks."""

import hashlib
import json
import os
import pathlib
import warnings
from typing import Any

import equinox as eqx
import jax
import numpy as np

from .._programs.reprs import brief
from .evaluate import DrawnDimensions, evaluated_in_chunks, statistics_of
from .sample import Sample, bar
from .sampler import AbstractSampler, counts, sampler
from .statistics import scale_of
from .study import Evaluation, Study
from .tally import Tally


class Campaign(eqx.Module):
    """A finished campaign.

    - `tally`: the statistics of all samples, an [`mbsjax.Tally`][].
    - `path`: the store: `study.json`, and one Parquet file for each chunk, with the columns `index`, `kind`, `sequence`
        and one for each value. Any reader of Parquet folders takes it.
    """

    study: Study
    sampler: AbstractSampler
    path: pathlib.Path = eqx.field(static=True)
    chunk: int = eqx.field(static=True)
    tally: Tally = eqx.field(static=True)

    def sample(self) -> Sample:
        """All samples, in memory."""
        n = self.tally.n
        parts = [_read(self.path, k, None, min(self.chunk, n - k * self.chunk)) for k in range(-(-n // self.chunk))]
        return Sample(self.study, self.sampler, self.tally, Evaluation(*map(np.concatenate, zip(*parts))))

    def __repr__(self) -> str:
        return brief(self, str(self.path), chunk=self.chunk, tally=self.tally)


_COLUMNS = ("index", "kind", "sequence")
_VALUES = ("values at nominal", "values aside")  # compared to 1e-6: they tell another model


class StoreWarning(UserWarning):
    """A chunk of a store is damaged, and is run again."""


def campaign(
    study: Study,
    n: int,
    store: Any,
    *,
    seed: int = 0,
    method: str = "random",
    chunk: int = 4096,
    progress: bool = True,
) -> Campaign:
    """Samples a study in chunks, on all devices of all processes, and keeps each finished chunk in a store at once.

    Killed, it goes on where it stopped when it is called again, and ends with the same numbers, bit for bit. Called
    with a larger `n`, it adds to a store of random samples. Memory does not grow with `n`.

    For several hosts, start the same script on each, call `jax.distributed.initialize` in it first, and let the store
    lie where all of them see it.

    **Arguments:**

    - `study`, `n`, `seed`, `method`: as for [`mbsjax.monte_carlo`][].
    - `store`: the folder. One that belongs to another study is refused; a damaged chunk is found and run again.
    - `chunk`: how many samples a device runs at once, and a file holds.
    - `progress`: whether to show a bar, with samples per second and the time left.

    !!! Example

        >>> import tempfile, mbsjax as mbs
        >>> study = mbs.Study(lambda p: p, {"a": 2.0}, {"a": 0.3}, {"square": lambda p: p["a"] ** 2})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = mbs.campaign(study, 3000, folder, chunk=1000, progress=False)
        ...     len(list(done.path.glob("*.parquet"))), done.tally.n
        (3, 3000)
    """
    for name in _COLUMNS:
        if name in study.columns:
            raise ValueError(f"a measure of a campaign cannot be called {name!r}: its store has a column of that name")
    n, seed, chunk = counts(samples=n, seed=seed, chunk=chunk)
    plan = sampler(method, n, len(study.names), seed)
    path = pathlib.Path(store)
    description = _described(study, seed, method, chunk, None if method == "random" else n)
    count = -(-n // chunk)
    first = jax.process_index() == 0
    missing = np.zeros(count, bool)
    if first:
        mark = _claim(path, description)
        missing = np.array([not _intact(path, k, mark, min(chunk, n - k * chunk)) for k in range(count)])
    missing = np.asarray(_of_first_process(missing), bool)
    mark = _fingerprint(description)
    wanted = np.flatnonzero(missing).tolist()
    have = n - sum(min(chunk, n - k * chunk) for k in wanted)
    with bar(n, progress and first, have) as shown:
        for done in evaluated_in_chunks(study, DrawnDimensions(study, plan), n, chunk, wanted):
            _write(path, done.number, study.columns, mark, seed, done.index, done.found)
            shown.update(len(done.index) * jax.process_count())
    _wait_for_all_processes()
    scale = scale_of(study, _read(path, 0, mark, min(chunk, n)))
    tally = Tally(study, plan, scale)
    for k in range(count):
        found = _read(path, k, mark, min(chunk, n - k * chunk))
        tally.merge(statistics_of(study, plan, scale, k, chunk, n, found))
    return Campaign(study, plan, path, chunk, tally)


def _described(study: Study, seed: int, method: str, chunk: int, n: int | None) -> dict:
    """What makes a study this one and no other."""
    numbers = lambda x: np.asarray(x, float).reshape(-1).tolist()
    spreads = [
        [type(d).__name__, *(x for part in d.spread for x in numbers(part)), *d.parameters]
        for d, c in zip(study.distributions, study.counts)
        for _ in range(c)
    ]
    return {
        "seed": seed, "method": method, "chunk": chunk, "samples": n,
        "dimensions": list(study.names), "nominal": numbers(study.nominal), "tolerances": spreads,
        "other dimensions": [numbers(x) for x in study.choice.leaves if eqx.is_array_like(x)],
        "correlation": numbers(study.mixing), "measures": list(study.columns),
        "values at nominal": [float(f"{x:.9g}") for x in numbers(study.at_nominal.values)],
        "values aside": [float(f"{x:.9g}") for x in numbers(study(study.mean + study.std / 2).values)],
    }  # fmt: skip


def _fingerprint(description: dict) -> str:
    known = {key: value for key, value in description.items() if key not in _VALUES}
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()


def _claim(path: pathlib.Path, description: dict) -> str:
    """Makes the store, or makes sure that it is this study's."""
    path.mkdir(parents=True, exist_ok=True)
    card = path / "study.json"
    if card.exists():
        try:
            there = json.loads(card.read_text())
            other = [
                key for key in description if key not in _VALUES and repr(there.get(key)) != repr(description[key])
            ]
            for key in _VALUES:
                known, now = (np.asarray(x[key], float) for x in (there, description))
                if known.shape != now.shape or not np.allclose(known, now, rtol=1e-6, atol=0.0, equal_nan=True):
                    other.append(key)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{card} is not what a campaign has written: {error}") from error
        if other:
            raise ValueError(f"the store {path} belongs to another study: it has other {', '.join(other)}")
    elif any(not x.name.startswith(".study.json.") for x in path.iterdir()):
        raise ValueError(f"the folder {path} is not empty, and not the store of a campaign")
    else:
        _put(card, json.dumps(description, indent=1).encode())
    return _fingerprint(description)


def _file(path: pathlib.Path, k: int) -> pathlib.Path:
    return path / f"{k:08d}.parquet"


def _put(path: pathlib.Path, content: bytes) -> None:
    """Writes a file whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with open(draft, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def _digest(columns: Any) -> str:
    found = hashlib.sha256()
    for column in columns:
        found.update(np.ascontiguousarray(column).tobytes())
    return found.hexdigest()


def _write(
    path: pathlib.Path, k: int, names: tuple[str, ...], mark: str, seed: int, index: np.ndarray, found: Evaluation
) -> None:
    arrow, parquet = _arrow()
    columns = [index.astype(np.int64), found.kind.astype(np.int8), found.sequence.astype(np.uint32), *found.values.T]
    about = {"study": mark, "chunk": str(k), "seed": str(seed), "digest": _digest(columns)}
    table = arrow.table(dict(zip([*_COLUMNS, *names], map(np.ascontiguousarray, columns))))
    sink = arrow.BufferOutputStream()
    parquet.write_table(table.replace_schema_metadata(about), sink)
    _put(_file(path, k), sink.getvalue().to_pybytes())


def _read(path: pathlib.Path, k: int, mark: str | None, size: int) -> Evaluation:
    """The first samples of a chunk; raises where it is not what it should be."""
    _, parquet = _arrow()
    table = parquet.read_table(_file(path, k), partitioning=None)
    about = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    columns = [column.to_numpy() for column in table.columns]
    if about.get("study") != (mark or about.get("study")) or about.get("chunk") != str(k):
        raise ValueError("it belongs to another study")
    if about.get("digest") != _digest(columns):
        raise ValueError("its numbers were changed")
    _, kind, sequence, *values = columns
    return Evaluation(np.stack(values, 1)[:size], kind[:size].astype(int), sequence[:size])


def _intact(path: pathlib.Path, k: int, mark: str, size: int) -> bool:
    if not _file(path, k).exists():
        return False
    try:
        found = len(_read(path, k, mark, size).kind)
    except (ValueError, OSError) as error:  # what pyarrow raises is among these
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        warnings.warn(f"chunk {k} of {path} is damaged and is run again: {reason}", StoreWarning, stacklevel=3)
        return False
    return found >= size  # of more samples, the first ones are taken


def _of_first_process(missing: np.ndarray) -> Any:
    """What the first process says."""
    if jax.process_count() == 1:
        return missing
    from jax.experimental import multihost_utils

    return multihost_utils.broadcast_one_to_all(missing)


def _wait_for_all_processes() -> None:
    """Waits until all processes have written."""
    if jax.process_count() > 1:
        from jax.experimental import multihost_utils

        multihost_utils.sync_global_devices("mbsjax campaign")


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError('a campaign needs pyarrow: pip install "mbsjax[campaign]"') from error
    return pyarrow, pyarrow.parquet
