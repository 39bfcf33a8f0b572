"""Formulas in model files: arithmetic of named numbers, by a grammar of its own, so that a file can do nothing else.

sum      = product (("+" | "-") product)*
product  = sign (("*" | "/") sign)*
sign     = ("+" | "-") sign | power
power    = place (("**" | "^") sign)?
place    = atom ("[" whole "]")*
atom     = number | name | function "(" sum ("," sum)* ")" | "(" sum ")"
name     = word ("." word)*, a word of any letters in backquotes too
"""

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np


_LONGEST, _MOST, _DEEPEST = 4000, 300, 60  # letters, words, brackets
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>(?:[^\W\d]\w*|`[^`\n]+`)(?:\.(?:\w+|`[^`\n]+`))*)"
    r"|(?P<sign>\*\*|[-+*/^()\[\],]))"
)

CONSTANTS = {"pi": np.pi, "deg": np.pi / 180}
ROWS = ("max", "min", "mean", "sum", "range", "first", "last")
FUNCTIONS = (
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "abs", "sign",
    "hypot", "floor", "clip", *ROWS,
)  # fmt: skip
_COUNTS = {"atan2": (2, 2), "hypot": (2, 2), "clip": (3, 3), "max": (1, 9), "min": (1, 9)}  # of arguments; else one
_NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"}


def parse(text: str) -> tuple:
    """A formula as nested tuples; raises a ValueError that says where it is wrong.

    !!! Example

        >>> parse("2*(a + 1)")
        ('*', ('number', 2.0), ('+', ('name', 'a'), ('number', 1.0)))
    """
    if len(text) > _LONGEST:
        raise ValueError(f"a formula must not be longer than {_LONGEST} characters")
    tokens, at = [], 0
    while text[at:].strip():
        found = _TOKEN.match(text, at)
        if found is None:
            bad = text[at:].lstrip()[0]
            raise ValueError(f"{bad!r} has no meaning in the formula {_short(text)}")
        tokens.append((found.lastgroup, found[found.lastgroup or 0]))
        at = found.end()
    if len(tokens) > _MOST:
        raise ValueError(f"the formula {_short(text)} has more than {_MOST} words")
    reader = _Reader(tokens, text)
    tree = reader.sum(0)
    if reader.at < len(tokens):
        raise ValueError(f"{tokens[reader.at][1]!r} is not expected in the formula {_short(text)}")
    return tree


class _Reader:
    def __init__(self, tokens: list, text: str):
        self.tokens, self.text, self.at = tokens, text, 0

    def next(self, *signs: str) -> str | None:
        """Takes the next sign if it is one of these."""
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "sign" and self.tokens[self.at][1] in signs:
            self.at += 1
            return self.tokens[self.at - 1][1]
        return None

    def need(self, sign: str) -> None:
        if self.next(sign) is None:
            raise ValueError(f"{sign!r} is missing in the formula {_short(self.text)}")

    def sum(self, depth: int) -> tuple:
        if depth > _DEEPEST:
            raise ValueError(f"the formula {_short(self.text)} is nested too deeply")
        tree = self.product(depth + 1)
        while sign := self.next("+", "-"):
            tree = (sign, tree, self.product(depth + 1))
        return tree

    def product(self, depth: int) -> tuple:
        tree = self.sign(depth)
        while sign := self.next("*", "/"):
            tree = (sign, tree, self.sign(depth))
        return tree

    def sign(self, depth: int) -> tuple:
        if depth > _DEEPEST:
            raise ValueError(f"the formula {_short(self.text)} is nested too deeply")
        sign = self.next("+", "-")
        if sign is None:
            return self.power(depth)
        tree = self.sign(depth + 1)
        return ("minus", tree) if sign == "-" else tree

    def power(self, depth: int) -> tuple:
        tree = self.place(depth)
        if self.next("**", "^"):
            return ("**", tree, self.sign(depth + 1))
        return tree

    def place(self, depth: int) -> tuple:
        tree = self.atom(depth)
        while self.next("["):
            back = self.next("-")
            kind, word = self.tokens[self.at] if self.at < len(self.tokens) else (None, "")
            if kind != "number" or not word.isdigit() or len(word) > 9:
                raise ValueError(f"a place of a row must be a whole number in the formula {_short(self.text)}")
            self.at += 1
            self.need("]")
            tree = ("place", tree, -int(word) if back else int(word))
        return tree

    def atom(self, depth: int) -> tuple:
        if self.next("("):
            tree = self.sum(depth + 1)
            self.need(")")
            return tree
        kind, word = self.tokens[self.at] if self.at < len(self.tokens) else (None, "")
        if kind not in ("number", "name"):
            raise ValueError(f"a number or a name is missing in the formula {_short(self.text)}")
        self.at += 1
        if kind == "number":
            return ("number", float(word))
        if self.next("(") is None:
            return ("name", word.replace("`", ""))
        if word not in FUNCTIONS:
            raise ValueError(f"there is no function {word!r}; there are {', '.join(FUNCTIONS)}")
        given = [self.sum(depth + 1)]
        while self.next(","):
            given.append(self.sum(depth + 1))
        self.need(")")
        least, most = _COUNTS.get(word, (1, 1))
        if not least <= len(given) <= most:
            raise ValueError(f"the function {word!r} takes {least} argument(s), got {len(given)}")
        return ("call", word, *given)


def names(tree: tuple) -> tuple[str, ...]:
    """The names in a formula, constants apart."""
    if tree[0] == "name":
        return () if tree[1] in CONSTANTS else (tree[1],)
    return tuple(dict.fromkeys(x for part in tree[1:] if isinstance(part, tuple) for x in names(part)))


class Padded(NamedTuple):
    """A row that is longer than what there is to tell; `back(k)` is the k-th of these from the last."""

    row: Any
    back: Callable[[int], Any]


def value(tree: tuple, look: Callable[[str], Any]) -> Any:
    """What a formula is, `look` giving the value of a name, or a `Padded` row: its negative places, and its last one,
    count from what there is. Of plain numbers it is a plain number."""
    kind, *parts = tree
    if kind == "number":
        return np.float64(parts[0])
    if kind == "name":
        found = np.float64(CONSTANTS[parts[0]]) if parts[0] in CONSTANTS else look(parts[0])
        return found.row if isinstance(found, Padded) else found
    if kind == "place":
        row = value(parts[0], look)
        if np.ndim(row) != 1 or not -np.shape(row)[0] <= parts[1] < np.shape(row)[0]:
            raise ValueError(f"there is no place {parts[1]} in a row of shape {np.shape(row)}")
        return _from_the_end(parts[0], look, row, -parts[1]) if parts[1] < 0 else row[parts[1]]
    if tree[:2] == ("call", "last"):
        return _from_the_end(parts[1], look, value(parts[1], look), 1)
    given = [value(x, look) for x in (parts[1:] if kind == "call" else parts)]
    with np.errstate(all="ignore"):
        return _called(parts[0], given) if kind == "call" else _OPERATIONS[kind](*given)


def _from_the_end(tree: tuple, look: Callable[[str], Any], row: Any, k: int) -> Any:
    """The k-th of a row from its end."""
    found = look(tree[1]) if tree[0] == "name" and tree[1] not in CONSTANTS else None
    if isinstance(found, Padded):
        return found.back(k)
    return row if np.ndim(row) == 0 else row[-k]


_OPERATIONS: dict[str, Callable] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: _power(a, b),
    "minus": lambda a: -a,
}


def _power(a: Any, b: Any) -> Any:
    # a whole constant stays a plain number: its power has derivatives everywhere
    return a ** int(b) if isinstance(b, np.float64) and b.is_integer() and abs(b) < 100 else a**b


def _called(name: str, given: list) -> Any:
    library: Any = np
    if not all(isinstance(x, (float, np.generic, np.ndarray)) for x in given):  # numbers of JAX
        import jax.numpy as library
    if name in ROWS:
        if name in ("max", "min") and len(given) > 1:
            pick = library.maximum if name == "max" else library.minimum
            found = given[0]
            for x in given[1:]:
                found = pick(found, x)
            return found
        row = library.atleast_1d(given[0])
        if name == "first":
            return row[0]
        return getattr(library, {"range": "ptp"}.get(name, name))(row)
    if name == "clip":
        return library.minimum(library.maximum(given[0], given[1]), given[2])
    return getattr(library, _NUMPY.get(name, name))(*given)


def known_number(name: str, known: Mapping[str, Any], text: str) -> Any:
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, [*known, *CONSTANTS], 1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join([*known, *CONSTANTS])}"
    raise ValueError(f"there is no {name!r} for the formula {_short(text)}; {hint}")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
