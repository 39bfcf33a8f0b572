"""Distributions that lean to one side: beta, Rayleigh, Weibull."""

import functools
import math

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy
from jax.scipy.special import log_ndtr
from jaxtyping import Array

from ..._programs.custom_types import Number, Numbers
from ..._programs.precision import plain_number
from .base import SCORES, AbstractDistribution, Spread, place


_TAIL = -math.log(math.erfc(3 / math.sqrt(2)) / 2)  # of an exponential variate at the score 3


class Beta(AbstractDistribution):
    """A beta distribution over the limits, with the exponents `a` and `b`.

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.Beta(0.1, a=2, b=2)
        Beta(+-0.1, mean 0, sigma 0.0447214, 2, 2)
    """

    spread: Spread
    a: float = eqx.field(static=True)
    b: float = eqx.field(static=True)

    def __init__(
        self,
        tol: Numbers | None = None,
        *,
        a: Number,
        b: Number,
        sigma: Number | None = None,
        cpk: Number | None = None,
        shift: Number = 0.0,
    ):  # fmt: skip
        self.a = plain_number(a, "the exponent a of a Beta", above=0.0)
        self.b = plain_number(b, "the exponent b of a Beta", above=0.0)
        self.spread = place(self, tol, sigma, cpk, shift)

    @property
    def ends(self) -> tuple[float, float]:
        return -1.0, 1.0

    @property
    def parameters(self) -> tuple[float | str, ...]:
        return self.a, self.b

    def unit(self, z: Array) -> Array:
        """By cubic interpolation with the exact slopes in a table of 3401 scores: its inverse has no closed form."""
        values, slopes = _beta_table(self.a, self.b)
        h = SCORES[1] - SCORES[0]
        at = jnp.clip((z - SCORES[0]) / h, 0.0, len(SCORES) - 1.0)
        k = jnp.clip(jnp.floor(at).astype(int), 0, len(SCORES) - 2)
        s = at - k
        y, d = jnp.asarray(values), jnp.asarray(slopes) * h
        y0, y1, d0, d1 = y[k], y[k + 1], d[k], d[k + 1]
        return y0 + s * (d0 + s * (3 * (y1 - y0) - 2 * d0 - d1 + s * (2 * (y0 - y1) + d0 + d1)))


class Rayleigh(AbstractDistribution):
    """The length of a vector of two equal normal deviations, such as an eccentricity: 0 to tol.

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.Rayleigh(sigma=0.01)
        Rayleigh(+0 to +0.0554893, mean 0.0191306, sigma 0.01)
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
    def one_sided(self) -> bool:
        return True

    @property
    def ends(self) -> tuple[float, float]:
        return 0.0, float(np.sqrt(2 * _TAIL))

    def unit(self, z: Array) -> Array:
        return jnp.sqrt(-2 * log_ndtr(-z))


class Weibull(AbstractDistribution):
    """A Weibull distribution from 0 on, with an exponent `k`.

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.Weibull(0.1, k=2.0).mean.round(9) == mbs.Rayleigh(0.1).mean.round(9)
        Array(True, dtype=bool)
    """

    spread: Spread
    k: float = eqx.field(static=True)

    def __init__(
        self,
        tol: Numbers | None = None,
        *,
        k: Number,
        sigma: Number | None = None,
        cpk: Number | None = None,
        shift: Number = 0.0,
    ):
        self.k = plain_number(k, "the exponent k of a Weibull", above=0.0)
        self.spread = place(self, tol, sigma, cpk, shift)

    @property
    def one_sided(self) -> bool:
        return True

    @property
    def ends(self) -> tuple[float, float]:
        return 0.0, float(_TAIL ** (1 / self.k))

    @property
    def parameters(self) -> tuple[float | str, ...]:
        return (self.k,)

    def unit(self, z: Array) -> Array:
        return (-log_ndtr(-z)) ** (1 / self.k)


@functools.cache
def _beta_table(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
    """The unit variate from -1 to 1 at the scores, and its slope."""

    def lower_half(a: float, b: float) -> tuple[np.ndarray, np.ndarray]:
        z = SCORES[SCORES <= 0]
        x = scipy.special.betaincinv(a, b, scipy.special.ndtr(z))
        with np.errstate(divide="ignore"):
            log_density = (a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - scipy.special.betaln(a, b)
        log_normal = -(z**2) / 2 - np.log(2 * np.pi) / 2
        return 2 * x - 1, np.where(x > 0, 2 * np.exp(log_normal - log_density), 0.0)

    (y, d), (y_up, d_up) = lower_half(a, b), lower_half(b, a)
    return np.concatenate([y, -y_up[-2::-1]]), np.concatenate([d, d_up[-2::-1]])
