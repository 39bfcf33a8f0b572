"""Forces for a given motion, rest positions, and small motions about a state."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._events.results import RESULTS
from .._kinematics.assembly import explain
from .._kinematics.drive import problem as make_problem
from .._kinematics.loop_closure import close_loops, guess, with_closed_contacts
from .._kinematics.motion import Motion, kinematics
from .._kinematics.track import Configuration
from .._model.mechanism import Mechanism
from .._numerics.groups import one
from .._programs.batch import AbstractBatch, lane_by_lane
from .._programs.precision import as_float, is_concrete
from .._programs.trees import frozen, once
from .plant import Plant, Stance, plant as make_plant
from .reaction import Reaction, reaction
from .state import State, first_stance


class Efforts(AbstractBatch):
    """The forces that go with a prescribed motion.

    - `motion`: the motion, a [`mbsjax.Motion`][].
    - `drive`: what each driver pushes with, one column for each, in the order they were given (coordinates first,
        then gauges); `efforts["A"]` is one of them by name.
    - `press`: the normal force of every contact.
    """

    motion: Motion
    plant: Plant
    names: tuple[str, ...] = eqx.field(static=True)
    drive: Float[Array, "times nd"]
    press: Float[Array, "times c"]
    stance: Stance

    @property
    def batch(self) -> tuple[int, ...]:
        return self.drive.shape[:-2]

    def __getitem__(self, name: str) -> Array:
        contacts = [c.name for c in self.motion.mech.contacts]
        if name in contacts:
            return self.press[..., contacts.index(name)]
        if name not in self.names:
            known = ", ".join(map(repr, [*self.names, *contacts]))
            raise KeyError(f"{name!r} is neither driven nor a contact; there are {known}")
        return self.drive[..., self.names.index(name)]

    @lane_by_lane
    def reaction(self, joint: str) -> Reaction:
        """What a joint transmits; see [`mbsjax.Reaction`][]."""
        m = self.motion
        return reaction(m.mech, self.plant, joint, m.ts, m.q, m.v, self.stance)


def inverse_dynamics(mech: Mechanism, drive: Mapping[str, Any], ts: Any, **options: Any) -> Efforts:
    """What the drivers of a motion have to push with, and what contacts and joints transmit.

    **Arguments:** as for [`mbsjax.kinematics`][].

    **Returns:** an [`mbsjax.Efforts`][].

    !!! Example

        The torque that turns a pendulum of mass 2 and length 0.5 evenly.

        >>> import mbsjax as mbs
        >>> pendulum = mbs.Mechanism([mbs.Body("bob", mass=2.0, center=(0.5, 0.0))],
        ...                          [mbs.Revolute("O", "ground", "bob")], gravity=(0.0, -10.0))
        >>> efforts = mbs.inverse_dynamics(pendulum, {"O": mbs.constant_speed(jnp.pi)}, jnp.array([0.0, 1.0]))
        >>> efforts["O"].round(9).tolist()
        [10.0, -10.0]
    """
    motion = kinematics(mech, drive, ts, **options)
    problem = make_problem(mech, drive)
    plant = make_plant(mech, problem)
    n, c = len(motion.ts), len(mech.contacts)
    side = jnp.ones((n, sum(force.n_switches for force in mech.forces)))
    if motion.mode is None:
        none = jnp.zeros((n, 0), int)
        zero = jnp.zeros((n, 0))
        stance = Stance(none > 0, none, none, zero, zero, zero, side)
    else:
        mode = motion.mode
        active = jax.vmap(lambda m: m.active)(mode)
        stance = Stance(active, mode.e1, mode.e2, mode.s1, mode.s2, jnp.zeros((n, c)), side)
    stance, drive_, press = _efforts(plant, motion.ts, motion.q, motion.v, stance)
    driven = [mech.coordinates[k] for k in problem.columns] + [mech.gauges[k].name for k in problem.gauges]
    return Efforts(motion, plant, tuple(driven), drive_, press, stance)


@once
def _efforts(plant: Plant, ts: Array, q: Array, v: Array, stance: Stance) -> tuple[Stance, Array, Array]:
    problem, system = plant.problem, plant.problem.system

    def at(t: Array, q: Array, v: Array, stance: Stance):
        frame = plant.frame(q, t, stance)
        if stance.side.shape[0]:
            stance = stance._replace(side=jnp.where(plant.switches(t, frame.q, v, frame) >= 0, 1.0, -1.0))
        now = plant.instant(t, q, plant.momentum(frame, v), stance)
        first = frame.C.shape[0] - int(plant.rigid.sum()) - len(problem.gauges)
        along = []
        for k, (i, target) in enumerate(problem.targets(t)):
            poses = [one(frame.X, system.layout.body_numbers[name]) for name in system.layout.gauge_bodies[i]]
            slope = jax.grad(lambda x, i=i, poses=poses: system.gauges[i].residual(x, *poses))(target)
            along.append(-now.lam[first + k] * slope)
        return stance, jnp.concatenate([now.drive, jnp.stack(along) if along else jnp.zeros(0)]), now.press

    return jax.vmap(at)(ts, q, v, stance)


class Equilibrium(AbstractBatch):
    """A position of rest; of a driven mechanism, of what is not driven.

    - `q`: the stored coordinates; `rest["A"]` reads one.
    - `v`, `t`: the velocities, zero but for what is driven, and the time.
    - `press`: the normal forces of the contacts; `active`, which of them are closed.
    - `stiffness`: the eigenvalues of the second derivative of the potential energy in the freedoms that are left
        (lengths in parts of the mechanism's size), smallest first; infinite where there are fewer freedoms.
    - `stable`: whether all of them are positive.
    - `residual`: the largest generalised force that is left.
    - `steps`: how many Newton steps it took.
    - `result`: a member of [`mbsjax.RESULTS`][].
    """

    mech: Mechanism
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Float[Array, ""]
    press: Float[Array, " c"]
    active: Bool[Array, " c"]
    stiffness: Float[Array, " nu"]
    stable: Bool[Array, ""]
    residual: Float[Array, ""]
    steps: Int[Array, ""]
    result: RESULTS

    @property
    def batch(self) -> tuple[int, ...]:
        return self.q.shape[:-1]

    @lane_by_lane
    def __getitem__(self, name: str) -> Array:
        return Configuration(self.mech, self.q)[name]

    @lane_by_lane
    def point(self, body: str, point: Any = None) -> Array:
        """Where a point of a body stands in ground."""
        return Configuration(self.mech, self.q).point(body, point)

    @property
    @lane_by_lane
    def state(self) -> State:
        """The mechanism at rest there, to begin a simulation from."""
        return State(self.q, self.v, self.t)


def equilibrium(
    mech: Mechanism,
    estimate: Mapping[str, Any] | Array | None = None,
    *,
    fixed: Mapping[str, Any] | None = None,
    drive: Mapping[str, Any] | None = None,
    t: Any = 0.0,
    max_steps: int = 200,
    throw: bool = True,
) -> Equilibrium:
    """Where a mechanism rests under its forces: a minimum of its potential energy, near the estimate.

    Newton's method on the generalised forces, turned downhill where the energy is not convex, so that it ends in stable
    positions; from a position where all forces vanish it does not move, and `stable` tells. Contacts close on the way
    where bodies meet, and open where they would have to pull.

    **Arguments:**

    - `mech`: the mechanism, with masses, forces and gravity. Dampers do nothing at rest.
    - `estimate`: as in [`mbsjax.assemble`][].
    - `fixed`: coordinates or gauges to hold at a value, by name.
    - `drive`, `t`: coordinates that are driven, as in [`mbsjax.simulate`][], and the time to look at. What is found is
        a steady state: the others stand still while the drivers go on, as the balls of a governor do.
    - `max_steps`: how many steps to try.
    - `throw`: whether to raise if none is found. Under `jit` or `vmap`, look at `.result`.

    **Returns:** an [`mbsjax.Equilibrium`][]; its derivatives come from the implicit function theorem.

    !!! Example

        A weight of 10 on a spring of stiffness 20.

        >>> import mbsjax as mbs
        >>> scale = mbs.Mechanism([mbs.Body("pan", mass=1.0)], [mbs.Prismatic("y", "ground", "pan", axis=(0.0, 1.0))],
        ...                       forces=[mbs.Spring("y", stiffness=20.0)], gravity=(0.0, -10.0))
        >>> rest = mbs.equilibrium(scale)
        >>> round(float(rest["y"]), 9), bool(rest.stable)
        (-0.5, True)
    """
    fixed, drive, t = dict(fixed or {}), dict(drive or {}), as_float(t, "the time of an equilibrium")
    problem = make_problem(mech, drive, fixed)
    assembling = with_closed_contacts(mech, problem)
    begin = guess(mech, problem, estimate)
    q, _, closed, *_ = close_loops(assembling, begin, 200, t)
    looking = throw and is_concrete(problem, q)
    if looking and not bool(closed):
        raise ValueError(explain(mech, assembling, q, float(t), fixed))
    if looking:
        begin.warn(mech, q)
    plant = make_plant(mech, problem)
    flags = tuple(c.active for c in mech.contacts)
    *found, steady = _settle(plant, flags, q, t, closed, max_steps, bool(drive))
    rest = Equilibrium(mech, *found)  # pyright: ignore
    if looking and not bool(steady):
        raise ValueError("there is no steady state: a driver moves a loop or a gauge, and with it what is not driven")
    if looking and bool(rest.result != RESULTS.successful):
        raise RuntimeError(f"{RESULTS[rest.result]} The largest force left is {float(rest.residual):.3g}.")
    if throw and not looking:
        rest = eqx.tree_at(lambda r: r.q, rest, rest.result.error_if(rest.q, rest.result != RESULTS.successful))
    return rest


def _rest_forces(
    plant: Plant, q: Array, d: Array, lam: Array, stance: Stance, t: Array, driven: bool
) -> tuple[Array, Array, Array]:
    """What is left of the forces at rest on the freedoms that are not fixed, with multipliers `lam`; the residuals of
    the constraints; and their rows, after a move by d."""
    problem, u = plant.problem, plant.problem.unknown
    moved = problem.system.retract(q, plant.spread(d * plant.columns, jnp.zeros(len(problem.columns))))
    frame = plant.frame(moved, t, stance)
    if stance.side.shape[0]:
        v = plant.spread(jnp.zeros(len(u)), plant.driven(t)[0])
        sides = jnp.where(plant.switches(t, frame.q, v, frame) >= 0, 1.0, -1.0)
        stance = stance._replace(side=sides)
    load = (plant.steady_load if driven else plant.rest_load)(t, frame, stance)
    C = frame.C[:, u] * plant.columns[None] / plant.row_sizes[:, None]
    return load[u] * plant.columns + lam @ C, frame.residual / plant.row_sizes, C


@once
def _settle(plant: Plant, flags: tuple[bool, ...], q0: Array, t: Array, closed: Array, max_steps: int, driven: bool):
    plant_, q0, t_ = frozen((plant, q0, t))
    system = plant_.problem.system
    m, n, c = plant.row_sizes.shape[0], len(plant.problem.unknown), len(plant.laws)
    first = m - int(plant.rigid.sum())
    rigid = np.flatnonzero(plant.rigid)

    def place(q: Array, y: Array) -> Array:
        return system.retract(q, plant_.spread(y * plant_.columns, jnp.zeros(len(plant_.problem.columns))))

    def look(q: Array, stance: Stance):
        """Multipliers, forces that are left, stiffness, and the directions that are free."""
        nothing = jnp.zeros(n)
        load, r, C = _rest_forces(plant_, q, nothing, jnp.zeros(m), stance, t_, driven)
        inverse = jnp.linalg.pinv(C, rtol=1e-9) if m else jnp.zeros((n, 0))
        lam = -load @ inverse
        P = jnp.eye(n) - inverse @ C
        K = -jax.jacfwd(lambda d: _rest_forces(plant_, q, d, lam, stance, t_, driven)[0])(nothing)
        return P @ load, r, C, inverse, lam, P, P @ (K + K.T) / 2 @ P

    def settled(q: Array, stance: Stance) -> Stance:
        """Where the contacts are."""
        if not c:
            return stance
        return system.locate_contacts(system.planes(system.poses(q)), stance)

    def gaps(q: Array, stance: Stance) -> Array:
        return jnp.where(stance.on | ~plant.rigid, jnp.inf, system.closest_pairs(system.planes(system.poses(q))).gap)

    def step(state):
        q, stance, k, _, _ = state
        force, r, _, inverse, lam, P, K = look(q, stance)
        w, V = jnp.linalg.eigh(K)
        large = jnp.max(jnp.abs(w), initial=0.0)
        weight = jnp.maximum(jnp.abs(w), 1e-6 * large + 1e-300)
        d = P @ (V @ ((V.T @ force) / weight))
        d = d / jnp.maximum(1.0, jnp.max(jnp.abs(d), initial=0.0) / 0.3) - inverse @ r
        left = jnp.max(jnp.abs(force), initial=0.0) / size
        off = jnp.max(jnp.abs(r), initial=0.0)

        # as far as the forces do work, and nothing is in the way
        parts = jnp.array([1.0, 0.5, 0.25, 0.1, 0.03, 0.01])

        def tried(a: Array) -> Array:
            later, _, _ = _rest_forces(plant_, place(q, a * d), jnp.zeros(n), jnp.zeros(m), stance, t_, driven)
            return (P @ later) @ d >= -0.5 * jnp.abs(force @ d) - 1e-13 * size * jnp.max(jnp.abs(d), initial=0.0)

        good = jax.vmap(tried)(parts)
        a = parts[jnp.where(jnp.any(good), jnp.argmax(good), len(parts) - 1)]
        pulls = jnp.zeros(c, bool)
        closes = jnp.zeros(c, bool)
        if len(rigid):
            mine = jnp.zeros(c).at[rigid].set(lam[first:])
            worst = jnp.argmin(jnp.where(stance.on, mine, jnp.inf))
            pulls = (jnp.arange(c) == worst) & stance.on & (mine < -1e-12 * size) & (left < 1e-3)
            before, after = gaps(q, stance), gaps(place(q, a * d), stance)
            through = (after < 0) & (before > 1e-9 * system.size)
            reach = jnp.where(through, before / jnp.where(through, before - after, 1.0), 1.0)
            touching = (before <= 1e-7 * system.size) & (after < before) & (before > -1e-3 * system.size)
            closes = touching & ~pulls
            a = a * jnp.min(reach, initial=1.0)
        change = jnp.any(pulls | closes)
        a = jnp.where(change, 0.0, a)
        q = place(q, a * d)
        stance = settled(q, stance._replace(on=(stance.on & ~pulls) | closes))
        done = (left < 1e-13) & (off < 1e-13) & ~change
        tiny = (jnp.max(jnp.abs(a * d), initial=0.0) < 1e-14) & ~change
        return q, stance, k + 1, done | tiny, left

    stance = settled(q0, first_stance(plant_, flags, q0))
    weight = jnp.sum(plant_.inertia.mass) * jnp.sqrt(jnp.sum(plant_.gravity**2)) * system.size
    start, _, _ = _rest_forces(plant_, q0, jnp.zeros(n), jnp.zeros(m), stance, t_, driven)
    size = jnp.max(jnp.abs(start), initial=0.0) + weight + 1e-300  # of the forces, to judge what is left
    state = (q0, stance, jnp.zeros((), int), ~closed, jnp.ones(()))
    q, stance, steps, _, left = jax.lax.while_loop(lambda s: ~s[3] & (s[2] < max_steps), step, state)
    _, _, C, _, lam, P, K = look(q, stance)

    # one Newton step carries the derivatives
    free, r, _ = _rest_forces(plant, q, jnp.zeros(n), lam, stance, t, driven)
    stiff = jax.jacfwd(lambda d: _rest_forces(plant_, q, d, lam, stance, t_, driven)[0])(jnp.zeros(n))
    idle = plant_.idle(stance)
    A = jnp.concatenate([jnp.concatenate([stiff, C.T], 1), jnp.concatenate([C, jnp.diag(idle)], 1)])
    delta = -jnp.linalg.pinv(A, rtol=1e-12) @ jnp.concatenate([free, r])
    along = plant.spread(delta[:n] * plant.columns, jnp.zeros(len(plant.problem.columns)))
    q = plant.problem.system.retract(q, along)
    q = plant.problem.place(q, t)
    forces = (lam + delta[n:]) / plant.row_sizes
    frame = plant.frame(q, t, stance)
    press = plant.compliant(frame, jnp.zeros_like(frame.gaps), stance)
    press = press.at[rigid].set(forces[first:]) if len(rigid) else press
    held = jnp.linalg.matrix_rank(C, rtol=1e-9) if m else 0
    w = jnp.linalg.eigvalsh(K + (jnp.eye(n) - P) * 1e6 * (jnp.max(jnp.abs(K), initial=0.0) + 1e-300))
    w = jnp.where(jnp.arange(n) < n - held, w, jnp.inf)
    result = RESULTS.where(left < 1e-9, RESULTS.successful, RESULTS.no_equilibrium)
    result = RESULTS.where(closed, result, RESULTS.not_assembled)
    stable = jnp.all(w > 1e-9 * jnp.max(jnp.abs(K), initial=0.0))
    v_d = plant.driven(t)[0]
    v = plant.spread(jnp.zeros(n), v_d)
    slip = (frame.C @ v + frame.drift) / plant.row_sizes  # of loops and gauges that the drivers move
    speed = jnp.max(jnp.abs(v / system.column_sizes()), initial=0.0) + jnp.max(jnp.abs(frame.drift), initial=0.0)
    steady = jnp.max(jnp.abs(slip), initial=0.0) <= 1e-9 * speed
    result = RESULTS.where(steady, result, RESULTS.no_equilibrium)
    return q, v, t, press, stance.on, w, stable, left * size, steps, result, steady


class Linearisation(eqx.Module):
    """Small motions about a state: x' = A x, where x holds displacements z along the directions `Z` and their rates.

    - `A`: the matrix.
    - `Z`: the directions, in the freedoms of the mechanism (columns).
    - `eigenvalues`: of A; for vibrations about a stable rest they are imaginary.
    """

    A: Float[Array, "n n"]
    Z: Float[Array, "nv k"]

    @property
    def eigenvalues(self) -> Array:
        return jnp.linalg.eigvals(self.A)


def linearise(mech: Mechanism, state0: State, *, drive: Mapping[str, Any] | None = None) -> Linearisation:
    """The linear equations of small motions about a state, with the contacts that are `active` held. It looks at
    values: not under `jit`, `vmap` or `grad`.

    !!! Example

        >>> import mbsjax as mbs
        >>> pendulum = mbs.Mechanism([mbs.Body("bob", mass=1.0, center=(0.0, -2.5))],
        ...                          [mbs.Revolute("O", "ground", "bob")], gravity=(0.0, -10.0))
        >>> mbs.linearise(pendulum, mbs.state(pendulum)).A.round(9).tolist()
        [[0.0, 1.0], [-4.0, 0.0]]
    """
    plant = make_plant(mech, make_problem(mech, dict(drive or {})))
    if not is_concrete(plant, state0):
        raise ValueError(
            "`linearise` looks at values, to count the freedoms that are left: it cannot be called under jit, vmap or "
            "grad"
        )
    stance = first_stance(plant, tuple(c.active for c in mech.contacts), state0.q)
    C = np.asarray(_rows(plant, state0.q, state0.t, stance))
    _, s, V = np.linalg.svd(C, full_matrices=True)
    rank = int(np.sum(s > 1e-9 * max(s.max(initial=0.0), 1e-300)))
    return Linearisation(*_linear(plant, jnp.asarray(V[rank:].T), state0, stance))


@once
def _rows(plant: Plant, q: Array, t: Array, stance: Stance) -> Array:
    frame = plant.frame(q, t, stance)
    return frame.C[:, plant.problem.unknown] * plant.columns[None] / plant.row_sizes[:, None]


@once
def _linear(plant: Plant, Z: Array, state0: State, stance: Stance) -> tuple[Array, Array]:
    t, n, nd = state0.t, Z.shape[1], len(plant.problem.columns)
    spread = lambda y: plant.spread(y * plant.columns, jnp.zeros(nd))
    if stance.side.shape[0]:
        frame = plant.frame(state0.q, t, stance)
        sides = jnp.where(plant.switches(t, frame.q, state0.v, frame) >= 0, 1.0, -1.0)
        stance = stance._replace(side=sides)

    def accelerations(x: Array) -> Array:
        q = plant.problem.system.retract(state0.q, spread(Z @ x[:n]))
        for _ in range(2):
            q = plant.project(q, t, stance)
        frame = plant.frame(q, t, stance)
        v = state0.v + spread(Z @ x[n:])
        now = plant.instant(t, q, plant.momentum(frame, v), stance)
        return Z.T @ (now.a[plant.problem.unknown] / plant.columns)

    rows = jax.jacfwd(accelerations)(jnp.zeros(2 * n))
    top = jnp.concatenate([jnp.zeros((n, n)), jnp.eye(n)], 1)
    return jnp.concatenate([top, rows]), jax.vmap(spread, 1, 1)(Z)
