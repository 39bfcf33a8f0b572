"""The canonical equations (thesis 3.2-3.4): a mechanism with its inertia and forces, at an instant.

Momenta p belong to the freedoms that no driver moves: p = S . H, the product of a freedom's twist S with the momentum H
of all that it carries. So p' = S' . H + Q + C^T lam: the first term is the gradient of the kinetic energy of (3.4.2),
for any coordinates and also for the rotations of a ball joint. C holds the loops, gauges and active contacts, those
that are open as idle rows: shapes do not depend on which contacts are active. Lanes may stand behind, as in `System`.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._kinematics.drive import Problem
from .._kinematics.equations import loop_rates, loops_and_gauges
from .._model.contact_laws import AbstractContactLaw
from .._model.force.base import AbstractForce, Moment
from .._numerics.groups import AbstractPose, lanewise, one, pick, wide
from .._numerics.linalg import saddle, shortest, symmetric
from .._numerics.rates import derivatives_at_zero, moving_pose
from .._programs.trees import once
from .friction import Friction
from .frictional import AbstractFrictional
from .inertia import AbstractInertia, turned
from .instant import Frame, Holding, Instant
from .mode import Mode


class Plant(AbstractFrictional):
    """A mechanism with its drivers, inertia and forces."""

    problem: Problem  # without contacts
    inertia: AbstractInertia  # of the bodies, in their frames
    gravity: Float[Array, "dim *lanes"]
    forces: tuple[AbstractForce, ...]
    triggers: tuple
    restitution: Float[Array, "c *lanes"]
    laws: tuple[AbstractContactLaw | None, ...]
    friction: Friction | None
    names: tuple[tuple[str, ...], tuple[str, ...]] = eqx.field(static=True)
    poisson: bool = eqx.field(static=True, default=False)  # whether restitution is that of impulses

    # structure --------------------------------------------------------------------------------------------------------

    @property
    def _outboard(self) -> tuple[np.ndarray, np.ndarray]:
        """For each pair of freedoms, whether the second is carried by the first (or they are of one joint), with the
        sign of their product; and the same for the first by the second, where it was not counted."""
        paths = self.problem.system.layout.paths
        members = paths != 0
        n = members.shape[1]
        behind = members.sum(0)
        carried = (members.T.astype(int) @ members == behind) & (behind > 0)
        sign = np.sign(paths.T @ paths)
        first = carried & ~(carried.T & (np.arange(n)[:, None] > np.arange(n)[None]))
        return first * sign, (carried.T & ~first) * sign

    @property
    def _pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the mass matrix and the constraints may have entries, in the freedoms that are not driven."""
        problem, layout = self.problem, self.problem.system.layout
        inertia = np.logical_or(*self._outboard)
        loops = np.repeat(layout.loops != 0, layout.group.rows, 0)
        paths = lambda names: layout.paths[[layout.body_numbers[name] for name in names]]
        gauges = [paths(layout.gauge_bodies[i]).any(0) for i in problem.gauges]
        contacts = [np.diff(paths(layout.contact_bodies[k]), axis=0)[0] != 0 for k in np.flatnonzero(self.rigid)]
        rows = np.concatenate([loops, np.reshape([*gauges, *contacts], (-1, loops.shape[1])).astype(bool)])
        return inertia[np.ix_(problem.unknown, problem.unknown)], rows[:, problem.unknown]

    @property
    def row_sizes(self) -> Float[Array, "m *lanes"]:
        system, c = self.problem.system, int(self.rigid.sum())
        sizes = system.row_sizes(self.problem.gauges)
        return jnp.concatenate([sizes, jnp.broadcast_to(system.size, (c, *system.size.shape))])

    def idle(self, mode: Mode) -> Float[Array, "m *lanes"]:
        """Ones for the rows of open contacts."""
        opened = 1.0 - pick(mode.active, np.flatnonzero(self.rigid)).astype(float)
        m = self.problem.system.row_sizes(self.problem.gauges).shape[0]
        return jnp.concatenate([jnp.zeros((m, *opened.shape[1:])), opened])

    @property
    def columns(self) -> Float[Array, "nu *lanes"]:
        return pick(self.problem.system.column_sizes(), self.problem.unknown)

    # positions --------------------------------------------------------------------------------------------------------

    @once
    def _placed(self, q: Array, t: Array) -> tuple[Frame, Any]:
        """A position as it is without its contacts, and the chords of the loops."""
        problem, system = self.problem, self.problem.system
        X, phi, S = system.poses_and_twists(q)
        holding = None
        if self.friction is not None and self.friction.sides:
            n = S.shape[1]
            S_held = self.holding_system.holding_twists(X, self.friction.sides)
            both = jnp.concatenate([S, S_held], 1)
            r, C, chords = loops_and_gauges(self.holding_system, X, phi, both, problem.targets(t))
            holding, C = Holding(S_held, C[:, n:], S_held[:0], S_held[:0]), C[:, :n]
        else:
            r, C, chords = loops_and_gauges(system, X, phi, S, problem.targets(t))
        drift = jnp.zeros_like(r)
        if problem.gauges:
            drift = jnp.concatenate([drift[: len(r) - len(problem.gauges)], problem.drift(t)])
        I = self.inertia.seen(X)  # noqa: E741
        M = symmetric(S, I.gathered(np.abs(system.layout.paths)).momentum(S), *self._outboard)
        none = jnp.zeros((0, *t.shape))
        planes = system.planes(X) if self.laws else ()
        T = S[:0]
        if self.friction is not None:
            rows = np.eye(S.shape[1])[list(self.friction.freedoms)]
            T = wide(rows, t.ndim) / self.friction.sizes[len(self.friction.contacts) :, None]
            T = jnp.broadcast_to(T, (*rows.shape, *t.shape))
            if holding is not None:
                holding = holding._replace(T=jnp.zeros((len(rows), *holding.S.shape[1:])))
        return Frame(q, X, S, C, drift, r, planes, none, (none, none), S[:0], I, M, T, holding), chords

    def _held(self, frame: Frame, mode: Mode, wrenches: Array, met: Any) -> Frame:
        """The position with its contacts."""
        rigid = np.flatnonzero(self.rigid)
        on = pick(mode.active, rigid)
        slopes = self.problem.system.gap_jacobian(wrenches, frame.S)
        T, holding = frame.T, frame.holding
        if self.friction is not None:
            T, slopes = jnp.concatenate([self.of_tangents(slopes), T]), slopes[: len(self.laws)]
        if holding is not None:
            n = frame.S.shape[1]
            across = self.holding_system.gap_jacobian(wrenches, jnp.concatenate([frame.S, holding.S], 1))[:, n:]
            pushed = jnp.where(on[:, None], pick(across, rigid), 0.0)
            holding = Holding(
                holding.S,
                jnp.concatenate([holding.C, pushed]),
                across[: len(self.laws)],
                jnp.concatenate([self.of_tangents(across), holding.T]),
            )
        return frame._replace(
            T=T,
            holding=holding,
            C=jnp.concatenate([frame.C, jnp.where(on[:, None], pick(slopes, rigid), 0.0)]),
            drift=jnp.concatenate([frame.drift, jnp.zeros_like(on, frame.drift.dtype)]),
            residual=jnp.concatenate([frame.residual, jnp.where(on, pick(met.gap, rigid), 0.0)]),
            gaps=met.gap,
            spots=(met.s1, met.s2),
            slopes=slopes,
        )

    @once
    def touching(self, frame: Frame, mode: Mode) -> Frame:
        """The same position with its contacts in another mode."""
        if not self.laws:
            return frame
        m = self.problem.system.row_sizes(self.problem.gauges).shape[0]
        bare = frame._replace(C=frame.C[:m], drift=frame.drift[:m], residual=frame.residual[:m])
        if self.friction is not None:
            first, holding = frame.T.shape[0] - len(self.friction.freedoms), frame.holding  # those of joints come last
            if holding is not None:
                holding = Holding(holding.S, holding.C[:m], holding.slopes[:0], holding.T[first:])
            bare = bare._replace(T=frame.T[first:], holding=holding)
        return self._held(bare, mode, *self.problem.system.contact_wrenches(frame.planes, mode, self.tangents))

    def frame(self, q: Array, t: Array, mode: Mode) -> Frame:
        """A position."""
        return self.touching(self._placed(self.problem.place(q, t), t)[0], mode)

    def solver(self, frame: Frame, mode: Mode, contacts: bool = True):
        """The map from forces on the freedoms that are not driven, and what the rows are to be, to their
        accelerations (or from momenta to velocities), and multipliers. Without contacts, loops and gauges only."""
        u, D, rows = self.problem.unknown, self.columns, self.row_sizes
        M, C, idle = pick(pick(frame.M, u), u, 1) * D[:, None] * D[None], pick(frame.C, u, 1), self.idle(mode)
        m = rows.shape[0] - int(self.rigid.sum())
        # rows of a long chain of loops say little; those of contacts share a load, the noisier the harder they are
        soft = np.where(np.arange(rows.shape[0]) < m, 1e-11, 1e-9)
        of_M, of_C = self._pattern
        if not contacts:
            C, rows, idle, soft, of_C = C[:m], rows[:m], idle[:m], soft[:m], of_C[:m]
        solve = saddle(M, C * D[None] / rows[:, None], idle, soft, (of_M, of_C))

        def solution(b: Array, g: Array) -> tuple[Array, Array]:
            x, y = solve(b * D[:, None], g / rows[:, None])
            return x * D[:, None], -y / rows[:, None]

        return solution

    @once
    def project(self, q: Array, t: Array, mode: Mode) -> Array:
        """q put back on the constraints, by one Newton step: good where it is off by an integration error."""
        frame = self.frame(self.problem.system.retract(q, jnp.zeros((len(self.names[0]), *t.shape))), t, mode)
        return self.problem.system.retract(frame.q, self.way_back(frame.C, frame.residual, mode))

    def way_back(self, C: Array, r: Array, mode: Mode) -> Array:
        """The shortest move of the freedoms onto the constraints, where their rows are C and their residuals r."""
        if C.shape[0] == 0:
            return jnp.zeros((len(self.names[0]), *r.shape[1:]))
        u, D, rows = self.problem.unknown, self.columns, self.row_sizes
        J = pick(C, u, 1) * D[None] / rows[:, None]
        J = jax.lax.stop_gradient(J)
        y = shortest(J, self.idle(mode), self._pattern[1])((r / rows)[:, None])[:, 0]
        return self.spread(-y * D, jnp.zeros((len(self.problem.columns), *r.shape[1:])))

    # motion -----------------------------------------------------------------------------------------------------------

    def driven(self, t: Array) -> Any:
        """Velocities and accelerations of the driven coordinates."""
        if not self.problem.columns:
            return jnp.zeros((0, *t.shape)), jnp.zeros((0, *t.shape))
        return derivatives_at_zero(lambda s: self.problem.prescribed(t + s))[1:]

    def moment(self, t: Array, q: Array, v: Array, X: AbstractPose, S: Array, holding: Holding | None = None) -> Moment:
        system = self.problem.system
        if holding is not None:
            S, v = jnp.concatenate([S, holding.S], 1), jnp.concatenate([v, jnp.zeros_like(holding.S[0])])
        layout = system.layout if holding is None else self.holding_system.layout
        return Moment(t, q, v, X, S, system.gauges, layout, self.names)

    def each_force(
        self, method, t: Array, frame: Frame, v: Array, mode: Mode, zero: Array, holding: Holding | None = None
    ) -> Array:
        at, total, begin = self.moment(t, frame.q, v, frame.X, frame.S, holding), zero, 0
        for force in self.forces:
            sides = mode.signs[begin : begin + force.n_switches]
            total = total + lanewise(lambda f, at, sides: method(f, at, sides), t.ndim)(force, at, sides)
            begin += force.n_switches
        return total

    def compliant(self, frame: Frame, rates: Array, mode: Mode) -> Array:
        """The forces of the compliant contacts; zero for the others."""
        lanes = rates.ndim - 1
        forces = []
        for k, law in enumerate(self.laws):
            if law is None:
                forces.append(jnp.zeros_like(rates[k]))
                continue
            call = lanewise(lambda law, *args: law.force(*args), lanes)
            value = call(law, -frame.gaps[k], -rates[k], mode.approach[k])
            forces.append(jnp.where(mode.active[k], value, 0.0))
        return jnp.stack(forces) if forces else rates

    def velocity(self, frame: Frame, mode: Mode, solve, p: Array, t: Array, response: Any = None) -> Array:
        """All velocities from the momenta."""
        p = p if self.friction is None else p[: len(self.problem.unknown)]
        u, driven = self.problem.unknown, np.array(self.problem.columns, dtype=int)
        v_d, _ = self.driven(t)
        across = jnp.sum(pick(pick(frame.M, u), driven, 1) * v_d[None], 1)
        held = jnp.sum(pick(frame.C, driven, 1) * v_d[None], 1) + frame.drift
        v = self.spread(solve((p - across)[:, None], -held[:, None])[0][:, 0], v_d)
        if self.friction is None:
            return v
        return self.spread(self.stuck(frame, mode, response or self.response(frame, solve), v), v_d)

    def tangent(self, frame: Frame, mode: Mode, change: Array) -> Array:
        """A small change of the momenta without what `velocity` takes away, the impulses of the constraints."""
        if frame.C.shape[0] == 0 and self.friction is None:
            return change
        u, solve, n = self.problem.unknown, self.solver(frame, mode), len(self.problem.unknown)
        p = change if self.friction is None else change[:n]
        v = solve(p[:, None], jnp.zeros((frame.C.shape[0], 1, *change.shape[1:])))[0][:, 0]
        if self.friction is not None:
            still = jnp.zeros((len(self.problem.columns), *change.shape[1:]))
            v = self.stuck(frame, mode, self.response(frame, solve), self.spread(v, still))
        kept = jnp.sum(pick(pick(frame.M, u), u, 1) * v[None], 1)
        return kept if self.friction is None else jnp.concatenate([kept, change[n:]])

    def momentum(self, frame: Frame, v: Array, before: Array | None = None) -> Array:
        """The momenta of the freedoms that are not driven; with the work of friction, where that `before` has it."""
        p = jnp.sum(pick(frame.M, self.problem.unknown) * v[None], 1)
        return p if self.friction is None or before is None else jnp.concatenate([p, before[len(p) :]])

    @once
    def instant(self, t: Array, q: Array, p: Array, mode: Mode) -> Instant:
        """Velocities, accelerations, forces and the canonical right-hand side."""
        problem, system, lanes = self.problem, self.problem.system, t.ndim
        u, driven = problem.unknown, np.array(problem.columns, dtype=int)
        q = problem.place(q, t)
        frame, chords = self._placed(q, t)
        carried: Any = None
        if self.laws:
            wrenches, carried, met = jax.linearize(
                lambda P: system.contact_wrenches(P, mode, self.tangents), frame.planes, has_aux=True
            )
            frame = self._held(frame, mode, wrenches, met)
        solve = self.solver(frame, mode)
        response = None if self.friction is None else self.response(frame, solve)
        v = self.velocity(frame, mode, solve, p, t, response)
        a_d = self.driven(t)[1]

        paths = wide(system.layout.paths, lanes)
        V = jnp.sum(paths * (frame.S * v)[:, None], 2)
        S_dot = system.twist_rates(q, frame.X, frame.S, v, V)
        A = jnp.sum(paths * (S_dot * v)[:, None], 2)
        # the second rates of the constraints, where nothing is accelerated
        curves = [loop_rates(system, chords, S_dot * v), *self._gauge_curves(t, frame.X, V, A)]
        bends = jnp.zeros((0, *t.shape))
        rigid = np.flatnonzero(self.rigid)
        if self.laws:
            bends = self._contact_curves(frame, wrenches, carried, V, A)
            curves.append(jnp.where(pick(mode.active, rigid), pick(bends, rigid), 0.0))
        h = frame.inertia.momentum(V)
        h_dot = frame.inertia.momentum(A) + turned(V, h)
        wrench = frame.inertia.weight(self.gravity)

        def onto(x: Array) -> Array:
            """What freedoms carry of a quantity of bodies."""
            return jnp.sum(paths[None] * x[:, :, None], 1)

        load = jnp.sum(frame.S * onto(wrench), 0)
        load, carries = self.applied(t, frame, v, mode, load)
        rates = jnp.sum(frame.slopes * v[None], 1)
        press = self.compliant(frame, rates, mode)
        load = load + jnp.sum(frame.slopes * press[:, None], 0)
        bias = jnp.sum(frame.S * onto(h_dot), 0)
        across = jnp.sum(pick(frame.M, driven, 1) * a_d[None], 1)
        gamma = jnp.concatenate(curves) + jnp.sum(pick(frame.C, driven, 1) * a_d[None], 1)
        net = load - bias - across
        a_u, lam = solve(pick(net, u)[:, None], -gamma[:, None])
        a, lam = self.spread(a_u[:, 0], a_d), lam[:, 0]
        sliding = rubs = None
        if self.friction is not None:
            resisted = self.carried(frame, h_dot - wrench, carries, press)
            sliding = self.sliding(frame, mode, v, a, lam, press, bends, response, resisted)
            bends = bends[: len(self.laws)]
            rubs, a, lam, load = self.rubbed(frame, mode, sliding, response, a, lam, load)
        held = jnp.sum(frame.C * lam[:, None], 0)
        p_dot = pick(load + held + jnp.sum(S_dot * onto(h), 0), u)
        if sliding is not None and rubs is not None and p.shape[0] > len(u):
            p_dot = jnp.concatenate([p_dot, -rubs.force * sliding.speed])
        drive = pick(jnp.sum(frame.M * a[None], 1) + bias - load - held, driven)
        if len(rigid):
            mine = lam[lam.shape[0] - len(rigid) :]
            press = press + jnp.sum(wide(np.eye(len(self.laws))[rigid], lanes) * mine[:, None], 0)
        q_dot = system.stored_rates(q, v)
        sizes = jnp.abs(load) + jnp.abs(bias + across)
        work, p = p, self.momentum(frame, v)
        scale = jnp.max(pick(sizes, u) * self.columns, 0, initial=0.0) + jnp.abs(jnp.sum(p * pick(v, u), 0))
        p = p if self.friction is None else jnp.concatenate([p, work[len(u) :]])
        onward = jnp.sum(frame.slopes * a[None], 1) + bends
        return Instant(frame, v, a, lam, press, rates, onward, p, p_dot, q_dot, drive, scale, sliding, rubs)

    def _contact_curves(self, frame: Frame, wrenches: Array, carried: Any, V: Array, A: Array) -> Array:
        """The second rates of the gaps, and of sliding where there is friction, where the bodies move with twists V and
        their rates A; `carried` are the rates of the wrenches, where the planes move."""
        system, lanes = self.problem.system, V.ndim - 2
        (V_a, V_b), (A_a, A_b) = (system.contact_twists(x) for x in (V, A))
        moving = lambda P, V: lanewise(jax.vmap(lambda P, V: P.carried(V)), lanes)(P, V)
        turning = carried((moving(frame.planes[0], V_a), moving(frame.planes[1], V_b)))
        apart, onward = V_b - V_a, A_b - A_a
        if self.tangents:
            apart, onward = (jnp.concatenate([x, x]) for x in (apart, onward))
        return jnp.sum(turning * apart + wrenches * onward, 1)

    def applied(self, t: Array, frame: Frame, v: Array, mode: Mode, load: Array) -> tuple[Array, Any]:
        """The load on the freedoms, with that of the forces; and what these bring to bear on joints that are held."""
        n, act, holding = len(load), lambda f, at, sides: f.act(at, sides), frame.holding
        if holding is None:
            return self.each_force(act, t, frame, v, mode, load), None
        both = jnp.concatenate([load, jnp.zeros_like(holding.S[0])])
        both = self.each_force(act, t, frame, v, mode, both, holding)
        return both[:n], both[n:]

    def _gauge_curves(self, t: Array, X: AbstractPose, V: Array, A: Array) -> list[Array]:
        """The second rates of the gauges' residuals, where the bodies move with twists V and their rates A."""
        problem, system, found = self.problem, self.problem.system, []
        if not problem.gauges:
            return found
        aims = derivatives_at_zero(lambda s: jnp.stack([x for _, x in problem.targets(t + s)]))

        def curve(gauge: Any, aim: tuple, moving: list) -> Array:
            (x, rate, gain), paths = aim, [moving_pose(*each) for each in moving]
            later = lambda s: gauge.residual(x + (rate + gain * s / 2) * s, *(at(s) for at in paths))
            return derivatives_at_zero(later)[2][None]

        for k, i in enumerate(problem.gauges):
            numbers = [system.layout.body_numbers[name] for name in system.layout.gauge_bodies[i]]
            moving = [(one(X, b), V[:, b], A[:, b]) for b in numbers]
            found.append(lanewise(curve, t.ndim)(system.gauges[i], tuple(x[k] for x in aims), moving))
        return found

    def energies(self, t: Array, frame: Frame, v: Array, mode: Mode) -> tuple[Array, Array]:
        """Kinetic and potential energy (of one lane)."""
        kinetic = jnp.sum(v * jnp.sum(frame.M * v[None], 1)) / 2
        weight = -jnp.sum(frame.inertia.moment * self.gravity[:, None])
        return kinetic, self.each_force(lambda f, at, sides: f.potential(at, sides), t, frame, v, mode, weight)

    def switches(self, t: Array, q: Array, v: Array, frame: Frame) -> Float[Array, "n *lanes"]:
        """The switching functions of the forces and the triggers."""
        at = self.moment(t, q, v, frame.X, frame.S)
        values = [jnp.zeros((0, *t.shape))]
        for force in self.forces:
            if force.n_switches:
                values.append(lanewise(lambda f, at: f.switches(at), t.ndim)(force, at))
        for trigger in self.triggers:
            values.append(lanewise(lambda f, at: f.value(at)[None], t.ndim)(trigger, at))
        return jnp.concatenate(values)
