"""Allocation ends with what is true, from a formula of costs or from a catalogue."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special, stats

import mbsjax as mbs


CHEAP = {"a": mbs.Cost(0.0, 1.0), "b": mbs.Cost(0.0, 4.0)}


def stack(f, tolerances, limits=(29.0, 31.0), nominal=(10.0, 20.0)):
    return mbs.Study(lambda p: p, dict(zip("ab", nominal)), tolerances, {"y": f}, limits={"y": limits})


def total(p):
    return p["a"] + p["b"]


def trapezoid(T, room):
    """The part of a sum of two uniform variates, +-T, that stays within +-room."""
    a, b = sorted(T)
    beyond = np.maximum(a + b - room, 0.0)
    assert room >= b - a  # on the flanks of the trapezoid
    return 1 - beyond**2 / (4 * a * b)


@pytest.mark.long
def test_yield_of_two_uniform_dimensions_is_the_true_one_at_the_least_cost():
    """The normal model would promise 0.9973 and keep far more; the closed form is minimized by SciPy."""
    study = stack(total, {"a": mbs.Uniform(0.5), "b": mbs.Uniform(0.5)})
    found = mbs.allocate(mbs.first_order(study), CHEAP, good={"y": 0.9973})
    T = list(found.tolerances.values())
    assert found.converged and 0.9973 <= trapezoid(T, 1.0) < 0.9976  # three errors of 5e-5 make sure
    error = found.errors["yield of y"]
    assert 0.9973 <= found.met["yield of y"] - 3 * error < 0.9975 and "sampling" in found.checked["yield of y"]
    assert abs(found.met["yield of y"] - trapezoid(T, 1.0)) < 3.5 * error
    best = optimize.minimize(
        lambda T: 1 / T[0] + 4 / T[1],
        T,
        constraints={"type": "ineq", "fun": lambda T: trapezoid(T, 1.0) - 0.9973},
        bounds=[(0.05, 1.0)] * 2,
        method="SLSQP",
    )
    assert best.success and found.cost == pytest.approx(best.fun, rel=2e-2)  # the shares are those of the normal model
    blind = mbs.allocate(mbs.first_order(study), CHEAP, good={"y": 0.9973}, samples=0)
    assert (
        blind.checked["yield of y"] == "normal model" and abs(trapezoid(blind.tolerances.values(), 1.0) - 0.9973) > 1e-3
    )


@pytest.mark.long
def test_yield_of_a_bent_measure_is_the_true_one():
    """y = a^2 + 3 b: the square of a normal variate is far from normal."""
    study = stack(lambda p: p["a"] ** 2 + 3 * p["b"], {"a": 0.5, "b": 0.5}, (59.0, 61.0), (0.0, 20.0))
    found = mbs.allocate(mbs.second_order(study), CHEAP, good={"y": 0.9973})
    T = list(found.tolerances.values())
    u = np.random.default_rng(1).normal(size=(4_000_000, 2)) * np.array(T) / 3
    y = u[:, 0] ** 2 + 3 * (20 + u[:, 1])
    assert found.converged and -8e-5 < np.mean((y >= 59) & (y <= 61)) - 0.9973 < 4e-4  # these samples know it to 3e-5
    assert 0.9973 <= found.met["yield of y"] - 3 * found.errors["yield of y"] < 0.9976
    with pytest.raises(ValueError, match="nothing that is required depends on 'a' in the expansion"):
        mbs.allocate(mbs.first_order(study), CHEAP, good={"y": 0.9973})


@pytest.mark.long
@pytest.mark.parametrize("expanded", [mbs.first_order, mbs.second_order])
@pytest.mark.filterwarnings("ignore:second order does not describe")
def test_a_yield_at_a_kink_is_met_at_the_least_cost(expanded):
    """The larger of two sums, alike at the mean: an expansion there knows one of them, or nothing at all. Ten million
    samples know the yield, and SciPy the least cost, which has all tolerances alike."""
    study = mbs.Study(
        lambda p: p, dict.fromkeys("abc", 0.0), dict.fromkeys("abc", 0.5),
        {"y": lambda p: jnp.maximum(p["a"] + p["b"], p["b"] + p["c"])}, limits={"y": (None, 1.0)},
    )  # fmt: skip
    costs = {"a": mbs.Cost(0.0, 1.0), "b": mbs.Cost(0.0, 2.0), "c": mbs.Cost(0.0, 1.0)}
    found = mbs.allocate(expanded(study), costs, good={"y": 0.999})
    good, n = 0.0, 10_000_000
    for k in range(10):
        a, b, c = (
            np.random.default_rng(k).normal(size=(3, n // 10)) * np.array([*found.tolerances.values()])[:, None] / 3
        )
        good += np.mean(np.maximum(a, c) + b <= 1.0) / 10
    assert found.converged and good >= 0.999 - 3 * np.sqrt(0.001 / n)
    error = np.hypot(found.errors["yield of y"], np.sqrt(0.001 / n))
    assert abs(found.met["yield of y"] - good) < 3.5 * error < 1e-4

    z = np.linspace(-8.0, 8.0, 2001)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])

    def log_rejects(t):
        a, b, c = np.exp(t) / 3
        return np.log(1 - density @ (special.ndtr((1 - b * z) / a) * special.ndtr((1 - b * z) / c)))

    least = optimize.minimize(
        lambda t: np.exp(-t[0]) + 2 * np.exp(-t[1]) + np.exp(-t[2]), np.log([0.6, 0.6, 0.6]),
        constraints={"type": "ineq", "fun": lambda t: np.log(1e-3) - log_rejects(t)}, method="SLSQP",
    )  # fmt: skip
    assert least.success and found.cost == pytest.approx(least.fun, rel=1e-2)


def test_a_yield_that_lock_outs_decide_is_met():
    """No value where a + b > 1, and a limit that is far away: what the limit leaves is not what can be built."""
    study = stack(
        lambda p: jnp.where(p["a"] + p["b"] > 1, jnp.nan, p["a"] - p["b"]),
        {"a": 0.2, "b": 0.2},
        (None, 3.0),
        (0.0, 0.0),
    )
    found = mbs.allocate(mbs.first_order(study), CHEAP, good={"y": 0.999})
    sigma = np.hypot(*found.tolerances.values()) / 3
    assert found.converged and stats.norm.sf(1 / sigma) <= 0.001  # the limit at three sigma less is out of the way
    T = np.array([1.0, 4.0]) ** (1 / 3)
    T *= 3 / stats.norm.isf(0.001) / np.hypot(*T)
    assert 0 <= found.cost / (1 / T[0] + 4 / T[1]) - 1 < 1e-2


def test_worst_case_is_kept_exactly():
    """y = a^2 + 3 b at a = 1: the largest is (1 + Ta)^2 - 1 + 3 Tb above the middle."""
    study = stack(lambda p: p["a"] ** 2 + 3 * p["b"], {"a": 0.5, "b": 0.5}, (59.0, 61.0), (1.0, 20.0))
    found = mbs.allocate(mbs.first_order(study), CHEAP, worst_case={"y": 0.9})
    a, b = found.tolerances.values()
    assert (1 + a) ** 2 - 1 + 3 * b == pytest.approx(0.9, rel=2e-6)
    assert found.met["worst case of y"] == pytest.approx(0.9, rel=2e-6)
    assert found.checked["worst case of y"] == "exact worst case, monotone" and found.converged


def test_what_cannot_be_met_is_named_and_bounds_are_kept():
    study = stack(total, {"a": 0.5, "b": 0.5})
    costs = {"a": mbs.Cost(0.0, 1.0, lower=1.0), "b": mbs.Cost(0.0, 4.0, lower=2.0)}
    found = mbs.allocate(mbs.first_order(study), costs, good={"y": 0.9973}, rss={"y": 10.0})
    assert found.infeasible == ("yield of y",) and not found.converged
    assert list(found.tolerances.values()) == pytest.approx([1.0, 2.0], rel=1e-12)
    sigma = np.hypot(1.0, 2.0) / 3
    assert found.met["yield of y"] == pytest.approx(1 - 2 * stats.norm.sf(1 / sigma), abs=7e-3)


def test_catalogues_are_searched_to_the_exact_optimum():
    """Against all combinations, with the closed form of each."""
    rng = np.random.default_rng(4)
    names, slopes = list("abcd"), np.array([1.0, -2.0, 0.5, 1.5])
    shop = {n: {f"p{i}": (T, c) for i, (T, c) in enumerate(zip(*rng.uniform(0.05, 1, (2, 4))))} for n in names}
    study = mbs.Study(
        lambda p: p, dict.fromkeys(names, 10.0), dict.fromkeys(names, 0.1),
        {"y": lambda p: sum(s * x for s, x in zip(slopes, p.values()))}, limits={"y": (8.5, 11.5)},
    )  # fmt: skip
    first = mbs.first_order(study)
    every = [
        (sum(c for _, c in pick), np.array([T for T, _ in pick]), way)
        for way in itertools.product(*(s for s in shop.values()))
        for pick in [[shop[n][w] for n, w in zip(names, way)]]
    ]
    catalogues = {n: mbs.Catalogue(p) for n, p in shop.items()}
    sigma = lambda T: np.linalg.norm(slopes * T) / 3
    rejects = lambda T: 2 * stats.norm.sf(1.5 / sigma(T))
    asks = {
        "good": (dict(good={"y": 0.99}), lambda T: rejects(T) <= 0.01),
        "worst": (dict(worst_case={"y": 2.5}), lambda T: np.abs(slopes) @ T <= 2.5),
    }
    for ask, fits in asks.values():
        cost, T, way = min((x for x in every if fits(x[1])), key=lambda x: x[0])
        found = mbs.allocate(first, catalogues, **ask)
        assert found.converged and found.cost == pytest.approx(cost) and found.processes == dict(zip(names, way))
        np.testing.assert_allclose(list(found.tolerances.values()), T)
    none = mbs.allocate(first, catalogues, worst_case={"y": 0.01})
    assert none.infeasible == ("worst case of y",) and not none.converged
    many = {n: mbs.Catalogue({f"p{i}": (0.1, 1.0) for i in range(60)}) for n in names}
    with pytest.raises(ValueError, match="12,960,000 combinations"):
        mbs.allocate(first, many, rss={"y": 1.0})


def test_worst_cases_of_many_dimensions_are_found_and_say_how_sure_they_are():
    """Bilinear measures of 14 dimensions, against all 16384 corners; a wavy one, worst inside."""
    d = 14
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * d, indexing="ij")).reshape(d, -1).T
    measures = {"y": lambda p: p["b"] @ p["x"] + p["x"] @ p["A"] @ p["x"]}
    model = lambda p: p
    for seed in range(5):
        rng = np.random.default_rng(seed)
        A, b = np.triu(rng.normal(size=(d, d)) * 0.1, 1), rng.normal(size=d) * 0.1
        nominal = {"x": np.zeros(d), "A": jnp.asarray(A), "b": jnp.asarray(b)}
        found = mbs.worst_case(mbs.Study(model, nominal, {"x": mbs.Uniform(1.0)}, measures))
        y = corners @ b + np.einsum("ni,ij,nj->n", corners, A, corners)
        np.testing.assert_allclose([found.lower[0], found.upper[0]], [y.min(), y.max()], rtol=1e-12)
        assert found.basis_lower == found.basis_upper == ("searched",)
    few = mbs.Study(
        model,
        {"x": 1.0, "y": 0.0},
        {"x": 0.5, "y": 0.5},
        {
            "up": lambda p: p["x"] ** 3 - p["y"],
            "bilinear": lambda p: (p["x"] - 1.1) * p["y"],
            "bump": lambda p: -(p["y"] ** 2),
        },
    )
    found = mbs.worst_case(few)
    np.testing.assert_allclose(found.upper, [3.375 + 0.5, 0.6 * 0.5, 0.0], atol=1e-9)
    np.testing.assert_allclose(found.lower, [0.125 - 0.5, -0.6 * 0.5, -0.25], atol=1e-9)
    assert found.basis_upper == ("monotone", "corners", "searched")
    assert found.basis_lower == ("monotone", "corners", "corners")


def test_worst_cases_keep_to_round_zones():
    """The largest distance of a hole from a point lies on the circle of its position; with the bonus of a larger hole,
    on a larger one."""
    p = {"hole": jnp.array([3.0, 4.0]), "size": 2.0}
    away = {"away": lambda p: jnp.hypot(*p["hole"]), "x": lambda p: p["hole"][0]}
    study = lambda zone: mbs.Study(lambda p: p, p, {"hole": zone, "size": 0.1}, away)
    found = mbs.worst_case(study(mbs.Position(0.2)))
    np.testing.assert_allclose([found.lower, found.upper], [[4.9, 2.9], [5.1, 3.1]], rtol=1e-9)
    np.testing.assert_allclose(found.at_upper[0][:2], [3.06, 4.08], rtol=1e-6)
    found = mbs.worst_case(study(mbs.Position(0.2, mmc="size")))
    np.testing.assert_allclose([found.lower, found.upper], [[4.8, 2.8], [5.2, 3.2]], rtol=1e-9)
    assert found.basis_upper == ("searched", "searched")


def test_a_zone_has_one_cost():
    """A position of diameter D in two coordinates, and a size: y = 3 x + 4 y + size, the RSS of their reaches."""
    p = {"hole": jnp.array([0.0, 0.0]), "size": 2.0}
    study = mbs.Study(
        lambda p: p,
        p,
        {"hole": mbs.Position(0.2), "size": 0.1},
        {"y": lambda p: 3 * p["hole"][0] + 4 * p["hole"][1] + p["size"]},
        limits={"y": (None, 3.0)},
    )
    costs = {"hole": mbs.Cost(0.0, 1.0), "size": mbs.Cost(0.0, 1.0)}
    found = mbs.allocate(mbs.first_order(study), costs, worst_case={"y": 1.2})
    R, T = found.tolerances["hole[0]"], found.tolerances["size"]
    assert found.converged and found.tolerances["hole[1]"] == R
    assert 5 * R + T == pytest.approx(1.2, rel=2e-6) and found.cost == pytest.approx(1 / R + 1 / T)
    good = mbs.allocate(mbs.first_order(study), costs, good={"y": 0.999})
    R, T = good.tolerances["hole[0]"], good.tolerances["size"]
    sigma = np.hypot(5 * R, T) / 3  # both coordinates are normal
    assert good.converged and 0 <= 1 / sigma - stats.norm.isf(0.001) < 3e-3
