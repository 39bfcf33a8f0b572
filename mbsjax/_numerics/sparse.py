"""Symmetric elimination where most entries are known to be zero: in rounds, each of many small fronts side by side.

The unknowns of a round's fronts do not touch each other, so they go together, as lanes of one small dense elimination;
a chain is halved in every round. Which unknown goes when depends on the pattern alone and is settled before anything is
traced: programs grow with the number of rounds, the logarithm of the size, and the work with the size.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .groups import wide


_FRONT = 16  # fronts of up to this size are worth it to save a round


@dataclass(frozen=True)
class Round:
    """Fronts of one size. Their first unknowns are eliminated here, the others later."""

    unknowns: np.ndarray  # [front, many]; one more than there are for none
    pivots: int  # how many of them are eliminated
    terms: np.ndarray  # [terms, front, front, many]: the places of what adds up to the entries
    loads: np.ndarray  # [terms, pivots, many]: the same for the right side
    later: np.ndarray  # [front - pivots, many]: the places of the others, where those found first stand first


@dataclass(frozen=True)
class Elimination:
    """How a matrix of a known pattern is eliminated. The places of `terms` and `loads` count from zero, which stands
    first; the matrix, or the right side; and then what each round leaves behind."""

    entries: np.ndarray  # [2, entries]: rows and columns, i <= j
    signs: np.ndarray  # of the pivots
    rounds: tuple[Round, ...]
    found: np.ndarray  # the places of the unknowns, where those found first stand first


class Swept(NamedTuple):
    """A round's fronts [A, B; B^T, C] after their elimination, where P is the inverse of A but for pivots below their
    floor, where it is zero. The right sides' axis stands before the lanes."""

    carry: Float[Array, "b p many 1 *lanes"]  # -B^T P
    solve: Float[Array, "p f many 1 *lanes"]  # [P, -P B]


def eliminated(plan: Elimination, entries: Float[Array, "e *lanes"], floor: Float[Array, "n *lanes"]) -> list[Swept]:
    """The fronts of all rounds. Pivots that are not larger than their floor say nothing."""
    lanes = entries.ndim - 1
    pool, swept = jnp.concatenate([jnp.zeros_like(entries[:1]), entries]), []
    floor = jnp.concatenate([floor, jnp.zeros_like(floor[:1])])
    signs = np.append(plan.signs, 1.0)
    for each in plan.rounds:
        p, pivots = each.pivots, each.unknowns[: each.pivots]
        front = jnp.sum(at(pool, each.terms), 0)
        front = _sweep(front, at(floor, pivots), jnp.asarray(wide(signs[pivots], lanes)))
        solve = -jnp.expand_dims(front[:p], 3)
        if len(front) > p:
            pool = jnp.concatenate([pool, front[p:, p:].reshape(-1, *pool.shape[1:])])
        swept.append(Swept(jnp.swapaxes(solve[:, p:], 0, 1), solve))
    return swept


def _sweep(
    A: Float[Array, "f f many *lanes"], floor: Float[Array, "p many *lanes"], sign: Float[Array, "p many *ones"]
) -> Float[Array, "f f many *lanes"]:
    number = wide(np.arange(A.shape[0]), A.ndim - 2)

    def step(k: Any, A: Array) -> Array:
        row, least, s = (jax.lax.dynamic_index_in_dim(x, k, 0, keepdims=False) for x in (A, floor, sign))
        pivot = jax.lax.dynamic_index_in_dim(row, k, 0, keepdims=False)
        seen = ~(s * pivot <= least)  # NaN is seen, and told
        inverse = jnp.where(seen, 1.0 / jnp.where(seen, pivot, 1.0), 0.0)
        mine = number == k
        row = jnp.where(mine, -1.0, row)
        return jnp.where(mine[:, None] | mine[None], 0.0, A) - row[:, None] * (row * inverse)[None]

    return jax.lax.fori_loop(0, floor.shape[0], step, A)


def substituted(plan: Elimination, swept: list[Swept], b: Float[Array, "n k *lanes"]) -> Float[Array, "n k *lanes"]:
    """The unknowns for these right sides."""
    zero, loads = jnp.zeros_like(b[:1]), []
    pool = jnp.concatenate([zero, b])
    for each, front in zip(plan.rounds, swept, strict=True):
        loads.append(jnp.sum(at(pool, each.loads), 0))
        if len(each.later):
            pool = jnp.concatenate([pool, _times(front.carry, loads[-1])])
    x = zero
    for each, front, load in reversed(list(zip(plan.rounds, swept, loads, strict=True))):
        x = jnp.concatenate([x, _times(front.solve, jnp.concatenate([load, at(x, each.later)]))])
    return at(x, plan.found)


def _times(A: Float[Array, "f g many 1 *lanes"], x: Float[Array, "g many k *lanes"]) -> Float[Array, "fm k *lanes"]:
    return jnp.sum(A * x, 1).reshape(-1, *x.shape[2:])


def at(x: Float[Array, "n *lanes"], places: np.ndarray) -> Array:
    """x at places known beforehand."""
    return jax.lax.gather(
        x,
        places[..., None],
        jax.lax.GatherDimensionNumbers(tuple(range(places.ndim, places.ndim + x.ndim - 1)), (0,), (0,)),
        (1, *x.shape[1:]),
        mode=jax.lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def gram(J: Float[Array, "m n *lanes"], pattern: np.ndarray, pairs: np.ndarray) -> Float[Array, "e *lanes"]:
    """The entries of J^T J at these pairs of columns, where J has entries in this pattern only."""
    n, flat = J.shape[1], jnp.concatenate([jnp.zeros_like(J[:1, 0]), J.reshape(-1, *J.shape[2:])])
    rows = [np.flatnonzero(pattern[:, i] & pattern[:, j]) for i, j in pairs.T]
    both = np.zeros((2, max(map(len, rows), default=0), len(rows)), dtype=int)
    for e, mine in enumerate(rows):
        both[:, : len(mine), e] = 1 + mine * n + pairs[:, e][:, None]
    a, b = at(flat, both)
    return jnp.sum(a * b, 0)


# the order ------------------------------------------------------------------------------------------------------------


def elimination(pattern: np.ndarray, constraints: int = 0) -> Elimination | None:
    """For a symmetric matrix with entries in this pattern, or None where they are so many that there is little to gain.
    The last `constraints` unknowns are multipliers, whose pivots are negative; each waits for all that it holds, which
    is what makes its pivot large."""
    return _elimination(np.asarray(pattern, dtype=bool).tobytes(), len(pattern), constraints)


@lru_cache(maxsize=64)
def _elimination(pattern_bytes: bytes, n: int, constraints: int) -> Elimination | None:
    pattern = np.frombuffer(pattern_bytes, dtype=bool).reshape(n, n) | np.eye(n, dtype=bool)
    order = _order(pattern, constraints)
    sizes = [(len(fronts), *(max(len(x) for x in part) for part in zip(*fronts, strict=True))) for fronts in order]
    if 2 * sum(many * p * (p + others) ** 2 for many, p, others in sizes) > (n - constraints) ** 3 + constraints**3:
        return None
    entries = np.stack(np.nonzero(np.triu(pattern)))
    terms: dict[Any, list[int]] = {(i, j): [1 + e] for e, (i, j) in enumerate(entries.T.tolist())}
    loads = [*([1 + i] for i in range(n)), []]
    n_terms, n_loads, rounds = 1 + entries.shape[1], 1 + n, []
    for fronts, (many, p, others) in zip(order, sizes, strict=True):
        f, unknowns = p + others, np.full((p + others, many), n)
        for k, (mine, later) in enumerate(fronts):
            unknowns[: len(mine), k], unknowns[p : p + len(later), k] = mine, later
        number = unknowns.tolist()
        pairs = {(a, b, k): tuple(sorted((number[a][k], number[b][k]))) for a, b, k in np.ndindex(f, f, many)}
        entry = {x: terms[pair] for x, pair in pairs.items() if min(x[:2]) < p and pair in terms}
        load = {x: loads[unknowns[x]] for x in np.ndindex(p, many)}
        rounds.append((unknowns, p, _table((f, f, many), entry), _table((p, many), load)))
        for (a, b, k), pair in pairs.items():
            if p <= a <= b and pair[1] < n:
                terms.setdefault(pair, []).append(n_terms + ((a - p) * (f - p) + b - p) * many + k)
        for a, k in np.ndindex(f - p, many):
            if unknowns[p + a, k] < n:
                loads[unknowns[p + a, k]].append(n_loads + a * many + k)
        n_terms, n_loads = n_terms + (f - p) ** 2 * many, n_loads + (f - p) * many
    found, n_found, complete = np.zeros(n + 1, dtype=int), 1, []
    for unknowns, p, entry, load in reversed(rounds):
        complete.append(Round(unknowns, p, entry, load, found[unknowns[p:]]))
        found[unknowns[:p]] = n_found + np.arange(p * unknowns.shape[1]).reshape(p, -1)
        found[n] = 0
        n_found += p * unknowns.shape[1]
    signs = np.where(np.arange(n) < n - constraints, 1.0, -1.0)
    return Elimination(entries, signs, tuple(reversed(complete)), found[:n])


def _table(shape: tuple[int, ...], places: dict[Any, list[int]]) -> np.ndarray:
    """The places of each entry of the shape, on a first axis, and zeros behind."""
    table = np.zeros((max(map(len, places.values()), default=1), *shape), dtype=int)
    for index, each in places.items():
        table[(slice(len(each)), *index)] = each
    return table


def _order(pattern: np.ndarray, constraints: int) -> list[list[tuple[list[int], list[int]]]]:
    """The fronts of each round, with their pivots and the other unknowns that these touch: by minimum degree, as many
    as do not touch each other."""
    n = len(pattern)
    touches = {i: set(np.flatnonzero(row).tolist()) - {i} for i, row in enumerate(pattern)}
    holds = {i: {j for j in touches[i] if j < n - constraints} for i in range(n - constraints, n)}
    rounds = []
    while touches:
        ready = sorted((len(touches[i]), i) for i in touches if not holds.get(i))
        most = max(2 * ready[0][0], _FRONT)
        taken, fronts = set(), []
        for degree, i in ready:
            if degree > most or i in taken or touches[i] & taken:
                continue
            pivots, others = _front(i, touches, holds, taken)
            taken.update(pivots)
            fronts.append((pivots, sorted(others)))
        for pivots, others in fronts:
            for i in pivots:
                del touches[i]
            for i in others:
                touches[i] = (touches[i] | set(others)) - {i, *pivots}
        for held in holds.values():
            held -= taken
        rounds.append(fronts)
    return rounds


def _front(
    i: int, touches: dict[int, set[int]], holds: dict[int, set[int]], taken: set[int]
) -> tuple[list[int], set[int]]:
    """The pivots that go with this one, and the unknowns that they touch: those that add none, or too few to matter."""
    pivots, others = [i], set(touches[i])
    while True:
        ready = [j for j in others if not touches[j] & taken and not holds.get(j, set()) - set(pivots)]
        more = {j: touches[j] - others - set(pivots) for j in sorted(ready)}
        chosen = [j for j in more if not more[j]]
        if not chosen and more and len(pivots) + len(others) < _FRONT:
            best = min(more, key=lambda j: len(more[j]))
            chosen = [best] if len(pivots) + len(others) + len(more[best]) <= _FRONT else []
        if not chosen:
            return pivots, others
        pivots += chosen
        others = others.union(*(more[j] for j in chosen)) - set(chosen)
