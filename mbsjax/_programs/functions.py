"""Functions of users: each is what it was when it was handed over.

JAX keeps a compiled program for each function it was made of. A lambda that is written anew on every call, or in a cell
of a notebook that is run again, would be compiled anew each time; and one that reads what has been changed meanwhile
would find the program of what it was. So a function is copied when it is handed over, and a digest of the copy tells
what it is.
"""

import contextlib
import os
import pickle
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import jax

from .copies import Hole, Keyed, Unseen
from .libraries import is_library, label, root
from .reprs import short
from .restored import in_use, restored
from .snapshot import ALONE, Beside, Snapshot, filled, snapshot


_warned: set[tuple[str, str]] = set()


class Plain(Keyed):
    """A function of a user, or any other callable, as it was when it was handed over. It equals another one that does
    the same.

    Where its surroundings cannot be seen it equals only itself, is called as it is, and draws a warning: then a program
    of it is found again as long as this object lives, and no longer.

    - `known`: whether all could be seen.
    - `own`: whether any code in it is not a library's.
    - `parts`: what it refers to by name, with values or digests.
    - `numbers`: arrays and traced numbers, which are not part of it: for the holes in their places.
    """

    def __init__(self, function: Any, numbers: Iterable[Any] = (), beside: Beside = ALONE, look: bool = True):
        numbers, self.beside, self.trusted = tuple(numbers), beside, frozenset()
        taken = self._taken(function, numbers) if look else None
        self.known = taken is not None
        if taken is None:
            taken = Snapshot(function, os.urandom(16), False, {}, numbers, frozenset(), True, {})
        self.function, self.key, self.lasting, self.parts, self.numbers, self.names, self.own, self.holders = taken
        self._announce()

    def _announce(self) -> None:
        if self.holders:
            in_use.set()

    def _taken(self, function: Any, numbers: tuple) -> Snapshot | None:
        while True:
            try:
                return snapshot(function, numbers, self.beside, self.trusted)
            except Unseen as unseen:
                others = unseen.package not in (root(getattr(function, "__module__", None)), *self.trusted)
                if not (others and _installed(unseen.package)):
                    _warn(function, unseen)
                    return None
                self.trusted |= {unseen.package}  # one cannot look into it: it is somebody else's, who knows

    def __call__(self, *args: Any) -> Any:
        return self.call((), *args)

    def call(self, numbers: Sequence[Any], *args: Any) -> Any:
        """Its value, with numbers in its holes."""
        f = self.with_numbers(numbers)
        with self.surroundings():
            return f(*args)

    def with_numbers(self, numbers: Sequence[Any]) -> Any:
        """The function with numbers in its holes."""
        if not numbers:
            return self.function
        if self.known:
            return filled(self.function, numbers)
        return jax.tree_util.tree_map(lambda x: numbers[x.number] if isinstance(x, Hole) else x, self.function)

    def surroundings(self) -> contextlib.AbstractContextManager:
        """Classes and modules as they were when it was handed over; nothing is done where they are so still."""
        with contextlib.suppress(Unseen):
            if not self.holders or snapshot(self.function, (), self.beside, self.trusted).digest == self.key:
                return contextlib.nullcontext()
        return restored(self.holders)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Plain) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __deepcopy__(self, _: Any) -> "Plain":
        return self

    def __reduce__(self) -> Any:
        """As it was handed over, wherever it goes; without cloudpickle, as what has its name there."""
        try:
            import cloudpickle
        except ImportError:
            return Plain, (_under_its_name(self.function), self.numbers, self.beside)
        return _unpacked, (cloudpickle.dumps(vars(self)),)

    def __repr__(self) -> str:
        return short(self.function)


def _unpacked(content: bytes) -> Plain:
    made = object.__new__(Plain)
    made.__dict__.update(pickle.loads(content))
    made._announce()
    return made


def _under_its_name(function: Any) -> Any:
    """What a module has under the name of a function that was copied, if there is such a thing."""
    found = sys.modules.get(getattr(function, "__module__", None) or "")
    for part in label(function).split("."):
        found = getattr(found, part, None)
    return function if found is None else found


def _installed(package: str) -> bool:
    """Whether a package was not written here."""
    file = getattr(sys.modules.get(package), "__file__", None)
    return bool(file) and file.startswith((sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]))


def _warn(function: Any, unseen: Unseen) -> None:
    """Once for each function and reason."""
    code = getattr(function, "__code__", None)
    place = getattr(function, "__module__", None) if code is None else f"{code.co_filename}:{code.co_firstlineno}"
    name = f"{label(function)} ({place})"
    if (name, unseen.name) in _warned:
        return
    _warned.add((name, unseen.name))
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and is_library(root(frame.f_globals.get("__name__"))):
        frame, level = frame.f_back, level + 1
    warnings.warn(
        f"the function {name} is compiled anew each time it is handed over, for not all that it refers to can be "
        f"compared. {unseen}. Do not change that while the function is in use; with numbers, arrays, or objects that "
        "can be pickled it is compiled once",
        stacklevel=level,
    )
