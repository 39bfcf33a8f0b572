"""Trees of numbers and functions, without derivatives or with all their numbers as leaves; functions of them, traced
once."""

import contextlib
import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import eval_jaxpr
from jax.interpreters import partial_eval

from .called import call_of, is_known, program
from .copies import Hole
from .functions import Plain
from .libraries import is_library, root
from .precision import is_concrete
from .reprs import short
from .snapshot import ALONE, Beside
from .waiting import explained, traced
from .xla import quick_compile_options


def frozen(tree: Any) -> Any:
    """The tree without derivatives."""
    return jax.tree_util.tree_map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, tree)


def tree_where(condition: Any, a: Any, b: Any) -> Any:
    """`jnp.where`, leaf by leaf."""
    return jax.tree_util.tree_map(lambda x, y: jnp.where(condition, x, y), a, b)


def once(f: Callable, *, level: int | None = 0) -> Any:
    """A function of trees that is traced once for each structure of its arguments, however often it is called. Called
    within a program, it is compiled as if it had been written out there; by itself, it is a program that is compiled in
    a hurry: at a `level` of optimization that is 1 where it is `lasting`, and may run for longer than that takes; at
    JAX's own where it is `thorough`, and runs over many lanes.

    `shapes(*args)` tells what it returns, for arguments that may be shapes themselves, and compiles it in a thread;
    `is_known(*args)` tells whether it is, or is going to be."""
    jit: Any = eqx.filter_jit
    subject = f.__module__.split(".")[1 if f.__module__.startswith("mbsjax.") else 0].strip("_")  # its room
    options = {} if level is None else quick_compile_options(level)

    @functools.wraps(f)
    def watched(*args: Any, **kwargs: Any) -> Any:
        traced(subject)
        return f(*args, **kwargs)

    inside, elsewhere = jit(f), jit(watched, compiler_options=options)

    def call(*args: Any, **kwargs: Any) -> Any:
        by_itself = is_concrete(args, kwargs) and is_concrete(jax.device_put(0.0))
        if not by_itself:
            return inside(*args, **kwargs)
        with explained():
            asked = call_of(args, kwargs)
            if asked is None:
                return elsewhere(*args, **kwargs)
            return program(f, options, asked, lambda: traced(subject))(asked.arrays)

    def shapes(*args: Any) -> Any:
        asked = call_of(args, {})
        if asked is None or not threading.main_thread().is_alive():
            raise RuntimeError("there is nobody who waits for it")
        return program(f, options, asked, lambda: None, wait=False).shape

    def known(*args: Any) -> bool:
        asked = call_of(args, {})
        return asked is None or is_known(f, asked)

    outside: Any = functools.wraps(f)(call)
    outside.shapes, outside.is_known = shapes, known
    return outside


lasting, thorough = (functools.partial(once, level=level) for level in (1, None))


def without_unused(f: Callable, *args: Any) -> Callable:
    """A function of arrays, for arguments like these, without the equations whose results nobody reads: these are
    neither differentiated, nor batched, nor compiled."""
    whole, shapes = jax.make_jaxpr(f, return_shape=True)(*args)
    needed, _ = partial_eval.dce_jaxpr(whole.jaxpr, [True] * len(whole.jaxpr.outvars), instantiate=True)
    structure = jax.tree_util.tree_structure(shapes)

    def call(*args: Any) -> Any:
        found = eval_jaxpr(needed, whole.consts, *jax.tree_util.tree_leaves(args))
        return jax.tree_util.tree_unflatten(structure, map(jnp.asarray, found))

    return call


class Function(eqx.Module):
    """A function of a user. Its leaves are the arrays of a module, and traced numbers that a function refers to. All
    else in it is what it was when it was handed over, and is compared by what it is (see `Plain`)."""

    arrays: tuple
    rest: Plain = eqx.field(static=True)

    def __call__(self, *args: Any) -> Any:
        return self.rest.call(self.arrays, *args)

    def __getattr__(self, name: str) -> Any:
        """What a module that was handed over has."""
        if name in ("arrays", "rest") or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.rest.with_numbers(self.arrays), name)

    def __repr__(self) -> str:
        return short(self.rest.with_numbers(self.arrays))


def as_function(f: Any, *args: Any, of: Any = None, then: Sequence[Any] = ()) -> Any:
    """A function that was handed over, as a `Function`; modules of libraries as they are, for their arrays are leaves
    already.

    - `args`: like those that it will be called with. One that refers to what cannot be seen is traced with them at
        once: then it is what it is now, and the traced numbers that it has closed over are leaves.
    - `of`: a tree like its argument, whose classes may be the user's.
    - `then`: functions of what it gives, that were handed over: they look at it in its `surroundings`.
    """
    if not isinstance(f, Function):
        names = [x.rest.names for x in then if isinstance(x, Function)]
        made = _made(f, Beside(tuple(_classes(jax.tree_util.tree_structure(of))), frozenset().union(*names)))
        if isinstance(f, eqx.Module) and not made.rest.own and all(map(eqx.is_array, jax.tree_util.tree_leaves(f))):
            return f
        f = made
    return f if f.rest.known or not args else _made(eqx.filter_closure_convert(f, *args), look=False)


def _made(f: Any, beside: Beside = ALONE, look: bool = True) -> Function:
    leaves, structure = jax.tree_util.tree_flatten(f)
    number = itertools.count()
    holes = [Hole(next(number)) if eqx.is_array(x) else x for x in leaves]
    plain = Plain(jax.tree_util.tree_unflatten(structure, holes), filter(eqx.is_array, leaves), beside, look)
    return Function(plain.numbers, plain)


def _classes(structure: Any) -> dict[type, None]:
    """The classes that a tree is made of, but for those of libraries."""
    node = structure.node_data()
    own = () if node is None or is_library(root(node[0].__module__)) else (node[0],)
    return {cls: None for part in (own, *map(_classes, structure.children())) for cls in part}


def surroundings(f: Any) -> contextlib.AbstractContextManager:
    """What a function was handed over in, while its results are looked at."""
    return f.rest.surroundings() if isinstance(f, Function) else contextlib.nullcontext()
