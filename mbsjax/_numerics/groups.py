"""The two algebras that the kinematics is written in: SE2 for planar mechanisms, SE3 for spatial.

Both have the same methods, so every algorithm above this room is written once. Arrays carry their
structure on the leading axes, then, where there are many poses, which one it is, and any number of lanes
(variants of a mechanism, instants of a motion) behind: arithmetic then runs along the lanes, on
neighbors in memory. A twist is `(omega, v)`, with its entries on the first axis.
"""

import abc
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from equinox import AbstractClassVar
from jaxtyping import Array

from .. import frames


class AbstractPose(eqx.Module):
    """One pose, or many."""

    dim: AbstractClassVar[int]  # of the space
    rows: AbstractClassVar[int]  # of a twist
    n_rotations: AbstractClassVar[int]  # of these, rotations
    row_names: AbstractClassVar[tuple[str, ...]]

    @staticmethod
    @abc.abstractmethod
    def origin(like: Array) -> "AbstractPose":
        """The identity, for each entry of an array."""

    @staticmethod
    @abc.abstractmethod
    def stack(poses: Sequence[Any]) -> "AbstractPose":
        """Single poses made many."""

    @staticmethod
    @abc.abstractmethod
    def concatenate(poses: Sequence[Any]) -> "AbstractPose":
        """Many poses, one row of them after the other."""

    @abc.abstractmethod
    def map_many(self, f: Callable[[Array, int], Array]) -> "AbstractPose":
        """f of every leaf and the axis that tells the poses apart."""

    @property
    @abc.abstractmethod
    def position(self) -> Array:
        """The origin."""

    @abc.abstractmethod
    def __matmul__(self, other: Any) -> "AbstractPose":
        """X_AB @ X_BC = X_AC."""

    @abc.abstractmethod
    def onward(self, phi: Any, X_out: Any, turn: tuple[Array, ...]) -> "AbstractPose":
        """self @ phi @ X_out.inverse(); `turn` holds what is known of its cosines and sines."""

    @abc.abstractmethod
    def inverse(self) -> "AbstractPose":
        """X_BA."""

    @abc.abstractmethod
    def rotate(self, v: Array) -> Array:
        """A vector's entries in A from those in B."""

    @abc.abstractmethod
    def twist_map(self, twist: Array) -> Array:
        """A twist's entries in A from those in B."""

    @abc.abstractmethod
    def left_twist(self, rate: Any) -> Array:
        """The twist of `rate X^-1`, where `rate` is a derivative of this pose."""

    @abc.abstractmethod
    def carried(self, twist: Array) -> "AbstractPose":
        """hat(twist) X: the rate of a pose that moves with this twist."""

    @abc.abstractmethod
    def turned(self, twist: Array) -> "AbstractPose":
        """The rate of a rate of a pose, all else at rest: what it is carried to, but for the origin."""

    @abc.abstractmethod
    def wrench(self, slope: Any) -> Array:
        """The derivative along twists of what has this derivative (a pose of slopes) in the pose: the transpose of
        `carried`."""

    @staticmethod
    @abc.abstractmethod
    def bracket(V: Array, S: Array) -> Array:
        """The rate of a twist S that is carried along with the twist V."""

    @abc.abstractmethod
    def defect(self, afar: bool = False) -> Array:
        """How far this pose is from the identity; `afar`, zero nowhere else."""

    @abc.abstractmethod
    def defect_rate(self, twist: Array, afar: bool = False) -> Array:
        """The derivative of `defect` when this pose moves with `twist`; if not `afar`, that at the identity."""

    @abc.abstractmethod
    def matrix(self) -> Array:
        """As 4x4 matrices, on the last two axes."""

    def apply(self, p: Array) -> Array:
        """A point's coordinates in A from those in B."""
        return self.position + self.rotate(p)

    def screws(self, columns: np.ndarray) -> Array:
        """The twists in A, of every one of many poses (last), of every column of a constant matrix in B."""
        lanes = self.position.ndim - 2
        return self.map_many(lambda leaf, axis: jnp.expand_dims(leaf, axis)).twist_map(
            jnp.asarray(wide(columns[:, :, None], lanes))
        )


class SE2(AbstractPose):
    """Poses in the plane; the angle is kept beside its cosine and sine: angles add up along a chain and
    stay continuous over many turns."""

    c: Array
    s: Array
    x: Array
    y: Array
    angle: Array

    dim: ClassVar[int] = 2
    rows: ClassVar[int] = 3
    n_rotations: ClassVar[int] = 1
    row_names: ClassVar[tuple[str, ...]] = ("rotation", "x", "y")

    @staticmethod
    def of(frame: frames.PlanarFrame) -> "SE2":
        return SE2(jnp.cos(frame.angle), jnp.sin(frame.angle), frame.x, frame.y, frame.angle)

    @staticmethod
    def origin(like: Array) -> "SE2":
        zero = jnp.zeros_like(like)
        return SE2(zero + 1, zero, zero, zero, zero)

    @staticmethod
    def stack(poses: Sequence[Any]) -> "SE2":
        return jax.tree_util.tree_map(lambda *leaves: jnp.stack(leaves), *poses)

    @staticmethod
    def concatenate(poses: Sequence[Any]) -> "SE2":
        return jax.tree_util.tree_map(lambda *leaves: jnp.concatenate(leaves), *poses)

    def map_many(self, f: Callable[[Array, int], Array]) -> "SE2":
        return jax.tree_util.tree_map(lambda leaf: f(leaf, 0), self)

    def __matmul__(self, other: Any) -> "SE2":
        return SE2(
            self.c * other.c - self.s * other.s,
            self.s * other.c + self.c * other.s,
            self.x + self.c * other.x - self.s * other.y,
            self.y + self.s * other.x + self.c * other.y,
            self.angle + other.angle,
        )

    def onward(self, phi: Any, X_out: Any, turn: tuple[Array, ...]) -> "SE2":
        c, s = turn
        x = self.x + self.c * phi.x - self.s * phi.y - c * X_out.x + s * X_out.y
        y = self.y + self.s * phi.x + self.c * phi.y - s * X_out.x - c * X_out.y
        return SE2(c, s, x, y, self.angle + phi.angle - X_out.angle)

    def inverse(self) -> "SE2":
        x = -(self.c * self.x + self.s * self.y)
        y = self.s * self.x - self.c * self.y
        return SE2(self.c, -self.s, x, y, -self.angle)

    def rotate(self, v: Array) -> Array:
        return jnp.stack([self.c * v[0] - self.s * v[1], self.s * v[0] + self.c * v[1]])

    @property
    def position(self) -> Array:
        return jnp.stack([self.x, self.y])

    def twist_map(self, twist: Array) -> Array:
        w, vx, vy = twist
        x, y = self.c * vx - self.s * vy + w * self.y, self.s * vx + self.c * vy - w * self.x
        return jnp.stack([jnp.broadcast_to(w, x.shape), x, y])

    def left_twist(self, rate: Any) -> Array:
        w = rate.angle
        return jnp.stack([w, rate.x + w * self.y, rate.y - w * self.x])

    def carried(self, twist: Array) -> "SE2":
        w, vx, vy = twist
        return SE2(-w * self.s, w * self.c, vx - w * self.y, vy + w * self.x, w)

    def turned(self, twist: Array) -> "SE2":
        w = twist[0]
        return SE2(-w * self.s, w * self.c, -w * self.y, w * self.x, jnp.zeros_like(w))

    def wrench(self, slope: Any) -> Array:
        moment = self.c * slope.s - self.s * slope.c + self.x * slope.y - self.y * slope.x
        return jnp.stack([moment + slope.angle, slope.x, slope.y])

    @staticmethod
    def bracket(V: Array, S: Array) -> Array:
        (w, vx, vy), (z, x, y) = V, S
        return jnp.stack([jnp.zeros_like(x), z * vy - w * y, w * x - z * vx])

    def screws(self, columns: np.ndarray) -> Array:
        def sum_of(*terms: tuple[float, Array]) -> Array:
            parts = [x if k == 1 else k * x for k, x in terms if k]
            return sum(parts[1:], parts[0]) if parts else jnp.zeros_like(self.x)

        found = []
        for w, vx, vy in columns.T:
            x = sum_of((vx, self.c), (-vy, self.s), (w, self.y))
            y = sum_of((vx, self.s), (vy, self.c), (-w, self.x))
            found.append(jnp.stack([jnp.full_like(x, w), x, y]))
        return jnp.stack(found, 1) if found else jnp.zeros((3, 0, *self.x.shape))

    def defect(self, afar: bool = False) -> Array:
        turns = jax.lax.stop_gradient(jnp.round(self.angle / (2 * jnp.pi)))
        return jnp.stack([self.angle - 2 * jnp.pi * turns, self.x, self.y])

    def defect_rate(self, twist: Array, afar: bool = False) -> Array:
        w, vx, vy = twist
        return jnp.stack([w, vx - w * self.y, vy + w * self.x])

    def matrix(self) -> Array:
        return frames.embed(frames.PlanarFrame(self.x, self.y, self.angle))


class SE3(AbstractPose):
    """Poses in space."""

    R: Array  # 3x3 on the first two axes
    p: Array

    dim: ClassVar[int] = 3
    rows: ClassVar[int] = 6
    n_rotations: ClassVar[int] = 3
    row_names: ClassVar[tuple[str, ...]] = ("rotation x", "rotation y", "rotation z", "x", "y", "z")

    @staticmethod
    def of(matrix: Array) -> "SE3":
        """From 4x4 matrices on the last two axes."""
        structure_first = jnp.moveaxis(matrix, (-2, -1), (0, 1))
        return SE3(structure_first[:3, :3], structure_first[:3, 3])

    @staticmethod
    def origin(like: Array) -> "SE3":
        zero = jnp.zeros_like(like)
        R = jnp.stack([jnp.stack([zero + float(i == j) for j in range(3)]) for i in range(3)])
        return SE3(R, jnp.stack([zero] * 3))

    @staticmethod
    def stack(poses: Sequence[Any]) -> "SE3":
        return SE3(jnp.stack([X.R for X in poses], 2), jnp.stack([X.position for X in poses], 1))

    @staticmethod
    def concatenate(poses: Sequence[Any]) -> "SE3":
        return SE3(jnp.concatenate([X.R for X in poses], 2), jnp.concatenate([X.position for X in poses], 1))

    def map_many(self, f: Callable[[Array, int], Array]) -> "SE3":
        return SE3(f(self.R, 2), f(self.position, 1))

    @property
    def position(self) -> Array:
        return self.p

    def __matmul__(self, other: Any) -> "SE3":
        R = jnp.sum(self.R[:, :, None] * other.R[None], 1)
        return SE3(R, self.apply(other.position))

    def onward(self, phi: Any, X_out: Any, turn: tuple[Array, ...]) -> "SE3":
        return self @ phi @ X_out.inverse()

    def inverse(self) -> "SE3":
        R_T = jnp.swapaxes(self.R, 0, 1)
        return SE3(R_T, -jnp.sum(R_T * self.position[None], 1))

    def rotate(self, v: Array) -> Array:
        return jnp.sum(self.R * v[None], 1)

    def twist_map(self, twist: Array) -> Array:
        w = self.rotate(twist[:3])
        return jnp.concatenate([w, self.rotate(twist[3:]) + cross(self.position, w)])

    def left_twist(self, rate: Any) -> Array:
        W = jnp.sum(rate.R[:, None] * self.R[None], 2)
        w = jnp.stack([W[2, 1], W[0, 2], W[1, 0]])
        return jnp.concatenate([w, rate.position - cross(w, self.position)])

    def carried(self, twist: Array) -> "SE3":
        turned = self.turned(twist)
        return SE3(turned.R, twist[3:] + turned.p)

    def turned(self, twist: Array) -> "SE3":
        w = twist[:3]
        return SE3(cross(w[:, None], self.R), cross(w, self.position))

    def wrench(self, slope: Any) -> Array:
        moment = jnp.sum(cross(self.R, slope.R), 1) + cross(self.position, slope.p)
        return jnp.concatenate([moment, slope.p])

    @staticmethod
    def bracket(V: Array, S: Array) -> Array:
        w, z = V[:3], S[:3]
        return jnp.concatenate([cross(w, z), cross(w, S[3:]) + cross(V[3:], z)])

    def _quaternion(self) -> Array:
        return jnp.moveaxis(frames.quaternion(jnp.moveaxis(self.R, (0, 1), (-2, -1))), -1, 0)

    def defect(self, afar: bool = False) -> Array:
        # the skew part is sin(angle) along the axis; twice the vector part of the quaternion is
        # 2 sin(angle/2) along it, and agrees with that to second order
        if afar:
            return jnp.concatenate([2 * self._quaternion()[1:], self.position])
        skew = (self.R - jnp.swapaxes(self.R, 0, 1)) / 2
        return jnp.concatenate([jnp.stack([skew[2, 1], skew[0, 2], skew[1, 0]]), self.position])

    def defect_rate(self, twist: Array, afar: bool = False) -> Array:
        w, v = twist[:3], twist[3:] + cross(twist[:3], self.position)
        if afar:
            e = self._quaternion()
            w = e[0] * w + cross(w, e[1:])
        return jnp.concatenate([w, v])

    def matrix(self) -> Array:
        return frames.pose(jnp.moveaxis(self.R, (0, 1), (-2, -1)), jnp.moveaxis(self.position, 0, -1))


def cross(a: Array, b: Array) -> Array:
    """a x b, entries on the first axis."""
    on = lambda x: jnp.concatenate([x[1:], x[:1]])
    return on(a * on(b) - on(a) * b)


def take(poses: AbstractPose, index: np.ndarray) -> AbstractPose:
    """The poses at these places. Where all are the same one it is returned once, to be broadcast."""
    if len(index) and np.all(index == index[0]):
        index = index[:1]
    return poses.map_many(lambda leaf, axis: pick(leaf, index, axis))


def part(poses: AbstractPose, start: int, stop: int) -> AbstractPose:
    return poses.map_many(lambda leaf, axis: pick(leaf, np.arange(start, stop), axis))


def one(poses: AbstractPose, i: int) -> AbstractPose:
    return poses.map_many(lambda leaf, axis: jax.lax.index_in_dim(leaf, i, axis, keepdims=False))


def expand(poses: AbstractPose) -> AbstractPose:
    """A new axis behind the one that tells the poses apart, for outer combinations."""
    return poses.map_many(lambda leaf, axis: jnp.expand_dims(leaf, axis + 1))


def pick(x: Array, places: np.ndarray, axis: int = 0) -> Array:
    """x at places known beforehand along an axis; where they run on without a gap, a slice: cheaper to trace,
    to compile and to run than a gather."""
    flat = places.reshape(-1)
    start = int(flat[0]) if flat.size else 0
    if np.array_equal(flat, np.arange(x.shape[axis])):
        pass
    elif np.array_equal(flat, start + np.arange(flat.size)):
        x = jax.lax.slice_in_dim(x, start, start + flat.size, axis=axis)
    else:
        index = (slice(None),) * axis + (flat,)
        x = x.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)
    return x if places.ndim == 1 else x.reshape(x.shape[:axis] + places.shape + x.shape[axis + 1 :])


def lanewise(f: Callable, lanes: int) -> Callable:
    """f, written for one, applied along the last `lanes` axes of all its arguments' arrays."""
    for _ in range(lanes):
        f = eqx.filter_vmap(f, in_axes=eqx.if_array(-1), out_axes=eqx.if_array(-1))
    return f


def rowwise(f: Callable, n: int) -> Callable:
    """f, written for one, applied along the n rows, on the first axis, of all its arguments' arrays. A single row has
    no axis within: it would double what there is to trace, and be a loop around each operation."""
    if n != 1:
        return eqx.filter_vmap(f, in_axes=eqx.if_array(0), out_axes=eqx.if_array(0))

    def call(*rows: Any) -> Any:
        row = jax.tree_util.tree_map(lambda x: jax.lax.squeeze(x, (0,)) if eqx.is_array(x) else x, rows)
        return jax.tree_util.tree_map(lambda x: jax.lax.expand_dims(x, (0,)) if eqx.is_array(x) else x, f(*row))

    return call


def lanes_behind(f: Callable, batched: Callable | None = None) -> Callable:
    """f of arrays, which under `vmap` is given all its lanes at once, behind all other axes. Where there is one for
    batches, that is called in its place, first with which of the arguments' arrays differ from lane to lane."""
    f, many = jax.custom_batching.custom_vmap(f), batched

    @f.def_vmap
    def _(n, batched, *args):
        def behind(x: Array, has_lane: bool) -> Array:
            return jnp.moveaxis(x, 0, -1) if has_lane else jnp.broadcast_to(x[..., None], (*x.shape, n))

        go = f if many is None else lanes_behind(functools.partial(many, tuple(batched)))
        results = go(*jax.tree_util.tree_map(behind, args, tuple(batched)))
        results = jax.tree_util.tree_map(lambda x: jnp.moveaxis(x, -1, 0), results)
        return results, jax.tree_util.tree_map(lambda _: True, results)

    return f


def wide(constant: Any, lanes: int) -> np.ndarray:
    """A constant with room for the lanes behind its axes."""
    constant = np.asarray(constant)
    return constant.reshape(constant.shape + (1,) * lanes)
