"""Assembly: a position that closes every loop, from an estimate."""

import warnings
from collections.abc import Container, Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._events.results import RESULTS
from .._model.mechanism import Mechanism
from .._numerics.linalg import least_squares
from .._programs.batch import lane_by_lane
from .._programs.custom_types import ByName
from .._programs.precision import is_concrete
from .._programs.reprs import brief, has_numbers
from .._programs.trees import frozen, once
from .drive import Problem, problem as make_problem, root
from .mode import Mode
from .modes import at_rest
from .system import System, system
from .track import AbstractPosition, Configuration


_TRIES = 8  # for coordinates without an estimate: two from where the joints rest, then from anywhere
_FAR = 1.0  # an estimate further off than this, in radians, or sizes of the mechanism, was not followed


class Estimate(eqx.Module):
    """Where assembly begins."""

    q: Float[Array, " nq"]
    given: tuple[int, ...] = eqx.field(static=True)  # freedoms, not driven, whose estimate was given; others follow

    @once
    def off(self, laid_out: System, q: Float[Array, " nq"]) -> Float[Array, " given"]:
        """How far each given estimate is from q, in radians or sizes; rotations in space are not looked at."""
        slots, lengths = (np.array(x)[list(self.given)] for x in (laid_out.layout.slots, laid_out.layout.lengths))
        d = jnp.where(slots >= 0, q[slots] - self.q[slots], 0.0)
        return jnp.abs(jnp.where(lengths, d / laid_out.size, jnp.arctan2(jnp.sin(d), jnp.cos(d))))

    def overruled(self, mech: Mechanism, q: Float[Array, " nq"]) -> list[str]:
        """Which of the given estimates are far from q."""
        if not self.given or not is_concrete(self.q, q) or self.q.ndim > 1 or q.ndim > 1:
            return []
        laid_out = system(mech)
        far = [i for i, off in zip(self.given, np.asarray(self.off(laid_out, q))) if off > _FAR]
        asked, found = ([float(x[laid_out.layout.slots[i]]) for i in far] for x in (self.q, q))
        return [
            f"{mech.coordinates[i]!r} was estimated at {x:.6g} and is assembled at {y:.6g}"
            for i, x, y in zip(far, asked, found)
        ]

    def warn(self, mech: Mechanism, q: Float[Array, " nq"]) -> None:
        """Tells of given estimates that were not followed."""
        told = self.overruled(mech, q)
        if told:
            message = f"the mechanism is assembled far from a given estimate, in another branch: {'; '.join(told)}"
            warnings.warn(message, stacklevel=3)


def guess(mech: Mechanism, problem: Problem, estimate: Mapping[str, Any] | Array | None) -> Estimate:
    """Where to begin, with what is driven left out of what is given."""
    return Estimate(mech.estimate(estimate), tuple(i for i in mech.given(estimate) if i not in problem.columns))


class Assembly(AbstractPosition):
    """An assembled mechanism. Reads like a [`mbsjax.Motion`][] at one instant.

    - `q`: the stored coordinates of all joints.
    - `residual`: the largest residual of a loop or gauge, in the mechanism's units.
    - `steps`: how many damped Newton steps it took.
    - `result`: a member of [`mbsjax.RESULTS`][].

    `found["A"]` is a coordinate, a gauge or a contact; `found.coordinate("A")`, `found.gauge(...)` and
    `found.contact(...)` read one of a kind. `print(assembly)` tells which given estimates were not followed.
    """

    mech: Mechanism
    q: Float[Array, " nq"]
    residual: Float[Array, ""]
    steps: Int[Array, ""]
    result: RESULTS
    estimate: Estimate

    @property
    @lane_by_lane
    def configuration(self) -> Configuration:
        return Configuration(self.mech, self.q)

    def __repr__(self) -> str:
        if not hasattr(self.q, "shape"):
            return brief(self, q=self.q)
        if not has_numbers(self.q) or self.batch:
            many = f"Batch of shape {self.batch}: a" if self.batch else "A"
            return f"{many}ssembly of the coordinates {', '.join(self.mech.coordinates)}"
        found = ", ".join(f"{j.name} = {_shown(self[j.name])}" for j in self.mech.joints if j.start.size)
        told = "assembled" if bool(self.result == RESULTS.successful) else RESULTS[self.result]
        lines = [f"{told}, residual {float(self.residual):.1e}, {int(self.steps)} steps: {found}"]
        return "\n  ".join(lines + self.estimate.overruled(self.mech, self.q))


def _shown(x: Array) -> str:
    return f"{float(x):.9g}" if x.ndim == 0 else str([float(f"{float(v):.9g}") for v in x])


def assemble(
    mech: Mechanism,
    estimate: ByName | Array | None = None,
    *,
    fixed: ByName | None = None,
    max_steps: int = 200,
    throw: bool = True,
) -> Assembly:
    """Closes all loops, starting from an estimate of the coordinates.

    Damped Newton steps (Levenberg-Marquardt) get near from afar, Newton finishes. Where the mechanism is
    free to move, the position found is one near the estimate. What is given weighs: where that is far from a
    given estimate, coordinates without one are found from the others first, with several tries. A warning names given
    estimates that the position found is far from.

    **Arguments:**

    - `mech`: the mechanism.
    - `estimate`: coordinates by name (see [`mbsjax.Mechanism.estimate`][]); the others start from the
        joints' own `start` where they have one.
    - `fixed`: coordinates or gauges to hold at a value, by name.
    - `max_steps`: how many steps to try.
    - `throw`: whether to raise when the loops do not close, saying which and by how much, and
        whether other estimates would do. Under `jit` or `vmap`, look at `.result`.

    **Returns:** an [`mbsjax.Assembly`][]. Its derivatives come from the implicit function theorem.

    !!! Example

        A triangle of sides 3, 4, 5 has a right angle.

        >>> import mbsjax as mbs
        >>> triangle = mbs.Mechanism(
        ...     [mbs.Body("left"), mbs.Body("right")],
        ...     [mbs.Revolute("A", "ground", "left"), mbs.Revolute("B", "ground", "right", (5.0, 0.0)),
        ...      mbs.Revolute("C", "left", "right", (3.0, 0.0), (4.0, 0.0))])
        >>> found = mbs.assemble(triangle, {"A": 1.0, "B": 2.0})
        >>> round(float(jnp.cos(found["A"])), 9)
        0.6
    """
    fixed = dict(fixed or {})
    problem = closing(mech, make_problem(mech, {}, fixed))
    begin = guess(mech, problem, estimate)
    q, steps, closed, residual, _ = close(problem, begin, max_steps)
    result = RESULTS.where(closed, RESULTS.successful, RESULTS.not_assembled)
    assembly = Assembly(mech, q, residual, steps, result, begin)
    if throw:
        if not is_concrete(q, closed):
            return eqx.tree_at(lambda a: a.q, assembly, result.error_if(q, ~closed))
        if not bool(closed):
            raise ValueError(explain(mech, problem, q, positions=fixed))
        begin.warn(mech, q)
    return assembly


def closing(mech: Mechanism, problem: Problem, names: Iterable[str] | None = None) -> Problem:
    """The problem with the gaps of some contacts, those that are active from the start, among its equations."""
    names = [c.name for c in mech.contacts if c.active] if names is None else list(names)
    active = tuple(mech.contacts.index(mech.contact(name)) for name in names)
    return problem.within(at_rest(problem, active)) if active else problem


@once
def close(
    problem: Problem, begin: Estimate, max_steps: int, t: Float[Array, ""] | float = 0.0
) -> tuple[Array, Array, Array, Array, Mode | None]:
    """A position with all loops closed, the steps it took, whether it worked, the largest residual, and where the
    contacts are that are held closed."""
    t = jnp.asarray(t, begin.q.dtype)
    frozen_problem, frozen_begin, frozen_t = frozen((problem, begin, t))
    found, steps, closed, r = _found(frozen_problem, frozen_begin, frozen_t, max_steps)
    problem = problem.within(frozen_problem.settled(found).mode)
    residual = jnp.max(jnp.abs(r * problem.row_sizes), initial=0.0)
    return root(problem, found, t), steps, closed, jax.lax.stop_gradient(residual), problem.mode


def _found(problem: Problem, begin: Estimate, t: Float[Array, ""], max_steps: int) -> tuple[Array, Array, Array, Array]:
    """As `search`, and where that leads far from the given estimates, tries that seek what was not given first, with
    the given coordinates held; then all move. The first position that is near them is taken, else the nearest."""
    held = np.isin(problem.unknown, begin.given)
    if not problem.row_sizes.shape[0] or held.all() or not held.any():
        return search(problem, begin.q, t, max_steps)
    ways = np.random.default_rng(0).uniform(-np.pi, np.pi, (_TRIES, len(held))) * ~held
    ways = jnp.asarray(ways * (np.arange(_TRIES) > 1)[:, None])

    def unfinished(state):
        k, _, off, *_ = state
        return (k < 2 * _TRIES) & (off > 0)

    def attempt(state):
        """Holds what was given in even rounds, but not in the first, and lets all move in odd ones."""
        k, last, off, steps, best, closed, r = state
        holding, other = (k % 2 == 0) & (k > 0), problem.move(begin.q, ways[k // 2])
        limit = jnp.where(holding, min(max_steps, 40), max_steps)
        start = jnp.where(k % 2 == 0, other, last)
        q, more, closed_, r_ = search(problem, start, t, limit, jnp.where(holding & held, 0.0, 1.0))
        each = begin.off(problem.system, q)
        off_ = jnp.where(closed_, jnp.where(jnp.max(each) < _FAR, 0.0, jnp.sum(each)), jnp.inf)
        better = (off_ < 0.8 * off) | ((k < 2) & ~closed)
        best, closed, r, off = (
            jnp.where(better, new, old) for new, old in ((q, best), (closed_, closed), (r_, r), (off_, off))
        )
        return k + 1, q, off, steps + more, best, closed, r

    zero = jnp.zeros((), int)
    none = jnp.zeros(problem.row_sizes.shape)
    start = (zero, begin.q, jnp.asarray(jnp.inf), zero, begin.q, zero > 0, none)
    _, _, _, steps, q, closed, r = jax.lax.while_loop(unfinished, attempt, start)
    return q, steps, closed, r


def search(
    problem: Problem, q: Float[Array, " nq"], t: Float[Array, ""], max_steps: Array | int, free: Array | float = 1.0
) -> tuple[Array, Array, Array, Array]:
    """Levenberg-Marquardt, with a damping that fades with the square of the residual. Gives the position, the
    steps it took, whether it is closed, and its residual, scaled. Unknowns where `free` is zero stay put."""
    goal = 500 * jnp.finfo(q.dtype).eps

    def norm(r: Array) -> Array:
        return jnp.max(jnp.abs(r), initial=0.0)

    def step(state):
        """Judges a trial position, and sets out for the next."""
        q, r, J, trial, factor, k, _ = state
        r_new, J_new, _ = problem.settled(trial).linearise(trial, t, afar=True)
        J_new = J_new * free
        better = ~(jnp.sum(r_new * r_new) >= jnp.sum(r * r))
        q, r, J = (jnp.where(better, new, old) for new, old in ((trial, q), (r_new, r), (J_new, J)))
        factor = jnp.where(better, factor / 4, factor * 8)
        y = -least_squares(J, damping=factor * jnp.sum(r * r))(r[:, None])[:, 0]
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
        return q, jnp.zeros((), int), jnp.ones((), bool), r
    start = (q, r, J, q, 4 * jnp.ones(()), jnp.zeros((), int), jnp.zeros((), bool))
    q, r, _, _, _, steps, _ = jax.lax.while_loop(unfinished, step, start)
    return q, steps - 1, norm(r) <= goal, r


def explain(
    mech: Mechanism, problem: Problem, q: Float[Array, " nq"], t: float = 0.0, positions: Container[str] = ()
) -> str:
    """Why a mechanism was not assembled: two drivers or `positions` of one freedom, a poor estimate, or no position at
    all, and what stays open."""
    if len(problem.columns) + len(problem.gauges) > 1:
        from .mobility import driver_fault

        fault = driver_fault(mech, problem.within(None), q, False, jnp.asarray(t, q.dtype), positions)
        if fault:
            return fault
    found, closed, rows = _search_many(problem, q, jnp.asarray(t, q.dtype))
    if bool(closed):
        near = ", ".join(f"{name!r}: {value:.4g}" for name, value in _readable(mech, found))
        return f"the estimate is too poor to assemble the mechanism; it can be assembled, for instance from {{{near}}}"
    name, gap = _worst(mech, problem, np.asarray(rows))
    driven = [mech.coordinates[i] for i in problem.columns] + [mech.gauges[i].name for i in problem.gauges]
    held = f" and with the given values of {', '.join(map(repr, driven))}" if driven else ""
    return (
        f"the mechanism cannot be assembled with these dimensions{held}: from the estimate and 64 other starts, {name} "
        f"stays open by at least {gap}"
    )


@once
def _search_many(problem: Problem, q: Array, t: Array) -> tuple[Array, Array, Array]:
    """The best that assembly reaches from q and many random positions: whether it is closed, and its residual."""
    scale = problem.spread(jnp.ones(len(problem.unknown)))
    random = jax.random.uniform(jax.random.key(0), (64, scale.shape[0]), minval=-jnp.pi, maxval=jnp.pi)
    starts = jax.vmap(problem.system.retract, (None, 0))(problem.place(q, t), random * scale)
    starts = jnp.concatenate([q[None], starts])
    found, _, closed, r = jax.vmap(lambda q: search(problem, q, t, 200))(starts)
    best = jnp.argmin(jnp.sum(r**2, -1))
    return found[best], closed[best], r[best] * problem.row_sizes


def _readable(mech: Mechanism, q: Float[Array, " nq"]) -> list[tuple[str, float]]:
    names = [(n, mech.stored(n)[0]) for n in mech.coordinates if "rotation_" not in n]
    return [(name, float(q[place])) for name, place in names]


def _worst(mech: Mechanism, problem: Problem, row: np.ndarray) -> tuple[str, str]:
    """The loop or gauge with the largest residual, and how large that is."""
    graph, group = mech.topology, problem.system.layout.group
    width, turns = group.rows, group.n_rotations
    worst = int(np.argmax(np.abs(row) / np.asarray(problem.row_sizes)))
    loop, gauge = worst // width, worst - width * len(graph.chords)
    if gauge >= len(problem.gauges):
        active = [c.name for c in mech.contacts if c.active]
        return f"contact {active[gauge - len(problem.gauges)]!r}", f"{abs(row[worst]):.6g}"
    if gauge >= 0:
        found = mech.gauges[problem.gauges[gauge]]
        return f"gauge {found.name!r}", f"{abs(row[worst]):.6g}" + (" in the square" if found.dimension == 2 else "")
    chord = graph.joints[graph.chords[loop]][0]
    way = "-".join(graph.loop_links(loop))
    turn, gap = (float(np.linalg.norm(x)) for x in np.split(row[width * loop : width * (loop + 1)], [turns]))
    parts = [f"{gap:.6g}"] * (gap > 1e-9) + [f"{np.rad2deg(turn):.6g} degrees"] * (turn > 1e-9)
    return f"the loop {way} through joint {chord!r}", " and ".join(parts)
