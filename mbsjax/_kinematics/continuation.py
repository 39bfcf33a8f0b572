"""Following a driven mechanism in time, position after position, through the changes of its contacts.

Predict a position from the motion so far; correct it by Newton; halve the step where Newton does not contract. Where
contacts are watched, look at the guards of a position before it is accepted; if one has changed its sign, bracket the
event and try again, with a shorter step, until it is located; then reset. Nothing here is differentiated: positions,
times and modes are found here, once, and derivatives are taken elsewhere, of the equations that hold in each mode.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._events.guards import GuardTable
from .._events.results import code
from .._numerics.groups import lanes_behind, lanewise
from .._numerics.linalg import determinant, product, solve_singletons_last, without_singletons
from .._numerics.record import Record
from .._programs.trees import tree_where
from .continuation_state import EventRow, Output, Path, Run, State
from .drive import Problem
from .location import accepted_watch, falling, first_watch, reset_where_due, watched, watched_step
from .system import Rotations


_CONVERGED = 20  # times the root of the machine's precision: the next correction would be of the size of its square
_LEFT = 1e4  # times that precision: a correction that leaves more of the residual does not close the loops
_FIRST = 0.3  # a step is trusted if its first correction is within this part of what was predicted, or of a radian
_BEND = 0.5  # in radians, or sizes: no step bends further from a straight line, nor is foretold to
_CONTRACTION = 0.25  # and every further one within this part of the one before
_CORRECTIONS = 6
_CROSSING = 1e-5  # of the time covered: a change of sign of the Jacobian in a longer step may be a turn not seen


def follow(problem: Problem, q0: Array, ts: Array, closed: Array, max_steps: int, max_events: int) -> Path:
    """The positions at `ts`, found one after the other: which there are, and where and why they end.

    Under `vmap`, lanes are put behind all other axes and followed together, each with its own steps.
    """
    numbers, structure = eqx.partition(problem, eqx.is_array)

    @lanes_behind
    def go(numbers, q0, ts, closed):
        run = _run(eqx.combine(numbers, structure), q0, ts, closed, max_steps, max_events)
        s = _begin(run, q0, closed)
        if s.watch is not None:
            return _path(run, *_at_own_pace(run, s))
        times = (ts, jnp.concatenate([ts[1:], ts[-1:]]))
        return _path(run, *jax.lax.scan(lambda s, times: _to_output(run, s, *times), s, times), None)

    return go(numbers, q0, ts, closed)


def _run(problem: Problem, q0: Array, ts: Array, closed: Array, max_steps: int, max_events: int) -> Run:
    span = ts[-1] - ts[0]
    eps = jnp.finfo(q0.dtype).eps
    span = jnp.where(span > 0, span, 1.0)
    converged = _CONVERGED * eps**0.5
    finest, around, contacts = jnp.zeros(()), (jnp.zeros(()), jnp.zeros(())), 0
    if problem.mode is not None:
        converged = converged / 100  # contacts ride on corners and steep flanks, where squares are not that small
        finest, _ = problem.system.feature_sizes
        around, contacts = problem.system.bounding_circles, len(problem.system.layout.holds)
    ones = [jnp.ones((n, *closed.shape)) for n in (len(problem.unknown), len(problem.columns))]
    per_size, table = 1 / problem.spread(*ones), GuardTable(contacts, 0, closed.ndim)
    return Run(problem, ts, span, 5e4 * eps * span, converged, per_size, max_steps, max_events, table, finest, around)


def _begin(run: Run, q: Array, closed: Array) -> State:
    """Before the first correction."""
    problem, ts = run.problem, run.ts
    one, none, v = jnp.ones_like(ts[0]), jnp.zeros(closed.shape, int), jnp.zeros_like(run.per_size)
    shape = (problem.row_sizes.shape[0], len(problem.unknown), *closed.shape)
    J = without_singletons(jnp.zeros(shape), problem.singletons)
    watch = None if problem.mode is None else first_watch(run, problem.mode, q, none)
    return State(
        ts[0],
        q,
        v,
        J,
        one,
        v,
        v,
        0 * one,
        v,
        q,
        problem.system.rotations(q),
        one,
        none,
        none,
        one,
        closed,
        ~closed,
        watch,
    )


# a step ---------------------------------------------------------------------------------------------------------------


def _newton(problem: Problem, q: Array, rotations: Rotations, t: Array) -> tuple[Array, Array, Array, Array]:
    """The correction of the position, the velocity, and the Jacobian there, as far as it can be singular; and what the
    correction leaves of the residual: beyond a lock-up no move would close the loops, however small it is."""
    r, J, in_time = problem.linearize(q, t, rotations)
    both = -solve_singletons_last(J, jnp.stack([r, in_time], 1), problem.singletons)
    speeds = problem.speeds(t) * (1.0 if problem.mode is None else problem.mode.clock)
    left = jnp.max(jnp.abs(r + product(J, both)[:, 0]), 0, initial=0.0)
    return (
        problem.spread(both[:, 0]),
        problem.spread(both[:, 1], speeds),
        without_singletons(J, problem.singletons),
        left,
    )


def _ahead(run: Run, s: State, h: Array) -> tuple[Problem, Array]:
    """The equations and the time after a step by h. While a body drops, time stands still."""
    if s.watch is None:
        return run.problem, s.t + h
    mode = s.watch.mode
    return run.problem.with_mode(mode._replace(held=mode.held + mode.drift * h)), s.t + mode.clock * h


def _predicted(run: Run, s: State, h: Array) -> State:
    """A step by h, predicted by the cubic through the last two positions and velocities; straight on where the last
    step was so short that nothing but rounding errors would be drawn out, or the cubic leads far astray, as it does
    beside a dead center."""
    c = (s.v + s.v_back - 2 * s.moved / s.back) / s.back**2
    b = (s.v - s.v_back) / (2 * s.back) + 1.5 * c * s.back
    bend = (b + c * h) * h**2
    d = s.v * h + jnp.where((h > 1e3 * s.back) | ~(_largest(run, bend) < _BEND), 0.0, bend)
    y = run.problem.place(run.problem.system.retract(s.q, d), _ahead(run, s, h)[1])
    return s._replace(h=h, d=d, y=y, last=jnp.full_like(h, jnp.inf), k=jnp.zeros_like(s.k))


def _largest(run: Run, d: Array) -> Array:
    """The largest of displacements, in radians or sizes."""
    return jnp.max(jnp.abs(d * run.per_size), 0, initial=0.0)


def _going(run: Run, s: State, t_next: Array) -> Array:
    return ((s.t < t_next) | s.fresh | falling(s)) & ~s.stuck & (s.count < run.max_steps)


def _corrected(run: Run, s: State, t_next: Array, t_after: Array) -> State:
    """One Newton correction of the step being tried, and what follows from it: the next correction, a shorter step, or
    the next step, which after the output is the one to the output after it."""
    active, (now, t) = _going(run, s, t_next), _ahead(run, s, s.h)
    eps = jnp.finfo(s.q.dtype).eps
    d, v, J, left = _newton(now, s.y, s.rotations, t)
    y = run.problem.system.retract(s.y, d)
    size, reach = _largest(run, d), _largest(run, s.d)
    limit = jnp.where(s.k == 0, _FIRST * jnp.minimum(reach, 1.0) + 100 * run.converged, _CONTRACTION * s.last)
    before, after = _determinants(s.J, J)
    crossed = (before * after < 0) & ~s.fresh
    closes = (size <= run.converged) & (left <= _LEFT * eps)
    # a position some turns away closes the loops too, but the velocities do not lead there
    strays = ~s.fresh & ~(_largest(run, s.d + d - s.h * (s.v + v) / 2) < _BEND)
    done = closes & active & ~strays & ~(crossed & (s.h > _CROSSING * run.span))
    going_well = (size <= limit) & ~closes & (s.k < _CORRECTIONS)  # not where size is NaN
    failed = ~going_well & ~done & active
    watch, early = s.watch, jnp.zeros_like(s.h)
    if watch is not None:
        watch, done, early = watched(run, s, watch, now, y, v, done)
    arrived = (t >= t_next - 8 * eps * (jnp.abs(t_next) + run.span)) & ~falling(s)
    t = jnp.where(arrived, t_next, t)
    # with no past yet, straight on
    back, moved, v_back = (jnp.where(s.fresh, a, b) for a, b in ((1.0, s.h), (v, s.d + d), (v, s.v)))
    on = s._replace(t=t, q=y, v=v, J=J, back=back, moved=moved, v_back=v_back, fresh=jnp.zeros_like(s.fresh))
    where = before / jnp.where(crossed, before - after, 1.0)
    on = on._replace(crossed_at=jnp.where(crossed, s.t + where * s.h, s.crossed_at))
    h = jnp.where(arrived, t_after - t, jnp.minimum(2 * s.h, t_next - t))
    h_short = s.h / 2
    if watch is not None:
        s, on = s._replace(watch=watch), on._replace(watch=accepted_watch(watch, s.h))
        h = watched_step(run, s, on, t_next - t, h, arrived)
        h_short = jnp.where(early > 0, early, h_short)
    anew = _predicted(run, tree_where(done, on, s), jnp.where(done, h, h_short))
    same = s._replace(d=s.d + d, y=y, last=size, k=s.k + 1)
    over = done | failed | (early > 0)
    tried = {x: jnp.where(over, getattr(anew, x), getattr(same, x)) for x in ("h", "d", "y", "last", "k")}
    s = anew._replace(**tried)
    lost = failed & (s.h < run.least)  # h is halved by now
    if s.watch is not None:
        s, lost = reset_where_due(run, s, s.watch, active, lost)
    return s._replace(rotations=run.problem.system.rotations(s.y), count=s.count + active, stuck=s.stuck | lost)


def _determinants(J_before: Array, J: Array) -> tuple[Array, Array]:
    """Two numbers of one sign, unless a singular position lies between the two Jacobians."""
    if J.shape[0] == J.shape[1]:
        return determinant(J_before), determinant(J)
    J_T = jnp.swapaxes(J_before, 0, 1)
    return determinant(product(J_T, J_before)), determinant(product(J_T, J))


# the outputs ----------------------------------------------------------------------------------------------------------


def _to_output(run: Run, s: State, t: Array, t_after: Array) -> tuple[State, Output]:
    """The next output, where there are no contacts: all lanes are taken there together."""
    s = s._replace(count=jnp.where(s.stuck, s.count, 0), crossed_at=jnp.full_like(s.t, jnp.inf))
    s = jax.lax.while_loop(lambda s: jnp.any(_going(run, s, t)), lambda s: _corrected(run, s, t, t_after), s)
    s = s._replace(stuck=s.stuck | (s.count >= run.max_steps))
    return s, Output(s.q, ~s.stuck, s.crossed_at, None, jnp.zeros_like(s.count))


def _output(s: State, reached: Array) -> Output:
    assert s.watch is not None
    return Output(s.q, reached, s.crossed_at, s.watch.mode, s.watch.count)


def _at_own_pace(run: Run, s: State) -> tuple[State, Output, EventRow]:
    """All outputs where contacts change: no lane waits for the events of another."""
    lanes, n = s.t.ndim, run.ts.shape[0]
    entry = lanewise(lambda x, i: x[jnp.minimum(i, n - 1)], lanes)

    def step(state: tuple[State, Array, Record, Record]) -> tuple[State, Array, Record, Record]:
        s, i, outputs, events = state
        t_next = entry(run.ts, i)
        s = _corrected(run, s, t_next, entry(run.ts, i + 1))
        assert s.watch is not None
        landed = ~_going(run, s, t_next) & ~s.stuck & (s.count < run.max_steps) & (i < n)
        outputs = outputs.written(jnp.where(landed, i, n), _output(s, landed))
        events = events.written(jnp.where(s.watch.made, s.watch.count - 1, run.max_events), s.watch.row)
        s = s._replace(
            stuck=s.stuck | (s.count >= run.max_steps),
            count=jnp.where(landed, 0, s.count),
            crossed_at=jnp.where(landed, jnp.inf, s.crossed_at),
        )
        return s, i + landed, outputs, events

    s = s._replace(crossed_at=jnp.full_like(s.t, jnp.inf))
    assert s.watch is not None
    outputs = Record.blank(_output(s, jnp.zeros_like(s.stuck)), n, lanes)
    events = Record.blank(s.watch.row, run.max_events, lanes)
    s, _, outputs, events = jax.lax.while_loop(
        lambda state: jnp.any((state[1] < n) & ~state[0].stuck), step, (s, jnp.zeros_like(s.count), outputs, events)
    )
    assert s.watch is not None
    return s, outputs.read(_output(s, s.stuck), lanes), events.read(s.watch.row, lanes)


def _path(run: Run, end: State, outputs: Output, events: EventRow | None) -> Path:
    """What was found, and why it ended."""
    _, t = _ahead(run, end, end.h)
    targets = [x for _, x in run.problem.targets(t)]
    finite = jnp.all(jnp.isfinite(jnp.stack([*run.problem.prescribed(t), *targets, t])), 0)
    why = jnp.where(end.count >= run.max_steps, code("max_steps_reached"), code("locked"))
    why = jnp.where(finite, why, code("nonfinite"))
    last_mode = None
    if end.watch is not None:
        last_mode = end.watch.mode
        why = jnp.where(end.watch.fallen > run.span, code("fell"), why)
        why = jnp.where(end.watch.count > run.max_events, code("max_events_reached"), why)
        why = jnp.where(end.watch.jammed, code("jammed"), why)
    why = jnp.where(end.stuck, why, code("successful"))
    stopped_at = jnp.where(end.stuck, t, jnp.inf)
    return Path(*outputs, end.q, last_mode, stopped_at, why, events)
