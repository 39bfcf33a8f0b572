"""Driven motion with contacts: the cam of the thesis 4.4 against closed forms, its derivatives and its variants; the
crank-slider with four-bar of 2.6."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from tests.contacts import T3, crank_slider_and_four_bar, kinds, t3_cam


TS = jnp.linspace(0.0, 4 * jnp.pi, 361)
SPEED = 0.5


def turning(speed=-SPEED, start=0.0):
    """The cam turns clockwise, so that the follower goes counter-clockwise round it."""
    return {"O": mbs.constant_speed(speed, start)}


def borders(p) -> np.ndarray:
    """The angles between which the roller is on each element: its center stands on the normal at an element's end."""
    corners = np.array([(p["e"], p["R"]), (-p["l"], p["w"]), (-p["l"], -p["w"]), (p["e"], -p["R"])])
    normals = []
    for a, b in zip(corners, np.roll(corners, -1, 0)):
        d = (b - a) / np.linalg.norm(b - a)
        normals.append((d[1], -d[0]))
    top, left, bottom = np.array(normals[:3])
    ends = [(corners[0], (0.0, 1.0)), (corners[0], top), (corners[1], top), (corners[1], left)]
    ends += [(corners[2], left), (corners[2], bottom), (corners[3], bottom), (corners[3], (0.0, -1.0))]
    centers = np.array([c + p["r"] * np.array(n) for c, n in ends])
    return np.arctan2(centers[:, 1], centers[:, 0]) % (2 * np.pi)


def lifts(p):
    """The distance of the roller's center as a function of the angle, for each element (appendix C, put right)."""
    e, R, l, w, r = (p[k] for k in ("e", "R", "l", "w", "r"))  # noqa: E741

    def arc(th):
        return e * jnp.cos(th) + jnp.sqrt((R + r) ** 2 - (e * jnp.sin(th)) ** 2)

    def corner(x, y):
        def lift(th):
            c, s = jnp.cos(th), jnp.sin(th)
            return x * c + y * s + jnp.sqrt(r**2 - (x * s - y * c) ** 2)

        return lift

    def line(a, b):
        d = np.array(b) - np.array(a)
        n = np.array([d[1], -d[0]]) / np.hypot(*d)
        return lambda th: (n @ np.array(a) + r) / (n[0] * jnp.cos(th) + n[1] * jnp.sin(th))

    A, B, C, D = (e, R), (-l, w), (-l, -w), (e, -R)
    return [arc, corner(*A), line(A, B), corner(*B), line(B, C), corner(*C), line(C, D), corner(*D)]


@pytest.fixture(scope="module")
def cam() -> mbs.Motion:
    return mbs.kinematics(t3_cam(), turning(), TS)


@pytest.fixture(scope="module")
def truth():
    """For each element: lift, velocity and acceleration at any time."""

    def rates(lift):
        f = lambda t: lift(SPEED * t)
        return jax.jit(lambda t: (f(t), jax.grad(f)(t), jax.grad(jax.grad(f))(t)))

    return [rates(lift) for lift in lifts(T3)]


@pytest.mark.long
def test_thesis_t3_lift_over_a_full_turn(cam, truth):
    assert float(cam.residual.max()) <= 1e-11
    ends = borders(T3)
    element = np.searchsorted(ends, np.asarray(SPEED * TS), side="left") % 8
    track = cam["guide"]
    for i, t in enumerate(TS):
        if np.min(np.abs(ends - SPEED * float(t))) < 1e-9:
            continue
        for actual, wanted in zip((track.q[i], track.v[i], track.a[i]), truth[element[i]](t)):
            assert abs(float(actual - wanted)) <= 1e-9 * max(1.0, abs(float(wanted)))


def test_thesis_t3_transitions(cam, truth):
    assert kinds(cam) == [("transition", "C23")] * 8
    events = cam.events
    np.testing.assert_allclose(SPEED * events.t[:8], borders(T3), rtol=0, atol=1e-9)
    assert np.all(np.isinf(events.t[8:]))
    for k in range(8):
        assert events.before[k].tolist() == [k, 0] and events.after[k].tolist() == [(k + 1) % 8, 0]
        t = events.t[k]
        for element, v, a in ((k, events.v_before, events.a_before), (k + 1, events.v_after, events.a_after)):
            rho, rhod, rhodd = truth[element % 8](t)
            assert abs(float(events.q[k, 1] - rho)) <= 1e-9
            assert abs(float(v[k, 1] - rhod)) <= 1e-9 * abs(float(rhod))
            assert abs(float(a[k, 1] - rhodd)) <= 1e-9 * abs(float(rhodd))


def test_thesis_t3_printed_values(cam):
    """reference/thesis.md, T3: at A, B and C."""
    events = cam.events
    assert cam["guide"].q[0] == pytest.approx(40) and cam["guide"].a[0] == pytest.approx(-6)
    assert np.rad2deg(SPEED * events.t[0]) == pytest.approx(59.0362435, abs=1e-7)
    assert float(events.t[0]) == pytest.approx(2.060753653, abs=1e-9)
    assert float(events.q[0, 1]) == pytest.approx(29.154759474, abs=1e-9)
    assert float(events.v_before[0, 1]) == pytest.approx(-8.746427842, abs=1e-9)
    assert float(events.a_before[0, 1]) == pytest.approx(-0.944614, abs=1e-6)
    assert float(events.a_after[0, 1]) == pytest.approx(-54.869268, rel=1e-6)
    assert np.rad2deg(SPEED * events.t[1]) == pytest.approx(60.6220879, abs=1e-7)
    assert float(events.q[1, 1]) == pytest.approx(28.577941054, abs=1e-8)
    assert float(events.a_before[1, 1]) == pytest.approx(-75.953489, rel=1e-6)
    assert float(events.a_after[1, 1]) == pytest.approx(17.706858, rel=1e-6)


def test_thesis_t3_curvilinear_coordinates(cam):
    """q1 runs from 0.5 through the elements of Fig. 2.4.2-4; the gap stays zero; the place lies on both profiles."""
    track = cam["C23"]
    ends = borders(T3)
    element = np.searchsorted(ends, np.asarray(SPEED * TS), side="left") % 8
    away = np.min(np.abs(ends[None] - SPEED * np.asarray(TS)[:, None]), 1) > 1e-9
    assert np.array_equal(np.floor(track.q[away, 0]), element[away])
    along = np.unwrap(np.asarray(track.q[:, 0]), period=8)
    assert np.all(np.diff(along) > 0) and along[-1] - along[0] == pytest.approx(8)
    assert bool(jnp.all(track.active)) and float(jnp.max(jnp.abs(track.gap))) <= 1e-11
    center = cam.point("follower").q
    np.testing.assert_allclose(center - T3["r"] * track.normal, track.point, atol=1e-10)
    # the coordinate and its rates on the arc and on the first line, from where the roller's center is
    top, left = np.array([T3["e"], T3["R"]]), np.array([-T3["l"], T3["w"]])

    def on_arc(t):
        rho, th = lifts(T3)[0](SPEED * t), SPEED * t
        return (jnp.arctan2(rho * jnp.sin(th), rho * jnp.cos(th) - T3["e"]) + jnp.pi / 2) / jnp.pi

    def on_line(t):
        rho, th = lifts(T3)[2](SPEED * t), SPEED * t
        center = rho * jnp.stack([jnp.cos(th), jnp.sin(th)])
        return 2 + jnp.dot(center - top, left - top) / np.sum((left - top) ** 2)

    for number, wanted in ((0, on_arc), (2, on_line)):
        rows = away & (element == number) & (np.asarray(TS) < 6.0)
        for k, f in enumerate((wanted, jax.grad(wanted), jax.grad(jax.grad(wanted)))):
            np.testing.assert_allclose(track[k][rows, 0], jax.vmap(f)(TS[rows]), rtol=1e-9, atol=1e-10)


@jax.jit
def outputs(p, speed=-SPEED):
    motion = mbs.kinematics(t3_cam(p), turning(speed), TS, throw=False)
    events = motion.events
    return {
        "q": motion["guide"].q,
        "v": motion["guide"].v,
        "a": motion["guide"].a,
        "t": jnp.where(jnp.isfinite(events.t), events.t, 1e3),
        "log": jnp.concatenate([events.kind[:, None], events.contact[:, None], events.before, events.after], 1),
        "count": events.count,
        "good": motion.result == mbs.RESULTS.successful,
    }


P = {k: jnp.asarray(v) for k, v in T3.items()}
ROWS = np.array([0, 70, 150, 200, 301])


def measures(p):
    out = outputs(p)
    return jnp.concatenate([out["q"][ROWS], out["v"][ROWS], out["t"][:8]])


@pytest.mark.long
def test_derivatives_of_lift_and_event_times():
    forward, reverse = jax.jit(jax.jacfwd(measures))(P), jax.jit(jax.jacrev(measures))(P)
    h = 1e-3
    for k in P:
        near = [np.asarray(measures({**P, k: P[k] + x * h})) for x in (-2, -1, 1, 2)]
        slope = (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * h)
        np.testing.assert_allclose(forward[k], slope, rtol=0, atol=1e-6 * max(1.0, np.abs(slope).max()))
        np.testing.assert_allclose(reverse[k], forward[k], rtol=0, atol=1e-12 * max(1.0, np.abs(slope).max()))


@pytest.mark.long
def test_many_cams_at_once_equal_single_runs():
    """256 cams with different dimensions, driven at different speeds, so that they go through different events."""
    keys = jax.random.split(jax.random.key(0), len(P) + 1)
    spread = {k: v * (1 + 0.05 * jax.random.uniform(key, (256,), minval=-1.0)) for key, (k, v) in zip(keys, P.items())}
    speeds = -jax.random.uniform(keys[-1], (256,), minval=0.1, maxval=0.6)
    many = jax.vmap(outputs)(spread, speeds)
    assert bool(jnp.all(many["good"])) and len(np.unique(many["count"])) > 5
    for i in range(256):
        single = outputs({k: v[i] for k, v in spread.items()}, speeds[i])
        assert int(single["count"]) == int(many["count"][i])
        n = int(single["count"])
        assert np.array_equal(single["log"][:n], many["log"][i][:n])
        for name in ("q", "v", "a", "t"):
            scale = max(1.0, float(jnp.max(jnp.abs(single[name]))))
            np.testing.assert_allclose(many[name][i], single[name], rtol=0, atol=1e-10 * scale)


@pytest.mark.long
def test_a_plane_anywhere_in_space():
    """The same cam in a tilted plane, its follower in a parallel one, treated in space."""
    tilt = mbs.frames.compose(mbs.frames.translation((3.0, -2.0, 5.0)), mbs.frames.rotation((1.0, 2.0, 3.0), 0.7))
    lifted = mbs.frames.compose(tilt, mbs.frames.translation((0.0, 0.0, 4.0)))
    along = mbs.frames.rotation((0.0, 1.0, 0.0), jnp.pi / 2)  # z of a spatial slide is x of the plane
    flat = t3_cam()
    profiles = [body.profiles for body in flat.bodies]
    space = mbs.Mechanism(
        [mbs.Body("cam", profiles=profiles[0]), mbs.Body("follower", profiles=profiles[1])],
        [
            mbs.Revolute("O", "ground", "cam", tilt, jnp.eye(4)),
            mbs.Prismatic("guide", "ground", "follower", mbs.frames.compose(lifted, along), along, start=45.0),
            mbs.Contact("C23", "cam.rim", "follower.roller", active=True),
        ],
    )
    assert not space.planar
    ts = jnp.linspace(0.0, 6.0, 7)
    motion = mbs.kinematics(space, turning(), ts)
    wanted = mbs.kinematics(flat, turning(), ts)
    for a, b in zip(motion["guide"], wanted["guide"]):
        np.testing.assert_allclose(a, b, atol=1e-9)
    np.testing.assert_allclose(motion.events.t, wanted.events.t, atol=1e-10)
    np.testing.assert_allclose(motion["C23"].q, wanted["C23"].q, atol=1e-10)


@pytest.mark.long
def test_thesis_t2_degrees_of_freedom():
    mech = crank_slider_and_four_bar()
    assert mbs.mobility(mech).freedom == mbs.mobility(mech).counted == 2
    touching = mbs.mobility(mech, active=["C45"])
    assert touching.freedom == touching.counted == 1
    assert [mech.topology.loop_links(i) for i in range(2)] == [
        ("ground", "L2", "L3", "L4", "ground"),
        ("ground", "L5", "L6", "L7", "ground"),
    ]
    assert mech.topology.way_round("L4", "L5") == ("ground", "L4", "L5", "ground")
    words = str(mech)
    assert "3 loops" in words and "C45: L4.nose -> L5.flank (open: q1, q2, q3), 1 x 3 elements" in words
    assert "ground - L4 - L5 - ground through contact C45" in words and "with all contacts open" in words


@pytest.mark.long
def test_thesis_t7_crank_slider_pushes_four_bar():
    """2.6: the four-bar rests until the slider meets it; then L5 is followed over arc, point, arc and back."""
    mech = crank_slider_and_four_bar()
    ts = jnp.linspace(0.0, 0.9, 91)
    motion = mbs.kinematics(mech, {"R12": mbs.constant_speed(-5.0, np.pi)}, ts)
    events = motion.events.list(mech)
    assert kinds(motion) == [("closed", "C45")] + [("transition", "C45")] * 4
    assert [e.after[1] for e in events] == [(2, "arc"), (1, "point"), (0, "arc"), (1, "point"), (2, "arc")]
    before = np.asarray(ts) < events[0].t
    assert np.ptp(motion["R17"].q[before]) <= 1e-12 and float(jnp.max(jnp.abs(motion["R17"].v[before]))) <= 1e-12
    gap = motion["C45"].gap
    assert np.all(np.diff(gap[before]) < 0) and np.all(gap[before] > 0) and np.all(np.abs(gap[~before]) <= 1e-11)
    assert np.array_equal(motion["C45"].active, ~before)
    # the slider moves to and fro: the transitions of the way out and back are at the same slider positions
    slider = mech.stored("P14")[0]
    out = np.asarray(motion.events.q[:5, slider])
    np.testing.assert_allclose(out[1:3], out[[4, 3]], atol=1e-9)
    assert float(motion.residual.max()) <= 1e-11
