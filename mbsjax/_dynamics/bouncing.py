"""Bouncing that ends: infinitely many impacts in a time that is finite, and what is known of the last ones."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float


_CLEAN = 0.1  # of what pulls in the mean: a flight on which more than that is left over is none under one pull


class Bounces(NamedTuple):
    """What is known of the impacts so far."""

    fastest: Float[Array, "*lanes"]
    last: Float[Array, "c *lanes"]  # when each contact last made one,
    acceleration: Float[Array, "c *lanes"]  # the acceleration of its gap before it,
    approach: Float[Array, "c *lanes"]  # how fast that closed,
    rebound: Float[Array, "c *lanes"]  # and opened again; negative where something else has happened since


class Fall(NamedTuple):
    """What pulls a gap back onto its surface, P - jerk t + drag dg/dt, from an impact on."""

    jerk: Float[Array, "*lanes"]
    drag: Float[Array, "*lanes"]


def fall_of(
    t: Array, acceleration: Array, approach: Array, last: Array, began: Array, struck: Array, rebound: Array
) -> Fall:
    """What a gap falls under, from the flight that an impact ends: its accelerations before the impacts at both ends
    of that, and the mean of it, to which the drag adds nothing, as the gap is what it was. Where more has happened on
    the way, all change is taken for that of the time."""
    flew = jnp.isfinite(last) & (t > last)
    lasted, speeds = jnp.where(flew, t - last, 1.0), struck + approach
    mean = (rebound + approach) / lasted
    bent = 2 * mean + began + acceleration
    clean = flew & (rebound > 0) & (jnp.abs(bent) < _CLEAN * mean)
    drag = jnp.where(clean, bent / jnp.where(clean, speeds, 1.0), 0.0)
    change = jnp.where(clean, -2 * (began + mean - drag * struck), acceleration - began)
    return Fall(jnp.where(flew, change / lasted, 0.0), drag)


def bouncing_time(approach: Array, acceleration: Array, fall: Fall, ratio: Array, longest: Any) -> Array:
    """How long the bouncing lasts that begins with this speed towards a surface, and this acceleration before it:
    infinitely many flights (Zeno's behavior of hybrid systems), the first of 2 v/P, each `ratio` times as long as the
    last. Right to second order in the speed; zero where the pull P is not steady enough for such a series, or it would
    be longer than `longest`."""
    pull, speed = fall.drag * approach - acceleration, ratio * approach
    falls = (pull > 0) & (speed > 0) & (ratio < 1)
    safe = jnp.where(falls, pull, 1.0)
    sum_ = 2 * speed / (safe * jnp.where(falls, 1 - ratio, 1.0))
    change = sum_ * (fall.jerk / (3 * safe) - fall.drag / 6)
    return jnp.where(falls & (jnp.abs(change) < 0.25) & (sum_ < longest), sum_ * (1 + change), 0.0)
