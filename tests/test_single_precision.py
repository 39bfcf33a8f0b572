"""Single precision against double precision, closed forms, and NumPy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax.demo import SPRUNG, lost_contact

from .impacts import FLAT, TWO_TURNS, ball, flat_follower, turning


pytestmark = pytest.mark.filterwarnings("ignore:mbsjax is computing in float32")
IMPACT = mbs.EVENTS.index("impact")


def bouncing_follower() -> mbs.Solution:
    mech, drive = flat_follower(FLAT), turning()
    start = mbs.state(mech, drive=drive, throw=False)
    return mbs.simulate(mech, start, TWO_TURNS, drive=drive, rest_speed=1e-3, max_steps=512, max_events=48, throw=False)


def in_both(f):
    double = f()
    with jax.enable_x64(False):
        single = f()
    assert single.events.t.dtype == jnp.float32 and double.events.t.dtype == jnp.float64
    return double, single


def told(log: mbs.Log) -> tuple[np.ndarray, np.ndarray]:
    """Kinds and times of the events, of impacts in a row the first: the others may be too low to be told."""
    n = int(log.count)
    kind, t = np.asarray(log.kind)[:n], np.asarray(log.t, float)[:n]
    again = np.zeros(n, bool)
    again[1:] = (kind[1:] == IMPACT) & (kind[:-1] == IMPACT)
    return kind[~again], t[~again]


@pytest.mark.long
@pytest.mark.parametrize(
    ("f", "span", "share"),
    # the cam's follower comes to rest by ever lower bounces, whose end is known less well than the others
    [(bouncing_follower, TWO_TURNS, 2e-6), (lambda: lost_contact(SPRUNG), 4 * np.pi, 1e-5)],
)
def test_events_are_those_of_double_precision(f, span, share):
    double, single = in_both(f)
    assert bool(single.result == mbs.RESULTS.successful)
    (kinds, times), (found, at) = told(double.events), told(single.events)
    assert found.tolist() == kinds.tolist() and len(kinds) >= 6
    np.testing.assert_allclose(at, times, rtol=0, atol=share * span)
    assert int(single.stats.rejected) < int(double.stats.rejected)  # events are not searched for beyond their digits
    size = float(double.plant.problem.system.size)
    np.testing.assert_allclose(single.q[-1], double.q[-1], rtol=0, atol=2e-6 * size)


@pytest.mark.long
def test_a_ball_that_falls():
    """Default tolerances, which single precision cannot keep, are those that it can."""
    with jax.enable_x64(False):
        mech = ball(restitution=0.5)
        sol = mbs.simulate(mech, mbs.state(mech, {"height": 1.1}), 1.0, ts=[0.0, 1.0])
    falls = np.sqrt(2 / 9.81)
    flights = falls * np.cumsum([1.0, 1.0])  # the first flight after an impact takes 2 * 0.5 of the fall
    assert sol.events.t.dtype == jnp.float32
    np.testing.assert_allclose(np.asarray(sol.events.t)[:2], flights, rtol=0, atol=5e-7)
    assert np.all(np.asarray(sol.events.kind)[:2] == IMPACT)


def test_what_is_lost_is_that_of_numpys_single_precision():
    study = mbs.Study(
        lambda p: p,
        {"slot": 30.0, "a": 10.0, "b": 19.8},
        {"slot": 0.1, "a": 0.05, "b": 0.05},
        {"clearance": lambda p: p["slot"] - p["a"] - p["b"], "row": lambda p: p["a"] * np.array([1.0, 3.0])},
    )
    loss = mbs.precision_loss(study, 64, seed=3)
    x = mbs.monte_carlo(study, 64, seed=3).dimensions(slice(None))
    s = x.astype(np.float32)
    off = np.abs((s[:, 0] - s[:, 1] - s[:, 2]).astype(float) - (x[:, 0] - x[:, 1] - x[:, 2]))
    row = np.abs((s[:, 1:2] * np.array([1, 3], np.float32)).astype(float) - x[:, 1:2] * np.array([1.0, 3.0])).max(1)
    for name, each in (("clearance", off), ("row", row)):
        np.testing.assert_allclose([loss.median[name], loss.largest[name]], [np.median(each), each.max()], atol=1e-12)
    assert (loss.changed, loss.sequences, loss.samples) == (0, 0, 64)


def test_samples_that_single_precision_cannot_hold_change_class():
    study = mbs.Study(lambda p: p, {"a": 1.0}, {"a": mbs.Uniform(0.5)}, {"large": lambda p: 3.4e38 * p["a"]})
    loss = mbs.precision_loss(study, 64)
    x = mbs.monte_carlo(study, 64).dimensions(slice(None))[:, 0]
    beyond = 3.4e38 * x > float(np.finfo(np.float32).max)
    assert 0 < loss.changed == beyond.sum() < 64
    single = (np.float32(3.4e38) * x[~beyond].astype(np.float32)).astype(float)
    np.testing.assert_allclose(loss.largest["large"], np.abs(single - 3.4e38 * x[~beyond]).max(), rtol=1e-9)


def test_a_study_in_single_precision_is_refused():
    with jax.enable_x64(False):
        study = mbs.Study(lambda p: p, {"a": 1.0}, {"a": 0.1}, {"a": lambda p: p["a"]})
        with pytest.raises(ValueError, match="double precision"):
            mbs.precision_loss(study, 8)
