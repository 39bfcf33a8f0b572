"""Where samples lie: a pure function of seed and number, filling space as promised."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

from mbsjax._tolerance.sampler import METHODS, sampler, shuffled


def drawn(plan, index):
    return np.asarray(jax.jit(jax.vmap(plan.scores))(jnp.asarray(index)))


@pytest.mark.parametrize("method", METHODS)
def test_a_sample_depends_on_seed_and_number_alone(method):
    n = 1000
    every = drawn(sampler(method, n, 3, 7), np.arange(n))
    some = np.random.default_rng(0).permutation(n)[:100]
    np.testing.assert_array_equal(drawn(sampler(method, n, 3, 7), some), every[some])
    assert np.all(drawn(sampler(method, n, 3, 8), some) != every[some])


@pytest.mark.parametrize("method", METHODS)
def test_scores_are_standard_normal(method):
    z = drawn(sampler(method, 8192, 4, 1), np.arange(8192))
    for column in z.T:
        assert stats.kstest(column, "norm").pvalue > 1e-3
    np.testing.assert_allclose(np.corrcoef(z.T), np.eye(4), atol=4 / np.sqrt(8192))


def test_latin_hypercube_has_one_sample_in_each_slice():
    plan = sampler("latin", 1600, 5, 3)
    z = drawn(plan, np.arange(1600))
    group = plan.group(np.arange(1600))
    for g in range(plan.groups):
        slices = np.floor(stats.norm.cdf(z[group == g]) * 100).astype(int)
        for column in slices.T:
            assert sorted(column) == list(range(100))


@pytest.mark.parametrize("n", [1, 2, 5, 64, 1000])
def test_shuffling_is_a_permutation(n):
    keys = jax.random.bits(jax.random.key(0), (6, 3), jnp.uint32)
    i = jnp.broadcast_to(jnp.arange(n, dtype=jnp.uint32)[:, None], (n, 3))
    found = np.asarray(jax.vmap(lambda i: shuffled(i, n, keys))(i))
    for column in found.T:
        assert sorted(column) == list(range(n))
    if n == 1000:
        assert np.abs(np.corrcoef(np.c_[np.arange(n), found].T) - np.eye(4)).max() < 0.15


def test_sobol_points_are_scipys():
    plan = sampler("sobol", 16 * 256, 6, 5)
    z = drawn(plan, np.arange(16 * 256)).reshape(16, 256, 6)
    for g in (0, 9):
        engine = qmc.Sobol(6, scramble=True, bits=32, rng=np.random.default_rng([5, g]))
        np.testing.assert_allclose(stats.norm.cdf(z[g]), engine.random(256), atol=1e-9)
