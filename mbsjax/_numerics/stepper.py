"""One step of a diffrax solver, along lanes."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float

from .components.transform import by_components
from .groups import lanewise


class Step(NamedTuple):
    y: Float[Array, "n *lanes"]  # where it leads,
    error: Float[Array, "n *lanes"]  # how far that is off,
    instants: Any  # and what was evaluated, on a first axis: half way, if that was asked for, then at the end


Evaluate = Callable[[Any, Array, Array, Array], tuple[Any, Array, Array]]


class _Points(NamedTuple):
    """The points that a step evaluates, one after the other. Each is where the step begins, moved by a combination of
    the moves that are known by then."""

    weights: Any  # of these moves
    time: Any  # as part of the step
    stage: Any  # the number of the move that is found there; one more than there are, if it is none
    again: Any  # whether it is the point before, put back on the constraints
    slot: Any  # the place among the instants that a step gives, if it is such a point


def step(
    solver: diffrax.AbstractSolver,
    evaluate: Evaluate,
    args: Any,
    t: Array,
    h: Array,
    y: Array,
    f: Array | None,
    still: Array,
    *,
    middle: bool,
    scan_kind: str,
) -> Step:
    """A step of length h from (t, y), where the rate is f if that is known.

    `evaluate(args, t, y, d)` gives what there is to know at y moved by d, the rate there, and the move that leads back
    onto the constraints; `still` is no move. It is traced once: stages, end and middle are turns of one loop, and all
    lanes go through it together. Solvers that are no explicit Runge-Kutta methods make their own step, lane by lane.
    """
    if isinstance(solver, diffrax.AbstractERK):
        tableau: Any = solver.tableau
        moves = jnp.zeros((tableau.num_stages, *y.shape))
        moves = moves if f is None else moves.at[0].set(h * f)
        points = _runge_kutta_points(type(solver), f is not None, middle, y.dtype)
    else:
        field = lambda t, y, args: evaluate(args[0], t, y, args[1])[1]
        make = lambda *each: _solver_step(solver, field, *each, scan_kind=scan_kind)
        y1, error, half = lanewise(make, t.ndim)((args, still), t, h, y)
        moves, points = jnp.stack([y1 - y, half - y]), _end_and_middle(middle)

    n, put = moves.shape[0], jax.lax.dynamic_update_index_in_dim
    moves = jnp.concatenate([moves, jnp.zeros_like(moves[:1])])

    def evaluate_point(carry: tuple[Array, Array, Any], row: Any) -> tuple[tuple[Array, Array, Any], None]:
        moves, d, instants = carry
        there = y + _combined(row.weights, moves[:n])
        evaluated = by_components(evaluate, t.ndim) if scan_kind == "lax" else evaluate
        now, rate, back = evaluated(args, t + row.time * h, there, jnp.where(row.again, d, 0.0))
        moves = put(moves, h * rate, row.stage, 0)
        instants = jax.lax.cond(
            row.again, lambda now, all: put(all, packed(now, t.ndim), row.slot, 0), lambda now, all: all, now, instants
        )
        return (moves, back, instants), None

    like = eqx.filter_eval_shape(evaluate, args, t, y, still)[0]
    size = sum(math.prod(x.shape[: x.ndim - t.ndim]) for x in jax.tree_util.tree_leaves(like))
    instants = jnp.zeros((1 + middle, size, *t.shape), y.dtype)
    rows = _Points(*(jnp.asarray(x) for x in points))
    (moves, _, instants), _ = jax.lax.scan(evaluate_point, (moves, still, instants), rows)
    if isinstance(solver, diffrax.AbstractERK):
        tableau: Any = solver.tableau
        y1, error = (_combined(jnp.asarray(x), moves[:n]) for x in (tableau.b_sol, tableau.b_error))
        y1 = y + y1
    return Step(y1, error, unpacked(instants, like, t.ndim))


def packed(tree: Any, lanes: int) -> Float[Array, "n *lanes"]:
    """All numbers of a tree, one after the other: few writes are cheaper than many."""
    leaves = jax.tree_util.tree_leaves(tree)
    return jnp.concatenate([x.reshape(-1, *x.shape[x.ndim - lanes :]) for x in leaves])


def unpacked(table: Float[Array, "m n *lanes"], like: Any, lanes: int) -> Any:
    """Rows of such numbers as trees like this one, on a first axis."""
    leaves, structure = jax.tree_util.tree_flatten(like)
    ends = np.cumsum([math.prod(x.shape[: x.ndim - lanes]) for x in leaves])
    parts = [
        jax.lax.slice_in_dim(table, end - math.prod(x.shape[: x.ndim - lanes]), end, axis=1)
        for x, end in zip(leaves, ends.tolist())
    ]
    shaped = [part.reshape(table.shape[0], *x.shape) for part, x in zip(parts, leaves)]
    return jax.tree_util.tree_unflatten(structure, shaped)


def _combined(weights: Array, moves: Array) -> Array:
    return jnp.sum(weights.reshape(-1, *(1,) * (moves.ndim - 1)) * moves, 0)


@functools.cache
def _runge_kutta_points(solver: Any, known: bool, middle: bool, precision: Any) -> _Points:
    """The stages of an explicit Runge-Kutta method, the first perhaps known; then the end and, if asked for, the
    middle, both looked at before and after they are put back on the constraints. Each `precision` has its own: JAX
    keeps what it has made of an array of NumPy."""
    tableau = solver.tableau
    assert isinstance(tableau, diffrax.ButcherTableau)
    n = tableau.num_stages
    a, c, b = np.zeros((n, n)), np.array([0.0, *tableau.c]), np.asarray(tableau.b_sol, float)
    for i, row in enumerate(tableau.a_lower):
        a[i + 1, : i + 1] = row
    rows: list[tuple] = [(a[i], c[i], i, False, 0) for i in range(int(known), n)]
    if not (c[-1] == 1 and np.array_equal(a[-1], b)):
        rows.append((b, 1.0, n, False, 0))
    rows.append((b, 1.0, n, True, int(middle)))
    if middle:
        with jax.ensure_compile_time_eval():
            # all interpolations are linear in the moves; any interval does
            half = jax.jit(lambda **of: solver.interpolation_cls(**of).evaluate(of["t1"] / 2))(
                t0=np.zeros(()), t1=np.ones(()), y0=np.zeros(n), y1=b, k=np.eye(n)
            )
            rows += [(np.asarray(half), 0.5, n, again, 0) for again in (False, True)]
    return _Points(*(np.array(x) for x in zip(*rows)))


def _end_and_middle(middle: bool) -> _Points:
    """The end and, if asked for, the middle, whose moves are known."""
    rows: list[tuple] = [((1.0, 0.0), 1.0, 2, again, int(middle)) for again in (False, True)]
    rows += [((0.0, 1.0), 0.5, 2, again, 0) for again in (False, True)] if middle else []
    return _Points(*(np.array(x) for x in zip(*rows)))


def _solver_step(
    solver: diffrax.AbstractSolver, field: Callable, args, t: Array, h: Array, y: Array, scan_kind: str
) -> tuple[Array, Array, Array]:
    solver = _with_scan(solver, scan_kind)
    term = diffrax.ODETerm(field)
    h = jnp.where(h > 0, h, 1e-12)  # a step of no length is asked for where only its end matters
    state = solver.init(term, t, t + h, y, args)
    y1, error, dense, _, result = solver.step(term, t, t + h, y, args, state, made_jump=jnp.asarray(False))
    if error is None:
        raise ValueError(f"{type(solver).__name__} does not estimate its error: take another solver")
    middle = solver.interpolation_cls(t0=t, t1=t + h, **dense).evaluate(t + h / 2)
    fine = result == diffrax.RESULTS.successful
    return jnp.where(fine, y1, jnp.nan), error, middle


class Chord(optx.AbstractRootFinder):
    """Newton with the derivatives of the step's beginning, which goes on as long as it contracts. (Up to its version
    0.7.2, `diffrax.VeryChord` takes for divergence what has not converged after two iterations: steps are refused that
    a third one would do.)"""

    inner: diffrax.VeryChord

    @property
    def rtol(self):
        return self.inner.rtol

    @property
    def atol(self):
        return self.inner.atol

    @property
    def norm(self):
        return self.inner.norm

    def init(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner.init(*args, **kwargs)

    def step(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner.step(*args, **kwargs)

    def postprocess(self, *args: Any, **kwargs: Any) -> Any:
        return self.inner.postprocess(*args, **kwargs)

    def terminate(self, fn, y, args, options, state: Any, tags) -> tuple[Array, optx.RESULTS]:
        size, rate = state.diffsize, state.diffsize / state.diffsize_prev
        left = jnp.where(rate < 1, size * rate / (1 - rate), jnp.inf)  # of the sum of all steps to come
        found = (size < self.inner.kappa) | (left < self.inner.kappa)
        lost = ~found & ~(rate <= 2)
        judged = state.step >= 2
        result = optx.RESULTS.where(judged & lost, optx.RESULTS.nonlinear_divergence, state.result)
        return judged & (found | lost), result


def _with_scan(solver: Any, scan_kind: str) -> Any:
    """The solver with a loop over its stages that can be differentiated, or that cannot and is cheaper."""
    if not isinstance(solver, diffrax.AbstractRungeKutta):
        return solver
    return eqx.tree_at(lambda s: s.scan_kind, solver, scan_kind, is_leaf=lambda x: x is None)
