"""The parts that driven motion and simulation share: guards, the locator, dips, codes of results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

import mbsjax as mbs
from mbsjax._events.dips import dip_by_middle, dip_by_rates
from mbsjax._events.guards import FORCE, GAP, PER_CONTACT, GuardTable, contact_of, is_end, kind_of, stacked
from mbsjax._events.locator import aim, first, narrowed, no_bracket
from mbsjax._events.places import Places
from mbsjax._events.results import code, result_of


def test_guards_stand_where_the_table_says():
    table = GuardTable(contacts=2, others=3, lanes=1)
    gaps, forces = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[-1.0, -2.0], [-3.0, -4.0]])
    ends = jnp.arange(16.0).reshape(2, 4, 2)
    g = jnp.concatenate([stacked(gaps, ends, forces), jnp.full((3, 2), 9.0)])
    assert g.shape[0] == table.count == 2 * PER_CONTACT + 3
    np.testing.assert_array_equal(table.gaps(g), gaps)
    np.testing.assert_array_equal(g[table.is_gap[:, 0]], gaps)
    np.testing.assert_array_equal(g[table.is_force[:, 0]], forces)
    of_guards = table.of_contacts(jnp.array([[5, 6], [7, 8]]), -1)
    for k in range(table.count):
        owner = contact_of(jnp.asarray(k)) if k < 2 * PER_CONTACT else None
        np.testing.assert_array_equal(of_guards[k], [-1, -1] if owner is None else [[5, 6], [7, 8]][int(owner)])
    kinds = kind_of(jnp.arange(PER_CONTACT))
    assert is_end(kinds).tolist() == [k not in (GAP, FORCE) for k in range(PER_CONTACT)]


def test_places_are_chosen_contact_by_contact():
    a, b = (Places(*(jnp.full(2, x) for x in (k, k, 0.1 * k, 0.2 * k))) for k in (1, 2))
    chosen = a.where(jnp.array([True, False]), b)
    assert chosen.e1.tolist() == [1, 2] and chosen.s2.tolist() == [0.2, 0.4]


def _search(f, width, tolerance, most=60):
    """The root of the first of the functions that pass zero before `width`, as loops look for it, and how many
    evaluations that took."""

    @jax.jit
    def attempt(b, tries):
        h = jnp.where(b.locating, aim(b, tries, jnp.zeros((), bool)), width)
        g = f(h)
        passed = jnp.any((f(0.0) > 0) & (g <= 0))
        return narrowed(b._replace(g_lo=jnp.where(b.locating, b.g_lo, f(0.0))), ~passed, h, g, passed, h, g)

    b = no_bracket(f(jnp.zeros(())))
    for tries in range(most):
        b = attempt(b, jnp.asarray(tries))
        if float(b.hi - b.lo) <= tolerance:
            break
    return b, tries + 1


@pytest.mark.parametrize("seed", range(3))
def test_the_locator_finds_the_first_root_as_brent_does(seed):
    rng = np.random.default_rng(seed)
    roots, powers = rng.uniform(0.1, 0.9, 4), np.array([1, 3, 1, 5])

    def f(x):
        x = jnp.asarray(x)
        return jnp.stack([1.0 - jnp.exp(3 * (x - r)) if p == 1 else -((x - r) ** p) for r, p in zip(roots, powers)])

    b, evaluations = _search(f, 1.0, 1e-12)
    k = int(first(b))
    brent = [scipy.optimize.brentq(lambda x, i=i: float(f(x)[i]), 0.0, 1.0, xtol=1e-14) for i in range(4)]
    assert k == int(np.argmin(brent))
    assert float(b.lo) <= brent[k] + 1e-12 and float(b.hi) >= brent[k] - 1e-12
    assert evaluations < 45


def test_a_smooth_root_takes_few_evaluations_and_a_jump_is_bracketed():
    b, evaluations = _search(lambda x: jnp.stack([jnp.cos(jnp.asarray(x))]), 3.0, 1e-12)
    assert abs(float(b.lo) - np.pi / 2) <= 1e-12 and evaluations <= 12
    b, evaluations = _search(lambda x: jnp.stack([jnp.where(jnp.asarray(x) < 0.3, 1.0, -1e-3)]), 1.0, 1e-9)
    assert float(b.lo) <= 0.3 <= float(b.hi) and float(b.g_hi[0]) == -1e-3  # values are kept as they are: it was a jump


def test_dips_are_seen_where_a_dense_look_sees_them():
    rng = np.random.default_rng(5)
    a, b, c = rng.normal(size=(3, 400))
    x = np.linspace(0, 1, 401)[:, None]
    parabola = lambda x: a * x * x + b * x + c
    low, lowest = parabola(x).min(0), x[parabola(x).argmin(0), 0]
    ends = np.minimum(parabola(0.0), parabola(1.0))
    inside = (ends > 0) & (parabola(0.5) > 0) & (low < 0) & (lowest > 0.05) & (lowest < 0.95)
    assert inside.sum() > 3
    for dip, where in (
        dip_by_middle(parabola(0.0), parabola(0.5), parabola(1.0)),
        dip_by_rates(parabola(0.0), b, parabola(1.0), 2 * a + b, jnp.ones(400)),
    ):
        assert np.all(np.asarray(dip)[inside])
        np.testing.assert_allclose(np.asarray(where)[inside], lowest[inside], atol=0.04)
        high = (ends > 0) & (low > 0.5 * np.maximum(parabola(0.0), parabola(1.0)))
        assert not np.any(np.asarray(dip)[high])


def test_codes_are_the_results_and_a_stop_is_a_success():
    for name in ("successful", "locked", "jammed", "step_too_small", "overlapping"):
        assert bool(result_of(jnp.asarray(code(name))) == getattr(mbs.RESULTS, name))
    assert bool(result_of(jnp.asarray(code("stopped"))) == mbs.RESULTS.successful)
