"""The smooth elements: polynomials in polar form, any curve given by a function, and splines."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._programs.precision import as_float, number, value, whole
from ..._programs.trees import as_function
from .base import AbstractCurve, point_of


class Polynomial(AbstractCurve):
    """A polynomial in polar form (2.4.1-1): r = sum of c_i ((angle - reference) / scale)^order_i.

    **Arguments:**

    - `coefficients`, `orders`: c_i, and the powers, whole numbers.
    - `start`, `end`: the polar angles, from x, between which it runs. Counter-clockwise, the material is on the side
        of the center.
    - `reference`, `scale`: as above. ACDMC files (thesis D.2) measure the angle from the start of the element:
        their `Ao` is (start - reference) in degrees, their `Ko` is the scale in degrees, 1 if left out.
    - `center`: of the polar system.

    !!! Example

        >>> spiral = Polynomial((1.0, 2.0), (0, 1), 0.0, jnp.pi)
        >>> round(spiral(0.5).position[1].item(), 6)
        4.141593
    """

    kind: ClassVar[str] = "polynomial"
    coefficients: Float[Array, " n"]
    start: Float[Array, ""]
    end: Float[Array, ""]
    reference: Float[Array, ""]
    scale: Float[Array, ""]
    center: Float[Array, "2"]
    orders: tuple[int, ...] = eqx.field(static=True)

    def __init__(
        self,
        coefficients: Any,
        orders: Sequence[int],
        start: Any,
        end: Any,
        *,
        reference: Any = 0.0,
        scale: Any = 1.0,
        center: Any = (0.0, 0.0),
    ):
        self.coefficients = as_float(coefficients, "the coefficients of a polynomial")
        self.orders = tuple(whole(n, "an order of a polynomial", 0) for n in orders)
        if self.coefficients.shape != (len(self.orders),):
            raise ValueError(
                f"a polynomial needs one order, 0 or more, for each coefficient, got {orders!r} for "
                f"coefficients of shape {self.coefficients.shape}"
            )
        self.start, self.end = number(start, "the start of a polynomial"), number(end, "the end of a polynomial")
        self.reference = number(reference, "the reference angle of a polynomial")
        self.scale = number(scale, "the scale of a polynomial")
        self.center = point_of(center, "the center of a polynomial")
        if value(self.scale) == 0:
            raise ValueError("the scale of a polynomial must not be zero")
        if value(self.start) == value(self.end):
            raise ValueError(f"a polynomial from the angle {float(value(self.start)):.6g} to itself has no length")

    def position(self, s: Float[Array, ""]) -> Float[Array, "2"]:
        angle = self.start + (self.end - self.start) * s
        x = (angle - self.reference) / self.scale
        r = sum(self.coefficients[i] * x**n for i, n in enumerate(self.orders))
        return self.center + r * jnp.stack([jnp.cos(angle), jnp.sin(angle)])

    @property
    def samples(self) -> int:
        return 32


class Curve(AbstractCurve):
    """Any smooth curve: `function` gives x and y of the local coordinate from 0 to 1. It is made of JAX operations;
    as an `equinox.Module` its numbers are leaves.

    !!! Example

        >>> ellipse = Curve(lambda s: (2 * jnp.cos(2 * jnp.pi * s), jnp.sin(2 * jnp.pi * s)))
        >>> round(ellipse(0.0).curvature.item(), 9)
        2.0
    """

    kind: ClassVar[str] = "curve"
    function: Callable
    samples: int = eqx.field(static=True)

    def __init__(self, function: Callable, *, samples: int = 64):
        self.function = as_function(function, jnp.zeros(()))
        self.samples = samples

    def position(self, s: Float[Array, ""]) -> Float[Array, "2"]:
        x, y = self.function(s)
        return jnp.stack([jnp.asarray(x, float), jnp.asarray(y, float)])


class Spline(AbstractCurve):
    """A uniform cubic B-spline. Its control points are leaves: each shapes four segments, and the curve has a
    continuous curvature, whatever they are. Made for shape synthesis.

    A closed spline of n control points has n segments; an open one n - 3.

    !!! Example

        >>> angles = 2 * jnp.pi * jnp.arange(12) / 12
        >>> ring = Spline.through(jnp.stack([jnp.cos(angles), jnp.sin(angles)], 1))
        >>> ring(0.25).position.round(6).tolist()
        [0.0, 1.0]
    """

    kind: ClassVar[str] = "spline"
    control: Float[Array, "n 2"]
    closed: bool = eqx.field(static=True)

    def __init__(self, control: Any, *, closed: bool = True):
        self.control = as_float(control, "the control points of a spline")
        if self.control.ndim != 2 or self.control.shape[1] != 2 or self.control.shape[0] < 4:
            raise ValueError(f"a spline needs at least four control points in the plane, got {self.control.shape}")
        self.closed = closed

    @staticmethod
    def through(points: Any, *, closed: bool = True) -> "Spline":
        """The spline through a table of points, which it passes at equal steps of its coordinate. A closed table does
        not repeat its first point. An open spline ends without curvature.

        !!! Example

            >>> Spline.through([(0.0, 0.0), (1.0, 1.0), (2.0, 0.0)], closed=False)(1.0).position.round(9).tolist()
            [2.0, 0.0]
        """
        points = as_float(points, "the points of a spline")
        least = 4 if closed else 2
        if points.ndim != 2 or points.shape[1] != 2 or points.shape[0] < least:
            raise ValueError(f"a spline needs at least {least} points in the plane, got shape {points.shape}")
        seen = value(points)
        steps = np.diff(seen, axis=0, append=seen[:1] if closed else np.zeros((0, 2)))
        same = np.flatnonzero(np.all(steps == 0, 1))
        if same.size:
            hint = "; a closed table does not repeat its first point" if closed else ""
            raise ValueError(f"point {same[0]} of a spline coincides with the next one{hint}")
        n = points.shape[0]
        weights = np.array([1.0, 4.0, 1.0]) / 6
        if closed:
            # control k is the middle one of its segment's start
            A = sum(w * np.roll(np.eye(n), shift, 1) for w, shift in zip(weights, (0, 1, 2)))
            return Spline(jnp.linalg.solve(jnp.asarray(A), points))
        A = np.zeros((n + 2, n + 2))
        for k in range(n):
            A[k + 1, k : k + 3] = weights
        A[0, :3] = A[-1, -3:] = (1.0, -2.0, 1.0)
        padded = jnp.concatenate([jnp.zeros((1, 2)), points, jnp.zeros((1, 2))])
        return Spline(jnp.linalg.solve(jnp.asarray(A), padded), closed=False)

    @property
    def segments(self) -> int:
        return self.control.shape[0] - (0 if self.closed else 3)

    def position(self, s: Float[Array, ""]) -> Float[Array, "2"]:
        x = s * self.segments
        k = jax.lax.stop_gradient(jnp.floor(x))
        if not self.closed:
            k = jnp.clip(k, 0, self.segments - 1)
        u = x - k
        weights = jnp.stack([(1 - u) ** 3, 3 * u**3 - 6 * u**2 + 4, -3 * u**3 + 3 * u**2 + 3 * u + 1, u**3])
        around = (k.astype(int) + jnp.arange(4)) % self.control.shape[0]
        return weights @ self.control[around] / 6

    @property
    def samples(self) -> int:
        return 3 * self.segments
