"""Units: which ones the numbers of a model are in. Nothing is computed with them: they label, and convert what is read.

Imports neither JAX nor pint until a unit has to be converted.
"""

import dataclasses
import functools
import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any


# what a quantity is made of: powers of length, mass, time, angle
KINDS: dict[str, tuple[int, int, int, int]] = {
    "number": (0, 0, 0, 0),
    "length": (1, 0, 0, 0),
    "mass": (0, 1, 0, 0),
    "time": (0, 0, 1, 0),
    "angle": (0, 0, 0, 1),
    "velocity": (1, 0, -1, 0),
    "angular velocity": (0, 0, -1, 1),
    "acceleration": (1, 0, -2, 0),
    "angular acceleration": (0, 0, -2, 1),
    "force": (1, 1, -2, 0),
    "torque": (2, 1, -2, 0),
    "energy": (2, 1, -2, 0),
    "power": (2, 1, -3, 0),
    "impulse": (1, 1, -1, 0),
    "angular impulse": (2, 1, -1, 0),
    "stiffness": (0, 1, -2, 0),
    "torsional stiffness": (2, 1, -2, -1),
    "damping": (0, 1, -1, 0),
    "torsional damping": (2, 1, -1, -1),
    "moment of inertia": (2, 1, 0, 0),
    "pressure": (-1, 1, -2, 0),
}
_BASE = {
    "length": {"m": "1", "cm": "1e-2", "mm": "1e-3", "um": "1e-6", "µm": "1e-6", "km": "1e3", "in": "0.0254"},
    "mass": {"kg": "1", "g": "1e-3", "mg": "1e-6", "t": "1e3", "tonne": "1e3", "lb": "0.45359237"},
    "time": {"s": "1", "ms": "1e-3", "us": "1e-6", "µs": "1e-6", "min": "60", "h": "3600"},
}  # in m, kg, s: labels of these need no pint
_FORCES = {"N": "1", "mN": "1e-3", "µN": "1e-6", "kN": "1e3", "MN": "1e6"}  # in N
_ANGLES = {"rad": 1.0, "deg": 57.29577951308232}
_NAMED = {"force": "N", "energy": "J", "power": "W", "pressure": "Pa"}
_PREFIXES = {
    Fraction(1000) ** k: p for k, p in zip(range(-4, 5), ("p", "n", "µ", "m", "", "k", "M", "G", "T"), strict=True)
}
_QUANTITY = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*((?:[^\W\d]|[°%]).*?)\s*", re.DOTALL)
_WORD = (
    r"\(?\s*(?:[^\W\d_]|[°%_])+(?:\s*(?:\^|\*\*)\s*-?[1-9])?\s*\)?"  # small powers only: they are worked out exactly
)
_UNIT = re.compile(rf"{_WORD}(?:(?:\s*[*/]\s*|\s+){_WORD})*")


@dataclasses.dataclass(frozen=True)
class Units:
    """The units of a model: of length, mass and time. Those of all other quantities follow, so that the equations hold
    as they are: the unit of force is mass times length over time squared. With mm, kg and s it is the millinewton, with
    mm, tonne and s the newton.

    **Arguments:**

    - `length`, `mass`, `time`: `"mm"`, `"kg"`, `"s"`, or any other that [pint](https://pint.readthedocs.io) knows.
    - `angle`: `"rad"` or `"deg"`, in which angles are shown. They are given and computed in radians.
    - `force`: in which forces are shown, such as `"N"`, and with them torques, energies and all else made of a force;
        by default in the unit that follows. Numbers are given and computed in that one all the same.

    `mech.units` are those of a mechanism, `None` where they were not said. Tables, pictures and pages label a quantity
    with `label`, and multiply its numbers by `shown`, which is 1 but for angles in degrees, and where `force` is said.

    !!! Example

        >>> units = Units("mm", "kg", "s", angle="deg")
        >>> units.label("force"), units.label("torque"), units.label("stiffness"), units.label("angular velocity")
        ('mN', 'mN·mm', 'mN/mm', 'deg/s')
        >>> Units("mm", "tonne", "s").label("force")
        'N'
        >>> units.number("5 N/mm", "stiffness"), units.number("2.5 cm")
        (5000.0, 25.0)
        >>> newtons = Units("mm", "kg", "s", force="N")
        >>> newtons.label("force"), newtons.shown("force"), newtons.label("torque"), newtons.label("energy")
        ('N', 0.001, 'N·mm', 'mJ')
    """

    length: str = "m"
    mass: str = "kg"
    time: str = "s"
    angle: str = "rad"
    force: str | None = None

    def __post_init__(self):
        for kind in (*_BASE, "force"):
            self._size(kind)  # complains
        if self.angle not in _ANGLES:
            raise ValueError(f"the unit of angles must be 'rad' or 'deg', got {self.angle!r}")

    @staticmethod
    def of(given: "Units | Mapping[str, str] | None") -> "Units | None":
        """Units, given as they are or by the words of a model file.

        !!! Example

            >>> Units.of({"length": "mm"})
            Units(length='mm', mass='kg', time='s', angle='rad', force=None)
        """
        if given is None or isinstance(given, Units):
            return given
        words = [field.name for field in dataclasses.fields(Units)]
        for word in given:
            if word not in words:
                raise ValueError(
                    f"`units` are those of {', '.join(words)}; that of {word!r} follows from them, or is none"
                )
        return Units(**given)

    def _size(self, kind: str) -> Fraction:
        """The size of a base unit, or of that in which forces are shown, in m, kg and s."""
        unit, known = getattr(self, kind), _BASE.get(kind, _FORCES)
        if kind == "force" and unit is None:
            return self._coherent(KINDS["force"])
        if not isinstance(unit, str) or not unit:
            raise ValueError(f"the unit of {kind} must be a text such as {next(iter(known))!r}, got {unit!r}")
        if unit in known:
            return Fraction(known[unit])
        size, powers = _parsed("1", unit)
        if powers != KINDS[kind][:3]:
            raise ValueError(f"the unit of {kind} cannot be {unit!r}, which is that of {_called(powers)}")
        return size

    def label(self, kind: str) -> str:
        """The unit of a quantity: of a `"length"`, an `"angle"`, a `"velocity"`, a `"force"`, a `"torque"`, an
        `"energy"`, a `"stiffness"` and so on; `""` for a `"number"`.

        !!! Example

            >>> Units().label("energy"), Units("in", "lb", "s").label("force"), Units("mm", "kg", "s").label("power")
            ('J', 'lb·in/s²', 'µW')
        """
        _check(kind)
        base = ((self.mass, 1), (self.length, 0), (self.time, 2))
        powers = KINDS[kind]
        named = self.force if kind == "force" else None
        if kind in _NAMED:
            named = named or self._named(kind)
            if named or self.force is None:
                return named or _product([(unit, powers[k]) for unit, k in base])
        force = self.force or self._named("force")
        if powers[1] and powers[2] <= -1 and force:
            rest = [(self.length, powers[0] - powers[1]), (self.time, powers[2] + 2 * powers[1])]
            return _product([(force, powers[1]), *rest, (self.angle, powers[3])])
        return _product([(self.angle, powers[3]), *((unit, powers[k]) for unit, k in base)])

    def _named(self, kind: str) -> str | None:
        """The unit with a name of its own, with a prefix, if there is one of this size."""
        size = self._coherent(KINDS[kind]) * self._forces(kind)
        return _PREFIXES[size] + _NAMED[kind] if size in _PREFIXES else None

    def _forces(self, kind: str) -> Fraction:
        """How often the unit of force that follows goes into the one in which a quantity of this kind is shown."""
        made = KINDS[kind][1] and KINDS[kind][2] <= -1  # of a force
        return self._size("force") / self._coherent(KINDS["force"]) if made else Fraction(1)

    def _coherent(self, powers: tuple[int, ...]) -> Fraction:
        """The size of a unit made of these, in m, kg, s."""
        return self._size("length") ** powers[0] * self._size("mass") ** powers[1] * self._size("time") ** powers[2]

    def label_of(self, given: str) -> str:
        """The unit in which the number of a quantity is told.

        !!! Example

            >>> Units("mm").label_of("2.5 cm"), Units("mm").label_of("30 deg"), Units("mm").label_of("3 m^4")
            ('mm', 'rad', 'mm⁴')
        """
        found = _QUANTITY.fullmatch(given)
        powers = (0, 0, 0) if found is None else _parsed(found[1], found[2])[1]
        for kind, known in KINDS.items():
            if known[:3] == powers and kind != "number":
                return dataclasses.replace(self, angle="rad", force=None).label(kind)
        return _product([(self.mass, powers[1]), (self.length, powers[0]), (self.time, powers[2])])

    def shown(self, kind: str) -> float:
        """What numbers of this kind are multiplied with to be shown in the unit of `label`.

        !!! Example

            >>> Units(angle="deg").shown("force"), round(Units(angle="deg").shown("angle"), 3)
            (1.0, 57.296)
        """
        _check(kind)
        return _ANGLES[self.angle] ** KINDS[kind][3] * float(1 / self._forces(kind))

    def number(self, given: Any, *kinds: str) -> float:
        """A quantity such as `"25 mm"`, or one of pint, as a number in these units; angles in radians. `kinds` are
        those that are allowed, any if there are none.

        !!! Example

            >>> import math
            >>> math.isclose(Units("mm").number("1200 rpm", "angular velocity"), 40 * math.pi)
            True
            >>> Units("mm").number("3 kg", "length")
            Traceback (most recent call last):
            ...
            ValueError: a length is expected, such as '1 mm', got '3 kg', which is a mass
        """
        return _number(self, str(given), kinds)


def is_quantity(text: Any) -> bool:
    """Whether a text is a number with a unit, and no formula.

    !!! Example

        >>> [is_quantity(x) for x in ("25 mm", "-3e-2 N/mm", "30 deg", "30*deg", "a + 1", 2.0)]
        [True, True, True, False, False, False]
    """
    return isinstance(text, str) and _QUANTITY.fullmatch(text) is not None


def unit_label(units: Units | None, kind: str) -> str:
    """The unit of a quantity of a mechanism, `mech.units` given: of angles always, of others where units were said.

    !!! Example

        >>> unit_label(Units("mm"), "velocity"), unit_label(None, "velocity"), unit_label(None, "angle")
        ('mm/s', '', 'rad')
    """
    return Units().label(kind) if units is None and kind == "angle" else units.label(kind) if units else ""


def angle_number(given: str, *kinds: str) -> float:
    """A quantity where no units are said: an angle, or a number.

    !!! Example

        >>> angle_number("180 deg")
        3.141592653589793
        >>> angle_number("25 mm")
        Traceback (most recent call last):
        ...
        ValueError: '25 mm' needs the units of the model, such as units = {length = "mm", mass = "kg"}
    """
    return _number(None, given, kinds)


def _number(units: Units | None, text: str, kinds: tuple[str, ...]) -> float:
    for kind in kinds:
        _check(kind)
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(f"a number with a unit is expected, such as '25 mm', got {text!r}")
    size, powers = _parsed(found[1], found[2])
    if "angular velocity" in kinds and re.search(r"Hz\b|hertz", text):
        raise ValueError(f"{text!r} could be turns or radians per second: say 'rpm' or 'rad/s'")
    if kinds and powers not in [KINDS[kind][:3] for kind in kinds]:
        such = [f"'1 {units.label(kind)}'" for kind in kinds if units and kind != "number"]
        expected = " or ".join(map(_article, kinds)) + " is expected" + f", such as {' or '.join(such)}" * bool(such)
        raise ValueError(f"{expected}, got {text!r}, which is {_called(powers)}")
    if units is None and any(powers):
        raise ValueError(f'{text!r} needs the units of the model, such as units = {{length = "mm", mass = "kg"}}')
    return float(size if units is None else size / units._coherent(powers))


def _check(kind: str) -> None:
    if kind not in KINDS:
        raise ValueError(f"there is no kind of quantity {kind!r}; there are {', '.join(KINDS)}")


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _called(powers: tuple[int, ...]) -> str:
    """The first kind of quantity with these powers of length, mass and time."""
    for kind, known in KINDS.items():
        if known[:3] == powers:
            return _article(kind) if any(powers) else "an angle or a number"
    return "a " + _product(list(zip(("length", "mass", "time"), powers, strict=True)))


def _product(factors: list[tuple[str, int]]) -> str:
    """Units with their powers as one text.

    !!! Example

        >>> _product([("kg", 1), ("mm", 2), ("s", -2)])
        'kg·mm²/s²'
    """
    power = lambda n: "" if n == 1 else str(n).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    above = "·".join(unit + power(n) for unit, n in factors if n > 0)
    below = "·".join(unit + power(-n) for unit, n in factors if n < 0)
    if not below:
        return above
    return f"{above or '1'}/{f'({below})' if '·' in below else below}"


@functools.cache
def _registry() -> Any:
    try:
        import pint
    except ImportError:
        raise ValueError("numbers with units need pint: pip install 'mbsjax[units]'") from None
    return pint.UnitRegistry(non_int_type=Fraction)  # pyright: ignore


@functools.lru_cache(1000)
def _parsed(number: str, unit: str) -> tuple[Fraction, tuple[int, int, int]]:
    """A quantity in m, kg, s and rad, exactly, and its powers of length, mass and time."""
    text = functools.reduce(
        lambda text, x: text.replace(*x), (("·", "*"), ("°", "deg"), ("²", "^2"), ("³", "^3")), unit
    )
    if len(text) > 80 or not _UNIT.fullmatch(text):
        raise ValueError(f"{unit!r} is no unit: it is made of names, '*', '/' and small powers, as in 'kg*m^2'")
    registry, value = _registry(), float(number)
    if not math.isfinite(value):
        raise ValueError(f"{number} is too large")
    try:
        base = registry.Quantity(Fraction(repr(value)), registry.parse_units(text)).to_base_units()
    except Exception:  # whatever pint says of a text that is none of its units
        raise ValueError(f"{unit!r} is no unit that pint knows") from None
    powers = dict(base.dimensionality)
    found = tuple(int(powers.pop(f"[{kind}]", 0)) for kind in _BASE)
    if powers:
        raise ValueError(f"{unit!r} is not made of length, mass and time")
    return Fraction(base.magnitude), found  # pyright: ignore
