"""The numbers that the results of a function are made of, and how they are computed."""

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer, eval_jaxpr
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from .arithmetic import ELEMENTWISE, FOLDS, REDUCTIONS, simplified
from .entries import Block, Entries, Number, entries, known
from .moves import MOVES, places_of


_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr"}
_CALLS |= {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "checkpoint": "jaxpr"}


class Graph:
    """All numbers that the results of a function are made of."""

    def __init__(self, program: Jaxpr, constants: list):
        self.same: dict[Any, Any] = {}  # operations by what they are, so that none is there twice
        self.given = [_inputs(i, v.aval) for i, v in enumerate(program.invars)]
        self.traced: list[Any] = []  # constants that are being traced
        results: list[Any] = [v.aval for v in program.outvars]
        self.dtypes = [x.dtype for x in results]
        self.found = self.run(program, [self.constant(x) for x in constants], self.given)
        self.order = list(_reached(self.found))
        self.size = len(self.order)

    def constant(self, x: Any) -> Entries:
        if isinstance(x, Tracer):
            self.traced.append(x)
            return _inputs(-len(self.traced), x.aval)
        x = np.asarray(x)
        return entries(x.shape, (y for y in x.reshape(-1)))

    def run(self, program: Jaxpr, constants: list[Entries], given: list[Entries]) -> list[Entries]:
        values: dict[Any, Entries] = {}
        values |= dict(zip(program.constvars, constants)) | dict(zip(program.invars, given))

        def read(v: Any) -> Entries:
            if isinstance(v, Literal):
                aval: Any = v.aval
                return self.constant(np.asarray(v.val, aval.dtype))
            return values[v]

        for equation in program.eqns:
            found = self.equation(program, equation, [read(v) for v in equation.invars])
            values |= dict(zip(equation.outvars, found))
        return [read(v) for v in program.outvars]

    def equation(self, program: Jaxpr, equation: Any, xs: list[Entries]) -> list[Entries]:
        name, p = equation.primitive.name, equation.params
        if not any(v.aval.size for v in equation.outvars):
            return [entries(v.aval.shape, ()) for v in equation.outvars]
        if name in _CALLS:
            inner: Any = p[_CALLS[name]]
            if isinstance(inner, ClosedJaxpr):
                return self.run(inner.jaxpr, [self.constant(x) for x in inner.consts], xs)
            return self.run(inner, [], xs)
        if name in MOVES:
            found = MOVES[name](p, *xs)
            if found is not None:
                return found if isinstance(found, list) else [found]
        out: Any = equation.outvars[0].aval
        if name in REDUCTIONS:
            kind = REDUCTIONS[name]
            axes = tuple(p["axes"])
            kept = [a for a in range(xs[0].ndim) if a not in axes]
            rows = xs[0].transpose(*kept, *axes).reshape(out.size, math.prod(xs[0].shape[a] for a in axes))
            if rows.size:
                fold = lambda row: functools.reduce(lambda a, b: self.number(kind, {}, (a, b), out.dtype), row)
                return [entries(out.shape, map(fold, rows))]
            if name == "reduce_sum":
                return [entries(out.shape, [np.zeros((), out.dtype)[()]] * out.size)]
        elif name == "dot_general":
            return [self.product(p, xs[0], xs[1], out)]
        elif name in ("gather", "dynamic_slice"):
            places = places_of(name, p, xs, out.shape)
            if places is not None:
                return [entries(out.shape, (self.chosen(xs[0], place, out.dtype) for place in places))]
        elif name in ELEMENTWISE:
            wide = np.broadcast_arrays(*xs)
            kind = equation.primitive
            items = (self.number(kind, p, each, out.dtype) for each in zip(*(x.reshape(-1) for x in wide)))
            return [entries(out.shape, items)]
        block = Block(equation, program, xs)
        return [
            entries(v.aval.shape, [Number(block, (i, k), v.aval.dtype) for k in range(v.aval.size)])
            for i, v in enumerate(equation.outvars)
        ]

    def number(self, kind: Any, params: dict, xs: tuple, dtype: Any) -> Any:
        """An operation on numbers."""
        if all(map(known, xs)) and (fold := FOLDS.get(kind.name)):
            with np.errstate(all="ignore"):
                return np.asarray(fold(params, *xs), dtype)[()]
        simple = simplified(kind.name, params, xs, dtype)
        if simple is not None:
            return self.number(lax.neg_p, {}, simple[1:], dtype) if isinstance(simple, tuple) else simple
        key = (kind, str(params) if params else "", *(x if known(x) else id(x) for x in xs))
        key += tuple(str(x.dtype) for x in xs if known(x))
        if key not in self.same:
            self.same[key] = Number((kind, params), xs, dtype)
        return self.same[key]

    def product(self, p: dict, a: Entries, b: Entries, out: Any) -> Entries:
        (left, right), (batch_a, batch_b) = p["dimension_numbers"]
        free_a = [i for i in range(a.ndim) if i not in (*left, *batch_a)]
        free_b = [i for i in range(b.ndim) if i not in (*right, *batch_b)]
        many, inner = math.prod(a.shape[i] for i in batch_a), math.prod(a.shape[i] for i in left)
        A = a.transpose(*batch_a, *free_a, *left).reshape(many, -1, inner)
        B = b.transpose(*batch_b, *free_b, *right).reshape(many, -1, inner)

        def entry(k: int, i: int, j: int) -> Any:
            terms = [self.number(lax.mul_p, {}, (x, y), out.dtype) for x, y in zip(A[k, i], B[k, j])]
            add = lambda x, y: self.number(lax.add_p, {}, (x, y), out.dtype)
            return functools.reduce(add, terms, np.zeros((), out.dtype)[()])

        sizes = (range(many), range(A.shape[1]), range(B.shape[1]))
        return entries(out.shape, (entry(*each) for each in itertools.product(*sizes)))

    def chosen(self, x: Entries, place: tuple, dtype: Any) -> Any:
        """The entry at a place of which one index may be a number that is computed."""
        if all(isinstance(i, int) for i in place):
            return x[place]
        axis = next(a for a, i in enumerate(place) if not isinstance(i, int))
        index = place[axis]
        row = [x[(*place[:axis], k, *place[axis + 1 :])] for k in range(x.shape[axis])]
        found = row[-1]
        for k in range(len(row) - 2, -1, -1):
            here = self.number(lax.le_p, {}, (index, np.asarray(k, index.dtype)[()]), np.dtype(bool))
            found = self.number(lax.select_n_p, {}, (here, found, row[k]), dtype)
        return found

    # computing ----------------------------------------------------------------------------------------------------

    def computed(self, leaves: list[Any], lanes: tuple[int, ...]) -> list[Any]:
        """The results, where `leaves` are given with such lanes."""
        n = len(lanes)
        wide = lambda x: jnp.broadcast_to(x.reshape(*x.shape, *[1] * n), (*x.shape, *lanes))
        leaves = [jnp.broadcast_to(x, (*x.shape[: x.ndim - n], *lanes)) for x in leaves]
        leaves += [wide(x) for x in self.traced[::-1]]  # counted from the end
        flat = [x.reshape(-1, *lanes) for x in leaves]
        values: dict[int, Any] = {}
        blocks: dict[int, list] = {}
        constants: dict[Any, Any] = {}

        def value(x: Any) -> Any:
            if not known(x):
                return values[id(x)]
            if not lanes:
                return x
            key = (x.dtype, x.tobytes())
            if key not in constants:
                constants[key] = lax.full(lanes, x, x.dtype)
            return constants[key]

        def array(x: Entries, dtype: Any) -> Any:
            if all(map(known, x.reshape(-1))):
                return wide(jnp.asarray(x.astype(dtype)))
            first = x.reshape(-1)[0]
            if isinstance(first, Number) and isinstance(first.op, int) and flat[first.op].shape[0] == x.size:
                if all(isinstance(y, Number) and y.op == first.op and y.args[0] == k for k, y in enumerate(x.flat)):
                    return flat[first.op].reshape(*x.shape, *lanes)
            return jnp.stack([value(y) for y in x.reshape(-1)]).reshape(*x.shape, *lanes)

        def worked_out(block: Block) -> list:
            equation = block.equation
            given = {v: x for v, x in zip(equation.invars, block.given) if not isinstance(v, Literal)}
            alone = block.program.replace(constvars=[], invars=[*given], outvars=equation.outvars, eqns=[equation])
            f = lambda *xs: eval_jaxpr(alone, (), *xs)
            for _ in range(n):
                f = jax.vmap(f, in_axes=-1, out_axes=-1)
            return [x.reshape(-1, *lanes) for x in f(*(array(x, v.aval.dtype) for v, x in given.items()))]

        for x in self.order:
            if isinstance(x.op, int):
                values[id(x)] = lax.index_in_dim(flat[x.op], x.args[0], 0, keepdims=False)
            elif isinstance(x.op, Block):
                if id(x.op) not in blocks:
                    blocks[id(x.op)] = worked_out(x.op)
                i, k = x.args
                values[id(x)] = lax.index_in_dim(blocks[id(x.op)][i], k, 0, keepdims=False)
            else:
                kind, params = x.op
                values[id(x)] = kind.bind(*map(value, x.args), **params)
        return [array(x, dtype) for x, dtype in zip(self.found, self.dtypes)]


def _inputs(i: int, aval: Any) -> Entries:
    return entries(aval.shape, [Number(i, (k,), aval.dtype) for k in range(aval.size)])


def _reached(results: list[Entries]) -> Iterator[Number]:
    """The numbers that these need, each behind those that it needs itself."""
    done: set[int] = set()
    stack = [x for result in results[::-1] for x in result.reshape(-1)[::-1] if not known(x)]
    while stack:
        x = stack[-1]
        if id(x) in done:
            stack.pop()
            continue
        needs = itertools.chain(*(e.flat for e in x.op.given)) if isinstance(x.op, Block) else ()
        needs = needs if isinstance(x.op, (Block, int)) else x.args
        missing = [y for y in needs if isinstance(y, Number) and id(y) not in done]
        if missing:
            stack += missing
        else:
            done.add(id(x))
            stack.pop()
            yield x
