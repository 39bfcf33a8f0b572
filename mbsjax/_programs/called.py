"""Functions that are called by themselves, with numbers that are there: each is a compiled program, made once for a
structure of arguments, or found among the kept ones."""

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr

from .copies import Hole
from .kept import anew, device, file_of, loaded, read, save, setting, settings
from .precision import is_concrete
from .restored import in_use


SPARE = (os.cpu_count() or 1) > 1  # whether there is a core beside the one that traces
_MOST = 1024  # programs in memory
_ARRAY = Hole(0)  # in the places of arrays

_lock = threading.Lock()
_made: dict[Any, "Program"] = {}


class Call(NamedTuple):
    """A call: what of its arguments are arrays, or tell shapes of arrays, and all else."""

    arrays: list[Any]
    structure: Any
    plain: tuple

    @property
    def kinds(self) -> tuple:
        return tuple((x.shape, x.dtype, bool(getattr(x, "weak_type", False)), _spread(x)) for x in self.arrays)

    def arguments(self, arrays: Sequence[Any]) -> Any:
        """The arguments with other arrays."""
        given = iter(arrays)
        leaves = [next(given) if x is _ARRAY else x for x in self.plain]
        return jax.tree_util.tree_unflatten(self.structure, leaves)


class Program:
    """A program that is made, or is there. `shape` is what it returns, with shapes of arrays in their places: it is
    known when `traced` is set. When `done` is, there is `run`, a function of arrays, if nothing went wrong."""

    def __init__(self):
        self.traced, self.done = threading.Event(), threading.Event()
        self.run: Callable | None = None
        self.shape: Any = None

    def __call__(self, arrays: Sequence[Any]) -> Any:
        found: Any = self.run
        return jax.tree_util.tree_unflatten(self.structure, _put(found(*arrays), self.leaves))

    def shaped(self, shape: Any) -> None:
        self.shape = shape
        self.leaves, self.structure = jax.tree_util.tree_flatten(shape)
        self.traced.set()

    def finished(self) -> None:
        self.traced.set()
        self.done.set()


def _put(arrays: Sequence[Any], leaves: list[Any]) -> list[Any]:
    """Arrays in the places of their shapes."""
    given = iter(arrays)
    return [next(given) if isinstance(x, jax.ShapeDtypeStruct) else x for x in leaves]


def call_of(args: tuple, kwargs: dict) -> Call | None:
    """A call for which there can be a program; None where arrays are elsewhere, or somebody looks on."""
    if any(setting(x) for x in ("jax_disable_jit", "jax_debug_nans", "jax_debug_infs")):
        return None
    leaves, structure = jax.tree_util.tree_flatten((args, kwargs))
    here, arrays, plain = {device()}, [], []
    for x in leaves:
        if isinstance(x, jax.Array) and (x.is_deleted() or x.devices() != here):
            return None
        is_one = eqx.is_array(x) or isinstance(x, jax.ShapeDtypeStruct)
        if is_one:
            arrays.append(x if isinstance(x, jax.Array | jax.ShapeDtypeStruct) else jnp.asarray(x))
        plain.append(_ARRAY if is_one else x)
    return Call(arrays, structure, tuple(plain))


def _spread(x: Any) -> str:
    """How an array is spread over devices, if it is, even over one."""
    whole = x.sharding is None or isinstance(x.sharding, jax.sharding.SingleDeviceSharding)
    return "" if whole else str(x.sharding)


def forget() -> None:
    """What this process holds of programs; files stay."""
    with _lock:
        _made.clear()


def _like(f: Callable, call: Call) -> tuple:
    return f, call.structure, tuple((type(x), x) for x in call.plain), call.kinds, settings()


def is_known(f: Callable, call: Call) -> bool:
    """Whether there is a program for a call, or somebody makes it."""
    return _like(f, call) in _made


def program(f: Callable, options: dict[str, Any], call: Call, begun: Callable[[], None], wait: bool = True) -> Program:
    """The program of a call of a function, compiled with these options. `begun` is called if it is not there yet. Who
    does not `wait` gets it when its shape is known."""
    like = _like(f, call)
    while True:
        with _lock:
            mine = like not in _made
            if mine:
                while len(_made) >= _MOST:
                    del _made[next(iter(_made))]
                _made[like] = Program()
            found = _made[like]
        if mine:
            begun()
            return _prepared(f, options, call, found, lambda: _made.pop(like, None), wait)
        if not found.done.is_set():
            begun()
            (found.done if wait else found.traced).wait()
        if found.run is not None or (not wait and found.shape is not None):
            return found  # else somebody else has failed: who asks sees why


def beforehand(longest: Callable[[], Any], others: Callable[[], Any] | None = None) -> None:
    """Has programs made before they are needed, if there is a core for it and nothing is being traced. What takes
    longest is traced here, and compiled in a thread. The `others` are traced there too: not where classes may be put
    back meanwhile, which all threads would see."""
    here = settings()

    def made() -> None:
        if others is not None and settings() == here:  # a thread does not know what holds in a `with` only
            others()

    if SPARE and is_concrete(jax.device_put(0.0)):
        _quietly(longest)()
        if not in_use.is_set():
            threading.Thread(target=_quietly(made)).start()


def _prepared(f: Any, options: dict[str, Any], call: Call, new: Program, drop: Callable, wait: bool) -> Program:
    """Finds or makes a program; dropped, if that does not work out."""
    lowered, calls_back = None, False
    try:
        file = file_of(f, options, (call.structure, call.plain), call.kinds)
        kept = None if file is None else read(file)
        if kept is not None:
            new.shaped(kept.beside)
        else:
            lowered, calls_back = _lowered(f, options, call, new)
    except BaseException:
        drop()
        new.finished()
        raise

    def finish() -> None:
        try:
            new.run = None if kept is None else loaded(kept, call.arrays)
            if new.run is None:
                again = (lowered, calls_back) if lowered is not None else _lowered(f, options, call, new)
                _compile(new, *again, file)
        finally:
            if new.run is None:
                drop()
            new.finished()

    if wait:
        finish()
    else:
        threading.Thread(target=_quietly(finish)).start()
    return new


def _lowered(f: Callable, options: dict[str, Any], call: Call, new: Program) -> tuple[Any, bool]:
    """A program that is lowered, in the thread that has traced it: Python does both, and two threads of Python are
    slower than one after the other. Also whether it calls functions of this process."""
    traced, shape = _traced(f, options, call)
    new.shaped(shape)
    return traced.lower(), _calls_back(traced.jaxpr.jaxpr)


def _compile(new: Program, lowered: Any, calls_back: bool, file: Any) -> None:
    with anew() if file is not None else contextlib.nullcontext():
        new.run = lowered.compile()
    if file is not None and not calls_back:
        save(file, new.run, len([x for x in new.leaves if isinstance(x, jax.ShapeDtypeStruct)]), new.shape)


def _quietly(f: Callable) -> Callable:
    """A function whose complaints nobody hears, in a thread: who needs what it makes meets them again."""

    def quiet(*args: Any) -> None:
        with contextlib.suppress(Exception):
            f(*args)

    return quiet


def _traced(f: Callable, options: dict[str, Any], call: Call) -> tuple[Any, Any]:
    """A function traced for a call, as a function of its arrays that returns arrays; and what it returned."""
    told: list[Any] = []

    def flat(*arrays: Any) -> list[Any]:
        args, kwargs = call.arguments(arrays)
        leaves, structure = jax.tree_util.tree_flatten(f(*args, **kwargs))
        told.append((leaves, structure))
        return [x for x in leaves if eqx.is_array(x)]

    flat.__name__ = flat.__qualname__ = f.__name__
    traced = jax.jit(flat, compiler_options=options).trace(*call.arrays)
    leaves, structure = told.pop()
    shapes = (jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in traced.jaxpr.out_avals)
    leaves = [next(shapes) if eqx.is_array(x) else x for x in leaves]
    return traced, jax.tree_util.tree_unflatten(structure, leaves)


def _calls_back(program: Jaxpr) -> bool:
    """Whether a program calls functions of this process."""
    for equation in program.eqns:
        if "callback" in equation.primitive.name:
            return True
        for value in equation.params.values():
            for item in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(item, "jaxpr", item)
                if hasattr(inner, "eqns") and _calls_back(inner):
                    return True
    return False
