"""Notebooks as tests see them: their cells are executed, and what they leave is looked at."""

import os
import pathlib

import matplotlib as mpl
import nbformat


FOLDER = pathlib.Path(__file__).parent.parent / "notebooks"


def told(name: str, folder: pathlib.Path | None = None) -> dict:
    """What the cells of a notebook leave behind. `folder`: where it writes its files."""
    mpl.use("Agg")
    names: dict = {}
    here = pathlib.Path.cwd()
    os.chdir(folder or here)
    try:
        for cell in nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells:
            if cell.cell_type == "code":
                exec(compile(cell.source, name, "exec"), names)
    finally:
        os.chdir(here)
    return names
