"""What a quantity that is read by name is: in words, and which kind of unit it has. All plots ask here."""

from typing import NamedTuple

from .._model.mechanism import Mechanism
from .._model.units import Units, unit_label


class Quantity(NamedTuple):
    """`words` for a title, and the `kind`, as `mbsjax.Units` calls it: `"angle"`, `"force"`, `"number"` for none."""

    words: str
    kind: str


PARTS = {
    "gap": Quantity("gap", "length"),
    "q1": Quantity("place", "number"),
    "q2": Quantity("place", "number"),
    "force": Quantity("force", "force"),
    "static": Quantity("force", "force"),
    "dynamic": Quantity("force", "force"),
    "friction": Quantity("friction", "force"),
    "sliding": Quantity("sliding velocity", "velocity"),
}  # of a contact


def moved(length: bool, rate: int = 0) -> Quantity:
    """How far something is (rate 0), how fast (1), and how much faster (2): along a length, or an angle.

    !!! Example

        >>> moved(True), moved(False, 1).words
        (Quantity(words='travel', kind='length'), 'angular velocity')
    """
    if rate == 0:
        return Quantity("travel", "length") if length else Quantity("angle", "angle")
    kind = "angular " * (not length) + ("velocity", "acceleration")[rate - 1]
    return Quantity(kind, kind)


def pushed(length: bool) -> str:
    """What acts along a length, or an angle."""
    return "force" if length else "torque"


def lengths(mech: Mechanism) -> dict[str, bool]:
    """Which of the coordinates are lengths; the others are angles."""
    return dict(zip(mech.coordinates, (length for joint in mech.joints for length in joint.pair.lengths), strict=True))


def is_length(mech: Mechanism, name: str) -> bool | None:
    """Whether a coordinate or gauge is a length or an angle; None where it is neither, as an Euler parameter."""
    return (lengths(mech) | {gauge.name: bool(gauge.dimension) for gauge in mech.gauges}).get(name)


def quantity(mech: Mechanism, name: str, rate: int = 0) -> Quantity:
    """What a coordinate, a gauge or a part of a contact is: `"D"`, `"sleeve.travel"`, `"C.gap"`, `"C.force"`."""
    base, _, part = name.partition(".")
    if base in [contact.name for contact in mech.contacts]:
        of = PARTS[part or "gap"]
        return of if not rate else moved(True, rate) if of.kind == "length" else Quantity("rate", "number")
    length = is_length(mech, name)
    return Quantity("coordinate", "number") if length is None else moved(length, rate)


def labeled(units: Units | None, words: str, kind: str) -> str:
    """Words with a unit, if there is one.

    !!! Example

        >>> labeled(Units("mm"), "gap", "length"), labeled(None, "gap", "length"), labeled(None, "D", "angle")
        ('gap [mm]', 'gap', 'D [rad]')
    """
    unit = unit_label(units, kind)
    return f"{words} [{unit}]" if unit else words


def shown(units: Units | None, kind: str) -> float:
    """What numbers of a kind are multiplied with to be shown."""
    return 1.0 if units is None else units.shown(kind)
