"""What the four moments of a measure say of its limits."""

from typing import Any, NamedTuple

import numpy as np
import scipy

from .._programs.reprs import by_fields


class Moments(NamedTuple):
    """Mean, standard deviation, skewness and kurtosis (3 for a normal distribution) of every value of a study."""

    mean: np.ndarray
    std: np.ndarray
    skewness: np.ndarray
    kurtosis: np.ndarray

    __repr__ = by_fields


class Capability(NamedTuple):
    """How well limits are kept.

    - `cp`, `cpk`: the room that the limits leave, in parts of three standard deviations: as if the mean were in the
        middle, and from the mean to the nearer limit. NaN and infinite without limits.
    - `below`, `above`: the parts below and above the limits, 1e-6 for one ppm.
    """

    cp: np.ndarray
    cpk: np.ndarray
    below: np.ndarray
    above: np.ndarray

    @property
    def good(self) -> np.ndarray:
        """The yield."""
        return 1 - self.below - self.above

    @property
    def sigma_level(self) -> np.ndarray:
        """How far a one-sided limit of a normal distribution with as many rejects would be from its mean, in standard
        deviations."""
        return -scipy.special.ndtri(np.clip(self.below + self.above, 0.0, 1.0))

    __repr__ = by_fields


def capability(moments: Moments, lower: Any, upper: Any) -> Capability:
    """Capability and yield from four moments, for a mean 0 and standard deviation 1 as the normal distribution has it,
    corrected for skewness and kurtosis after Cornish and Fisher. A limit that is None or infinite is none.

    !!! Example

        >>> found = capability(Moments(*np.array([[0.0], [1.0], [0.0], [3.0]])), -3.0, 3.0)
        >>> found.cpk.tolist(), (1e6 * (1 - found.good)).round(2).tolist()
        ([1.0], [2699.8])
    """
    lower, upper = (np.broadcast_to(_bound(x, side), moments.mean.shape) for x, side in ((lower, -1), (upper, 1)))
    if not np.all(lower < upper):
        k = np.unravel_index(np.argmin(lower < upper), lower.shape)
        raise ValueError(f"the limits of a capability are in the wrong order: {lower[k]:.6g}, {upper[k]:.6g}")
    cp, cpk = indices(moments, lower, upper)
    every = [np.asarray(x).reshape(-1) for x in (*moments, lower, upper)]
    tails = [(_below(lo, *four), _below(-hi, -four[0], four[1], -four[2], four[3])) for *four, lo, hi in zip(*every)]
    below, above = (np.array(x).reshape(cp.shape) for x in zip(*tails))
    return Capability(cp, cpk, below, above)


def _bound(x: Any, side: int) -> np.ndarray:
    """A limit, or several, which may be infinite; None for none."""
    found = np.asarray(side * np.inf if x is None else x)
    if found.dtype.kind not in "iuf" or np.any(np.isnan(found)):
        raise ValueError(f"the limits of a capability must be numbers, got {x!r}")
    return found.astype(float)


def indices(moments: Moments, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cp and Cpk."""
    with np.errstate(divide="ignore", invalid="ignore"):
        cp = np.where(np.isfinite(upper - lower), (upper - lower) / (6 * moments.std), np.nan)
        cpk = np.minimum(upper - moments.mean, moments.mean - lower) / (3 * moments.std)
    return cp, cpk


_SCORES = np.linspace(-9.0, 9.0, 18001)


def _below(x: float, mean: float, std: float, skewness: float, kurtosis: float) -> float:
    """The part below x."""
    if not np.isfinite(x):
        return 0.0 if x < 0 else 1.0
    if not std > 0:
        return float(mean < x)
    if skewness == 0 and kurtosis == 3:
        return float(scipy.special.ndtr((x - mean) / std))
    z, s, k = _SCORES, skewness, kurtosis - 3
    w = z + (z**2 - 1) * s / 6 + (z**3 - 3 * z) * k / 24 - (2 * z**3 - 5 * z) * s**2 / 36
    middle = len(z) // 2  # where the expansion turns back, it is of no more use
    w = np.concatenate([np.minimum.accumulate(w[middle::-1])[:0:-1], np.maximum.accumulate(w[middle:])])
    return float(scipy.special.ndtr(np.interp((x - mean) / std, w, z)))
