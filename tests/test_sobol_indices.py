"""Sobol indices against closed forms, and their errors against repeated sampling."""

import jax.numpy as jnp
import numpy as np

import mbsjax as mbs


def plain(measures, nominal, tolerances, **options):
    """A study of formulas."""
    return mbs.Study(lambda p: p, nominal, tolerances, measures, **options)


def close(found, first, total, times=4.5):
    """Whether indices are within their errors, and the errors are small."""
    for x, error, goal in ((found.first, found.first_errors, first), (found.total, found.total_errors, total)):
        assert np.all(np.abs(x - goal) <= times * error + 1e-12)
        assert np.all(error < 0.03)


def test_function_of_ishigami():
    """sin x + 7 sin^2 y + 0.1 z^4 sin x, all uniform over +-pi."""
    f = lambda p: jnp.sin(p["x"]) + 7 * jnp.sin(p["y"]) ** 2 + 0.1 * p["z"] ** 4 * jnp.sin(p["x"])
    study = plain({"f": f}, dict.fromkeys("xyz", 0.0), dict.fromkeys("xyz", mbs.Uniform(np.pi)))
    a, b = 7.0, 0.1
    x = (1 + b * np.pi**4 / 5) ** 2 / 2
    y, xz = a**2 / 8, b**2 * np.pi**8 * (1 / 18 - 1 / 50)
    first, total = np.array([x, y, 0.0]) / (x + y + xz), np.array([x + xz, y, xz]) / (x + y + xz)
    found = mbs.sobol_indices(study, 4096)
    assert found.contributors == ("x", "y", "z") and found.rows == 4096 and np.all(found.dropped == 0)
    close(found, first, total)


def test_sums_have_no_interaction_and_products_have():
    s = {"a": 0.1, "b": 0.2, "c": 0.3}
    study = plain(
        {"sum": lambda p: 2 * p["a"] - p["b"] + p["c"], "product": lambda p: p["a"] * p["b"]},
        {"a": 0.1, "b": 0.4, "c": 0.0},
        {name: mbs.Normal(sigma=x) for name, x in s.items()},
    )
    found = mbs.sobol_indices(study, 4096, seed=1)
    parts = mbs.first_order(study).contribution[0]
    alone, mixed = np.array([(0.4 * 0.1) ** 2, (0.1 * 0.2) ** 2, 0.0]), np.array([1.0, 1, 0]) * (0.1 * 0.2) ** 2
    whole = alone.sum() + mixed[0]
    close(found, [parts, alone / whole], [parts, (alone + mixed) / whole])
    assert found.total[1, 2] == 0 and found.first[1, 2] == 0


def test_zones_lots_and_correlated_dimensions_are_one_contributor_each():
    study = plain(
        {"y": lambda p: p["hole"][0] * p["hole"][1] + p["a"] + p["b"] + p["c"] - p["d"] + p["rim"].sum()},
        {"hole": jnp.zeros(2), **dict.fromkeys("abcd", 1.0), "rim": jnp.zeros(3), "row": jnp.ones(2)},
        {
            "hole": mbs.Position(2.0, kind="uniform"),
            **dict.fromkeys("abcd", mbs.Normal(sigma=0.1)),
            "rim": mbs.ProfileZone(sigma=0.1),
            "row": 0.1,
        },
        lots={"rods": ["a", "b"]},
        correlation={("c", "d"): 0.5},
    )
    names = ("hole", "a, b", "c, d", "rim", "row[0]", "row[1]")
    assert tuple(study.groups) == names and study.groups["rim"] == (6, 7, 8)
    found = mbs.sobol_indices(study, 4096, seed=2)
    assert found.contributors == names
    parts = np.array([1 / 24, 0.04, 0.01, 0.03, 0.0, 0.0])  # of a unit circle, E[x^2 y^2] is 1/24
    close(found, parts / parts.sum(), parts / parts.sum())


def test_bonus_is_an_interaction_of_size_and_position():
    """x = R u, with R and u independent: the size alone moves nothing, the position does, and both together."""
    tolerances = {"size": mbs.Uniform(0.1), "at": mbs.Position(0.02, kind="uniform", mmc="size")}
    study = plain({"x": lambda p: p["at"][0]}, {"size": 10.0, "at": jnp.zeros(2)}, tolerances)
    mean, variance = 0.06, 0.1**2 / 12  # of the radius, uniform from 0.01 to 0.11
    alone = mean**2 / (mean**2 + variance)
    close(mbs.sobol_indices(study, 4096), [[0.0, alone]], [[1 - alone, 1.0]])


def test_errors_cover_the_truth_as_often_as_they_should():
    study = plain({"y": lambda p: p["a"] * p["b"]}, {"a": 1.0, "b": 1.0}, dict.fromkeys("ab", mbs.Normal(sigma=1.0)))
    runs = [mbs.sobol_indices(study, 256, seed=k, chunk=1024) for k in range(60)]
    z = np.array([[(r.first - 1 / 3) / r.first_errors, (r.total - 2 / 3) / r.total_errors] for r in runs])
    inside = np.mean(np.abs(z) < 1.96)
    assert 0.87 < inside < 0.99  # of 240, 95 % of a t-distribution with 15 degrees of freedom: 0.931
    assert np.all(np.abs(z.mean((0, 2, 3))) < 0.5)


def test_rows_with_variants_that_fail_are_left_out_and_counted():
    study = plain(
        {"log": lambda p: jnp.log(p["a"]) + p["b"], "b": lambda p: p["b"], "one": lambda p: 0 * p["a"] + 1.0},
        {"a": 1.0, "b": 0.0},
        {"a": mbs.Uniform(1.25), "b": mbs.Uniform(1.0)},
    )
    found = mbs.sobol_indices(study, 2048)
    gone = found.dropped / 2048
    assert gone[1] == gone[2] == 0 and abs(gone[0] - (1 - 0.9**2)) < 0.02  # one of A, B fails with 10 % each
    assert np.all(np.isfinite(found.first[:2])) and np.all(np.isnan(found.first[2]))
    close(found._replace(**{k: getattr(found, k)[1:2] for k in ("first", "total", "first_errors", "total_errors")}),
          [[0.0, 1.0]], [[0.0, 1.0]])  # fmt: skip
