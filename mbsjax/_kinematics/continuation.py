"""Following a driven mechanism in time, position after position, through the changes of its contacts.

Nothing here is differentiated: positions, dates and modes are found here, once, and derivatives are
taken elsewhere, of the equations that hold in each mode.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._numerics.groups import lanes_behind, lanewise, wide
from .._numerics.linalg import determinant, product, solve_singletons_last, without_singletons
from .._numerics.record import Record
from .contacts import Mode
from .drive import Problem
from .modes import EVENTS, GUARDS, Change, changes, watch
from .system import Rotations


CODES = (
    "successful",
    "locked",
    "max_steps_reached",
    "nonfinite",
    "jammed",
    "max_events_reached",
    "fell",
)

_CONVERGED = 20  # times the root of the machine's precision: the next correction would be of the size of its square
_LEFT = 1e4  # times that precision: a correction that leaves more of the residual does not close the loops
_FIRST = 0.3  # a step is trusted if its first correction is within this part of what was predicted
_CONTRACTION = 0.25  # and every further one within this part of the one before
_CORRECTIONS = 6
_CROSSING = 1e-5  # of the time covered: a change of sign of the Jacobian in a longer step may be a turn not seen
_STRIDE = 0.1  # the longest step where contacts are watched, in radians, or parts of the mechanism's size
_TOUCHING = 1e-10  # a guard that begins on its surface counts as passed when it is this far beyond
_JUMP = 1e-6  # a guard that changes its sign by more than this in no time did not pass through zero
_FALL = 10.0  # a body that drops covers this much, in radians or sizes, in a time as long as the motion


class Log(NamedTuple):
    """The events: for each its time, its position, the modes before and after, and what happened. Rows that are not
    filled have an infinite time."""

    t: Array
    q: Array
    guard: Array  # -1 where none told
    before: Mode
    after: Mode
    kind: Array
    contact: Array
    gave_way: Array


class Found(NamedTuple):
    """What the march found."""

    q: Array  # at every output time
    alive: Array  # whether it was reached
    crossed_at: Array
    mode: Mode | None
    count: Array  # how many events there were before it
    last: Array  # the last position,
    mode_last: Mode | None
    stopped_at: Array  # when and
    why: Array  # why it was the last
    log: Log | None


class _Output(NamedTuple):
    q: Array
    alive: Array
    crossed_at: Array
    mode: Mode | None
    count: Array


class _Watch(NamedTuple):
    """What is known of the contacts."""

    mode: Mode
    g: Array  # the guards at the last accepted position,
    rate: Array  # and their rates,
    near: tuple[Array, ...]  # and the elements that each contact might close on,
    apart: Array  # and the gaps of the pairs of elements that are apart
    clear: Array  # for how long no two bodies can come through each other unseen
    armed: Array  # which have been clear of their surface since their contact last changed
    beyond: Array  # the shortest step that is known to lead beyond an event,
    g_beyond: Array  # and the guards there
    tries: Array
    fallen: Array
    jammed: Array
    count: Array  # of the events
    made: Array  # whether one has just happened,
    row: Log  # and what there is to tell of it


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


def follow(problem: Problem, q0: Array, ts: Array, closed: Array, max_steps: int, max_events: int) -> Found:
    """The positions at `ts`, found one after the other: which there are, and where and why they end.

    Under `vmap`, lanes are put behind all other axes and marched together, each with its own steps.
    """
    numbers, structure = eqx.partition(problem, eqx.is_array)

    @lanes_behind
    def run(numbers, q0, ts, closed):
        return _march(eqx.combine(numbers, structure), q0, ts, closed, max_steps, max_events)

    return run(numbers, q0, ts, closed)


def _march(problem: Problem, q0: Array, ts: Array, closed: Array, max_steps: int, max_events: int) -> Found:
    span = ts[-1] - ts[0]
    eps = jnp.finfo(q0.dtype).eps
    span = jnp.where(span > 0, span, 1.0)
    least, shortest, converged = 5e4 * eps * span, _CROSSING * span, _CONVERGED * eps**0.5
    if problem.mode is not None:
        converged = converged / 100  # contacts ride on corners and steep flanks, where squares are not that small
    ones = [jnp.ones((n, *closed.shape)) for n in (len(problem.unknown), len(problem.columns))]
    per_size = 1 / problem.spread(*ones)

    finest, around = jnp.zeros(()), (jnp.zeros(()), jnp.zeros(()))
    if problem.mode is not None:
        finest, _ = problem.system.feature_sizes
        around = problem.system.bounding_circles

    def newton(problem: Problem, q: Array, rotations: Rotations, t: Array) -> tuple[Array, Array, Array, Array]:
        """The correction of the position, the velocity, and the Jacobian there, as far as it can be singular; and what
        the correction leaves of the residual: beyond a lock-up no move would close the loops, however small it is."""
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

    def ahead(s: _State, h: Array) -> tuple[Problem, Array]:
        """The equations and the time after a step by h. While a body drops, time stands still."""
        if s.watch is None:
            return problem, s.t + h
        mode = s.watch.mode
        return problem.with_mode(mode._replace(held=mode.held + mode.drift * h)), s.t + mode.clock * h

    def trial(s: _State, h: Array) -> _State:
        """A step by h, predicted by the cubic through the last two positions and velocities; straight on where the
        last step was so short that nothing but rounding errors would be drawn out."""
        c = (s.v + s.v_back - 2 * s.moved / s.back) / s.back**2
        b = (s.v - s.v_back) / (2 * s.back) + 1.5 * c * s.back
        d = jnp.where(h > 1e3 * s.back, s.v, s.v + (b + c * h) * h) * h
        y = problem.place(problem.system.retract(s.q, d), ahead(s, h)[1])
        return s._replace(h=h, d=d, y=y, last=jnp.full_like(h, jnp.inf), k=jnp.zeros_like(s.k))

    def falling(s: _State) -> Array:
        return jnp.zeros_like(s.fresh) if s.watch is None else s.watch.mode.clock == 0

    def going(s: _State, t_next: Array) -> Array:
        return ((s.t < t_next) | s.fresh | falling(s)) & ~s.stuck & (s.count < max_steps)

    def correct(s: _State, t_next: Array, t_after: Array) -> _State:
        """One Newton correction of the step being tried, and what follows from it: the next correction, a shorter
        step, or the next step, which after the output is the one to the output after it."""
        active, (now, t) = going(s, t_next), ahead(s, s.h)
        d, v, J, left = newton(now, s.y, s.rotations, t)
        y = problem.system.retract(s.y, d)
        size, reach = (jnp.max(jnp.abs(x * per_size), 0, initial=0.0) for x in (d, s.d))
        limit = jnp.where(s.k == 0, _FIRST * reach + 100 * converged, _CONTRACTION * s.last)
        before, after = _determinants(s.J, J)
        crossed = (before * after < 0) & ~s.fresh
        closes = (size <= converged) & (left <= _LEFT * eps)
        done = closes & active & ~(crossed & (s.h > shortest))
        going_well = (size <= limit) & ~closes & (s.k < _CORRECTIONS)  # not where size is NaN
        failed = ~going_well & ~done & active
        sight = s.watch
        if sight is not None:
            sight, done, early = look(s, now, y, v, done)
        arrived = (t >= t_next - 8 * eps * (jnp.abs(t_next) + span)) & ~falling(s)
        t = jnp.where(arrived, t_next, t)
        # with no past yet, straight on
        back, moved, v_back = (jnp.where(s.fresh, a, b) for a, b in ((1.0, s.h), (v, s.d + d), (v, s.v)))
        on = s._replace(t=t, q=y, v=v, J=J, back=back, moved=moved, v_back=v_back, fresh=jnp.zeros_like(s.fresh))
        where = before / jnp.where(crossed, before - after, 1.0)
        on = on._replace(crossed_at=jnp.where(crossed, s.t + where * s.h, s.crossed_at))
        h = jnp.where(arrived, t_after - t, jnp.minimum(2 * s.h, t_next - t))
        h_short = s.h / 2
        if sight is not None:
            s, ahead_of_it = s._replace(watch=sight), accepted(sight, s.h)
            on = on._replace(watch=ahead_of_it)
            first = jnp.where(falling(s), 0.01 * span, t_next - t)
            h = jnp.where(s.fresh & ~arrived, first, jnp.where(falling(s), 2 * s.h, h))
            h = jnp.minimum(h, jnp.minimum(stride(v), ahead_of_it.clear))
            h = jnp.where(jnp.isfinite(ahead_of_it.beyond), locate(ahead_of_it), h)
            early = jnp.where((early > 0) & jnp.isfinite(sight.beyond), locate(sight), early)
            h_short = jnp.where(early > 0, early, h_short)
        anew = trial(_where(done, on, s), jnp.where(done, h, h_short))
        same = s._replace(d=s.d + d, y=y, last=size, k=s.k + 1)
        over = done | failed if sight is None else done | failed | (early > 0)
        s = anew._replace(
            **{x: jnp.where(over, getattr(anew, x), getattr(same, x)) for x in ("h", "d", "y", "last", "k")}
        )
        lost = failed & (s.h < least)  # h is halved by now
        if s.watch is not None:
            s, lost = events(s, active, lost)
        stuck = s.stuck | lost
        return s._replace(rotations=problem.system.rotations(s.y), count=s.count + active, stuck=stuck)

    # the contacts -----------------------------------------------------------------------------------------------------

    def stride(v: Array) -> Array:
        speed = jnp.max(jnp.abs(v * per_size), 0, initial=0.0)
        return _STRIDE / jnp.maximum(speed, _STRIDE / (10 * span))

    def clear(q: Array, v: Array, g: Array) -> Array:
        """How long it takes bodies to cover the gap between them, or what they can move along each other without
        missing anything."""
        system = problem.system
        X = system.poses(q)
        V = jnp.sum(wide(system.layout.paths, closed.ndim) * (system.twists(q, X) * v)[:, None], 2)
        room = jnp.maximum(g[:, 0] * system.size, finest)
        return jnp.min(room / jnp.maximum(system.gap_rate_bounds(system.planes(X), V, around), 1e-300), 0)

    def look(s: _State, now: Problem, y: Array, v: Array, done: Array) -> tuple[_Watch, Array, Array]:
        """The guards at a position that was found: whether it may be accepted, and if not, after which
        shorter step to look again."""
        w = s.watch
        assert w is not None

        def guards():
            still = jnp.zeros_like(v)

            def moved(d: Array):
                g, *rest = watch(now, problem.system.retract(y, d), v, span, w.apart)
                return g, rest

            g, rate, (mode, near, apart) = jax.jvp(moved, (still,), (v,), has_aux=True)
            return g, rate, mode, near, apart, clear(y, v, g)

        def blind():
            return w.g, w.rate, w.mode, w.near, w.apart, w.clear

        g, rate, mode, near, apart, free = jax.lax.cond(jnp.any(done), guards, blind)
        armed = w.armed | (g > _TOUCHING)
        shifted = g + jnp.where(w.armed, 0.0, _TOUCHING)
        hit = (w.g > 0) & (shifted <= 0) & ~s.fresh
        passed = jnp.any(hit, (0, 1)) & done
        dip, where = _dips(w.g, w.rate, shifted, rate, s.h)
        dips = jnp.any(dip, (0, 1)) & done & ~passed & ~s.fresh & (s.h > shortest)
        first = jnp.min(jnp.where(dip, where, 1.0), (0, 1)) * s.h
        beyond = jnp.where(passed, s.h, w.beyond)
        sight = w._replace(beyond=beyond, g_beyond=jnp.where(passed, shifted, w.g_beyond), tries=w.tries + passed)
        fine = done & ~passed & ~dips
        mode = _where(fine, mode._replace(held=w.mode.held), w.mode)
        armed = jnp.where(fine, armed, w.armed)
        seen = jnp.where(fine, g + jnp.where(armed, 0.0, _TOUCHING), w.g)
        near, apart = _where(fine, near, w.near), jnp.where(fine, apart, w.apart)
        rate = jnp.where(fine, rate, w.rate)
        free = jnp.where(fine, free, w.clear)
        sight = sight._replace(mode=mode, armed=armed, g=seen, rate=rate, near=near, apart=apart, clear=free)
        return sight, fine, jnp.where(passed, s.h / 2, jnp.where(dips, first, 0.0))

    def accepted(w: _Watch, h: Array) -> _Watch:
        mode = w.mode._replace(held=w.mode.held + w.mode.drift * h)
        return w._replace(mode=mode, beyond=w.beyond - h, tries=w.tries + 1, fallen=w.fallen + (1 - mode.clock) * h)

    def locate(w: _Watch) -> Array:
        """The next step towards an event: the root of the chord, missed and passed a little in turns so that the
        bracket closes from both sides, the less the narrower it is; and a bisection now and then."""
        x = jnp.min(jnp.where((w.g > 0) & (w.g_beyond <= 0), w.g / (w.g - w.g_beyond), 1.0), (0, 1))
        aside = jnp.clip(100 * w.beyond / span, 1e-5, 0.02)
        turn = w.tries % 4
        x = jnp.select([turn == 0, turn == 1, turn == 2], [x - aside, x + aside, x - aside / 2], 0.5)
        return jnp.clip(x, 1e-3, 1 - 1e-3) * w.beyond

    def events(s: _State, active: Array, lost: Array) -> tuple[_State, Array]:
        """Lets an event happen that is located, or that the mechanism stops at."""
        w = s.watch
        assert w is not None
        due = active & (w.beyond <= least)
        given_up = lost & jnp.any(w.mode.owner >= 0, 0) & ~s.stuck
        happens = due | given_up

        def commit(s: _State) -> tuple[_State, Array]:
            w = s.watch
            assert w is not None
            hit = (w.g > 0) & (w.g_beyond <= 0)
            order = jnp.where(hit, w.g / (w.g - w.g_beyond), jnp.inf).reshape(-1, *s.t.shape)
            guard = jnp.argmin(order, 0)
            value = jnp.take_along_axis(w.g_beyond.reshape(order.shape), guard[None], 0)[0]
            real = given_up | (value > -_JUMP)
            now = problem.with_mode(w.mode)
            fall = _FALL / span
            told: Change = changes(now, w.near, s.t.ndim, s.q, s.t, s.v, guard, given_up, fall)
            jammed = happens & real & (told.kind == EVENTS.index("jammed"))
            made = happens & real
            mode = _where(made & ~jammed, told.mode, w.mode)
            full = made & (w.count >= max_events)
            tag = jnp.where(given_up, -1, guard)
            row = Log(s.t, s.q, tag, w.mode, mode, told.kind, told.contact, told.gave_way)
            numbers = jnp.arange(w.g.shape[0]).reshape(-1, 1, *(1,) * s.t.ndim)
            touched = ((numbers == told.contact) | (numbers == told.gave_way)) & made
            armed = w.armed & ~touched
            over = hit & happens & ~real  # a jump of the guard, to be stepped over
            w = w._replace(
                mode=mode,
                armed=armed,
                g=jnp.where(over, -1.0, w.g),
                beyond=jnp.where(happens, jnp.inf, w.beyond),
                tries=jnp.where(happens, 0, w.tries),
                jammed=w.jammed | jammed,
                count=w.count + made,
                fallen=jnp.where(made, 0.0, w.fallen),
                made=made,
                row=row,
            )
            # the new mode begins where the old one ended; a jump is stepped over
            jump = happens & ~real
            h = jnp.where(made, 0.0, jnp.where(jump, 2 * least, s.h))
            begins = dict(v=0.0, v_back=0.0, moved=0.0, back=1.0, fresh=True, k=0, last=jnp.inf)
            s = s._replace(h=h, watch=w, **{x: jnp.where(made, y, getattr(s, x)) for x, y in begins.items()})
            d, now = s.v * h, made | jump
            s = s._replace(d=jnp.where(now, d, s.d), y=jnp.where(now, problem.system.retract(s.q, d), s.y))
            return s, jammed | full

        s = s._replace(watch=w._replace(made=jnp.zeros_like(lost)))
        s, ended = jax.lax.cond(jnp.any(happens), commit, lambda s: (s, jnp.zeros_like(lost)), s)
        assert s.watch is not None
        return s, (lost & ~given_up) | ended | (s.watch.fallen * _FALL / span > _FALL)

    # the outputs ------------------------------------------------------------------------------------------------------

    def to_output(s: _State, times: tuple[Array, Array]):
        s = s._replace(count=jnp.where(s.stuck, s.count, 0), crossed_at=jnp.full_like(s.t, jnp.inf))
        s = jax.lax.while_loop(lambda s: jnp.any(going(s, times[0])), lambda s: correct(s, *times), s)
        s = s._replace(stuck=s.stuck | (s.count >= max_steps))
        return s, _Output(s.q, ~s.stuck, s.crossed_at, None, none)

    def output(s: _State, reached: Array) -> _Output:
        assert s.watch is not None
        return _Output(s.q, reached, s.crossed_at, s.watch.mode, s.watch.count)

    def at_own_pace(s: _State) -> tuple[_State, _Output, Log]:
        """All outputs where contacts change: no lane waits for the events of another."""
        lanes, n = s.t.ndim, ts.shape[0]
        entry = lanewise(lambda x, i: x[jnp.minimum(i, n - 1)], lanes)

        def step(state: tuple[_State, Array, Record, Record]) -> tuple[_State, Array, Record, Record]:
            s, i, record, log = state
            t_next = entry(ts, i)
            s = correct(s, t_next, entry(ts, i + 1))
            assert s.watch is not None
            landed = ~going(s, t_next) & ~s.stuck & (s.count < max_steps) & (i < n)
            record = record.written(jnp.where(landed, i, n), output(s, landed))
            log = log.written(jnp.where(s.watch.made, s.watch.count - 1, max_events), s.watch.row)
            s = s._replace(
                stuck=s.stuck | (s.count >= max_steps),
                count=jnp.where(landed, 0, s.count),
                crossed_at=jnp.where(landed, jnp.inf, s.crossed_at),
            )
            return s, i + landed, record, log

        s = s._replace(crossed_at=jnp.full_like(s.t, jnp.inf))
        assert s.watch is not None
        record = Record.blank(output(s, jnp.zeros_like(s.stuck)), n, lanes)
        log = Record.blank(s.watch.row, max_events, lanes)
        s, _, record, log = jax.lax.while_loop(
            lambda state: jnp.any((state[1] < n) & ~state[0].stuck), step, (s, none, record, log)
        )
        assert s.watch is not None
        return s, record.read(output(s, s.stuck), lanes), log.read(s.watch.row, lanes)

    one, none, v = jnp.ones_like(ts[0]), jnp.zeros(closed.shape, int), jnp.zeros_like(per_size)
    rotations = problem.system.rotations(q0)
    shape = (problem.row_sizes.shape[0], len(problem.unknown), *closed.shape)
    J = without_singletons(jnp.zeros(shape), problem.singletons)
    sight = None
    if problem.mode is not None:
        sight = _first_sight(problem, problem.mode, q0, none)
    start = _State(ts[0], q0, v, J, one, v, v, 0 * one, v, q0, rotations, one, none, none, one, closed, ~closed, sight)
    log = last_mode = None
    if sight is None:
        end, outputs = jax.lax.scan(to_output, start, (ts, jnp.concatenate([ts[1:], ts[-1:]])))
    else:
        end, outputs, log = at_own_pace(start)
    _, t = ahead(end, end.h)
    targets = [x for _, x in problem.targets(t)]
    finite = jnp.all(jnp.isfinite(jnp.stack([*problem.prescribed(t), *targets, t])), 0)
    code = CODES.index
    why = jnp.where(end.count >= max_steps, code("max_steps_reached"), code("locked"))
    why = jnp.where(finite, why, code("nonfinite"))
    if end.watch is not None:
        last_mode = end.watch.mode
        why = jnp.where(end.watch.fallen * _FALL / span > _FALL, code("fell"), why)
        why = jnp.where(end.watch.count > max_events, code("max_events_reached"), why)
        why = jnp.where(end.watch.jammed, code("jammed"), why)
    why = jnp.where(end.stuck, why, code("successful"))
    stopped_at = jnp.where(end.stuck, t, jnp.inf)
    return Found(*outputs, end.q, last_mode, stopped_at, why, log)


def _first_sight(problem: Problem, mode: Mode, q: Array, none: Array) -> _Watch:
    lanes = none.shape
    nothing = jnp.zeros((mode.e1.shape[0], GUARDS, *lanes))
    row = Log(jnp.full(lanes, jnp.inf), q, none, mode, mode, none, none, none)
    zero, no = jnp.zeros(lanes), jnp.zeros(lanes, bool)
    near = (mode.e1, mode.e2, mode.s1, mode.s2)
    apart, never = problem.system.no_pairs_apart(lanes), zero + jnp.inf
    return _Watch(
        mode, nothing, nothing, near, apart, never, nothing > 0, never, nothing, none, zero, no, none, no, row
    )


def _dips(g0: Array, r0: Array, g1: Array, r1: Array, h: Array) -> tuple[Array, Array]:
    """Whether a guard, positive at both ends of a step, may have been negative on the way, and at which part of it: by
    the cubic that has its values and rates."""
    parts = (jnp.arange(1, 16) / 16).reshape(-1, *(1,) * g0.ndim)
    r0, r1 = r0 * h, r1 * h
    x = parts
    cubic = (1 + 2 * x) * (1 - x) ** 2 * g0 + x * (1 - x) ** 2 * r0 + x**2 * (3 - 2 * x) * g1 - x**2 * (1 - x) * r1
    least = jnp.argmin(cubic, 0)
    low = jnp.min(cubic, 0)
    valley = (r0 < 0) & (r1 > 0) & (g0 > 0) & (g1 > 0)
    return valley & (low < 0.2 * jnp.minimum(g0, g1)), (least + 1) / 16


def _determinants(J_before: Array, J: Array) -> tuple[Array, Array]:
    """Two numbers of one sign, unless a singular position lies between the two Jacobians."""
    if J.shape[0] == J.shape[1]:
        return determinant(J_before), determinant(J)
    J_T = jnp.swapaxes(J_before, 0, 1)
    return determinant(product(J_T, J_before)), determinant(product(J_T, J))


def _where(condition: Array, a, b):
    return jax.tree_util.tree_map(lambda x, y: jnp.where(condition, x, y), a, b)
