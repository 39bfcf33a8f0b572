"""The derivatives of a simulation: the recorded steps, made again as a plain scan."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from ._impact import bouncing_time, impulses, meeting, struck_velocity
from ._loop import Course, Options, Row, guard_value, look
from ._plant import Instant, Plant, Stance
from ._precision import is_concrete
from ._stepper import step
from ._trees import frozen


def advance(plant: Plant, t: Array, q: Array, p: Array, stance: Stance, t1: Array, options: Options) -> Instant:
    """What holds at t1, after one step from t."""
    y, still = jnp.concatenate([q, p]), jnp.zeros(len(plant.names[0]))
    made = step(options.solver, look, (plant, stance), t, t1 - t, y, None, still, middle=False, scan_kind="bounded")
    return jax.tree_util.tree_map(lambda x: x[0], made.seen)


@eqx.filter_custom_jvp
def starts(plant: Plant, t: Array, q: Array, p: Array, *, course: Course, options: Options):
    """Where each step begins (t, q, p, speeds of approach), then where the last one ends; the momenta before what
    ended each, and how long the bouncing still lasts that it sums up: as recorded, with the derivatives of `_replay`.
    Who asks for no derivatives does not pay for them."""
    rows, last = course.rows, course.last
    n = rows.t.shape[0]
    parts = [
        jnp.concatenate([x, y[None]])
        for x, y in ((rows.t, last.t), (rows.q, last.q), (rows.p, last.p), (rows.stance.approach, last.stance.approach))
    ]
    parts = [x.at[course.count].set(x[n]) for x in parts]
    return (*parts, rows.p_end, rows.settle)


@starts.def_jvp
def _starts_jvp(primals, tangents, *, course: Course, options: Options):
    found = starts(*primals, course=course, options=options)
    n = course.rows.t.shape[0]
    used = n
    if is_concrete(course.count):  # steps that were not made need no replay
        used = min(n, max(16, 1 << int(course.count).bit_length()))
    rows = jax.tree_util.tree_map(lambda x: x[:used], course.rows)
    _, slopes = _replay_jvp(primals, tangents, rows, course.last, course.count, options)
    # what depends on nothing that has a tangent, as speeds of approach where there are no contacts, has none
    padded = lambda x: jnp.concatenate([x, jnp.zeros((n - used, *x.shape[1:]))])
    return found, tuple(None if x is None else padded(x) for x in slopes)


@eqx.filter_jit
def _replay_jvp(primals, tangents, rows: Row, last: Row, count: Array, options: Options):
    again = lambda plant, t, q, p: _replay(plant, t, q, p, rows, last, count, options)
    return eqx.filter_jvp(again, primals, tangents)


def _replay(plant: Plant, t: Array, q: Array, p: Array, rows: Row, last: Row, count: Array, options: Options):
    """The same, from the equations that hold in each step.

    The date of an event is where its guard is zero: one Newton correction from where it was located carries its
    derivatives; the search for it carries none.
    """
    n = rows.t.shape[0]
    used = jnp.arange(n) < count
    later = lambda x, y: jnp.concatenate([x[1:], y[None]]).at[count - 1].set(y)
    after = jax.tree_util.tree_map(later, rows.stance, last.stance)

    led = jnp.concatenate([jnp.zeros(1, bool), rows.guard[:-1] < 0])  # whether the step before ended without an event

    def one(carry, each):
        t, q, p, approach = carry
        row, then, there, led = each
        stance = row.stance._replace(approach=approach)
        # no step where there is none, and at events that happen at once: these are when what led to them is
        on = there & (row.t_end > row.t)
        t1 = jnp.where(on, row.t_end, t)
        # a step that ended on the surface by itself is followed by an event without a step: that has a date of its own
        located = (on | (there & led)) & (row.guard >= 0)
        now, t_now = advance(plant, t, q, p, stance, t1, options), t1

        def dated(_):
            q1, rates = now.frame.q, (now.q_dot, now.p_dot)

            def guard(s: Array) -> Array:
                later = plant.instant(t1 + s, q1 + rates[0] * s, now.p + rates[1] * s, stance)
                return guard_value(plant, t1 + s, later, stance, then, row.guard)

            value, rate = jax.jvp(guard, (jnp.zeros(()),), (jnp.ones(()),))
            lag = -(value - frozen(value)) / jnp.where(rate != 0, frozen(rate), 1.0)
            return q1 + rates[0] * lag, now.p + rates[1] * lag, t1 + lag

        if options.watching:
            q1, p1, t1 = jax.lax.cond(located, dated, lambda _: (now.frame.q, now.p, t1), None)
        else:
            q1, p1 = now.frame.q, now.p
        p_end, settle = p1, jnp.zeros(())
        if plant.laws:

            def blown(_):
                frame = plant.frame(q1, t1, stance)
                v = plant.velocity(frame, plant.solver(frame, stance), p1, t1)
                met = meeting(plant, frame, v, then)
                pi = impulses(met, plant.restitution, row.struck, row.elastic)
                v = struck_velocity(plant, met, v, pi)
                soft = then.on & ~stance.on & ~jnp.asarray(plant.rigid)
                approach1 = jnp.where(soft, -met.rates, approach)
                q2 = plant.project(q1, t1, then)
                frame = plant.frame(q2, t1, then)
                p2 = plant.momentum(frame, v)
                # onto the contacts that have closed
                v = plant.velocity(frame, plant.solver(frame, then), p2, t1)
                k = jnp.clip(row.contact, 0, len(plant.laws) - 1)
                e, pull = plant.restitution[k], now.gap_rates_dot[k] + row.jerk * (t1 - t_now)
                left = bouncing_time(-e * met.rates[k], pull, row.jerk, e, jnp.inf)
                return q2, plant.momentum(frame, v), approach1, jnp.where(row.settle > 0, left, 0.0)

            q1, p1, approach, settle = jax.lax.cond(
                there & (row.guard >= 0), blown, lambda _: (q1, p1, approach, settle), None
            )
        keep = lambda x, y: jnp.where(there, x, y)
        carry = keep(t1, carry[0]), keep(q1, carry[1]), keep(p1, carry[2]), keep(approach, carry[3])
        return carry, (*carry, p_end, settle)

    begin = (t, q, p, rows.stance.approach[0])
    _, (ts, qs, ps, approaches, p_ends, settles) = jax.lax.scan(jax.checkpoint(one), begin, (rows, after, used, led))  # pyright: ignore
    several = ((t, ts), (q, qs), (p, ps), (begin[3], approaches))
    return (*(jnp.concatenate([x[None], y]) for x, y in several), p_ends, settles)
