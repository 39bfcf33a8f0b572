"""Pictures hold the numbers of what they show."""

import copy
import json
import pathlib
import re
from math import pi

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest
from matplotlib.patches import Circle, PathPatch, Rectangle
from matplotlib.quiver import Quiver

import mbsjax as mbs
from mbsjax import plots
from mbsjax._pictures.scene import tangents
from mbsjax._pictures.style import KINDS
from mbsjax._pictures.viewer.view import _page
from mbsjax.demo import FOUR_BAR, SPRUNG, cam_follower, four_bar, lost_contact
from tests.contacts import Swing, ratchet, t3_cam
from tests.mechanisms import spatial_slider_crank, turn, two_body_slider_crank
from tests.simulated import skid


matplotlib.use("Agg")
import matplotlib.pyplot as plt


VIEWER = pathlib.Path(mbs.__file__).parent / "_pictures" / "viewer" / "page"


@pytest.fixture(autouse=True)
def nothing_stays():
    """No picture changes the settings; the figures are the caller's to close."""
    before = dict(matplotlib.rcParams)
    yield
    assert dict(matplotlib.rcParams) == before
    plt.close("all")


@pytest.fixture(scope="module")
def linkage():
    return mbs.kinematics(four_bar(FOUR_BAR), {"A": mbs.constant_speed(1.0)}, jnp.linspace(0.0, 2 * jnp.pi, 61))


@pytest.fixture(scope="module")
def sol():
    return lost_contact(SPRUNG)


@pytest.fixture(scope="module")
def skidding():
    return skid()


@pytest.fixture(scope="module")
def spatial():
    return mbs.kinematics(spatial_slider_crank(), {"A": turn(start=pi / 2)}, np.linspace(0.0, 1.0, 21))


@pytest.fixture(scope="module")
def cam():
    lift = mbs.Program([mbs.Rise("cycloidal", pi / 2, 20.0), mbs.Dwell(pi / 2), mbs.Fall("mod_sine", pi, 20.0)])
    return mbs.Cam(lift, mbs.Translating(mbs.Roller(10.0)), 20.0)


def drawn(axes, label: str):
    """The line with this label."""
    (found,) = [line for line in axes.lines if line.get_label() == label]
    return found


def has_line(axes, points) -> bool:
    """Whether a line runs through these points and no others."""
    lines = [line.get_xydata() for line in axes.lines]
    return any(x.shape == np.shape(points) and np.allclose(x, points, atol=1e-12) for x in lines)


def pins(axes) -> np.ndarray:
    return np.array([patch.center for patch in axes.patches if isinstance(patch, Circle)])


# -- mechanisms --------------------------------------------------------------------------------------------


def test_links_run_from_joint_to_joint(linkage):
    i = 17
    axes = plots.mechanism(linkage, i, labels=True)
    A, B, C, D, E = (
        np.asarray(linkage.point(*where).q[i])
        for where in (("crank",), ("coupler",), ("coupler", (3.0, 0.0)), ("rocker",), ("coupler", "E"))
    )
    assert has_line(axes, [A, B, A]) and has_line(axes, [D, C, D])  # there and back
    assert any(np.allclose(np.sort(line.get_xydata()[:3], 0), np.sort([B, C, E], 0)) for line in axes.lines
               if len(line.get_xydata()) == 4)  # fmt: skip
    for place in (A, B, C, D):
        assert np.min(np.linalg.norm(pins(axes) - place, axis=1)) < 1e-9
    assert {t.get_text() for t in axes.texts} == {"A", "B", "C", "D", "E", "crank", "coupler", "rocker"}
    assert axes.get_title() == f"t = {float(linkage.ts[i]):.4g}" and axes.get_aspect() == 1.0


def test_positions_look_alike_wherever_they_come_from(linkage):
    moving = plots.mechanism(linkage, 0)
    for same in (mbs.assemble(linkage.mech, linkage.q[0]), linkage.at(0)):
        resting = plots.mechanism(same)
        assert len(resting.lines) == len(moving.lines)
        links = [line.get_xydata() for line in moving.lines if line.get_linewidth() == 2.2]
        assert len(links) == 2 and all(has_line(resting, link) for link in links)
    last = plots.mechanism(linkage, -1)
    assert last.get_title() == f"t = {2 * pi:.4g}"


@pytest.mark.long
def test_profiles_are_where_their_bodies_are(sol):
    i = 100
    axes = plots.mechanism(sol, i)
    angle = -0.5 * float(sol.ts[i])
    R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    rim = sol.mech.body("cam").profiles["rim"].points(2) @ R.T
    assert has_line(axes, np.concatenate([rim, rim[:1]]))
    roller = next(x for x in (line.get_xydata() for line in axes.lines) if len(x) > 8 and len(x) != len(rim) + 1)
    np.testing.assert_allclose(np.hypot(roller[:, 0] - float(sol["guide"].q[i]), roller[:, 1]), SPRUNG["r"], atol=1e-9)


@pytest.mark.long
def test_arrows_are_along_the_normals_and_as_long_as_the_forces_are_strong(sol):
    contact, arrows = sol["C23"], {}
    outputs = [0, 150, int(jnp.argmax(contact.force))]
    for i in outputs:
        (arrow,) = [c for c in plots.mechanism(sol, i).collections if isinstance(c, Quiver)]
        np.testing.assert_allclose(arrow.get_offsets()[0], contact.point[i], atol=1e-12)
        way = np.array([arrow.U[0], arrow.V[0]])
        arrows[i] = np.linalg.norm(way)
        np.testing.assert_allclose(way / arrows[i], contact.normal[i], atol=1e-12)  # it presses on the follower
        assert arrow.scale == 1 and arrow.angles == "xy" and arrow.scale_units == "xy"
    lengths, forces = np.array([arrows[i] for i in outputs]), np.asarray(contact.force)[outputs]
    np.testing.assert_allclose(lengths / lengths[-1], forces / forces[-1], rtol=1e-12)
    off = int(np.argmin(np.asarray(contact.active)))
    for axes in (plots.mechanism(sol, off), plots.mechanism(sol, 0, forces=False)):
        assert not any(isinstance(c, Quiver) for c in axes.collections)


@pytest.mark.long
def test_friction_of_a_disc_that_skids_and_rolls(skidding):
    """Until it rolls, friction is 0.2 times the weight and pushes it back; then there is none."""
    (event,) = skidding.events.list(skidding.mech)
    assert event.kind == "sticks" and event.t == pytest.approx(0.5, abs=1e-9)
    press, rubs = [c for c in plots.mechanism(skidding, 4).collections if isinstance(c, Quiver)]
    np.testing.assert_allclose((rubs.U[0], rubs.V[0]), (-0.2 * press.V[0], 0.0), atol=1e-12)
    np.testing.assert_allclose(rubs.get_facecolor()[0], matplotlib.colors.to_rgba(KINDS["slips"][0]))
    *_, rubs = [c for c in plots.mechanism(skidding, -1).collections if isinstance(c, Quiver)]
    np.testing.assert_allclose((rubs.U[0], rubs.V[0]), 0.0, atol=1e-9)
    np.testing.assert_allclose(rubs.get_facecolor()[0], matplotlib.colors.to_rgba(KINDS["sticks"][0]))
    t = np.asarray(skidding.ts)
    inside = np.abs(t - 0.5) > 1e-6
    for name, wanted in (("C.friction", 2.0 * (t < 0.5)), ("C.sliding", np.minimum(6 * t - 3.0, 0.0))):
        y = plots.curves(skidding, name).lines[0].get_ydata()
        np.testing.assert_allclose(y[inside], wanted[inside], atol=1e-8)  # the floor is drawn to the left
    _, force, _ = plots.switching(skidding, "C")
    assert np.array_equal(drawn(force, "friction").get_ydata(), skidding["C"].friction)
    axes = plots.contacts(skidding)
    assert [m.get_xdata()[0] for m in axes.lines if m.get_label() == "sticks"] == [event.t]


def test_every_kind_of_event_has_a_look_of_its_own():
    assert tuple(KINDS) == mbs.EVENTS and len({color for color, *_ in KINDS.values()}) == len(KINDS)


def test_tangents_of_profiles_in_space():
    """In a plane that stands upright, and in the plane itself: at right angles to the normal, as the profile is
    drawn."""
    contact = t3_cam().contacts[0]
    flat = mbs.Mechanism(t3_cam().bodies, t3_cam().joints)
    normal, turned = np.array([[0.6, 0.8, 0.0]]), np.eye(3)[None]
    np.testing.assert_allclose(tangents(flat, contact, turned, normal[:, :2]), [(-0.8, 0.6)])
    np.testing.assert_allclose(tangents(flat, contact, turned, normal), [(-0.8, 0.6, 0.0)])
    upright = np.asarray(mbs.frames.rotation((1.0, 0.0, 0.0), pi / 2))[None, :3, :3]
    way = tangents(flat, contact, upright, np.array([[0.6, 0.0, 0.8]]))
    np.testing.assert_allclose(way, [(-0.8, 0.0, 0.6)], atol=1e-12)


def test_closed_contacts_of_a_position_are_marked():
    """The cam of the thesis touches its roller on the x axis, 35 from its center."""
    axes = plots.mechanism(t3_cam())
    (dot,) = [line.get_xydata()[0] for line in axes.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(dot, (35.0, 0.0), atol=1e-8)


def test_rods_springs_wheels_and_rails():
    mech = two_body_slider_crank()
    q = {"A": pi / 2, "P": np.sqrt(3.5**2 - 2.0**2)}
    axes = plots.mechanism(mbs.assemble(mech, q, fixed={"A": pi / 2}))
    assert has_line(axes, [(0.0, 2.0), (q["P"], 0.0)])  # the rod
    assert has_line(axes, [(0.0, 0.0), (0.0, 2.0), (0.0, 0.0)])  # the crank goes as far as the rod
    gears = mbs.Mechanism(
        [mbs.Body("sun"), mbs.Body("planet")],
        [
            mbs.Revolute("S", "ground", "sun"),
            mbs.Revolute("P", "ground", "planet", (3.0, 0.0)),
            mbs.Gear("mesh", "sun", "planet", radii=(2.0, 1.0), start=(0.0, 3.0)),
        ],
    )
    axes = plots.mechanism(gears)
    rims = [line.get_xydata() for line in axes.lines if line.get_linestyle() == "-."]
    for rim, center, radius in zip(rims, ((0.0, 0.0), (3.0, 0.0)), (2.0, 1.0), strict=True):
        np.testing.assert_allclose(np.linalg.norm(rim - center, axis=1), radius, atol=1e-9)


def test_holes_are_left_out():
    ring = {"rim": mbs.disc(2.0), "hole": mbs.bore(1.0)}
    mech = mbs.Mechanism([mbs.Body("ring", profiles=ring)], [mbs.Revolute("O", "ground", "ring")])
    axes = plots.mechanism(mech)
    (patch,) = [p for p in axes.patches if isinstance(p, PathPatch)]
    axes.figure.set_size_inches(3, 3)
    axes.figure.canvas.draw()
    image = np.array(axes.figure.canvas.buffer_rgba())
    patch.set_visible(False)
    axes.figure.canvas.draw()
    filled = np.any(image != np.asarray(axes.figure.canvas.buffer_rgba()), axis=2)

    def at(x, y):
        column, row = axes.transData.transform((x, y)).round().astype(int)
        return bool(filled[len(filled) - 1 - row, column])

    assert at(1.5, 0.13) and at(-1.1, -1.0) and not at(0.5, 0.13) and not at(-0.3, 0.5) and not at(1.9, 1.9)


def test_ghosts_are_the_positions_of_their_dates(linkage):
    axes = plots.ghosts(linkage, 5, strong=0)
    cranks = [line for line in axes.lines if line.get_color() == plots_color(linkage.mech, "crank")]
    rows = [0, 15, 30, 45, 60]
    for crank, i in zip(cranks, rows, strict=True):
        np.testing.assert_allclose(crank.get_xydata()[1], linkage.point("coupler").q[i], atol=1e-12)
    assert cranks[0].get_alpha() == 1.0 and all(0 < c.get_alpha() < 0.4 for c in cranks[1:])
    assert np.min(np.linalg.norm(pins(axes) - np.asarray(linkage.point("coupler").q[0]), axis=1)) < 1e-9


def plots_color(mech: mbs.Mechanism, body: str) -> str:
    """The color of a link: in its label it is the same."""
    axes = plots.mechanism(mech, labels=True)
    return next(t.get_color() for t in axes.texts if t.get_text() == body)


# -- motions -----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_path_is_that_of_its_point(linkage, spatial):
    E = np.asarray(linkage.point("coupler", "E").q)
    axes = plots.path(linkage, "coupler", "E", targets=E[[5, 40]])
    assert np.array_equal(drawn(axes, "path of coupler.E").get_xydata(), E)
    assert np.array_equal(drawn(axes, "start").get_xydata(), E[:1])
    assert np.array_equal(drawn(axes, "targets").get_xydata(), E[[5, 40]])
    numbers, (head,) = [t for t in axes.texts if t.get_text()], [t for t in axes.texts if not t.get_text()]
    assert [t.get_text().strip() for t in numbers] == ["1", "2"]
    assert np.dot(np.subtract(head.xy, head.xyann), linkage.point("coupler", "E").v[6]) > 0  # the way it goes
    axes = plots.path(spatial, "rod", (0.1, 0.0, 0.0))
    np.testing.assert_array_equal(
        np.transpose(drawn(axes, "path of rod").get_data_3d()), spatial.point("rod", (0.1, 0.0, 0.0)).q
    )


def test_curves_are_those_of_the_motion(linkage, sol):
    three = plots.curves(linkage, ["B", "D"], rates=(0, 1, 2))
    names = ("angle [rad]", "angular velocity", "angular acceleration")
    for axes, x, name in zip(three, ("q", "v", "a"), names, strict=True):
        for joint in "BD":
            line = drawn(axes, joint)
            assert np.array_equal(line.get_xdata(), linkage.ts)
            assert np.array_equal(line.get_ydata(), getattr(linkage[joint], x))
        assert axes.get_ylabel() == name
    axes = plots.curves(linkage, "D", rates=(1,), against="A")
    assert np.array_equal(axes.lines[0].get_xydata(), np.stack([linkage["A"].q, linkage["D"].v], 1))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("A [rad]", "angular velocity of D")
    contact = sol["C23"]
    axes = plots.curves(sol, ["C23", "C23.force", "C23.static", "C23.q1"])
    assert np.array_equal(drawn(axes, "C23").get_ydata(), contact.gap)
    assert np.array_equal(drawn(axes, "C23.force").get_ydata(), contact.force)
    assert np.array_equal(drawn(axes, "C23.q1").get_ydata(), contact.q[:, 0])
    static = drawn(axes, "C23.static").get_ydata()
    assert np.array_equal(np.isnan(static), ~np.asarray(contact.active))
    assert np.array_equal(plots.curves(sol, "C23.gap", rates=(1,)).lines[0].get_ydata(), contact.v)


@pytest.mark.long
def test_curves_of_a_joint_with_several_coordinates(spatial):
    axes = plots.curves(spatial, ["P", "C"])
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    wanted = ["P", "C.angle_1 [rad]", "C.angle_2 [rad]", "C.travel_2"]
    assert list(lines) == wanted and axes.get_ylabel() == "position"
    for k, name in enumerate(wanted[1:]):
        assert np.array_equal(lines[name], spatial["C"].q[:, k])


def test_events_are_dated_and_told_apart(sol):
    events = sol.events.list(sol.mech)
    axes = plots.curves(sol, "guide")
    for kind in {e.kind for e in events}:
        lines = [line for line in axes.lines if line.get_label() == kind]
        assert [line.get_xdata()[0] for line in lines] == [e.t for e in events if e.kind == kind]
        assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 1
    styles = {line.get_label(): (line.get_color(), line.get_linestyle()) for line in axes.lines[1:]}
    assert len(set(styles.values())) == len(styles) == len({e.kind for e in events})
    assert sorted(t.get_text() for t in axes.get_legend().get_texts()) == sorted({"guide", *styles})
    assert len(plots.curves(sol, "guide", events=False).lines) == 1
    # against the cam angle, which is -t/2, the marks are where the follower was
    marks = plots.curves(sol, "guide", against="O").lines[1:]
    guide = sol.mech.stored("guide")[0]
    for mark, event, q in zip(marks, events, np.asarray(sol.events.q)[: len(events)], strict=True):
        x, y = mark.get_xydata()[0]
        assert mark.get_label() == event.kind and x == pytest.approx(-event.t / 2, abs=1e-12)
        assert y == pytest.approx(q[guide], abs=1e-12)


def bars(axes) -> list[tuple[int, float, float]]:
    patches = [p for p in axes.patches if isinstance(p, Rectangle)]
    return [(round(p.get_y() + p.get_height() / 2), p.get_x(), p.get_x() + p.get_width()) for p in patches]


def fits(axes, motion) -> None:
    """Bars cover just the outputs at which contacts are active; they begin and end at events, or with the motion."""
    found, ts = bars(axes), np.asarray(motion.ts)
    event_times = np.array([ts[0], ts[-1], *(e.t for e in motion.events.list(motion.mech))])
    for row, contact in enumerate(motion.mech.contacts):
        mine = [(a, b) for k, a, b in found if k == row]
        for end in np.ravel(mine):
            assert np.min(np.abs(event_times - end)) < 1e-12
        clear = np.min(np.abs(ts[:, None] - event_times[None, 2:]), axis=1) > 1e-9
        covered = np.array([any(a <= t <= b for a, b in mine) for t in ts])
        assert np.array_equal(covered[clear], np.asarray(motion[contact.name].active)[clear])
    assert [t.get_text() for t in axes.get_yticklabels()] == [c.name for c in motion.mech.contacts]


def test_bars_of_the_contact_chart_are_between_events(sol):
    axes = plots.contacts(sol)
    fits(axes, sol)
    # each is labeled with the elements that touch there
    texts, q = [t for t in axes.texts if t.get_text()], np.asarray(sol["C23"].q)
    assert len(texts) > 3
    for text in texts:
        i = int(np.argmin(np.abs(np.asarray(sol.ts) - text.get_position()[0])))
        assert text.get_text() == f"{int(q[i, 0])},{int(q[i, 1])}"
    colors = {c.get_label(): c.patches[0].get_facecolor() for c in axes.containers}
    assert set(colors) == {"arc on circle", "point on circle", "line on circle"} and len(set(colors.values())) == 3
    marks = [line for line in axes.lines if line.get_label() in mbs.EVENTS]
    assert [(m.get_label(), m.get_xdata()[0]) for m in marks] == [(e.kind, e.t) for e in sol.events.list(sol.mech)]


@pytest.mark.long
def test_contact_chart_of_pawls_that_drop():
    motion = mbs.kinematics(ratchet(), {"A": Swing(jnp.asarray(0.34))}, jnp.linspace(0.0, 6 * jnp.pi, 601))
    fits(plots.contacts(motion), motion)


def test_switching_functions_with_their_zeros(sol):
    gap, force, places = plots.switching(sol, "C23")
    contact, events = sol["C23"], sol.events.list(sol.mech)
    on = np.asarray(contact.active)
    assert np.array_equal(drawn(gap, "gap").get_ydata(), contact.gap)
    static, dynamic = (drawn(force, f"{part} part").get_ydata() for part in ("static", "dynamic"))
    whole = drawn(force, "contact force").get_ydata()
    assert np.array_equal(whole, contact.force)
    np.testing.assert_allclose((static + dynamic)[on], whole[on], atol=1e-12)
    assert np.isnan(static[~on]).all() and np.isnan(dynamic[~on]).all()
    zeros = [line.get_xydata()[0] for line in gap.lines if line.get_marker() in ("o", "v", "^")]
    event_times = [e.t for e in events if e.kind in ("impact", "closed", "released")]
    assert sorted(x for x, _ in zeros) == sorted(event_times) and all(y == 0 for _, y in zeros)
    zeros = [line.get_xdata()[0] for line in force.lines if line.get_marker() == "^"]
    assert zeros == [e.t for e in events if e.kind == "released"]
    q1 = drawn(places, "$q_1$").get_ydata()
    shown = np.isfinite(q1)
    assert np.array_equal(q1[shown], contact.q[shown, 0]) and np.mean(shown) > 0.98
    for axes in (gap, force, places):
        lines = [line.get_xdata()[0] for line in axes.lines if line.get_label().strip("_") in mbs.EVENTS]
        assert lines == [e.t for e in events]


@pytest.mark.long
def test_switching_functions_of_a_driven_motion_have_no_force():
    motion = mbs.kinematics(t3_cam(), {"O": mbs.constant_speed(-0.5)}, jnp.linspace(0.0, 3.0, 31))
    gap, places = plots.switching(motion, "C23")
    assert np.array_equal(drawn(gap, "gap").get_ydata(), motion["C23"].gap)
    assert np.array_equal(drawn(places, "$q_2$").get_ydata(), motion["C23"].q[:, 1])


def test_bands_of_many_motions():
    """Arms that turn at speeds w are at w t: the bands are those of w, times t."""
    arm = mbs.Mechanism([mbs.Body("arm")], [mbs.Revolute("O", "ground", "arm")])
    ts = jnp.linspace(0.0, 2.0, 11)
    run = lambda w: mbs.kinematics(arm, {"O": mbs.constant_speed(w)}, ts, throw=False)
    speeds = 1 + 0.1 * np.random.default_rng(0).normal(size=200)
    motions, nominal = jax.vmap(run)(jnp.asarray(speeds)), run(jnp.asarray(1.0))
    axes = plots.bands(motions, "O", nominal=nominal, quantiles=(0.1,))
    spreads = [(speeds.min(), speeds.max()), np.quantile(speeds, (0.1, 0.9))]
    for band, (low, high) in zip(axes.collections, spreads, strict=True):
        edge = band.get_paths()[0].vertices
        for t in (0.8, 2.0):
            here = edge[np.abs(edge[:, 0] - t) < 1e-12, 1]
            np.testing.assert_allclose([here.min(), here.max()], [low * t, high * t], rtol=1e-12)
    np.testing.assert_allclose(drawn(axes, "nominal").get_ydata(), ts, atol=1e-12)
    few = [jax.tree_util.tree_map(lambda x, i=i: x[i], motions) for i in range(3)]
    axes = plots.bands(few, "O", rate=1)
    np.testing.assert_allclose(drawn(axes, "median").get_ydata(), np.median(speeds[:3]), rtol=1e-12)


# -- cams --------------------------------------------------------------------------------------------------


def test_svaj_diagrams_are_those_of_the_program(cam):
    for of, speed in ((cam, 3.0), (cam.program, 1.0)):
        for axes, name in zip(plots.svaj(of, speed=speed), ("lift", "velocity", "acceleration", "jerk"), strict=True):
            theta, y = np.deg2rad(axes.lines[0].get_xdata()), axes.lines[0].get_ydata()
            assert theta[0] == 0 and theta[-1] == pytest.approx(2 * pi)
            wanted = getattr(cam.svaj(theta, speed), name)
            inside = np.min(np.abs(theta[:, None] - np.array([pi / 2, pi, 2 * pi])), axis=1) > 1e-9
            np.testing.assert_allclose(y[inside], wanted[inside], atol=1e-9 * np.abs(wanted).max())
            ends = [line.get_xdata()[0] for line in axes.lines[2:]]
            np.testing.assert_allclose(ends, (90.0, 180.0))
    # at the very end of the rise its jerk is 4 pi^2 h / beta^3, though the dwell has none
    jerk = plots.svaj(cam)[3].lines[0]
    at_end = jerk.get_ydata()[120]
    assert at_end == pytest.approx(4 * pi**2 * 20 / (pi / 2) ** 3, rel=1e-9) and jerk.get_ydata()[121] == 0


def test_the_pressure_angle_and_its_peak(cam):
    axes = plots.pressure_angle(cam, limit=pi / 5)
    theta, y = axes.lines[0].get_xydata().T
    # of a radial follower, its tangent is v / (s + r)
    s, v, _, _ = cam.svaj(np.deg2rad(theta))
    np.testing.assert_allclose(np.tan(np.deg2rad(y)), v / (s + 30.0), atol=1e-12)
    peak = next(line.get_xydata()[0] for line in axes.lines if line.get_marker() == "o")
    assert abs(peak[1]) >= np.abs(y).max() and peak[1] == pytest.approx(np.abs(y).max(), rel=1e-3)
    limits = {line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == "--"}
    assert sorted(limits) == pytest.approx([-36.0, 36.0])


def test_a_cam_with_its_pitch_curve(cam):
    at = 0.7
    axes = plots.cam(cam, at)
    rim, pitch = (drawn(axes, name).get_xydata() for name in ("profile", "pitch curve"))
    np.testing.assert_allclose(np.linalg.norm(pitch - rim, axis=1), 10.0, rtol=1e-12)  # the roller's radius
    angle = np.arctan2(pitch[:, 1], pitch[:, 0])
    theta = pi / 2 - angle + at  # where the follower, above the cam, meets it
    np.testing.assert_allclose(np.linalg.norm(pitch, axis=1), 30.0 + cam.program(theta), atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(drawn(axes, "base circle").get_xydata(), axis=1), 20.0)
    touch = drawn(axes, "contact").get_xydata()[0]
    center = np.array([0.0, 30.0 + float(cam.program(at))])
    assert np.linalg.norm(touch - center) == pytest.approx(10.0)
    assert np.min(np.linalg.norm(rim - touch, axis=1)) < 0.5
    # harmonic motion of a flat face: an eccentric disc
    law = mbs.Program([mbs.Rise("harmonic", pi, 2.0), mbs.Fall("harmonic", pi, 2.0)])
    flat = plots.cam(mbs.Cam(law, mbs.Translating(mbs.FlatFace(1.5)), 3.0))
    rim = drawn(flat, "profile").get_xydata()
    np.testing.assert_allclose(np.linalg.norm(rim - (0.0, -1.0), axis=1), 4.0, rtol=1e-12)
    assert "pitch curve" not in [line.get_label() for line in flat.lines]


# -- units, colors, sizes ----------------------------------------------------------------------------------


def with_units(motion, **words):
    """The same motion, of a mechanism with units."""
    mech = copy.copy(motion.mech)
    object.__setattr__(mech, "units", mbs.Units(**words))
    return eqx.tree_at(lambda m: m.mech, motion, mech)


def labels(axes) -> tuple[str, str]:
    return axes.get_xlabel(), axes.get_ylabel()


def test_axes_tell_quantity_and_unit(linkage):
    motion = with_units(linkage, length="mm", angle="deg")
    three = plots.curves(motion, "D", rates=(0, 1, 2))
    wanted = ["D [deg]", "angular velocity of D [deg/s]", "angular acceleration of D [deg/s²]"]
    assert [axes.get_ylabel() for axes in three] == wanted and three[2].get_xlabel() == "time [s]"
    for axes, x in zip(three, linkage["D"], strict=True):
        np.testing.assert_allclose(axes.lines[0].get_ydata(), np.rad2deg(x), rtol=1e-14)
    axes = plots.curves(motion, ["B", "D"], rates=(1,), against="A")
    assert labels(axes) == ("A [deg]", "angular velocity [deg/s]")
    np.testing.assert_allclose(drawn(axes, "B").get_xdata(), np.rad2deg(linkage["A"].q), rtol=1e-14)
    axes = plots.bands([motion, motion], "D", rate=1, nominal=motion)
    assert labels(axes) == ("time [s]", "angular velocity of D [deg/s]")
    np.testing.assert_allclose(drawn(axes, "nominal").get_ydata(), np.rad2deg(linkage["D"].v), rtol=1e-14)
    axes = plots.mechanism(motion, 6)
    assert labels(axes) == ("x [mm]", "y [mm]") and axes.get_title() == f"t = {float(linkage.ts[6]):.4g} s"
    assert labels(plots.ghosts(motion, 3)) == labels(plots.path(motion, "coupler", "E")) == ("x [mm]", "y [mm]")


def test_units_of_a_simulation(sol):
    run = with_units(sol, length="mm", mass="kg", time="ms", angle="deg")
    axes = plots.curves(run, ["guide", "O"], rates=(0,))
    assert labels(axes) == ("time [ms]", "position")
    np.testing.assert_allclose(drawn(axes, "O [deg]").get_ydata(), np.rad2deg(sol["O"].q), rtol=1e-14)
    assert np.array_equal(drawn(axes, "guide [mm]").get_ydata(), sol["guide"].q)
    axes = plots.curves(run, ["C23", "C23.force"])
    assert axes.get_ylabel() == "value" and [x.get_label() for x in axes.lines[:2]] == ["C23 [mm]", "C23.force [kN]"]
    for name, label in (
        ("C23.friction", "C23.friction [kN]"),
        ("C23.q1", "C23.q1"),
        ("C23.sliding", "C23.sliding [mm/ms]"),
    ):
        assert plots.curves(run, name).get_ylabel() == label
    assert plots.curves(run, "C23.gap", rates=(1,)).get_ylabel() == "velocity of C23.gap [mm/ms]"
    wanted = ["gap $q_3$ [mm]", "force $F_n$ [kN]", "places $q_1$, $q_2$"]
    three = plots.switching(run, "C23")
    assert [axes.get_ylabel() for axes in three] == wanted and three[2].get_xlabel() == "time [ms]"
    assert plots.contacts(run).get_xlabel() == "time [ms]"
    # marks of events are where the curve is: the cam turns by -1/2
    axes = plots.curves(run, "guide", against="O")
    events = sol.events.list(sol.mech)
    marks = [mark.get_xdata()[0] for mark in axes.lines[1:]]
    np.testing.assert_allclose(marks, [-np.rad2deg(e.t / 2) for e in events], rtol=1e-12)


def test_units_in_space_and_of_several_kinds(spatial):
    motion = with_units(spatial, length="m")
    axes = plots.mechanism(motion, 3)
    assert (*labels(axes), axes.get_zlabel()) == ("x [m]", "y [m]", "z [m]")
    axes = plots.curves(motion, ["P", "A"], rates=(1,))
    assert axes.get_ylabel() == "velocity" and [x.get_label() for x in axes.lines] == ["P [m/s]", "A [rad/s]"]


def test_units_of_cams(cam):
    wanted = ["lift $s$ [mm]", "velocity $v$ [mm/rad]", "acceleration $a$ [mm/rad²]", "jerk $j$ [mm/rad³]"]
    assert [axes.get_ylabel() for axes in plots.svaj(cam, units={"length": "mm"})] == wanted
    at_speed = plots.svaj(cam, speed=3.0, units={"length": "mm"})
    assert [axes.get_ylabel() for axes in at_speed][1:] == [
        "velocity $v$ [mm/s]",
        "acceleration $a$ [mm/s²]",
        "jerk $j$ [mm/s³]",
    ]
    rocker = mbs.Cam(
        mbs.Program([mbs.Rise("harmonic", pi, 0.2), mbs.Fall("harmonic", pi, 0.2)]),
        mbs.Oscillating(mbs.Roller(10.0), pivot=80.0, arm=70.0),
        30.0,
    )
    swings = plots.svaj(rocker, units={"angle": "deg"})[0]
    assert swings.get_ylabel() == "lift $s$ [deg]"
    assert swings.lines[0].get_ydata().max() == pytest.approx(np.rad2deg(0.2), rel=1e-12)
    assert labels(plots.cam(cam, units={"length": "mm"})) == ("x [mm]", "y [mm]")
    with pytest.raises(ValueError, match="`units` are those of"):
        plots.svaj(cam, units={"charge": "C"})


def test_colors_are_those_of_the_viewer(linkage, sol):
    page = _page("colors", {})
    colors = json.loads(re.search("const COLORS = (.*);", page)[1])
    told = {text.get_text(): text.get_color() for text in plots.mechanism(linkage, labels=True).texts}
    assert [told[body] for body in linkage.mech.links[1:]] == colors["bodies"][:3]
    (arrow,) = [c for c in plots.mechanism(sol, 0).collections if isinstance(c, Quiver)]
    assert matplotlib.colors.to_hex(arrow.get_facecolor()[0]) == colors["force"].lower()
    axes = plots.curves(sol, "guide")
    for event in sol.events.list(sol.mech):
        assert drawn_first(axes, event.kind).get_color() == colors["events"][event.kind]
    assert set(colors["events"]) == {*mbs.EVENTS, "bifurcation"}
    assert not re.search("#[0-9a-fA-F]{6}", (VIEWER / "colors.js").read_text(encoding="utf-8").replace("#ffffff", ""))


def drawn_first(axes, label: str):
    return next(line for line in axes.lines if line.get_label() == label)


def test_figures_are_as_large_as_what_they_show(linkage, sol, cam):
    beam = mbs.Mechanism([mbs.Body("beam", points={"E": (20.0, 0.5)})], [mbs.Revolute("O", "ground", "beam")])
    over = plots.path(linkage, "coupler", "E", axes=plots.ghosts(linkage, 4))
    for axes in (plots.mechanism(beam), plots.mechanism(sol, 9), plots.ghosts(linkage, 4), over, plots.cam(cam)):
        figure = axes.figure
        figure.draw_without_rendering()
        empty = figure.get_size_inches() - figure.get_tightbbox().size
        assert np.all(empty >= 0) and np.all(empty < 0.15)
        assert max(axes.get_window_extent().size) / figure.dpi == pytest.approx(4.2, abs=0.1)
    plain = plt.figure(figsize=(7.0, 2.0))  # not ours
    plots.mechanism(beam, axes=plain.add_subplot())
    assert plain.get_size_inches().tolist() == [7.0, 2.0]


def test_saved_pictures(linkage, tmp_path):
    axes = plots.curves(linkage, "D", rates=(0, 1))
    size = axes[0].figure.get_size_inches().tolist()
    first, again = (plots.save(axes, tmp_path / name, width="column").read_text("utf-8") for name in ("a.svg", "b.svg"))
    assert first == again and 'width="252pt"' in first and ">angular velocity of D</text>" in first
    pdf = plots.save(axes, tmp_path / "a.pdf", width=5.0, font="STIXGeneral").read_bytes()
    assert b"/MediaBox [ 0 0 360 " in pdf and b"STIXGeneral" in pdf and b"/CIDFontType2" in pdf
    assert b"/Type3" not in pdf and b"DejaVu" not in pdf
    assert axes[0].figure.get_size_inches().tolist() == size
    wide = plt.imread(plots.save(axes[0].figure, tmp_path / "a.png", width="page", dpi=50))
    assert wide.shape[1] == int(7.16 * 50)
    # without a width, margins are cut off: all sides have ink close by
    one = plots.mechanism(linkage)
    inked = np.any(plt.imread(plots.save(one, tmp_path / "m.png", dpi=100))[..., :3] < 0.9, 2)
    rows, columns = np.flatnonzero(inked.any(1)), np.flatnonzero(inked.any(0))
    for inked_at, n in ((rows, inked.shape[0]), (columns, inked.shape[1])):
        assert inked_at[0] <= 4 and n - 1 - inked_at[-1] <= 4
    # wider than its axes allow: the height follows
    tall = plots.save(one, tmp_path / "m.svg", width=2.0).read_text("utf-8")
    width, height = (float(re.search(f'{side}="([0-9.]+)pt"', tall)[1]) for side in ("width", "height"))
    w, h = one.figure.get_size_inches()
    assert width == 144.0 and height / 72 == pytest.approx(2.0 * h / w, abs=0.15)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"width": "colum"}, "inches, or one of column, page, got 'colum'"),
        ({"width": 0.0}, "got 0.0"),
        ({"font": "STIXGenral"}, "unknown font 'STIXGenral'; did you mean 'STIXGeneral'"),
    ],
)
def test_what_cannot_be_saved(wrong, message, tmp_path):
    axes = plt.figure().add_subplot()
    with pytest.raises(ValueError, match=message):
        plots.save(axes, tmp_path / "a.svg", **wrong)
    with pytest.raises(ValueError, match="axes or a figure can be saved, got str"):
        plots.save("axes", tmp_path / "a.svg")
    assert not list(tmp_path.iterdir())


# -- axes and bad input ------------------------------------------------------------------------------------


def test_given_axes_are_used_and_returned(linkage, sol, cam):
    other = plt.figure()
    _, grid = plt.subplots(4, 2)
    plt.figure(other.number)
    one, several = grid[0, 0], grid[:, 1]
    before = plt.get_fignums()
    assert plots.mechanism(linkage, axes=one) is one
    assert plots.path(linkage, "coupler", "E", axes=one) is one
    assert plots.ghosts(linkage, 3, axes=grid[1, 0]) is grid[1, 0]
    assert plots.contacts(sol, axes=grid[2, 0]) is grid[2, 0]
    assert plots.curves(linkage, "D", axes=grid[3, 0]) is grid[3, 0]
    assert all(a is b for a, b in zip(plots.svaj(cam, axes=several), several, strict=True))
    assert all(a is b for a, b in zip(plots.switching(sol, "C23", axes=several[:3]), several[:3], strict=True))
    assert plots.pressure_angle(cam, axes=several[3]) is several[3]
    assert plt.get_fignums() == before and plt.gcf() is other
    with pytest.raises(ValueError, match="needs 4 axes, got 2"):
        plots.svaj(cam, axes=several[:2])


def test_in_space(spatial):
    axes = plots.mechanism(spatial, 3, labels=True)
    assert axes.name == "3d" and axes.get_zlabel() == "z"
    rod = np.asarray(spatial.point("rod", (-0.15, 0.0, 0.0)).q[3])
    lines = [np.transpose(line.get_data_3d()) for line in axes.lines]
    assert any(np.allclose(x, rod, atol=1e-9) for line in lines for x in line)
    ghosts = plots.ghosts(spatial, 4)
    assert len(ghosts.lines) > len(axes.lines)
    assert plots.path(spatial, "slider", axes=ghosts) is ghosts
    _, flat = plt.subplots()
    with pytest.raises(ValueError, match="3D axes"):
        plots.mechanism(spatial, axes=flat)
    axes.figure.canvas.draw()


def test_a_contact_in_a_tilted_plane():
    """The cam of the thesis in a plane that stands upright: the same contact, 35 along x."""
    flat, upright = cam_follower(SPRUNG), mbs.frames.rotation((1.0, 0.0, 0.0), pi / 2)
    along = mbs.frames.rotation((0.0, 1.0, 0.0), pi / 2)
    mech = mbs.Mechanism(
        [mbs.Body(b.name, profiles=b.profiles) for b in flat.bodies],
        [
            mbs.Revolute("O", "ground", "cam", upright, jnp.eye(4)),
            mbs.Prismatic("guide", "ground", "follower", mbs.frames.compose(upright, along), along, start=45.0),
            mbs.Contact("C23", "cam.rim", "follower.roller", active=True),
        ],
    )
    axes = plots.mechanism(mech)
    dots = [
        np.ravel(line.get_data_3d()) for line in axes.lines if line.get_marker() == "o" and line.get_markersize() == 3
    ]
    np.testing.assert_allclose(dots, [(35.0, 0.0, 0.0)], atol=1e-8)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda m, s: plots.mechanism(m, 61), "no output number 61"),
        (lambda m, s: plots.mechanism("four-bar"), "can be shown, got 'four-bar'"),
        (lambda m, s: plots.ghosts(m.mech), "got Mechanism"),
        (lambda m, s: plots.ghosts(m, 3, strong=3), "one of the images"),
        (lambda m, s: plots.path(m, "copler"), "'copler'; did you mean 'coupler'"),
        (lambda m, s: plots.path(m, "coupler", "F"), "'F'"),
        (lambda m, s: plots.path(m, "coupler", targets=[(1.0, 2.0, 3.0)]), "rows of 2 numbers"),
        (lambda m, s: plots.curves(m, ["D", "Q"]), "coordinate, gauge or contact 'Q'"),
        (lambda m, s: plots.curves(m, "D", against="Q"), "'Q'"),
        (lambda m, s: plots.curves(m, "D", rates=(3,)), "rates out of 0, 1 and 2"),
        (lambda m, s: plots.curves(s, "C23.fore"), "'fore'; did you mean 'force'"),
        (lambda m, s: plots.curves(s, "C23.force", rates=(1,)), "the rate of 'C23.force'"),
        (lambda m, s: plots.contacts(m), "no contacts"),
        (lambda m, s: plots.switching(s, "C24"), "'C24'; did you mean 'C23'"),
        (lambda m, s: plots.bands(m, "D"), "must be many"),
        (lambda m, s: plots.bands([m], "D", quantiles=(0.7,)), "between 0 and 0.5"),
        (lambda m, s: plots.svaj(m), "Cam or a Program"),
        (lambda m, s: plots.cam(m), "shows a Cam"),
    ],
)
def test_bad_input_is_named(call, message, linkage, sol):
    with pytest.raises(ValueError, match=message):
        call(linkage, sol)
    assert not plt.get_fignums()
