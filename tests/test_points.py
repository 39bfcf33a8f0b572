"""Points of bodies by name, where coordinates could stand: in joints, gauges, loads and springs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs


R, L = 1.0, 2.5


def slider_crank(r=R, *, by_name=True, deep=False):
    """A slider-crank: its crank's pin, the eye of its spring and the place of its load have names, or coordinates."""
    up = lambda x, y: (x, y, 0.0) if deep else (x, y)
    named = lambda name, place: name if by_name else place
    axis = (0.0, 0.0, 1.0) if deep else None
    pin, eye, hook = up(r, 0.0), up(L, 0.0), up(0.0, -2.0)
    bodies = [
        mbs.Body("ground", points={"hook": hook}),
        mbs.Body("crank", mass=1.0, inertia=0.1, points={"pin": pin}),
        mbs.Body("rod", mass=0.5, inertia=0.2, points={"eye": eye}),
        mbs.Body("block", mass=2.0),
    ]
    joints = [
        mbs.Revolute("O", "ground", "crank", up(0.0, 0.0), axis=axis),
        mbs.Revolute("A", "crank", "rod", named("pin", pin), up(0.0, 0.0), axis=axis),
        mbs.Revolute("B", "rod", "block", named("eye", eye), up(0.0, 0.0), axis=axis, start=-0.4),
        mbs.Prismatic("guide", "ground", "block", up(0.0, 0.0), axis=up(1.0, 0.0), start=3.0),
    ]
    gauges = [
        mbs.Distance("reach", "ground", "rod", named("hook", hook), named("eye", eye)),
        mbs.Offset("height", "ground", "crank", point_b=named("pin", pin), axis=up(0.0, 1.0)),
    ]
    own = mbs.Distance("length", "ground", "crank", named("hook", hook), named("pin", pin))
    forces = [
        mbs.Spring(own, stiffness=3.0, free_length=1.0),
        mbs.Load("rod", force=(0.0, -4.0), point=named("eye", eye)),
    ]
    return mbs.Mechanism(bodies, joints, gauges, forces=forces, gravity=(0.0, -9.81))


ANGLES = jnp.linspace(0.3, 2.0, 5)


def place(mech):
    """Where the slider stands, over the angle of the crank."""
    return mbs.kinematics(mech, {"O": mbs.constant_speed(1.0)}, ANGLES)["guide"].q


def closed_form(r):
    return r * jnp.cos(ANGLES) + jnp.sqrt(L**2 - (r * jnp.sin(ANGLES)) ** 2)


@pytest.mark.long
@pytest.mark.parametrize("deep", [False, True])
def test_names_stand_for_coordinates(deep):
    by_name, by_numbers = (slider_crank(by_name=x, deep=deep) for x in (True, False))
    assert by_name.planar == by_numbers.planar == (not deep)
    for x, y in ((by_name.joints, by_numbers.joints), (by_name.gauges, by_numbers.gauges)):
        assert eqx.tree_equal(x, y)
    assert eqx.tree_equal(by_name.forces, by_numbers.forces)
    assert eqx.tree_equal(by_name.joint("A"), by_numbers.joint("A"))
    np.testing.assert_allclose(place(by_name), closed_form(R), rtol=0, atol=1e-10)
    motion = mbs.kinematics(by_name, {"O": mbs.constant_speed(1.0)}, ANGLES)
    np.testing.assert_allclose(motion["height"].q, R * np.sin(ANGLES), rtol=0, atol=1e-10)
    np.testing.assert_allclose(motion["reach"].q, np.hypot(closed_form(R), 2.0), rtol=0, atol=1e-10)


@pytest.mark.long
def test_derivatives_go_to_the_point_of_the_body():
    mech = slider_crank()
    slopes = jax.grad(lambda mech: place(mech)[2])(mech).body("crank").points["pin"]
    a = ANGLES[2]
    along = np.cos(a) - R * np.sin(a) ** 2 / np.sqrt(L**2 - (R * np.sin(a)) ** 2)  # of the closed form, by r
    np.testing.assert_allclose(slopes[0], along, rtol=0, atol=1e-10)
    # across the crank, the pin turns with it: as an angle of the crank, over r
    turned = jax.grad(lambda a: R * jnp.cos(a) + jnp.sqrt(L**2 - (R * jnp.sin(a)) ** 2))(a) / R
    np.testing.assert_allclose(slopes[1], turned, rtol=0, atol=1e-10)


def test_a_point_that_is_moved_moves_all_that_is_there():
    moved = eqx.tree_at(lambda m: m.body("crank").points["pin"], slider_crank(), jnp.array([1.2, 0.0]))
    assert moved.joint("A").frame_a.x == moved.gauges[1].point_b[0] == moved.forces[0].gauge.point_b[0] == 1.2
    np.testing.assert_allclose(place(moved), closed_form(1.2), rtol=0, atol=1e-10)
    started = eqx.tree_at(lambda m: m.joint("B").start, moved, jnp.array([-0.3]))
    assert started.joint("B").start.item() == -0.3 and started.joint("A").frame_a.x == 1.2


@pytest.mark.long
def test_batches_and_compiled_programs():
    radii = jnp.array([0.8, 1.0, 1.2])
    found = jax.jit(jax.vmap(lambda r: place(slider_crank(r))))(radii)
    np.testing.assert_allclose(found, jax.vmap(closed_form)(radii), rtol=0, atol=1e-10)
    many = jax.vmap(slider_crank)(radii)
    np.testing.assert_allclose(jax.vmap(place)(many), found, rtol=0, atol=1e-12)
    assert "'A'" in repr(many.joints) and "A" in str(many)


@pytest.mark.long
@pytest.mark.parametrize("deep", [False, True])
def test_forces_act_at_points_with_names(deep):
    """Motor torque and reactions of both descriptions are the same."""
    drive = {"O": mbs.constant_speed(1.0)}
    by_name, by_numbers = (
        mbs.inverse_dynamics(slider_crank(by_name=x, deep=deep), drive, ANGLES) for x in (True, False)
    )
    np.testing.assert_allclose(by_name["O"], by_numbers["O"], rtol=1e-12)
    np.testing.assert_allclose(by_name.reaction("A").force, by_numbers.reaction("A").force, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("deep", [False, True])
def test_files_keep_names(deep):
    mech = slider_crank(deep=deep)
    text = mbs.dumps(mech)
    again = mbs.loads(text).mechanism()
    assert eqx.tree_equal(mech, again) and mbs.dumps(again) == text
    assert 'point_b = "pin"' in text and 'point = "eye"' in text


def body():
    return mbs.Body("crank", points={"pin": (1.0, 0.0), "eye": (2.0, 0.0)})


@pytest.mark.parametrize(
    "part, told",
    [
        (
            {"joints": [mbs.Revolute("A", "ground", "crank", None, "tip")]},
            "frame_b of joint 'A' names an unknown point of body 'crank' 'tip'; there are 'pin', 'eye'",
        ),
        ({"joints": [mbs.Revolute("A", "ground", "crank", "O")]}, "unknown point of body 'ground' 'O'; there are none"),
        ({"gauges": [mbs.Distance("d", "crank", "ground", "pim")]}, "distance 'd' names .* 'pim'; did you mean 'pin'?"),
        ({"gauges": [mbs.Offset("d", "ground", "crank", None, "tip", axis=(0, 1))]}, "offset 'd' names .* 'tip'"),
        ({"gauges": [mbs.Offset("d", "ground", "crank", None, "pin", axis=(0, 1, 0))]}, "all be pairs, or all triples"),
        ({"forces": [mbs.Load("crank", force=(1, 0), point="tip")]}, "point of 'load on crank' names .* 'tip'"),
        ({"forces": [mbs.Spring(mbs.Distance("s", "crnk", "ground", "pin"))]}, "names an unknown body 'crnk'"),
        ({"forces": [mbs.Spring(mbs.Distance("s", "crank", "ground", "tip"))]}, "distance 's' names .* 'tip'"),
    ],
)
def test_unknown_points_are_named(part, told):
    members = {"joints": [mbs.Revolute("A", "ground", "crank")], **part}
    with pytest.raises(ValueError, match=told):
        mbs.Mechanism([body()], **members)
