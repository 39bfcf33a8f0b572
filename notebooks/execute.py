"""Executes the notebooks of this folder, or those named, and saves them with what they print and draw.

`make notebooks` runs all of them, `python notebooks/execute.py NAME ...` some.
"""

import hashlib
import pathlib
import sys
import tempfile
import time

import nbformat
from nbclient import NotebookClient


FOLDER = pathlib.Path(__file__).parent


def fingerprint(notebook: nbformat.NotebookNode) -> str:
    """What tells one state of a notebook's code from another: the outputs saved belong to the one that is saved too."""
    code = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def execute(path: pathlib.Path) -> nbformat.NotebookNode:
    """A notebook with its outputs, and without what differs from machine to machine: warnings, clocks, versions. The
    files that it writes are not kept."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        client = NotebookClient(notebook, timeout=1800, record_timing=False, coalesce_streams=True, resources=resources)
        client.execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            kept = (output for output in cell.outputs if output.get("name") != "stderr")
            cell.outputs = [output for output in kept if output.get("data", True)]  # not where somebody had to wait
    notebook.metadata.language_info = {"name": "python"}
    notebook.metadata.executed = fingerprint(notebook)
    return notebook


def main(names: list[str]) -> None:
    for path in [FOLDER / f"{name}.ipynb" for name in names] or sorted(FOLDER.glob("*.ipynb")):
        begin = time.perf_counter()
        nbformat.write(execute(path), path)
        print(f"{path.name}: {time.perf_counter() - begin:.0f} s, {path.stat().st_size / 1e3:.0f} kB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
