"""Model files: formulas, round trips to the last digit, studies and tasks, errors with line and name."""

import math
import pathlib

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax._files.check import check_text
from mbsjax._files.force_readings import happened
from mbsjax._files.formula import names, parse, value
from mbsjax._files.functions import Formula

from . import contacts, impacts, latch, mechanisms
from .contacts import T7


# -- formulas ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, expected",
    [
        ("1 + 2*3 - 4/8", 6.5),
        ("2**3**2", 512.0),
        ("2^3", 8.0),
        ("-2**2", -4.0),
        ("2**-1", 0.5),
        ("-(1 - 3)", 2.0),
        ("sin(30*deg) + cos(pi)", math.sin(math.pi / 6) - 1),
        ("atan2(1, -1)", 3 * math.pi / 4),
        ("hypot(3, 4) + sqrt(2)", 5 + math.sqrt(2)),
        ("max(1, a, 2) + min(a, 3)", 10.0),
        ("clip(9, 0, a)", 7.0),
        ("mean(row) + row[-1] + row[0] + range(row)", 2.5 + 4.0 + 1.0 + 3.0),
        ("`a b`.c + x.y", 5.0),
        ("1e-3*.5", 0.0005),
    ],
)
def test_formulas(text, expected):
    known = {"a": np.float64(7.0), "row": np.array([1.0, 2.0, 3.0, 4.0]), "a b.c": 2.0, "x.y": 3.0}
    assert value(parse(text), known.__getitem__) == pytest.approx(expected, rel=1e-15)


def test_places_from_the_end_count_from_the_last_event():
    times = happened(jnp.array([0.1, 0.4, jnp.inf, jnp.inf]), jnp.array([True, False, True, False]), jnp.inf)
    none = happened(jnp.full(3, jnp.inf), jnp.zeros(3, bool), jnp.inf)
    known = {"C.impact": times, "C.released": none, "row": np.arange(3.0)}
    for text, expected in {
        "C.impact[-1]": 0.4, "C.impact[-2]": 0.1, "C.impact[-3]": np.inf, "C.impact[1]": 0.4, "C.impact[2]": np.inf,
        "last(C.impact) - first(C.impact)": 0.3, "(2*C.impact)[-1]": np.inf, "min(C.impact)": 0.1, "row[-1]": 2.0,
        "C.released[-1]": np.inf, "last(C.released)": np.inf, "last(3)": 3.0,
    }.items():  # fmt: skip
        assert float(value(parse(text), known.__getitem__)) == pytest.approx(expected, rel=1e-15), text
    with pytest.raises(ValueError, match="there is no place -5 in a row of shape"):
        value(parse("C.impact[-5]"), known.__getitem__)


@pytest.mark.parametrize(
    "text",
    [
        "", "(", "1 +", "2 3", "f(1)", "sin()", "sin(1, 2)", "a..b", "a[1.5]", "a[b]", "1 if 2 else 3", "a = 1", "a; b",
        "__import__('os')", "'x'", "lambda: 1", "a.__class__()", "[1]", "{}", "1" * 5000, "+".join(["1"] * 400),
        "(" * 200 + "1" + ")" * 200, "-" * 200 + "1", "2**" * 100 + "2",
    ],
)  # fmt: skip
def test_what_is_no_formula_is_refused(text):
    with pytest.raises(ValueError):
        value(parse(text), {"a": np.float64(1.0)}.__getitem__)


def test_formulas_have_derivatives():
    tension = Formula("k*x**3 + sin(a*x)", ("x",), {"k": 2.0, "a": 0.5})
    assert names(tension.tree) == ("k", "x", "a")
    slope = jax.grad(tension)(jnp.array(1.5))
    assert slope == pytest.approx(6 * 1.5**2 + 0.5 * math.cos(0.75), rel=1e-14)
    by_k = eqx.filter_grad(lambda f: f(jnp.array(1.5)))(tension).numbers["k"]
    assert by_k == pytest.approx(1.5**3, rel=1e-14)
    assert jax.grad(Formula("x**2", ("x",), {}))(jnp.array(0.0)) == 0.0


# -- round trips ---------------------------------------------------------------------------------------------


def every_joint() -> mbs.Mechanism:
    """A tree of bodies, one joint of every kind."""
    pin = mbs.JointFriction(1 / 7, radius=1 / 3)
    guide = mbs.JointFriction(0.1, 0.2, length=1 / 3, guide="b", stribeck=0.3, viscous=0.4)
    frame = mbs.frames.from_axis((0.1, 0.2, 0.3), (1.0, 2.0, -0.5))
    makers = [
        lambda *a: mbs.Revolute(*a, (0.1, 0.2, 1 / 3), axis=(1.0, 1.0, 1.0), start=0.1, friction=pin),
        lambda *a: mbs.Prismatic(*a, frame, frame, start=0.7, friction=guide),
        lambda *a: mbs.Cylindrical(*a, axis=(0.0, 1.0, 0.0)),
        lambda *a: mbs.Screw(*a, lead=1 / 3, friction=mbs.DryTorque(1 / 7, 0.2)),
        lambda *a: mbs.Spherical(*a, (0.0, 0.0, 1.0)),
        lambda *a: mbs.Universal(*a, frame),
        lambda *a: mbs.Planar(*a, mbs.at(0.1, 0.2, 0.3), start=(0.1, 0.2, 0.3)),
        lambda *a: mbs.Free(*a),
        lambda *a: mbs.Fixed(*a, frame),
        lambda *a: mbs.PinSlot(*a, axis=(1.0, 2.0)),
        lambda *a: mbs.Gear(*a, radii=(0.2, 0.3)),
        lambda *a: mbs.Gear(*a, ratio=1 / 7, internal=True),
        lambda *a: mbs.Rolling(*a, radii=(0.5, 0.3), internal=True),
        lambda *a: mbs.RackPinion(*a, radius=0.25, axis=(0.0, 1.0)),
        lambda *a: mbs.RevoluteRevolute(*a, length=1 / 9),
        lambda *a: mbs.RevoluteRevolute(*a, length=1 / 9, crossed=True),
        lambda *a: mbs.RevoluteSpherical(*a, length=0.2),
        lambda *a: mbs.RevoluteCylindrical(*a),
        lambda *a: mbs.RevoluteTranslational(*a),
        lambda *a: mbs.Strut(*a),
    ]
    bodies = [
        mbs.Body(f"b{i}", mass=1 / (i + 3), center=(0.1, 0.2, i), inertia=(1.0, 1.1, 1.2, 0.01, 0.02, 0.03))
        for i in range(len(makers))
    ]
    joints = [make(f"J{i}", "ground" if i == 0 else f"b{i - 1}", f"b{i}") for i, make in enumerate(makers)]
    gauges = [
        mbs.Distance("d", "b0", "b3", (0.1, 0.0, 1 / 3), value=0.9),
        mbs.Offset("o", "b0", "b2", axis=(1.0, 2.0, 3.0), axis_body="b1"),
    ]
    return mbs.Mechanism(bodies, joints, gauges, gravity=(0.0, 0.1, -9.81))


def every_profile() -> mbs.Mechanism:
    """A body with a profile of every kind, and every contact law."""
    turn = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = np.stack([3 * np.cos(turn), 2 * np.sin(turn)], 1)
    lift = mbs.Program(
        [
            mbs.Rise(mbs.SplineLaw.like("cycloidal", 4), 2.0, 5.0),
            mbs.Dwell(1.0),
            mbs.Fall("poly345", 2 * np.pi - 3, 5.0),
        ]
    )
    cam = mbs.Cam(lift, mbs.Translating(mbs.Roller(5.0), offset=2.0), 30.0)
    swing = mbs.Program([mbs.Rise("harmonic", np.pi, 0.2), mbs.Fall(mbs.PolynomialLaw([0.1, 0.2]), np.pi, 0.2)])
    rocker = mbs.Cam(swing, mbs.Oscillating(mbs.FlatFace(30.0), pivot=40.0, arm=35.0), 20.0)
    wheel = mbs.geneva(4, 100.0, 5.0)
    square = [(0.0, 0.0), (4.0, 0.0), (4.0, 3.0), (0.0, 3.0)]
    snail = mbs.Polynomial((1.0, 0.2, 0.03), (0, 1, 2), 0.0, 2.0, reference=0.3, scale=1.5, center=(0.1, 0.2))
    profiles = {
        "disc": mbs.disc(1 / 3, (0.1, 0.2)),
        "bore": mbs.bore(2.0),
        "eccentric": mbs.eccentric(2.0, 0.5, 0.3),
        "slot": mbs.slot((0.0, 0.0), (10.0, 1.0), 4.0),
        "mouth": mbs.slot((0.0, 0.0), (10.0, 0.0), 4.0, mouth=True),
        "plate": mbs.polygon(square, (1.0, 0.0, 0.5, 0.2)),
        "window": mbs.polygon(square[::-1], 0.3, hole=True, frame=mbs.at(1.0, 2.0, 0.4)),
        "rim": mbs.from_table(ring),
        "cam": cam.profile(),
        "roller": cam.follower_profile(),
        "flat cam": rocker.profile(),
        "face": rocker.follower_profile(),
        "gear": mbs.involute_gear(2.0, 17, shift=0.1),
        "flank": mbs.involute_flank(2.0, 17),
        "ratchet": mbs.ratchet_wheel(12, 10.0, 8.0),
        "pawl": mbs.pawl(10.0, 1.0, 2.0),
        "star": wheel.wheel,
        "lock": wheel.lock,
        "knife": mbs.Profile.chain([mbs.Point((0.1, 0.2), normal=(1.0, 2.0), turn=2.5)], closed=False),
        "snail": mbs.Profile.chain([snail], closed=False),
        "oval": mbs.deviated(mbs.disc(2.0), [0.0, 0.0, 0.1, 0.0]),
        "in space": mbs.Profile.chain(
            [mbs.Circle((0.0, 0.0), 1.0)], frame=mbs.frames.from_axis((1.0, 2, 3), (0, 1.0, 0))
        ),
    }
    bodies = [mbs.Body("ground", profiles=profiles), mbs.Body("bob", points={"tip": (1 / 3, 2 / 3)}, profiles=profiles)]
    laws = [
        mbs.Hertz(2e5), mbs.KelvinVoigt(1e5, 30.0), mbs.HuntCrossley(1e5, 0.3, 1.4), mbs.LankaraniNikravesh(1e5, 0.7),
    ]  # fmt: skip
    more = [
        {"active": True, "hold": "push", "restitution": 1 / 7, "moves": "float.angle"},
        {"hold": "press", "elements_a": (0,), "elements_b": (0,), "friction": 1 / 7},
        {"friction": mbs.Coulomb(0.1, 0.2, stribeck=1 / 3, viscous=0.4)},
        *({"law": law} for law in laws),
    ]
    joints = [mbs.Planar("float", "ground", "bob", start=(0.0, 9.0, 9.0))]
    joints += [mbs.Contact(f"C{i}", "ground.disc", "bob.disc", **options) for i, options in enumerate(more)]
    gauges = [mbs.Angle("tilt", "ground", "bob"), mbs.Offset("high", "ground", "bob", axis=(0.0, 1.0))]
    forces = [
        mbs.Spring("high", stiffness=3.0, damping=0.1, preload=-2.0, free_length=0.3, acts="tension", name="s"),
        mbs.Spring(mbs.Distance("l", "ground", "bob", (1.0, 2.0)), stiffness=1 / 3),
        mbs.Actuator("tilt", 2.5),
        mbs.Load("bob", force=(1.0, 2.0), torque=0.3, point=(0.1, 0.0), fixed_in="body"),
    ]
    return mbs.Mechanism(bodies, joints, gauges, forces=forces)


MECHANISMS = {
    "slider-crank": mechanisms.slider_crank,
    "slider-crank of two bodies": mechanisms.two_body_slider_crank,
    "four-bar": mechanisms.four_bar,
    "gears": mechanisms.gear_slider,
    "spatial slider-crank": mechanisms.spatial_slider_crank,
    "thesis cam": contacts.t3_cam,
    "geneva": contacts.geneva_drive,
    "ratchet": contacts.ratchet,
    "T7": lambda: contacts.crank_slider_and_four_bar(T7),
    "latch": lambda: eqx.tree_at(lambda m: m.forces, latch.latch(), ()),  # its finger is a Python function
    "flat follower": impacts.flat_follower,
    "ball": impacts.ball,
    "four-bar of two bodies": mechanisms.two_body_four_bar,
    "every joint": every_joint,
    "every profile": every_profile,
}


@pytest.mark.long
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_comes_back_to_the_last_digit(name):
    mech = MECHANISMS[name]()
    text = mbs.dumps(mech, title=name)
    again = mbs.loads(text).mechanism()
    assert bool(eqx.tree_equal(mech, again))
    assert mbs.dumps(again, title=name) == text


def test_functions_of_python_cannot_be_written():
    with pytest.raises(ValueError, match="'actuator on R13' is a Python function"):
        mbs.dumps(latch.latch())
    curve = mbs.Profile.chain([mbs.Curve(lambda s: (s, s**2))], closed=False)
    mech = mbs.Mechanism([mbs.Body("bob", profiles={"rim": curve})], [mbs.Revolute("O", "ground", "bob")])
    with pytest.raises(ValueError, match="element 0 of profile 'rim' of body 'bob' is a Curve"):
        mbs.dumps(mech)


# -- what a file asks for ------------------------------------------------------------------------------------

FOUR_BAR = """
title = "Crank and rocker"
gravity = [0, -9.81]

[parameters]
crank = 1.0      # m
coupler = "3*crank"
rocker = 2.5
base = 3.5
speed = 2.0

[bodies.crank]
mass = "2*crank"
center = ["crank/2", 0]
inertia = 0.2

[bodies.coupler]
mass = 1.0
inertia = 0.5
points.E = ["coupler/2", 1.0]

[bodies.rocker]
mass = 1.0
inertia = 0.3

[joints.A]
type = "revolute"
body_a = "ground"
body_b = "crank"

[joints.B]
type = "revolute"
body_a = "crank"
body_b = "coupler"
frame_a = ["crank", 0]

[joints.C]
type = "revolute"
body_a = "coupler"
body_b = "rocker"
frame_a = ["coupler", 0]
frame_b = ["rocker", 0]

[joints.D]
type = "revolute"
body_a = "ground"
body_b = "rocker"
frame_a = ["base", 0]
start = "90*deg"

[forces.return]
type = "spring"
on = "D"
stiffness = "3*x + x**3"
damping = "0.1*v"
free_length = 1.5

[forces.motor]
type = "actuator"
on = "A"
function = "4*s1 - 0.5*v"
switches = ["1 - t"]

[forces.wind]
type = "load"
body = "coupler"
force = ["-0.2*A.v", "sin(t)"]

[drive]
A = "speed*t"

[kinematics]
t1 = "2*pi/speed"
outputs = 13

[simulate]
t1 = 0.4
outputs = 3
velocities = {A = "speed"}
triggers.passed = {function = "A.q - 0.1*A.v - 0.2", stop = false}

[tolerances]
crank = 0.01
rocker = {type = "uniform", tol = 0.02}

[measures]
swing = "(max(D) - min(D))/deg"
top = "coupler.E.y[3] + 0*crank"
quick = "max(abs(D.v))/speed"

[limits]
swing = [40, inf]

[synthesis]
starts = 3
seed = 1

[synthesis.variables]
crank = [0.5, 1.2]

[synthesis.goals.swing]
measure = "(max(D) - min(D))/deg"
target = 45

[synthesis.conditions.turns]
measure = "base + rocker - crank - coupler"
lower = 0.1
"""


def by_hand(crank=1.0) -> mbs.Mechanism:
    """The linkage of the file in Python."""
    return mbs.Mechanism(
        [
            mbs.Body("crank", mass=2 * crank, center=(crank / 2, 0.0), inertia=0.2),
            mbs.Body("coupler", mass=1.0, inertia=0.5, points={"E": (1.5 * crank, 1.0)}),
            mbs.Body("rocker", mass=1.0, inertia=0.3),
        ],
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "crank", "coupler", (crank, 0.0)),
            mbs.Revolute("C", "coupler", "rocker", (3 * crank, 0.0), (2.5, 0.0)),
            mbs.Revolute("D", "ground", "rocker", (3.5, 0.0), start=np.pi / 2),
        ],
        forces=[
            mbs.Spring(
                "D", stiffness=lambda x: 3 * x + x**3, damping=lambda v: 0.1 * v, free_length=1.5, name="return"
            ),
            mbs.Actuator(
                "A", lambda x, v, t, on: 4.0 * on[0] - 0.5 * v, switches=[lambda x, v, t: 1 - t], name="motor"
            ),
            mbs.Load("coupler", force=lambda t, at: (-0.2 * at["A"].v, jnp.sin(t)), name="wind"),
        ],
        gravity=(0.0, -9.81),
    )


@pytest.fixture(scope="module")
def model() -> mbs.Model:
    return mbs.loads(FOUR_BAR, source="four_bar.toml")


def test_parameters_may_be_formulas(model):
    assert model.title == "Crank and rocker"
    assert model.parameters == {"crank": 1.0, "coupler": 3.0, "rocker": 2.5, "base": 3.5, "speed": 2.0}
    assert list(model.nominal) == ["crank", "rocker", "base", "speed"]
    assert model.mechanism({"crank": 1.1}).joint("C").frame_a.x == pytest.approx(3.3, rel=1e-15)
    assert mbs.loads("[parameters]\na = 'b + 1'\nb = '2*c'\nc = [1, 2]").parameters["a"].tolist() == [3.0, 5.0]


def test_motion_of_a_file(model):
    expected = mbs.kinematics(by_hand(), {"A": mbs.constant_speed(2.0)}, jnp.linspace(0.0, np.pi, 13))
    motion = model.kinematics()
    np.testing.assert_allclose(motion.q, expected.q, atol=1e-13)
    frame, dataset = motion.to_pandas(), motion.to_xarray()
    assert list(frame.columns)[:5] == ["A.q", "B.q", "C.q", "D.q", "A.v"]
    np.testing.assert_array_equal(frame.index, motion.ts)
    np.testing.assert_array_equal(frame["D.a"], motion["D"].a)
    np.testing.assert_array_equal(dataset["C.v"].sel(t=0.0), motion["C"].v[0])


@pytest.mark.long
def test_simulation_of_a_file(model):
    """With functions of position, rate, time and state, switches and triggers given as formulas."""
    free = mbs.loads(FOUR_BAR.replace('A = "speed*t"', ""))
    sol, mech = free.simulate(), by_hand()
    expected = mbs.simulate(
        mech, mbs.state(mech, velocities={"A": 2.0}), 0.4, ts=jnp.linspace(0.0, 0.4, 3),
        triggers=[mbs.Trigger("passed", lambda at: at["A"].q - 0.1 * at["A"].v - 0.2)],
    )  # fmt: skip
    np.testing.assert_allclose(sol.q, expected.q, atol=1e-9)
    told = [[str(e) for e in s.events.list(mech, s.triggers)] for s in (sol, expected)]
    assert told[0] == told[1] and "'passed' triggered" in told[0][0]


@pytest.mark.long
def test_study_and_task_of_a_file(model):
    study = model.study()
    motion = model.kinematics()
    values = dict(zip(study.columns, study.at_nominal.values.tolist()))
    assert values["swing"] == pytest.approx(float(jnp.rad2deg(jnp.ptp(motion["D"].q))), rel=1e-12)
    assert values["top"] == pytest.approx(float(motion.point("coupler", "E").q[3, 1]), rel=1e-12)
    assert values["quick"] == pytest.approx(float(jnp.max(jnp.abs(motion["D"].v))) / 2, rel=1e-12)
    assert study.names == ("crank", "rocker") and study.lower.tolist() == [40.0, -math.inf, -math.inf]
    assert isinstance(study.distributions[1], mbs.Uniform)
    slope = mbs.first_order(study).slopes[0, 0]
    less, more = (np.ptp(model.kinematics({"crank": 1.0 + h})["D"].q) for h in (-1e-5, 1e-5))
    assert slope == pytest.approx(np.rad2deg(more - less) / 2e-5, rel=1e-6)
    found = mbs.synthesize(model.task(), **model.search())
    crank = found.best.dimensions["crank"]
    assert np.rad2deg(np.ptp(model.kinematics({"crank": crank})["D"].q)) == pytest.approx(45.0, abs=1e-8)


# -- errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "old, new, at, path, told",
    [
        ('frame_a = ["crank", 0]', 'frame_a = ["cranc", 0]', None, "joints.B.frame_a", "did you mean 'crank'"),
        ('type = "spring"', 'type = "sprung"', None, "forces.return.type", "did you mean 'spring'"),
        ("inertia = 0.5", "inertias = 0.5", None, "bodies.coupler.inertias", "did you mean 'inertia'"),
        ("mass = 1.0", "mass = -1.0", "[bodies.coupler]", "bodies.coupler", "must not be negative"),
        ('body_a = "ground"', 'body_a = "grund"', None, "joints.A.body_a", "unknown body 'grund'"),
        ('on = "D"', 'on = "E"', None, "forces.return.on", "unknown coordinate or gauge 'E'"),
        ("rocker = 2.5", 'rocker = "2*rocker"', None, "parameters.rocker", "depends on itself"),
        ("speed = 2.0", "speed = true", None, "parameters.speed", "got True"),
        ("outputs = 13", "outputs = 13000000", None, "kinematics.outputs", "from 2 to 100000"),
        ('top = "coupler.E.y[3]', 'top = "coupler.F.y[3]', None, "measures.top", "unknown reading 'coupler.F.y'"),
        ("swing = [40, inf]", "swings = [40, inf]", None, "limits.swings", "did you mean 'swing'"),
        ("crank = 0.01", "coupler = 0.01", None, "tolerances.coupler", "unknown parameter that is a number 'coupler'"),
        ("[drive]", "[drives]", None, "drives", "did you mean 'drive'"),
        ("target = 45", "target = 45 45", None, "", ""),
        ('start = "90*deg"', "friction = {slidin = 0.1, radius = 2}", None, "joints.D.friction.slidin", "'sliding'"),
        ('start = "90*deg"', "friction = {torque = 0.1}", None, "joints.D.friction.torque", "there are dry, static"),
        ('start = "90*deg"', "friction = {radius = 0.1}", None, "joints.D.friction", "or 'dry', a torque or a force"),
        ('start = "90*deg"', "friction = {sliding = -1}", None, "joints.D.friction", "must not be negative"),
        ('start = "90*deg"', "friction = {sliding = 0.1}", "[joints.D]", "joints.D", "'D' needs a radius"),
        ('start = "90*deg"', "friction = 0.1", None, "joints.D.friction", "a table is expected, got 0.1"),
        ('quick = "max(abs(D.v))', 'quick = "max(abs(D.friction))', None, "measures.quick", "'D' has no friction"),
        ("outputs = 3", 'restitution = "poison"', None, "simulate.restitution", '"poisson" is expected'),
    ],
)
def test_errors_have_line_and_name(old, new, at, path, told):
    assert old in FOUR_BAR
    text = FOUR_BAR.replace(old, new, 1)
    with pytest.raises(mbs.FileError, match="four_bar.toml, line") as caught:
        broken = mbs.loads(text, source="four_bar.toml")
        broken.check()
        broken.study()
    assert text.splitlines()[caught.value.line - 1].startswith(at or new)
    assert ".".join(caught.value.path) == path and told in str(caught.value)


def test_all_mistakes_are_told_at_once():
    """By line, each once, whatever follows from it; a mistake that only a constructor finds is not among them."""
    changes = {
        'coupler = "3*crank"': 'coupler = "2*base"',
        "base = 3.5": 'base = "coupler/2"',  # a circle: what is made of it is not told too
        "speed = 2.0": 'speed = "2*("',
        'center = ["crank/2", 0]': 'center = ["cranc/2", 0]',
        "inertia = 0.2": "inertias = 0.2",
        'type = "spring"': 'type = "sprung"',
        'on = "A"': 'on = "Z"',
        'body = "coupler"': 'bodi = "coupler"',  # nor that `body` is missing
        'A = "speed*t"': 'Q = "speed*t"',
        "outputs = 13": "outputs = 1.5",
        'velocities = {A = "speed"}': "velocities = {Z = 1}",
        'triggers.passed = {function = "A.q - 0.1*A.v - 0.2"': 'triggers.passed = {function = "1 + 1"',
        "crank = 0.01": "crunk = 0.01",
        'top = "coupler.E.y[3]': 'top = "coupler.F.y[3]',
        "swing = [40, inf]": "swing = [40, 30, 20]",
        "crank = [0.5, 1.2]": "crank = [1.2, 0.5]",
        "lower = 0.1": "lowest = 0.1",
        "mass = 1.0": "mass = -1.0",
    }
    text = FOUR_BAR
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new, 1)
    mistakes, _ = check_text(text, "four_bar.toml")
    lines = [text.splitlines()[error.line - 1] for error in mistakes]
    silent = ['base = "coupler/2"', "mass = -1.0"]
    told = tuple(x for x in changes.values() if x not in silent)
    expected = [line for line in text.splitlines() if line.startswith(told)]
    assert lines == expected
    assert len({error.path for error in mistakes}) == len(mistakes) == len(changes) - len(silent)
    assert "coupler -> base -> coupler" in str(mistakes[0]) and "a pair [lower, upper] is expected" in str(mistakes[-3])
    for old in ('coupler = "3*crank"', "speed = 2.0"):
        text = text.replace(changes[old], old)
    with pytest.raises(mbs.FileError) as caught:
        mbs.loads(text, source="four_bar.toml").check()
    assert [str(caught.value), *caught.value.__notes__] == [str(x) for x in mistakes[2:]]


def test_friction_of_contacts():
    """A coefficient, perhaps a formula, or a table; what is wrong with it is told by the name of the contact."""
    text = """
    [parameters]
    mu = 0.2
    [bodies.ground.profiles]
    rim = {type = "disc", radius = 1.0}
    [bodies.ball.profiles]
    rim = {type = "disc", radius = 1.0}
    [joints]
    float = {type = "planar", body_a = "ground", body_b = "ball", start = [3, 0, 0]}
    [contacts]
    C = {profile_a = "ground.rim", profile_b = "ball.rim", friction = FRICTION}
    """

    def made(friction, **given):
        return mbs.loads(text.replace("FRICTION", friction)).mechanism(given).contact("C").friction

    assert bool(eqx.tree_equal(made("0.3"), mbs.Coulomb(0.3)))
    assert bool(eqx.tree_equal(made('"2*mu"', mu=0.3), mbs.Coulomb(0.6)))
    law = made('{sliding = "mu", static = "mu + 0.1", stribeck = 0.5, viscous = 2}')
    assert bool(eqx.tree_equal(law, mbs.Coulomb(0.2, 0.2 + 0.1, stribeck=0.5, viscous=2.0)))
    for wrong, told in {
        "{sliding = 0.3, static = 0.2}": "line 11, contacts.C.friction: the static coefficient .* 0.2 < 0.3",
        "{sliding = 0.3, radius = 0.2}": "contacts.C.friction.radius: the key 'radius' has no meaning here",
        "{static = 0.3}": "contacts.C.friction: 'sliding' is missing",
        "[0.1, 0.2]": "contacts.C: the .* must be one number",
        "true": "contacts.C.friction: a number, a formula or an array is expected, got True",
    }.items():
        with pytest.raises(mbs.FileError, match=told):
            made(wrong)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(mbs.FileError, match="there is no such file"):
        mbs.load(tmp_path / "nothing.toml")
    with pytest.raises(mbs.FileError, match="directory"):
        mbs.load(tmp_path)
    file = tmp_path / "model.toml"
    file.write_bytes(b"title = 'x'\n\xff\xfe")
    with pytest.raises(mbs.FileError, match="line 2: it is not a text in UTF-8"):
        mbs.load(file)
    file.write_bytes(b"#" * (1 << 20) + b"#")
    with pytest.raises(mbs.FileError, match="larger than"):
        mbs.load(file)
    for text in ("x = " + "[" * 5000, "x = " + "9" * 10000, "a" + ".a" * 5000 + " = 1"):
        with pytest.raises(mbs.FileError):
            mbs.loads(text)


def test_files_read_no_other_files(tmp_path):
    """Where a table of points is expected, a text is a formula, never a path."""
    secret = tmp_path / "secret.csv"
    secret.write_text("0,0\n1,0\n1,1\n0,1\n")
    for given in (str(secret), "secret", "`secret.csv`"):
        with pytest.raises(mbs.FileError, match="bodies.bob.profiles.rim.points"):
            mbs.loads(f"[bodies.bob.profiles.rim]\ntype = 'table'\npoints = {given!r}").mechanism()


WITH_CONTACT = """
[bodies.ground.profiles.floor]
type = "chain"
closed = false
elements = [{type = "line", start = [1, 0], end = [-1, 0]}]
[bodies.ball]
mass = 1.0
profiles.rim = {type = "disc", radius = 0.1}
[joints]
y = {type = "prismatic", body_a = "ground", body_b = "ball", axis = [0, 1], start = 1}
[contacts]
C = {profile_a = "ground.floor", profile_b = "ball.rim"}
[drive]
y = "1 - 0.1*t"
[kinematics]
t1 = 1
[simulate]
t1 = 1
[measures]
a = "MEASURE"
"""


@pytest.mark.parametrize(
    "measure, name, told_by",
    [
        ("max(C.force)", "C.force", "simulate inverse"),
        ("C.impulse[0]", "C.impulse", "simulate"),
        ("max(y.reaction)", "y.reaction", "simulate inverse"),
        ("energy[0]", "energy", "simulate inverse"),
    ],
)
def test_measures_are_taken_of_an_analysis_that_tells_them(measure, name, told_by):
    text = WITH_CONTACT.replace("MEASURE", measure)
    assert mbs.loads(text).analysis == "simulate"
    said = mbs.loads(text + '[study]\nof = "kinematics"\n', source="ball")
    remedy = " or ".join(f'of = "{of}"' for of in told_by.split())
    for check in (said.check, lambda: said.check_measures("kinematics")):
        with pytest.raises(mbs.FileError) as error:
            check()
        told = f"measures.a: the analysis 'kinematics' does not tell '{name}': it takes {remedy} in [study]"
        assert str(error.value).endswith(told)
    said.check_measures("simulate")  # which prints none


def test_measures_are_taken_of_the_first_analysis_if_it_tells_them():
    for measure in ("last(y)", "C.gap[0]", "C.impact[0]", "y.nothing"):  # `check` complains of the last
        assert mbs.loads(WITH_CONTACT.replace("MEASURE", measure)).analysis == "kinematics"
    driven = WITH_CONTACT.replace("MEASURE", "C.impulse[0]").replace("[simulate]\nt1 = 1\n", "")
    with pytest.raises(mbs.FileError, match=r'it takes of = "simulate" in \[study\], and a table \[simulate\]'):
        mbs.loads(driven).check()


EXAMPLES = pathlib.Path(mbs.__file__).parent / "examples"


@pytest.mark.parametrize(
    "right, wrong, told",
    [
        ('t1 = "2*pi/speed"', "t1 = -10", "line 70, kinematics.t1: it must end after it begins, at t = 0, got -10"),
        ('t1 = "2*pi/speed"', "ts = [0.0, 1.0, 0.5]", "line 70, kinematics.ts: the output times must increase"),
        ("coupler = 0.02", "coupler = -3", "line 76, tolerances.coupler: a tolerance must be positive, got -3"),
        ("coupler = 0.02", "coupler = [0.1, -0.1]", "tolerances.coupler: the limits are in the wrong order: 0.1, -0.1"),
        ("coupler = 0.02", "coupler = true", "tolerances.coupler: a number, a formula or an array is expected"),
    ],
)
def test_numbers_out_of_range_are_told_with_their_place(right, wrong, told):
    text = (EXAMPLES / "four_bar.toml").read_text()
    assert text.count(right) == 1
    mistakes, _ = check_text(text.replace(right, wrong), "four_bar.toml")
    assert len(mistakes) == 1 and told in str(mistakes[0])


def test_a_unit_that_is_none_is_told_once_with_its_place():
    text = "[units]\nlength = 'mm'\n[parameters]\ncrank = '240 mmm'\n[bodies.rod]\ncenter = ['crank', 0]\n"
    mistakes, _ = check_text(text, "rod.toml")
    assert [str(m) for m in mistakes] == ["rod.toml, line 4, parameters.crank: 'mmm' is no unit that pint knows"]


def test_an_analysis_that_a_file_is_not_made_for_points_to_those_it_is():
    told = r"geneva.toml: there is no table \[simulate\] in this file; there is \[kinematics\]: take `kinematics`"
    with pytest.raises(mbs.FileError, match=told):
        mbs.load(EXAMPLES / "geneva.toml").simulate()
