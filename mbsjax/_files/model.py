"""Model files: a mechanism in TOML, with what to do with it."""

import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._dynamics.equilibrium import Equilibrium
from .._dynamics.holding import Holding
from .._dynamics.inverse_dynamics import Efforts
from .._dynamics.solution import Solution
from .._kinematics.motion import Motion
from .._model.mechanism import Mechanism
from .._synthesis.task import Task
from .._tolerance.play.parts import PlayParts
from .._tolerance.study import Study
from .analyses import drivers, friction_holds, made, run, run_equilibrium, run_inverse, run_kinematics, run_simulation
from .build import options
from .check import check_tables, check_told
from .document import Document
from .errors import FileError
from .measures import Measure
from .names import names_of
from .study import play_parts_of, study_of
from .tables import read_measures, read_of, read_section, read_study, read_task, read_times, read_units, read_values
from .task import task_of
from .text import read_text


_ENTRY = re.compile(r"^(\s*[\w-]+\s*=\s*)([^#]*?)(\s*(?:#.*)?)$")


class Model(Document):
    """A mechanism as a file describes it, and what to do with it. Made by [`mbsjax.load`][] and [`mbsjax.loads`][].

    - `title`, `document`: its title, and the tables of the file as they are.
    - `parameters`: its numbers by name, formulas worked out.
    - `system`: the [`mbsjax.Units`][] of all its numbers, if the file says them.

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

    def mechanism(self, given: Mapping[str, Any] | None = None) -> Mechanism:
        """The mechanism."""
        return made(self, given)

    def drive(self, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Its drivers: numbers, and formulas of `t`."""
        return drivers(self, given)

    def kinematics(self, given: Mapping[str, Any] | None = None, *, throw: bool = True) -> Motion:
        """Its driven motion, as the table `[kinematics]` asks for."""
        return run_kinematics(self, given, throw)

    def simulate(self, given: Mapping[str, Any] | None = None, *, throw: bool = True) -> Solution:
        """Its motion under its forces, as the table `[simulate]` asks for."""
        return run_simulation(self, given, throw)

    def inverse_dynamics(self, given: Mapping[str, Any] | None = None, *, throw: bool = True) -> Efforts:
        """What its drivers push with, and all other forces, for the motion that `[kinematics]` asks for."""
        return run_inverse(self, given, throw)

    def equilibrium(self, given: Mapping[str, Any] | None = None, *, throw: bool = True) -> Equilibrium:
        """Where it rests under its forces, as the table `[equilibrium]` asks for."""
        return run_equilibrium(self, given, throw)

    def holding(self, given: Mapping[str, Any] | None = None) -> Holding:
        """Whether friction holds it in the position that `[equilibrium]` asks for, without what `fixed` holds there: a
        position is given by `fixed`. Its drivers stay."""
        return friction_holds(self, given)

    def beginning(self) -> tuple[dict[str, dict[str, Any]], float, float]:
        """Where its simulation begins, when it ends, and the step of its output."""
        reader = self.reader()
        table = read_section(reader, self.document, "simulate")
        keys = ("positions", "velocities")
        first = {key: read_values(reader, table, "simulate", key) if key in table else {} for key in keys}
        ts = read_times(reader, table, "simulate")
        return first, float(ts[-1]), float(ts[-1] - ts[-2])

    @property
    def analysis(self) -> str:
        """What its measures are taken of, `"kinematics"`, `"simulate"`, `"inverse"` or `"equilibrium"`: what `[study]`
        says, or the first of the tables that it has that tells all of them."""
        return read_of(self.reader(), self.document, "study")

    def check_measures(self, of: str) -> None:
        """Raises a [`mbsjax.FileError`][] if an analysis, which is that of the measures, does not tell what one of them
        is made of: before it is run."""
        if of != self.analysis:
            return
        reader = self.reader()
        for name, text in read_measures(reader, self.document.get("measures", {}), ("measures",)).items():
            check_told(reader, self.document, names_of(self.document), of, text, ("measures", name))

    def measured(self, run: Any) -> dict[str, Any]:
        """What its `[measures]` are of the outcome of an analysis, by name."""
        reader = self.reader()
        table = read_measures(reader, self.document.get("measures", {}), ("measures",))
        return {n: reader.guarded(("measures", n), Measure(f), run, reader.numbers) for n, f in table.items()}

    def run(self, of: str, given: Mapping[str, Any] | None = None, *, throw: bool = True) -> Any:
        """One of its analyses by name: `"kinematics"`, `"simulate"`, `"inverse"` or `"equilibrium"`."""
        return run(self, of, given, throw)

    def study(self) -> Study:
        """Its tolerance study, from the tables `[tolerances]`, `[correlation]`, `[lots]`, `[measures]` and `[limits]`;
        `[study]` says of what. Of the motion of joints with play, it is that of [`mbsjax.play_study`][]."""
        return study_of(self)

    def play_parts(self) -> PlayParts | None:
        """How much the play of each joint does to its measures; None of a mechanism without play, or of simulations."""
        return play_parts_of(self)

    @property
    def units(self) -> dict[str, str]:
        """The units of parameters and measures, by name, for reports: from the table `[units]`, and of parameters that
        are given with a unit. Those of all numbers are `system`."""
        return read_units(self.reader(), self.document)

    def what_if(self, path: Any) -> "Model":
        """The same model with the tables `[tolerances]` and `[limits]` of another file, such as the page of a report
        saves."""
        other = load(path)
        other.reader().only(other.document, ("tolerances", "limits"), ())
        found = Model(self.text, self.source)
        found.document = {**self.document, **other.document}
        found.lines = {at: line for at, line in self.lines.items() if not (at and at[0] in other.document)}
        return found

    def task(self) -> Task:
        """Its task of synthesis, from the table `[synthesis]`."""
        return task_of(self)

    def search(self) -> dict[str, Any]:
        """What `[synthesis]` says of the search: `starts`, `seed`, `draw`."""
        return read_task(self.reader(), self.document, self.nominal).search

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
        """Reads every table of the file, makes the mechanism, and says what the file holds. Raises a
        [`mbsjax.FileError`][] where something is wrong: the first mistake by line, with the others in its notes."""
        mistakes, found = check_tables(self.document, self.lines, self.source)
        for other in mistakes[1:]:
            mistakes[0].add_note(str(other))
        if mistakes:
            raise mistakes[0]
        self.mechanism()
        reader = self.reader()
        if "simulate" in self.document:
            options(reader, read_section(reader, self.document, "simulate"))
        if "tolerances" in self.document:
            read_study(reader, self.document, self.nominal)
        return found

    def __repr__(self) -> str:
        return f"Model {self.title!r} of {self.source}: {', '.join(self.check())}"


def load(path: Any) -> Model:
    """Reads a model file.

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.load("missing.toml")
        Traceback (most recent call last):
        ...
        mbsjax.FileError: missing.toml: there is no such file
    """
    return loads(read_text(path), source=os.fspath(path))


def loads(text: str, *, source: str = "model") -> Model:
    """Reads a model from a text; `source` is how errors call it.

    !!! Example

        >>> loads('[bodies.rod]\\nmas = 1.0', source="rod").mechanism()
        Traceback (most recent call last):
        ...
        mbsjax.FileError: rod, line 2, bodies.rod.mas: the key 'mas' has no meaning here; did you mean 'mass'?
    """
    return Model(text, source)
