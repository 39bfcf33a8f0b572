"""The house stays as drawn: files and functions that fit, rooms with a word on what they are for."""

import ast
import pathlib

import pytest


ROOT = pathlib.Path(__file__).parent.parent / "mbsjax"
FILES = sorted(ROOT.rglob("*.py"))
MOST_LINES, LONGEST_FUNCTION = 450, 80


def test_no_file_and_no_function_is_too_long():
    found = []
    for path in FILES:
        text = path.read_text()
        if len(text.splitlines()) > MOST_LINES:
            found.append(f"{path.relative_to(ROOT)}: {len(text.splitlines())} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
                length = node.end_lineno - node.lineno + 1
                if length > LONGEST_FUNCTION:
                    found.append(f"{path.relative_to(ROOT)}: {node.name} has {length} lines")
    assert not found


@pytest.mark.parametrize("room", sorted(p.parent for p in ROOT.rglob("__init__.py")), ids=lambda p: p.name)
def test_every_room_says_what_it_is_for(room):
    words = ast.get_docstring(ast.parse((room / "__init__.py").read_text()))
    assert words and len(words.split()) > 3


def test_rooms_stand_in_the_map():
    names = {p.parent.name for p in ROOT.glob("_*/__init__.py")}
    contributing = (ROOT.parent / "CONTRIBUTING.md").read_text()
    order = [contributing.index(f"| `{name}` |") for name in ROOMS]
    assert set(ROOMS) == names and order == sorted(order)


ROOMS = (
    "_programs",
    "_numerics",
    "_model",
    "_events",
    "_kinematics",
    "_dynamics",
    "_pictures",
    "_tolerance",
    "_synthesis",
    "_files",
    "_cli",
)
