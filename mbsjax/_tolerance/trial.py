"""How far an expansion can be believed: beside the study itself at a handful of parts, and in the yield it tells."""

import equinox as eqx
import jax
import numpy as np
import scipy
from jaxtyping import Array

from .._programs.reprs import brief
from .._programs.trees import lasting
from .evaluate import linearized
from .study import Study


POOR = 0.1  # of a standard deviation, by which an expansion is off that does not describe a measure
_TRIED = 32  # parts that are analyzed
_DRAWN, _GROUPS = 16384, 16  # parts that the expansion alone is asked for, and in how many groups


class Trial(eqx.Module):
    """Parts as they are made: the dimensions of many of them, and the values of the first few.

    - `deviations`: from the mean dimensions, one row for each part.
    - `values`: of the first parts; NaN where there is none.
    """

    deviations: np.ndarray
    values: np.ndarray

    def __repr__(self) -> str:
        return brief(self, deviations=self.deviations, values=self.values)


def trial(study: Study, seed: int = 0) -> Trial:
    """Draws parts from a scrambled Sobol sequence, and analyzes the first of them by the program of the slopes: that
    of samples need not be compiled for them."""
    points = scipy.stats.qmc.Sobol(len(study.names), rng=np.random.default_rng(seed)).random(_DRAWN)
    x = np.asarray(_dimensions(study, scipy.special.ndtri(np.clip(points, 1e-12, 1 - 1e-12))))
    return Trial(x - np.asarray(study.mean), linearized(study, x[:_TRIED])[0])


@lasting
def _dimensions(study: Study, u: Array) -> Array:
    return jax.vmap(study.dimensions)(u)


class Expansion(eqx.Module):
    """A polynomial of second order about the mean dimensions, one for each value; of first order without curvatures."""

    values: np.ndarray
    slopes: np.ndarray
    curvatures: np.ndarray | None

    def at(self, deviations: np.ndarray, k: np.ndarray) -> np.ndarray:
        """The values number k at parts, one row for each part."""
        y = self.values[k] + deviations @ self.slopes[k].T
        if self.curvatures is None:
            return y
        return y + np.stack([np.sum(deviations @ self.curvatures[i] * deviations, 1) for i in k], 1) / 2

    def misfit(self, tried: Trial) -> np.ndarray:
        """How far each value is off at the parts that were analyzed, in standard deviations of these: the root of the
        mean square. Infinite where some of them have no value."""
        count = len(tried.values)
        off = self.at(tried.deviations[:count], np.arange(len(self.values))) - tried.values
        spread = tried.values.std(0)
        rounding = 1e-9 * np.abs(self.values) + 1e-300
        found = np.sqrt(np.mean(off**2, 0)) / np.maximum(spread, rounding)
        return np.where(np.isfinite(tried.values).all(0), found, np.inf)

    def yield_error(self, tried: Trial, k: np.ndarray, lower: np.ndarray, upper: np.ndarray, good: float) -> float:
        """How far a yield may be off that a distribution with the moments of the expansion has: from what the expansion
        itself says of many parts, and from how much that changes when the limits are moved by as much as it is off at
        those that were analyzed, more beyond these."""
        many = _DRAWN if len(k) == 1 else _DRAWN // 4  # of a whole row, a quarter will do
        y, seen = self.at(tried.deviations[:many], k), tried.values[:, k]
        off = np.abs(self.at(tried.deviations[: len(seen)], k) - seen)
        if not np.isfinite(off).all():
            return 1.0
        center, spread = y.mean(0), np.maximum(y.std(0), 1e-300)
        reach = np.abs(y[: len(seen)] - center).max(0)
        away = np.stack([np.where(np.isfinite(x), np.abs(x - center), 0.0) for x in (lower, upper)]).max(0)
        # the remainder of the expansion grows with the cube of the distance
        shift = off.max(0) * np.maximum(away / np.maximum(reach, 1e-3 * spread), 1.0) ** 3
        within = lambda more: np.all((y >= lower - more) & (y <= upper + more), 1)
        own = within(0.0)
        moved = max(np.mean(within(shift)) - np.mean(own), np.mean(own) - np.mean(within(-shift)))
        drawn = max(own.reshape(_GROUPS, -1).mean(1).std(ddof=1) / np.sqrt(_GROUPS), 1 / len(y))
        return float(min(abs(good - np.mean(own)) + moved + drawn, 1.0))
