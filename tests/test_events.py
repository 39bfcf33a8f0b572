"""The parts that driven motion and simulation share: guards, the locator, dips, codes of results."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax._events.dips import dip_by_middle, dip_by_rates
from mbsjax._events.guards import GAP, PER_CONTACT, RELEASE, GuardTable, contact_of, is_end, kind_of, stacked
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
    np.testing.assert_array_equal(g[table.is_release[:, 0]], forces)
    of_guards = table.of_contacts(jnp.array([[5, 6], [7, 8]]), -1)
    for k in range(table.count):
        owner = contact_of(jnp.asarray(k)) if k < 2 * PER_CONTACT else None
        np.testing.assert_array_equal(of_guards[k], [-1, -1] if owner is None else [[5, 6], [7, 8]][int(owner)])
    kinds = kind_of(jnp.arange(PER_CONTACT))
    assert is_end(kinds).tolist() == [k not in (GAP, RELEASE) for k in range(PER_CONTACT)]


def test_places_are_chosen_contact_by_contact():
    a, b = (Places(*(jnp.full(2, x) for x in (k, k, 0.1 * k, 0.2 * k))) for k in (1, 2))
    chosen = a.where(jnp.array([True, False]), b)
    assert chosen.e1.tolist() == [1, 2] and chosen.s2.tolist() == [0.2, 0.4]


def _search(f, width, tolerance, most=100):
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
def test_the_locator_finds_the_first_of_several_roots(seed):
    roots, powers = np.random.default_rng(seed).uniform(0.1, 0.9, 4), (1, 3, 1, 5)

    def f(x):
        x = jnp.asarray(x)
        return jnp.stack([1.0 - jnp.exp(3 * (x - r)) if p == 1 else -((x - r) ** p) for r, p in zip(roots, powers)])

    b, evaluations = _search(f, 1.0, 1e-12)
    assert int(first(b)) == int(np.argmin(roots))
    assert float(b.lo) <= roots.min() + 1e-15 and float(b.hi) >= roots.min() - 1e-15
    assert evaluations <= 1 + 8 + 2 * 40  # the step, chords, then every other attempt halves the bracket


def test_a_smooth_root_takes_few_evaluations_and_a_jump_is_bracketed():
    b, evaluations = _search(lambda x: jnp.stack([jnp.cos(jnp.asarray(x))]), 3.0, 1e-12)
    assert abs(float(b.lo) - np.pi / 2) <= 1e-12 and evaluations <= 12
    b, evaluations = _search(lambda x: jnp.stack([jnp.where(jnp.asarray(x) < 0.3, 1.0, -1e-3)]), 1.0, 1e-9)
    assert float(b.lo) <= 0.3 <= float(b.hi) and float(b.g_hi[0]) == -1e-3  # values are kept as they are: it was a jump


def test_dips_of_parabolas_are_seen():
    rng = np.random.default_rng(5)
    bend, lowest = rng.uniform(1, 5, 200), rng.uniform(0.05, 0.95, 200)
    room = (
        bend * np.min([lowest, 1 - lowest, np.abs(lowest - 0.5)], 0) ** 2
    )  # as deep as leaves ends and middle positive
    for depth, expected in ((0.8 * room, True), (-20 * bend, False)):
        at = lambda x, depth=depth: jnp.asarray(bend * (x - lowest) ** 2 - depth)
        rates = [jnp.asarray(2 * bend * (x - lowest)) for x in (0.0, 1.0)]
        for (dip, where), error in (
            (dip_by_middle(at(0.0), at(0.5), at(1.0)), 1e-12),
            (dip_by_rates(at(0.0), rates[0], at(1.0), rates[1], jnp.ones(())), 1 / 32),  # of sixteen parts, the lowest
        ):
            assert np.all(np.asarray(dip) == expected)
            np.testing.assert_allclose(where, lowest, atol=error, rtol=0)


def test_codes_are_the_results_and_a_stop_is_a_success():
    for name in ("successful", "locked", "jammed", "step_too_small", "overlapping"):
        assert bool(result_of(jnp.asarray(code(name))) == getattr(mbs.RESULTS, name))
    assert bool(result_of(jnp.asarray(code("stopped"))) == mbs.RESULTS.successful)
