"""Estimates that are given are followed: the others are found from them, and where they cannot be, that is told."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs


CRANK, ROD, LINK, PIVOT = 0.03, 0.4, 0.2, np.array([-0.45, -0.2])


def press(upper=-110.0, lower=40.0, slide=-0.38):
    """A toggle press: the crank pushes the knee by a rod; the links are equally long. Starts of the links (in degrees)
    and of the ram are given, those of the other joints are not."""
    joints = [
        mbs.Revolute("A", "ground", "crank", PIVOT),
        mbs.Revolute("B", "crank", "rod", (CRANK, 0.0)),
        mbs.Revolute("C", "rod", "upper", (ROD, 0.0), (LINK, 0.0)),
        mbs.Revolute("D", "ground", "upper", start=jnp.deg2rad(upper)),
        mbs.Revolute("K", "upper", "lower", (LINK, 0.0), start=jnp.deg2rad(lower)),
        mbs.Revolute("E", "lower", "ram", (LINK, 0.0)),
        mbs.Prismatic("slide", "ground", "ram", axis=(0.0, 1.0), start=slide),
    ]
    return mbs.Mechanism([mbs.Body(name) for name in ("crank", "rod", "upper", "lower", "ram")], joints)


def knee(angle):
    """Where the knee is: the lower of the places at the right distances from the crank pin and from ground."""
    pin = PIVOT + CRANK * np.array([np.cos(angle), np.sin(angle)])
    d = np.hypot(*pin)
    along = (ROD**2 - LINK**2 + d**2) / (2 * d)
    u = -pin / d
    return pin + along * u + np.sqrt(ROD**2 - along**2) * np.array([u[1], -u[0]])


def test_toggle_press_is_assembled_as_its_starts_say():
    """Not folded, with the ram at rest on the upper pivot for the whole turn."""
    ts = np.linspace(0.0, 6.0, 7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        motion = mbs.kinematics(press(), {"A": mbs.constant_speed(1.0, start=np.pi)}, ts)
    knees = np.array([knee(np.pi + t) for t in ts])
    np.testing.assert_allclose(motion["slide"].q, 2 * knees[:, 1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(motion["D"].q, np.arctan2(knees[:, 1], knees[:, 0]), rtol=0, atol=1e-12)


@eqx.filter_jit
def _pressed(estimates, angles):
    def one(given, angle):
        found = mbs.assemble(press(*given), fixed={"A": angle}, throw=False)
        return found["slide"], found.result == mbs.RESULTS.successful

    return jax.vmap(one)(estimates, angles)


def test_poor_estimates_of_some_joints_lead_to_their_branch():
    """Off by up to 15 degrees and a tenth of the way, at any angle of the crank, in a batch."""
    rng = np.random.default_rng(0)
    angles = rng.uniform(-np.pi, np.pi, 64)
    knees = np.array([knee(a) for a in angles])
    upper = np.rad2deg(np.arctan2(knees[:, 1], knees[:, 0]))
    exact = np.stack([upper, -2 * (upper + 90), 2 * knees[:, 1]], 1)
    estimates = exact + rng.uniform(-1, 1, exact.shape) * [15.0, 15.0, 0.04]
    slide, closed = _pressed(jnp.asarray(estimates), jnp.asarray(angles))
    assert np.all(closed)
    np.testing.assert_allclose(slide, exact[:, 2], rtol=0, atol=1e-12)


def test_an_estimate_that_is_not_followed_is_told():
    mech, drive = press(slide=0.38), {"A": mbs.constant_speed(1.0, start=np.pi)}
    told = "'slide' was estimated at 0.38 and is assembled at -0.366295"
    with pytest.warns(UserWarning, match=told):
        motion = mbs.kinematics(mech, drive, np.linspace(0.0, 6.0, 7))
    assert told in str(motion)
    with pytest.warns(UserWarning, match=told):
        found = mbs.assemble(mech, fixed={"A": np.pi})
    assert told in str(found)
    assert "estimated" not in str(mbs.assemble(press(), fixed={"A": np.pi}))


def test_files_keep_which_starts_are_given():
    mech = press()
    assert mbs.loads(mbs.dumps(mech)).mechanism().given() == mech.given() == (3, 4, 6)


def test_a_simulation_may_begin_where_two_elements_meet():
    """A roller on the place where a level line goes over into a hill, led either way, at speeds for which the end of an
    element is left in an instant or takes its time."""
    R, r = 1.0, 0.1
    elements = [mbs.Line((2.0, 0.0), (0.0, 0.0)), mbs.Arc((0.0, -R), R, jnp.pi / 2, 0.9 * jnp.pi)]
    hill = mbs.Profile.chain(elements, closed=False)
    mech = mbs.Mechanism(
        [
            mbs.Body("ground", profiles={"hill": hill}),
            mbs.Body("cart"),
            mbs.Body("roller", mass=1.0, profiles={"rim": mbs.disc(r)}),
        ],
        [
            mbs.Prismatic("x", "ground", "cart"),
            mbs.Prismatic("y", "cart", "roller", axis=(0.0, 1.0)),
            mbs.Contact("C", "ground.hill", "roller.rim", active=True),
        ],
        gravity=(0.0, -9.81),
    )

    @jax.jit
    def led(v):
        drive = {"x": lambda t: v * t}
        begin = mbs.state(mech, {"y": r}, drive=drive, throw=False)
        return mbs.simulate(mech, begin, 0.5, ts=jnp.linspace(0.0, 0.5, 6), drive=drive, throw=False)

    for v in (-1.0, 1.0, -0.01, 0.01):
        sol = led(v)
        x = v * np.asarray(sol.ts)
        height = np.where(x < 0, np.sqrt((R + r) ** 2 - x**2) - R, r)
        np.testing.assert_allclose(sol["y"].q, height, rtol=0, atol=1e-12)
        assert sol.contact("C").active.all() and int(sol.events.count) == (v > 0)


def four_bar(starts):
    A, B, C, D = starts
    joints = [
        mbs.Revolute("A", "ground", "crank", start=A),
        mbs.Revolute("B", "crank", "coupler", (1.0, 0.0), start=B),
        mbs.Revolute("C", "coupler", "rocker", (2.6, 0.0), (1.8, 0.0), start=C),
        mbs.Revolute("D", "ground", "rocker", (2.4, 0.0), start=D),
    ]
    return mbs.Mechanism([mbs.Body(name, mass=1.0) for name in ("crank", "coupler", "rocker")], joints)


def floating(joint):
    body = mbs.Body("body", mass=1.0, inertia=0.1 if joint is mbs.Planar else 0.1 * np.eye(3))
    return mbs.Mechanism([body], [joint("at", "ground", "body")])


def turning(h):
    """A quaternion that turns about an axis that moves."""
    return mbs.frames.quaternion_exp(jnp.array([0.3 + h, -0.2, 0.5 - 2 * h]))


CLOSED = mbs.assemble(four_bar([1.0, -1.0, 0.5, 1.5]), fixed={"A": 1.0}).q
ALONG = np.array([0.7, -2.0, 0.5, 0.3])
PLANE = np.array([0.1, 0.2, 0.3])
# what is given, as a function of one number, to each kind of mechanism: a start, an array, a joint's or one coordinate
GIVEN = {
    "start of a loop": lambda h: (four_bar(CLOSED + h * ALONG), None),
    "array of a loop": lambda h: (four_bar(CLOSED), CLOSED + h * ALONG),
    "coordinate of a loop": lambda h: (four_bar(CLOSED), {"A": 1.0 + h}),
    "joint in the plane": lambda h: (floating(mbs.Planar), {"at": PLANE * (1 + h)}),
    "array in the plane": lambda h: (floating(mbs.Planar), PLANE * (1 + h)),
    "ball": lambda h: (floating(mbs.Spherical), {"at": turning(h)}),
    "joint in space": lambda h: (floating(mbs.Free), {"at": jnp.concatenate([turning(h), jnp.array([h, 1.0, 2 * h])])}),
    "array in space": lambda h: (floating(mbs.Free), jnp.concatenate([turning(h), jnp.array([h, 1.0, 2 * h])])),
}


def followed(way):
    """How the position moves with what is given. What floats is where it is given. A loop moves along what its sides
    leave free, by the first angle."""
    if "loop" not in way:
        given = lambda h: jax.tree_util.tree_leaves(GIVEN[way](h)[1])[0]
        return jax.jvp(given, (0.0,), (1.0,))[1]
    crank, coupler, rocker = 1j * np.exp(1j * np.array([CLOSED[0], CLOSED[0] + CLOSED[1], CLOSED[3]])) * [1.0, 2.6, 1.8]
    sides = np.array([crank + coupler, coupler, 0.0, -rocker])
    free = np.linalg.svd(np.stack([sides.real, sides.imag, [1.0, 1.0, 1.0, -1.0]]))[2][3]
    return free / free[0] * (1.0 if way.startswith("coordinate") else ALONG[0])


@pytest.mark.parametrize("way", GIVEN)
def test_a_state_follows_what_is_given_with_derivatives(way):
    def found(h):
        mech, positions = GIVEN[way](h)
        return mbs.state(mech, positions, throw=False).q

    q, slope = jax.jit(lambda h: jax.jvp(found, (h,), (1.0,)))(0.0)
    weights = jnp.arange(1.0, 1.0 + len(q))
    back = jax.jit(jax.grad(lambda h: weights @ found(h)))(0.0)
    np.testing.assert_allclose(slope, followed(way), rtol=0, atol=1e-12)
    np.testing.assert_allclose(back, weights @ slope, rtol=1e-12)


def looped(lengths):
    """Crank, coupler, follower and base of a four-bar."""
    crank, coupler, follower, base = lengths
    joints = [
        mbs.Revolute("A", "ground", "crank"),
        mbs.Revolute("B", "crank", "coupler", (crank, 0.0)),
        mbs.Revolute("C", "coupler", "follower", (coupler, 0.0), (follower, 0.0)),
        mbs.Revolute("D", "ground", "follower", (base, 0.0)),
    ]
    return mbs.Mechanism([mbs.Body(name) for name in ("crank", "coupler", "follower")], joints)


def lacks(lengths, q):
    """What its loop lacks, and the slopes of that in the angles and in the lengths, by hand."""
    crank, coupler, follower, base = lengths
    A, B, C, D = q
    u, v, w = (np.array([np.cos(x), np.sin(x)]) for x in (A, A + B, D))
    across = lambda x: np.array([-x[1], x[0]])
    slopes = np.stack([crank * across(u) + coupler * across(v), coupler * across(v), 0 * u, -follower * across(w)], 1)
    return (
        np.append(crank * u + coupler * v - follower * w - [base, 0.0], A + B + C - D),
        np.vstack([slopes, [1.0, 1.0, 1.0, -1.0]]),
        np.vstack([np.stack([u, v, -w, [-1.0, 0.0]], 1), np.zeros(4)]),
    )


def test_what_a_loop_leaves_free_is_where_it_is_estimated_with_exact_slopes():
    """Four-bars with all angles estimated, off by some tenths: one of them is kept, the others follow. Slopes in
    lengths and estimates are those of the loop with that angle given."""
    rng = np.random.default_rng(0)
    lengths, estimates = [], []
    while len(lengths) < 64:
        (crank, coupler, follower, base), A = rng.uniform(1, 2, 4), rng.uniform(-np.pi, np.pi)
        pin = crank * np.exp(1j * A)
        diagonal = abs(base - pin)
        opening = (coupler**2 + diagonal**2 - follower**2) / (2 * coupler * diagonal)
        if diagonal > 0.2 and abs(opening) < 0.95:
            slant = np.angle(base - pin) + rng.choice([-1, 1]) * np.arccos(opening)
            D = np.angle(pin + coupler * np.exp(1j * slant) - base)
            lengths.append([crank, coupler, follower, base])
            estimates.append(np.array([A, slant - A, D - slant, D]) + rng.uniform(-0.5, 0.5, 4))

    def found(lengths, estimate):
        q = mbs.assemble(looped(lengths), estimate, throw=False).q
        return q, q

    x = jnp.asarray(lengths), jnp.asarray(estimates)
    slopes, qs = jax.jit(jax.vmap(jax.jacfwd(found, (0, 1), has_aux=True)))(*x)
    for lengths, estimate, q, in_lengths, in_estimate in zip(*map(np.asarray, (*x, qs, *slopes)), strict=True):
        r, in_angles, J = lacks(lengths, q)
        kept = int(np.argmin(np.abs(q - estimate)))
        assert np.abs(r).max() < 1e-12 and abs(q[kept] - estimate[kept]) < 1e-12
        assert np.abs(q - estimate).max() < 1.0
        others = -np.linalg.solve(np.vstack([in_angles, np.eye(4)[kept]]), np.vstack([J, np.zeros(4)]))
        np.testing.assert_allclose(in_lengths, others, rtol=1e-7, atol=1e-7)
        along = np.linalg.solve(np.vstack([in_angles, np.eye(4)[kept]]), np.eye(4)[3])
        np.testing.assert_allclose(in_estimate, np.outer(along, np.eye(4)[kept]), rtol=1e-7, atol=1e-7)
