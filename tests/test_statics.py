"""Equilibrium, reactions, inverse dynamics and small motions against closed forms."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs


G = 9.81
TS = jnp.linspace(0.0, 1.0, 7)


def test_haug_ex_6_6_1_pendulum_that_is_driven():
    """V22: torque m g l cos phi; in the body's frame the reaction is (-m l phi'^2 + m g sin phi, m g cos phi)."""
    m, l, w = 2.0, 0.5, 2 * np.pi  # noqa: E741
    mech = mbs.Mechanism(
        [mbs.Body("bob", mass=m, center=(l, 0.0), inertia=m * l**2 / 3)],
        [mbs.Revolute("O", "ground", "bob")],
        gravity=(0.0, -G),
    )
    efforts = mbs.inverse_dynamics(mech, {"O": mbs.constant_speed(w, 1.5 * np.pi)}, TS)
    phi = 1.5 * np.pi + w * TS
    np.testing.assert_allclose(efforts["O"], m * G * l * jnp.cos(phi), atol=1e-12)
    reaction = efforts.reaction("O")
    expected = jnp.stack([-m * l * w**2 + m * G * jnp.sin(phi), m * G * jnp.cos(phi)], 1)
    np.testing.assert_allclose(reaction.force, expected, atol=1e-12)
    center = jnp.stack([jnp.cos(phi), jnp.sin(phi)], 1)
    np.testing.assert_allclose(reaction.force_ground, -m * l * w**2 * center + jnp.array([0, m * G]), atol=1e-12)
    np.testing.assert_allclose(reaction.torque[:, 0], efforts["O"], atol=1e-12)


@functools.cache
def slider_crank():
    """Haug's compressor (8.2), without gas."""
    return mbs.Mechanism(
        [
            mbs.Body("crank", mass=200.0, inertia=450.0),
            mbs.Body("rod", mass=35.0, center=(1.75, 0.0), inertia=35.0),
            mbs.Body("slider", mass=25.0, inertia=0.02),
        ],
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "crank", "rod", (2.0, 0.0)),
            mbs.Revolute("C", "rod", "slider", (3.5, 0.0)),
            mbs.Prismatic("P", "ground", "slider", start=5.5),
        ],
        gravity=(0.0, -G),
    )


@pytest.mark.long
def test_haug_8_2_slider_crank_hangs_down():
    """Equilibrium at phi1 = 3 pi / 2; small swings at the frequency of the reduced pendulum."""
    mech = slider_crank()
    rest = mbs.equilibrium(mech, {"A": 4.6, "B": -4.0})
    np.testing.assert_allclose(rest["A"], 1.5 * np.pi, atol=1e-9)
    np.testing.assert_allclose(rest["P"], np.sqrt(3.5**2 - 4), atol=1e-9)
    assert bool(rest.stable)
    # there the rod moves without turning, so that all of it goes with the crank's end
    inertia, stiffness = 450 + 4 * (35 + 25), 35 * G * 1.0
    np.testing.assert_allclose(mbs.linearize(rest).frequencies, [np.sqrt(stiffness / inertia)], rtol=1e-9)


@pytest.mark.long
def test_kinetic_energy_is_the_trace_of_the_thesis():
    """(3.3.2-14): Tr(A' J A'^T) / 2 with the 4x4 inertia matrix, for a body that tumbles and flies."""
    body = mbs.Body("b", mass=2.0, center=(0.1, -0.2, 0.3), inertia=(1.0, 1.2, 0.9, 0.05, -0.03, 0.02))
    mech = mbs.Mechanism([body], [mbs.Free("F", "ground", "b")])
    state = mbs.state(mech, {"F": (0.5, 0.5, -0.5, 0.5, 1.0, 2.0, 3.0)}, {"F": (0.3, -0.7, 0.5, 1.0, -2.0, 0.4)})
    sol = mbs.simulate(mech, state, 0.3, ts=[0.0, 0.3])
    w, x = sol.orientation("b").v, sol.point("b")
    spin = lambda w: jnp.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    for i in range(2):
        rate = jnp.zeros((4, 4)).at[:3, :3].set(spin(w[i]) @ sol.pose("b")[i, :3, :3]).at[:3, 3].set(x.v[i])
        energy = jnp.trace(rate @ mbs.inertia_matrix(body) @ rate.T) / 2
        np.testing.assert_allclose(sol.kinetic[i], energy, rtol=1e-12)


def test_standing_on_its_head_is_no_stable_rest():
    bodies = [mbs.Body("bob", mass=1.0, center=(0.0, 1.0))]
    mech = mbs.Mechanism(bodies, [mbs.Revolute("O", "ground", "bob")], gravity=(0.0, -G))
    top, below = mbs.equilibrium(mech), mbs.equilibrium(mech, {"O": 0.1})
    np.testing.assert_allclose([top["O"], below["O"]], [0.0, np.pi], atol=1e-9)
    assert not bool(top.stable) and bool(below.stable)
    np.testing.assert_allclose([top.stiffness[0], below.stiffness[0]], [-G, G], rtol=1e-9)


def test_haug_ex_6_5_2_double_pendulum_pulled_aside():
    """V24: phi1 = atan(-(m1 + 2 m2) g / 2F), phi2 = atan(-m2 g / 2F); and its derivative in F."""
    m1, m2 = 3.0, 2.0

    def rest(F):
        mech = mbs.Mechanism(
            [mbs.Body("a", mass=m1, center=(1.0, 0.0)), mbs.Body("b", mass=m2, center=(1.0, 0.0))],
            [mbs.Revolute("A", "ground", "a", start=-1.0), mbs.Revolute("B", "a", "b", (2.0, 0.0), start=0.1)],
            forces=[mbs.Load("b", force=(F, 0.0), point=(2.0, 0.0))],
            gravity=(0.0, -G),
        )
        found = mbs.equilibrium(mech)
        return jnp.stack([found["A"], found["A"] + found["B"]])

    exact = lambda F: jnp.stack([jnp.arctan(-(m1 + 2 * m2) * G / (2 * F)), jnp.arctan(-m2 * G / (2 * F))])
    angles, slopes = jax.jvp(rest, (7.0,), (1.0,))
    np.testing.assert_allclose(angles, exact(7.0), atol=1e-10)
    np.testing.assert_allclose(slopes, jax.jacfwd(exact)(7.0), atol=1e-9)


@pytest.mark.long
def test_ball_settles_on_a_slope():
    """A ball on a spring rolls down to a wall-less slope's floor: it rests where spring and slope balance."""
    k, m, lean = 50.0, 2.0, 0.4
    d = np.array([np.cos(lean), np.sin(lean)])
    slope = mbs.Profile.chain([mbs.Line(tuple(4 * d), tuple(-4 * d))], closed=False)
    spring = mbs.Spring("place.x", stiffness=k, free_length=0.5)

    def height(radius):
        mech = mbs.Mechanism(
            [mbs.Body("ground", profiles={"slope": slope}),
             mbs.Body("ball", mass=m, inertia=0.1, profiles={"rim": mbs.disc(radius)})],
            [mbs.Planar("place", "ground", "ball", start=(0.0, 0.0, 1.0)),
             mbs.Contact("C", "ground.slope", "ball.rim")],
            forces=[spring, mbs.Spring("place.angle", stiffness=1.0)],
            gravity=(0.0, -G),
        )  # fmt: skip
        rest = mbs.equilibrium(mech)
        return rest["place"][2], rest

    rises, rest = jax.grad(height, has_aux=True)(0.2)
    # along the slope: k (0.5 - x) cos = m g sin
    x = 0.5 - m * G * np.tan(lean) / k
    np.testing.assert_allclose(rest["place"], [0.0, x, x * np.tan(lean) + 0.2 / np.cos(lean)], atol=1e-9)
    np.testing.assert_allclose(rest.press[0], m * G / np.cos(lean), rtol=1e-9)
    assert bool(rest.active[0]) and bool(rest.stable)
    np.testing.assert_allclose(rises, 1 / np.cos(lean), rtol=1e-9)


@pytest.mark.long
def test_haug_8_5_valve_lifter_loses_contact_where_it_should():
    """The signs of the least cam force: 3000 rpm with 10, 25, 40 N/cm; 25 N/cm with 1500, 3000, 4500 rpm. The valve
    train as one mass of 230 g (what the rocker carries reduced to the follower) on an eccentric with a flat face."""
    e, mass, pressed = 0.25, 0.230, 3.0  # cm, kg, cm at full lift: units cm, kg, s; forces in kg cm/s^2

    def least(stiffness, rpm):
        w = rpm * 2 * np.pi / 60
        face = mbs.Profile.chain([mbs.Line((-3.0, 0.0), (3.0, 0.0))], closed=False)
        mech = mbs.Mechanism(
            [mbs.Body("cam", profiles={"rim": mbs.eccentric(1.0, e)}),
             mbs.Body("f", mass=mass, profiles={"face": face})],
            [mbs.Revolute("O", "ground", "cam"), mbs.Prismatic("y", "ground", "f", axis=(0.0, 1.0), start=1.2),
             mbs.Contact("C", "cam.rim", "f.face", active=True)],
            forces=[mbs.Spring("y", stiffness=stiffness * 100, free_length=1.0 + e - pressed)],
        )  # fmt: skip
        ts = jnp.linspace(0.0, 2 * np.pi / w, 9)
        efforts = mbs.inverse_dynamics(mech, {"O": mbs.constant_speed(w)}, ts)
        force = efforts["C"]
        exact = mass * -e * w**2 * jnp.sin(w * ts) + stiffness * 100 * (pressed - e + e * jnp.sin(w * ts))
        np.testing.assert_allclose(force, exact, rtol=1e-9, atol=1e-9 * stiffness * 100)
        return float(jnp.min(force))

    assert [least(k, 3000) > 0 for k in (10, 25, 40)] == [False, True, True]
    assert [least(25, rpm) > 0 for rpm in (1500, 4500)] == [True, False]


def test_a_door_closer_that_is_held_pushes_as_virtual_work_says():
    """Nothing is left free: the loop stays closed, and the effort is the spring's moment times how fast the arm turns
    with the door, from the law of cosines; so is its derivative."""
    arm, forearm, k, relaxed = 0.24, 0.3, 6.0, 3.2
    closer = mbs.Mechanism(
        [mbs.Body("door", mass=30.0), mbs.Body("arm", mass=0.5), mbs.Body("forearm", mass=0.5)],
        [
            mbs.Revolute("H", "ground", "door"),
            mbs.Revolute("E", "door", "arm", (0.2, 0.05), start=-1.2),
            mbs.Revolute("K", "arm", "forearm", (arm, 0.0)),
            mbs.Revolute("G", "ground", "forearm", (0.42, 0.10), (forearm, 0.0)),
        ],
        forces=[mbs.Spring("E", stiffness=k, free_length=relaxed)],
    )

    def turned(H):
        """The angle of the arm on the door."""
        c, s = jnp.cos(H), jnp.sin(H)
        x, y = 0.42 - (0.2 * c - 0.05 * s), 0.10 - (0.2 * s + 0.05 * c)
        far = jnp.hypot(x, y)
        return jnp.arctan2(y, x) + jnp.arccos((far**2 + arm**2 - forearm**2) / (2 * far * arm)) - H

    exact = jax.grad(lambda H: k / 2 * (turned(H) - relaxed) ** 2)
    assert float(exact(1.5708)) == pytest.approx(44.700, abs=1e-3)
    doors = jnp.array([1.1, 1.3, 1.5708, 1.75, 1.9])

    def held(H):
        rest = mbs.equilibrium(closer, fixed={"H": H}, throw=False)
        return rest.effort("H"), rest

    efforts, slopes, rest = jax.jit(jax.vmap(lambda H: jax.jvp(held, (H,), (1.0,), has_aux=True)))(doors)
    assert np.asarray(rest.result == mbs.RESULTS.successful).all() and np.isinf(rest.stiffness).all()
    np.testing.assert_allclose(rest["E"], jax.vmap(turned)(doors), atol=1e-12)
    np.testing.assert_allclose(efforts, jax.vmap(exact)(doors), rtol=1e-10)
    np.testing.assert_allclose(slopes, jax.vmap(jax.grad(exact))(doors), rtol=1e-8)


def test_a_guide_of_the_plane_in_a_mechanism_in_space_carries_what_hangs_on_it():
    """Its frames are given in the plane; the axis of its slide is the third one of its frame k+ in space."""
    mass, ball, angle = 2.0, 1.0, 0.5
    mech = mbs.Mechanism(
        [
            mbs.Body("block", mass=mass, center=(0.3, 0.2, 0.1), inertia=0.1 * np.eye(3)),
            mbs.Body("ball", mass=ball, inertia=np.eye(3)),
        ],
        [
            mbs.Prismatic("A", "ground", "block", mbs.at(0.1, 0.2, angle)),
            mbs.Spherical("S", "block", "ball", np.eye(4), np.eye(4)),
        ],
        gravity=(0.0, -G, 0.0),
    )
    rest = mbs.equilibrium(mech, fixed={"A": 0.4})
    carried, weight = rest.reaction("A"), (mass + ball) * G
    c, s = np.cos(angle), np.sin(angle)
    np.testing.assert_allclose(carried.force_ground, [0.0, weight, 0.0], atol=1e-12)
    np.testing.assert_allclose(carried.force, [c * weight, 0.0, s * weight], atol=1e-12)
    np.testing.assert_allclose(carried.across, c * weight, rtol=1e-12)
    lever = [0.3 * c - 0.2 * s, 0.3 * s + 0.2 * c, 0.1]
    np.testing.assert_allclose(carried.torque_ground, -np.cross(lever, [0.0, -mass * G, 0.0]), atol=1e-12)


@pytest.mark.long
def test_steady_states_of_driven_mechanisms():
    """A bead on a spring along an arm that turns, k (r - l) = m w^2 r; and the ball of a governor, whose arm hangs by
    sin H = g / (w^2 l) below the level."""

    def radius(w, k):
        mech = mbs.Mechanism(
            [mbs.Body("arm", mass=1.0, inertia=0.1), mbs.Body("bead", mass=0.5)],
            [mbs.Revolute("A", "ground", "arm"), mbs.Prismatic("r", "arm", "bead", start=0.4)],
            forces=[mbs.Spring("r", stiffness=k, free_length=0.3)],
        )
        return mbs.equilibrium(mech, drive={"A": mbs.constant_speed(w)}, t=1.5, throw=False)

    exact = lambda w, k: 0.3 * k / (k - 0.5 * w**2)
    rest = radius(3.0, 20.0)
    np.testing.assert_allclose(rest["r"], exact(3.0, 20.0), atol=1e-14)
    np.testing.assert_allclose(rest["A"], 4.5)
    assert bool(rest.stable) and rest.state.v.tolist() == [3.0, 0.0] and float(rest.state.t) == 1.5
    assert not bool(radius(8.0, 20.0).stable)  # it is thrown outwards
    slopes = jax.grad(lambda *x: radius(*x)["r"], (0, 1))(3.0, 20.0)
    np.testing.assert_allclose(slopes, jax.grad(exact, (0, 1))(3.0, 20.0), atol=1e-13)

    governor = mbs.Mechanism(
        [mbs.Body("shaft"), mbs.Body("ball", mass=2.0, center=(0.5, 0.0, 0.0))],
        [
            mbs.Revolute("S", "ground", "shaft", (0, 0, 0), (0, 0, 0), axis=(0, 0, 1)),
            mbs.Revolute("H", "shaft", "ball", (0, 0, 0), (0, 0, 0), axis=(0, 1, 0), start=0.5),
        ],
        gravity=(0.0, 0.0, -G),
    )
    rest = mbs.equilibrium(governor, drive={"S": mbs.constant_speed(8.0)})
    np.testing.assert_allclose(jnp.sin(rest["H"]), G / 64 / 0.5, atol=1e-13)
    assert bool(rest.stable)
    lift = mbs.Mechanism(
        [mbs.Body("pan", mass=1.0)],
        [mbs.Prismatic("y", "ground", "pan", axis=(0.0, 1.0))],
        [mbs.Offset("height", "ground", "pan", axis=(0.0, 1.0))],
    )
    with pytest.raises(ValueError, match="no steady state: a driver moves a loop or a gauge"):
        mbs.equilibrium(lift, drive={"height": mbs.constant_speed(1.0)})


def test_a_force_that_acts_while_something_moves_outwards_does_not_act_at_rest():
    """A weight of 20 on a spring of stiffness 50 rests at -0.4; the gas that pushes it back while it goes up, not."""
    weight = mbs.Mechanism(
        [mbs.Body("piston", mass=2.0)],
        [mbs.Prismatic("y", "ground", "piston", axis=(0.0, 1.0))],
        forces=[
            mbs.Spring("y", stiffness=50.0),
            mbs.Actuator("y", lambda x, v, t, on: jnp.where(on[0], -30.0, 0.0), switches=[lambda x, v, t: v]),
        ],
        gravity=(0.0, -10.0),
    )
    rest = mbs.equilibrium(weight)
    np.testing.assert_allclose(rest["y"], -0.4, rtol=1e-12)
