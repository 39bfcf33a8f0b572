"""Every impact is found, none is added and none misdated: random scenes against closed forms, and roller cams with
hollow corners against their envelopes."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs

from .scenes import FAMILIES, HORIZON, Answer, Scenes, scenes, scenes_of
from .sliding import solved
from .thrown import Simulated, judged, simulated, within


SCENES = {"room": 32, "star room": 32, "obstacle": 16, "star obstacle": 16, "slot": 28, "bite": 28, "open chain": 32,
          "rod in a room": 16, "floor with friction": 256, "rounded slot": 64}  # fmt: skip
FLOOR = [(1.0, 0.0), (1 / 3, 0.0), (-1 / 3, 0.0), (-1.0, 0.0)]
ROOM = [(-1.0, 1.0), (0.0, 1.0), (1.0, 1.0), (1.0, -1.0), (0.0, -1.0), (-1.0, -1.0)]


def scene(vertices, size, restitution, start, throw=(0.0, 0.0), **more) -> dict[str, np.ndarray]:
    given = {"vertices": vertices, "size": size, "restitution": restitution, "start": start, "throw": throw, **more}
    return {name: np.array(x, float)[None] for name, x in given.items()}


def stopped_by_bounces(fractions: np.ndarray) -> dict[str, np.ndarray]:
    """Discs that friction stops sliding by the impulses of their bounces, but for so small a part of their speed."""
    R, h, e, mu, k, n = 0.2, 0.1, 0.3, 0.2, 0.5, len(fractions)
    impulse = (1 + e) * np.sqrt(2 * 9.81 * h) / (1 - e)  # of all bounces, by the mass
    along = mu * (1 + 1 / k) * impulse * (1 - fractions)
    given = {"vertices": [(25.0, 0.0), (-25.0, 0.0)], "size": R, "restitution": e, "start": (0.0, R + h)}
    given |= {"turn": (0.0, 0.0), "mass": 1.0, "inertia": k * R**2, "friction": mu}
    every = {name: np.repeat(np.array(x, float)[None], n, 0) for name, x in given.items()}
    return every | {"throw": np.stack([along, 0 * along], 1)}


# scenes that share a program with random ones, and when they are looked at
CHOSEN = {
    "polygon": {
        "thrown into a corner": (scene(ROOM, 0.2, 0.8, (0.0, 0.0), (2.48, -1.27)), HORIZON),
        "a wall is grazed beside another": (scenes("room", 2247, 1).drawing, HORIZON),
    },
    "floor": {"stopped by its bounces": (stopped_by_bounces(np.geomspace(1e-10, 1e-3, 16)), HORIZON)},
    "open": {
        "0.009 from the end": (scene(FLOOR, 0.1, 1.0, (0.991, 1.1)), 0.6),
        "0.024 from the end": (scene(FLOOR, 0.1, 1.0, (0.976, 1.1)), 0.6),
        "on the tip": (scene(FLOOR, 0.1, 0.7, (1.05, 1.1)), 0.6),
        "on the other tip": (scene(FLOOR, 0.1, 0.7, (-1.05, 1.1)), 0.6),
        "past the tip": (scene(FLOOR, 0.1, 0.7, (1.101, 1.1)), 0.6),
    },
    "slot": {
        "from a line to the hollow end": (
            scene(
                [(-1.0104548331577563, 0.0), (1.0104548331577563, 0.0)],
                0.42492807417601064,
                0.9425529627493348,
                (0.27087807473404474, -0.007964815172801046),
                (1.917618587339823, -2.86225621950722),
                radii=[0.474744713470971],
            ),
            HORIZON,
        ),
    },
}


@cache
def played(structure: str) -> dict[str, tuple[Scenes, Answer, Simulated]]:
    """All scenes of a structure, simulated in one call."""
    drawn = {name: scenes(name, 0, n).drawing for name, n in SCENES.items() if FAMILIES[name][0] == structure}
    chosen = CHOSEN.get(structure, {})
    drawn |= {name: drawing for name, (drawing, _) in chosen.items()}
    sizes = [len(x["size"]) for x in drawn.values()]
    together = scenes_of(
        structure, {k: np.concatenate([x[k] for x in drawn.values()]) for k in next(iter(drawn.values()))}
    )
    answer = solved(structure, together)
    if chosen:
        ends = np.concatenate([np.full(len(drawing["size"]), end) for drawing, end in chosen.values()])
        answer.until[-len(ends) :] = ends
    found = simulated(structure, together, answer)
    starts = np.cumsum([0, *sizes])
    parts = {}
    for name, a, b in zip(drawn, starts, starts[1:]):
        mine = np.arange(a, b)
        parts[name] = (together.picked(mine), Answer(*(x[a:b] for x in answer)), Simulated(*(x[a:b] for x in found)))
    return parts


# one family goes through all code, and one is the most common contact there is
@pytest.mark.parametrize(
    "family", [pytest.param(f, marks=() if f in ("room", "rounded slot") else pytest.mark.long) for f in SCENES]
)
def test_every_impact_of_random_scenes_is_found_at_its_time(family):
    thrown, answer, found = played(FAMILIES[family][0])[family]
    verdict = judged(thrown, answer, found)
    wrong = {name: np.flatnonzero(x).tolist() for name, x in zip(verdict._fields, verdict[:5]) if x.any()}
    assert not wrong, f"scenes of {family!r}, by number: {wrong}"
    assert answer.count.sum() >= SCENES[family] / 2 and verdict.error.max() < 1e-9


@pytest.mark.slow
def test_a_disc_thrown_into_the_corner_of_a_room_meets_floor_and_wall():
    thrown, answer, found = played("polygon")["thrown into a corner"]
    floor = (-1.27 + np.sqrt(1.27**2 + 2 * 9.81 * 0.8)) / 9.81
    np.testing.assert_allclose([floor, 0.8 / 2.48], [0.29464, 0.32258], atol=5e-6)
    np.testing.assert_allclose(found.t[0, :2], [floor, 0.8 / 2.48], atol=1e-12)
    assert found.element[0, :2].tolist() == [6, 4] and not judged(thrown, answer, found).wrong.any()
    assert np.all(np.abs(found.position[0, :2]) < 0.8)


@pytest.mark.slow
def test_a_wall_that_was_never_the_closest_is_met():
    """The disc has just left one wall, meets the next one, and would be out of it again before the step ends."""
    thrown, answer, found = played("polygon")["a wall is grazed beside another"]
    assert found.element[0, 3:5].tolist() == [4, 2]
    np.testing.assert_allclose(found.t[0, :6], answer.t[0, :6], rtol=0, atol=1e-10)
    assert not judged(thrown, answer, found).wrong.any()


@pytest.mark.slow
def test_a_disc_that_flies_from_a_line_to_the_hollow_end_of_its_slot_meets_it():
    """Seen from the middle of the slot, the circle of its end has been passed already."""
    thrown, answer, found = played("slot")["from a line to the hollow end"]
    k = int(np.argmin(np.abs(answer.t[0] - 0.388178)))
    np.testing.assert_allclose(answer.t[0, k], 0.388178, atol=5e-7)
    assert found.element[0, k] == answer.element[0, k] == 1
    np.testing.assert_allclose(found.t[0, : k + 1], answer.t[0, : k + 1], rtol=0, atol=1e-10)
    assert not within(thrown, found).any()


@pytest.mark.long
def test_sliding_that_bounces_stop_ends_with_them_at_the_latest():
    """Some stop while the bouncing would still last that is summed up: no event is told before the one before it."""
    thrown, _, found = played("floor")["stopped by its bounces"]
    e, k = thrown.restitution, thrown.drawing["inertia"] / thrown.size**2
    bounces = np.sqrt(2 * 0.1 / 9.81) * (1 + 2 * e / (1 - e))
    for t, kind, n in zip(found.t, found.kind, found.count):
        assert np.all(np.diff(t[:n]) >= 0) and mbs.EVENTS[kind[n - 1]] in ("closed", "sticks")
    np.testing.assert_allclose(np.max(found.t, 1, where=np.isfinite(found.t), initial=0.0), bounces, rtol=1e-10)
    np.testing.assert_allclose(found.velocity[:, 0], thrown.velocity[:, 0] / (1 + k), rtol=1e-9)
    np.testing.assert_allclose(found.velocity[:, 2], -found.velocity[:, 0] / thrown.size, rtol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("name, element", [("0.009 from the end", 0), ("0.024 from the end", 0), ("on the tip", 6),
                                           ("on the other tip", 5), ("past the tip", None)])  # fmt: skip
def test_a_disc_that_is_dropped_at_the_end_of_a_line_meets_line_or_tip(name, element):
    (thrown, _, found), g = played("open")[name], 9.81
    x, R, e = thrown.position[0, 0], 0.1, thrown.restitution[0]
    beyond = max(abs(x) - 1.0, 0.0)
    if element is None:
        assert found.count[0] == 0
        np.testing.assert_allclose(found.position[0, :2], [x, 1.1 - g * 0.6**2 / 2], atol=1e-12)
        return
    up = np.sqrt(R**2 - beyond**2)
    t = np.sqrt(2 * (1.1 - up) / g)
    n = np.array([np.sign(x) * beyond, up]) / R
    v = np.array([0.0, -g * t])
    v = v - (1 + e) * (v @ n) * n
    left = 0.6 - t
    assert found.count[0] == 1 and found.element[0, 0] == element
    np.testing.assert_allclose(found.t[0, 0], t, atol=1e-12)
    np.testing.assert_allclose(found.position[0, :2], [x + v[0] * left, up + v[1] * left - g * left**2 / 2], atol=1e-11)
    if element == 0:
        np.testing.assert_allclose(found.position[0, 1], 0.650, atol=5e-4)


# ---------------------------------------- driven motion at hollow corners


STAR = [(2.194, .209), (1.142, 1.039), (.087, 2.202), (-1.004, 1.173), (-2.184, .293), (-1.101, -1.083), (.231, -2.192),
        (1.176, -1)]  # fmt: skip
ROLLER, HEIGHT, CAMS, MOMENTS = 0.142, -0.089, 64, 97


def lift(vertices: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """How far a roller on a slide along x is pushed out by a cam: the farthest of all places where it touches a corner
    or, between its ends, a line."""
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    x, y = vertices[:, 0], vertices[:, 1]
    p = np.stack([c * x - s * y, s * x + c * y], -1)
    d = np.roll(p, -1, 1) - p
    length = np.hypot(d[..., 0], d[..., 1])
    d = d / length[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        corner = p[..., 0] + np.sqrt(ROLLER**2 - (HEIGHT - p[..., 1]) ** 2)
        line = (ROLLER + p[..., 0] * d[..., 1] - p[..., 1] * d[..., 0] + HEIGHT * d[..., 0]) / d[..., 1]
        foot = (line - p[..., 0]) * d[..., 0] + (HEIGHT - p[..., 1]) * d[..., 1]
        line = np.where((d[..., 1] > 0) & (foot >= 0) & (foot <= length), line, -np.inf)
    return np.max(np.concatenate([np.where(np.isnan(corner), -np.inf, corner), line], 1), 1)


def stars() -> np.ndarray:
    """The one above, and random ones with eight corners whose lift does not jump."""
    found, rng = [np.array(STAR)], np.random.default_rng(13)
    angles = np.linspace(0, -2 * np.pi, 2000)
    while len(found) <= CAMS:
        angle = 2 * np.pi * (np.arange(8) + rng.uniform(-0.2, 0.2, 8)) / 8
        radius = np.where(np.arange(8) % 2, rng.uniform(1.3, 1.8, 8), rng.uniform(1.9, 2.4, 8))
        star = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
        if np.max(np.abs(np.diff(lift(star, angles)))) < 0.03:
            found.append(star)
    return np.stack(found)


def star_cam(vertices, start) -> mbs.Mechanism:
    corners = list(vertices)
    rim = mbs.Profile.chain([mbs.Line(a, b) for a, b in zip(corners, corners[1:] + corners[:1])])
    return mbs.Mechanism(
        [mbs.Body("cam", profiles={"rim": rim}), mbs.Body("follower", profiles={"roller": mbs.disc(ROLLER)})],
        [
            mbs.Revolute("O", "ground", "cam"),
            mbs.Prismatic("guide", "ground", "follower", (0.0, HEIGHT), start=start),
            mbs.Contact("C", "cam.rim", "follower.roller", active=True),
        ],
    )


@cache
def followed() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    cams = stars()
    ts = np.sort(np.append(np.linspace(0.0, 2 * np.pi, MOMENTS), 0.8116))

    @jax.jit
    @jax.vmap
    def run(vertices, start):
        motion = mbs.kinematics(
            star_cam(vertices, start), {"O": mbs.constant_speed(-1.0)}, jnp.asarray(ts), max_events=40, throw=False
        )
        return motion["guide"].q, motion.result._value

    found, result = run(cams, np.array([lift(x, np.zeros(1))[0] for x in cams]))
    assert not np.any(np.asarray(result) != mbs.RESULTS.successful._value)
    return ts, cams, np.asarray(found)


@pytest.mark.long
def test_a_roller_goes_over_a_hollow_corner_of_its_cam():
    ts, cams, found = followed()
    k = int(np.searchsorted(ts, 0.8116))
    np.testing.assert_allclose(found[0, k], 1.6845, atol=6e-4)  # the corners are known to half a thousandth
    assert np.all(np.diff(found[0, k : k + 4]) > 0)
    np.testing.assert_allclose(found[0], lift(cams[0], -ts), atol=1e-9)


@pytest.mark.long
def test_rollers_follow_the_envelopes_of_random_star_shaped_cams():
    ts, cams, found = followed()
    wanted = np.stack([lift(x, -ts) for x in cams])
    wrong = np.flatnonzero(np.max(np.abs(found - wanted), 1) > 1e-9)
    assert len(wrong) == 0, wrong.tolist()
