"""The worst that tolerances allow: at corners, and inside where it lies there."""

from collections.abc import Sequence

import equinox as eqx
import jax
import numpy as np
import scipy
from jaxtyping import Array

from .._programs.reprs import by_fields
from .._programs.trees import lasting
from .._programs.waiting import progressed
from .evaluate import CHUNK, evaluated, in_rows, linearized
from .study import Study


_ROUNDING = 1e-11  # of a value, by which it varies without varying


class WorstCase(eqx.Module):
    """The extreme values of the measures within all tolerances.

    - `lower`, `upper`: the values.
    - `at_lower`, `at_upper`: the dimensions they are reached at, one row for each value.
    - `basis_lower`, `basis_upper`: how sure each of them is, one word for each value. `"monotone"`: no derivative
        changes its sign at any of the points looked at, all over the tolerances, and it is the corner that they point
        to. `"corners"`: it is the worst of all corners, and inside nothing worse was found. `"searched"`: it is the
        worst that was found, inside or at a corner; a worse one may exist. `"not searched"`: it is the worst of the
        corners and of a few points inside, and a search was not asked for.
    - `failed`: the part of the corners tried at which the analysis fails.
    """

    lower: np.ndarray
    upper: np.ndarray
    at_lower: np.ndarray
    at_upper: np.ndarray
    basis_lower: tuple[str, ...] = eqx.field(static=True)
    basis_upper: tuple[str, ...] = eqx.field(static=True)
    failed: np.float64

    __repr__ = by_fields


def worst_case(
    study: Study,
    *,
    max_corners: int = 4096,
    starts: int = 32,
    chunk: int = CHUNK,
    inside: Sequence[str] | None = None,
) -> WorstCase:
    """The largest and smallest values of all measures with every dimension within its limits, without linearizing:
    the best corner of all tolerances, improved by a bounded search along exact gradients where the worst lies inside.

    Where there are more than `max_corners` corners, it goes from corner to corner, from as many `starts`, always along
    the edge on which the exact gradient promises most. Values along a stroke are looked at in the corners that were
    tried, and not searched inside. Of the other measures those are that `inside` names, by default all. A measure that
    does not vary, but for rounding, is not searched. `basis_lower` and `basis_upper` say how sure the result is.

    !!! Example

        >>> import mbsjax as mbs
        >>> bend = mbs.Study(lambda p: p, {"x": 0.0, "y": 1.0}, {"x": 0.2, "y": 0.1},
        ...                  {"height": lambda p: p["y"] - p["x"] ** 2})
        >>> found = mbs.worst_case(bend)
        >>> found.lower.round(9).tolist(), found.upper.round(9).tolist(), found.basis_lower, found.basis_upper
        ([0.86], [1.1], ('corners',), ('searched',))
    """
    d, m = len(study.names), len(study.columns)
    rng = np.random.default_rng(0)
    wanted = study.labels if inside is None else inside
    single = {name: at for name, at in study.slices.items() if isinstance(at, int)}
    places = np.concatenate([np.zeros((1, d)), rng.uniform(-1, 1, size=(7, d))])
    values, slopes = _linearized(study, places)
    uphill = np.where(np.isfinite(slopes[0]), study.farthest(np.nan_to_num(slopes[0])), 0.0)
    round_zones = any(z.together for z in study.distributions) or study.grows
    complete = 2**d <= max_corners
    if complete:
        corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * d, indexing="ij")).reshape(d, -1).T
    else:
        first = np.where(uphill > 0, 1.0, -1.0)
        climbed = [at for name, at in single.items() if name in wanted]
        corners = _climbed(study, climbed, np.concatenate([first, -first]), starts, rng)
    corners = np.concatenate([corners, uphill, -uphill]) if round_zones else corners
    # few of them go through the program of the slopes: the one that samples need not be compiled for them
    few = len(corners) <= 32 or not complete
    found = _linearized(study, corners)[0] if few else evaluated(study, _placed(study, corners)[0], chunk).values
    failed = np.float64(np.mean(~np.all(np.isfinite(found), 1)))
    t, found = np.concatenate([corners, places]), np.concatenate([found, values])
    sides = []
    for side in (-1, 1):
        k = np.argmax(np.where(np.isfinite(found), side * found, -np.inf), 0)
        sure = complete and not round_zones
        words = ["corners" if sure and i < len(corners) else "searched" for i in k]
        sides.append((side, found[k, np.arange(m)], t[k], words))
    every = [(name, at, *x) for name, at in single.items() for x in sides]
    if every:
        looked = np.concatenate([[where[k], side * uphill[k]] for _, k, side, _, where, _ in every])
        ends = _linearized(study, looked)[1].reshape(len(every), 2, m, d)
    for i, (name, k, side, y, where, words) in enumerate(every):
        progressed(f"measure {i // 2 + 1} of {len(single)}, {name}")
        along = side * np.concatenate([slopes[:, k], ends[i, :, k]])
        flat = np.all(along >= 0, 0) | np.all(along <= 0, 0)
        if np.all(flat) and np.all((where[k] == np.sign(along[0])) | (along[0] == 0)) and not round_zones:
            words[k] = "monotone"
        elif name not in wanted:
            words[k] = "not searched"
        elif np.all(np.isfinite(along)) and not _constant(found[:, k], along):
            inner = _searched(study, k, side, where[k], float(y[k]), ends[i, 0, k], rng)
            if inner is not None:
                where[k], y[k], words[k] = inner[0], inner[1], "searched"
    (_, least, at_least, low_words), (_, most, at_most, high_words) = sides
    low, high = (_placed(study, x)[0] for x in (at_least, at_most))
    return WorstCase(least, most, low, high, tuple(low_words), tuple(high_words), failed)


def _constant(values: np.ndarray, slopes: np.ndarray) -> bool:
    """Whether values vary by rounding alone, as far as they and their slopes tell."""
    there = values[np.isfinite(values)]
    return bool(max(np.ptp(there), np.abs(slopes).max()) <= _ROUNDING * np.abs(there).max())


def _climbed(study: Study, single: list[int], first: np.ndarray, starts: int, rng: np.random.Generator) -> np.ndarray:
    """Corners, of many: those given, and for each single value those that are reached from many others by going along
    one edge after the other, always the one on which the gradient promises most, until none does."""
    d = len(study.names)
    seen = {tuple(c) for c in first}
    for k in single:
        for side in (-1, 1):
            here = np.unique(np.concatenate([first, rng.choice([-1.0, 1.0], size=(starts, d))]), axis=0)
            value, trial = np.full(len(here), -np.inf), here.copy()
            for _ in range(4 * d):
                y, g = (z[:, k] for z in _linearized(study, trial))
                better = np.isfinite(y) & (side * y > value)
                here[better], value[better] = trial[better], side * y[better]
                seen |= {tuple(c) for c in here[better]}
                gain = -2 * side * g * trial
                gain = np.where(np.isfinite(gain), gain, -np.inf)
                flip, on = np.argmax(gain, 1), better & (gain.max(1) > 0)
                if not np.any(on):
                    break
                trial, here, value, flip = (z[on] for z in (trial, here, value, flip))
                trial[np.arange(len(trial)), flip] *= -1
    return np.array(sorted(seen))


def _searched(
    study: Study, k: int, side: int, t: np.ndarray, y: float, slope: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, float] | None:
    """Something worse inside than what is worst so far, if there is."""
    uphill = side * slope
    held = np.where(t <= -1, uphill <= 0, np.where(t >= 1, uphill >= 0, uphill == 0))
    aside = 0.02 * rng.uniform(-1.0, 1.0, len(t))
    found = None
    for start in [aside] if np.all(held) else [t, aside]:
        t1, y1 = _extremum(study, start, k, side)
        if side * (y1 - y) > 1e-12 * max(abs(y), abs(y1)):
            found, y = (t1, y1), y1
    return found


def _extremum(study: Study, t: np.ndarray, k: int, sign: int) -> tuple[np.ndarray, float]:
    """The largest value (the smallest for a negative sign) within the limits, by a bounded quasi-Newton search from a
    start."""
    values, _ = _linearized(study, np.stack([t, 0 * t]))
    scale = max(float(np.ptp(values[:, k])), 1e-9 * abs(float(values[0, k])), 1e-300)
    last = [t, 0.0]

    def down(t: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = (y[0, k] for y in _linearized(study, t[None]))
        if not np.isfinite(value):  # a wall, to turn back at
            return last[1] + 10 + float(np.sum((t - last[0]) ** 2)), 2 * (t - last[0])
        last[:] = t.copy(), -sign * float(value) / scale
        return last[1], -sign * slope / scale

    y = np.inf
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxfun": 100}
    for _ in range(4):  # begun anew, it gets along ridges
        found = scipy.optimize.minimize(
            down, t, jac=True, method="L-BFGS-B", bounds=[(-1.0, 1.0)] * len(t), options=options
        )
        better, t, y = y - found.fun, found.x, min(float(found.fun), y)
        if not better > 1e-6:
            break
    return t, -sign * y * scale


def _linearized(study: Study, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values, and their slopes in t, at places within the tolerances."""
    x, dx = _placed(study, t)
    values, slopes = linearized(study, x)
    return values, np.einsum("nki,nij->nkj", slopes, dx)


def _placed(study: Study, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The dimensions at places within the tolerances, and their slopes in t: -1 at the lower limits, 1 at the upper
    ones. What lies beyond the rim of a round zone is put on it."""
    return in_rows(_dimensions, study, t)


@lasting
def _dimensions(study: Study, t: Array) -> tuple[Array, Array]:
    return jax.vmap(study.within)(t), jax.vmap(jax.jacfwd(study.within))(t)
