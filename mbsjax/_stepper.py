"""One step of a diffrax solver, along lanes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jaxtyping import Array, Float

from ._groups import lanewise


class Step(NamedTuple):
    y: Float[Array, "n *lanes"]  # where it leads,
    error: Float[Array, "n *lanes"]  # how far that is off,
    middle: Float[Array, "n *lanes"]  # and where it was half way


def step(
    solver: diffrax.AbstractSolver, field: Callable, args, t: Array, h: Array, y: Array, f: Array | None, scan_kind: str
) -> Step:
    """A step of length h from (t, y), where the rate is f if that is known; `field(t, y, args)` is the rate anywhere.

    Explicit Runge-Kutta methods are taken by their tableau: stages are a loop, so that the field is traced once, and
    all lanes go through it together. Other solvers make their own step, lane by lane.
    """
    if isinstance(solver, diffrax.AbstractERK):
        return _explicit(solver, lambda t, y: field(t, y, args), t, h, y, f)
    return lanewise(lambda *each: _other(solver, field, *each, scan_kind=scan_kind), t.ndim)(args, t, h, y)


def _explicit(solver: diffrax.AbstractERK, field: Callable, t: Array, h: Array, y: Array, f: Array | None) -> Step:
    tableau = solver.tableau
    assert isinstance(tableau, diffrax.ButcherTableau)
    n, lanes = tableau.num_stages, y.ndim
    a = np.zeros((n, n))
    for i, row in enumerate(tableau.a_lower):
        a[i + 1, : i + 1] = row
    a, c = jnp.asarray(a), jnp.asarray([0.0, *tableau.c])

    def combined(weights: Array, ks: Array) -> Array:
        return jnp.sum(weights.reshape(-1, *(1,) * lanes) * ks, 0)

    def stage(i: Any, ks: Array) -> Array:
        return ks.at[i].set(h * field(t + c[i] * h, y + combined(a[i], ks)))

    ks = jnp.zeros((n, *y.shape))
    ks = ks if f is None else ks.at[0].set(h * f)
    ks = jax.lax.fori_loop(0 if f is None else 1, n, stage, ks)
    y1, error = y + combined(jnp.asarray(tableau.b_sol), ks), combined(jnp.asarray(tableau.b_error), ks)

    def half(t: Array, t1: Array, y0: Array, y1: Array, k: Array) -> Array:
        return solver.interpolation_cls(t0=t, t1=t1, y0=y0, y1=y1, k=k).evaluate((t + t1) / 2)

    # any interval does, and that of no length would not
    zero = jnp.zeros_like(t)
    return Step(y1, error, lanewise(half, t.ndim)(zero, zero + 1, y, y1, ks))


def _other(solver: diffrax.AbstractSolver, field: Callable, args, t: Array, h: Array, y: Array, scan_kind: str) -> Step:
    solver = _with_scan(solver, scan_kind)
    term = diffrax.ODETerm(field)
    h = jnp.where(h > 0, h, 1e-12)  # a step of no length is asked for where only its end matters
    state = solver.init(term, t, t + h, y, args)
    y1, error, dense, _, result = solver.step(term, t, t + h, y, args, state, made_jump=jnp.asarray(False))
    if error is None:
        raise ValueError(f"{type(solver).__name__} does not estimate its error: take another solver")
    middle = solver.interpolation_cls(t0=t, t1=t + h, **dense).evaluate(t + h / 2)
    fine = result == diffrax.RESULTS.successful
    return Step(jnp.where(fine, y1, jnp.nan), error, middle)


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
