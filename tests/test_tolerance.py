"""The parts of a tolerance study against closed forms, quadrature and each other."""

import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import mbsjax as mbs
from mbsjax.demo import FOUR_BAR, four_bar
from tests.tolerances import clutch_study


def plain(measure, nominal, tolerances, **options):
    """A study of a formula."""
    return mbs.Study(lambda p: p, nominal, tolerances, {"y": measure}, **options)


def moments_of(cumulants):
    mean, variance, third, fourth = cumulants
    return mean, variance**0.5, third / variance**1.5, 3 + fourth / variance**2


def test_moments_of_a_quadratic_in_dimensions_of_all_kinds():
    """Without interaction the moments are exact, whatever the distributions: here against SciPy's integrals."""
    scale = 0.2 / (-2 * stats.norm.logsf(3.0)) ** 0.5
    given = {
        "a": (mbs.Uniform(0.3), stats.uniform(-0.3, 0.6), (2.0, 0.5)),
        "b": (mbs.Rayleigh(0.2), stats.rayleigh(scale=scale), (-1.0, 3.0)),
        "c": (mbs.Triangular(0.4, mode=0.5), stats.triang(0.75, -0.4, 0.8), (1.0, -1.0)),
        "d": (mbs.Beta(0.2, a=2, b=5), stats.beta(2, 5, -0.2, 0.4), (0.0, 4.0)),
    }
    study = plain(
        lambda p: sum(s * (x - 1) + c * (x - 1) ** 2 for x, (_, _, (s, c)) in zip(p.values(), given.values())),
        dict.fromkeys(given, 1.0),
        {name: d for name, (d, _, _) in given.items()},
    )
    total = np.zeros(4)
    for _, exact, (s, c) in given.values():
        mean, *rest = (exact.expect(lambda x, k=k, s=s, c=c: (s * x + c * x**2) ** k) for k in (1, 2, 3, 4))
        second, third = rest[0] - mean**2, rest[1] - 3 * mean * rest[0] + 2 * mean**3
        fourth = rest[2] - 4 * mean * rest[1] + 6 * mean**2 * rest[0] - 3 * mean**4
        total += [mean, second, third, fourth - 3 * second**2]
    found = mbs.second_order(study).moments
    np.testing.assert_allclose([m[0] for m in found], moments_of(total), rtol=1e-6)


def test_moments_with_interaction_and_correlation():
    """For normal dimensions they are exact with both: here against a Gauss-Hermite quadrature."""
    rho, s = 0.6, (0.2, 0.3)
    f = lambda a, b: a + 2 * b + a * b + 0.5 * a**2
    study = plain(
        lambda p: f(p["a"], p["b"]),
        {"a": 0.0, "b": 0.0},
        {"a": mbs.Normal(sigma=s[0]), "b": mbs.Normal(sigma=s[1])},
        correlation={("a", "b"): rho},
    )
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    u, v = np.meshgrid(nodes, nodes, indexing="ij")
    w = np.outer(weights, weights) / (2 * np.pi)
    y = f(s[0] * u, s[1] * (rho * u + (1 - rho**2) ** 0.5 * v))
    mean = np.sum(w * y)
    second, third, fourth = (np.sum(w * (y - mean) ** k) for k in (2, 3, 4))
    expansion = mbs.second_order(study)
    expected = moments_of((mean, second, third, fourth - 3 * second**2))
    np.testing.assert_allclose([m[0] for m in expansion.moments], expected, rtol=1e-7)
    first = expansion.first
    covariance = np.array([[0.04, rho * 0.06], [rho * 0.06, 0.09]])
    np.testing.assert_allclose(first.std[0] ** 2, np.array([1, 2]) @ covariance @ [1, 2], rtol=1e-12)
    np.testing.assert_allclose(first.contribution.sum(), 1.0, rtol=1e-12)
    sample = mbs.monte_carlo(study, 65536, method="sobol")
    x = sample.dimensions(np.arange(65536))
    np.testing.assert_allclose(np.corrcoef(x.T)[0, 1], rho, atol=1e-3)
    for m, error, goal in zip(sample.tally.moments, sample.tally.errors, expected):
        assert abs(m[0] - goal) < 4 * error[0]


def test_yield_from_four_moments():
    """Of a skewed measure: a quarter of a chi-square distribution with forty degrees of freedom."""
    n = 40
    names = [f"x{i}" for i in range(n)]
    study = plain(
        lambda p: sum(x**2 for x in p.values()),
        dict.fromkeys(names, 0.0),
        dict.fromkeys(names, mbs.Normal(sigma=1.0)),
        limits={"y": (20.0, 70.0)},
    )
    exact = stats.chi2(n)
    second = mbs.second_order(study)
    np.testing.assert_allclose(
        [m[0] for m in second.moments], [n, (2 * n) ** 0.5, (8 / n) ** 0.5, 3 + 12 / n], rtol=1e-9
    )
    able = second.capability
    np.testing.assert_allclose([able.below[0], able.above[0]], [exact.cdf(20.0), exact.sf(70.0)], rtol=0.06)
    np.testing.assert_allclose(able.sigma_level, stats.norm.isf(1 - able.good))
    np.testing.assert_allclose([able.cp[0], able.cpk[0]], [50 / 6 / 80**0.5, 20 / 3 / 80**0.5], rtol=1e-9)


def test_reliability_with_dimensions_that_are_not_normal():
    """FORM is exact where one dimension decides: the quantile of its own distribution."""
    scale = 1 / (-2 * stats.norm.logsf(3.0)) ** 0.5
    for kind, exact in (
        (mbs.Uniform(1.0), stats.uniform(-1, 2)),
        (mbs.Rayleigh(1.0), stats.rayleigh(scale=scale)),
        (mbs.Beta(1.0, a=2, b=3), stats.beta(2, 3, -1, 2)),
    ):
        study = plain(lambda p: jnp.exp(p["a"]), {"a": 3.0}, {"a": kind}, limits={"y": (None, np.exp(3.7))})
        (point,) = mbs.form(study)
        assert point.converged
        np.testing.assert_allclose(point.probability, exact.sf(0.7), rtol=1e-7)
        np.testing.assert_allclose(point.dimensions, 3.7, rtol=1e-9)


def test_standard_errors_are_those_of_repeated_sampling():
    study = plain(lambda p: p["a"] ** 2, {"a": 1.0}, {"a": mbs.Normal(sigma=0.3)}, limits={"y": (None, 2.0)})
    for method in ("random", "sobol"):
        runs = [mbs.monte_carlo(study, 1024, seed=k, method=method).tally for k in range(60)]
        seen = np.std([[t.moments[0][0], t.moments[1][0], t.rate(t.tails)[0][1][0]] for t in runs], axis=0, ddof=1)
        claimed = np.mean([[t.errors[0][0], t.errors[1][0], t.rate(t.tails)[1][1][0]] for t in runs], axis=0)
        np.testing.assert_allclose(claimed, seen, rtol=0.5)
    plain_error = mbs.monte_carlo(study, 1024, method="random").tally.errors.mean[0]
    assert mbs.monte_carlo(study, 1024, method="sobol").tally.errors.mean[0] < plain_error / 10
    assert mbs.monte_carlo(study, 1024, method="latin").tally.errors.mean[0] < plain_error / 5


def test_worst_case_inside_and_at_a_corner():
    study = plain(
        lambda p: -((p["a"] - 1.02) ** 2) - (p["b"] - 2.0) ** 2 + p["a"] * p["b"] * 0.1,
        {"a": 1.0, "b": 2.0},
        {"a": 0.1, "b": 0.2},
    )
    found = mbs.worst_case(study)
    grid = np.stack(np.meshgrid(np.linspace(0.9, 1.1, 401), np.linspace(1.8, 2.2, 401)), -1).reshape(-1, 2)
    y = -((grid[:, 0] - 1.02) ** 2) - (grid[:, 1] - 2.0) ** 2 + grid[:, 0] * grid[:, 1] * 0.1
    assert found.upper[0] >= y.max() - 1e-12
    np.testing.assert_allclose([found.lower[0], found.upper[0]], [y.min(), y.max()], atol=1e-6)
    many = dict.fromkeys([f"x{i}" for i in range(20)], 1.0)  # too many corners to try them all
    study = plain(lambda p: sum((-1) ** i * x for i, x in enumerate(p.values())), many, dict.fromkeys(many, 0.1))
    np.testing.assert_allclose([mbs.worst_case(study).lower[0], mbs.worst_case(study).upper[0]], [-2.0, 2.0])


LENGTHS = {k: FOUR_BAR[k] for k in ("crank", "coupler", "rocker", "ground", "height")}


def crank_turns(p):
    return mbs.kinematics(four_bar(p), {"A": mbs.constant_speed(1.0)}, jnp.linspace(0.0, 6.0, 61), throw=False)


@pytest.mark.long
def test_samples_that_fail_or_come_out_on_another_branch_are_classes():
    """A four-bar near its limit: Grashof's rule tells which samples lock; the start of joint D, which branch."""
    tolerances = {"crank": mbs.Uniform(0.3), "ground": mbs.Uniform(0.6)}
    study = mbs.Study(
        crank_turns, {**LENGTHS, "crank": 1.0, "ground": 4.3}, tolerances, {"swing": lambda m: m["D"].q[-1]}
    )
    sample = mbs.monte_carlo(study, 2048, method="latin")
    x = sample.dimensions(np.arange(2048))
    links = np.c_[x, np.broadcast_to([LENGTHS["coupler"], LENGTHS["rocker"]], (2048, 2))]
    grashof = links.min(1) + links.max(1) < links.sum(1) - links.min(1) - links.max(1)
    failed = np.isin(sample.kind, [mbs.CLASSES.index(k) for k in ("locked", "not assembled")])
    np.testing.assert_array_equal(failed, ~grashof)
    assert 0.05 < failed.mean() < 0.95
    np.testing.assert_array_equal(np.isnan(sample["swing"]), failed)
    told = sample.tally.kinds
    np.testing.assert_allclose(sum(p for p, _, _ in told.values()), 1.0)
    _, error, example = told["locked"]
    assert bool(sample.outcome(example).result == mbs.RESULTS.locked) and error > 0
    np.testing.assert_allclose(sample.tally.rejects["swing"][0], failed.mean())

    def assembled(p):  # the estimate decides which way the rocker goes
        return mbs.kinematics(
            four_bar(p), {"A": lambda t: t}, jnp.zeros(1) + 0.5, estimate={"D": p["guess"]}, throw=False
        )

    study = mbs.Study(
        assembled, {**LENGTHS, "guess": 0.0}, {"guess": mbs.Uniform(3.0)}, {"rocker": lambda m: m["D"].q[0]}
    )
    sample = mbs.monte_carlo(study, 256)
    other = sample.kind == mbs.CLASSES.index("changed branch")
    assert 0.1 < other.mean() < 0.9
    turned = lambda x: np.exp(1j * x)
    rest = sample["rocker"][~other & np.isfinite(sample["rocker"])]
    np.testing.assert_allclose(turned(rest), turned(float(study.at_nominal.values[0])), atol=1e-9)
    assert np.all(np.abs(turned(sample["rocker"][other]) - turned(float(study.at_nominal.values[0]))) > 1e-3)


def test_a_mechanism_and_functions_that_pick_its_leaves():
    mech = four_bar(LENGTHS)
    run = lambda mech: mbs.assemble(mech, fixed={"A": 0.5}, throw=False)
    picked = {
        "coupler": (lambda m: m.joint("C").frame_a.x, 0.01),
        "rocker": (lambda m: m.joint("C").frame_b.x, mbs.Uniform(0.02)),
    }
    study = mbs.Study(run, mech, picked, {"D": lambda found: found["D"]})
    by_name = mbs.Study(
        lambda p: run(four_bar(p)),
        LENGTHS,
        {"coupler": 0.01, "rocker": mbs.Uniform(0.02)},
        {"D": lambda found: found["D"]},
    )
    first, other = mbs.first_order(study), mbs.first_order(by_name)
    np.testing.assert_allclose(first.slopes, other.slopes, rtol=1e-12)


@pytest.mark.long
def test_form_error_of_a_cam():
    """Out of round by waves: the lift of a knife follows the curve; slopes are the waves themselves."""
    waves = 6

    def lift(p):
        rim = mbs.deviated(mbs.disc(p["R"]), p["form"])
        cam = mbs.Mechanism(
            [
                mbs.Body("cam", profiles={"rim": rim}),
                mbs.Body("tip", profiles={"end": mbs.Profile.chain([mbs.Point((0.0, 0.0))], closed=False)}),
            ],
            [
                mbs.Revolute("O", "ground", "cam"),
                mbs.Prismatic("lift", "ground", "tip", start=10.0),
                mbs.Contact("on", "cam.rim", "tip.end", active=True),
            ],
        )
        return mbs.assemble(cam, fixed={"O": p["angle"]}, throw=False)

    nominal = {"R": 10.0, "form": jnp.zeros(waves), "angle": -0.7}
    study = mbs.Study(
        lift, nominal, {"R": 0.01, "form": mbs.Normal(sigma=0.002)}, {"lift": lambda found: found["lift"]}
    )
    assert study.names == ("R", *(f"form[{k}]" for k in range(waves)))
    first = mbs.first_order(study)
    angles = 0.7 * np.arange(1, 4)
    expected = [1.0, *itertools.chain(*zip(np.cos(angles), np.sin(angles)))]
    np.testing.assert_allclose(first.slopes[0], expected, atol=1e-9)
    np.testing.assert_allclose(first.std[0], np.hypot(0.01 / 3, 0.002 * 3**0.5), rtol=1e-9)


@pytest.mark.long
def test_form_error_keeps_the_ends_of_elements_and_bumps_stay_local():
    plate = mbs.polygon([(0.0, 0.0), (4.0, 0.0), (4.0, 3.0), (0.0, 3.0)], 0.5)
    n = len(plate.elements)
    for kind in ("fourier", "spline", "through"):
        bent = mbs.deviated(plate, jnp.full((n, 5), 0.03), kind=kind)
        for before, after in zip(plate.elements, bent.elements):
            for s in (0.0, 1.0):
                np.testing.assert_allclose(after(s).position, before(s).position, atol=1e-12)
            away = (after(0.5).position - before(0.5).position) @ before(0.5).normal
            assert away > 0.02
    local = mbs.deviated(mbs.disc(2.0), np.eye(8)[2] * 0.1, kind="spline")
    radius = lambda s: float(jnp.linalg.norm(local(s).position))
    np.testing.assert_allclose([radius(s) for s in (0.25, 0.0, 0.5, 0.75)], [2.1, 2.0, 2.0, 2.0], atol=1e-12)
    np.testing.assert_allclose(radius(0.25 + 1 / 8), 2.025, atol=1e-12)


@pytest.mark.long
def test_allocation_has_the_closed_form_of_lagrange():
    """Costs B / T^k under an RSS or worst-case requirement (Chase)."""
    names, slopes = ["a", "b", "c"], np.array([1.0, -2.0, 0.5])
    study = plain(
        lambda p: sum(s * x for s, x in zip(slopes, p.values())), dict.fromkeys(names, 10.0), dict.fromkeys(names, 0.1)
    )
    first = mbs.first_order(study)
    B, k = np.array([1.0, 3.0, 0.5]), 1.5
    costs = {n: mbs.Cost(2.0, b, k) for n, b in zip(names, B)}
    rss = mbs.allocate(first, costs, rss={"y": 0.2})
    T = (B / slopes**2) ** (1 / (k + 2))
    T *= 0.2 / np.sqrt(np.sum((slopes * T) ** 2))
    np.testing.assert_allclose(list(rss.tolerances.values()), T, rtol=1e-6)
    np.testing.assert_allclose(rss.cost, np.sum(2.0 + B / T**k), rtol=1e-8)
    assert list(rss.active) == ["rss of y"] and rss.converged
    T = (B / np.abs(slopes)) ** (1 / (k + 1))
    T *= 0.2 / np.sum(np.abs(slopes) * T)
    worst = mbs.allocate(first, costs, worst_case={"y": 0.2})
    np.testing.assert_allclose(list(worst.tolerances.values()), T, rtol=1e-6)
    # a bound that is in the way is named, and the others share what is left
    bound = mbs.allocate(first, {**costs, "b": mbs.Cost(2.0, B[1], k, upper=0.03)}, worst_case={"y": 0.2})
    np.testing.assert_allclose(bound.tolerances["b"], 0.03, rtol=1e-6)
    assert set(bound.active) == {"worst case of y", "upper bound of b"}
    np.testing.assert_allclose(bound.met["worst case of y"], 0.2, rtol=1e-6)
    none = mbs.allocate(first, {n: mbs.Cost(2.0, b, k, lower=1.0) for n, b in zip(names, B)}, rss={"y": 0.2})
    assert not none.converged and none.infeasible == ("rss of y",) and "infeasible: rss of y" in repr(none)
    assert list(none.tolerances.values()) == pytest.approx([1.0] * 3, rel=1e-12)  # the bounds are kept
    np.testing.assert_allclose(none.met["rss of y"], np.linalg.norm(slopes), rtol=1e-12)


@pytest.mark.long
def test_allocation_for_a_yield_is_kept_by_sampling():
    """The clutch: hub and ring as cheap as 99.9 % good ones allow, the roller as it is."""
    study = clutch_study()
    second = mbs.second_order(study)
    found = mbs.allocate(second, {"a": mbs.Cost(0.0, 1.0), "e": mbs.Cost(0.0, 0.5)}, good={"phi": 0.999})
    assert found.converged and found.tolerances["c"] == pytest.approx(0.01)
    assert "importance sampling" in found.checked["yield of phi"]
    np.testing.assert_allclose(found.met["yield of phi"], 0.999, atol=1e-4)
    # the limits of the clutch are planes in its dimensions, (a + c) / (e - c) at the cosines of the limits
    x = np.random.default_rng(3).normal(size=(2_000_000, 3)) * np.array(list(found.tolerances.values())) / 3
    a, c, e = (x + np.array([27.645, 11.43, 50.8])).T
    phi = np.arccos((a + c) / (e - c))
    good = np.mean((phi >= float(study.lower[0])) & (phi <= float(study.upper[0])))
    assert abs(good - 0.999) < 1e-4  # sampling alone has an error of 2e-5
    wide = study.std[0] * 3
    assert found.tolerances["a"] < wide


@pytest.mark.long
def test_report_tells_all_in_tables_files_and_pictures(tmp_path):
    study = clutch_study()
    report = mbs.tolerance(study, samples=4096, chunk=1024)
    text = str(report)
    for title in ("measures", "contributors of phi", "contributors of b", "most likely rejects", "classes of samples"):
        assert title in text
        assert report[title].rows
    measures = {row[0]: row[1:] for row in report["measures"].rows}
    np.testing.assert_allclose(np.rad2deg(measures["worst case, exact, upper"][0]), 7.938469292597883, rtol=1e-9)
    np.testing.assert_allclose(measures["first order: sigma"][0], report.first.std[0])
    assert [row[0] for row in report["contributors of phi"].rows] == ["a", "c", "e"]
    with pytest.raises(KeyError, match="there is no table 'mesures'; there are summary, ranking, .*, measures"):
        report["mesures"]
    paths = report.to_csv(tmp_path / "tables")
    assert len(paths) == len(report.tables)
    header, *rows = (tmp_path / "tables" / "measures.csv").read_text().splitlines()
    assert header == ",phi,b" and len(rows) == len(report["measures"].rows)
    known = json.loads(report.to_json(tmp_path / "report.json").read_text())
    np.testing.assert_allclose(known["contributors of phi"]["rows"][0][5], report.first.slopes[0, 0])
    frame = report["contributors of b"].to_pandas()
    np.testing.assert_allclose(frame["% of variance"].sum(), 100.0)
    page = report.to_html(tmp_path / "report.html", title="Clutch <1>").read_text()
    assert page.count("<img ") == 4 and page.count("data:image/png;base64,") == 4
    assert "Clutch &lt;1&gt;" in page and "http" not in page.replace("http-equiv", "")
    axes = report.histogram("phi")
    assert report.pareto("phi", axes) is axes
    with pytest.raises(ValueError, match="is one number"):
        report.bands("phi")
    with pytest.raises(ValueError, match="no contributor 'x'"):
        report.scatter("phi", "x")


def test_study_can_be_jitted_and_differentiated_from_outside():
    """A study is a PyTree: its tolerances are leaves."""
    study = plain(lambda p: p["a"] ** 3, {"a": 2.0}, {"a": mbs.Normal(0.3)})
    value = jax.jit(lambda study, z: study(study.dimensions(z)).values[0])
    np.testing.assert_allclose(value(study, jnp.ones(1)), 2.1**3, rtol=1e-12)
    slope = jax.grad(lambda z: value(study, z))(jnp.zeros(1))
    np.testing.assert_allclose(slope, 0.1 * 12.0, rtol=1e-12)


def test_correlated_dimensions_that_are_not_normal():
    """The correlation given is that of the scores; that of the dimensions follows."""
    given = {"a": mbs.Weibull(1.0, k=1.0), "b": mbs.Rayleigh(1.0)}
    study = plain(lambda p: p["a"] + 2 * p["b"], {"a": 5.0, "b": 5.0}, given, correlation={("a", "b"): -0.8})
    first = mbs.first_order(study)
    z = np.random.default_rng(0).normal(size=(2, 1_000_000))
    z[1] = -0.8 * z[0] + 0.6 * z[1]
    y = np.asarray(given["a"].at(z[0])) + 2 * np.asarray(given["b"].at(z[1]))
    np.testing.assert_allclose(first.std[0], y.std(), rtol=5e-3)
    np.testing.assert_allclose(mbs.second_order(study).moments.std[0], first.std[0], rtol=1e-9)


def test_limits_that_are_never_broken_or_stationary_at_the_start():
    form = lambda f, limit, d: mbs.form(plain(f, {"a": 0.0, "b": 0.0}, {"a": d, "b": d}, limits={"y": (None, limit)}))[
        0
    ]
    unit = mbs.Normal(sigma=1.0)
    dead_center = form(lambda p: p["a"] ** 2 + 1e-3 * p["b"], 4.0, unit)
    assert dead_center.converged
    np.testing.assert_allclose(dead_center.beta, 2.0, atol=1e-3)
    saddle = form(lambda p: 0.1 * p["a"] + p["b"] ** 2, 1.0, unit)  # not at a = 10
    assert saddle.converged and saddle.beta < 1.01
    for never in (form(lambda p: 0 * p["a"] + 1.0, 2.0, unit), form(lambda p: p["a"] + p["b"], 3.0, mbs.Uniform(1.0))):
        assert not never.converged and never.probability == 0 and never.beta == np.inf
    broken = form(lambda p: p["a"] + p["b"], -np.sqrt(2.0), unit)
    np.testing.assert_allclose([broken.beta, broken.probability], [-1.0, stats.norm.cdf(1.0)], rtol=1e-9)
    cut = form(lambda p: p["a"] + p["b"], 0.5, mbs.Truncated(0.3))
    np.testing.assert_allclose(cut.importance, [0.5, 0.5], rtol=1e-6)


def test_worst_case_on_a_ridge():
    ridge = plain(
        lambda p: -1000 * ((p["a"] - 1) - (p["b"] - 2)) ** 2 + p["a"] - 1, {"a": 1.0, "b": 2.0}, {"a": 0.1, "b": 0.2}
    )
    np.testing.assert_allclose(mbs.worst_case(ridge).upper, 0.1, atol=1e-6)


@pytest.mark.long
def test_allocation_finds_the_same_from_any_start():
    costs = {"a": mbs.Cost(0.0, 1.0), "b": mbs.Cost(0.0, 4.0)}
    total = []
    for tolerance in (0.001, 0.5, 9.0):
        tolerances = {"a": tolerance, "b": tolerance}
        study = plain(lambda p: p["a"] + p["b"], {"a": 10.0, "b": 20.0}, tolerances, limits={"y": (29.0, 31.0)})
        found = mbs.allocate(mbs.first_order(study), costs, good={"y": 0.999})
        assert found.converged and list(found.active) == ["yield of y"]
        assert 0.999 <= found.met["yield of y"] - 3 * found.errors["yield of y"] < 0.9991  # as samples tell it
        total.append(found.cost)
    # rejects depend on sigma alone, so that Lagrange's closed form holds with it
    sigma = 1.0 / stats.norm.isf(0.0005)
    T = np.array([1.0, 4.0]) ** (1 / 3)
    T *= 3 * sigma / np.hypot(*T)
    over = np.array(total) / (1 / T[0] + 4 / T[1]) - 1
    assert np.all((over >= 0) & (over < 2e-3))  # what makes sure of the yield


def test_what_rounding_leaves_of_a_value_has_no_contributors():
    little = lambda p: 8.0 + 1e-9 * p["a"] + 1e-25 * p["b"]
    measures = {"held": lambda p: 8.0 + 1e-15 * p["a"], "little": little}
    found = mbs.first_order(mbs.Study(lambda p: p, {"a": 2.0, "b": 3.0}, {"a": 0.3, "b": 0.1}, measures))
    assert found.std[0] == 0.0 and found.std[1] == pytest.approx(1e-10, rel=1e-12)
    assert found.contribution.tolist() == [[0.0, 0.0], [1.0, 0.0]]
