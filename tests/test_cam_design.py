"""A cam is the envelope of its follower, and what designers look at agrees with closed forms."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import mbsjax as mbs
from mbsjax._model.profile.followers import cam_elements
from mbsjax._model.profile.motion_laws import LAWS


pi = np.pi
FINE = jnp.linspace(0.0, 1.0, 801)
THETA = jnp.linspace(0.0, 2 * pi, 61)


def program(height, first=1.8):
    return mbs.Program(
        [
            mbs.Rise("cycloidal", first, height),
            mbs.Dwell(0.6),
            mbs.Fall("cycloidal", 1.5, 0.4 * height),
            mbs.Fall("cycloidal", 2 * pi - 2.6 - first, 0.6 * height),
            mbs.Dwell(0.5),
        ]
    )


CAMS = {
    "roller": (20.0, mbs.Translating(mbs.Roller(9.0), offset=6.0)),
    "flat face": (8.0, mbs.Translating(mbs.FlatFace(30.0), offset=2.0)),
    "swinging roller": (0.3, mbs.Oscillating(mbs.Roller(9.0), pivot=90.0, arm=75.0)),
    "swinging roller, pivot on the left": (0.3, mbs.Oscillating(mbs.Roller(9.0), pivot=-90.0, arm=75.0, offset=5.0)),
    "swinging face": (0.12, mbs.Oscillating(mbs.FlatFace(40.0), pivot=90.0, arm=80.0, offset=3.0)),
    "swinging face, pivot on the left": (0.12, mbs.Oscillating(mbs.FlatFace(40.0), pivot=-90.0, arm=80.0, offset=-4.0)),
}


@functools.cache
def designed(case):
    """The cam, its profile's points one row a cam angle, its table, and the follower's frame."""
    height, follower = CAMS[case]
    cam = mbs.Cam(program(height), follower, 40.0)
    profile, table = cam.profile(), cam(THETA)
    points = np.concatenate([np.asarray(_along(e, FINE).position) for e in profile.elements])
    frame = cam.frame(THETA)
    return cam, profile, points, table, [np.asarray(x) for x in (frame.x, frame.y, frame.angle)]


@jax.jit
def _along(element, s):
    return jax.vmap(lambda x: element(x))(s)


def turned(p, angle):
    c, s = np.cos(angle), np.sin(angle)
    return p @ np.array([[c, s], [-s, c]])


@pytest.mark.long
@pytest.mark.parametrize("case", CAMS)
def test_follower_touches_and_nowhere_penetrates(case):
    """Every position of the follower, brute force: the nearest point of the cam is just touched."""
    cam, _, points, table, (x, y, angle) = designed(case)
    (shape,) = cam.follower_profile().elements
    for i, theta in enumerate(np.asarray(THETA)):
        seen = turned(turned(points, theta) - [x[i], y[i]], -angle[i])  # from the follower
        contact = turned(np.asarray(table.contact[i]) - [x[i], y[i]], -angle[i])
        if isinstance(shape, mbs.Line):
            level, middle = float(shape.start[1]), float(shape.start[0] + shape.end[0]) / 2
            gap = level - seen[:, 1]
            np.testing.assert_allclose(contact, (middle + float(table.excursion[i]), level), atol=1e-9)
        else:
            center, radius = np.asarray(shape.center), float(shape.radius)
            gap = np.linalg.norm(seen - center, axis=1) - radius
            np.testing.assert_allclose(np.linalg.norm(contact - center), radius, atol=1e-9)
        assert gap.min() > -1e-9
        nearest = np.linalg.norm(seen - contact, axis=1)
        assert nearest.min() < 0.1  # the contact that the table tells is on the cam,
        assert gap[nearest.argmin()] < 2e-3  # and nothing is between


@pytest.mark.parametrize("case", CAMS)
def test_curvature_of_the_profile(case):
    """The table's radius is that of the profile, whose curvature comes from its second derivatives, and that of a
    circle through three neighboring points."""
    cam, profile, _, _, _ = designed(case)
    starts = np.asarray(cam.program.starts)
    segment, part = 3, float(FINE[300])
    angle = float(cam.program.segments[segment].angle)
    theta = starts[segment] + angle * (1 - part)
    number = len(starts) - 1 - segment
    places = _along(profile.elements[number], FINE)
    a, b, c = np.asarray(places.position[299:302])
    (ux, uy), (vx, vy) = b - a, c - b
    circle = 2 * (ux * vy - uy * vx) / np.prod([np.linalg.norm(d) for d in (b - a, c - b, c - a)])
    table = cam(jnp.full_like(THETA, theta))
    np.testing.assert_allclose(1 / table.radius[0], circle, rtol=2e-5)
    np.testing.assert_allclose(1 / table.radius[0], places.curvature[300], rtol=1e-10)


def test_knife_edge_draws_the_profile():
    cam = mbs.Cam(program(20.0), mbs.Translating(mbs.Knife(), offset=-6.0), 40.0)
    (edge,) = cam.follower_profile().elements
    assert np.all(edge.position == 0)
    for segment, element in enumerate(reversed(cam_elements(cam.program, cam.follower, cam.base_radius))):
        theta = cam.program.starts[segment] + cam.program.segments[segment].angle * (1 - FINE)
        path = np.stack([-6.0 * np.ones(801), np.sqrt(40.0**2 - 36.0) + np.asarray(cam.program(theta - 1e-12))], 1)
        seen = [turned(p, -t) for p, t in zip(path, np.asarray(theta))]
        np.testing.assert_allclose(_along(element, FINE).position, seen, atol=1e-9)


def test_one_element_a_segment():
    profile = designed("roller")[1]
    assert profile.kinds == (
        "arc",
        "camcurve",
        "camcurve",
        "arc",
        "camcurve",
    )  # counter-clockwise: the last comes first
    found = [_along(e, FINE) for e in profile.elements]
    for a, b in zip(found, found[1:] + found[:1]):
        np.testing.assert_allclose(a.position[-1], b.position[0], atol=1e-12)
        np.testing.assert_allclose(np.cos(a.angle[-1] - b.angle[0]), 1.0, rtol=1e-14)


# The cam law cases: rise of 20 in 90 degrees. Prime radius for 30 degrees, where, least convex radius of the pitch
# curve then; least base radius for a flat face, and half of its width
SIZING = {
    "cycloidal": (35.0188906, 40.8933, 27.882196, 32.85262557, 25.464790895),
    "poly345": (32.40129793, 39.9627, 27.12661, 28.22770051, 23.873241464),
    "harmonic": (26.05551275, 36.949, 24.648162, 20.0, 20.0),
}


class Blend(eqx.Module):
    """A law whose shape is a number: one compilation serves all three."""

    weights: jax.Array

    def __call__(self, x):
        return sum(w * LAWS[name](x) for w, name in zip(self.weights, SIZING))


@pytest.mark.long
@pytest.mark.parametrize("law", SIZING)
def test_sizing(law):
    prime, degrees, convex, base, width = SIZING[law]
    blend = Blend(jnp.eye(3)[list(SIZING).index(law)])
    lift = mbs.Program([mbs.Rise(blend, pi / 2, 20.0), mbs.Dwell(pi / 2), mbs.Fall("cycloidal", pi, 20.0)])
    roller, face = mbs.Translating(mbs.Roller(5.0)), mbs.Translating(mbs.FlatFace(width * (1 + 1e-9)))
    least = mbs.least_base_radius(lift, roller)
    np.testing.assert_allclose(least.value + 5.0, prime, rtol=5e-10)
    np.testing.assert_allclose(np.rad2deg(least.at), degrees, atol=1.1e-4)
    found = mbs.Cam(lift, roller, least.value).extremes()
    np.testing.assert_allclose(found.pressure_angle.value, pi / 6, rtol=1e-12)
    np.testing.assert_allclose(1 / found.pitch_curvature.value, convex, rtol=2e-8)
    least = mbs.least_base_radius(lift, face)
    np.testing.assert_allclose(least.value, base, rtol=5e-10)
    cam = mbs.Cam(lift, face, least.value * (1 + 1e-9))
    np.testing.assert_allclose(cam.extremes().excursion.value, width, rtol=5e-11)
    assert cam.warnings() == ()


def test_least_base_radius_with_an_offset():
    lift = program(20.0)
    follower = mbs.Translating(mbs.Roller(5.0), offset=4.0)
    least = mbs.least_base_radius(lift, follower, pressure_angle=0.4)
    found = mbs.Cam(lift, follower, least.value).extremes().pressure_angle
    np.testing.assert_allclose(found.value, 0.4, rtol=1e-12)
    np.testing.assert_allclose(found.at, least.at, atol=1e-6)


def test_pressure_angle_of_an_offset_follower():
    """tan = (s' - e) / (y0 + s), and where it is largest."""
    cam, _, _, table, _ = designed("roller")
    e, y0 = 6.0, np.sqrt(49.0**2 - 6.0**2)
    formula = np.arctan((np.asarray(table.velocity) - e) / (y0 + np.asarray(table.lift)))
    np.testing.assert_allclose(table.pressure_angle, formula, atol=1e-13)
    b, h = 1.8, 20.0

    def growth(t):
        s = h * (t / b - np.sin(2 * pi * t / b) / (2 * pi))
        v, a = h / b * (1 - np.cos(2 * pi * t / b)), 2 * pi * h / b**2 * np.sin(2 * pi * t / b)
        return a * (y0 + s) - (v - e) * v

    peak = brentq(growth, 0.5, 0.9)
    down = cam.extremes().pressure_angle  # while it falls, the offset makes it worse
    np.testing.assert_allclose(down.value, np.abs(cam(THETA * 0 + down.at).pressure_angle[0]), rtol=1e-12)
    assert down.value >= np.abs(formula).max() and down.at > 2.4
    np.testing.assert_allclose(np.argmax(formula), np.argmin(np.abs(np.asarray(THETA) - peak)), atol=1)


class Eccentric(eqx.Module):
    """Half a turn of the follower of an eccentric disc, as a law (the model of tol_cam_eccentric_roller)."""

    radii: jax.Array  # of disc and roller together, of the center's circle, and the follower's offset
    start: jax.Array

    def lift(self, theta):
        reach, e, offset = self.radii
        return e * jnp.cos(theta) + jnp.sqrt(reach**2 - (e * jnp.sin(theta) + offset) ** 2)

    def __call__(self, x):
        first, last = self.lift(self.start), self.lift(self.start + pi)
        return (self.lift(self.start + pi * x) - first) / (last - first)


@jax.jit
def eccentric_cam(R, E, r, o):
    rise, fall = (Eccentric(jnp.stack([R + r, E, o]), jnp.asarray(k * pi)) for k in (1, 2))
    low, high = rise.lift(pi), rise.lift(2 * pi)
    lift = mbs.Program([mbs.Rise(rise, pi, high - low), mbs.Fall(fall, pi, high - low)])
    cam = mbs.Cam(lift, mbs.Translating(mbs.Roller(r), offset=o), jnp.sqrt(low**2 + o**2) - r)
    return [jax.vmap(e)(FINE) for e in cam.profile().elements]


def test_an_eccentric_disc_comes_back_from_its_lift():
    R, E = 30.0, 10.0
    for place in eccentric_cam(R, E, 8.0, 5.0):
        # the program begins with the disc's center below
        np.testing.assert_allclose(np.linalg.norm(place.position - np.array([0.0, -E]), axis=1), R, rtol=1e-12)
        np.testing.assert_allclose(place.curvature, 1 / R, rtol=1e-9)


def test_warnings_tell_where_and_by_how_much():
    lift = program(20.0)
    face = mbs.Cam(lift, mbs.Translating(mbs.FlatFace(5.0)), 10.0)
    found = {w.kind: w for w in face.warnings()}
    assert list(found) == ["convexity", "face"]
    table = face(THETA)
    s, v, a = (np.asarray(x) for x in (table.lift, table.velocity, table.acceleration))
    np.testing.assert_allclose(table.radius, 10.0 + s + a, atol=1e-12)
    np.testing.assert_allclose(table.excursion, v, atol=1e-12)
    b = 1.8
    peak = 20.0 / b * 2
    assert found["face"].amount == pytest.approx(peak - 5.0) and found["face"].theta == pytest.approx(b / 2, abs=1e-6)
    assert -table.radius.min() <= found["convexity"].amount <= -table.radius.min() + 0.5
    with pytest.raises(ValueError, match="no such cam.*not be convex"):
        face.profile()

    large = mbs.Cam(lift, mbs.Translating(mbs.Roller(28.0)), 2.0)
    found = {w.kind: w for w in large.warnings(pressure_angle=0.3)}
    assert list(found) == ["undercut", "pressure angle"]
    # the pitch curve in polar form
    y, v, a = 30.0 + s, v, a
    pitch = (y**2 + v**2) ** 1.5 / (y**2 + 2 * v**2 - y * a)
    np.testing.assert_allclose(large(THETA).pitch_radius, pitch, rtol=1e-10)
    least = pitch[pitch > 0].min()
    assert 28.0 - least <= found["undercut"].amount <= 28.0 - least + 0.1
    assert "deg" in str(found["undercut"])
    with pytest.raises(ValueError, match="no such cam.*undercut"):
        large.profile()

    ramp = mbs.Program([mbs.Rise(lambda x: x, pi, 10.0), mbs.Fall("cycloidal", pi, 10.0)])
    jump, *_ = mbs.Cam(ramp, mbs.Translating(mbs.Roller(5.0)), 40.0).warnings()
    assert jump.kind == "velocity" and abs(jump.amount) == pytest.approx(10 / pi)


def test_speed_scales_the_derivatives():
    cam, _, _, slow, _ = designed("roller")
    fast = cam(THETA, speed=30.0)
    for k, name in enumerate(("lift", "velocity", "acceleration", "jerk")):
        np.testing.assert_allclose(getattr(fast, name), 30.0**k * np.asarray(getattr(slow, name)), rtol=1e-12)
    np.testing.assert_allclose(fast.pressure_angle, slow.pressure_angle)


def test_gradients_with_respect_to_the_dimensions():
    def value(x):
        follower = mbs.Oscillating(mbs.Roller(x[0]), pivot=x[1], arm=75.0)
        cam = mbs.Cam(program(x[2], 1.8 * x[3]), follower, x[4])
        rise = cam.profile().elements[-1]
        place = rise(0.3)
        return jnp.dot(place.position, jnp.array([1.0, 2.0])) + place.curvature

    both = jax.jit(lambda x: (value(x), jax.grad(value)(x)))
    x, h = jnp.array([9.0, 90.0, 0.3, 1.0, 40.0]), 1e-5
    central = [(both(x + h * e)[0] - both(x - h * e)[0]) / (2 * h) for e in jnp.eye(5)]
    assert np.abs(central).min() > 1e-3
    np.testing.assert_allclose(both(x)[1], central, rtol=2e-6)


CULPRITS = {
    "offset too large": (
        lambda: mbs.Cam(program(20.0), mbs.Translating(mbs.Knife(), offset=41.0), 40.0),
        "offset 41",
    ),
    "arm too short": (
        lambda: mbs.Cam(program(0.1), mbs.Oscillating(mbs.Roller(5.0), pivot=90.0, arm=30.0), 40.0),
        "pivot at 90 and an arm of 30",
    ),
    "pivot in the center": (lambda: mbs.Oscillating(mbs.Knife(), pivot=0.0, arm=30.0), "pivot"),
    "base radius": (lambda: mbs.Cam(program(20.0), mbs.Translating(mbs.Knife()), -1.0), "base radius of a cam"),
    "roller": (lambda: mbs.Roller(0.0), "radius of a roller"),
    "least base radius of a swinging follower": (
        lambda: mbs.least_base_radius(program(0.1), mbs.Oscillating(mbs.Knife(), pivot=90.0, arm=80.0)),
        "only for translating",
    ),
}


@pytest.mark.parametrize("case", CULPRITS)
def test_bad_cams_are_named(case):
    make, message = CULPRITS[case]
    with pytest.raises(ValueError, match=message):
        make()
