"""How long a step of a simulation may be: by its error, and by how soon bodies could come near each other."""

from typing import Any, NamedTuple

import diffrax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._numerics.groups import pick, wide
from .._programs.precision import Threshold
from .instant import Frame, Instant
from .plant import Plant


_STRIDE = 0.3  # the longest step where contacts are watched, in radians, or parts of the mechanism's size
_PAST = 1.5  # times how long a gap takes to close, as it changes now: no step is twice as long,
_SHALLOW = Threshold(1e-9, 1e-5)  # unless bodies would then overlap by less than this part of the mechanism's size


def accepted(
    solver: diffrax.AbstractSolver, rtol: Array, atol: Array, t: Array, h: Array, y0: Array, y1: Array, error: Array
) -> Any:
    """Whether a step is good enough, and how long the next one may be. (The controller has no memory; of one lane.)"""
    term: Any = diffrax.ODETerm(lambda t, y, args: y)
    order: Any = solver.order(term)
    controller = diffrax.PIDController(rtol=rtol, atol=atol)
    _, state = controller.init(term, t, t + h, y0, h, None, solver.func, order)
    keep, begin, end, _, _, _ = controller.adapt_step_size(t, t + h, y0, y1, None, error, order, state)
    return keep, end - begin


class Reach(NamedTuple):
    """How far the profiles of the contacts reach, and how fine they are."""

    along: Float[Array, "c *lanes"]  # the shortest element
    rounds: Float[Array, "c pairs *lanes"]  # half of the radii of two elements that are round
    around: tuple[Array, Array]


def reach_of(plant: Plant) -> Reach:
    system = plant.problem.system
    return Reach(*system.feature_sizes, system.bounding_circles)


def closing_speeds(
    plant: Plant, reach: Reach, now: Instant
) -> tuple[Float[Array, "c *lanes"], Float[Array, "c *lanes"]]:
    """Bounds on how fast the gap of each contact can change, and on how fast that can grow."""
    system, frame = plant.problem.system, now.frame
    paths = wide(system.layout.paths, now.v.ndim - 1)
    twists = [jnp.sum(paths * (frame.S * x)[:, None], 2) for x in (now.v, now.a)]
    speed, growth = (system.gap_rate_bounds(frame.planes, x, reach.around) for x in twists)
    return speed, growth


def stride(
    plant: Plant,
    reach: Reach,
    now: Instant,
    closing: tuple[Array, Array],
    gaps: Float[Array, "c *lanes"],
    apart: Float[Array, "c pairs *lanes"],
    active: Array,
    span: Array,
) -> Float[Array, "*lanes"]:
    """The longest step in which no event is missed: no further than bodies could come near each other, or than the
    shortest element, nor far beyond where a gap would close: what has just parted may come back, and part again."""
    sizes = plant.problem.system.column_sizes()
    speed, gain = (jnp.max(jnp.abs(x / sizes), 0, initial=0.0) for x in (now.v, now.a))
    longest = _time_for(jnp.full_like(span, _STRIDE), speed, gain, span)
    near = jnp.min(jnp.maximum(apart, reach.rounds), 1)  # the nearest corner that might be clipped
    room = jnp.where(active, reach.along, jnp.maximum(gaps, jnp.minimum(reach.along, near)))
    longest = jnp.minimum(longest, jnp.min(_time_for(room, *closing, span), 0))
    size, rate, onward = plant.problem.system.size, now.gap_rates, now.gap_rates_dot
    past = _PAST * _closing_time(gaps, rate, onward)
    deep = gaps + (rate + onward * past / 2) * past < -_SHALLOW() * size
    # rates are those of the elements that were the closest when the step began
    known = ~active & (jnp.abs(now.frame.gaps - gaps) <= _SHALLOW() * size)
    past = jnp.min(jnp.where(deep & known, past, jnp.inf), 0)
    return jnp.where(2 * past < longest, past, longest)


def _closing_time(gap: Array, rate: Array, onward: Array) -> Array:
    """When a gap that has a rate and a rate of that closes; never, if the parabola does not meet zero."""
    square, falls = rate**2 - 2 * onward * gap, rate < 0
    meets = (square > 0) & (falls | (onward < 0))
    root = jnp.sqrt(jnp.where(meets, square, 1.0))
    # the first root in two forms, each without a difference of numbers that are alike
    over, under = jnp.where(falls, 2 * gap, rate + root), jnp.where(falls, root - rate, -onward)
    return jnp.where(meets, over / jnp.where(meets, under, 1.0), jnp.inf)


def _time_for(way: Array, speed: Array, gain: Array, span: Array) -> Array:
    """How long a way takes from a speed that grows, at most the time covered."""
    rush = speed + jnp.sqrt(speed**2 + 2 * gain * way)
    return 2 * way / jnp.maximum(rush, 2 * way / span)


def weights(plant: Plant, frame: Frame, span: Array) -> Array:
    """What one unit of each coordinate and momentum weighs in the error: the size of the mechanism, and what a
    freedom's momentum is at the speed that takes it through that size, or a radian, in the time covered."""
    sizes = plant.problem.system.column_sizes()
    u, slots = plant.problem.unknown, np.array(plant.problem.system.layout.slots, dtype=int)
    owner = np.full(frame.q.shape[0], len(slots))
    owner[slots[slots >= 0]] = np.flatnonzero(slots >= 0)
    of_q = pick(jnp.concatenate([sizes, jnp.ones_like(sizes[:1])]), owner)
    inertia = pick(jnp.sum(frame.M * wide(np.eye(len(slots)), span.ndim), 1), u)
    largest = jnp.max(inertia * plant.columns**2, 0, initial=0.0)
    inertia = jnp.maximum(inertia, 1e-3 * largest / plant.columns**2)
    inertia = jnp.where(inertia > 0, inertia, 1.0)
    speed = plant.columns / jnp.where(span > 0, span, 1.0)
    units = [of_q, inertia * speed]
    if plant.friction is not None:
        work = jnp.max(inertia * speed**2, 0, initial=0.0)
        units.append(jnp.broadcast_to(work, (plant.friction.count, *work.shape)))
    return jnp.concatenate(units)
