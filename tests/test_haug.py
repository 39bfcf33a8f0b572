"""Planar cases from Haug, Computer Aided Kinematics and Dynamics of Mechanical Systems, volume I (1989).

Each is checked against a closed form written here and, where the book prints numbers, against those,
recomputed where the print errs.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from numpy import arccos, arcsin, pi, sqrt

import mbsjax as mbs
from mbsjax._kinematics.drive import problem
from tests.mechanisms import (
    bodies,
    four_bar,
    gear_slider,
    rates,
    run,
    same_motion,
    slider_crank,
    turn,
    two_body_four_bar,
    two_body_slider_crank,
)


SECOND = np.linspace(0.0, 1.0, 21)  # one grid for all: another length would have to be compiled


def close(actual, expected, tol=1e-8):
    np.testing.assert_allclose(actual, expected, rtol=tol, atol=tol)


def table(text):
    """The rows of a table by their first number, the rest in threes."""
    rows = [np.array(row.split(), float) for row in text.strip().splitlines()]
    return {row[0]: row[1:].reshape(-1, 3) for row in rows}


def printed(track, places, numbers):
    """Agreement with all printed digits: eight, seven and six decimals."""
    error = np.abs(np.stack(track, 1)[np.array(places)] - numbers)
    assert np.all(error < np.array([6e-9, 6e-8, 6e-7]))


def circles(crank, coupler, follower, pivot, angle, speed, side):
    """Coupler and follower of a four-bar, each as angle, rate and second rate, by intersecting two circles.

    The loop is a exp(i angle) + b exp(i x) = d + c exp(i y); `side` tells on which side of BD the point C lies.
    """
    B, D = crank * np.exp(1j * angle), complex(*pivot)
    BD = D - B
    corner = arccos((coupler**2 + abs(BD) ** 2 - follower**2) / (2 * coupler * abs(BD)))
    x = np.unwrap(np.angle(BD) + side * corner)
    y = np.unwrap(np.angle(B + coupler * np.exp(1j * x) - D))
    bx, cy = coupler * np.exp(1j * x), follower * np.exp(1j * y)

    def solve(rest):
        """The real u, v with bx u - cy v = rest."""
        return [np.imag(rest * np.conj(z)) / np.imag(bx * np.conj(cy)) for z in (cy, bx)]

    xv, yv = solve(-B * speed)
    xa, ya = solve(-1j * (B * speed**2 + bx * xv**2 - cy * yv**2))
    return (x, xv, xa), (y, yv, ya)


@eqx.filter_jit
def newton(mech, angle, q):
    """q after one Newton step of the only unknown; the residual and its slope, in the mechanism's units."""
    equations = problem(mech, {"A": angle})
    r, J, _ = equations.linearize(q, jnp.zeros(()))
    row, column = equations.system.row_sizes(equations.gauges)[0], equations.system.column_sizes()[-1]
    return equations.move(q, -r / J[:, 0]), r[0] * row, J[0, 0] * row / column


# -- drivers, 3.5 ------------------------------------------------------------------------------------------


def test_four_bar_velocities_are_those_of_the_velocity_equation():
    """Example 3.5.2 (the last velocity lacks a factor 1/3 in print) and Problem 4.5.3."""
    ts = np.linspace(1 / 6, 11 / 6, 21)
    motion = run(four_bar(4.0, 6.0, 6.0, (4.0, 0.0)), {"A": turn(pi)}, ts, estimate={"B": -0.3, "D": 0.7})
    (x, xv, xa), (y, yv, ya) = circles(4.0, 6.0, 6.0, (4.0, 0.0), pi * ts, pi, 1)
    same_motion([p + q for p, q in zip(motion["A"], motion["B"], strict=True)], (x, xv, xa))
    same_motion(motion["D"], (y, yv, ya))
    p, w = pi * ts, pi
    close(motion["A"].v + motion["B"].v, 2 * w / 3 * np.sin(y - p) / np.sin(x - y))
    close(motion["D"].v, -2 * w / 3 * np.sin(p - x) / np.sin(x - y))
    middle = motion.point("coupler", (3.0, 0.0))
    close(middle.v[:, 0], -4 * w * np.sin(p) - 2 * w * np.sin(x) * np.sin(y - p) / np.sin(x - y))
    close(middle.v[:, 1], 4 * w * np.cos(p) + 2 * w * np.cos(x) * np.sin(y - p) / np.sin(x - y))
    third = 2
    assert ts[third] == pytest.approx(1 / 3)
    found = [*middle.q[third], (motion["A"].q + motion["B"].q)[third], motion["D"].q[third]]
    error = np.abs(np.array(found) - [4.949490, 4.01229, 0.183762, 0.863436])
    assert np.all(error < [6e-7, 6e-6, 6e-7, 6e-7])


def excavator():
    return mbs.Mechanism(
        bodies("boom", "arm"),
        [mbs.Revolute("O", "ground", "boom"), mbs.Revolute("E", "boom", "arm", (2 * sqrt(3), 0.0))],
        [
            mbs.Distance("lift", "ground", "boom", (0.5, -0.5), (sqrt(3), 0.0)),
            mbs.Distance("crowd", "boom", "arm", (sqrt(3), 1.0), (0.0, 0.5)),
        ],
    )


def boom_angle(t):
    """Law of cosines in the triangle of pivot, foot and head of the cylinder."""
    return jnp.arccos((3.5 - (1.8 + t / 5) ** 2) / sqrt(6)) - pi / 4


def test_excavator_boom_follows_its_two_cylinders():
    """Example 3.5.3."""
    ts = 2 * SECOND
    drive = {"lift": mbs.constant_speed(0.2, 1.8), "crowd": mbs.constant_speed(0.1, 1.9)}
    motion = run(excavator(), drive, ts, estimate={"O": 0.7, "E": -0.2})
    assert float(motion["O"].q[0]) == pytest.approx(0.6790533, abs=5e-8)
    same_motion(motion["O"], rates(boom_angle, ts), 1e-10)
    same_motion(motion["E"], rates(lambda t: pi / 3 - jnp.arccos((4.25 - (1.9 + t / 10) ** 2) / 2), ts), 1e-10)
    phi = np.asarray(boom_angle(ts))
    lever = (sqrt(3) * np.cos(phi) - 0.5) * np.sin(phi) - (sqrt(3) * np.sin(phi) + 0.5) * np.cos(phi)
    close(motion["O"].v, (ts + 9) / (-25 * sqrt(3) * lever), 1e-10)


def test_excavator_boom_with_a_cylinder_and_a_rotary_actuator():
    """Example 3.5.4."""
    ts = 2 * SECOND
    drive = {"lift": mbs.constant_speed(0.2, 1.8), "E": mbs.constant_speed(0.1)}
    motion = run(excavator(), drive, ts, estimate={"O": 0.7})
    same_motion(motion.orientation("arm"), rates(lambda t: boom_angle(t) + t / 10, ts), 1e-10)
    same_motion(motion["crowd"], rates(lambda t: jnp.sqrt(4.25 - 2 * jnp.cos(t / 10 - pi / 3)), ts), 1e-10)


def test_wrecker_boom_swings_and_extends():
    """Example 3.5.5: a translational distance driver, also where the distance is zero."""
    mech = mbs.Mechanism(
        bodies("boom", "jib"),
        [mbs.Revolute("O", "ground", "boom"), mbs.Prismatic("P", "boom", "jib")],
        [mbs.Offset("reach", "boom", "jib", axis=(1.0, 0.0))],
    )
    ts = 40 * SECOND
    motion = run(mech, {"O": turn(0.025), "reach": turn(0.1)}, ts)
    tip = motion.point("jib")
    for i, f in enumerate((jnp.cos, jnp.sin)):
        same_motion([x[:, i] for x in tip], rates(lambda t, f=f: 0.1 * t * f(0.025 * t), ts), 1e-12)
    close(motion.orientation("jib").q, 0.025 * ts, 1e-12)


# -- position, velocity, acceleration, 3.6 -----------------------------------------------------------------


def double_pendulum():
    return mbs.Mechanism(
        bodies("first", "second"),
        [mbs.Revolute("A", "ground", "first"), mbs.Revolute("B", "first", "second", (1.0, 0.0))],
        [mbs.Offset("height", "ground", "second", (0.0, 0.0), (1.0, 0.0), axis=(0.0, 1.0), value=-1.0)],
    )


def test_double_pendulum_with_its_tip_on_a_line():
    """Example 3.6.2, with its first Newton step."""
    mech, ts = double_pendulum(), 1.5 * SECOND

    def angles(t):
        first = 5 * pi / 3 + pi / 6 * t
        return first, 2 * pi - jnp.arcsin(1 + jnp.sin(first))

    q, _, _ = newton(mech, jnp.array(5 * pi / 3), mech.estimate({"A": 5 * pi / 3, "B": 6.14 - 5 * pi / 3}))
    assert float(q[1]) + 5 * pi / 3 - 6.14 == pytest.approx(0.0088, abs=5e-5)

    motion = run(mech, {"A": turn(pi / 6, 5 * pi / 3)}, ts, estimate={"B": 0.9})
    first, second = motion.point("first", (1.0, 0.0)), motion.point("second", (1.0, 0.0))
    tilt = motion.orientation("second")
    same_motion([x[:, 0] for x in first], rates(lambda t: jnp.cos(angles(t)[0]), ts), 1e-10)
    same_motion([x[:, 1] for x in first], rates(lambda t: jnp.sin(angles(t)[0]), ts), 1e-10)
    same_motion([x[:, 0] for x in second], rates(lambda t: sum(map(jnp.cos, angles(t))), ts), 1e-10)
    close([x[:, 1] for x in second], [0 * ts - 1, 0 * ts, 0 * ts], 1e-10)
    same_motion(tilt, rates(lambda t: angles(t)[1], ts), 1e-10)
    at_start = [(float(second[i][0, 0]), float(tilt[i][0])) for i in range(3)]
    printed = [(1.490985, 6.148807), (0.418056, -0.264181), (-0.239603, -0.249021)]
    np.testing.assert_allclose(at_start, printed, atol=1e-6)


# -- singular positions, 3.7 -------------------------------------------------------------------------------


def test_slider_crank_with_a_short_rod_rushes_into_its_lock_up():
    """Problem 3.7.3."""
    table = np.array(
        [  # t, q, velocity, acceleration
            (0.4, 1.234674, -1.533113, -7.313469),
            (0.45, 1.147034, -2.023305, -13.652287),
            (0.5, 1.019537, -3.443296, -66.566327),
            (0.52, 0.923588, -8.228878, -1081.943636),
            (0.523, 0.889092, -19.504912, -15887.62),
            (0.5235, 0.875323, -47.313653, -237011.6),
        ]
    )
    ts = np.concatenate([np.linspace(0.0, 0.35, 13), table[:, 0], [0.53, 0.6]])
    motion = run(two_body_slider_crank(1.0, 0.5), {"A": turn(1.0)}, ts, estimate={"P": 1.5}, throw=False)
    assert bool(motion.result == mbs.RESULTS.locked)
    assert float(motion.stopped_at) == pytest.approx(pi / 6, abs=1e-9)
    before = ts < pi / 6
    exact = rates(lambda t: jnp.cos(t) + jnp.sqrt(jnp.cos(t) ** 2 - 0.75), ts[before])
    for actual, wanted, column in zip(motion["P"], exact, table[:, 1:].T, strict=True):
        np.testing.assert_allclose(actual[before], wanted, rtol=1e-9)
        np.testing.assert_allclose(actual[before][13:], column, rtol=1e-6)


def test_slider_crank_with_equal_bars_passes_a_bifurcation():
    """Example 3.7.3 and Problem 3.7.4: with crank and rod equal, the determinant changes its sign at pi/2."""
    ts = 3 * SECOND
    mech = two_body_slider_crank(1.0, 1.0)
    motion = run(mech, {"A": turn(1.0)}, ts, estimate={"P": 2.0})
    close(motion["P"].q, 2 * np.cos(ts), 1e-10)
    assert len(motion.bifurcations()) == 1
    close(motion.bifurcations(), [pi / 2], 1e-6)
    for angle, slope in ((1.4835, 0.08719), (1.6581, -0.08719)):
        _, _, found = newton(mech, jnp.array(angle), mech.estimate({"A": angle, "P": 2 * np.cos(angle)}))
        assert float(found) == pytest.approx(slope, abs=2e-5)


def test_slider_crank_with_a_longer_rod_stays_on_its_side():
    """Example 3.7.3: however little longer than the crank, it turns without a singular position."""
    for rod in (1.1, 1.001):
        motion = run(two_body_slider_crank(1.0, rod), {"A": turn(start=0.37)}, SECOND, estimate={"P": 2.0})
        x = lambda t, rod=rod: jnp.cos(0.37 + 2 * pi * t) + jnp.sqrt(rod**2 - jnp.sin(0.37 + 2 * pi * t) ** 2)
        same_motion(motion["P"], rates(x, SECOND))
        assert not motion.bifurcations()


def test_parallelogram_can_become_an_antiparallelogram_where_it_is_flat():
    """Example 3.7.2."""
    mech = four_bar(1.0, 2.0, 1.0, (2.0, 0.0))
    motion = run(mech, {"A": turn(start=-1.0)}, SECOND, estimate={"A": -1.0, "B": 1.0, "D": -1.0})
    close(motion["D"].q, motion["A"].q, 1e-10)
    close(motion.bifurcations(), [1 / (2 * pi), (1 + pi) / (2 * pi)], 1e-6)
    for guess, side in (({"B": -0.3, "C": 0.3, "D": 0.3}, 1), ({"B": -1.2, "C": 0.5, "D": -0.6}, -1)):
        (x, *_), (y, *_) = circles(1.0, 2.0, 1.0, (2.0, 0.0), np.array([0.3]), 0.0, side)
        other = mbs.assemble(mech, {"A": 0.3, **guess}, fixed={"A": 0.3})
        close([other["A"] + other["B"], other["D"]], [x[0], y[0]], 1e-12)


def test_bar_on_three_parallel_rods_has_one_redundant_rod():
    """Example 3.7.7."""
    rods = [mbs.Distance(f"rod_{i}", "ground", "bar", (float(i), 0.0), (float(i), 0.0), value=1.0) for i in range(3)]
    mech = mbs.Mechanism(bodies("bar"), [mbs.Planar("float", "ground", "bar")], rods)
    found = mbs.mobility(mech, mech.estimate({"float": (0.0, np.cos(pi / 3), np.sin(pi / 3))}))
    assert (found.counted, found.freedom, found.rank, found.equations) == (0, 1, 2, 3)
    assert len(found.redundant) == 1 and found.isolated == 0


# -- Newton's method, 4.3, and redundancy, 4.6 -------------------------------------------------------------


def iterates(angle, start, n):
    mech = two_body_slider_crank(1.0, sqrt(0.5))
    q, history = mech.estimate({"A": angle, "P": start}), []
    for _ in range(n):
        moved, residual, slope = newton(mech, jnp.array(angle), q)
        history.append((float(q[1]), 2 * float(residual), 2 * float(slope)))  # of the square of the distance
        q = moved
    return np.array(history)


def test_newton_is_quadratic_at_a_regular_position():
    """Example 4.3.1, Table 4.3.1 (whose 1.416607 is 1.416667)."""
    table = [(2.0, 0.5, 2.0), (1.75, 0.0625, 1.5), (1.708333, 0.001736, 1.416667), (1.707108, 0.0, 1.414216)]
    np.testing.assert_allclose(iterates(0.0, 2.0, 4), table, atol=2e-6)
    assert iterates(0.0, 2.0, 7)[-1, 0] == pytest.approx(1 + sqrt(0.5), abs=1e-15)


def test_newton_is_linear_at_a_singular_position():
    """Example 4.3.1, Table 4.3.2: the error is halved by each step."""
    found = iterates(pi / 4, 1.0, 21)
    np.testing.assert_allclose(found[:6, 0], [1.0, 0.853553, 0.780330, 0.743718, 0.725413, 0.716260], atol=1e-6)
    error = (1 - sqrt(0.5)) / 2.0 ** np.arange(21)
    np.testing.assert_allclose(found, np.stack([sqrt(0.5) + error, error**2, 2 * error], 1), atol=1e-9)


def test_newton_wanders_where_there_is_no_position():
    """Example 4.3.1, Table 4.3.3 (its last rows, chaotic, recomputed); assembly says that there is none."""
    table = [1.0, 0.404979, -7.535093, -3.553878, -1.540691, -0.487094, 0.151038, 1.029996, 0.433246]
    table += [-3.088173, -1.301813, -0.354622, 0.253792, 1.689749, 0.900969, 0.300747]
    np.testing.assert_allclose(iterates(3 * pi / 8, 1.0, 16)[:, 0], table, atol=3e-6)
    mech = two_body_slider_crank(1.0, sqrt(0.5))
    with pytest.raises(ValueError, match="cannot be assembled with these dimensions"):
        mbs.assemble(mech, {"P": 1.0}, fixed={"A": 3 * pi / 8})


def test_redundant_rod_of_a_parallelogram_is_told_from_its_flat_position():
    """Example 4.6.1: one of the equations is redundant at 60 degrees; where it is flat, one more seems to be."""
    plain = four_bar(1.0, 1.0, 1.0, (1.0, 0.0))
    rod = mbs.Distance("rod", "ground", "coupler", (2.0, 0.0), (2.0, 0.0), value=1.0)
    mech = mbs.Mechanism(plain.bodies, plain.joints, [rod])
    found = {}
    for angle in (pi / 3, 0.0):
        q = mech.estimate({"A": angle, "B": -angle, "C": angle, "D": angle})
        found[angle] = mbs.mobility(mech, q)
        assert (found[angle].counted, found[angle].freedom, len(found[angle].redundant)) == (0, 1, 1)
    assert (found[pi / 3].equations - found[pi / 3].rank, found[pi / 3].isolated) == (1, 0)
    assert (found[0.0].equations - found[0.0].rank, found[0.0].isolated) == (2, 1)


def test_repeated_equation_is_found():
    """Problem 4.6.1: the second body is held twice in x, and not at all in y, to the first: rank 4 of 5."""
    options = {"axis": (1.0, 0.0), "axis_body": "ground", "value": 0.0}
    mech = mbs.Mechanism(
        bodies("first", "second"),
        [mbs.Revolute("A", "ground", "first"), mbs.Planar("float", "ground", "second")],
        [
            mbs.Offset("x", "first", "second", (1.0, 0.0), (-1.0, 0.0), **options),
            mbs.Offset("x_again", "second", "first", (-1.0, 0.0), (1.0, 0.0), **options),
            mbs.Offset("y", "ground", "second", axis=(0.0, 1.0), value=-1.0),
        ],
    )
    x = np.cos(5 * pi / 3) + np.cos(6.14881)
    found = mbs.mobility(mech, mech.estimate({"A": 5 * pi / 3, "float": (6.14881, x, -1.0)}))
    assert (found.counted, found.freedom, found.isolated) == (6 - 5, 6 - 4, 0)
    assert found.redundant in (("x",), ("x_again",))


# -- modeling, 5.1 ----------------------------------------------------------------------------------------


def five_bar(third=1.0, slot=True):
    joint = mbs.PinSlot if slot else mbs.Revolute
    place = (0.0, 0.0) if slot else (2.0, 0.0)
    return mbs.Mechanism(
        bodies("bar_1", "bar_2", "bar_3", "bar_4"),
        [
            mbs.Revolute("A", "ground", "bar_1", (0.0, 0.0)),
            mbs.Revolute("B", "ground", "bar_2", (1.0, 0.0)),
            mbs.Revolute("C", "ground", "bar_3", (2.0, 0.0)),
            mbs.Revolute("D", "bar_1", "bar_4", (1.0, 0.0)),
            mbs.Revolute("E", "bar_4", "bar_2", (1.0, 0.0), (1.0, 0.0)),
            joint("F", "bar_4", "bar_3", place, (third, 0.0)),
        ],
    )


def parallel(angle, **others):
    return {"A": angle, "B": angle, "C": angle, "D": -angle, "E": angle, **others}


def test_five_bar_parallelogram_counts_no_freedom_and_has_one():
    """Example 5.1.1: six revolutes are one equation too many; a third bar slightly too long does not go in."""
    mech = five_bar(slot=False)
    found = mbs.mobility(mech, mech.estimate(parallel(1.0, F=1.0)))
    assert (found.counted, found.freedom, len(found.redundant), found.isolated) == (15 - 15, 1, 1, 0)
    longer = mbs.assemble(five_bar(1.01, slot=False), parallel(1.0, F=1.0), fixed={"A": 1.0}, throw=False)
    assert bool(longer.result == mbs.RESULTS.not_assembled)
    mech = five_bar(1.01)
    found = mbs.mobility(mech, mbs.assemble(mech, parallel(1.0, F=(1.0, 2.0)), fixed={"A": 1.0}).q)
    assert (found.counted, found.freedom, found.redundant, found.isolated) == (15 - 14, 1, (), 0)


def test_five_bar_with_a_slot_runs_bifurcates_or_locks_with_the_length_of_the_third_bar():
    """Example 5.1.1: the pin of the third bar stands as high as the tip of the first."""
    estimate = parallel(0.3, F=(0.3, 2.0))
    drive, angle = {"A": turn(2.5, 0.3)}, lambda t: 0.3 + 2.5 * t
    longer = run(five_bar(1.2), drive, SECOND, estimate=estimate)
    same_motion(longer["C"], rates(lambda t: jnp.arcsin(jnp.sin(angle(t)) / 1.2), SECOND))
    assert not longer.bifurcations()

    equal = run(five_bar(1.0), drive, SECOND, estimate=estimate)
    close(equal["C"].q, angle(SECOND), 1e-10)
    close(equal.bifurcations(), [(pi / 2 - 0.3) / 2.5], 1e-6)

    shorter = run(five_bar(0.8), drive, SECOND, estimate=estimate, throw=False)
    assert bool(shorter.result == mbs.RESULTS.locked)
    assert float(shorter.stopped_at) == pytest.approx((arcsin(0.8) - 0.3) / 2.5, abs=1e-9)


# -- slider-crank, 5.2 -------------------------------------------------------------------------------------

# rod; x, velocity, acceleration at t = 0, 0.1, 0.25
SLIDER = """
3.5  4.61577568 -12.8108406 -60.643006  3.20213994 -13.7556722  39.003408  1.78734856 -4.9606911 51.018822
2.5  3.47576638 -14.9813510 -73.854297  1.84515055 -14.9459321  81.470790  0.64733925 -2.7901808 37.807530
2.2  3.09944352 -16.3425350 -88.825464  1.28131458 -16.4214048 126.124713  0.27101639 -1.4289968 22.836363
2.1  2.96663103 -16.9804768 -98.038854  1.02553082 -17.8605559 156.724868  0.13820391 -0.7910550 13.622973
"""
OUTSIDE = {"B": -1.2, "C": 0.4, "P": 5.0}


def slider(rod, speed=2 * pi, side=1):
    def x(t):
        p = pi / 4 + speed * t
        return 2 * jnp.cos(p) + side * jnp.sqrt(rod**2 - 4 * jnp.sin(p) ** 2)

    return x


def check_slider(build, estimate):
    for rod, numbers in table(SLIDER).items():
        motion = run(build(2.0, rod), {"A": turn(start=pi / 4)}, SECOND, estimate=estimate)
        same_motion(motion["P"], rates(slider(rod), SECOND))
        printed(motion["P"], (0, 2, 5), numbers)


def test_slider_crank_moves_as_its_closed_form_for_four_rods():
    """Section 5.2.4."""
    check_slider(slider_crank, OUTSIDE)


def test_slider_crank_with_a_massless_rod_moves_the_same():
    """Section 5.2.1, model 2."""
    check_slider(two_body_slider_crank, {"P": 5.0})


def test_slider_crank_twice_as_fast_has_four_times_the_acceleration():
    """Section 5.2.4."""
    drive = {"A": turn(4 * pi, pi / 4)}
    fast = run(slider_crank(2.0, 3.5), drive, SECOND / 2, estimate=OUTSIDE)
    same_motion(fast["P"], rates(slider(3.5, 4 * pi), SECOND / 2))
    slow = rates(slider(3.5), SECOND)
    same_motion(fast["P"], (slow[0], 2 * slow[1], 4 * slow[2]))


def test_slider_crank_assembles_on_the_side_of_the_estimate():
    """Tables 5.2.6 and 5.2.7, recomputed: estimated on the wrong side, it is assembled there."""
    for guess, x, rod in (
        (OUTSIDE, 4.615776, (3.014995, 0.707107, -0.415952)),
        ({"B": -3.4, "C": 2.6, "P": -1.5}, -1.787349, (-0.186567, 0.707107, -2.725641)),
    ):
        found = mbs.assemble(slider_crank(), guess, fixed={"A": pi / 4})
        np.testing.assert_allclose([*found.point("rod"), pi / 4 + found["B"]], rod, atol=6e-7)
        assert float(found["P"]) == pytest.approx(x, abs=6e-7)
        assert float(found["P"]) == pytest.approx(float(slider(3.5, side=np.sign(x))(0.0)), abs=1e-12)


def test_slider_crank_with_a_rod_shorter_than_the_crank_locks():
    """Section 5.2.5: rod 1.9."""
    short = slider_crank(2.0, 1.9)
    motion = run(short, {"A": turn(start=pi / 4)}, SECOND, estimate={**OUTSIDE, "P": 2.6}, throw=False)
    assert bool(motion.result == mbs.RESULTS.locked)
    assert float(motion.stopped_at) == pytest.approx((arcsin(0.95) - pi / 4) / (2 * pi), abs=1e-9)
    with pytest.raises(RuntimeError, match=r"t = 0\.07445868.*locked"):
        mbs.kinematics(short, {"A": turn(start=pi / 4)}, SECOND, estimate={**OUTSIDE, "P": 2.6})


# -- four-bar, 5.3 -----------------------------------------------------------------------------------------


# follower; its angle, rate and second rate at t = 0.1, 0.25, 0.75
FOLLOWER = """
3.0  1.97434594 3.7231428 -9.612735  2.37055286 1.3188063 -18.395551  0.95751981 -2.7532063  85.034434
2.1  2.16497021 5.8441160 -3.530636  2.87493010 1.8274157 -66.762076  0.39818044 -4.9260154 338.264854
"""


def test_four_bar_moves_as_its_closed_form_for_four_followers():
    """Section 5.3.4: followers 3 to 2.1, the last one nearly singular at t = 0.75."""
    for length in (3.0, 2.5, 2.2, 2.1):
        pivot = (4.0, 2.0 - length)
        mech = four_bar(2.0, 4.0, length, pivot)
        motion = run(mech, {"A": turn(start=pi / 2)}, SECOND, estimate={"B": -1.6, "C": 1.6, "D": 1.6})
        coupler, follower = circles(2.0, 4.0, length, pivot, pi / 2 + 2 * pi * SECOND, 2 * pi, 1)
        same_motion([p + q for p, q in zip(motion["A"], motion["B"], strict=True)], coupler)
        same_motion(motion["D"], follower)
        assert float(motion["D"].v[0]) == pytest.approx(4 * pi / length, rel=1e-10)
        if length in table(FOLLOWER):
            printed(motion["D"], (2, 5, 15), table(FOLLOWER)[length])


def test_four_bar_with_a_follower_shorter_than_the_crank_locks_outstretched():
    """Section 5.3.5: follower 1.9, where coupler and follower are in line."""
    mech = four_bar(2.0, 4.0, 1.9, (4.0, 0.1))
    options = {"estimate": {"B": -1.6, "C": 1.6, "D": 1.6}, "throw": False}
    motion = run(mech, {"A": turn(start=pi / 2)}, SECOND, **options)
    assert bool(motion.result == mbs.RESULTS.locked)
    # |BD|^2 = 5.9^2, with B = 2 (cos p, sin p): 4 cos p + 0.1 sin p = -3.7
    angle = np.arctan2(0.1, 4.0) + arccos(-3.7 / sqrt(16.01))
    assert float(motion.stopped_at) == pytest.approx((angle - pi / 2) / (2 * pi), abs=1e-9)
    assert float(motion.stopped_at) == pytest.approx(0.191825, abs=1e-6)


# -- gear-slider, 5.5 --------------------------------------------------------------------------------------

LEAN = np.arctan2(0.4, 0.3)
GEARED = {"F": 1.4}


def gear_slider_oracle(theta, turned):
    """Angle of gear 4 and place of the slider, with the gear set equation (3.4.2) for both meshes."""
    B = complex(0.6, -0.4) + 0.8j * np.exp(1j * theta)
    reach = abs(B)
    first = np.angle(B) - arccos((0.3**2 + reach**2 - 0.5**2) / (2 * 0.3 * reach))
    second = np.angle(B - 0.3 * np.exp(1j * first))

    def meshed(radius_i, phi_i, theta_i, radius_j, theta_j, line):
        return ((radius_i + radius_j) * line - radius_i * (phi_i + theta_i)) / radius_j - theta_j + pi

    third = meshed(0.2, turned, 0.0, 0.1, pi, first)
    fourth = meshed(0.1, third, LEAN, 0.4, LEAN + pi, second)

    def x(angle):
        pin = jnp.array([B.real, B.imag]) + 0.2 * jnp.stack(
            [jnp.cos(angle) - jnp.sin(angle), jnp.sin(angle) + jnp.cos(angle)]
        )
        return pin[0] + jnp.sqrt(0.64 - (pin[1] - 0.2) ** 2)

    return fourth, x


def test_gear_slider_is_assembled_as_drawn():
    """Section 5.5.2."""
    found = mbs.assemble(gear_slider(), GEARED, fixed={"A": 0.0, "C": 0.0})
    assert float(found["F"]) == pytest.approx(0.8 + sqrt(0.48), abs=1e-12)
    for body, place in (("gear_3", (0.3, 0.0)), ("gear_4", (0.6, 0.4))):
        close(found.pose(body)[:2, :2], np.eye(2), 1e-12)
        close(found.point(body), place, 1e-12)


def test_gear_slider_moves_as_its_closed_form_at_three_strokes():
    """Section 5.5.4: gear 4 turns with half the speed of gear 2, wherever the stroke link stands."""
    for theta in (-0.1047, 0.0, 0.5236):
        drive = {"A": turn(4 * pi), "C": turn(0.0, theta)}
        motion = run(gear_slider(), drive, SECOND, estimate=GEARED)
        start, x = gear_slider_oracle(theta, 0.0)
        gear = motion.orientation("gear_4")
        close(gear.q, start + 2 * pi * SECOND)
        close(gear.v, 2 * pi + 0 * SECOND)
        same_motion(motion["F"], rates(lambda t, start=start, x=x: x(start + 2 * pi * t), SECOND))


def test_gear_slider_locks_at_the_ends_of_its_stroke_range():
    """Section 5.5.3 (the upper bound 0.7330 is rounded in print): 0.2 <= |AB| <= 0.8."""
    for speed, reach, printed in ((-0.5, 0.8, -0.120460), (1.0, 0.2, 0.740230)):
        drive = {"A": turn(0.0), "C": turn(speed)}
        motion = run(gear_slider(), drive, SECOND, estimate=GEARED, throw=False)
        assert bool(motion.result == mbs.RESULTS.locked)
        # reach^2 = 1.16 - 0.96 sin(theta) - 0.64 cos(theta)
        theta = np.arctan2(0.96, 0.64) - arccos((1.16 - reach**2) / np.hypot(0.96, 0.64))
        assert speed * float(motion.stopped_at) == pytest.approx(theta, abs=1e-9)
        assert theta == pytest.approx(printed, abs=6e-7)


# -- degrees of freedom ------------------------------------------------------------------------------------


def pendulum():
    return mbs.Mechanism(bodies("bob"), [mbs.Revolute("O", "ground", "bob")])


@pytest.mark.parametrize(
    ("build", "estimate", "nc", "nh"),
    [
        pytest.param(pendulum, {}, 3, 2, id="pendulum 3.1.1"),
        pytest.param(slider_crank, {"A": 0.7, **OUTSIDE}, 12, 11, id="slider-crank 5.2 model 1"),
        pytest.param(two_body_slider_crank, {"A": 0.7, "P": 5.0}, 6, 5, id="slider-crank 5.2 model 2"),
        pytest.param(four_bar, {"A": 1.3, "B": -1.2, "D": 1.4}, 12, 11, id="four-bar 5.3 model 1"),
        pytest.param(two_body_four_bar, {"A": 1.3, "B": -1.2}, 9, 8, id="four-bar 5.3 model 2"),
        pytest.param(gear_slider, GEARED, 18, 16, id="gear-slider 5.5"),
    ],
)
def test_counted_freedom_is_the_freedom(build, estimate, nc, nh):
    mech = build()
    found = mbs.mobility(mech, mbs.assemble(mech, estimate).q)
    assert (found.counted, found.freedom, found.redundant, found.isolated) == (nc - nh, nc - nh, (), 0)
