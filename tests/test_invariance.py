"""The same mechanism written in another way moves in the same way."""

import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from tests.mechanisms import bodies, four_bar, turn


TS = jnp.linspace(0.0, 1.0, 9)


def random_six_bar(seed: int):
    """A Watt chain: a crank-rocker four-bar whose rocker drives a second dyad. Returns joints as plain data."""
    rng = np.random.default_rng(seed)
    jitter = lambda *size: rng.uniform(-0.15, 0.15, size)
    a, b, c, d = np.array([1.0, 3.0, 2.5, 3.2]) + jitter(4)
    e, f, g = np.array([1.8, 3.0, 2.6]) + jitter(3)
    angles = rng.uniform(-1, 1, (7, 2))
    return [
        ("A", "ground", "crank", (0.0, 0.0, 0.0), (0.0, 0.0, angles[0, 1]), 0.3 + angles[0, 1]),
        ("B", "crank", "coupler", (a, 0, angles[1, 0]), (0, 0, angles[1, 1]), 0.5 - angles[1, 0] + angles[1, 1]),
        ("C", "coupler", "rocker", (b, 0, angles[2, 0]), (c, 0, angles[2, 1]), 1.0 - angles[2, 0] + angles[2, 1]),
        ("D", "ground", "rocker", (d, 0, angles[3, 0]), (0, 0, angles[3, 1]), 1.8 - angles[3, 0] + angles[3, 1]),
        ("E", "rocker", "link", (e, 0.3, angles[4, 0]), (0, 0, angles[4, 1]), -1.5 - angles[4, 0] + angles[4, 1]),
        ("F", "link", "output", (f, 0, angles[5, 0]), (g, 0, angles[5, 1]), 1.0 - angles[5, 0] + angles[5, 1]),
        (
            "G",
            "ground",
            "output",
            (d + 3.0, 0.2, angles[6, 0]),
            (0, 0, angles[6, 1]),
            1.6 - angles[6, 0] + angles[6, 1],
        ),
    ]


LINKS = ["crank", "coupler", "rocker", "link", "output"]


def build(data, order=None, links=LINKS, flipped=(), shift=None):
    joints = []
    for i in range(len(data)) if order is None else order:
        name, a, b, frame_a, frame_b, start = data[i]
        frames = {a: mbs.at(*frame_a), b: mbs.at(*frame_b)}
        if shift is not None:
            x, y, angle = shift
            moved = {
                body: mbs.at(
                    x + np.cos(angle) * f[0] - np.sin(angle) * f[1],
                    y + np.sin(angle) * f[0] + np.cos(angle) * f[1],
                    angle + f[2],
                )
                for body, f in ((a, frame_a), (b, frame_b))
                if body == "ground"
            }
            frames.update(moved)
        if name in flipped:
            joints.append(mbs.Revolute(name, b, a, frames[b], frames[a], start=-start))
        else:
            joints.append(mbs.Revolute(name, a, b, frames[a], frames[b], start=start))
    return mbs.Mechanism(bodies(*links), joints)


def motion_of(mech, sign=1.0):
    motion = mbs.kinematics(mech, {"A": turn(0.5 * sign, 0.3 * sign)}, TS)
    assert float(motion.residual.max()) <= 1e-11
    return motion


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_order_direction_and_base_do_not_matter(seed):
    data = random_six_bar(seed)
    rng = np.random.default_rng(100 + seed)
    first = motion_of(build(data))
    flipped = [row[0] for row in data if row[0] != "A" and rng.random() < 0.5]
    shift = (*rng.uniform(-3, 3, 2), rng.uniform(-np.pi, np.pi))
    other = motion_of(build(data, rng.permutation(7), [str(x) for x in rng.permutation(LINKS)], flipped, shift))
    for name, *_ in data:
        sign = -1 if name in flipped else 1
        for mine, theirs in zip(first[name], other[name], strict=True):
            turns = np.round((mine[0] - sign * theirs[0]) / (2 * np.pi)) * 2 * np.pi if mine is first[name].q else 0
            np.testing.assert_allclose(mine, sign * theirs + turns, atol=1e-10)
    x, y, angle = shift
    R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    here, there = first.point("link", (0.4, 0.5)), other.point("link", (0.4, 0.5))
    np.testing.assert_allclose(np.array(here.q) @ R.T + [x, y], there.q, atol=1e-10)
    np.testing.assert_allclose(np.array(here.a) @ R.T, there.a, atol=1e-10)


def test_planar_and_spatial_treatment_agree_and_count_differently():
    flat, deep = four_bar(), four_bar(planar=False)
    drive = {"A": turn(2.0, np.pi / 2)}
    options = {"estimate": {"D": 1.5, "B": -1.5, "C": 1.5}}
    one, two = (mbs.kinematics(mech, drive, TS, **options) for mech in (flat, deep))
    for name in "ABCD":
        for a, b in zip(one[name], two[name], strict=True):
            np.testing.assert_allclose(a, b, atol=1e-10)
    np.testing.assert_allclose(two.pose("coupler"), one.pose("coupler"), atol=1e-11)
    for a, b in zip(two.orientation("coupler")[1:], one.orientation("coupler")[1:], strict=True):
        np.testing.assert_allclose(a[:, 2], b, atol=1e-10)
    plane, space = mbs.mobility(flat, one.q[0]), mbs.mobility(deep, two.q[0])
    assert (plane.counted, plane.freedom, plane.redundant) == (1, 1, ())
    assert (space.counted, space.freedom, len(space.redundant)) == (-2, 1, 3)


def test_units_do_not_matter():
    """In meters and in millimeters: the same angles, to rounding."""
    drive = {"A": turn(2.0, np.pi / 2)}
    options = {"estimate": {"D": 1.5, "B": -1.5, "C": 1.5}}
    meters = mbs.kinematics(four_bar(), drive, TS, **options)
    milli = mbs.kinematics(four_bar(2e3, 4e3, 3e3, (4e3, -1e3)), drive, TS, **options)
    np.testing.assert_allclose(meters.q, milli.q, atol=1e-12)
    np.testing.assert_allclose(meters.a, milli.a, atol=1e-9)


def test_angles_are_continuous_over_many_turns():
    ts = jnp.linspace(0.0, 1.0, 200)
    motion = mbs.kinematics(four_bar(1.0, 3.0, 3.0, (3.5, 0.0)), {"A": turn(10 * np.pi)}, ts, estimate={"D": 2.0})
    assert motion["A"].q[-1] == pytest.approx(10 * np.pi)
    assert np.abs(np.diff(motion["B"].q)).max() < 0.5 and motion["B"].q[-1] < -9.9 * np.pi + motion["B"].q[0]
    np.testing.assert_allclose(motion.orientation("coupler").q[0], motion.orientation("coupler").q[-1], atol=1e-10)
