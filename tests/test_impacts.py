"""Impacts of balls and blocks, one or several at once, rigid and compliant.

The truth is a closed form, SciPy, or an invariant: no penetration, no pull, momentum and energy accounted for.
"""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from numpy import pi
from scipy.special import gamma

import mbsjax as mbs
from tests.impacts import rebound
from tests.simulated import check_contacts, event_times, go, story


# -- one ball, two walls -------------------------------------------------------------------------------------


WALL = ((1.0, 0.0), (1.1, 0.0), (1.1, 1.0), (1.0, 1.0))
BALL = 2.0  # its mass


def ball_and_walls(restitution=(0.0, 0.0), wall=WALL, radius=0.1, gravity=0.0, active=False):
    floor = mbs.Profile.chain([mbs.Line((3.0, 0.0), (-3.0, 0.0))], closed=False)
    return mbs.Mechanism(
        [
            mbs.Body("ground", profiles={"floor": floor, "wall": mbs.polygon(wall)}),
            mbs.Body("ball", mass=BALL, inertia=1.0, profiles={"rim": mbs.disc(radius)}),
        ],
        [
            mbs.Planar("at", "ground", "ball"),
            mbs.Contact("floor", "ground.floor", "ball.rim", restitution=restitution[0], active=active),
            mbs.Contact("wall", "ground.wall", "ball.rim", restitution=restitution[1]),
        ],
        gravity=(0.0, -gravity),
    )


def thrown(mech, place, velocity, t1, **options):
    return go(mech, t1, positions={"at": (0.0, *place)}, velocities={"at": (0.0, *velocity)}, **options)


@pytest.mark.parametrize("restitution", [(0.5, 0.5), (1.0, 0.0), (0.0, 0.0), (1.0, 1.0)])
def test_ball_hits_floor_and_wall_at_once(restitution):
    """In a square corner both impulses are independent."""
    sol = thrown(ball_and_walls(restitution), (0.4, 0.6), (1.0, -1.0), 1.0)
    check_contacts(sol)
    np.testing.assert_allclose(event_times(sol), 0.5, rtol=0, atol=1e-12)
    np.testing.assert_allclose(sol.events.impulse[0], BALL * (1 + np.array(restitution)), rtol=1e-12)
    np.testing.assert_allclose(sol.v[-1], [0.0, -restitution[1], restitution[0]], rtol=0, atol=1e-12)
    np.testing.assert_allclose(sol.q[-1], [0.0, 0.9 - restitution[1] / 2, 0.1 + restitution[0] / 2], atol=1e-12)
    assert sol.events.active[0].tolist() == [e == 0 for e in restitution]


@pytest.mark.parametrize("ahead", [1e-4, 1e-6, 1e-7, -1e-6])
def test_two_impacts_in_one_step(ahead):
    """The floor a moment after the wall, or before it: far less than a step apart."""
    sol = thrown(ball_and_walls((0.5, 0.25)), (0.4, 0.6 + ahead), (1.0, -1.0), 1.0)
    check_contacts(sol)
    order = ["wall", "floor"] if ahead > 0 else ["floor", "wall"]
    assert story(sol) == [("impact", name) for name in order]
    np.testing.assert_allclose(event_times(sol), sorted([0.5, 0.5 + ahead]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(sol.v[-1], [0.0, -0.25, 0.5], rtol=0, atol=1e-12)


@pytest.mark.parametrize("lean", [-0.5, 0.4])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_ball_runs_into_a_wedge(lean, restitution):
    """A ball that slides along the floor into a leaning wall: the impulses account for the momentum, along the
    normals; the ball does not enter the walls afterwards and has no more energy than before."""
    wall = ((1.0, 0.0), (1.2, 0.0), (1.2 + lean, 1.0), (1.0 + lean, 1.0))
    mech = ball_and_walls((restitution, restitution), wall, gravity=1.0, active=True)
    sol = thrown(mech, (0.0, 0.1), (1.0, 0.0), 1.5)
    check_contacts(sol)
    first = sol.events
    assert story(sol)[0][1] == "wall"
    n = np.array([[0.0, 1.0], np.array([-1.0, lean]) / np.hypot(1.0, lean)])  # out of the floor, out of the wall
    jump = BALL * np.asarray(first.v_after[0] - first.v_before[0])
    np.testing.assert_allclose(jump[1:], np.asarray(first.impulse[0]) @ n, rtol=0, atol=1e-12)
    after = n @ np.asarray(first.v_after[0, 1:])
    assert after.min() >= -1e-12
    assert after[1] >= restitution * -(n[1] @ np.asarray(first.v_before[0, 1:])) - 1e-12
    # the wall, leaning over, presses the ball on the floor; leaning back, it throws it up
    assert (float(first.impulse[0, 0]) > 1e-3) == (lean < 0)


def test_resting_on_a_contact_from_the_start():
    """Gap and speed are zero, gravity holds: closed at once, whatever the restitution."""
    for restitution in (0.0, 0.5, 1.0):
        sol = thrown(ball_and_walls((restitution, 0.0), gravity=9.81), (0.0, 0.1), (0.5, 0.0), 1.5)
        check_contacts(sol)
        assert story(sol) == [("closed", "floor")] and event_times(sol)[0] == 0.0
        np.testing.assert_allclose(sol["floor"].force, BALL * 9.81, rtol=1e-12)
        np.testing.assert_allclose(sol.q[-1], [0.0, 0.75, 0.1], rtol=0, atol=1e-12)


def test_approaching_at_gap_zero_from_the_start():
    """An impact at t = 0, then bounces of e times the length before, until the ball rests."""
    g, e, v = 9.81, 0.5, 1.0
    sol = thrown(ball_and_walls((e, 0.0), gravity=g), (0.0, 0.1), (0.5, -v), 1.5)
    check_contacts(sol)
    t, speeds = 0.0, []
    while v * e >= 1e-4:
        speeds.append((t, "impact"))
        v *= e
        t += 2 * v / g
    speeds.append((t + 2 * v * e / g / (1 - e), "closed"))  # where infinitely many more would end
    assert [k for k, _ in story(sol)] == [k for _, k in speeds]
    np.testing.assert_allclose(event_times(sol), [t for t, _ in speeds], rtol=0, atol=1e-9)
    assert np.all(sol["floor"].active[np.asarray(sol.ts) > t])
    np.testing.assert_allclose(sol.q[-1], [0.0, 0.75, 0.1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("clearance", [1e-9, -1e-9, -1e-5, -1e-3])
def test_grazing_the_top_of_a_wall(clearance):
    """A ball that flies over the wall, and one that is a little too low: it meets the corner between flank and top."""
    sol = thrown(ball_and_walls((1.0, 1.0)), (-0.5, 1.1 + clearance), (3.0, 0.0), 0.8)
    check_contacts(sol)
    if clearance > 0:
        assert story(sol) == [] and float(jnp.min(sol["wall"].gap)) == pytest.approx(clearance, rel=1e-6)
    else:
        assert story(sol) == [("impact", "wall")]
        c = (0.1 + clearance) / 0.1  # height of the center over the corner, in radii: the sine of the normal
        n = np.array([-np.sqrt(1 - c * c), c])
        v = np.array([3.0, 0.0])
        np.testing.assert_allclose(sol.v[-1, 1:], v - 2 * (v @ n) * n, rtol=0, atol=1e-7)


@pytest.mark.parametrize("start", [0.0, 0.03, 0.07])
def test_thin_walls_stop_fast_balls(start):
    """The gap is positive on both sides of the wall, far apart compared with its thickness."""
    thin = ((1.0, 0.0), (1.002, 0.0), (1.002, 1.0), (1.0, 1.0))
    sol = thrown(ball_and_walls((1.0, 1.0), thin, radius=0.005), (start, 0.5), (10.0, 0.0), 0.2)
    check_contacts(sol)
    assert story(sol) == [("impact", "wall")]
    assert abs(event_times(sol)[0] - (0.995 - start) / 10) <= 1e-12
    np.testing.assert_allclose(sol.q[-1], [0.0, 2 * 0.995 - start - 2.0, 0.5], rtol=0, atol=1e-10)


# -- a block on two corners ----------------------------------------------------------------------------------


HALF = (0.5, 0.2)


def block(inertia=0.2, restitution=0.0, gravity=9.81):
    floor = mbs.Profile.chain([mbs.Line((3.0, 0.0), (-3.0, 0.0))], closed=False)
    a, b = HALF
    rim = mbs.polygon([(-a, -b), (a, -b), (a, b), (-a, b)])
    sides = ("ground.floor", "block.rim")
    return mbs.Mechanism(
        [
            mbs.Body("ground", profiles={"floor": floor}),
            mbs.Body("block", mass=BALL, inertia=inertia, profiles={"rim": rim}),
        ],
        [
            mbs.Planar("at", "ground", "block"),
            mbs.Contact("left", *sides, restitution=restitution, elements_b=[7]),
            mbs.Contact("right", *sides, restitution=restitution, elements_b=[1]),
        ],
        gravity=(0.0, -gravity),
    )


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_block_falls_flat(restitution):
    """Both corners hit at once; each takes half of the momentum, and half of the weight afterwards."""
    sol = go(block(restitution=restitution), 2.0, positions={"at": (0.0, 0.0, 0.7)}, velocities={"at": (0.0, 0.3, 0.0)})
    check_contacts(sol)
    v = np.sqrt(2 * 9.81 * 0.5)
    assert abs(event_times(sol)[0] - v / 9.81) <= 1e-12
    np.testing.assert_allclose(sol.events.impulse[0], [BALL * v * (1 + restitution) / 2] * 2, rtol=1e-9)
    np.testing.assert_allclose(sol.events.v_after[0], [0.0, 0.3, restitution * v], rtol=0, atol=1e-9)
    np.testing.assert_allclose(sol.q[-1], [0.0, 0.6, 0.2], rtol=0, atol=1e-9)
    for name in ("left", "right"):
        assert float(sol[name].force[-1]) == pytest.approx(BALL * 9.81 / 2, rel=1e-9)


@pytest.mark.parametrize("inertia", [0.2, 0.8])
def test_block_falls_on_one_corner(inertia):
    """Plastic: the left corner stays, then the right one hits. Its impulse drives the left one into the floor where
    inertia < m a^2, and lifts it where it is more."""
    (a, b), tilt = HALF, 0.1
    sol = go(block(inertia), 0.42, positions={"at": (tilt, 0.0, 0.7)})
    check_contacts(sol)
    assert [name for _, name in story(sol)][:2] == ["left", "right"]
    events, m = sol.events, BALL
    # the left corner, seen from the center of mass
    x, y = -a * np.cos(tilt) + b * np.sin(tilt), -a * np.sin(tilt) - b * np.cos(tilt)
    fall = np.sqrt(2 * 9.81 * (0.7 + y))
    assert abs(event_times(sol)[0] - fall / 9.81) <= 1e-12
    impulse = fall / (1 / m + x * x / inertia)
    assert float(events.impulse[0, 0]) == pytest.approx(impulse, rel=1e-9)
    np.testing.assert_allclose(events.v_after[0], [x * impulse / inertia, 0.0, impulse / m - fall], rtol=0, atol=1e-9)
    # the right corner hits where the block lies flat; energy since the first impact
    kinetic = (m * (impulse / m - fall) ** 2 + inertia * (x * impulse / inertia) ** 2) / 2 + m * 9.81 * (-y - b)
    turns = -np.sqrt(2 * kinetic / (inertia + m * a * a))
    assert abs(float(events.q[1, 0])) <= 1e-9
    np.testing.assert_allclose(events.v_before[1], [turns, 0.0, a * turns], rtol=0, atol=1e-7)
    if inertia < m * a * a:
        assert story(sol) == [("closed", "left"), ("closed", "right")]
        both = np.linalg.solve([[1.0, 1.0], [-a, a]], [-m * a * turns, -inertia * turns])
        np.testing.assert_allclose(events.impulse[1], both, rtol=0, atol=1e-7)
        np.testing.assert_allclose(events.v_after[1], 0.0, rtol=0, atol=1e-12)
        np.testing.assert_allclose(sol["right"].force[-1], m * 9.81 / 2, rtol=1e-9)
    else:
        one = -2 * a * turns / (1 / m + a * a / inertia)
        np.testing.assert_allclose(events.impulse[1], [0.0, one], rtol=0, atol=1e-7)
        assert events.active[1].tolist() == [False, True]
    assert np.ptp(sol["at"].q[:, 1]) <= 1e-12  # no friction


# -- a row of balls ------------------------------------------------------------------------------------------


def cradle(restitution):
    balls = range(4)
    return mbs.Mechanism(
        [mbs.Body(f"b{i}", mass=1.0, profiles={"rim": mbs.disc(0.1)}) for i in balls],
        [
            *(mbs.Prismatic(f"x{i}", "ground", f"b{i}") for i in balls),
            *(mbs.Contact(f"c{i}", f"b{i}.rim", f"b{i + 1}.rim", restitution=restitution) for i in balls[:3]),
        ],
    )


def struck(restitution, gap, **options):
    """The first ball hits the others, which stand in a row."""
    places = [-0.5, 0.0, 0.2 + gap, 0.4 + 2 * gap]
    sol = go(
        cradle(restitution),
        1.0,
        positions={f"x{i}": x for i, x in enumerate(places)},
        velocities={"x0": 1.0, "x1": 0.0, "x2": 0.0, "x3": 0.0},
        **options,
    )
    check_contacts(sol)
    events, n = sol.events, int(sol.events.count)
    pushes = np.pad(np.asarray(events.impulse[:n]), ((0, 0), (1, 1)))
    np.testing.assert_allclose(np.asarray(events.v_after - events.v_before)[:n], -np.diff(pushes), rtol=0, atol=1e-12)
    np.testing.assert_allclose(sol.momentum()[:, 1], 1.0, rtol=0, atol=1e-12)
    return sol


@pytest.mark.parametrize("gap", [1e-3, 1e-6])
def test_cradle_with_gaps_hands_the_speed_on(gap):
    sol = struck(1.0, gap)
    assert story(sol) == [("impact", f"c{i}") for i in range(3)]
    np.testing.assert_allclose(event_times(sol), [0.3, 0.3 + gap, 0.3 + 2 * gap], rtol=0, atol=1e-12)
    np.testing.assert_allclose(sol.v[-1], [0.0, 0.0, 0.0, 1.0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(sol.kinetic, 0.5, rtol=1e-12)


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_balls_that_touch_are_struck_together(restitution):
    """Newton's law at the contact that hits, none at those that only touch: three balls as one."""
    sol = struck(restitution, 0.0)
    assert int(sol.events.count) == 1
    others = (1 + restitution) / 4
    np.testing.assert_allclose(sol.v[-1], [others - restitution] + [others] * 3, rtol=0, atol=1e-12)
    np.testing.assert_allclose(sol.events.impulse[0], [3 * others, 2 * others, others], rtol=0, atol=1e-12)


def test_balls_that_touch_hand_the_speed_on_in_turn():
    sol = struck(1.0, 0.0, impacts="in turn")
    np.testing.assert_allclose(event_times(sol), 0.3, rtol=0, atol=1e-12)
    assert story(sol) == [("impact", "c0"), ("impact", "c1"), ("impact", "c2")]
    np.testing.assert_allclose(sol.v[-1], [0.0, 0.0, 0.0, 1.0], rtol=0, atol=1e-12)


def test_balls_that_strike_from_both_ends():
    """Two impacts in different places at the same time are one event."""
    both = go(
        cradle(1.0),
        1.0,
        positions={"x0": -0.5, "x1": 0.0, "x2": 0.3, "x3": 0.8},
        velocities={"x0": 1.0, "x1": 0.0, "x2": 0.0, "x3": -1.0},
    )
    check_contacts(both)
    # they pass their speeds on, the two in the middle meet at t = 0.35, and all go back as they came
    np.testing.assert_allclose(event_times(both), [0.3, 0.35, 0.4], rtol=0, atol=1e-12)
    np.testing.assert_allclose(both.events.impulse[:3], [[1, 0, 1], [0, 2, 0], [1, 0, 1]], rtol=0, atol=1e-12)
    np.testing.assert_allclose(both.v[-1], [-1.0, 0.0, 0.0, 1.0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(both.kinetic, 1.0, rtol=1e-12)


# -- compliant contacts --------------------------------------------------------------------------------------


@functools.cache
def three_laws():
    """Three balls, without gravity, that fall on floors of three kinds."""
    floor = mbs.Profile.chain([mbs.Line((3.0, 0.0), (-3.0, 0.0))], closed=False)
    laws = {"hertz": mbs.Hertz(1e6), "voigt": mbs.KelvinVoigt(1e5, 60.0), "ln": mbs.LankaraniNikravesh(1e6, 0.9)}
    m, v, height = 2.0, 1.0, 0.05
    mech = mbs.Mechanism(
        [
            mbs.Body("ground", profiles={"floor": floor}),
            *(mbs.Body(f"ball {name}", mass=m, profiles={"rim": mbs.disc(0.1)}) for name in laws),
        ],
        [
            *(
                mbs.Prismatic(f"y {n}", "ground", f"ball {n}", (i - 1.0, 0.1), axis=(0.0, 1.0))
                for i, n in enumerate(laws)
            ),
            *(mbs.Contact(name, "ground.floor", f"ball {name}.rim", law=law) for name, law in laws.items()),
        ],
    )
    begin = {"positions": {f"y {n}": height for n in laws}, "velocities": {f"y {n}": -v for n in laws}}
    begin |= {"rtol": 1e-12, "atol": 1e-12}
    first = go(mech, 0.1, **begin)
    at = {name: [float(t) for t, (_, who) in zip(event_times(first), story(first)) if who == name] for name in laws}
    inside = np.linspace(at["hertz"][0], at["hertz"][1], 101)
    return first, go(mech, 0.1, **begin, ts=inside), at, m, v


def test_compliant_contacts_close_and_are_released():
    sol, _, at, _, v = three_laws()
    assert sorted(story(sol)) == sorted([(k, name) for name in at for k in ("closed", "released")])
    check_contacts(sol, forces=1e4)
    for closes, opens in at.values():
        assert abs(closes - 0.05 / v) <= 1e-12 and 0.001 < opens - closes < 0.05


def test_hertz_contact():
    """The energy is stored at the greatest depth, (5 m v^2 / (4 k))^(2/5); the duration is 2 depth / v times an
    integral of (1 - x^(5/2))^(-1/2)."""
    sol, fine, at, m, v = three_laws()
    depth = (5 * m * v**2 / (4 * 1e6)) ** 0.4
    duration = 2 * depth / v * np.sqrt(pi) * gamma(1.4) / gamma(0.9)
    closes, opens = at["hertz"]
    assert opens - closes == pytest.approx(duration, rel=1e-8)
    assert float(fine["hertz"].gap[50]) == pytest.approx(-depth, rel=1e-8)
    assert float(fine["hertz"].force[50]) == pytest.approx(1e6 * depth**1.5, rel=1e-8)
    assert float(sol["y hertz"].v[-1]) == pytest.approx(v, rel=1e-8)


def test_spring_and_damper_contact():
    """m x'' + c x' + k x = 0 until the force is zero: then the speed does not change any more."""
    sol, _, at, m, v = three_laws()
    k, c = 1e5, 60.0
    w = np.sqrt(k / m)
    z = c / (2 * m * w)
    wd = w * np.sqrt(1 - z * z)
    # x = v / wd exp(-z w t) sin(wd t); the force is zero where x'' is: at wd t = pi - atan2(2 z wd / w, 1 - 2 z^2)
    end = (pi - np.arctan2(2 * z * wd / w, 1 - 2 * z * z)) / wd
    x = v / wd * np.exp(-z * w * end) * np.sin(wd * end)
    speed = -v * np.exp(-z * w * end) * (np.cos(wd * end) - z * w / wd * np.sin(wd * end))
    assert float(sol["y voigt"].v[-1]) == pytest.approx(speed, rel=1e-7)
    closes, opens = at["voigt"]
    assert opens - closes == pytest.approx(end + x / speed, rel=1e-7)


def test_lankarani_nikravesh_contact():
    sol, _, _, _, v = three_laws()
    after = float(sol["y ln"].v[-1])
    assert after == pytest.approx(rebound(3 * (1 - 0.9**2) / (4 * v), v), rel=1e-8)
    assert abs(after - 0.9 * v) <= 1.5 * (1 - 0.9) ** 2
