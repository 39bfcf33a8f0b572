"""Every notebook runs from top to bottom."""

import pathlib

import nbformat
import pytest
from nbclient import NotebookClient


# tolerance_cam is run by test_tolerance_cam, which looks at what it finds
NOTEBOOKS = [
    path
    for path in sorted((pathlib.Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
    if path.stem != "tolerance_cam"
]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path):
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}).execute()
