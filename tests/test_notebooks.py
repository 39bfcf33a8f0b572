"""Every notebook runs from top to bottom."""

import pathlib

import nbformat
import pytest
from nbclient import NotebookClient


# these are run by tests that look at what they find
ELSEWHERE = (
    "tolerance_cam", "synthesis_cam", "synthesis_path", "contact_loss", "latch", "sensitivities", "monte_carlo",
    "identification", "play",
)  # fmt: skip
NOTEBOOKS = [
    path
    for path in sorted((pathlib.Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
    if path.stem not in ELSEWHERE
]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path):
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}).execute()
