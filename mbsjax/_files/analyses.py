"""The analyses that a model file asks for, as functions of its parameters."""

from collections.abc import Callable, Mapping
from typing import Any

from .._dynamics.equilibrium import Equilibrium, Unsteady, equilibrium
from .._dynamics.holding import Holding, holding
from .._dynamics.inverse_dynamics import Efforts, inverse_dynamics
from .._dynamics.solution import Solution
from .._dynamics.state import state
from .._kinematics.motion import Motion, kinematics
from .._model.mechanism import Mechanism
from .build import mechanism, options
from .document import Document
from .errors import FileError
from .read import Reader
from .tables import asked_section, read_counts, read_drive, read_free, read_section, read_times, read_values


def made(file: Document, given: Mapping[str, Any] | None) -> Mechanism:
    """The mechanism."""
    return mechanism(file.reader(given), file.document)


def drivers(file: Document, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Its drivers: numbers, and formulas of `t`."""
    return read_drive(file.reader(given), file.document)


def times(file: Document, of: str, given: Mapping[str, Any] | None) -> Any:
    """The output times of an analysis; none of a position of rest."""
    if of == "equilibrium":
        return ()
    reader, of = file.reader(given), "kinematics" if of == "inverse" else of
    return read_times(reader, read_section(reader, file.document, of), of)


def _values(reader: Reader, table: dict[str, Any], section: str, *keys: str) -> dict[str, Any]:
    return {key: read_values(reader, table, section, key) for key in keys if key in table}


def run_kinematics(file: Document, given: Mapping[str, Any] | None, throw: bool) -> Motion:
    """Its driven motion."""
    return _driven(kinematics, file, given, throw)


def run_inverse(file: Document, given: Mapping[str, Any] | None, throw: bool) -> Efforts:
    """The forces that go with its driven motion."""
    return _driven(inverse_dynamics, file, given, throw)


def _driven(analysis: Callable, file: Document, given: Mapping[str, Any] | None, throw: bool) -> Any:
    reader = file.reader(given)
    table = asked_section(reader, file.document, "kinematics")
    more = read_counts(reader, table, "kinematics") | _values(reader, table, "kinematics", "estimate")
    ts = read_times(reader, table, "kinematics")
    mech, drive = made(file, given), drivers(file, given)
    if not drive and mech.coordinates:
        raise FileError("there is nothing to drive it: a table [drive] is missing", file.source)
    return reader.guarded(("kinematics",), analysis, mech, drive, ts, throw=throw, **more)


def run_equilibrium(file: Document, given: Mapping[str, Any] | None, throw: bool) -> Equilibrium:
    """Where it rests under its forces."""
    reader = file.reader(given)
    table = read_section(reader, file.document, "equilibrium")
    more = read_counts(reader, table, "equilibrium") | _values(reader, table, "equilibrium", "estimate", "fixed")
    if "t" in table:
        more["t"] = reader.number(table["t"], ("equilibrium", "t"))
    mech, drive = made(file, given), _drivers_at_rest(file, given)
    try:
        return reader.guarded(("equilibrium",), equilibrium, mech, drive=drive, throw=throw, **more)
    except FileError as error:
        if not isinstance(error.__cause__, Unsteady):
            raise
        every = " ".join(f"--free {name}" for name in drive)
        listed = ", ".join(f'"{name}"' for name in drive)
        told = f"the drivers of [drive] move, and nothing rests: take them out with {every}, or free = [{listed}] here"
        raise reader.wrong(told, ("equilibrium",)) from error.__cause__


def _drivers_at_rest(file: Document, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The drivers that `[equilibrium]` does not leave out."""
    free = read_free(file.reader(given), file.document)
    return {name: law for name, law in drivers(file, given).items() if name not in free}


def run_simulation(file: Document, given: Mapping[str, Any] | None, throw: bool) -> Solution:
    """Its motion under its forces."""
    from .._dynamics.simulate import simulate  # here, as most do without diffrax

    reader = file.reader(given)
    table = asked_section(reader, file.document, "simulate")
    more = options(reader, table)
    ts = read_times(reader, table, "simulate")
    mech, drive = made(file, given), drivers(file, given)
    begin = _values(reader, table, "simulate", "positions", "velocities", "estimate")
    state0 = lambda: state(mech, drive=drive, throw=throw, **begin)  # while the simulation is compiled
    end = reader.number(table["t1"], ("simulate", "t1")) if "t1" in table else ts[-1]
    return reader.guarded(("simulate",), simulate, mech, state0, end, ts=ts, drive=drive, throw=throw, **more)


def friction_holds(file: Document, given: Mapping[str, Any] | None) -> Holding:
    """Whether friction holds it where it rests, without what `fixed` holds."""
    rest, drive = run_equilibrium(file, given, True), _drivers_at_rest(file, given)
    return file.reader(given).guarded(("equilibrium",), holding, rest.mech, rest.q, fixed=tuple(drive), t=rest.t)


_RUNS = {
    "kinematics": run_kinematics,
    "simulate": run_simulation,
    "inverse": run_inverse,
    "equilibrium": run_equilibrium,
}


def run(file: Document, of: str, given: Mapping[str, Any] | None = None, throw: bool = True) -> Any:
    """One of its analyses by name."""
    return _RUNS[of](file, given, throw)
