"""Simulation as a user meets it: batches, triggers, states, and what happens when things go wrong."""

import functools

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from tests.impacts import FLAT, TWO_TURNS, ball, flat_follower, turning


SIZES = {"max_steps": 160, "max_events": 20}


@functools.cache
def follower_run():
    """From the dimensions of a cam-follower to its final state and its events."""

    def run(p):
        drive = turning(p["omega"])
        mech = flat_follower(p, p["restitution"])
        state = mbs.state(mech, drive=drive, throw=False)
        ts = jnp.array([TWO_TURNS])
        sol = mbs.simulate(mech, state, TWO_TURNS, ts=ts, drive=drive, rest_speed=1e-3, throw=False, **SIZES)
        return sol.q[-1], sol.v[-1], sol.events.t, sol.events.count, sol.result == mbs.RESULTS.successful

    return jax.jit(run), jax.jit(jax.vmap(run))


@pytest.mark.long
def test_each_lane_of_4096_variants_is_its_own_run():
    one, many = follower_run()
    nominal = {**FLAT, "restitution": 0.3}
    keys = jax.random.split(jax.random.key(1), len(nominal))
    p = {k: v * (1 + 0.03 * jax.random.normal(key, (4096,))) for key, (k, v) in zip(keys, nominal.items())}
    q, v, t, count, fine = many(p)
    assert bool(jnp.all(fine))
    assert len(np.unique(count)) > 3  # different courses
    for i in (*range(0, 4096, 512), int(np.argmin(count)), int(np.argmax(count))):
        alone = one({k: x[i] for k, x in p.items()})
        np.testing.assert_allclose(q[i], alone[0], atol=1e-9)
        np.testing.assert_allclose(v[i], alone[1], atol=1e-9)
        np.testing.assert_allclose(t[i], alone[2], atol=1e-9)
        assert count[i] == alone[3]


def pendulum(mass=1.0):
    return mbs.Mechanism(
        [mbs.Body("bob", mass=mass, center=(0.0, -1.0))], [mbs.Revolute("O", "ground", "bob")], gravity=(0.0, -9.81)
    )


def swing(velocity=2.0, t1=1.0, **options):
    mech = pendulum()
    return mbs.simulate(mech, mbs.state(mech, {"O": 0.5}, {"O": velocity}), t1, ts=jnp.array([t1]), **options)


def test_trigger_is_located_and_stops():
    """The pendulum turns back where its energy says: cos q = cos q0 - v0^2 / (2 g)."""
    mech = pendulum()
    turn = mbs.Trigger("turns back", lambda at: at["O"].v, stop=True)
    sol = mbs.simulate(mech, mbs.state(mech, {"O": 0.5}, {"O": 2.0}), 1.0, ts=jnp.array([0.1, 1.0]), triggers=[turn])
    (event,) = sol.events.list(mech, sol.triggers)
    assert (event.kind, event.contact) == ("triggered", "turns back")
    np.testing.assert_allclose(sol.events.q[0, 0], np.arccos(np.cos(0.5) - 4 / (2 * 9.81)), atol=1e-9)
    np.testing.assert_allclose(sol.stopped_at, event.t)
    assert np.isfinite(sol.q[0]).all() and np.isnan(sol.q[1]).all()
    assert "turns back" in str(sol)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"max_steps": 3}, "maximum number of steps"),
        ({"ts": [2.0]}, "output times must increase"),
        ({"ts": []}, "at least one number"),
        ({"triggers": ["x"]}, "must be a Trigger"),
    ],
)
def test_bad_runs_say_so(options, message):
    mech = pendulum()
    with pytest.raises((ValueError, RuntimeError), match=message):
        mbs.simulate(mech, mbs.state(mech, {"O": 0.5}), 1.0, **{"ts": [1.0], **options})


@pytest.mark.long
def test_too_many_events_say_so():
    mech = ball(0.9)
    with pytest.raises(RuntimeError, match="maximum number of contact events"):
        mbs.simulate(mech, mbs.state(mech, {"height": 0.2}), 2.0, ts=[2.0], max_steps=32, max_events=4)


def test_states_off_the_constraints_say_how_far():
    mech = pendulum()
    driven = {"O": mbs.constant_speed(1.0)}
    with pytest.raises(ValueError, match="velocities of the state do not go together .* by 1"):
        mbs.simulate(mech, mbs.state(mech), 1.0, ts=[1.0], drive=driven)
    with pytest.raises(ValueError, match="'O' is driven"):
        mbs.state(mech, {"O": 1.0}, drive=driven)
    with pytest.raises(ValueError, match="'O' is driven"):
        mbs.state(mech, velocities={"O": 1.0}, drive=driven)
    with pytest.raises(ValueError, match="unknown joint 'Q'"):
        mbs.state(mech, velocities={"Q": 1.0})
    triangle = mbs.Mechanism(
        [mbs.Body("left", mass=1.0), mbs.Body("right", mass=1.0)],
        [
            mbs.Revolute("A", "ground", "left", start=1.0),
            mbs.Revolute("B", "ground", "right", (5.0, 0.0), start=2.0),
            mbs.Revolute("C", "left", "right", (3.0, 0.0), (4.0, 0.0)),
        ],
    )
    with pytest.raises(ValueError, match="do not go together with the constraints"):
        mbs.state(triangle, velocities={"A": 1.0})
    off = mbs.State(jnp.array([1.0, 2.0, 0.5]), jnp.zeros(3), jnp.zeros(()))
    with pytest.raises(ValueError, match="off the constraints by"):
        mbs.simulate(triangle, off, 1.0, ts=[1.0])


def test_freedom_without_inertia_is_named():
    mech = mbs.Mechanism(
        [mbs.Body("bob", mass=1.0, center=(1.0, 0.0)), mbs.Body("pointer")],
        [mbs.Revolute("O", "ground", "bob"), mbs.Revolute("P", "bob", "pointer", (1.0, 0.0))],
    )
    with pytest.raises(ValueError, match="nothing has inertia when 'P' moves"):
        mbs.simulate(mech, None, 1.0, ts=[1.0])


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: mbs.Mechanism([mbs.Body("b")], [mbs.Revolute("O", "ground", "b")], forces=[mbs.Spring("o")]),
         "unknown coordinate"),
        (lambda: mbs.Mechanism([mbs.Body("b")], [mbs.Revolute("O", "ground", "b")], forces=[mbs.Load("c", torque=1.0)]),
         "unknown body 'c'"),
        (lambda: mbs.Mechanism([mbs.Body("b")], [mbs.Revolute("O", "ground", "b")], forces=["pull"]), "forces of a"),
        (lambda: mbs.Load("b"), "needs a force or a torque"),
        (lambda: mbs.Load("b", force=(1.0, 0.0), fixed_in="moon"), "fixed_in"),
        (lambda: mbs.Spring("O", acts="sideways"), "acts"),
        (lambda: mbs.Contact("C", "a.x", "b.y", restitution=1.5), "between 0 and 1"),
        (lambda: mbs.Contact("C", "a.x", "b.y", law="hard"), "contact law"),
        (lambda: mbs.Hertz(-1.0), "must be positive"),
        (lambda: mbs.Mechanism([mbs.Body("b")], [mbs.Revolute("O", "ground", "b")], gravity=9.81), "gravity"),
    ],
)  # fmt: skip
def test_bad_forces_name_the_culprit(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_bodies_that_overlap_at_the_start_are_refused():
    mech = flat_follower()
    sunk = eqx.tree_at(lambda m: m.joints[1].start, mech, jnp.array([0.04]))
    drive = turning()
    state = mbs.state(sunk, drive=drive)
    deep = mbs.State(state.q.at[1].add(-0.01), state.v, state.t)
    with pytest.raises(ValueError, match="off the constraints"):
        mbs.simulate(sunk, deep, TWO_TURNS, drive=drive, ts=[TWO_TURNS], **SIZES)


def test_progress_is_shown(capfd):
    swing(progress_meter=diffrax.TextProgressMeter(minimum_increase=0.1))
    jax.effects_barrier()
    shown = [float(x.strip("%")) for x in capfd.readouterr().out.split()]
    assert shown[0] == 0 and shown[-1] == 100 and shown == sorted(shown) and len(shown) > 4
