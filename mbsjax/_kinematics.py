"""Driven motion: positions, velocities and accelerations on a time grid."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._assembly import close, explain
from ._drive import Problem, frozen, problem as make_problem, root
from ._linalg import determinant, least_squares, lone_last, product, without
from ._mechanism import Mechanism
from ._mobility import check_drivers
from ._precision import as_float, is_concrete
from ._results import RESULTS
from ._system import Turns, second
from ._track import AbstractReader, Configuration, GaugeReader, PointReader, PoseReader, Track, TurnReader


class Motion(eqx.Module):
    """A driven motion. Arrays have one row for each output time; rows after `stopped_at` are NaN.

    - `ts`: the output times.
    - `q`, `v`, `a`: stored coordinates of all joints, velocities and accelerations of all freedoms.
    - `residual`: the largest residual of a loop or gauge at each time, in the mechanism's units.
    - `crossed_at`: for each output time, when on the way to it the motion passed a singular position from which
        it could have gone on along another branch; infinite if it did not. See [`mbsjax.Motion.bifurcations`][].
    - `stopped_at`: when the mechanism locked; infinite if it did not.
    - `result`: a member of [`mbsjax.RESULTS`][].

    `motion["O"]` is a [`mbsjax.Track`][] with the `q`, `v`, `a` of a joint, of one coordinate
    (`"sleeve.travel"`), or of a gauge.
    """

    mech: Mechanism
    ts: Float[Array, " times"]
    q: Float[Array, "times nq"]
    v: Float[Array, "times nv"]
    a: Float[Array, "times nv"]
    residual: Float[Array, " times"]
    crossed_at: Float[Array, " times"]
    stopped_at: Float[Array, ""]
    result: RESULTS

    def __getitem__(self, name: str) -> Track:
        if name in [g.name for g in self.mech.gauges]:
            return self._read(GaugeReader(self.mech, name))
        stored, free = np.array(self.mech.stored(name)), np.array(self.mech.freedoms(name))
        track = Track(self.q[:, stored], self.v[:, free], self.a[:, free])
        return Track(*(x[:, 0] if x.shape[1] == 1 else x for x in track))

    def point(self, body: str, point: Any = None) -> Track:
        """Position, velocity and acceleration in ground of a point of a body: coordinates in the body,
        or the name of a point; its origin by default."""
        return self._read(PointReader(self.mech, body, point))

    def orientation(self, body: str) -> Track:
        """A body's orientation (an angle in the plane, Euler parameters in space), with its angular velocity
        and acceleration in ground."""
        return self._read(TurnReader(self.mech, body))

    def pose(self, body: str) -> Float[Array, "times 4 4"]:
        """The pose of a body in ground as 4x4 matrices."""
        return _poses(PoseReader(self.mech, body), self.q)

    def at(self, i: int) -> Configuration:
        """The position at output time number `i`."""
        return Configuration(self.mech, self.q[i])

    def __repr__(self) -> str:
        names = ", ".join(self.mech.coordinates)
        lines = [f"Motion at {len(self.ts)} times of the coordinates {names}"]
        if is_concrete(self.q):
            lines[0] += f", t = {float(self.ts[0]):.6g} to {float(self.ts[-1]):.6g}"
            lines.append(f"  largest residual {float(np.nanmax(self.residual)):.1e}")
            lines += [f"  passed a bifurcation at t = {t:.9g}" for t in self.bifurcations()]
            if bool(self.result != RESULTS.successful):
                lines.append(f"  at t = {float(self.stopped_at):.9g}: {RESULTS[self.result]}")
        return "\n".join(lines)

    def bifurcations(self) -> list[float]:
        """When the motion passed a position from which it could have gone on along another branch, to about 1e-8 of
        the time covered."""
        return [float(t) for t in self.crossed_at if np.isfinite(t)]

    def _read(self, reader: AbstractReader) -> Track:
        return _tracks(reader, self.q, self.v, self.a)


def kinematics(
    mech: Mechanism,
    drive: Mapping[str, Any],
    ts: Any,
    *,
    estimate: Mapping[str, Any] | Array | None = None,
    max_steps: int = 1000,
    throw: bool = True,
) -> Motion:
    """Follows a mechanism whose freedoms are all driven.

    The position at the first time is assembled from the estimate; from there the branch is kept: every
    step is predicted from the motion so far, corrected by Newton, and halved where Newton does not contract.

    **Arguments:**

    - `mech`: the mechanism.
    - `drive`: for each driven coordinate or gauge, by name, a function of time (or a number, to hold
        it). There must be as many as the mechanism has degrees of freedom.
    - `ts`: the output times, increasing.
    - `estimate`: as in [`mbsjax.assemble`][], for the first time.
    - `max_steps`: how many steps to allow between two output times.
    - `throw`: whether to raise when the mechanism cannot be assembled or locks. Under `jit` or `vmap`,
        or with `throw=False`, look at `.result`.

    **Returns:** an [`mbsjax.Motion`][]. Derivatives with respect to any number of the mechanism or of
    the drivers come from the implicit function theorem, in forward and in reverse mode.

    !!! Example

        >>> import mbsjax as mbs
        >>> slider_crank = mbs.Mechanism(
        ...     [mbs.Body("crank"), mbs.Body("rod"), mbs.Body("slider")],
        ...     [mbs.Revolute("A", "ground", "crank"), mbs.Revolute("B", "crank", "rod", (3.0, 0.0)),
        ...      mbs.Revolute("C", "rod", "slider", (5.0, 0.0)), mbs.Prismatic("P", "ground", "slider")])
        >>> motion = mbs.kinematics(slider_crank, {"A": mbs.constant_speed(1.0)}, jnp.array([0.0, jnp.pi / 2]),
        ...                         estimate={"P": 8.0})
        >>> motion["P"].q.round(9).tolist()
        [8.0, 4.0]
    """
    problem = make_problem(mech, drive)
    ts = as_float(ts, "the output times")
    if ts.ndim != 1 or ts.shape[0] == 0:
        raise ValueError(f"the output times must be a row of at least one number, got shape {ts.shape}")
    if is_concrete(ts) and not bool(jnp.all(jnp.diff(ts) > 0)):
        raise ValueError("the output times must increase")
    q0, _, closed, _ = close(problem, mech.estimate(estimate), 200, ts[0])
    looking = throw and is_concrete(problem, q0)
    if looking:
        check_drivers(mech, problem, q0, bool(closed), ts[0])
        if not bool(closed):
            raise ValueError(explain(mech, problem, q0, float(ts[0])))
    run = _run(problem, q0, closed, ts, max_steps)
    motion = Motion(mech, ts, *run)
    if looking and bool(motion.result != RESULTS.successful):
        raise RuntimeError(f"At t = {float(motion.stopped_at):.9g}: {RESULTS[motion.result]}")
    if throw and not looking:
        motion = eqx.tree_at(
            lambda m: m.q, motion, motion.result.error_if(motion.q, motion.result != RESULTS.successful)
        )
    return motion


@eqx.filter_jit
def _run(problem: Problem, q0: Array, closed: Array, ts: Array, max_steps: int):
    """Phase one finds the positions and is never differentiated; phase two, all times at once, takes the
    rates and carries the derivatives."""
    problem_, q0_, ts_ = frozen((problem, q0, ts))
    found, alive, crossed_at, last, stopped_at, why = follow(problem_, q0_, ts_, closed, max_steps)
    stopped_at = _lock_date(problem, last, stopped_at)
    code = RESULTS.successful
    for i, name in enumerate(_CODES):
        code = RESULTS.where(why == i, getattr(RESULTS, name), code)
    code = RESULTS.where(closed, code, RESULTS.not_assembled)
    safe = jnp.where(alive[:, None], found, q0_)  # a harmless position for the rows that are not there

    def complete(q: Array, t: Array, there: Array):
        t = jnp.where(there, t, ts[0])
        q = root(problem, q, t)
        v, a, r = _rates(problem, q, t)
        r = r * problem.system.row_sizes(problem.gauges)
        return q, v, a, jnp.max(jnp.abs(r), initial=0.0)

    q, v, a, residual = jax.vmap(complete)(safe, ts, alive)
    q, v, a = (jnp.where(alive[:, None], x, jnp.nan) for x in (q, v, a))
    return q, v, a, jnp.where(alive, residual, jnp.nan), crossed_at, stopped_at, code


def _rates(problem: Problem, q: Array, t: Array) -> tuple[Array, Array, Array]:
    """Velocities and accelerations of all freedoms, and the residual (Haug 3.6)."""
    r, J, in_time = problem.linearise(q, t)
    _, driven_v, driven_a = second(lambda s: problem.prescribed(t + s))
    solve = least_squares(J, refine=1)
    v = problem.spread(-solve(in_time[:, None])[:, 0], driven_v)
    a = problem.spread(jnp.zeros(len(problem.unknown)), driven_a)
    curve = problem.second_rate(q, v, a, t)
    return v, problem.spread(-solve(curve[:, None])[:, 0], driven_a), r


class _State(NamedTuple):
    t: Array  # the last accepted time,
    q: Array  # position
    v: Array  # velocity
    J: Array  # and Jacobian;
    back: Array  # the step that led there: its time,
    moved: Array  # its displacement,
    v_back: Array  # and the velocity before it;
    h: Array  # the step being tried,
    d: Array  # its displacement so far,
    y: Array  # where that leads,
    turns: Turns  # with its cosines and sines,
    last: Array  # the size of the last correction
    k: Array  # and how many there were;
    count: Array  # of all corrections since the last output
    crossed_at: Array  # when the Jacobian last changed its sign
    fresh: Array  # whether not even the first position was corrected
    stuck: Array


_CONVERGED = 20  # times the root of the machine's precision: the next correction would be of the size of its square
_FIRST = 0.3  # a step is trusted if its first correction is within this part of what was predicted
_CONTRACTION = 0.25  # and every further one within this part of the one before
_CORRECTIONS = 6
_CROSSING = 1e-5  # of the time covered: a change of sign of the Jacobian in a longer step may be a turn not seen


def follow(problem: Problem, q0: Array, ts: Array, closed: Array, max_steps: int):
    """The positions at `ts`, found one after the other: which there are, and where and why they end.

    Under `vmap`, lanes are put behind all other axes and marched together, each with its own steps.
    """
    numbers, structure = eqx.partition(problem, eqx.is_array)

    @jax.custom_batching.custom_vmap
    def run(numbers, q0, ts, closed):
        return _march(eqx.combine(numbers, structure), q0, ts, closed, max_steps)

    @run.def_vmap
    def _(n, batched, *args):
        def behind(x: Array, has_lane: bool) -> Array:
            return jnp.moveaxis(x, 0, -1) if has_lane else jnp.broadcast_to(x[..., None], (*x.shape, n))

        results = run(*jax.tree_util.tree_map(behind, args, tuple(batched)))
        results = jax.tree_util.tree_map(lambda x: jnp.moveaxis(x, -1, 0), results)
        return results, jax.tree_util.tree_map(lambda _: True, results)

    return run(numbers, q0, ts, closed)


def _march(problem: Problem, q0: Array, ts: Array, closed: Array, max_steps: int):
    span = ts[-1] - ts[0]
    eps = jnp.finfo(q0.dtype).eps
    span = jnp.where(span > 0, span, 1.0)
    least, shortest, converged = 5e4 * eps * span, _CROSSING * span, _CONVERGED * eps**0.5
    ones = [jnp.ones((n, *closed.shape)) for n in (len(problem.unknown), len(problem.columns))]
    per_size = 1 / problem.spread(*ones)

    def newton(q: Array, turns: Turns, t: Array) -> tuple[Array, Array, Array]:
        """The correction of the position, the velocity, and the Jacobian there, as far as it can be singular."""
        r, J, in_time = problem.linearise(q, t, turns)
        both = -lone_last(J, jnp.stack([r, in_time], 1), problem.lone)
        speeds = jax.jvp(problem.prescribed, (t,), (jnp.ones_like(t),))[1]
        return problem.spread(both[:, 0]), problem.spread(both[:, 1], speeds), without(J, problem.lone)

    def trial(s: _State, h: Array) -> _State:
        """A step by h, predicted by the cubic through the last two positions and velocities."""
        c = (s.v + s.v_back - 2 * s.moved / s.back) / s.back**2
        b = (s.v - s.v_back) / (2 * s.back) + 1.5 * c * s.back
        d = (s.v + (b + c * h) * h) * h
        y = problem.place(problem.system.retract(s.q, d), s.t + h)
        return s._replace(h=h, d=d, y=y, last=jnp.full_like(h, jnp.inf), k=jnp.zeros_like(s.k))

    def going(s: _State, t_next: Array) -> Array:
        return ((s.t < t_next) | s.fresh) & ~s.stuck & (s.count < max_steps)

    def correct(s: _State, t_next: Array, t_after: Array) -> _State:
        """One Newton correction of the step being tried, and what follows from it: the next correction, a shorter
        step, or the next step, which after the output is the one to the output after it."""
        active, t = going(s, t_next), s.t + s.h
        d, v, J = newton(s.y, s.turns, t)
        y = problem.system.retract(s.y, d)
        size, ahead = (jnp.max(jnp.abs(x * per_size), 0, initial=0.0) for x in (d, s.d))
        limit = jnp.where(s.k == 0, _FIRST * ahead + 100 * converged, _CONTRACTION * s.last)
        before, after = _determinants(s.J, J)
        crossed = (before * after < 0) & ~s.fresh
        done = (size <= converged) & active & ~(crossed & (s.h > shortest))
        going_well = (size <= limit) & (size > converged) & (s.k < _CORRECTIONS)  # not where size is NaN
        failed = ~going_well & ~done & active
        arrived = t >= t_next - least
        t = jnp.where(arrived, t_next, t)
        # with no past yet, straight on
        back, moved, v_back = (jnp.where(s.fresh, a, b) for a, b in ((1.0, s.h), (v, s.d + d), (v, s.v)))
        on = s._replace(t=t, q=y, v=v, J=J, back=back, moved=moved, v_back=v_back, fresh=jnp.zeros_like(s.fresh))
        where = before / jnp.where(crossed, before - after, 1.0)
        on = on._replace(crossed_at=jnp.where(crossed, s.t + where * s.h, s.crossed_at))
        h = jnp.where(arrived, t_after - t, jnp.minimum(2 * s.h, t_next - t))
        anew = trial(_where(done, on, s), jnp.where(done, h, s.h / 2))
        same = s._replace(d=s.d + d, y=y, last=size, k=s.k + 1)
        over = done | failed
        s = anew._replace(
            **{x: jnp.where(over, getattr(anew, x), getattr(same, x)) for x in ("h", "d", "y", "last", "k")}
        )
        stuck = s.stuck | (failed & (s.h < least))  # h is halved by now
        return s._replace(turns=problem.system.turns(s.y), count=s.count + active, stuck=stuck)

    def to_output(s: _State, times: tuple[Array, Array]) -> tuple[_State, tuple[Array, Array, Array]]:
        s = s._replace(count=jnp.where(s.stuck, s.count, 0), crossed_at=jnp.full_like(s.t, jnp.inf))
        s = jax.lax.while_loop(lambda s: jnp.any(going(s, times[0])), lambda s: correct(s, *times), s)
        s = s._replace(stuck=s.stuck | (s.count >= max_steps))
        return s, (s.q, ~s.stuck, s.crossed_at)

    one, none, v = jnp.ones_like(ts[0]), jnp.zeros(closed.shape, int), jnp.zeros_like(per_size)
    turns = problem.system.turns(q0)
    shape = (problem.system.row_sizes(problem.gauges).shape[0], len(problem.unknown), *closed.shape)
    J = without(jnp.zeros(shape), problem.lone)
    start = _State(ts[0], q0, v, J, one, v, v, 0 * one, v, q0, turns, one, none, none, one, closed, ~closed)
    end, (q, alive, crossed_at) = jax.lax.scan(to_output, start, (ts, jnp.concatenate([ts[1:], ts[-1:]])))
    t = end.t + end.h
    targets = [x for _, x in problem.targets(t)]
    finite = jnp.all(jnp.isfinite(jnp.stack([*problem.prescribed(t), *targets, t])), 0)
    why = jnp.where(end.count >= max_steps, _CODES.index("max_steps_reached"), _CODES.index("locked"))
    why = jnp.where(end.stuck, jnp.where(finite, why, _CODES.index("nonfinite")), 0)
    stopped_at = jnp.where(end.stuck, t, jnp.inf)
    return q, alive, crossed_at, end.q, stopped_at, why


_CODES = ("successful", "locked", "max_steps_reached", "nonfinite")


def _determinants(J_before: Array, J: Array) -> tuple[Array, Array]:
    """Two numbers of one sign, unless a singular position lies between the two Jacobians."""
    if J.shape[0] == J.shape[1]:
        return determinant(J_before), determinant(J)
    J_T = jnp.swapaxes(J_before, 0, 1)
    return determinant(product(J_T, J_before)), determinant(product(J_T, J))


def _where(condition: Array, a: _State, b: _State) -> _State:
    return jax.tree_util.tree_map(lambda x, y: jnp.where(condition, x, y), a, b)


@eqx.filter_custom_jvp
def _lock_date(problem: Problem, q: Array, t: Array) -> Array:
    """The time of a lock-up, with its derivatives to first order.

    Where J is singular, with beta J = 0, the residual can vanish only if beta r does: beta dr + beta r_t dt = 0
    (the theorem of the alternative, Haug 3.7). q, the last position found, is some 1e-5 short of the singular one,
    and so are the derivatives.
    """
    return t


@_lock_date.def_jvp
def _lock_date_jvp(primals, tangents):
    problem, q, t = primals
    stopped = jnp.isfinite(t)
    now = jnp.where(stopped, t, 0.0)
    _, J, in_time = frozen(problem.linearise(q, now))
    rush = least_squares(J)(-in_time[:, None])  # velocities, which grow along the null vector of J
    beta = J @ jnp.linalg.solve(J.T @ J, rush[:, 0])
    _, r_dot = eqx.filter_jvp(lambda p: p.residual(q, now), (problem,), (tangents[0],))
    lag = jnp.dot(beta, r_dot) / jnp.where(stopped, jnp.dot(beta, in_time), 1.0)
    return t, jnp.where(stopped, -lag, 0.0)


@eqx.filter_jit
def _tracks(reader: AbstractReader, q: Array, v: Array, a: Array) -> Track:
    return jax.vmap(reader.track)(q, v, a)


@eqx.filter_jit
def _poses(reader: PoseReader, q: Array) -> Array:
    return jax.vmap(lambda q: reader(q).matrix())(q)
