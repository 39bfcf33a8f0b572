"""The derivatives of a simulation: the recorded steps, made again as a plain scan."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._numerics.stepper import step
from .._programs.precision import is_concrete
from .._programs.trees import frozen, once, tree_where
from .bouncing import bouncing_time
from .guards import guard_value
from .impact import Impulses, collision, impulses, struck_velocity
from .instant import Instant
from .loop import look
from .loop_state import Options
from .mode import Mode
from .plant import Plant
from .record import RecordedStep, Recording, Speeds, speeds_of
from .reset import with_hops


def advance(plant: Plant, t: Array, q: Array, p: Array, mode: Mode, t1: Array, options: Options) -> Instant:
    """What holds at t1, after one step from t."""
    y, still = jnp.concatenate([q, p]), jnp.zeros(len(plant.names[0]))
    made = step(options.solver, look, (plant, mode), t, t1 - t, y, None, still, middle=False, scan_kind="bounded")
    return jax.tree_util.tree_map(lambda x: x[0], made.instants)


class Trajectory(NamedTuple):
    """Where each step begins, then where the last one ends; what ended each: on a first axis."""

    t: Array
    q: Array
    p: Array
    approach: Array  # speeds at which contacts closed
    speeds: Speeds
    before: Speeds
    impulse: Impulses
    settle: Array  # how long the bouncing still lasts that an event sums up


@eqx.filter_custom_jvp
def replayed(plant: Plant, t: Array, q: Array, p: Array, *, recording: Recording, options: Options) -> Trajectory:
    """As recorded, with the derivatives of `_replay`. Who asks for no derivatives does not pay for them."""
    return as_recorded(recording)


@replayed.def_jvp
def _replayed_jvp(primals, tangents, *, recording: Recording, options: Options):
    found = replayed(*primals, recording=recording, options=options)
    n = recording.steps.t.shape[0]
    used = n
    if is_concrete(recording.count):  # steps that were not made need no replay
        used = min(n, max(16, 1 << int(recording.count).bit_length()))
    steps = jax.tree_util.tree_map(lambda x: x[:used], recording.steps)
    recording = recording._replace(steps=steps)
    crossings = _crossings(frozen(primals[0]), recording) if options.watching else None
    _, slopes = _replay_jvp(primals, tangents, recording, crossings, options)
    # what depends on nothing that has a tangent, as speeds of approach where there are no contacts, has none
    padded = lambda x: jnp.concatenate([x, jnp.zeros((n - used, *x.shape[1:]))])
    return found, jax.tree_util.tree_map(padded, slopes)


@once
def as_recorded(recording: Recording) -> Trajectory:
    steps, last = recording.steps, recording.last
    on = lambda x, y: jnp.concatenate([x, y[None]]).at[recording.count].set(y)
    t, q, p = (on(x, y) for x, y in zip(steps[:3], last[:3]))
    approach = on(steps.mode.approach, last.mode.approach)
    speeds = jax.tree_util.tree_map(on, steps.speeds, last.speeds)
    return Trajectory(t, q, p, approach, speeds, steps.before, steps.impulse, steps.settle)


@once
def _replay_jvp(primals, tangents, recording: Recording, crossings: Any, options: Options):
    again = lambda plant, t, q, p: _replay(plant, t, q, p, recording, crossings, options)
    return eqx.filter_jvp(again, primals, tangents)


def _followed_by(steps: Any, last: Any, count: Array) -> Any:
    """What each step is followed by."""
    later = lambda x, y: jnp.concatenate([x[1:], y[None]]).at[count - 1].set(y)
    return jax.tree_util.tree_map(later, steps, last)


def _guard_and_rates(plant: Plant, row: RecordedStep, after: Mode, t: Array, q: Array, p: Array):
    """The guard that ended a step, the rates of t, q and p, and the accelerations of the gaps."""
    now = plant.instant(t, q, p, row.mode)
    rates = (jnp.ones(()), now.q_dot, now.p_dot)
    return guard_value(plant, t, now, row.mode, after, row.guard), rates, now.gap_rates_dot


@once
def _crossings(plant: Plant, recording: Recording):
    """How fast the guard that ended each step passed zero, and the second rates of t, q and p and the third ones of the
    gaps there."""

    def one(each: tuple[RecordedStep, Mode, Array]):
        row, after, q = each

        def crossing(_):
            at = (row.t_end, q, row.p_end)
            (_, rates, _), push = jax.linearize(lambda *x: _guard_and_rates(plant, row, after, *x), *at)
            return push(*rates)

        bends = jnp.zeros(()), jnp.zeros_like(q), jnp.zeros_like(row.p)
        none = jnp.zeros(()), bends, jnp.zeros_like(row.speeds.rates)
        return jax.lax.cond(row.guard >= 0, crossing, lambda _: none, None)

    steps, last, count = recording.steps, recording.last, recording.count
    after, q = _followed_by((steps.mode, steps.q), (last.mode, last.q), count)
    return jax.lax.map(one, (steps, after, q))


class _Visit(NamedTuple):
    """A recorded step that is made again."""

    row: RecordedStep
    after: Mode  # the mode of the next one
    used: Array  # whether there is such a step
    led: Array  # whether the one before ended without an event
    crossing: Any


def _replay(
    plant: Plant, t: Array, q: Array, p: Array, recording: Recording, crossings: Any, options: Options
) -> Trajectory:
    """`replayed`, from the equations that hold in each step.

    The time of an event is where its guard is zero: two Newton corrections from where it was located carry its first
    and second derivatives; the search for it carries none.
    """
    steps, last, count = recording.steps, recording.last, recording.count
    used = jnp.arange(steps.t.shape[0]) < count
    led = jnp.concatenate([jnp.zeros(1, bool), steps.guard[:-1] < 0])
    visits = _Visit(steps, _followed_by(steps.mode, last.mode, count), used, led, crossings)
    begin = (t, q, p, steps.mode.approach[0])
    one = lambda carry, visit: _step_again(plant, options, carry, visit)
    _, (*begins, speeds, before, impulse, settle) = jax.lax.scan(
        jax.checkpoint(one),  # pyright: ignore
        begin,
        visits,
    )
    on = lambda x, y: jnp.concatenate([x[None], y])
    speeds = jax.tree_util.tree_map(lambda x, y: on(jax.lax.stop_gradient(x[0]), y), steps.speeds, speeds)
    t, q, p, approach = (on(x, y) for x, y in zip(begin, begins))
    return Trajectory(t, q, p, approach, speeds, before, impulse, settle)


def _step_again(plant: Plant, options: Options, carry: tuple[Array, ...], visit: _Visit):
    """One step, the time of the event that ended it, and its reset."""
    t, q, p, approach = carry
    row, used = visit.row, visit.used
    mode = row.mode._replace(approach=approach)
    # no step where there is none, and at events before any step: these are when what led to them is
    on = used & (row.t_end > row.t)
    t1 = jnp.where(on, row.t_end, t)
    # a step that ended on the surface by itself is followed by an event without a step: that has a time of its own
    located = (on | (used & visit.led)) & (row.guard >= 0)
    now = advance(plant, t, q, p, mode, t1, options)
    q1, p1, t_event = now.frame.q, now.p, t1
    speeds = speeds_of(now.frame, now.v, now.gap_rates)
    nothing = jnp.zeros_like(approach)
    unstruck = Impulses(nothing, nothing if plant.tangents else nothing[:0])
    end = q1, p1, approach, speeds, speeds, unstruck, jnp.zeros(())
    if options.watching:
        q1, p1, t_event = jax.lax.cond(
            located, lambda _: _to_event(plant, now, t1, mode, visit), lambda _: (q1, p1, t1), None
        )
        end = jax.lax.cond(
            used & (row.guard >= 0),
            lambda _: _reset_again(plant, now, t1, t_event, q1, p1, mode, visit),
            lambda _: (q1, p1, *end[2:]),
            None,
        )
    q1, p1, approach, *ended = end
    carry = tree_where(used, (t_event, q1, p1, approach), carry)
    return carry, (*carry, *ended)


def _to_event(plant: Plant, now: Instant, t: Array, mode: Mode, visit: _Visit) -> tuple[Array, Array, Array]:
    """The state where the guard is zero that ended the step, and the time, from where it was located."""
    here, rates = (t, now.frame.q, now.p), (jnp.ones(()), now.q_dot, now.p_dot)
    rate, bends, _ = visit.crossing
    rate = jnp.where(rate != 0, rate, 1.0)
    after = lambda s: [x + (v + a * s / 2) * s for x, v, a in zip(here, rates, bends)]

    def correct(s: Array, _: None) -> tuple[Array, None]:
        value = _guard_and_rates(plant, visit.row._replace(mode=mode), visit.after, *after(s))[0]
        return s - (value - frozen(value)) / rate, None

    lag, _ = jax.lax.scan(correct, jnp.zeros(()), None, length=2)
    t, q, p = after(lag)
    return q, p, t


def _reset_again(plant: Plant, now: Instant, t: Array, t_event: Array, q: Array, p: Array, mode: Mode, visit: _Visit):
    """The reset as it was decided: of the state after the step, the speeds on both sides, the impulses, and how long
    the bouncing still lasts."""
    row, after, approach = visit.row, visit.after, mode.approach
    frame = plant.frame(q, t_event, mode)
    v = plant.velocity(frame, mode, plant.solver(frame, mode), p, t_event)
    if not plant.laws:
        if plant.friction is not None:
            v = plant.velocity(frame, after, plant.solver(frame, after), p, t_event)
            p = plant.momentum(frame, v, p)
        speeds = speeds_of(frame, v, approach)
        return q, p, approach, speeds, speeds, Impulses(approach, approach), jnp.zeros(())
    met = collision(plant, frame, v, after)
    pi = impulses(met, plant.restitution, row.struck, row.elastic, row.slid, plant.poisson)
    soft = after.active & ~mode.active & ~jnp.asarray(plant.rigid)
    k = jnp.clip(row.contact, 0, len(plant.laws) - 1)
    total, ratio = with_hops(plant, met, pi, after, row.struck, row.slid, k)
    acceleration = now.gap_rates_dot + visit.crossing[2] * (t_event - t)
    left = bouncing_time(-met.rates[k], acceleration[k], row.fall, ratio, jnp.inf)
    # onto the contacts that have closed
    p2, held = plant.momentum(frame, struck_velocity(plant, met, v, total)), met.frame
    v2 = plant.velocity(held, after, plant.solver(held, after), p2, t_event)
    return (
        q,
        plant.momentum(frame, v2, p),
        jnp.where(soft, -met.rates, approach),
        speeds_of(frame, v2, held.slopes @ v2),
        speeds_of(frame, v, met.rates),
        pi,
        jnp.where(row.settle > 0, left, 0.0),
    )
