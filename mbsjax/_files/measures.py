"""Measures given as formulas: what is told of a motion or a simulation, by name."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from .._model.joint.joint import coordinate_names
from .._model.mechanism import Mechanism
from .force_readings import as_motion, happened, read_force, read_run
from .formula import parse, value
from .names import Names
from .readings import POINT, address


class Measure(eqx.Module):
    """A number, or a row of numbers along a motion, as a formula of:

    - parameters, by name, and `t`, the output times;
    - coordinates and gauges: `D` or `D.q`, `D.v`, `D.a`;
    - bodies and their points: `coupler.x`, `coupler.angle`, `coupler.E.y`, `coupler.E.vx`, `coupler.E.ay`;
    - contacts: `C.gap`, `C.force`, `C.q1`, `C.q2`; the times of their events: `C.impact[0]`; `C.released[-1]` is
      the last that happened;
    - contacts and joints with friction: `A.friction`, its force or moment, `A.sliding`, the speed, `A.load`, the normal
      load, `A.work`, the energy that it has lost; the times of `A.slips[0]`, `A.sticks[0]`, `A.reverses[0]`;
    - forces, of simulations, of prescribed motions (`of = "inverse"`) and at rest: of joints `A.fx`, `A.fy`, in ground,
      `A.reaction`, the size of the force, `A.across`, that across the travel of a slide, and `A.moment`; of what is
      driven `A.effort`, the torque or force of the driver, and `A.power`; of springs, actuators and loads
      `spring.force`, `spring.length`, `spring.rate`; of a contact, the impulses at its impacts, `C.impulse[0]`;
    - `energy`, `kinetic`, `potential`, and `power`, that of all drivers.

    Rows become numbers by `max(...)`, `min`, `mean`, `range`, `first`, `last`, or a place: `D[90]`.
    """

    text: str = eqx.field(static=True)
    tree: tuple = eqx.field(static=True)

    def __init__(self, text: str):
        self.text, self.tree = text, parse(text)

    def __call__(self, outcome: Any, numbers: Mapping[str, Any]) -> Array:
        found = value(self.tree, lambda name: look(outcome, name, numbers))
        return jnp.asarray(found, float)


def names_in(mech: Mechanism) -> Names:
    """What can be named of a mechanism."""
    bodies = {name: mech.body(name) for name in mech.links}
    rubbing = [x.name for x in (*mech.contacts, *mech.joints) if x.friction is not None]
    return Names(
        tuple(bodies),
        {name: tuple(body.points) for name, body in bodies.items()},
        {name: tuple(body.profiles) for name, body in bodies.items()},
        {joint.name: coordinate_names(joint) for joint in mech.joints},
        tuple(contact.name for contact in mech.contacts),
        tuple(gauge.name for gauge in mech.gauges),
        tuple(rubbing),
        tuple(force.name for force in mech.forces),
    )


def look(outcome: Any, name: str, numbers: Mapping[str, Any]) -> Any:
    """What a name in a measure stands for."""
    if name in numbers:
        return numbers[name]
    kind, *what = address(names_in(outcome.mech), name, tuple(numbers))
    if kind in ("reaction", "effort", "force", "impulse"):
        return read_force(outcome, kind, what[0], what[1])
    if kind == "run" and what[0] != "t":
        return read_run(outcome, what[0])
    outcome = as_motion(outcome)
    if kind == "run":
        return outcome.ts
    if kind == "track":
        track = outcome[what[0]]
        if not hasattr(track, what[1]):
            raise ValueError(f"a position of rest tells no rates: {name}")
        return getattr(track, what[1])
    if kind == "contact":
        track = outcome[what[0]]
        if what[1] in ("q1", "q2"):
            return track.q[..., int(what[1][1]) - 1]
        if not hasattr(track, what[1]):
            raise ValueError(f"this analysis tells no {what[1]} of contact {what[0]!r}: simulate it")
        return getattr(track, what[1])
    if kind == "event":
        if not hasattr(outcome, "events"):
            raise ValueError(f"no events are told at rest, or of joints with play: {what[1]} of {what[0]!r}")
        times = outcome.event_times(*what)
        return happened(times, jnp.isfinite(times), jnp.inf)
    if kind == "friction":
        if not hasattr(outcome, "friction"):
            raise ValueError(f"this analysis tells no {what[1]} of {what[0]!r}: simulate it")
        return getattr(outcome.friction(what[0]), "force" if what[1] == "friction" else what[1])
    body, point, which = what
    if which == "angle":
        return outcome.orientation(body).q
    rate, axis = POINT[which]
    if axis == 2 and outcome.mech.planar:
        raise ValueError(f"{name!r}: a planar mechanism has no z")
    track = outcome.point(body, point or None)
    if rate >= len(track):
        raise ValueError(f"a position of rest tells no rates: {name}")
    return track[rate][..., axis]
