"""What "successful" means of a position: its loops, gauges and active contacts are closed. Every analysis asks here,
with the residuals of the positions that it tells."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .._programs.precision import Threshold
from .results import RESULTS


CLOSED = Threshold(1e-10, 1e-4)  # in radians, or parts of the mechanism's size: what is open by more is not closed


def is_closed(residual: Float[Array, "m *lanes"]) -> Bool[Array, "*lanes"]:
    """Whether all equations hold; their residuals are scaled, as those of `Problem.residual`. What is no number is not
    closed; where there are none, all is."""
    if residual.shape[0] == 0:
        return jnp.ones(residual.shape[1:], bool)
    return jnp.all(jnp.abs(residual) <= CLOSED(), 0)


def if_closed(result: RESULTS, closed: Bool[Array, "*lanes"], otherwise: RESULTS) -> RESULTS:
    """A result that is successful only where all is closed, else another one."""
    return RESULTS.where((result == RESULTS.successful) & ~closed, otherwise, result)


def if_all_closed(
    result: RESULTS, stopped_at: Float[Array, ""], ts: Float[Array, " times"], closed: Bool[Array, " times"]
) -> tuple[RESULTS, Float[Array, ""]]:
    """The same of a motion, and when it ended: where it is not closed for the first time."""
    first = jnp.min(jnp.where(closed, jnp.inf, jax.lax.stop_gradient(ts)))
    return if_closed(result, jnp.all(closed), RESULTS.not_closed), jnp.where(first < stopped_at, first, stopped_at)
