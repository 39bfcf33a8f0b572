"""ACDMC's files: both listings of the thesis' appendix D, what is written and read back, and files that are wrong.

The listings (`tests/cases/*.DYN`) are those of D.2 (the cam of 4.3, made of polynomials) and D.3 (the cam of 4.4, made
of an arc and lines). One letter was put right: where surface 32 of D.2 gets its name, the scan has NAEE. Blank lines at
the ends of pages are left out. All else is as printed: French and English keywords, AR0 and ARO, links of an OCPA that
are not those of its pair, a velocity called a position, elements without ends, a coefficient 65.6493560 that probably
lacks a digit (54.9346068 + 10.71475 is 65.6493568), and radii that miss each other by 9.5e-5 mm at 105 and 255 degrees
(by 5e-5 mm in the table 4.3-1), so that two pieces are taken to end 0.005 degrees earlier, where they meet.
"""

import pathlib
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy import pi

import mbsjax as mbs
from tests.contacts import T3, t3_cam
from tests.mechanisms import four_bar
from tests.test_contact_literature import Envelope
from tests.test_contact_motion import borders, lifts


CASES = pathlib.Path(__file__).parent / "cases"
LISTINGS = {name: (CASES / f"example_{name}.DYN").read_text() for name in ("4_3", "4_4")}


@pytest.fixture(scope="module")
def listed() -> dict[str, mbs.Dyn]:
    with pytest.warns(mbs.DynWarning):
        return {name: mbs.read_dyn(CASES / f"example_{name}.DYN") for name in LISTINGS}


def quietly(text) -> mbs.Dyn:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.DynWarning)
        return mbs.read_dyn(text)


def same(a, b, tolerance: float = 0.0) -> None:
    """The same structure and names, and every number the same."""
    assert jax.tree_util.tree_structure(a) == jax.tree_util.tree_structure(b)
    for (path, x), y in zip(jax.tree_util.tree_leaves_with_path(a), jax.tree_util.tree_leaves(b)):
        if eqx.is_array(x):
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance, err_msg=jax.tree_util.keystr(path))
        else:
            assert x == y


# -- the listings against the same mechanisms built by hand ----------------------------------------------------


def roller() -> mbs.Profile:
    """Half of a roller of 5, on the side of the cam."""
    return mbs.Profile.chain([mbs.Arc((0.0, 0.0), 5.0, pi / 2, pi)], closed=False)


def cam_and_follower(rim, names, second_moment, masses, travel, forces=()) -> mbs.Mechanism:
    """The mechanism of both listings. The cam's mass is spread along x."""
    inertia = (0.0, second_moment, second_moment)
    bodies = {
        "ground": mbs.Body("ground"),
        "cam2_2": mbs.Body("cam2_2", mass=masses[0], inertia=inertia, profiles={"23": rim}),
        "cam2_3": mbs.Body("cam2_3", mass=masses[1], profiles={"32": roller()}),
    }
    joints = [mbs.Revolute("1", "ground", "cam2_2"), mbs.Prismatic("3", "ground", "cam2_3", start=travel)]
    if names[0] == "cam2_3":
        joints.reverse()
    contact = mbs.Contact("2", "cam2_2.23", "cam2_3.32", active=True)
    return mbs.Mechanism([bodies[name] for name in names], [*joints, contact], forces=forces)


BASE, SIDE = 54.9346068, 54.8846068
TOP = np.polynomial.Polynomial.basis  # the piece in the middle: its lowest and highest radius, by (angle / 75) ** 2
MIDDLE = 65.649356 - 14.0625 * TOP(1) + 7.734375 * TOP(6) - 4.1367188 * TOP(8)


def pieces() -> list[tuple]:
    """4.3: where each piece ends (degrees), the angle from its reference where it starts, scale, coefficients, orders.
    The second, r = SIDE + 0.02 x, ends where the third begins, at r(-75); the third at the radius where the fourth
    begins, at x = -15."""
    second = (MIDDLE(1.0) - SIDE) / 0.02 - 5
    roots = (MIDDLE - (SIDE + 0.3)).roots()
    highest = max(x.real for x in roots if abs(x.imag) < 1e-9 and 0.9 < x.real < 1.1)
    turns = np.cumsum([90, 5, second, 75 + 75 * np.sqrt(highest), 10, 5])
    terms = [
        (0, 1, (BASE, 0.0008, -0.00008), (0, 3, 4)),
        (5, 1, (SIDE, 0.02), (0, 1)),
        (-75, 75, (65.649356, -14.0625, 7.734375, -4.1367188), (0, 2, 12, 16)),
        (-15, 1, (SIDE, -0.02), (0, 1)),
        (-5, 1, (BASE, -0.0008, -0.00008), (0, 3, 4)),
    ]
    return [(a, b, *rest) for a, b, rest in zip(turns, turns[1:], terms)]


def polynomial_rim() -> mbs.Profile:
    deg = np.deg2rad
    curves = [
        mbs.Polynomial(c, n, deg(a), deg(b), reference=deg(a - start), scale=deg(scale))
        for a, b, start, scale, c, n in pieces()
    ]
    last = deg(pieces()[-1][1])
    arcs = [mbs.Arc((0.0, 0.0), BASE, start, turn) for start, turn in ((0.0, pi / 2), (last, 2 * pi - last))]
    return mbs.Profile.chain([arcs[0], *curves, arcs[1]], smooth=True)


def polynomial_rho(angle):
    """The radius and its derivative in the polar angle, from 0 to 2 pi."""
    R, dR = np.full_like(angle, BASE), np.zeros_like(angle)
    for a, b, start, scale, c, n in pieces():
        on = (np.deg2rad(a) <= angle) & (angle < np.deg2rad(b))
        x = (np.rad2deg(angle[on]) - a + start) / scale
        R[on] = sum(k * x**m for k, m in zip(c, n))
        dR[on] = sum(k * m * x ** max(m - 1, 0) for k, m in zip(c, n)) * 180 / pi / scale
    return R, dR


def test_listing_of_the_polynomial_cam(listed):
    dyn = listed["4_3"]
    spring = mbs.Spring("3", stiffness=100.0)
    built = cam_and_follower(polynomial_rim(), ("ground", "cam2_2", "cam2_3"), 1000.0, (5.0, 0.15), 59.934506, [spring])
    here, there = (eqx.tree_at(_turns, m, replace_fn=lambda a: (a + 1e-9) % (2 * pi)) for m in (dyn.mech, built))
    same(here, there, 1e-12)
    assert [(a, round(b, 2)) for a, b, *_ in pieces()[:2]] == [(90, 95), (95, 105)]  # as in table 4.3-1
    assert dyn.independent == ("1",) and float(dyn.velocities["1"]) == -50.0
    assert (dyn.name, dyn.stage, dyn.ground) == ("example_2", "Post-proceeding", "cam2_1")
    assert (float(dyn.time), float(dyn.step)) == (13.0, 0.01)
    lines = [int(note.split(":")[0].removeprefix("line ")) for note in dyn.notes]
    assert lines == [66, 75, 84, 94, 104, 113, 213, 214, 235]


@pytest.mark.long
def test_listed_polynomial_cam_lifts_its_follower(listed):
    """A little more than a turn at the 50 rad/s of the file, against the envelope of the rollers; it begins where the
    last arc of the cam goes over to the first. Elements change where their common normal meets the follower's line."""
    dyn = listed["4_3"]
    motion = mbs.kinematics(dyn.mech, dyn.drive, jnp.linspace(0.0, 0.13, 131))
    lift, _ = Envelope(polynomial_rho, "roller", 5.0).along(0.0, 50.0, np.asarray(motion.ts))
    np.testing.assert_allclose(motion["3"].q, lift, rtol=0, atol=1e-8)
    ends = np.deg2rad([90.0, *(b for _, b, *_ in pieces())])
    R, dR = polynomial_rho(ends - 1e-12)
    steep = np.hypot(R, dR)
    meeting = ends + np.arctan2(-5 * dR / steep, R + 5 * R / steep)  # of the roller's center
    happened = [(e.kind, e.t) for e in motion.events.list(motion.mech) if 0.01 < e.t < 0.12]
    assert [kind for kind, _ in happened] == ["transition"] * 6
    np.testing.assert_allclose([50 * t for _, t in happened], meeting, rtol=0, atol=1e-7)


def _turns(mech):
    """Angles on the rim that may differ by whole turns."""
    rim = mech.body("cam2_2").profiles["23"].elements
    return [x for e in rim for x in ((e.start,) if isinstance(e, mbs.Arc) else (e.start, e.end, e.reference))]


def test_listing_of_the_cam_of_lines(listed):
    dyn = listed["4_4"]
    rim = t3_cam().body("cam").profiles["rim"]
    built = cam_and_follower(rim, ("cam2_3", "cam2_2", "ground"), 9800.0, (0.05, 0.5), 40.0)
    same(dyn.mech, built, 1e-13)
    assert dyn.independent == ("1",) and float(dyn.velocities["1"]) == -0.5 and float(dyn.positions["3"]) == 40.0
    assert dyn.places["2"].tolist() == [0.5, 0.5, 0.0]
    twice, as_velocity = (note for note in dyn.notes if "INITIAL" in note)
    assert "line 166" in twice and "line 164" in twice
    assert "line 208: a second INITIAL POSITION" in as_velocity


@pytest.mark.long
def test_listed_cam_of_lines_runs_as_in_the_thesis(listed):
    """4.4: transitions and lift in closed form, over the 13 s that the file asks for, a little more than a turn."""
    dyn = listed["4_4"]
    motion = mbs.kinematics(dyn.mech, dyn.drive, jnp.linspace(0.0, float(dyn.time), 131))
    ends = borders(T3) / 0.5
    assert motion.events is not None and int(motion.events.count) == 8
    np.testing.assert_allclose(motion.events.t[:8], ends, rtol=0, atol=1e-9)
    element = np.searchsorted(ends, np.asarray(motion.ts)) % 8
    heights = [lift(0.5 * motion.ts) for lift in lifts(T3)]
    np.testing.assert_allclose(motion["3"].q, np.choose(element, heights), rtol=0, atol=1e-9)
    np.testing.assert_allclose(motion["2"].q[0], dyn.places["2"], rtol=0, atol=1e-12)


# -- written and read back ---------------------------------------------------------------------------------------


def everything() -> mbs.Dyn:
    """Each thing that the format knows, with numbers that have all their digits."""
    x = iter(np.sqrt(np.arange(2, 100)))
    shell = [(0.0, 0.0), (next(x), 0.0), (next(x), next(x)), (-0.3, 1.1)]
    plate = mbs.Profile.chain([mbs.Line(a, b) for a, b in zip(shell, shell[1:] + shell[:1])])
    bulge = mbs.Arc.between((2.0, -0.5), (2.0, 0.5), radius=next(x))
    hollow = mbs.Arc.between((2.0, 0.5), (1.2, 1.4), radius=5 * next(x), concave=True)
    spiral = mbs.Polynomial((next(x), 0.1), (0, 2), 0.3, 1.2, reference=0.7, scale=next(x), center=(-3.0, 0.1))
    back = mbs.Polynomial((3.0, 0.1), (0, 1), 1.9, 0.4)
    bodies = [
        mbs.Body("ground", profiles={"plate": plate, "1-": mbs.bore(40.0, (next(x), 0.2))}),
        mbs.Body("arm", mass=next(x), center=(next(x), 0.1), inertia=next(x), profiles={"nose": mbs.disc(next(x))}),
        mbs.Body("rod 2", mass=next(x), profiles={"mixed": mbs.Profile.chain([bulge, hollow], closed=False)}),
        mbs.Body("slide", profiles={"spiral": mbs.Profile.chain([spiral], closed=False)}),
        mbs.Body("float", inertia=(1.0, 1.2, 0.9, 0.1, 0.0, 0.0), mass=next(x), center=(0.1, -0.2)),
        mbs.Body("tail", profiles={"back": mbs.Profile.chain([back], closed=False)}),
    ]
    joints = [
        mbs.Revolute("1", "ground", "arm", (next(x), -next(x)), start=next(x)),
        mbs.Revolute("2", "arm", "rod 2", mbs.at(next(x), 0.0, 0.5), mbs.at(0.0, 0.0, -2.5)),
        mbs.Prismatic("3", "ground", "slide", mbs.at(0.1, 0.2, next(x) - 5.0), start=-next(x)),
        mbs.Revolute("4", "rod 2", "slide", (1.0, 1.0), (0.0, next(x))),
        mbs.Planar("5", "ground", "float", start=(0.1, next(x), 0.3)),
        mbs.Prismatic("6", "float", "tail", axis=(0.0, 1.0)),
        mbs.Contact("7", "ground.plate", "arm.nose", restitution=1 / 3),
        mbs.Contact("8: a", "arm.nose", "rod 2.mixed", active=True),
    ]
    forces = [
        mbs.Spring("1", stiffness=next(x), free_length=next(x), preload=-next(x)),
        mbs.Actuator("3", next(x)),
    ]
    mech = mbs.Mechanism(bodies, joints, forces=forces, gravity=(0.0, -9.80665))
    return mbs.Dyn(
        mech, positions={"5.x": 1 / 7}, velocities={"1": -1 / 3, "5.angle": 0.1}, independent=("1", "5.angle", "5.y"),
        places={"7": (0.25, 1 / 9, 0.0)}, time=0.1, step=1e-3, name="all of it", stage="CREATE", ground="base",
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole() -> mbs.Dyn:
    return everything()


@pytest.mark.parametrize("language", ["english", "french"])
def test_what_is_written_is_read_back(whole, language):
    text = mbs.write_dyn(whole, language=language)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = mbs.read_dyn(text)
    at_zero = lambda dyn: eqx.tree_at(lambda mech: mech.joints[4].start, dyn.mech, jnp.zeros(3))
    same(at_zero(again), at_zero(whole), 1e-14)  # but for the one position that was told apart from its joint
    for name in ("positions", "velocities"):
        same(getattr(again, name), getattr(whole, name))
    assert again.places["7"].tolist() == whole.places["7"].tolist()
    for name in ("independent", "name", "stage", "ground", "time", "step"):
        assert getattr(again, name) == getattr(whole, name)
    # as they stand in the file
    for get in (
        lambda d: d.mech.gravity,
        lambda d: d.mech.body("arm").mass,
        lambda d: d.mech.forces,
        lambda d: d.mech.contact("7").restitution,
        lambda d: [e for e in d.mech.body("ground").profiles["plate"].elements],
        lambda d: d.mech.body("arm").profiles["nose"].elements[0].radius,
        lambda d: d.mech.body("slide").profiles["spiral"].elements[0].coefficients,
        lambda d: [(j.frame_a.x, j.frame_b.y) for j in d.mech.joints],
    ):
        same(get(again), get(whole))


@pytest.mark.parametrize("name", LISTINGS)
def test_listings_are_written_as_they_are(listed, name):
    """With the ten decimals of the listing, once written and read, nothing changes any more."""
    dyn = listed[name]
    for options in ({}, {"decimals": 10}, {"decimals": 10, "language": "french"}):
        text = mbs.write_dyn(dyn, **options)
        again = quietly(text)
        same(again.mech, dyn.mech, 1e-11 if options else 1e-14)
        assert (again.surfaces, again.independent, again.ground) == (dyn.surfaces, dyn.independent, dyn.ground)
        assert mbs.write_dyn(again, **options) == text
    # each number of the listing, in its place
    wanted = [line.split() for line in LISTINGS[name].splitlines() if line.lower().startswith(("pinit", "pend"))]
    written = [line.split() for line in text.replace("PFIN", "PEND").splitlines()]
    for line in wanted:
        assert any(w[0] == line[0] and [float(x) for x in w[2:]] == [float(x) for x in line[2:]] for w in written if w)


def test_spatial_joints_and_planes():
    """A plane that stands upright in its body, cylindrical and universal joints."""
    upright = mbs.frames.from_axis((1.0, 2.0, 3.0), (1.0, 0.0, 0.0))
    plate = mbs.polygon([(0.0, 0.0), (2.0, 0.0), (0.0, 1.0)], frame=upright)
    mech = mbs.Mechanism(
        [mbs.Body("a", profiles={"plate": plate}), mbs.Body("b")],
        [
            mbs.Cylindrical("sleeve", "ground", "a", (0.0, 0.0, 0.0), axis=(1.0, 2.0, 2.0), start=(0.1, 0.2)),
            mbs.Universal("cross", "a", "b", mbs.frames.from_axis((0, 0, 1), (0, 1, 0)), start=(0.3, 0.4)),
        ],
    )
    again = quietly(mbs.write_dyn(mbs.Dyn(mech, independent=["sleeve.travel"])))
    assert again.independent == ("sleeve.travel",) and not again.mech.planar
    for joint, other in zip(mech.joints, again.mech.joints):
        np.testing.assert_allclose(joint.interlink(joint.start), other.interlink(other.start), rtol=0, atol=1e-15)
    found = again.mech.body("a").profiles["plate"]
    for q in (0.25, 2.5, 4.75):
        there, here = (np.asarray(p.frame)[:3] @ [*np.asarray(p(q).position), 0.0, 1.0] for p in (found, plate))
        np.testing.assert_allclose(there, here, rtol=0, atol=1e-14)


def test_inertia_that_rounding_makes_impossible():
    """A point mass far from its body's origin, with the few digits of a file."""
    bob = mbs.Body("bob", mass=1 / 3, center=(70.0, 1.0 / 7))
    mech = mbs.Mechanism([bob], [mbs.Revolute("O", "ground", "bob")])
    found = quietly(mbs.write_dyn(mech, decimals=6)).mech.body("bob")
    np.testing.assert_allclose(found.center, bob.center, rtol=0, atol=1e-4)
    assert float(jnp.max(jnp.abs(found.inertia))) < 1e-2


def line_profile(**options):
    return mbs.Profile.chain([mbs.Line((0.0, 0.0), (1.0, 0.0))], closed=False, **options)


def touching(**options) -> mbs.Mechanism:
    bodies = [mbs.Body("ground", profiles={"p": mbs.disc(1.0)}), mbs.Body("b", profiles={"p": line_profile()})]
    return mbs.Mechanism(bodies, [mbs.Planar("J", "ground", "b"), mbs.Contact("C", "ground.p", "b.p", **options)])


def with_forces(*forces, gauges=(), **options) -> mbs.Mechanism:
    return mbs.Mechanism(
        [mbs.Body("b", mass=1.0)], [mbs.Revolute("J", "ground", "b")], gauges, forces=forces, **options
    )


def shaped(profile) -> mbs.Mechanism:
    return mbs.Mechanism([mbs.Body("b", profiles={"rim": profile})], [mbs.Revolute("J", "ground", "b")])


def ring():
    a = np.linspace(0, 2 * pi, 13)[:-1]
    return mbs.Profile.chain([mbs.Spline.through(np.stack([np.cos(a), np.sin(a)], 1))])


CANNOT = {
    "spline": (lambda: shaped(ring()), "'rim' of body 'b'.*Spline"),
    "knife": (lambda: shaped(mbs.Profile.chain([mbs.Point((0.0, 0.0))], closed=False)), "'rim'.*Point"),
    "open ring": (
        lambda: shaped(mbs.Profile.chain([mbs.Arc((0.0, 0.0), 1.0, 0.0, pi), mbs.Line((-1, 0), (1, 0))], closed=False)),
        "'rim'.*open",
    ),
    "spherical": (
        lambda: mbs.Mechanism([mbs.Body("b")], [mbs.Spherical("J", "ground", "b", (0, 0, 0), (0, 0, 0))]),
        "'J'.*Spherical",
    ),
    "screw": (
        lambda: mbs.Mechanism([mbs.Body("b")], [mbs.Screw("J", "ground", "b", (0, 0, 0), (0, 0, 0), lead=1.0)]),
        "'J'.*Screw",
    ),
    "gauge": (lambda: with_forces(gauges=[mbs.Angle("G", "ground", "b")]), "'G'"),
    "law": (lambda: touching(law=mbs.Hertz(1e5)), "'C'.*`law`"),
    "elements": (lambda: touching(elements_a=[0]), "'C'.*`elements_a`"),
    "hold": (lambda: touching(hold="push"), "'C'.*'push'"),
    "damper": (lambda: with_forces(mbs.Spring("J", damping=1.0)), "'spring on J'.*damper"),
    "rope": (lambda: with_forces(mbs.Spring("J", stiffness=1.0, acts="tension")), "'spring on J'.*tension"),
    "function": (lambda: with_forces(mbs.Actuator("J", lambda x, v, t: t)), "'actuator on J'.*function"),
    "load": (lambda: with_forces(mbs.Load("b", torque=1.0)), "'load on b'.*Load"),
    "own gauge": (lambda: with_forces(mbs.Spring(mbs.Angle("G", "ground", "b"), stiffness=1.0)), "'spring on G'"),
    "two springs": (
        lambda: with_forces(*(mbs.Spring("J", stiffness=1.0, name=name) for name in "pq")),
        "'q'.*another spring",
    ),
    "part of a joint": (
        lambda: mbs.Mechanism(
            [mbs.Body("b")], [mbs.Planar("J", "ground", "b")], forces=[mbs.Spring("J.x", stiffness=1.0)]
        ),
        "'spring on J.x'",
    ),
    "gravity": (lambda: with_forces(gravity=(1.0, 0.0)), "gravity"),
    "name": (lambda: mbs.Mechanism([mbs.Body(" b")], [mbs.Revolute("J", "ground", " b")]), "' b'"),
    "something else": (lambda: 3, "Dyn or a Mechanism"),
}


@pytest.mark.parametrize("case", CANNOT)
def test_what_the_format_cannot_hold(case):
    build, message = CANNOT[case]
    with pytest.raises(ValueError, match=message):
        mbs.write_dyn(build())


def test_points_of_interest_are_left_out():
    mech = mbs.Mechanism([mbs.Body("b", points={"E": (1.0, 0.0)})], [mbs.Revolute("J", "ground", "b")])
    with pytest.warns(mbs.DynWarning, match="body 'b'"):
        assert "1.0 0.0 0.0 0.0" in mbs.write_dyn(mech)


def test_loops_are_those_of_the_mechanism():
    """Directions of a four-bar's joints round its loop; a link list that is no loop is told."""
    text = mbs.write_dyn(four_bar())
    tail = text[text.index("LOOP") :].split("\n")
    assert [x.split(": ")[-1] for x in tail[4:12]] == ["TRUE", "A", "TRUE", "B", "TRUE", "C", "FALSE", "D"]
    with pytest.warns(mbs.DynWarning, match="LOOP is not a loop"):
        mbs.read_dyn(text.replace(": TRUE\nC", ": FALSE\nC"))


# -- files that are wrong --------------------------------------------------------------------------------------------


def put(text: str, other: str, message: str) -> tuple[str, str]:
    """The listing with the first place of a text changed; {} is the number of its line."""
    before, _, after = LISTINGS["4_4"].partition(text)
    assert after, text
    return before + other + after, message.format(before.count("\n") + 1)


ZEROS = " 0.0000000000" * 3
WRONG = {
    "keyword": put("NAME ", "NAEM ", "line {}: unknown keyword 'NAEM': expected NAME"),
    "entity": put(": LINK", ": LIMK", "line {}: ENTITY: expected one of MACH.*'LIMK'"),
    "number": put("13.0000", "soon", "line {}: TIME: expected 1 number.*'soon'"),
    "step": put("1.0000E-0002", "0", "line {}: STEP: expected a positive number"),
    "not finite": put("13.0000", "nan", "line {}: TIME: expected 1 number"),
    "too large": put("13.0000", "1e999", "line {}: TIME: expected 1 number"),
    "matrix": put("ARO\n", "ARO\n1.0\n", "line {}: ARO: expected 12 numbers"),
    "skew": put("SHAPE\n 0.0", "SHAPE\n 0.5", "line {}: SHAPE: expected three perpendicular"),
    "negative mass": put(f"{ZEROS} 0.5", f"{ZEROS} -0.5", "line 14: LINK 'cam2_3': the mass .* negative"),
    "inertia": put("MASS\n9800.0", "MASS\n-9800.0", "line {}: LINK 'cam2_2': no body has this MASS"),
    "pair": put("PRISMATIQUE", "SPHERIQUE", "line {}: TYPEPAIR: expected one of ROTOIDE"),
    "link": put("PINLINK  : cam2_1", "PINLINK : cam9", "line {}: PINLINK: expected the name of a LINK.*'cam9'"),
    "surface": put("PINSURF   : 13", "PINSURF : 99", "line {}: PINSURF: expected the name of a SURF of LINK 'cam2_1'"),
    "kind of surface": put("PINSURF   : 23", "PINSURF : 21", "line {}: PINSURF: expected .*COURBE"),
    "truth": put("FIXED        : FALSE", "FIXED : MAYBE", "line {}: FIXED: expected one of TRUE, VRAI"),
    "two fixed": put("FIXED        : FALSE", "FIXED : VRAI", "OCLI: expected FIXED : TRUE for one link, got it for 2"),
    "missing": put("NAME        : exampl2", "", "line 1: MACH: expected NAME, which is missing"),
    "twice": put("TIME", "TIME : 14.0\nTIME", "line 5: TIME: MACH has it already, in line {}"),
    "gap": put("PEND      : -35", "PINIT : 15 20.1 0\nPEND : -35", "SURF '23'.*hang together"),
    "curve": put("CURVE : POINT", "CURVE : SPLINE", "line {}: TYPE OF CURVE: expected one of POINT"),
    "spring on a contact": put(
        "LIAISON      : 2\nFORCE        : 0", "JOINT : 2\nFORCE : 1", "OCPA of '2': expected no"
    ),
    "overflow": (LISTINGS["4_3"].replace(": -75", ": 1e59"), "line 75: polynomial: expected PEND"),
    "binary": (b"\x00\xff\xfe" * 20, "line 1: expected ENTITY"),
    "empty": ("\n", "line 1: expected ENTITY : MACH"),
    "long": ("A" * (1 << 20) + "\n\n", "1048576 characters"),
    "a number": (3, "path or its text"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_with_its_line(case):
    text, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        quietly(text)


def test_many_of_a_kind():
    link = "ENTITY : LINK\nNAME : l{}\n"
    with pytest.raises(ValueError, match="at most 200 LINK"):
        mbs.read_dyn("".join(link.format(i) for i in range(300)))
    points = (
        "TYPE OF CURVE : POLY\nNUM : 1\nCOEFFI : 1\nORDER : 0\nCENTRE : 0 0 0\nCONCAVE OR CONVEX : CONVEX\nFIN : NO\n"
    )
    with pytest.raises(ValueError, match="no more than 2000"):
        mbs.read_dyn(
            "ENTITY : MACH\nNAME : m\nENTITY : LINK\nNAME : l\nENTITY : SURF\nNAME : s\nTYPE : COURBE\n" + points * 99
        )


def test_a_file_reads_no_other(tmp_path):
    """A text in one line is not a path, unless it is called so."""
    secret = tmp_path / "secret.txt"
    secret.write_text("ENTITY : MACH")
    with pytest.raises(ValueError, match="line 1: expected ENTITY"):
        mbs.read_dyn(str(secret))
    path = tmp_path / "pendulum.DYN"
    path.write_bytes(mbs.write_dyn(with_forces(mbs.Actuator("J", 2.0))).replace("\n", "\r\n").encode() + b"\x1a")
    for given_as in (path, str(path), path.read_bytes()):
        assert float(mbs.read_dyn(given_as).mech.forces[0].function) == 2.0


VALUES = st.sampled_from(
    ["", "0", "-1", "1e-300", "1e59", "1e999", "nan", "12 13", "TRUE", "CONTACT", "cam2_2", ":", "é"]
)
EDIT = st.tuples(
    st.sampled_from(["delete", "double", "swap", "value", "token", "letter", "move"]),
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    VALUES,
    st.characters(codec="utf-8"),
)


def edited(lines: list[str], edit) -> list[str]:
    """A listing with one thing changed."""
    how, i, j, value, letter = edit
    i %= len(lines)
    line, rest = lines[i], lines[i + 1 :]
    words = line.split(" ")
    k = j % (len(words) if how == "token" else len(line) + 1)
    match how:
        case "delete":
            return [*lines[:i], *rest] or [""]
        case "double":
            return [*lines[:i], line, line, *rest]
        case "swap":
            j %= len(lines)
            return [lines[j] if n == i else line if n == j else x for n, x in enumerate(lines)]
        case "move":
            j %= len(lines)
            return [*lines[j:], *lines[:j]]
        case "value":
            return [*lines[:i], f"{line.split(':')[0]}: {value}", *rest]
        case "token":
            return [*lines[:i], " ".join([*words[:k], value, *words[k + 1 :]]), *rest]
    return [*lines[:i], line[:k] + letter + line[k + 1 :], *rest]


def read_or_refuse(text) -> None:
    """A file is read, or refused with a ValueError that tells why."""
    try:
        dyn = quietly(text)
    except ValueError as error:
        assert str(error)
        return
    assert isinstance(dyn, mbs.Dyn)


ONCE = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.mark.long
@settings(ONCE, max_examples=60)
@given(st.sampled_from(sorted(LISTINGS)), st.lists(EDIT, min_size=1, max_size=4))
def test_changed_listings_are_read_or_refused(name, edits):
    lines = LISTINGS[name].splitlines()
    for edit in edits:
        lines = edited(lines, edit)
    read_or_refuse("\n".join(lines) + "\n")


@settings(ONCE, max_examples=200)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).filter(lambda t: not t.lower().endswith(".dyn"))))
def test_noise_is_refused(noise):
    read_or_refuse(noise)
    head = b"ENTITY : MACH\nNAME : m\nENTITY : LINK\n"
    read_or_refuse(head + noise if isinstance(noise, bytes) else head.decode() + noise)
