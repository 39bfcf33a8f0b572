"""The derivatives of the events of a driven motion, of their times and of where coordinates rest, from the equations
that hold at each of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._numerics.linalg import least_squares
from .._programs.trees import frozen
from .continuation_state import EventRow
from .drive import Problem, lock_up, root
from .guards import guards


@eqx.filter_custom_jvp
def event_times(problem: Problem, q0: Float[Array, " nq"], span: Float[Array, ""], *, events: EventRow):
    """The times of the events, where the resting coordinates are held before each of them and in each of the modes, and
    where it locked: as they were found, with the derivatives of `_replay`. Who asks for none does not pay for them."""
    start = problem.mode
    assert start is not None
    return events.t, events.before.held, jnp.concatenate([start.held[None], events.after.held]), events.q


@event_times.def_jvp
def _event_times_jvp(primals, tangents, *, events: EventRow):
    found = event_times(*primals, events=events)
    _, slopes = eqx.filter_jvp(lambda problem, q0, span: _replay(problem, q0, span, events), primals, tangents)
    return found, slopes


def _replay(
    problem: Problem, q0: Float[Array, " nq"], span: Float[Array, ""], events: EventRow
) -> tuple[Float[Array, " events"], Float[Array, "events n"], Float[Array, "more n"], Float[Array, "events nq"]]:
    """The same, from the equations that hold at each event.

    An event is where its guard, a function of the position alone, is zero on the way: one Newton correction of its
    time, from where it was located, carries all derivatives (the search for it carries none). Where a contact became
    impossible at a singular position, its time, and what rests from then on, have the derivatives of a lock-up's.
    """
    start = problem.mode
    assert start is not None
    slots = jnp.asarray(problem.system.layout.slots)
    held0 = q0[slots[start.rests]]

    def one(carry: tuple[Array, Array], row: EventRow):
        held, t_before = carry
        falls = row.before.clock == 0
        happened = jnp.isfinite(row.t)
        lost = happened & (row.guard < 0)  # no guard told of it: the mechanism could not go on, as in a lock-up
        held = jnp.where(row.before.drift != 0, row.before.held, held)
        mode = row.before._replace(held=held)
        locked, locked_at = lock_up(problem.with_mode(mode), row.q, jnp.where(lost & ~falls, row.t, jnp.inf))
        t = jnp.where(falls | ~happened, t_before, jnp.where(lost, locked_at, row.t))

        def at(x: Array) -> tuple[Problem, Array, Array]:
            """The position a little further on."""
            now = problem.with_mode(mode._replace(held=held + mode.drift * x))
            then = t + mode.clock * x
            return now, root(now, row.q, then), then

        def guard(x: Array) -> Array:
            now, q, then = at(x)
            _, J, in_time = now.linearize(q, then)
            v = now.spread(-least_squares(J, refine=1)(in_time[:, None])[:, 0], now.speeds(then) * mode.clock)
            return guards(now, q, v, span)[0][jnp.maximum(row.guard, 0)]

        value, rate = jax.jvp(guard, (jnp.zeros(()),), (jnp.ones(()),))
        located = happened & ~lost
        lag = jnp.where(located, -value / jnp.where(located & (rate != 0), frozen(rate), 1.0), 0.0)
        _, q, t_event = at(lag)
        moved = held + mode.drift * lag
        freed = (row.after.owner < 0) & (row.before.owner >= 0)
        here = jnp.where(lost, locked, q)[slots[mode.rests]]
        kept = jnp.where(happened & freed, here, jnp.where(happened, moved, held))
        return (kept, t_event), (t_event, moved, kept, locked)

    _, (times, before, after, locked) = jax.lax.scan(one, (held0, jnp.zeros(())), events)
    return times, before, jnp.concatenate([held0[None], after]), locked
