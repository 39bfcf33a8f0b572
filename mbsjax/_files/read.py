"""Reads the tables of a model file, key by key, in plain Python: what is wrong is found here. Of what is right,
`build.py` makes a mechanism."""

import contextlib
import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from .._model.units import Units, angle_number, is_quantity
from .._programs.deprecated import warn_renamed
from .._programs.names import unknown
from .dimensions import expected
from .errors import Consequence, FileError
from .formula import CONSTANTS, known_number, names, parse, value
from .grammar import (
    FRAMES,
    LISTS,
    PARTS,
    POINTS,
    REFERENCES,
    RENAMED,
    SHAPED,
    SHAPES,
    TEXTS,
    VARIABLES,
    WHOLE_ROWS,
    WHOLES,
    Key,
    keys,
    types,
)
from .lines import Path, line_of
from .names import Names


MOST = 5000  # numbers in one array, elements in one profile, members of one table
BROKEN = object()  # a parameter that has no value, of which something is wrong


class Reader:
    """Reads the tables of one file, with these numbers for its parameters, and these names for what keys refer to.

    What is wrong is raised. With a list of `mistakes` it is put there, and the next key is read.
    """

    def __init__(
        self,
        source: str,
        lines: Mapping[Path, int],
        numbers: Mapping[str, Any],
        known: Names | None = None,
        mistakes: list[FileError] | None = None,
        units: Units | None = None,
    ):
        self.source, self.lines, self.numbers = source, dict(lines), numbers
        self.known, self.mistakes, self.units = known, mistakes, units

    def wrong(self, problem: Any, path: Path) -> FileError:
        return FileError(str(problem), self.source, line_of(self.lines, path), path)

    def complain(self, problem: Any, path: Path) -> None:
        """What is wrong, where the rest of a table can be read all the same."""
        with self.going_on():
            raise self.wrong(problem, path)

    @contextlib.contextmanager
    def going_on(self) -> Iterator[None]:
        """Goes on after what is wrong within, where mistakes are listed. What follows from another one is left out."""
        try:
            yield
        except FileError as error:
            if self.mistakes is None:
                raise
            if not isinstance(error, Consequence):
                self.mistakes.append(error)

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

    def only(self, given: Iterable[str], known: Iterable[str], path: Path) -> set[str]:
        """Complains of the keys of a table that mean nothing there; what was probably meant by them."""
        known, meant = list(known), set()
        for key in given:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known) or 'none'}"
                meant.update(near)
                self.complain(f"the key {key!r} has no meaning here; {hint}", (*path, key))
        return meant

    def members(self, given: Any, path: Path, read: Callable[[str, Any, Path], Any]) -> dict[str, Any]:
        """What is read of each member of a table, by its name."""
        found = {}
        for name, x in self.table(given, path).items():
            with self.going_on():
                found[name] = read(name, x, (*path, name))
        return found

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
            if not isinstance(kind, str) or kind not in types(group):
                near = difflib.get_close_matches(str(kind), types(group), 1)
                known = f"did you mean {near[0]!r}?" if near else f"it is one of {', '.join(types(group))}"
                told = "the type of this {0} is missing" if kind is None else "there is no {0} of the type {1!r}"
                raise self.wrong(f"{told.format(group, kind)}; {known}", (*path, "type"))
        arguments, found = keys(group, kind), {}
        meant = self.only(table, arguments, path)
        for key, x in table.items():
            if key in arguments:
                with self.going_on():
                    found[key] = self.argument(kind, key, arguments[key], x, (*path, key))
        for key, known in arguments.items():
            if known.needed and key not in table and key not in meant:
                self.complain(f"{key!r} is missing", path)
        for key, body in POINTS.items():
            if key in found and isinstance(table.get(body), str):
                with self.going_on():
                    self.point_of(table[body], found[key], (*path, key))
        return self.construct(group, kind, path, {**more, **found})

    def construct(self, group: str, kind: str, path: Path, found: dict[str, Any]) -> Any:
        """The part itself: it is made in `build.py`."""

    def argument(self, kind: str, key: str, known: Key, given: Any, path: Path) -> Any:
        if key in TEXTS:
            return self.reference(key, self.choice(given, known.choices, path), path)
        if key == "cam":
            return self.cam(given, path)
        if key in POINTS and isinstance(given, str) and self.is_name(given):
            return given
        if key in PARTS:
            return self.made(PARTS[key], given, path)
        if key in LISTS:
            return [self.made(LISTS[key], x, path) for x in self.row(given, path)]
        if key in FRAMES:
            return self.frame(given, path)
        if key == "points" and kind == "body":
            return self.members(given, path, lambda _, x, at: self.shaped(self.number(x, at), "point", at))
        if key == "profiles":
            return self.members(given, path, lambda _, x, at: self.made("profile", x, at))
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
            return self.reference(key, given, path) if isinstance(given, str) else self.gauge(given, path)
        if (kind, key) in VARIABLES:
            if key == "switches":
                return [self.function(x, VARIABLES[kind, key], path) for x in self.row(given, path)]
            return self.function(given, VARIABLES[kind, key], path)
        if kind == "load" and key in ("force", "torque"):
            return self.components(given, path)
        if known.flag or (key == "smooth" and isinstance(given, bool)):
            return self.flag(given, path)
        if key == "smooth":
            return [self.flag(x, path) for x in self.row(given, path)]
        if key == "names":
            return [self.text(x, path) for x in self.row(given, path)]
        if key in WHOLE_ROWS:
            if not all(isinstance(x, int) and not isinstance(x, bool) and abs(x) < 1000 for x in self.row(given, path)):
                raise self.wrong("whole numbers, less than 1000, are expected", path)
            return given
        if key in WHOLES:
            return self.whole(given, path, WHOLES[key])
        found = self.number(given, path)
        return self.shaped(found, SHAPED[key], path) if key in SHAPED else found

    def choice(self, given: Any, known: Iterable[str], path: Path) -> str:
        """A text; one of these, if there are any."""
        known = list(known)
        if known and given not in known:
            either = ", ".join(f'"{x}"' for x in known[:-1]) + f' or "{known[-1]}"'
            raise self.wrong(f"{either} is expected, got {_brief(given)}", path)
        return self.text(given, path)

    def reference(self, key: str, given: str, path: Path) -> str:
        """A text that names something else of the file."""
        what = REFERENCES.get(key)
        if self.known is None or what is None or self.known.is_vague(given):
            return given
        places = {
            "body": self.known.bodies,
            "coordinate": self.known.coordinates,
            "coordinate or gauge": (*self.known.coordinates, *self.known.gauges),
            "dimension with a tolerance": self.known.dimensions,
        }
        known = places.get(what)
        if known is None:
            body, _, given_name = given.partition(".")
            if not body or not given_name:
                raise self.wrong(f"a profile is named as 'body.profile', got {given!r}", path)
            name, what, known = body, "body", self.known.bodies
            if body in known:
                name, what, known = given_name, f"profile of body {body!r}", self.known.profiles[body]
        else:
            name = given
        if name not in known:
            raise self.wrong(unknown(what, name, known), path)
        return given

    def shaped(self, found: Any, shape: str, path: Path) -> Any:
        """Numbers that must be so many."""
        if _shape(found) not in SHAPES[shape]:
            known = {"point": "two or three numbers are", "number": "one number is"}
            told = known.get(shape, "two or three numbers, a 4x4 matrix or a table {x, y, angle} are")
            raise self.wrong(f"{told} expected", path)
        return found

    def point_of(self, body: str, given: Any, path: Path) -> None:
        """Complains of the name of a point that the body does not have."""
        name = given.get("point") if isinstance(given, dict) else given
        points = self.known.points.get(body) if self.known is not None else None
        if isinstance(name, str) and points is not None and name not in points:
            raise self.wrong(unknown(f"point of body {body!r}", name, points), path)

    def cam(self, given: Any, path: Path) -> Any:
        """A cam by the name of its profile."""
        name, cams = self.text(given, path), self.known.cams if self.known is not None else {}
        if name not in cams:
            known = ", ".join(map(repr, cams)) or "none"
            raise self.wrong(f"there is no cam {name!r}, a profile of the type 'cam'; there are {known}", path)
        where, table = cams[name]
        return self.made("cam", {key: x for key, x in table.items() if key != "type"}, where, kind="cam")

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
            with contextlib.suppress(TypeError):  # of a number that is not known yet
                found = float(self.number(given, path))
                given = int(found) if found.is_integer() else given
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
        """A number, one with a unit, a formula, or an array of these."""
        if is_quantity(given):
            read = angle_number if self.units is None else self.units.number
            return self.guarded(path, read, given, *expected(path))
        if isinstance(given, str):
            if self.known and given in self.known.quantities and self.numbers.get(given) is not BROKEN:
                self.number(self.known.quantities[given], path)  # whether it is of the right kind
            return self.guarded(path, lambda: value(parse(given), lambda name: self.look(name, given)))
        if isinstance(given, list):
            if depth > 3:
                raise self.wrong("arrays are nested too deeply", path)
            return [self.number(x, path, depth + 1) for x in self.row(given, path)]
        if isinstance(given, bool) or not isinstance(given, (int, float)):
            raise self.wrong(f"a number, a formula or an array is expected, got {_brief(given)}", path)
        if isinstance(given, int) and abs(given) > 2**53:
            raise self.wrong("a whole number is too large", path)
        return float(given)

    def look(self, name: str, text: str) -> Any:
        """The number of a parameter, in a formula."""
        found = known_number(name, self.numbers, text)
        if found is BROKEN:
            raise Consequence(text, self.source)
        return found

    def array(self, given: Any) -> Any:
        return np.asarray(given, float)

    def linspace(self, first: Any, last: Any, count: int) -> Any:
        return np.linspace(first, last, count)

    def function(self, given: Any, variables: tuple[str, ...], path: Path) -> Any:
        """A formula of some variables; without any of them, a number."""
        if not is_formula(given):
            return self.number(given, path)
        used = self.guarded(path, lambda: names(parse(given)))
        if not set(variables) & set(used):
            return self.number(given, path)
        clash = [v for v in variables if v in self.numbers and v in used]
        if clash:
            raise self.wrong(f"{clash[0]!r} is a variable of this formula: call the parameter otherwise", path)
        return self.formula(given, variables, path)

    def formula(self, text: str, variables: tuple[str, ...], path: Path) -> Any:
        """A formula of these variables: the function is made in `build.py`."""
        every = {**self.numbers, **dict.fromkeys(variables)}
        for name in self.guarded(path, lambda: names(parse(text))):
            if self.guarded(path, known_number, name, every, text) is BROKEN:
                raise Consequence(text, self.source)

    def state_variables(self, given: str, path: Path) -> tuple[str, ...]:
        """The variables of a formula of the state of a mechanism: `t`, and names like `O.q` and `O.v`."""
        used = self.guarded(path, lambda: names(parse(given)))
        found = tuple(n for n in used if n not in self.numbers and (n == "t" or n.endswith((".q", ".v"))))
        for name in found:
            if name != "t":
                self.reference("on", name.rpartition(".")[0], path)
        return found

    def state_function(self, given: Any, path: Path) -> Any:
        """A formula of the state of the mechanism; without any of its variables, a number."""
        variables = self.state_variables(given, path) if is_formula(given) else ()
        return self.formula(given, variables, path) if variables else self.number(given, path)

    def components(self, given: Any, path: Path) -> list[Any]:
        return [self.state_function(x, path) for x in (self.row(given, path) if isinstance(given, list) else [given])]

    def is_name(self, text: str) -> bool:
        """Whether a text is the name of a point, neither a parameter nor a formula."""
        try:
            tree = parse(text)
        except ValueError:
            return not is_quantity(text)
        return tree[0] == "name" and tree[1] not in (*self.numbers, *CONSTANTS)

    def frame(self, given: Any, path: Path) -> Any:
        """A point, a 4x4 matrix, a table {x, y, angle}, as its three numbers, or a table {point, axis}."""
        if not isinstance(given, dict):
            return self.shaped(self.number(given, path), "frame", path)
        if "point" in given and path[-1] in POINTS:
            self.only(given, ("point", "axis"), path)
            axis = self.number(given["axis"], (*path, "axis")) if "axis" in given else None
            return {"point": self.text(given["point"], (*path, "point")), "axis": axis}
        self.only(given, ("x", "y", "angle"), path)
        read = lambda k: self.shaped(self.number(given.get(k, 0.0), (*path, k)), "number", (*path, k))
        return {k: read(k) for k in ("x", "y", "angle")}


def is_formula(x: Any) -> bool:
    """Whether a text is a formula, not a number with a unit."""
    return isinstance(x, str) and not is_quantity(x)


def parameters(reader: Reader, given: Any, others: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of all parameters, formulas worked out; `others` stand for those of the file."""
    table = reader.table(given, ("parameters",))
    reader.only(others, [k for k, x in table.items() if not is_formula(x)], ("parameters",))
    found: dict[str, Any] = {}

    def find(name: str, way: tuple[str, ...]) -> Any:
        path = ("parameters", name)
        if name in way:
            raise reader.wrong(f"the parameter depends on itself: {' -> '.join((*way, name))}", path)
        if len(way) > 100:
            raise reader.wrong("parameters depend on each other in too long a row", path)
        if name not in found:
            found[name] = BROKEN  # until it is found
            x = others.get(name, table[name])
            if is_formula(x):
                tree = reader.guarded(path, parse, x)

                def look(other: str, text: str = x) -> Any:
                    known_number(other, table, text)
                    return find(other, (*way, name))

                x = reader.guarded(path, value, tree, look)
            elif name not in others or is_quantity(x):
                x = reader.number(x, path)
                x = reader.guarded(path, np.asarray, x, float) if isinstance(x, list) else x
            found[name] = x
        if found[name] is BROKEN:
            raise Consequence(name, reader.source)
        return found[name]

    for name in table:
        with reader.going_on():
            if name in CONSTANTS or not name.isidentifier():
                raise reader.wrong("the name of a parameter must be a word, and no constant", ("parameters", name))
            find(name, ())
    return found


def _shape(x: Any) -> tuple | None:
    """The shape of nested lists of numbers, which may be traced; None where rows differ."""
    if not isinstance(x, list):
        return np.shape(x)
    each = {_shape(entry) for entry in x}
    inner = each.pop() if len(each) == 1 else None
    return None if inner is None else (len(x), *inner)


def _brief(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 40 else text[:37] + "..."
