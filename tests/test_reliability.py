"""Probabilities of breaking limits: against closed forms, OpenTURNS, and their own errors on random problems."""

from importlib import resources

import jax.numpy as jnp
import numpy as np
import openturns as ot
import pytest
from scipy import integrate, optimize, stats

import mbsjax as mbs
from tests.random_studies import covered_as_often_as_they_should, random_problem, random_study


STANDARD = mbs.Normal(sigma=1.0)


def study_of(f, d, limits, distribution=STANDARD, **more):
    names = [f"x{i + 1}" for i in range(d)]
    tolerances = dict.fromkeys(names, distribution) if not isinstance(distribution, list) else zip(names, distribution)
    return mbs.Study(lambda p: p, dict.fromkeys(names, 0.0), dict(tolerances), {"y": f}, limits={"y": limits}, **more)


# Both sides of a parabola, a whole circle, a limit broken at the medians, limits out of reach, far tails, kinks.
CLOSED_FORMS = {
    "both sides": (
        lambda p: p["x1"] ** 2 + 0.01 * p["x2"],
        2,
        (None, 25.0),
        STANDARD,
        integrate.quad(lambda z: 2 * stats.norm.sf(np.sqrt(25 - 0.01 * z)) * stats.norm.pdf(z), -9, 9, epsabs=0)[0],
    ),
    "circle": (lambda p: p["x1"] ** 2 + p["x2"] ** 2, 2, (None, 27.631), STANDARD, np.exp(-27.631 / 2)),
    "sphere in five": (
        lambda p: sum(x**2 for x in p.values()),
        5,
        (None, float(stats.chi2.isf(1e-5, 5))),
        STANDARD,
        1e-5,
    ),
    "broken at the medians": (lambda p: p["x1"] + p["x2"], 2, (None, -np.sqrt(2.0)), STANDARD, stats.norm.cdf(1.0)),
    "flat": (lambda p: 0 * p["x1"] + 1.0, 1, (None, 2.0), STANDARD, 0.0),
    "beyond all tolerances": (lambda p: p["x1"] + p["x2"], 2, (None, 3.0), mbs.Uniform(1.0), 0.0),
    "nine sigma": (lambda p: p["x1"] + p["x2"], 2, (None, 9 * np.sqrt(2)), STANDARD, stats.norm.sf(9.0)),
    "both limits": (
        lambda p: p["x1"] + p["x2"],
        2,
        (-4 * np.sqrt(2), 3 * np.sqrt(2)),
        STANDARD,
        stats.norm.sf(3) + stats.norm.sf(4),
    ),
    "largest of three": (
        lambda p: jnp.max(jnp.stack(list(p.values()))),
        3,
        (None, 4.0),
        STANDARD,
        -np.expm1(3 * stats.norm.logcdf(4.0)),
    ),
    "smallest of two": (
        lambda p: jnp.minimum(p["x1"], p["x2"]),
        2,
        (None, 2.5),
        STANDARD,
        stats.norm.sf(2.5) ** 2,
    ),
    "sum of two uniform ones": (lambda p: p["x1"] + p["x2"], 2, (None, 1.99), mbs.Uniform(1.0), 0.01**2 / 8),
    "a jump that nothing announces": (
        lambda p: jnp.where(p["x1"] > 2.6, 1.0, 0.0),
        1,
        (None, 0.5),
        STANDARD,
        stats.norm.sf(2.6),
    ),
    "no value": (  # where there is no value there is a reject
        lambda p: jnp.sqrt(3.0 - p["x1"]),
        1,
        (0.0, None),
        STANDARD,
        stats.norm.sf(3.0),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("case", CLOSED_FORMS)
def test_probabilities_are_those_of_closed_forms_within_their_errors(case):
    f, d, limits, distribution, truth = CLOSED_FORMS[case]
    found = mbs.reliability(study_of(f, d, limits, distribution))
    p, error = found.reject.probability, found.reject.error
    assert 0 <= p <= 1
    if truth == 0:
        # of a flat measure plain samples alone can tell; beyond bounded tolerances subset simulation gets ever nearer
        assert p == 0 and found.good == 1.0 and error <= (1 / 2048 if case == "flat" else 1e-15)
        assert found.limits[0].points[0].beta == np.inf and found.limits[0].method == "search"
        assert "out of reach" in repr(found.limits[0].points[0])
    else:
        assert abs(p - truth) < 3.5 * error
        assert error < (0.3 if case in ("sphere in five", "a jump that nothing announces") else 0.1) * truth
    # about a sphere in many dimensions, design points do not tell enough, and the result must say so
    assert found.trusted == (case != "sphere in five")


# limit states g with g < 0 where they are broken, as OpenTURNS reads them, and the distributions of x1, x2, ...
N, OT = STANDARD, ot.Normal(0.0, 1.0)
CASES = {
    "plane in five": ("9 - x1 - 2*x2 + x3 - 0.5*x4 - x5", [(N, OT)] * 5),
    "parabola": ("4 - x1 + 0.08*x2^2", [(N, OT)] * 2),
    "parabola towards the middle": ("4 - x1 - 0.08*x2^2", [(N, OT)] * 2),
    "cubic": ("2.5 - 0.2357*(x1 - x2) + 0.0046*(x1 + x2 - 20 + 20)^4", [(N, OT)] * 2),
    "both sides": ("12 - x1^2 - 0.3*x2", [(N, OT)] * 2),
    "product": ("8 - x1*x2", [(N, OT)] * 2),
    "four branches": (
        "min(min(3 + 0.1*(x1-x2)^2 - (x1+x2)/sqrt(2), 3 + 0.1*(x1-x2)^2 + (x1+x2)/sqrt(2)),"
        "min(x1 - x2 + 7/sqrt(2), x2 - x1 + 7/sqrt(2)))",
        [(N, OT)] * 2,
    ),
    "uniform and triangular": (
        "2.3 - x1 - x2 - x3",
        [
            (mbs.Uniform(1.0), ot.Uniform(-1, 1)),
            (mbs.Triangular(1.0), ot.Triangular(-1, 0, 1)),
            (mbs.Normal(0.9), ot.Normal(0, 0.3)),
        ],
    ),
    "exponential": ("exp(0.4*x1 + 7) - exp(0.3*x2 + 5) - 200", [(N, OT)] * 2),
    "six with interaction": ("7 - x1 - x2 - 0.4*x3*x4 - 0.7*x5 + 0.3*x6^2", [(N, OT)] * 6),
}  # fmt: skip


def both(case):
    """The same problem for mbsjax and for OpenTURNS."""
    text, each = CASES[case]
    names = [f"x{i + 1}" for i in range(len(each))]
    code = compile(text.replace("^", "**").replace("min(", "minimum("), case, "eval")
    f = lambda p: eval(code, {"minimum": jnp.minimum, "sqrt": jnp.sqrt, "exp": jnp.exp}, dict(p))
    study = study_of(f, len(each), (0.0, None), [x for x, _ in each])
    g = ot.CompositeRandomVector(
        ot.SymbolicFunction(names, [text]), ot.RandomVector(ot.JointDistribution([x for _, x in each]))
    )
    return study, ot.ThresholdEvent(g, ot.Less(), 0.0)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_ten_analytic_cases_beside_openturns(case):
    """FORM, SORM, MultiFORM and subset sampling of OpenTURNS are the referees."""
    study, event = both(case)
    (found,) = mbs.reliability(study).limits
    ot.RandomGenerator.SetSeed(1)
    start = np.asarray(found.points[0].dimensions) * 1.1 + 0.01
    solver = ot.Cobyla() if case == "four branches" else ot.AbdoRackwitz()
    solver.setMaximumIterationNumber(1000)
    solver.setMaximumAbsoluteError(1e-9), solver.setMaximumConstraintError(1e-9), solver.setMaximumResidualError(1e-9)
    algorithm = ot.SORM(solver, event, start)
    algorithm.run()
    second = algorithm.getResult()
    beta = second.getHasoferReliabilityIndex()
    np.testing.assert_allclose(found.points[0].beta, beta, rtol=1e-4 if case == "four branches" else 1e-6)
    if case != "four branches" and len(found.points) == 1:
        np.testing.assert_allclose(found.breitung, second.getEventProbabilityBreitung(), rtol=1e-3)
        np.testing.assert_allclose(found.hohenbichler, second.getEventProbabilityHohenbichler(), rtol=1e-3)
    several = ot.MultiFORM(solver, event, start)
    several.setMaximumDesignPointsNumber(4)
    several.run()
    distances = [r.getHasoferReliabilityIndex() for r in several.getResult().getFORMResultCollection()]
    assert len(distances) <= len(found.points)  # all that it finds are found
    np.testing.assert_allclose(min(distances), found.points[0].beta, rtol=1e-3)
    subset = ot.SubsetSampling(event)
    subset.setMaximumOuterSampling(4000)
    subset.run()
    result = subset.getResult()
    p, error = result.getProbabilityEstimate(), result.getStandardDeviation()
    assert abs(found.probability - p) < 4 * np.hypot(error, found.error)
    assert found.trusted and found.error < 0.1 * found.probability


@pytest.mark.long
def test_stated_errors_cover_the_truth_as_often_as_they_should():
    """Two hundred random problems with lock-outs, jumps, kinks, flat and far limits, all of them run by the same
    programs; `python -m benchmarks.studies` runs more."""
    z, trusted = [], 0
    for number in range(200):
        numbers, truth = random_problem(np.random.default_rng([20, number]))
        found = mbs.reliability(random_study(numbers), 4096, seed=number, chunk=2048)
        assert found.reject.error < truth
        z.append(abs(found.reject.probability - truth) / found.reject.error)
        trusted += found.trusted
    assert trusted >= 190 and max(z) < 4.5
    covered_as_often_as_they_should(np.array(z))


def test_a_flat_limit_beside_a_steep_one_is_not_passed_by():
    """Subset simulation follows the limit that room leads to, and in six dimensions it often misses the other."""
    measure = lambda p: jnp.maximum(p["x1"] - 4, 0.1 * (p["x2"] - 4)) + 0 * sum(p.values())
    study = study_of(measure, 6, (None, 0.0))
    for seed in range(3):
        found = mbs.reliability(study, seed=seed)
        assert found.trusted and len(found.limits[0].points) == 2
        assert abs(found.reject.probability - (1 - stats.norm.cdf(4.0) ** 2)) < 3.5 * found.reject.error < 1e-6


@pytest.mark.long
def test_parts_that_lock_are_rejects_whatever_the_limits_are():
    """A slider-crank that locks where the crank is longer than the rod, with a limit on where it begins: a plane each,
    at right angles to each other."""

    def model(p):
        mech = mbs.Mechanism(
            [mbs.Body("crank"), mbs.Body("rod"), mbs.Body("slider")],
            [
                mbs.Revolute("A", "ground", "crank"),
                mbs.Revolute("B", "crank", "rod", (p["crank"], 0.0)),
                mbs.Revolute("C", "rod", "slider", (p["rod"], 0.0)),
                mbs.Prismatic("P", "ground", "slider", start=9.98),
            ],
        )
        return mbs.kinematics(mech, {"A": mbs.constant_speed(1.0)}, jnp.linspace(0.0, jnp.pi / 2, 4), throw=False)

    sigma = 0.0038
    study = mbs.Study(
        model, {"crank": 4.98, "rod": 5.0}, dict.fromkeys(("crank", "rod"), mbs.Normal(sigma=sigma)),
        {"start": lambda m: m["P"].q[0]}, limits={"start": (None, 9.98 + 4.5 * sigma * np.sqrt(2))},
    )  # fmt: skip
    found = mbs.reliability(study, 4096)
    locked, beyond = stats.norm.sf(0.02 / (sigma * np.sqrt(2))), stats.norm.sf(4.5)
    assert found.trusted and found.no_value is not None
    assert abs(found.no_value.probability - locked) < 3.5 * found.no_value.error < 0.15 * locked
    either = locked + beyond - locked * beyond
    assert abs(found.reject.probability - either) < 3.5 * found.reject.error < 0.15 * locked
    (point,) = found.no_value.points
    np.testing.assert_allclose(point.beta, 0.02 / (sigma * np.sqrt(2)), rtol=1e-2)
    np.testing.assert_allclose(point.dimensions, [4.99, 4.99], atol=1e-3)
    assert "no value: " in repr(found)
    # each limit is broken by what has no value too, and a measure has it once
    (limit,) = found.limits
    np.testing.assert_allclose([limit.probability, found.rejects["start"].probability], locked + beyond, rtol=0.15)


def test_importance_sampling_needs_all_design_points_and_takes_them():
    study = study_of(*CLOSED_FORMS["both sides"][:3])
    points = mbs.form(study)
    assert len(points) == 2
    half, whole = (mbs.importance(study, x, 8192) for x in (points[0], points))
    truth = CLOSED_FORMS["both sides"][-1]
    assert abs(half.probability - truth / 2) < 3.5 * half.error and abs(whole.probability - truth) < 3.5 * whole.error
    other = mbs.form(study_of(lambda p: p["x1"], 2, (-3.0, 3.0)))
    with pytest.raises(ValueError, match="design points of one limit"):
        mbs.importance(study, other, 64)


def test_rows_along_a_stroke_are_broken_where_one_value_is():
    rows = study_of(lambda p: jnp.stack([p["x1"], p["x2"], -p["x1"]]), 2, (None, 4.0))
    found = mbs.reliability(rows)
    truth = -np.expm1(3 * stats.norm.logcdf(4.0))
    assert abs(found.reject.probability - truth) < 3.5 * found.reject.error
    assert [x.value for x in found.limits] == ["y"] and len(found.limits[0].points) == 3
    each = mbs.form(rows, along=True)
    assert [p.value for p in each] == ["y[0]", "y[1]", "y[2]"] and mbs.form(rows) == []


def test_dimensions_that_share_scores_break_limits_together():
    study = study_of(lambda p: p["x1"] + p["x2"], 2, (None, 6.0), correlation={("x1", "x2"): 0.5})
    found = mbs.reliability(study).limits[0]
    np.testing.assert_allclose(found.points[0].beta, 6 / np.sqrt(3), rtol=1e-9)
    assert abs(found.probability - stats.norm.sf(6 / np.sqrt(3))) < 3.5 * found.error


@pytest.mark.long
def test_the_range_of_a_stroke_has_design_points():
    """The swing of the four-bar of the examples, the largest less the smallest of many angles, which has kinks: against
    SciPy with the closed form of the linkage."""
    text = (resources.files("mbsjax.examples") / "four_bar.toml").read_text().replace("outputs = 361", "outputs = 73")
    study = mbs.loads(text).study()
    turn = np.linspace(0.0, 2 * np.pi, 73)

    def swing(u):
        crank, coupler, ground = np.array([1.0, 3.0, 3.5]) + np.array([0.01, 0.02, 0.02]) / 3 * u[[0, 1, 3]]
        rocker = 2.5 + 0.02 * (2 * stats.norm.cdf(u[2]) - 1)
        x, y = crank * np.cos(turn) - ground, crank * np.sin(turn)
        far = np.hypot(x, y)
        inner = np.arccos((rocker**2 + far**2 - coupler**2) / (2 * rocker * far))
        return np.rad2deg(np.ptp(np.unwrap(np.arctan2(y, x) - inner)))

    np.testing.assert_allclose(swing(np.zeros(4)), study.at_nominal.values[0], rtol=1e-9)
    for point, limit in zip(mbs.form(study, starts=3), (47.2, 48.3)):
        assert point.converged and point.limit == limit
        np.testing.assert_allclose(swing(point.scores), limit, rtol=1e-9)
        condition = {"type": "eq", "fun": lambda u, limit=limit: swing(u) - limit}
        found = [
            optimize.minimize(lambda u: u @ u / 2, start, constraints=condition, method="SLSQP", tol=1e-12)
            for start in (point.scores * 0.7 + 0.1, np.full(4, 0.3), np.full(4, -0.3))
        ]
        nearest = min(np.linalg.norm(x.x) for x in found if abs(swing(x.x) - limit) < 1e-7)
        np.testing.assert_allclose(point.beta, nearest, rtol=1e-5)
