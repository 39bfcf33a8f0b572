"""Model files: a mechanism in TOML, with what to do with it."""

import os
import pathlib
import re
import tomllib
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._dynamics.solution import Solution
from .._dynamics.state import state
from .._kinematics.motion import Motion, kinematics
from .._model.mechanism import Mechanism, unknown
from .._synthesis.goal import Within
from .._synthesis.task import Task
from .._tolerance.play.parts import PlayParts, play_parts
from .._tolerance.play.study import play_study
from .._tolerance.study import Study
from .lines import line_numbers
from .measures import Measure
from .read import FileError, Reader, mechanism, parameters
from .tables import (
    GOALS,
    KEYS,
    KINEMATICS,
    SIMULATE,
    SYNTHESIS,
    TABLES,
    needed_table,
    read_counts,
    read_limits,
    read_measures,
    read_options,
    read_times,
    read_together,
    read_values,
)


_ENTRY = re.compile(r"^(\s*[\w-]+\s*=\s*)([^#]*?)(\s*(?:#.*)?)$")
LARGEST = 1 << 20  # bytes of a file


class Model:
    """A mechanism as a file describes it, and what to do with it. Made by [`mbsjax.load`][] and [`mbsjax.loads`][].

    - `title`, `document`: its title, and the tables of the file as they are.
    - `parameters`: its numbers by name, formulas worked out.

    What it makes is a function of the parameters that are given as numbers: pass some of them, by name, to have others
    than the file's. They may be traced: `jax.grad(lambda r: model.kinematics({"crank": r})["P"].q[-1])(1.0)`.

    !!! Example

        >>> model = loads('''
        ... [parameters]
        ... length = 0.5
        ... [bodies.bob]
        ... mass = 1.0
        ... center = ["length", 0]
        ... [joints.O]
        ... type = "revolute"
        ... body_a = "ground"
        ... body_b = "bob"
        ... ''')
        >>> model.mechanism({"length": 0.7}).body("bob").center.tolist()
        [0.7, 0.0, 0.0]
    """

    def __init__(self, text: str, source: str):
        self.source, self.text = source, text
        if len(text.encode("utf-8", "replace")) > LARGEST:
            raise FileError(f"a model file must not be larger than {LARGEST} bytes", source)
        try:
            self.document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            problem, _, place = str(error).partition(" (at line ")
            line = place.split(",")[0]
            raise FileError(problem, source, int(line) if line.isdigit() else None) from error
        except (ValueError, RecursionError) as error:
            raise FileError(f"it cannot be read: {type(error).__name__} {str(error)[:80]}".strip(), source) from None
        self.lines = line_numbers(text)
        Reader(source, self.lines, {}).only(self.document, KEYS, ())
        self.title = self._reader({}).text(self.document.get("title", pathlib.Path(source).stem), ("title",))
        self.parameters = self._numbers({})

    def _numbers(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        return parameters(self.source, self.lines, self.document.get("parameters", {}), dict(given or {}))

    def _reader(self, given: Mapping[str, Any] | None) -> Reader:
        """A reader that knows the parameters; an empty mapping for one that knows none yet."""
        return Reader(self.source, self.lines, self._numbers(given) if "title" in self.__dict__ else {})

    @property
    def nominal(self) -> dict[str, Any]:
        """The parameters that are numbers, not formulas: those that may vary."""
        given = self.document.get("parameters", {})
        return {name: x for name, x in self.parameters.items() if not isinstance(given[name], str)}

    def mechanism(self, given: Mapping[str, Any] | None = None) -> Mechanism:
        """The mechanism."""
        return mechanism(self._reader(given), self.document)

    def drive(self, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Its drivers: numbers, and formulas of `t`."""
        reader = self._reader(given)
        table = reader.table(self.document.get("drive", {}), ("drive",))
        return {name: reader.function(x, ("t",), ("drive", name)) for name, x in table.items()}

    def kinematics(self, given: Mapping[str, Any] | None = None, *, throw: bool = True) -> Motion:
        """Its driven motion, as the table `[kinematics]` asks for."""
        reader, table = self._section("kinematics", KINEMATICS, given)
        more = read_counts(reader, table, "kinematics")
        if "estimate" in table:
            more["estimate"] = read_values(reader, table, "kinematics", "estimate")
        ts = read_times(reader, table, "kinematics")
        mech, drive = self.mechanism(given), self.drive(given)
        if not drive and mech.coordinates:
            raise FileError("there is nothing to drive it: a table [drive] is missing", self.source)
        return reader.guarded(("kinematics",), kinematics, mech, drive, ts, throw=throw, **more)

    def simulate(self, given: Mapping[str, Any] | None = None, *, throw: bool = True) -> Solution:
        """Its motion under its forces, as the table `[simulate]` asks for."""
        from .._dynamics.simulate import simulate  # here, as most do without diffrax

        reader, table = self._section("simulate", SIMULATE, given)
        more = read_options(reader, table)
        ts = read_times(reader, table, "simulate")
        mech, drive = self.mechanism(given), self.drive(given)
        begin = {
            key: read_values(reader, table, "simulate", key)
            for key in ("positions", "velocities", "estimate")
            if key in table
        }
        state0 = reader.guarded(("simulate",), state, mech, drive=drive, throw=throw, **begin)
        end = reader.number(table["t1"], ("simulate", "t1")) if "t1" in table else ts[-1]
        return reader.guarded(("simulate",), simulate, mech, state0, end, ts=ts, drive=drive, throw=throw, **more)

    def beginning(self) -> tuple[dict[str, dict[str, Any]], float, float]:
        """Where its simulation begins, when it ends, and the step of its output."""
        reader, table = self._section("simulate", SIMULATE, None)
        keys = ("positions", "velocities")
        first = {key: read_values(reader, table, "simulate", key) if key in table else {} for key in keys}
        ts = read_times(reader, table, "simulate")
        return first, float(ts[-1]), float(ts[-1] - ts[-2])

    @property
    def analysis(self) -> str:
        """What its measures are taken of, `"kinematics"` or `"simulate"`: what `[study]` says, or the table it has."""
        return self._of("study")

    def measured(self, run: Any) -> dict[str, Any]:
        """What its `[measures]` are of a motion or a simulation, by name."""
        reader = self._reader(None)
        table = read_measures(reader, self.document.get("measures", {}), ("measures",))
        return {n: reader.guarded(("measures", n), f, run, reader.numbers) for n, f in table.items()}

    def run(self, of: str, given: Mapping[str, Any] | None = None, *, throw: bool = True) -> Any:
        """One of its analyses by name, `"kinematics"` or `"simulate"`."""
        return (self.kinematics if of == "kinematics" else self.simulate)(given, throw=throw)

    def _open(self, numbers: dict[str, Array], of: str) -> bool:
        """Whether the mechanism is the same, but for its numbers, when the values of these parameters are not known."""

        def made(given: Any) -> Any:
            reader, table = self._section(of, KINEMATICS if of == "kinematics" else SIMULATE, given)
            return self.mechanism(given), self.drive(given), read_times(reader, table, of)

        try:
            found = eqx.filter_eval_shape(made, numbers)
        except (ValueError, TypeError):
            return False
        return jax.tree_util.tree_structure(found) == jax.tree_util.tree_structure(made(None))

    def study(self) -> Study:
        """Its tolerance study, from the tables `[tolerances]`, `[correlation]`, `[lots]`, `[measures]` and `[limits]`;
        `[study]` says of what. Of the motion of joints with play, it is that of [`mbsjax.play_study`][]."""
        of, tolerances, measures, limits, more = self._study_tables()
        varied = {name: self.nominal[name] for name in tolerances}
        model = _analysis(self, of, tuple(varied))
        every = {name: _Reading(model.file, f, ("measures", name)) for name, f in measures.items()}
        reader = self._reader(None)
        loose = of == "kinematics" and any(joint.play is not None for joint in self.mechanism().joints)
        make = play_study if loose else Study
        return reader.guarded(("tolerances",), make, model, varied, tolerances, every, limits=limits, **more)

    def play_parts(self) -> PlayParts | None:
        """How much the play of each joint does to its measures; None of a mechanism without play, or of simulations."""
        if self._of("study") != "kinematics" or not any(joint.play is not None for joint in self.mechanism().joints):
            return None
        reader = self._reader(None)
        table = read_measures(reader, needed_table(reader, self.document, "measures"), ("measures",))
        read = lambda f, path: lambda run: reader.guarded(path, f, run, reader.numbers)
        return play_parts(self.kinematics(), {name: read(f, ("measures", name)) for name, f in table.items()})

    def _study_tables(self) -> tuple[str, dict[str, Any], dict[str, Measure], dict[str, Any], dict[str, Any]]:
        reader, _ = self._section("study", ("of",), None)
        of, nominal = self._of("study"), self.nominal
        tolerances: dict[str, Any] = {}
        for name, x in needed_table(reader, self.document, "tolerances").items():
            path = ("tolerances", name)
            if name not in nominal:
                raise reader.wrong(f"there is {unknown('parameter that is a number', name, list(nominal))}", path)
            tolerances[name] = reader.made("distribution", x, path) if isinstance(x, dict) else reader.number(x, path)
        measures = read_measures(reader, needed_table(reader, self.document, "measures"), ("measures",))
        bounds = reader.table(self.document.get("limits", {}), ("limits",))
        reader.only(bounds, measures, ("limits",))
        limits = {n: read_limits(reader, x, ("limits", n)) for n, x in bounds.items()}
        varied = {name: nominal[name] for name in tolerances}
        return of, tolerances, measures, limits, read_together(reader, self.document, varied)

    @property
    def units(self) -> dict[str, str]:
        """The units of parameters and measures, by name, from the table `[units]`: for reports."""
        reader, table = self._section("units", (*self.parameters, *self.document.get("measures", {})), None)
        return {name: reader.text(x, ("units", name)) for name, x in table.items()}

    def what_if(self, path: Any) -> "Model":
        """The same model with the tables `[tolerances]` and `[limits]` of another file, such as the page of a report
        saves."""
        other = load(path)
        other._reader(None).only(other.document, ("tolerances", "limits"), ())
        found = Model(self.text, self.source)
        found.document = {**self.document, **other.document}
        found.lines = {at: line for at, line in self.lines.items() if not (at and at[0] in other.document)}
        return found

    def task(self) -> Task:
        """Its task of synthesis, from the table `[synthesis]`."""
        of, variables, goals, conditions, more = self._task_tables()
        start = {name: self.nominal[name] for name in variables}
        model, reader = _analysis(self, of, tuple(start)), self._reader(None)
        read = lambda x: eqx.tree_at(lambda x: x.measure, x, _Reading(model.file, x.measure.formula, x.measure.path))
        goals, conditions = ({name: read(x) for name, x in every.items()} for every in (goals, conditions))
        return reader.guarded(("synthesis",), Task, model, start, variables, goals, conditions=conditions, **more)

    def _task_tables(self) -> tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]:
        reader, table = self._section("synthesis", SYNTHESIS, None)
        of, where = self._of("synthesis"), ("synthesis",)
        bounds = needed_table(reader, table, "variables", where)
        reader.only(bounds, self.nominal, (*where, "variables"))
        variables = {n: read_limits(reader, x, (*where, "variables", n)) for n, x in bounds.items()}
        goals = {
            name: self._measured(reader, x, (*where, "goals", name), GOALS, ("target", "weight"))
            for name, x in needed_table(reader, table, "goals", where).items()
        }
        conditions = {
            name: self._measured(reader, x, (*where, "conditions", name), {"": Within}, ("lower", "upper", "scale"))
            for name, x in reader.table(table.get("conditions", {}), (*where, "conditions")).items()
        }
        angles = [reader.text(x, (*where, "angles")) for x in reader.row(table.get("angles", []), (*where, "angles"))]
        exact = reader.flag(table.get("exact", False), (*where, "exact"))
        return of, variables, goals, conditions, {"angles": angles, "exact": exact}

    def _measured(self, reader: Reader, given: Any, path: tuple[str, ...], kinds: dict, numbers: tuple) -> Any:
        """A goal or a condition."""
        table = reader.by_new_names(dict(reader.table(given, path)))
        reader.only(table, (*("type",) * (len(kinds) > 1), "measure", *numbers), path)
        kind = table.get("type", next(iter(kinds)))
        if kind not in kinds:
            raise reader.wrong(f"there is no goal {kind!r}; there are {', '.join(kinds)}", path)
        f = read_measures(reader, {"measure": table.get("measure")}, path)["measure"]
        more = {k: reader.number(table[k], (*path, k)) for k in numbers if k in table}
        return reader.guarded(path, kinds[kind], _Reading(_File(self, ()), f, path), **more)

    def search(self) -> dict[str, Any]:
        """What `[synthesis]` says of the search: `starts`, `seed`, `draw`."""
        reader, table = self._section("synthesis", SYNTHESIS, None)
        found: dict[str, Any] = {
            key: reader.whole(table[key], ("synthesis", key), 10**6) for key in ("starts", "seed") if key in table
        }
        if "draw" in table:
            given = reader.table(table["draw"], ("synthesis", "draw"))
            found["draw"] = {n: read_limits(reader, x, ("synthesis", "draw", n)) for n, x in given.items()}
        return found

    def changed(self, values: Mapping[str, Any]) -> str:
        """The text of the file with other numbers for some of its parameters; all else in it stays, comments too."""
        lines = self.text.split("\n")
        for name, x in values.items():
            path = ("parameters", name)
            if name not in self.nominal:
                free = ", ".join(self.nominal) or "none"
                raise FileError(f"there is no parameter {name!r} that is a number; there are {free}", self.source)
            number = self.lines[path] - 1 if path in self.lines else None
            found = _ENTRY.match(lines[number]) if number is not None else None
            if number is None or found is None:
                raise FileError("only a parameter on a line of its own can be changed", self.source, None, path)
            lines[number] = f"{found[1]}{np.asarray(x, float).tolist()!r}{found[3]}"
        return "\n".join(lines)

    def check(self) -> list[str]:
        """Reads every table of the file, and says what it holds; raises a [`mbsjax.FileError`][] where one is wrong."""
        mech, drive = self.mechanism(), self.drive()
        known = list(dict.fromkeys([*mech.coordinates, *(j.name for j in mech.joints), *(g.name for g in mech.gauges)]))
        self._reader(None).only(drive, known, ("drive",))
        found = [f"{len(self.parameters)} parameters", f"{len(mech.links) - 1} moving bodies"]
        found += [f"{len(drive)} drivers"] * bool(drive)
        for name in ("kinematics", "simulate"):
            if name in self.document:
                reader, table = self._section(name, KINEMATICS if name == "kinematics" else SIMULATE, None)
                read_counts(reader, table, name)
                if name == "simulate":
                    read_options(reader, table)
                for key in ("estimate", "positions", "velocities"):
                    reader.only(reader.table(table.get(key, {}), (name, key)), known, (name, key))
                found.append(f"{name} at {len(read_times(reader, table, name))} times")
        reader = self._reader(None)
        if "measures" in self.document:
            table = needed_table(reader, self.document, "measures")
            for name, f in read_measures(reader, table, ("measures",)).items():
                reader.guarded(("measures", name), f.check, mech, self.parameters)
            found.append(f"{len(self.document['measures'])} measures")
        if {"tolerances", "correlation", "lots", "limits", "study"} & set(self.document):
            self._study_tables()
            found.append("a tolerance study")
        if "units" in self.document:
            found.append(f"{len(self.units)} units")
        if "synthesis" in self.document:
            _, _, goals, conditions, _ = self._task_tables()
            for table, members in (("goals", goals), ("conditions", conditions)):
                for name, x in members.items():
                    reader.guarded(("synthesis", table, name), x.measure.formula.check, mech, self.parameters)
            found.append("a task of synthesis")
        return found

    def __repr__(self) -> str:
        return f"Model {self.title!r} of {self.source}: {', '.join(self.check())}"

    # -- the tables --------------------------------------------------------------------------------------------

    def _section(self, name: str, known: tuple[str, ...], given: Any) -> tuple[Reader, dict[str, Any]]:
        reader = self._reader(given)
        table = reader.table(self.document.get(name, {}), (name,))
        reader.only(table, known, (name,))
        return reader, table

    def _of(self, section: str) -> str:
        given = self.document.get(section, {}).get("of")
        found = given or ("kinematics" if "kinematics" in self.document else "simulate")
        if found not in ("kinematics", "simulate"):
            problem = f"`of` must be 'kinematics' or 'simulate', got {found!r}"
            raise self._reader(None).wrong(problem, (section, "of"))
        return found


class _File:
    """A model file in which some parameters are left open. Two are equal if all else that an analysis reads of them is:
    then one program does for both."""

    def __init__(self, model: Model, free: tuple[str, ...]):
        self.model = model
        tables = {k: model.document.get(k) for k in ("gravity", "planar", *TABLES)}
        fixed = {name: x for name, x in model.document.get("parameters", {}).items() if name not in free}
        self.key = repr((tables, fixed, free))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _File) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class _Analysis(eqx.Module):
    """An analysis of a model file as a function of some of its parameters; others are leaves."""

    others: dict[str, Array]
    file: _File = eqx.field(static=True)
    of: str = eqx.field(static=True)

    def __call__(self, given: Mapping[str, Any]) -> Any:
        numbers = {**self.others, **given}
        return self.file.model.run(self.of, numbers, throw=False), numbers


def _analysis(model: Model, of: str, varied: tuple[str, ...]) -> _Analysis:
    """The analysis with all those parameters as leaves that are decimal numbers, if the mechanism can be made while
    these are not known: whole numbers count something, and some shapes depend on values."""
    decimal = lambda x: all(map(decimal, x)) if isinstance(x, list) else isinstance(x, float)
    every = {name: jnp.asarray(x, float) for name, x in model.nominal.items()}
    given = model.document.get("parameters", {})
    others = {name: x for name, x in every.items() if name not in varied and decimal(given[name])}
    if others and not model._open({**others, **{name: every[name] for name in varied}}, of):
        others = {}
    return _Analysis(others, _File(model, (*sorted(others), *sorted(varied))), of)


class _Reading(eqx.Module):
    """A measure as a function of an outcome and the parameters that vary."""

    file: _File = eqx.field(static=True)
    formula: Measure
    path: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, pair: Any) -> Array:
        outcome, given = pair
        reader = self.file.model._reader(given)
        return reader.guarded(self.path, self.formula, outcome, reader.numbers)


def load(path: Any) -> Model:
    """Reads a model file.

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.load("missing.toml")
        Traceback (most recent call last):
        ...
        mbsjax.FileError: missing.toml: there is no such file
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        problem = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
        raise FileError(problem, name) from None
    if len(content) > LARGEST:
        raise FileError(f"a model file must not be larger than {LARGEST} bytes", name)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise FileError("it is not a text in UTF-8", name, line) from None
    return loads(text, source=name)


def loads(text: str, *, source: str = "model") -> Model:
    """Reads a model from a text; `source` is how errors call it.

    !!! Example

        >>> loads('[bodies.rod]\\nmas = 1.0', source="rod").mechanism()
        Traceback (most recent call last):
        ...
        mbsjax.FileError: rod, line 2, bodies.rod.mas: the key 'mas' has no meaning here; did you mean 'mass'?
    """
    return Model(text, source)
