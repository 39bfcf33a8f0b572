"""Following a driven mechanism in time, position after position, through the changes of its contacts.

Predict a position from the motion so far; correct it by Newton; halve the step where Newton does not contract. Where
contacts are watched, look at the guards of a position before it is accepted; if one has changed its sign, bracket the
event and try again, with a shorter step, until it is located; then reset. Nothing here is differentiated: positions,
times and modes are found here, once, and derivatives are taken elsewhere, of the equations that hold in each mode.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._events.dips import dip_by_rates
from .._events.guards import GuardTable
from .._events.kinds import number
from .._events.locator import JUMP, Bracket, aim, first, narrowed, no_bracket
from .._events.places import Places
from .._events.results import code
from .._numerics.groups import lanes_behind, lanewise, wide
from .._numerics.linalg import determinant, product, solve_singletons_last, without_singletons
from .._numerics.record import Record
from .._programs.trees import tree_where
from .drive import Problem
from .guards import guards
from .mode import Mode
from .reset import Reset, reset_lanes
from .system import Rotations


_CONVERGED = 20  # times the root of the machine's precision: the next correction would be of the size of its square
_LEFT = 1e4  # times that precision: a correction that leaves more of the residual does not close the loops
_FIRST = 0.3  # a step is trusted if its first correction is within this part of what was predicted
_CONTRACTION = 0.25  # and every further one within this part of the one before
_CORRECTIONS = 6
_CROSSING = 1e-5  # of the time covered: a change of sign of the Jacobian in a longer step may be a turn not seen
_STRIDE = 0.1  # the longest step where contacts are watched, in radians, or parts of the mechanism's size
_TOUCHING = 1e-10  # a guard that begins on its surface counts as passed when it is this far beyond
_FALL = 10.0  # a body that drops covers this much, in radians or sizes, in a time as long as the motion


class EventRow(NamedTuple):
    """An event: its time, its position, the modes before and after, and what happened. Rows that are not filled have an
    infinite time."""

    t: Array
    q: Array
    guard: Array  # -1 where none told of it
    before: Mode
    after: Mode
    kind: Array
    contact: Array
    gave_way: Array


class Path(NamedTuple):
    """What was found."""

    q: Array  # at every output time
    alive: Array  # whether it was reached
    crossed_at: Array
    mode: Mode | None
    count: Array  # how many events there were before it
    last: Array  # the last position,
    mode_last: Mode | None
    stopped_at: Array  # when and
    why: Array  # why it was the last, as a code of the result
    events: EventRow | None  # stacked on a first axis


class _Run(NamedTuple):
    """What stays the same along a motion."""

    problem: Problem
    ts: Array
    span: Array
    least: Array  # two times nearer than this are the same
    converged: Any  # the size of a correction after which no other is needed
    per_size: Array
    max_steps: int
    max_events: int
    table: GuardTable
    finest: Array
    around: tuple[Array, Array]


class _Watch(NamedTuple):
    """What is known of the contacts."""

    mode: Mode
    g: Array  # the guards at the last accepted position,
    rate: Array  # and their rates,
    near: Places  # and where each contact might close,
    apart: Array  # and the gaps of the pairs of elements that are apart
    clear: Array  # for how long no two bodies can come through each other unseen
    armed: Array  # which have been clear of their surface since their contact last changed
    bracket: Bracket  # of an event; it begins at the last accepted position
    tries: Array
    fallen: Array
    jammed: Array
    count: Array  # of the events
    made: Array  # whether one has just happened,
    row: EventRow  # and what there is to record of it


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
    rotations: Rotations  # with its cosines and sines,
    last: Array  # the size of the last correction
    k: Array  # and how many there were;
    count: Array  # of all corrections since the last output
    crossed_at: Array  # when the Jacobian last changed its sign
    fresh: Array  # whether no position was corrected yet, or none since the mode changed
    stuck: Array
    watch: _Watch | None  # without contacts, nothing


class _Output(NamedTuple):
    q: Array
    alive: Array
    crossed_at: Array
    mode: Mode | None
    count: Array


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


def _run(problem: Problem, q0: Array, ts: Array, closed: Array, max_steps: int, max_events: int) -> _Run:
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
    return _Run(problem, ts, span, 5e4 * eps * span, converged, per_size, max_steps, max_events, table, finest, around)


def _begin(run: _Run, q: Array, closed: Array) -> _State:
    """Before the first correction."""
    problem, ts = run.problem, run.ts
    one, none, v = jnp.ones_like(ts[0]), jnp.zeros(closed.shape, int), jnp.zeros_like(run.per_size)
    shape = (problem.row_sizes.shape[0], len(problem.unknown), *closed.shape)
    J = without_singletons(jnp.zeros(shape), problem.singletons)
    rotations = problem.system.rotations(q)
    watch = None if problem.mode is None else _first_watch(run, problem.mode, q, none)
    return _State(
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


def _first_watch(run: _Run, mode: Mode, q: Array, none: Array) -> _Watch:
    lanes = none.shape
    g, zero, no = jnp.zeros((run.table.count, *lanes)), jnp.zeros(lanes), jnp.zeros(lanes, bool)
    row = EventRow(zero + jnp.inf, q, none, mode, mode, none, none, none)
    apart = run.problem.system.no_pairs_apart(lanes)
    never = zero + jnp.inf
    return _Watch(mode, g, g, mode.places, apart, never, g > 0, no_bracket(g), none, zero, no, none, no, row)


# a step ---------------------------------------------------------------------------------------------------------------


def _newton(problem: Problem, q: Array, rotations: Rotations, t: Array) -> tuple[Array, Array, Array, Array]:
    """The correction of the position, the velocity, and the Jacobian there, as far as it can be singular; and what the
    correction leaves of the residual: beyond a lock-up no move would close the loops, however small it is."""
    r, J, in_time = problem.linearise(q, t, rotations)
    both = -solve_singletons_last(J, jnp.stack([r, in_time], 1), problem.singletons)
    speeds = problem.speeds(t) * (1.0 if problem.mode is None else problem.mode.clock)
    left = jnp.max(jnp.abs(r + product(J, both)[:, 0]), 0, initial=0.0)
    return (
        problem.spread(both[:, 0]),
        problem.spread(both[:, 1], speeds),
        without_singletons(J, problem.singletons),
        left,
    )


def _ahead(run: _Run, s: _State, h: Array) -> tuple[Problem, Array]:
    """The equations and the time after a step by h. While a body drops, time stands still."""
    if s.watch is None:
        return run.problem, s.t + h
    mode = s.watch.mode
    return run.problem.with_mode(mode._replace(held=mode.held + mode.drift * h)), s.t + mode.clock * h


def _predicted(run: _Run, s: _State, h: Array) -> _State:
    """A step by h, predicted by the cubic through the last two positions and velocities; straight on where the last
    step was so short that nothing but rounding errors would be drawn out."""
    c = (s.v + s.v_back - 2 * s.moved / s.back) / s.back**2
    b = (s.v - s.v_back) / (2 * s.back) + 1.5 * c * s.back
    d = jnp.where(h > 1e3 * s.back, s.v, s.v + (b + c * h) * h) * h
    y = run.problem.place(run.problem.system.retract(s.q, d), _ahead(run, s, h)[1])
    return s._replace(h=h, d=d, y=y, last=jnp.full_like(h, jnp.inf), k=jnp.zeros_like(s.k))


def _falling(s: _State) -> Array:
    return jnp.zeros_like(s.fresh) if s.watch is None else s.watch.mode.clock == 0


def _going(run: _Run, s: _State, t_next: Array) -> Array:
    return ((s.t < t_next) | s.fresh | _falling(s)) & ~s.stuck & (s.count < run.max_steps)


def _corrected(run: _Run, s: _State, t_next: Array, t_after: Array) -> _State:
    """One Newton correction of the step being tried, and what follows from it: the next correction, a shorter step, or
    the next step, which after the output is the one to the output after it."""
    active, (now, t) = _going(run, s, t_next), _ahead(run, s, s.h)
    eps = jnp.finfo(s.q.dtype).eps
    d, v, J, left = _newton(now, s.y, s.rotations, t)
    y = run.problem.system.retract(s.y, d)
    size, reach = (jnp.max(jnp.abs(x * run.per_size), 0, initial=0.0) for x in (d, s.d))
    limit = jnp.where(s.k == 0, _FIRST * reach + 100 * run.converged, _CONTRACTION * s.last)
    before, after = _determinants(s.J, J)
    crossed = (before * after < 0) & ~s.fresh
    closes = (size <= run.converged) & (left <= _LEFT * eps)
    done = closes & active & ~(crossed & (s.h > _CROSSING * run.span))
    going_well = (size <= limit) & ~closes & (s.k < _CORRECTIONS)  # not where size is NaN
    failed = ~going_well & ~done & active
    watch, early = s.watch, jnp.zeros_like(s.h)
    if watch is not None:
        watch, done, early = _watched(run, s, watch, now, y, v, done)
    arrived = (t >= t_next - 8 * eps * (jnp.abs(t_next) + run.span)) & ~_falling(s)
    t = jnp.where(arrived, t_next, t)
    # with no past yet, straight on
    back, moved, v_back = (jnp.where(s.fresh, a, b) for a, b in ((1.0, s.h), (v, s.d + d), (v, s.v)))
    on = s._replace(t=t, q=y, v=v, J=J, back=back, moved=moved, v_back=v_back, fresh=jnp.zeros_like(s.fresh))
    where = before / jnp.where(crossed, before - after, 1.0)
    on = on._replace(crossed_at=jnp.where(crossed, s.t + where * s.h, s.crossed_at))
    h = jnp.where(arrived, t_after - t, jnp.minimum(2 * s.h, t_next - t))
    h_short = s.h / 2
    if watch is not None:
        s, on = s._replace(watch=watch), on._replace(watch=_accepted(watch, s.h))
        h = _watched_step(run, s, on, t_next - t, h, arrived)
        h_short = jnp.where(early > 0, early, h_short)
    anew = _predicted(run, tree_where(done, on, s), jnp.where(done, h, h_short))
    same = s._replace(d=s.d + d, y=y, last=size, k=s.k + 1)
    over = done | failed | (early > 0)
    tried = {x: jnp.where(over, getattr(anew, x), getattr(same, x)) for x in ("h", "d", "y", "last", "k")}
    s = anew._replace(**tried)
    lost = failed & (s.h < run.least)  # h is halved by now
    if s.watch is not None:
        s, lost = _events(run, s, s.watch, active, lost)
    return s._replace(rotations=run.problem.system.rotations(s.y), count=s.count + active, stuck=s.stuck | lost)


def _determinants(J_before: Array, J: Array) -> tuple[Array, Array]:
    """Two numbers of one sign, unless a singular position lies between the two Jacobians."""
    if J.shape[0] == J.shape[1]:
        return determinant(J_before), determinant(J)
    J_T = jnp.swapaxes(J_before, 0, 1)
    return determinant(product(J_T, J_before)), determinant(product(J_T, J))


# the contacts ---------------------------------------------------------------------------------------------------------


def _watched(
    run: _Run, s: _State, w: _Watch, now: Problem, y: Array, v: Array, done: Array
) -> tuple[_Watch, Array, Array]:
    """The guards at a position that was found: whether it may be accepted, and if not, after which shorter step to look
    again."""

    def look():
        def moved(d: Array):
            g, *rest = guards(now, run.problem.system.retract(y, d), v, run.span, w.apart)
            return g, rest

        g, rate, (mode, near, apart) = jax.jvp(moved, (jnp.zeros_like(v),), (v,), has_aux=True)
        return g, rate, mode, near, apart, _clear(run, y, v, g)

    known = (w.g, w.rate, w.mode, w.near, w.apart, w.clear)
    g, rate, mode, near, apart, clear = jax.lax.cond(jnp.any(done), look, lambda: known)
    armed = w.armed | (g > _TOUCHING)
    shifted = g + jnp.where(w.armed, 0.0, _TOUCHING)
    passed = jnp.any((w.g > 0) & (shifted <= 0) & ~s.fresh, 0) & done
    dip, where = dip_by_rates(w.g, w.rate, shifted, rate, s.h)
    dips = jnp.any(dip, 0) & done & ~passed & ~s.fresh & (s.h > _CROSSING * run.span)
    lowest = jnp.min(jnp.where(dip, where, 1.0), 0) * s.h
    fine = done & ~passed & ~dips
    g = g + jnp.where(armed, 0.0, _TOUCHING)
    mode = mode._replace(held=w.mode.held)
    locating, zero = w.bracket.locating, jnp.zeros_like(s.h)
    b = w.bracket._replace(g_lo=jnp.where(locating, w.bracket.g_lo, w.g))
    b = narrowed(b, fine & locating, zero, g, passed, s.h, shifted)
    tries = jnp.where(locating, w.tries + (fine | passed), 0)
    early = jnp.where(passed | (dips & locating), aim(b, tries, jnp.zeros_like(dips)), jnp.where(dips, lowest, 0.0))
    known = tree_where(fine, (mode, g, rate, near, apart, clear, armed), w[:7])
    return w._replace(**dict(zip(w._fields, known)), bracket=b, tries=tries), fine, early


def _clear(run: _Run, q: Array, v: Array, g: Array) -> Array:
    """How long it takes bodies to cover the gap between them, or what they can move along each other without missing
    anything."""
    system = run.problem.system
    X = system.poses(q)
    V = jnp.sum(wide(system.layout.paths, run.table.lanes) * (system.twists(q, X) * v)[:, None], 2)
    room = jnp.maximum(run.table.gaps(g) * system.size, run.finest)
    return jnp.min(room / jnp.maximum(system.gap_rate_bounds(system.planes(X), V, run.around), 1e-300), 0)


def _accepted(w: _Watch, h: Array) -> _Watch:
    """After a step by h."""
    mode = w.mode._replace(held=w.mode.held + w.mode.drift * h)
    bracket = w.bracket._replace(hi=w.bracket.hi - h)
    return w._replace(mode=mode, bracket=bracket, fallen=w.fallen + (1 - mode.clock) * h)


def _watched_step(run: _Run, s: _State, on: _State, first: Array, h: Array, arrived: Array) -> Array:
    """The next step, where contacts are watched: no further than bodies could come through each other; and where an
    event is being located, towards it."""
    assert on.watch is not None
    first = jnp.where(_falling(s), 0.01 * run.span, first)
    h = jnp.where(s.fresh & ~arrived, first, jnp.where(_falling(s), 2 * s.h, h))
    speed = jnp.max(jnp.abs(on.v * run.per_size), 0, initial=0.0)
    stride = _STRIDE / jnp.maximum(speed, _STRIDE / (10 * run.span))
    h = jnp.minimum(h, jnp.minimum(stride, on.watch.clear))
    b = on.watch.bracket
    return jnp.where(b.locating, aim(b, on.watch.tries, jnp.zeros_like(arrived)), h)


def _events(run: _Run, s: _State, w: _Watch, active: Array, lost: Array) -> tuple[_State, Array]:
    """Resets where an event is located, or where the mechanism stops at one. Also whether the motion ends."""
    given_up = lost & jnp.any(w.mode.owner >= 0, 0) & ~s.stuck
    due = (active & (w.bracket.hi <= run.least)) | given_up
    s = s._replace(watch=w._replace(made=jnp.zeros_like(lost)))
    s, ended = jax.lax.cond(
        jnp.any(due), lambda s: _reset(run, s, s.watch, due, given_up), lambda s: (s, jnp.zeros_like(lost)), s
    )
    assert s.watch is not None
    return s, (lost & ~given_up) | ended | (s.watch.fallen > run.span)


def _reset(run: _Run, s: _State, w: _Watch, due: Array, given_up: Array) -> tuple[_State, Array]:
    """The state after the events that are due, and where nothing goes on from there."""
    crossed, guard = w.bracket.crossed, first(w.bracket)
    value = jnp.take_along_axis(w.bracket.g_hi, guard[None], 0)[0]
    made = due & (given_up | (value > -JUMP))
    jump = due & ~made  # of a guard, to be stepped over
    now, fall = run.problem.with_mode(w.mode), _FALL / run.span
    after: Reset = reset_lanes(now, w.near, s.t.ndim, s.q, s.t, s.v, guard, given_up, fall)
    jammed = made & (after.kind == number("jammed"))
    mode = tree_where(made & ~jammed, after.mode, w.mode)
    told = jnp.where(given_up, -1, guard)
    row = EventRow(s.t, s.q, told, w.mode, mode, after.kind, after.contact, after.gave_way)
    numbers = run.table.contact_numbers
    touched = run.table.of_contacts((numbers == after.contact) | (numbers == after.gave_way), False) & made
    full = made & (w.count >= run.max_events)
    w = w._replace(
        mode=mode,
        armed=w.armed & ~touched,
        g=jnp.where(crossed & jump, -1.0, w.g),
        bracket=w.bracket._replace(hi=jnp.where(due, jnp.inf, w.bracket.hi), moved=jnp.where(due, 0, w.bracket.moved)),
        jammed=w.jammed | jammed,
        count=w.count + made,
        fallen=jnp.where(made, 0.0, w.fallen),
        made=made,
        row=row,
    )
    # the new mode begins where the old one ended
    h = jnp.where(made, 0.0, jnp.where(jump, 2 * run.least, s.h))
    begins = dict(v=0.0, v_back=0.0, moved=0.0, back=1.0, fresh=True, k=0, last=jnp.inf)
    s = s._replace(h=h, watch=w, **{x: jnp.where(made, y, getattr(s, x)) for x, y in begins.items()})
    d = s.v * h
    y = run.problem.system.retract(s.q, d)
    return s._replace(d=jnp.where(due, d, s.d), y=jnp.where(due, y, s.y)), jammed | full


# the outputs ----------------------------------------------------------------------------------------------------------


def _to_output(run: _Run, s: _State, t: Array, t_after: Array) -> tuple[_State, _Output]:
    """The next output, where there are no contacts: all lanes are taken there together."""
    s = s._replace(count=jnp.where(s.stuck, s.count, 0), crossed_at=jnp.full_like(s.t, jnp.inf))
    s = jax.lax.while_loop(lambda s: jnp.any(_going(run, s, t)), lambda s: _corrected(run, s, t, t_after), s)
    s = s._replace(stuck=s.stuck | (s.count >= run.max_steps))
    return s, _Output(s.q, ~s.stuck, s.crossed_at, None, jnp.zeros_like(s.count))


def _output(s: _State, reached: Array) -> _Output:
    assert s.watch is not None
    return _Output(s.q, reached, s.crossed_at, s.watch.mode, s.watch.count)


def _at_own_pace(run: _Run, s: _State) -> tuple[_State, _Output, EventRow]:
    """All outputs where contacts change: no lane waits for the events of another."""
    lanes, n = s.t.ndim, run.ts.shape[0]
    entry = lanewise(lambda x, i: x[jnp.minimum(i, n - 1)], lanes)

    def step(state: tuple[_State, Array, Record, Record]) -> tuple[_State, Array, Record, Record]:
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


def _path(run: _Run, end: _State, outputs: _Output, events: EventRow | None) -> Path:
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
