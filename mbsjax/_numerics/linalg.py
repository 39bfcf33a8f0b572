"""Small dense linear algebra with fixed shapes: least squares for Newton steps, elimination for rank."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._programs.precision import ROUNDING
from .groups import pick, wide
from .sparse import at, eliminated, elimination, gram, substituted


_UNROLLED = 16  # up to this many unknowns the elimination is written out, which fuses over lanes


def least_squares(
    J: Float[Array, "m n *lanes"], *, damping: Float[Array, "*lanes"] | float = 0.0, refine: int = 0
) -> Callable[[Array], Array]:
    """The map from B [m k] to the X [n k] that minimizes |J X - B|^2 + damping |X|^2, by the normal equations.

    Redundant rows of J are welcome. A direction in which J is blind is left at zero. `refine` steps
    against the residual of J itself win back the accuracy that squaring loses.
    """
    n, lanes = J.shape[1], J.ndim - 2
    if n == 0:
        return lambda B: jnp.zeros((0, *B.shape[1:]), B.dtype)
    J_T = jnp.swapaxes(J, 0, 1)
    solve = definite(product(J_T, J) + damping * wide(np.eye(n), lanes))

    def solution(B: Float[Array, "m k *lanes"]) -> Float[Array, "n k *lanes"]:
        X = solve(product(J_T, B))
        for _ in range(refine):
            X = X + solve(product(J_T, B - product(J, X)))
        return X

    return solution


def without_singletons(
    J: Float[Array, "m n *lanes"], singletons: tuple[tuple[int, int], ...]
) -> Float[Array, "r k *lanes"]:
    """J without these rows and columns."""
    rows = np.setdiff1d(np.arange(J.shape[0]), [i for i, _ in singletons])
    columns = np.setdiff1d(np.arange(J.shape[1]), [j for _, j in singletons])
    return pick(pick(J, rows), columns, 1)


def solve_singletons_last(
    J: Float[Array, "m n *lanes"], B: Float[Array, "m k *lanes"], singletons: tuple[tuple[int, int], ...]
) -> Float[Array, "n k *lanes"]:
    """As `least_squares(J)(B)`, where each of the `singletons` is a (row, column) whose column has no entry but in its
    row: the others are found first, without that row, which the unknown of the column then satisfies."""
    rows, columns = (np.array([pair[k] for pair in singletons], dtype=int) for k in range(2))
    others = np.setdiff1d(np.arange(J.shape[1]), columns)
    X = least_squares(without_singletons(J, singletons))(pick(B, np.setdiff1d(np.arange(J.shape[0]), rows)))
    if not singletons:
        return X
    mine = pick(J, rows)
    rest = pick(B, rows) - product(pick(mine, others, 1), X)
    own = jnp.stack([mine[k, j] for k, j in enumerate(columns)])
    return pick(jnp.concatenate([X, rest / own[:, None]]), np.argsort([*others, *columns]))


def determinant(A: Float[Array, "n n *lanes"]) -> Float[Array, "*lanes"]:
    """det A."""
    n = A.shape[0]
    if n == 0:
        return jnp.ones(A.shape[2:])
    if n == 1:
        return A[0, 0]
    if n == 2:
        return A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    if n == 3:
        a, b, c = A
        return (
            a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0])
        )
    return jnp.linalg.det(jnp.moveaxis(A, (0, 1), (-2, -1)))


def product(A: Float[Array, "m n *lanes"], B: Float[Array, "n k *lanes"]) -> Float[Array, "m k *lanes"]:
    if A.shape[0] * A.shape[1] * B.shape[1] > 64**3:
        return jnp.einsum("mn...,nk...->mk...", A, B)
    return jnp.sum(A[:, :, None] * B[None], 1)


def symmetric(
    A: Float[Array, "r n *lanes"], B: Float[Array, "r n *lanes"], upper: np.ndarray, lower: np.ndarray
) -> Float[Array, "n n *lanes"]:
    """A^T B where `upper` has an entry, times that, and its transpose where `lower` has."""
    n, lanes = upper.shape[0], A.ndim - 2
    if n > _UNROLLED and np.count_nonzero(upper) < n * n / 4:
        i, j = np.nonzero(upper)
        entries = jnp.sum(pick(A, i, 1) * pick(B, j, 1), 0) * wide(upper[i, j], lanes)
        mirrored = np.flatnonzero(lower[j, i])
        places = np.concatenate([i * n + j, j[mirrored] * n + i[mirrored]])
        both = jnp.concatenate([entries, at(entries, mirrored)])
        zeros = jnp.zeros((n * n, *both.shape[1:]), both.dtype)
        return zeros.at[places].set(both, unique_indices=True).reshape(n, n, *both.shape[1:])
    square = jnp.sum(A[:, :, None] * B[:, None], 0)
    return jnp.asarray(wide(upper, lanes) * square + wide(lower, lanes) * jnp.swapaxes(square, 0, 1))


def general(A: Float[Array, "n n"]) -> tuple[Callable[[Array], Array], Float[Array, ""]]:
    """The map from B [n k] to A^-1 B, and det A, for a small A of any kind (of one lane), by elimination with row
    pivoting. Where A is singular, what it cannot see is left at zero."""
    n, rows, fixed = A.shape[0], np.arange(A.shape[0]), jax.lax.stop_gradient(A)

    def step(k: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        both, determinant = state
        column, mine = (jax.lax.dynamic_index_in_dim(both, k, axis, keepdims=False) for axis in (1, 0))
        best = jnp.argmax(jnp.where(rows >= k, jnp.abs(column), -1.0))
        row = jnp.sum(jnp.where((rows == best)[:, None], both, 0.0), 0)
        pivot = jax.lax.dynamic_index_in_dim(row, k, 0, keepdims=False)
        row = jnp.where(pivot == 0, 0.0, row / jnp.where(pivot == 0, 1.0, pivot))
        both = jnp.where((rows == best)[:, None], mine[None], both)  # the two rows change places
        column = jax.lax.dynamic_index_in_dim(both, k, 1)
        both = jnp.where((rows == k)[:, None], row[None], both - column * row[None])
        return both, determinant * jnp.where(best == k, pivot, -pivot)

    if n == 1:
        inverse, determinant = jnp.where(fixed == 0, 0.0, 1.0 / jnp.where(fixed == 0, 1.0, fixed)), fixed[0, 0]
    else:
        begin = jnp.concatenate([fixed, jnp.eye(n, dtype=A.dtype)], 1)
        both, determinant = jax.lax.fori_loop(0, n, step, (begin, jnp.ones((), A.dtype)))
        inverse = both[:, n:]
    return lambda B: _solution((inverse,), A, B), determinant


def definite(A: Float[Array, "n n *lanes"], blind: float = 1e-14) -> Callable[[Array], Array]:
    """The map from B [n k] to A^-1 B, for a symmetric A that is positive, but for directions in which it is blind:
    those are left at zero."""
    if A.shape[0] == 0:
        return lambda B: B
    if A.shape[0] == 1:
        seen = ~(A <= 0)  # NaN is seen, and told
        inverse = jnp.where(seen, 1.0, 0.0) / jnp.where(seen, A, 1.0)
        return lambda B: inverse * B
    return (_written_out if A.shape[0] <= _UNROLLED else _looped)(A, blind)


def saddle(
    M: Float[Array, "n n *lanes"],
    C: Float[Array, "m n *lanes"],
    idle: Float[Array, "m *lanes"],
    soft: np.ndarray | float = 1e-9,
    pattern: tuple[np.ndarray, np.ndarray] | None = None,
) -> Callable[[Array, Array], tuple[Array, Array]]:
    """The map from (b [n k], g [m k]) to (x, y) with M x + C^T y = b and C x = g.

    M need not be positive where C holds x: M + w C^T C is, and has the same solution. Rows where `idle` is one are
    zero in C and g; redundant rows are welcome if they do not contradict each other. Near a singular position rows give
    way where they say less than `soft`, one number for each of them. `pattern` tells where M and C may have entries,
    if that is known: large mechanisms are then solved in a time proportional to their size.
    """
    n, m, lanes = M.shape[0], C.shape[0], M.ndim - 2
    if pattern is not None and n > _UNROLLED:
        by_pattern = _sparse_saddle(M, C, idle + wide(np.full(m, soft), lanes), *pattern)
        if by_pattern is not None:
            return by_pattern
    if m == 0:
        free = definite(M)
        return lambda b, g: (free(b), g)
    C_T = jnp.swapaxes(C, 0, 1)
    square = product(C_T, C)
    traces = [jnp.sum(A * wide(np.eye(n), lanes), (0, 1)) for A in (M, square)]
    w = traces[0] / jnp.where(traces[1] > 0, traces[1], 1.0)
    w = jnp.where(w > 0, w, 1.0)
    inner = definite(M + w * square)
    Y = inner(C_T)
    # a little softness: in a singular position M says where to go; the second pass makes up for it elsewhere
    outer = definite(w * product(C, Y) + wide(np.eye(m), lanes) * idle[:, None] + wide(np.eye(m) * soft, lanes), 1e-15)

    def once(b: Array, g: Array) -> tuple[Array, Array]:
        x = inner(b + w * product(C_T, g))
        y = w * outer(product(C, x) - g)
        return x - product(Y, y), y

    def solve(b: Array, g: Array) -> tuple[Array, Array]:
        x, y = once(b, g)
        dx, dy = once(b - product(M, x) - product(C_T, y), g - product(C, x))
        return x + dx, y + dy

    return solve


def shortest(
    J: Float[Array, "m n *lanes"], idle: Float[Array, "m *lanes"], pattern: np.ndarray | None = None
) -> Callable[[Array], Array]:
    """The map from r [m k] to the shortest x with J x = r. Rows are soft where they say almost nothing, as in `saddle`,
    in whatever units they say it. `pattern` tells where J may have entries, if that is known."""
    m, lanes, J_T = J.shape[0], J.ndim - 2, jnp.swapaxes(J, 0, 1)
    share = idle + 1e-8 * jnp.sum(J * J, (0, 1)) / m
    plan = None if pattern is None or m <= _UNROLLED else elimination(_meet(pattern.T))
    if pattern is None or plan is None:
        solve = definite(product(J, J_T) + wide(np.eye(m), lanes) * share[:, None], 1e-15)
        return lambda r: product(J_T, solve(r))
    i, j = plan.entries
    entries = gram(J_T, pattern.T, plan.entries) + jnp.where(wide(i == j, lanes), at(share, i), 0.0)
    swept = eliminated(plan, entries, _floor(at(entries, np.flatnonzero(i == j)), 1e-15))
    return lambda r: product(J_T, substituted(plan, swept, r))


def _meet(pattern: np.ndarray) -> np.ndarray:
    """Where J^T J may have entries."""
    return pattern.T.astype(int) @ pattern > 0


def _floor(diagonal: Float[Array, "n *lanes"], blind: float) -> Float[Array, "n *lanes"]:
    """A pivot that is not larger says nothing."""
    return jnp.maximum(blind * diagonal, 1e-28 * jnp.max(diagonal, 0))


def _sparse_saddle(
    M: Float[Array, "n n *lanes"],
    C: Float[Array, "m n *lanes"],
    soft: Array,
    of_M: np.ndarray,
    of_C: np.ndarray,
) -> Callable[[Array, Array], tuple[Array, Array]] | None:
    """`saddle` by one elimination of x and y: [M + w C^T C, sqrt(w) C^T; sqrt(w) C, -soft]. None where there is little
    to gain."""
    n, m, lanes = M.shape[0], C.shape[0], M.ndim - 2
    corner = np.eye(m, dtype=bool)
    plan = elimination(np.block([[of_M | _meet(of_C), of_C.T], [of_C, corner]]), m)
    if plan is None:
        return None
    times = _times(M, C, np.block([[of_M, of_C.T], [of_C, corner & False]]))
    M, C, soft = (jax.lax.stop_gradient(x) for x in (M, C, soft))
    w = jnp.sum(M * wide(np.eye(n), lanes), (0, 1)) / jnp.sum(C * C, (0, 1))
    w = jnp.where((w > 0) & jnp.isfinite(w), w, 1.0)
    i, j = plan.entries
    inner, rows, diagonal = j < n, (i < n) & (j >= n), i == j
    square = _entries(M, i[inner], j[inner]) + w * gram(C, of_C, plan.entries[:, inner])
    root = jnp.sqrt(w)
    entries = jnp.concatenate([square, root * _entries(C, j[rows] - n, i[rows]), -soft])
    least = _floor(at(square, np.flatnonzero(diagonal[inner])), 1e-14)
    order = np.argsort(np.concatenate([np.flatnonzero(x) for x in (inner, rows, i >= n)]))
    swept = eliminated(plan, at(entries, order), jnp.concatenate([least, jnp.full_like(soft, 1e-15)]))

    def once(z: Array) -> Array:
        b = z[:n] + w * times(jnp.concatenate([jnp.zeros_like(z[:n]), z[n:]]))[:n]
        z = substituted(plan, swept, jnp.concatenate([b, root * z[n:]]))
        return jnp.concatenate([z[:n], root * z[n:]])

    def refined(_, z: Array) -> Array:  # rows of a long chain say so little that their softness takes a third pass
        return jax.lax.fori_loop(0, 3, lambda _, x: x + once(z - times(x)), jnp.zeros_like(z))

    def solve(b: Array, g: Array) -> tuple[Array, Array]:
        z = jax.lax.custom_linear_solve(times, jnp.concatenate([b, g]), refined, symmetric=True)
        return z[:n], z[n:]

    return solve


def _entries(A: Float[Array, "m n *lanes"], i: np.ndarray, j: np.ndarray) -> Float[Array, "e *lanes"]:
    return at(A.reshape(-1, *A.shape[2:]), i * A.shape[1] + j)


def _times(
    M: Float[Array, "n n *lanes"], C: Float[Array, "m n *lanes"], pattern: np.ndarray
) -> Callable[[Array], Array]:
    """The product with [M, C^T; C, 0], entry by entry of its pattern."""
    n = M.shape[0]
    columns = [np.flatnonzero(row) for row in pattern]
    places, others = np.zeros((2, max(map(len, columns)), len(pattern)), dtype=int)
    for k, mine in enumerate(columns):
        low, high = np.minimum(mine, k), np.maximum(mine, k)
        places[: len(mine), k] = 1 + np.where(high < n, k * n + mine, high * n + low)  # the rows of C follow those of M
        others[: len(mine), k] = mine
    parts = [jnp.zeros_like(M[:1, 0]), *(A.reshape(-1, *A.shape[2:]) for A in (M, C))]
    values = at(jnp.concatenate(parts), places)
    return lambda z: jnp.sum(values[:, :, None] * at(z, others), 0)


def _written_out(A: Float[Array, "n n *lanes"], blind: float) -> Callable[[Array], Array]:
    """By elimination without pivoting, row by row: the rows of the inverse factor, and one over the pivots. Every
    number ends in a division, which compilers do not repeat."""
    n, lanes = A.shape[0], A.ndim - 2
    fixed, ones = jax.lax.stop_gradient(A), jnp.broadcast_to(wide(np.eye(n), lanes), A.shape)
    diagonal = jnp.sum(fixed * ones, 1)
    least = _floor(diagonal, blind)
    rest = jnp.concatenate([fixed, ones.astype(A.dtype)], 1)
    rows, inverses = [], []
    for k in range(n):
        row = rest[0]
        seen = ~(row[0] <= least[k])  # NaN is seen, and told
        pivot = jnp.where(seen, row[0], 1.0)
        rows.append(row[n - k :])
        inverses.append(jnp.where(seen, 1.0, 0.0) / pivot)
        if k < n - 1:
            below = jnp.where(seen, row[1 : n - k], 0.0)
            rest = (rest[1:, 1:] * pivot - below[:, None] * row[None, 1:]) / pivot
    W, inverse = jnp.stack(rows), jnp.stack(inverses)
    return lambda B: _solution((W, inverse), A, B)


@jax.custom_jvp
def _solution(factors: tuple[Array, ...], A: Array, B: Array) -> Array:
    """A^-1 B. The factors are A^-1, or W and the inverses of the entries of W A W^T, which is diagonal."""
    if len(factors) == 1:
        return product(*factors, B)
    W, inverse = factors
    return product(jnp.swapaxes(W, 0, 1), inverse[:, None] * product(W, B))


@_solution.defjvp
def _solution_jvp(primals, tangents):
    factors, A, B = primals
    _, A_dot, B_dot = tangents
    X = _solution(factors, A, B)
    return X, _solution(factors, A, B_dot - product(A_dot, X))


def _looped(A: Float[Array, "n n *lanes"], blind: float) -> Callable[[Array], Array]:
    """By the inverse of Cholesky's factor, in a loop. (LAPACK's solvers wait, within XLA's threads, for other such
    threads: two at a time on a machine with two cores wait for ever.)"""
    W = _root(jax.lax.stop_gradient(A), blind)
    return lambda B: _solution((W, jnp.ones_like(W[0])), A, B)


def _root(A: Float[Array, "n n *lanes"], blind: float) -> Float[Array, "n n *lanes"]:
    """W with W A W^T = 1, but for directions in which A is blind, where it is zero."""
    n, lanes = A.shape[0], A.ndim - 2
    diagonal = jnp.sum(A * wide(np.eye(n), lanes), 1)
    least = _floor(diagonal, blind)
    number = wide(np.arange(n), lanes)

    def step(k: Array, both: tuple[Array, Array]) -> tuple[Array, Array]:
        A, W = both
        row, mine, floor = (jax.lax.dynamic_index_in_dim(x, k, 0, keepdims=False) for x in (A, W, least))
        pivot = jax.lax.dynamic_index_in_dim(row, k, 0, keepdims=False)
        seen = ~(pivot <= floor)  # NaN is seen, and told
        scale = jnp.where(seen, 1.0 / jnp.sqrt(jnp.where(seen, pivot, 1.0)), 0.0)
        row, mine = row * scale, mine * scale
        later = jnp.where(number > k, row, 0.0)
        W = jnp.where((number == k)[:, None], mine[None], W - later[:, None] * mine[None])
        return A - row[:, None] * row[None], W

    return jax.lax.fori_loop(0, n, step, (A, jnp.broadcast_to(wide(np.eye(n), lanes), A.shape).astype(A.dtype)))[1]


def lemke(M: Float[Array, "n n"], q: Float[Array, " n"]) -> Float[Array, " n"]:
    """The z >= 0 with w = M z + q >= 0 and z w = 0 that complementary pivoting finds (Lemke 1965); for the M of
    contacts with friction, wherever there is one. Zero where it finds none, as where q >= 0. Rounding may leave an
    entry of z that is not zero slightly negative."""
    n = len(q)
    numbers, columns = np.arange(n), np.arange(2 * n + 2)
    cover = 2 * n  # an unknown that makes up for what is below zero, until all is found
    column_of = lambda table, k: jnp.sum(jnp.where(columns == k, table, 0.0), 1)

    def exchanged(table: Array, basis: Array, row: Array, enters: Array) -> tuple[Array, Array]:
        mine = numbers == row
        line = jnp.sum(jnp.where(mine[:, None], table, 0.0), 0)
        line = line / jnp.where(row < 0, 1.0, jnp.sum(jnp.where(columns == enters, line, 0.0)))
        table = jnp.where(mine[:, None], line, table - column_of(table, enters)[:, None] * line)
        return table, jnp.where(mine, enters, basis)

    def pivot(state):
        table, basis, enters, _, i = state
        column = column_of(table, enters)
        able = column > ROUNDING() / 10
        ratio = jnp.where(able, table[:, -1] / jnp.where(able, column, 1.0), jnp.inf)
        row = jnp.where(jnp.any(able), jnp.argmin(ratio), -1)  # none: what enters can grow for ever
        leaves = jnp.sum(jnp.where(numbers == row, basis, 0))
        onward = (row >= 0) & (leaves != cover)
        return *exchanged(table, basis, row, enters), jnp.where(leaves < n, leaves + n, leaves - n), onward, i + 1

    table = jnp.concatenate([np.eye(n) + 0 * M, -M, -jnp.ones((n, 1)), q[:, None]], 1)  # of w, z, the cover; the values
    row = jnp.argmin(q)
    begin = *exchanged(table, jnp.asarray(numbers), row, jnp.asarray(cover)), row + n, jnp.min(q) < 0, 0
    table, basis, *_ = jax.lax.while_loop(lambda state: state[3] & (state[4] < 8 * n), pivot, begin)
    found = jnp.sum(jnp.where(basis[:, None] == n + numbers, table[:, -1:], 0.0), 0)
    return jnp.where((jnp.min(q) < 0) & jnp.all(basis != cover), found, 0.0)


class Echelon(NamedTuple):
    """What total pivoting tells of a matrix; shapes do not depend on the rank."""

    rank: Int[Array, ""]
    dependent: Bool[Array, " n"]  # columns with a pivot
    used: Bool[Array, " m"]  # rows with a pivot; the others are redundant
    K: Float[Array, "n n"]  # x = K x on the null space, with only independent columns filled


def echelon(C: Float[Array, "m n"], *, tol: float = 1e-9) -> Echelon:
    """Gauss-Jordan elimination with total pivoting (thesis 2.2.4.2, Haug 4.4).

    Pivots below `tol` times the largest entry count as zero.
    """
    m, n = C.shape
    if m == 0 or n == 0:
        zero = jnp.zeros((), int)
        return Echelon(zero, jnp.zeros(n, bool), jnp.zeros(m, bool), jnp.eye(n))
    least, rows, columns = tol * jnp.max(jnp.abs(C)), np.arange(m), np.arange(n)

    def step(_, state):
        A, used, row_of = state
        score = jnp.where(used[:, None] | (row_of >= 0), 0.0, jnp.abs(A))
        best = jnp.argmax(score)
        i = jax.lax.div(best, n)
        found = jnp.max(score) > least
        mine, own = (rows == i) & found, columns == best - i * n
        row = jnp.sum(jnp.where(mine[:, None], A, 0.0), 0)
        row = row / jnp.where(found, jnp.sum(jnp.where(own, row, 0.0)), 1.0)
        A = jnp.where(mine[:, None], row, A - jnp.sum(jnp.where(own, A, 0.0), 1)[:, None] * row)
        return A, used | mine, jnp.where(own & found, i, row_of)

    start = (C, jnp.zeros(m, bool), jnp.full(n, -1))
    A, used, row_of = jax.lax.fori_loop(0, min(m, n), step, start)
    dependent = row_of >= 0
    K = jnp.where(dependent[:, None], -A[row_of], jnp.eye(n)) * ~dependent[None, :]
    return Echelon(jnp.sum(used), dependent, used, K)


def magnitude(x: Float[Array, "*axes n"]) -> Float[Array, "*axes"]:
    """The length of vectors, with a derivative of zero where that is zero."""
    square = jnp.sum(jnp.square(x), -1)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), square)
