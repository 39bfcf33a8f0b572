"""Simulated mechanisms with contacts: the examples of the thesis 3.5-3.7 and 4.4-4.5, and a cam with reference data.

The truth is a closed form, SciPy, or an invariant: no penetration, no pull, momentum and energy accounted for.
"""

import functools
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy import pi
from scipy.optimize import brentq
from scipy.special import ellipk, gamma

import mbsjax as mbs
from tests.contacts import T3, crank_slider_and_four_bar, heavy_crank_slider, t3_cam
from tests.latch import latch
from tests.test_contact_motion import borders, lifts


COUNT = 201  # of output times, the same everywhere: so few programs are compiled


def go(mech, t1, *, drive=None, positions=None, velocities=None, ts=None, rest_speed=1e-4, **options):
    """A simulation with sizes that all tests share. Output times are padded, at their end."""
    state = mbs.state(mech, positions or {}, velocities or {}, drive=drive)
    if ts is not None:
        ts = np.asarray(ts, float)
        ts = np.concatenate([ts, np.linspace(ts[-1], t1, COUNT - len(ts) + 1)[1:]])
    else:
        ts = np.linspace(0.0, t1, COUNT)
    return mbs.simulate(
        mech, state, t1, drive=drive, ts=ts, rest_speed=rest_speed, max_steps=1024, max_events=64, **options
    )


def story(sol):
    """What happened, and to which contact."""
    return [(e.kind, e.contact) for e in sol.events.list(sol.mech)]


def event_times(sol):
    return np.asarray(sol.events.t[: int(sol.events.count)])


def check_contacts(sol, size=1.0, forces=1.0, driven=False, behind=np.inf):
    """Bodies do not penetrate, do not pull, and impacts do not make energy, unless a driver pushes. A gap below
    -`behind` is that of a body which stands on the far side of an open profile: it cannot have come there through it
    from one output to the next."""
    assert bool(sol.result == mbs.RESULTS.successful)
    for contact in sol.mech.contacts:
        track = sol[contact.name]
        if contact.law is None:
            assert not np.any((track.gap < -1e-9 * size) & (track.gap > -behind)), contact.name
            assert float(jnp.max(jnp.abs(jnp.where(track.active, track.gap, 0.0)))) <= 1e-9 * size
        assert float(jnp.min(track.force)) >= -1e-9 * forces, contact.name
        assert float(jnp.max(jnp.abs(jnp.where(track.active, 0.0, track.force)))) == 0.0
    n = int(sol.events.count)
    before, after = np.asarray(sol.events.energy[:n]).T
    assert driven or np.all(after <= before * (1 + 1e-12) + 1e-15)
    assert np.all(np.asarray(sol.events.impulse[:n]) >= 0)


# -- a flat-faced follower on an eccentric -------------------------------------------------------------------


CASE = json.loads((pathlib.Path(__file__).parent / "cases" / "dyn_cam_flat_follower.json").read_text())
FLAT = {k: float(v) for k, v in CASE["data"].items()}


def flat_follower(p, restitution=0.0, active=True):
    """An eccentric that turns about the origin, and a flat face above it, pressed down by a spring and its weight. At
    its lowest lift, R - e, the spring makes the force F0."""
    face = mbs.Profile.chain([mbs.Line((-4 * p["R"], 0.0), (4 * p["R"], 0.0))], closed=False)
    return mbs.Mechanism(
        [
            mbs.Body("cam", mass=1.0, inertia=1.0, profiles={"rim": mbs.eccentric(p["R"], p["e"])}),
            mbs.Body("follower", mass=p["m"], profiles={"face": face}),
        ],
        [
            mbs.Revolute("O", "ground", "cam"),
            mbs.Prismatic("guide", "ground", "follower", axis=(0.0, 1.0), start=2 * p["R"]),
            mbs.Contact("C", "cam.rim", "follower.face", active=active, restitution=restitution),
        ],
        forces=[mbs.Spring("guide", stiffness=p["k"], free_length=p["R"] - p["e"], preload=p["F0"])],
        gravity=(0.0, -p["g"]),
    )


def turning(speed, start=-pi / 2):
    return {"O": mbs.constant_speed(speed, start)}


@functools.cache
def flat_run(restitution):
    mech = flat_follower(FLAT, restitution)
    return go(mech, 4 * pi / FLAT["omega"], drive=turning(FLAT["omega"]), rest_speed=None)


@pytest.mark.parametrize("restitution, row", [(0.0, "e_r=0"), (0.3, "e_r=0.3 (first turn)")])
def test_flat_follower_events(restitution, row):
    """tests/cases/dyn_cam_flat_follower.json: flights in closed form, to 40 digits."""
    sol = flat_run(restitution)
    check_contacts(sol)
    wanted = [r for r in CASE["confirmed"][row] if r[0] != "contact formed"]
    names = {"liftoff": "released", "impact": "impact" if restitution else "closed"}
    assert [k for k, _ in story(sol)][: len(wanted)] == [names[r[0]] for r in wanted]
    if restitution == 0:
        assert int(sol.events.count) == len(wanted)
    np.testing.assert_allclose(event_times(sol)[: len(wanted)], [r[1] for r in wanted], rtol=0, atol=1e-10)
    for i, (kind, _, *values) in enumerate(wanted):
        if values:
            assert abs(float(sol.events.q[i, 1]) - values[0]) <= 1e-10
            v = sol.events.v_before[i, 1] if kind == "liftoff" else sol.events.speed[i, 0]
            assert abs(float(v) - values[1]) <= 1e-8
        if kind == "impact":
            before, after = sol.events.speed[i]
            assert abs(float(after + restitution * before)) <= 1e-12
            assert abs(float(sol.events.impulse[i, 0] + FLAT["m"] * (1 + restitution) * before)) <= 1e-12


def test_flat_follower_bounces_accumulate():
    """After the last bounce, which is taken for rest, infinitely many would follow, each e times as long as the one
    before: the contact closes where their series ends, computed to 40 digits."""
    sol = flat_run(0.3)
    formed = [i for i, (kind, _) in enumerate(story(sol)) if kind == "closed"]
    t = np.asarray(sol.events.t)[formed]
    np.testing.assert_allclose(t, [0.0493446138184656, 0.10646448024737089], rtol=0, atol=1e-10)
    for i in formed:
        approach = -float(sol.events.speed[i, 0])
        assert 0 < 0.3 * approach < 2e-5 * np.max(-sol.events.speed[:, 0])
        # the cam turns on while the follower bounces
        assert abs(float(sol.events.q[i, 0]) - (FLAT["omega"] * float(sol.events.t[i]) - pi / 2)) <= 1e-12
    rests = np.asarray(sol.ts) > t[1]
    assert np.all(sol["C"].active[rests])


def test_flat_follower_contact_force():
    """In contact, F = m y'' + k y + F0 + m g with y = e (1 - cos w t); its static part lacks the first term."""
    sol, p = flat_run(0.0), FLAT
    lift = p["e"] * (1 - np.cos(p["omega"] * np.asarray(sol.ts)))
    inertia = p["m"] * p["e"] * p["omega"] ** 2 * np.cos(p["omega"] * np.asarray(sol.ts))
    static = p["k"] * lift + p["F0"] + p["m"] * p["g"]
    track, on = sol["C"], np.asarray(sol["C"].active)
    assert 60 < on.sum() < 150
    np.testing.assert_allclose(track.force[on], (static + inertia)[on], rtol=0, atol=1e-9)
    np.testing.assert_allclose(track.static[on], static[on], rtol=0, atol=1e-9)
    np.testing.assert_allclose(track.dynamic[on], inertia[on], rtol=0, atol=1e-9)


# -- thesis 3.6.3: the speed at which the contact is lost ----------------------------------------------------


@pytest.mark.parametrize("part", [1.5 / 1.7, 1 - 1e-6, 1 + 1e-6, 1.9 / 1.7])
def test_thesis_t6_speed_that_loses_the_contact(part):
    """3.6.3: kept at 1.5 rad/s, lost at 1.9 rad/s. The force k e (1 - cos) + F0 + m g + m e w^2 cos is least on top,
    where it is zero if m e w^2 = 2 k e + F0 + m g: for these data, at 1.7 rad/s."""
    p = {"R": 2.0, "e": 1.0, "m": 1.0, "k": 0.4, "F0": 0.5, "g": 1.7**2 - 1.3}
    w = part * 1.7
    sol = go(flat_follower(p), 2 * pi / w, drive=turning(w))
    check_contacts(sol)
    if part < 1:
        assert story(sol) == []
        np.testing.assert_allclose(np.min(sol["C"].force), 1.7**2 - w**2, rtol=0, atol=1e-9)
    else:
        assert [k for k, _ in story(sol)] == ["released", "closed"]
        # the force is zero where cos = -(k e + F0 + m g) / (m e w^2 - k e)
        leaves = np.arccos(-(p["k"] + p["F0"] + p["g"]) / (w**2 - p["k"])) / w
        assert abs(event_times(sol)[0] - leaves) <= (1e-10 if part > 1.01 else 1e-7)


# -- thesis 4.4: the cam of arcs and lines -------------------------------------------------------------------


M3, C = 0.15, 5.0
W = 0.5


def sprung_cam(stiffness):
    """4.4, in cm, kg, s: the follower of 0.15 kg is drawn in by a spring whose free length is 5 behind the center."""
    cam, follower = (body.profiles for body in t3_cam().bodies)
    joints = [*t3_cam().joints, *t3_cam().contacts]
    return mbs.Mechanism(
        [mbs.Body("cam", mass=1.0, inertia=1e6, profiles=cam), mbs.Body("follower", mass=M3, profiles=follower)],
        joints,
        forces=[mbs.Spring("guide", stiffness=stiffness, free_length=-C)],
    )


T3_DRIVE = {"O": mbs.constant_speed(-W)}


@functools.cache
def t3_forces(element):
    """The force along the common normal, whole and static, as a function of times and the spring's stiffness. The
    normal stands at the pressure angle phi to the follower's line, and tan phi = rho'/rho on the path of the roller's
    center: (k (rho + c) + m rho'') / cos phi."""
    lift = lifts(T3)[element]

    def force(t, k):
        rho, slope, bend = lift(W * t), jax.grad(lift)(W * t), jax.grad(jax.grad(lift))(W * t)
        secant = jnp.hypot(rho, slope) / rho
        static = k * (rho + C) * secant
        return static + M3 * W**2 * bend * secant, static

    return jax.jit(jax.vmap(force, (0, None)))


def test_thesis_t3_contact_forces():
    """4.4: both sides of B (arc to corner) and C (corner to line), and everywhere else in a turn."""
    k, ends = 1.5, borders(T3)
    sides = [(x / W) * (1 + d) for x in ends for d in (-1e-9, 1e-9)]
    ts = np.sort([*np.linspace(0.0, 2 * pi / W, 160)[:-1], *sides])
    sol = go(sprung_cam(k), 2 * pi / W, drive=T3_DRIVE, ts=ts)
    check_contacts(sol, size=40.0, forces=60.0)
    assert story(sol) == [("transition", "C23")] * 8
    np.testing.assert_allclose(event_times(sol) * W, ends, rtol=0, atol=1e-10)
    track, element = sol["C23"], np.searchsorted(ends, W * np.asarray(sol.ts)) % 8
    for number in range(8):
        whole, static = t3_forces(number)(sol.ts, k)
        rows = element == number
        np.testing.assert_allclose(track.force[rows], whole[rows], rtol=0, atol=1e-9 * 60)
        np.testing.assert_allclose(track.static[rows], static[rows], rtol=0, atol=1e-9 * 60)
    # as published, put right (reference data of A, B-, B+, C-, C+)
    at = [0, *(int(np.argmin(np.abs(np.asarray(sol.ts) - t))) for t in sides[:4])]
    published = [66.6, 59.581188, 50.148226, 51.398250, 69.925905]
    np.testing.assert_allclose(track.force[np.array(at)], published, rtol=1e-6)
    # the driver: power in is the rate of kinetic and potential energy
    rho, v, a = sol["guide"]
    np.testing.assert_allclose(-W * sol.drive[:, 0], v * (M3 * a + k * (rho + C)), rtol=0, atol=1e-8)


def test_thesis_t3_contact_lost_and_regained():
    """4.4 with k = 0.35: what the driver puts in is in the follower and its spring, or lost in impacts."""
    t1 = 2 * pi / W
    first = go(sprung_cam(0.35), t1, drive=T3_DRIVE)
    check_contacts(first, size=40.0, forces=20.0)
    happened = [k for k, _ in story(first)]
    assert "released" in happened and "closed" in happened and happened.count("transition") >= 4
    marks = np.unique([0.0, *event_times(first), t1])
    marks = marks[np.concatenate([[True], np.diff(marks) > 1e-9])]
    nodes, weights = np.polynomial.legendre.leggauss((COUNT - 1) // (len(marks) - 1))
    a, b = marks[:-1, None], marks[1:, None]
    ts, h = ((a + b) / 2 + (b - a) / 2 * nodes).ravel(), ((b - a) / 2 * weights).ravel()
    sol = go(sprung_cam(0.35), t1, drive=T3_DRIVE, ts=ts)
    work = np.sum(h * np.asarray(sol.drive[: len(ts), 0]) * -W)
    lost = np.sum(np.diff(sol.events.energy, axis=1))
    assert lost < -0.01
    gained = float(sol.energy[-1] - first.energy[0])
    assert abs(gained - work - lost) <= 1e-6 * abs(work), (gained, work, lost)
    # in flight, nothing but the spring: rho + c = A cos(w t + b)
    rho, v = sol["guide"].q, sol["guide"].v
    amplitude = (rho + C) ** 2 + v**2 * M3 / 0.35
    flying = ~np.asarray(sol["C23"].active)
    number = np.searchsorted(event_times(sol), np.asarray(sol.ts))
    for k in np.unique(number[flying]):
        assert np.ptp(amplitude[flying & (number == k)]) <= 1e-7 * 1600


# -- one ball, two walls -------------------------------------------------------------------------------------


WALL = ((1.0, 0.0), (1.1, 0.0), (1.1, 1.0), (1.0, 1.0))
BALL = 2.0  # its mass


def ball_and_walls(restitution=(0.0, 0.0), wall=WALL, radius=0.1, gravity=0.0, active=False):
    floor = mbs.Profile.chain([mbs.Line((3.0, 0.0), (-3.0, 0.0))], closed=False)
    return mbs.Mechanism(
        [
            mbs.Body("ground", profiles={"floor": floor, "wall": mbs.polygon(wall)}),
            mbs.Body("ball", mass=BALL, inertia=1.0, profiles={"rim": mbs.disc(radius)}),
        ],
        [
            mbs.Planar("at", "ground", "ball"),
            mbs.Contact("floor", "ground.floor", "ball.rim", restitution=restitution[0], active=active),
            mbs.Contact("wall", "ground.wall", "ball.rim", restitution=restitution[1]),
        ],
        gravity=(0.0, -gravity),
    )


def thrown(mech, place, velocity, t1, **options):
    return go(mech, t1, positions={"at": (0.0, *place)}, velocities={"at": (0.0, *velocity)}, **options)


@pytest.mark.parametrize("restitution", [(0.5, 0.5), (1.0, 0.0), (0.0, 0.0), (1.0, 1.0)])
def test_ball_hits_floor_and_wall_at_once(restitution):
    """In a square corner both impulses are independent."""
    sol = thrown(ball_and_walls(restitution), (0.4, 0.6), (1.0, -1.0), 1.0)
    check_contacts(sol)
    np.testing.assert_allclose(event_times(sol), 0.5, rtol=0, atol=1e-12)
    np.testing.assert_allclose(sol.events.impulse[0], BALL * (1 + np.array(restitution)), rtol=1e-12)
    np.testing.assert_allclose(sol.v[-1], [0.0, -restitution[1], restitution[0]], rtol=0, atol=1e-12)
    np.testing.assert_allclose(sol.q[-1], [0.0, 0.9 - restitution[1] / 2, 0.1 + restitution[0] / 2], atol=1e-12)
    assert sol.events.active[0].tolist() == [e == 0 for e in restitution]


@pytest.mark.parametrize("ahead", [1e-4, 1e-6, 1e-7, -1e-6])
def test_two_impacts_in_one_step(ahead):
    """The floor a moment after the wall, or before it: far less than a step apart."""
    sol = thrown(ball_and_walls((0.5, 0.25)), (0.4, 0.6 + ahead), (1.0, -1.0), 1.0)
    check_contacts(sol)
    order = ["wall", "floor"] if ahead > 0 else ["floor", "wall"]
    assert story(sol) == [("impact", name) for name in order]
    np.testing.assert_allclose(event_times(sol), sorted([0.5, 0.5 + ahead]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(sol.v[-1], [0.0, -0.25, 0.5], rtol=0, atol=1e-12)


@pytest.mark.parametrize("lean", [-0.5, 0.4])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_ball_runs_into_a_wedge(lean, restitution):
    """A ball that slides along the floor into a leaning wall: the impulses account for the momentum, along the
    normals; the ball does not enter the walls afterwards and has no more energy than before."""
    wall = ((1.0, 0.0), (1.2, 0.0), (1.2 + lean, 1.0), (1.0 + lean, 1.0))
    mech = ball_and_walls((restitution, restitution), wall, gravity=1.0, active=True)
    sol = thrown(mech, (0.0, 0.1), (1.0, 0.0), 1.5)
    check_contacts(sol)
    first = sol.events
    assert story(sol)[0][1] == "wall"
    n = np.array([[0.0, 1.0], np.array([-1.0, lean]) / np.hypot(1.0, lean)])  # out of the floor, out of the wall
    jump = BALL * np.asarray(first.v_after[0] - first.v_before[0])
    np.testing.assert_allclose(jump[1:], np.asarray(first.impulse[0]) @ n, rtol=0, atol=1e-12)
    after = n @ np.asarray(first.v_after[0, 1:])
    assert after.min() >= -1e-12
    assert after[1] >= restitution * -(n[1] @ np.asarray(first.v_before[0, 1:])) - 1e-12
    # the wall, leaning over, presses the ball on the floor; leaning back, it throws it up
    assert (float(first.impulse[0, 0]) > 1e-3) == (lean < 0)


def test_resting_on_a_contact_from_the_start():
    """Gap and speed are zero, gravity holds: closed at once, whatever the restitution."""
    for restitution in (0.0, 0.5, 1.0):
        sol = thrown(ball_and_walls((restitution, 0.0), gravity=9.81), (0.0, 0.1), (0.5, 0.0), 1.5)
        check_contacts(sol)
        assert story(sol) == [("closed", "floor")] and event_times(sol)[0] == 0.0
        np.testing.assert_allclose(sol["floor"].force, BALL * 9.81, rtol=1e-12)
        np.testing.assert_allclose(sol.q[-1], [0.0, 0.75, 0.1], rtol=0, atol=1e-12)


def test_approaching_at_gap_zero_from_the_start():
    """An impact at t = 0, then bounces of e times the length before, until the ball rests."""
    g, e, v = 9.81, 0.5, 1.0
    sol = thrown(ball_and_walls((e, 0.0), gravity=g), (0.0, 0.1), (0.5, -v), 1.5)
    check_contacts(sol)
    t, speeds = 0.0, []
    while v * e >= 1e-4:
        speeds.append((t, "impact"))
        v *= e
        t += 2 * v / g
    speeds.append((t + 2 * v * e / g / (1 - e), "closed"))  # where infinitely many more would end
    assert [k for k, _ in story(sol)] == [k for _, k in speeds]
    np.testing.assert_allclose(event_times(sol), [t for t, _ in speeds], rtol=0, atol=1e-9)
    assert np.all(sol["floor"].active[np.asarray(sol.ts) > t])
    np.testing.assert_allclose(sol.q[-1], [0.0, 0.75, 0.1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("clearance", [1e-9, -1e-9, -1e-5, -1e-3])
def test_grazing_the_top_of_a_wall(clearance):
    """A ball that flies over the wall, and one that is a little too low: it meets the corner between flank and top."""
    sol = thrown(ball_and_walls((1.0, 1.0)), (-0.5, 1.1 + clearance), (3.0, 0.0), 0.8)
    check_contacts(sol)
    if clearance > 0:
        assert story(sol) == [] and float(jnp.min(sol["wall"].gap)) == pytest.approx(clearance, rel=1e-6)
    else:
        assert story(sol) == [("impact", "wall")]
        c = (0.1 + clearance) / 0.1  # height of the center over the corner, in radii: the sine of the normal
        n = np.array([-np.sqrt(1 - c * c), c])
        v = np.array([3.0, 0.0])
        np.testing.assert_allclose(sol.v[-1, 1:], v - 2 * (v @ n) * n, rtol=0, atol=1e-7)


@pytest.mark.parametrize("start", [0.0, 0.03, 0.07])
def test_thin_walls_stop_fast_balls(start):
    """The gap is positive on both sides of the wall, far apart compared with its thickness."""
    thin = ((1.0, 0.0), (1.002, 0.0), (1.002, 1.0), (1.0, 1.0))
    sol = thrown(ball_and_walls((1.0, 1.0), thin, radius=0.005), (start, 0.5), (10.0, 0.0), 0.2)
    check_contacts(sol)
    assert story(sol) == [("impact", "wall")]
    assert abs(event_times(sol)[0] - (0.995 - start) / 10) <= 1e-12
    np.testing.assert_allclose(sol.q[-1], [0.0, 2 * 0.995 - start - 2.0, 0.5], rtol=0, atol=1e-10)


# -- a block on two corners ----------------------------------------------------------------------------------


HALF = (0.5, 0.2)


def block(inertia=0.2, restitution=0.0, gravity=9.81):
    floor = mbs.Profile.chain([mbs.Line((3.0, 0.0), (-3.0, 0.0))], closed=False)
    a, b = HALF
    rim = mbs.polygon([(-a, -b), (a, -b), (a, b), (-a, b)])
    sides = ("ground.floor", "block.rim")
    return mbs.Mechanism(
        [
            mbs.Body("ground", profiles={"floor": floor}),
            mbs.Body("block", mass=BALL, inertia=inertia, profiles={"rim": rim}),
        ],
        [
            mbs.Planar("at", "ground", "block"),
            mbs.Contact("left", *sides, restitution=restitution, elements_b=[7]),
            mbs.Contact("right", *sides, restitution=restitution, elements_b=[1]),
        ],
        gravity=(0.0, -gravity),
    )


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_block_falls_flat(restitution):
    """Both corners hit at once; each takes half of the momentum, and half of the weight afterwards."""
    sol = go(block(restitution=restitution), 2.0, positions={"at": (0.0, 0.0, 0.7)}, velocities={"at": (0.0, 0.3, 0.0)})
    check_contacts(sol)
    v = np.sqrt(2 * 9.81 * 0.5)
    assert abs(event_times(sol)[0] - v / 9.81) <= 1e-12
    np.testing.assert_allclose(sol.events.impulse[0], [BALL * v * (1 + restitution) / 2] * 2, rtol=1e-9)
    np.testing.assert_allclose(sol.events.v_after[0], [0.0, 0.3, restitution * v], rtol=0, atol=1e-9)
    np.testing.assert_allclose(sol.q[-1], [0.0, 0.6, 0.2], rtol=0, atol=1e-9)
    for name in ("left", "right"):
        assert float(sol[name].force[-1]) == pytest.approx(BALL * 9.81 / 2, rel=1e-9)


@pytest.mark.parametrize("inertia", [0.2, 0.8])
def test_block_falls_on_one_corner(inertia):
    """Plastic: the left corner stays, then the right one hits. Its impulse drives the left one into the floor where
    inertia < m a^2, and lifts it where it is more."""
    (a, b), tilt = HALF, 0.1
    sol = go(block(inertia), 0.42, positions={"at": (tilt, 0.0, 0.7)})
    check_contacts(sol)
    assert [name for _, name in story(sol)][:2] == ["left", "right"]
    events, m = sol.events, BALL
    # the left corner, seen from the center of mass
    x, y = -a * np.cos(tilt) + b * np.sin(tilt), -a * np.sin(tilt) - b * np.cos(tilt)
    fall = np.sqrt(2 * 9.81 * (0.7 + y))
    assert abs(event_times(sol)[0] - fall / 9.81) <= 1e-12
    impulse = fall / (1 / m + x * x / inertia)
    assert float(events.impulse[0, 0]) == pytest.approx(impulse, rel=1e-9)
    np.testing.assert_allclose(events.v_after[0], [x * impulse / inertia, 0.0, impulse / m - fall], rtol=0, atol=1e-9)
    # the right corner hits where the block lies flat; energy since the first impact
    kinetic = (m * (impulse / m - fall) ** 2 + inertia * (x * impulse / inertia) ** 2) / 2 + m * 9.81 * (-y - b)
    turns = -np.sqrt(2 * kinetic / (inertia + m * a * a))
    assert abs(float(events.q[1, 0])) <= 1e-9
    np.testing.assert_allclose(events.v_before[1], [turns, 0.0, a * turns], rtol=0, atol=1e-7)
    if inertia < m * a * a:
        assert story(sol) == [("closed", "left"), ("closed", "right")]
        both = np.linalg.solve([[1.0, 1.0], [-a, a]], [-m * a * turns, -inertia * turns])
        np.testing.assert_allclose(events.impulse[1], both, rtol=0, atol=1e-7)
        np.testing.assert_allclose(events.v_after[1], 0.0, rtol=0, atol=1e-12)
        np.testing.assert_allclose(sol["right"].force[-1], m * 9.81 / 2, rtol=1e-9)
    else:
        one = -2 * a * turns / (1 / m + a * a / inertia)
        np.testing.assert_allclose(events.impulse[1], [0.0, one], rtol=0, atol=1e-7)
        assert events.active[1].tolist() == [False, True]
    assert np.ptp(sol["at"].q[:, 1]) <= 1e-12  # no friction


# -- a row of balls ------------------------------------------------------------------------------------------


def cradle(restitution):
    balls = range(4)
    return mbs.Mechanism(
        [mbs.Body(f"b{i}", mass=1.0, profiles={"rim": mbs.disc(0.1)}) for i in balls],
        [
            *(mbs.Prismatic(f"x{i}", "ground", f"b{i}") for i in balls),
            *(mbs.Contact(f"c{i}", f"b{i}.rim", f"b{i + 1}.rim", restitution=restitution) for i in balls[:3]),
        ],
    )


def struck(restitution, gap, **options):
    """The first ball hits the others, which stand in a row."""
    places = [-0.5, 0.0, 0.2 + gap, 0.4 + 2 * gap]
    sol = go(
        cradle(restitution),
        1.0,
        positions={f"x{i}": x for i, x in enumerate(places)},
        velocities={"x0": 1.0, "x1": 0.0, "x2": 0.0, "x3": 0.0},
        **options,
    )
    check_contacts(sol)
    events, n = sol.events, int(sol.events.count)
    pushes = np.pad(np.asarray(events.impulse[:n]), ((0, 0), (1, 1)))
    np.testing.assert_allclose(np.asarray(events.v_after - events.v_before)[:n], -np.diff(pushes), rtol=0, atol=1e-12)
    np.testing.assert_allclose(sol.momentum()[:, 1], 1.0, rtol=0, atol=1e-12)
    return sol


@pytest.mark.parametrize("gap", [1e-3, 1e-6])
def test_cradle_with_gaps_hands_the_speed_on(gap):
    sol = struck(1.0, gap)
    assert story(sol) == [("impact", f"c{i}") for i in range(3)]
    np.testing.assert_allclose(event_times(sol), [0.3, 0.3 + gap, 0.3 + 2 * gap], rtol=0, atol=1e-12)
    np.testing.assert_allclose(sol.v[-1], [0.0, 0.0, 0.0, 1.0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(sol.kinetic, 0.5, rtol=1e-12)


@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_balls_that_touch_are_struck_together(restitution):
    """Newton's law at the contact that hits, none at those that only touch: three balls as one."""
    sol = struck(restitution, 0.0)
    assert int(sol.events.count) == 1
    others = (1 + restitution) / 4
    np.testing.assert_allclose(sol.v[-1], [others - restitution] + [others] * 3, rtol=0, atol=1e-12)
    np.testing.assert_allclose(sol.events.impulse[0], [3 * others, 2 * others, others], rtol=0, atol=1e-12)


def test_balls_that_touch_hand_the_speed_on_in_turn():
    sol = struck(1.0, 0.0, impacts="in turn")
    np.testing.assert_allclose(event_times(sol), 0.3, rtol=0, atol=1e-12)
    assert story(sol) == [("impact", "c0"), ("impact", "c1"), ("impact", "c2")]
    np.testing.assert_allclose(sol.v[-1], [0.0, 0.0, 0.0, 1.0], rtol=0, atol=1e-12)


def test_balls_that_strike_from_both_ends():
    """Two impacts in different places at the same time are one event."""
    both = go(
        cradle(1.0),
        1.0,
        positions={"x0": -0.5, "x1": 0.0, "x2": 0.3, "x3": 0.8},
        velocities={"x0": 1.0, "x1": 0.0, "x2": 0.0, "x3": -1.0},
    )
    check_contacts(both)
    # they pass their speeds on, the two in the middle meet at t = 0.35, and all go back as they came
    np.testing.assert_allclose(event_times(both), [0.3, 0.35, 0.4], rtol=0, atol=1e-12)
    np.testing.assert_allclose(both.events.impulse[:3], [[1, 0, 1], [0, 2, 0], [1, 0, 1]], rtol=0, atol=1e-12)
    np.testing.assert_allclose(both.v[-1], [-1.0, 0.0, 0.0, 1.0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(both.kinetic, 1.0, rtol=1e-12)


# -- compliant contacts --------------------------------------------------------------------------------------


def rebound(c, v):
    """The speed after an impact of Hunt and Crossley's law, in which c = hysteresis / stiffness. From
    m v dv = -k (1 + c v) d^n dd, whatever k, m and n are: c (v + v') = log((1 + c v) / (1 - c v'))."""
    if c == 0:
        return v
    return brentq(lambda u: c * (v + u) - np.log1p(c * v) + np.log1p(-c * u), 1e-3 * v, min(v, (1 - 1e-12) / c))


@functools.cache
def three_laws():
    """Three balls, without gravity, that fall on floors of three kinds."""
    floor = mbs.Profile.chain([mbs.Line((3.0, 0.0), (-3.0, 0.0))], closed=False)
    laws = {"hertz": mbs.Hertz(1e6), "voigt": mbs.KelvinVoigt(1e5, 60.0), "ln": mbs.LankaraniNikravesh(1e6, 0.9)}
    m, v, height = 2.0, 1.0, 0.05
    mech = mbs.Mechanism(
        [
            mbs.Body("ground", profiles={"floor": floor}),
            *(mbs.Body(f"ball {name}", mass=m, profiles={"rim": mbs.disc(0.1)}) for name in laws),
        ],
        [
            *(
                mbs.Prismatic(f"y {n}", "ground", f"ball {n}", (i - 1.0, 0.1), axis=(0.0, 1.0))
                for i, n in enumerate(laws)
            ),
            *(mbs.Contact(name, "ground.floor", f"ball {name}.rim", law=law) for name, law in laws.items()),
        ],
    )
    begin = {"positions": {f"y {n}": height for n in laws}, "velocities": {f"y {n}": -v for n in laws}}
    begin |= {"rtol": 1e-12, "atol": 1e-12}
    first = go(mech, 0.1, **begin)
    at = {name: [float(t) for t, (_, who) in zip(event_times(first), story(first)) if who == name] for name in laws}
    inside = np.linspace(at["hertz"][0], at["hertz"][1], 101)
    return first, go(mech, 0.1, **begin, ts=inside), at, m, v


def test_compliant_contacts_close_and_are_released():
    sol, _, at, _, v = three_laws()
    assert sorted(story(sol)) == sorted([(k, name) for name in at for k in ("closed", "released")])
    check_contacts(sol, forces=1e4)
    for closes, opens in at.values():
        assert abs(closes - 0.05 / v) <= 1e-12 and 0.001 < opens - closes < 0.05


def test_hertz_contact():
    """The energy is stored at the greatest depth, (5 m v^2 / (4 k))^(2/5); the duration is 2 depth / v times an
    integral of (1 - x^(5/2))^(-1/2)."""
    sol, fine, at, m, v = three_laws()
    depth = (5 * m * v**2 / (4 * 1e6)) ** 0.4
    duration = 2 * depth / v * np.sqrt(pi) * gamma(1.4) / gamma(0.9)
    closes, opens = at["hertz"]
    assert opens - closes == pytest.approx(duration, rel=1e-8)
    assert float(fine["hertz"].gap[50]) == pytest.approx(-depth, rel=1e-8)
    assert float(fine["hertz"].force[50]) == pytest.approx(1e6 * depth**1.5, rel=1e-8)
    assert float(sol["y hertz"].v[-1]) == pytest.approx(v, rel=1e-8)


def test_spring_and_damper_contact():
    """m x'' + c x' + k x = 0 until the force is zero: then the speed does not change any more."""
    sol, _, at, m, v = three_laws()
    k, c = 1e5, 60.0
    w = np.sqrt(k / m)
    z = c / (2 * m * w)
    wd = w * np.sqrt(1 - z * z)
    # x = v / wd exp(-z w t) sin(wd t); the force is zero where x'' is: at wd t = pi - atan2(2 z wd / w, 1 - 2 z^2)
    end = (pi - np.arctan2(2 * z * wd / w, 1 - 2 * z * z)) / wd
    x = v / wd * np.exp(-z * w * end) * np.sin(wd * end)
    speed = -v * np.exp(-z * w * end) * (np.cos(wd * end) - z * w / wd * np.sin(wd * end))
    assert float(sol["y voigt"].v[-1]) == pytest.approx(speed, rel=1e-7)
    closes, opens = at["voigt"]
    assert opens - closes == pytest.approx(end + x / speed, rel=1e-7)


def test_lankarani_nikravesh_contact():
    sol, _, _, _, v = three_laws()
    after = float(sol["y ln"].v[-1])
    assert after == pytest.approx(rebound(3 * (1 - 0.9**2) / (4 * v), v), rel=1e-8)
    assert abs(after - 0.9 * v) <= 1.5 * (1 - 0.9) ** 2


# -- thesis 3.5.3: two pendulums that collide ----------------------------------------------------------------


G = 9.81


def pendulums(law, restitution):
    """Two pairs of pendulums of 1 m and 1 kg, whose bobs touch where they hang: one pair compliant, the other rigid."""
    bodies, joints = [], []
    for pair, x in (("soft", 0.0), ("hard", 1.0)):
        for i in (1, 2):
            name = f"{pair}{i}"
            rim = mbs.disc(0.1, (0.0, -1.0))
            bodies.append(mbs.Body(name, mass=1.0, center=(0.0, -1.0), inertia=0.0, profiles={"rim": rim}))
            joints.append(mbs.Revolute(f"R {name}", "ground", name, (x + 0.2 * (i - 1), 0.0)))
    joints.append(mbs.Contact("soft", "soft1.rim", "soft2.rim", law=law))
    joints.append(mbs.Contact("hard", "hard1.rim", "hard2.rim", restitution=restitution))
    return mbs.Mechanism(bodies, joints, gravity=(0.0, -G))


def collision(stiffness, hysteresis, restitution, speed):
    """The first bobs swing down, so that they hit the others with that speed. What the velocities are a moment later,
    soft and hard, the two pendulums of each."""
    angle = np.arccos(1 - speed**2 / (2 * G))
    start = {f"R {pair}1": -angle for pair in ("soft", "hard")}
    rest = {f"R {pair}2": 0.0 for pair in ("soft", "hard")}
    law = mbs.HuntCrossley(stiffness, hysteresis)
    sol = go(pendulums(law, restitution), 0.6, positions={**start, **rest})
    check_contacts(sol, forces=1e3)
    assert sorted(story(sol)) == [("closed", "soft"), ("impact", "hard"), ("released", "soft")]
    hit = float(event_times(sol)[story(sol).index(("impact", "hard"))])
    period = 4 * ellipk(np.sin(angle / 2) ** 2) / np.sqrt(G)
    assert hit == pytest.approx(period / 4, rel=1e-8)
    return np.asarray(sol.v[-1, :2]), np.asarray(sol.v[-1, 2:])


def test_thesis_t5_compliant_and_piecewise_impact():
    """3.5.3 with k = 2.3e10 and mu = 2.5e11, at the speed for which (3.5.3-1) makes e = 0.8. Piecewise, the restitution
    that the law really has: the stiffer, the nearer."""
    ratio = 2.5e11 / 2.3e10
    v = (1 - 0.8**2) * 3 / (4 * ratio)
    assert float(mbs.equivalent_restitution(2.3e10, 2.5e11, v)) == pytest.approx(0.8)
    exact = rebound(ratio, v) / v
    off = []
    for stiffness in (2.3e4, 2.3e6, 2.3e8, 2.3e10):
        soft, hard = collision(stiffness, ratio * stiffness, exact, v)
        off.append(np.max(np.abs(soft - hard)) / v)
    # what they differ by goes with the duration of the impact, that is, with stiffness^(-2/5)
    rates = np.diff(np.log(off)) / np.log(100)
    assert np.all(rates < -0.25) and off[-1] < 2e-4
    assert abs(rates[-1] + 0.4) <= 0.01


def test_thesis_t5_equivalent_restitution():
    """(3.5.3-1) holds for e near 1: the error in what is left of the speed goes with (1 - e)^2."""
    stiffness, v = 2.3e10, 0.025
    off = []
    for hysteresis in (2.5e11, 2.5e10, 2.5e9):
        e = float(mbs.equivalent_restitution(stiffness, hysteresis, v))
        soft, hard = collision(stiffness, hysteresis, e, v)
        off.append(np.max(np.abs(soft - hard)) / v)
        assert off[-1] <= (1 - e) ** 2 + 1e-3
    assert off[0] > off[1] > off[2]


# -- thesis 3.7: crank-slider and four-bar -------------------------------------------------------------------


@pytest.mark.parametrize("restitution", [0.0, 0.2])
def test_thesis_t7_phases(restitution):
    """Tables 3.7-1 and 3.7-3, without the transitions of the open contact: formed (after some impacts, where there is a
    restitution); arc to point to arc; broken; and the same in the next turn."""
    sol = go(
        heavy_crank_slider(restitution),
        1.2,
        drive={"R12": mbs.constant_speed(-8.0, pi)},
        rest_speed=1e-3,
    )
    check_contacts(sol, size=10.0, forces=5e3, driven=True)
    events = sol.events.list(sol.mech)
    main = [(e.kind, e.after[1][1]) for e in events if e.kind != "impact"]
    turn = [("closed", "arc"), ("transition", "point"), ("transition", "arc")]
    assert main == [*turn, ("released", "arc"), *turn]
    # table 3.7-2: each impact leaves e of the speed, until less than 1e-3 is left
    kinds = [e.kind for e in events]
    assert (kinds.count("impact") >= 8) == (restitution > 0)
    for i, kind in enumerate(kinds):
        before, after = (float(x) for x in sol.events.speed[i])
        if kind == "impact":
            assert after == pytest.approx(-restitution * before, rel=1e-9) and after >= 1e-3
        if kind == "closed":
            assert abs(after) <= 1e-9 and -restitution * before < 1e-3
    # while in contact, the crank alone decides: the transitions are those of the kinematics
    motion = mbs.kinematics(crank_slider_and_four_bar(), {"R12": mbs.constant_speed(-5.0, pi)}, np.linspace(0, 0.9, 91))
    assert motion.events is not None
    wanted = np.asarray(motion.events.t[1:3]) * 5 / 8
    found = [e.t for e in events if e.kind == "transition"]
    np.testing.assert_allclose(found, [*wanted, *(wanted + 2 * pi / 8)], rtol=0, atol=1e-9)


# -- thesis 4.5: block, release and stop ---------------------------------------------------------------------


def test_thesis_t8_latch_blocks_releases_and_stops():
    sol = go(latch(), 2.0)
    check_contacts(sol, size=10.0, forces=50.0, behind=1.0)
    names = [c.name for c in sol.mech.contacts]
    said = story(sol)
    assert len(sol.mech.bodies) == 5 and {n.split()[0] for n in names} == {"C23", "C24", "C26", "C45", "C56"}
    # the nose lets go of the tooth, the hook catches the pin, the plunger frees it, the nose comes up, stops the slide
    order = [
        ("closed", "C23"),
        ("released", "C26"),
        ("released", "C23"),
        ("closed", "C24 stem"),
        ("closed", "C56"),
        ("transition", "C45"),
        ("transition", "C24"),
        ("released", "C24"),
        ("released", "C56"),
        ("closed", "C26 roof"),
        ("closed", "C26 second"),
    ]
    at = -1
    for event in order:
        assert event in said[at + 1 :]
        at = said.index(event, at + 1)
    # the finger's blow lifts the sear off the roof, and off the tripping lever
    struck = said.index(("closed", "C23"))
    assert said[struck + 1 : struck + 3] == [("released", "C26 roof"), ("released", "C24")]
    # every change of a contact is in the log, with a row of its own
    now = np.array([c.active for c in sol.mech.contacts])
    for i, (kind, name) in enumerate(said):
        if kind in ("closed", "released", "deleted"):
            now[names.index(name)] = kind == "closed"
        alone = i + 1 == len(said) or sol.events.t[i + 1] > sol.events.t[i]
        assert not alone or np.array_equal(now, sol.events.active[i])
    ts, log = np.asarray(sol.ts), event_times(sol)
    on = np.stack([sol[name].active for name in names], 1)
    last = np.searchsorted(log, ts, side="right") - 1
    begin = np.array([c.active for c in sol.mech.contacts])
    logged = np.where(last[:, None] < 0, begin, np.asarray(sol.events.active)[last])
    assert np.array_equal(on, logged)
    block, held, stop = ("C26", "C26 roof", "C24"), ("C24", "C24 stem"), ("C26 roof", "C26 second", "C24")
    for t, stage in ((0.05, block), (0.7, held), (2.0, stop)):
        row = on[np.argmin(np.abs(ts - t))]
        assert {n for n, x in zip(names, row) if x} == set(stage)
    slide = sol["P16"]
    assert np.max(np.abs(slide.q[ts < log[0]])) <= 1e-9
    assert float(slide.q[-1]) == pytest.approx(6.0, abs=1e-9) and abs(float(slide.v[-1])) <= 1e-9
    # at rest: the slide's spring on the nose; the tripping lever's on the pin; the sear's on the roof
    forces = {name: float(sol[name].force[-1]) for name in names}
    assert forces["C26 second"] == pytest.approx(2.0 * (8.0 - 6.0), rel=1e-9)
    assert forces["C24"] == pytest.approx(10.0 / 4.7, rel=1e-9)
    assert forces["C26 roof"] == pytest.approx((20.0 - 10.0 / 4.7) / 5.3, rel=1e-9)
