"""What there is to read of forces along a motion: how strong they are, what drivers push with, energies."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._kinematics.drive import Problem
from .._model.mechanism import Mechanism
from .._numerics.groups import one
from .._programs.names import unknown
from .._programs.reprs import by_fields
from .._programs.trees import once
from .instant import Frame
from .mode import Mode
from .plant import Plant


class ForceTrack(NamedTuple):
    """A force of the mechanism, by its name, along a motion.

    - `force`: the tension of a spring with its damper; what an actuator pushes with, positive where it lengthens or
        turns forward; the size of a load.
    - `length`, `rate`: the length or angle that it acts along, and its rate; None for a load.
    """

    force: Array
    length: Array | None
    rate: Array | None

    __repr__ = by_fields


def force_of(mech: Mechanism, plant: Plant, name: str, ts: Array, q: Array, v: Array, mode: Mode) -> ForceTrack:
    """One of the forces along a motion."""
    names = [force.name for force in mech.forces]
    if name not in names:
        raise KeyError(unknown("force", name, names))
    return _track(plant, names.index(name), ts, q, v, mode)


@once
def _track(plant: Plant, k: int, ts: Array, q: Array, v: Array, mode: Mode) -> ForceTrack:
    force, begin = plant.forces[k], sum(force.n_switches for force in plant.forces[:k])

    def at(t: Array, q: Array, v: Array, mode: Mode) -> ForceTrack:
        frame = plant.frame(q, t, mode)
        now = plant.moment(t, frame.q, v, frame.X, frame.S)
        found = force.strength(now, mode.signs[begin : begin + force.n_switches])
        if not force.needs:
            return ForceTrack(found, None, None)
        length, row = now.along(force.needs[0])
        return ForceTrack(found, length, jnp.sum(row * v))

    return jax.vmap(at)(ts, q, v, mode)


def sided(plant: Plant, frame: Frame, t: Array, v: Array, mode: Mode) -> Mode:
    """The mode with the sides of all switches as they are at an instant."""
    if not mode.signs.shape[0]:
        return mode
    return mode.sided(plant.switches(t, frame.q, v, frame))


def driver_names(mech: Mechanism, problem: Problem) -> tuple[str, ...]:
    """The names of what is driven: coordinates first, then gauges."""
    return (*(mech.coordinates[k] for k in problem.columns), *(mech.gauges[k].name for k in problem.gauges))


def gauge_efforts(plant: Plant, frame: Frame, t: Array, lam: Array) -> Array:
    """What the drivers of gauges push with, where the multipliers of the constraints are `lam`."""
    problem, system = plant.problem, plant.problem.system
    first = frame.C.shape[0] - int(plant.rigid.sum()) - len(problem.gauges)
    along = []
    for k, (i, target) in enumerate(problem.targets(t)):
        poses = [one(frame.X, system.layout.body_numbers[name]) for name in system.layout.gauge_bodies[i]]
        slope = jax.grad(lambda x, i=i, poses=poses: system.gauges[i].residual(x, *poses))(target)
        along.append(-lam[first + k] * slope)
    return jnp.stack(along) if along else jnp.zeros(0)


def effort_of(names: tuple[str, ...], efforts: Array, name: str) -> Any:
    """What one driver pushes with."""
    if name not in names:
        raise KeyError(unknown("driver", name, list(names)))
    return efforts[..., names.index(name)]
