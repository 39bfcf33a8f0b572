"""What is successful has closed its loops: each analysis is made to miss them, and says so, lane by lane."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax._dynamics import equilibrium as equilibrium_module, loop
from mbsjax._events.closure import CLOSED, is_closed
from mbsjax._kinematics import continuation, displaced as displaced_module


RESULTS = mbs.RESULTS
TS = jnp.array([0.0, 0.6, 1.2])


def slider_crank(name: str, rod=3.0, **options) -> mbs.Mechanism:
    """A crank of length 1. Its name gives it programs of its own, in which what a test has changed stays."""
    rod = jnp.asarray(rod, float)
    joints = [
        mbs.Revolute("A", "ground", "crank"),
        mbs.Revolute("B", "crank", name, (1.0, 0.0), **options),
        mbs.Revolute("C", name, "slider", jnp.stack([rod, 0.0 * rod])),
        mbs.Prismatic("P", "ground", "slider", start=3.0),
    ]
    bodies = [mbs.Body(x, mass=1.0, inertia=0.1) for x in ("crank", name, "slider")]
    return mbs.Mechanism(bodies, joints, forces=[mbs.Spring("P", stiffness=5.0, free_length=3.5)])


def names(result) -> list[str]:
    """The results of all lanes."""
    every = list(RESULTS._name_to_item)
    return [every[k] for k in np.atleast_1d(np.asarray(result._value))]


def test_closed_is_a_part_of_the_size_and_no_number_is_not_closed():
    assert [CLOSED.double, CLOSED.single] == [1e-10, 1e-4]
    rows = jnp.array([[0.0, 9e-11, 2e-10, jnp.nan], [0.0, -9e-11, 0.0, 0.0]])
    assert is_closed(rows).tolist() == [True, True, False, False]
    assert bool(is_closed(jnp.zeros(0)))


def test_positions_that_cannot_be_assembled():
    """A rod that is too short for an upright crank: `assemble` and `equilibrium` by their result, `state` by NaN or an
    error; so does `assemble` where it is not given the steps."""

    def found(rod):
        mech = slider_crank("rod", rod)
        upright = {"A": jnp.pi / 2}
        return (
            mbs.assemble(mech, fixed=upright, throw=False),
            mbs.assemble(mech, fixed=upright, throw=False, max_steps=1),
            mbs.state(mech, upright, throw=False),
        )

    whole, hasty, state = jax.jit(jax.vmap(found))(jnp.array([3.0, 0.5]))
    assert names(whole.result) == ["successful", "not_assembled"]
    assert names(hasty.result) == ["not_assembled", "not_assembled"]
    assert float(whole.residual[0]) <= 1e-10 < float(hasty.residual[0])
    assert np.isfinite(state.q[0]).all() and np.isnan(state.q[1]).all()
    upright = jax.jit(lambda rod: mbs.state(slider_crank("rod", rod), {"A": jnp.pi / 2}).q)
    with pytest.raises(Exception, match="could not be closed"):
        upright(0.5).block_until_ready()


def test_driven_motions_and_their_forces(monkeypatch):
    """With any correction taken for the last one, outputs are open where the crank turns, and closed where it rests."""
    monkeypatch.setattr(continuation, "_CONVERGED", 1e8)
    monkeypatch.setattr(continuation, "_LEFT", 1e18)
    turning = lambda speed: mbs.inverse_dynamics(
        slider_crank("hasty"), {"A": mbs.constant_speed(speed, 0.5)}, TS, throw=False
    )
    efforts = jax.jit(jax.vmap(turning))(jnp.array([0.0, 1.0]))
    assert names(efforts.result) == ["successful", "not_closed"]
    motion = efforts.motion
    assert np.isfinite(motion.q[0]).all() and float(motion.residual[0].max()) <= 1e-10
    assert np.isnan(motion.q[1, 1:]).all() and np.isnan(efforts.drive[1, 1:]).all()
    np.testing.assert_allclose(motion.stopped_at, [np.inf, TS[1]])


def test_simulations(monkeypatch):
    """With steps that are taken however far they are off, and coarse ones, outputs are open."""
    monkeypatch.setattr(loop, "_CLOSER", 1e9)
    mech = slider_crank("coarse")

    def thrown(speed):
        begin = mbs.state(mech, {"A": 0.5}, {"A": speed}, throw=False)
        return mbs.simulate(mech, begin, 1.2, ts=TS, rtol=0.1, atol=0.1, max_steps=64, throw=False)

    sol = jax.jit(jax.vmap(thrown))(jnp.array([4.0, 6.0]))
    assert names(sol.result) == ["not_closed", "not_closed"]
    assert np.isnan(sol.q[:, -1]).any() and np.isfinite(sol.stopped_at).all()
    assert np.isfinite(sol.q[:, 0]).all() and float(sol.residual[:, 0].max()) <= 1e-10


def test_positions_of_rest(monkeypatch):
    """A last step off the constraints by a millionth."""
    step = equilibrium_module._implicit_step
    off = lambda *args: (step(*args)[0] + 1e-6, step(*args)[1])
    mech = slider_crank("off")
    with monkeypatch.context() as patched:
        patched.setattr(equilibrium_module, "_implicit_step", off)
        rest = mbs.equilibrium(mech, {"A": 0.5}, throw=False)
        assert names(rest.result) == ["no_equilibrium"]
        with pytest.raises(RuntimeError, match="No position of rest was found"):
            mbs.equilibrium(mech, {"A": 0.5})
    with pytest.raises(ValueError, match="there is no equilibrium to linearize about: No position of rest"):
        mbs.linearize(rest)
    with pytest.raises(ValueError, match=r"off the constraints by 3e-06 .*make the state with"):
        mbs.linearize(mech, rest.state)


def test_friction_that_holds():
    """A rod that cannot be assembled holds nothing."""

    def held(rod):
        mech = slider_crank("rubbing", rod, friction=mbs.DryTorque(4.0))
        return mbs.holding(mech, {"A": jnp.pi / 2}, throw=False)

    rest = jax.jit(jax.vmap(held))(jnp.array([3.0, 0.5]))
    assert names(rest.result) == ["successful", "not_assembled"]
    assert np.isfinite(rest.share[0]) and np.isnan(rest.share[1]) and not bool(rest.held[1])


def test_pins_that_lie_elsewhere(monkeypatch):
    mech = slider_crank("loose", play=0.02)
    motion = mbs.kinematics(mech, {"A": mbs.constant_speed(1.0, 0.5)}, TS)
    search = displaced_module.levenberg_marquardt
    monkeypatch.setattr(displaced_module, "levenberg_marquardt", lambda p, q, t, steps: search(p, q, t, 0))
    moved = mbs.displaced(motion, {"B": (1.0, 0.0)})
    assert names(moved.result) == ["not_assembled"] and np.isnan(moved.q).all()


def test_linkages_that_nearly_lock_do_not_turn_on_for_many_turns():
    """Beside a dead center velocities are large, and a step that follows them lands anywhere: a position some turns
    away closes the loops too. Four-bars within 1e-9 to 0.1 of locking, against the law of cosines."""

    def run(ground, phase, speed):
        mech = mbs.Mechanism(
            [mbs.Body("crank"), mbs.Body("coupler"), mbs.Body("rocker")],
            [
                mbs.Revolute("A", "ground", "crank"),
                mbs.Revolute("B", "crank", "coupler", (1.0, 0.0)),
                mbs.Revolute("C", "coupler", "rocker", (3.0, 0.0), (2.5, 0.0)),
                mbs.Revolute("D", "ground", "rocker", (ground, 0.0), start=1.5),
            ],
        )
        return mbs.kinematics(mech, {"A": lambda t: phase + speed * t}, ts, throw=False)

    n, ts, rng = 512, jnp.linspace(0.0, 2 * jnp.pi, 13), np.random.default_rng(0)
    ground = 4.5 - 10 ** rng.uniform(-9, -1, n)
    phase = rng.uniform(-1.5, 1.5, n) * (rng.random(n) < 0.5)
    speed = np.where(rng.random(n) < 0.5, 1.0, 10 ** rng.uniform(-0.3, 0.5, n) * rng.choice([-1, 1], n))
    motion = jax.jit(jax.vmap(run))(ground, phase, speed)
    assert bool(jnp.all(motion.result == mbs.RESULTS.successful))
    angle = phase[:, None] + speed[:, None] * np.asarray(ts)
    across = 1 + ground[:, None] ** 2 - 2 * ground[:, None] * np.cos(angle)
    cosine = (3.0**2 + 2.5**2 - across) / (2 * 3.0 * 2.5)
    np.testing.assert_allclose(np.cos(motion.q[:, :, 2]), cosine, atol=1e-12)
    np.testing.assert_allclose(motion.q[:, :, 2], np.arccos(np.clip(cosine, -1, 1)), atol=1e-6)
