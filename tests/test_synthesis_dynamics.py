"""Synthesis through events: dimensions identified from the times of contacts, and a trip point set by gradient."""

from math import pi

import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from tests.contacts import T7, heavy_crank_slider


def run(p):
    mech, drive = heavy_crank_slider(0.0, p), {"R12": mbs.constant_speed(-8.0, pi)}
    state = mbs.state(mech, {"R15": -0.58}, drive=drive, throw=False)  # where the spring is relaxed
    return mbs.simulate(mech, state, 1.9, ts=np.array([1.9]), drive=drive, rest_speed=1e-3, max_steps=400,
                        max_events=12, throw=False)  # fmt: skip


@pytest.mark.long
def test_dimensions_are_identified_from_nine_event_times():
    """Formed, arc to point to arc, broken, twice, and formed again: five dimensions, each off by a hundredth, are found
    again from these times."""
    true = np.array(list(T7.values()))
    off = true * (1 + 0.01 * np.array([1, -1, 1, 1, -1]))
    free = {name: tuple(sorted((0.9 * x, 1.1 * x))) for name, x in T7.items()}
    times = lambda sol: jnp.where(jnp.isfinite(sol.events.t[:9]), sol.events.t[:9], 1e3)
    make = lambda start, wanted: mbs.Task(run, start, free, {"times": mbs.Match(times, wanted)})
    begin = {name: jnp.asarray(x) for name, x in T7.items()}
    look = mbs.synthesize(make(begin, np.zeros(9)), starts=true[None], max_steps=1)  # the same program, for the times
    wanted = look.best.y
    assert np.all(np.diff(wanted) > 0) and wanted[-1] < 1.9
    found = mbs.synthesize(make(begin, wanted), starts=off[None], max_steps=60)
    np.testing.assert_allclose(found.best.x, true, rtol=1e-8)
    assert found.best.objective < 1e-18 and found.jumps == 0


RISE, NOSE = 1.2, 0.5


def latch(p):
    """A slide is pulled under a bolt, whose nose climbs a ramp and trips over its end; a spring presses it down."""
    length = p["ramp"]
    ramp = [mbs.Line((length, RISE - 3.0), (length, RISE)), mbs.Line((length, RISE), (0.0, 0.0))]
    return mbs.Mechanism(
        [
            mbs.Body("slide", mass=1.0, profiles={"ramp": mbs.Profile.chain(ramp, closed=False)}),
            mbs.Body("bolt", mass=0.05, profiles={"nose": mbs.disc(NOSE)}),
        ],
        [
            mbs.Prismatic("pull", "ground", "slide", start=-1.0),
            mbs.Prismatic("lift", "ground", "bolt", axis=(0.0, 1.0), start=0.8),
            mbs.Contact("hold", "slide.ramp", "bolt.nose", active=True),
        ],
        forces=[mbs.Spring("lift", stiffness=10.0, free_length=-2.0, damping=0.5)],
    )


def pulled(p):
    mech, drive = latch(p), {"pull": lambda t: -1.0 - t}
    state = mbs.state(mech, drive=drive, throw=False)
    return mbs.simulate(mech, state, 2.8, ts=np.array([2.8]), drive=drive, max_steps=512, max_events=8, throw=False)


def trip(sol):
    """How far the slide was pulled when the nose comes to the end of the ramp."""
    there = (sol.events.kind == mbs.EVENTS.index("transition")) & jnp.isfinite(sol.events.t)
    return jnp.where(jnp.any(there), 1.0 + sol.events.t[jnp.argmax(there)], jnp.nan)


@pytest.mark.long
def test_trip_point_of_a_latch_is_set_by_gradient():
    """At 3.0 mm: the nose is over the end of the ramp where the ramp's length less r sin(slope) was pulled."""
    task = mbs.Task(pulled, {"ramp": 3.6}, {"ramp": (2.5, 3.7)}, {"trip": mbs.Match(trip, 3.0)}, exact=True)
    found = mbs.synthesize(task)
    length = float(found.best.dimensions["ramp"])
    assert found.best.objective < 1e-20
    # with the shorter ramp the bolt is down in time: another sequence, which is told
    assert found.jumps == 1 and "the sequence of contacts changed in 1 steps" in repr(found)
    np.testing.assert_allclose(length - NOSE * np.sin(np.arctan2(RISE, length)), 3.0, atol=1e-9)
