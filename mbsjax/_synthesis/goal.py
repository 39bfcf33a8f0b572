"""What a design should do: goals to come near to, and conditions to keep."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._programs.custom_types import Number, Numbers
from .._programs.modules import AbstractModule
from .._programs.precision import as_float, is_concrete
from .._programs.reprs import by_fields
from .._programs.trees import as_function


class AbstractGoal(AbstractModule):
    """Something to be made small: a convex function of what is measured. So the slopes of the measure alone tell how
    it curves (Gauss and Newton), whatever the mechanism does."""

    measure: eqx.AbstractVar[Callable]
    weight: eqx.AbstractVar[Array]

    @abc.abstractmethod
    def cost(self, y: Float[Array, " n"]) -> Float[Array, ""]:
        """What is made small."""

    def sides(self, y: Float[Array, " n"]) -> Float[Array, " sides"]:
        """Numbers without corners, of which the cost is the largest."""
        return self.cost(y)[None]

    def smooth(self, y: Float[Array, " n"], sharpness: Array) -> Float[Array, ""]:
        """The same, with corners rounded."""
        return self.cost(y)

    __repr__ = by_fields


class Match(AbstractGoal):
    """Least squares: `weight` times the sum of the squared differences between what is measured and the `target`.

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.Match(lambda p: p["a"], 3.0)
        Match(measure=<lambda>, target=3.0, weight=1.0)
    """

    measure: Callable
    target: Array
    weight: Array

    def __init__(self, measure: Callable, target: Numbers = 0.0, *, weight: Number = 1.0):
        self.measure = as_function(measure)
        self.target = as_float(target, "the target of a Match")
        self.weight = _positive(weight, "a Match")

    def cost(self, y: Array) -> Array:
        return jnp.sum(self.weight * (y - jnp.ravel(self.target)) ** 2)


class Minimax(AbstractGoal):
    """The largest size of what is measured, such as the peak acceleration of a motion: `weight` times max |y|.

    A maximum has corners: the search rounds them, and sharpens them step by step.

    !!! Example

        >>> import mbsjax as mbs
        >>> float(mbs.Minimax(lambda y: y).cost(jnp.array([1.0, -3.0])))
        3.0
    """

    measure: Callable
    weight: Array

    def __init__(self, measure: Callable, *, weight: Number = 1.0):
        self.measure = as_function(measure)
        self.weight = _positive(weight, "a Minimax")

    def cost(self, y: Array) -> Array:
        return self.weight * jnp.max(jnp.abs(y))

    def sides(self, y: Array) -> Array:
        return self.weight * jnp.concatenate([y, -y])

    def smooth(self, y: Array, sharpness: Array) -> Array:
        return self.weight * sharpness * jax.nn.logsumexp(jnp.concatenate([y, -y]) / sharpness)


class Minimize(AbstractGoal):
    """A number to be as small as can be, such as a cost or an impact speed: `weight` times what is measured.

    !!! Example

        >>> import mbsjax as mbs
        >>> float(mbs.Minimize(lambda y: y, weight=2.0).cost(jnp.array([1.5])))
        3.0
    """

    measure: Callable
    weight: Array

    def __init__(self, measure: Callable, *, weight: Number = 1.0):
        self.measure = as_function(measure)
        self.weight = _positive(weight, "a Minimize")

    def cost(self, y: Array) -> Array:
        return self.weight * jnp.sum(y)


class Within(AbstractModule):
    """A condition: what is measured stays between `lower` and `upper`, either of them None.

    - `scale`: how much of it is a lot, 1 by default: a violation is told, and judged, in parts of it, to 1e-6. For
        stresses in Pa, say, give one of their size.

    !!! Example

        A crank that can turn:

        >>> import mbsjax as mbs
        >>> mbs.Within(lambda p: mbs.grashof(p["crank"], p["coupler"], p["rocker"], p["ground"]), lower=0.1)
        Within(measure=<lambda>, lower=0.1, upper=inf, scale=1.0)
    """

    measure: Callable
    lower: Array
    upper: Array
    scale: Array

    def __init__(
        self, measure: Callable, lower: Numbers | None = None, upper: Numbers | None = None, *, scale: Number = 1.0
    ):
        if lower is None and upper is None:
            raise ValueError("a condition needs a lower or an upper limit")
        self.measure = as_function(measure)
        self.lower = _limit(lower, -np.inf, "lower")
        self.upper = _limit(upper, np.inf, "upper")
        self.scale = _positive(scale, "the scale of a condition")
        if self.lower.ndim and self.upper.ndim and self.lower.shape != self.upper.shape:
            raise ValueError(f"the limits of a condition have shapes {self.lower.shape} and {self.upper.shape}")
        if not np.all(np.asarray(self.lower) <= np.asarray(self.upper)):
            raise ValueError(f"the limits of a condition are in the wrong order: {lower!r}, {upper!r}")

    def excess(self, y: Float[Array, " n"]) -> Float[Array, " two_n"]:
        """How far beyond each limit, in parts of the scale: not positive where the condition is kept."""
        low, high = jnp.ravel(self.lower), jnp.ravel(self.upper)
        below = jnp.where(jnp.isfinite(low), (jnp.where(jnp.isfinite(low), low, 0.0) - y) / self.scale, -jnp.inf)
        above = jnp.where(jnp.isfinite(high), (y - jnp.where(jnp.isfinite(high), high, 0.0)) / self.scale, -jnp.inf)
        return jnp.concatenate([below, above])

    __repr__ = by_fields


def _limit(given: Any, without: float, side: str) -> Array:
    found = jnp.asarray(without if given is None else given, float)
    if is_concrete(given) and given is not None and np.any(np.isnan(given)):
        raise ValueError(f"the {side} limit of a condition must be numbers, got {given!r}")
    return found


def _positive(x: Any, what: str) -> Array:
    found = as_float(x, what)
    if found.ndim or (is_concrete(x) and not x > 0):
        raise ValueError(f"{what} must have a positive number for its weight or scale, got {x!r}")
    return found
