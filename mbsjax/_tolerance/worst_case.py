"""The worst that tolerances allow: at corners, and inside where it lies there."""

from typing import NamedTuple

import numpy as np
import scipy

from .._programs.reprs import by_fields
from .evaluate import CHUNK, evaluated, linearized
from .study import Study


class WorstCase(NamedTuple):
    """The extreme values of the measures within all tolerances.

    - `lower`, `upper`: the values.
    - `at_lower`, `at_upper`: the dimensions they are reached at, one row for each value.
    - `basis_lower`, `basis_upper`: how sure each of them is, one word for each value. `"monotone"`: no derivative
        changes its sign at any of the points looked at, all over the tolerances, and it is the corner that they point
        to. `"corners"`: it is the worst of all corners, and inside nothing worse was found. `"searched"`: it is the
        worst that was found, inside or at a corner; a worse one may exist.
    - `failed`: the part of the corners tried at which the analysis fails.
    """

    lower: np.ndarray
    upper: np.ndarray
    at_lower: np.ndarray
    at_upper: np.ndarray
    basis_lower: tuple[str, ...]
    basis_upper: tuple[str, ...]
    failed: np.float64

    __repr__ = by_fields


def worst_case(study: Study, *, max_corners: int = 4096, starts: int = 32, chunk: int = CHUNK) -> WorstCase:
    """The largest and smallest values of all measures with every dimension within its limits, without linearizing:
    the best corner of all tolerances, improved by a bounded search along exact gradients where the worst lies inside.

    Where there are more than `max_corners` corners, it goes from corner to corner, from as many `starts`, always along
    the edge on which the exact gradient promises most. Values along a stroke are looked at in the corners that were
    tried, and not searched inside. `basis_lower` and `basis_upper` say how sure the result is.

    !!! Example

        >>> import mbsjax as mbs
        >>> bend = mbs.Study(lambda p: p, {"x": 0.0, "y": 1.0}, {"x": 0.2, "y": 0.1},
        ...                  {"height": lambda p: p["y"] - p["x"] ** 2})
        >>> found = mbs.worst_case(bend)
        >>> found.lower.round(9).tolist(), found.upper.round(9).tolist(), found.basis_lower, found.basis_upper
        ([0.86], [1.1], ('corners',), ('searched',))
    """
    box = _Box(*(np.asarray(x) for x in study.bounds))
    d, m = len(box.low), len(study.columns)
    rng = np.random.default_rng(0)
    single = np.array([k for k in study.slices.values() if isinstance(k, int)], int)
    inside = box.at(np.concatenate([np.full((1, d), 0.5), rng.uniform(size=(7, d))]))
    values, slopes = linearized(study, inside)
    uphill = slopes[0] > 0
    complete = 2**d <= max_corners
    if complete:
        corners = np.array(np.meshgrid(*[[0.0, 1.0]] * d, indexing="ij")).reshape(d, -1).T
    else:
        corners = _climbed(study, box, single, np.concatenate([uphill, ~uphill]), starts, rng)
    x = box.at(corners)
    # few of them go through the program of the slopes: the one that samples need not be compiled for them
    found = linearized(study, x)[0] if len(x) <= 32 or not complete else evaluated(study, x, chunk).values
    failed = np.float64(np.mean(~np.all(np.isfinite(found), 1)))
    x, found = np.concatenate([x, inside]), np.concatenate([found, values])
    best, at, basis = [], [], []
    for side in (-1, 1):
        k = np.argmax(np.where(np.isfinite(found), side * found, -np.inf), 0)
        best.append(found[k, np.arange(m)])
        at.append(x[k])
        basis.append(["corners" if complete and i < len(corners) else "searched" for i in k])
    for side, y, where, word in zip((-1, 1), best, at, basis):
        for k in single:
            steepest = box.at((side * slopes[0, k] > 0).astype(float))
            ends = linearized(study, np.stack([where[k], steepest]))[1][:, k]
            every = side * np.concatenate([slopes[:, k], ends])
            flat = np.all(every >= 0, 0) | np.all(every <= 0, 0)
            corner = box.is_corner(where[k], every[0])
            if np.all(flat) and corner:
                word[k] = "monotone"
            elif np.all(np.isfinite(every)):
                inner = _searched(study, box, int(k), side, where[k], float(y[k]), ends[0], rng)
                if inner is not None:
                    where[k], y[k], word[k] = inner[0], inner[1], "searched"
    return WorstCase(best[0], best[1], at[0], at[1], tuple(basis[0]), tuple(basis[1]), failed)


class _Box(NamedTuple):
    """The limits of all dimensions."""

    low: np.ndarray
    high: np.ndarray

    def at(self, part: np.ndarray) -> np.ndarray:
        """From 0 at the lower limits to 1 at the upper ones."""
        return self.low + part * (self.high - self.low)

    def is_corner(self, x: np.ndarray, uphill: np.ndarray) -> bool:
        """Whether these gradients point to this corner."""
        aim = np.where(uphill > 0, self.high, self.low)
        return bool(np.all((np.abs(aim - x) <= 1e-12 * (self.high - self.low)) | (uphill == 0)))


def _climbed(
    study: Study, box: _Box, single: np.ndarray, first: np.ndarray, starts: int, rng: np.random.Generator
) -> np.ndarray:
    """Corners, of many: those given, and for each single value those that are reached from many others by going along
    one edge after the other, always the one on which the gradient promises most, until none does."""
    d = len(box.low)
    seen = {tuple(c) for c in np.asarray(first, float)}
    for k in single:
        for side in (-1, 1):
            here = np.concatenate([first, rng.random(size=(starts, d)) < 0.5]).astype(float)
            here = np.unique(here, axis=0)
            value = np.full(len(here), -np.inf)
            trial, done = here.copy(), np.zeros(len(here), bool)
            for _ in range(4 * d):
                y, g = (z[:, k] for z in linearized(study, box.at(trial)))
                better = np.isfinite(y) & (side * y > value)
                here[better], value[better] = trial[better], side * y[better]
                seen |= {tuple(c) for c in here[better]}
                done = ~better
                gain = side * g * (box.high - box.low) * np.where(trial > 0.5, -1.0, 1.0)
                gain = np.where(np.isfinite(gain), gain, -np.inf)
                flip = np.argmax(gain, 1)
                done |= ~(gain.max(1) > 0)
                if np.all(done):
                    break
                trial, here, value, flip = (z[~done] for z in (trial, here, value, flip))
                trial = trial.copy()
                rows = np.arange(len(trial))
                trial[rows, flip] = 1 - trial[rows, flip]
    return np.array(sorted(seen))


def _searched(
    study: Study, box: _Box, k: int, side: int, x: np.ndarray, y: float, slope: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, float] | None:
    """Something worse inside than what is worst so far, if there is."""
    low, high = box
    uphill = side * slope * (high - low)
    held = np.where(x <= low, uphill <= 0, np.where(x >= high, uphill >= 0, uphill == 0))
    aside = box.at(0.5 + 0.02 * rng.uniform(-0.5, 0.5, len(low)))
    found = None
    for start in [aside] if np.all(held) else [x, aside]:
        x1, y1 = _extremum(study, start, k, side, low, high)
        if side * (y1 - y) > 1e-12 * max(abs(y), abs(y1)):
            found, y = (x1, y1), y1
    return found


def _extremum(
    study: Study, x: np.ndarray, k: int, sign: int, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, float]:
    """The largest value (the smallest for a negative sign) within the limits, by a bounded quasi-Newton search from a
    start."""
    half, middle = (high - low) / 2, (high + low) / 2
    values, _ = linearized(study, np.stack([x, middle]))
    scale = max(float(np.ptp(values[:, k])), 1e-9 * abs(float(values[0, k])), 1e-300)

    last = [(x - middle) / half, 0.0]

    def down(t: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = (y[0, k] for y in linearized(study, (middle + t * half)[None]))
        if not np.isfinite(value):  # a wall, to turn back at
            return last[1] + 10 + float(np.sum((t - last[0]) ** 2)), 2 * (t - last[0])
        last[:] = t.copy(), -sign * float(value) / scale
        return last[1], -sign * slope * half / scale

    t, y = (x - middle) / half, np.inf
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxfun": 100}
    box = [(-1.0, 1.0)] * len(x)
    for _ in range(4):  # begun anew, it gets along ridges
        found = scipy.optimize.minimize(down, t, jac=True, method="L-BFGS-B", bounds=box, options=options)
        better, t, y = y - found.fun, found.x, min(float(found.fun), y)
        if not better > 1e-6:
            break
    return middle + t * half, -sign * y * scale
