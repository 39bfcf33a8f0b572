"""Very many variants at once: some are at work, the others wait; what comes out is what each gives by itself."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax._numerics import lanes
from mbsjax._programs.purpose import values_only


class Count(NamedTuple):
    left: jax.Array
    seed: jax.Array
    done: jax.Array


def counted(numbers, seeds, width, monkeypatch):
    """Work that takes as many attempts as a number says, each of which writes to a table; and attempts in all."""
    monkeypatch.setitem(lanes._FEWEST, "cpu", width)
    n = len(numbers)

    def begin(mine):
        left, seed = mine
        return Count(left, seed, left <= 0)

    def attempt(mine):
        def once(s, table, lane):
            busy = ~s.done
            written = table["sum"].at[jnp.where(busy, lane, n)].add(jnp.where(busy, s.seed, 0), mode="drop")
            table = {"sum": written, "turns": table["turns"] + 1}
            left = s.left - busy
            return Count(left, s.seed, left <= 0), table

        return once

    work = lanes.Work(begin, attempt, lambda s: 10 * s.seed + s.left)
    table = {"sum": jnp.zeros(n, int), "turns": jnp.zeros((), int)}
    every = (jnp.asarray(numbers), jnp.asarray(seeds))
    table, results = jax.jit(lambda: lanes.in_turn(work, every, table, jnp.full(n, -1)))()
    return np.asarray(table["sum"]), np.asarray(results), int(table["turns"])


@pytest.mark.parametrize("n, width", [(64, 8), (67, 16), (1000, 32)])
def test_each_waits_for_its_turn_and_time_follows_the_mean(n, width, monkeypatch):
    rng = np.random.default_rng(n)
    numbers, seeds = rng.geometric(0.02, n) * (rng.random(n) > 0.1), rng.integers(1, 1000, n)  # some take no attempt
    numbers[n // 2] = 600  # one that is slow
    total, results, turns = counted(numbers, seeds, width, monkeypatch)
    np.testing.assert_array_equal(total, numbers * seeds)  # as many attempts as due, in the place that is its own
    np.testing.assert_array_equal(results, 10 * seeds)
    busy = width - -(-width // 16) + 1  # as long as others wait; then no longer than the slowest (Graham's bound)
    assert turns <= numbers.sum() / busy + numbers.max()
    rounds = sum(numbers[i : i + width].max() for i in range(0, n, width))
    assert turns < rounds


def bouncing(p: dict) -> mbs.Solution:
    """A ball on the floor; those that are let fall from high make few impacts."""
    floor = mbs.Profile.chain([mbs.Line((1.0, 0.0), (-1.0, 0.0))], closed=False)
    ball = mbs.Mechanism(
        [mbs.Body("ground", profiles={"floor": floor}), mbs.Body("ball", mass=1.0, profiles={"rim": mbs.disc(0.1)})],
        [
            mbs.Prismatic("height", "ground", "ball", axis=(0.0, 1.0), start=p["h"]),
            mbs.Contact("bounce", "ground.floor", "ball.rim", restitution=p["e"]),
        ],
        gravity=(0.0, -9.81),
    )
    start = mbs.state(ball, throw=False)
    return mbs.simulate(
        ball, start, p["end"], ts=p["end"] * jnp.linspace(0, 1, 5), max_steps=96, max_events=12, throw=False
    )


def told(p: dict):
    sol = bouncing(p)
    return sol.q, sol.v, sol.a, sol.kinetic, sol.events, sol.stats, sol.stopped_at, sol.result == mbs.RESULTS.successful


@pytest.mark.long
def test_the_lane_that_works_at_a_variant_does_not_change_a_bit_of_it(monkeypatch):
    rng = np.random.default_rng(0)
    n = 40
    p = {"h": rng.uniform(0.11, 3.0, n), "e": rng.uniform(0.0, 1.0, n), "end": rng.uniform(0.2, 1.5, n)}
    p["h"][7], p["e"][7] = 0.1001, 1.0  # more impacts than are allowed
    p = jax.tree_util.tree_map(jnp.asarray, p)
    at_once = eqx.filter_jit(lambda p: jax.vmap(told)(p))(p)

    def values(p):
        with values_only():  # and without the steps that derivatives alone need
            return jax.vmap(told)(p)

    monkeypatch.setitem(lanes._FEWEST, "cpu", 8)
    in_turn = eqx.filter_jit(values)
    found, order = in_turn(p), rng.permutation(n)
    others = in_turn(jax.tree_util.tree_map(lambda x: x[order], p))  # other lanes, at other times
    jax.tree_util.tree_map(lambda x, y: np.testing.assert_array_equal(y, x[order]), found, others)
    jax.tree_util.tree_map(np.testing.assert_array_equal, found, at_once)
    *_, events, stats, stopped, fine = at_once
    assert not fine[7]
    np.testing.assert_array_equal(fine, stats.events <= 12)
    np.testing.assert_array_equal(np.isinf(stopped), fine)
    attempts = np.asarray(stats.steps + stats.rejected)
    assert attempts.max() > 2 * attempts.mean()  # some wait for long
    fall = np.sqrt(2 * (np.asarray(p["h"]) - 0.1) / 9.81)
    hits = fall < np.asarray(p["end"])
    np.testing.assert_allclose(events.t[hits, 0], fall[hits], rtol=1e-9)
    np.testing.assert_array_equal(np.isfinite(events.t[:, 0]), hits)


@pytest.mark.slow
def test_what_is_asked_for_values_has_derivatives_all_the_same():
    end = lambda e: bouncing({"h": jnp.asarray(2.1), "e": e, "end": jnp.asarray(1.0)}).q[-1, 0]

    def slope(e):
        with values_only():
            return jax.jvp(end, (e,), (jnp.ones(()),))

    _, found = eqx.filter_jit(slope)(jnp.asarray(0.5))
    fall = np.sqrt(2 * 2.0 / 9.81)  # then it flies for the rest of a second, e times as fast as it came
    np.testing.assert_allclose(found, 9.81 * fall * (1 - fall), rtol=1e-9)
