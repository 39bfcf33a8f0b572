"""From the tables of a model file to the parts of a mechanism."""

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array

from .._model.force.base import Moment
from .._model.mechanism import Mechanism
from .._programs.deprecated import warn_renamed
from .._programs.precision import as_float, is_concrete
from ..frames import at
from .formula import CONSTANTS, Formula, known_number, names, parse, value
from .lines import Path, line_of
from .words import FRAMES, LISTS, PARTS, RENAMED, TEXTS, VARIABLES, WORDS, keys


MOST = 5000  # numbers in one array, elements in one profile, members of one table
_WHOLE = {"teeth": 400, "slots": 100}


class FileError(ValueError):
    """What is wrong with a model file, and where: its `line`, and the `path` of the key."""

    __module__ = "mbsjax"

    def __init__(self, problem: str, source: str, line: int | None = None, path: Path = ()):
        self.problem, self.source, self.line, self.path = problem, source, line, path
        place = [source] + [f"line {line}"] * (line is not None) + [".".join(path)] * bool(path)
        super().__init__(f"{', '.join(place)}: {problem}")


class Components(eqx.Module):
    """A load whose components are formulas of the time and of what the mechanism does: `t`, `O.q`, `O.v`."""

    parts: tuple[Any, ...]
    single: bool = eqx.field(static=True)

    def __call__(self, t: Array, at: Moment) -> Any:
        found = [evaluated(p, t, at) if isinstance(p, Formula) else p for p in self.parts]
        return found[0] if self.single else tuple(found)


class Switched(eqx.Module):
    """A force whose formula knows the sides of its switches as `s1`, `s2`, ..., 1 or 0."""

    formula: Formula

    def __call__(self, x: Array, v: Array, t: Array, on: Array) -> Array:
        return self.formula(x, v, t, *(on[i].astype(float) for i in range(on.shape[0])))


class Watch(eqx.Module):
    """A trigger given by a formula of `t`, `O.q`, `O.v`."""

    formula: Formula

    def __call__(self, at: Moment) -> Array:
        return evaluated(self.formula, at.t, at)


def evaluated(formula: Formula, t: Array, at: Moment) -> Any:
    """A formula of the state of a mechanism, at an instant."""
    given = []
    for name in formula.variables:
        what, _, rate = name.rpartition(".")
        given.append(t if name == "t" else getattr(at[what], rate))
    return formula(*given)


class Reader:
    """Reads the tables of one file, with these numbers for its parameters."""

    def __init__(self, source: str, lines: Mapping[Path, int], numbers: Mapping[str, Any]):
        self.source, self.lines, self.numbers = source, dict(lines), numbers

    def wrong(self, problem: Any, path: Path) -> FileError:
        return FileError(str(problem), self.source, line_of(self.lines, path), path)

    def guarded(self, path: Path, f: Callable, *given: Any, **more: Any) -> Any:
        """Calls a function of the library; its complaints get their place in the file."""
        try:
            return f(*given, **more)
        except FileError:
            raise
        except (ValueError, TypeError, RuntimeError, OverflowError) as error:
            raise self.wrong(error, path) from error

    def table(self, given: Any, path: Path) -> dict[str, Any]:
        if not isinstance(given, dict):
            raise self.wrong(f"a table is expected, got {_brief(given)}", path)
        if len(given) > MOST:
            raise self.wrong(f"more than {MOST} entries", path)
        return given

    def only(self, given: dict, known: Iterable[str], path: Path) -> None:
        """Raises where a table has a key that means nothing there."""
        known = list(known)
        for key in given:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known) or 'none'}"
                raise self.wrong(f"the key {key!r} has no meaning here; {hint}", (*path, key))

    def by_new_names(self, table: dict) -> dict:
        """A table whose keys and type may have old names, which warn."""
        for old, new in RENAMED.items():
            if old in table and new not in table:
                table[new] = table.pop(old)
                warn_renamed(f"the key {old!r} of model files", repr(new))
            if table.get("type") == old:
                table["type"] = new
                warn_renamed(f"the type {old!r} of model files", repr(new))
        return table

    def made(self, group: str, given: Any, path: Path, *, kind: str | None = None, **more: Any) -> Any:
        """The part that a table describes."""
        table = self.by_new_names(dict(self.table(given, path)))
        if kind is None:
            kind = table.pop("type", None)
            if not isinstance(kind, str) or kind not in WORDS[group]:
                near = difflib.get_close_matches(str(kind), WORDS[group], 1)
                known = f"did you mean {near[0]!r}?" if near else f"it is one of {', '.join(WORDS[group])}"
                told = "the type of this {0} is missing" if kind is None else "there is no {0} of the type {1!r}"
                raise self.wrong(f"{told.format(group, kind)}; {known}", (*path, "type"))
        arguments = keys(group, kind)
        self.only(table, arguments, path)
        found = {key: self.argument(kind, key, arguments[key], x, (*path, key)) for key, x in table.items()}
        if kind == "actuator" and "switches" in found and isinstance(found.get("function"), Formula):
            found["function"] = Switched(found["function"])
        for key, parameter in arguments.items():
            if parameter.default is inspect.Parameter.empty and key not in found:
                raise self.wrong(f"{key!r} is missing", path)
        return self.guarded(path, WORDS[group][kind], **more, **found)

    def argument(self, kind: str, key: str, parameter: inspect.Parameter, given: Any, path: Path) -> Any:
        if key in TEXTS:
            return self.text(given, path)
        if key in PARTS:
            return self.made(PARTS[key], given, path)
        if key in LISTS:
            return [self.made(LISTS[key], x, path) for x in self.row(given, path)]
        if key in FRAMES:
            return self.frame(given, path)
        if key == "points" and kind == "body":
            return {name: self.number(p, (*path, name)) for name, p in self.table(given, path).items()}
        if key == "profiles":
            return {name: self.made("profile", p, (*path, name)) for name, p in self.table(given, path).items()}
        if key == "law":
            touching = kind in ("contact", "play")
            if isinstance(given, str) and not touching:
                return given
            return self.made("contact law" if touching else "motion law", given, path)
        if key == "friction":
            return self.friction(kind, given, path)
        if key == "play":
            table = isinstance(given, dict)
            return self.made("play", given, path, kind="play") if table else self.number(given, path)
        if key == "on":
            return given if isinstance(given, str) else self.gauge(given, path)
        if (kind, key) in VARIABLES:
            if key == "switches":
                return [self.function(x, VARIABLES[kind, key], path) for x in self.row(given, path)]
            return self.function(given, VARIABLES[kind, key], path)
        if kind == "load" and key in ("force", "torque"):
            return self.components(given, path)
        if isinstance(given, bool) or parameter.annotation is bool:
            if key == "smooth" and isinstance(given, list) and all(isinstance(x, bool) for x in given):
                return given
            if not isinstance(given, bool) or parameter.annotation is float:
                raise self.wrong(f"{'true or false' if not isinstance(given, bool) else 'a number'} is expected", path)
            return given
        if key in ("orders", "hollow", "elements_a", "elements_b"):
            if not all(isinstance(x, int) and not isinstance(x, bool) and abs(x) < 1000 for x in self.row(given, path)):
                raise self.wrong("whole numbers, less than 1000, are expected", path)
            return given
        if key == "smooth":
            return [self.flag(x, path) for x in self.row(given, path)]
        if key in _WHOLE:
            return self.whole(given, path, _WHOLE[key])
        return self.number(given, path)

    def gauge(self, given: Any, path: Path) -> Any:
        """A gauge that belongs to a force: it may have a name of its own."""
        table = dict(self.table(given, path))
        name = table.pop("name", f"length of {path[1]}" if len(path) > 1 else "length")
        return self.made("gauge", table, path, name=self.text(name, path))

    def friction(self, kind: str, given: Any, path: Path) -> Any:
        """That of a contact, or of play: a coefficient or a table. That of a joint: a table with `sliding`, or with
        `dry`."""
        if kind in ("contact", "play"):
            table = isinstance(given, dict)
            return self.made("friction", given, path, kind="contact") if table else self.number(given, path)
        table = self.table(given, path)
        if not {"sliding", "dry"} & set(table):
            self.only(table, {**keys("friction", "dry"), **keys("friction", "joint")}, path)
            raise self.wrong("'sliding', a coefficient, or 'dry', a torque or a force, is missing", path)
        return self.made("friction", table, path, kind="dry" if "dry" in table else "joint")

    def text(self, given: Any, path: Path) -> str:
        if not isinstance(given, str):
            raise self.wrong(f"a text is expected, got {_brief(given)}", path)
        return given

    def flag(self, given: Any, path: Path) -> bool:
        if not isinstance(given, bool):
            raise self.wrong(f"true or false is expected, got {_brief(given)}", path)
        return given

    def whole(self, given: Any, path: Path, most: int, least: int = 0) -> int:
        if isinstance(given, str):
            found = self.number(given, path)
            given = int(found) if is_concrete(found) and np.ndim(found) == 0 and float(found).is_integer() else given
        if not isinstance(given, int) or isinstance(given, bool) or not least <= given <= most:
            raise self.wrong(f"a whole number from {least} to {most} is expected, got {_brief(given)}", path)
        return given

    def row(self, given: Any, path: Path) -> list:
        if not isinstance(given, list):
            raise self.wrong(f"an array is expected, got {_brief(given)}", path)
        if len(given) > MOST:
            raise self.wrong(f"an array has more than {MOST} entries", path)
        return given

    def number(self, given: Any, path: Path, depth: int = 0) -> Any:
        """A number, a formula, or an array of these."""
        if isinstance(given, str):
            return self.guarded(path, lambda: value(parse(given), lambda name: known_number(name, self.numbers, given)))
        if isinstance(given, list):
            if depth > 3:
                raise self.wrong("arrays are nested too deeply", path)
            return [self.number(x, path, depth + 1) for x in self.row(given, path)]
        if isinstance(given, bool) or not isinstance(given, (int, float)):
            raise self.wrong(f"a number, a formula or an array is expected, got {_brief(given)}", path)
        if isinstance(given, int) and abs(given) > 2**53:
            raise self.wrong("a whole number is too large", path)
        return float(given)

    def function(self, given: Any, variables: tuple[str, ...], path: Path) -> Any:
        """A formula of some variables; without any of them, a number."""
        if not isinstance(given, str):
            return self.number(given, path)
        used = self.guarded(path, lambda: names(parse(given)))
        if not set(variables) & set(used):
            return self.number(given, path)
        clash = [v for v in variables if v in self.numbers and v in used]
        if clash:
            raise self.wrong(f"{clash[0]!r} is a variable of this formula: call the parameter otherwise", path)
        return self.guarded(path, Formula, given, variables, self.numbers)

    def state_function(self, given: Any, path: Path) -> Any:
        """A formula of the state of the mechanism: names with a dot, and `t`, are its variables."""
        if not isinstance(given, str):
            return self.number(given, path)
        used = self.guarded(path, lambda: names(parse(given)))
        variables = tuple(n for n in used if n not in self.numbers and (n == "t" or n.endswith((".q", ".v"))))
        return self.guarded(path, Formula, given, variables, self.numbers) if variables else self.number(given, path)

    def components(self, given: Any, path: Path) -> Any:
        single = not isinstance(given, list)
        parts = [self.state_function(x, path) for x in ([given] if single else self.row(given, path))]
        if any(isinstance(p, Formula) for p in parts):
            fixed = lambda p: p if isinstance(p, Formula) else as_float(p, "a component of a load")
            return Components(tuple(fixed(p) for p in parts), single)
        return parts[0] if single else parts

    def frame(self, given: Any, path: Path) -> Any:
        """A point, a 4x4 matrix, or a table {x, y, angle}."""
        if not isinstance(given, dict):
            return self.number(given, path)
        self.only(given, ("x", "y", "angle"), path)
        return self.guarded(path, at, *(self.number(given.get(k, 0.0), (*path, k)) for k in ("x", "y", "angle")))


def mechanism(reader: Reader, document: Mapping[str, Any]) -> Mechanism:
    """The mechanism of a file."""

    def members(table: str, group: str, kind: str | None = None) -> list[Any]:
        given = reader.table(document.get(table, {}), (table,))
        return [reader.made(group, x, (table, name), kind=kind, name=name) for name, x in given.items()]

    bodies = members("bodies", "body", "body")
    joints = members("joints", "joint") + members("contacts", "contact", "contact")
    more: dict[str, Any] = {"forces": members("forces", "force")}
    if "gravity" in document:
        more["gravity"] = reader.number(document["gravity"], ("gravity",))
    if "planar" in document:
        more["planar"] = reader.flag(document["planar"], ("planar",))
    gauges = members("gauges", "gauge")
    try:
        return Mechanism(bodies, joints, gauges, **more)
    except ValueError as error:
        raise reader.wrong(error, _culprit(str(error), document)) from error


def _culprit(problem: str, document: Mapping[str, Any]) -> Path:
    """The table that a complaint about the whole mechanism names first."""
    named = [
        (problem.index(f"{name!r}"), (table, name))
        for table in ("joints", "contacts", "gauges", "forces", "bodies")
        for name in document.get(table, {})
        if f"{name!r}" in problem
    ]
    return min(named)[1] if named else ()


def parameters(source: str, lines: Mapping[Path, int], given: Any, others: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of all parameters, formulas worked out; `others` stand for those of the file."""
    reader = Reader(source, lines, {})
    table = reader.table(given, ("parameters",))
    reader.only(dict(others), [k for k, x in table.items() if not isinstance(x, str)], ("parameters",))
    found: dict[str, Any] = {}

    def find(name: str, way: tuple[str, ...]) -> Any:
        path = ("parameters", name)
        if name in way:
            raise reader.wrong(f"the parameter depends on itself: {' -> '.join((*way, name))}", path)
        if len(way) > 100:
            raise reader.wrong("parameters depend on each other in too long a row", path)
        if name not in found:
            x = others.get(name, table[name])
            if isinstance(x, str):
                tree = reader.guarded(path, parse, x)

                def look(other: str, text: str = x) -> Any:
                    known_number(other, table, text)
                    return find(other, (*way, name))

                x = reader.guarded(path, value, tree, look)
            elif name not in others:
                x = reader.number(x, path)
                x = reader.guarded(path, np.asarray, x, float) if isinstance(x, list) else x
            found[name] = x
        return found[name]

    for name in table:
        if name in CONSTANTS or not name.isidentifier():
            raise reader.wrong("the name of a parameter must be a word, and no constant", ("parameters", name))
        find(name, ())
    return found


def _brief(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 40 else text[:37] + "..."
