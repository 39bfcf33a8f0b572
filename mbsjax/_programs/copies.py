"""How a walk through a function copies the values that it refers to: numbers, containers and objects."""

import copyreg
import enum
import functools
import pickle
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.extend
import numpy as np
from jax.core import Tracer

from .digests import array_digest, jax_digest, kind_of
from .libraries import root


SIMPLE = frozenset({type(None), type(...), type(NotImplemented), bool, int, float, complex, str, bytes, range})
DESCRIBING = frozenset({"__doc__", "__annotations__", "__name__", "__qualname__", "__module__", "__wrapped__"})


class Unseen(Exception):
    """Something that a function refers to cannot be compared: how it is called there, why, and in whose package."""

    def __init__(self, name: str, why: str, package: str):
        super().__init__(f"`{name}`: {why}")
        self.name, self.why, self.package = name, why, package


class Hole:
    """The place of a number that is filled in later."""

    def __init__(self, number: int):
        self.number = number


class Reference:
    """In the place of a weak reference: a copy has nobody else to hold it."""

    def __init__(self, target: Any):
        self.target = target

    def __call__(self) -> Any:
        return self.target


class Cached:
    """In the place of what `functools.lru_cache` has made, which travels by its name only."""

    def __init__(self, function: Callable, parameters: dict[str, Any]):
        self.function, self.parameters = function, parameters
        self.call = functools.lru_cache(**parameters)(function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)

    def __reduce__(self) -> Any:
        return Cached, (self.function, self.parameters)


class Keyed:
    """What was handed over before: it does not change. `key` tells what it is, in other processes too if it is
    `lasting`."""

    key: bytes
    lasting: bool


def _hole(walk: Any, x: Hole) -> Any:
    if walk.filling is not None:
        return walk.filling[x.number]
    walk.note("hole", x.number)
    return walk.keep(x, x)


def _traced(walk: Any, x: Tracer) -> Hole:
    hole = Hole(len(walk.numbers))
    walk.numbers.append(x)
    walk.note("hole", hole.number)
    return walk.keep(x, hole)


def _jax_array(walk: Any, x: jax.Array) -> jax.Array:
    try:
        weak = getattr(x, "weak_type", False)  # keys of random numbers have none
        walk.note("jax array", kind_of(x.dtype), x.shape, weak, jax_digest(x))
    except RuntimeError as error:  # deleted, or on other machines
        raise walk.unseen(str(error)) from error
    return walk.keep(x, x)


def _array(walk: Any, x: np.ndarray) -> np.ndarray:
    copy = walk.keep(x, x.copy())
    if not x.dtype.hasobject:
        walk.note("array", kind_of(x.dtype), x.shape, array_digest(x))
    elif x.dtype != object:
        raise walk.unseen("it is an array of records with objects")
    else:
        walk.note("array of", x.shape)
        for place in np.ndindex(x.shape):
            copy[place] = walk.take(x[place])
    return copy


def _scalar(walk: Any, x: np.generic) -> np.generic:
    walk.note("scalar", kind_of(x.dtype), x.tobytes())
    return x


def _row(walk: Any, x: Any) -> Any:
    """A list or a tuple."""
    walk.note(type(x).__name__, len(x))
    copy = [] if type(x) is tuple else walk.keep(x, [])
    if all(type(y) in SIMPLE for y in x):  # quickly: it may be a long table
        walk.names.update(y for y in x if type(y) is str)
        walk.note(repr(x))
        copy += x
    else:
        copy += [walk.take(y) for y in x]
    return tuple(copy) if type(x) is tuple else copy


def _dict(walk: Any, x: dict) -> dict:
    walk.note("dict", len(x))
    copy = walk.keep(x, {})
    for key, value in x.items():
        copy[walk.take(key)] = walk.part(str(key), value)
    return copy


def _set(walk: Any, x: Any) -> Any:
    walk.note(type(x).__name__, len(x))
    before, rows, copies = walk.tokens, [], []
    for y in x:
        walk.tokens = []
        copies.append(walk.take(y))
        rows.append(walk.tokens)
    walk.tokens = before + [token for row in sorted(rows) for token in row]  # their order is another one each time
    return walk.keep(x, type(x)(copies))


def _proxy(walk: Any, x: types.MappingProxyType) -> Any:
    walk.note("proxy")
    return types.MappingProxyType(walk.take(dict(x)))


def _member(walk: Any, x: enum.Enum) -> enum.Enum:
    walk.note("member", x.name)
    walk.class_of(type(x))
    return walk.keep(x, x)


def _keyed(walk: Any, x: Keyed) -> Keyed:
    walk.note("handed over", x.key)
    walk.lasting &= x.lasting
    return walk.keep(x, x)


def _itself(walk: Any, x: Any) -> Any:
    """What does not change, and shows nothing that other processes know."""
    walk.note("itself", id(x))
    walk.lasting = False
    return walk.keep(x, x)


def _mark(walk: Any, x: Any) -> Any:
    """What has nothing in it: only who it is counts."""
    walk.note("mark")
    walk.class_of(type(x))
    return walk.keep(x, x)


def _reference(walk: Any, x: Any) -> Reference:
    walk.note("reference")
    copy = walk.keep(x, Reference(None))
    copy.target = walk.take(x())
    return copy


def _cached(walk: Any, x: Any) -> Any:
    if walk.named(x):
        return x
    function, parameters = (x.function, x.parameters) if type(x) is Cached else (x.__wrapped__, x.cache_parameters())
    walk.note("cached", parameters)
    return walk.keep(x, Cached(walk.take(function), parameters))


def _structure(walk: Any, x: Any) -> Any:
    walk.note("structure", x.num_leaves)
    for part in (*(x.node_data() or ()), *x.children()):
        walk.take(part)
    return walk.keep(x, x)


def copied(walk: Any, x: Any) -> Any:
    """Any object, from what `pickle` takes it apart into."""
    if callable(x) and walk.named(x):
        return x
    cls = type(x)
    reduced = _taken_apart(walk, x)
    if isinstance(reduced, str):
        module = pickle.whichmodule(x, reduced)  # pyright: ignore
        if not walk.is_library(module):
            raise walk.unseen(f"{cls.__name__!r} objects do not show what is in them")
        walk.note("library", module, reduced)
        return walk.keep(x, x)
    parts: Any = (*reduced, None, None, None)
    make, given, state, items, pairs = parts[:5]
    alone = state is items is pairs is None and len(given) == 1 and given[0] is cls
    if alone and (cls is object or walk.is_library(cls.__module__)):
        return _mark(walk, x)
    walk.note("object")
    walk.packages.append(root(cls.__module__))
    try:
        copy = walk.keep(x, _made(walk, make, given))
        _set_state(walk, copy, state)
        for y in items or ():
            copy.append(walk.take(y))
        for key, y in pairs or ():
            copy[walk.take(key)] = walk.part(str(key), y)
    except (Unseen, RecursionError):
        raise
    except Exception as error:
        raise walk.unseen(f"{cls.__name__!r} objects cannot be copied: {error}") from error
    walk.note("end")
    walk.packages.pop()
    return copy


def _taken_apart(walk: Any, x: Any) -> Any:
    if isinstance(x, eqx.Module):
        return copyreg.__newobj__, (type(x),), vars(x)  # pyright: ignore
    reduce = copyreg.dispatch_table.get(type(x))
    try:
        return x.__reduce_ex__(4) if reduce is None else reduce(x)
    except Exception as error:
        raise walk.unseen(str(error) or type(error).__name__) from error


def _made(walk: Any, make: Any, given: tuple) -> Any:
    if make is not copyreg.__newobj__:  # pyright: ignore
        return walk.take(make)(*[walk.take(y) for y in given])
    cls: Any = given[0]
    walk.class_of(cls)
    new: Any = object.__new__ if issubclass(cls, eqx.Module) else cls.__new__
    return new(cls, *[walk.take(y) for y in given[1:]])


def _set_state(walk: Any, copy: Any, state: Any) -> None:
    if state is not None and hasattr(type(copy), "__setstate__"):
        copy.__setstate__(walk.take(state))
        return
    own, slots = state if isinstance(state, tuple) else (state, None)
    cls = type(copy)
    known = walk.is_library(cls.__module__)
    for name, x in (own or {}).items():
        if known and isinstance(getattr(cls, name, None), functools.cached_property):
            continue  # it follows from the rest, whether somebody has asked for it yet or not
        if name not in DESCRIBING:
            walk.note(name)
        copy.__dict__[name] = x if name in DESCRIBING else walk.part(name, x)
    for name, x in (slots or {}).items():
        walk.note(name)
        object.__setattr__(copy, name, walk.part(name, x))


EXACTLY: dict[type, Callable] = {
    Hole: _hole,
    np.ndarray: _array,
    tuple: _row,
    list: _row,
    dict: _dict,
    set: _set,
    frozenset: _set,
    types.MappingProxyType: _proxy,
    jax.tree_util.PyTreeDef: _structure,
    type(functools.lru_cache(lambda: None)): _cached,
    Cached: _cached,
    weakref.ref: _reference,
    Reference: _reference,
    type(threading.Lock()): _mark,
    type(threading.RLock()): _mark,
}
WITH_SUBCLASSES: tuple[tuple[Any, Callable], ...] = (
    (Tracer, _traced),
    (jax.Array, _jax_array),
    (np.generic, _scalar),
    (enum.Enum, _member),
    (Keyed, _keyed),
    ((jax.extend.core.Jaxpr, jax.extend.core.ClosedJaxpr), _itself),
)
