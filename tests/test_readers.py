"""Results are read by name, and by kind."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from tests.kinds import KINDS


TS = jnp.linspace(0.0, 0.2, 5)


def ran():
    kind = KINDS["ball"]
    mech = kind.mech(jnp.array(1.0))
    start = mbs.state(mech, kind.positions, kind.velocities, drive=kind.moves)
    return (
        mbs.kinematics(mech, kind.drive, TS, estimate=kind.estimate),
        mbs.simulate(mech, start, 0.2, ts=TS, drive=kind.moves, max_steps=128, max_events=8),
        mbs.assemble(mech, kind.estimate),
    )


@pytest.fixture(scope="module")
def runs():
    return ran()


def test_each_kind_is_what_the_short_way_gives(runs):
    for run in runs:
        for short, long in (
            (run["Y"], run.coordinate("Y")),
            (run["far"], run.gauge("far")),
            (run["soft"], run.contact("soft")),
        ):
            assert type(short) is type(long)
            for a, b in zip(jax.tree_util.tree_leaves(short), jax.tree_util.tree_leaves(long), strict=True):
                np.testing.assert_array_equal(a, b)
    motion, sol, _ = runs
    assert isinstance(motion.contact("hard"), mbs.ContactTrack) and isinstance(sol.contact("hard"), mbs.ContactForce)
    assert isinstance(motion.gauge("far"), mbs.Track)


def test_a_name_of_another_kind_tells_its_reader(runs):
    for run in runs:
        with pytest.raises(KeyError, match=r"'hard' is a contact: read it with \.contact\('hard'\)"):
            run.coordinate("hard")
        with pytest.raises(KeyError, match=r"'Y' is a coordinate: read it with \.coordinate\('Y'\)"):
            run.contact("Y")
        with pytest.raises(KeyError, match=r"'far' is a gauge: read it with \.gauge\('far'\)"):
            run.coordinate("far")
        with pytest.raises(KeyError, match=r"'ball' is a body: read it with \.point\('ball'\) or \.pose\('ball'\)"):
            run.gauge("ball")
        with pytest.raises(KeyError, match="an unknown coordinate, gauge or contact 'Z'; there are 'X', 'Y', 'far'"):
            run.contact("Z")


def test_contacts_of_a_mechanism_without_any():
    mech = KINDS["tree"].mech(jnp.array(1.0))
    motion = mbs.kinematics(mech, KINDS["tree"].drive, TS)
    with pytest.raises(KeyError, match=r"'A' is a coordinate: read it with \.coordinate\('A'\)"):
        motion.contact("A")


def test_batches_are_read_by_kind():
    kind = KINDS["loop"]
    run = lambda p: mbs.kinematics(kind.mech(p), kind.drive, TS, estimate=kind.estimate, throw=False)
    found = jax.vmap(lambda p: mbs.assemble(kind.mech(p), kind.estimate, throw=False))(jnp.array([1.0, 1.1]))
    motions = jax.vmap(run)(jnp.array([1.0, 1.1]))
    assert motions.coordinate("D").v.shape == motions.gauge("span").a.shape == (2, 5)
    np.testing.assert_array_equal(motions.lane(1).gauge("span").q, motions.gauge("span").q[1])
    assert found.gauge("span").shape == (2,) and found.configuration.coordinate("D").shape == (2,)
    assert found.pose("crank").shape == (2, 4, 4) and found.point("crank", "E").shape == (2, 2)
