"""Whether friction holds a mechanism where it is: forces within their limits that balance, and by how much."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._events.closure import if_closed, is_closed
from .._events.results import RESULTS
from .._kinematics.drive import problem as make_problem
from .._model.mechanism import Mechanism
from .._programs.batch import AbstractBatch
from .._programs.custom_types import ByName, Number
from .._programs.precision import as_float
from .._programs.reprs import brief
from .._programs.trees import frozen, once
from .build import plant as make_plant
from .friction import SlidingProblem
from .mode import Mode
from .plant import Plant
from .rest import carried_at_rest, rest_load
from .state import State, first_mode, state_of


_MOST = 1e6  # what friction would have to be more than this many times larger for is not held by any
_NONE = 1e-13  # of the loads: what limits are raised by less is nothing
_ACTIVE = 1e-7  # of the largest force: a limit that is nearer is reached


class Holding(AbstractBatch):
    """Whether a mechanism stays where it is.

    - `share`: the smallest part of all friction limits with which forces can be found that balance; what is held has at
        most 1. Infinite where no friction, however large, would do.
    - `held`: whether that is so.
    - `friction`: the friction forces then, of the contacts and joints that have friction, in the order of `names`.
    - `press`: the normal forces of all contacts.
    - `state`: the mechanism at rest there.
    - `result`: a member of [`mbsjax.RESULTS`][], whether there is such a position; if not, numbers are NaN.
    """

    mech: Mechanism
    share: Float[Array, "*batch"]
    friction: Float[Array, "*batch r"]
    press: Float[Array, "*batch c"]
    state: State
    result: RESULTS

    @property
    def batch(self) -> tuple[int, ...]:
        return self.share.shape

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(x.name for x in (*self.mech.contacts, *self.mech.joints) if x.friction is not None)

    @property
    def held(self) -> Bool[Array, "*batch"]:
        return self.share <= 1 + 1e-12

    def __repr__(self) -> str:
        return brief(self, share=self.share, friction=self.friction, press=self.press)


def holding(
    mech: Mechanism,
    positions: ByName | Array | None = None,
    *,
    fixed: tuple[str, ...] = (),
    t: Number = 0.0,
    estimate: ByName | Array | None = None,
    throw: bool = True,
) -> Holding:
    """Whether friction holds a mechanism at rest in a position, against its weight, springs and loads.

    There is more than one way to share a load among pairs that stick. Held is what can be held: if there are normal
    forces that push and friction forces within their limits that balance. How small all limits could be made together
    is found by linear programs; it depends smoothly on all dimensions, loads and coefficients as long as the same
    limits are reached.

    **Arguments:**

    - `mech`: the mechanism. Its `active` contacts touch; the others are open.
    - `positions`, `estimate`: as in [`mbsjax.state`][].
    - `fixed`: coordinates that something else holds, as a motor or a hand, by name.
    - `t`: the time, for forces that depend on it.
    - `throw`: whether to raise where there is no such position. Under `jit` or `vmap`, look at `.result`.

    **Returns:** an [`mbsjax.Holding`][], which carries derivatives.

    !!! Example

        A block of mass 2 on a guide, drawn with 3: that is 3/8 of what a coefficient of 0.4 can hold.

        >>> import mbsjax as mbs
        >>> block = mbs.Mechanism(
        ...     [mbs.Body("block", mass=2.0)],
        ...     [mbs.Prismatic("x", "ground", "block", friction=mbs.JointFriction(0.4))],
        ...     forces=[mbs.Actuator("x", 3.0)], gravity=(0.0, -10.0))
        >>> rest = mbs.holding(block)
        >>> bool(rest.held), rest.share.round(9).item()
        (True, 0.375)
    """
    if all(x.friction is None for x in (*mech.contacts, *mech.joints)):
        raise ValueError("nothing has friction in this mechanism: give a contact or a joint `friction=...`")
    begin = state_of(mech, positions, t=t, estimate=estimate, throw=throw)
    names = [fixed] if isinstance(fixed, str) else list(fixed)
    held = {name: 0.0 for name in names}
    plant = make_plant(mech, make_problem(mech, held))
    *forces, closed = _held(plant, tuple(c.active for c in mech.contacts), begin.q, as_float(t, "the time"))
    return Holding(mech, *forces, begin, if_closed(RESULTS.successful, closed, RESULTS.not_assembled))  # pyright: ignore


def holding_limit(f: Callable[[Array], Holding], held: Number, lost: Number) -> Float[Array, ""]:
    """How far something may go until friction no longer holds: the number between `held` and `lost` at which the share
    of `f(x)`, an [`mbsjax.Holding`][], is 1. It carries derivatives with respect to all that `f` depends on.

    !!! Example

        The largest pull that a guide with a coefficient of 0.4 holds against a block of weight 20.

        >>> import mbsjax as mbs
        >>> def pulled(force):
        ...     block = mbs.Mechanism(
        ...         [mbs.Body("block", mass=2.0)],
        ...         [mbs.Prismatic("x", "ground", "block", friction=mbs.JointFriction(0.4))],
        ...         forces=[mbs.Actuator("x", force)], gravity=(0.0, -10.0))
        ...     return mbs.holding(block)
        >>> mbs.holding_limit(pulled, 1.0, 100.0).round(9).item()
        8.0
    """
    share = lambda x: f(x).share
    beyond = lambda x: float(frozen(share(jnp.asarray(x)))) - 1
    a, b = (float(frozen(as_float(x, "an end of the range"))) for x in (held, lost))
    if not beyond(a) <= 0:
        raise ValueError(f"friction does not hold at {a:.6g}: it must, at the first of the two numbers")
    if not beyond(b) > 0:
        raise ValueError(f"friction still holds at {b:.6g}: it must not, at the second of the two numbers")
    # what no friction holds counts as a large share
    x = jnp.asarray(_root(lambda x: float(np.clip(beyond(x), -1.0, 10.0)), a, b))
    value, slope = jax.jvp(share, (x,), (jnp.ones(()),))
    return x - (value - frozen(value)) / frozen(slope)


def _root(f: Callable[[float], float], a: float, b: float) -> float:
    """Where f is zero between a and b, where it has not the same sign."""
    from scipy.optimize import brentq  # here, as most do without it

    find: Any = brentq
    return float(find(f, a, b, xtol=1e-15, rtol=1e-14))


class _Statics(NamedTuple):
    """Multipliers, then friction forces, are z. At rest `balance z + load = 0`, of the freedoms that are left; joints
    carry `wrench + wrench_by z`. Forces are those of pairs with friction as in `SlidingProblem`. All zero where the
    position is not `assembled`."""

    balance: Float[Array, "nu m"]
    load: Float[Array, " nu"]
    normal: Float[Array, " c"]
    wrench: Float[Array, "h rows"]
    wrench_by: Float[Array, "h rows m"]
    assembled: Bool[Array, ""]


def _statics(plant: Plant, q: Array, t: Array, mode: Mode) -> _Statics:
    assert plant.friction is not None
    u, D, rows = plant.problem.unknown, plant.columns, plant.row_sizes
    frame = plant.frame(q, t, mode)
    load, press = rest_load(plant, t, frame, mode), plant.compliant(frame, jnp.zeros_like(frame.gaps), mode)
    closed = plant.closed(mode)[:, None]
    C, T = frame.C / rows[:, None], jnp.where(closed, frame.T, 0.0)
    balance = jnp.concatenate([C[:, u], T[:, u]]).T * D[:, None]
    size = plant.problem.system.size
    normal = press[np.array(plant.friction.contacts, dtype=int)] * size
    n = plant.problem.system.layout.group.rows
    wrench, wrench_by = jnp.zeros((0, n)), jnp.zeros((0, n, len(C) + len(T)))
    if frame.holding is not None:
        wrench = carried_at_rest(plant, t, frame, mode).reshape(-1, n)
        by = -jnp.concatenate([frame.holding.C / rows[:, None], jnp.where(closed, frame.holding.T, 0.0)]).T
        wrench_by = by.reshape(-1, n, by.shape[1])
    assembled = is_closed(frame.residual / rows)
    forces = _Statics(balance, load[u] * D, normal, wrench, wrench_by, assembled)
    return jax.tree_util.tree_map(lambda x: jnp.where(assembled, x, jnp.zeros_like(x)), forces)


def _loads(plant: Plant, statics: _Statics, z: Array) -> Array:
    """The normal loads of all pairs with friction, where z are the multipliers and friction forces."""
    assert plant.friction is not None
    m, r = len(z) - plant.friction.count, plant.friction.count
    rigid = np.flatnonzero(plant.rigid).tolist()
    first = m - len(rigid)
    by = np.zeros((len(plant.friction.contacts), m))
    for i, k in enumerate(plant.friction.contacts):
        if k in rigid:
            by[i, first + rigid.index(k)] = 1.0
    normal = statics.normal + by @ z[:m]
    none = jnp.zeros(r)
    carried = statics.wrench + statics.wrench_by @ z
    known = (normal, jnp.zeros((len(normal), r)), carried, jnp.zeros((*carried.shape, r)))
    return plant.friction.normal_loads(SlidingProblem(none, none, jnp.zeros((r, r)), none, *known), none)[0]


@once
def _held(plant: Plant, active: tuple[bool, ...], q: Array, t: Array) -> tuple[Array, Array, Array, Array]:
    """The share, the friction forces, the normal forces, and whether the position is closed; else they are NaN."""
    assert plant.friction is not None
    r, rigid = plant.friction.count, np.flatnonzero(plant.rigid)
    mode = first_mode(plant, active, q)
    if mode.signs.shape[0]:
        frame = plant.frame(q, t, mode)
        mode = mode.sided(plant.switches(t, frame.q, jnp.zeros(len(plant.names[0])), frame))
    mode = frozen(mode)
    statics = _statics(plant, q, t, mode)
    m = statics.balance.shape[1] - r
    closed, on = plant.closed(mode), jnp.zeros(m, bool).at[m - len(rigid) :].set(mode.active[rigid])
    fixed_statics, fixed_plant = frozen((statics, plant))
    zero = jnp.zeros(m + r)
    shapes = jax.ShapeDtypeStruct((m + r + 1,), zero.dtype), jax.ShapeDtypeStruct((r + m,), zero.dtype)
    loads = lambda z: _loads(fixed_plant, fixed_statics, z)
    static = fixed_plant.friction.static

    def improve(state: tuple) -> tuple:
        """One program, with the normal loads linear as they are near the last solution."""
        z, _, _, _, i = state
        by = jax.jacfwd(loads)(z)
        limit = (static[:, None] * by, static * (loads(z) - by @ z))
        found, reached = jax.pure_callback(
            _program, shapes, fixed_statics.balance, fixed_statics.load, *limit, closed, on, vmap_method="sequential"
        )
        moved = jnp.max(jnp.abs(found[:-1] - z)) > 1e-12 * jnp.max(jnp.abs(found[:-1]))
        return found[:-1], found[-1], reached, moved, i + 1

    # what joints carry has a length, which is not linear
    most = 1 if not plant.friction.sides else 16
    begin = (zero, jnp.zeros(()), jnp.zeros(r + m), jnp.ones((), bool), 0)
    z, share, reached, _, _ = jax.lax.while_loop(lambda s: s[3] & (s[4] < most), improve, begin)
    exact = jnp.isfinite(share) & (share > 0)
    share_, z_ = jnp.where(exact, share, 1.0), jnp.where(exact, z, 0.0)

    def equations(x: Array, statics: _Statics, plant: Plant) -> Array:
        z, share = x[:-1], x[-1]
        assert plant.friction is not None
        N = _loads(plant, statics, z)
        edge = reached[:r] * z[m:] - share * plant.friction.static * N
        rows = [statics.balance @ z + statics.load, jnp.where(reached[:r] != 0, edge, 0.0)]
        idle = ~closed | (static == 0)
        rows += [jnp.where(reached[r:] != 0, z[:m], 0.0), jnp.where(idle, z[m:], 0.0)]
        return jnp.concatenate(rows)

    x = jnp.append(z_, share_)
    J = jax.jacfwd(lambda x: equations(x, fixed_statics, fixed_plant))(x)
    step = jnp.linalg.pinv(J, rtol=1e-11) @ equations(x, statics, plant)
    x = x - step
    share = jnp.where(exact, x[-1], share)
    sizes, place = plant.friction.sizes, m - len(rigid)
    press = plant.compliant(plant.frame(q, t, mode), jnp.zeros(len(plant.laws)), mode)
    share = jnp.where(statics.assembled, share, jnp.nan)
    told = jnp.where(jnp.isfinite(share), 1.0, jnp.nan)
    if len(rigid):
        press = press.at[rigid].set(told * jnp.where(on[place:], x[place:m], 0.0) / plant.problem.system.size)
    return share, told * x[m:-1] / sizes, press, statics.assembled


def _program(balance: Any, load: Any, by: Any, base: Any, closed: Any, on: Any) -> tuple[np.ndarray, np.ndarray]:
    """The smallest share of the limits `by z + base` within which friction forces, the last of z, balance, with
    multipliers `on` that push; z; and which limits are reached, with the signs of their forces, then which contacts
    only just touch."""
    balance, load, by, base, closed, on = (np.asarray(x) for x in (balance, load, by, base, closed, on))
    n, r = balance.shape[1], len(base)
    m, none = n - r, np.zeros(r + n - r)
    size = max(np.abs(load).max(initial=0.0), 1e-300)
    rubs = closed & ((np.abs(by).max(1, initial=0.0) > 0) | (base > 0))
    used = np.concatenate([np.ones(m, bool), rubs])
    z = np.zeros(n)
    z[used], _, rank, _ = np.linalg.lstsq(balance[:, used], -load, rcond=1e-11)
    if np.abs(balance @ z + load).max(initial=0.0) > 1e-9 * size:
        return np.append(np.zeros(n), np.inf), none  # no forces at all would do
    share = _share_of(z, m, by, base, on, size)
    if rank < used.sum():
        z, share = _shared(balance, load, by, base, used, on, size)
    if not np.isfinite(share):
        return np.append(np.zeros(n), np.inf), none
    f, limit = z[m:], share * (by @ z + base)
    near = _ACTIVE * max(np.abs(z).max(initial=0.0), size)
    edge = np.where(rubs & (np.abs(np.abs(f) - limit) < near), np.where(f < 0, -1.0, 1.0), 0.0)
    if rank == used.sum() and share > 0:  # one limit decides
        ratio = np.abs(f) / np.where(limit > 0, limit, np.inf)
        edge = np.where(np.arange(r) == np.argmax(ratio), edge, 0.0)
    touching = on & (np.abs(z[:m]) < near)
    return np.append(z, share), np.concatenate([edge, touching.astype(float)])


def _share_of(z: np.ndarray, m: int, by: np.ndarray, base: np.ndarray, on: np.ndarray, size: float) -> float:
    """The share of the limits that these forces take; infinite where contacts would pull."""
    f, limit, small = np.abs(z[m:]), by @ z + base, 1e-12 * size
    if np.any(z[:m][on] < -1e-9 * size) or np.any((limit <= small) & (f > 1e-9 * size)):
        return np.inf
    return float(np.max(f / np.where(limit > small, limit, np.inf), initial=0.0))


def _shared(
    balance: np.ndarray,
    load: np.ndarray,
    by: np.ndarray,
    base: np.ndarray,
    used: np.ndarray,
    on: np.ndarray,
    size: float,
) -> tuple[np.ndarray, float]:
    """The forces with the smallest share, where a load can be held in several ways."""
    from scipy.optimize import linprog

    n, r = balance.shape[1], len(base)
    own = np.eye(n)[n - r :]
    pushes = np.concatenate([on, np.zeros(r, bool)])
    bounds = [(0, None) if push else ((None, None) if use else (0, 0)) for push, use in zip(pushes, used)]
    keep = np.abs(balance).max(1, initial=0.0) > 1e-14
    equal = np.concatenate([balance, np.zeros((len(load), 1))], 1)[keep]
    found: dict[float, np.ndarray] = {}

    def raised(share: float) -> float:
        """The least that the limits would have to be raised by."""
        rows = np.concatenate([own - share * by, -own - share * by])
        rows = np.concatenate([rows, -np.ones((2 * r, 1))], 1)
        limits = share * np.concatenate([base, base]) / size
        program = linprog(np.eye(n + 1)[n], rows, limits, equal, -load[keep] / size, bounds=[*bounds, (-1, None)])
        if program.status != 0:
            return np.inf
        found[share] = program.x[:-1] * size
        return float(program.x[-1]) - _NONE

    if raised(0.0) <= 0:
        return found[0.0], 0.0
    high = 1.0
    while (left := raised(high)) > 0:
        high *= 4
        if high > _MOST or not np.isfinite(left):
            return np.zeros(n), np.inf
    share = _root(raised, 0.0, high)
    raised(share)
    return found[share], share
