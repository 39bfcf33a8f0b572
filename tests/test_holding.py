"""What friction holds at rest, and what it takes to move it: ladders, wedges, screws, latches, cams that jam."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs

from . import latch


G = 9.81


def line(*ends):
    return mbs.Profile.chain([mbs.Line(*ends)], closed=False)


# -- a ladder between a wall and a floor -------------------------------------------------------------------------------


def ladder(lean, wall, floor):
    """At the angle `lean` to the floor, its middle on half of its way: held down to
    tan(lean) = (1 - wall floor) / (2 floor)."""
    ends = {"foot": mbs.Profile.chain([mbs.Point((-1.0, 0.0))]), "head": mbs.Profile.chain([mbs.Point((1.0, 0.0))])}
    mech = mbs.Mechanism(
        [
            mbs.Body(
                "ground", profiles={"floor": line((9.0, 0.0), (-9.0, 0.0)), "wall": line((0.0, -9.0), (0.0, 9.0))}
            ),
            mbs.Body("ladder", mass=3.0, inertia=1.0, profiles=ends),
        ],
        [
            mbs.Planar("P", "ground", "ladder", start=(2.0, 0.5, 0.9)),
            mbs.Contact("F", "ground.floor", "ladder.foot", active=True, friction=floor),
            mbs.Contact("W", "ground.wall", "ladder.head", active=True, friction=wall),
        ],
        gravity=(0.0, -G),
    )
    return mbs.holding(mech, {"P.angle": jnp.pi - lean})


def steepest(wall, floor):
    return mbs.holding_limit(lambda lean: ladder(lean, wall, floor), 1.4, 0.2)


def test_a_ladder_is_held_down_to_its_angle_which_has_derivatives():
    exact = lambda wall, floor: jnp.arctan((1 - wall * floor) / (2 * floor))
    for wall, floor in ((0.3, 0.4), (0.0, 0.5)):
        at = jnp.asarray(wall), jnp.asarray(floor)
        found, slopes = jax.value_and_grad(steepest, (0, 1))(*at)
        assert float(found) == pytest.approx(float(exact(*at)), abs=1e-9)
        expected = jax.grad(exact, (0, 1))(*at)
        np.testing.assert_allclose(slopes[1 if wall == 0 else 0 :], expected[1 if wall == 0 else 0 :], atol=1e-7)
    rest = ladder(jnp.asarray(1.0), 0.3, 0.4)
    assert bool(rest.held) and rest.names == ("F", "W")
    # with a share s of both limits the same ladder would just be held: tan(lean) = (1 - s^2 wall floor) / (2 s floor)
    s = float(rest.share)
    assert np.tan(1.0) == pytest.approx((1 - s**2 * 0.12) / (2 * s * 0.4), abs=1e-9)
    np.testing.assert_allclose(np.abs(rest.friction), s * np.array([0.4, 0.3]) * rest.press, rtol=1e-8)


def test_a_ladder_without_friction_anywhere_is_an_error_and_on_ice_is_not_held():
    assert float(ladder(jnp.asarray(1.0), 0.0, 0.0).share) == np.inf
    mech = mbs.Mechanism([mbs.Body("b", mass=1.0)], [mbs.Prismatic("x", "ground", "b")])
    with pytest.raises(ValueError, match="nothing has friction"):
        mbs.holding(mech)


# -- self-locking ------------------------------------------------------------------------------------------------------


def test_a_block_on_a_wedge_locks_itself_below_the_angle_of_friction():
    def on_wedge(mu, angle=0.3):
        mech = mbs.Mechanism(
            [mbs.Body("block", mass=2.0)],
            [
                mbs.Prismatic(
                    "x", "ground", "block", axis=(jnp.cos(angle), jnp.sin(angle)), friction=mbs.JointFriction(mu)
                )
            ],
            gravity=(0.0, -G),
        )
        return mbs.holding(mech)

    assert float(mbs.holding_limit(on_wedge, 0.9, 0.1)) == pytest.approx(np.tan(0.3), abs=1e-9)
    assert float(jax.grad(lambda mu: on_wedge(mu).share)(jnp.asarray(0.4))) == pytest.approx(
        -np.tan(0.3) / 0.16, abs=1e-7
    )


@pytest.mark.parametrize("lead", [4.0, -4.0])
def test_a_screw_locks_itself_where_its_lead_is_small(lead):
    """A load on the nut does not drive the screw if tan of the lead's angle is less than mu; to raise the load takes
    F r tan(phi + alpha)."""
    radius, mu, mass = 3.0, 0.3, 2.0
    alpha = np.arctan(abs(lead) / (2 * np.pi * radius))
    screw = lambda mu, a, b: mbs.Screw("S", a, b, lead=lead, friction=mbs.JointFriction(mu, radius=radius))
    body = lambda name: mbs.Body(name, mass=mass, inertia=(1.0, 1.0, 1.0))
    jack = lambda mu: mbs.Mechanism([body("nut")], [screw(mu, "ground", "nut")], gravity=(0.0, 0.0, -G))
    locks = mbs.holding_limit(lambda mu: mbs.holding(jack(mu)), 0.9, 0.01)
    assert float(locks) == pytest.approx(np.tan(alpha), abs=1e-9)
    driven = mbs.Mechanism(
        [mbs.Body("spindle"), body("nut")],
        [
            mbs.Revolute("R", "ground", "spindle", axis=(0.0, 0.0, 1.0)),
            screw(mu, "spindle", "nut"),
            mbs.Prismatic("y", "ground", "nut", axis=(0.0, 0.0, 1.0)),
        ],
        gravity=(0.0, 0.0, -G),
    )
    for way in (1.0, -1.0):
        efforts = mbs.inverse_dynamics(driven, {"R": mbs.constant_speed(way)}, jnp.array([0.0, 0.1]))
        raises = np.sign(float(efforts.motion["y"].v[1]))
        torque = mass * G * radius * np.tan(raises * np.arctan(mu) + alpha)
        power = efforts["R"][1] * way
        assert float(power) == pytest.approx(raises * torque, rel=1e-9)
        assert not bool(efforts.jammed.any())


# -- a cam whose follower jams in its guide ----------------------------------------------------------------------------


def pushed(mu, ts):
    """An eccentric disc lifts a roller on a rod, which a constant force presses down, in a guide of the length 20 whose
    middle is 60 above the cam's center."""
    mech = mbs.Mechanism(
        [
            mbs.Body("cam", mass=1.0, inertia=1.0, profiles={"rim": mbs.disc(20.0, center=(8.0, 0.0))}),
            mbs.Body("rod", mass=1e-9, profiles={"roller": mbs.disc(5.0)}),
        ],
        [
            mbs.Revolute("A", "ground", "cam"),
            mbs.Prismatic(
                "y", "ground", "rod", mbs.at(0.0, 60.0, jnp.pi / 2), mbs.at(0.0, 0.0, jnp.pi / 2), start=-30.0,
                friction=mbs.JointFriction(mu, length=20.0),
            ),
            mbs.Contact("C", "cam.rim", "rod.roller", active=True, moves="y"),
        ],
        forces=[mbs.Actuator("y", -50.0)],
    )  # fmt: skip
    return mbs.inverse_dynamics(mech, {"A": mbs.constant_speed(1.0)}, ts)


def by_hand(angle, mu):
    """The torque: the roller's center is on the cam's axis of lift, at the distance y; the force P on it along the
    common normal makes the lateral force and the tilting moment in the guide."""
    x, h = 8 * np.cos(angle), 8 * np.sin(angle)
    y = h + np.sqrt(25.0**2 - x**2)
    nx, ny = -x / 25.0, (y - h) / 25.0
    arm = 60.0 - y
    per = max(abs(nx), 2 * abs(nx) * arm / 20.0)  # |N1| + |N2| for each unit of P
    rises = np.sign(8 * np.cos(angle) + x * 8 * np.sin(angle) / (y - h))
    P = 50.0 / (ny - rises * mu * per)
    return P * (x * ny - h * nx) if ny - rises * mu * per > 0 else np.nan


def test_a_cam_drives_its_follower_against_the_friction_of_its_guide_until_that_jams():
    ts = jnp.linspace(-1.2, 4.0, 14)
    for mu in (0.1, 0.9):
        efforts = pushed(jnp.asarray(mu), ts)
        expected = np.array([by_hand(float(t), mu) for t in ts])
        assert bool(np.isnan(expected).any()) is (mu > 0.5)
        np.testing.assert_array_equal(efforts.jammed, np.isnan(expected))
        np.testing.assert_allclose(efforts["A"], expected, rtol=1e-6)
    # with derivatives, where it does not jam
    torque = lambda mu: pushed(mu, jnp.array([0.0, 0.4]))["A"][1]
    slope = (by_hand(0.4, 0.2 + 1e-5) - by_hand(0.4, 0.2 - 1e-5)) / 2e-5
    assert float(jax.jvp(torque, (jnp.asarray(0.2),), (jnp.ones(()),))[1]) == pytest.approx(slope, rel=1e-6)


def pull_by_hand(mu, reach, arm):
    """The torque on the trigger at which the nose of the blocked latch begins to slide down the tooth: the balances of
    slide, tripping lever, sear and trigger, each with friction against the motion that begins."""
    lever, tail = reach + 0.3, 10.0 - jnp.sqrt(arm**2 - 0.02**2)  # of the nose; where the finger lifts the tail
    on_tooth, on_pin = 2.0 * (8.0 - 5.6 + lever), 10.0 / (4.7 + 0.2 * mu)
    on_tail = (20.0 + lever * mu * on_tooth - on_pin * (1.0 - 3.2 * mu)) / (tail - 5.6 - 0.3 * mu)
    return -on_tail * (10.0 - tail - 0.32 * mu)


def blocked(torque, mu, reach, arm):
    """The latch when the finger has taken up its play, and the nose no longer presses on the roof."""
    dimensions = latch.DIMENSIONS | {"reach": reach, "arm": arm}
    mech = latch.latch(dimensions=dimensions, friction=mu, active=("C23", "C26", "C24"), finger=torque)
    return mbs.holding(mech, {"R12": 0.0, "R35": jnp.arcsin(0.02 / arm)})


@pytest.mark.long
def test_the_pull_that_releases_a_latch_over_friction_and_the_friction_that_locks_it():
    """With their derivatives in friction and dimensions."""
    release = lambda *x: mbs.holding_limit(lambda torque: blocked(torque, *x), -30.0, -1000.0)
    for mu in (0.1, 0.6):
        found, slopes = jax.value_and_grad(release, argnums=(0, 1, 2))(mu, 5.3, 2.5)
        wanted, by_hand = jax.value_and_grad(pull_by_hand, argnums=(0, 1, 2))(mu, 5.3, 2.5)
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
        np.testing.assert_allclose(slopes, by_hand, rtol=1e-7)
    locks = lambda torque: mbs.holding_limit(lambda mu: blocked(torque, mu, 5.3, 2.5), 0.9, 0.1)
    limit, slope = jax.value_and_grad(locks)(-80.0)
    np.testing.assert_allclose(pull_by_hand(limit, 5.3, 2.5), -80.0, rtol=1e-9)
    np.testing.assert_allclose(slope, 1 / jax.grad(pull_by_hand)(limit, 5.3, 2.5), rtol=1e-7)
    rest = blocked(-80.0, limit + 1e-9, 5.3, 2.5)
    open_ = [not c.active for c in rest.mech.contacts]
    assert bool(rest.held) and np.all(np.asarray(rest.press)[open_] == 0.0)
