"""Every joint: its matrix is a pose, its twist is the derivative, and the thesis' matrices hold once put right."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from scipy.spatial.transform import Rotation

import mbsjax as mbs
from mbsjax import frames
from mbsjax._kinematics.system import system
from mbsjax._numerics.groups import SE2, SE3


JOINTS = {
    "fixed": mbs.Fixed("J", "ground", "b"),
    "revolute": mbs.Revolute("J", "ground", "b"),
    "prismatic": mbs.Prismatic("J", "ground", "b"),
    "screw": mbs.Screw("J", "ground", "b", lead=0.7),
    "cylindrical": mbs.Cylindrical("J", "ground", "b"),
    "universal": mbs.Universal("J", "ground", "b"),
    "spherical": mbs.Spherical("J", "ground", "b"),
    "planar": mbs.Planar("J", "ground", "b"),
    "pin in slot": mbs.PinSlot("J", "ground", "b"),
    "free": mbs.Free("J", "ground", "b"),
    "gear": mbs.Gear("J", "ground", "b", radii=(0.2, 0.3)),
    "gear by ratio": mbs.Gear("J", "ground", "b", ratio=2.0),
    "internal gear": mbs.Gear("J", "ground", "b", radii=(0.5, 0.2), internal=True),
    "rolling": mbs.Rolling("J", "ground", "b", radii=(0.2, 0.3)),
    "internal rolling": mbs.Rolling("J", "ground", "b", radii=(0.5, 0.2), internal=True),
    "rack and pinion": mbs.RackPinion("J", "ground", "b", radius=-0.2),
    "revolute-spherical": mbs.RevoluteSpherical("J", "ground", "b", length=0.4),
    "revolute-revolute": mbs.RevoluteRevolute("J", "ground", "b", length=0.4),
    "crossed revolutes": mbs.RevoluteRevolute("J", "ground", "b", length=0.4, crossed=True),
    "revolute-cylindrical": mbs.RevoluteCylindrical("J", "ground", "b"),
    "revolute-translational": mbs.RevoluteTranslational("J", "ground", "b"),
    "strut": mbs.Strut("J", "ground", "b"),
}
every_joint = pytest.mark.parametrize("joint", JOINTS.values(), ids=JOINTS)


def somewhere(joint: mbs.Joint, seed: int) -> jax.Array:
    """Random coordinates, reached by a random move from rest."""
    d = jnp.asarray(np.random.default_rng(seed).uniform(-2, 2, len(joint.pair.coordinates)))
    return joint.pair.retract(jnp.asarray(joint.pair.rest), d)


@every_joint
def test_matrix_is_a_pose(joint):
    X = np.array(joint.phi(somewhere(joint, 0)))
    np.testing.assert_allclose(X[:3, :3] @ X[:3, :3].T, np.eye(3), atol=1e-15)
    assert np.linalg.det(X[:3, :3]) == pytest.approx(1)
    np.testing.assert_array_equal(X[3], [0, 0, 0, 1])


@every_joint
def test_twist_is_the_derivative_of_the_matrix(joint):
    """B = vee(dphi/dq phi^-1) of the mechanism with this one joint, against derivatives of phi, both ways."""
    q = somewhere(joint, 1)
    laid_out = system(mbs.Mechanism([mbs.Body("b")], [joint], planar=False))
    twists = np.array(laid_out.twists(q, laid_out.poses(q)))
    # the joint's spatial frames may be turned against the body's: bring the derivative to ground
    X_A = joint.placed(joint.frame_a, SE3).matrix()

    def moved(d):
        return joint.pair.phi(joint.pair.retract(q, d))

    zero = jnp.zeros(len(joint.pair.coordinates))
    for derivative in (jax.jacfwd, jax.jacrev):
        slopes = derivative(moved)(zero)
        for i in range(len(zero)):
            W = slopes[..., i] @ np.linalg.inv(joint.phi(q))
            np.testing.assert_allclose(W[:3, :3], -W[:3, :3].T, atol=1e-12)
            np.testing.assert_allclose(frames.twist_map(X_A, frames.vee(W)), twists[:, i], atol=1e-12)


@every_joint
def test_derivatives_agree_with_differences(joint):
    q = somewhere(joint, 2)
    n = len(joint.pair.coordinates)
    if n:
        check_grads(
            lambda d: joint.pair.phi(joint.pair.retract(q, jnp.asarray(d))), (jnp.full(n, 0.1),), order=2, eps=1e-4
        )


@every_joint
def test_rest_is_the_identity_or_nearest(joint):
    X = np.array(joint.phi(joint.pair.rest))
    if "universal" in str(joint.pair).lower():  # its axes are perpendicular always
        np.testing.assert_allclose(X[:3, 2], [0, -1, 0])
    elif joint.name and not hasattr(joint.pair, "links") and not hasattr(joint.pair, "radius"):
        np.testing.assert_allclose(X[:3, :3], np.eye(3), atol=1e-15)


def test_quaternion_joints_turn_about_the_axes_of_frame_k_plus():
    q = somewhere(JOINTS["spherical"], 3)
    d = jnp.array([0.2, -0.4, 0.9])
    R = Rotation.from_matrix(np.array(JOINTS["spherical"].phi(q)[:3, :3])) * Rotation.from_rotvec(np.array(d))
    moved = JOINTS["spherical"].phi(JOINTS["spherical"].pair.retract(q, d))[:3, :3]
    np.testing.assert_allclose(moved, R.as_matrix(), atol=1e-14)


def c(x):
    return np.cos(x)


def s(x):
    return np.sin(x)


def test_thesis_revolute_2_3_3_1():
    q = 0.8
    expected = [[c(q), -s(q), 0, 0], [s(q), c(q), 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    np.testing.assert_allclose(JOINTS["revolute"].phi(q), expected, atol=1e-16)


def test_thesis_prismatic_2_3_3_3_with_its_twist_put_right():
    np.testing.assert_allclose(JOINTS["prismatic"].phi(0.8), [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0.8], [0, 0, 0, 1]])
    slope = jax.jacfwd(lambda q: JOINTS["prismatic"].phi(q))(0.8)
    expected = np.zeros((4, 4))
    expected[2, 3] = 1  # printed at (2,4)
    np.testing.assert_allclose(slope, expected)


def test_thesis_screw_a_1_2_with_its_twist_put_right():
    q, lead = 0.3, 0.7
    X = np.array(JOINTS["screw"].phi(q))
    np.testing.assert_allclose(X[:3, :3], Rotation.from_euler("z", 2 * np.pi * q / lead).as_matrix(), atol=1e-15)
    np.testing.assert_allclose(X[:, 3], [0, 0, q, 1])
    Q = np.array(jax.jacfwd(lambda q: JOINTS["screw"].phi(q))(q)) @ np.linalg.inv(X)
    np.testing.assert_allclose(frames.vee(jnp.asarray(Q)), [0, 0, 2 * np.pi / lead, 0, 0, 1], atol=1e-14)


def test_thesis_cylindrical_a_1_7():
    q1, q2 = 0.4, -0.6
    expected = [[c(q1), -s(q1), 0, 0], [s(q1), c(q1), 0, 0], [0, 0, 1, q2], [0, 0, 0, 1]]
    np.testing.assert_allclose(JOINTS["cylindrical"].phi((q1, q2)), expected, atol=1e-16)


def test_thesis_spherical_a_1_11_from_its_euler_angles():
    a, b, g = 0.4, 1.1, -0.7
    expected = [
        [c(a) * c(g) - s(a) * c(b) * s(g), -c(a) * s(g) - s(a) * c(b) * c(g), s(a) * s(b)],
        [s(a) * c(g) + c(a) * c(b) * s(g), -s(a) * s(g) + c(a) * c(b) * c(g), -c(a) * s(b)],
        [s(b) * s(g), s(b) * c(g), c(b)],
    ]
    x, y, z, w = Rotation.from_euler("ZXZ", [a, b, g]).as_quat()
    np.testing.assert_allclose(JOINTS["spherical"].phi((w, x, y, z))[:3, :3], expected, atol=1e-15)


def test_thesis_universal_a_1_17_with_its_twists_put_right():
    q1, q2 = 0.4, -0.6
    expected = [
        [c(q1) * c(q2), -c(q1) * s(q2), s(q1), 0],
        [s(q1) * c(q2), -s(q1) * s(q2), -c(q1), 0],
        [s(q2), c(q2), 0, 0],
        [0, 0, 0, 1],
    ]
    X = np.array(JOINTS["universal"].phi((q1, q2)))
    np.testing.assert_allclose(X, expected, atol=1e-16)
    slopes = np.array(jax.jacfwd(JOINTS["universal"].pair.phi)(jnp.array([q1, q2])))
    twists = [np.array(frames.vee(jnp.asarray(slopes[..., i] @ np.linalg.inv(X)))) for i in range(2)]
    np.testing.assert_allclose(twists[0], [0, 0, 1, 0, 0, 0], atol=1e-15)
    np.testing.assert_allclose(twists[1], [s(q1), -c(q1), 0, 0, 0, 0], atol=1e-15)


def test_thesis_planar_a_1_21_with_its_twist_put_right():
    q1, q2, q3 = 0.4, -0.6, 0.9
    expected = [[c(q1), -s(q1), 0, q2], [s(q1), c(q1), 0, q3], [0, 0, 1, 0], [0, 0, 0, 1]]
    X = np.array(JOINTS["planar"].phi((q1, q2, q3)))
    np.testing.assert_allclose(X, expected, atol=1e-16)
    slope = np.array(jax.jacfwd(JOINTS["planar"].pair.phi)(jnp.array([q1, q2, q3])))[..., 0]
    np.testing.assert_allclose((slope @ np.linalg.inv(X))[:2, 3], [q3, -q2], atol=1e-15)


@pytest.mark.parametrize("name, radii, internal", [("rolling", (0.2, 0.3), 1), ("internal rolling", (0.5, 0.2), -1)])
def test_rolling_has_no_slip_at_the_point_of_contact(name, radii, internal):
    """The rule (A.1-26) is meant to state: the material points that touch have one velocity."""
    R_a, _ = radii
    q = jnp.array([0.7])
    pair = JOINTS[name].pair
    X, slope = jax.jvp(lambda q: pair.phi(q), (q,), (jnp.ones(1),))
    distance = abs(R_a + internal * radii[1])
    np.testing.assert_allclose(X[:2, 3], distance * np.array([c(0.7), s(0.7)]), atol=1e-15)
    contact = R_a * np.array([c(0.7), s(0.7), 0, 0]) + np.array([0, 0, 0, 1.0])  # in frame k-, at rest there
    velocity = np.array(slope) @ np.linalg.inv(X) @ contact
    np.testing.assert_allclose(velocity, 0, atol=1e-15)


def test_pinion_does_not_slip_on_its_rack():
    X, slope = jax.jvp(JOINTS["rack and pinion"].pair.phi, (jnp.array([0.4]),), (jnp.ones(1),))
    np.testing.assert_allclose(np.array(slope) @ np.linalg.inv(X) @ [0.4, 0, 0, 1], 0, atol=1e-15)


def test_gear_is_rolling_at_its_own_distance():
    for gear, rolling, distance in (("gear", "rolling", 0.5), ("internal gear", "internal rolling", 0.3)):
        np.testing.assert_allclose(JOINTS[gear].phi((0.6, distance)), JOINTS[rolling].phi(0.6), atol=1e-15)


def test_composites_obey_the_conditions_of_haug_9_4():
    """Axes h and points P of the two frames, at random coordinates."""

    def geometry(name):
        X = np.array(JOINTS[name].phi(somewhere(JOINTS[name], 5)))
        return np.array([0, 0, 1.0]), X[:3, 2], X[:3, 0], X[:3, 3]  # h_i, h_j, f_j, d_ij

    h_i, _, _, d = geometry("revolute-spherical")
    assert abs(h_i @ d) < 1e-15 and np.linalg.norm(d) == pytest.approx(0.4)
    h_i, h_j, _, d = geometry("revolute-revolute")
    assert abs(h_i @ d) < 1e-15 and np.linalg.norm(d) == pytest.approx(0.4) and abs(h_i @ h_j) == pytest.approx(1)
    h_i, h_j, _, d = geometry("crossed revolutes")
    assert abs(h_i @ d) < 1e-15 and np.linalg.norm(d) == pytest.approx(0.4)
    np.testing.assert_allclose(np.cross(h_j, d), 0, atol=1e-15)
    h_i, h_j, _, d = geometry("revolute-cylindrical")
    np.testing.assert_allclose([h_i @ h_j, *np.cross(h_j, d)], 0, atol=1e-15)
    h_i, h_j, f_j, d = geometry("revolute-translational")
    np.testing.assert_allclose([*np.cross(h_i, f_j), *np.cross(h_j, d)], 0, atol=1e-15)
    h_i, _, _, d = geometry("strut")
    np.testing.assert_allclose(np.cross(h_i, d), 0, atol=1e-15)


@pytest.mark.parametrize("name", [name for name, joint in JOINTS.items() if joint.planar])
def test_planar_and_spatial_algebra_agree(name):
    """A joint between frames of the plane, followed in SE2 and in SE3."""
    kind = JOINTS[name]
    joint = mbs.Joint("J", "ground", "b", kind.pair, mbs.at(0.3, -0.4, 0.7), mbs.at(-0.2, 0.5, -1.1))
    q = somewhere(joint, 6)
    laid_out = [system(mbs.Mechanism([mbs.Body("b")], [joint], planar=planar)) for planar in (True, False)]
    poses = [x.poses(q).matrix()[1] for x in laid_out]
    np.testing.assert_allclose(poses[0], poses[1], atol=1e-15)
    np.testing.assert_allclose(poses[1], joint.interlink(q), atol=1e-15)
    flat, deep = (np.array(x.twists(q, x.poses(q))) for x in laid_out)
    np.testing.assert_allclose(deep[[2, 3, 4]], flat, atol=1e-14)
    np.testing.assert_allclose(deep[[0, 1, 5]], 0, atol=1e-14)
    assert laid_out[0].layout.group is SE2 and laid_out[1].layout.group is SE3
