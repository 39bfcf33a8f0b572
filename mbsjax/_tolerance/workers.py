"""How the chunks of a campaign are made: on the devices of this process, or by the workers of an executor."""

import concurrent.futures
import dataclasses
import functools
import itertools
import pathlib
import pickle
import socket
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any

import jax

from .._programs.kept import folder, keep
from .evaluate import Chunk, sampled_in_chunks
from .sampler import AbstractSampler, sampler
from .statistics import Scale, Statistics
from .store import Store, chunk_file, needed
from .study import Study


Chunks = Generator[tuple[int, Statistics], None, None]

_SETTINGS = ("jax_enable_x64", "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
_TRIES = 4
_WRITERS = 4


@dataclasses.dataclass(frozen=True)
class Work:
    """All that the chunks of a campaign depend on, but for their numbers, and where they are kept."""

    study: Study
    method: str
    n: int
    seed: int
    chunk: int
    store: Store | None
    mark: str

    @functools.cached_property
    def plan(self) -> AbstractSampler:
        return sampler(self.method, self.n, len(self.study.names), self.seed)

    @property
    def count(self) -> int:
        return -(-self.n // self.chunk)

    def size(self, k: int) -> int:
        return min(self.chunk, self.n - k * self.chunk)

    def chunks(self, numbers: Iterable[int], scale: Scale | None) -> Iterator[Chunk]:
        values = self.store is not None
        return sampled_in_chunks(self.study, self.plan, self.n, self.chunk, numbers, scale=scale, values=values)

    def keep(self, chunk: Chunk) -> None:
        if self.store is not None and chunk.found is not None:
            names = self.study.columns
            self.store.write(chunk.number, names, self.mark, self.seed, chunk.index, chunk.found)

    def __reduce__(self) -> Any:  # without the plan, which is made anew: it is always the same bytes
        return Work, tuple(getattr(self, field.name) for field in dataclasses.fields(self))


def made_here(work: Work, numbers: Iterable[int], scale: Scale | None, kept: Callable[[int], None]) -> Chunks:
    """Chunks by the devices of this process. Threads write them to the store while the next ones run; at the end,
    whatever it is, all are written."""
    with concurrent.futures.ThreadPoolExecutor(_WRITERS, "mbsjax-store") as pool:
        writing: set[Future] = set()

        def written(most: int) -> None:
            while len(writing) > most:
                done, _ = concurrent.futures.wait(writing, return_when=concurrent.futures.FIRST_COMPLETED)
                writing.difference_update(done)
                for future in done:
                    future.result()

        def keep(chunk: Chunk) -> None:
            work.keep(chunk)
            kept(chunk.number)

        try:
            for chunk in work.chunks(numbers, scale):
                written(_WRITERS - 1)  # memory does not grow where writing is slower than making
                writing.add(pool.submit(keep, chunk))
                yield chunk.number, chunk.statistics
        finally:
            written(0)


def made_by(
    executor: Executor, work: Work, numbers: Iterable[int], scale: Scale | None, kept: Callable[[int], None]
) -> Chunks:
    """Chunks by the workers of an executor, in the order in which they come. More are asked for at a time as long as
    that does not make them wait for each other, so that workers may join; one that was lost is asked for again."""
    _check(executor)
    settings = {name: getattr(jax.config, name) for name in _SETTINGS}, folder()
    packed = needed("cloudpickle").dumps(work)
    numbers = iter(numbers)
    running: dict[Future, tuple[int, int, float]] = {}  # the number, how often it was lost, since when
    room, shortest, seen = 4, float("inf"), False

    def submit(number: int, lost: int) -> None:
        running[executor.submit(_task, settings, packed, number, scale)] = (number, lost, time.monotonic())

    try:
        while True:
            for number in itertools.islice(numbers, max(room - len(running), 0)):
                submit(number, 0)
            if not running:
                return
            done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                number, lost, since = running.pop(future)
                try:
                    found = future.result()
                except BrokenExecutor:
                    raise
                except (Exception, concurrent.futures.CancelledError) as error:  # of the executor, not of the task
                    if lost + 1 == _TRIES:
                        told = str(error) or type(error).__name__
                        raise BrokenExecutor(
                            f"chunk {number} was lost with its worker {_TRIES} times: {told}"
                        ) from error
                    submit(number, lost + 1)
                    continue
                if isinstance(found, BaseException):
                    raise found
                if not seen and work.store is not None and not work.store.has(chunk_file(number)):
                    raise ValueError(f"workers do not see the store {work.store.url}: what they write is not in it")
                seen, took = True, time.monotonic() - since
                shortest = min(shortest, took)
                room += took < 2 * shortest
                kept(number)
                yield number, found
    except GeneratorExit:  # there is enough: what has begun is waited for, so that the store is at rest
        concurrent.futures.wait([future for future in running if not future.cancel()])
        raise
    finally:
        for future in running:
            future.cancel()


def _check(executor: Any) -> None:
    if not isinstance(executor, Executor):
        raise ValueError(f"`executor` must be an executor of concurrent.futures, got {executor!r}")
    context = getattr(executor, "_mp_context", None)
    if context is not None and context.get_start_method() == "fork":
        raise ValueError(
            "JAX does not run in forked processes: "
            'ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) starts new ones'
        )


def _task(settings: tuple[dict[str, Any], pathlib.Path | None], packed: bytes, number: int, scale: Scale | None) -> Any:
    """One chunk, by a worker. An error is returned: what is raised is then the executor's own."""
    here, programs = settings
    keep(programs or folder())
    for name, value in here.items():
        if value is not None and getattr(jax.config, name) != value:
            jax.config.update(name, value)
    try:
        work = _unpacked(packed)
        (chunk,) = work.chunks([number], scale)
        work.keep(chunk)
        return chunk.statistics
    except Exception as error:
        error.add_note(f"chunk {number}, on {socket.gethostname()}:\n{traceback.format_exc()}")
        return _portable(error)


@functools.lru_cache(maxsize=4)
def _unpacked(packed: bytes) -> Work:
    """Once in each worker, so that it compiles once."""
    return needed("cloudpickle").loads(packed)


def _portable(error: Exception) -> Exception:
    """An error that can travel."""
    error.__cause__ = error.__context__ = error.__traceback__ = None
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
