"""The derivatives of a simulation: the recorded steps, made again as a plain scan."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._numerics.stepper import step
from .._programs.precision import is_concrete
from .._programs.trees import frozen, once
from .impact import bouncing_time, impulses, meeting, struck_velocity
from .loop import Course, Options, Row, Side, guard_value, look, side_of
from .plant import Instant, Plant, Stance


def advance(plant: Plant, t: Array, q: Array, p: Array, stance: Stance, t1: Array, options: Options) -> Instant:
    """What holds at t1, after one step from t."""
    y, still = jnp.concatenate([q, p]), jnp.zeros(len(plant.names[0]))
    made = step(options.solver, look, (plant, stance), t, t1 - t, y, None, still, middle=False, scan_kind="bounded")
    return jax.tree_util.tree_map(lambda x: x[0], made.instants)


class Trail(NamedTuple):
    """Where each step begins, then where the last one ends; what ended each: on a first axis."""

    t: Array
    q: Array
    p: Array
    approach: Array  # speeds at which contacts closed
    side: Side
    before: Side
    impulse: Array
    settle: Array  # how long the bouncing still lasts that an event sums up


@eqx.filter_custom_jvp
def trail(plant: Plant, t: Array, q: Array, p: Array, *, course: Course, options: Options) -> Trail:
    """As recorded, with the derivatives of `_replay`. Who asks for no derivatives does not pay for them."""
    return recorded(course)


@trail.def_jvp
def _trail_jvp(primals, tangents, *, course: Course, options: Options):
    found = trail(*primals, course=course, options=options)
    n = course.rows.t.shape[0]
    used = n
    if is_concrete(course.count):  # steps that were not made need no replay
        used = min(n, max(16, 1 << int(course.count).bit_length()))
    rows = jax.tree_util.tree_map(lambda x: x[:used], course.rows)
    ways = _crossings(frozen(primals[0]), rows, course.last, course.count) if options.watching else None
    _, slopes = _replay_jvp(primals, tangents, rows, course.last, course.count, ways, options)
    # what depends on nothing that has a tangent, as speeds of approach where there are no contacts, has none
    padded = lambda x: jnp.concatenate([x, jnp.zeros((n - used, *x.shape[1:]))])
    return found, jax.tree_util.tree_map(padded, slopes)


@once
def recorded(course: Course) -> Trail:
    rows, last = course.rows, course.last
    on = lambda x, y: jnp.concatenate([x, y[None]]).at[course.count].set(y)
    t, q, p = (on(x, y) for x, y in zip(rows[:3], last[:3]))
    approach, side = on(rows.stance.approach, last.stance.approach), jax.tree_util.tree_map(on, rows.side, last.side)
    return Trail(t, q, p, approach, side, rows.before, rows.impulse, rows.settle)


@once
def _replay_jvp(primals, tangents, rows: Row, last: Row, count: Array, ways: Any, options: Options):
    again = lambda plant, t, q, p: _replay(plant, t, q, p, rows, last, count, ways, options)
    return eqx.filter_jvp(again, primals, tangents)


def _after(rows: Any, last: Any, count: Array) -> Any:
    """What each step is followed by."""
    later = lambda x, y: jnp.concatenate([x[1:], y[None]]).at[count - 1].set(y)
    return jax.tree_util.tree_map(later, rows, last)


def _seen(plant: Plant, row: Row, stance: Stance, then: Stance, t: Array, q: Array, p: Array):
    """The guard that ended a step, and the rates of t, q and p."""
    now = plant.instant(t, q, p, stance)
    return guard_value(plant, t, now, stance, then, row.guard), (jnp.ones(()), now.q_dot, now.p_dot)


@once
def _crossings(plant: Plant, rows: Row, last: Row, count: Array):
    """How fast the guard that ended each step passed zero, and the second rates of t, q and p there."""

    def one(each: tuple[Row, Stance, Array]):
        row, then, q = each

        def crossing(_):
            at = (row.t_end, q, row.p_end)
            (_, rates), push = jax.linearize(lambda *x: _seen(plant, row, row.stance, then, *x), *at)
            return push(*rates)

        none = (jnp.zeros(()), (jnp.zeros(()), jnp.zeros_like(q), jnp.zeros_like(row.p)))
        return jax.lax.cond(row.guard >= 0, crossing, lambda _: none, None)

    thens, q = _after((rows.stance, rows.q), (last.stance, last.q), count)
    return jax.lax.map(one, (rows, thens, q))


def _replay(
    plant: Plant, t: Array, q: Array, p: Array, rows: Row, last: Row, count: Array, ways: Any, options: Options
) -> Trail:
    """`trail`, from the equations that hold in each step.

    The date of an event is where its guard is zero: two Newton corrections from where it was located carry its first
    and second derivatives; the search for it carries none.
    """
    n = rows.t.shape[0]
    used = jnp.arange(n) < count
    thens = _after(rows.stance, last.stance, count)
    led = jnp.concatenate([jnp.zeros(1, bool), rows.guard[:-1] < 0])  # whether the step before ended without an event

    def one(carry, each):
        t, q, p, approach = carry
        row, then, there, led, way = each
        stance = row.stance._replace(approach=approach)
        # no step where there is none, and at events that happen at once: these are when what led to them is
        on = there & (row.t_end > row.t)
        t1 = jnp.where(on, row.t_end, t)
        # a step that ended on the surface by itself is followed by an event without a step: that has a date of its own
        located = (on | (there & led)) & (row.guard >= 0)
        now, t_now = advance(plant, t, q, p, stance, t1, options), t1

        def dated(_):
            here, rates = (t1, now.frame.q, now.p), (jnp.ones(()), now.q_dot, now.p_dot)
            rate, bends = way
            rate = jnp.where(rate != 0, rate, 1.0)
            after = lambda s: [x + (v + a * s / 2) * s for x, v, a in zip(here, rates, bends)]

            def correct(s: Array, _: None) -> tuple[Array, None]:
                value = _seen(plant, row, stance, then, *after(s))[0]
                return s - (value - frozen(value)) / rate, None

            lag, _ = jax.lax.scan(correct, jnp.zeros(()), None, length=2)
            t, q, p = after(lag)
            return q, p, t

        q1, p1 = now.frame.q, now.p
        side = before = side_of(now.frame, now.v, now.gap_rates)
        after = q1, p1, approach, side, before, jnp.zeros_like(approach), jnp.zeros(())
        if options.watching:
            q1, p1, t1 = jax.lax.cond(located, dated, lambda _: (q1, p1, t1), None)

            def blown(_):
                frame = plant.frame(q1, t1, stance)
                v = plant.velocity(frame, plant.solver(frame, stance), p1, t1)
                if not plant.laws:
                    side = side_of(frame, v, approach)
                    return q1, p1, approach, side, side, approach, jnp.zeros(())
                met = meeting(plant, frame, v, then)
                pi = impulses(met, plant.restitution, row.struck, row.elastic)
                soft = then.on & ~stance.on & ~jnp.asarray(plant.rigid)
                k = jnp.clip(row.contact, 0, len(plant.laws) - 1)
                e, pull = plant.restitution[k], now.gap_rates_dot[k] + row.jerk * (t1 - t_now)
                left = bouncing_time(-e * met.rates[k], pull, row.jerk, e, jnp.inf)
                # onto the contacts that have closed
                p2, held = plant.momentum(frame, struck_velocity(plant, met, v, pi)), met.frame
                v2 = plant.velocity(held, plant.solver(held, then), p2, t1)
                return (
                    q1,
                    plant.momentum(frame, v2),
                    jnp.where(soft, -met.rates, approach),
                    side_of(frame, v2, held.slopes @ v2),
                    side_of(frame, v, met.rates),
                    pi,
                    jnp.where(row.settle > 0, left, 0.0),
                )

            after = jax.lax.cond(there & (row.guard >= 0), blown, lambda _: (q1, p1, *after[2:]), None)
        q1, p1, approach, *told = after
        carry = jax.tree_util.tree_map(lambda x, y: jnp.where(there, x, y), (t1, q1, p1, approach), carry)
        return carry, (*carry, *told)

    begin = (t, q, p, rows.stance.approach[0])
    _, (*begins, side, before, impulse, settle) = jax.lax.scan(
        jax.checkpoint(one),  # pyright: ignore
        begin,
        (rows, thens, used, led, ways),
    )
    on = lambda x, y: jnp.concatenate([x[None], y])
    side = jax.tree_util.tree_map(lambda x, y: on(jax.lax.stop_gradient(x[0]), y), rows.side, side)
    t, q, p, approach = (on(x, y) for x, y in zip(begin, begins))
    return Trail(t, q, p, approach, side, before, impulse, settle)
