"""Sobol indices: how much of the variance of each value each contributor is to blame for, interactions included."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from .._programs.reprs import by_fields
from .evaluate import CHUNK, evaluated_in_chunks, joined
from .sampler import AbstractSampler, counts, sampler
from .study import Study


class SobolIndices(NamedTuple):
    """Parts of the variance of values: rows belong to the values of the study, `study.columns`, columns to
    `contributors`.

    - `contributors`: dimensions by name; those that vary together, a zone, a lot, correlated dimensions, count as one.
    - `first`: the part that a contributor has by itself; they sum to no more than 1.
    - `total`: the part that would be gone if it did not vary: with its interactions, so that they sum to 1 or more.
    - `first_errors`, `total_errors`: standard errors.
    - `dropped`: how many of the `rows` were left out for each value, because one of their variants has none. Where
        there are any, the indices are those of the variants that work.
    - `rows`: how many were drawn, each of as many variants as there are contributors, and two.
    """

    contributors: tuple[str, ...]
    first: np.ndarray
    total: np.ndarray
    first_errors: np.ndarray
    total_errors: np.ndarray
    dropped: np.ndarray
    rows: int

    __repr__ = by_fields


def sobol_indices(study: Study, n: int, *, seed: int = 0, chunk: int = CHUNK) -> SobolIndices:
    """First-order and total Sobol indices of all values, from samples: by how much each contributor varies a value by
    itself, and with its interactions, whether derivatives tell or not.

    Each of `n` rows is two variants A and B with scores from a scrambled Sobol sequence, and for each contributor A
    with that one from B. The estimators are those of Saltelli (2010) for the first indices and of Jansen for the total
    ones; standard errors come from 16 independently scrambled sequences, by leaving out one after the other.

    **Arguments:**

    - `study`: what. Contributors are `study.groups`.
    - `n`: how many rows; 16 times a power of two is best. The study is evaluated n times the number of contributors and
        two.
    - `seed`, `chunk`: as for [`mbsjax.monte_carlo`][].

    **Returns:** [`mbsjax.SobolIndices`][]. A row that has a variant without a value is left out, and counted. The
    indices of a value that does not vary are NaN.

    !!! Example

        A product: half of the total index of each factor is interaction.

        >>> import mbsjax as mbs
        >>> unit = mbs.Normal(sigma=1.0)
        >>> study = mbs.Study(lambda p: p, {"a": 1.0, "b": 1.0}, {"a": unit, "b": unit},
        ...                   {"y": lambda p: p["a"] * p["b"]})
        >>> found = mbs.sobol_indices(study, 16384)
        >>> found.contributors, found.first.round(2).tolist(), found.total.round(2).tolist()
        (('a', 'b'), [[0.33, 0.33]], [[0.67, 0.67]])
    """
    n, seed, chunk = counts(samples=n, seed=seed, chunk=chunk)
    groups = study.groups
    d, wide = len(study.names), len(groups) + 2
    masks = np.zeros((wide, d), bool)
    masks[1] = True
    for mask, numbers in zip(masks[2:], groups.values()):
        mask[list(numbers)] = True
    plan = sampler("sobol", n, 2 * d, seed)
    variants = _Variants(study, plan, jnp.asarray(masks))
    values = joined(evaluated_in_chunks(study, variants, n * wide, chunk)).values.reshape(n, wide, -1)
    fine = np.all(np.isfinite(values), 1)
    sums = _sums(values, fine)
    within = np.stack([sums[plan.group(np.arange(n)) == g].sum(0) for g in range(plan.groups)])
    left_out = np.stack([_indices(within.sum(0) - x) for x in within])
    spread = np.sqrt((plan.groups - 1) * np.mean((left_out - left_out.mean(0)) ** 2, 0))
    errors = spread if plan.groups > 1 else np.full_like(spread, np.nan)
    first, total = _indices(within.sum(0))
    return SobolIndices(tuple(groups), first, total, errors[0], errors[1], n - fine.sum(0), n)


def _sums(values: np.ndarray, fine: np.ndarray) -> np.ndarray:
    """What the indices are made of, for each row and value: one, its values, their squares, and for each contributor
    the products of the first indices and the squares of the total ones. Nothing where a variant has no value."""
    center = np.sum(np.where(fine, values[:, :2].mean(1), 0.0), 0) / np.maximum(fine.sum(0), 1)
    y = np.where(fine[:, None], values - center, 0.0)
    A, B, swapped = y[:, 0, :, None], y[:, 1, :, None], np.moveaxis(y[:, 2:], 1, 2)
    parts = [fine[..., None], (A + B) / 2, (A**2 + B**2) / 2, B * (swapped - A), (swapped - A) ** 2 / 2]
    return np.concatenate(parts, -1)


def _indices(sums: np.ndarray) -> np.ndarray:
    """First and total indices."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums[:, 1:] / sums[:, :1]
        variance = means[:, 1:2] - means[:, :1] ** 2
        return np.stack(np.split(means[:, 2:] / np.where(variance > 0, variance, np.nan), 2, -1))


class _Variants(eqx.Module):
    """The dimensions of all variants, by their numbers: row after row; in each A, B, and A with one group from B."""

    study: Study
    sampler: AbstractSampler
    masks: Bool[Array, "w d"]

    def __call__(self, index: Array) -> Array:
        wide, d = self.masks.shape
        scores = self.sampler.scores(index // wide)
        return self.study.dimensions(jnp.where(self.masks[index % wide], scores[d:], scores[:d]))
