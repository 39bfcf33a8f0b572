"""The latch with tolerances: what releases it early, and how often it jams."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import mbsjax as mbs
from tests.latch import DIMENSIONS, latch


CONTACTS = [c.name for c in latch().contacts]
TOLERANCE = 0.02


def run(p):
    mech = latch(0.0, p)
    start = mbs.state(mech, throw=False)
    return mbs.simulate(mech, start, 2.0, ts=jnp.array([0.05, 2.0]), max_steps=1024, throw=False)


def release(sol):
    """When the sear lets go of the first tooth; blows may part them for a moment before that."""
    log = sol.events
    there = (log.kind == mbs.EVENTS.index("released")) & (log.contact == CONTACTS.index("C26")) & jnp.isfinite(log.t)
    last = log.t.shape[0] - 1 - jnp.argmax(there[::-1])
    return jnp.where(jnp.any(there), log.t[last], jnp.inf)


def travel(sol):
    """Where the slide stands in the end: 6 where it is stopped by its second tooth."""
    return sol["P16"].q[-1]


@pytest.mark.long
def test_what_releases_it_early_and_how_often_it_jams():
    tolerances = dict.fromkeys(DIMENSIONS, mbs.Normal(TOLERANCE))
    measures = {"release": release, "travel": travel}
    study = mbs.Study(run, DIMENSIONS, tolerances, measures, limits={"travel": (5.9, 6.1)})
    np.testing.assert_allclose(study.at_nominal.values[1], 6.0, atol=1e-9)
    sample = mbs.monte_carlo(study, 192, chunk=192)

    # Parts that cannot be put together: the trigger's finger is in the sear's tail. Their clearance is 0.02.
    x = dict(zip(study.names, sample.dimensions(np.arange(192)).T))
    lift = (x["nose"] - 0.3) / x["reach"] * 1.9  # the sear turns a little when its nose is larger; 1.9 from its pivot
    clearance = x["pivot"] - 0.3 - x["tail"] - x["finger"] + lift
    failed = sample.kind == mbs.CLASSES.index("overlapping")
    clear_cut = np.abs(clearance) > 1e-3
    np.testing.assert_array_equal(failed[clear_cut], clearance[clear_cut] < 0)
    expected = stats.norm.cdf(-0.02 / (TOLERANCE / 3 * 3**0.5))
    assert abs(failed.mean() - expected) < 3 * np.sqrt(expected * (1 - expected) / 192) + 0.01
    assert np.all(np.isnan(sample["travel"][failed]))

    # Which dimension releases it early: all that bring finger and tail together, and by as much as each other.
    found = sample.regression("release")
    slope, error = (dict(zip(study.names, v)) for v in (found.slopes, found.errors))
    assert found.explained > 0.9
    early = sorted(study.names, key=lambda name: -abs(slope[name]))[:3]
    assert set(early) == {"tail", "finger", "pivot"}
    assert slope["tail"] < -5 * error["tail"] and slope["finger"] < -5 * error["finger"]
    assert slope["pivot"] > 5 * error["pivot"]
    np.testing.assert_allclose(slope["finger"], slope["tail"], rtol=0.15)
    for name in set(study.names) - set(early):
        assert abs(slope[name]) < 0.2 * abs(slope["tail"])

    # How often it jams, or runs through: rejects of the travel, failures among them.
    p, error = sample.tally.rejects["travel"]
    stopped = np.abs(sample["travel"] - 6.0) < 0.1
    np.testing.assert_allclose(p, 1 - stopped.mean())
    assert failed.mean() <= p < 0.25 and error > 0
    assert 0 < sample.tally.changed[0] <= 1
