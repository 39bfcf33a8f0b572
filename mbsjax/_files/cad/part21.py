"""The text of STEP files (ISO 10303-21): entities by their numbers, with parameters as Python values."""

import re
from typing import Any, NamedTuple


class Ref(NamedTuple):
    """A reference to an entity, `#12`."""

    number: int


class Word(NamedTuple):
    """An enumeration, `.T.`; `$` and `*` are those without a name."""

    name: str


# what an entity says, by the names of its types: a complex one has several
Entity = dict[str, list[Any]]

_TOKEN = re.compile(
    r"""\s*(?:/\*.*?\*/\s*)*(?:
    (?P<ref>\#\d+)|(?P<number>[+-]?\d+\.?\d*(?:[eE][+-]?\d+)?)|(?P<text>'(?:[^']|'')*')|(?P<word>\.\w+\.)|
    (?P<name>[A-Za-z_!][\w-]*)|(?P<binary>"[0-9A-Fa-f]*")|(?P<mark>[(),;=$*]))""",
    re.VERBOSE | re.DOTALL,
)


def entities(content: str) -> dict[int, Entity]:
    """All entities of the data sections of a file."""
    if "ISO-10303-21" not in content[:4096]:
        raise ValueError("it is not a STEP file: it does not begin with ISO-10303-21")
    found: dict[int, Entity] = {}
    place = content.find("DATA", content.find("ENDSEC"))
    if place < 0:
        raise ValueError("it is not a STEP file that can be read: it has no DATA section")
    for statement in _statements(content, content.index(";", place) + 1):
        if len(statement) > 3 and isinstance(statement[0], Ref) and statement[1] == "=":
            found[statement[0].number] = _entity(statement[2:])
    return found


def _statements(content: str, place: int):
    """Rows of tokens, up to each semicolon."""
    row: list[Any] = []
    while True:
        token = _TOKEN.match(content, place)
        if token is None:
            if content[place:].strip():
                raise ValueError(f"it is not a STEP file that can be read, at {content[place : place + 30].strip()!r}")
            return
        place = token.end()
        if token["mark"] == ";":
            yield row
            row = []
        elif token["ref"]:
            row.append(Ref(int(token["ref"][1:])))
        elif token["number"]:
            row.append(float(token["number"]))
        elif token["text"] is not None:
            row.append((token["text"][1:-1].replace("''", "'"),))  # in a row of its own, to tell it from marks
        elif token["word"]:
            row.append(Word(token["word"][1:-1]))
        elif token["binary"]:
            row.append((token["binary"],))
        else:
            row.append(token["mark"] or token["name"])


def _entity(tokens: list[Any]) -> Entity:
    """TYPE(...), or (TYPE(...) TYPE(...) ...)."""
    whole = _values(tokens)
    if whole and isinstance(whole[0], list) and len(whole) == 1:
        whole = whole[0]
    names = [(x.upper(), y) for x, y in zip(whole[::2], whole[1::2]) if isinstance(x, str) and isinstance(y, list)]
    return dict(names)


def _values(tokens: list[Any]) -> list[Any]:
    """Tokens as nested rows; names of types stand before their rows."""
    stack: list[list[Any]] = [[]]
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")" and len(stack) > 1:
            done = stack.pop()
            stack[-1].append(done)
        elif token in ("$", "*"):
            stack[-1].append(Word(""))
        elif token != ",":
            stack[-1].append(token)
    if len(stack) != 1 or ")" in stack[0]:
        raise ValueError("it is not a STEP file that can be read: its parentheses do not match")
    return stack[0]
