"""The notebooks that tell stories tell the truth: their findings against closed forms and the thesis."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import ellipk, ellipkinc

import mbsjax as mbs
from tests.contacts import T3
from tests.latch import latch
from tests.notebook import told
from tests.test_contact_motion import borders, lifts
from tests.test_play import follower_angle


pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def nothing_left():
    """Closes the pictures, and takes back what a notebook set."""
    yield
    plt.close("all")
    jax.config.update("jax_disable_most_optimizations", False)


# -- contact_loss --------------------------------------------------------------------------------------------


def rates(lift):
    return lambda theta: (lift(theta), jax.grad(lift)(theta), jax.grad(jax.grad(lift))(theta))


def jump_speed(k, m=0.15, c=5.0):
    """The least speed at which k (rho + c) + m rho'' omega^2 is zero, on any element of the cam."""
    ends = np.concatenate([[borders(T3)[-1] - 2 * np.pi], borders(T3)])
    least = np.inf
    for lift, a, b in zip(lifts(T3), ends, ends[1:]):
        rho, _, bend = (np.asarray(x) for x in jax.vmap(rates(lift))(jnp.linspace(a, b, 2001)))
        square = np.where(bend < 0, k * (rho + c) / (-m * np.where(bend < 0, bend, -1.0)), np.inf)
        least = min(least, square.min())
    return np.sqrt(least)


@pytest.mark.long
def test_contact_loss():
    names = told("contact_loss")
    # the table: every number is the closed form's, and the thesis' as far as it was printed
    for (place, what), (here, form) in names["table"].items():
        np.testing.assert_allclose(here, form, rtol=1e-7, atol=1e-7)
        program, by_hand = names["printed"][place, what]
        assert abs(here - by_hand) <= 0.03 * abs(by_hand) and abs(here - program) <= 0.04 * abs(program)
    published = {"A": 66.6, "B-": 59.581188, "B+": 50.148226, "C-": 51.398250, "C+": 69.925905}  # put right
    for place, force in published.items():
        np.testing.assert_allclose(names["table"][place, "force"][0], force, rtol=1e-6)
    # the speed at which it jumps, from the closed forms of all elements; the simulation jumps there
    for k in (1.5, 0.35):
        np.testing.assert_allclose(names["jump_speed"](k), jump_speed(k), rtol=1e-7)
    assert [n for n, *_ in names["around"].values()] == [0, 2]
    thrown, flying, blow = names["swept"].T
    off = names["speeds"] > jump_speed(0.35)
    assert np.all((thrown > 0) == off) and np.all(flying[~off] == 0) and np.all(blow[~off] < 1e-6)
    assert flying[-1] > flying[off][0] and blow[-1] > blow[off][0] > 0
    np.testing.assert_allclose(names["needed"], 0.35 * (0.5 / jump_speed(0.35)) ** 2, rtol=1e-7)
    # the flight ends where the oscillator meets the third line, at the speed of their difference
    ends, line = borders(T3), lifts(T3)[4]
    t0, t1, flight = names["t0"], names["t1"], names["flight"]
    np.testing.assert_allclose(0.5 * t0, ends[2], atol=1e-9)
    assert ends[3] < 0.5 * t1 < ends[4] and names["miss"] < 1e-7
    meets = brentq(lambda t: flight(t) - float(line(0.5 * t)), 2 * ends[3], 2 * ends[4], xtol=1e-13)
    np.testing.assert_allclose(t1, meets, atol=1e-8)
    rho, slope = (float(x) for x in rates(line)(0.5 * t1)[:2])
    closing = (flight(t1 + 1e-6) - flight(t1 - 1e-6)) / 2e-6 - 0.5 * slope
    np.testing.assert_allclose(names["before"], closing * rho / np.hypot(rho, slope), rtol=1e-6)
    np.testing.assert_allclose(names["after"], -0.2 * names["before"], rtol=1e-12)


# -- latch ---------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_latch():
    names = told("latch")
    sol, mech, kinds = names["sol"], names["mech"], names["kinds"]
    same = lambda m: jax.tree_util.tree_leaves((m.bodies, m.joints, m.contacts))
    for a, b in zip(same(mech), same(latch()), strict=True):
        np.testing.assert_array_equal(a, b)
    # what the text says of the chart, in its order
    order = [
        ("closed", "C23"), ("released", "C26"), ("closed", "C45"), ("closed", "C24 stem"), ("closed", "C24"),
        ("closed", "C56"), ("transition", "C24"), ("released", "C24"), ("closed", "C26 roof"), ("closed", "C26 second"),
    ]  # fmt: skip
    at = -1
    for event in order:
        at = kinds.index(event, at + 1)
    ts = np.asarray(sol.ts)
    on = {name: np.asarray(sol[name].active) for name in names["names"]}
    active = lambda t: {name for name in on if on[name][np.argmin(np.abs(ts - t))]}
    stages = names["stages"]
    assert active(stages["block"]) == {"C26", "C26 roof", "C24"}
    assert active(stages["held by the hook"]) == {"C24", "C24 stem"}
    assert active(stages["stop"]) == {"C26 roof", "C26 second", "C24"} == set(names["forces_end"])
    for name, force in names["forces_end"].items():
        np.testing.assert_allclose(force, names["hand"][name], rtol=1e-8)
    # at rest until the finger comes, then alone with its spring until the lug meets the plunger, then stopped
    travel, v = (np.asarray(x) for x in sol["P16"][:2])
    when = lambda *event: float(sol.events.t[kinds.index(event)])
    assert np.abs(travel[ts < when("closed", "C23")]).max() < 1e-9 and abs(travel[-1] - 6.0) < 1e-9
    alone = (ts > when("released", "C26")) & (ts < when("closed", "C56"))
    energy = v**2 / 2 + (8.0 - travel) ** 2
    assert np.ptp(energy[alone]) < 1e-6 * 64 and energy[alone].max() < 64.0
    assert 0 < names["arrives"] < names["alone"] and 0 < names["lost"] < 0.2


# -- sensitivities -------------------------------------------------------------------------------------------


def euler(h, k, steps, g=9.81):
    """The penalty method in plain Python."""
    y, v, dt = h, 0.0, 1.0 / steps
    for _ in range(steps):
        v += dt * (-g + k * max(-y, 0.0))
        y += dt * v
    return y


@pytest.mark.long
def test_sensitivities():
    names = told("sensitivities")
    v, g = np.sqrt(2 * 9.81), 9.81
    slope = (2 * g / v) / 2 * (1 - v / g) - (g / v) * (v / g) + (1 - v / g) * (g / v)  # d/dh of v s - g s^2/2
    np.testing.assert_allclose(slope, 1.42944691807002, rtol=1e-13)
    np.testing.assert_allclose(names["right"], slope, rtol=1e-12)
    np.testing.assert_allclose(names["found"][-1, 1], slope, rtol=1e-10)
    np.testing.assert_allclose(names["found"][:, 1], names["exact_slopes"], rtol=1e-10)
    # the penalty method: its heights are near, its slopes are those of the saw, and far from right
    for (k, steps), (value, wrong) in names["penalties"].items():
        if steps == 1000:
            np.testing.assert_allclose(value, euler(1.0, k, steps), rtol=1e-9)
            step = 1e-8
            difference = (euler(1.0 + step, k, steps) - euler(1.0 - step, k, steps)) / (2 * step)
            np.testing.assert_allclose(wrong, difference, rtol=1e-4)
        assert abs(value - names["y"]) < 0.03
    slopes = [s for _, s in names["penalties"].values()]
    assert min(slopes) < -40 and max(slopes) > 60
    teeth = np.diff(np.asarray(names["saw"])) / np.diff(np.asarray(names["near"]))
    assert teeth.min() < -10 and np.mean(teeth > 0) > 0.5
    np.testing.assert_allclose(np.ptp(teeth), 1e5 / 1000 / 2, rtol=0.2)
    # the compliant contact: the slope of its spring, which goes to the rigid one with the root of the stiffness
    compliant, wanted = names["compliant"][:, 1], names["springy_slopes"]
    np.testing.assert_allclose(compliant, wanted, atol=1e-4)
    off = slope - compliant
    np.testing.assert_allclose(off[:-1] / off[1:], np.sqrt(10), rtol=0.05)


# -- monte_carlo ---------------------------------------------------------------------------------------------


@pytest.mark.long
def test_monte_carlo():
    names = told("monte_carlo")
    sample, margin, locked, tally = (names[k] for k in ("sample", "margin", "locked", "tally"))
    clear = np.abs(margin) > 1e-6
    np.testing.assert_array_equal(locked[clear], margin[clear] < 0)
    assert set(np.unique(sample.kind)) <= {0, mbs.CLASSES.index("locked")} and names["same"]
    np.testing.assert_allclose(sample["transmission"][~locked], names["angle"][~locked], atol=1e-7)
    n = len(locked)
    expected = stats.norm.cdf(-0.05 / 0.04)
    np.testing.assert_allclose(names["expected"], expected, rtol=1e-12)
    assert abs(locked.mean() - expected) < 4 * np.sqrt(expected * (1 - expected) / n)
    # the yield, from two million other parts: 170 degrees between coupler and rocker, in the far position
    a, b, c, d = (np.array([1.0, 3.0, 2.5, 4.45]) + 0.02 * np.random.default_rng(0).normal(size=(2_000_000, 4))).T
    far = (b**2 + c**2 - (a + d) ** 2) / (2 * b * c)
    wanted = np.mean(far > -np.cos(np.deg2rad(10.0)))
    found, error = names["good"](tally)
    np.testing.assert_allclose(error, np.sqrt(found * (1 - found) / n), rtol=1e-6)
    for value, its_error in ((found, error), *names["by_method"].values()):
        assert abs(value - wanted) < 4 * its_error
    assert names["by_method"]["sobol"][1] < names["by_method"]["random"][1]
    # sixteen studies differ by what each says of itself
    spread = names["yields"][:, 0].std(ddof=1) / names["yields"][:, 1].mean()
    low, high = np.sqrt(stats.chi2.ppf([1e-4, 1 - 1e-4], 15) / 15)
    assert low < spread < high
    assert set(names["rates"]) == {64, 512, 4096} and min(names["rates"].values()) > 0


# -- identification ------------------------------------------------------------------------------------------


def knock_dates(p, count=8, start=1.4, radius=0.05, g=9.81):
    """When a pendulum knocks that is let go at an angle: each fall is an incomplete elliptic integral."""
    length, wall, restitution = p
    touches = np.arcsin((radius - wall) / length)

    def fall(top):
        m = np.sin(top / 2) ** 2
        return np.sqrt(length / g) * (ellipk(m) - ellipkinc(np.arcsin(np.sin(touches / 2) / np.sqrt(m)), m))

    top, times = start, [fall(start)]
    for _ in range(count - 1):
        top = np.arccos(np.cos(touches) - restitution**2 * (np.cos(touches) - np.cos(top)))
        times.append(times[-1] + 2 * fall(top))
    return np.array(times)


def knock_slopes(p):
    steps = 1e-5 * np.eye(3)
    return np.stack([(knock_dates(p + d) - knock_dates(p - d)) / 2e-5 for d in steps], 1)


@pytest.mark.long
def test_identification():
    names = told("identification")
    truth, sigma = np.array([1.0, -0.2, 0.7]), 1e-3
    np.testing.assert_array_equal(names["truth"], truth)
    np.testing.assert_allclose(names["heard"], knock_dates(truth), atol=1e-7)
    np.testing.assert_allclose(names["found"], truth, atol=1e-8)
    assert names["way"][0] > 0.1 and names["way"][-1] < 1e-8
    # with noise: the estimate, and errors from the closed form's slopes
    estimate = np.asarray(names["estimate"])
    J = knock_slopes(estimate)
    np.testing.assert_allclose(names["J"], J, rtol=1e-5, atol=1e-7)
    covariance = sigma**2 * np.linalg.inv(J.T @ J)
    errors = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(names["errors"], errors, rtol=1e-3)
    off = estimate - truth
    assert off @ np.linalg.solve(covariance, off) < stats.chi2.ppf(1 - 1e-4, 3)
    # noise through the linear model, and through fits
    for cloud in (names["linear"], names["again"]):
        low, high = np.sqrt(stats.chi2.ppf([1e-4, 1 - 1e-4], len(cloud) - 1) / (len(cloud) - 1))
        assert np.all((low * errors < cloud.std(0, ddof=1)) & (cloud.std(0, ddof=1) < high * errors))
    assert names["correlation"][0, 1] < -0.98 and np.corrcoef(names["again"].T)[0, 1] < -0.95
    # more knocks, more known; and the ruler does what a prior of half a millimeter does
    assert np.all(np.diff(names["by_count"], axis=0) < 0)
    np.testing.assert_allclose(names["by_count"][-1], names["errors"], rtol=1e-9)
    prior = np.linalg.inv(np.linalg.inv(covariance) + np.diag([1 / 5e-4**2, 0.0, 0.0]))
    np.testing.assert_allclose(names["both"], np.sqrt(np.diag(prior)), rtol=1e-3)


# -- play ----------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_play():
    names = told("play")
    ts, h = np.asarray(names["ts"]), 1e-5
    # a play between crank and coupler makes the coupler longer or shorter; the linkage is ten times that of the tests
    slopes = [np.diff([follower_angle(t, 4.0 + x) for x in (-h, h)])[0] / (2 * h) / 10 for t in ts]
    np.testing.assert_allclose(names["parts"].worst["angle"]["B"], np.rad2deg(np.abs(slopes)) * 0.02, rtol=1e-6)
    # the cheapest tolerances under one condition, that of the worst position: by Lagrange, were it linear
    factors, T = np.array([0.2] * 4 + [0.1] * 4), np.asarray(names["T"])
    every = np.abs(names["first"].slopes)
    steep = every[np.argmax(every @ T)]
    best = np.sqrt(factors / steep) * 0.4 / np.sum(np.sqrt(factors * steep))
    np.testing.assert_allclose(T, best, rtol=1e-2)
    np.testing.assert_allclose(T / T.sum(), best / best.sum(), rtol=1e-3)
    assert names["chosen"].converged and abs(names["error"] - 0.4) < 1e-4  # it is kept exactly
    assert names["bend"] < 1e-3 and 3 * names["spread"].max() < 0.4
