"""Inertia: of bodies, in their frames and in ground, and the momentum that goes with a twist.

A momentum is `(angular, linear)` about the origin of ground, as a twist is `(omega, v)` there: their product is twice
the kinetic energy. Lanes stand behind, as in `_groups`.
"""

import abc
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from equinox import AbstractVar
from jaxtyping import Array

from .._model.body import Body
from .._numerics.groups import SE2, SE3, AbstractPose, cross, wide


class AbstractInertia(eqx.Module):
    """Of many bodies, or of what hangs on many freedoms: mass, first and second moments about the origin; in the
    bodies' own frames, their centers and the second moments about these."""

    mass: AbstractVar[Array]
    moment: AbstractVar[Array]
    second: AbstractVar[Array]

    @abc.abstractmethod
    def seen(self, X: AbstractPose) -> "AbstractInertia":
        """In ground, about its origin, where the bodies stand at X."""

    @abc.abstractmethod
    def momentum(self, V: Array) -> Array:
        """The momentum of a twist."""

    @abc.abstractmethod
    def weight(self, g: Array) -> Array:
        """The wrench of a field of accelerations."""

    @abc.abstractmethod
    def gathered(self, members: np.ndarray) -> "AbstractInertia":
        """The sums over bodies, for each column of a matrix that tells which belong together."""


class PlanarInertia(AbstractInertia):
    mass: Array  # bodies
    moment: Array  # 2, bodies
    second: Array  # bodies

    def seen(self, X: AbstractPose) -> "PlanarInertia":
        assert isinstance(X, SE2)
        c = X.apply(self.moment)
        return PlanarInertia(self.mass, self.mass * c, self.second + self.mass * jnp.sum(c * c, 0))

    def momentum(self, V: Array) -> Array:
        w, vx, vy = V
        x, y = self.moment
        return jnp.stack([self.second * w + x * vy - y * vx, self.mass * vx - y * w, self.mass * vy + x * w])

    def weight(self, g: Array) -> Array:
        x, y = self.moment
        gx, gy = g[0] + 0 * x, g[1] + 0 * x
        return jnp.stack([x * gy - y * gx, self.mass * gx, self.mass * gy])

    def gathered(self, members: np.ndarray) -> "PlanarInertia":
        return PlanarInertia(
            *(_sums(x, members, axis) for x, axis in ((self.mass, 0), (self.moment, 1), (self.second, 0)))
        )


class SpatialInertia(AbstractInertia):
    mass: Array  # bodies
    moment: Array  # 3, bodies
    second: Array  # 3, 3, bodies

    def seen(self, X: AbstractPose) -> "SpatialInertia":
        assert isinstance(X, SE3)
        c = X.apply(self.moment)
        turned = jnp.sum(X.R[:, :, None] * self.second[None], 1)
        J = jnp.sum(turned[:, None] * X.R[None], 2)
        across = wide(np.eye(3), c.ndim - 1) * jnp.sum(c * c, 0) - c[:, None] * c[None]
        return SpatialInertia(self.mass, self.mass * c, J + self.mass * across)

    def momentum(self, V: Array) -> Array:
        w, v = V[:3], V[3:]
        angular = jnp.sum(self.second * w[None], 1) + cross(self.moment, v)
        return jnp.concatenate([angular, self.mass * v + cross(w, self.moment)])

    def weight(self, g: Array) -> Array:
        g = g.reshape(3, 1, *g.shape[1:]) + jnp.zeros_like(self.moment)
        return jnp.concatenate([cross(self.moment, g), self.mass * g])

    def gathered(self, members: np.ndarray) -> "SpatialInertia":
        parts = ((self.mass, 0), (self.moment, 1), (self.second, 2))
        return SpatialInertia(*(_sums(x, members, axis) for x, axis in parts))


def _sums(x: Array, members: np.ndarray, axis: int) -> Array:
    lanes = x.ndim - axis - 1
    return jnp.sum(jnp.expand_dims(x, axis + 1) * wide(members, lanes), axis)


def inertia(bodies: Sequence[Body], planar: bool) -> AbstractInertia:
    """Of bodies, each in its frame."""
    mass = jnp.stack([b.mass for b in bodies])
    if planar:
        return PlanarInertia(
            mass, jnp.stack([b.center[:2] for b in bodies], 1), jnp.stack([b.inertia[2, 2] for b in bodies])
        )
    return SpatialInertia(mass, jnp.stack([b.center for b in bodies], 1), jnp.stack([b.inertia for b in bodies], 2))


def turned(V: Array, h: Array) -> Array:
    """The rate of a momentum that is carried along with a twist."""
    if V.shape[0] == 3:
        w, vx, vy = V
        _, px, py = h
        return jnp.stack([vx * py - vy * px, -w * py, w * px])
    w, v, L, P = V[:3], V[3:], h[:3], h[3:]
    return jnp.concatenate([cross(w, L) + cross(v, P), cross(w, P)])
