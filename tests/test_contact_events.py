"""Contacts that form and part: indexing and ratcheting machines over several turns, jams, and the traps of event
location, one test each."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import mbsjax as mbs
from tests.contacts import T3, Swing, geneva_drive, kinds, ratchet, t3_cam
from tests.test_contact_motion import SPEED, borders, turning


def no_overlap(motion: mbs.Motion, *names: str) -> None:
    """Every contact is closed where it is active, and not overlapped where it is not."""
    for name in names:
        track = motion[name]
        gap, active = np.asarray(track.gap), np.asarray(track.active)
        assert np.all(gap >= -1e-9) and np.all(np.abs(gap[active]) <= 1e-9)


def whole_gap(motion: mbs.Motion, a: str, b: str) -> np.ndarray:
    """The gap between the whole profiles of two bodies."""
    first, second = (next(iter(motion.mech.body(name).profiles.values())) for name in (a, b))
    X = jnp.linalg.inv(motion.pose(a)) @ motion.pose(b)
    poses = mbs.PlanarFrame(X[:, 0, 3], X[:, 1, 3], jnp.arctan2(X[:, 1, 0], X[:, 0, 0]))
    return np.asarray(jax.vmap(lambda pose: mbs.contact_coordinates(first, second, pose)[2])(poses))


@pytest.mark.long
def test_geneva_drive_over_three_turns():
    """The output is every tenth of these times. Each turn the pin enters a slot, pushes its leading wall, and
    leaves; between, the wheel rests in its lock."""
    mech = geneva_drive()
    ts = jnp.linspace(0.0, 6 * jnp.pi, 1801)
    motion = mbs.kinematics(mech, {"A": mbs.constant_speed(1.0, np.pi)}, ts)
    assert float(motion.residual.max()) <= 1e-10
    no_overlap(motion, "drive", "lock")
    once = [("closed", "drive"), ("transition", "drive"), ("released", "drive")]
    assert kinds(motion) == once * 3
    # The wheel is let go when the corner of the wall, ahead of the pin, is in line with the two centers of the crank.
    c, r, gap = 100.0, 4.0, 0.05
    a = b = c * np.sin(np.pi / 4)
    corner, lean, reach = np.hypot(b, r + gap), np.arctan2(r + gap, b), a + r
    out = np.arccos((c**2 + reach**2 - corner**2) / (2 * c * reach))
    rest = np.arctan2(reach * np.sin(out), reach * np.cos(out) - c) - (np.pi / 2 - lean)
    # It is met when the pin's center is a clearance off the middle of the slot, which has waited since.
    off = lambda alpha, slot: np.cos(slot) * a * np.sin(alpha) - np.sin(slot) * (a * np.cos(alpha) - c)
    met = [brentq(lambda x, s=s: off(x, s) + gap, -np.pi / 4, 0.0) for s in (5 * np.pi / 4, rest + np.pi)]
    middle = np.pi * (1 + 2 * np.arange(3))
    event_times = np.asarray(motion.events.t[:9]).reshape(3, 3)
    np.testing.assert_allclose(event_times[:, 0], middle + np.array([met[0], met[1], met[1]]), atol=1e-9)
    np.testing.assert_allclose(event_times[:, 2], middle + out, atol=1e-9)
    wheel = np.asarray(motion["B"].q)
    np.testing.assert_allclose(
        wheel[[0, 600, 1200, 1800]], [3 * np.pi / 4, *(rest - np.pi / 2 * np.arange(3))], atol=1e-9
    )
    resting = ~np.asarray(motion["drive"].active)
    assert np.max(np.abs(np.asarray(motion["B"].v)[resting])) <= 1e-12
    # in the slot the pin's center is a clearance off its middle: the wheel turns as the handbook says, to that
    inside = np.abs(np.asarray(ts) - np.pi) < -met[0]
    alpha = np.asarray(ts)[inside] - np.pi
    slot = np.pi - np.arctan2(a * np.sin(alpha), c - a * np.cos(alpha)) - np.pi / 2
    distance = np.hypot(a * np.sin(alpha), c - a * np.cos(alpha))
    np.testing.assert_allclose(wheel[inside], slot + np.arcsin(gap / distance), atol=1e-9)


@pytest.mark.long
def test_ratchet_with_two_pawls_over_many_teeth():
    """Every swing of the arm the driver's pawl pushes the wheel on by a tooth, and both pawls ride over the backs and
    drop behind the tips, at once: before and after a drop the time is the same."""
    mech = ratchet()
    swings = 3
    ts = jnp.linspace(0.0, 2 * jnp.pi * swings, 601)
    motion = mbs.kinematics(mech, {"A": Swing(jnp.asarray(0.34))}, ts)
    assert float(motion.residual.max()) <= 1e-10
    no_overlap(motion, "seat driver", "seat holder")
    for pawl in ("driver", "holder"):  # and all elements of the wheel with all of the pawl
        apart = whole_gap(motion, "wheel", pawl)
        assert np.all(apart >= -1e-9) and np.all(apart <= 1e-9)  # pressed on
    events = motion.events.list(mech)
    pushes = [e for e in events if e.contact == "catch driver"]
    assert [e.kind for e in pushes] == ["closed", "released"] * swings
    # the arm turns back at pi, 3 pi, ...: there the nose leaves the flank
    np.testing.assert_allclose([e.t for e in pushes[1::2]], np.pi * (1 + 2 * np.arange(swings)), atol=1e-9)
    for seat in ("seat driver", "seat holder"):
        mine = [e for e in events if e.contact == seat]
        falls = [(a, b) for a, b in itertools.pairwise(mine) if a.kind == "deleted"]
        assert len(falls) == swings
        for lost, found in falls:
            assert lost.before[0][1] == "point" and found.kind == "closed" and found.t == lost.t
            assert (lost.before[0][0] - found.after[0][0]) % 48 == 3  # from a tip to the back before it
    ends = np.asarray(motion["W"].q)[[200, 400, 600]]
    np.testing.assert_allclose(np.diff(ends), 2 * np.pi / 12, atol=1e-9)
    wheel = np.asarray(motion["W"].q)
    assert np.all(np.diff(wheel) >= -1e-9)  # it never turns back


def rotor(reach=2.0, start=2.9, **options) -> mbs.Mechanism:
    """A pin on a driven arm, and a peg on a slider that rests on x."""
    return mbs.Mechanism(
        [
            mbs.Body("arm", profiles={"pin": mbs.disc(0.1, jnp.stack([jnp.asarray(reach), jnp.zeros(())]))}),
            mbs.Body("slide", profiles={"peg": mbs.disc(0.1)}),
        ],
        [
            mbs.Revolute("O", "ground", "arm"),
            mbs.Prismatic("P", "ground", "slide", start=start),
            mbs.Contact("C", "arm.pin", "slide.peg", **options),
        ],
    )


SWEEP = jnp.array([0.0, 1.0, 2.0])


def sweep(reach, start, speed=1.0, begin=-1.0, **options) -> mbs.Motion:
    drive = {"O": mbs.constant_speed(speed, begin)}
    return mbs.kinematics(rotor(reach, start, **options), drive, SWEEP, throw=False)


@pytest.mark.long
def test_trap_two_events_in_one_step():
    """B and C of the cam T3 are 1.6 degrees apart; thirteen outputs leave 30 degrees between them."""
    motion = mbs.kinematics(t3_cam(), turning(), jnp.linspace(0.0, 4 * jnp.pi, 13))
    np.testing.assert_allclose(SPEED * motion.events.t[:8], borders(T3), rtol=0, atol=1e-9)
    assert motion.events.after[:8, 0].tolist() == [1, 2, 3, 4, 5, 6, 7, 0]


@pytest.mark.long
def test_trap_double_crossing_inside_a_step():
    """The pin sweeps through the place of the peg, whose middle it would miss by 0.19: the overlap lasts 0.06 rad, less
    than a step. It closes where the law of cosines says, and lifts the peg away."""
    reach, start = 2.0, 2.19
    motion = sweep(reach, start)
    assert kinds(motion)[0] == ("closed", "C")
    cosine = (reach**2 + start**2 - 0.2**2) / (2 * reach * start)
    assert float(motion.events.t[0]) == pytest.approx(1 - np.arccos(cosine), abs=1e-10)
    assert float(motion.events.q[0, 1]) == pytest.approx(start, abs=1e-10)


@pytest.mark.long
def test_a_contact_that_becomes_impossible_and_its_date():
    """The pin draws the peg along ("keep") until it is beside it: then nothing can keep them together. The time
    follows from the geometry, and so does its derivative, to what a singular position allows."""

    def event_times(reach):
        motion = mbs.kinematics(rotor(reach, 2.19), {"O": mbs.constant_speed(1.0, -1.0)}, SWEEP, throw=False)
        return motion.events.t[:2], motion.events.kind[:2]

    reach = jnp.asarray(2.0)
    (_, deleted), kind = jax.jit(event_times)(reach)
    assert [mbs.EVENTS[int(k)] for k in kind] == ["closed", "deleted"]
    assert float(deleted) == pytest.approx(1 + np.arcsin(0.2 / 2), abs=1e-9)
    slope = jax.jit(jax.jacfwd(lambda r: event_times(r)[0]))(reach)
    cosine = lambda r: (r**2 + 2.19**2 - 0.2**2) / (2 * r * 2.19)
    assert float(slope[0]) == pytest.approx(float(jax.grad(lambda r: -jnp.arccos(cosine(r)))(reach)), rel=1e-8)
    assert float(slope[1]) == pytest.approx(-0.2 / 4 / np.sqrt(1 - 0.01), rel=1e-3)


@pytest.mark.parametrize("miss", [1e-6, -1e-6])
def test_trap_grazing_touch(miss):
    """Passing by at a distance of a millionth is no contact; overlapping by as much is one."""
    motion = sweep(2.0, 2.2 + miss)
    if miss > 0:
        assert int(motion.events.count) == 0 and bool(motion.result == mbs.RESULTS.successful)
        assert float(jnp.ptp(motion["P"].q)) == 0.0
    else:
        assert kinds(motion)[0] == ("closed", "C")
        # the pin pushes the peg out by what they would overlap, and with "keep" holds it from then on
        assert float(motion["P"].q[1]) == pytest.approx(2.2, abs=1e-9)


def test_trap_start_exactly_on_a_transition():
    """The cam T3 begins where the roller's contact passes from the arc to the corner."""
    begin = float(borders(T3)[0])
    motion = mbs.kinematics(t3_cam(), turning(start=-begin), jnp.linspace(0.0, 4 * jnp.pi, 13))
    event_times = (borders(T3) - begin) % (2 * np.pi)
    found = np.asarray(SPEED * motion.events.t[: int(motion.events.count)])
    inner = found[(found > 1e-8) & (found < 2 * np.pi - 1e-8)]
    np.testing.assert_allclose(inner, np.sort(event_times)[1:], rtol=0, atol=1e-9)
    assert float(motion.residual.max()) <= 1e-11


@pytest.mark.parametrize("speed", [1.0, -1.0])
def test_trap_start_exactly_on_a_contact(speed):
    """Pin and peg touch at the start; the contact is active at once if they approach, and never if they part."""
    reach = 2.0
    begin = -0.05
    start = reach * np.cos(begin) + np.sqrt(0.2**2 - (reach * np.sin(begin)) ** 2)
    motion = sweep(reach, start, speed, begin)
    if speed > 0:
        assert kinds(motion)[0] == ("closed", "C") and float(motion.events.t[0]) == pytest.approx(0.0, abs=1e-8)
    else:
        assert int(motion.events.count) == 0


@pytest.mark.long
def test_trap_both_profiles_change_element_at_once():
    """A block slides from under the edge of a wedge: first the edge is on its top, then its corner on the wedge's
    flank. The follower sinks along the flank, at 45 degrees."""
    square = [(-3.0, -1.0), (0.0, -1.0), (0.0, 0.0), (-3.0, 0.0)]
    wedge = [(0.0, 0.0), (2.0, 2.0), (-2.0, 2.0)]
    mech = mbs.Mechanism(
        [
            mbs.Body("block", profiles={"rim": mbs.polygon(square)}),
            mbs.Body("wedge", profiles={"rim": mbs.polygon(wedge)}),
        ],
        [
            mbs.Prismatic("X", "ground", "block"),
            mbs.Prismatic("Y", "ground", "wedge", axis=(0.0, 1.0), start=0.1),
            mbs.Contact("C", "block.rim", "wedge.rim", active=True),
        ],
    )
    motion = mbs.kinematics(mech, {"X": mbs.constant_speed(-1.0, 1.0)}, jnp.linspace(0.0, 2.0, 41))
    (event,) = motion.events.list(mech)
    assert event.kind == "transition" and event.t == pytest.approx(1.0, abs=1e-9)
    assert [kind for _, kind in event.before] == ["line", "point"]
    assert [kind for _, kind in event.after] == ["point", "line"]
    x = np.asarray(motion["X"].q)
    np.testing.assert_allclose(motion["Y"].q, np.minimum(0.0, x), atol=1e-9)
    y = mech.freedoms("Y")[0]
    assert float(motion.events.v_before[0, y]) == pytest.approx(0.0, abs=1e-12)
    assert float(motion.events.v_after[0, y]) == pytest.approx(-1.0, abs=1e-12)


def blocked() -> mbs.Mechanism:
    """A driven pin, and a peg that is fixed to ground."""
    return mbs.Mechanism(
        [mbs.Body("ground", profiles={"peg": mbs.disc(0.1, (0.0, 2.0))}), rotor().body("arm")],
        [mbs.Revolute("O", "ground", "arm"), mbs.Contact("stop", "arm.pin", "ground.peg")],
    )


def test_a_jam_tells_where_when_and_what():
    mech, drive = blocked(), {"O": mbs.constant_speed(1.0)}
    motion = mbs.kinematics(mech, drive, SWEEP, throw=False)
    assert bool(motion.result == mbs.RESULTS.jammed) and kinds(motion) == [("jammed", "stop")]
    locked = np.pi / 2 - np.arccos(1 - 0.2**2 / (2 * 2.0**2))
    assert float(motion.stopped_at) == pytest.approx(locked, abs=1e-9)
    assert np.all(np.isnan(motion.q[2])) and np.all(np.isfinite(motion.q[:2]))
    with pytest.raises(RuntimeError, match=r"At t = 1\.47.*jammed.*held by 'stop'"):
        mbs.kinematics(mech, drive, SWEEP)


def test_bodies_that_overlap_at_the_start():
    with pytest.raises(ValueError, match="'arm' and 'slide' interpenetrate at the start by 0.1.*'C'"):
        mbs.kinematics(rotor(2.0, 2.1), {"O": mbs.constant_speed(1.0)}, SWEEP)
    with pytest.raises(ValueError, match="'arm' and 'slide' interpenetrate at the start by 1e-05"):
        mbs.kinematics(rotor(2.0, 2.19999), {"O": mbs.constant_speed(1.0)}, SWEEP)


@pytest.mark.parametrize(
    ("on", "what"),
    [
        ([(-1.0, -1.0), (0.0, 0.0), (-2.0, 0.0)], "point on a point"),
        ([(-3, -1), (3, -1), (3, 0), (-3, 0)], "line on a line"),
    ],
)
def test_contacts_that_last_for_an_instant_only(on, what):
    top = mbs.polygon(
        [(0.0, 0.0), (2.0, 1.0), (0.5, 2.0)] if what.startswith("point") else [(0, 0), (1, 0), (1, 1), (0, 1)]
    )
    mech = mbs.Mechanism(
        [mbs.Body("ground", profiles={"rim": mbs.polygon(on)}), mbs.Body("top", profiles={"rim": top})],
        [
            mbs.Prismatic("Y", "ground", "top", axis=(0.0, 1.0), start=0.0),
            mbs.Contact("C", "ground.rim", "top.rim", active=True),
        ],
    )
    with pytest.raises(ValueError, match=f"contact 'C' is active at the start with a {what}"):
        mbs.kinematics(mech, {}, SWEEP)
