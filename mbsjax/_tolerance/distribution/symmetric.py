"""Distributions about the middle of their limits: normal, truncated normal, uniform, triangular."""

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.special import erf, ndtr, ndtri
from jaxtyping import Array

from ..._programs.custom_types import Number, Numbers
from ..._programs.precision import plain_number
from .base import AbstractDistribution, Spread, place


class Normal(AbstractDistribution):
    """A normal distribution.

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.Normal(0.05), mbs.Normal((-0.06, 0.0), cpk=2)
        (Normal(+-0.05, mean 0, sigma 0.0166667), Normal(-0.06 to +0, mean -0.03, sigma 0.005))
    """

    spread: Spread

    def __init__(
        self,
        tol: Numbers | None = None,
        *,
        sigma: Number | None = None,
        cpk: Number | None = None,
        shift: Number = 0.0,
    ):
        self.spread = place(self, tol, sigma, cpk, shift)

    @property
    def ends(self) -> tuple[float, float]:
        return -3.0, 3.0

    def unit(self, z: Array) -> Array:
        return z


class Truncated(AbstractDistribution):
    """A normal distribution whose parts beyond the limits are sorted out; `at` tells how many standard deviations of
    the whole the limits are away.

    !!! Example

        >>> import mbsjax as mbs
        >>> round(float(mbs.Truncated(0.03, at=1.0).at(9.0)), 9)  # hardly ever more
        0.03
    """

    spread: Spread
    cut: float = eqx.field(static=True)

    def __init__(
        self,
        tol: Numbers | None = None,
        *,
        at: Number = 3.0,
        sigma: Number | None = None,
        cpk: Number | None = None,
        shift: Number = 0.0,
    ):  # fmt: skip
        self.cut = plain_number(at, "the number of sigma at which a Truncated is cut", above=0.0)
        self.spread = place(self, tol, sigma, cpk, shift)

    @property
    def ends(self) -> tuple[float, float]:
        return -1.0, 1.0

    @property
    def parameters(self) -> tuple[float | str, ...]:
        return (self.cut,)

    def unit(self, z: Array) -> Array:
        outside = ndtr(-self.cut)
        low = z < 0  # the lower half is the more exact one; both have the same slope in the middle
        below = ndtri(outside + (1 - 2 * outside) * ndtr(jnp.where(low, z, -z)))
        return jnp.where(low, below, -below) / self.cut


class Uniform(AbstractDistribution):
    """All values within the limits are equally likely.

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.Uniform(0.3)
        Uniform(+-0.3, mean 0, sigma 0.173205)
    """

    spread: Spread

    def __init__(
        self,
        tol: Numbers | None = None,
        *,
        sigma: Number | None = None,
        cpk: Number | None = None,
        shift: Number = 0.0,
    ):
        self.spread = place(self, tol, sigma, cpk, shift)

    @property
    def ends(self) -> tuple[float, float]:
        return -1.0, 1.0

    def unit(self, z: Array) -> Array:
        return erf(z / jnp.sqrt(2.0))


class Triangular(AbstractDistribution):
    """A triangle over the limits; its peak in the middle, or at `mode`, -1 to 1 from limit to limit.

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.Triangular(0.6)
        Triangular(+-0.6, mean 0, sigma 0.244949, 0)
    """

    spread: Spread
    mode: float = eqx.field(static=True)

    def __init__(
        self,
        tol: Numbers | None = None,
        *,
        mode: Number = 0.0,
        sigma: Number | None = None,
        cpk: Number | None = None,
        shift: Number = 0.0,
    ):  # fmt: skip
        self.mode = plain_number(mode, "the mode of a Triangular", least=-1.0, most=1.0)
        self.spread = place(self, tol, sigma, cpk, shift)

    @property
    def ends(self) -> tuple[float, float]:
        return -1.0, 1.0

    @property
    def parameters(self) -> tuple[float | str, ...]:
        return (self.mode,)

    def unit(self, z: Array) -> Array:
        left = ndtr(z) < (1 + self.mode) / 2
        rest = jnp.where(left, ndtr(z), ndtr(-z))
        side = jnp.where(left, 1 + self.mode, 1 - self.mode)
        return jnp.where(left, 1.0, -1.0) * (jnp.sqrt(2 * side * rest) - 1)
