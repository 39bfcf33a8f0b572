"""Derivatives through events and impacts: forward = reverse = differences, for every number of a mechanism."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy

import mbsjax as mbs
from tests.impacts import FLAT, PENDULUMS, ball, flat_follower, turning, two_pendulums
from tests.mechanisms import four_bar


SIZES = {"max_steps": 160, "max_events": 20}
G = 9.81


def height(h, restitution=1.0):
    """Where a ball is after a second that is dropped from h and bounces once, or twice."""
    mech = ball(restitution)
    sol = mbs.simulate(mech, mbs.state(mech, {"height": h + 0.1}, throw=False), 1.0, ts=jnp.array([1.0]),
                       max_steps=32, max_events=4, throw=False)  # fmt: skip
    return sol["height"].q[-1] - 0.1


def bounced(h, e):
    """The same in closed form."""
    v = jnp.sqrt(2 * G * h)
    twice = e < 0.9
    s = 1.0 - v / G * jnp.where(twice, 1 + 2 * e, 1.0)
    return jnp.where(twice, e**2, e) * v * s - G * s**2 / 2


@pytest.mark.long
def test_bounces_have_the_slopes_of_their_closed_forms():
    """After n bounces y(T) = e^n v s - g s^2/2 with v = sqrt(2 g h) and s the time since the last one: the example that
    penalty methods get wrong."""
    hs = jnp.append(jnp.linspace(0.8, 1.2, 500), 1.0)
    hs, es = jnp.concatenate([hs, hs]), jnp.repeat(jnp.array([0.5, 1.0]), len(hs))
    slopes = jax.jit(jax.vmap(jax.grad(height, (0, 1))))(hs, es)
    np.testing.assert_allclose(slopes[0][-1], 1.42944691807002, atol=1e-10)  # forward: see the tutorial
    for found, expected in zip(slopes, jax.vmap(jax.grad(bounced, (0, 1)))(hs, es)):
        np.testing.assert_allclose(found, expected, atol=1e-10)


def along(f, x, way):
    """The first and the second derivative along a way, both in forward mode."""
    slope = lambda s: jax.jvp(f, (x + s * way,), (way,))[1]
    return jax.jvp(slope, (jnp.zeros(()),), (jnp.ones(()),))


@pytest.mark.long
def test_bounces_have_the_second_derivatives_of_their_closed_forms():
    """The time of a bounce bends too: with one Newton correction of it, first derivatives would be right, and these
    would not."""
    way = jnp.array([1.0, 0.3])
    starts = jnp.array([[0.9, 0.5], [1.1, 0.5], [1.0, 1.0]])
    found = jax.jit(jax.vmap(lambda x: along(lambda x: height(*x), x, way)))(starts)
    expected = jax.vmap(lambda x: along(lambda x: bounced(*x), x, way))(starts)
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.long
def test_second_derivatives_of_a_flat_follower_are_differences_of_its_slopes():
    """Through loss of contact and two impacts."""

    def lift(x):
        p = {**FLAT, "k": 2000.0 * x[0], "omega": 110.0 * x[1]}
        mech, drive = flat_follower(p), turning(p["omega"])
        state = mbs.state(mech, drive=drive, throw=False)
        options = {"rest_speed": 1e-3, "rtol": 1e-11, "atol": 1e-11, "max_steps": 512, "max_events": 48, "throw": False}
        return mbs.simulate(mech, state, 0.0486, ts=jnp.array([0.0486]), drive=drive, **options).q[-1, 1]

    way, h = jnp.array([1.0, 0.5]), 2e-4
    steps = h * jnp.array([0.0, -2.0, -1.0, 1.0, 2.0])
    slopes, seconds = jax.jit(jax.vmap(lambda s: along(lift, 1.0 + s * way, way)))(steps)
    differences = (slopes[1] - 8 * slopes[2] + 8 * slopes[3] - slopes[4]) / (12 * h)
    np.testing.assert_allclose(seconds[0], differences, rtol=1e-8)


@pytest.mark.long
def test_a_pendulum_has_the_slopes_of_its_variational_equation():
    """Without contacts, and as a user writes it, where all that can be looked at is: O'' = -(g / l) sin O, and how its
    slope in l goes on, by SciPy."""

    def angle(length):
        mech = mbs.Mechanism(
            [mbs.Body("bob", mass=2.0, center=(0.0, -length))], [mbs.Revolute("O", "ground", "bob")], gravity=(0.0, -G)
        )
        options = {"rtol": 1e-11, "atol": 1e-11, "max_steps": 128}
        return mbs.simulate(mech, mbs.state(mech, {"O": 0.5}, {"O": 1.0}), 1.0, **options)["O"].q[-1]

    def rates(_, y, length):
        a, v, da, dv = y
        return v, -G / length * np.sin(a), dv, G / length**2 * np.sin(a) - G / length * np.cos(a) * da

    for length in (0.7, 1.0):
        slope = jax.grad(angle)(length)
        exact = scipy.integrate.solve_ivp(
            rates, (0, 1), (0.5, 1.0, 0, 0), "DOP853", args=(length,), rtol=1e-12, atol=1e-13
        )
        np.testing.assert_allclose(slope, exact.y[2, -1], atol=1e-8)


@pytest.mark.long
def test_a_four_bar_without_contacts_in_both_modes():
    """From rest under gravity: forward = reverse = differences of fourth order, eager and under jit."""

    def angle(crank):
        masses = [mbs.Body(n, mass=1.0, inertia=0.1) for n in ("crank", "coupler", "follower")]
        mech = mbs.Mechanism(masses, four_bar(crank).joints, gravity=(0.0, -G))
        state = mbs.state(mech, {"A": 0.5}, estimate={"B": 0.5, "D": 2.0}, throw=False)
        return mbs.simulate(mech, state, 0.5, ts=jnp.array([0.5]), max_steps=64, throw=False)["A"].q[-1]

    value, slope = jax.jvp(angle, (2.0,), (1.0,))
    h = 1e-3
    every, slopes = jax.jit(jax.vmap(jax.value_and_grad(angle)))(2.0 + h * jnp.array([-2, -1, 0, 1, 2]))
    np.testing.assert_allclose(value, every[2], atol=1e-13)
    np.testing.assert_allclose(slope, (every[0] - 8 * every[1] + 8 * every[3] - every[4]) / (12 * h), atol=1e-7)
    np.testing.assert_allclose(slopes[2], slope, atol=1e-12)


def test_functions_of_loads_and_triggers_carry_derivatives():
    """A drag that is proportional to the speed, c v, and a limit: both are numbers that plain functions close over.
    x(1) = (1 - exp(-c)) / c, and the limit is passed at -log(1 - c limit) / c."""

    def outcome(c, limit):
        mech = mbs.Mechanism(
            [mbs.Body("bead", mass=1.0)],
            [mbs.Prismatic("x", "ground", "bead")],
            forces=[mbs.Load("bead", force=lambda t, at: (-c * at["x"].v, 0.0))],
        )
        passed = mbs.Trigger("limit", lambda at: at["x"].q - limit)
        sol = mbs.simulate(mech, mbs.state(mech, {}, {"x": 1.0}, throw=False), 1.0, ts=jnp.array([1.0]),
                           triggers=[passed], max_steps=64, max_events=2, throw=False)  # fmt: skip
        return jnp.stack([sol["x"].q[0], sol.events.t[0]])

    exact = lambda c, limit: jnp.stack([(1 - jnp.exp(-c)) / c, -jnp.log(1 - c * limit) / c])
    found, expected = (jax.jit(jax.jacfwd(f, (0, 1)))(0.5, 0.4) for f in (outcome, exact))
    np.testing.assert_allclose(found, expected, atol=1e-8)


def leaves(mech):
    """A mechanism as a vector, and back."""
    numbers, structure = eqx.partition(mech, eqx.is_inexact_array)
    flat, back = jax.flatten_util.ravel_pytree(numbers)
    return flat, lambda x: eqx.combine(back(x), structure)


def follower_outcome(x, back):
    """Final state, times, an impulse and a contact force, of the cam-follower after two turns."""
    mech, t1 = back(x[:-2]), x[-1]
    drive = turning(x[-2])
    state = mbs.state(mech, drive=drive)
    ts = jnp.stack([0.01 + 0 * t1, t1])
    sol = mbs.simulate(mech, state, t1, ts=ts, drive=drive, rest_speed=3e-3, **SIZES)
    times = sol.events.t[:4]
    return jnp.concatenate([sol.q[-1, 1:], sol.v[-1, 1:], times, sol.events.impulse[1], sol.press[0]])


def collision_outcome(x, back):
    """Final state, time and impulse of two pendulums that collide; the last numbers are the start."""
    mech = back(x[:-3])
    state = mbs.state(mech, {"A": x[-3], "B": 0.0}, {"A": x[-2], "B": 0.0})
    sol = mbs.simulate(mech, state, x[-1], ts=x[-1:], max_steps=96, max_events=4)
    return jnp.concatenate([sol.q[-1], sol.v[-1], sol.events.t[:1], sol.events.impulse[0]])


CASES = {
    "cam-follower": (flat_follower, follower_outcome, [110.0, 0.11]),
    "two pendulums": (lambda: two_pendulums(PENDULUMS), collision_outcome, [-0.6, 0.3, 0.5]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cam-follower", pytest.param("two pendulums", marks=pytest.mark.long)])
def test_every_number_of_a_mechanism_through_impacts(name):
    """The gradient of a weighted sum of all outcomes, in reverse mode, against forward mode in random directions, and
    against differences number by number."""
    build, outcome, more = CASES[name]
    flat, back = leaves(build())
    x = jnp.concatenate([flat, jnp.array(more)])
    y = outcome(x, back)
    assert bool(jnp.all(jnp.isfinite(y)))
    random = np.random.default_rng(0)
    weights = random.uniform(0.5, 1.5, len(y)) / np.abs(y)
    total = lambda x: jnp.sum(weights * outcome(x, back))
    gradient = np.asarray(jax.grad(total)(x))
    assert np.all(np.isfinite(gradient))
    for _ in range(3):
        v = random.normal(size=len(x)) * np.maximum(np.abs(x), 1e-2)
        slope = jax.jvp(total, (x,), (jnp.asarray(v),))[1]
        np.testing.assert_allclose(slope, gradient @ v, rtol=1e-9)
    size = np.maximum(np.abs(x), 1e-2)
    largest = np.abs(gradient * size).max()
    moves = np.flatnonzero(gradient)
    assert len(moves) >= 10
    for i in moves:
        h = 1e-5 * size[i]
        values = [float(total(x.at[i].add(k * h))) for k in (-2, -1, 1, 2)]
        slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)
        bound = 1e-5 * min(largest, np.abs(y).max() * size[i])
        np.testing.assert_allclose(slope * size[i], gradient[i] * size[i], rtol=1e-5, atol=bound)


@pytest.mark.long
def test_compliant_bounce_has_the_slope_of_its_closed_form():
    """Free fall, part of a sine about the rest position of the spring, and flight: through both ends of the contact."""

    def height(h, k):
        mech = eqx.tree_at(
            lambda m: m.contacts[0].law, ball(), mbs.KelvinVoigt(k), is_leaf=lambda x: x is None
        )  # fmt: skip
        sol = mbs.simulate(mech, mbs.state(mech, {"height": h + 0.1}, throw=False), 1.0, ts=jnp.array([1.0]),
                           max_steps=256, max_events=4, throw=False)  # fmt: skip
        return sol["height"].q[-1] - 0.1

    def exact(h, k):
        v, w = jnp.sqrt(2 * G * h), jnp.sqrt(k)
        touching = 2 * (jnp.pi - jnp.arctan2(v * w, G)) / w
        s = 1.0 - v / G - touching
        return v * s - G * s**2 / 2

    slopes = jax.jit(lambda h, k: jax.jvp(height, (h, k), (1.0, 0.1 * k)))
    for k in (1e4, 1e5, 1e8):
        found, expected = slopes(1.0, k), jax.jvp(exact, (1.0, k), (1.0, 0.1 * k))
        np.testing.assert_allclose(found[0], expected[0], atol=1e-8)
        np.testing.assert_allclose(found[1], expected[1], rtol=5e-5)
