"""Subset simulation: rare events as a chain of less rare ones."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._programs.reprs import by_fields
from .design_points import Limit
from .evaluate import evaluated_in_chunks, joined
from .study import Study


class Rare(eqx.Module):
    """A probability from samples: its value, its standard error, and the samples it took."""

    probability: np.float64
    error: np.float64
    samples: np.int64

    def __init__(self, probability: Any, error: Any, samples: Any):
        self.probability, self.error = np.float64(probability), np.float64(error)
        self.samples = np.int64(samples)

    __repr__ = by_fields


class Walk(NamedTuple):
    """What a walk to where something happens found.

    - `estimate`: its probability; NaN where it cannot tell.
    - `arrived`: scores where it happens, as parts have them.
    - `name`: of the method. `slack`: how much of the probability it may miss beyond its error.
    """

    estimate: Rare
    arrived: np.ndarray
    name: str = "subset simulation"
    slack: float = 0.0


def subset(
    study: Study,
    limit: Limit,
    u: np.ndarray,
    values: np.ndarray,
    rng: np.random.Generator,
    chunk: int,
    *,
    moves: int = 4,
    groups: int = 8,
) -> Walk:
    """Subset simulation: of plain samples, the tenth with least room goes on, moved about (Papaioannou's conditional
    sampling) while staying there; and so on, until the limit is broken by a tenth. The standard error comes from the
    spread between groups, which share levels but no samples. Where plain samples break the limit often enough, they
    do. What has no value is not beyond the limit here: it is another event, which no room leads to."""
    room = lambda values: np.nan_to_num(limit.room(values)[0], nan=np.inf)
    (n, d), size, r = u.shape, len(u) // groups, room(values)
    p = float(np.mean(r < 0))
    plain = Walk(Rare(p, np.sqrt(p * (1 - p) / n), n), u[r < 0])
    if p >= 0.01:
        return plain
    log_p, spread, last, taken = np.zeros(groups), 0.6, np.inf, n
    for _ in range(40):
        level = max(float(np.quantile(r, 0.1, method="inverted_cdf")), 0.0)
        inside = (r <= level) if level > 0 else (r < 0)
        if level > 0 and not level < last * (1 - 1e-9):
            break
        with np.errstate(divide="ignore"):
            log_p = log_p + np.log(inside.reshape(groups, size).mean(1))
        if level == 0:
            each = np.exp(log_p)
            return Walk(Rare(each.mean(), max(each.std(ddof=1) / np.sqrt(groups), 1e-300), taken), u[r < 0])
        last = level
        u, r = _resampled(u.reshape(groups, size, d), r.reshape(groups, size), inside.reshape(groups, size), rng)
        for _ in range(moves):
            rho = np.sqrt(1 - spread**2)
            trial = rho * u + spread * rng.normal(size=u.shape)
            found = room(values_at(study, trial, chunk))
            accepted = found <= level
            u, r = np.where(accepted[:, None], trial, u), np.where(accepted, found, r)
            spread = float(np.clip(spread * np.exp(accepted.mean() - 0.44), 0.05, 1.0))
            taken += n
    # it gets no further: the values jump, and plain samples tell what there is; or the limit is out of reach, and at
    # most as likely as the last level
    return plain if p else Walk(Rare(0.0, min(float(np.exp(log_p).mean()), 1 / n), taken), u[:0])


def _resampled(
    u: np.ndarray, r: np.ndarray, inside: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """As many samples as before from those inside, of each group its own; a group that has none takes from all."""
    every = np.argwhere(inside)
    rows = []
    for g in range(len(u)):
        own = every[every[:, 0] == g]
        own = own if len(own) else every
        count = u.shape[1]
        rows.append(own[rng.permutation(np.resize(rng.permutation(len(own)), count))])
    at = np.concatenate(rows)
    return u[at[:, 0], at[:, 1]], r[at[:, 0], at[:, 1]]


class _Scores(eqx.Module):
    """The dimensions at given scores, by their numbers."""

    study: Study
    u: Float[Array, "n d"]

    def __call__(self, index: Array) -> Array:
        return self.study.dimensions(self.u[index])


def values_at(study: Study, u: np.ndarray, chunk: int) -> np.ndarray:
    """Values at given scores."""
    padded = np.concatenate([u, np.zeros((-len(u) % chunk, u.shape[1]))])
    return joined(evaluated_in_chunks(study, _Scores(study, jnp.asarray(padded)), len(u), chunk)).values
