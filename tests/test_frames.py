"""Poses, twists and wrenches obey the laws of rigid motion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mbsjax import frames


def some_pose(seed: int) -> jax.Array:
    rng = np.random.default_rng(seed)
    return frames.pose(jnp.asarray(Rotation.random(random_state=seed).as_matrix()), jnp.asarray(rng.normal(size=3)))


def test_inverse_and_composition_are_those_of_matrices():
    X, Y = some_pose(0), some_pose(1)
    np.testing.assert_allclose(frames.inverse(X), np.linalg.inv(X), atol=1e-14)
    np.testing.assert_allclose(frames.compose(X, Y, X), np.array(X) @ np.array(Y) @ np.array(X), atol=1e-14)
    p = jnp.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(frames.transform(X, p), (np.array(X) @ [*p, 1.0])[:3], atol=1e-14)


def test_twist_map_is_conjugation_and_wrench_map_keeps_power():
    X, twist, wrench = some_pose(2), jnp.arange(1.0, 7.0), jnp.array([0.3, -1.0, 2.0, 0.5, 0.7, -0.2])
    conjugate = np.array(X) @ np.array(frames.hat(twist)) @ np.linalg.inv(X)
    np.testing.assert_allclose(frames.hat(frames.twist_map(X, twist)), conjugate, atol=1e-13)
    np.testing.assert_allclose(frames.adjoint(X) @ twist, frames.twist_map(X, twist), atol=1e-14)
    power = jnp.dot(frames.wrench_map(X, wrench), frames.twist_map(X, twist))
    np.testing.assert_allclose(power, jnp.dot(wrench, twist), atol=1e-13)
    np.testing.assert_allclose(frames.wrench_map(X, wrench), np.linalg.inv(frames.adjoint(X)).T @ wrench, atol=1e-13)


def test_rotation_agrees_with_scipy():
    axis, angle = np.array([1.0, -2.0, 0.5]), 2.1
    expected = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
    np.testing.assert_allclose(frames.rotation(axis, angle)[:3, :3], expected, atol=1e-15)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-5, 1.0, 3.0, np.pi - 1e-9, np.pi])
@pytest.mark.parametrize("axis", [(1.0, 0, 0), (0, 1.0, 0), (0, 0, 1.0), (0.6, 0, -0.8), (-0.48, 0.6, 0.64)])
def test_quaternions_agree_with_scipy_also_at_half_a_turn(axis, angle):
    rotation = Rotation.from_rotvec(angle * np.array(axis))
    e = np.array(frames.quaternion(jnp.asarray(rotation.as_matrix())))
    x, y, z, w = rotation.as_quat()
    expected = np.array([w, x, y, z])
    assert e[0] >= 0
    np.testing.assert_allclose(e * np.sign(e @ expected), expected, atol=1e-15)
    np.testing.assert_allclose(frames.quaternion_matrix(jnp.asarray(expected)), rotation.as_matrix(), atol=1e-15)
    half = np.array(frames.quaternion_exp(jnp.asarray(rotation.as_rotvec())))
    np.testing.assert_allclose(half, expected * np.sign(half @ expected), atol=1e-15)


def test_quaternion_product_is_composition():
    a, b = Rotation.random(random_state=3), Rotation.random(random_state=4)
    e, f = (frames.quaternion(jnp.asarray(r.as_matrix())) for r in (a, b))
    product = frames.quaternion_matrix(frames.quaternion_product(e, f))
    np.testing.assert_allclose(product, (a * b).as_matrix(), atol=1e-15)


def test_exponential_is_smooth_at_zero():
    J = jax.jacfwd(frames.quaternion_exp)(jnp.zeros(3))
    H = jax.hessian(frames.quaternion_exp)(jnp.zeros(3))
    np.testing.assert_allclose(J, np.vstack([np.zeros(3), np.eye(3) / 2]), atol=1e-15)
    np.testing.assert_allclose(H[0], -np.eye(3) / 4, atol=1e-15)
    np.testing.assert_allclose(H[1:], 0, atol=1e-15)


def test_triads_of_haug_9_4_1():
    X = frames.from_points((1, 1, 1), (2, 1, 0), (2, 2, 1))
    R = np.array(X[:3, :3])
    np.testing.assert_allclose(R.T @ R, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(R[:, 2], np.array([1, 0, -1]) / np.sqrt(2), atol=1e-15)
    assert R[:, 0] @ [1, 1, 0] > 0 and np.linalg.det(R) > 0
    np.testing.assert_allclose(X[:3, 3], [1, 1, 1])


def test_planar_frame_is_embedded():
    X = frames.embed(frames.at(2.0, 3.0, 0.4))
    np.testing.assert_allclose(X[:3, :3], Rotation.from_euler("z", 0.4).as_matrix(), atol=1e-15)
    np.testing.assert_allclose(X[:, 3], [2, 3, 0, 1])


def test_functions_broadcast():
    Xs = jnp.stack([some_pose(i) for i in range(5)])
    for f in (
        frames.inverse,
        frames.adjoint,
        lambda X: frames.compose(X, X),
        lambda X: frames.quaternion(X[..., :3, :3]),
    ):
        np.testing.assert_allclose(f(Xs), jnp.stack([f(X) for X in Xs]), atol=1e-15)
