"""Closing all loops: a position near an estimate, found by damped Newton steps."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._events.closure import is_closed
from .._model.mechanism import Mechanism
from .._numerics.groups import pick
from .._numerics.linalg import echelon, least_squares
from .._programs.precision import visible
from .._programs.trees import frozen, once
from .drive import Kept, Problem, root
from .mode import Mode
from .modes import at_rest
from .system import System, system


_TRIES = 8  # for coordinates without an estimate: two from where the joints rest, then from anywhere
_FAR = 1.0  # an estimate further off than this, in radians, or sizes of the mechanism, was not followed


class Estimate(eqx.Module):
    """Where assembly begins."""

    q: Float[Array, " nq"]
    given: tuple[int, ...] = eqx.field(static=True)  # freedoms, not driven, whose estimate was given; others follow

    @once
    def distances(self, laid_out: System, q: Float[Array, " nq"]) -> Float[Array, " given"]:
        """How far each given estimate is from q, in radians or sizes; rotations in space are not looked at."""
        slots, lengths = (np.array(x)[list(self.given)] for x in (laid_out.layout.slots, laid_out.layout.lengths))
        d = jnp.where(slots >= 0, pick(q - self.q, np.maximum(slots, 0)), 0.0)
        return jnp.abs(jnp.where(lengths, d / laid_out.size, jnp.arctan2(jnp.sin(d), jnp.cos(d))))

    def off(self, laid_out: System, q: Float[Array, " nq"]) -> Float[Array, ""]:
        """How far given estimates are from q, if any is far."""
        each = self.distances(laid_out, q)
        return jnp.where(jnp.max(each) < _FAR, 0.0, jnp.sum(each))

    def overruled(self, mech: Mechanism, q: Float[Array, " nq"]) -> list[str]:
        """Which of the given estimates are far from q."""
        if not self.given or self.q.ndim > 1 or q.ndim > 1 or (seen := visible(self, mech, q)) is None:
            return []
        begin, mech, q = seen
        laid_out = system(mech)
        far = [i for i, off in zip(self.given, np.asarray(begin.distances(laid_out, q))) if off > _FAR]
        asked, found = ([float(x[laid_out.layout.slots[i]]) for i in far] for x in (begin.q, q))
        return [
            f"{mech.coordinates[i]!r} was estimated at {x:.6g} and is assembled at {y:.6g}"
            for i, x, y in zip(far, asked, found)
        ]

    def warn(self, mech: Mechanism, q: Float[Array, " nq"]) -> None:
        """Tells of given estimates that were not followed."""
        overruled = self.overruled(mech, q)
        if overruled:
            message = f"the mechanism is assembled far from a given estimate, in another branch: {'; '.join(overruled)}"
            warnings.warn(message, stacklevel=4)


def guess(mech: Mechanism, problem: Problem, estimate: Mapping[str, Any] | Array | None) -> Estimate:
    """Where to begin, with what is driven left out of what is given."""
    return Estimate(mech.estimate(estimate), tuple(i for i in mech.given(estimate) if i not in problem.columns))


def with_closed_contacts(mech: Mechanism, problem: Problem, names: Iterable[str] | None = None) -> Problem:
    """The problem with the gaps of some contacts, those that are active from the start, among its equations."""
    names = [c.name for c in mech.contacts if c.active] if names is None else list(names)
    active = tuple(mech.contacts.index(mech.contact(name)) for name in names)
    return problem.with_mode(at_rest(problem, active)) if active else problem


@once
def close_loops(
    problem: Problem, begin: Estimate, max_steps: int, t: Float[Array, ""] | float = 0.0
) -> tuple[Array, Array, Array, Array, Mode | None]:
    """A position with all loops closed, the steps it took, whether it worked, the largest residual, and where the
    contacts are that are held closed. What the equations leave free is as estimated, derivatives too; where it cannot
    be, or only far from other estimates, it is as far from there as it was found, and slopes are approximate."""
    t = jnp.asarray(t, begin.q.dtype)
    if not problem.row_sizes.shape[0]:
        nothing = jnp.zeros(())
        return problem.place(begin.q, t), nothing.astype(int), nothing == 0, nothing, problem.mode
    frozen_problem, frozen_begin, frozen_t = frozen((problem, begin, t))
    found, steps, closed, r, which = _found(frozen_problem, frozen_begin, frozen_t, max_steps)
    problem = problem.with_mode(frozen_problem.on_closest_pairs(found).mode)
    residual = jnp.max(jnp.abs(r * problem.row_sizes))
    q = root(problem.keeping(Kept(begin.q, which)), found, t)
    return q, steps, closed, jax.lax.stop_gradient(residual), problem.mode


def _found(
    problem: Problem, begin: Estimate, t: Float[Array, ""], max_steps: int
) -> tuple[Array, Array, Array, Array, Array]:
    """As `levenberg_marquardt`, and where that leads far from the given estimates, tries that seek what was not given
    first, with the given coordinates held; then all move. The first position that is near them is taken, else the
    nearest. From there it goes on to where as many unknowns as are free are as estimated; also which ones they are."""
    m, unknown = problem.row_sizes.shape[0], problem.unknown
    held = np.isin(unknown, begin.given)
    tries = 1 if held.all() or not held.any() else 2 * _TRIES
    ways = np.random.default_rng(0).uniform(-np.pi, np.pi, (_TRIES, len(held))) * ~held
    ways = jnp.asarray(ways * (np.arange(_TRIES) > 1)[:, None])
    # what becomes dependent: rotations in space before others, last ones before first ones, given ones last
    in_space = np.where(np.array(problem.system.layout.slots)[unknown] < 0, 100.0, 1.0)
    easily = in_space * np.geomspace(1.0, 10.0, len(held)) * np.where(held, 0.03, 1.0)

    def attempt(state):
        """Holds what was given in even rounds, but not in the first, and lets all move in odd ones. At last what was
        best goes on to where what is free is as estimated, or, if it cannot be there, others that are nearer to it."""
        k, last, off, steps, best, closed, r, J, _, again, _ = state
        final, limit, start, free = (k >= tries) | (off <= 0), max_steps, begin.q, 1.0
        if tries > 1:
            even = (k & 1) == 0
            holding = even & (k > 0) & ~final
            limit, free = jnp.where(holding, min(max_steps, 40), max_steps), jnp.where(holding & held, 0.0, 1.0)
            start = jnp.where(even, problem.move(begin.q, ways[k >> 1]), last)
        away = 1e-3 + pick(jnp.abs(problem.system.beside(best, begin.q)[0]), unknown)
        which = final & ~echelon(J * jnp.where(again, in_space * away, easily)).dependent
        kept = problem.keeping(Kept(begin.q, which))
        q, more, closed_, r_, J_ = levenberg_marquardt(kept, jnp.where(final, best, start), t, limit, free)
        off_ = jnp.where(closed_, begin.off(problem.system, q) if begin.given else 0.0, jnp.inf)
        better = jnp.where(final, closed & (off_ <= off), (off_ < 0.8 * off) | ((k < 2) & ~closed))
        mine, theirs = (q, closed_, r_[:m], J_[:m], off_), (best, closed, r, J, off)
        best, closed, r, J, off = (jnp.where(better, x, y) for x, y in zip(mine, theirs))
        ended = jnp.where(closed, final & (again | better), k + 1 >= tries)
        return k + 1, q, off, steps + more, best, closed, r, J, which, final, ended

    zero, none, J = np.zeros((), int), np.zeros((), bool), np.zeros((m, len(held)))
    start: tuple[Any, ...] = zero, begin.q, np.asarray(np.inf), zero, begin.q, none, np.zeros(m), J, held, none, none
    _, _, _, steps, q, closed, r, _, which, *_ = jax.lax.while_loop(lambda state: ~state[-1], attempt, start)
    return q, steps, closed, r, which


def levenberg_marquardt(
    problem: Problem, q: Float[Array, " nq"], t: Float[Array, ""], max_steps: Array | int, free: Array | float = 1.0
) -> tuple[Array, Array, Array, Array, Array]:
    """Levenberg-Marquardt, with a damping that fades with the square of the residual. Gives the position, the
    steps it took, whether it is closed, and its residual, scaled, with the Jacobian. Unknowns where `free` is zero stay
    put."""
    goal = 500 * jnp.finfo(q.dtype).eps

    def norm(r: Array) -> Array:
        return jnp.max(jnp.abs(r), initial=0.0)

    def step(state):
        """Judges a trial position, and sets out for the next."""
        q, r, J, trial, factor, k, _ = state
        r_new, J_new, _ = problem.on_closest_pairs(trial).linearize(trial, t, afar=True)
        better = ~(jnp.sum(r_new * r_new) >= jnp.sum(r * r))
        q, r, J = (jnp.where(better, new, old) for new, old in ((trial, q), (r_new, r), (J_new, J)))
        factor = jnp.where(better, factor / 4, factor * 8)
        y = -least_squares(J * free, damping=factor * jnp.sum(r * r))(r[:, None])[:, 0]
        # a turn of more than half a radian, or a slide of half the mechanism, tells more of the
        # singularity nearby than of the way to go
        y = y / jnp.maximum(1.0, 2 * norm(y))
        stuck = (norm(y) < goal / 100) | (factor > 1e18)
        return q, r, J, problem.move(q, y), factor, k + 1, stuck

    def unfinished(state):
        _, r, _, _, _, k, stuck = state
        return (norm(r) > goal) & (k <= max_steps) & ~stuck

    q = problem.place(q, t)
    n = problem.row_sizes.shape[0]
    r, J = jnp.full(n, jnp.inf), jnp.zeros((n, len(problem.unknown)))
    if n == 0:
        return q, jnp.zeros((), int), jnp.ones((), bool), r, J
    start = (q, r, J, q, 4 * jnp.ones(()), jnp.zeros((), int), jnp.zeros((), bool))
    q, r, J, _, _, steps, _ = jax.lax.while_loop(unfinished, step, start)
    return q, steps - 1, is_closed(r), r, J
