"""Results are read by name, and by kind."""

import equinox as eqx
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
def test_batches_are_read_by_kind():
    kind = KINDS["loop"]
    run = lambda p: mbs.kinematics(kind.mech(p), kind.drive, TS, estimate=kind.estimate, throw=False)
    found = jax.vmap(lambda p: mbs.assemble(kind.mech(p), kind.estimate, throw=False))(jnp.array([1.0, 1.1]))
    motions = jax.vmap(run)(jnp.array([1.0, 1.1]))
    assert motions.coordinate("D").v.shape == motions.gauge("span").a.shape == (2, 5)
    np.testing.assert_array_equal(motions.lane(1).gauge("span").q, motions.gauge("span").q[1])
    assert found.gauge("span").shape == (2,) and found.configuration.coordinate("D").shape == (2,)
    assert found.pose("crank").shape == (2, 4, 4) and found.point("crank", "E").shape == (2, 2)


def test_event_times_are_read_by_name_and_kind(runs):
    """Of a log written by hand: times of one contact, one kind, in order; batches have their axes first."""
    motion, sol, _ = runs
    hard, soft = (sol.sources().index(name) for name in ("hard", "soft"))
    impact, closed = (mbs.EVENTS.index(kind) for kind in ("impact", "closed"))
    room = sol.events.t.shape[0]
    told = [(0.3, impact, hard), (0.1, impact, soft), (0.2, impact, hard), (0.4, closed, hard)]
    t, kind, contact = (np.array([x[i] for x in told] + [pad] * (room - 4)) for i, pad in enumerate((np.inf, 0, 0)))
    where = lambda run: (run.events.t, run.events.kind, run.events.contact)
    written = eqx.tree_at(where, sol, tuple(jnp.asarray(x) for x in (t, kind, contact)))
    rest = [np.inf] * room
    for source, what, due in (("hard", "impact", [0.2, 0.3]), ("soft", "impact", [0.1]), ("soft", "slips", [])):
        np.testing.assert_array_equal(written.event_times(source, what), (due + rest)[:room])
    both = jax.tree_util.tree_map(lambda x, y: jnp.stack([x, y]), written, sol)
    found = both.event_times("hard", "closed")
    np.testing.assert_array_equal(found[0], ([0.4] + rest)[:room])
    np.testing.assert_array_equal(found[1], sol.event_times("hard", "closed"))
    with pytest.raises(KeyError, match="an unknown contact, joint with friction, switch or trigger 'Y'; there are 'h"):
        motion.event_times("Y", "impact")
    with pytest.raises(ValueError, match="an unknown kind of event 'impacts'; did you mean 'impact'"):
        sol.event_times("hard", "impacts")
