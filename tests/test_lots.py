"""Tolerances wider than what they belong to, correlation one, and common lots, against closed forms."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import mbsjax as mbs


def sums(tolerances, **options):
    """A study of the sum, the difference and the square of the sum of two dimensions."""
    measures = {
        "sum": lambda p: p["a"] + p["b"],
        "difference": lambda p: p["a"] - p["b"],
        "square": lambda p: (p["a"] + p["b"]) ** 2,
    }
    return mbs.Study(lambda p: p, {"a": 0.05, "b": 0.05, "c": 1.0}, tolerances, measures, **options)


@pytest.mark.parametrize(
    "together", [{"lots": {"rods": ["a", "b"]}}, {"correlation": {("a", "b"): 1.0}}, {"correlation": np.ones((2, 2))}]
)
def test_dimensions_of_one_lot(together):
    """a = b, uniform and wider than the nominal: var(a + b) = 4 var, var(a - b) = 0; (a + b)^2 = 4 a^2 exactly."""
    T = 0.1
    study = sums(dict.fromkeys("ab", mbs.Uniform(T)), **together)
    exact = stats.uniform(0.05 - T, 2 * T)
    var = exact.var()
    first, second = mbs.first_order(study), mbs.second_order(study)
    np.testing.assert_allclose(first.std[:2] ** 2, [4 * var, 0.0], rtol=1e-9)
    np.testing.assert_allclose(first.contribution[:2], [[0.5, 0.5], [0.0, 0.0]], rtol=1e-12)
    np.testing.assert_allclose(second.moments.std[:2] ** 2, [4 * var, 0.0], rtol=1e-9, atol=1e-15)
    raw = [exact.expect(lambda x, k=k: (4 * x**2) ** k) for k in (1, 2, 3, 4)]
    central = [
        sum(stats.binom.pmf(j, k, 0.5) * 2**k * (-raw[0]) ** (k - j) * ([1.0, *raw][j]) for j in range(k + 1))
        for k in (2, 3, 4)
    ]
    expected = [raw[0], central[0] ** 0.5, central[1] / central[0] ** 1.5, central[2] / central[0] ** 2]
    np.testing.assert_allclose([m[2] for m in second.moments], expected, rtol=1e-7)
    for method in ("random", "latin", "sobol"):
        sample = mbs.monte_carlo(study, 512, method=method)
        x = sample.dimensions(np.arange(512))
        np.testing.assert_allclose(x[:, 0], x[:, 1], rtol=1e-14)
        assert stats.kstest(x[:, 0], exact.cdf).pvalue > 1e-3


def test_dimensions_of_different_kinds_follow_each_other():
    """With correlation 1 both have the same quantile; with -1 the opposite one."""
    kinds = {"a": mbs.Uniform(0.1), "b": mbs.Rayleigh(0.3)}
    scale = 0.3 / (-2 * stats.norm.logsf(3.0)) ** 0.5
    p = (np.arange(1_000_000) + 0.5) / 1_000_000
    for rho in (1.0, -1.0):
        study = sums(kinds, correlation={("a", "b"): rho})
        x = mbs.monte_carlo(study, 256).dimensions(np.arange(256)) - 0.05
        quantile = stats.uniform(-0.1, 0.2).cdf(x[:, 0])
        other = stats.rayleigh(scale=scale).cdf(x[:, 1])
        np.testing.assert_allclose(other, quantile if rho > 0 else 1 - quantile, atol=1e-12)
        y = 0.2 * p + stats.rayleigh(scale=scale).ppf(p if rho > 0 else 1 - p)
        np.testing.assert_allclose(mbs.first_order(study).std[0], y.std(), rtol=1e-4)
    limit = float(study.at_nominal.values[0]) + 0.2
    study = sums(kinds, correlation={("a", "b"): 1.0}, limits={"sum": (None, limit)})
    (point,) = mbs.form(study)  # one score decides, so that it is exact
    z = mbs.Normal(sigma=1.0).at(point.scores[0])
    np.testing.assert_allclose(float(kinds["a"].at(z) + kinds["b"].at(z)), 0.2, rtol=1e-9)
    np.testing.assert_allclose(point.probability, stats.norm.sf(point.scores[0]), rtol=1e-9)


def test_a_correlation_given_to_one_of_a_lot_holds_for_all():
    tolerances = {"a": mbs.Normal(sigma=1.0), "b": mbs.Normal(sigma=2.0), "c": mbs.Normal(sigma=3.0)}
    study = sums(tolerances, correlation={("b", "c"): 0.5}, lots={"rods": ["a", "b"]})
    expected = np.array([[1.0, 1, 0.5], [1, 1, 0.5], [0.5, 0.5, 1]]) * np.outer([1, 2, 3], [1, 2, 3])
    np.testing.assert_allclose(mbs.first_order(study).covariance, expected, rtol=1e-12)
    np.testing.assert_allclose(mbs.second_order(study).moments.std[0], 3.0, rtol=1e-9)


def test_any_semidefinite_correlation():
    """Of random ranks; an indefinite one is refused."""
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(6)]
    measures = {"y": lambda p: sum(p.values())}
    for rank in (1, 3, 5):
        root = rng.normal(size=(6, rank))
        root /= np.linalg.norm(root, axis=1, keepdims=True)
        R = root @ root.T
        study = mbs.Study(
            lambda p: p, dict.fromkeys(names, 0.0), dict.fromkeys(names, mbs.Normal(sigma=1.0)), measures, correlation=R
        )
        L = np.asarray(study.mixing)
        np.testing.assert_allclose(L @ L.T, R, atol=1e-7)
        assert np.count_nonzero(np.abs(L).sum(0)) == rank
        np.testing.assert_allclose(mbs.first_order(study).std ** 2, R.sum(), rtol=1e-6)
        wrong = 1.1 * R - 0.1 * np.eye(6)
        told = (
            "its smallest eigenvalue is -0.1"
            if np.abs(wrong - np.eye(6)).max() <= 1
            else "must be between -1 and 1, got"
        )
        with pytest.raises(ValueError, match=told):
            mbs.Study(lambda p: p, dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.1), measures, correlation=wrong)


def test_lots_of_arrays_and_zones():
    """Two holes drilled in one setting: their distance does not vary, their place does."""
    nominal = {"A": jnp.array([0.0, 0.0]), "B": jnp.array([30.0, 40.0]), "C": jnp.zeros(2)}
    zone = mbs.Position(0.1, kind="uniform")
    measures = {"distance": lambda p: jnp.linalg.norm(p["B"] - p["A"]), "middle": lambda p: (p["A"] + p["B"])[0] / 2}
    study = mbs.Study(lambda p: p, nominal, dict.fromkeys("ABC", zone), measures, lots={"jig": ["A", "B"]})
    second = mbs.second_order(study)
    np.testing.assert_allclose(second.first.std, [0.0, 0.025], rtol=1e-9)
    np.testing.assert_allclose(second.moments.std, [0.0, 0.025], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(second.moments.kurtosis[1], 2.0, rtol=1e-9)
    x = mbs.monte_carlo(study, 64).dimensions(np.arange(64))
    np.testing.assert_allclose(x[:, 2:4] - x[:, :2], np.broadcast_to([30.0, 40.0], (64, 2)), rtol=1e-14)
    assert np.ptp(x[:, 4] - x[:, 0]) > 0.01
