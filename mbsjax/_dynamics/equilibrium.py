"""Positions of rest: where the forces on a mechanism balance."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._events.closure import if_closed, is_closed
from .._events.results import RESULTS
from .._kinematics.assembly import check_closed
from .._kinematics.drive import problem as make_problem
from .._kinematics.loop_closure import close_loops, guess, with_closed_contacts
from .._kinematics.track import AbstractPosition
from .._model.mechanism import Mechanism
from .._programs.batch import lane_by_lane, single
from .._programs.custom_types import ByName, Laws, Number
from .._programs.precision import TINY, number, value, visible, whole
from .._programs.reprs import brief
from .._programs.trees import frozen, once
from .applied import ForceTrack, driver_names, effort_of, force_of, gauge_efforts, sided
from .build import plant as make_plant
from .instant import Frame
from .mode import Mode
from .plant import Plant
from .reaction import Reaction, rest_reaction
from .rest import rest_load, steady_load
from .state import State, first_mode


_BALANCED = 1e-9  # of all forces: where less is left of them, it rests


class Equilibrium(AbstractPosition):
    """A position of rest; in a driven mechanism, of the parts that no driver moves.

    - `q`: the stored coordinates; `rest["A"]` reads one.
    - `v`, `t`: the velocities, zero but for what is driven, and the time.
    - `press`: the normal forces of the contacts; `active`, which of them are closed.
    - `drive`: what holds each coordinate or gauge that is fixed or driven, in the order of `names`.
    - `kinetic`, `potential`: energies; kinetic of what is driven.
    - `stiffness`: the eigenvalues of the second derivative of the potential energy in the degrees of freedom that
        are left (lengths in parts of the mechanism's size), smallest first; infinite where there are fewer.
    - `stable`: whether all of them are positive.
    - `residual`: the largest generalized force that is left.
    - `steps`: how many Newton steps it took.
    - `result`: a member of [`mbsjax.RESULTS`][].
    """

    mech: Mechanism
    plant: Plant
    q: Float[Array, " nq"]
    v: Float[Array, " nv"]
    t: Float[Array, ""]
    press: Float[Array, " c"]
    active: Bool[Array, " c"]
    drive: Float[Array, " nd"]
    kinetic: Float[Array, ""]
    potential: Float[Array, ""]
    stiffness: Float[Array, " nu"]
    stable: Bool[Array, ""]
    residual: Float[Array, ""]
    steps: Int[Array, ""]
    result: RESULTS
    mode: Mode

    @property
    def names(self) -> tuple[str, ...]:
        """What is fixed or driven: coordinates first, then gauges."""
        return driver_names(self.mech, self.plant.problem)

    @property
    def energy(self) -> Float[Array, "*batch"]:
        """Kinetic and potential energy together."""
        return self.kinetic + self.potential

    def effort(self, name: str) -> Array:
        """What holds a coordinate or gauge that is fixed or driven.

        !!! Example

            The torque that holds a weight of 20 on a horizontal arm of 0.5.

            >>> import mbsjax as mbs
            >>> arm = mbs.Mechanism([mbs.Body("arm", mass=2.0, center=(0.5, 0.0))],
            ...                     [mbs.Revolute("O", "ground", "arm")], gravity=(0.0, -10.0))
            >>> rest = mbs.equilibrium(arm, fixed={"O": 0.0})
            >>> rest.effort("O").item(), rest.reaction("O").force_ground.tolist()
            (10.0, [0.0, 20.0])
        """
        return effort_of(self.names, self.drive, name)

    def columns(self) -> dict[str, float]:
        """All there is to read by name, as of other analyses: `A.q` of every coordinate and gauge, points of interest,
        `C.gap` and `C.force` of contacts, forces, reactions, what holds the coordinates that are fixed, energies."""
        single(self, "a table can be made")
        found: dict[str, Any] = {}
        for name in (*self.mech.coordinates, *(gauge.name for gauge in self.mech.gauges)):
            found[f"{name}.q"] = self[name]
        for body in self.mech.bodies:
            for point in body.points:
                place = self.point(body.name, point)
                found |= {f"{body.name}.{point}.{axis}": x for axis, x in zip("xyz", place)}
        for k, contact in enumerate(self.mech.contacts):
            found |= {f"{contact.name}.gap": self.contact(contact.name)[2], f"{contact.name}.force": self.press[k]}
        for force in self.mech.forces:
            track = self.force(force.name)
            found |= {f"{force.name}.{what}": x for what, x in zip(("force", "length"), track) if x is not None}
        found |= {f"{name}.effort": self.effort(name) for name in self.names}
        for joint in self.mech.joints:
            found |= self.reaction(joint.name).columns(joint.name)
        return {name: float(x) for name, x in (found | {"potential": self.potential}).items()}

    @lane_by_lane
    def reaction(self, joint: str) -> Reaction:
        """What a joint transmits; see [`mbsjax.Reaction`][]. Joints that share it in more than one way share it evenly:
        the smallest forces that balance."""
        return rest_reaction(self.mech, self.plant, joint, self.t, self.q, self.mode)

    @lane_by_lane
    def force(self, name: str) -> ForceTrack:
        """A spring, an actuator or a load, by its name; see [`mbsjax.ForceTrack`][]."""
        one = lambda x: jax.tree_util.tree_map(lambda x: x[None], x)
        track = force_of(self.mech, self.plant, name, *one((self.t, self.q, self.v, self.mode)))
        return jax.tree_util.tree_map(lambda x: x[0], track)

    @property
    @lane_by_lane
    def state(self) -> State:
        """The mechanism at rest there, to begin a simulation from."""
        return State(self.q, self.v, self.t)

    def __repr__(self) -> str:
        contacts = {"press": self.press, "active": self.active} if self.mech.contacts else {}
        return brief(
            self, q=self.q, **contacts, stable=self.stable, residual=self.residual, steps=self.steps, result=self.result
        )


def equilibrium(
    mech: Mechanism,
    estimate: ByName | Array | None = None,
    *,
    fixed: ByName | None = None,
    drive: Laws | None = None,
    t: Number = 0.0,
    max_steps: int = 200,
    throw: bool = True,
) -> Equilibrium:
    """Where a mechanism rests under its forces: a minimum of its potential energy, near the estimate.

    Newton's method on the generalized forces, turned downhill where the energy is not convex, so that it ends in stable
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
    fixed, drive, t = dict(fixed or {}), dict(drive or {}), number(t, "the time of an equilibrium")
    max_steps = whole(max_steps, "`max_steps`", 1)
    problem = make_problem(mech, drive, fixed)
    assembling = with_closed_contacts(mech, problem)
    begin = guess(mech, problem, estimate)
    q, _, closed, *_ = close_loops(assembling, begin, 200, t)
    if throw:
        check_closed(mech, assembling, begin, q, closed, t, fixed)
    plant = make_plant(mech, problem)
    flags = tuple(c.active for c in mech.contacts)
    if throw and drive and value(_steady(plant, flags, q, t)) == 0:
        raise Unsteady("there is no steady state: a driver moves a loop or a gauge, and with it what is not driven")
    rest = Equilibrium(mech, plant, *_settle(plant, flags, q, t, closed, max_steps, bool(drive)))  # pyright: ignore
    return _checked(rest) if throw else rest


def _checked(rest: Equilibrium) -> Equilibrium:
    """Raises where no position of rest was found: at once, or, where nobody can look, once its numbers are known."""
    if (seen := visible(rest.result, rest.residual)) is None:
        q = rest.result.error_if(rest.q, rest.result != RESULTS.successful)
        return eqx.tree_at(lambda r: r.q, rest, q)
    result, residual = seen
    if bool(result != RESULTS.successful):
        raise RuntimeError(f"{RESULTS[result]} The largest force left is {float(residual):.3g}.")
    return rest


class Unsteady(ValueError):
    """Drivers leave nothing at rest."""


def _rest_forces(plant: Plant, q: Array, d: Array, mode: Mode, t: Array, driven: bool) -> tuple[Array, Array, Array]:
    """The forces at rest along the freedoms that are not fixed, without those of the constraints; the residuals of
    the constraints; and their rows, after a move by d."""
    u = plant.problem.unknown
    frame = plant.frame(_moved(plant, q, d), t, mode)
    if mode.signs.shape[0]:
        mode = sided(plant, frame, t, plant.spread(jnp.zeros(len(u)), plant.driven(t)[0]), mode)
    load = (steady_load if driven else rest_load)(plant, t, frame, mode)
    C = frame.C[:, u] * plant.columns[None] / plant.row_sizes[:, None]
    return load[u] * plant.columns, frame.residual / plant.row_sizes, C


def _stiffness_matrix(plant: Plant, q: Array, lam: Array, mode: Mode, t: Array, driven: bool) -> Float[Array, "n n"]:
    """How forces and constraint forces, with the multipliers `lam` held, fall along the freedoms."""

    def force(d: Array) -> Array:
        load, _, C = _rest_forces(plant, q, d, mode, t, driven)
        return load + lam @ C

    return -jax.jacfwd(force)(jnp.zeros(len(plant.problem.unknown)))


def _moved(plant: Plant, q: Array, d: Array) -> Array:
    """The position after a move by d along the freedoms that are not fixed, in parts of their sizes."""
    return plant.problem.system.retract(q, plant.spread(d * plant.columns, jnp.zeros(len(plant.problem.columns))))


class _Balance(NamedTuple):
    """The balance of forces at a position.

    - `residual`, `C`, `back`: of the constraints, their rows, and the pseudoinverse of these.
    - `Z`: the directions that the constraints leave free, as columns; zero in place of those that they hold.
    - `force`: what is left of the forces along these; `lam`: the multipliers of the constraints.
    - `stiffness`, `axes`: the eigenvalues of the stiffness along the free directions, smallest first, infinite in
        place of what is held; and its eigenvectors.
    """

    residual: Array
    C: Array
    back: Array
    Z: Array
    force: Array
    lam: Array
    stiffness: Array
    axes: Array


def _balance(plant: Plant, q: Array, mode: Mode, t: Array, driven: bool) -> _Balance:
    """Forces, constraints and stiffness at a position, with the multipliers that leave the least force."""
    n = len(plant.problem.unknown)
    load, r, C = _rest_forces(plant, q, jnp.zeros(n), mode, t, driven)
    Z, back, free = jnp.eye(n), jnp.zeros((n, 0)), jnp.ones(n, bool)
    if C.shape[0]:
        # the free directions are picked, not projected onto: a projection leaves rounding errors of what is held, and
        # where nothing is free, the quotient of two of them would be a step
        U, s, V = jnp.linalg.svd(C, full_matrices=True)
        k, seen = len(s), s > 1e-9 * jnp.max(s, initial=0.0)
        back = (V[:k].T * jnp.where(seen, 1 / jnp.where(seen, s, 1.0), 0.0)) @ U[:, :k].T
        free = jnp.arange(n) >= jnp.sum(seen)
        Z = jnp.where(free, V.T, 0.0)
    lam = -load @ back
    K = _stiffness_matrix(plant, q, lam, mode, t, driven)
    K = Z.T @ (K + K.T) @ Z / 2
    held = jnp.where(free, 0.0, 1e6 * (jnp.max(jnp.abs(K), initial=0.0) + TINY()))  # so that it comes last
    w, axes = jnp.linalg.eigh(K + jnp.diag(held))
    w = jnp.where(jnp.arange(n) < jnp.sum(free), w, jnp.inf)
    return _Balance(r, C, back, Z, Z.T @ load, lam, w, axes)


def _newton_step(now: _Balance) -> tuple[Array, Array]:
    """Newton's step along the free directions, downhill where the energy is not convex, of limited length; and the step
    back to the constraints."""
    free = jnp.isfinite(now.stiffness)
    w = jnp.where(free, jnp.abs(now.stiffness), 0.0)
    weight = jnp.maximum(w, 1e-11 * jnp.max(w, initial=0.0) + TINY())
    d = now.Z @ (now.axes @ jnp.where(free, (now.axes.T @ now.force) / weight, 0.0))
    return d / jnp.maximum(1.0, _largest(d) / 0.3), -now.back @ now.residual


def _line_search(
    plant: Plant, q: Array, slide: Array, back: Array, now: _Balance, mode: Mode, t: Array, driven: bool, size: Array
) -> Array:
    """The largest part of a step, of a few, on which the forces do work, and after which it is not further to the
    constraints than the step allows for."""
    parts = jnp.array([0.01, 0.03, 0.1, 0.25, 0.5, 1.0])
    reach, first = _largest(slide), now.force @ (now.Z.T @ slide)

    def look(a: Array) -> tuple[Array, Array]:
        there = _moved(plant, q, a * (slide + back))
        later, r, C = _rest_forces(plant, there, jnp.zeros_like(slide), mode, t, driven)
        # with the multipliers, the work is that along the constraints, which the step leaves as they bend
        return (later + now.lam @ C) @ slide, _largest(now.back @ r)

    power, off = jax.vmap(look)(parts)
    power = jnp.concatenate([first[None], power])
    lengths = jnp.diff(parts, prepend=0.0)
    work = jnp.cumsum(lengths * (power[1:] + power[:-1]) / 2)
    good = work >= 0.1 * parts * first - 1e-13 * size * reach
    good &= off <= (1 - parts / 2) * _largest(back) + 0.5 * parts * reach + 1e-12
    return parts[jnp.where(jnp.any(good), len(parts) - 1 - jnp.argmax(good[::-1]), 0)]


def _largest(x: Array) -> Array:
    return jnp.max(jnp.abs(x), initial=0.0)


def _located(plant: Plant, q: Array, mode: Mode) -> Mode:
    """The contact state with the elements and places of its contacts at a position."""
    if not plant.laws:
        return mode
    system = plant.problem.system
    return system.locate_contacts(system.planes(system.poses(q)), mode)


def _open_gaps(plant: Plant, q: Array, mode: Mode) -> Array:
    """The gaps of the open contacts between rigid bodies; infinite for the others."""
    system = plant.problem.system
    return jnp.where(mode.active | ~plant.rigid, jnp.inf, system.closest_pairs(system.planes(system.poses(q))).gap)


def _contact_changes(
    plant: Plant, q: Array, d: Array, mode: Mode, lam: Array, left: Array, size: Array
) -> tuple[Array, Array, Array]:
    """Which contacts open, as they would have to pull; which close, as bodies touch; and the part of the move by d that
    is possible until bodies meet."""
    system, c, rigid = plant.problem.system, len(plant.laws), np.flatnonzero(plant.rigid)
    if not len(rigid):
        return jnp.zeros(c, bool), jnp.zeros(c, bool), jnp.ones(())
    mine = jnp.zeros(c).at[rigid].set(lam[len(lam) - len(rigid) :])
    worst = jnp.argmin(jnp.where(mode.active, mine, jnp.inf))
    pulls = (jnp.arange(c) == worst) & mode.active & (mine < -1e-12 * size) & (left < 1e-3)
    before, after = _open_gaps(plant, q, mode), _open_gaps(plant, _moved(plant, q, d), mode)
    through = (after < 0) & (before > 1e-9 * system.size)
    reach = jnp.where(through, before / jnp.where(through, before - after, 1.0), 1.0)
    touching = (before <= 1e-7 * system.size) & (after < before) & (before > -1e-3 * system.size)
    return pulls, touching & ~pulls, jnp.min(reach, initial=1.0)


class _Iterate(NamedTuple):
    """Where the search for an equilibrium is; `left`: the largest force that is left, in parts of all forces."""

    q: Array
    mode: Mode
    steps: Array
    done: Array
    left: Array


def _iterate(plant: Plant, at: _Iterate, t: Array, driven: bool, size: Array) -> _Iterate:
    """One step: as far as the forces do work and nothing is in the way, or a change of contacts; none, where all is
    balanced already."""
    now = _balance(plant, at.q, at.mode, t, driven)
    slide, back = _newton_step(now)
    left, off = _largest(now.force) / size, _largest(now.residual)
    a = _line_search(plant, at.q, slide, back, now, at.mode, t, driven, size)
    d = a * (slide + back)
    pulls, closes, reach = _contact_changes(plant, at.q, d, at.mode, now.lam, left, size)
    change = jnp.any(pulls | closes)
    balanced = (left < 1e-13) | ((left < _BALANCED) & (left > at.left / 2))  # or as far as rounding lets it
    balanced &= (off < 1e-13) & ~change
    d = jnp.where(change | balanced, 0.0, d * reach)
    q = _moved(plant, at.q, d)
    mode = _located(plant, q, at.mode._replace(active=(at.mode.active & ~pulls) | closes))
    stuck = (_largest(d) < 1e-14) & ~change
    return _Iterate(q, mode, at.steps + 1, balanced | stuck, left)


def _implicit_step(plant: Plant, q: Array, t: Array, now: _Balance, mode: Mode, driven: bool) -> tuple[Array, Array]:
    """The position and the multipliers after one more Newton step from a solution without derivatives, `now`: it
    changes hardly any value, and carries the derivatives of the implicit function theorem."""
    n, plant_, t_ = len(plant.problem.unknown), *frozen((plant, t))
    K, idle = _stiffness_matrix(plant_, q, now.lam, mode, t_, driven), plant.idle(mode)
    size = _largest(K) + TINY()  # forces and multipliers in parts of it, so that units do not matter
    A = jnp.concatenate([jnp.concatenate([-K / size, now.C.T], 1), jnp.concatenate([now.C, jnp.diag(idle)], 1)])
    load, r, C = _rest_forces(plant, q, jnp.zeros(n), mode, t, driven)
    delta = -jnp.linalg.pinv(A, rtol=1e-12) @ jnp.concatenate([(load + now.lam @ C) / size, r])
    return plant.problem.place(_moved(plant, q, delta[:n]), t), now.lam + size * delta[n:]


def _is_steady(plant: Plant, frame: Frame, v: Array) -> Array:
    """Whether loops and gauges stay as they are while the drivers go on."""
    slip = (frame.C @ v + frame.drift) / plant.row_sizes
    speed = jnp.max(jnp.abs(v / plant.problem.system.column_sizes()), initial=0.0)
    speed += jnp.max(jnp.abs(frame.drift), initial=0.0)
    return jnp.max(jnp.abs(slip), initial=0.0) <= 1e-9 * speed


@once
def _steady(plant: Plant, flags: tuple[bool, ...], q: Array, t: Array) -> Array:
    """Whether the drivers leave it steady, told before anything is solved for: where they move a loop or a gauge in one
    position, no position is left as it is."""
    mode = _located(plant, q, first_mode(plant, flags, q))
    return _is_steady(
        plant, plant.frame(q, t, mode), plant.spread(jnp.zeros(len(plant.problem.unknown)), plant.driven(t)[0])
    )


@once
def _settle(plant: Plant, flags: tuple[bool, ...], q0: Array, t: Array, closed: Array, max_steps: int, driven: bool):
    """The fields of an `Equilibrium` after its plant."""
    plant_, q0, t_ = frozen((plant, q0, t))
    n = len(plant.problem.unknown)
    mode = _located(plant_, q0, first_mode(plant_, flags, q0))
    weight = jnp.sum(plant_.inertia.mass) * jnp.sqrt(jnp.sum(plant_.gravity**2)) * plant_.problem.system.size
    start, _, _ = _rest_forces(plant_, q0, jnp.zeros(n), mode, t_, driven)
    size = jnp.max(jnp.abs(start), initial=0.0) + weight + TINY()  # of the forces, to judge what is left
    begin = _Iterate(q0, mode, jnp.zeros((), int), ~closed, jnp.ones(()))
    step = lambda at: _iterate(plant_, at, t_, driven, size)
    end = jax.lax.while_loop(lambda at: ~at.done & (at.steps < max_steps), step, begin)
    mode, now = end.mode, _balance(plant_, end.q, end.mode, t_, driven)
    left = _largest(now.force) / size
    q, lam = _implicit_step(plant, end.q, t, now, mode, driven)
    frame, rigid = plant.frame(q, t, mode), np.flatnonzero(plant.rigid)
    press = plant.compliant(frame, jnp.zeros_like(frame.gaps), mode)
    press = press.at[rigid].set((lam / plant.row_sizes)[len(lam) - len(rigid) :]) if len(rigid) else press
    stiffness = now.stiffness
    stable = jnp.all(stiffness > 1e-9 * jnp.max(jnp.abs(stiffness), initial=0.0, where=jnp.isfinite(stiffness)))
    v = plant.spread(jnp.zeros(n), plant.driven(t)[0])
    steady = _is_steady(plant, frame, v)
    result = RESULTS.where(left < _BALANCED, RESULTS.successful, RESULTS.no_equilibrium)
    result = RESULTS.where(closed, result, RESULTS.not_assembled)
    result = RESULTS.where(steady, result, RESULTS.no_equilibrium)
    result = if_closed(result, is_closed(frame.residual / plant.row_sizes), RESULTS.no_equilibrium)
    mode, lam = sided(plant, frame, t, v, mode), lam / plant.row_sizes
    load = (steady_load if driven else rest_load)(plant, t, frame, mode)
    drive = -(load + lam @ frame.C)[np.array(plant.problem.columns, dtype=int)]
    drive = jnp.concatenate([drive, gauge_efforts(plant, frame, t, lam)])
    energies = plant.energies(t, frame, v, mode)
    found = (stiffness, stable, left * size, end.steps, result, mode)
    return q, v, t, press, mode.active, drive, *energies, *found
