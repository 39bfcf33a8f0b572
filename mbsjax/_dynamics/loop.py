"""The event loop: one flat, bounded loop over integration steps, in which every lane goes at its own pace.

Try a step; look at the guards half way and at its end. If none has changed its sign, commit the step. If one has,
bracket the event and try again, with a shorter step, until it is located; then reset. Nothing here is differentiated:
what was decided is recorded, and `replay` differentiates that.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._events.closure import CLOSED
from .._events.guards import GuardTable
from .._events.locator import no_bracket
from .._events.results import code
from .._numerics.groups import lanes_behind, lanewise
from .._numerics.lanes import Work, in_turn, lanes_at_work
from .._numerics.record import Record
from .._numerics.stepper import step
from .._programs.precision import Threshold
from .._programs.trees import tree_where
from .bouncing import Bounces
from .guards import guards
from .impact import RestRule
from .instant import Instant
from .location import GuardSigns, Located, guard_of, locate, signs_of
from .loop_state import Options, Run, State, Trial
from .mode import Mode
from .plant import Plant
from .record import RecordedStep, Recording, at_rest, begun, speeds_of
from .reset import reset_lanes, slides_otherwise
from .step_size import accepted, closing_speeds, reach_of, stride


_TRIES = 96  # a step that has not come about after so many attempts will not
_LOOKS = 16  # with friction, no step is longer than this part of the time covered
_LEAST = Threshold(1e-12, 2e-6)  # of the time covered: no step is shorter
_CLOSER = 0.1  # of what is closed: so far steps are closed, so that outputs within them are


def look(args: tuple[Plant, Mode], t: Array, y: Array, d: Array) -> tuple[Instant, Array, Array]:
    """What holds where y is moved by d; the canonical right-hand side; and the way back onto the constraints."""
    plant, mode = args
    nq = sum(plant.problem.system.layout.n_stored)
    now = plant.instant(t, plant.problem.system.retract(y[:nq], d), y[nq:], mode)
    back = plant.way_back(now.frame.C, now.frame.residual, mode)
    return now, jnp.concatenate([now.q_dot, now.p_dot]), back


class Task(NamedTuple):
    """A motion to be computed, or many."""

    numbers: Any  # of the plant
    start: tuple  # t, q, p, mode, and what one unit of q and p weighs
    t_end: Array
    limits: Array
    ts: Array | None  # where only those steps are recorded that these outputs, and events, are read from


def run(
    plant: Plant, start: tuple, t_end: Array, limits: Array, options: Options, ts: Array | None = None
) -> Recording:
    """The steps of a motion from `start` (t, q, p, mode, and what one unit of q and p weighs); `limits` are rtol,
    atol, the speed that counts as rest, which part of the fastest impact so far does, and how near contacts are that
    take part in impacts of others. With `ts`, those steps only that outputs at these times, and events, are read from.
    Under `vmap`, lanes are put behind all other axes, and of very many some are at work at a time."""
    numbers, structure = eqx.partition(plant, eqx.is_array)
    runs = lambda task: _run_of(eqx.combine(task.numbers, structure), task, options)
    go = lambda task: _recorded(runs, task)
    many = lambda varies, task: _recorded_in_turn(runs, varies[0], task) if _waits(task, options) else go(task)
    return lanes_behind(go, many)(Task(numbers, start, t_end, limits, ts))


def _run_of(plant: Plant, task: Task, options: Options) -> Run:
    rtol, atol, *rest = task.limits
    t0, q0, _, mode0, units = task.start
    table = GuardTable(len(plant.laws), mode0.signs.shape[0], t0.ndim, mode0.slide.shape[0])
    least = 4 * jnp.finfo(q0.dtype).eps * (jnp.abs(t0) + jnp.abs(task.t_end))
    reach = reach_of(plant) if plant.laws else None
    span = task.t_end - t0
    return Run(plant, options, table, task.t_end, span, rtol, atol, RestRule(*rest), units, least, reach)


def _begun(run: Run, task: Task) -> tuple[State, RecordedStep]:
    t0, q0, p0, mode0, _ = task.start
    state = _first(run, t0, q0, p0, mode0)
    return state, begun(run.plant.tangents, t0, q0, p0, mode0, state.speeds)


def _blank(run: Run, task: Task, first: RecordedStep) -> Record:
    most = run.options.max_steps
    if task.ts is not None:
        most = min(most, rows_for(task.ts.shape[0], run.options))
    return Record.blank(first, most, task.t_end.ndim)


def rows_for(outputs: int, options: Options) -> int:
    """How many steps there can be that outputs and events are read from: those of outputs, those that events end, and
    those that follow them."""
    return outputs + 2 * (options.max_events + 1)


def _recorded(runs: Callable[[Task], Run], task: Task) -> Recording:
    """All lanes at once."""
    run = runs(task)
    state, first = _begun(run, task)
    meter, t0 = run.options.meter, task.start[0]

    def body(carry):
        s, record, progress = carry
        s, record = _recorded_attempt(run, task, s, record)
        if meter is not None:
            progress = meter.step(progress, jnp.min((s.t - t0) / jnp.where(run.span > 0, run.span, 1.0)))
        return s, record, progress

    carry = state, _blank(run, task, first), None if meter is None else meter.init()
    state, record, progress = jax.lax.while_loop(lambda carry: jnp.any(~carry[0].done), body, carry)
    if meter is not None:
        meter.close(progress)
    return Recording(record.read(first, t0.ndim), *_found(run.plant, state))


def _waits(task: Task, options: Options) -> bool:
    n = task.t_end.shape
    return options.meter is None and len(n) == 1 and lanes_at_work(*n) < n[0]


def _recorded_in_turn(runs: Callable[[Task], Run], varies: Task, task: Task) -> Recording:
    """Some lanes at a time. What does not vary from lane to lane is not exchanged."""
    every, same = eqx.partition(task, varies)
    same = jax.tree_util.tree_map(lambda x: x[..., : lanes_at_work(x.shape[-1])], same)
    whole, now = runs(task), lambda mine: eqx.combine(mine, same)

    def attempt(mine: Any) -> Callable:
        return functools.partial(_recorded_attempt, runs(now(mine)), now(mine))

    work = Work(lambda mine: _begun(runs(now(mine)), now(mine))[0], attempt, lambda s: _found(whole.plant, s))
    state, first = _begun(whole, task)
    record, found = in_turn(work, every, _blank(whole, task, first), _found(whole.plant, state))
    return Recording(record.read(first, 1), *found)


def _found(plant: Plant, s: State) -> tuple:
    """What there is to tell when a motion is over, but for its steps."""
    last = begun(plant.tangents, s.t, s.q, s.p, s.mode, s.speeds)
    return s.rows, s.steps, last, s.code, s.rejected, s.events, s.paradox


def _recorded_attempt(
    run: Run, task: Task, s: State, record: Record, lane: Array | None = None
) -> tuple[State, Record]:
    """The state after an attempt, and the record with the step that came of it, if one did and it is wanted."""
    new, row, commit = _attempt(run, s)
    wanted = commit
    if task.ts is not None:
        read = jnp.any((task.ts >= row.t) & (task.ts < row.t_end), 0)
        wanted = commit & (read | s.led | (row.guard >= 0))
    record = record.written(jnp.where(wanted, s.rows, record.reals.shape[0]), row, lane)
    return new._replace(rows=s.rows + wanted, led=jnp.where(commit, row.guard >= 0, s.led)), record


def _first(run: Run, t: Array, q: Array, p: Array, mode: Mode) -> State:
    """Before the first step."""
    none, no, zero = jnp.zeros(t.shape, int), jnp.zeros(t.shape, bool), jnp.zeros_like(t)
    g, of_contacts = jnp.zeros((run.table.count, *t.shape)), jnp.zeros((run.table.contacts, *t.shape))
    return State(
        t, q, p, at_rest(run.plant, t), jnp.zeros_like(jnp.concatenate([q, p])), mode,
        there=(mode.places, mode.places.s1), apart=run.plant.problem.system.no_pairs_apart(t.shape), g=g, armed=g > 0,
        exempt=of_contacts > 0, fresh=~no, h=1e-3 * run.span, h_free=1e-3 * run.span, bracket=no_bracket(g),
        bounces=Bounces(zero, of_contacts - jnp.inf, *3 * [of_contacts]), tries=none, cut=no, steps=none, rows=none,
        led=no, rejected=none, events=none, code=none, done=run.span <= 0,
        paradox=None if run.plant.friction is None else (none, zero),
    )  # fmt: skip


def _attempt(run: Run, s: State) -> tuple[State, RecordedStep, Array]:
    """A trial and what follows from it: the state, the step to record, and whether there is one."""
    trial = _tried(run, s)
    signs = signs_of(run, s, trial)
    closing = closing_speeds(run.plant, run.reach, trial.now) if run.reach is not None else None
    located = locate(run, s, trial, signs, closing)
    active, (h, keep) = ~s.done, (trial.h, trial.keep)
    # it does not leave its surface: it stays, or is met again; or it leaves through it
    stays = signs.long & ((h <= _LEAST() * run.span) | signs.leaves)
    event = located.found | signs.due_now | stays
    paradox = None
    if trial.now.friction is not None:
        paradox = active & ~trial.solved & (s.fresh | (h <= _LEAST() * run.span))
        event = event & ~paradox
    plain = (keep & active & ~signs.long & ~located.dips & ~located.bracket.locating & ~s.fresh) | located.over
    guard = guard_of(run, s, signs, located, stays)
    if paradox is not None and run.options.tangential:
        event, guard = event | paradox, jnp.where(paradox, run.table.first_pair + _worst(trial), guard)
    guard = jnp.where(event, guard, -1)
    h_new = _next_step(run, s, trial, signs, located, plain, closing)
    new, row = _committed(run, s, trial, signs, located, plain, event, h_new, guard)
    some = jnp.any(jax.lax.optimization_barrier(event))  # else a GPU computes the whole state along with the sum
    new, row = jax.lax.cond(
        some,
        lambda new, row: _reset(run, new, row, trial.now, event, guard, paradox),
        lambda new, row: (new, row),
        new,
        row,
    )
    if paradox is not None and trial.now.friction is not None:
        worst = _worst(trial)
        found = jnp.take_along_axis(trial.now.friction.own, worst[None], 0)[0]
        new = new._replace(paradox=tree_where(paradox, (worst, found), new.paradox))
        paradox = paradox & ~event
    ended = _ended(run, s, new, trial, paradox)
    over = (new.t >= run.t_end) & ~new.fresh & ~(event & s.fresh)
    return new._replace(code=ended, done=s.done | over | (ended > 0)), row, plain | event


def _tried(run: Run, s: State) -> Trial:
    """A step of length h, with the guards half way and at its end, and how good it is."""
    plant, nq, lanes = run.plant, s.q.shape[0], s.t.ndim
    h = jnp.where(s.fresh | s.done, 0.0, s.h)
    t = jnp.where((s.t + h >= run.t_end - run.least) & ~s.fresh, run.t_end, s.t + h)
    y, still = jnp.concatenate([s.q, s.p]), jnp.zeros((len(plant.names[0]), *s.t.shape))
    watching, solver = run.options.watching, run.options.solver
    taken = step(solver, look, (plant, s.mode), s.t, h, y, s.f, still, middle=watching, scan_kind="lax")
    now: Instant = jax.tree_util.tree_map(lambda x: x[-1], taken.instants)
    g = g_mid = jnp.zeros_like(s.g)
    places, there, apart, apart_mid = s.mode.places, s.there, s.apart, s.apart
    if watching:
        both = jax.vmap(lambda t, now: guards(plant, t, now, s.mode, s.apart))(
            jnp.stack([s.t + h / 2, t]), taken.instants
        )
        g_mid, apart_mid = both[0][0], both[3][0]
        g, places, there, apart = jax.tree_util.tree_map(lambda x: x[1], both)
    off = jnp.max(jnp.abs(now.frame.residual / plant.row_sizes), 0, initial=0.0)
    # momenta count modulo impulses of the constraints, which are large, and noise, near singular positions
    error = jnp.concatenate([taken.error[:nq], plant.tangent(now.frame, s.mode, taken.error[nq:])])
    judge = lanewise(lambda *args: accepted(solver, *args), lanes)
    scaled = (y / run.units, taken.y / run.units, error / run.units)
    keep, h_next = judge(run.rtol, run.atol, s.t, jnp.where(h > 0, h, run.span), *scaled)
    solved = jnp.ones_like(s.done)
    sound = jnp.isfinite(jnp.sum(taken.y, 0) + jnp.sum(taken.error, 0) + jnp.sum(now.p_dot, 0))
    sound &= off <= _CLOSER * CLOSED()
    if now.friction is not None:
        solved = now.friction.solved
        sound &= solved
    keep, h_next = jnp.where(sound, keep, False) | s.fresh, jnp.where(sound, h_next, h / 4)
    speeds = speeds_of(now.frame, now.v, now.gap_rates)
    return Trial(h, t, now, speeds, g_mid, apart_mid, g, places, there, apart, keep, h_next, sound, solved, off)


def _next_step(
    run: Run, s: State, trial: Trial, signs: GuardSigns, located: Located, plain: Array, closing: Any
) -> Array:
    """The step to try next."""
    h, fail, far = trial.h, ~s.done & ~trial.keep, jnp.full_like(run.span, jnp.inf)
    h_long = h / 2
    if run.reach is not None:
        table, size = run.table, run.plant.problem.system.size
        # a contact that parts and comes back within the step: where the parabola through its rate says
        grows = table.of_contacts(s.speeds.rates, 0.0) / size
        bend = (trial.g_mid - grows * h / 2) / jnp.where(h > 0, h * h / 4, 1.0)
        back = signs.unarmed & table.is_gap & (grows > 0) & (bend < 0)
        flight = jnp.where(back, -1.1 * grows / jnp.where(back, bend, -1.0), h / 2)
        h_long = jnp.clip(jnp.min(jnp.where(signs.unarmed, flight, h / 2), 0, initial=jnp.inf), h / 256, h / 2)
        gaps = jnp.abs(table.gaps(trial.g)) * size
        far = stride(run.plant, run.reach, trial.now, closing, gaps, trial.apart, s.mode.active, run.span)
    if run.table.pairs:  # where all sticks, nothing but loads that change tells how long a step may be
        far = jnp.minimum(far, run.span / _LOOKS)
    ahead = jnp.minimum(jnp.minimum(trial.h_next, far), run.t_end - trial.t)
    ahead = jnp.where(s.cut, jnp.minimum(ahead, 4 * h), ahead)  # what had to be cut short grows slowly again
    shorter = jnp.minimum(trial.h_next, 0.9 * h)
    h_new = jnp.select(
        [fail, signs.long, located.dips, plain, located.jump, signs.crossing | located.not_yet],
        [shorter, h_long, signs.h_dip, ahead, located.bracket.hi, located.h],
        s.h,
    )
    return jnp.where(s.fresh, jnp.minimum(jnp.minimum(s.h_free, far), run.t_end - s.t), h_new)


def _committed(
    run: Run, s: State, trial: Trial, signs: GuardSigns, located: Located, plain: Array, event: Array, h: Array, guard
) -> tuple[State, RecordedStep]:
    """The state after the trial, and the step to record, before an event has its effect."""
    now, b, active = trial.now, located.bracket, ~s.done
    commit, opened = plain | event, s.fresh & active
    reached = commit | opened
    # where a step towards an event fails, leads an unarmed guard through its surface, or over a dip, a shorter one
    # comes first, and the event is bracketed anew from there
    anew = commit | (active & ~trial.keep) | signs.long | located.dips
    missed = located.over & b.crossed
    mode = s.mode._replace(places=trial.places)
    new = s._replace(
        t=jnp.where(commit, trial.t, s.t),
        q=jnp.where(reached, now.frame.q, s.q),
        p=jnp.where(reached, now.p, s.p),
        speeds=tree_where(reached, trial.speeds, s.speeds),
        f=jnp.where(reached, jnp.concatenate([now.q_dot, now.p_dot]), s.f),
        mode=tree_where(reached, mode, s.mode),
        there=tree_where(reached, trial.there, s.there),
        apart=jnp.where(reached, trial.apart, s.apart),
        g=jnp.where(reached, trial.g, s.g),
        armed=jnp.where(plain | opened, (s.armed & ~missed) | (trial.g > signs.noise), s.armed),
        exempt=s.exempt & ~(plain & (trial.h > 0)),
        fresh=(s.fresh & ~active) | located.over | signs.sinks,  # behind a jump, all is looked at anew
        h=h,
        h_free=jnp.where(plain, trial.h_next, s.h_free),
        bracket=b._replace(
            lo=jnp.where(anew, 0.0, b.lo),
            hi=jnp.where(anew | s.fresh, jnp.inf, b.hi),
            moved=jnp.where(commit, 0, b.moved),
        ),
        tries=jnp.where(commit | s.fresh, 0, s.tries + 1),
        cut=(s.cut | signs.long) & ~commit,
        steps=s.steps + commit,
        rejected=s.rejected + (active & ~commit & ~s.fresh),
    )
    # an event before any step: the state was put on the constraints just now
    begins = tree_where(s.fresh & event, (new.q, new.p, mode, new.speeds), (s.q, s.p, s.mode, s.speeds))
    return new, begun(run.plant.tangents, s.t, *begins)._replace(
        t_end=trial.t, p_end=now.p, before=trial.speeds, guard=guard
    )


def _reset(
    run: Run, s: State, row: RecordedStep, now: Instant, event: Array, guard: Array, paradox: Array | None
) -> tuple[State, RecordedStep]:
    """The state after the events that are due, and what there is to record of them."""
    tangential = paradox if run.options.tangential else None
    table = run.table
    made, bounces, settle, fall = reset_lanes(
        run.plant, run.rest, now, s.t, s.mode, s.there, row.mode, s.bounces, guard, event, run.span, tangential
    )
    touched = table.of_contacts(made.touched, False) | (table.numbers == guard) | table.is_friction
    others = (made.mode.active != s.mode.active) & (table.contact_numbers != made.contact) & event
    others = jnp.sum(others, 0)
    if table.pairs:
        others = others + jnp.sum(slides_otherwise(run.plant, s.mode, made.mode, made.contact) & event, 0)
    stops = event & _stopping(run.plant, made.contact)
    new = s._replace(
        bounces=bounces,
        p=jnp.where(event, run.plant.momentum(now.frame, made.v, s.p), s.p),
        mode=tree_where(event, made.mode, s.mode),
        armed=jnp.where(event, s.armed & ~touched, s.armed),
        exempt=jnp.where(event, s.exempt | made.touched, s.exempt),
        fresh=s.fresh | (event & ~stops),
        events=s.events + event + others,  # contacts that change with it have events of their own
        code=jnp.where(stops, code("stopped"), s.code),
    )
    told = dict(kind=made.kind, contact=made.contact, struck=made.struck, elastic=made.elastic, slid=made.slid)
    told |= dict(impulse=made.impulse, settle=settle, fall=fall)
    row = row._replace(**{name: tree_where(event, x, getattr(row, name)) for name, x in told.items()})
    rates = jnp.where(event, made.rates, row.before.rates)
    return new, row._replace(before=row.before._replace(rates=rates))


def _stopping(plant: Plant, contact: Array) -> Array:
    """Whether an event of this number is that of a trigger which stops the simulation."""
    joints = 0 if plant.friction is None else len(plant.friction.freedoms)
    first = len(plant.laws) + joints + sum(force.n_switches for force in plant.forces)
    stops = jnp.zeros(contact.shape, bool)
    for i, trigger in enumerate(plant.triggers):
        stops = stops | (trigger.stop & (contact == first + i))
    return stops


def _worst(trial: Trial) -> Array:
    """The pair with friction whose own equation is nearest to having no solution."""
    assert trial.now.friction is not None
    return jnp.argmin(trial.now.friction.own, 0)


def _ended(run: Run, s: State, new: State, trial: Trial, paradox: Array | None) -> Array:
    """The code of the result: zero, as long as nothing ended it early."""
    small = ~s.done & ~trial.keep & (trial.h <= _LEAST() * run.span)
    reasons = {
        "max_events_reached": new.events > run.options.max_events,
        "locked": small & ~trial.sound & (trial.off > _CLOSER * CLOSED()),
        **({} if paradox is None else {"painleve": paradox}),
        "nonfinite": small & ~trial.sound,
        "step_too_small": small | (new.tries > _TRIES),
        "max_steps_reached": (new.steps >= run.options.max_steps) & ~(new.t >= run.t_end),
    }
    why = jnp.select(list(reasons.values()), [code(name) for name in reasons], s.code)
    return jnp.where(~s.done & (s.code == 0), jnp.where(new.code > 0, new.code, why), s.code)
