"""The guards of a simulation, in the order of `GuardTable`."""

import jax.numpy as jnp
from jaxtyping import Array

from .._events.guards import stacked
from .._events.places import Places
from .friction import STILL
from .instant import Instant
from .mode import Mode
from .plant import Plant


def guards(
    plant: Plant, t: Array, now: Instant, mode: Mode, apart: Array
) -> tuple[Array, Places, tuple[Places, Array], Array]:
    """All guards: for each contact the gap (G_I), or, once active, the gap elsewhere; the ends of its elements (G_T);
    its force (G_F). Then the pairs with friction, and the switches. Also where the contacts are, where each might close
    with the gap there, and the gaps of the pairs of elements that are apart; `apart` are those of when the step
    began."""
    frame, system = now.frame, plant.problem.system
    values, places, closest, gaps = [], mode.places, mode.places, jnp.zeros_like(mode.places.s1)
    if plant.laws:
        rigid = plant.rigid.reshape(-1, *(1,) * t.ndim)
        s1, s2 = frame.spots
        near = system.proximity(frame.planes, places._replace(s1=s1, s2=s2), mode.active, apart)
        places, closest, gaps, apart = near.places, near.closest, near.gap, near.apart
        watched = (jnp.abs(gaps) < 1e3 * system.size) & (rigid | ~mode.active)
        scale = jnp.where(now.scale > 0, now.scale, 1.0) / system.size
        press = jnp.where(rigid, now.press / scale, -frame.gaps / system.size)
        press = jnp.where(mode.active, press, 1.0)
        values.append(stacked(jnp.where(watched, gaps / system.size, 1.0), near.ends, press))
    if now.sliding is not None:
        values.append(_friction_guards(plant, now, mode))
    values.append(plant.switches(t, frame.q, now.v, frame) * mode.signs)
    return jnp.concatenate(values), places, (closest, gaps), apart


def _friction_guards(plant: Plant, now: Instant, mode: Mode) -> Array:
    """How fast a pair slides, of what the present forces and energies could make; where it sticks, how much more it
    could hold."""
    problem, forces = now.sliding, now.friction
    assert problem is not None and forces is not None
    scale = jnp.where(now.scale > 0, now.scale, 1.0)
    fast = problem.fast(scale)
    slips = mode.slide * problem.speed / fast
    # what friction cannot hold sticks as long as others leave it where it is
    sticks = jnp.where(problem.movable, forces.margin / scale, 10 * STILL - jnp.abs(problem.speed) / fast)
    return jnp.where(plant.closed(mode), jnp.where(mode.slide == 0, sticks, slips), 1.0)


def guard_value(plant: Plant, t: Array, now: Instant, mode: Mode, after: Mode, guard: Array) -> Array:
    """One of the guards, but for a factor, where the mode after the event is known that it led to: nothing is searched
    for (of one lane)."""
    values = [jnp.zeros(0)]
    if plant.laws:
        gaps, (s1, s2) = plant.problem.system.gaps(now.frame.planes, after), now.frame.spots
        ends = jnp.stack([s1, 1 - s1, s2, 1 - s2], 1)
        values.append(stacked(gaps, ends, jnp.where(plant.rigid, now.press, -now.frame.gaps)))
    if now.sliding is not None and now.friction is not None:
        values.append(jnp.where(mode.slide == 0, now.friction.margin, now.sliding.speed))
    values.append(plant.switches(t, now.frame.q, now.v, now.frame))
    return jnp.concatenate(values)[jnp.maximum(guard, 0)]
