"""Where pins lie in their plays: worst, loaded and drawn, against closed forms, brute force and samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import mbsjax as mbs
from tests.mechanisms import bodies


CRANK, ROD = 2.0, 3.5
TURN = mbs.constant_speed(1.0, 0.1)
TS = jnp.linspace(0.0, 6.0, 9)


def slider_crank(play_b=None, play_c=None, guide=None, *, crank=CRANK, rod=ROD, push=-10.0, **options):
    return mbs.Mechanism(
        bodies("crank", "rod", "slider"),
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "crank", "rod", (crank, 0.0), play=play_b),
            mbs.Revolute("C", "rod", "slider", (rod, 0.0), play=play_c),
            mbs.Prismatic("P", "ground", "slider", start=5.5, play=guide),
        ],
        forces=[mbs.Load("slider", force=jnp.stack([push, 0.0 * jnp.asarray(push)]))],
        **options,
    )


def position(theta, crank=CRANK, rod=ROD, height=0.0):
    """Of the slider."""
    return crank * jnp.cos(theta) + jnp.sqrt(rod**2 - (crank * jnp.sin(theta) - height) ** 2)


THETA = TS + 0.1
TRAVEL = {"x": lambda m: m["P"].q}


@jax.jit
@jax.vmap
def widest(size):
    """The smallest and the largest positions of the slider, for a play between crank and rod, and their slopes."""

    def ends(size):
        motion = mbs.kinematics(slider_crank(size), {"A": TURN}, TS, throw=False)
        found = mbs.worst_play(motion, TRAVEL)
        return jnp.stack([found.least["x"], found.most["x"]])

    return jax.jvp(ends, (size,), (jnp.ones(()),))


def test_a_play_in_a_slider_crank_is_a_longer_and_a_shorter_rod():
    sizes = jnp.array([0.0, 1e-3, 1e-2, 0.3])
    both = lambda size: jnp.stack([position(THETA, rod=ROD + side * size) for side in (-1, 1)])
    found, slopes = widest(sizes)
    for size, x, slope in zip(sizes, found, slopes):  # at zero as well
        expected, expected_slope = jax.jvp(both, (size,), (jnp.ones(()),))
        np.testing.assert_allclose(x, expected, atol=1e-11)
        np.testing.assert_allclose(slope, expected_slope, atol=1e-8)
    # the error is play times derivative, to first order: what is left falls with the square
    slope = jax.jacfwd(lambda rod: position(THETA, rod=rod))(ROD)
    left = [np.abs(found[k, 1] - position(THETA) - sizes[k] * slope).max() for k in (1, 2)]
    assert 90 < left[1] / left[0] < 110


# -- four-bars -------------------------------------------------------------------------------------------------


LENGTHS = (2.0, 4.0, 3.0, 4.0)  # crank, coupler, follower, frame


def four_bar(sizes):
    plays = dict(zip("ABCD", sizes, strict=True))
    a, b, c, d = LENGTHS
    return mbs.Mechanism(
        bodies("crank", "coupler", "follower"),
        [
            mbs.Revolute("A", "ground", "crank", play=plays["A"]),
            mbs.Revolute("B", "crank", "coupler", (a, 0.0), play=plays["B"]),
            mbs.Revolute("C", "coupler", "follower", (b, 0.0), (c, 0.0), play=plays["C"]),
            mbs.Revolute("D", "ground", "follower", (d, 0.0), start=2.0, play=plays["D"]),
        ],
    )


def follower_angle(theta, coupler=LENGTHS[1], shift_crank=(0.0, 0.0), shift_pivot=(0.0, 0.0)):
    """By NumPy: two circles meet, about the crank's end and about the follower's pivot."""
    a, _, c, d = LENGTHS
    B = np.array([a * np.cos(theta), a * np.sin(theta)]) + shift_crank
    D = np.array([d, 0.0]) + shift_pivot
    away = B - D
    far = np.linalg.norm(away)
    along = (c**2 + far**2 - coupler**2) / (2 * far)
    C = D + along * away / far + np.sqrt(c**2 - along**2) * np.array([away[1], -away[0]]) / far
    return np.arctan2(*(C - D)[::-1])


@jax.jit
def swing(sizes):
    motion = mbs.kinematics(
        four_bar(sizes), {"A": mbs.constant_speed(1.0, 0.4)}, jnp.linspace(0.0, 5.0, 4), throw=False
    )
    found = mbs.worst_play(motion, {"angle": lambda m: m["D"].q})
    return jnp.stack([found.least["angle"], found.most["angle"]]), motion["D"].q


@pytest.mark.long
def test_a_play_in_a_four_bar_is_a_longer_and_a_shorter_coupler():
    found, middle = swing(jnp.array([0.0, 0.05, 0.0, 0.0]))
    angles = np.linspace(0.0, 5.0, 4) + 0.4
    np.testing.assert_allclose(middle, [follower_angle(t) for t in angles], atol=1e-12)
    ends = np.array([[follower_angle(t, LENGTHS[1] + s) for t in angles] for s in (-0.05, 0.05)])
    np.testing.assert_allclose(np.sort(found, 0), np.sort(ends, 0), atol=1e-11)
    assert np.all(found[0] < found[1])


@pytest.mark.long
def test_several_plays_do_what_brute_force_finds():
    sizes = np.array([0.03, 0.05, 0.02, 0.04])
    found, _ = swing(jnp.asarray(sizes))

    def angle(ways, theta, side):
        """Follower's angle to one side, where the pins of A, B, C, D lie in these directions."""
        A, B, C, D = sizes[:, None] * np.stack([np.cos(ways), np.sin(ways)], 1)
        turned = lambda p, by: np.array([np.cos(by) * p[0] - np.sin(by) * p[1], np.sin(by) * p[0] + np.cos(by) * p[1]])
        coupler = np.hypot(LENGTHS[1] + C[0], C[1])  # where the pin of C lies is told along the coupler
        return -side * follower_angle(theta, coupler, A + turned(B, theta), D)

    for k, theta in enumerate(np.linspace(0.0, 5.0, 4) + 0.4):
        for row, side in enumerate((-1, 1)):
            rng = np.random.default_rng(k)
            starts = rng.uniform(-np.pi, np.pi, (12, 4))
            best = min(minimize(angle, x, (theta, side), tol=1e-14).fun for x in starts)
            np.testing.assert_allclose(found[row, k], -side * best, atol=1e-9)


# -- loads -----------------------------------------------------------------------------------------------------


@jax.jit
def pressed_travel(sizes, push):
    """Where the slider is, how fast it goes with the size of each play, and where the pins lie."""

    def travel(sizes):
        guide = mbs.Play(sizes[2], length=0.8)
        motion = mbs.kinematics(slider_crank(sizes[0], sizes[1], guide, push=push), {"A": TURN}, TS, throw=False)
        lies = mbs.loaded_play(motion)
        x = mbs.displaced(motion, lies)["P"].q
        return x, (x, lies)

    slopes, (x, lies) = jax.jacfwd(travel, has_aux=True)(sizes)
    return x, slopes, lies


def by_hand(sizes, push):
    """A rod in compression is shorter by both plays, and presses the slider away from the crank's pin."""
    side = jnp.sign(push)
    rod = ROD + side * (sizes[0] + sizes[1])
    height = sizes[2] * side * jnp.sign(jnp.sin(THETA))
    return position(THETA, rod=rod, height=height)


@pytest.mark.long
def test_a_loaded_slider_crank_is_one_with_a_shorter_rod():
    sizes = jnp.array([0.02, 0.03, 0.05])
    for push in (-10.0, 2.0):
        found, slopes, lies = pressed_travel(sizes, push)
        np.testing.assert_allclose(found, by_hand(sizes, push), atol=1e-11)
        np.testing.assert_allclose(slopes, jax.jacfwd(by_hand)(sizes, push), atol=1e-9)
        np.testing.assert_allclose(lies["P"][:, 0], lies["P"][:, 1])  # the rod pushes at the middle of the block
        np.testing.assert_allclose(jnp.linalg.norm(lies["B"], axis=1), 1.0, atol=1e-12)
    nothing, _, lies = pressed_travel(sizes, 0.0)  # what nothing presses stays in the middle
    np.testing.assert_allclose(nothing, position(THETA), atol=1e-12)
    assert not np.any(lies["B"])
    none, slopes, _ = pressed_travel(0 * sizes, -10.0)  # where there is no play, its slope is that of a little
    np.testing.assert_allclose(none, position(THETA), atol=1e-12)
    np.testing.assert_allclose(slopes, jax.jacfwd(by_hand)(0 * sizes, -10.0), atol=1e-8)


@pytest.mark.long
def test_a_pin_lies_where_the_force_points_with_derivatives_in_both_modes():
    def place(force):
        mech = mbs.Mechanism(
            bodies("bob"), [mbs.Revolute("O", "ground", "bob", play=0.1)], forces=[mbs.Load("bob", force=force)]
        )
        motion = mbs.kinematics(mech, {"O": 0.7}, jnp.zeros(1), throw=False)
        return mbs.displaced(motion, mbs.loaded_play(motion)).point("bob").q[0]

    force = jnp.array([3.0, -4.0])
    expected = lambda f: 0.1 * f / jnp.linalg.norm(f)
    np.testing.assert_allclose(jax.jit(place)(force), expected(force), atol=1e-14)
    slopes = jax.jacfwd(expected)(force)
    for mode in (jax.jacfwd, jax.jacrev):
        np.testing.assert_allclose(jax.jit(mode(place))(force), slopes, atol=1e-13)


def test_a_block_in_a_guide_leans_to_one_side_or_tilts():
    size, length = 0.1, 2.0

    @jax.jit
    @jax.vmap
    def lean(load, at):
        guide = mbs.Prismatic("P", "ground", "block", play=size, length=length)
        push = mbs.Load("block", force=jnp.stack([0.0, load]), point=jnp.stack([at, 0.0]))
        mech = mbs.Mechanism(bodies("block"), [guide], forces=[push])
        motion = mbs.kinematics(mech, {"P": 0.3}, jnp.zeros(1), throw=False)
        lies = mbs.loaded_play(motion)["P"]
        pose = mbs.displaced(motion, {"P": lies}).pose("block")[0]
        return lies[0], jnp.arctan2(pose[1, 0], pose[0, 0]), pose[1, 3]

    load, at = jnp.array([3.0, -3.0, 3.0, 3.0]), jnp.array([0.2, 0.2, 1.5, -1.5])
    lies, angle, height = lean(load, at)
    ends = np.sign(np.stack([load * (0.5 + at / length), load * (0.5 - at / length)], 1))
    np.testing.assert_array_equal(lies, ends)
    np.testing.assert_allclose(angle, np.arctan2(size * (ends[:, 0] - ends[:, 1]), length), atol=1e-14)
    np.testing.assert_allclose(height, size * ends.mean(1), atol=1e-14)


# -- other joints ----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_ball_in_its_cavity_makes_a_rod_in_space_longer_and_shorter():
    crank, rod, size, theta = 1.0, 4.0, 0.05, 0.7
    bore = mbs.frames.from_axis((0.0, 0.0, 0.0), (1.0, 0.0, 0.0))

    @jax.jit
    def loaded(push):
        mech = mbs.Mechanism(
            bodies("crank", "rod", "slider"),
            [
                mbs.Revolute("A", "ground", "crank", (0.0, 0.0, 0.5)),
                mbs.Spherical("B", "crank", "rod", (crank, 0.0, 0.0), play=size),
                mbs.Universal("C", "rod", "slider", (rod, 0.0, 0.0)),
                mbs.Prismatic("P", "ground", "slider", bore, bore, start=4.0),
            ],
            forces=[mbs.Load("slider", force=jnp.stack([push, 0.0, 0.0]))],
        )
        motion = mbs.kinematics(mech, {"A": theta}, jnp.zeros(1), throw=False)
        return mbs.displaced(motion, mbs.loaded_play(motion))["P"].q[0]

    x = lambda rod: crank * np.cos(theta) + np.sqrt(rod**2 - (crank * np.sin(theta)) ** 2 - 0.25)
    for push in (-1.0, 1.0):
        np.testing.assert_allclose(loaded(push), x(rod + push * size), atol=1e-11)


def test_backlash_of_gears():
    mech = mbs.Mechanism(
        bodies("a", "b"),
        [
            mbs.Revolute("A", "ground", "a"),
            mbs.Revolute("B", "ground", "b", (3.0, 0.0)),
            mbs.Gear("mesh", "a", "b", radii=(2.0, 1.0), play=0.01),
        ],
        forces=[mbs.Load("b", torque=-2.0)],
    )
    motion = mbs.kinematics(mech, {"A": 0.3}, jnp.zeros(1))
    parts = mbs.play_parts(motion, {"angle": lambda m: m["B"].q[0]})
    found = [part["angle"]["mesh"] for part in parts]
    np.testing.assert_allclose(found, [0.01, 0.01 / np.sqrt(3), -0.01], atol=1e-13)  # as the torque turns it


@pytest.mark.long
def test_a_pin_in_a_slot_and_a_block_in_a_guide():
    yoke = mbs.Mechanism(
        bodies("crank", "yoke"),
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Prismatic("P", "ground", "yoke", start=1.0, play=0.02, length=0.5),
            mbs.PinSlot("S", "yoke", "crank", mbs.at(0.0, 0.0, jnp.pi / 2), (2.0, 0.0), play=0.03),
        ],
    )
    motion = mbs.kinematics(yoke, {"A": 0.5}, jnp.zeros(1))
    middle = 2 * np.cos(0.5)
    travel = lambda m: m["P"].q[0] - middle
    found = mbs.worst_play(motion, {"x": travel, "square": lambda m: travel(m) ** 2})
    # the yoke leans by the angle a, and its slot is a distance of 0.03 off the pin at the height 2 sin 0.5
    a = np.arctan2(0.04, 0.5)
    far = 2 * np.sin(0.5) * np.tan(a) + 0.03 / np.cos(a)
    np.testing.assert_allclose([found.least["x"], found.middle["x"], found.most["x"]], [-far, 0.0, far], atol=1e-11)
    # in the middle nothing tells which way the square grows: a step aside does
    np.testing.assert_allclose([found.least["square"], found.most["square"]], [0.0, far**2], atol=1e-12)
