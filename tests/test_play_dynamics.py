"""Joints with play in simulation: pins fly, hit, slide, roll and rest, against closed forms and SciPy."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipk

import mbsjax as mbs
from mbsjax._kinematics.system import system


G = 9.81


def names(sol):
    return [(event.kind, event.contact) for event in sol.events.list(sol.mech)]


# -- a pendulum whose pivot has play -----------------------------------------------------------------------------------

CENTER, INERTIA = 0.3, 0.02  # its mass is 1
RIM = jnp.array([0.0, -1.0])
STILL = jnp.zeros(2)


def arm(size, restitution, lies, center=CENTER):
    play = mbs.Play(size, lies, restitution=restitution)
    bob = mbs.Body("arm", mass=1.0, center=(center, 0.0), inertia=INERTIA)
    return mbs.Mechanism([bob], [mbs.Revolute("O", "ground", "arm", play=play)], gravity=(0.0, -G))


def dropped(size, restitution, lies, push, t1, center=CENTER):
    mech = arm(size, restitution, lies, center)
    begin = mbs.state(mech, velocities={"O play": push}, throw=False)
    ts = jnp.linspace(0.0, t1, 9)
    tight = dict(rtol=1e-11, atol=1e-11, max_steps=1200, max_events=40, throw=False)
    return mbs.simulate(mech, begin, t1, ts=ts, **tight)


_drop = jax.jit(dropped)


def drop(size, restitution, lies, push, t1, center=CENTER):
    """The same, in one program."""
    return _drop(*map(jnp.asarray, (size, restitution, lies, push, t1, center)))


@pytest.mark.long
def test_a_pin_that_stays_on_its_rim_makes_a_double_pendulum():
    """Its first link has the length of the play and no mass."""
    size, speed, t1 = 0.05, 0.3, 0.4

    def rates(t, y):
        b, f, db, df = y
        M = np.array([[size**2, size * CENTER * np.cos(b - f)], [0.0, CENTER**2 + INERTIA]])
        M[1, 0] = M[0, 1]
        turn = size * CENTER * np.sin(b - f)
        force = [-G * size * np.cos(b) - turn * df**2, -G * CENTER * np.cos(f) + turn * db**2]
        return [db, df, *np.linalg.solve(M, force)]

    sol = drop(size, 0.0, RIM, jnp.array([speed, 0.0]), t1)
    assert names(sol) == [("closed", "O bore")]
    y0 = [-np.pi / 2, 0.0, speed / size, 0.0]
    link, angle, *_ = solve_ivp(rates, (0, t1), y0, "DOP853", t_eval=sol.ts, rtol=1e-12, atol=1e-12).y
    expected = np.stack([angle, size * np.cos(link), size * np.sin(link)], 1)
    np.testing.assert_allclose(sol.q, expected, atol=1e-9)
    contact = sol.contact("O bore")
    np.testing.assert_allclose(contact.normal, -sol.q[:, 1:] / size, atol=1e-9)
    # what the rim pushes with is what the hinge carries
    carried = sol.reaction("O").force_ground
    np.testing.assert_allclose(carried, contact.force[:, None] * contact.normal, atol=1e-6)


@pytest.mark.long
def test_as_play_goes_to_zero_the_pendulum_becomes_the_ideal_one_at_first_order():
    t1 = 0.4
    bob = mbs.Body("arm", mass=1.0, center=(CENTER, 0.0), inertia=INERTIA)
    ideal = mbs.Mechanism([bob], [mbs.Revolute("O", "ground", "arm")], gravity=(0.0, -G))
    right = mbs.simulate(ideal, None, t1, ts=jnp.linspace(0.0, t1, 9), rtol=1e-11, atol=1e-11).q[:, 0]
    sizes = 1e-2 * 3.0 ** -np.arange(4)
    for lies in (STILL, RIM):
        off = [np.abs(drop(size, 0.0, lies, STILL, t1).q[:, 0] - right).max() for size in sizes]
        slope = np.polyfit(np.log(sizes), np.log(off), 1)[0]
        # the pin swings on its rim ever faster, so that the factor is not quite the same from one size to the next
        assert abs(slope - 1) < 0.1
        assert off[-1] < 6 * sizes[-1]


@pytest.mark.long
def test_energy_is_kept_through_elastic_impacts():
    sol = drop(1e-2, 1.0, STILL, jnp.array([0.3, 0.1]), 1.0)
    assert int(sol.events.count) > 20 and {kind for kind, _ in names(sol)} == {"impact"}
    np.testing.assert_allclose(sol.energy, sol.energy[0], atol=1e-10)
    assert np.min(sol.contact("O bore").gap) > -1e-12


@pytest.mark.parametrize(
    "lies, push, kind, t",
    [
        ((0.0, 0.0), (0.0, 0.0), "impact", np.sqrt(2 * 0.01 / G)),  # it falls from the middle,
        ((0.0, 0.0), (0.0, -0.4), "impact", (np.sqrt(0.4**2 + 2 * G * 0.01) - 0.4) / G),
        ((0.0, -1.0), (0.0, 0.0), "closed", 0.0),  # lies on the rim,
        ((0.0, -1.0), (0.0, -0.4), "impact", 0.0),  # moves into it,
        ((0.0, -1.0), (0.2, 0.0), "closed", 0.0),  # along it,
        ((0.0, -1.0), (0.0, 0.2), "impact", 2 * 0.2 / G),  # or away from it and comes back
    ],
)
def test_the_first_event_from_the_middle_and_from_the_rim(lies, push, kind, t):
    """The center of mass is in the pin: it falls as a point does."""
    sol = drop(1e-2, 0.5, jnp.array(lies), jnp.array(push), 0.1, 0.0)
    assert names(sol)[0] == (kind, "O bore")
    np.testing.assert_allclose(sol.events.t[0], t, atol=1e-12)
    assert np.all(np.isfinite(sol.q)) and np.min(sol.contact("O bore").gap) > -1e-12


def told(p, run=dropped):
    """From the very middle, through three impacts, by size, restitution, center of mass and where it lies."""
    sol = run(p[0], p[1], jnp.stack([p[3], 0 * p[3]]), STILL, 0.12, p[2])
    return jnp.concatenate([sol.q[-1], sol.v[-1], sol.events.t[:3]])


@pytest.mark.parametrize("jacobian", [jax.jacfwd, pytest.param(jax.jacrev, marks=pytest.mark.long)])
def test_derivatives_through_impacts_are_those_of_finite_differences(jacobian):
    point = jnp.array([1e-2, 0.5, 0.3, 0.0])
    slopes = jax.jit(jacobian(told))(point)
    for k, h in enumerate((1e-5, 1e-3, 1e-3, 1e-2)):
        d = h * np.eye(4)[k]
        near, far = (told(point + x * d, drop) - told(point - x * d, drop) for x in (1, 2))
        expected = (8 * near - far) / (12 * h)
        np.testing.assert_allclose(slopes[:, k], expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


@pytest.mark.long
def test_every_lane_has_its_own_play():
    sizes, lies = jnp.array([1e-2, 3e-3, 2e-2]), jnp.array([[0.0, 0.0], [0.0, -1.0], [0.5, 0.2]])
    run = lambda size, lies: (lambda s: (s.q, s.events.t, s.events.count))(dropped(size, 0.5, lies, STILL, 0.2))
    many = jax.jit(jax.vmap(run))(sizes, lies)
    for k in range(3):
        sol = drop(sizes[k], 0.5, lies[k], STILL, 0.2)
        assert int(many[2][k]) == int(sol.events.count)
        np.testing.assert_allclose(many[0][k], sol.q, atol=1e-11)
        np.testing.assert_allclose(many[1][k], sol.events.t, atol=1e-12)


# -- a slider-crank ----------------------------------------------------------------------------------------------------

CRANK, ROD, SPEED, BEGIN = 0.05, 0.12, 10 * np.pi, 0.5  # 300 rpm
OF_ROD, OF_SLIDER = 0.15, 0.4  # their masses


def slider_crank(play):
    return mbs.Mechanism(
        [
            mbs.Body("crank"),
            mbs.Body("rod", mass=OF_ROD, center=(ROD / 2, 0.0), inertia=OF_ROD * ROD**2 / 12),
            mbs.Body("slider", mass=OF_SLIDER),
        ],
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "crank", "rod", (CRANK, 0.0), play=play),
            mbs.Revolute("C", "rod", "slider", (ROD, 0.0)),
            mbs.Prismatic("D", "ground", "slider", axis=(1.0, 0.0), start=CRANK + ROD),
        ],
    )


def flights(size, restitution, t1, most):
    """The times of the impacts, from the equations of rod and slider alone: x and the angle f of the rod, seen from the
    slider, whose far end flies in the bore of the crank."""
    c, inertia = OF_ROD * ROD / 2, OF_ROD * ROD**2 / 3

    def mass(f):
        return np.array([[OF_ROD + OF_SLIDER, -c * np.sin(f)], [-c * np.sin(f), inertia]])

    def rates(t, y):
        return [y[2], y[3], *np.linalg.solve(mass(y[1]), [c * np.cos(y[1]) * y[3] ** 2, 0.0])]

    def slopes(f):
        return np.array([[1.0, -ROD * np.sin(f)], [0.0, ROD * np.cos(f)]])

    def pin(t, y):
        a = BEGIN + SPEED * t
        place = np.array([y[0] + ROD * np.cos(y[1]) - CRANK * np.cos(a), ROD * np.sin(y[1]) - CRANK * np.sin(a)])
        return place, slopes(y[1]) @ y[2:] - CRANK * SPEED * np.array([-np.sin(a), np.cos(a)])

    def gap(t, y):
        return size - np.linalg.norm(pin(t, y)[0])

    gap.terminal, gap.direction = True, -1  # pyright: ignore
    f = np.pi - np.arcsin(CRANK * np.sin(BEGIN) / ROD)
    y = np.array([CRANK * np.cos(BEGIN) - ROD * np.cos(f), f, 0.0, 0.0])
    y[2:] = np.linalg.solve(slopes(f), CRANK * SPEED * np.array([-np.sin(BEGIN), np.cos(BEGIN)]))
    t, times, step = 0.0, [], 2e-5
    while len(times) < most:
        found = solve_ivp(rates, (t, t1), y, "DOP853", events=gap, rtol=1e-13, atol=1e-15, max_step=step)
        if not len(found.t_events[0]):
            break
        t, y = found.t_events[0][0], found.y_events[0][0].copy()
        place, v = pin(t, y)
        n = place / np.linalg.norm(place)
        row = n @ slopes(y[1])
        way = np.linalg.solve(mass(y[1]), row)
        y[2:] -= (1 + restitution) * (n @ v) / (row @ way) * way
        times.append(t)
        step = min(2e-5, restitution * (n @ v) / 500)  # it is back after more than ten of them
    return np.array(times)


@jax.jit
def turned(size, restitution):
    mech, drive = slider_crank(mbs.Play(size, restitution=restitution)), {"A": lambda t: BEGIN + SPEED * t}
    begin = mbs.state(mech, drive=drive, throw=False)
    ts = jnp.linspace(0.0, 0.03, 4)
    return mbs.simulate(mech, begin, 0.03, ts=ts, drive=drive, rtol=1e-11, atol=1e-11, throw=False)


@pytest.mark.long
@pytest.mark.parametrize("restitution, most, tolerance", [(0.5, 10, 1e-12), (0.9, 64, 1e-10)])
def test_the_impacts_of_a_slider_crank_are_those_of_an_independent_integration(restitution, most, tolerance):
    """A play of 0.1 mm at 300 rpm. It begins as the ideal one moves; errors grow by impacts."""
    expected = flights(1e-4, restitution, 0.03, most)
    sol = turned(1e-4, restitution)
    assert bool(sol.result == mbs.RESULTS.successful)
    n = len(expected)
    if most > n:  # all of them
        assert int(sol.events.count) == n > 15
    assert names(sol)[:n] == [("impact", "B bore")] * n
    np.testing.assert_allclose(sol.events.t[:n], expected, rtol=0, atol=tolerance)
    if restitution == 0.5:  # it comes to rest on the rim, leaves it as the force changes its side, and hits again
        assert [kind for kind, _ in names(sol) if kind != "impact"][:3] == ["closed", "released", "closed"]


# -- a block in a guide: figure 10.15 ----------------------------------------------------------------------------------

LENGTH, HALF, PLAY = 0.2, 0.05, 0.01


@jax.jit
def guided(center, force):
    """A block that weighs 1 is pushed along and across its guide; where it comes to rest in it, and what holds it."""
    block = mbs.Body("block", mass=1.0, center=(center, 0.0), inertia=0.01)
    play = mbs.Play(PLAY, length=LENGTH, radius=HALF)
    mech = mbs.Mechanism([block], [mbs.Prismatic("P", "ground", "block", play=play)], gravity=force)
    sol = mbs.simulate(mech, None, 1.0, ts=jnp.linspace(0.0, 1.0, 5), throw=False)
    ends = [sol.contact(name) for name in ("P front", "P rear")]
    last = jnp.array([[end.active[-1], end.force[-1], end.normal[-1, 1]] for end in ends])
    return sol.q[-1], last, sol.reaction("P").torque[-1]


@pytest.mark.long
def test_a_block_in_its_guide_touches_in_the_four_cases_of_figure_10_15():
    tilt = lambda y: np.arcsin(y / (LENGTH / 2))
    weight = 3.0
    # pushed between its ends: both corners of one side, by the lever rule
    for center, down in ((0.0, 1), (0.04, 1), (-0.07, 1), (0.04, -1)):
        (x, y, angle), ends, _ = guided(center, jnp.array([0.5, -down * weight, 0.0]))
        np.testing.assert_allclose([x, y, angle], [0.25, -down * PLAY, 0.0], atol=1e-9)
        share = 0.5 + center / LENGTH
        np.testing.assert_allclose(ends[:, 1], [weight * share, weight * (1 - share)], atol=1e-6)
        np.testing.assert_allclose(ends[:, 2], down, atol=1e-9)
    # beyond them: one corner of each side, on the diagonal
    for center in (0.3, -0.25):
        (_, y, angle), ends, carried = guided(center, jnp.array([0.0, -weight, 0.0]))
        rise = PLAY + HALF * (1 - np.cos(angle))  # the corners are HALF from the middle
        np.testing.assert_allclose([y, abs(angle)], [0.0, tilt(rise)], atol=1e-9)
        assert np.sign(angle) == -np.sign(center)
        # moments about the middle: of the corner in front below, where it is tilted forwards, and its opposite
        lever = LENGTH / 2 * np.cos(angle) - HALF * np.sin(abs(angle))
        both = np.abs(center) * np.cos(angle) * weight / lever
        first, second = (weight + both) / 2, (both - weight) / 2
        expected = [first, second] if center > 0 else [second, first]
        np.testing.assert_allclose(ends[:, 1], expected, rtol=1e-6)
        np.testing.assert_allclose(ends[:, 2], np.sign(center) * np.array([1.0, -1.0]), atol=1e-9)
        np.testing.assert_allclose(np.abs(carried), np.abs(center) * np.cos(angle) * weight, rtol=1e-6)
    # free: nothing pushes it across
    (x, y, angle), ends, _ = guided(0.04, jnp.array([0.5, 0.0, 0.0]))
    np.testing.assert_allclose([x, y, angle], [0.25, 0.0, 0.0], atol=1e-12)
    assert not ends[:, 0].any()


@pytest.mark.long
def test_a_block_that_falls_level_and_turns_touches_with_one_corner_first():
    """The fourth case: one corner, from the time at which it meets the wall; against its own equations."""
    guide = mbs.Prismatic("P", "ground", "block", play=mbs.Play(PLAY, length=LENGTH, radius=HALF))
    mech = mbs.Mechanism([mbs.Body("block", mass=1.0, inertia=0.01)], [guide], gravity=(0.0, -G))
    begin = mbs.state(mech, velocities={"P play": (0.0, -0.5)})
    sol = mbs.simulate(mech, begin, 0.06, ts=jnp.array([0.0, 0.06]))
    corner = lambda t: -G * t**2 / 2 - LENGTH / 2 * np.sin(0.5 * t) - HALF * np.cos(0.5 * t) + HALF + PLAY
    event = sol.events.list(sol.mech)[0]
    assert (event.contact, event.after[0][1]) == ("P front", "lower wall")
    t = event.t
    np.testing.assert_allclose(corner(t), 0.0, atol=1e-12)
    assert corner(0.9 * t) > 0 > corner(1.1 * t)
    # the impact without restitution, by hand: the corner stops, the block turns on about it
    row = np.array([1.0, LENGTH / 2 * np.cos(0.5 * t) - HALF * np.sin(0.5 * t)])
    v = np.array([-G * t, -0.5])
    v += -(row @ v) / (row[0] ** 2 + row[1] ** 2 / 0.01) * np.array([row[0], row[1] / 0.01])
    at = mbs.simulate(mech, begin, t + 1e-9, ts=jnp.array([0.0, t + 1e-9]))
    np.testing.assert_allclose(at.v[-1, 1:], v, atol=1e-6)


# -- slots, gears, balls -----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_pin_in_a_slot_and_a_gear_with_backlash_bounce_as_closed_forms_say():
    """A pin falls on the wall of its slot, a wheel goes to and fro between the flanks of the other. What a play does
    here does not touch the other."""
    e, size, angle = 0.5, 0.02, 0.03
    mech = mbs.Mechanism(
        [
            mbs.Body("slider", mass=1.0, inertia=0.1),
            mbs.Body("a", mass=1.0, inertia=0.1),
            mbs.Body("b", mass=1.0, inertia=0.2),
        ],
        [
            mbs.PinSlot("S", "ground", "slider", play=mbs.Play(size, restitution=e)),
            mbs.Revolute("A", "ground", "a", (0.0, 1.0)),
            mbs.Revolute("B", "ground", "b", (0.3, 1.0)),
            mbs.Gear("G", "a", "b", radii=(0.2, 0.1), play=mbs.Play(angle, restitution=e)),
        ],
        gravity=(1.0, -G),
    )
    begin = mbs.state(mech, velocities={"A": 1.0, "B": 0.0, "G play": 2.0})
    sol = mbs.simulate(mech, begin, 0.5, ts=jnp.array([0.0, 0.5]), max_events=64)
    found = sol.events.list(sol.mech)
    fall = np.sqrt(2 * size / G)
    falls = fall * (1 + 2 * (e - e ** np.arange(1, 9)) / (1 - e))
    np.testing.assert_allclose([x.t for x in found if x.contact == "S slot"][:8], falls, atol=1e-9)
    # wheel a turns with 1: b stands, and lags by 2 rad/s; after each impact the play is crossed e times as fast
    meets = angle / 2 * (1 + 2 * (e ** -np.arange(4) - 1) / (1 / e - 1) / e)
    teeth = [x for x in found if x.contact == "G backlash"]
    np.testing.assert_allclose([x.t for x in teeth], meets, atol=1e-10)
    assert [x.after[0][1] for x in teeth] == ["front flank", "rear flank"] * 2
    np.testing.assert_allclose(sol["S.travel"].q[-1], 0.5 * 0.5**2, atol=1e-9)
    # what impulses leave of the speeds: I_a u / 2 = I_b w for wheels that turn against each other, at half the ratio
    u, w = sol["A"].v[-1], sol["B"].v[-1]
    np.testing.assert_allclose(0.1 * (1.0 - u), -0.2 * w * 2, atol=1e-9)
    np.testing.assert_allclose(np.abs(2 * u + w), 2 * e**4, atol=1e-9)


@pytest.mark.long
def test_a_ball_in_its_cavity_that_moves_in_a_plane_is_a_pin_in_its_bore():
    size, e = 1e-2, 0.3
    bob = mbs.Body("arm", mass=1.0, center=(CENTER, 0.0, 0.0), inertia=(0.01, INERTIA, INERTIA))
    ball = mbs.Spherical("O", "ground", "arm", play=mbs.Play(size, restitution=e))
    mech = mbs.Mechanism([bob], [ball], gravity=(0.0, 0.0, -G))
    begin = mbs.state(mech, velocities={"O play": (0.3, 0.0, 0.1)})
    sol = mbs.simulate(mech, begin, 0.12, ts=jnp.linspace(0.0, 0.12, 9), rtol=1e-11, atol=1e-11, max_events=64)
    flat = drop(size, e, STILL, jnp.array([0.3, 0.1]), 0.12)
    assert [kind for kind, _ in names(sol)] == [kind for kind, _ in names(flat)]
    n = int(flat.events.count)
    assert n > 5
    np.testing.assert_allclose(sol.events.t[:n], flat.events.t[:n], atol=1e-9)
    np.testing.assert_allclose(sol["O play.x"].q, flat["O play.x"].q, atol=1e-9)
    np.testing.assert_allclose(sol["O play.z"].q, flat["O play.y"].q, atol=1e-9)
    np.testing.assert_allclose(sol["O play.y"].q, 0.0, atol=1e-12)


@pytest.mark.long
def test_the_double_pendulum_of_chapter_9_keeps_its_energy():
    """004, chapter 9, 7.1, with spherical clearances of 4 cm in both joints, which are as stiff as Hertz has it: the
    place of the free end after half a second is that of an energy-momentum method, converged."""
    stiffness, bar = 1e7, 1 / 12
    play = mbs.Play(0.04, law=mbs.Hertz(stiffness))
    mech = mbs.Mechanism(
        [
            mbs.Body("first", mass=1.0, center=(0.5, 0.0, 0.0), inertia=(bar, bar, bar)),
            mbs.Body("second", mass=1.0, center=(0.0, 0.5, 0.0), inertia=(bar, bar, bar)),
        ],
        [
            mbs.Spherical("O", "ground", "first", play=play),
            mbs.Spherical("A", "first", "second", (1.0, 0.0, 0.0), play=play),
        ],
        gravity=(0.0, 0.0, -10.0),
    )
    sol = mbs.simulate(mech, None, 0.5, ts=jnp.linspace(0.0, 0.5, 51), max_events=64)
    assert {kind for kind, _ in names(sol)} == {"closed", "released"}
    X = sol.pose("second")[-1]
    np.testing.assert_allclose(X[:3, 1] + X[:3, 3], [1.1679, 0.5606, -1.3935], atol=1e-4)
    deep = [np.maximum(-sol.contact(name).gap, 0.0) for name in ("O cavity", "A cavity")]
    assert max(x.max() for x in deep) > 1e-4
    energy = sol.energy + sum(stiffness / 2.5 * x**2.5 for x in deep)
    np.testing.assert_allclose(energy, energy[0], atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("friction", [None, 0.2])
def test_gaps_and_their_rows_are_the_same_in_the_plane_and_in_space(friction):
    """With frames given in space, a slide has its axis along z; rows are derivatives of the gaps."""

    def loose(*point):
        at = lambda x, y: (x, y, *point)
        guide = mbs.Play(0.01, length=0.2, radius=0.05, friction=friction)
        pin = mbs.Play(0.02, radius=0.03, friction=friction)
        joints = [
            mbs.Prismatic("P", "ground", "a", at(0.1, 0.2), at(0.0, 0.0), axis=at(1.0, 0.0), play=guide),
            mbs.Revolute("R", "a", "b", at(0.3, 0.0), at(0.1, 0.1), play=pin),
        ]
        return mbs.loosened(mbs.Mechanism([mbs.Body("a"), mbs.Body("b")], joints))

    def read(mech, q):
        laid_out = system(mech)
        X = laid_out.poses(q)
        where = types.SimpleNamespace(places=(*jnp.zeros((2, 3), int), *jnp.full((2, 3), 0.5)))
        wrenches, normals = laid_out.contact_wrenches(laid_out.planes(X), where, tangents=True)
        return normals.gap, laid_out.gap_jacobian(wrenches, laid_out.twists(q, X))

    flat, space = loose(), loose(0.0)
    assert flat.planar and not space.planar
    q = jnp.array([0.3, 0.004, 0.03, 0.7, 0.006, -0.008])
    gaps, rows = read(flat, q)
    np.testing.assert_allclose(rows[:3], jax.jacfwd(lambda q: read(flat, q)[0])(q), atol=1e-12)
    np.testing.assert_allclose(gaps[2], 0.02 - 0.01, atol=1e-14)
    for mine, others in zip(read(space, q), (gaps, rows)):
        np.testing.assert_allclose(mine, others, atol=1e-12)


# -- friction on the rim -----------------------------------------------------------------------------------------------


@jax.jit
def _rubbed(lies, friction, spin, t1):
    """A disc of mass 2 and radius 0.05 in a bore of radius 0.15."""
    play = mbs.Play(0.1, lies, radius=0.05, friction=friction)
    mech = mbs.Mechanism(
        [mbs.Body("disc", mass=2.0, inertia=0.003)],
        [mbs.Revolute("O", "ground", "disc", play=play)],
        gravity=(0.0, -G),
    )
    begin = mbs.state(mech, velocities={"O": spin}, throw=False)
    ts = jnp.linspace(0.0, t1, 5)
    sol = mbs.simulate(mech, begin, t1, ts=ts, rtol=1e-11, atol=1e-11, max_steps=600, throw=False)
    return sol.q, sol.v, sol.contact("O bore").force, sol.events.count


def rubbed(*given):
    return _rubbed(*map(jnp.asarray, given))


@pytest.mark.long
def test_a_disc_rolls_in_its_bore():
    """A pendulum as long as the play, whose mass is larger by what turns; a quarter of its period by an elliptic
    integral."""
    top = 0.4
    slow = np.sqrt(G / 0.1 / (1 + 0.003 / (2 * 0.05**2)))
    quarter = ellipk(np.sin(top / 2) ** 2) / slow
    q, v, _, count = rubbed(jnp.array([np.sin(top), -np.cos(top)]), 1.0, 0.0, quarter)
    assert int(count) == 1  # it closes, and never slides
    np.testing.assert_allclose(q[-1], [0.1 / 0.05 * top, 0.0, -0.1], atol=1e-9)
    fastest = 2 * slow * np.sin(top / 2)
    np.testing.assert_allclose(v[-1], [0.1 / 0.05 * fastest, -0.1 * fastest, 0.0], atol=1e-8)


@pytest.mark.long
@pytest.mark.parametrize("way", [-1, 1])
def test_a_pin_that_spins_stands_at_the_angle_of_friction(way):
    """There the force of the rim is vertical, and touches the circle of friction."""
    angle = np.arctan(0.3)
    q, v, force, _ = rubbed(jnp.array([-way * np.sin(angle), -np.cos(angle)]), 0.3, way * 20.0, 0.1)
    assert np.isfinite(q).all()  # though it is rounding alone that tells whether it approaches at first
    np.testing.assert_allclose(q[-1, 1:], q[0, 1:], atol=1e-9)
    np.testing.assert_allclose(force[1:], 2 * G * np.cos(angle), rtol=1e-9)
    slower = 0.05 * np.sin(angle) * 2 * G / 0.003
    np.testing.assert_allclose(v[:, 0], way * (20.0 - slower * np.linspace(0.0, 0.1, 5)), atol=1e-6)


# -- what is refused, and what else can be done with it ----------------------------------------------------------------


@pytest.mark.long
def test_play_that_cannot_be_simulated_is_refused():
    def hinge(**play):
        return mbs.Mechanism([mbs.Body("b", mass=1.0)], [mbs.Revolute("O", "ground", "b", play=mbs.Play(**play))])

    with pytest.raises(ValueError, match="play of joint 'O' must be positive"):
        mbs.loosened(hinge(size=0.0))
    with pytest.raises(ValueError, match="needs the radius of its pin"):
        mbs.state(hinge(size=0.1, friction=0.2))
    rough = mbs.Revolute("O", "ground", "b", play=mbs.Play(0.1, radius=1.0, friction=0.2),
                         friction=mbs.JointFriction(0.1, radius=1.0))  # fmt: skip
    with pytest.raises(ValueError, match="give one of them"):
        mbs.loosened(mbs.Mechanism([mbs.Body("b")], [rough]))
    ball = mbs.Spherical("S", "ground", "b", play=mbs.Play(0.1, radius=1.0, friction=0.2))
    with pytest.raises(ValueError, match="play of joint 'S' cannot have friction"):
        mbs.loosened(mbs.Mechanism([mbs.Body("b")], [ball]))
    with pytest.raises(ValueError, match="cannot be written"):
        mbs.dumps(mbs.loosened(hinge(size=0.1)))
    heavy = arm(0.1, 0.0, STILL)
    at_rest = mbs.equilibrium(heavy, estimate={"O": -1.5}).state
    with pytest.raises(ValueError, match="1 positions and 1 velocities, the mechanism has 3 and 3"):
        mbs.simulate(heavy, at_rest, 1.0)
    with pytest.raises(ValueError, match="play of size 0.1 of 'O bore' is exceeded at the start by 0.02"):
        mbs.simulate(heavy, mbs.state(heavy, {"O play": (0.12, 0.0)}), 1.0)


def test_without_play_a_mechanism_is_loosened_to_itself():
    four_bar = mbs.Mechanism([mbs.Body("b", mass=1.0)], [mbs.Revolute("O", "ground", "b")])
    assert mbs.loosened(four_bar) is four_bar


def test_statics_take_the_pin_where_it_lies():
    heavy = arm(0.1, 0.0, jnp.array([1.0, 0.0]))
    rest = mbs.equilibrium(heavy, estimate={"O": -1.5})
    np.testing.assert_allclose(rest.q, [-np.pi / 2], atol=1e-9)
    np.testing.assert_allclose(rest.state.q, rest.q)
    small = mbs.linearize(heavy, rest.state)
    slow = np.sqrt(G * CENTER / (CENTER**2 + INERTIA))
    np.testing.assert_allclose(np.sort(small.eigenvalues.imag), [-slow, slow], rtol=1e-9)
    with pytest.raises(ValueError, match="give mbsjax.loosened"):
        mbs.linearize(heavy, mbs.state(heavy))


def test_pictures_of_joints_with_play(tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    sol = drop(1e-2, 0.5, STILL, STILL, 0.3)
    assert [x.get_text() for x in mbs.plots.contacts(sol).get_yticklabels()] == ["O bore"]
    mbs.plots.mechanism(sol)
    mbs.plots.mechanism(arm(1e-2, 0.5, STILL))
    mbs.view(sol).save(tmp_path / "play.html")
    assert "O bore" in (tmp_path / "play.html").read_text()
    assert "O bore" in str(sol.mech)
