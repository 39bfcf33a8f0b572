"""The logs of events: of a driven motion and of a simulation, as arrays and in words."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._model.mechanism import Mechanism
from .._programs.batch import AbstractBatch, single
from .._programs.names import unknown
from .._programs.reprs import brief, has_numbers
from .kinds import EVENTS


class Event(NamedTuple):
    """One change of a contact.

    - `t`: when.
    - `kind`: one of [`mbsjax.EVENTS`][].
    - `contact`: its name; that of a force or a trigger, where one of these made the event.
    - `before`, `after`: the elements of the first and the second profile, as (number, kind); None without contact.
    - `gave_way`: the name of the contact that opened because this one closed, if one did.
    - `names`: what the elements before and after are called: those of a cam `"rise"`, `"dwell"`, others `"line 2"`.
    """

    t: float
    kind: str
    contact: str
    before: Any
    after: Any
    gave_way: str | None
    names: Any = None

    @property
    def pairs(self) -> tuple[str, str]:
        """The elements that touch, before and after, in words; empty without contact."""
        plain = [[f"{kind} {number}" for number, kind in pair or ()] for pair in (self.before, self.after)]
        before, after = (" - ".join(pair) for pair in self.names or plain)
        return before, after

    def __str__(self) -> str:
        if self.before is None:
            return f"t = {self.t:.9g}: {self.contact!r} {self.kind}"
        before, after = self.pairs
        where = before if before == after else f"{before} -> {after}"
        gave = f"; {self.gave_way!r} gave way" if self.gave_way else ""
        gone = ": the profile ends there, or no further contact is possible" if self.kind == "deleted" else ""
        return f"t = {self.t:.9g}: contact {self.contact!r} {self.kind} ({where}){gone}{gave}"


class Events(AbstractBatch):
    """How the contacts changed along a motion. Arrays have room for `max_events` events; of these, the first `count`
    happened, and the others have an infinite `t`. The times carry derivatives.

    - `t`, `count`: when, and how many.
    - `kind`: what happened, a number of [`mbsjax.EVENTS`][]; `contact`, to which contact of the mechanism; `gave_way`,
        which one opened because of it, -1 for none.
    - `before`, `after`: the numbers of its elements.
    - `q`, `v_before`, `v_after`, `a_before`, `a_after`: the position, and the one-sided velocities and accelerations,
        as in [`mbsjax.Motion`][]. Where a contact becomes impossible, as where a pawl drops, velocities before that may
        grow without bound: they, and the position, are those that were followed last, some 1e-5 short of it.
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
        return _in_words(self, mech, (), self.gave_way)

    def __repr__(self) -> str:
        return _briefly(self)


class Log(AbstractBatch):
    """The events of a simulation. Arrays have room for `max_events`; of these, the first `count` happened, and the
    others have an infinite `t`. Times, states and impulses carry derivatives.

    - `t`, `count`: when, and how many.
    - `kind`: a number of [`mbsjax.EVENTS`][]; `contact`: which contact of the mechanism, or, counted on from there,
        which joint with friction, which switch of a force, or which trigger.
    - `before`, `after`: the numbers of the contact's elements.
    - `q`, `v_before`, `v_after`: the position, and the velocities on both sides.
    - `impulse`: of every contact; `friction`, that along it.
    - `speed`: the rate of the contact's gap before and after.
    - `energy`: the kinetic energy before and after.
    - `active`: which contacts are active afterwards.
    """

    t: Float[Array, " events"]
    count: Int[Array, ""]
    kind: Int[Array, " events"]
    contact: Int[Array, " events"]
    before: Int[Array, "events 2"]
    after: Int[Array, "events 2"]
    q: Float[Array, "events nq"]
    v_before: Float[Array, "events nv"]
    v_after: Float[Array, "events nv"]
    impulse: Float[Array, "events c"]
    friction: Float[Array, "events c"]
    speed: Float[Array, "events 2"]
    energy: Float[Array, "events 2"]
    active: Bool[Array, "events c"]

    @property
    def batch(self) -> tuple[int, ...]:
        return self.t.shape[:-1]

    def list(self, mech: Mechanism, triggers: tuple = ()) -> list[Event]:
        """The events in words; of a simulation with triggers, `sol.events.list(sol.mech, sol.triggers)`."""
        return _in_words(self, mech, sources(mech, triggers)[len(mech.contacts) :], None)

    def __repr__(self) -> str:
        return _briefly(self)


def sources(mech: Mechanism, triggers: Sequence = ()) -> list[str]:
    """The names of what makes events, in the order in which a log counts them."""
    joints = [joint.name for joint in mech.joints if joint.friction is not None]
    switches = [force.name for force in mech.forces for _ in range(force.n_switches)]
    return [*(contact.name for contact in mech.contacts), *joints, *switches, *(t.name for t in triggers)]


def times_of(log: Events | Log | None, names: Sequence[str], name: str, kind: str) -> Float[Array, "*batch events"]:
    """When events of a kind happened to what has this name, in order; the rest is infinite."""
    if kind not in EVENTS:
        raise ValueError(unknown("kind of event", kind, EVENTS))
    if name not in names:
        raise KeyError(unknown("contact, joint with friction, switch or trigger", name, list(dict.fromkeys(names))))
    assert log is not None  # as something has this name
    numbers = jnp.array([k for k, known in enumerate(names) if known == name])
    mine = (log.kind == EVENTS.index(kind)) & jnp.isin(log.contact, numbers)
    return jnp.sort(jnp.where(mine, log.t, jnp.inf), axis=-1)


def _briefly(log: Events | Log) -> str:
    """How many events, when, and of which kinds."""
    if not has_numbers(log.t, log.kind, log.count) or log.batch:
        return brief(log, count=log.count, t=log.t)
    n = int(log.count)
    return brief(log, count=n, t=np.asarray(log.t)[:n], kind=[EVENTS[int(k)] for k in log.kind[:n]])


def _in_words(log: Events | Log, mech: Mechanism, others: Sequence[str], gave_way: Any) -> list[Event]:
    """The events of a log. `others` are the names of what is counted on from the contacts."""
    single(log, "events can be listed")
    elements = [mech.element_kinds(contact) for contact in mech.contacts]
    labels = [mech.element_names(contact) for contact in mech.contacts]
    names = [*(contact.name for contact in mech.contacts), *others]
    t, kind, contact, *pairs = (np.asarray(x) for x in (log.t, log.kind, log.contact, log.before, log.after))
    given = np.full(len(t), -1) if gave_way is None else np.asarray(gave_way)
    found = []
    for i in range(int(log.count)):
        k = int(contact[i])
        if k >= len(names):
            raise ValueError(f"the event at t = {t[i]:.9g} is one of a trigger: pass `sol.triggers` too, to name it")
        before = after = called = None
        if k < len(elements):
            before, after = (tuple((int(e), elements[k][side][int(e)]) for side, e in enumerate(x[i])) for x in pairs)
            called = tuple(tuple(labels[k][side][e] for side, (e, _) in enumerate(x)) for x in (before, after))
        opened = names[int(given[i])] if given[i] >= 0 else None
        found.append(Event(float(t[i]), EVENTS[int(kind[i])], names[k], before, after, opened, called))
    return found
