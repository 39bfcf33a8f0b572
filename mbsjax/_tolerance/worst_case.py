"""The worst that tolerances allow: by corners, by optimization, and the point that limits are most likely broken at."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array

from .._programs.reprs import by_fields
from .._programs.trees import once
from .evaluate import CHUNK, evaluated, linearized
from .study import Study
from .taylor import first_order


class WorstCase(NamedTuple):
    """The extreme values of the measures within all tolerances.

    - `lower`, `upper`: the values.
    - `at_lower`, `at_upper`: the dimensions they are reached at, one row for each value.
    - `failed`: the part of the corners tried at which the analysis fails.
    """

    lower: np.ndarray
    upper: np.ndarray
    at_lower: np.ndarray
    at_upper: np.ndarray
    failed: np.float64

    __repr__ = by_fields


def worst_case(study: Study, *, max_corners: int = 4096, chunk: int = CHUNK) -> WorstCase:
    """The largest and smallest values of all measures with every dimension within its limits, without linearizing:
    the best corner of all tolerances (where they are no more than `max_corners`; else the one that the sensitivities
    point at), improved by a bounded search along exact gradients where the worst lies inside. Values along a stroke are
    not searched beyond the corners.

    !!! Example

        >>> import mbsjax as mbs
        >>> bend = mbs.Study(lambda p: p, {"x": 0.0, "y": 1.0}, {"x": 0.2, "y": 0.1},
        ...                  {"height": lambda p: p["y"] - p["x"] ** 2})
        >>> found = mbs.worst_case(bend)
        >>> found.lower.round(9).tolist(), found.upper.round(9).tolist()
        ([0.86], [1.1])
    """
    low, high = (np.asarray(x) for x in study.bounds)
    d, m = len(low), len(study.columns)
    values, slopes = linearized(study, (low + high)[None] / 2)
    if 2**d <= max_corners:
        corners = np.array(np.meshgrid(*[[0.0, 1.0]] * d, indexing="ij")).reshape(d, -1).T
    else:
        corners = np.concatenate([slopes[0] > 0, slopes[0] < 0]).astype(float)
    x = low + corners * (high - low)
    # few of them go through the program of the slopes: the one that samples need not be compiled for them
    found = linearized(study, x)[0] if len(x) <= 32 else evaluated(study, x, chunk).values
    failed = np.float64(np.mean(~np.all(np.isfinite(found), 1)))
    x, found = np.concatenate([x, (low + high)[None] / 2]), np.concatenate([found, values])
    ends = [np.argmin(np.where(np.isfinite(s * found), s * found, np.inf), 0) for s in (1, -1)]
    best = [found[k, np.arange(m)] for k in ends]
    at = [x[k] for k in ends]
    single = np.array([k for k in study.slices.values() if isinstance(k, int)], int)
    which, side = np.tile(single, 2), np.repeat([0, 1], len(single))
    aside = (low + high) / 2 + 0.02 * np.random.default_rng(0).uniform(-1.0, 1.0, d) * (high - low)
    starts = np.array([x for k, s in zip(which, side) for x in (at[s][k], aside)]).reshape(-1, d)
    slopes = linearized(study, starts)[1] if len(starts) else np.zeros((0, m, d))
    for k, s, x0, slope in zip(np.repeat(which, 2), np.repeat(side, 2), starts, slopes):
        uphill = (2 * s - 1) * slope[k] * (high - low)
        held = np.where(x0 <= low, uphill <= 0, np.where(x0 >= high, uphill >= 0, uphill == 0))
        leads = np.allclose(np.where(uphill > 0, high, low), at[s][k], rtol=0, atol=1e-12 * (high - low).max())
        if np.all(np.isfinite(uphill)) and not (np.all(held) or leads):  # else it is worst here, or in this corner
            x1, y = _extremum(study, x0, int(k), int(2 * s - 1), low, high)
            if (2 * s - 1) * (y - best[s][k]) > 0:
                best[s][k], at[s][k] = y, x1
    return WorstCase(best[0], best[1], at[0], at[1], failed)


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


class DesignPoint(eqx.Module):
    """Where a limit of a measure is most likely broken (first-order reliability method).

    - `value`, `limit`, `side`: which value of the study, its limit, `"lower"` or `"upper"`.
    - `beta`: the reliability index, the distance of the limit in standard normal scores; negative where the limit is
        broken at the medians.
    - `probability`: of breaking it, exact where the limit is a plane in the scores.
    - `scores`, `dimensions`: the point.
    - `importance`: the part of each score in it; they sum to 1.
    - `converged`: whether it was found; if not, the numbers are NaN: perhaps the limit cannot be reached at all.
    """

    value: str = eqx.field(static=True)
    limit: np.float64
    side: str = eqx.field(static=True)
    beta: np.float64
    probability: np.float64
    scores: np.ndarray
    dimensions: np.ndarray
    importance: np.ndarray
    converged: np.bool_

    __repr__ = by_fields


def form(study: Study, *, max_steps: int = 40, along: bool = False) -> list[DesignPoint]:
    """The design point and the reliability index of every limit (FORM), by the iteration of Hasofer and Lind, Rackwitz
    and Fiessler with a line search, all limits at once, each from the medians and from two points aside, of which the
    nearest is kept; `along` takes in the limits of values along a stroke.

    !!! Example

        >>> import mbsjax as mbs
        >>> gap = mbs.Study(lambda p: p, {"hole": 10.0, "pin": 9.9}, {"hole": mbs.Normal(sigma=0.03), "pin":
        ...     mbs.Normal(sigma=0.04)}, {"gap": lambda p: p["hole"] - p["pin"]}, limits={"gap": (0.0, None)})
        >>> point, = mbs.form(gap)
        >>> print(point.beta.round(9), point.importance.round(9))
        2.0 [0.36 0.64]
    """
    limits = _limits(study, along)
    count = len(limits.which)
    if count == 0:
        return []
    aside = np.random.default_rng(0).normal(size=(count, len(study.names)))
    aside = aside / np.linalg.norm(aside, axis=1, keepdims=True)
    starts = np.concatenate([0 * aside, aside, -aside])
    limits = _Limits(*(np.tile(x, 3) for x in limits))
    u, g, done = _hlrf(study, limits, starts, max_steps)
    size = np.linalg.norm(g, axis=1, keepdims=True)
    alpha = -g / np.where(size > 0, size, 1.0)
    done &= size[:, 0] > 0
    beta = np.where(done, (alpha * u).sum(1), np.nan)
    nearest = np.argmin(np.where(done, np.abs(beta), np.inf).reshape(3, count), 0) * count + np.arange(count)
    dimensions = np.asarray(_dimensions(study, jnp.asarray(u))[0])
    blank = lambda x, i: x[i] if done[i] else np.full_like(x[i], np.nan)
    return [
        DesignPoint(
            value=study.columns[limits.which[i]],
            limit=np.float64(limits.value[i]),
            side=("lower", "upper")[limits.side[i]],
            beta=np.float64(beta[i]),
            probability=np.float64(scipy.special.ndtr(-beta[i])),
            scores=blank(u, i),
            dimensions=blank(dimensions, i),
            importance=blank(alpha**2, i),
            converged=done[i],
        )
        for i in nearest
    ]


class _Limits(NamedTuple):
    """Limits of values: which value, whether it is the lower (0) or the upper one (1), where it is, and the standard
    deviation of the value, to first order."""

    which: np.ndarray
    side: np.ndarray
    value: np.ndarray
    scale: np.ndarray


def _limits(study: Study, along: bool) -> _Limits:
    """All limits that there are; those of values along a stroke only where these are asked for."""
    bounds = np.stack([np.asarray(study.lower), np.asarray(study.upper)])
    wanted = np.isfinite(bounds)
    if not along:
        single = np.array(
            [isinstance(k, int) for k, n in zip(study.slices.values(), study.sizes) for _ in range(max(n, 1))]
        )
        wanted &= single
    side, which = np.nonzero(wanted)
    spread = first_order(study).std[which] if len(which) else np.zeros(0)
    return _Limits(which, side, bounds[side, which], np.where(spread > 0, spread, 1.0))


def _limit_state(study: Study, limits: _Limits, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How much room there is to each limit, in standard deviations, and its gradient in the scores."""
    x, dx = (np.asarray(v) for v in _dimensions(study, jnp.asarray(u)))
    values, slopes = linearized(study, x)
    rows, sign = np.arange(len(u)), np.where(limits.side == 1, 1.0, -1.0)
    room = sign * (limits.value - values[rows, limits.which]) / limits.scale
    return room, np.einsum("ki,kij->kj", -sign[:, None] * slopes[rows, limits.which] / limits.scale[:, None], dx)


def _hlrf(study: Study, limits: _Limits, u: np.ndarray, max_steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The iteration of Hasofer and Lind, Rackwitz and Fiessler from these scores: the design points, the gradients
    there, and which have converged. A step is halved where the merit, of distance and room, does not fall."""
    room, g = _limit_state(study, limits, u)
    done = np.zeros(len(u), bool)
    step, direction = np.ones(len(u)), _toward(u, room, g)
    for _ in range(max_steps):
        trial = u + step[:, None] * direction
        room_new, g_new = _limit_state(study, limits, trial)
        far = np.maximum(np.linalg.norm(u, axis=1), np.linalg.norm(u + direction, axis=1))
        weight = 2 * far / np.maximum(np.linalg.norm(g, axis=1), 1e-12) + 10
        before, after = ((x**2).sum(1) / 2 + weight * np.abs(r) for x, r in ((u, room), (trial, room_new)))
        fine = np.isfinite(room_new) & (after <= before + 1e-12 * (1 + before)) & ~done
        u, room, g = (
            np.where(fine[:, None], trial, u),
            np.where(fine, room_new, room),
            np.where(fine[:, None], g_new, g),
        )
        direction = _toward(u, room, g)
        step = np.where(fine, 1.0, step / 2)
        reach = 1 + np.linalg.norm(u, axis=1)
        done = (np.abs(room) < 1e-9 * reach) & (np.linalg.norm(direction, axis=1) < 1e-7 * reach)
        if np.all(done | (step < 1e-6)):
            break
    return u, g, done


def _toward(u: np.ndarray, room: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The step to the point nearest to the origin on the limits, linearized."""
    square = (g**2).sum(1)
    square = np.where(square > 0, square, 1.0)
    return (((g * u).sum(1) - room) / square)[:, None] * g - u


@once
def _dimensions(study: Study, u: Array) -> tuple[Array, Array]:
    return jax.vmap(study.dimensions)(u), jax.vmap(jax.jacfwd(study.dimensions))(u)
