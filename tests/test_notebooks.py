"""Notebooks are saved with what their code prints and draws. Those that tell stories are run where their findings are
looked at: `told` of tests/notebook.py compares what is saved."""

import nbformat
import pytest

from notebooks.execute import fingerprint
from tests.notebook import FOLDER, compare, saved, told


NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.long
def test_getting_started():
    names = told("getting_started")
    assert abs(sum(float(names["slopes"][k]) * x for k, x in names["nominal"].items())) < 1e-12  # lengths grown alike


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_saved_with_the_outputs_of_its_code(path):
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert notebook.metadata.get("executed") == fingerprint(notebook), "the code has changed: `make notebooks`"
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [x for cell in code for x in cell.outputs if x.output_type == "error" or x.get("name") == "stderr"]
    assert sum(saved(cell)[1] for cell in code) >= 1, "no picture is saved"
    assert path.stat().st_size < 1_000_000


def test_outputs_that_differ_are_found():
    cell = nbformat.v4.new_code_cell(
        "1 + 1", outputs=[nbformat.v4.new_output("stream", text="111 steps, 2 more tried\n")]
    )
    cell.outputs.append(nbformat.v4.new_output("execute_result", {"text/plain": "{'x': 0.125, 'y': 1.1e-16}"}))
    cell.outputs.append(nbformat.v4.new_output("display_data", {"image/png": "", "text/plain": "<Figure>"}))
    assert saved(cell) == ("111 steps, 2 more tried\n{'x': 0.125, 'y': 1.1e-16}", 1)
    compare(saved(cell), ("112 steps, 0 more tried\n{'x': 0.125, 'y': -3e-17}", 1), "cell")
    with pytest.raises(AssertionError, match="cell prints"):
        compare(saved(cell), ("111 steps, 2 more tried\n{'x': 0.127, 'y': 1.1e-16}", 1), "cell")
    with pytest.raises(AssertionError, match="cell draws 0 pictures"):
        compare(saved(cell), (saved(cell)[0], 0), "cell")
