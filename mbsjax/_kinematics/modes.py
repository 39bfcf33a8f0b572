"""The modes of a driven motion: which contacts are active, and which coordinates they take hold of (thesis 2.5)."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._events.places import Places
from .._numerics.linalg import echelon, least_squares
from .drive import Problem
from .mode import Mode


SURE = 1e-7  # the least influence by which a contact can move a coordinate, or another contact


def at_rest(problem: Problem, contacts: tuple[int, ...]) -> Mode:
    """A mode with these contacts active and no coordinate resting, to assemble a mechanism in."""
    n, c = len(contacts), len(problem.system.layout.holds)
    nothing, none, middle = (jnp.asarray(x) for x in (np.zeros(n), np.zeros(c, int), np.full(c, 0.5)))
    rests, owner, clock, push = (
        jnp.asarray(x) for x in (np.zeros(n, int), np.array(contacts, int), np.ones(()), np.ones(c))
    )
    return Mode(rests, owner, nothing, nothing, clock, Places(none, none, middle, middle), push)


def start_mode(problem: Problem, q: Array, t: Array, n: int, active: tuple[int, ...]) -> tuple[Mode, Bool[Array, ""]]:
    """The mode of a mechanism with n freedoms beyond its drivers, and whether the active contacts can be active
    together. Coordinates of the tree rest, as many as are independent."""
    _, J, _ = problem.with_mode(None).linearize(q, t)
    plan, unknown = problem.system.layout, problem.unknown
    of_tree = np.isin(plan.owner[unknown], plan.topology.tree) & (np.array(plan.slots)[unknown] >= 0)
    wanted = np.isin(unknown, plan.moves)
    # what cannot rest is made dependent first, what contacts are to move last
    split = echelon(J * np.where(of_tree, np.where(wanted, 0.01, 1.0), 100.0))
    places = jnp.nonzero(~split.dependent & of_tree, size=n, fill_value=0)[0]
    rests = jnp.asarray(unknown)[places]
    c = len(problem.system.layout.holds)
    free, held = jnp.full(n, -1, int), q[jnp.asarray(plan.slots)[rests]]
    elements = at_rest(problem, ())
    mode = elements._replace(rests=rests, owner=free, held=held, drift=jnp.zeros(n), push=jnp.ones(c))
    found = problem.with_mode(mode).on_closest_pairs(q).mode
    assert found is not None
    mode, fits = found, jnp.ones((), bool)
    for k in active:
        now = problem.with_mode(mode)
        row, able, sign = take(now, influence(now, q, t), slopes(now, q)[k], jnp.asarray(k), exchange=False)
        mode = mode._replace(owner=mode.owner.at[row].set(k), push=mode.push.at[k].set(sign))
        fits &= able
    return mode, fits


def slopes(problem: Problem, q: Array) -> Float[Array, "c nv"]:
    assert problem.mode is not None
    system, X = problem.system, problem.system.poses(q)
    return system.gap_jacobian(system.contact_wrenches(system.planes(X), problem.mode)[0], system.twists(q, X))


def influence(problem: Problem, q: Array, t: Array) -> Float[Array, "nv n"]:
    """How all freedoms move when a resting coordinate does, or the gap of the contact that took it opens."""
    _, J, _ = problem.linearize(q, t)
    assert problem.mode is not None
    n = problem.mode.owner.shape[0]
    return jax.vmap(problem.spread, 1, 1)(least_squares(J)(jnp.eye(J.shape[0])[:, J.shape[0] - n :]))


def take(
    problem: Problem, D: Float[Array, "nv n"], slope: Float[Array, " nv"], k: Int[Array, ""], exchange: bool
) -> tuple[Array, Array, Array]:
    """Which coordinate contact k takes when it closes: its own if that rests, else the resting one that its gap depends
    on most; if there is none, it takes over that of a contact which opens when it does. Also whether there is any, and
    the sign of the slope."""
    mode = problem.mode
    assert mode is not None
    gain = slope @ D / problem.system.size
    rest = mode.owner < 0
    its_own = mode.rests == jnp.asarray(problem.system.layout.moves)[k]
    score = jnp.where(rest, jnp.where(its_own, 1e6, 1e3) * jnp.abs(gain), jnp.where(exchange, gain, 0.0))
    row = jnp.argmax(score)
    sign = jnp.sign(gain[row]) * jnp.sign(D[mode.rests[row], row])
    return row, score[row] > SURE, sign
