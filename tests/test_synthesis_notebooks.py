"""The notebooks on synthesis tell the truth."""

import numpy as np
import pytest

import mbsjax as mbs
from tests.notebook import told
from tests.tolerances import case


@pytest.mark.long
def test_spline_cam_keeps_contact_where_the_cam_of_the_thesis_jumps(tmp_path):
    names = told("synthesis_cam", tmp_path)
    # the speed at which it jumps, by the force, is the one from which the simulation throws it off
    assert names["times_thrown"][0.99] == 0 and names["times_thrown"][1.01] > 0 and names["times_thrown"][1.3] > 0
    found, best = names["found"], names["found"].best
    assert best.met and found.ended == {"converged": 1}
    before = {row[0]: row[1:] for row in found.before_and_after().rows}
    assert before["goal acceleration"][1] < before["goal acceleration"][0]
    # the same base circle and lift, at every angle, and the conditions at angles between those of the task
    table = names["best"](np.linspace(0.0, 2 * np.pi, 1441))
    np.testing.assert_allclose([table.lift.min(), table.lift.max()], [0.0, names["high"] - names["low"]], atol=1e-6)
    np.testing.assert_allclose(float(names["best"].base_radius), names["low"] - names["r"])
    assert np.abs(np.rad2deg(table.pressure_angle)).max() < 35.05 and np.all(1 / table.radius > -0.101)
    # the simulation: never thrown off, and the force that the table foretold
    sol = names["sol"]
    assert int(names["thrown"]) == 0 and np.all(sol["C23"].active)
    angle = np.asarray(names["speed"] * sol.ts)
    table = names["best"](angle)
    along_normal = names["force"](table) / np.cos(table.pressure_angle)
    np.testing.assert_allclose(sol["C23"].force, along_normal, rtol=1e-5)
    np.testing.assert_allclose(sol["guide"].q, names["low"] + names["best"](angle).lift, atol=1e-7)
    rows = np.loadtxt(tmp_path / "spline_cam.csv", delimiter=",", skiprows=1)
    radius = np.linalg.norm(rows, axis=1)
    assert radius.min() == pytest.approx(names["low"] - names["r"], abs=1e-3) and (tmp_path / "spline_cam.dxf").exists()


@pytest.mark.long
def test_path_is_found_with_the_mechanism_itself():
    names = told("synthesis_path")
    found, data = names["found"], case("syn_path_case3_18pt_0.05")
    np.testing.assert_array_equal(names["targets"], data["targets"])
    assert found.best.objective <= data["best"]["sse"] * (1 + 1e-6)
    assert any(how.startswith("could not be evaluated") for how in found.ended)  # counted, not hidden
    lengths = (found.best.dimensions[k] for k in ("crank", "coupler", "rocker", "ground"))
    assert np.all(mbs.grashof(*lengths) > 0)
