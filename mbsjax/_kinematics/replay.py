"""The event log of a motion, and the derivatives of what it tells."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._model.mechanism import Mechanism
from .._numerics.linalg import least_squares
from .._programs.batch import AbstractBatch, single
from .._programs.trees import frozen
from .continuation import Log
from .drive import Problem, lock_time, root
from .modes import EVENTS, watch


class Event(NamedTuple):
    """One change of a contact.

    - `t`: when.
    - `kind`: one of [`mbsjax.EVENTS`][].
    - `contact`: its name; that of a force or a trigger, where one of these made the event.
    - `before`, `after`: the elements of the first and the second profile, as (number, kind); None without contact.
    - `gave_way`: the name of the contact that opened because this one closed, if one did.
    """

    t: float
    kind: str
    contact: str
    before: Any
    after: Any
    gave_way: str | None

    def __str__(self) -> str:
        if self.before is None:
            return f"t = {self.t:.9g}: {self.contact!r} {self.kind}"
        pairs = [f"{a[1]} {a[0]} - {b[1]} {b[0]}" for a, b in (self.before, self.after)]
        where = pairs[0] if pairs[0] == pairs[1] else f"{pairs[0]} -> {pairs[1]}"
        gave = f"; {self.gave_way!r} gave way" if self.gave_way else ""
        gone = ": the profile ends there, or no further contact is possible" if self.kind == "deleted" else ""
        return f"t = {self.t:.9g}: contact {self.contact!r} {self.kind} ({where}){gone}{gave}"


class Events(AbstractBatch):
    """How the contacts changed along a motion. Arrays have room for `max_events` events; of these, the first `count`
    happened, and the others have an infinite `t`. The dates carry derivatives.

    - `t`, `count`: when, and how many.
    - `kind`: what happened, a number of [`mbsjax.EVENTS`][]; `contact`, to which contact of the mechanism; `gave_way`,
        which one opened because of it, -1 for none.
    - `before`, `after`: the numbers of its elements.
    - `q`, `v_before`, `v_after`, `a_before`, `a_after`: the position, and the one-sided velocities and accelerations,
        as in [`mbsjax.Motion`][].
    - `active_last`: which contacts are active in the end.
    """

    t: Float[Array, " events"]
    count: Int[Array, ""]
    kind: Int[Array, " events"]
    contact: Int[Array, " events"]
    gave_way: Int[Array, " events"]
    before: Int[Array, "events 2"]
    after: Int[Array, "events 2"]
    q: Float[Array, "events nq"]
    v_before: Float[Array, "events nv"]
    v_after: Float[Array, "events nv"]
    a_before: Float[Array, "events nv"]
    a_after: Float[Array, "events nv"]
    active_last: Bool[Array, " c"]

    @property
    def batch(self) -> tuple[int, ...]:
        return self.t.shape[:-1]

    def list(self, mech: Mechanism) -> list[Event]:
        """The events in words."""
        single(self, "events can be listed")
        kinds = [[p.kinds for p in mech.profiles(c)] for c in mech.contacts]

        def elements(k: int, pair: np.ndarray) -> tuple[tuple[int, str], tuple[int, str]]:
            a, b = ((int(e), kinds[k][side][int(e)]) for side, e in enumerate(pair))
            return a, b

        found = []
        for i in range(int(self.count)):
            k, other = int(self.contact[i]), int(self.gave_way[i])
            found.append(
                Event(
                    float(self.t[i]),
                    EVENTS[int(self.kind[i])],
                    mech.contacts[k].name,
                    elements(k, np.asarray(self.before[i])),
                    elements(k, np.asarray(self.after[i])),
                    mech.contacts[other].name if other >= 0 else None,
                )
            )
        return found


@eqx.filter_custom_jvp
def told(problem: Problem, q0: Float[Array, " nq"], span: Float[Array, ""], *, log: Log):
    """The dates of the events, and where the resting coordinates are held before each of them and in each of the modes:
    as they were found, with the derivatives of `_replay`. Who asks for no derivatives does not pay for them."""
    start = problem.mode
    assert start is not None
    return log.t, log.before.held, jnp.concatenate([start.held[None], log.after.held])


@told.def_jvp
def _told_jvp(primals, tangents, *, log: Log):
    found = told(*primals, log=log)
    _, slopes = eqx.filter_jvp(lambda problem, q0, span: _replay(problem, q0, span, log), primals, tangents)
    return found, slopes


def _replay(
    problem: Problem, q0: Float[Array, " nq"], span: Float[Array, ""], log: Log
) -> tuple[Float[Array, " events"], Float[Array, "events n"], Float[Array, "more n"]]:
    """The same, from the equations that hold at each event.

    An event is where its guard, a function of the position alone, is zero on the way: one Newton correction of its
    date, from where it was located, carries all derivatives (the search for it carries none). Where a contact became
    impossible at a singular position, its date has the derivatives of a lock-up's, and what rests from then on none.
    """
    start = problem.mode
    assert start is not None
    slots = jnp.asarray(problem.system.layout.slots)
    held0 = q0[slots[start.rests]]

    def one(carry: tuple[Array, Array], row: Log):
        held, t_before = carry
        falls = row.before.clock == 0
        happened = jnp.isfinite(row.t)
        lost = happened & (row.guard < 0)  # no guard told of it: the mechanism could not go on, as in a lock-up
        held = jnp.where(row.before.drift != 0, row.before.held, held)
        mode = row.before._replace(held=held)
        locked_at = lock_time(problem.with_mode(mode), row.q, jnp.where(lost, row.t, jnp.inf))
        t = jnp.where(falls | ~happened, t_before, jnp.where(lost, locked_at, row.t))

        def at(x: Array) -> tuple[Problem, Array, Array]:
            """The position a little further on."""
            now = problem.with_mode(mode._replace(held=held + mode.drift * x))
            then = t + mode.clock * x
            return now, root(now, row.q, then), then

        def guard(x: Array) -> Array:
            now, q, then = at(x)
            _, J, in_time = now.linearise(q, then)
            v = now.spread(-least_squares(J, refine=1)(in_time[:, None])[:, 0], now.speeds(then) * mode.clock)
            return watch(now, q, v, span)[0].reshape(-1)[jnp.maximum(row.guard, 0)]

        value, rate = jax.jvp(guard, (jnp.zeros(()),), (jnp.ones(()),))
        dated = happened & ~lost
        lag = jnp.where(dated, -value / jnp.where(dated & (rate != 0), frozen(rate), 1.0), 0.0)
        _, q, date = at(lag)
        moved = held + mode.drift * lag
        freed = (row.after.owner < 0) & (row.before.owner >= 0)
        here = q[slots[mode.rests]]
        here = jnp.where(lost, frozen(row.q[slots[mode.rests]]), here)  # its derivatives grow without bounds there
        kept = jnp.where(happened & freed, here, jnp.where(happened, moved, held))
        return (kept, date), (date, moved, kept)

    _, (dates, before, after) = jax.lax.scan(one, (held0, jnp.zeros(())), log)
    return dates, before, jnp.concatenate([held0[None], after])
