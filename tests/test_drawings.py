"""Profiles from DXF drawings, against drawings whose outlines are known."""

import ezdxf
import numpy as np
import pytest

import mbsjax as mbs


@pytest.fixture
def drawing(tmp_path):
    """A drawing to fill, and where to save it."""
    document = ezdxf.new("R2010")
    return document.modelspace(), lambda: document.saveas(tmp_path / "part.dxf") or tmp_path / "part.dxf"


def area(profile) -> float:
    x, y = profile.points(64).T
    return float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2


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
    assert area(stadium) == pytest.approx(10 + np.pi, rel=1e-4)
    out = mbs.contact_coordinates(stadium, mbs.disc(1.0), mbs.at(8.0, 0.0))
    assert out[2] == pytest.approx(1.0, abs=1e-12)  # the gap between the arc and a disc


def test_polylines_with_bulges(drawing):
    space, save = drawing
    space.add_lwpolyline([(0, 0, 0), (4, 0, 1), (4, 2, 0), (0, 2, 0)], format="xyb", close=True)
    profile = mbs.read_dxf(save())
    assert profile.kinds.count("arc") == 1 and profile.kinds.count("line") == 3
    assert area(profile) == pytest.approx(8 + np.pi / 2, rel=1e-4)  # a half circle on one side


def test_ellipses_and_splines(drawing):
    space, save = drawing
    space.add_ellipse((1, 2), (3, 0), 0.5)
    profile = mbs.read_dxf(save())
    x, y = (profile.points(4) - [1.0, 2.0]).T
    np.testing.assert_allclose((x / 3) ** 2 + (y / 1.5) ** 2, 1.0, atol=1e-6)
    assert area(profile) == pytest.approx(np.pi * 4.5, rel=1e-5)


def test_layers_and_open_outlines(drawing):
    space, save = drawing
    space.add_line((0, 0), (3, 0), dxfattribs={"layer": "floor"})
    space.add_line((3, 0), (3, 2), dxfattribs={"layer": "floor"})
    space.add_circle((9, 9), 1, dxfattribs={"layer": "hole"})
    path = save()
    floor = mbs.read_dxf(path, layer="floor")
    assert not floor.closed and floor.kinds == ("line", "point", "line", "point", "point")
    assert mbs.read_dxf(path, layer="hole", hole=True)(0.0).normal[0] == pytest.approx(-1.0)
    with pytest.raises(ValueError, match="closed curve and other entities"):
        mbs.read_dxf(path)
    with pytest.raises(ValueError, match="on the layer 'wall'"):
        mbs.read_dxf(path, layer="wall")


def test_drawings_that_make_no_boundary(drawing, tmp_path):
    space, save = drawing
    space.add_line((0, 0), (3, 0))
    space.add_line((5, 0), (5, 2))
    with pytest.raises(ValueError, match=r"nothing goes on from \(3, 0\), and 1 are left"):
        mbs.read_dxf(save())
    (tmp_path / "no.dxf").write_text("no drawing")
    with pytest.raises(ValueError, match="not a DXF drawing"):
        mbs.read_dxf(tmp_path / "no.dxf")
    with pytest.raises(FileNotFoundError):
        mbs.read_dxf(tmp_path / "nothing.dxf")
    long = np.column_stack([np.arange(5001.0), np.arange(5001.0) ** 2])
    with pytest.raises(ValueError, match="more than 5000"):
        mbs.from_table(long, closed=False)
