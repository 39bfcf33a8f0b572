"""Notebooks as tests see them: their cells are executed, what they print and draw is compared with what is saved, and
what they leave is looked at."""

import ast
import contextlib
import io
import os
import pathlib
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import nbformat
from IPython.lib.pretty import pretty

from tests.texts import same


FOLDER = pathlib.Path(__file__).parent.parent / "notebooks"
NOT_COMPARED = "not-compared"  # the tag of cells that print times, sizes or the machine
_STEPS = re.compile(r"\d+ steps, \d+ more tried")  # rounding decides whether a step is tried once more


def told(name: str, folder: pathlib.Path | None = None) -> dict:
    """What the cells of a notebook leave behind. `folder`: where it writes its files."""
    mpl.use("Agg")
    names: dict = {}
    here = pathlib.Path.cwd()
    os.chdir(folder or here)
    plt.close("all")  # those of other tests
    try:
        for cell in nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells:
            if cell.cell_type == "code":
                found = _run(cell.source, name, names)
                if NOT_COMPARED not in cell.metadata.get("tags", ()):
                    compare(saved(cell), found, f"{name}, cell {cell.id}")
    finally:
        os.chdir(here)
    return names


def _run(source: str, name: str, names: dict) -> tuple[str, int]:
    """Executes a cell: what it prints, its value included, and how many pictures it draws."""
    tree, value = ast.parse(source), None
    last = tree.body[-1] if tree.body else None
    with contextlib.redirect_stdout(io.StringIO()) as out:
        if isinstance(last, ast.Expr) and not source.rstrip().endswith(";"):
            exec(compile(ast.Module(tree.body[:-1], []), name, "exec"), names)
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
        else:
            exec(compile(tree, name, "exec"), names)
    drawn = len(plt.get_fignums())
    plt.close("all")
    return out.getvalue() + ("" if value is None else pretty(value)), drawn


def saved(cell: nbformat.NotebookNode) -> tuple[str, int]:
    """What is saved of a cell: its text, and how many pictures."""
    pictures = [x for x in cell.outputs if "image/png" in x.get("data", {})]
    texts = [x.get("text") or x["data"]["text/plain"] for x in cell.outputs if x not in pictures]
    return "".join(texts), len(pictures)


def compare(told: tuple[str, int], found: tuple[str, int], where: str) -> None:
    """Raises where a cell prints or draws other things than what is saved."""
    a, b = (_STEPS.sub("steps", text) for text, _ in (told, found))
    assert same(a, b, noise=1e-8), f"{where} prints\n{b}\nand was saved with\n{a}\n`make notebooks` saves it anew"
    assert told[1] == found[1], f"{where} draws {found[1]} pictures, and was saved with {told[1]}"
