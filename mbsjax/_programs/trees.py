"""Trees of numbers and functions, without derivatives or with all their numbers as leaves; functions of them, traced
once."""

import contextlib
import functools
import threading
import types
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_jaxpr
from jax.interpreters import partial_eval

from .functions import Plain
from .precision import is_concrete
from .reprs import short
from .waiting import explained, traced
from .xla import quick_compile_options


def frozen(tree: Any) -> Any:
    """The tree without derivatives."""
    return jax.tree_util.tree_map(lambda x: jax.lax.stop_gradient(x) if eqx.is_array(x) else x, tree)


def tree_where(condition: Any, a: Any, b: Any) -> Any:
    """`jnp.where`, leaf by leaf."""
    return jax.tree_util.tree_map(lambda x, y: jnp.where(condition, x, y), a, b)


def once(f: Callable, *, lasting: bool = False) -> Any:
    """A function of trees that is traced once for each structure of its arguments, however often it is called. Called
    within a program, it is compiled as if it had been written out there; by itself, it is a program that is compiled in
    a hurry, a little less where it is `lasting` and may run for longer than that takes. `ahead(like, shapes)` compiles
    it in a thread, where `like` is the first of its structure, for arguments of the shapes that `shapes(*like)` tells;
    it returns what waits for that."""
    jit: Any = eqx.filter_jit
    subject = f.__module__.split(".")[1 if f.__module__.startswith("mbsjax.") else 0].strip("_")  # its room

    @functools.wraps(f)
    def watched(*args: Any, **kwargs: Any) -> Any:
        traced(subject)
        return f(*args, **kwargs)

    inside, alone = jit(f), jit(watched, compiler_options=quick_compile_options(1 if lasting else 0))
    compiled = set()

    def call(*args: Any, **kwargs: Any) -> Any:
        by_itself = is_concrete(args, kwargs) and is_concrete(jax.device_put(0.0))
        if not by_itself:
            return inside(*args, **kwargs)
        with explained():
            return alone(*args, **kwargs)

    def ahead(like: tuple, shapes: Callable) -> Callable[[], None]:
        if not is_concrete(like, jax.device_put(0.0)):
            return lambda: None
        leaves, structure = jax.tree_util.tree_flatten(like)
        key = (structure, *((x.shape, x.dtype) if eqx.is_array(x) else x for x in leaves))
        if key in compiled:
            return lambda: None
        compiled.add(key)
        blank = lambda x: jax.device_put(np.zeros(x.shape, x.dtype)) if isinstance(x, jax.ShapeDtypeStruct) else x
        args = jax.tree_util.tree_map(blank, shapes(*like))
        precise = jax.config.read("jax_enable_x64")

        def compile_it() -> None:
            if jax.config.read("jax_enable_x64") == precise:  # a thread does not know what holds in a `with` only
                with contextlib.suppress(Exception):  # who calls it is told
                    alone.lower(*args).compile()

        thread = threading.Thread(target=compile_it)
        thread.start()
        return thread.join

    outside: Any = functools.wraps(f)(call)
    outside.ahead = ahead
    return outside


lasting = functools.partial(once, lasting=True)


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
    """A function whose leaves are the arrays in it, and nothing else: a plain one has none."""

    arrays: Any
    rest: Any = eqx.field(static=True)

    def __call__(self, *args: Any) -> Any:
        return eqx.combine(self.arrays, self.rest)(*args)

    def __repr__(self) -> str:
        return short(eqx.combine(self.arrays, self.rest))


def as_function(f: Any, *args: Any) -> Any:
    """A function whose leaves are arrays; what else it is made of is compared by value (see `Plain`). With arguments
    like those that it will be called with, also the traced numbers that a plain function has closed over are leaves:
    what is not can be neither differentiated implicitly nor batched."""
    plain = not isinstance(f, eqx.Module) or (isinstance(f, Function) and f.arrays is None)
    if not isinstance(f, Function):
        arrays, rest = eqx.partition(f, eqx.is_array)
        rest = jax.tree_util.tree_map(lambda x: Plain(x) if isinstance(x, types.FunctionType) else x, rest)
        f = Function(arrays, rest) if jax.tree_util.tree_leaves(rest) else f
    if plain and args and not (isinstance(f.rest, Plain) and f.rest.known):
        converted = eqx.filter_closure_convert(f, *args)
        if not is_concrete(converted):
            return as_function(converted)
    return f
