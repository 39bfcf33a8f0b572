"""Functions whose largest and smallest of many numbers have slopes in all of these.

The largest of many values depends on one of them, and its gradient says nothing of the others: which way they would
grow, until one of them is the largest. A search that is to find the largest one has to know.
"""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import eval_jaxpr
from jax.extend.core import ClosedJaxpr, Literal
from jaxtyping import Array


ALL, HALF, ONE = range(3)
"""Of which numbers the largest or smallest has slopes: of all alike; of that half of them that it is among; of itself,
as its gradient has it. In the difference of the largest and the smallest, those of all cancel."""

_SIGNS = {"reduce_max": 1.0, "reduce_min": -1.0}
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr"}


def reduces(f: Callable, like: Any) -> bool:
    """Whether there is a largest or smallest of many numbers in a function of a tree like this one."""
    return _reduces(_program(f, like)[0].jaxpr)


def spread_slopes(f: Callable) -> Callable:
    """The same function of a tree, told first which slopes largest and smallest numbers are to have."""

    def call(which: Array, tree: Any) -> Array:
        program, numbers = _program(f, tree)
        return _run(program, numbers, which)[0]

    return call


def _program(f: Callable, tree: Any) -> tuple[ClosedJaxpr, list]:
    is_number = lambda x: eqx.is_array(x) or isinstance(x, jax.ShapeDtypeStruct)
    numbers, rest = eqx.partition(tree, is_number)
    leaves, structure = jax.tree_util.tree_flatten(numbers)
    whole = lambda *leaves: f(eqx.combine(jax.tree_util.tree_unflatten(structure, leaves), rest))
    return jax.make_jaxpr(whole)(*leaves), leaves


def _reduces(program: Any) -> bool:
    inner = [e.params[_CALLS[e.primitive.name]].jaxpr for e in program.eqns if e.primitive.name in _CALLS]
    return any(e.primitive.name in _SIGNS for e in program.eqns) or any(map(_reduces, inner))


def _run(program: ClosedJaxpr, numbers: list, which: Array) -> list:
    """What a program gives. Functions with a rule of their own for derivatives are left as they are."""
    body = program.jaxpr
    values: dict[Any, Any] = dict(zip(body.constvars, program.consts)) | dict(zip(body.invars, numbers))
    read = lambda v: v.val if isinstance(v, Literal) else values[v]
    for e in body.eqns:
        given, name = [read(v) for v in e.invars], e.primitive.name
        if name in _CALLS and _reduces(e.params[_CALLS[name]].jaxpr):
            found = _run(e.params[_CALLS[name]], given, which)
        elif name in _SIGNS and jnp.issubdtype(given[0].dtype, jnp.floating):
            found = [_SIGNS[name] * _largest(_SIGNS[name] * given[0], which, tuple(map(int, e.params["axes"])))]
        else:
            found = _alone(body, e)(*given)
        values |= dict(zip(e.outvars, found))
    return [read(v) for v in body.outvars]


def _alone(body: Any, e: Any) -> Callable:
    """One equation of a program, as a function of what it reads."""
    variables = [v for v in e.invars if not isinstance(v, Literal)]
    distinct = list(dict.fromkeys(variables))
    alone = body.replace(constvars=[], invars=distinct, outvars=e.outvars, eqns=[e])

    def call(*given: Any) -> list:
        known = dict(zip(variables, (x for v, x in zip(e.invars, given) if not isinstance(v, Literal))))
        return eval_jaxpr(alone, (), *(known[v] for v in distinct))

    return call


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _largest(x: Array, which: Array, axes: tuple[int, ...]) -> Array:
    return jnp.max(x, axes)


@_largest.defjvp
def _slopes(axes: tuple[int, ...], given: tuple, along: tuple) -> tuple[Array, Array]:
    x, which = given
    rest = [a for a in range(x.ndim) if a not in axes]
    rows = jnp.transpose(x, (*rest, *axes)).reshape(*(x.shape[a] for a in rest), -1)
    ways = jnp.transpose(along[0], (*rest, *axes)).reshape(rows.shape)
    n = rows.shape[-1]
    rank = jnp.argsort(jnp.argsort(rows, -1), -1)  # of equal ones, the later ones are taken for larger
    upper = (2 * rank >= n - 1).astype(x.dtype)
    largest = rows == jnp.max(rows, -1, keepdims=True)
    one = largest / jnp.sum(largest, -1, keepdims=True)
    weight = jnp.where(which == ALL, jnp.ones_like(rows), jnp.where(which == HALF, upper, one))
    return _largest(x, which, axes), jnp.sum(weight * ways, -1)
