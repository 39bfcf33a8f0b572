"""Springs, dampers and actuators in the page: where they are, and what they push with."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..._kinematics.system import System, system
from ..._model.force.base import Moment
from ..._model.force.spring import Actuator, Spring
from ..._model.gauge import AbstractGauge
from ..._model.mechanism import Mechanism
from ..._programs.trees import once
from ..quantities import lengths


class Actor(NamedTuple):
    """A force along a coordinate or a gauge."""

    name: str
    force: Spring | Actuator
    gauge: AbstractGauge | None
    coordinate: str | None
    turns: bool  # it is along an angle

    @property
    def kind(self) -> str:
        """`"spring"`, `"damper"`, both, or `"actuator"`."""
        if isinstance(self.force, Actuator):
            return "actuator"
        holds = [callable(law) or bool(law != 0) for law in (self.force.stiffness, self.force.damping)]
        if bool(self.force.preload != 0):
            holds[0] = True
        return " ".join(word for word, there in zip(("spring", "damper"), holds) if there) or "spring"


def actors(mech: Mechanism) -> list[Actor]:
    """The forces of a mechanism that act along something."""
    gauges = {gauge.name: gauge for gauge in mech.gauges}
    along_length, found = lengths(mech), []
    for force in mech.forces:
        if isinstance(force, Spring | Actuator):
            on = gauges.get(force.on, force.on) if isinstance(force.on, str) else force.on
            along = on if isinstance(on, str) else None
            gauge = None if isinstance(on, str) else on
            turns = not along_length[along] if along is not None else gauge is not None and gauge.dimension == 0
            found.append(Actor(force.name, force, gauge, along, turns))
    return found


def pushes(mech: Mechanism, t: Any, q: Any, v: Any) -> np.ndarray:
    """What each of the `actors` pushes with, positive where it lengthens what it is along: a row for each time."""
    forces = tuple(actor.force for actor in actors(mech))
    if not forces:
        return np.zeros((len(t), 0))
    names = mech.coordinates, tuple(gauge.name for gauge in mech.gauges)
    return np.asarray(_pushes(system(mech), forces, jnp.asarray(t), jnp.asarray(q), jnp.asarray(v), names))


@once
def _pushes(plan: System, forces: tuple[Spring | Actuator, ...], t: Array, q: Array, v: Array, names: tuple) -> Array:
    def one(t: Array, q: Array, v: Array) -> Array:
        X = plan.poses(q)
        at = Moment(t, q, v, X, plan.twists(q, X), plan.gauges, plan.layout, names)
        return jnp.stack([force.push(at, jnp.sign(force.switches(at)))[0] for force in forces])

    return jax.vmap(one)(t, q, v)
