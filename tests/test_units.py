"""Units of a model: what they are called, and what becomes of numbers with units."""

import math
import sys

import pint
import pytest

import mbsjax as mbs
from mbsjax._cli.load import load_model
from mbsjax._files.tables import read_study
from mbsjax._model import units as module
from mbsjax._model.units import KINDS, Units, unit_label


PINT = pint.UnitRegistry()
SYSTEMS = [Units(), Units("mm"), Units("mm", "tonne"), Units("cm", "g", "s"), Units("in", "lb", "ms"), Units("km", "g")]
SHOWN = [Units("mm", force="N"), Units("m", force="kN"), Units("in", "lb", force="lbf")]


@pytest.mark.parametrize("units", [*SYSTEMS, *SHOWN])
@pytest.mark.parametrize("kind", KINDS)
def test_one_of_the_label_is_one_in_the_model(units, kind):
    """A label is right if pint, which knows nothing of it, finds it to be the product of the base units, or what is
    shown in it as one."""
    L, M, T, _ = KINDS[kind]
    coherent = PINT(units.length) ** L * PINT(units.mass) ** M * PINT(units.time) ** T
    label = units.label(kind) or "1"
    for written, read in (("·", "*"), ("²", "**2"), ("³", "**3"), ("⁴", "**4")):
        label = label.replace(written, read)
    shown = units.shown(kind)
    assert math.isclose((PINT(label) / coherent).to("").magnitude * shown, 1.0, rel_tol=1e-14)
    assert (shown == 1) == (units in SYSTEMS or not M or T >= 0)
    if kind != "number":
        assert math.isclose(units.number(f"3 {units.label(kind)}", kind) * shown, 3.0, rel_tol=1e-15)


@pytest.mark.parametrize("units", SYSTEMS)
@pytest.mark.parametrize(
    "text, kind, si",
    [
        ("25 mm", "length", 0.025),
        ("5 N/mm", "stiffness", 5000.0),
        ("1200 rpm", "angular velocity", 40 * math.pi),
        ("-30 deg", "angle", -math.pi / 6),
        ("30°", "angle", math.pi / 6),
        ("2 N m", "torque", 2.0),
        ("2e-3 kg·m²", "moment of inertia", 2e-3),
        ("9.81m/s**2", "acceleration", 9.81),
        ("3 kW", "power", 3000.0),
        ("40 N*m/rad", "torsional stiffness", 40.0),
        (".5 lbf", "force", 0.5 * 0.45359237 * 9.80665),
    ],
)
def test_quantities_become_numbers_of_the_model(units, text, kind, si):
    m, kg, s = (PINT(unit).to_base_units().magnitude for unit in (units.length, units.mass, units.time))
    L, M, T, _ = KINDS[kind]
    assert math.isclose(units.number(text, kind), si / (m**L * kg**M * s**T), rel_tol=1e-14)


def test_numbers_are_exact():
    assert [Units("mm").number(x) for x in ("25 mm", "2.54 cm", "1 in", "0.1 mm")] == [25.0, 25.4, 25.4, 0.1]
    assert Units("mm").number(2.54 * PINT.cm, "length") == 25.4


def test_degrees_are_shown_not_computed():
    units = Units(angle="deg")
    assert units.number("180 deg") == math.pi
    assert units.shown("angular velocity") == 180 / math.pi == 1 / units.shown("torsional stiffness")
    assert units.shown("torque") == 1.0
    assert (unit_label(units, "angular acceleration"), unit_label(None, "force")) == ("deg/s²", "")


@pytest.mark.parametrize(
    "wrong, told",
    [
        (lambda: Units("kg"), "the unit of length cannot be 'kg', which is that of a mass"),
        (lambda: Units("lenght"), "'lenght' is no unit that pint knows"),
        (lambda: Units(""), "the unit of length must be a text such as 'm', got ''"),
        (lambda: Units(angle="turn"), "must be 'rad' or 'deg', got 'turn'"),
        (lambda: Units().label("lenght"), "no kind of quantity 'lenght'"),
        (lambda: Units("mm").number("3 kg", "length", "angle"), "a length or an angle is expected.*'3 kg'.*is a mass"),
        (lambda: Units().number("3"), "a number with a unit is expected"),
        (lambda: Units().number("3 A"), "'A' is not made of length, mass and time"),
        (lambda: Units().number("3 m^99999999"), "'m\\^99999999' is no unit"),
        (lambda: Units().number("1e999 m"), "1e999 is too large"),
        (lambda: Units().number("50 Hz", "angular velocity"), "turns or radians per second: say 'rpm' or 'rad/s'"),
        (lambda: Units(force="kg"), "the unit of force cannot be 'kg', which is that of a mass"),
        (lambda: Units(force=""), "the unit of force must be a text such as 'N', got ''"),
        (lambda: mbs.Mechanism([], [], units={"energy": "J"}), "that of 'energy' follows from them, or is none"),
    ],
)
def test_mistakes_are_named(wrong, told):
    with pytest.raises(ValueError, match=told):
        wrong()


def test_only_conversions_need_pint(monkeypatch):
    monkeypatch.setitem(sys.modules, "pint", None)
    monkeypatch.setattr(module, "_registry", module._registry.__wrapped__)
    assert Units("mm", "tonne", "ms").label("pressure") == "TPa"
    with pytest.raises(ValueError, match=r"need pint: pip install 'mbsjax\[units\]'"):
        Units().number("123.25 mm")


def test_a_mechanism_keeps_its_units():
    mech = mbs.Mechanism([mbs.Body("b")], [mbs.Revolute("O", "ground", "b", play=0.1)], units={"length": "mm"})
    assert mech.units == Units("mm") == mbs.loosened(mech).units
    assert mbs.Mechanism([], []).units is None


FILE = """
gravity = [0, "-9.81 m/s^2"]
units = {length = "mm", mass = "kg", time = "s", angle = "deg", r = "mm", top = "mm"}

[parameters]
crank = "2.5 cm"
r = 5.0
long = "3*crank"
speed = "1200 rpm"
preload = "2 N"
slope = "30 deg"

[bodies.crank]
mass = "250 g"
center = ["crank/2", "1 mm"]
inertia = "3e-5 kg*m^2"
points.pin = ["crank", 0]

[joints.O]
type = "revolute"
body_a = "ground"
body_b = "crank"
frame_a = {x = "1 cm", y = 0, angle = "slope"}
start = "90 deg"

[forces]
twist = {type = "spring", on = "O", stiffness = "1.5 N*m/rad", damping = "2 N*mm*s", free_length = "0.5 turn"}
push = {type = "load", body = "crank", force = ["preload", "3 N"], torque = "1 N*m", point = "pin"}

[drive]
O = "speed*t"

[kinematics]
t1 = "50 ms"
outputs = 3

[tolerances]
crank = "0.1 mm"

[measures]
top = "max(crank.pin.y)"
"""


def test_files_convert_to_the_units_they_say():
    """Every number as it is by hand, in mm, kg, s, mN."""
    model = mbs.loads(FILE)
    mech = model.mechanism()
    assert mech.units == model.system == Units("mm", "kg", "s", "deg")
    assert model.parameters == pytest.approx(
        {"crank": 25, "r": 5, "long": 75, "speed": 40 * math.pi, "preload": 2000, "slope": math.pi / 6}, rel=1e-15
    )
    body, joint, (spring, load) = mech.body("crank"), mech.joint("O"), mech.forces
    assert (body.mass, body.inertia[2, 2]) == (0.25, 30.0) and body.center.tolist() == [12.5, 1.0, 0.0]
    assert (joint.frame_a.x, joint.start[0]) == (10.0, math.pi / 2)
    assert math.isclose(joint.frame_a.angle, math.pi / 6, rel_tol=1e-15)
    assert (spring.stiffness, spring.damping, spring.free_length) == (1.5e6, 2000.0, math.pi)
    assert load.force.tolist() == [2000.0, 3000.0] and load.torque == 1e6 and load.point.tolist() == [25.0, 0.0]
    assert mech.gravity.tolist() == [0.0, -9810.0, 0.0]
    assert model.units == {
        "crank": "mm", "speed": "rad/s", "preload": "mN", "slope": "rad", "r": "mm", "top": "mm"
    }  # fmt: skip


def test_parameters_with_units_are_numbers_that_vary(tmp_path, capsys):
    model = mbs.loads(FILE)
    assert list(model.nominal) == ["crank", "r", "speed", "preload", "slope"]
    assert model.mechanism({"crank": "3 cm"}).body("crank").points["pin"].tolist() == [30.0, 0.0]
    assert float(model.mechanism({"crank": 30.0}).body("crank").points["pin"][0]) == 30.0
    path = tmp_path / "crank.toml"
    path.write_text(FILE)
    assert load_model(path, ("crank=30 mm", "speed = 60 rpm")).parameters["long"] == 90.0
    assert not capsys.readouterr().err
    assert load_model(path, ("preload=80",)).parameters["preload"] == 80.0
    assert capsys.readouterr().err == "note: preload = 80 mN: the file gives it with a unit\n"
    assert read_study(model.reader(), model.document, model.nominal).tolerances == {"crank": 0.1}


def test_units_stay_in_files():
    mech = mbs.loads(FILE).mechanism()
    again = mbs.loads(mbs.dumps(mech, units={"top": "mm"}, measures={"top": "max(crank.pin.y)"}))
    assert again.mechanism().units == mech.units and again.units == {"top": "mm"}


@pytest.mark.parametrize(
    "old, new, told",
    [
        ('mass = "250 g"', 'mass = "250 mm"', "bodies.crank.mass: a mass is expected, such as '1 kg', got '250 mm'"),
        (
            '"1 mm"]',
            '"1 rpm"]',
            "bodies.crank.center: a length is expected, such as '1 mm', got '1 rpm', which is an ang",
        ),
        ('mass = "250 g"', 'mass = "crank"', "bodies.crank.mass: a mass is expected, such as '1 kg', got '2.5 cm'"),
        ('preload = "2 N"', 'preload = "2 N*m"', "forces.push.force: a force is expected.*'2 N.m', which is a torque"),
        ('"1.5 N*m/rad"', '"1.5 N"', "twist.stiffness: a stiffness or a torsional stiffness is expected.* is a force"),
        ('"50 ms"', '"50 mm"', "kinematics.t1: a time is expected, such as '1 s', got '50 mm', which is a length"),
        ('"2.5 cm"', '"2.5 cmm"', "parameters.crank: 'cmm' is no unit that pint knows"),
        ('length = "mm", mass = "kg", time = "s", angle = "deg", ', "", "needs the units of the model, such as units"),
        ('length = "mm"', 'length = "kg"', "units: the unit of length cannot be 'kg'"),
        ('r = "mm", top', 'radius = "mm", top', "the key 'radius' has no meaning here"),
    ],
)
def test_mistakes_in_files_are_named(old, new, told):
    with pytest.raises(mbs.FileError, match=told):
        mbs.loads(FILE.replace(old, new, 1)).check()
