"""Whether a guard that is positive at both ends of a step may have been negative on the way."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def dip_by_rates(
    g0: Float[Array, "guards *lanes"],
    r0: Float[Array, "guards *lanes"],
    g1: Float[Array, "guards *lanes"],
    r1: Float[Array, "guards *lanes"],
    h: Float[Array, "*lanes"],
) -> tuple[Bool[Array, "guards *lanes"], Float[Array, "guards *lanes"]]:
    """Whether the cubic through values and rates at both ends of a step comes near zero, and at which part of the
    step."""
    x = (jnp.arange(1, 16) / 16).reshape(-1, *(1,) * g0.ndim)
    r0, r1 = r0 * h, r1 * h
    cubic = (1 + 2 * x) * (1 - x) ** 2 * g0 + x * (1 - x) ** 2 * r0 + x**2 * (3 - 2 * x) * g1 - x**2 * (1 - x) * r1
    lowest, low = jnp.argmin(cubic, 0), jnp.min(cubic, 0)
    valley = (r0 < 0) & (r1 > 0) & (g0 > 0) & (g1 > 0)
    return valley & (low < 0.2 * jnp.minimum(g0, g1)), (lowest + 1) / 16


def dip_by_middle(
    g0: Float[Array, "guards *lanes"], g_mid: Float[Array, "guards *lanes"], g1: Float[Array, "guards *lanes"]
) -> tuple[Bool[Array, "guards *lanes"], Float[Array, "guards *lanes"]]:
    """Whether the parabola through the values at the beginning, the middle and the end of a step comes near zero, and
    at which part of the step."""
    bend = 2 * (g0 - 2 * g_mid + g1)
    slope = 4 * g_mid - 3 * g0 - g1
    bent = bend > 0
    where = -slope / jnp.where(bent, 2 * bend, 1.0)
    low = g0 - slope**2 / jnp.where(bent, 4 * bend, 1.0)
    positive = (g0 > 0) & (g_mid > 0) & (g1 > 0)
    valley = bent & positive & (where > 0.02) & (where < 0.98)
    return valley & (low < 0.1 * jnp.maximum(g0, g1)), where
