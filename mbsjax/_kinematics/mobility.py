"""Degrees of freedom, redundant equations, independent coordinates, and whether drivers fit."""

from collections.abc import Container, Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._model.mechanism import Mechanism
from .._numerics.linalg import Echelon, echelon
from .._programs.precision import visible
from .._programs.reprs import by_fields
from .._programs.trees import once
from .drive import Problem, problem as make_problem
from .equations import linearize
from .loop_closure import close_loops, guess, levenberg_marquardt, with_closed_contacts


class Partition(NamedTuple):
    """Independent and dependent coordinates at a position (thesis 2.2.4.2). Shapes do not depend on values.

    - `rank`: the rank of the Jacobian of all loops and held gauges.
    - `independent`: which degrees of freedom are independent.
    - `redundant`: which equations follow from the others.
    - `K`: influence coefficients: the velocities of all degrees of freedom are `K @ v`, where only the independent
        entries of `v` count. (2.2.4-41) lacks a minus sign.
    """

    rank: Int[Array, ""]
    independent: Bool[Array, " nv"]
    redundant: Bool[Array, " m"]
    K: Float[Array, "nv nv"]

    __repr__ = by_fields


class Mobility(NamedTuple):
    """What [`mbsjax.mobility`][] found.

    - `counted`: degrees of freedom by counting coordinates and equations.
    - `freedom`: degrees of freedom by rank: all that move away from this position.
    - `rank`, `equations`: of the Jacobian of all loops and held gauges.
    - `redundant`: names of equations that follow from the others.
    - `independent`: names of a set of independent coordinates.
    - `isolated`: whether the rank is lower here than in the neighborhood, by how much: a singular position.
    """

    counted: int
    freedom: int
    rank: int
    equations: int
    redundant: tuple[str, ...]
    independent: tuple[str, ...]
    isolated: int

    __repr__ = by_fields


@once
def partition(mech: Mechanism, q: Float[Array, " nq"]) -> Partition:
    """Splits the degrees of freedom at the position `q` by total pivoting on the Jacobian.

    !!! Example

        >>> import mbsjax as mbs
        >>> mech = mbs.Mechanism([mbs.Body("bob")], [mbs.Revolute("O", "ground", "bob")])
        >>> partition(mech, mech.start).independent.tolist()
        [True]
    """
    problem = make_problem(mech, {})
    found = _echelon(problem, q)
    sizes = problem.system.column_sizes()
    K = found.K * sizes[:, None] / sizes[None, :]
    return Partition(found.rank, ~found.dependent, ~found.used, K)


def mobility(mech: Mechanism, q: Float[Array, " nq"] | None = None, *, active: Iterable[str] | None = None) -> Mobility:
    """Degrees of freedom of a mechanism, counted and by rank, at an assembled position `q`.

    Without `q`, the position assembled from the joints' own estimates. The neighborhood is looked at as
    well, so that a singular position is told from a redundant equation (Haug 4.6). `active` names the contacts that are
    taken as active, on the elements that are closest; by default those that are active from the start.

    !!! Example

        >>> import mbsjax as mbs
        >>> mech = mbs.Mechanism([mbs.Body("bob")], [mbs.Revolute("O", "ground", "bob")])
        >>> mobility(mech).freedom
        1
    """
    problem = with_closed_contacts(mech, make_problem(mech, {}), active)
    if q is None:
        q, _, closed, *_ = close_loops(problem, guess(mech, problem, None), 200)
        if not bool(closed):
            raise ValueError("the mechanism was not assembled from its own estimates: call assemble, and pass its q")
    here, near = _here_and_near(problem, q)
    names = equation_names(mech, problem)
    n = len(mech.coordinates)
    return Mobility(
        counted=n - len(names),
        freedom=n - int(near.rank),
        rank=int(here.rank),
        equations=len(names),
        redundant=tuple(x for x, used in zip(names, np.asarray(near.used), strict=True) if not used),
        independent=tuple(c for c, d in zip(mech.coordinates, np.asarray(near.dependent), strict=True) if not d),
        isolated=int(near.rank) - int(here.rank),
    )


def equation_names(mech: Mechanism, problem: Problem) -> list[str]:
    """A name for every row of the Jacobian."""
    graph = mech.topology
    rows = problem.system.layout.group.row_names
    loops = [f"{graph.joints[chord][0]}: {row}" for chord in graph.chords for row in rows]
    held = [] if problem.mode is None else [mech.contacts[int(k)].name for k in problem.mode.owner]
    return loops + [mech.gauges[i].name for i in problem.gauges] + held


def check_drivers(mech: Mechanism, problem: Problem, q: Array, closed: bool, t: Array) -> None:
    """Raises when drivers are too few, or too many, for the freedom of the mechanism."""
    fault = driver_fault(mech, problem, q, closed, t)
    if fault:
        raise ValueError(fault)


def driver_fault(
    mech: Mechanism, problem: Problem, q: Array, closed: bool, t: Array, positions: Container[str] | None = None
) -> str:
    """Why drivers are too few, or too many; where there are `positions` to hold among them, only why they are too many.
    Nothing, if they are not."""
    kinematic = make_problem(mech, {})
    if not closed:  # perhaps because of the drivers: let go of them
        q, free = _search(kinematic, q, t)
        if not bool(free):
            return ""  # the mechanism itself does not close; that is told elsewhere
    look = lambda q: _driver_fault(mech, kinematic, problem, q, closed, t, positions)
    # a singular position may look like a fault: what counts is the neighborhood
    return look(q) and look(_generic(kinematic, q, t))


def counted_freedoms(problem: Problem) -> int:
    """How many freedoms the drivers leave, if no equation follows from others."""
    return max(len(problem.unknown) - problem.row_sizes.shape[0], 0)


def spare_freedoms(problem: Problem, q: Array, t: Array) -> int:
    """How many freedoms the drivers leave: by rank if numbers are known, else by counting."""
    problem = problem.with_mode(None)
    counted = counted_freedoms(problem)
    if (seen := visible(problem, q, t)) is None:
        return counted
    problem, q, t = seen

    def free(q: Array) -> int:
        J = np.asarray(_unknown_jacobian(problem, q, t))
        return J.shape[1] - (int(np.linalg.matrix_rank(J, tol=1e-8)) if J.size else 0)

    found = free(q)
    return found if found == counted else free(_generic(problem, q, t))  # singular, or redundant


def _driver_fault(
    mech: Mechanism,
    kinematic: Problem,
    driven: Problem,
    q: Array,
    closed: bool,
    t: Array,
    positions: Container[str] | None,
) -> str:
    rows = np.asarray(_jacobian(driven, q, t))
    loops, in_gauges = np.split(rows, [len(rows) - len(driven.gauges)])
    J = np.concatenate([loops, in_gauges[[driven.gauges.index(i) for i in kinematic.gauges]]])
    rank = np.linalg.matrix_rank(J, tol=1e-8) if J.size else 0
    allowed = np.linalg.svd(J, full_matrices=True)[2][rank:] if J.size else np.eye(J.shape[1])
    freedom = len(allowed)
    gauges = [i for i in driven.gauges if i not in kinematic.gauges]
    names = [mech.coordinates[i] for i in driven.columns] + [mech.gauges[i].name for i in gauges]
    rows = [allowed[:, i] for i in driven.columns] + [allowed @ in_gauges[driven.gauges.index(i)] for i in gauges]
    kept: list[np.ndarray] = []
    for i, (name, row) in enumerate(zip(names, rows, strict=True)):
        if np.linalg.matrix_rank(np.array([*kept, row]), tol=1e-8) == len(kept):
            others = ", ".join(map(repr, names[:i]))
            because = f"already follows from {others}" if others else "cannot move at all"
            what = "position" if name in (positions or ()) else "driver"
            agree = "they agree at the first time" if closed else "they contradict each other at the first time"
            return (
                f"the {what} of {name!r} over-determines the motion: the mechanism has {freedom} degree(s) of "
                f"freedom, and {name!r} {because}" + (f"; {agree}" if others else "")
            )
        kept.append(row)
    if len(kept) < freedom and not mech.contacts and positions is None:  # with contacts, what is not driven rests
        free = [c for c in mech.coordinates if c not in names and _moves(mech, allowed, kept, c)]
        return (
            f"{freedom - len(kept)} driver(s) missing: the mechanism has {freedom} degree(s) of freedom and "
            f"{len(kept)} driver(s); coordinates that could be driven are {', '.join(map(repr, free))}"
        )
    return ""


def _moves(mech: Mechanism, allowed: np.ndarray, kept: list[np.ndarray], coordinate: str) -> bool:
    """Whether a coordinate still moves when what is kept stands still."""
    row = allowed[:, mech.coordinates.index(coordinate)]
    return bool(np.linalg.matrix_rank(np.array([*kept, row]), tol=1e-8) > len(kept))


def _echelon(problem: Problem, q: Array) -> Echelon:
    return echelon(problem.on_closest_pairs(q).linearize(q, jnp.zeros(()))[1])


@once
def _jacobian(problem: Problem, q: Array, t: Array) -> Array:
    """The Jacobian of all loops and all gauges that have a value or a driver, in all freedoms; scaled."""
    _, J = linearize(problem.system, q, problem.targets(t))
    return J * problem.system.column_sizes() / problem.row_sizes[:, None]


@once
def _unknown_jacobian(problem: Problem, q: Array, t: Array) -> Array:
    return problem.linearize(q, t)[1]


@once
def _search(problem: Problem, q: Array, t: Array) -> tuple[Array, Array]:
    found, _, closed, *_ = levenberg_marquardt(problem, q, t, 200)
    return found, closed


@once
def _generic(problem: Problem, q: Array, t: Array) -> Array:
    """An assembled position next to q: a random direction that the loops allow, and the coordinate that moves most
    along it held, so that a singular q does not draw it back."""
    _, J, _ = problem.linearize(q, t)
    if J.shape[1] == 0:
        return q
    push = jax.random.normal(jax.random.key(0), (J.shape[1],))
    allowed = push - jnp.linalg.pinv(J, rtol=1e-7) @ (J @ push) if J.shape[0] else push
    held = jnp.arange(len(push)) == jnp.argmax(jnp.abs(allowed))
    near, _, closed, *_ = levenberg_marquardt(
        problem, problem.move(q, 2e-2 * allowed / jnp.max(jnp.abs(allowed))), t, 200, ~held
    )
    return jnp.where(closed, near, q)


@once
def _here_and_near(problem: Problem, q: Array) -> tuple[Echelon, Echelon]:
    return _echelon(problem, q), _echelon(problem, _generic(problem, q, jnp.zeros(())))
