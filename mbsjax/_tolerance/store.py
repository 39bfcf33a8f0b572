"""Stores: the chunks of a campaign as a Parquet dataset, in a folder or anywhere that fsspec reaches."""

import contextlib
import hashlib
import importlib
import json
import os
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np

from .study import Evaluation


COLUMNS = ("index", "kind", "sequence")
_VALUES = ("values at nominal", "values aside")  # compared to 1e-6: they tell another model
_FUNCTIONS = "functions"  # keys, which hold for some versions
_NOT_MARKED = (*_VALUES, _FUNCTIONS)
_MANIFEST, _EARLIER = "_manifest.json", "study.json"  # Arrow skips names that begin with _ or .


class StoreWarning(UserWarning):
    """A chunk of a store is damaged, and is run again."""


class StoreError(OSError):
    """A store cannot be written: its disk is full, say. The message tells what is kept in it, and how to go on.

    !!! Example

        >>> import mbsjax as mbs
        >>> issubclass(mbs.StoreError, OSError)
        True
    """


class Store:
    """A folder of files that are there whole or not at all; `url` is its path, or its address for fsspec."""

    def __init__(self, url: Any):
        if not isinstance(url, (str, os.PathLike)) or not os.fspath(url):
            raise ValueError(f"`store` must be a folder, or an address such as 's3://bucket/folder', got {url!r}")
        fsspec = needed("fsspec")
        self.url = os.fspath(url)
        self.files, self.root = fsspec.url_to_fs(self.url)
        self.local = isinstance(self.files, fsspec.get_filesystem_class("file"))

    def __repr__(self) -> str:
        return f"Store({self.url!r})"

    def put(self, name: str, content: bytes, lasting: bool = True) -> None:
        """Writes a file, whole or not at all: where there is no renaming, it is sent in one piece. A lasting one
        outlives a power failure."""
        path = f"{self.root}/{name}"
        try:
            if not self.local:
                self.files.pipe_file(path, content)
                return
            folder, base = os.path.split(path)
            draft = os.path.join(folder, f".{base}.{uuid.uuid4().hex[:12]}")
            try:
                with open(draft, "wb") as file:
                    file.write(content)
                    file.flush()
                    if lasting:
                        os.fsync(file.fileno())
                os.replace(draft, path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(draft)
                raise
        except OSError as error:
            raise StoreError(f"{self.url}/{name} cannot be written: {error.strerror or error}") from error

    def get(self, name: str) -> bytes:
        return self.files.cat_file(f"{self.root}/{name}")

    def remove(self, name: str) -> None:
        with contextlib.suppress(OSError):  # somebody else was faster
            self.files.rm_file(f"{self.root}/{name}")

    def has(self, name: str) -> bool:
        self.files.invalidate_cache()
        return self.files.exists(f"{self.root}/{name}")

    def names(self, folder: str = "") -> list[str]:
        """The files of the store, or of a folder in it."""
        self.files.invalidate_cache()
        try:
            found = self.files.ls(f"{self.root}/{folder}".rstrip("/"), detail=False)
        except FileNotFoundError:
            return []
        return [path.rstrip("/").rsplit("/", 1)[-1] for path in found]

    def chunks(self) -> set[int]:
        """The numbers of the chunks that are there."""
        stems = [name.removesuffix(".parquet") for name in self.names() if name.endswith(".parquet")]
        return {int(stem) for stem in stems if stem.isdecimal()}

    def open(self, description: dict, differs: Callable[[], str]) -> None:
        """Makes the store, or makes sure that it is this study's. One of an earlier version is taken over.

        `differs` tells which of the values in it this study does not have. That is asked where keys of functions cannot
        be compared. Where they can, they decide: two functions may differ in rare variants only.
        """
        try:
            self.files.makedirs(self.root, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.url} cannot be made: {error.strerror or error}") from error
        names = self.names()
        known = [name for name in (_MANIFEST, _EARLIER) if name in names]
        if known:
            self._compare(known[0], description, differs)
        elif others := [name for name in names if not name.startswith((f".{_MANIFEST}.", f".{_EARLIER}."))]:
            raise ValueError(f"the folder {self.url} is not empty, and not the store of a campaign: it has {others[0]}")
        if _MANIFEST not in names:
            self.put(_MANIFEST, json.dumps(description, indent=1).encode())
        if _EARLIER in names:
            self.remove(_EARLIER)

    @property
    def chunk(self) -> int | None:
        """How many samples its files hold; None where there are none yet."""
        try:
            return int(json.loads(self.get(_MANIFEST))["chunk"]) if _MANIFEST in self.names() else None
        except (ValueError, KeyError, TypeError):
            return None  # what opens it says what is wrong

    def _compare(self, name: str, description: dict, differs: Callable[[], str]) -> None:
        (circumstances, here), *_ = description[_FUNCTIONS].items()
        try:
            manifest = json.loads(self.get(name))
            others = [
                f"other {key}"
                for key in description
                if key not in _NOT_MARKED and repr(manifest.get(key)) != repr(description[key])
            ]
            for key in _VALUES:
                known, now = (np.asarray(x[key], float) for x in (manifest, description))
                if known.shape != now.shape or not np.allclose(known, now, rtol=1e-6, atol=0.0, equal_nan=True):
                    others.append(f"other {key}")
            every = manifest.get(_FUNCTIONS, {})
            there = every.get(circumstances, {})
            both = [what for what in here if here[what] and there.get(what)]
            others += [_told(what, there[what], here[what]) for what in both if there[what]["key"] != here[what]["key"]]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{self.url}/{name} is not what a campaign has written: {error}") from error
        if not others and len(both) < len(here) and (value := differs()):
            others = [f"other values: {value}"]
        if others:
            raise ValueError(
                f"the store {self.url} belongs to another study: it has {', '.join(others)}. Take another folder, or "
                f'the study as it was. If you are sure that no sample has another value, remove "{_FUNCTIONS}" from '
                f"{name}: then those of a chunk are made again and compared"
            )
        if there != here and name == _MANIFEST:
            with contextlib.suppress(StoreError):  # it may be there to be read only
                whole = {**manifest, _FUNCTIONS: {**every, circumstances: here}}
                self.put(_MANIFEST, json.dumps(whole, indent=1).encode())

    def write(self, k: int, names: tuple[str, ...], mark: str, seed: int, index: np.ndarray, found: Evaluation) -> None:
        """A chunk."""
        arrow, parquet = needed("pyarrow"), needed("pyarrow.parquet")
        columns = [index.astype(np.int64), found.kind.astype(np.int8), found.sequence.astype(np.uint32)]
        columns += list(found.values.T)
        about = {"study": mark, "chunk": str(k), "seed": str(seed), "digest": _digest(columns)}
        table = arrow.table(dict(zip([*COLUMNS, *names], map(np.ascontiguousarray, columns))))
        sink = arrow.BufferOutputStream()
        few = list(COLUMNS[1:])  # the others have hardly a number twice: a dictionary takes ten times as long
        parquet.write_table(table.replace_schema_metadata(about), sink, use_dictionary=few)
        self.put(chunk_file(k), sink.getvalue().to_pybytes())

    def read(self, k: int, mark: str | None, size: int) -> Evaluation:
        """The first samples of a chunk; raises where it is not what it should be."""
        arrow, parquet = needed("pyarrow"), needed("pyarrow.parquet")
        table = parquet.read_table(arrow.BufferReader(self.get(chunk_file(k))))
        about = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
        columns = [column.to_numpy() for column in table.columns]
        if about.get("study") != (mark or about.get("study")) or about.get("chunk") != str(k):
            raise ValueError("it belongs to another study")
        if about.get("digest") != _digest(columns):
            raise ValueError("its numbers were changed")
        _, kind, sequence, *values = columns
        return Evaluation(np.stack(values, 1)[:size], kind[:size].astype(int), sequence[:size])


def fingerprint(description: dict) -> str:
    """What marks the chunks of a study."""
    known = {key: value for key, value in description.items() if key not in _NOT_MARKED}
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()


def _told(what: str, there: dict, here: dict) -> str:
    """How a function differs, by the names that it refers to."""
    before, now = there.get("parts", {}), here.get("parts", {})
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    told = [
        f"{name} = {before[name]}, now {now[name]}"
        if name in before and name in now and "#" not in (before[name][0], now[name][0])  # digests tell nothing
        else name
        for name in names
    ]
    return f"another {what}" + (f" ({', '.join(told)})" if told else "")


def chunk_file(k: int) -> str:
    return f"{k:08d}.parquet"


def _digest(columns: Any) -> str:
    found = hashlib.sha256()
    for column in columns:
        found.update(np.ascontiguousarray(column).tobytes())
    return found.hexdigest()


def needed(module: str) -> Any:
    """A module of the extra `campaign`."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f'a campaign needs {package}: pip install "mbsjax[campaign]"') from error
