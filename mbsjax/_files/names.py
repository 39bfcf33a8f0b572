"""The names that a model file gives: what its keys, formulas and measures may refer to."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from .._model.units import is_quantity
from .grammar import types


class Names(NamedTuple):
    """The names of a mechanism.

    - `bodies`: ground among them; `points`, `profiles`: by body.
    - `joints`: their coordinates as they are called in the mechanism; none that are known where the type of a joint is
        not: it is `vague` then.
    - `rubbing`: the contacts, then the joints, that have friction.
    - `forces`: springs, actuators and loads.
    - `dimensions`: the parameters with a tolerance.
    - `quantities`: the parameters that are numbers with a unit, and these.
    - `cams`: the profiles that are cams, as `"body.profile"`: where their tables are, and these.
    """

    bodies: tuple[str, ...]
    points: Mapping[str, tuple[str, ...]]
    profiles: Mapping[str, tuple[str, ...]]
    joints: Mapping[str, tuple[str, ...]]
    contacts: tuple[str, ...]
    gauges: tuple[str, ...]
    rubbing: tuple[str, ...]
    forces: tuple[str, ...] = ()
    vague: tuple[str, ...] = ()
    dimensions: tuple[str, ...] = ()
    quantities: Mapping[str, str] = MappingProxyType({})
    cams: Mapping[str, tuple[tuple[str, ...], dict]] = MappingProxyType({})

    @property
    def coordinates(self) -> tuple[str, ...]:
        return tuple(name for names in self.joints.values() for name in names)

    @property
    def driven(self) -> tuple[str, ...]:
        """What may be driven, or estimated: coordinates, joints and gauges."""
        return tuple(dict.fromkeys([*self.coordinates, *self.joints, *self.gauges]))

    def is_vague(self, name: str) -> bool:
        """Whether it belongs to a joint of which nothing is known."""
        return name.partition(".")[0] in self.vague


def coordinate_names(joint: str, coordinates: Any) -> tuple[str, ...]:
    """The names of the coordinates of a joint in its mechanism: `"O"`, or `"sleeve.angle"` where there are several."""
    return (joint,) if len(coordinates) == 1 else tuple(f"{joint}.{name}" for name in coordinates)


def names_of(document: Mapping[str, Any]) -> Names:
    """The names in the tables of a file, whatever else is wrong with them."""
    table = lambda x: x if isinstance(x, dict) else {}
    sections = ("parameters", "bodies", "joints", "contacts", "gauges", "forces", "tolerances")
    every = {name: table(document.get(name)) for name in sections}
    bodies = {"ground": {}, **{name: table(x) for name, x in every["bodies"].items()}}
    kinds = {name: table(x).get("type") for name, x in every["joints"].items()}
    known = {n: types("joint")[k] for n, k in kinds.items() if isinstance(k, str) and k in types("joint")}
    both = {**every["contacts"], **every["joints"]}
    return Names(
        tuple(bodies),
        {name: tuple(table(x.get("points"))) for name, x in bodies.items()},
        {name: tuple(table(x.get("profiles"))) for name, x in bodies.items()},
        {name: coordinate_names(name, x["coordinates"]) for name, x in known.items()},
        tuple(every["contacts"]),
        tuple(every["gauges"]),
        tuple(name for name, x in both.items() if "friction" in table(x)),
        tuple(every["forces"]),
        vague=tuple(name for name in kinds if name not in known),
        dimensions=tuple(every["tolerances"]),
        quantities={name: x for name, x in every["parameters"].items() if is_quantity(x)},
        cams={
            f"{body}.{name}": (("bodies", body, "profiles", name), profile)
            for body, x in bodies.items()
            for name, profile in table(x.get("profiles")).items()
            if table(profile).get("type") == "cam"
        },
    )
