"""A place in a ball: three numbers that are spread together."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array

from ..._programs.custom_types import Number
from ..._programs.precision import numpy_of
from ..._programs.reprs import brief, has_numbers
from .base import AbstractDistribution, Spread, place


class Ball(AbstractDistribution):
    """A place in a ball of the radius `tol`, a dimension of three coordinates, such as where a ball lies in its cavity.

    **Arguments:**

    - `tol`: the radius.
    - `kind`: `"uniform"`: all places in the ball are equally likely; `"rim"`: it lies on the surface.

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.Ball(0.1)
        Ball(0.1, uniform, sigma 0.0447214)
    """

    spread: Spread
    kind: str = eqx.field(static=True)

    def __init__(self, tol: Number, *, kind: str = "uniform"):
        if kind not in ("uniform", "rim"):
            raise ValueError(f"there is no Ball of the kind {kind!r}; there are uniform, rim")
        self.kind = kind
        self.spread = place(self, tol, None, None, 0.0)

    @property
    def ends(self) -> tuple[float, float]:
        return -1.0, 1.0

    @property
    def parameters(self) -> tuple[float | str, ...]:
        return (self.kind,)

    @property
    def together(self) -> int:
        return 3

    def unit(self, z: Array) -> Array:
        """A point of the unit ball from three scores, along the same direction: the chance of a score farther out is
        that of a point farther out."""
        s = jnp.sum(z * z, -1, keepdims=True)
        if self.kind == "rim":
            return z / jnp.sqrt(jnp.where(s > 0, s, 1.0))  # no direction at 0: there it is the center
        return z * jnp.cbrt(_share(s))

    def farthest(self, slopes: Array) -> Array:
        """On the sphere, along the slopes."""
        square = (slopes**2).sum(-1, keepdims=True)
        return slopes / numpy_of(slopes).where(square > 0, square, 1.0) ** 0.5

    def extent(self, x: Array) -> Array:
        return numpy_of(x).broadcast_to((x**2).sum(-1, keepdims=True) ** 0.5, x.shape)

    def nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """On spheres: exact for polynomials up to degree 15 in the direction."""
        x, w = np.polynomial.legendre.leggauss(8)
        radius, weight = (np.ones(1), np.ones(1)) if self.kind == "rim" else ((x + 1) / 2, w * (x + 1) ** 2)
        angle = 2 * np.pi * np.arange(16) / 16
        across = np.sqrt(1 - x**2)[:, None]
        sphere = np.stack([across * np.cos(angle), across * np.sin(angle), np.repeat(x[:, None], 16, 1)], -1)
        on_sphere = np.repeat(w, 16) / w.sum() / 16
        points = radius[:, None, None] * sphere.reshape(-1, 3)
        return points.reshape(-1, 3), np.outer(weight / weight.sum(), on_sphere).reshape(-1)

    def __repr__(self) -> str:
        if not has_numbers(self.spread) or np.ndim(self.spread.scale):
            return brief(self, lower=self.spread.lower, upper=self.spread.upper, kind=self.kind)
        return f"Ball({float(self.spread.upper):.6g}, {self.kind}, sigma {float(self.std):.6g})"


def _share(s: Array) -> Array:
    """The chance that three scores lie closer to the middle than r, over r^3, as a function of s = r^2."""
    small = s < 0.04
    r = jnp.sqrt(jnp.where(small, 1.0, s))
    far = (erf(r / np.sqrt(2)) - np.sqrt(2 / np.pi) * r * jnp.exp(-r * r / 2)) / r**3
    t = jnp.where(small, s, 0.0)
    near = 1 / 3 - t / 10 * (1 - t * 5 / 28 * (1 - t * 7 / 54 * (1 - t * 9 / 88 * (1 - t * 11 / 130))))
    return jnp.where(small, np.sqrt(2 / np.pi) * near, far)
