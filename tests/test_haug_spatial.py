"""Spatial cases from Haug, Computer Aided Kinematics and Dynamics of Mechanical Systems, volume I (1989)."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy import arccos, pi, sqrt

import mbsjax as mbs
from tests.mechanisms import air_compressor, bodies, rates, run, same_motion, slider_crank, spatial_slider_crank, turn


SECOND = np.linspace(0.0, 1.0, 21)  # one grid for all: another length would have to be compiled
IN_LINE = sqrt(0.1**2 + 0.12**2)  # from the slider's line to the crank's pivot


# -- joints, 9.4 -------------------------------------------------------------------------------------------


def test_distance_is_not_a_body_with_two_balls():
    """Example 9.4.4: five freedoms against six, as the body may spin about the line of its balls."""
    held = mbs.Mechanism(
        bodies("pendulum"),
        [mbs.Free("float", "ground", "pendulum")],
        [mbs.Distance("rod", "ground", "pendulum", (0.0, 0.0, 0.0), (-1.0, 0.0, 0.0), value=2.0)],
    )
    found = mbs.mobility(held, held.estimate({"float": (1.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0)}))
    assert (found.counted, found.freedom, found.redundant, found.isolated) == (5, 5, (), 0)
    linked = mbs.Mechanism(
        bodies("link", "pendulum"),
        [
            mbs.Spherical("A", "ground", "link", (0.0, 0.0, 0.0), (-1.0, 0.0, 0.0)),
            mbs.Spherical("B", "link", "pendulum", (1.0, 0.0, 0.0), (-1.0, 0.0, 0.0)),
        ],
    )
    found = mbs.mobility(linked)
    assert (found.counted, found.freedom, found.redundant, found.isolated) == (6, 6, (), 0)


def cardan(bend):
    axis = mbs.frames.from_axis
    out, up = jnp.stack([jnp.cos(bend), jnp.sin(bend), 0.0 * bend]), (0.0, 0.0, 1.0)
    origin, along = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)
    return mbs.Mechanism(
        bodies("first", "second"),
        [
            mbs.Revolute("in", "ground", "first", axis(origin, along, up), axis(origin, along, up)),
            mbs.Revolute("out", "ground", "second", axis(origin, out, up), axis(origin, along, up)),
            mbs.Universal(
                "cross", "first", "second", axis(origin, (0.0, -1.0, 0.0), along), axis(origin, (0.0, 0.0, -1.0), along)
            ),
        ],
    )


def test_universal_joint_transmits_unevenly():
    """Example 9.4.7: over a whole turn, with the rates of (9.4.21)."""
    for bend in (0.5, 1.2):
        motion = run(cardan(jnp.array(bend)), {"in": turn()}, SECOND, estimate={"cross": (0.0, -bend)})
        first = 2 * pi * SECOND
        second = np.unwrap(np.arctan2(np.sin(first), np.cos(first) * np.cos(bend)))
        squeeze = np.cos(bend) ** 2 * np.cos(first) ** 2 + np.sin(first) ** 2
        speed = 2 * pi * np.cos(bend) / squeeze
        acceleration = -4 * pi**2 * np.cos(bend) * np.sin(bend) ** 2 * np.sin(2 * first) / squeeze**2
        same_motion(motion["out"], (second, speed, acceleration), 1e-10)
        a, b = np.asarray(motion["in"].q), np.asarray(motion["out"].q)
        left = (np.sin(b) * np.cos(bend) * np.sin(a) + np.cos(b) * np.cos(a)) * motion["in"].v
        right = (np.cos(a) * np.cos(b) * np.cos(bend) + np.sin(a) * np.sin(b)) * motion["out"].v
        np.testing.assert_allclose(left, right, atol=1e-10)
    found = mbs.mobility(motion.mech, motion.q[3])
    assert (found.counted, found.freedom, len(found.redundant), found.isolated) == (14 - 16, 1, 3, 0)


def composite(joint, held):
    """A slider-crank, crank 1 and rod 2, whose slider is held against ground in the coordinates `held`."""
    x, y, z, origin = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
    rows = {
        "y": ("ground", origin, origin, y),
        "y_ahead": ("ground", origin, x, y),
        "yaw": ("slider", origin, x, y),
        "pitch": ("slider", origin, x, z),
        "roll": ("slider", origin, y, z),
    }
    gauges = [
        mbs.Offset(name, body, "slider", p, q, axis=axis, axis_body="ground", value=0.0)
        for name, (body, p, q, axis) in rows.items()
        if name in held
    ]
    return mbs.Mechanism(
        bodies("crank", "slider"),
        [mbs.Revolute("O", "ground", "crank", origin, origin), joint("rod", "crank", "slider", x, origin, length=2.0)],
        gauges,
    )


def by_distance():
    origin, x = (0.0, 0.0, 0.0), (1.0, 0.0, 0.0)
    return mbs.Mechanism(
        bodies("crank", "slider"),
        [
            mbs.Revolute("O", "ground", "crank", origin, origin),
            mbs.Prismatic("P", "ground", "slider", axis=x),
        ],
        [mbs.Distance("rod", "crank", "slider", x, origin, value=2.0)],
    )


@pytest.mark.parametrize(
    ("build", "estimate"),
    [
        pytest.param(by_distance, {"P": 2.5}, id="spherical-spherical"),
        pytest.param(
            lambda: composite(mbs.RevoluteSpherical, ("y", "yaw", "pitch", "roll")),
            {"rod": (-1.0, 1.0, 0.0, 0.0, 0.0)},
            id="revolute-spherical",
        ),
        pytest.param(
            lambda: composite(mbs.RevoluteRevolute, ("y", "y_ahead")), {"rod": (-1.0, 0.3)}, id="revolute-revolute"
        ),
    ],
)
def test_composite_joints_give_the_same_slider_crank(build, estimate):
    """Example 9.4.12: three models, 14 - 13 = 1 each."""
    mech = build()
    found = mbs.assemble(mech, {"O": 0.7, **estimate}, fixed={"O": 0.7})
    x = np.cos(0.7) + sqrt(4 - np.sin(0.7) ** 2)
    pose = np.eye(4)
    pose[0, 3] = x
    np.testing.assert_allclose(found.pose("slider"), pose, atol=1e-12)
    mobile = mbs.mobility(mech, found.q)
    assert (mobile.counted, mobile.freedom, mobile.redundant, mobile.isolated) == (1, 1, (), 0)


# -- over-constrained slider-crank, 10.1 -------------------------------------------------------------------

OUTSIDE = {"B": -1.2, "C": 0.4, "P": 5.0}


def test_slider_crank_in_space_counts_less_than_nothing_and_runs():
    """Example 10.1.1: 28 - 30 counted, three equations redundant; with its first axis tilted it does not close."""
    mech = slider_crank(planar=False)
    motion = run(mech, {"A": turn(start=pi / 4)}, SECOND, estimate=OUTSIDE)
    angle = lambda t: pi / 4 + 2 * pi * t
    x = lambda t: 2 * jnp.cos(angle(t)) + jnp.sqrt(3.5**2 - 4 * jnp.sin(angle(t)) ** 2)
    same_motion(motion["P"], rates(x, SECOND))
    found = mbs.mobility(mech, motion.q[0])
    assert (found.counted, found.freedom, len(found.redundant), found.isolated) == (28 - 30, 1, 3, 0)
    tilted = mbs.Revolute("A", "ground", "crank", mbs.frames.rotation((1.0, 0.0, 0.0), 0.01), jnp.eye(4))
    mech = mbs.Mechanism(mech.bodies, [tilted, *mech.joints[1:]])
    found = mbs.assemble(mech, OUTSIDE, fixed={"A": pi / 4}, throw=False)
    assert bool(found.result == mbs.RESULTS.not_assembled)


def test_slider_crank_is_not_mended_by_counting():
    """Example 10.1.1: holding two coordinates of C counts one freedom, but one equation is redundant, and the
    slider turns; with a cylindrical joint at C nothing is redundant, and it turns still."""
    plain = slider_crank(planar=False)
    held = [
        mbs.Offset(name, "ground", "slider", axis=axis, value=0.0)
        for name, axis in (("y", (0.0, 1.0, 0.0)), ("z", (0.0, 0.0, 1.0)))
    ]
    mech = mbs.Mechanism(plain.bodies, plain.joints[:3], held)
    found = mbs.mobility(mech, mbs.assemble(mech, {"A": 0.7, "B": -1.2, "C": 0.9}).q)
    assert (found.counted, found.freedom, found.redundant) == (1, 2, ("z",))
    sleeve = mbs.Cylindrical("C", "rod", "slider", (1.75, 0.0, 0.0), (0.0, 0.0, 0.0))
    mech = mbs.Mechanism(plain.bodies, [*plain.joints[:2], sleeve], held)
    found = mbs.mobility(mech, mbs.assemble(mech, {"A": 0.7, "B": -1.2, "C.angle": 0.9}).q)
    assert (found.counted, found.freedom, found.redundant) == (2, 2, ())


# -- spatial slider-crank, 10.2 ----------------------------------------------------------------------------


def spatial(rod):
    def x(t):
        a = pi / 2 + 2 * pi * t
        return jnp.sqrt(rod**2 - (0.1 + 0.08 * jnp.cos(a)) ** 2 - (0.12 + 0.08 * jnp.sin(a)) ** 2)

    return x


def test_spatial_slider_crank_moves_as_its_closed_form():
    """Section 10.2.4: rods 0.3 and 0.24."""
    numbers = {
        0.3: {0: (0.2, 0.2513274, 1.579137), 5: (0.27422618, 0.2199592, -1.328135), 10: (0.28, -0.1795196, -1.468643)},
        0.24: {
            0: (0.08717798, 0.5765846, 0.533885),
            5: (0.20688161, 0.2915609, -1.937509),
            15: (0.10392305, -0.5804158, -0.202603),
        },
    }
    for rod, rows in numbers.items():
        motion = run(spatial_slider_crank(rod), {"A": turn(start=pi / 2)}, SECOND)
        track = [x[:, 0] for x in motion.point("slider")]
        same_motion(track, rates(spatial(rod), SECOND))
        same_motion([x + 0.2 * (i == 0) for i, x in enumerate(motion["P"])], track, 1e-12)
        for i, row in rows.items():
            np.testing.assert_allclose([x[i] for x in track], row, atol=6e-7)
    found = mbs.mobility(motion.mech, motion.q[3])
    assert (found.counted, found.freedom, found.redundant, found.isolated) == (28 - 27, 1, (), 0)


def test_spatial_slider_crank_locks_if_its_rod_does_not_span_the_crank():
    """Section 10.2.4: the shortest rod that lets the crank turn is 0.236205."""
    shortest = IN_LINE + 0.08
    assert shortest == pytest.approx(0.236205, abs=5e-7)
    longer = run(spatial_slider_crank(shortest + 1e-4), {"A": turn(start=pi / 2)}, SECOND)
    same_motion([x[:, 0] for x in longer.point("slider")], rates(spatial(shortest + 1e-4), SECOND))
    rod = shortest - 1e-4
    shorter = run(spatial_slider_crank(rod), {"A": turn(start=pi / 2)}, SECOND, throw=False)
    assert bool(shorter.result == mbs.RESULTS.locked)
    # rod^2 = IN_LINE^2 + 0.08^2 + 2 IN_LINE 0.08 cos(a - b), where b is the direction of the pivot
    a = np.arctan2(0.12, 0.1) + 2 * pi - arccos((rod**2 - IN_LINE**2 - 0.08**2) / (0.16 * IN_LINE))
    assert float(shorter.stopped_at) == pytest.approx((a - pi / 2) / (2 * pi), abs=1e-9)


@pytest.mark.long
def test_air_compressor_moves_as_its_closed_form():
    """Section 10.4: the normal of the canted disk turns with the rotor, its z axis has no part along x."""
    motion = run(air_compressor(), {"A": turn()}, SECOND)
    a, c = 2 * pi * SECOND, pi / 6
    normal = np.stack([-np.sin(c) * np.sin(a), np.full_like(a, np.cos(c)), -np.sin(c) * np.cos(a)], 1)
    z = np.cross([1.0, 0.0, 0.0], normal)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    x = np.cross(normal, z)
    for i in range(6):
        across, along = 0.2 * np.sin(i * pi / 3), 0.2 * np.cos(i * pi / 3)
        ball = across * x + along * z - (0.0, 0.5, 0.0)
        piston = ball[:, 1] - sqrt(0.5**2 - (ball[:, 0] - across) ** 2 - (ball[:, 2] - along) ** 2)
        np.testing.assert_allclose(motion[f"guide_{i + 1}"].q, piston + 1.0, atol=1e-9)
    found = mbs.mobility(motion.mech, motion.q[3])
    assert (found.counted, found.freedom, found.redundant, found.isolated) == (63 - 62, 1, (), 0)
