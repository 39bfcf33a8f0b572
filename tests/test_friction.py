"""Stick and slip of blocks and discs against closed forms, with derivatives, in every lane of a batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax._dynamics.build import _friction
from mbsjax._dynamics.friction import SlidingProblem
from mbsjax._kinematics.system import system


G, T_END, LANES = 9.81, 1.5, 256
NAMES = [mbs.EVENTS.index(name) for name in ("sticks", "slips", "reverses")]
STICKS, SLIPS, REVERSES = NAMES


# -- a block on a ramp, in a guide, on a spring ------------------------------------------------------------------------


def block(p):
    """On a guide that climbs with the angle alpha, thrown upwards with v0; a spring may draw it back."""
    friction = mbs.JointFriction(p["mu"], p["static"])
    return mbs.Mechanism(
        [mbs.Body("block", mass=2.0)],
        [mbs.Prismatic("x", "ground", "block", friction=friction)],
        forces=[mbs.Spring("x", stiffness=p["k"])],
        gravity=(-G * jnp.sin(p["alpha"]), -G * jnp.cos(p["alpha"])),
    )


def slide(p, max_steps=96):
    mech = block(p)
    begin = mbs.State(jnp.reshape(p["x0"], 1), jnp.reshape(p["v0"], 1), jnp.zeros(()))
    return mbs.simulate(
        mech,
        begin,
        T_END,
        ts=jnp.array([0.0, T_END]),
        max_steps=max_steps,
        max_events=12,
        rtol=1e-11,
        atol=1e-11,
        throw=False,
    )


def told(p):
    """What a run tells: where it ends, when it first stops, and the energy that is missing."""
    sol = slide(p)
    first = jnp.where(jnp.isfinite(sol.events.t[0]), sol.events.t[0], 0.0)
    missing = sol.energy[-1] + sol.friction("x").work[-1] - sol.energy[0]
    return jnp.stack([sol.q[-1, 0], sol.v[-1, 0], first, missing])


def on_ramp(p):
    """The same, by hand, without a spring."""
    a, mu, v0 = p["alpha"], p["mu"], p["v0"]
    up, down = G * (jnp.sin(a) + mu * jnp.cos(a)), G * (jnp.sin(a) - mu * jnp.cos(a))
    holds = jnp.tan(a) <= p["static"]
    rising = v0 > 0
    # upwards: it stops, and stays or comes back
    top, way = v0 / up, v0**2 / (2 * up)
    left = T_END - top
    back = jnp.where(holds, 0.0, 1.0)
    x_up, v_up = way - back * down * left**2 / 2, -back * down * left
    # downwards, or from rest
    still = (v0 == 0) & holds
    stops = jnp.where(down < 0, v0 / jnp.where(down < 0, down, 1.0), jnp.inf)
    until = jnp.where(still, 0.0, jnp.minimum(stops, T_END))
    until = jnp.where(jnp.isfinite(until), until, T_END)
    x_down, v_down = v0 * until - down * until**2 / 2, v0 - down * until
    ends = (stops < T_END) & ~still & (v0 < 0)
    first = jnp.where(rising, top, jnp.where(ends, stops, 0.0))
    return jnp.stack([jnp.where(rising, x_up, x_down), jnp.where(rising, v_up, v_down), first, 0.0])


def ramps(key):
    u = np.random.default_rng(key).uniform(size=(4, LANES))
    speeds = np.where(u[0] < 0.15, 0.0, np.where(u[0] < 0.4, -2.0 * u[1] - 0.2, 3.0 * u[1] + 0.2))
    mu = 0.1 + 0.6 * u[2]
    p = {"alpha": 0.05 + 0.7 * u[3], "mu": mu, "static": mu * 1.2, "v0": speeds, "x0": 0 * mu, "k": 0 * mu}
    return {name: jnp.asarray(x) for name, x in p.items()}


@pytest.fixture(scope="module")
def ramp_batch():
    p = ramps(0)
    return p, jax.jit(jax.vmap(lambda p: (told(p), jax.jacfwd(told)(p))))(p)


@pytest.mark.long
def test_blocks_on_ramps_in_every_lane_with_derivatives(ramp_batch):
    p, (found, slopes) = ramp_batch
    expected, exact = jax.jit(jax.vmap(lambda p: (on_ramp(p), jax.jacfwd(on_ramp)(p))))(p)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    kinds = {(float(v) > 0) - (float(v) < 0) for v in p["v0"]}
    held = np.asarray(jnp.tan(p["alpha"]) <= p["static"])
    assert kinds == {-1, 0, 1} and 30 < held.sum() < 226
    moving = np.asarray(p["v0"] != 0)  # from rest, the speed has a derivative to one side only
    for name in ("alpha", "mu", "v0"):
        np.testing.assert_allclose(slopes[name][moving], exact[name][moving], rtol=0, atol=1e-7)


@pytest.mark.long
def test_the_reverse_mode_is_the_forward_mode(ramp_batch):
    p, (_, slopes) = ramp_batch
    few = {name: x[:32] for name, x in p.items()}
    weights = jnp.array([1.0, 0.3, -2.0, 0.0])
    back = jax.jit(jax.vmap(jax.grad(lambda p: told(p) @ weights)))(few)
    for name in ("alpha", "mu", "static", "v0", "x0", "k"):
        forth = jnp.einsum("lo,o->l", slopes[name][:32], weights)
        np.testing.assert_allclose(back[name], forth, rtol=1e-9, atol=1e-9)


@pytest.mark.long
def test_a_block_slides_from_exactly_the_static_angle():
    p = {name: x[0] for name, x in ramps(1).items()} | {"v0": jnp.zeros(()), "static": jnp.asarray(0.5)}
    for lean, moves in ((-1e-8, False), (1e-8, True)):
        end = slide(p | {"mu": jnp.asarray(0.3), "alpha": jnp.arctan(0.5) + lean}).q[-1, 0]
        assert (abs(float(end)) > 0.1) is moves


@pytest.mark.long
def test_a_dry_oscillator_loses_the_same_each_half_period_and_rests_in_its_dead_band():
    mu, k, m, x0 = 0.12, 200.0, 2.0, 0.1
    p = {"alpha": 0.0, "mu": mu, "static": mu, "v0": 0.0, "x0": x0, "k": k}
    sol = slide({name: jnp.asarray(x) for name, x in p.items()}, 1024)
    band, half = mu * m * G / k, np.pi / np.sqrt(k / m)
    turns = int(np.floor((x0 + band) / (2 * band)))  # the last of them is the stop
    expected = half * np.arange(1, turns + 1)
    assert int(sol.events.count) == turns
    np.testing.assert_allclose(sol.events.t[:turns], expected, rtol=0, atol=1e-9)
    amplitudes = (-1.0) ** np.arange(1, turns + 1) * (x0 - 2 * band * np.arange(1, turns + 1))
    np.testing.assert_allclose(sol.events.q[:turns, 0], amplitudes, rtol=0, atol=1e-9)
    kinds = sol.events.kind[:turns].tolist()
    assert kinds == [REVERSES] * (turns - 1) + [STICKS]
    assert abs(amplitudes[-1]) <= band and float(sol.q[-1, 0]) == pytest.approx(amplitudes[-1], abs=1e-9)
    assert float(sol.energy[-1] + sol.friction("x").work[-1] - sol.energy[0]) == pytest.approx(0.0, abs=1e-8)


@pytest.mark.long
@pytest.mark.parametrize("weight, speed", [(0.0, 1.0), (G, 0.0), (0.0, 0.0)])
def test_without_a_normal_force_without_speed_and_without_both(weight, speed):
    mech = mbs.Mechanism(
        [mbs.Body("block", mass=2.0)],
        [mbs.Prismatic("x", "ground", "block", friction=mbs.JointFriction(0.5))],
        gravity=(0.0, -weight),
    )
    sol = mbs.simulate(mech, mbs.state(mech, velocities={"x": speed}), 1.0, max_steps=32, ts=jnp.array([0.0, 1.0]))
    assert int(sol.events.count) == 0 and float(sol.q[-1, 0]) == pytest.approx(speed, abs=1e-12)
    assert sol.friction("x").force.tolist() == [0.0, 0.0]


# -- a disc on a ramp --------------------------------------------------------------------------------------------------

R = 0.5


def disc(p):
    """Slides and spins down a ramp of the angle alpha, with v0 along it and w0, counterclockwise."""
    floor = mbs.Profile.chain([mbs.Line((100.0, 0.0), (-100.0, 0.0))], closed=False)
    mech = mbs.Mechanism(
        [
            mbs.Body("ground", profiles={"floor": floor}),
            mbs.Body("disc", mass=2.0, inertia=R**2, profiles={"rim": mbs.disc(R)}),
        ],
        [
            mbs.Planar("P", "ground", "disc"),
            mbs.Contact("C", "ground.floor", "disc.rim", active=True, friction=p["mu"]),
        ],
        gravity=(G * jnp.sin(p["alpha"]), -G * jnp.cos(p["alpha"])),
    )
    v = jnp.stack([p["w0"], p["v0"], jnp.zeros(())])
    return mbs.simulate(
        mech,
        mbs.State(jnp.array([0.0, 0.0, R]), v, jnp.zeros(())),
        T_END,
        ts=jnp.array([0.0, T_END]),
        max_steps=96,
        max_events=6,
        throw=False,
    )


def rolls(p):
    sol = disc(p)
    first = jnp.where(jnp.isfinite(sol.events.t[0]), sol.events.t[0], 0.0)
    missing = sol.energy[-1] + sol.friction("C").work[-1] - sol.energy[0]
    last = sol["C"].sticks[-1].astype(float)
    return jnp.concatenate([sol.q[-1, :2], sol.v[-1, :2], jnp.stack([first, missing, last])])


def by_hand(p):
    """Slides with u = v + R w until that is zero; then it rolls if tan(alpha) <= 3 mu, or slides on downhill."""
    sin, cos, mu = G * jnp.sin(p["alpha"]), G * jnp.cos(p["alpha"]), p["mu"]
    u = p["v0"] + R * p["w0"]
    s = jnp.sign(u)
    slows = sin - 3 * s * mu * cos
    meets = s * slows < 0
    first = jnp.where(meets, -u / jnp.where(meets, slows, 1.0), jnp.inf)
    t1 = jnp.where(first < T_END, first, T_END)
    grips = jnp.tan(p["alpha"]) <= 3 * mu
    a1, b1 = sin - s * mu * cos, -2 * s * mu * cos / R
    left = T_END - t1
    a2, b2 = jnp.where(grips, 2 * sin / 3, sin - mu * cos), jnp.where(grips, -2 * sin / (3 * R), -2 * mu * cos / R)
    v1, w1 = p["v0"] + a1 * t1, p["w0"] + b1 * t1
    x = p["v0"] * t1 + a1 * t1**2 / 2 + v1 * left + a2 * left**2 / 2
    angle = p["w0"] * t1 + b1 * t1**2 / 2 + w1 * left + b2 * left**2 / 2
    there = first < T_END
    last = jnp.where(there & grips, 1.0, 0.0)
    return jnp.stack([angle, x, w1 + b2 * left, v1 + a2 * left, jnp.where(there, first, 0.0), 0.0, last])


@pytest.mark.long
def test_discs_slide_and_roll_in_every_lane_with_derivatives():
    u = np.random.default_rng(2).uniform(size=(4, LANES))
    p = {"alpha": 0.8 * u[0], "mu": 0.05 + 0.3 * u[1], "v0": 4 * u[2] - 2, "w0": 10 * u[3] - 5}
    p = {name: jnp.asarray(x) for name, x in p.items()}
    found, slopes = jax.jit(jax.vmap(lambda p: (rolls(p), jax.jacfwd(rolls)(p))))(p)
    expected, exact = jax.jit(jax.vmap(lambda p: (by_hand(p), jax.jacfwd(by_hand)(p))))(p)
    np.testing.assert_allclose(found[:, 4:], expected[:, 4:], rtol=0, atol=1e-9)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
    for name in p:
        np.testing.assert_allclose(slopes[name], exact[name], rtol=1e-7, atol=1e-7)
    sticks, there = np.asarray(expected[:, 6] > 0), np.asarray(expected[:, 4] > 0)
    assert min(sticks.sum(), (there & ~sticks).sum(), (~there).sum()) > 10  # rolls; turns its sliding; slides on


# -- stick-slip on a belt ----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_thousand_periods_of_stick_slip_do_not_drift():
    """A block in a guide that moves with V, held back by a spring: stick for 2 D/V, slip for the rest."""
    k, mu, static, V, m, n = 100.0, 0.25, 0.4, 0.2, 1.0, 1000
    mech = mbs.Mechanism(
        [mbs.Body("band"), mbs.Body("block", mass=m)],
        [
            mbs.Prismatic("belt", "ground", "band"),
            mbs.Prismatic("slip", "band", "block", friction=mbs.JointFriction(mu, static)),
        ],
        [mbs.Offset("x", "ground", "block", axis=(1.0, 0.0))],
        forces=[mbs.Spring("x", stiffness=k)],
        gravity=(0.0, -G),
    )
    drop, omega = (static - mu) * m * G / k, np.sqrt(k / m)
    stick, slip = 2 * drop / V, (2 * np.pi - 2 * np.arctan(drop * omega / V)) / omega
    t_end = static * m * G / k / V + (n + 0.1) * (stick + slip)
    drive = {"belt": mbs.constant_speed(V)}
    begin = mbs.state(mech, velocities={"slip": 0.0}, drive=drive)
    sol = mbs.simulate(
        mech, begin, t_end, ts=jnp.array([0.0, t_end]), drive=drive, max_steps=2**17, max_events=2 * n + 8
    )
    t = np.asarray(sol.events.t[: 2 * n + 1])
    first = static * m * G / k / V
    np.testing.assert_allclose(t[0], first, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.diff(t)[::2], slip, rtol=0, atol=1e-8)
    np.testing.assert_allclose(np.diff(t)[1::2], stick, rtol=0, atol=1e-8)
    np.testing.assert_allclose(t[-1], first + n * (stick + slip), rtol=0, atol=1e-6)


# -- soft contacts, and friction that depends on the speed -------------------------------------------------------------


@pytest.mark.long
def test_a_compliant_contact_rubs_with_the_force_of_its_law():
    """A disc slides to a stop while it settles on a soft floor: as long as it slides, m v_x' = -mu (m v_y' + m g)."""
    floor = mbs.Profile.chain([mbs.Line((9.0, 0.0), (-9.0, 0.0))], closed=False)
    m, k, mu = 2.0, 1e4, 0.3
    mech = mbs.Mechanism(
        [
            mbs.Body("ground", profiles={"floor": floor}),
            mbs.Body("cart"),
            mbs.Body("box", mass=m, profiles={"rim": mbs.disc(0.1)}),
        ],
        [
            mbs.Prismatic("x", "ground", "cart"),
            mbs.Prismatic("y", "cart", "box", axis=(0.0, 1.0)),
            mbs.Contact("C", "ground.floor", "box.rim", law=mbs.KelvinVoigt(k, 50.0), friction=mu),
        ],
        gravity=(0.0, -G),
    )
    begin = mbs.State(jnp.array([0.0, 0.1 + 1e-6]), jnp.array([1.0, 0.0]), jnp.zeros(()))
    ts = jnp.linspace(0.0, 0.5, 26)
    sol = mbs.simulate(mech, begin, 0.5, ts=ts, max_steps=512)
    slides = (np.asarray(ts) < 0.3) & np.asarray(sol["C"].active)
    free = np.sqrt(2e-6 / G)  # until it touches
    expected = 1 - mu * (G * (ts - free) + sol["y"].v + G * free)
    np.testing.assert_allclose(sol["x"].v[slides], expected[slides], rtol=0, atol=1e-8)
    np.testing.assert_allclose(
        sol["C"].friction[slides], mu * sol["C"].force[slides], rtol=1e-12
    )  # to the left, in which the floor is drawn
    assert bool(sol["C"].sticks[-1]) and slides.sum() > 10
    assert mbs.EVENTS[int(sol.events.kind[1])] == "sticks" and abs(float(sol["x"].v[-1])) < 1e-12


@pytest.mark.long
def test_a_viscous_and_a_stribeck_part():
    """m v' = -mu N - c v stops at m/c ln(1 + c v0 / mu N); with Stribeck's part as an independent integration says."""
    from scipy.integrate import solve_ivp

    def stop(**options):
        mech = mbs.Mechanism(
            [mbs.Body("block", mass=2.0)],
            [mbs.Prismatic("x", "ground", "block", friction=mbs.JointFriction(0.2, **options))],
            gravity=(0.0, -G),
        )
        begin = mbs.state(mech, velocities={"x": 3.0})
        return float(mbs.simulate(mech, begin, 3.0, ts=jnp.array([0.0, 3.0]), max_steps=256, rtol=1e-11).events.t[0])

    load = 0.2 * 2.0 * G
    assert stop(viscous=1.5) == pytest.approx(2 / 1.5 * np.log(1 + 1.5 * 3 / load), abs=1e-9)
    still = lambda t, y: y[0]
    still.terminal = True
    rate = lambda t, y: [-G * (0.2 + 0.3 * np.exp(-np.abs(y[0]) / 0.4)) - 0.75 * y[0]]
    run = solve_ivp(rate, (0, 3), [3.0], events=still, method="DOP853", rtol=1e-12, atol=1e-13)
    assert stop(static=0.5, stribeck=0.4, viscous=1.5) == pytest.approx(run.t_events[0][0], abs=1e-9)


def test_where_nothing_is_closed_friction_has_slopes_in_reverse_mode():
    """All that is told has a cotangent, if only zero, also how well the equations are solved: 0/0 here."""
    floor, rim = mbs.Profile.chain([mbs.Line((9.0, 0.0), (-9.0, 0.0))], closed=False), mbs.disc(0.1)
    bodies = [mbs.Body("ground", profiles={"floor": floor})] + [mbs.Body(x, profiles={"rim": rim}) for x in "ab"]
    joints = [mbs.Planar(x.upper(), "ground", x, start=(0.0, 0.0, 1.0)) for x in "ab"]
    contacts = [mbs.Contact("on " + x, "ground.floor", x + ".rim", friction=0.3) for x in "ab"]
    laid_out = system(mech := mbs.Mechanism(bodies, joints + contacts))
    pairs = _friction(mech, laid_out.layout, laid_out.size)
    none, W = jnp.zeros(2), jnp.eye(2)

    def told(normal):
        problem = SlidingProblem(none, none, W, none + 1, normal, 0 * W, jnp.zeros((0, 3)), jnp.zeros((0, 3, 2)))
        return pairs.forces(problem, none > 0, none)

    _, back = jax.vjp(told, none)
    nothing = jax.tree_util.tree_map(jnp.zeros_like, told(none))
    np.testing.assert_array_equal(back(nothing)[0], none)
    np.testing.assert_array_equal(back(nothing._replace(margin=none + 1))[0], 0.3)
