"""Made profiles have the shapes that their closed forms say, and bend smoothly with their dimensions."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs


pi = np.pi
S = jnp.linspace(0.0, 1.0, 65)


@eqx.filter_jit
def along(element, s):
    place = jax.vmap(element)(s)
    return place.position, place.angle, place.curvature


def places(profile, s=S):
    """Positions and directions along all elements, as NumPy arrays."""
    found = [along(e, s) for e in profile.elements]
    return tuple(np.concatenate([np.asarray(f[k]) for f in found]) for k in range(3))


def normals(angle):
    return np.stack([np.sin(angle), -np.cos(angle)], -1)


def turned(p, angle):
    c, s = np.cos(angle), np.sin(angle)
    return p @ np.array([[c, s], [-s, c]])


def area(p):
    x, y = p.T
    return np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2


def bends(profile):
    """The angle by which the direction of travel turns at each junction."""
    ends = [np.asarray(along(e, S)[1])[[0, -1]] for e in profile.elements]
    turn = np.array([b[0] - a[1] for a, b in zip(ends, ends[1:] + ends[:1])])
    return (turn + pi) % (2 * pi) - pi


def test_round_profiles():
    for profile, center, outward in [
        (mbs.disc(3.0, (1.0, 2.0)), (1.0, 2.0), 1),
        (mbs.bore(3.0, (1.0, 2.0)), (1.0, 2.0), -1),
        (mbs.eccentric(3.0, 2.0, pi / 6), (np.sqrt(3.0), 1.0), 1),
    ]:
        p, angle, _ = places(profile)
        np.testing.assert_allclose(p - center, 3 * outward * normals(angle), atol=1e-14)


@pytest.mark.parametrize("mouth", [False, True])
def test_slot_is_the_path_of_a_pin(mouth):
    a, b, w = np.array([1.0, -2.0]), np.array([4.0, 2.0]), 1.5
    p, angle, _ = places(mbs.slot(a, b, w, mouth=mouth))
    part = np.clip((p - a) @ (b - a) / 25, 0, 1)[:, None]
    to_axis = a + part * (b - a) - p
    np.testing.assert_allclose(to_axis, w / 2 * normals(angle), atol=1e-14)  # out of the material: to the axis
    length = np.linalg.norm(np.diff(p, axis=0), axis=1).sum()
    np.testing.assert_allclose(length, 10 + (1 if mouth else 2) * pi * w / 2, rtol=1e-3)


CORNERS = np.array([(0.0, 0.0), (6.0, 0.0), (6.0, 5.0), (4.0, 5.0), (3.0, 2.0), (0.0, 4.0)])
RADII = np.array([0.5, 0.0, 0.25, 0.5, 0.75, 0.0])


def test_polygon_is_rounded():
    profile = mbs.polygon(CORNERS, RADII)
    d = np.roll(CORNERS, -1, 0) - CORNERS
    out = np.arctan2(d[:, 1], d[:, 0])
    turn = (out - np.roll(out, 1) + pi) % (2 * pi) - pi
    lost = np.sign(turn) * RADII**2 * (np.tan(np.abs(turn) / 2) - np.abs(turn) / 2)
    assert turn[4] < 0 < np.delete(turn, 4).min()
    np.testing.assert_allclose(area(places(profile)[0]), area(CORNERS) - lost.sum(), rtol=1e-5)
    sharp = np.sort(np.abs(bends(profile)))
    np.testing.assert_allclose(sharp[:-2], 0.0, atol=1e-9)
    np.testing.assert_allclose(sharp[-2:], np.sort(np.abs(turn[RADII == 0])), rtol=1e-12)
    assert profile.kinds.count("arc") == 4 and profile.kinds.count("point") == 2


def test_polygon_with_corners_only():
    profile = mbs.polygon(CORNERS)
    assert profile.kinds == ("line", "point") * 6
    np.testing.assert_allclose([e.start for e in profile.elements], CORNERS)
    hole = mbs.polygon(CORNERS[::-1], 0.25, hole=True)
    assert area(places(hole)[0]) < 0


GENEVA = {3: 3.0, 4: 5.0, 6: 4.0, 12: 2.0}


@pytest.mark.parametrize("n", GENEVA)
def test_geneva_drive_moves_freely(n):
    """Pin and slot, locking disc and wheel keep their clearance through a step and at rest."""
    c, r, gap = 100.0, GENEVA[n], 0.25
    drive = mbs.geneva(n, c, r, clearance=gap)
    a, half = c * np.sin(pi / n), pi / 2 - pi / n
    wheel, lock = places(drive.wheel)[0], drive.lock.elements
    assert area(wheel) > 0
    rim, cut, middle = float(lock[0].radius), float(lock[1].radius), np.asarray(lock[1].center)
    nearest = []
    for alpha in np.linspace(-half, half, 61):
        beta = np.arctan2(a * np.sin(alpha), c - a * np.cos(alpha))
        seen = turned(turned(wheel, pi - beta) + [c, 0.0], -alpha)  # from the crank
        nearest.append(np.linalg.norm(seen - [a, 0.0], axis=1).min() - r)
        inside = (np.linalg.norm(seen, axis=1) < rim) & (np.linalg.norm(seen - middle, axis=1) > cut)
        assert not inside.any()
    np.testing.assert_allclose(nearest, gap, atol=2e-2)
    assert min(nearest) > gap - 1e-9
    rest = turned(wheel, pi + pi / n) + [c, 0.0]
    distance = np.linalg.norm(rest, axis=1)
    np.testing.assert_allclose(distance.min(), rim + gap, rtol=1e-12)
    assert np.sum(np.abs(distance - rim - gap) < 1e-9) >= len(S)  # the whole locking arc
    np.testing.assert_allclose(places(drive.pin)[0].mean(0)[0], a + r / 65, rtol=1e-12)  # its first point comes twice
    # the disc locks exactly while the pin is outside
    ends = np.asarray(along(lock[0], S)[0])[[0, -1]]
    np.testing.assert_allclose(np.arctan2(ends[:, 1], ends[:, 0]), (half, -half), rtol=1e-12)


def test_wheels_repeat_their_sectors():
    for profile, n in [
        (mbs.geneva(5, 100.0, 4.0).wheel, 5),
        (mbs.ratchet_wheel(9, 10.0, 8.0, undercut=0.1), 9),
        (mbs.involute_gear(2.0, 10, shift=0.5), 10),
    ]:
        size = len(profile.kinds) // n
        assert profile.kinds == profile.kinds[:size] * n
        p = places(profile)[0].reshape(n, -1, 2)
        for k in range(n):
            np.testing.assert_allclose(p[k], turned(p[0], 2 * pi * k / n), atol=1e-12)


@pytest.mark.parametrize("lean", [0.0, 0.2, -0.1])
def test_ratchet_wheel(lean):
    n, outer, root = 10, 20.0, 17.0
    wheel = mbs.ratchet_wheel(n, outer, root, undercut=lean)
    p, angle, _ = places(wheel)
    flank, back = p[:65], p[65:130]
    np.testing.assert_allclose(np.hypot(*flank.T)[[0, -1]], (root, outer), rtol=1e-14)
    np.testing.assert_allclose(flank[-1], (outer, 0.0), atol=1e-14)
    np.testing.assert_allclose(angle[2], -lean, atol=1e-12)  # its direction against the radius, at the tip
    assert normals(angle)[1, 1] < -0.9  # the steep flank looks clockwise
    np.testing.assert_allclose(back[-1], turned(flank[0], 2 * pi / n), atol=1e-12)
    assert area(p) > 0


def test_pawl_is_the_hull_of_its_rounds():
    length, nose, hub = 40.0, 2.0, 5.0
    profile = mbs.pawl(length, nose, hub)
    p, angle, _ = places(profile)
    n = normals(angle)
    support = np.maximum(length * n[:, 0] + nose, hub)
    np.testing.assert_allclose(np.sum(p * n, 1), support, rtol=1e-13)
    np.testing.assert_allclose(bends(profile), 0.0, atol=1e-12)


GEARS = {"standard": (2.0, 20, 0.0, 0.0), "shifted": (3.0, 12, 0.4, 0.1), "large": (1.0, 46, -0.3, 0.0)}


@functools.cache
def gear(case):
    m, z, x, backlash = GEARS[case]
    return mbs.involute_gear(m, z, shift=x, backlash=backlash)


def facing(flank, direction):
    """The point of a flank where its direction of travel is this."""
    angle = np.asarray(along(flank, S)[1])[[0, -1]]
    off = (direction - angle[0] + pi) % (2 * pi) - pi
    part = off / ((angle[1] - angle[0] + pi) % (2 * pi) - pi)
    assert 0 < part < 1
    position, angle, _ = along(flank, jnp.full_like(S, part))
    np.testing.assert_allclose(np.cos(angle[0] - direction), 1.0, rtol=1e-14)
    return np.asarray(position[0])


@pytest.mark.parametrize("case", GEARS)
def test_gear_has_the_span_of_its_formula(case):
    """Two opposite flanks, k - 1 teeth apart, have parallel tangents at the distance of Wildhaber's formula."""
    m, z, x, backlash = GEARS[case]
    alpha = pi / 9
    k = round(z * alpha / pi + 0.5)
    middle = pi * (k - 1) / z  # of the span, to which the tangents are parallel
    up, down = facing(gear(case).elements[1], middle), facing(gear(case).elements[6 * (k - 1) + 3], middle + pi)
    span = (down - up) @ [-np.sin(middle), np.cos(middle)]
    formula = m * np.cos(alpha) * ((k - 0.5) * pi + z * (np.tan(alpha) - alpha)) + 2 * x * m * np.sin(alpha)
    np.testing.assert_allclose(span, formula - backlash * np.cos(alpha), rtol=1e-12)


@pytest.mark.parametrize("case", GEARS)
def test_gear_boundary(case):
    m, z, x, backlash = GEARS[case]
    p, _, _ = places(gear(case))
    r = np.hypot(*p.T)
    np.testing.assert_allclose((r.min(), r.max()), (m * (z / 2 - 1.25 + x), m * (z / 2 + 1 + x)), rtol=1e-13)
    bend = bends(gear(case)).reshape(z, 6)
    np.testing.assert_allclose(bend[:, [0, 3]], 0.0, atol=1e-9)
    assert (bend[:, [1, 2]] > 0).all() and (bend[:, [4, 5]] < 0).all()  # tips stick out, roots are hollow
    flank = mbs.involute_flank(m, z, shift=x, backlash=backlash, clockwise=False).elements[0]
    np.testing.assert_allclose(along(flank, S)[0], along(gear(case).elements[3], S)[0], rtol=1e-14)


def test_gears_mesh_without_gap():
    """Without backlash a tooth touches the flanks on both of its sides, however the gears are turned, and the contacts
    are on the common tangents of the base circles."""
    m, z1, z2, alpha = 2.0, 18, 22, pi / 9
    one, two = mbs.involute_gear(m, z1, shift=0.1), mbs.involute_gear(m, z2, shift=-0.1)
    center = np.array([m * (z1 + z2) / 2, 0.0])
    for theta in (-0.04, 0.0, 0.03):
        # tooth 0 of the first gear is between teeth 0, below, and -1, above, of the second
        for k, tooth, normal in ((1, 0, alpha - pi / 2), (3, -1, pi / 2 - alpha)):
            other = pi + (pi + 2 * pi * tooth) / z2 - theta * z1 / z2
            mine = turned(facing(one.elements[k], normal + pi / 2 - theta), theta)
            theirs = turned(facing(two.elements[k], normal - pi / 2 - other), other) + center
            np.testing.assert_allclose(mine, theirs, atol=1e-12)
            to_pitch_point = mine - [m * z1 / 2, 0.0]
            assert abs(to_pitch_point @ [-np.sin(normal), np.cos(normal)]) < 1e-12


def ellipse(n):
    t = 2 * pi * np.arange(n) / n
    return np.stack([5 * np.cos(t), 3 * np.sin(t)], 1)


def test_table_of_points(tmp_path):
    path = tmp_path / "rim.csv"
    rows = "\n".join(f"{x!r}, {y!r}" for x, y in ellipse(48).tolist())
    path.write_text(f"x, y\n# measured\n\n{rows}\n")
    profile = mbs.from_table(path)
    p, _, _ = places(profile)
    np.testing.assert_allclose((p[:, 0] / 5) ** 2 + (p[:, 1] / 3) ** 2, 1.0, atol=2e-6)
    repeated = mbs.from_table(np.concatenate([ellipse(48), ellipse(48)[:1]]))
    np.testing.assert_allclose(places(repeated)[0], p, atol=1e-12)
    piece = mbs.from_table(ellipse(48)[:13], closed=False)
    np.testing.assert_allclose(places(piece)[0][[0, -1]], ((5.0, 0.0), (0.0, 3.0)), atol=1e-12)


@pytest.mark.parametrize(
    "text, message",
    [
        ("x,y\n0,0\n1,one\n", "line 3.*'1,one'"),
        ("0,0\n1,2,3\n", "line 2.*'1,2,3'"),
        ("0,0\n1,nan\n", "line 2"),
        ("# nothing\n", "no points"),
    ],
)
def test_bad_tables_are_named(tmp_path, text, message):
    path = tmp_path / "rim.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"rim.csv.*{message}"):
        mbs.from_table(str(path))


DIMENSIONS = {
    "eccentric": (lambda x: mbs.eccentric(x[0], x[1]), (3.0, 0.7)),
    "slot": (lambda x: mbs.slot((0.0, x[0]), (3.0, 1.0), x[1]), (0.3, 0.8)),
    "polygon": (lambda x: mbs.polygon(x[0] * CORNERS[3:], x[1], hollow=[]), (1.1, 0.3)),
    "sharp polygon": (lambda x: mbs.polygon(x[0] * CORNERS[:3] + x[1]), (1.1, 0.3)),
    "geneva wheel": (lambda x: mbs.geneva(3, x[0], x[1], clearance=x[1] / 20).wheel, (100.0, 3.0)),
    "geneva lock": (lambda x: mbs.geneva(3, x[0], x[1]).lock, (100.0, 3.0)),
    "ratchet": (lambda x: mbs.ratchet_wheel(3, x[0], 8.0, undercut=x[1]), (10.0, 0.1)),
    "pawl": (lambda x: mbs.pawl(10.0, x[0], x[1]), (1.0, 2.0)),
    "gear": (lambda x: mbs.involute_gear(x[0], 8, shift=x[1], backlash=0.02), (2.0, 0.6)),
    "table": (lambda x: mbs.from_table(ellipse(8) * x), (1.0, 1.2)),
}


@pytest.mark.parametrize("case", DIMENSIONS)
def test_gradients_with_respect_to_dimensions(case):
    make, x = DIMENSIONS[case]

    def value(x):
        found = [e(0.3).position for e in make(x).elements[:5]]
        return sum(jnp.dot(p, jnp.array([1.0 + k, 0.5 - k])) for k, p in enumerate(found)) / len(found)

    both = jax.jit(lambda x: (value(x), jax.grad(value)(x)))
    x, h = jnp.array(x), 1e-5
    central = [(both(x + h * e)[0] - both(x - h * e)[0]) / (2 * h) for e in jnp.eye(2)]
    assert np.abs(central).min() > 1e-3
    np.testing.assert_allclose(both(x)[1], central, rtol=1e-6, atol=1e-7)


SQUARE = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
CULPRITS = {
    "negative disc": (lambda: mbs.disc(-1.0), "radius of a circle must be positive"),
    "slot without length": (lambda: mbs.slot((0.0, 0.0), (0.0, 0.0), 1.0), "no length"),
    "slot without width": (lambda: mbs.slot((0.0, 0.0), (1.0, 0.0), 0.0), "width of a slot"),
    "two vertices": (lambda: mbs.polygon(SQUARE[:2]), "three vertices"),
    "clockwise polygon": (lambda: mbs.polygon(SQUARE[::-1]), "clockwise"),
    "rounded too much": (lambda: mbs.polygon(SQUARE, 0.5), "between vertices 0 and 1.*take 1 of an edge 1 long"),
    "rounded straight": (lambda: mbs.polygon([(0.0, 0.0), (0.5, 0.0), *SQUARE[1:]], 0.1), "vertex 1.*no corner"),
    "negative corner": (lambda: mbs.polygon(SQUARE, [0.1, 0.1, -0.1, 0.1]), "at vertex 2.*-0.1"),
    "radii that do not fit": (lambda: mbs.polygon(SQUARE, [0.1, 0.1]), "4 vertices"),
    "crossed polygon": (lambda: mbs.polygon([SQUARE[k] for k in (0, 1, 3, 2)]), "crosses itself"),
    "vertices traced": (lambda: jax.jit(lambda v: mbs.polygon(v, 0.1)(0.0))(jnp.array(SQUARE)), "say `hollow`"),
    "two slots": (lambda: mbs.geneva(2, 100.0, 5.0), "number of slots of a Geneva wheel must be at least 3, got 2"),
    "thick pin": (lambda: mbs.geneva(3, 100.0, 11.0), "run into one another"),
    "large lock": (lambda: mbs.geneva(4, 100.0, 5.0, lock_radius=66.0), "cut into its slots by 0.289"),
    "small lock": (lambda: mbs.geneva(4, 100.0, 5.0, lock_radius=29.0), "does not reach"),
    "negative clearance": (lambda: mbs.geneva(4, 100.0, 5.0, clearance=-0.1), "clearance.*-0.1"),
    "two teeth": (lambda: mbs.ratchet_wheel(2, 10.0, 8.0), "teeth of a ratchet wheel must be at least 3"),
    "root above tip": (lambda: mbs.ratchet_wheel(12, 10.0, 11.0), "root radius.*11.*10"),
    "flank beside the wheel": (lambda: mbs.ratchet_wheel(12, 10.0, 8.0, undercut=1.2), "leans back by 1.2"),
    "short pawl": (lambda: mbs.pawl(2.0, 1.0, 4.0), "swallows"),
    "undercut gear": (lambda: mbs.involute_gear(1.0, 12), "12 teeth.*undercut.*0.298"),
    "pointed teeth": (lambda: mbs.involute_gear(1.0, 12, shift=1.5), "pointed"),
    "involute from its base circle": (lambda: mbs.Involute(1.0, 0.0, 0.0, 1.0), "base circle"),
    "table of three columns": (lambda: mbs.from_table(np.zeros((5, 3))), "two columns.*5, 3"),
}


@pytest.mark.parametrize("case", CULPRITS)
def test_bad_dimensions_are_named(case):
    make, message = CULPRITS[case]
    with pytest.raises(ValueError, match=message):
        make()
