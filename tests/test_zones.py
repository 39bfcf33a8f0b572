"""Zones of drawings, positions and profiles, against closed forms, quadrature and NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import mbsjax as mbs


def plain(measure, nominal, tolerances, **options):
    """A study of a formula."""
    return mbs.Study(lambda p: p, nominal, tolerances, {"y": measure}, **options)


@pytest.mark.parametrize("kind", ["normal", "truncated", "uniform", "rim"])
def test_position_is_spread_as_its_kind_says(kind):
    """The distance from the center has the closed-form distribution, every direction is equally likely."""
    d = mbs.Position(0.1, kind=kind)
    z = np.random.default_rng(1).normal(size=(20_000, 2))
    x = np.asarray(jax.jit(lambda z: d.at(z))(z)) / 0.05
    r, angle = np.hypot(*x.T), np.arctan2(*x.T[::-1])
    assert stats.kstest(angle, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-3
    if kind == "rim":
        np.testing.assert_allclose(r, 1.0, rtol=1e-12)
    else:
        rayleigh = stats.rayleigh(scale=1 / 3)
        cdf = {
            "normal": rayleigh.cdf,
            "truncated": lambda r: np.minimum(rayleigh.cdf(r) / rayleigh.cdf(1.0), 1.0),
            "uniform": lambda r: np.minimum(r, 1.0) ** 2,
        }[kind]
        assert stats.kstest(r, cdf).pvalue > 1e-3
        np.testing.assert_allclose(cdf(r), stats.rayleigh.cdf(np.hypot(*z.T)), rtol=1e-10)  # a quantile stays one
    moment = lambda k: 1.0 if kind == "rim" else 1 / 9 * (2 if k == 2 else 8 / 9) if kind == "normal" else None
    second, fourth = (
        moment(k) or integrate.quad(lambda r, k=k: k * r ** (k - 1) * (1 - cdf(r)), 0, 1)[0] for k in (2, 4)
    )
    np.testing.assert_allclose(float(d.std), 0.05 * np.sqrt(second / 2), rtol=1e-10)
    np.testing.assert_allclose(d.shape.kurtosis, 3 / 8 * fourth / (second / 2) ** 2, rtol=1e-9)


@pytest.mark.parametrize("kind", ["truncated", "uniform", "rim"])
def test_derivatives_of_a_position(kind):
    """Also at the scores 0, and where the series for small scores ends."""
    unit = mbs.Position(0.1, kind=kind).unit
    for z in ([0.3, -0.2], [0.1414, 0.0], [0.1, 0.1002], [3.0, 4.0], [1e-4, 0.0]):
        z = jnp.array(z)
        h = 1e-5 * float(jnp.linalg.norm(z))
        slopes = (jax.vmap(unit)(z + h * jnp.eye(2)) - jax.vmap(unit)(z - h * jnp.eye(2))) / (2 * h)
        np.testing.assert_allclose(jax.jacfwd(unit)(z), slopes.T, rtol=1e-6, atol=1e-8 * jnp.abs(slopes).max())
    at_zero = jax.jacrev(unit)(jnp.zeros(2))
    middle = {"uniform": np.sqrt(0.5), "rim": 1.0, "truncated": np.sqrt(1 - np.exp(-4.5)) / 3}[kind]
    np.testing.assert_allclose(at_zero, middle * np.eye(2), rtol=1e-12)
    assert bool(jnp.all(jnp.isfinite(jax.hessian(lambda z: unit(z)[0])(jnp.zeros(2)))))


def test_position_to_first_order_is_a_circle():
    g = np.array([[3.0, -4.0, 2.0], [0.0, 0.0, 1.0]])
    study = mbs.Study(
        lambda p: jnp.append(p["hole"], p["a"]),
        {"hole": jnp.array([5.0, 0.0]), "a": 1.0},
        {"hole": mbs.Position(0.2, kind="uniform", shift=(0.01, 0.0)), "a": 0.3},
        {"y": lambda x: g[0] @ x, "z": lambda x: g[1] @ x},
    )
    first = mbs.first_order(study)
    np.testing.assert_allclose(first.worst_case, [0.1 * 5 + 2 * 0.3, 0.3], rtol=1e-12)
    np.testing.assert_allclose(first.reach[0], [0.1 * 9 / 5, 0.1 * 16 / 5, 0.6], rtol=1e-12)
    np.testing.assert_allclose(first.middle[0], 15.0 + 2.0, rtol=1e-12)
    np.testing.assert_allclose(first.values[0], 15.03 + 2.0, rtol=1e-12)
    sigma = 0.09 / 2  # what the shift leaves of the radius, uniform
    np.testing.assert_allclose(first.std[0], np.hypot(5 * sigma, 0.2), rtol=1e-9)
    np.testing.assert_allclose(mbs.second_order(study).moments.std[0], first.std[0], rtol=1e-9)
    for k in range(2):
        x = np.asarray(study.extreme(jnp.asarray(g[k])))
        assert bool(study.allowed(jnp.asarray(x)))
        np.testing.assert_allclose(g[k] @ x - first.middle[k], first.worst_case[k], rtol=1e-12)
    corner = jnp.asarray(study.bounds[1])
    assert not bool(study.allowed(corner)) and bool(study.allowed(study.nominal))


def test_position_to_second_order():
    """A quadratic in both coordinates: moments of the uniform circle by quadrature in polar coordinates."""
    f = lambda x, y: 2 * x - y + 30 * x * y + 10 * x**2
    study = plain(
        lambda p: f(*p["hole"]) + p["a"], {"hole": jnp.zeros(2), "a": 0.0},
        {"hole": mbs.Position(0.2, kind="uniform"), "a": mbs.Uniform(0.05)},
    )  # fmt: skip
    x, w = np.polynomial.legendre.leggauss(20)
    r, angle = np.meshgrid(0.05 * (x + 1), np.linspace(0, 2 * np.pi, 40, endpoint=False), indexing="ij")
    w = (w[:, None] * r / (w[:, None] * r).sum()).reshape(-1)
    y = f(r * np.cos(angle), r * np.sin(angle)).reshape(-1)
    mean = w @ y
    second, third, fourth = (w @ (y - mean) ** k for k in (2, 3, 4))
    fourth += 6 * second * 0.05**2 / 3 + 0.05**4 / 5
    variance = second + 0.05**2 / 3
    expected = [mean, variance**0.5, third / variance**1.5, fourth / variance**2]
    np.testing.assert_allclose([m[0] for m in mbs.second_order(study).moments], expected, rtol=1e-8)
    for method in ("latin", "sobol"):
        tally = mbs.monte_carlo(study, 16384, method=method).tally
        for m, error, goal in zip(tally.moments, tally.errors, expected):
            assert abs(m[0] - goal) < 4.5 * error[0]


@pytest.mark.parametrize("feature", ["hole", "pin"])
def test_position_with_bonus_at_maximum_material(feature):
    """The diameter grows with the size: NumPy's samples of the same definition, and E[R^2] in closed form."""
    nominal = {"size": 10.0, "at": jnp.array([1.0, 2.0])}
    tolerances = {
        "at": mbs.Position(0.1, kind="uniform", mmc="size", feature=feature),  # before the size: the order is free
        "size": mbs.Uniform((-0.02, 0.18)),
    }
    study = mbs.Study(
        lambda p: p, nominal, tolerances,
        {"x": lambda p: p["at"][0] - 1, "square": lambda p: jnp.sum((p["at"] - jnp.array([1.0, 2.0])) ** 2)},
    )  # fmt: skip
    n = 4096
    sample = mbs.monte_carlo(study, n)
    x = sample.dimensions(np.arange(n))
    size = x[:, 2] - 10.0
    radius = 0.05 + (size + 0.02 if feature == "hole" else 0.18 - size) / 2
    inside = np.hypot(*(x[:, :2] - [1.0, 2.0]).T) / radius
    assert stats.kstest(inside**2, stats.uniform.cdf).pvalue > 1e-3 and inside.max() <= 1
    assert abs(np.corrcoef(inside, size)[0, 1]) < 4 / n**0.5
    square = 0.1**2 + (0.2 / 2) ** 2 / 12  # E[R^2]: the radius is uniform from 0.05 to 0.15
    np.testing.assert_allclose(mbs.first_order(study).std[0], (square / 4) ** 0.5, rtol=1e-9)
    tally = mbs.monte_carlo(study, 16384, method="sobol").tally
    assert abs(tally.mean[1] - square / 2) < 4 * tally.errors.mean[1]
    np.testing.assert_allclose(tally.std[0], (square / 4) ** 0.5, rtol=2e-3)
    np.testing.assert_allclose(np.asarray(study.bounds)[:, 0], [1 - 0.15, 1 + 0.15], rtol=1e-12)
    least, most = (9.98, 10.18) if feature == "hole" else (10.18, 9.98)
    ways = np.linspace(0, 2 * np.pi, 9)
    for allowed, size in ((0.05, least), (0.15, most)):
        for ratio, fine in ((0.999, True), (1.001, False)):
            points = [[1 + ratio * allowed * np.cos(a), 2 + ratio * allowed * np.sin(a), size] for a in ways]
            assert np.all(np.asarray(jax.vmap(study.allowed)(jnp.array(points))) == fine)


def test_extremes_with_bonus_against_brute_force():
    """Which end of the size is worse depends on how much it counts itself."""
    tolerances = {"size": 0.1, "at": mbs.Position(0.1, mmc="size"), "other": mbs.Position(0.04, mmc="size")}
    study = plain(lambda p: p["size"], {"size": 10.0, "at": jnp.zeros(2), "other": jnp.zeros(2)}, tolerances)
    rng = np.random.default_rng(3)
    for g in rng.normal(size=(6, 5)) * [2.0, 1, 1, 1, 1]:
        x = np.asarray(study.extreme(jnp.asarray(g)))
        assert bool(study.allowed(jnp.asarray(x)))
        best = max(
            g[0] * s + (0.05 + (s + 0.1) / 2) * np.hypot(*g[1:3]) + (0.02 + (s + 0.1) / 2) * np.hypot(*g[3:])
            for s in np.linspace(-0.1, 0.1, 11)
        )
        np.testing.assert_allclose(g @ (x - [10.0, 0, 0, 0, 0]), best, rtol=1e-12)


def test_reliability_with_a_position():
    """The chance of lying beyond a line, in closed form for the uniform circle and for normal coordinates."""
    g, limit = np.array([0.6, 0.8]), 0.03
    for kind, exact in (("normal", stats.norm.sf(limit / (0.05 / 3))), ("uniform", None)):
        study = plain(
            lambda p: g @ p["hole"], {"hole": jnp.zeros(2)}, {"hole": mbs.Position(0.1, kind=kind)},
            limits={"y": (None, limit)},
        )  # fmt: skip
        (point,) = mbs.form(study)
        assert point.converged
        np.testing.assert_allclose(point.dimensions, limit * g, rtol=1e-6)
        if exact is None:
            h = limit / 0.05
            exact = (np.arccos(h) - h * np.sqrt(1 - h * h)) / np.pi
            rate, error = mbs.monte_carlo(study, 4096, method="sobol").tally.rejects["y"][:2]
            assert abs(rate - exact) < 4 * error
        else:
            np.testing.assert_allclose(point.probability, exact, rtol=1e-7)


def test_zones_are_trees_of_numbers():
    study = plain(lambda p: p["hole"] @ jnp.array([1.0, 2.0]), {"hole": jnp.ones(2)}, {"hole": mbs.Position(0.3)})
    z = jnp.array([0.5, -1.0])
    slope = jax.jit(jax.grad(lambda study: study(study.dimensions(z)).values[0], allow_int=True))
    np.testing.assert_allclose(slope(study).distributions[0].spread.scale, 0.5 - 2.0, rtol=1e-12)
    wider = study.moved(study.nominal + 1, 2 * jnp.ones(2))
    np.testing.assert_allclose(wider.dimensions(z), 2.0 + 0.1 * z, rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(lambda r: mbs.Position(r, kind="rim").std)(jnp.array([0.2])), 0.1 / 2**0.5)
