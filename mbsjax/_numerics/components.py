"""Functions of small arrays, computed entry by entry.

A mechanism's formulas are written with arrays: bodies, freedoms and rows are axes. For a few bodies, most of such a
program moves entries about, and multiplies by the zeros and ones of its structure. `by_components` takes a traced
function apart: each entry of each array is a number of its own, moving it costs nothing, zeros and ones vanish, what
is computed twice is computed once, and what nobody reads is not computed. Plain operations are left, on all lanes at
once, which compilers fuse into few loops.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer, eval_jaxpr
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal
from jax.interpreters import partial_eval


Entries = np.ndarray  # of objects: a number of NumPy where it is known, else a `_Number`

_MOST = 1000  # operations; a function that has more is left as it is: compilers take too long over it
_FEW = 16  # places that a number may choose from, one by one


def by_components(f: Callable, lanes: int) -> Callable:
    """f of arrays that may have lanes behind, for values alone, not for derivatives. One that is large, or is for a
    single lane, is left as it is."""

    def call(*args: Any) -> Any:
        if not lanes:
            return f(*args)
        arrays, rest = eqx.partition(args, eqx.is_array)
        leaves, structure = jax.tree_util.tree_flatten(arrays)
        one = [jax.ShapeDtypeStruct(x.shape[: x.ndim - lanes], x.dtype) for x in leaves]
        whole, like = jax.make_jaxpr(
            lambda *each: f(*eqx.combine(jax.tree_util.tree_unflatten(structure, each), rest)), return_shape=True
        )(*one)
        needed, _ = partial_eval.dce_jaxpr(whole.jaxpr, [True] * len(whole.jaxpr.outvars), instantiate=True)
        graph = _Graph(needed, whole.consts)
        if graph.size > _MOST:
            return f(*args)
        found = graph.computed(leaves, np.broadcast_shapes(*(x.shape[x.ndim - lanes :] for x in leaves)))
        return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(like), found)

    return call


# the graph ------------------------------------------------------------------------------------------------------------


class _Number:
    """A number that is computed: an entry of an array that is given, an operation on others, or an entry of what an
    operation on whole arrays gives."""

    __slots__ = ("args", "dtype", "op")

    def __init__(self, op: Any, args: tuple, dtype: Any):
        self.op, self.args, self.dtype = op, args, dtype


class _Block(NamedTuple):
    """An operation that is left on whole arrays."""

    equation: Any
    program: Jaxpr  # that it is in
    given: list[Entries]


def _known(x: Any) -> bool:
    return isinstance(x, np.generic)


def _entries(shape: tuple[int, ...], items: Iterable[Any]) -> Entries:
    found = np.empty(math.prod(shape), object)
    for i, x in enumerate(items):
        found[i] = x
    return found.reshape(shape)


class _Graph:
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
        return _entries(x.shape, (y for y in x.reshape(-1)))

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
            return [_entries(v.aval.shape, ()) for v in equation.outvars]
        if name in _CALLS:
            inner: Any = p[_CALLS[name]]
            if isinstance(inner, ClosedJaxpr):
                return self.run(inner.jaxpr, [self.constant(x) for x in inner.consts], xs)
            return self.run(inner, [], xs)
        if name in _MOVES:
            found = _MOVES[name](p, *xs)
            if found is not None:
                return found if isinstance(found, list) else [found]
        out: Any = equation.outvars[0].aval
        if name in _REDUCTIONS:
            kind = _REDUCTIONS[name]
            axes = tuple(p["axes"])
            kept = [a for a in range(xs[0].ndim) if a not in axes]
            rows = xs[0].transpose(*kept, *axes).reshape(out.size, math.prod(xs[0].shape[a] for a in axes))
            if rows.size:
                fold = lambda row: functools.reduce(lambda a, b: self.number(kind, {}, (a, b), out.dtype), row)
                return [_entries(out.shape, map(fold, rows))]
            if name == "reduce_sum":
                return [_entries(out.shape, [np.zeros((), out.dtype)[()]] * out.size)]
        elif name == "dot_general":
            return [self.product(p, xs[0], xs[1], out)]
        elif name in ("gather", "dynamic_slice"):
            places = _places(name, p, xs, out.shape)
            if places is not None:
                return [_entries(out.shape, (self.chosen(xs[0], place, out.dtype) for place in places))]
        elif name in _PLAIN:
            wide = np.broadcast_arrays(*xs)
            kind = equation.primitive
            items = (self.number(kind, p, each, out.dtype) for each in zip(*(x.reshape(-1) for x in wide)))
            return [_entries(out.shape, items)]
        block = _Block(equation, program, xs)
        return [
            _entries(v.aval.shape, [_Number(block, (i, k), v.aval.dtype) for k in range(v.aval.size)])
            for i, v in enumerate(equation.outvars)
        ]

    def number(self, kind: Any, params: dict, xs: tuple, dtype: Any) -> Any:
        """An operation on numbers."""
        if all(map(_known, xs)) and (fold := _FOLDS.get(kind.name)):
            with np.errstate(all="ignore"):
                return np.asarray(fold(params, *xs), dtype)[()]
        simple = _simplified(kind.name, params, xs, dtype)
        if simple is not None:
            return self.number(lax.neg_p, {}, simple[1:], dtype) if isinstance(simple, tuple) else simple
        key = (kind, str(params) if params else "", *(x if _known(x) else id(x) for x in xs))
        key += tuple(str(x.dtype) for x in xs if _known(x))
        if key not in self.same:
            self.same[key] = _Number((kind, params), xs, dtype)
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
        return _entries(out.shape, (entry(*each) for each in itertools.product(*sizes)))

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
            if not _known(x):
                return values[id(x)]
            if not lanes:
                return x
            key = (x.dtype, x.tobytes())
            if key not in constants:
                constants[key] = lax.full(lanes, x, x.dtype)
            return constants[key]

        def array(x: Entries, dtype: Any) -> Any:
            if all(map(_known, x.reshape(-1))):
                return wide(jnp.asarray(x.astype(dtype)))
            first = x.reshape(-1)[0]
            if isinstance(first, _Number) and isinstance(first.op, int) and flat[first.op].shape[0] == x.size:
                if all(isinstance(y, _Number) and y.op == first.op and y.args[0] == k for k, y in enumerate(x.flat)):
                    return flat[first.op].reshape(*x.shape, *lanes)
            return jnp.stack([value(y) for y in x.reshape(-1)]).reshape(*x.shape, *lanes)

        def worked_out(block: _Block) -> list:
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
            elif isinstance(x.op, _Block):
                if id(x.op) not in blocks:
                    blocks[id(x.op)] = worked_out(x.op)
                i, k = x.args
                values[id(x)] = lax.index_in_dim(blocks[id(x.op)][i], k, 0, keepdims=False)
            else:
                kind, params = x.op
                values[id(x)] = kind.bind(*map(value, x.args), **params)
        return [array(x, dtype) for x, dtype in zip(self.found, self.dtypes)]


def _inputs(i: int, aval: Any) -> Entries:
    return _entries(aval.shape, [_Number(i, (k,), aval.dtype) for k in range(aval.size)])


def _reached(results: list[Entries]) -> Iterator[_Number]:
    """The numbers that these need, each behind those that it needs itself."""
    done: set[int] = set()
    stack = [x for entries in results[::-1] for x in entries.reshape(-1)[::-1] if not _known(x)]
    while stack:
        x = stack[-1]
        if id(x) in done:
            stack.pop()
            continue
        needs = itertools.chain(*(e.flat for e in x.op.given)) if isinstance(x.op, _Block) else ()
        needs = needs if isinstance(x.op, (_Block, int)) else x.args
        missing = [y for y in needs if isinstance(y, _Number) and id(y) not in done]
        if missing:
            stack += missing
        else:
            done.add(id(x))
            stack.pop()
            yield x


# what operations do ---------------------------------------------------------------------------------------------------

_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr"}
_CALLS |= {"custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr", "checkpoint": "jaxpr"}


def _broadcast(p: dict, x: Entries, *_: Entries) -> Entries:
    shape = [1] * len(p["shape"])
    for axis, n in zip(p["broadcast_dimensions"], x.shape):
        shape[axis] = n
    return np.broadcast_to(x.reshape(shape), p["shape"])


def _split(p: dict, x: Entries) -> list[Entries]:
    return np.split(x, np.cumsum(p["sizes"])[:-1], p["axis"])


def _padded(p: dict, x: Entries, value: Entries) -> Entries | None:
    if any(low < 0 or high < 0 or inner for low, high, inner in p["padding_config"]):
        return None
    return np.pad(x, [each[:2] for each in p["padding_config"]], constant_values=value[()])


def _iota(p: dict) -> Entries:
    shape = [n if axis == p["dimension"] else 1 for axis, n in enumerate(p["shape"])]
    row = np.arange(p["shape"][p["dimension"]]).astype(p["dtype"])
    return np.broadcast_to(_entries(row.shape, row).reshape(shape), p["shape"])


def _sliced(p: dict, x: Entries) -> Entries:
    steps = p["strides"] or [1] * x.ndim
    return x[tuple(slice(*each) for each in zip(p["start_indices"], p["limit_indices"], steps))]


def _scattered(p: dict, x: Entries, indices: Entries, updates: Entries) -> Entries | None:
    d = p["dimension_numbers"]
    if p["update_jaxpr"] is not None or d.operand_batching_dims or not all(map(_known, indices.flat)):
        return None
    found = x.copy()
    where = [a for a in range(updates.ndim) if a not in d.update_window_dims]
    window = [a for a in range(x.ndim) if a not in d.inserted_window_dims]
    for each in np.ndindex(*updates.shape):
        place = [0] * x.ndim
        for axis, i in zip(d.scatter_dims_to_operand_dims, indices[tuple(each[a] for a in where)]):
            place[axis] = int(i)
        for axis, a in zip(window, d.update_window_dims):
            place[axis] += each[a]
        if any(not 0 <= i < n for i, n in zip(place, x.shape)):
            return None
        found[tuple(place)] = updates[each]
    return found


_MOVES: dict[str, Callable] = {
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda p, *xs: np.concatenate(xs, p["dimension"]),
    "copy": lambda p, x: x,
    "copy_p": lambda p, x: x,
    "expand_dims": lambda p, x: np.expand_dims(x, p["dimensions"]),
    "iota": _iota,
    "pad": _padded,
    "reshape": lambda p, x: x.reshape(p["new_sizes"]) if p.get("dimensions") is None else None,
    "rev": lambda p, x: np.flip(x, p["dimensions"]),
    "scatter": _scattered,
    "slice": _sliced,
    "split": _split,
    "squeeze": lambda p, x: x.squeeze(tuple(p["dimensions"])),
    "stop_gradient": lambda p, x: x,
    "stack": lambda p, *xs: np.stack(xs, p["axis"]),
    "transpose": lambda p, x: x.transpose(p["permutation"]),
}

_REDUCTIONS: dict[str, Any] = {
    "reduce_sum": lax.add_p,
    "reduce_prod": lax.mul_p,
    "reduce_max": lax.max_p,
    "reduce_min": lax.min_p,
    "reduce_and": lax.and_p,
    "reduce_or": lax.or_p,
}

_PLAIN = set(
    "add add_any sub mul div neg abs sign floor ceil round is_finite max min sqrt rsqrt cbrt square integer_pow pow "
    "exp exp2 log log1p expm1 sin cos tan asin acos atan atan2 sinh cosh tanh eq ne lt le gt ge and or not xor "
    "select_n clamp convert_element_type rem nextafter".split()
)

_FOLDS: dict[str, Callable] = {
    "add": lambda p, a, b: a + b,
    "add_any": lambda p, a, b: a + b,
    "sub": lambda p, a, b: a - b,
    "mul": lambda p, a, b: a * b,
    "neg": lambda p, a: -a,
    "abs": lambda p, a: abs(a),
    "max": lambda p, a, b: np.maximum(a, b),
    "min": lambda p, a, b: np.minimum(a, b),
    "sqrt": lambda p, a: np.sqrt(a),
    "sin": lambda p, a: np.sin(a),
    "cos": lambda p, a: np.cos(a),
    "square": lambda p, a: a * a,
    "integer_pow": lambda p, a: a ** p["y"] if np.issubdtype(a.dtype, np.floating) else int(a) ** p["y"],
    "eq": lambda p, a, b: a == b,
    "ne": lambda p, a, b: a != b,
    "lt": lambda p, a, b: a < b,
    "le": lambda p, a, b: a <= b,
    "gt": lambda p, a, b: a > b,
    "ge": lambda p, a, b: a >= b,
    "and": lambda p, a, b: a & b,
    "or": lambda p, a, b: a | b,
    "not": lambda p, a: ~a,
    "select_n": lambda p, which, *of: of[int(which)],
    "convert_element_type": lambda p, a: a,
}


def _simplified(name: str, p: dict, xs: tuple, dtype: Any) -> Any:
    """What an operation is without it: a number; ("neg", x); or None, where it is needed."""
    is_ = lambda x, value: _known(x) and x == value
    a, b = xs[0], xs[-1]
    if name in ("add", "add_any"):
        return b if is_(a, 0) else a if is_(b, 0) else None
    if name == "sub":
        return a if is_(b, 0) else ("neg", b) if is_(a, 0) else None
    if name == "mul":
        for x, y in ((a, b), (b, a)):
            if is_(x, 0):
                return np.zeros((), dtype)[()]
            if is_(x, 1):
                return y
            if is_(x, -1):
                return ("neg", y)
    elif name == "div":
        return a if is_(b, 1) or is_(a, 0) else None
    elif name == "neg" and not isinstance(a.op, (_Block, int)) and a.op[0].name == "neg":
        return a.args[0]
    elif name == "select_n":
        if _known(a):
            return xs[1 + int(a)]
        if all(x is xs[1] for x in xs[2:]) or (_known(xs[1]) and all(is_(x, xs[1]) for x in xs[2:])):
            return xs[1]
    elif name in ("and", "or") and np.issubdtype(dtype, np.bool_):
        for x, y in ((a, b), (b, a)):
            if _known(x):
                return y if bool(x) == (name == "and") else x
    elif name == "convert_element_type" and a.dtype == dtype:
        return a
    return None


def _places(name: str, p: dict, xs: list[Entries], shape: tuple[int, ...]) -> list[tuple] | None:
    """For each entry of the result the place that it comes from, where at most one index is not known, and that one
    chooses from a few; None where this is not so."""
    x, limits = xs[0], np.subtract(xs[0].shape, p["slice_sizes"])

    def start(axis: Any, index: Any) -> Any:
        """Where a slice begins along an axis."""
        if _known(index):
            return int(np.clip(int(index), 0, limits[axis]))
        return index

    if name == "dynamic_slice":
        begins = [start(axis, i[()]) for axis, i in enumerate(xs[1:])]
        found = [list(zip(begins, each)) for each in np.ndindex(*shape)]
    else:
        if p["mode"] == lax.GatherScatterMode.FILL_OR_DROP and not all(map(_known, xs[1].flat)):
            return None
        d = p["dimension_numbers"]
        where = [a for a in range(len(shape)) if a not in d.offset_dims]
        window = [a for a in range(x.ndim) if a not in (*d.collapsed_slice_dims, *d.operand_batching_dims)]
        found = []
        for each in np.ndindex(*shape):
            batch = tuple(each[a] for a in where)
            begins, offsets = [0] * x.ndim, [0] * x.ndim
            for axis, i in zip(d.start_index_map, xs[1][batch]):
                if _known(i) and p["mode"] == lax.GatherScatterMode.FILL_OR_DROP and not 0 <= i <= limits[axis]:
                    return None
                begins[axis] = start(axis, i)
            for axis, a in zip(d.operand_batching_dims, d.start_indices_batching_dims):
                begins[axis] = batch[a]
            for axis, a in zip(window, d.offset_dims):
                offsets[axis] = each[a]
            found.append(list(zip(begins, offsets)))
    places = []
    for each in found:
        place = tuple(b + o if isinstance(b, int) else b for b, o in each)
        unknown = [axis for axis, i in enumerate(place) if not isinstance(i, int)]
        if len(unknown) > 1 or any(x.shape[axis] > _FEW or p["slice_sizes"][axis] != 1 for axis in unknown):
            return None
        places.append(place)
    return places
