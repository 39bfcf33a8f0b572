"""Whole programs that outlive the process that made them. They are found by what they are made of, and not traced.

What JAX keeps by itself is found by the text of a lowered program, which has to be traced and lowered first: most of a
second start. Here the key is a digest of all that decides what a program will be (see `key_of`); what cannot have one
is traced. A file is written whole or not at all, and used only if it is what was written.
"""

import contextlib
import functools
import os
import pathlib
import pickle
import platform
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.experimental import serialize_executable
from jax.experimental.compilation_cache import compilation_cache

from .digests import digest_of
from .libraries import root
from .purpose import asked_for_values_only
from .snapshot import fingerprint


SUFFIX = ".program"
MOST = 2 * 2**30  # bytes of programs in a folder; what was not used for longest goes first
_HEAD = b"mbsjax program 1\n"
_APART = ("cache", "log", "profil", "dump", "traceback", "pgle")  # settings that decide nothing about a program
_THEIRS = ("-cache", "-atime")  # files that JAX keeps beside

_folder: pathlib.Path | None = None
_lock = threading.Lock()
_anews, _cached_before = 0, True


def keep(folder: pathlib.Path | None) -> None:
    """Programs are kept there from now on; None keeps none."""
    global _folder
    _folder = folder


def folder() -> pathlib.Path | None:
    """Where programs are kept, if they are."""
    return _folder


def file_of(f: Callable, options: dict[str, Any], about: Any, kinds: Any) -> pathlib.Path | None:
    """Where a program is kept, or is going to be: of a function, compiled with these options, for arguments that are
    `about` this, with arrays of these kinds."""
    where = folder()
    key = None if where is None else key_of(f, options, about, kinds)
    return None if where is None or key is None else where / f"{f.__name__.strip('_')}-{key.hex()}{SUFFIX}"


class Kept(NamedTuple):
    """What is in a file: an executable, how many arrays it returns, and what was kept with it."""

    executable: bytes
    count: int
    beside: Any


def read(file: pathlib.Path) -> Kept | None:
    """What is in a file; None if there is none, or if it is not what was written there."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    try:
        head, digest, content = content[: len(_HEAD)], content[len(_HEAD) :][:32], content[len(_HEAD) + 32 :]
        if head != _HEAD or digest != digest_of([content]):
            raise ValueError("it is damaged")
        found = Kept(*pickle.loads(zlib.decompress(content)))
    except Exception:  # whatever it is, it can be made anew
        with contextlib.suppress(OSError):
            file.unlink()
        return None
    with contextlib.suppress(OSError):
        os.utime(file)  # used now
    return found


def loaded(kept: Kept, given: Any) -> Callable | None:
    """The program that was kept, a function of arrays like those given; None if it cannot run here."""
    _find_linear_algebra()
    trees = (jax.tree_util.tree_structure((tuple(given), {})), jax.tree_util.tree_structure([0] * kept.count))
    with contextlib.suppress(Exception):
        return serialize_executable.deserialize_and_load(kept.executable, *trees, execution_devices=[device()])
    return None


def save(file: pathlib.Path, compiled: Any, count: int, beside: Any) -> None:
    """Keeps a compiled program that returns a number of arrays, if that can be done: some devices cannot, some results
    cannot travel, some disks are full."""
    with contextlib.suppress(Exception):
        content = pickle.dumps(tuple(Kept(serialize_executable.serialize(compiled)[0], count, beside)))
        _write(file, zlib.compress(content, 1))


def device() -> Any:
    """Where programs run that are called by themselves."""
    return setting("jax_default_device") or jax.local_devices()[0]


@functools.cache
def _find_linear_algebra() -> None:
    """Programs call LAPACK. JAX looks for it when it lowers the first program that does; a loaded one would find
    nothing there, and crash."""
    jax.jit(jax.lax.linalg.cholesky).lower(np.eye(2))


@contextlib.contextmanager
def anew() -> Iterator[None]:
    """What is compiled within is not taken from JAX's own cache: what comes from there cannot be kept once more, for it
    lacks its functions when it is loaded again."""
    global _anews, _cached_before
    with _lock:
        if _anews == 0:
            _cached_before = bool(setting("jax_enable_compilation_cache"))
            _switch(False)
        _anews += 1
    try:
        yield
    finally:
        with _lock:
            _anews -= 1
            if _anews == 0:
                _switch(_cached_before)


def _switch(on: bool) -> None:
    jax.config.update("jax_enable_compilation_cache", on)
    compilation_cache.reset_cache()  # else it would not look at this setting again


# files


def files(folder: pathlib.Path, kinds: tuple[str, ...] = (SUFFIX, f"{SUFFIX}~", *_THEIRS)) -> list[pathlib.Path]:
    """The programs in a folder: those kept here, and those that JAX keeps."""
    with contextlib.suppress(OSError):
        return [x for x in folder.iterdir() if x.name.endswith(kinds)]
    return []


def delete(found: list[pathlib.Path]) -> None:
    for x in found:
        with contextlib.suppress(FileNotFoundError):  # another process was faster
            x.unlink()


def _write(file: pathlib.Path, content: bytes) -> None:
    """Whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, suffix=f"{SUFFIX}~")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(_HEAD + digest_of([content]) + content)
        os.replace(name, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    _make_room(file.parent)


def _make_room(folder: pathlib.Path) -> None:
    """Deletes what was not used for longest; what JAX keeps is not counted, for others may have put it there."""
    found = []
    for x in files(folder, (SUFFIX,)):
        with contextlib.suppress(OSError):  # another process was faster
            stat = x.stat()
            found.append((max(stat.st_atime, stat.st_mtime), stat.st_size, x))
    total = sum(size for _, size, _ in found)
    for _, size, x in sorted(found):
        if total <= MOST:
            return
        with contextlib.suppress(OSError):
            x.unlink()
        total -= size


# keys


def key_of(f: Callable, options: dict[str, Any], about: Any, kinds: Any) -> bytes | None:
    """A digest of all that decides what a program will be, the same in every process; None where that cannot be told:
    the function, which is the package's own; what its arguments are, with the functions of users in them by what they
    do; options and settings; the machine, this package, and every other one that is installed."""
    if root(f.__module__) != "mbsjax" or "<locals>" in f.__qualname__:
        return None
    seen = fingerprint(about)
    if seen is None:
        return None
    texts = [f.__module__, f.__qualname__, repr(sorted(options.items())), repr(kinds), repr(settings())]
    return digest_of([_circumstances(), seen, *(x.encode() for x in texts)])


def settings() -> tuple:
    """Those of JAX, and what is asked for."""
    return asked_for_values_only(), *map(setting, _deciding())


def setting(name: str) -> Any:
    """One of JAX's settings, as it is in this thread; None if this version does not have it."""
    return getattr(jax.config, name, None)


@functools.cache
def _deciding() -> list[str]:
    return sorted(x for x in jax.config.values if not any(word in x for word in _APART))


@functools.cache
def _circumstances() -> bytes:
    client = device().client
    texts = [sys.version, platform.platform(), device().device_kind, client.platform_version, _processor()]
    texts += [f"{x}={y}" for x, y in sorted(os.environ.items()) if x.startswith(("XLA_", "LIBTPU_", "EQX_"))]
    return digest_of([_own_code(), *(x.encode() for x in (*texts, *_installed()))])


def _processor() -> str:
    """What it is and can do: programs are made for it."""
    with contextlib.suppress(OSError):
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return "\n".join(
            sorted({x for x in lines if x.lower().startswith(("flags", "features", "model name", "cpu p"))})
        )
    return platform.processor()


def _own_code() -> bytes:
    """A digest of this package: while it is being written, its version says little."""
    folder = pathlib.Path(__file__).parents[1]
    found = sorted(folder.rglob("*.py"))
    return digest_of([y for x in found for y in (x.relative_to(folder).as_posix().encode(), x.read_bytes())])


def _installed() -> list[str]:
    """Every package that is installed, with its version."""
    found: set[str] = set()
    for folder in sys.path:
        with contextlib.suppress(OSError):
            found.update(x for x in os.listdir(folder or ".") if x.endswith(".dist-info"))
    return sorted(found)
