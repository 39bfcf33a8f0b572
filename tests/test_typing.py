"""Editors know the types: pyright finds the mistakes of a program, and nothing else."""

import json
import pathlib
import subprocess
import sys

import pytest


SCRIPT = pathlib.Path(__file__).parent / "typing_mistakes.py"


@pytest.mark.slow
def test_pyright_finds_precisely_the_marked_mistakes():
    told = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(SCRIPT)],
        capture_output=True,
        text=True,
        cwd=SCRIPT.parent.parent,
    )
    errors = [d for d in json.loads(told.stdout)["generalDiagnostics"] if d["severity"] == "error"]
    found = {d["range"]["start"]["line"] + 1: d["message"] for d in errors}
    lines = SCRIPT.read_text().splitlines()
    marked = {i + 1 for i, line in enumerate(lines) if line.endswith("# wrong")}
    assert len(marked) > 50
    missed = [lines[i - 1].strip() for i in sorted(marked - set(found))]
    too_many = [(lines[i - 1].strip(), found[i]) for i in sorted(set(found) - marked)]
    assert not missed and not too_many, f"not found: {missed}; found where there is none: {too_many}"
