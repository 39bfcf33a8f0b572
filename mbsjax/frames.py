"""Homogeneous 4x4 matrices, twists and wrenches, as pure functions.

`X_AB` is the pose of frame B in frame A: it takes the coordinates of a point in B to
its coordinates in A (thesis 2.2.3-1). A twist is `(omega, v)`, a wrench
`(torque, force)`, both taken at the origin of the frame they are expressed in. All
functions broadcast over leading axes.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ._programs.custom_types import Matrix4, Numbers, Twist, Vector3
from ._programs.modules import AbstractModule
from ._programs.precision import as_float, value
from ._programs.reprs import by_fields
from ._programs.trees import once


class PlanarFrame(AbstractModule):
    """A frame in the plane: origin `(x, y)`, x axis turned by `angle`.

    Mechanisms whose frames are all planar are solved with three equations a loop.

    !!! Example

        >>> at(1.0, 2.0, angle=0.5).x.item()
        1.0
    """

    x: Float[Array, "*batch"]
    y: Float[Array, "*batch"]
    angle: Float[Array, "*batch"]

    __repr__ = by_fields


def at(x: Numbers, y: Numbers, angle: Numbers = 0.0) -> PlanarFrame:
    """The planar frame with origin `(x, y)` whose x axis is turned by `angle`.

    !!! Example

        >>> embed(at(1.0, 2.0))[:2, 3].tolist()
        [1.0, 2.0]
    """
    x, y, angle = (as_float(v, "a coordinate of a planar frame") for v in (x, y, angle))
    return PlanarFrame(x, y, angle)


def embed(frame: PlanarFrame) -> Matrix4:
    """The planar frame as a 4x4 matrix, in the plane z = 0.

    !!! Example

        >>> embed(at(0.0, 0.0)).tolist()[2]
        [0.0, 0.0, 1.0, 0.0]
    """
    c, s = jnp.cos(frame.angle), jnp.sin(frame.angle)
    o, i = jnp.zeros_like(c), jnp.ones_like(c)
    rows = ((c, -s, o, frame.x), (s, c, o, frame.y), (o, o, i, o), (o, o, o, i))
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


def pose(rotation: Float[Array, "*batch 3 3"], position: Vector3) -> Matrix4:
    """The 4x4 matrix with this rotation and this origin (2.2.3-2).

    !!! Example

        >>> pose(jnp.eye(3), jnp.array([1.0, 2.0, 3.0]))[:3, 3].tolist()
        [1.0, 2.0, 3.0]
    """
    top = jnp.concatenate([rotation, position[..., None]], -1)
    bottom = jnp.zeros_like(top[..., :1, :]).at[..., 3].set(1.0)
    return jnp.concatenate([top, bottom], -2)


def translation(p: Numbers) -> Matrix4:
    """A pure translation by `p`.

    !!! Example

        >>> transform(translation([1.0, 0.0, 0.0]), jnp.zeros(3)).tolist()
        [1.0, 0.0, 0.0]
    """
    p = as_float(p, "a translation")
    return pose(jnp.broadcast_to(jnp.eye(3), (*p.shape, 3)), p)


def rotation(axis: Numbers, angle: Numbers) -> Matrix4:
    """The rotation by `angle` about the direction `axis` through the origin.

    !!! Example

        >>> X = rotation([0.0, 0.0, 1.0], jnp.pi / 2)
        >>> [round(v, 12) for v in transform(X, jnp.array([1.0, 0.0, 0.0])).tolist()]
        [0.0, 1.0, 0.0]
    """
    n = unit(as_float(axis, "a rotation axis"), "a rotation axis")
    half = as_float(angle, "a rotation angle")[..., None] / 2
    e = jnp.concatenate([jnp.cos(half) * jnp.ones_like(n[..., :1]), jnp.sin(half) * n], -1)
    return pose(quaternion_matrix(e), jnp.zeros_like(e[..., 1:]))


def from_axis(point: Numbers, axis: Numbers, x: Numbers | None = None, *, what: str = "a frame") -> Matrix4:
    """The frame at `point` with its z axis along `axis`; `x` hints at the x axis.

    Without a hint the x axis is the coordinate axis least aligned with `axis`, made
    perpendicular to it. `what` names the frame in an error.

    !!! Example

        >>> from_axis([0.0, 0.0, 0.0], [0.0, 0.0, 2.0], x=[1.0, 1.0, 5.0])[:3, 2].tolist()
        [0.0, 0.0, 1.0]
    """
    z = as_float(axis, f"the axis of {what}")
    check_length(z, f"the axis of {what}")
    hint = None if x is None else as_float(x, f"the x axis of {what}")
    found, across = _from_axis(as_float(point, f"the origin of {what}"), z, hint)
    check_length(across, f"the part across the axis of the x axis of {what}")
    return found


@once
def _from_axis(point: Vector3, axis: Vector3, hint: Vector3 | None) -> tuple[Matrix4, Vector3]:
    """Such a frame, and the part of the hint across the axis."""
    z = unit(axis)
    if hint is None:
        hint = jnp.eye(3)[jnp.argmin(jnp.abs(z) + 1e-9 * jnp.arange(3.0))]
    across = hint - jnp.sum(hint * z, -1, keepdims=True) * z
    x = unit(across)
    return pose(jnp.stack([x, jnp.cross(z, x), z], -1), point), across


def from_points(p: Numbers, q: Numbers, r: Numbers) -> Matrix4:
    """The frame at `p` with z towards `q` and x towards `r` (Haug 9.4.1).

    Where PR is not perpendicular to PQ, x is its perpendicular part.

    !!! Example

        >>> from_points([0, 0, 0], [0, 0, 1], [1, 0, 0]).tolist()[0]
        [1.0, 0.0, 0.0, 0.0]
    """
    p, q, r = (as_float(v, "a point of a frame") for v in (p, q, r))
    return from_axis(p, q - p, r - p)


def compose(*Xs: Matrix4) -> Matrix4:
    """The product of poses, `X_AB`, `X_BC`, ... to `X_AC` ... (2.2.3-3).

    Broadcast, multiply, sum: several times faster than `@` for matrices this small.

    !!! Example

        >>> X = translation([1.0, 2.0, 3.0])
        >>> compose(X, inverse(X)).tolist() == jnp.eye(4).tolist()
        True
    """
    product = Xs[0]
    for X in Xs[1:]:
        product = jnp.sum(product[..., :, :, None] * X[..., None, :, :], -2)
    return product


def inverse(X: Matrix4) -> Matrix4:
    """The inverse of a pose, without a linear solve (2.2.3-4).

    !!! Example

        >>> inverse(translation([1.0, 2.0, 3.0]))[:3, 3].tolist()
        [-1.0, -2.0, -3.0]
    """
    R_T = jnp.swapaxes(X[..., :3, :3], -1, -2)
    return pose(R_T, -jnp.sum(R_T * X[..., None, :3, 3], -1))


def transform(X: Matrix4, point: Vector3) -> Vector3:
    """A point's coordinates in A from its coordinates in B.

    !!! Example

        >>> transform(translation([1.0, 0.0, 0.0]), jnp.array([0.0, 1.0, 0.0])).tolist()
        [1.0, 1.0, 0.0]
    """
    return jnp.sum(X[..., :3, :3] * point[..., None, :], -1) + X[..., :3, 3]


def hat(twist: Twist) -> Matrix4:
    """The 4x4 matrix of a twist: Xdot = hat(twist) X (2.2.3-13).

    !!! Example

        >>> hat(jnp.array([0.0, 0.0, 0.0, 1.0, 2.0, 3.0]))[:, 3].tolist()
        [1.0, 2.0, 3.0, 0.0]
    """
    o = jnp.zeros_like(twist[..., 0])
    wx, wy, wz, vx, vy, vz = (twist[..., i] for i in range(6))
    rows = ((o, -wz, wy, vx), (wz, o, -wx, vy), (-wy, wx, o, vz), (o, o, o, o))
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


def vee(W: Matrix4) -> Twist:
    """The twist of a 4x4 twist matrix: the inverse of `hat`.

    !!! Example

        >>> vee(hat(jnp.arange(6.0))).tolist()
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    """
    entries = (W[..., 2, 1], W[..., 0, 2], W[..., 1, 0], W[..., 0, 3], W[..., 1, 3], W[..., 2, 3])
    return jnp.stack(entries, -1)


def twist_map(X: Matrix4, twist: Twist) -> Twist:
    """The twist in A of a motion whose twist in B is `twist`: Ad(X_AB) twist.

    !!! Example

        >>> X = translation([1.0, 0.0, 0.0])
        >>> twist_map(X, jnp.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])).tolist()
        [0.0, 0.0, 1.0, 0.0, -1.0, 0.0]
    """
    w = jnp.sum(X[..., :3, :3] * twist[..., None, :3], -1)
    v = jnp.sum(X[..., :3, :3] * twist[..., None, 3:], -1)
    return jnp.concatenate([w, v + jnp.cross(X[..., :3, 3], w)], -1)


def wrench_map(X: Matrix4, wrench: Twist) -> Twist:
    """The wrench in A of a load whose wrench in B is `wrench`.

    Power is the same in both frames: `wrench . twist` does not change.

    !!! Example

        >>> X = translation([1.0, 0.0, 0.0])
        >>> wrench_map(X, jnp.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])).tolist()
        [0.0, 0.0, 1.0, 0.0, 1.0, 0.0]
    """
    m = jnp.sum(X[..., :3, :3] * wrench[..., None, :3], -1)
    f = jnp.sum(X[..., :3, :3] * wrench[..., None, 3:], -1)
    return jnp.concatenate([m + jnp.cross(X[..., :3, 3], f), f], -1)


def adjoint(X: Matrix4) -> Float[Array, "*batch 6 6"]:
    """The 6x6 matrix of `twist_map`.

    !!! Example

        >>> adjoint(jnp.eye(4)).tolist() == jnp.eye(6).tolist()
        True
    """
    return jnp.swapaxes(twist_map(X[..., None, :, :], jnp.eye(6)), -1, -2)


def quaternion_matrix(e: Float[Array, "*batch 4"]) -> Float[Array, "*batch 3 3"]:
    """The rotation matrix of Euler parameters `(e0, e1, e2, e3)`, scalar first (Haug 9.3).

    The parameters need not have unit length.

    !!! Example

        >>> quaternion_matrix(jnp.array([2.0, 0.0, 0.0, 0.0])).tolist() == jnp.eye(3).tolist()
        True
    """
    e = e / jnp.sqrt(jnp.sum(e * e, -1, keepdims=True))
    w, x, y, z = (e[..., i] for i in range(4))
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


def quaternion(R: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 4"]:
    """Euler parameters of a rotation matrix, with e0 >= 0 (Haug 9.3.15).

    Computed from the largest of the four, so that no rotation is a special case.

    !!! Example

        >>> quaternion(rotation([1.0, 0.0, 0.0], jnp.pi)[:3, :3]).round(12).tolist()
        [0.0, 1.0, 0.0, 0.0]
    """
    a, b, c = R[..., 0, 0], R[..., 1, 1], R[..., 2, 2]
    wx, wy, wz = R[..., 2, 1] - R[..., 1, 2], R[..., 0, 2] - R[..., 2, 0], R[..., 1, 0] - R[..., 0, 1]
    xy, yz, zx = R[..., 0, 1] + R[..., 1, 0], R[..., 1, 2] + R[..., 2, 1], R[..., 2, 0] + R[..., 0, 2]
    # four rows, each 4 e_i times the vector (e0, e1, e2, e3)
    rows = (
        (1 + a + b + c, wx, wy, wz),
        (wx, 1 + a - b - c, xy, zx),
        (wy, xy, 1 - a + b - c, yz),
        (wz, zx, yz, 1 - a - b + c),
    )
    table = jnp.stack([jnp.stack(row, -1) for row in rows], -2)
    size = jnp.stack([rows[i][i] for i in range(4)], -1)
    best = jnp.argmax(size, -1)[..., None, None]
    e = jnp.take_along_axis(table, best, -2)[..., 0, :]
    e = e / jnp.sqrt(jnp.sum(e * e, -1, keepdims=True))
    return jnp.where(e[..., :1] < 0, -e, e)


def quaternion_product(e: Float[Array, "*batch 4"], f: Float[Array, "*batch 4"]) -> Float[Array, "*batch 4"]:
    """Euler parameters of the rotation `e` followed, in the turned frame, by `f`.

    !!! Example

        >>> i = jnp.array([0.0, 1.0, 0.0, 0.0])
        >>> quaternion_product(i, i).tolist()
        [-1.0, 0.0, 0.0, 0.0]
    """
    a, u = e[..., :1], e[..., 1:]
    b, v = f[..., :1], f[..., 1:]
    scalar = a * b - jnp.sum(u * v, -1, keepdims=True)
    return jnp.concatenate([scalar, a * v + b * u + jnp.cross(u, v)], -1)


def quaternion_exp(w: Vector3) -> Float[Array, "*batch 4"]:
    """Euler parameters of the rotation by the vector `w` (axis times angle); smooth at zero.

    !!! Example

        >>> quaternion_exp(jnp.zeros(3)).tolist()
        [1.0, 0.0, 0.0, 0.0]
    """
    square = jnp.sum(w * w, -1, keepdims=True)
    small = square < 1e-8
    angle = jnp.sqrt(jnp.where(small, 1.0, square))
    half_sinc = jnp.where(small, 0.5 - square / 48, jnp.sin(angle / 2) / angle)
    cosine = jnp.where(small, 1 - square / 8, jnp.cos(angle / 2))
    return jnp.concatenate([cosine, half_sinc * w], -1)


def unit(v: Float[Array, "*batch n"], what: str = "a direction") -> Float[Array, "*batch n"]:
    """`v` scaled to length one; `what` names it in an error.

    !!! Example

        >>> unit(jnp.array([0.0, 2.0])).tolist()
        [0.0, 1.0]
    """
    check_length(v, what)
    return v / jnp.sqrt(jnp.sum(v * v, -1, keepdims=True))


def check_length(v: Float[Array, "*batch n"], what: str) -> None:
    """Raises where a direction has none, if that is known."""
    if np.any(np.all(value(v) == 0, -1)):
        raise ValueError(f"{what} must not have zero length")
