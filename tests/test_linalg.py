"""Small linear algebra against NumPy, for one matrix and for many lanes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbsjax as mbs
from mbsjax._numerics.groups import wide
from mbsjax._numerics.linalg import (
    _sparse_saddle,
    definite,
    determinant,
    echelon,
    least_squares,
    lemke,
    saddle,
    shortest,
    solve_singletons_last,
    symmetric,
)
from tests.mechanisms import four_bar, turn


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("n", [5, 40])
def test_definite_matrices_written_out_and_in_a_loop(n):
    """With blind directions, in lanes, and their derivatives."""
    J, x, D = random(n - 3, n), random(n, 2, seed=1), random(n, n, seed=2)
    A, D = J.T @ J, D + D.T
    np.testing.assert_allclose(A @ definite(jnp.asarray(A))(jnp.asarray(A @ x)), A @ x, atol=1e-11)
    A = A + 3 * np.eye(n)
    many = definite(jnp.stack([jnp.asarray(A), 2 * jnp.asarray(A)], -1))(jnp.stack([jnp.asarray(A @ x)] * 2, -1))
    np.testing.assert_allclose(many[..., 0], x, atol=1e-12)
    np.testing.assert_allclose(many[..., 1], x / 2, atol=1e-12)
    solution = lambda s: definite(jnp.asarray(A) + s * D)(jnp.asarray(x))
    slope = -np.linalg.solve(A, D @ np.linalg.solve(A, x))
    np.testing.assert_allclose(jax.jacfwd(solution)(0.0), slope, atol=1e-12)
    np.testing.assert_allclose(jax.jacrev(solution)(0.0), slope, atol=1e-12)
    assert np.isnan(definite(jnp.asarray(A).at[1, 1].set(jnp.nan))(jnp.asarray(x))).any()


def chained(loops, seed=0):
    """The masses and the constraints of loops in a row, each of three rows and four unknowns, the last of which it
    shares with the next; some unknowns have no mass, and one row is there twice."""
    rng = np.random.default_rng(seed)
    n, C = 3 * loops + 1, np.zeros((3 * loops + 1, 3 * loops + 1))
    for k in range(loops):
        C[3 * k : 3 * k + 3, 3 * k : 3 * k + 4] = rng.normal(size=(3, 4))
    C[-1] = C[3]
    M = np.diag(rng.uniform(1.0, 2.0, n) * (np.arange(n) % 4 > 0))
    for k in range(0, n - 5, 4):
        M[k + 1, k + 2] = M[k + 2, k + 1] = rng.uniform(-0.5, 0.5)
    return M, C


def constrained(M, C, b, g):
    """x by NumPy: on the constraints, and in the directions that they leave."""
    x = np.linalg.lstsq(C, g, rcond=None)[0]
    N = np.linalg.svd(C)[2][np.linalg.matrix_rank(C) :].T
    return x + N @ np.linalg.solve(N.T @ M @ N, N.T @ (b - M @ x))


@pytest.mark.parametrize("loops", [10, 30])
def test_saddle_of_a_known_pattern(loops):
    """Loops in a row, listed in any order, some unknowns without mass, one row twice and one idle: against NumPy, in
    lanes, and their derivatives."""
    rng = np.random.default_rng(1)
    M, C = chained(loops)
    i, j = rng.permutation(len(C)), rng.permutation(len(M))
    M, C = M[np.ix_(j, j)], np.vstack([C[np.ix_(i, j)], 0 * C[:1]])
    b, g = random(len(M), 2, seed=2), C @ random(len(M), 2, seed=3)
    idle, pattern = np.arange(len(C)) == len(C) - 1, (M != 0, C != 0)
    pattern[1][-1, :2] = True
    assert _sparse_saddle(jnp.asarray(M), jnp.asarray(C), jnp.asarray(idle + 1e-11), *pattern)

    @jax.jit
    def solve(M, C, b, g):
        lanes = M.ndim - 2
        return saddle(M, C, jnp.asarray(wide(idle, lanes) + jnp.zeros(M.shape[2:])), 1e-11, pattern)(b, g)

    args = [jnp.asarray(x) for x in (M, C, b, g)]
    x, y = solve(*args)
    np.testing.assert_allclose(x, constrained(M, C, b, g), atol=1e-9)
    np.testing.assert_allclose(M @ x + C.T @ y, b, atol=1e-9)
    many = solve(*(jnp.stack([a, 2 * a], -1) for a in args))
    np.testing.assert_allclose(many[0], np.stack([x, x], -1), atol=1e-9)
    D = random(*M.shape, seed=4) * pattern[0]
    D = D + D.T
    along = lambda s: solve(args[0] + s * D, *args[1:])[0]
    h = 1e-4
    there = {k: constrained(M + k * h * D, C, b, g) for k in (-2, -1, 1, 2)}
    slope = (there[-2] - 8 * there[-1] + 8 * there[1] - there[2]) / (12 * h)
    forward = jax.jit(jax.jacfwd(along))(0.0)
    np.testing.assert_allclose(forward, slope, atol=1e-8 * np.abs(slope).max())
    weights = random(*x.shape, seed=5)
    pull = jax.jit(jax.grad(lambda s: jnp.sum(weights * along(s))))(0.0)
    np.testing.assert_allclose(pull, np.sum(weights * forward), atol=1e-9 * np.abs(slope).max())


def test_shortest_move_onto_rows_of_a_known_pattern():
    _, C = chained(20)
    r = C @ random(C.shape[1], 1, seed=1)
    idle = jnp.zeros(len(C))
    known, unknown = (jax.jit(lambda J, r, p=p: shortest(J, idle, p)(r))(C, r) for p in (C != 0, None))
    np.testing.assert_allclose(known, unknown, atol=1e-9)
    soft = 1e-8 * np.sum(C**2) / len(C)
    np.testing.assert_allclose(known, C.T @ np.linalg.solve(C @ C.T + soft * np.eye(len(C)), r), atol=1e-9)


def test_products_of_a_known_pattern():
    A, B = (jnp.asarray(random(3, 30, 2, seed=k)) for k in (0, 1))
    upper = np.triu(np.random.default_rng(2).choice([-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], size=(30, 30)))
    found = symmetric(A, B, upper, np.triu(upper, 1).T)
    square = upper[..., None] * np.einsum("ri...,rj...->ij...", A, B)
    np.testing.assert_allclose(
        found, square + np.swapaxes(square * np.triu(np.ones((30, 30)), 1)[..., None], 0, 1), atol=1e-14
    )


@pytest.mark.parametrize("m, n", [(1, 1), (3, 3), (7, 4), (9, 8), (30, 24)])
def test_least_squares_of_full_rank(m, n):
    J, B = random(m, n), random(m, 2, seed=1)
    expected = np.linalg.lstsq(J, B, rcond=None)[0]
    np.testing.assert_allclose(least_squares(jnp.asarray(J), refine=1)(jnp.asarray(B)), expected, atol=1e-11)
    lanes = jnp.stack([jnp.asarray(J)] * 3, -1) * jnp.array([1.0, 2.0, -3.0])
    many = least_squares(lanes, refine=1)(jnp.stack([jnp.asarray(B)] * 3, -1))
    for k, factor in enumerate((1.0, 2.0, -3.0)):
        np.testing.assert_allclose(many[..., k], expected / factor, atol=1e-11)


def test_redundant_rows_and_blind_directions():
    J = np.vstack([random(3, 3), np.zeros((1, 3))])
    J = np.vstack([J, J[0] + 2 * J[1]])
    x = random(3, 1, seed=2)
    np.testing.assert_allclose(least_squares(jnp.asarray(J), refine=1)(jnp.asarray(J @ x)), x, atol=1e-12)
    J[:, 2] = 0.0
    found = np.array(least_squares(jnp.asarray(J), refine=1)(jnp.asarray(J @ x)))
    assert found[2, 0] == 0.0
    np.testing.assert_allclose(found[:2], x[:2], atol=1e-12)


def test_damping_is_ridge_regression():
    J, B = random(5, 3), random(5, 1, seed=1)
    expected = np.linalg.solve(J.T @ J + 0.3 * np.eye(3), J.T @ B)
    np.testing.assert_allclose(least_squares(jnp.asarray(J), damping=0.3)(jnp.asarray(B)), expected, atol=1e-13)


def test_nan_is_not_hidden():
    J = jnp.asarray(random(3, 3)).at[1, 1].set(jnp.nan)
    assert np.isnan(least_squares(J)(jnp.ones((3, 1)))).any()


def test_lone_unknowns_last():
    J = random(6, 5)
    singletons = ((2, 1), (4, 3))
    for row, column in singletons:
        J[:, column] = 0.0
        J[row, column] = 1.5
    B = J @ random(5, 2, seed=3)
    found = solve_singletons_last(jnp.asarray(J), jnp.asarray(B), singletons)
    np.testing.assert_allclose(found, np.linalg.lstsq(J, B, rcond=None)[0], atol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 6])
def test_determinant(n):
    A = random(n, n)
    assert float(determinant(jnp.asarray(A))) == pytest.approx(np.linalg.det(A))
    lanes = jnp.stack([jnp.asarray(A), 2 * jnp.asarray(A)], -1)
    np.testing.assert_allclose(determinant(lanes), np.linalg.det(A) * np.array([1.0, 2.0**n]))


def test_elimination_of_haug_example_4_4_4():
    """A 3x5 system of rank 2, its solution space written down in the book."""
    A = jnp.array([[1.0, 0, 2, 1, 4], [1, 1, 2, 0, 3], [3, 1, 6, 2, 11]])
    found = echelon(A)
    assert int(found.rank) == 2 and int(found.used.sum()) == 2 and int(found.dependent.sum()) == 2
    np.testing.assert_allclose(A @ found.K, 0, atol=1e-14)
    for x3, x4, x5 in np.eye(3):
        x = np.array([-2 * x3 - x4 - 4 * x5, x4 + x5, x3, x4, x5])
        np.testing.assert_allclose(found.K @ x, x, atol=1e-14)


@pytest.mark.parametrize("rank", [0, 1, 3, 5])
def test_rank_and_null_space_of_any_matrix(rank):
    A = jnp.asarray(random(6, rank) @ random(rank, 5, seed=1))
    found = echelon(A)
    assert int(found.rank) == rank
    np.testing.assert_allclose(A @ found.K, 0, atol=1e-12)
    assert np.linalg.matrix_rank(np.array(found.K)) == 5 - rank
    np.testing.assert_allclose(found.K @ found.K, found.K, atol=1e-12)


@pytest.mark.parametrize("planar", [True, False])
def test_influence_coefficients_give_the_velocities(planar):
    """qdot = K fdot (2.2.4-40) with the sign put right, also with the redundant equations of the treatment in space."""
    mech = four_bar(planar=planar)
    ts = jnp.linspace(0.0, 1.0, 9)
    motion = mbs.kinematics(mech, {"A": turn(2.0, np.pi / 2)}, ts, estimate={"D": 1.5, "B": -1.5, "C": 1.5})
    found = jax.jit(jax.vmap(lambda q: mbs.partition(mech, q)))(motion.q)
    np.testing.assert_array_equal(found.rank, 3)
    assert found.redundant.sum(-1).tolist() == [0 if planar else 3] * 9
    np.testing.assert_array_equal(found.independent.sum(-1), 1)
    np.testing.assert_allclose(jnp.einsum("tij,tj->ti", found.K, motion.v), motion.v, atol=1e-12)


def test_a_mechanism_without_freedom_is_told_as_such():
    found = mbs.mobility(mbs.Mechanism([mbs.Body("post")], [mbs.Fixed("weld", "ground", "post")]))
    assert (found.counted, found.freedom, found.independent) == (0, 0, ())


def test_summary_tells_the_structure():
    text = str(four_bar(planar=False))
    for part in (
        "Spatial mechanism: 3 bodies",
        "C: revolute coupler -> follower (angle)  closes a loop",
        "crank - coupler",
    ):
        assert part in text
    assert "1 by rank, -2 by counting" in text and text.count("C: ") == 1 + 3
    seen = []
    jax.jit(lambda length: seen.append(str(four_bar(length))) or length)(2.0)
    assert "degrees of freedom: not counted while dimensions are traced" in seen[0]


def test_pivoting_finds_what_is_complementary_or_says_that_there_is_nothing():
    """For definite matrices there is one solution; for a negative one, of one sign of q, there is none."""
    A, q = random(64, 6, 6), random(64, 6, seed=1)
    M = A @ np.swapaxes(A, 1, 2) + 0.1 * np.eye(6) + A - np.swapaxes(A, 1, 2)
    z = np.asarray(jax.jit(jax.vmap(lemke))(M, q))
    w = np.einsum("lij,lj->li", M, z) + q
    assert min(z.min(), w.min()) > -1e-10 and np.abs(z * w).max() < 1e-10 and np.count_nonzero(z) > 64
    np.testing.assert_array_equal(jax.jit(jax.vmap(lemke))(-M * np.eye(6), -np.abs(q)), 0.0)
