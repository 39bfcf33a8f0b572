"""What there is to read of friction."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array

from .._programs.names import unknown
from .._programs.reprs import by_fields
from .friction import STILL
from .instant import Instant
from .mode import Mode
from .plant import Plant


class Rubbing(NamedTuple):
    """A contact or a joint with friction along a motion.

    - `force`: the friction force, for a hinge the moment, along the sliding speed.
    - `sliding`: the sliding speed; of a joint, that of its coordinate.
    - `sticks`: whether friction holds it.
    - `load`: the normal load: of a contact its normal force; of a joint, what its coefficient multiplies.
    - `work`: the energy that it has lost so far; what impacts lose is not counted here.
    """

    force: Array
    sliding: Array
    sticks: Array
    load: Array
    work: Array

    __repr__ = by_fields


def friction_of(plant: Plant, now: Instant, mode: Mode) -> Rubbing:
    """What friction does at an instant (of one lane)."""
    if plant.friction is None or now.sliding is None or now.friction is None:
        none = jnp.zeros(0)
        return Rubbing(none, none, none, none, none)
    sizes, closed, problem = plant.friction.sizes, plant.closed(mode), now.sliding
    force, load = now.friction.force / sizes, jnp.where(closed, now.friction.normal / sizes, 0.0)
    # of several that hold the same, one may be at its limit; it sticks as long as the others do
    onward = problem.acceleration(now.friction.force)
    rests = (jnp.abs(problem.speed) <= STILL * problem.fast(now.scale)) & (
        jnp.abs(onward) <= 1e-8 * now.scale * problem.alone
    )
    sticks = (closed & ((mode.slide == 0) | rests)).astype(float)
    work = now.p[len(plant.problem.unknown) :]
    work = work if len(work) else jnp.zeros_like(force)
    return Rubbing(force, now.sliding.speed * sizes, sticks, load, work)


def rubbing_of(plant: Plant, every: Rubbing, name: str) -> Rubbing:
    """That of one contact or joint, by its name."""
    names = () if plant.friction is None else plant.friction.names
    if name not in names:
        raise KeyError(unknown("contact or joint with friction", name, list(names)))
    k = names.index(name)
    rub = Rubbing(*(x[:, k] for x in every))
    return rub._replace(sticks=rub.sticks > 0)
