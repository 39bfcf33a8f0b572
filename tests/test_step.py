"""Profiles from STEP files, written as common CAD systems do, against closed forms."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.interpolate import BSpline

import mbsjax as mbs
from tests.green import area


HEAD = """ISO-10303-21;
HEADER;
FILE_DESCRIPTION(('a plate; with ''holes'''),'2;1');
FILE_NAME('plate.step','2026-01-01T00:00:00',(''),(''),'','','');
FILE_SCHEMA(('AUTOMOTIVE_DESIGN { 1 0 10303 214 1 1 1 1 }'));
ENDSEC;
DATA;
"""
MILLIMETERS = """
#900=( GEOMETRIC_REPRESENTATION_CONTEXT(3) GLOBAL_UNIT_ASSIGNED_CONTEXT((#901,#902,#903))
REPRESENTATION_CONTEXT('','') );
#901=( LENGTH_UNIT() NAMED_UNIT(*) SI_UNIT(.MILLI.,.METRE.) );
#902=( NAMED_UNIT(*) PLANE_ANGLE_UNIT() SI_UNIT($,.RADIAN.) );
#903=( NAMED_UNIT(*) SI_UNIT($,.STERADIAN.) SOLID_ANGLE_UNIT() );
"""
INCHES = """
#900=(GEOMETRIC_REPRESENTATION_CONTEXT(3)GLOBAL_UNIT_ASSIGNED_CONTEXT((#901))REPRESENTATION_CONTEXT('',''));
#901=(CONVERSION_BASED_UNIT('INCH',#904)LENGTH_UNIT()NAMED_UNIT(#905));
#904=LENGTH_MEASURE_WITH_UNIT(LENGTH_MEASURE(25.4),#906);
#905=DIMENSIONAL_EXPONENTS(1.,0.,0.,0.,0.,0.,0.);
#906=(LENGTH_UNIT()NAMED_UNIT(*)SI_UNIT(.MILLI.,.METRE.));
"""


class Writer:
    """Writes entities in the form of STEP files, in a plane of space whose frame is given by rows."""

    def __init__(self, origin=(0.0, 0.0, 0.0), axes=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))):
        self.origin, self.axes, self.lines = np.array(origin), np.array(axes), []
        self.placement = self.put(self.origin, self.axes[2], self.axes[0])
        self.plane = self.add(f"PLANE('',{self.placement})")

    def add(self, text: str) -> str:
        self.lines.append(f"#{len(self.lines) + 10} = {text};")
        return f"#{len(self.lines) + 9}"

    def point(self, p, z=0.0) -> str:
        x = self.origin + np.array([*p, z]) @ self.axes
        return self.add(f"CARTESIAN_POINT('',{_row(x)})")

    def put(self, origin, z, x) -> str:
        place = self.add(f"CARTESIAN_POINT('',{_row(origin)})")
        axis, toward = (self.add(f"DIRECTION('',{_row(v)})") for v in (z, x))
        return self.add(f"AXIS2_PLACEMENT_3D('',{place},{axis},{toward})")

    def edge(self, a, b, curve: str, sense: str = ".T.") -> str:
        first, last = (self.add(f"VERTEX_POINT('',{self.point(p)})") for p in (a, b))
        curve = self.add(f"EDGE_CURVE('',{first},{last},{curve},{sense})")
        return self.add(f"ORIENTED_EDGE('',*,*,{curve},.T.)")

    def line(self, a, b) -> str:
        direction = self.add("DIRECTION('',(1.,0.,0.))")
        vector = self.add(f"VECTOR('',{direction},1.)")
        return self.edge(a, b, self.add(f"LINE('',{self.point(a)},{vector})"))

    def circle(self, center, radius, a, b, sense=".T.", up=1.0) -> str:
        """As it is seen from above, or from below: then its frame has z down."""
        at = self.put(self.origin + np.array([*center, 0.0]) @ self.axes, up * self.axes[2], self.axes[0])
        return self.edge(a, b, self.add(f"CIRCLE('',{at},{radius!r})"), sense)

    def face(self, *bounds: list[str], name: str = "") -> str:
        kinds = ["FACE_OUTER_BOUND", *["FACE_BOUND"] * (len(bounds) - 1)]
        loops = [f"EDGE_LOOP('',({','.join(edges)}))" for edges in bounds]
        found = ",".join(self.add(f"{kind}('',{self.add(loop)},.T.)") for kind, loop in zip(kinds, loops))
        return self.add(f"ADVANCED_FACE('{name}',({found}),{self.plane},.T.)")

    def text(self, more: str = MILLIMETERS) -> str:
        return HEAD + "\n".join(self.lines) + more + "ENDSEC;\nEND-ISO-10303-21;\n"


def _row(x) -> str:
    return "(" + ",".join(repr(float(v)).upper() for v in x) + ")"


@pytest.fixture
def read(tmp_path):
    def from_text(text: str, **options):
        path = tmp_path / "plate.step"
        path.write_text(text)
        return mbs.read_step(path, **options)

    return from_text


TURNED = np.array([[0.0, 0.6, 0.8], [1.0, 0.0, 0.0], [0.0, 0.8, -0.6]])


def stadium(file: Writer) -> list[str]:
    """Four by two with half circles at the ends; one is drawn in a frame that looks down, the other backwards."""
    return [
        file.line((0.0, -1.0), (4.0, -1.0)),
        file.circle((4.0, 0.0), 1.0, (4.0, -1.0), (4.0, 1.0)),
        file.line((4.0, 1.0), (0.0, 1.0)),
        file.circle((0.0, 0.0), 1.0, (0.0, 1.0), (0.0, -1.0), ".F.", up=-1.0),
    ]


@pytest.mark.parametrize("frame", [((0.0, 0.0, 0.0), np.eye(3)), ((3.0, -2.0, 5.0), TURNED)], ids=["xy", "in space"])
def test_lines_and_arcs(read, frame):
    file = Writer(*frame)
    bore = [file.circle((2.0, 0.0), 0.5, (2.5, 0.0), (2.5, 0.0))]
    file.face(stadium(file), bore, name="top")
    outer = read(file.text(), index=0)
    assert sorted(outer.kinds) == ["arc", "arc", "line", "line"]  # smooth: there are no corners
    assert area(outer) == pytest.approx(8 + np.pi, rel=1e-13)
    np.testing.assert_allclose(np.abs(outer.points()).max(0), [5.0, 1.0], atol=1e-13)
    hole = read(file.text(), face="top", index=1, hole=True)
    assert hole.kinds == ("circle",) and area(hole) == pytest.approx(-np.pi / 4, rel=1e-13)
    with pytest.raises(ValueError, match="face 0: its curves make 2 boundaries: 0: closed, area 11.1416"):
        read(file.text())


def test_splines(read):
    """A cubic with three spans and a rational quarter of a circle, as a complex entity."""
    file = Writer()
    control = [(0, 0), (1, 2), (3, 3), (5, 1), (6, 0)]
    points = ",".join(file.point(p) for p in control)
    curve = file.add(
        f"B_SPLINE_CURVE_WITH_KNOTS('',3,({points}),.UNSPECIFIED.,.F.,.F.,(4,1,4),(0.,1.,2.),.UNSPECIFIED.)"
    )
    corner = ",".join(file.point(p) for p in [(6, 0), (6, -6), (0, -6)])
    quarter = file.add(
        f"(BOUNDED_CURVE() B_SPLINE_CURVE(2,({corner}),.UNSPECIFIED.,.F.,.F.) B_SPLINE_CURVE_WITH_KNOTS((3,3),(0.,1.),"
        ".UNSPECIFIED.) CURVE() GEOMETRIC_REPRESENTATION_ITEM() "
        f"RATIONAL_B_SPLINE_CURVE((1.,{0.5**0.5!r},1.)) REPRESENTATION_ITEM(''))"
    )
    wrapped = file.add(f"SURFACE_CURVE('',{quarter},(),.PCURVE_S1.)")
    edges = [file.edge((0, 0), (6, 0), curve), file.edge((6, 0), (0, -6), wrapped), file.line((0, -6), (0, 0))]
    file.face(edges)
    profile = read(file.text())
    assert sorted(k for k in profile.kinds if k != "point") == ["arc", "line", "spline"]
    # of the spline by its moments: the integral of B_i dB_j, by SciPy
    t = np.array([0.0, 0, 0, 0, 1, 2, 2, 2, 2])
    basis = [BSpline(t, np.eye(5)[i], 3) for i in range(5)]
    nodes, weights = np.polynomial.legendre.leggauss(4)
    s, w = np.concatenate([(nodes + 1) / 2, (nodes + 3) / 2]), np.concatenate([weights, weights]) / 2
    P = np.array(control, float)
    above = sum(w @ (basis[i](s) * basis[j](s, 1)) * P[i, 1] * P[j, 0] for i in range(5) for j in range(5))
    assert area(profile) == pytest.approx(above + 9 * np.pi, rel=1e-12)
    arc = next(e for e in profile.elements if isinstance(e, mbs.Arc))
    assert arc.radius == pytest.approx(6.0, rel=1e-12)
    np.testing.assert_allclose(arc.center, [0.0, 0.0], atol=1e-12)


def test_faces_by_name_layer_and_number(read):
    file = Writer()
    squares = [[(k, 0.0), (k + 1.0, 0.0), (k + 1.0, 1.0 + k), (k, 1.0 + k)] for k in (0.0, 1.0, 2.0)]
    faces = [
        file.face([file.line(a, b) for a, b in zip(p, p[1:] + p[:1])], name=name)
        for p, name in zip(squares, ("base", "rim", ""))
    ]
    file.add(f"PRESENTATION_LAYER_ASSIGNMENT('cam','',({faces[2]}))")
    text = file.text()
    assert [area(read(text, face=f)) for f in ("base", "rim", "cam", 1)] == [1.0, 2.0, 3.0, 2.0]
    assert area(read(text, face="rim", unit="cm")) == pytest.approx(0.02, rel=1e-14)
    assert area(read(file.text(INCHES), face="rim", unit="mm")) == pytest.approx(2 * 25.4**2, rel=1e-14)
    with pytest.raises(ValueError, match="3 plane faces; choose one by name or number, `face`: 0: 'base', normal"):
        read(text)
    with pytest.raises(ValueError, match="unknown plane face 'rom'; did you mean 'rim'"):
        read(text, face="rom")
    with pytest.raises(ValueError, match="no plane face 7"):
        read(text, face=7)
    with pytest.raises(ValueError, match="does not say what the unit"):
        read(file.text("\n"), face=0, unit="mm")


def test_what_is_no_plane_boundary(read):
    file = Writer()
    corners = [(0.0, 0.0), (4.0, 0.0), (4.0, 3.0)]
    file.face([file.line(a, b) for a, b in pairwise(corners)])
    with pytest.raises(ValueError, match=r"not closed: it ends at \(4, 3\) and begins at \(0, 0\), 5 apart"):
        read(file.text())
    bent = Writer()
    edges = [bent.line(a, b) for a, b in zip(corners, corners[1:] + corners[:1])]
    bent.face(edges)
    raised = bent.text().replace("(4.0,3.0,0.0)", "(4.0,3.0,0.5)")
    with pytest.raises(ValueError, match="is not plane: a point of its edge lies 0.5 off its plane"):
        read(raised)
    tilted = Writer()
    at = tilted.put((0, 0, 0), (0, 1, 0), (1, 0, 0))
    tilted.face([tilted.edge((1.0, 0.0), (1.0, 0.0), tilted.add(f"CIRCLE('',{at},1.)"))])
    with pytest.raises(ValueError, match="a circle of its edge is tilted"):
        read(tilted.text())
    round_one = file.text().replace("PLANE(", "CYLINDRICAL_SURFACE(")
    for text, message in [
        (round_one, "no plane face"),
        ("solid part", "not a STEP file"),
        (HEAD, "no plane face"),
        (file.text().replace("EDGE_LOOP('',(", "EDGE_LOOP('',"), "parentheses do not match"),
        (file.text().replace("VERTEX_POINT", "VERTEX"), "must be a VERTEX_POINT, and is VERTEX"),
        (HEAD + "#1 = ?;", "not a STEP file that can be read, at"),
    ]:
        with pytest.raises(ValueError, match=message):
            read(text)
