"""A cam tells the joints of itself and its follower: the coordinate of the guide is the lift."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs


LIFT = 0.15
FOLLOWERS = {
    "roller, offset": (mbs.Translating(mbs.Roller(0.3), offset=0.25), 1),
    "flat face": (mbs.Translating(mbs.FlatFace(1.0), offset=-0.1), 1),
    "rocker, pivot on the right": (mbs.Oscillating(mbs.Roller(0.3), pivot=2.0, arm=1.7), -1),
    "rocker, pivot on the left": (mbs.Oscillating(mbs.Roller(0.3), pivot=-2.0, arm=1.7), 1),
    "flat rocker": (mbs.Oscillating(mbs.FlatFace(1.5), pivot=2.0, arm=2.0, offset=0.1), -1),
}
PLACES = {
    "roller, offset": {"cam_at": mbs.at(0.4, -0.3, 0.7)},
    "flat face": {"follower_at": mbs.at(-1.0, 2.0, 0.5)},
    "rocker, pivot on the right": {"follower_at": mbs.at(0.5, 0.2, -0.4)},
    "rocker, pivot on the left": {"cam_at": (0.3, 0.1)},
    "flat rocker": {},
}


def design(follower):
    rise, fall = mbs.Rise("cycloidal", 2.0, LIFT), mbs.Fall("cycloidal", 3.0, LIFT)
    return mbs.Cam(mbs.Program([rise, fall, mbs.Dwell(2 * jnp.pi - 5.0)]), follower, 1.0)


def train(cam, places):
    bodies = [
        mbs.Body("cam", profiles={"rim": cam.profile()}),
        mbs.Body("follower", profiles={"tip": cam.follower_profile()}),
    ]
    contact = mbs.Contact("C", "cam.rim", "follower.tip", active=True)
    both = [cam.shaft("O", "ground", "cam", **places), cam.guide("G", "ground", "follower", **places)]
    return mbs.Mechanism(bodies, [*both, contact])


@pytest.mark.parametrize("name", FOLLOWERS)
def test_a_guide_at_the_lift_is_where_the_cam_wants_its_follower(name):
    follower, sign = FOLLOWERS[name]
    cam, places = design(follower), PLACES[name]
    shaft, guide = cam.shaft("O", "ground", "cam", **places), cam.guide("G", "ground", "follower", **places)
    for theta in (0.0, 0.7, 2.0, 3.3):
        wanted = mbs.frames.compose(shaft.interlink(0.0), mbs.frames.embed(cam.frame(jnp.asarray(theta))))
        np.testing.assert_allclose(guide.interlink(sign * cam.program(theta)), wanted, atol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("name", FOLLOWERS)
def test_through_the_contact_the_coordinate_of_the_guide_is_the_lift(name):
    follower, sign = FOLLOWERS[name]
    cam = design(follower)
    mech = train(cam, PLACES[name])
    for theta in (0.9, 3.1):
        found = mbs.assemble(mech, {"G": sign * LIFT}, fixed={"O": theta})
        np.testing.assert_allclose(sign * found["G"], cam.program(theta), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", FOLLOWERS)
def test_where_the_follower_is_at_lift_0(name):
    """On the base circle: the tip of a roller is its radius off, the line of a flat face touches."""
    follower, _ = FOLLOWERS[name]
    cam, places = design(follower), PLACES[name]
    shaft, guide = cam.shaft("O", "ground", "cam", **places), cam.guide("G", "ground", "follower", **places)
    X_C, X_F = np.asarray(shaft.interlink(0.0)), np.asarray(guide.interlink(0.0))
    if "follower_at" in places:
        np.testing.assert_allclose(X_F, mbs.frames.embed(places["follower_at"]), atol=1e-14)
    else:
        frame = places.get("cam_at", mbs.at(0.0, 0.0))
        frame = frame if isinstance(frame, mbs.PlanarFrame) else mbs.at(*frame)
        np.testing.assert_allclose(X_C, mbs.frames.embed(frame), atol=1e-14)
    center = np.linalg.solve(X_F, X_C[:, 3])[:2]  # of the cam, in the follower's frame
    element = cam.follower_profile().elements[-1] if "flat" not in name else cam.follower_profile().elements[0]
    if "flat" in name:
        start, end = np.asarray(element.start), np.asarray(element.end)
        along = (end - start) / np.linalg.norm(end - start)
        apart = abs(along[0] * (center - start)[1] - along[1] * (center - start)[0])
        np.testing.assert_allclose(apart, 1.0, atol=1e-12)
    else:
        np.testing.assert_allclose(np.linalg.norm(center - element.center), 1.0 + 0.3, atol=1e-12)


FILE = """
[parameters]
lift = 0.15

[bodies.cam.profiles.rim]
type = "cam"
program = [
    {type = "rise", law = "cycloidal", angle = 2, height = "lift"},
    {type = "fall", law = "cycloidal", angle = 3, height = "lift"},
    {type = "dwell", angle = "2*pi - 5"},
]
follower = {type = "oscillating", tip = {type = "roller", radius = 0.3}, pivot = 2, arm = 1.7}
base_radius = 1

[bodies.follower.profiles]
tip = {type = "cam_follower", cam = "cam.rim"}

[joints.O]
type = "cam_shaft"
body_a = "ground"
body_b = "cam"
cam = "cam.rim"
follower_at = {x = 0.5, y = 0.2, angle = -0.4}

[joints.G]
type = "cam_guide"
body_a = "ground"
body_b = "follower"
cam = "cam.rim"
follower_at = {x = 0.5, y = 0.2, angle = -0.4}

[contacts.C]
profile_a = "cam.rim"
profile_b = "follower.tip"
active = true
"""


def test_files_know_the_joints_of_a_cam():
    name = "rocker, pivot on the right"
    mech = train(design(FOLLOWERS[name][0]), PLACES[name])
    found = mbs.loads(FILE).mechanism()
    assert jax.tree_util.tree_structure(found) == jax.tree_util.tree_structure(mech)
    for x, y in zip(*(jax.tree_util.tree_leaves(tree) for tree in (found, mech))):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    "old, new, told",
    [
        (
            'cam = "cam.rim"\nfollower_at',
            'cam = "cam.edge"\nfollower_at',
            "joints.O.cam: .* no cam 'cam.edge'.*'cam.rim'",
        ),
        ('tip = {type = "cam_follower", cam = "cam.rim"}', 'tip = {type = "cam_follower"}', "'cam' or 'follower'"),
        ("follower_at = {x", "cam_at = [0, 0]\nfollower_at = {x", "follows from `follower_at`: leave out `cam_at`"),
        ('cam = "cam.rim"\nfollower_at = {', 'cam = "cam.rim"\ncam_at = [1, 2, 3]\n#', "must be a point of the plane"),
        ('body_b = "follower"', 'body_b = "follower"\nlength = 3', "joint 'G' has no length: its follower turns"),
    ],
)
def test_mistakes_are_named(old, new, told):
    with pytest.raises(mbs.FileError, match=told):
        mbs.loads(FILE.replace(old, new, 1)).mechanism()
