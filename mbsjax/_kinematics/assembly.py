"""Assembly: a position that closes every loop, from an estimate."""

from collections.abc import Container

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._events.closure import if_closed
from .._events.results import RESULTS
from .._model.mechanism import Mechanism
from .._programs.batch import lane_by_lane
from .._programs.custom_types import ByName
from .._programs.precision import visible, whole
from .._programs.reprs import brief, has_numbers
from .._programs.trees import once
from .drive import Problem, problem as make_problem
from .loop_closure import Estimate, close_loops, guess, levenberg_marquardt, with_closed_contacts
from .mobility import driver_fault
from .track import AbstractPosition, Configuration


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
        outcome = "assembled" if bool(self.result == RESULTS.successful) else RESULTS[self.result]
        lines = [f"{outcome}, residual {float(self.residual):.1e}, {int(self.steps)} steps: {found}"]
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
    free to move, as many coordinates as it has degrees of freedom are just where they are estimated, and the others
    follow: preferably given ones, and first ones. What is given weighs: where the position found is far from a
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

    **Returns:** an [`mbsjax.Assembly`][]. Its derivatives come from the implicit function theorem; they are approximate
    where the mechanism is free to move and no coordinate near the position found can be where it is estimated.

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
    fixed, max_steps = dict(fixed or {}), whole(max_steps, "`max_steps`", 1)
    problem = with_closed_contacts(mech, make_problem(mech, {}, fixed))
    begin = guess(mech, problem, estimate)
    q, steps, closed, residual, _ = close_loops(problem, begin, max_steps)
    result = if_closed(RESULTS.successful, closed, RESULTS.not_assembled)
    assembly = Assembly(mech, q, residual, steps, result, begin)
    if throw and not check_closed(mech, problem, begin, q, closed, jnp.zeros(()), fixed):
        return eqx.tree_at(lambda a: a.q, assembly, result.error_if(q, ~closed))
    return assembly


def check_closed(
    mech: Mechanism,
    problem: Problem,
    begin: Estimate,
    q: Float[Array, " nq"],
    closed: Bool[Array, ""],
    t: Float[Array, ""],
    positions: Container[str] = (),
) -> bool:
    """Raises where loops stay open, and says why; warns where the position found is far from what was asked for. False
    where nobody can look."""
    if (seen := visible(mech, problem, begin, q, closed, t)) is None:
        return False
    mech, problem, begin, q, closed, t = seen
    if not bool(closed):
        raise ValueError(explain(mech, problem, q, float(t), positions))
    begin.warn(mech, q)
    return True


def explain(
    mech: Mechanism, problem: Problem, q: Float[Array, " nq"], t: float = 0.0, positions: Container[str] = ()
) -> str:
    """Why a mechanism was not assembled: two drivers or `positions` of one freedom, a poor estimate, or no position at
    all, and what stays open."""
    if len(problem.columns) + len(problem.gauges) > 1:
        fault = driver_fault(mech, problem.with_mode(None), q, False, jnp.asarray(t, q.dtype), positions)
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
    found, _, closed, r, _ = jax.vmap(lambda q: levenberg_marquardt(problem, q, t, 200))(starts)
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
