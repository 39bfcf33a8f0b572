"""Published and recomputed tolerance cases, each built from bodies, joints and contacts."""

import jax
import jax.numpy as jnp
import numpy as np
import openturns as ot
import pytest

import mbsjax as mbs
from tests.tolerances import case, clutch_study, generator_study


@pytest.fixture(scope="module")
def clutch():
    return clutch_study()


def test_clutch_first_order(clutch):
    expected, found = case("tol_clutch_chase")["confirmed"], mbs.first_order(clutch)
    np.testing.assert_allclose(
        np.r_[np.rad2deg(found.values[0]), found.values[1]],
        [expected["phi_nominal_deg"], expected["b_nominal"]],
        rtol=1e-12,
    )
    np.testing.assert_allclose(found.slopes[0], list(expected["dphi_rad_per_mm"].values()), rtol=1e-9)
    np.testing.assert_allclose(found.slopes[1], list(expected["db"].values()), rtol=1e-9)
    worst = [expected["phi_worst_case_linear_rad"], expected["b_worst_case_linear"]]
    np.testing.assert_allclose(found.worst_case, worst, rtol=1e-9)
    np.testing.assert_allclose(found.rss, [expected["phi_RSS_rad"], expected["b_RSS"]], rtol=1e-9)
    np.testing.assert_allclose(np.rad2deg(found.std[0]), expected["phi_sigma_linear_deg"], rtol=1e-9)
    for row, name in enumerate(("phi", "b")):
        parts = list(expected[f"{name}_contribution_percent"].values())
        np.testing.assert_allclose(100 * found.contribution[row], parts, rtol=1e-9)
    rejects = 1e6 * np.array([found.capability.below[0], found.capability.above[0]])
    np.testing.assert_allclose(rejects, expected["normal_RSS_rejects_each_side_dpm"], rtol=1e-3)


def test_clutch_second_order(clutch):
    """The moments of the Taylor polynomial, from derivatives in closed form; the case's come from differences."""
    expected = case("tol_clutch_chase")["confirmed"]["phi_second_order_MSM"]
    phi = lambda x: jnp.arccos((x[0] + x[1]) / (x[2] - x[1]))
    x, std = clutch.mean, clutch.std
    b, B = jax.grad(phi)(x) * std, std[:, None] * jax.hessian(phi)(x) * std / 2
    variance = b @ b + 2 * jnp.trace(B @ B)
    closed = [
        jnp.rad2deg(phi(x) + jnp.trace(B)),
        jnp.rad2deg(jnp.sqrt(variance)),
        (8 * jnp.trace(B @ B @ B) + 6 * b @ B @ b) / variance**1.5,
        3 + 48 * (jnp.trace(B @ B @ B @ B) + b @ B @ B @ b) / variance**2,
    ]
    moments = mbs.second_order(clutch).moments
    found = [np.rad2deg(moments.mean[0]), np.rad2deg(moments.std[0]), moments.skewness[0], moments.kurtosis[0]]
    np.testing.assert_allclose(found, closed, rtol=1e-8)
    listed = [expected[k] for k in ("mean_deg", "sigma_deg", "skew", "kurtosis")]
    np.testing.assert_allclose(found, listed, rtol=3e-5)


@pytest.mark.long
def test_clutch_worst_case_and_reliability(clutch):
    expected = case("tol_clutch_chase")["confirmed"]
    worst = mbs.worst_case(clutch)
    found = np.rad2deg([worst.lower[0], worst.upper[0]])
    np.testing.assert_allclose(found, expected["phi_worst_case_exact_corners_deg"], rtol=1e-12)
    assert worst.failed == 0
    points = {p.side: p for p in mbs.form(clutch)}
    for side in ("lower", "upper"):
        assert points[side].converged
        np.testing.assert_allclose(points[side].beta, expected["exact_rejects"][f"{side}_beta"], rtol=1e-8)
        np.testing.assert_allclose(1e6 * points[side].probability, expected["exact_rejects"][f"{side}_dpm"], rtol=1e-7)
    rare = mbs.reliability(clutch, 16384, chunk=16384)
    for side, found in zip(("lower", "upper"), rare.of("phi")):
        assert found.side == side and found.trusted and found.error < 0.03 * found.probability
        assert abs(1e6 * found.probability - expected["exact_rejects"][f"{side}_dpm"]) < 3e6 * found.error
    both = sum(expected["exact_rejects"][f"{side}_dpm"] for side in ("lower", "upper"))
    assert abs(1e6 * rare.reject.probability - both) < 3e6 * rare.reject.error


@pytest.mark.long
def test_clutch_beside_openturns(clutch):
    """The contact joints of the clutch against the formula of its angle, by FORM and SORM."""
    x = ot.RandomVector(
        ot.JointDistribution([ot.Normal(m, s) for m, s in zip(clutch.mean.tolist(), clutch.std.tolist())])
    )
    phi = ot.CompositeRandomVector(ot.SymbolicFunction(["a", "c", "e"], ["acos((a + c) / (e - c))"]), x)
    found = mbs.reliability(clutch, 16384, chunk=16384).of("phi")
    for mine, sign, limit in zip(found, (ot.Less(), ot.Greater()), (clutch.lower[0], clutch.upper[0])):
        solver = ot.AbdoRackwitz()
        solver.setMaximumAbsoluteError(1e-12)
        algorithm = ot.SORM(solver, ot.ThresholdEvent(phi, sign, float(limit)), clutch.mean.tolist())
        algorithm.run()
        result = algorithm.getResult()
        np.testing.assert_allclose(mine.points[0].beta, result.getHasoferReliabilityIndex(), rtol=1e-6)
        np.testing.assert_allclose(mine.points[0].dimensions, result.getPhysicalSpaceDesignPoint(), rtol=1e-6)
        np.testing.assert_allclose(mine.breitung, result.getEventProbabilityBreitung(), rtol=1e-4)
        np.testing.assert_allclose(mine.hohenbichler, result.getEventProbabilityHohenbichler(), rtol=1e-4)


@pytest.mark.long
def test_clutch_a_million_samples(clutch):
    expected = case("tol_clutch_chase")["confirmed"]
    sample = mbs.monte_carlo(clutch, 1_000_000, chunk=16384)
    tally = sample.tally
    assert tally.n == 1_000_000 and list(tally.kinds) == ["as nominal"]
    (below, above), (below_error, above_error) = tally.rate(tally.tails)
    assert abs(1e6 * below[0] - expected["exact_rejects"]["lower_dpm"]) < 3e6 * below_error[0]
    assert abs(1e6 * above[0] - expected["exact_rejects"]["upper_dpm"]) < 3e6 * above_error[0]
    exact = expected["phi_exact_moments"]
    found, errors = tally.moments, tally.errors
    goals = [np.deg2rad(exact["mean_deg"]), np.deg2rad(exact["sigma_deg"]), exact["skew"], exact["kurtosis"]]
    for x, error, goal in zip(found, errors, goals):
        assert abs(x[0] - goal) < 3 * error[0]
    np.testing.assert_allclose(errors.mean[0], found.std[0] / 1e3, rtol=0.3)  # 64 groups know it to 9 %
    # quantiles of the histogram against those of the values themselves
    levels = [0.00135, 0.5, 0.99865]
    np.testing.assert_allclose(tally.quantile(levels)[:, 0], sample.quantile("phi", levels), atol=5e-3 * found.std[0])


def test_stack_of_seven_dimensions():
    """The demonstration of dimstack; to all digits."""
    data = case("tol_stack1d_dimstack")
    dims = {d["n"]: d for d in data["dims"]}
    study = mbs.Study(
        lambda p: p,
        {n: float(d["nom"]) for n, d in dims.items()},
        {n: mbs.Normal((d["lo"], d["hi"]), cpk=d.get("Cpk", d.get("Cp"))) for n, d in dims.items()},
        {"gap": lambda p: sum(p.values())},
        limits={"gap": (0.05, 0.8)},
    )
    found, expected = mbs.first_order(study), data["confirmed"]
    np.testing.assert_allclose(found.middle, 0.1, rtol=1e-12)
    np.testing.assert_allclose(found.worst_case, expected["WC"], rtol=1e-12)
    ends = [found.middle[0] - found.worst_case[0], found.middle[0] + found.worst_case[0]]
    np.testing.assert_allclose(ends, data["published"]["closed"], atol=1e-12)
    np.testing.assert_allclose(found.rss, expected["RSS"], atol=5e-9)
    np.testing.assert_allclose(found.mrss, expected["MRSS"], atol=5e-9)
    np.testing.assert_allclose(found.std, expected["sigma"], atol=5e-9)
    np.testing.assert_allclose(4.5 * found.std, expected["tol4p5"], atol=5e-9)
    np.testing.assert_allclose(100 * found.capability.good, expected["yield_percent"], atol=5e-9)
    np.testing.assert_allclose(1e6 * (1 - found.capability.good), expected["ppm"], atol=5e-3)


def slider_crank(p: dict) -> mbs.Mechanism:
    return mbs.Mechanism(
        [mbs.Body("crank"), mbs.Body("rod"), mbs.Body("slider")],
        [
            mbs.Revolute("A", "ground", "crank"),
            mbs.Revolute("B", "crank", "rod", (p["r"], 0.0)),
            mbs.Revolute("C", "rod", "slider", (p["l"], 0.0)),
            mbs.Prismatic("P", "ground", "slider", (0.0, p["e"]), start=170.0),
        ],
    )


def eccentric_follower(p: dict) -> mbs.Mechanism:
    """The cam's center is at E above the shaft where the drive is zero, and the roller moves up and down at x = o."""
    return mbs.Mechanism(
        [
            mbs.Body("cam", profiles={"rim": mbs.eccentric(p["R"], p["E"], jnp.pi / 2)}),
            mbs.Body("follower", profiles={"roller": mbs.disc(p["r"])}),
        ],
        [
            mbs.Revolute("O", "ground", "cam"),
            mbs.Prismatic("y", "ground", "follower", (p["o"], 0.0), axis=(0.0, 1.0), start=47.0),
            mbs.Contact("C", "cam.rim", "follower.roller", active=True),
        ],
    )


@pytest.mark.long
@pytest.mark.parametrize("name", ["tol_crank_slider", "tol_cam_eccentric_roller"])
def test_bands_along_the_stroke(name):
    """The listed slopes are differences, good to 1e-8; those of the closed forms are met to rounding."""
    data = case(name)
    build, output, sign = {
        "tol_crank_slider": (slider_crank, "P", 1.0),
        "tol_cam_eccentric_roller": (eccentric_follower, "y", -1.0),
    }[name]
    angles = np.deg2rad(data["theta_deg"])
    drive = {"A" if output == "P" else "O": lambda t: sign * t}
    study = mbs.Study(
        lambda p: mbs.kinematics(build(p), drive, angles, throw=False),
        {k: float(v) for k, v in data["params"].items()},
        data["tol"],
        {"output": lambda motion: motion[output].q},
        along={"output": data["theta_deg"]},
    )
    found, expected = mbs.first_order(study), data["confirmed"]
    exact = {
        "P": lambda r, rod, e: r * jnp.cos(angles) + jnp.sqrt(rod**2 - (r * jnp.sin(angles) - e) ** 2),
        "y": lambda E, R, r, o: E * jnp.cos(angles) + jnp.sqrt((R + r) ** 2 - (E * jnp.sin(angles) - o) ** 2),
    }[output]
    np.testing.assert_allclose(found.slopes, jax.jacfwd(lambda x: exact(*x))(study.nominal), atol=1e-12)
    values, slopes = expected["x" if output == "P" else "y"], expected["dx" if output == "P" else "dy"]
    np.testing.assert_allclose(found.values, values, rtol=1e-12)
    np.testing.assert_allclose(found.slopes, np.stack([slopes[n] for n in study.names], 1), atol=2e-8)
    np.testing.assert_allclose(found.worst_case, expected["worst_case"], rtol=1e-7)
    np.testing.assert_allclose(found.rss, expected["rss"], rtol=1e-7)


@pytest.mark.long
def test_function_generator_over_its_interval():
    """Error band, sigma along the stroke, and the probability of leaving the limits anywhere (Zhang and Du)."""
    data = case("tol_fourbar_function_generator")
    expected = data["confirmed"]
    study = generator_study(121, data["limit_deg"])
    found = mbs.first_order(study)
    fifth = np.linspace(0, 120, 5).astype(int)
    np.testing.assert_allclose(found.values[fifth], expected["err_at_95p5_125p5_155p5_185p5_215p5"], atol=1e-8)
    np.testing.assert_allclose(found.std[fifth], expected["sigma_deg_same"], atol=1e-8)
    np.testing.assert_allclose(found.slopes[60], expected["sens_deg_per_mm_at_155p5"], atol=1e-8)
    np.testing.assert_allclose(found.values.min(), expected["nominal_error_deg_min"], atol=1e-5)
    able = found.capability
    np.testing.assert_allclose((able.below + able.above).max(), expected["FOSM_instantaneous_max"], rtol=2e-4)

    sample = mbs.monte_carlo(study, 262_144, chunk=4096)
    tally = sample.tally
    p, error = tally.rejects["error"]
    known, spread = expected["pf_interval"]["lim0p8"], expected["pf_interval"]["se"][1]
    assert abs(p - known) < 3 * np.hypot(error, spread)
    np.testing.assert_allclose(sample.passage("error")[-1], p)
    assert np.all(np.diff(sample.passage("error")) >= 0)
    rates, errors = tally.rate(tally.tails)
    worst = np.argmax(rates.sum(0))
    assert abs(rates.sum(0)[worst] - expected["pf_instantaneous_max"]) < 4 * errors.max()
    assert np.all(np.abs(tally.std - found.std) < 5 * tally.errors.std + 1e-3 * found.std)
