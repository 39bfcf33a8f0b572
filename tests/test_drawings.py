"""Profiles from DXF drawings, against drawings whose outlines are known."""

import ezdxf
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.interpolate import BSpline

import mbsjax as mbs
from mbsjax._cli.main import main
from tests.green import area


@pytest.fixture
def drawing(tmp_path):
    """A drawing to fill, and where to save it."""
    document = ezdxf.new("R2010")
    return document.modelspace(), lambda: document.saveas(tmp_path / "part.dxf") or tmp_path / "part.dxf"


SQUARE = [(0.0, 0.0), (4.0, 0.0), (4.0, 3.0), (0.0, 3.0)]


def test_profiles_come_back(tmp_path):
    for k, profile in enumerate([mbs.polygon(SQUARE, (1.0, 0.0, 0.5, 0.2)), mbs.disc(2.0, (1.0, 2.0))]):
        profile.to_dxf(tmp_path / f"{k}.dxf")
        again = mbs.read_dxf(tmp_path / f"{k}.dxf")
        assert again.kinds == profile.kinds
        for q in np.linspace(0, len(profile.kinds), 17)[:-1]:
            np.testing.assert_allclose(again(q).position, profile(q).position, atol=1e-9)
            np.testing.assert_allclose(again(q).normal, profile(q).normal, atol=1e-9)
    slot = mbs.slot((0.0, 0.0), (10.0, 0.0), 4.0)
    slot.to_dxf(tmp_path / "slot.dxf")
    again = mbs.read_dxf(tmp_path / "slot.dxf", hole=True)
    assert sorted(again.kinds) == sorted(slot.kinds) and area(slot) < 0
    assert area(again) == pytest.approx(area(slot), rel=1e-9)


def test_entities_in_any_order_and_direction(drawing):
    """A stadium: two lines and two arcs, drawn as they come."""
    space, save = drawing
    space.add_line((0, 1), (5, 1))
    space.add_arc((5, 0), 1, -90, 90)
    space.add_line((5, -1), (0, -1))
    space.add_arc((0, 0), 1, 90, 270)
    space.add_text("not a part of it")
    stadium = mbs.read_dxf(save())
    assert sorted(stadium.kinds) == ["arc", "arc", "line", "line"]  # smooth: there are no corners
    assert area(stadium) == pytest.approx(10 + np.pi, rel=1e-12)
    out = mbs.contact_coordinates(stadium, mbs.disc(1.0), mbs.at(8.0, 0.0))
    assert out[2] == pytest.approx(1.0, abs=1e-12)  # the gap between the arc and a disc


def test_polylines_with_bulges(drawing):
    space, save = drawing
    space.add_lwpolyline([(0, 0, 0), (4, 0, 1), (4, 2, 0), (0, 2, 0)], format="xyb", close=True)
    profile = mbs.read_dxf(save())
    assert profile.kinds.count("arc") == 1 and profile.kinds.count("line") == 3
    assert area(profile) == pytest.approx(8 + np.pi / 2, rel=1e-12)  # a half circle on one side


def test_ellipses_and_splines(drawing):
    space, save = drawing
    space.add_ellipse((1, 2), (3, 0), 0.5)
    profile = mbs.read_dxf(save())
    x, y = (profile.points(4) - [1.0, 2.0]).T
    np.testing.assert_allclose((x / 3) ** 2 + (y / 1.5) ** 2, 1.0, atol=3e-7)
    assert area(profile) == pytest.approx(np.pi * 4.5, rel=1e-7)


def test_layers_and_open_outlines(drawing):
    space, save = drawing
    space.add_line((0, 0), (3, 0), dxfattribs={"layer": "floor"})
    space.add_line((3, 0), (3, 2), dxfattribs={"layer": "floor"})
    space.add_circle((9, 9), 1, dxfattribs={"layer": "hole"})
    path = save()
    floor = mbs.read_dxf(path, layer="floor")
    assert not floor.closed and floor.kinds == ("line", "point", "line", "point", "point")
    assert mbs.read_dxf(path, layer="hole", hole=True)(0.0).normal[0] == pytest.approx(-1.0)
    with pytest.raises(ValueError, match="its curves make 2 boundaries: 0: open.*; 1: closed, area 3.14159, x 8 to 10"):
        mbs.read_dxf(path)
    with pytest.raises(ValueError, match="nothing on the layer 'wall'; there are 'floor', 'hole'"):
        mbs.read_dxf(path, layer="wall")


def test_drawings_that_make_no_boundary(drawing, tmp_path):
    space, save = drawing
    space.add_line((0, 0), (3, 0))
    space.add_line((5, 0), (5, 2))
    with pytest.raises(ValueError, match=r"nearest ends are \(3, 0\) and \(5, 0\), 2 apart"):
        mbs.read_dxf(save())
    (tmp_path / "no.dxf").write_text("no drawing")
    with pytest.raises(ValueError, match="not a DXF drawing"):
        mbs.read_dxf(tmp_path / "no.dxf")
    with pytest.raises(FileNotFoundError):
        mbs.read_dxf(tmp_path / "nothing.dxf")
    long = np.column_stack([np.arange(5001.0), np.arange(5001.0) ** 2])
    with pytest.raises(ValueError, match="more than 5000"):
        mbs.from_table(long, closed=False)


def test_chains_walk_the_grid(drawing):
    """Clockwise, with holes, drawn twice, with arcs beyond half a turn and gaps: on a layer each."""
    space, save = drawing
    on = lambda name: {"layer": name}
    for a, b in zip(SQUARE, SQUARE[1:] + SQUARE[:1]):  # clockwise, and twice, once in each direction
        space.add_line(b, a, dxfattribs=on("plate"))
        space.add_line(a, b, dxfattribs=on("plate"))
    space.add_arc((1, 1), 0.5, 30, 390, dxfattribs=on("plate"))  # a full turn
    space.add_arc((0, 0), 2, 45, 315, dxfattribs=on("cut disc"))
    space.add_line((2**0.5, -(2**0.5)), (2**0.5, 2**0.5), dxfattribs=on("cut disc"))
    space.add_arc((0, 0), 2, 45, 45 + 1e-12, dxfattribs=on("cut disc"))  # no extent
    space.add_lwpolyline([(0, 0), (4, 0), (4, 3), (0, 3), (0, 1e-3)], dxfattribs=on("gap"))
    space.add_lwpolyline([(0, 0), (1, 0), (1, 1), (0, 0), (2, -1)], dxfattribs=on("fork"))
    mirrored = {**on("mirrored"), "extrusion": (0, 0, -1)}  # as CAD writes what was mirrored: x runs to the left
    space.add_arc((1, 0), 1, 90, 270, dxfattribs=mirrored)
    space.add_line((-1, -1), (-1, 1), dxfattribs=on("mirrored"))
    path = save()
    with pytest.raises(ValueError, match="2 boundaries: 0: closed, area 12, .*; 1: closed, area 0.785398"):
        mbs.read_dxf(path, layer="plate")
    assert area(mbs.read_dxf(path, layer="plate", index=0)) == 12.0
    assert area(mbs.read_dxf(path, layer="plate", index=1, hole=True)) == pytest.approx(-np.pi / 4, rel=1e-14)
    with pytest.raises(ValueError, match="no boundary number 2"):
        mbs.read_dxf(path, layer="plate", index=2)
    assert area(mbs.read_dxf(path, layer="cut disc")) == pytest.approx(3 * np.pi + 2, rel=1e-14)
    with pytest.raises(ValueError, match=r"ends at \(0, 0.001\) and begins at \(0, 0\), 0.001 apart"):
        mbs.read_dxf(path, layer="gap")
    assert area(mbs.read_dxf(path, layer="gap", tolerance=1e-3)) == pytest.approx(12.0, rel=1e-3)
    assert not mbs.read_dxf(path, layer="gap", closed=False).closed
    with pytest.raises(ValueError, match=r"more than two curves meet at \(0, 0\)"):
        mbs.read_dxf(path, layer="fork")
    half = mbs.read_dxf(path, layer="mirrored")
    assert area(half) == pytest.approx(np.pi / 2, rel=1e-14) and half.points().max() == pytest.approx(1.0)
    assert half.points()[:, 0].max() == pytest.approx(0.0, abs=1e-14)


def test_splines_are_exact(drawing):
    """Of the first to the third degree, with any knots; rational ones are arcs where they are such."""
    space, save = drawing
    knots, control = [0, 0, 0, 0, 1, 3, 3.5, 3.5, 3.5, 3.5], [(0, 0), (1, 2), (3, 3), (5, 1), (6, -2), (8, 0)]
    put = lambda degree, control, knots, layer, weights=(): space.add_spline(
        dxfattribs={"layer": layer, "degree": degree}
    ).apply_construction_tool(ezdxf.math.BSpline(control, degree + 1, knots, weights or None))
    put(3, control, knots, "cubic")
    put(1, control[:3], [0, 0, 1, 2, 2], "lines")
    w, quarter = 0.5**0.5, [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0)]
    put(2, quarter, [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4], "circle", [1, w, 1, w, 1, w, 1, w, 1])
    put(2, [(0, 0), (1, 2), (2, 0)], [0, 0, 0, 1, 1, 1], "conic", [1, 3, 1])
    path = save()
    cubic = mbs.read_dxf(path, layer="cubic")
    exact = BSpline(np.array(knots, float), np.array(control, float), 3)
    assert cubic.kinds == ("spline", "spline", "spline", "point", "point")  # unequal spans, no corners
    for k, (a, b) in enumerate([(0, 1), (1, 3), (3, 3.5)]):
        for s in (0.0, 0.3, 1.0):
            np.testing.assert_allclose(cubic.elements[k](s).position, exact(a + (b - a) * s), atol=1e-13)
    assert mbs.read_dxf(path, layer="lines").kinds == ("line", "point", "line", "point", "point")
    circle = mbs.read_dxf(path, layer="circle")
    assert circle.kinds == ("arc",) * 4 and area(circle) == pytest.approx(np.pi, rel=1e-12)
    (conic,) = mbs.read_dxf(path, layer="conic").elements
    x, y = np.array([conic(s).position for s in np.linspace(0, 1, 23)]).T
    # b1^2 = 4 w^2 b0 b2 in barycentric coordinates of the triangle (0, 0), (1, 2), (2, 0)
    b1, b2 = y / 2, (x - y / 2) / 2
    np.testing.assert_allclose(b1**2, 4 * 9 * (1 - b1 - b2) * b2, rtol=0, atol=2e-6)
    assert conic(0.5).position.round(6).tolist() == [1.0, 1.5]


def test_mechanisms_as_drawings(tmp_path):
    """A layer for each body and each profile: in their own frames as they were, in a position where that puts them."""
    plate = mbs.polygon(SQUARE, (1.0, 0.0, 0.5, 0.2))
    cam = mbs.Profile(plate.elements, mbs.at(1.0, 2.0, 0.5), True, plate.corners)
    wave = mbs.Profile.chain([mbs.Spline([(0, 0), (1, 2), (3, 3), (5, 1), (6, -2)], closed=False)], closed=False)
    arm = mbs.Body("arm/1", points={"E": (2.0, 0.0)})
    bodies = [mbs.Body("cam", profiles={"rim": cam, "bore": mbs.bore(0.25, (1.0, 1.0)), "wave": wave}), arm]
    joints = [mbs.Revolute("O", "ground", "cam", start=0.7), mbs.Revolute("Q", "cam", "arm/1", (3.0, 0.0))]
    mech, path = mbs.Mechanism(bodies, joints), tmp_path / "mech.dxf"
    for own in (True, False):
        mbs.write_dxf(mech, path, own_frames=own)
        layers = {e.dxf.layer for e in ezdxf.readfile(path).modelspace()}
        assert layers == {"ground", "cam", "cam.rim", "cam.bore", "cam.wave", "arm_1"}
        for name, profile in mech.body("cam").profiles.items():
            again = mbs.read_dxf(path, layer=f"cam.{name}", hole=name == "bore")
            angle = (0.5 if name == "rim" else 0.0) + (0.0 if own else 0.7)
            inner = np.array([1.0, 2.0]) * (name == "rim")
            turn = lambda a: np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]])
            expected = profile.points() @ turn(angle) + inner @ turn(0.0 if own else 0.7)
            if name == "bore":
                center = np.array([1.0, 1.0]) @ turn(angle)
                np.testing.assert_allclose(again.elements[0].center, center, atol=1e-12)
                assert again.elements[0].radius == 0.25 and again.elements[0].concave
            else:
                assert again.kinds == profile.kinds
                np.testing.assert_allclose(again.points(), expected, atol=1e-12)
    texts = [e.dxf.text for e in ezdxf.readfile(path).modelspace().query("TEXT")]
    assert sorted(texts) == ["E", "O", "O", "Q", "Q", "arm/1", "cam", "ground"]
    with pytest.raises(ValueError, match="`time` is that of a motion, got Mechanism"):
        mbs.write_dxf(mech, path, time=0.5)
    spatial = mbs.Mechanism([mbs.Body("a")], [mbs.Spherical("S", "ground", "a")])
    with pytest.raises(ValueError, match="own_frames"):
        mbs.write_dxf(spatial, path)


def test_drawings_say_the_unit_of_their_lengths(tmp_path, monkeypatch):
    """$INSUNITS: 4 for mm, 13 for um, 1 for in, 0 for none (DXF reference, header variables)."""
    monkeypatch.chdir(tmp_path)
    said = lambda: ezdxf.readfile("out.dxf").header["$INSUNITS"]
    plate = mbs.polygon(SQUARE)
    for unit, code in ((None, 0), ("mm", 4), ("in", 1)):
        plate.to_dxf("out.dxf", unit=unit)
        assert said() == code
    with pytest.raises(ValueError, match="unknown unit 'rod'; there are in, ft, mm"):
        plate.to_dxf("out.dxf", unit="rod")
    joints = [mbs.Fixed("seat", "ground", "part")]
    for units, unit, code in ((None, None, 0), (None, "cm", 5), ("µm", None, 13), ("mm", "mm", 4), ("inch", None, 0)):
        system = None if units is None else mbs.Units(units)
        part = mbs.Mechanism([mbs.Body("part", profiles={"rim": plate})], joints, units=system)
        mbs.write_dxf(part, "out.dxf", own_frames=True, unit=unit)
        assert said() == code
    with pytest.raises(ValueError, match="has its lengths in 'inch', and `unit` is 'mm'"):
        mbs.write_dxf(part, "out.dxf", own_frames=True, unit="mm")
    bare = mbs.Mechanism([mbs.Body("part", profiles={"rim": plate})], joints)
    (tmp_path / "bare.toml").write_text(mbs.dumps(bare))
    (tmp_path / "mm.toml").write_text(mbs.dumps(bare) + '\n[units]\nlength = "mm"\n')
    for given, code in (("bare.toml", 0), ("mm.toml", 4), ("bare.toml --unit m", 6)):
        for profile in ("", "--profile part.rim"):
            command = ["--no-cache", "convert", *f"{given} {profile}".split(), "out.dxf", "--overwrite"]
            done = CliRunner().invoke(main, command)
            assert done.exit_code == 0, done.output
            assert said() == code
