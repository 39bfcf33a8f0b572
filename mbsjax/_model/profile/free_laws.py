"""Motion laws with numbers of their own, for shape synthesis."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float

from ..._programs.custom_types import Numbers
from ..._programs.modules import AbstractModule
from ..._programs.precision import as_float
from ..._programs.reprs import by_fields
from .motion_laws import as_law


class SplineLaw(AbstractModule):
    """A motion law from 0 to 1 as a B-spline of degree 5, with equal steps between its knots: velocity and acceleration
    are zero at both ends, and the jerk is smooth between. Its control values are leaves: between three zeros and three
    ones, each shapes the law near its place.

    !!! Example

        >>> import mbsjax as mbs
        >>> law = mbs.SplineLaw.like("cycloidal", 12)
        >>> law(jnp.array([0.0, 0.25, 0.5, 1.0])).round(4).tolist()
        [0.0, 0.0908, 0.5, 1.0]
        >>> cam = mbs.Program([mbs.Rise(law, jnp.pi, 20.0), mbs.Fall(law, jnp.pi, 20.0)])
    """

    control: Float[Array, " n"]

    def __init__(self, control: Any):
        self.control = as_float(control, "the control values of a law")
        if self.control.ndim != 1 or self.control.size < 1:
            raise ValueError(f"a spline law needs a row of control values, got shape {self.control.shape}")

    @staticmethod
    def like(law: Any, n: int) -> "SplineLaw":
        """The law of `n` control values that is nearest to another one.

        !!! Example

            >>> import mbsjax as mbs
            >>> mbs.SplineLaw.like("poly345", 1)(0.5).round(6).item()  # of degree 5, which is one piece of it
            0.5
        """
        x = jnp.linspace(0.0, 1.0, 20 * (n + 6))
        zero = SplineLaw(jnp.zeros(n))
        A = jax.vmap(lambda c: SplineLaw(c)(x) - zero(x), out_axes=1)(jnp.eye(n))
        return SplineLaw(
            jnp.asarray(np.linalg.lstsq(np.asarray(A), np.asarray(as_law(law)(x) - zero(x)), rcond=None)[0])
        )

    def __call__(self, x: Numbers) -> Float[Array, "*n"]:
        x = jnp.asarray(x, float)
        basis = _pieces(self.control.size + 6)
        count = len(basis)
        c = jnp.concatenate([jnp.zeros(3), self.control, jnp.ones(3)])
        windows = c[np.arange(count)[:, None] + np.arange(6)]
        polynomials = jnp.sum(basis * windows[:, :, None], 1)  # one for each piece, the highest power first
        k = jnp.clip(jnp.floor(jax.lax.stop_gradient(x) * count).astype(int), 0, count - 1)
        powers = polynomials[k]
        u, y = x * count - k, jnp.zeros_like(x)
        for i in range(6):
            y = y * u + powers[..., i]
        return y

    __repr__ = by_fields


@functools.cache
def _pieces(n: int) -> np.ndarray:
    """The n B-splines of degree 5 over [0, 1] as polynomials: by piece, by spline among the six there, by power."""
    knots = np.concatenate([np.zeros(5), np.linspace(0.0, 1.0, n - 4), np.ones(5)])
    made = scipy.interpolate
    found = np.stack([made.PPoly.from_spline(made.BSpline(knots, row, 5)).c[:, 5:-5] for row in np.eye(n)])
    scale = (1 / (n - 5)) ** np.arange(5.0, -1, -1)
    return np.stack([found[k : k + 6, :, k] * scale for k in range(n - 5)])


class PolynomialLaw(AbstractModule):
    """A motion law from 0 to 1 as a polynomial, with velocity and acceleration zero at both ends: the 3-4-5 polynomial
    plus x^3 (1 - x)^3 times a Chebyshev series, whose coefficients are leaves. With n of them it has the degree n + 5.

    !!! Example

        >>> import mbsjax as mbs
        >>> law = mbs.PolynomialLaw([0.0, 20.0])  # near to the 4-5-6-7 polynomial
        >>> law(jnp.array([0.0, 0.25, 1.0])).round(6).tolist()
        [0.0, 0.037598, 1.0]
    """

    coefficients: Float[Array, " n"]

    def __init__(self, coefficients: Any):
        self.coefficients = as_float(coefficients, "the coefficients of a law")
        if self.coefficients.ndim != 1 or self.coefficients.size < 1:
            raise ValueError(f"a polynomial law needs a row of coefficients, got shape {self.coefficients.shape}")

    def __call__(self, x: Numbers) -> Float[Array, "*n"]:
        x = jnp.asarray(x, float)
        u, older, old = 2 * x - 1, jnp.zeros_like(x), jnp.zeros_like(x)
        for c in self.coefficients[:0:-1]:  # Clenshaw
            older, old = old, c + 2 * u * old - older
        series = self.coefficients[0] + u * old - older
        return x**3 * (10 + x * (6 * x - 15)) + (x * (1 - x)) ** 3 * series

    __repr__ = by_fields
