"""Units of a model: what they are called, and what becomes of numbers with units."""

import math
import sys

import pint
import pytest

import mbsjax as mbs
from mbsjax._model import units as module
from mbsjax._model.units import KINDS, Units, unit_label


PINT = pint.UnitRegistry()
SYSTEMS = [Units(), Units("mm"), Units("mm", "tonne"), Units("cm", "g", "s"), Units("in", "lb", "ms"), Units("km", "g")]


@pytest.mark.parametrize("units", SYSTEMS)
@pytest.mark.parametrize("kind", KINDS)
def test_one_of_the_label_is_one_in_the_model(units, kind):
    """A label is right if pint, which knows nothing of it, finds it to be the product of the base units."""
    L, M, T, _ = KINDS[kind]
    coherent = PINT(units.length) ** L * PINT(units.mass) ** M * PINT(units.time) ** T
    label = units.label(kind) or "1"
    for written, read in (("·", "*"), ("²", "**2"), ("³", "**3"), ("⁴", "**4")):
        label = label.replace(written, read)
    assert math.isclose((PINT(label) / coherent).to("").magnitude, 1.0, rel_tol=1e-14)
    if kind != "number":
        assert math.isclose(units.number(f"3 {units.label(kind)}", kind), 3.0, rel_tol=1e-15)


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
        (lambda: mbs.Mechanism([], [], units={"force": "N"}), "that of 'force' follows from them, or is none"),
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
