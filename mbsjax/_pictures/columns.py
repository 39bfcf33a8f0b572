"""Units of the columns of results, by their names."""

from .._kinematics.system import system
from .._model.mechanism import Mechanism
from .._model.units import unit_label
from .quantities import PARTS, is_length, moved, pushed, shown
from .table import Table
from .viewer.forces import actors


_WHOLE = {"t": "time", "kinetic": "energy", "potential": "energy", "power": "power"}
_FORCES = ("fx", "fy", "fz", "reaction", "across")
_NOISE = 1e-12


def column_kind(mech: Mechanism, column: str) -> str:
    """What kind of quantity a column of results is, as `mbsjax.Units` calls it.

    !!! Example

        >>> import mbsjax as mbs
        >>> crank = mbs.Mechanism([mbs.Body("crank", points={"P": (1.0, 0.0)})], [mbs.Revolute("A", "ground", "crank")],
        ...                       forces=[mbs.Spring("A", stiffness=2.0, name="s")])
        >>> [column_kind(crank, name) for name in ("A.v", "A.effort", "A.fx", "s.force", "s.length", "crank.P.x")]
        ['angular velocity', 'torque', 'force', 'torque', 'angle', 'length']
    """
    of, _, part = column.rpartition(".")
    turns = {actor.name: actor.turns for actor in actors(mech)}
    length = is_length(mech, of) if of not in turns else not turns[of]
    if column in _WHOLE or part == "power":
        return _WHOLE[part]
    if part in ("q", "v", "a"):
        return "number" if length is None else moved(length, "qva".index(part)).kind
    if part in _FORCES or part == "moment":
        return "torque" if part == "moment" else "force"
    if part in ("effort", "force", "friction"):
        return pushed(length is not False)
    if part in ("length", "sliding"):
        return moved(length is not False, int(part == "sliding")).kind
    if any(of == f"{body.name}.{point}" for body in mech.bodies for point in body.points):
        return "length"
    return PARTS[part].kind if part in PARTS else "number"


def in_units(mech: Mechanism, column: str, x: float) -> tuple[float, str]:
    """A number of a column as it is shown, and its unit."""
    kind = column_kind(mech, column)
    return shown(mech.units, kind) * x, unit_label(mech.units, kind)


def without_noise(mech: Mechanism, values: dict[str, float]) -> dict[str, float]:
    """Values of columns, zero where they are nothing beside the largest of their kind; moments also beside the moment
    of the largest force about the far end of the mechanism."""
    kinds = {name: column_kind(mech, name) for name in values}
    largest = {kind: max(abs(values[name]) for name in values if kinds[name] == kind) for kind in set(kinds.values())}
    if "torque" in largest:
        largest["torque"] = max(largest["torque"], float(system(mech).size) * largest.get("force", 0.0))
    return {name: 0.0 if abs(x) <= _NOISE * largest[kinds[name]] else x for name, x in values.items()}


def table_with_units(title: str, columns: tuple[str, ...], rows: list[tuple]) -> Table:
    """A table with units in its last column, which is left out if there are none."""
    some = any(unit for *_, unit in rows)
    return Table(title, (*columns, "unit") if some else columns, rows if some else [row[:-1] for row in rows])
