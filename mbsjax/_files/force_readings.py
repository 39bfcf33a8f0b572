"""Measures of forces: how they are read of the outcome of an analysis."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from .._dynamics.equilibrium import Equilibrium
from .._dynamics.inverse_dynamics import Efforts
from .._dynamics.solution import Solution
from .._events.kinds import EVENTS
from .._kinematics.track import TurnReader
from .formula import Padded


def read_run(outcome: Any, what: str) -> Array:
    """An energy, or the power of all drivers."""
    if not isinstance(outcome, Solution | Efforts | Equilibrium):
        raise ValueError(f'a driven motion has no {what}: take it of = "inverse", or simulate it')
    if what == "power" and isinstance(outcome, Equilibrium):
        raise ValueError("a position of rest has no power")
    return outcome.power() if what == "power" else getattr(outcome, what)  # pyright: ignore


def read_force(outcome: Any, kind: str, name: str, what: str) -> Array | Padded:
    """A reaction, an effort, a force or the impulses of a contact."""
    if not isinstance(outcome, Solution | Efforts | Equilibrium):
        raise ValueError(f'a driven motion tells no {what} of {name!r}: take it of = "inverse", or simulate it')
    if kind == "impulse":
        return _impulses(outcome, name)
    if kind == "reaction":
        found = outcome.reaction(name).columns(name)
        if f"{name}.{what}" not in found:
            raise ValueError(f"{name}.{what}: a planar mechanism has no z")
        return found[f"{name}.{what}"]
    if kind == "effort":
        if what == "power" and isinstance(outcome, Equilibrium):
            raise ValueError(f"a position of rest tells no power of {name!r}")
        try:
            return outcome.power(name) if what == "power" else outcome.effort(name)  # pyright: ignore
        except KeyError as error:
            raise ValueError(error.args[0]) from None
    track = outcome.force(name)
    if getattr(track, what) is None:
        raise ValueError(f"the load {name!r} has no {what}")
    return getattr(track, what)


def happened(row: Array, there: Array, none: float) -> Padded:
    """A row of which only the places `there`, the first ones, have happened; `none` where fewer have."""
    n = jnp.sum(there)
    return Padded(row, lambda k: jnp.where(n >= k, row[jnp.maximum(n - k, 0)], none))


def _impulses(outcome: Any, name: str) -> Padded:
    """The impulses of a contact at its impacts, in their order; zero where there are no more."""
    if not isinstance(outcome, Solution):
        raise ValueError(f"only a simulation tells an impulse of {name!r}")
    log, k = outcome.events, [c.name for c in outcome.mech.contacts].index(name)
    mine = (log.kind == EVENTS.index("impact")) & (log.contact == k)
    order = jnp.argsort(jnp.where(mine, log.t, jnp.inf))
    return happened(jnp.where(mine, log.impulse[:, k], 0.0)[order], mine, 0.0)


class _Value(NamedTuple):
    """What a position tells of a coordinate or a gauge: no rates."""

    q: Array


class _Touch(NamedTuple):
    """What a position tells of a contact."""

    q: Array
    gap: Array
    force: Array
    active: Array


class AtRest:
    """A position of rest, read as a motion is."""

    def __init__(self, rest: Equilibrium):
        self.rest, self.mech, self.ts = rest, rest.mech, rest.t

    def __getitem__(self, name: str) -> Any:
        contacts = [c.name for c in self.mech.contacts]
        if name not in contacts:
            return _Value(self.rest[name])
        q, k = self.rest.contact(name), contacts.index(name)
        return _Touch(q, q[..., 2], self.rest.press[..., k], self.rest.active[..., k])

    def orientation(self, body: str) -> Any:
        return _Value(TurnReader(self.mech, body)(self.rest.q))

    def point(self, body: str, point: str | None) -> Any:
        return _Value(self.rest.point(body, point))


class Pressed:
    """The motion of efforts, whose contacts have forces."""

    def __init__(self, efforts: Efforts):
        self.efforts, self.mech, self.ts = efforts, efforts.mech, efforts.ts
        self.orientation, self.point = efforts.motion.orientation, efforts.motion.point
        self.friction, self.event_times = efforts.friction, efforts.motion.event_times
        self.events = efforts.motion.events

    def __getitem__(self, name: str) -> Any:
        track: Any = self.efforts.motion[name]
        if name not in [c.name for c in self.mech.contacts]:
            return track
        return _Touch(track.q, track.gap, self.efforts[name], track.active)


def as_motion(outcome: Any) -> Any:
    """What positions are read of."""
    if isinstance(outcome, Equilibrium):
        return AtRest(outcome)
    return Pressed(outcome) if isinstance(outcome, Efforts) else outcome
