"""Profiles from SVG drawings, against closed forms."""

import numpy as np
import pytest

import mbsjax as mbs
from tests.green import area


@pytest.fixture
def read(tmp_path):
    """Reads a drawing given by what stands in it."""

    def from_text(inside: str, head: str = "", **options):
        path = tmp_path / "part.svg"
        path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {head}>{inside}</svg>')
        return mbs.read_svg(path, **options)

    return from_text


# path data, the area inside, and the elements without corners
PATHS = {
    "polygon, absolute": ("M 0 0 L 4 0 L 4 3 Z", 6.0, "line line line"),
    "relative, implied lines": ("m1,1 4,0 0,3z", 6.0, "line line line"),
    "axes, both cases": ("M0 0H4v3h-4V0", 12.0, "line line line line"),
    "cubic": ("M0 0C0 2 3 2 3 0Z", 3 / 5 * 2 * 3, "spline line"),
    "smooth cubic": ("M0 0C0 2 3 2 3 0S6 -2 6 0L6 5H0Z", 30.0, "spline spline line line line"),
    "quadratic": ("M0 0Q1 2 2 0z", 4 / 3, "spline line"),
    "smooth quadratic, relative": ("M0 0q1 2 2 0t2 0v4h-4z", 16.0, "spline spline line line line"),
    "handles in the ends": ("M0 0C0 0 4 0 4 0 4 0 4 3 4 3L0 0", 6.0, "line line line"),
    "half a disc": ("M1 0A1 1 0 0 1-1 0Z", np.pi / 2, "arc line"),
    "large arc, flags without spaces": ("M1 0A1 1 0 100 1L0 0Z", 3 * np.pi / 4, "arc line line"),
    "small arc, the other way": ("M1 0A1 1 0 0 1 0 1L0 0Z", np.pi / 4, "arc line line"),
    "radii that are too small grow": ("M-2 0A.1 .1 0 0 1 2 0z", 2 * np.pi, "arc line"),
    "radii of nothing are lines": ("M0 0A0 5 0 0 1 4 0L4 3z", 6.0, "line line line"),
    "exponents, signs for separators": ("M0-1e0L4-1L4+.2e1Z", 6.0, "line line line"),
}


@pytest.mark.parametrize("case", PATHS)
def test_path_data(read, case):
    data, inside, kinds = PATHS[case]
    profile = read(f'<path d="{data}"/>')
    assert area(profile) == pytest.approx(inside, rel=1e-13)
    assert profile.closed and sorted(k for k in profile.kinds if k != "point") == sorted(kinds.split())


def test_y_points_up_and_curves_are_exact(read):
    """The profile looks as on the screen: what is down there has negative y."""
    profile = read('<path d="M0 0C0 2 3 2 3 0Z"/>')
    spline = next(e for e in profile.elements if isinstance(e, mbs.Spline))
    # a tangent handle shows in a curvature: 2/3 |h x e| / |h|^2, h from the end, e the next control point
    np.testing.assert_allclose([spline(0.5).position, spline(1.0).position], [[1.5, -1.5], [3.0, 0.0]], atol=1e-14)
    assert float(spline(0.0).curvature) == pytest.approx(2 / 3 * (2 * 3) / 2**3, rel=1e-12)
    circle = read('<circle cx="3" cy="4" r="2"/>').elements[0]
    assert isinstance(circle, mbs.Circle) and circle.center.tolist() == [3.0, -4.0] and circle.radius == 2.0


def test_shapes_and_transforms(read):
    shapes = {
        '<rect x="1" y="2" width="6" height="4"/>': 24.0,
        '<rect width="6" height="4" rx="1"/>': 24 - (4 - np.pi),
        '<polygon points="0,0 4,0 4,3"/>': 6.0,
        '<polyline points="0 0 4 0 4 3 0 0"/>': 6.0,
        '<line x2="4"/><line x1="4" x2="4" y2="3"/><line x2="4" y2="3"/>': 6.0,
        '<circle r="2" transform="translate(3) rotate(30 1 2) scale(-1 1)"/>': 4 * np.pi,
        '<g transform="scale(2)"><g transform="matrix(0 1 -1 0 5 6)"><circle r="2"/></g></g>': 16 * np.pi,
    }
    for inside, expected in shapes.items():
        assert area(read(inside)) == pytest.approx(expected, rel=1e-13), inside
        assert area(read(inside, hole=True)) == pytest.approx(-expected, rel=1e-13), inside
    ellipse = read('<circle r="2" transform="skewX(45) scale(2 1)"/>')
    assert ellipse.kinds == ("spline",) and area(ellipse) == pytest.approx(8 * np.pi, rel=1e-7)
    x, y = ellipse.points(4).T
    np.testing.assert_allclose(((x + y) / 2) ** 2 + y**2, 4.0, rtol=0, atol=2e-6)
    moved = read('<path d="M1 0A1 1 0 0 1 0 1L0 0Z" transform="translate(10 20) rotate(90)"/>')
    assert [e.center.round(12).tolist() for e in moved.elements if isinstance(e, mbs.Arc)] == [[10.0, -20.0]]


def test_ids_layers_and_several_boundaries(read):
    inside = """<defs><circle id="unused" r="9"/></defs>
        <g id="layer1" xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" inkscape:label="cam">
        <path id="rim" d="M0 0H4V3Z"/><circle id="bore" cx="3" cy="1" r="0.5"/></g>"""
    assert area(read(inside, id="rim")) == 6.0
    assert area(read(inside, id="bore", hole=True)) == pytest.approx(-np.pi / 4)
    assert area(read(inside, id="cam", index=1)) == area(read(inside, id="layer1", index=1)) == pytest.approx(np.pi / 4)
    with pytest.raises(ValueError, match="part.svg, 'cam': its curves make 2 boundaries: 0: closed, area 6, x 0 to 4"):
        read(inside, id="cam")
    with pytest.raises(ValueError, match="in the layer 'kam'; there are 'layer1', 'cam', 'rim', 'b"):
        read(inside, id="kam")


def test_units(read):
    plate = '<rect width="10" height="20"/>'
    assert area(read(plate, 'width="50mm" viewBox="0 0 100 100"', unit="mm")) == pytest.approx(50.0, rel=1e-14)
    assert area(read(plate, 'width="50mm" viewBox="0 0 100 100"')) == 200.0
    assert area(read(plate, 'width="9in" viewBox="0 0 9 9"', unit="in")) == pytest.approx(200.0, rel=1e-14)
    assert area(read(plate, unit="in")) == pytest.approx(200 / 96**2, rel=1e-14)
    with pytest.raises(ValueError, match="unknown unit 'inch'; there are m, cm, mm"):
        read(plate, unit="inch")
    with pytest.raises(ValueError, match="does not say what the unit"):
        read(plate, 'width="100%" viewBox="0 0 9 9"', unit="mm")


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ('<path d="M0 0 L 1"/>', "'L' needs more numbers"),
        ('<path d="0 0 L 1 1"/>', "path data that cannot be read, at '0 0 L 1 1'"),
        ('<path d="M0 0 H4 V3"', "not an SVG drawing"),
        ('<rect width="3cm" height="2"/>', "`width` of <rect> must be a number, got '3cm'"),
        ('<g transform="bend(3)"><circle r="1"/></g>', r"transform that cannot be read: bend\(3\)"),
        ('<use href="#a"/>', "unlink the clone"),
        ("<text>no curve</text>", "no curve in it"),
        ('<path d="M1 1L1 1"/>', "no curve in it"),
        ('<path d="M0 0L4 0L0 3L4 3Z"/>', "crosses itself"),
    ],
)
def test_what_makes_no_profile(read, inside, message):
    with pytest.raises(ValueError, match=message):
        read(inside)
