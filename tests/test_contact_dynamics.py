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
from scipy.special import ellipk

import mbsjax as mbs
from tests.contacts import T3, crank_slider_and_four_bar, heavy_crank_slider, t3_cam
from tests.impacts import rebound
from tests.latch import latch
from tests.simulated import COUNT, check_contacts, event_times, go, story
from tests.test_contact_motion import borders, lifts


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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
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
