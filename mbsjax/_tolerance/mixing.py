"""Which dimensions vary together: correlation, lots, and zones that grow with a size."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float

from .._programs.precision import as_float, plain_number
from .distribution.base import AbstractDistribution
from .parameters import Choice


def mixing(
    distributions: Sequence[AbstractDistribution],
    choice: Choice,
    correlation: Any,
    lots: Mapping[str, Sequence[str]],
) -> Float[Array, "d d"]:
    """The Cholesky factor of the correlation of all scores. A dimension that follows others has no score of its own:
    its column is zero."""
    names = choice.names
    first = _first_of_lots(distributions, choice, lots)
    lot_of = {i: lot for lot, members in lots.items() for member in members for i in _numbers(member, choice)}
    zone_of = [key for key, d, n in zip(choice.keys, distributions, choice.counts) for _ in range(n)]
    together = [d.together for d, n in zip(distributions, choice.counts) for _ in range(n)]
    R, known = np.eye(len(names)), np.eye(len(names), dtype=bool)
    for i, j, rho in (*_of_zones(distributions, choice), *_given(correlation, names)):
        a, b = first[i], first[j]
        if (together[i] or together[j]) and rho != 0 and a != b:
            raise ValueError(
                f"the numbers of the zone {zone_of[i] if together[i] else zone_of[j]!r} are spread together: they "
                "cannot be correlated with others one by one; a lot lets it go with another zone"
            )
        if (known[a, b] or a == b) and not np.isclose(R[a, b], rho, rtol=0, atol=1e-9):
            lot = lot_of.get(i, lot_of.get(j))
            why = f"the lot {lot!r} makes it" if lot is not None else "elsewhere it is"
            raise ValueError(
                f"the correlation of {names[i]!r} and {names[j]!r} cannot be {rho:.6g}: {why} {R[a, b]:.6g}"
            )
        R[a, b] = R[b, a] = rho
        known[a, b] = known[b, a] = True
    own = np.unique(first)
    least = float(np.linalg.eigvalsh(R[np.ix_(own, own)]).min())
    if not least > -1e-10:
        raise ValueError(f"the correlation is not positive semi-definite: its smallest eigenvalue is {least:.3g}")
    L = np.zeros_like(R)
    L[np.ix_(own, own)] = _cholesky(R[np.ix_(own, own)])
    return jnp.asarray(L[first])


def groups(
    distributions: Sequence[AbstractDistribution], choice: Choice, mixing: Float[Array, "d d"]
) -> dict[str, tuple[int, ...]]:
    """The numbers that vary together, by name: zones, lots, and what is correlated; each of the others by itself."""
    linked = np.asarray(mixing) @ np.asarray(mixing).T != 0
    key_of = np.repeat(np.arange(len(choice.keys)), choice.counts)
    zones = np.array([d.zone for d in distributions])
    linked |= zones[key_of] & (key_of[:, None] == key_of)
    count, number = scipy.sparse.csgraph.connected_components(scipy.sparse.csr_array(linked), directed=False)
    found = {}
    for k in range(count):
        members = np.flatnonzero(number == k)
        own = np.bincount(key_of[members], minlength=len(choice.keys))
        whole = [own[key_of[i]] == choice.counts[key_of[i]] > 1 for i in members]
        parts = [choice.keys[key_of[i]] if w else choice.names[i] for i, w in zip(members, whole)]
        found[", ".join(dict.fromkeys(parts))] = tuple(members.tolist())
    return found


def check_sizes(distributions: Sequence[AbstractDistribution], keys: Iterable[str], names: tuple[str, ...]) -> None:
    """Raises where the size that a zone grows with is none."""
    every = dict(zip(keys, distributions))
    for key, d in every.items():
        if d.mmc is not None and (d.mmc not in names or every.get(d.mmc, d).mmc is not None):
            raise ValueError(
                f"the zone of {key!r} grows with the size {d.mmc!r}, which must be a number with a tolerance of its "
                f"own; these are {', '.join(n for n in names if n in every)}"
            )


def _numbers(member: str, choice: Choice) -> list[int]:
    """Which numbers of the study a name stands for."""
    if member in choice.keys:
        k = choice.keys.index(member)
        start = sum(choice.counts[:k])
        return list(range(start, start + choice.counts[k]))
    return [choice.names.index(member)] if member in choice.names else []


def _first_of_lots(
    distributions: Sequence[AbstractDistribution], choice: Choice, lots: Mapping[str, Sequence[str]]
) -> np.ndarray:
    """For each number, the one whose score it has: the first of its lot."""
    first = np.arange(len(choice.names))
    taken: dict[int, str] = {}
    every = [d for d, n in zip(distributions, choice.counts) for _ in range(n)]
    for lot, members in lots.items():
        if isinstance(members, str) or len(members) < 2:
            raise ValueError(f"the lot {lot!r} must name at least two dimensions, got {members!r}")
        for member in members:
            numbers = _numbers(member, choice)
            if not numbers:
                raise ValueError(
                    f"the lot {lot!r} names {member!r}, which has no tolerance; there are {', '.join(choice.keys)}"
                )
            if any(i in taken for i in numbers):
                raise ValueError(f"the dimension {member!r} is twice in lots: in {taken[numbers[0]]!r} and {lot!r}")
            taken.update(dict.fromkeys(numbers, lot))
            leader = _numbers(members[0], choice)
            if len(numbers) != len(leader):
                raise ValueError(
                    f"the lot {lot!r} has {members[0]!r} of {len(leader)} numbers and {member!r} of {len(numbers)}: "
                    "they cannot go together number by number"
                )
            zones = [
                (d.together, d.parameters[:1] if d.together else ()) for d in (every[leader[0]], every[numbers[0]])
            ]
            if zones[0] != zones[1] or zones[0][0] not in (None, len(leader)):
                raise ValueError(
                    f"the lot {lot!r} has {members[0]!r} and {member!r}: a zone goes together with whole zones of its "
                    "own kind only"
                )
            first[numbers] = leader
    return first


def _of_zones(distributions: Sequence[AbstractDistribution], choice: Choice) -> Iterable[tuple[int, int, float]]:
    """What zones say of the correlation of their own numbers: of those spread together, that there is none."""
    start = 0
    for d, n in zip(distributions, choice.counts):
        R = d.score_correlation(n)
        told = np.ones((n, n), bool) if d.together else R != 0
        yield from ((start + i, start + j, float(R[i, j])) for i in range(n) for j in range(i) if told[i, j])
        start += n


def _given(correlation: Any, names: tuple[str, ...]) -> Iterable[tuple[int, int, float]]:
    """All pairs that a mapping or a matrix has a correlation of."""
    if correlation is None:
        return
    if isinstance(correlation, Mapping):
        for pair, rho in correlation.items():
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise ValueError(f"a correlation is one of two dimensions, got {pair!r}")
            for name in pair:
                if name not in names:
                    raise ValueError(f"there is no dimension {name!r} to be correlated; they are {', '.join(names)}")
            i, j = (names.index(name) for name in pair)
            if i == j:
                raise ValueError(f"the dimension {pair[0]!r} cannot be correlated with itself")
            yield i, j, plain_number(rho, f"the correlation of {pair[0]!r} and {pair[1]!r}", least=-1.0, most=1.0)
        return
    R = np.asarray(as_float(correlation, "a correlation matrix"))
    if R.shape != (len(names), len(names)):
        raise ValueError(f"the correlation of {len(names)} dimensions must be a square matrix, got {R.shape}")
    if not (np.all(np.isfinite(R)) and np.allclose(R, R.T) and np.allclose(np.diag(R), 1)):
        raise ValueError("a correlation matrix must be symmetric, with ones on its diagonal")
    if np.abs(R).max() > 1 + 1e-9:
        i, j = np.unravel_index(np.abs(R).argmax(), R.shape)
        raise ValueError(
            f"the correlation of {names[i]!r} and {names[j]!r} must be between -1 and 1, got {R[i, j]:.6g}"
        )
    yield from ((i, j, float(R[i, j])) for i in range(len(names)) for j in range(i))


def _cholesky(R: np.ndarray) -> np.ndarray:
    """Of a matrix that may be singular, with ones on its diagonal: a row that depends on those above has no column."""
    L = np.zeros_like(R)
    for k in range(len(R)):
        pivot = R[k, k] - L[k, :k] @ L[k, :k]
        if pivot > 1e-12:
            L[k:, k] = (R[k:, k] - L[k:, :k] @ L[k, :k]) / np.sqrt(pivot)
    return L / np.linalg.norm(L, axis=1, keepdims=True)
