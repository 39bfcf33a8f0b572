"""Synthesis through events: dimensions identified from the dates of contacts, and a trip point set by gradient."""

from math import pi

import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs


DIMENSIONS = {"crank": 2.0, "rod": 4.0, "corner": -0.7, "low": -2.2, "coupler": 4.0}


def crank_slider_and_four_bar(p):
    """The mechanism of the thesis 2.6 with the masses of 3.7, and a spring and a damper that press the four-bar on."""
    nose = mbs.Profile.chain([mbs.Arc((0.0, 0.0), 1.0, -pi / 2, pi)], closed=False)
    top, corner, tip = (-0.1, -0.4), (p["corner"], p["low"]), (-0.1, -3.6)
    arcs = [mbs.Arc.between(a, b, radius=6.0) for a, b in ((top, corner), (corner, tip))]
    shapes = {"L4": {"nose": nose}, "L5": {"flank": mbs.Profile.chain(arcs, closed=False)}}
    table = {"L2": (2.5, 1e3, 1.0), "L3": (5.0, 20.0, 2.0), "L4": (1.0, 1.0, 0.0), "L5": (2.5, 15.0, 0.0),
             "L6": (5.0, 20.0, 2.0), "L7": (2.5, 15.0, 1.25)}  # fmt: skip
    bodies = [
        mbs.Body(name, mass=m, inertia=i, center=(x, 0.0), profiles=shapes.get(name, {}))
        for name, (m, i, x) in table.items()
    ]
    return mbs.Mechanism(
        bodies,
        [
            mbs.Revolute("R12", "ground", "L2", start=pi),
            mbs.Revolute("R23", "L2", "L3", (p["crank"], 0.0), start=-pi),
            mbs.Revolute("R34", "L3", "L4", (p["rod"], 0.0)),
            mbs.Prismatic("P14", "ground", "L4", start=2.0),
            mbs.Revolute("R15", "ground", "L5", (6.6, 2.2), start=-0.3),
            mbs.Revolute("R56", "L5", "L6", (0.0, 2.5), start=0.3),
            mbs.Revolute("R67", "L6", "L7", (p["coupler"], 0.0), (2.5, 0.0)),
            mbs.Revolute("R17", "ground", "L7", (10.6, 2.2), start=1.27),
            mbs.Contact("C45", "L4.nose", "L5.flank"),
        ],
        forces=[mbs.Spring("R15", stiffness=1e4, free_length=-0.58, damping=1e3)],
        gravity=(0.0, -9.81),
    )


def run(p):
    mech, drive = crank_slider_and_four_bar(p), {"R12": mbs.constant_speed(-8.0, pi)}
    state = mbs.state(mech, drive=drive, throw=False)
    return mbs.simulate(mech, state, 1.9, ts=np.array([1.9]), drive=drive, rest_speed=1e-3, max_steps=400,
                        max_events=12, throw=False)  # fmt: skip


@pytest.mark.slow
def test_dimensions_are_identified_from_nine_event_times():
    """Formed, arc to point to arc, broken, twice, and formed again: five dimensions, each off by a hundredth, are found
    again from these dates."""
    true = np.array(list(DIMENSIONS.values()))
    off = true * (1 + 0.01 * np.array([1, -1, 1, 1, -1]))
    free = {name: tuple(sorted((0.9 * x, 1.1 * x))) for name, x in DIMENSIONS.items()}
    dates = lambda sol: jnp.where(jnp.isfinite(sol.events.t[:9]), sol.events.t[:9], 1e3)
    make = lambda start, wanted: mbs.Task(run, start, free, {"dates": mbs.Match(dates, wanted)})
    begin = {name: jnp.asarray(x) for name, x in DIMENSIONS.items()}
    look = mbs.synthesize(make(begin, np.zeros(9)), starts=true[None], max_steps=1)  # the same program, for the dates
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


@pytest.mark.slow
def test_trip_point_of_a_latch_is_set_by_gradient():
    """At 3.0 mm: the nose is over the end of the ramp where the ramp's length less r sin(slope) was pulled."""
    task = mbs.Task(pulled, {"ramp": 3.6}, {"ramp": (2.5, 3.7)}, {"trip": mbs.Match(trip, 3.0)}, exact=True)
    found = mbs.synthesize(task)
    length = float(found.best.dimensions["ramp"])
    assert found.best.objective < 1e-20
    # with the shorter ramp the bolt is down in time: another sequence, which is told
    assert found.jumps == 1 and "the sequence of contacts changed in 1 steps" in repr(found)
    np.testing.assert_allclose(length - NOSE * np.sin(np.arctan2(RISE, length)), 3.0, atol=1e-9)
