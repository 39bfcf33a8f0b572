"""The clearances of joints with play, laid out for computing as other contacts are.

Written for one mechanism in one position; `lanewise` applies it along lanes.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._events.places import Places
from .._model.joint.clearance import Clearance
from .._model.profile.closest_pair import ClosestPair
from .._model.profile.common_normal import CommonNormal
from .._numerics.groups import SE2, SE3, AbstractPose
from .contacts import AbstractContactGeometry, Proximity, placed, unit_wrench


_AXES = {"bore": (0, 1), "slot": (1,), "guide": (1,), "cavity": (0, 1, 2)}  # along which it is confined


class ClearanceGeometry(AbstractContactGeometry):
    """What is confined, within its clearance. In the middle there is no direction in which it is nearest to the rim: x
    stands for it, and y where it is confined along that alone."""

    X_A: AbstractPose
    X_B: AbstractPose
    size: Float[Array, ""]
    radius: Float[Array, ""]
    kind: str = eqx.field(static=True)

    @staticmethod
    def relative(P_a: AbstractPose, P_b: AbstractPose) -> AbstractPose:
        return P_a.inverse() @ P_b

    def _nearest(self, X: AbstractPose) -> tuple[Float[Array, " n"], Float[Array, ""]]:
        """The direction to where it is nearest, along what it is confined in, and how far that is."""
        if self.kind == "backlash":
            u = (X.angle if isinstance(X, SE2) else _turn(X))[None]
        else:
            u = jnp.stack([X.position[i] for i in _AXES[self.kind]])
        square = jnp.sum(u * u)
        off = square > 0
        middle = jnp.asarray(np.arange(len(u)) == 0, u.dtype)
        n = jnp.where(off, u / jnp.sqrt(jnp.where(off, square, 1.0)), middle)
        gap = self.size - jnp.sum(n * u)
        if self.kind == "guide":  # a corner of a block that is tilted
            gap = gap + self.radius * (1 - (X.c if isinstance(X, SE2) else X.matrix()[1, 1]))
        return n, self.radius * gap if self.kind == "backlash" else gap

    def _side(self, n: Array) -> Array:
        """Which wall is nearest, where there are two."""
        return (n[0] > 0).astype(int) if n.shape[0] == 1 else jnp.zeros((), int)

    def common_normal(self, X: AbstractPose, e1: Array, e2: Array, s1: Array, s2: Array) -> CommonNormal:
        gap = self._nearest(X)[1]
        half = jnp.full_like(gap, 0.5)
        return CommonNormal(half, half, gap)

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(1, int), np.zeros(1, int)

    def closest_pair(self, X: AbstractPose) -> ClosestPair:
        n, gap = self._nearest(X)
        half = jnp.full_like(gap, 0.5)
        return ClosestPair(self._side(n), jnp.zeros((), int), half, half, gap)

    def spot(self, P_a: AbstractPose, P_b: AbstractPose, e1: Array, s1: Array) -> tuple[Array, Array]:
        n, at = self._nearest(self.relative(P_a, P_b))[0], P_b.position
        if self.kind == "backlash":
            return at, jnp.zeros_like(at)
        axes = np.eye(P_a.dim)[list(_AXES[self.kind])]
        n = P_a.rotate(jnp.sum(n[:, None] * axes, 0))
        if self.kind == "guide":
            up = P_b.rotate(jnp.asarray(axes[0]))
            return at + self.radius * up * jnp.sign(jnp.sum(up * n)), -n
        return at + self.radius * n, -n

    def wrench(
        self, P_a: AbstractPose, P_b: AbstractPose, e1: Array, s1: Array, along: bool = False
    ) -> Float[Array, " rows"]:
        if self.kind == "backlash":
            turn = -self.radius * self._nearest(self.relative(P_a, P_b))[0][0]
            axis = jnp.ones(1) if P_a.dim == 2 else P_a.rotate(jnp.array([0.0, 0.0, 1.0]))
            return jnp.concatenate([0 * turn * axis if along else turn * axis, jnp.zeros(P_a.dim)])
        point, normal = self.spot(P_a, P_b, e1, s1)
        if along and P_a.dim == 2:
            normal = jnp.stack([-normal[1], normal[0]])
        elif along:
            normal = jnp.cross(P_a.rotate(jnp.array([0.0, 0.0, 1.0])), normal)
        return unit_wrench(point, normal)

    def proximity(
        self,
        X: AbstractPose,
        e1: Array,
        e2: Array,
        s1: Array,
        s2: Array,
        on: Array,
        radius: Array,
        apart: Array | None = None,
    ) -> Proximity:
        near = self.closest_pair(X)
        there = Places(near.e1, near.e2, near.s1, near.s2)
        outside = jnp.where(near.gap > -1e-9 * self.size, near.gap, -jnp.inf)[None]
        outside = outside[:0] if apart is None else jnp.pad(outside, (0, len(apart) - 1), constant_values=-jnp.inf)
        gap = jnp.where(on, jnp.inf, near.gap)  # there is no other place where it could touch
        return Proximity(gap, jnp.ones(4), Places(e1, e2, s1, s2).where(on, there), there, outside)

    def next_elements(
        self, X: AbstractPose, e1: Array, e2: Array, s1: Array, s2: Array, w: Array, size: Array
    ) -> tuple[Places, Array]:
        return Places(e1, e2, s1, s2), jnp.zeros((), bool)

    @property
    def bounding_circles(self) -> tuple[Float[Array, "2 2"], Float[Array, "2"]]:
        return jnp.zeros((2, 2)), jnp.zeros(2)

    def gap_rate_bound(self, P_a: AbstractPose, P_b: AbstractPose, V: Array, centers: Array, reaches: Array) -> Array:
        """How fast what is confined moves; a block also turns its corners."""
        p = P_b.position
        if P_b.dim == 2:
            turning, velocity = jnp.abs(V[0]), V[1:] + V[0] * jnp.stack([-p[1], p[0]])
        else:
            turning, velocity = jnp.sqrt(jnp.sum(V[:3] ** 2)), V[3:] + jnp.cross(V[:3], p)
        if self.kind == "backlash":
            return turning * self.radius
        speed = jnp.sqrt(jnp.sum(velocity * velocity))
        return speed + turning * self.radius if self.kind == "guide" else speed

    @property
    def feature_sizes(self) -> tuple[Array, Array]:
        along = self.size * self.radius if self.kind == "backlash" else self.size
        return along, jnp.full((1,), jnp.inf)


def _turn(X: AbstractPose) -> Array:
    assert isinstance(X, SE3)
    return jnp.arctan2(X.R[1, 0], X.R[0, 0])


def clearance_geometry(contact: Clearance, group: type[AbstractPose]) -> ClearanceGeometry:
    play, X_A, X_B = contact.play, *(placed(frame, group) for frame in (contact.frame_a, contact.frame_b))
    radius = jnp.zeros_like(play.size) if play.radius is None else play.radius
    return ClearanceGeometry(X_A, X_B, play.size, radius, contact.kind)
