"""Synthesis of cams: laws of least peak acceleration, base circles, outlines for the workshop."""

import ezdxf
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import BSpline

import mbsjax as mbs
from tests.tolerances import case


X = jnp.linspace(0.0, 1.0, 801)


def accelerations(law):
    return jax.vmap(jax.grad(jax.grad(law)))(X)


@pytest.mark.long
@pytest.mark.parametrize("degree", [7, 9, 11, 15])
def test_least_peak_acceleration_of_polynomials(degree):
    """By gradient, what the file has from a linear program."""
    task = mbs.Task(
        lambda p: accelerations(mbs.PolynomialLaw(p["coefficients"])),
        {"coefficients": np.zeros(degree - 5)},
        {"coefficients": (-1e4, 1e4)},
        {"peak": mbs.Minimax(lambda a: a)},
    )
    best = mbs.synthesize(task, max_steps=1000).best
    known = case("cam_motion_laws")["lp_min_peak_accel_polynomials"][f"deg{degree}"]
    np.testing.assert_allclose(best.objective, known, rtol=1e-3)
    law = mbs.PolynomialLaw(best.dimensions["coefficients"])
    ends = jnp.array([0.0, 1.0])
    slopes = [law(ends), jax.vmap(jax.grad(law))(ends), jax.vmap(jax.grad(jax.grad(law)))(ends)]
    np.testing.assert_allclose(slopes, [[0, 1], [0, 0], [0, 0]], atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("law", ["cycloidal", "poly345", "harmonic"])
def test_base_circle_for_a_limit_of_the_pressure_angle(law):
    wanted = case("cam_motion_laws")["sizing_h20_beta90"][law]["Rp_30deg"]
    quarter, roller = np.pi / 2, 4.0
    lift = mbs.Program([mbs.Rise(law, quarter, 20.0), mbs.Fall("cycloidal", 3 * quarter, 20.0)])
    task = mbs.Task(
        lambda p: mbs.Cam(lift, mbs.Translating(mbs.Roller(roller)), p["base"]),
        {"base": 60.0},
        {"base": (10.0, 100.0)},
        {"size": mbs.Minimize(lambda cam: cam.base_radius)},
        conditions={
            "push": mbs.Within(lambda cam: jnp.rad2deg(cam.extremes().pressure_angle.value), -30.0, 30.0, scale=30.0)
        },
    )
    best = mbs.synthesize(task).best
    assert best.active == ["the condition push"] and best.met
    np.testing.assert_allclose(best.x[0] + roller, wanted, rtol=3e-8)


@pytest.mark.long
def test_spline_law_is_a_b_spline_of_degree_five():
    control = np.random.default_rng(0).uniform(-0.2, 1.2, 7)
    knots = np.concatenate([np.zeros(5), np.linspace(0, 1, 9), np.ones(5)])
    wanted = BSpline(knots, np.concatenate([np.zeros(3), control, np.ones(3)]), 5)
    law = mbs.SplineLaw(control)
    x = np.linspace(0, 1, 57)
    np.testing.assert_allclose(law(x), wanted(x), atol=1e-14)
    np.testing.assert_allclose(jax.vmap(jax.grad(jax.grad(law)))(x), wanted(x, 2), atol=1e-11)
    np.testing.assert_allclose(mbs.SplineLaw.like(law, 7).control, control, atol=1e-10)


def test_outline_goes_out_as_points_and_drawing(tmp_path):
    """A lobe of two arcs and two lines, and a hole: read back, they are the same."""
    lobe = mbs.polygon([(0.0, 0.0), (6.0, 0.0), (6.0, 4.0), (0.0, 4.0)], 1.0)
    lobe.to_csv(tmp_path / "lobe.csv")
    rows = np.loadtxt(tmp_path / "lobe.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(rows, lobe.points(8))
    x, y = rows.T
    area = abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1))) / 2
    assert area == pytest.approx(24 - (4 - np.pi), abs=1e-3)
    assert len(mbs.from_table(tmp_path / "lobe.csv").elements) == 1
    lobe.to_dxf(tmp_path / "lobe.dxf")
    found = list(ezdxf.readfile(tmp_path / "lobe.dxf").modelspace())
    assert sorted(e.dxftype() for e in found) == ["ARC"] * 4 + ["LINE"] * 4
    corners = {(round(e.dxf.center.x, 9), round(e.dxf.center.y, 9)) for e in found if e.dxftype() == "ARC"}
    assert corners == {(1.0, 1.0), (5.0, 1.0), (5.0, 3.0), (1.0, 3.0)}
    for arc in (e for e in found if e.dxftype() == "ARC"):  # as drawn, it bulges out of the middle
        middle = np.deg2rad(arc.dxf.start_angle + (arc.dxf.end_angle - arc.dxf.start_angle) % 360 / 2)
        out = np.array([arc.dxf.center.x - 3.0, arc.dxf.center.y - 2.0])
        assert (arc.dxf.end_angle - arc.dxf.start_angle) % 360 == pytest.approx(90)
        assert np.cos(middle) * np.sign(out[0]) == pytest.approx(np.sqrt(0.5))
        assert np.sin(middle) * np.sign(out[1]) == pytest.approx(np.sqrt(0.5))
    mbs.bore(3.0, (1.0, 2.0)).to_dxf(tmp_path / "bore.dxf")
    (circle,) = ezdxf.readfile(tmp_path / "bore.dxf").modelspace()
    assert (circle.dxf.radius, circle.dxf.center.x, circle.dxf.center.y) == (3.0, 1.0, 2.0)
    angle = np.linspace(0.0, 2 * np.pi, 25)[:-1]
    mbs.from_table(np.stack([2 * np.cos(angle), np.sin(angle)], 1)).to_dxf(tmp_path / "spline.dxf")
    (line,) = ezdxf.readfile(tmp_path / "spline.dxf").modelspace()
    points = np.array([tuple(p)[:2] for p in line.construction_tool().approximate(200)])
    assert line.dxftype() == "SPLINE" and np.abs((points[:, 0] / 2) ** 2 + points[:, 1] ** 2 - 1).max() < 1e-3
