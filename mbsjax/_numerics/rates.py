"""Rates of first and second order in time."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .groups import AbstractPose


def moving_pose(X: AbstractPose, V: Array, A: Array) -> Callable[[Array], AbstractPose]:
    """Where a pose with twist V, and rate of twist A, is a short time later; right to second order in it."""
    rate = X.carried(V)
    gain = jax.tree_util.tree_map(jnp.add, X.carried(A), rate.turned(V))
    return lambda s: jax.tree_util.tree_map(lambda x, v, a: x + (v + a * s / 2) * s, X, rate, gain)


def derivatives_at_zero(f: Callable[[Array], Any]) -> tuple[Any, Any, Any]:
    """f(0), f'(0) and f''(0)."""
    now, unit = (jnp.zeros(()),), (jnp.ones(()),)
    (value, first), (_, second) = jax.jvp(lambda s: jax.jvp(f, (s,), unit), now, unit)
    return value, first, second
