"""Mechanisms for MuJoCo and URDF: MuJoCo reads them, and finds the same positions, masses and accelerations."""

import re
import warnings

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax._kinematics.track import Configuration


def loaded(text: str):
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def mass_matrix(model, data) -> np.ndarray:
    """Columns of forces that make unit accelerations."""
    columns = np.zeros((model.nv, model.nv))
    for k, row in enumerate(np.eye(model.nv)):
        mujoco.mj_mulM(model, data, columns[k], row)
    return columns


def four_bar() -> mbs.Mechanism:
    bar = lambda name, mass, length: mbs.Body(name, mass=mass, center=(length / 2, 0.0), inertia=mass * length**2 / 12)
    pull = mbs.Distance("pull", "ground", "rod", (0.0, 2.0), (1.5, 0.5))
    return mbs.Mechanism(
        [bar("crank", 1.0, 1.0), bar("rod", 3.0, 3.0), bar("rocker", 2.0, 2.0)],
        [
            mbs.Revolute("O", "ground", "crank", start=1.0),
            mbs.Revolute("A", "crank", "rod", (1.0, 0.0)),
            mbs.Revolute("B", "rod", "rocker", (3.0, 0.0), (2.0, 0.0)),
            mbs.Revolute("C", "ground", "rocker", (3.0, 0.0), start=2.0),
        ],
        gravity=(0.0, -9.81),
        forces=[
            mbs.Spring("O", stiffness=2.0, free_length=0.3, damping=0.1, preload=0.5),
            mbs.Spring(pull, stiffness=5.0, free_length=1.0),
            mbs.Actuator("O", 0.7),
        ],
    )


@pytest.mark.long
def test_a_four_bar_swings_alike():
    """The accelerations differ by the softness of MuJoCo's constraints, 1e-4; a swing of half a second by 1e-6."""
    mech = four_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is left out
        model, data = loaded(mbs.to_mujoco(mech, timestep=2e-4))
    sol = mbs.simulate(mech, mbs.state(mech), 0.5, ts=jnp.linspace(0.0, 0.5, 3), rtol=1e-10, atol=1e-12)
    names = [model.joint(k).name for k in range(model.njnt)]
    assert names == ["O", "A", "B"]  # one closes the loop
    np.testing.assert_allclose(data.qpos, [sol[n].q[0] for n in names], atol=1e-12)
    np.testing.assert_allclose(data.qacc, [sol[n].a[0] for n in names], rtol=1e-4)
    for body in mech.links[1:]:
        pose = np.asarray(sol.pose(body))[0]
        np.testing.assert_allclose(data.body(body).xpos, pose[:3, 3], atol=1e-12)
        np.testing.assert_allclose(data.body(body).xmat.reshape(3, 3), pose[:3, :3], atol=1e-12)
    mujoco.mj_step(model, data, nstep=2500)
    np.testing.assert_allclose(data.qpos, [sol[n].q[-1] for n in names], atol=1e-6)


AXIS, HERE = (1.0, 1.0, 0.0), (0.1, 0.2, 0.3)
SOLID = {"mass": 2.0, "center": (0.1, 0.3, -0.2), "inertia": (0.3, 0.2, 0.25, 0.01, 0.02, 0.03)}


def chain(*joints: mbs.Joint) -> mbs.Mechanism:
    return mbs.Mechanism([mbs.Body(name, **SOLID) for name in "abcd"[: len(joints)]], joints, gravity=(1.0, 2.0, 3.0))


# joints forward and backward: the body that follows is the first of them, or the second
CHAINS = {
    "hinge, cardan, slide": chain(
        mbs.Revolute("O", "ground", "a", HERE, axis=AXIS),
        mbs.Universal("U", "b", "a", (1.0, 0.0, 0.0), HERE),
        mbs.Prismatic("P", "c", "b", (0.0, 1.0, 0.5), (0.3, 0.0, 0.0), axis=(0.0, 0.6, 0.8)),
    ),
    "sleeve, plane, slot, weld": chain(
        mbs.Cylindrical("S", "a", "ground", HERE, (0.0, 1.0, 0.0), axis=AXIS),
        mbs.Planar("Q", "b", "a", mbs.frames.from_axis(HERE, AXIS), HERE),
        mbs.PinSlot("T", "b", "c", HERE, (0.0, 1.0, 1.0)),
        mbs.Fixed("W", "d", "c", HERE, (0.0, 1.0, 1.0)),
    ),
}


def poses(mech, q) -> np.ndarray:
    """Of the bodies of a chain, each from the one before: A_ij = T_ik phi_k T_kj."""
    found = {"ground": np.eye(4)}
    for joint in mech.joints:
        X = np.asarray(joint.interlink(q[list(mech.stored(joint.name))]))
        if joint.body_a in found:
            found[joint.body_b] = found[joint.body_a] @ X
        else:
            found[joint.body_a] = found[joint.body_b] @ np.linalg.inv(X)
    return np.stack([found[b.name] for b in mech.bodies])


@pytest.mark.parametrize("case", CHAINS)
def test_open_chains_have_the_same_poses_and_masses(case):
    """Tr(dA/dq_i J dA/dq_j^T), summed over the bodies, is the mass matrix; MuJoCo's is that of its own recursion."""
    mech = CHAINS[case]
    q = 0.3 * np.arange(1.0, len(mech.coordinates) + 1)
    start = Configuration(mech, mech.start)
    A, J = poses(mech, q), np.stack([mbs.inertia_matrix(b) for b in mech.bodies])
    h = 1e-5 * np.eye(len(q))
    dA = np.stack([(poses(mech, q + d) - poses(mech, q - d)) / 2e-5 for d in h], -1)
    M = np.einsum("bxyi,byz,bxzj->ij", dA, J, dA)
    with pytest.warns(UserWarning, match="gravity"):
        urdf = mbs.to_urdf(mech)
    for text, error in ((mbs.to_mujoco(start), 1e-8), (urdf, 1e-7)):  # URDF: with links of a billionth of the mass
        model, data = loaded(text)
        names = [model.joint(k).name for k in range(model.njnt)]
        order = [mech.coordinates.index(n) for n in names]
        assert sorted(order) == list(range(len(q)))
        data.qpos[:] = q[order]
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(mass_matrix(model, data), M[np.ix_(order, order)], atol=error)
        for k, body in enumerate(mech.bodies):
            if text is not urdf:
                np.testing.assert_allclose(data.body(body.name).xpos, A[k, :3, 3], atol=1e-12)
    assert np.all(np.asarray(loaded(mbs.to_mujoco(start))[0].opt.gravity) == (1.0, 2.0, 3.0))


def test_balls_free_bodies_and_loops_in_space():
    ball = mbs.Spherical("S", "a", "ground", HERE, start=(0.8, 0.0, 0.6, 0.0))
    free = mbs.Free("F", "ground", "b", start=(0.6, 0.8, 0.0, 0.0, 1.0, 2.0, 3.0))
    mech = chain(ball, free)
    model, data = loaded(mbs.to_mujoco(Configuration(mech, mech.start)))
    assert [int(model.joint(n).type[0]) for n in "SF"] == [mujoco.mjtJoint.mjJNT_BALL, mujoco.mjtJoint.mjJNT_FREE]
    for body, X in zip("ab", poses(mech, np.asarray(mech.start))):
        np.testing.assert_allclose(data.body(body).xpos, X[:3, 3], atol=1e-12)
        np.testing.assert_allclose(data.body(body).xmat.reshape(3, 3), X[:3, :3], atol=1e-12)
    with pytest.raises(ValueError, match="joint 'S' has a ball, which URDF does not know"):
        mbs.to_urdf(mech)
    # a hinge that closes a loop in space holds two points, a weld a frame, a rod the length of a tendon
    closed = mbs.Mechanism(
        [mbs.Body("a", **SOLID), mbs.Body("b", **SOLID)],
        [
            mbs.Revolute("O", "ground", "a", HERE),
            mbs.Revolute("P", "a", "b", HERE),
            mbs.Revolute("Q", "ground", "b", (0.2, 0.4, 0.6)),
            mbs.Fixed("W", "ground", "b", (0.2, 0.4, 0.6)),
        ],
        [mbs.Distance("rod", "ground", "a", (1.0, 1.0, 1.0), HERE, value=float(np.linalg.norm([0.8, 0.6, 0.4])))],
    )
    text = mbs.to_mujoco(Configuration(closed, closed.start))
    assert re.findall(r"<(connect|weld|tendon) (?:name|tendon1)=\"([\w.]+)\"", text) == [
        ("connect", "Q"),
        ("connect", "Q.axis"),
        ("weld", "W"),
        ("tendon", "rod"),
    ]
    _, data = loaded(text)
    np.testing.assert_allclose(data.efc_pos, 0.0, atol=1e-12)


def test_springs_and_what_is_left_out():
    """Forces of springs from rest: two on a slide add up, a rope pulls, a buffer pushes."""
    slide = mbs.Prismatic("P", "ground", "a", axis=(1.0, 0.0), start=2.0)
    bodies = [mbs.Body("a", mass=2.0, inertia=1.0, profiles={"rim": mbs.disc(1.0)}),
              mbs.Body("ground", profiles={"wall": mbs.disc(1.0, (9.0, 0.0))})]  # fmt: skip
    line = lambda name: mbs.Distance(name, "ground", "a", (-1.0, 0.0))
    forces = [
        mbs.Spring("P", stiffness=3.0, free_length=1.0, preload=0.6),
        mbs.Spring("P", stiffness=1.0, free_length=-1.0, name="second"),
        mbs.Spring(line("rope"), stiffness=4.0, free_length=2.5, acts="tension"),
        mbs.Spring(line("slack"), stiffness=4.0, free_length=3.5, acts="tension"),
        mbs.Spring(line("buffer"), stiffness=4.0, free_length=3.25, acts="compression"),
    ]
    mech = mbs.Mechanism(bodies, [slide], forces=forces)
    _, data = loaded(mbs.to_mujoco(Configuration(mech, mech.start)))
    assert data.qacc[0] == pytest.approx(-(3.0 + 0.6 + 3.0 + 4 * 0.5 - 4 * 0.25) / 2, rel=1e-12)
    more = [mbs.Load("a", force=(1.0, 0.0)), mbs.Spring("P", stiffness=lambda x: x**3, name="cubic")]
    touching = mbs.Mechanism(bodies, [slide, mbs.Contact("C", "ground.wall", "a.rim")], forces=more)
    with pytest.warns(UserWarning, match="MuJoCo has no .*: contact 'C', force 'load on a', force 'cubic'"):
        assert "<!-- left out: contact 'C' -->" in mbs.to_mujoco(Configuration(touching, touching.start))


def test_what_cannot_be_written():
    mech = four_bar()
    with pytest.raises(ValueError, match="URDF has no loops, and these close some: joint 'C'; cut=True"):
        mbs.to_urdf(mech)
    with pytest.warns(UserWarning, match="URDF has no .*: joint 'C', force 'spring on O', .*, gravity"):
        cut = mbs.to_urdf(mech, cut=True)
    assert loaded(cut)[0].njnt == 3
    screw = mbs.Mechanism([mbs.Body("jaw", mass=1.0)], [mbs.Screw("vice", "ground", "jaw", lead=0.1)])
    with pytest.raises(ValueError, match="joint 'vice' is a screw joint, which cannot be written"):
        mbs.to_mujoco(Configuration(screw, screw.start))
    held = mbs.Mechanism(mech.bodies, mech.joints, [mbs.Angle("tilt", "ground", "rod", value=0.4)])
    with pytest.raises(ValueError, match="gauge 'tilt' is held, and is no distance"):
        mbs.to_mujoco(Configuration(held, held.start))
