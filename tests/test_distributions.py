"""Distributions against SciPy's, however they are given."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import mbsjax as mbs


TAIL = -stats.norm.logsf(3.0)
PAIRS = {
    "normal": (mbs.Normal(0.05), stats.norm(0, 0.05 / 3)),
    "normal by cpk": (mbs.Normal((-0.06, 0.02), cpk=2), stats.norm(-0.02, 0.04 / 6)),
    "normal shifted": (mbs.Normal(0.06, shift=0.02), stats.norm(0.02, 0.04 / 3)),
    "normal by sigma": (mbs.Normal((0.0, 0.2), sigma=0.03), stats.norm(0.1, 0.03)),
    "truncated": (mbs.Truncated(0.03, at=2.0), stats.truncnorm(-2, 2, scale=0.015)),
    "uniform": (mbs.Uniform(0.3, shift=0.1), stats.uniform(-0.1, 0.4)),
    "uniform by sigma": (mbs.Uniform(sigma=0.1), stats.uniform(-0.1 * 3**0.5, 0.2 * 3**0.5)),
    "triangular": (mbs.Triangular(0.6, mode=0.5), stats.triang(0.75, -0.6, 1.2)),
    "beta": (mbs.Beta((-0.1, 0.1), a=2, b=3.5), stats.beta(2, 3.5, -0.1, 0.2)),
    "beta with a peak at its end": (mbs.Beta(0.1, a=0.7, b=1.5), stats.beta(0.7, 1.5, -0.1, 0.2)),
    "rayleigh": (mbs.Rayleigh(0.1), stats.rayleigh(scale=0.1 / (2 * TAIL) ** 0.5)),
    "rayleigh by sigma": (mbs.Rayleigh(sigma=0.01), stats.rayleigh(scale=0.01 / (2 - np.pi / 2) ** 0.5)),
    "weibull": (mbs.Weibull(0.1, k=1.7, cpk=1.25), stats.weibull_min(1.7, scale=0.08 / TAIL ** (1 / 1.7))),
}


@pytest.mark.parametrize("mine, theirs", PAIRS.values(), ids=PAIRS)
def test_quantiles_and_moments(mine, theirs):
    z = np.linspace(-6.0, 6.0, 201)
    expected = np.where(z < 0, theirs.ppf(stats.norm.cdf(z)), theirs.isf(stats.norm.sf(z)))
    np.testing.assert_allclose(mine.at(z), expected, atol=1e-11)
    mean, variance, skewness, excess = theirs.stats("mvsk")
    np.testing.assert_allclose([mine.mean, mine.std], [mean, variance**0.5], rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose([mine.shape.skewness, mine.shape.kurtosis], [skewness, 3 + excess], atol=1e-7)


def test_slopes_of_a_table_are_those_of_the_distribution():
    beta, z, h = mbs.Beta(0.1, a=2, b=3.5), jnp.linspace(-4.0, 4.0, 33), 1e-5
    slope = (beta.at(z + h) - beta.at(z - h)) / (2 * h)
    density = stats.beta(2, 3.5, -0.1, 0.2).pdf(beta.at(z))
    np.testing.assert_allclose(slope, stats.norm.pdf(z) / density, rtol=1e-6)


def test_wrong_distributions_are_refused():
    wrong = {
        r"tolerance of a Normal must be positive, got -0.1": lambda: mbs.Normal(-0.1),
        r"tolerance of a Uniform has limits in the wrong order: 0.1, -0.1": lambda: mbs.Uniform((0.1, -0.1)),
        r"a Normal needs a tolerance `tol`, or `sigma`": lambda: mbs.Normal(),
        r"either `sigma` or `cpk`": lambda: mbs.Normal(0.1, sigma=0.1, cpk=1.0),
        r"sigma of a Rayleigh must be positive": lambda: mbs.Rayleigh(sigma=0.0),
        r"shift 0.2 of a Normal leaves its tolerance \+-0.1": lambda: mbs.Normal(0.1, shift=0.2),
        r"exponent a of a Beta must be positive, got 0": lambda: mbs.Beta(0.1, a=0, b=1),
        r"exponent k of a Weibull": lambda: mbs.Weibull(0.1, k=-1.0),
        r"mode of a Triangular must be between -1 and 1": lambda: mbs.Triangular(0.1, mode=2.0),
        r"sigma at which a Truncated is cut must be positive": lambda: mbs.Truncated(0.1, at=0.0),
        r"a number or a pair \(lower, upper\), got shape \(3,\)": lambda: mbs.Normal((1.0, 2.0, 3.0)),
        r"must be finite": lambda: mbs.Normal(float("nan")),
    }
    for message, make in wrong.items():
        with pytest.raises(ValueError, match=message):
            make()
