"""Friction in pins, guides, threads and seals, against independent integrations and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import mbsjax as mbs


G = 9.81


# -- a pendulum on a thick pin -----------------------------------------------------------------------------------------

M, L, I, MU, PIN, T_END = 2.0, 0.7, 0.05, 0.6, 0.1, 9.0  # noqa: E741


def pendulum(mu):
    return mbs.Mechanism(
        [mbs.Body("bob", mass=M, center=(L, 0.0), inertia=I)],
        [mbs.Revolute("O", "ground", "bob", friction=mbs.JointFriction(mu, radius=PIN))],
        gravity=(0.0, -G),
    )


def swing(mu):
    begin = mbs.State(jnp.array([0.2]), jnp.zeros(1), jnp.zeros(()))
    options = dict(ts=jnp.array([0.0, T_END]), max_steps=2048, max_events=24, rtol=1e-11, atol=1e-11, throw=False)
    return mbs.simulate(pendulum(mu), begin, T_END, **options)


def turning_points(mu, most=40):
    """When it turns, until it stays, and where: an integration with events, the friction circle by a root."""
    J, s = I + M * L**2, -1.0

    def rates(t, y, s):
        a, w = y

        def gain(moment):
            return (-M * G * L * np.cos(a) - s * moment) / J

        def force(moment):
            up = gain(moment)
            across, along = M * L * up, M * L * w**2
            x, y = -across * np.sin(a) - along * np.cos(a), across * np.cos(a) - along * np.sin(a)
            return np.hypot(x, y + M * G)

        return w, gain(brentq(lambda m: m - mu * PIN * force(m), 0.0, 1e3, xtol=1e-14, rtol=1e-14))

    t, y, times = 0.0, np.array([0.2, 0.0]), []
    while len(times) < most:
        stop = lambda t, y, s: y[1]
        stop.terminal, stop.direction = True, -s
        run = solve_ivp(
            rates, (t, t + 9), y, events=stop, method="DOP853", rtol=1e-12, atol=1e-13, first_step=1e-6, args=(s,)
        )
        t, y, s = run.t[-1], np.array([run.y[0, -1], 0.0]), -s
        times.append(t)
        if L * abs(np.cos(y[0])) <= mu * PIN:
            break
    return np.array(times), y[0]


def test_a_pendulum_on_a_thick_pin_swings_as_an_independent_integration_says_and_rests_in_its_dead_band():
    sol = swing(jnp.asarray(MU))
    times, place = turning_points(MU)
    n = int(sol.events.count)
    assert n == len(times) and mbs.EVENTS[int(sol.events.kind[n - 1])] == "sticks"
    np.testing.assert_allclose(sol.events.t[:n], times, rtol=0, atol=1e-8)
    assert float(sol.q[-1, 0]) == pytest.approx(place, abs=1e-8)
    assert abs(np.cos(place)) * L <= MU * PIN
    lost = float(sol.energy[-1] + sol.friction("O").work[-1] - sol.energy[0])
    assert lost == pytest.approx(0.0, abs=1e-8)


def test_the_stop_of_a_pendulum_has_derivatives_in_the_coefficient():
    found = jax.jvp(lambda mu: swing(mu).events.t[4], (jnp.asarray(MU),), (jnp.ones(()),))[1]
    step = 1e-5
    near = [turning_points(MU + k * step, 5)[0][4] for k in (-2, -1, 1, 2)]
    assert float(found) == pytest.approx((near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * step), abs=1e-6)


# -- a double pendulum on a slide (Garcia de Jalon and Bayo, example 10.2) ---------------------------------------------
# The book leaves open where the masses sit and how thick the pins are. Here the slide and the ends of both links have
# 10 kg each, and the pins a radius of 0.2 m.

MUS, RADIUS, MASS = (0.25, 0.14, 0.11), 0.2, 10.0


def double_pendulum():
    pin = lambda mu: mbs.JointFriction(mu, radius=RADIUS)
    return mbs.Mechanism(
        [
            mbs.Body("slide", mass=MASS),
            mbs.Body("upper", mass=MASS, center=(1.0, 0.0)),
            mbs.Body("lower", mass=MASS, center=(1.0, 0.0)),
        ],
        [
            mbs.Prismatic("x", "ground", "slide", friction=mbs.JointFriction(MUS[0])),
            mbs.Revolute("a", "slide", "upper", friction=pin(MUS[1])),
            mbs.Revolute("b", "upper", "lower", (1.0, 0.0), friction=pin(MUS[2])),
        ],
        gravity=(0.0, -G),
    )


def accelerations(q, v, modes):
    """Newton's equations of the slide and the two masses, by the forces in the pins; friction by iteration. modes: the
    signs of sliding, 0 for what sticks. Gives the accelerations of x, a, b, the friction forces and their limits."""
    a, c = q[1], q[1] + q[2]
    wa, wc = v[1], v[1] + v[2]
    e = [np.array([np.cos(z), np.sin(z)]) for z in (a, c)]
    n = [np.array([-np.sin(z), np.cos(z)]) for z in (a, c)]
    loads = np.array([30 * G, 20 * G, 10 * G])
    for _ in range(200):
        # unknown: x'', a'', c'' (angles in ground), P (2), Q (2), N, f_x, m_a, m_b
        A, r = np.zeros((11, 11)), np.zeros(11)
        ix, ia, ic, ip, iq, iN, ifx, ima, imb = 0, 1, 2, 3, 5, 7, 8, 9, 10
        # slide: m x'' = -P_x + f_x; 0 = -P_y + N - m g
        A[0, [ix, ip, ifx]] = MASS, 1, -1
        A[1, [ip + 1, iN]], r[1] = (-1, 1), MASS * G
        # upper mass: m (x'' i + n0 a'' - e0 wa^2) = P - Q - m g j; lower mass: + n1 c'' - e1 wc^2, = Q - m g j
        for k in range(2):
            A[2 + k, [ia, ip + k, iq + k]], r[2 + k] = (MASS * n[0][k], -1, 1), MASS * e[0][k] * wa**2
            A[4 + k, [ia, ic, iq + k]] = MASS * n[0][k], MASS * n[1][k], -1
            r[4 + k] = MASS * (e[0][k] * wa**2 + e[1][k] * wc**2)
        A[2, ix] = A[4, ix] = MASS
        r[3] -= MASS * G
        r[5] -= MASS * G
        # moments about the masses: of the upper link, -e0 x P + m_a - m_b = 0; of the lower one, -e1 x Q + m_b = 0
        A[6, [ip, ip + 1, ima, imb]] = e[0][1], -e[0][0], 1, -1
        A[7, [iq, iq + 1, imb]] = e[1][1], -e[1][0], 1
        for k, (row, force) in enumerate(((8, ifx), (9, ima), (10, imb))):
            if modes[k] == 0:
                for i, w in ((8, [(ix, 1)]), (9, [(ia, 1)]), (10, [(ic, 1), (ia, -1)])):
                    if i == row:
                        for j, x in w:
                            A[row, j] = x
            else:
                A[row, force], r[row] = 1, -modes[k] * loads[k]
        z = np.linalg.solve(A, r)
        limits = np.array(
            [
                MUS[0] * abs(z[iN]),
                MUS[1] * RADIUS * np.hypot(*z[ip : ip + 2]),
                MUS[2] * RADIUS * np.hypot(*z[iq : iq + 2]),
            ]
        )
        done = np.abs(limits - loads).max() < 1e-13 * limits.max()
        loads = limits
        if done:
            break
    return np.array([z[ix], z[ia], z[ic] - z[ia]]), z[[ifx, ima, imb]], limits


def decide(q, v, stopped, modes):
    """The modes after pairs have `stopped`: the first combination of sticking and sliding that is consistent."""
    free = [k for k in range(3) if stopped[k]]
    for number in range(3 ** len(free)):
        trial = list(modes)
        for i, k in enumerate(free):
            trial[k] = (0, 1, -1)[number // 3**i % 3]
        gain, force, limit = accelerations(q, v, trial)
        fine = [abs(force[k]) <= limit[k] * (1 + 1e-9) if trial[k] == 0 else trial[k] * gain[k] > 0 for k in free]
        if all(fine):
            return trial
    raise AssertionError("no modes are consistent")


def integrate(t_end):
    """The events: time, joint, whether it sticks, coordinates."""
    t, y, found = 0.0, np.zeros(6), []
    modes = decide(y[:3], y[3:], [True] * 3, [0, 0, 0])

    while t < t_end:

        def rates(t, y, m=tuple(modes)):
            return np.concatenate([y[3:], accelerations(y[:3], y[3:], m)[0]])

        guards = []
        for k in range(3):
            if modes[k]:
                guards.append(lambda t, y, k=k, s=modes[k]: s * y[3 + k])
            else:

                def margin(t, y, k=k, m=tuple(modes)):
                    _, force, limit = accelerations(y[:3], y[3:], m)
                    return limit[k] - abs(force[k])

                guards.append(margin)
            guards[-1].terminal, guards[-1].direction = True, -1
        run = solve_ivp(rates, (t, t_end), y, events=guards, method="DOP853", rtol=1e-11, atol=1e-12, first_step=1e-7)
        which = [k for k in range(3) if len(run.t_events[k])]
        if run.status != 1:
            break
        k = which[0]
        t, y = run.t_events[k][-1], run.y_events[k][-1].copy()
        if modes[k]:
            y[3 + k] = 0.0
            modes = decide(y[:3], y[3:], [m == 0 or j == k for j, m in enumerate(modes)], modes)
        else:
            _, force, _ = accelerations(y[:3], y[3:], modes)
            modes[k] = -int(np.sign(force[k]))
        found.append((t, "xab"[k], modes[k] == 0, y[:3]))
    return found


def test_a_double_pendulum_on_a_slide_locks_and_goes_on_as_an_independent_integration_says():
    mech, ts = double_pendulum(), np.linspace(0.0, 6.0, 61)
    begin = mbs.State(jnp.zeros(3), jnp.zeros(3), jnp.zeros(()))
    sol = mbs.simulate(mech, begin, 6.0, ts=jnp.asarray(ts), max_steps=4096, max_events=64, rtol=1e-11, atol=1e-11)
    events = integrate(6.0)
    mine = [(e.t, e.contact, e.kind) for e in sol.events.list(mech)]
    assert [(x[1], x[2] == "sticks") for x in mine] == [(k, sticks) for _, k, sticks, _ in events]
    np.testing.assert_allclose([x[0] for x in mine], [x[0] for x in events], rtol=0, atol=1e-8)
    np.testing.assert_allclose(sol.events.q[: len(events)], [x[3] for x in events], rtol=0, atol=1e-7)
    assert sum(x[2] for x in events) >= 2
    for name in "xab":  # flat where it sticks
        rub = sol.friction(name)
        assert np.abs(np.asarray(rub.sliding)[np.asarray(rub.sticks)]).max(initial=0.0) < 1e-12
    balance = sol.energy + sol.rubbing.work.sum(1) - sol.energy[0]
    np.testing.assert_allclose(balance, 0.0, atol=1e-7)


# -- pairs that hold the same ------------------------------------------------------------------------------------------


def test_two_guides_hold_one_block_together_and_give_way_together():
    """Seals of 4 and 2: nothing moves until the load is 6, whichever of them has reached its limit before."""

    @jax.jit
    def drawn(phase):
        block = mbs.Mechanism(
            [mbs.Body("block", mass=2.0)],
            [
                mbs.Prismatic("a", "ground", "block", friction=mbs.DryTorque(4.0)),
                mbs.Prismatic("b", "ground", "block", (0.0, 1.0), (0.0, 1.0), friction=mbs.DryTorque(2.0)),
            ],
            forces=[mbs.Load("block", force=lambda t, at: jnp.array([8.0 * jnp.sin(3.0 * t + phase), 0.0]))],
        )
        return mbs.simulate(block, None, 2.0, ts=jnp.linspace(0.0, 2.0, 9), max_steps=256, max_events=24)

    sol = drawn(0.0)
    block = sol.mech
    starts = np.arcsin(0.75) / 3
    # it moves from there until friction has taken what the load brought, and not before the load is 6 the other way
    moves = np.asarray(sol["a"].v)
    before = np.asarray(sol.ts) < starts
    assert np.abs(moves[before]).max() < 1e-12
    slips = [e.t for e in sol.events.list(block) if e.kind == "slips" and e.contact == "a"]
    assert min(abs(t - starts) for t in slips) < 1e-9
    stop = brentq(lambda t: 8 / 3 * (np.cos(3 * starts) - np.cos(3 * t)) - 6 * (t - starts), starts + 0.1, 1.2)
    assert min(abs(e.t - stop) for e in sol.events.list(block) if e.kind == "sticks") < 1e-8
    # where it stands then, until the load is 6 the other way, and what friction has lost on the way
    time = stop - starts
    way = (8 / 3 * (np.cos(3 * starts) * time - (np.sin(3 * stop) - np.sin(3 * starts)) / 3) - 3 * time**2) / 2
    rests = int(np.argmax(np.asarray(sol.ts) > stop))
    assert float(sol.ts[rests]) < (np.pi + np.arcsin(0.75)) / 3
    assert float(sol["a"].q[rests]) == pytest.approx(way, abs=1e-8)
    assert float(sol.rubbing.work[rests].sum()) == pytest.approx(6 * way, abs=1e-8)
    slips = [e.t for e in sol.events.list(block) if e.kind == "slips" and e.t > stop + 1e-6 and e.contact == "a"]
    assert slips[-1] == pytest.approx((np.pi + np.arcsin(0.75)) / 3, abs=1e-9)
    # a load of 5 at first is more than both can share evenly; that takes nothing from what they hold the other way
    phase = np.pi - np.arcsin(5 / 8)
    sol = drawn(phase)
    starts = (np.pi + np.arcsin(0.75) - phase) / 3
    assert min(abs(e.t - starts) for e in sol.events.list(sol.mech) if e.kind == "slips") < 1e-9
    time = np.maximum(np.asarray(sol.ts) - starts, 0.0)
    turn = 3 * starts + phase
    way = (8 / 3 * (np.cos(turn) * time - (np.sin(turn + 3 * time) - np.sin(turn)) / 3) + 3 * time**2) / 2
    moves = 8 / 3 * (np.cos(turn) - np.cos(turn + 3 * time)) + 6 * time <= 0  # until it stops
    before = np.cumprod(moves).astype(bool)
    assert np.count_nonzero(time[before] > 0) >= 2 and np.count_nonzero(time == 0) >= 3
    np.testing.assert_allclose(np.asarray(sol["a"].q)[before], way[before], atol=1e-8)


def test_a_short_pull_is_felt_by_what_sticks():
    pull = lambda t, at: jnp.array([16 * jnp.sin(jnp.pi * t / 0.2) ** 2, 0.0])
    block = mbs.Mechanism(
        [mbs.Body("block", mass=2.0)],
        [mbs.Prismatic("x", "ground", "block", friction=mbs.JointFriction(0.4))],
        forces=[mbs.Load("block", force=pull)],
        gravity=(0.0, -10.0),
    )
    sol = mbs.simulate(block, None, 0.4, ts=jnp.linspace(0.0, 0.4, 5), max_steps=256)
    assert float(sol.events.t[0]) == pytest.approx(0.05, abs=1e-9)


def slider_crank(order):
    pin = lambda radius: mbs.JointFriction(0.2, radius=radius)
    joints = {
        "A": mbs.Revolute("A", "ground", "crank", friction=pin(0.02), start=0.5),
        "B": mbs.Revolute("B", "crank", "rod", (0.3, 0.0), friction=pin(0.03)),
        "C": mbs.Revolute("C", "rod", "piston", (1.0, 0.0), friction=pin(0.01)),
        "D": mbs.Prismatic("D", "ground", "piston", start=1.2, friction=mbs.JointFriction(0.2, length=0.1, guide="b")),
    }
    mech = mbs.Mechanism(
        [
            mbs.Body("crank", mass=1.0, center=(0.15, 0.0), inertia=0.01),
            mbs.Body("rod", mass=2.0, center=(0.5, 0.0), inertia=0.1),
            mbs.Body("piston", mass=1.5),
        ],
        [joints[name] for name in order],
        gravity=(0.0, -G),
    )
    begin = mbs.state(mech, {"A": 0.5}, {"A": -6.0})
    return mbs.simulate(mech, begin, 1.0, ts=jnp.linspace(0.0, 1.0, 5), max_steps=512, max_events=16)


@pytest.mark.long
def test_a_slider_crank_rubs_alike_however_its_joints_are_listed():
    """Friction in all joints, one of which closes the loop: dead centers, and all four turning at once."""
    runs = [slider_crank(order) for order in ("ABCD", "DCBA")]
    for sol in runs:
        told = [(e.contact, e.kind) for e in sol.events.list(sol.mech)]
        assert told[:2] == [("D", "reverses"), ("C", "reverses")] and told[6:] == [("C", "reverses")]
        assert sorted(told[2:6]) == [(name, "reverses") for name in "ABCD"]
        assert np.ptp(sol.events.t[2:6]) == 0.0
        np.testing.assert_allclose(sol.energy + sol.rubbing.work.sum(1), sol.energy[0], atol=2e-8)
    first, second = runs
    np.testing.assert_allclose(first.events.t[:7], second.events.t[:7], rtol=0, atol=1e-9)
    for name in "ABCD":
        np.testing.assert_allclose(first[name].q, second[name].q, rtol=0, atol=1e-8)
        np.testing.assert_allclose(first.friction(name).work, second.friction(name).work, rtol=0, atol=1e-8)
