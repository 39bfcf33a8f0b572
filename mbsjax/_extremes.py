"""The worst that tolerances allow: by corners, by optimisation, and the point that limits are most likely broken at."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.special import ndtr

from ._study import Study
from ._taylor import evaluated, first_order, linearised


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
    failed: float


def worst_case(study: Study, *, max_corners: int = 4096, steps: int = 40) -> WorstCase:
    """The largest and smallest values of all measures with every dimension within its limits, without linearising:
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
    values, slopes = linearised(study, (low + high)[None] / 2)
    if 2**d <= max_corners:
        corners = np.array(np.meshgrid(*[[0.0, 1.0]] * d, indexing="ij")).reshape(d, -1).T
    else:
        corners = np.concatenate([slopes[0] > 0, slopes[0] < 0]).astype(float)
    x = low + corners * (high - low)
    found = evaluated(study, x).values
    failed = float(np.mean(~np.all(np.isfinite(found), 1)))
    x, found = np.concatenate([x, (low + high)[None] / 2]), np.concatenate([found, values])
    ends = [np.argmin(np.where(np.isfinite(s * found), s * found, np.inf), 0) for s in (1, -1)]
    best = [found[k, np.arange(m)] for k in ends]
    at = [x[k] for k in ends]
    single = np.array([k for k in study.slices.values() if isinstance(k, int)], int)
    if len(single):
        starts = np.concatenate([at[0][single], at[1][single]])
        middle = np.broadcast_to((low + high) / 2, starts.shape)
        which, sign = np.tile(single, 4), np.tile(np.repeat([-1.0, 1.0], len(single)), 2)
        point, reached = _climb(study, np.concatenate([starts, middle]), which, sign, low, high, steps)
        for k, s, x_, y in zip(which, sign, point, reached):
            side = int(s > 0)
            if s * (y - best[side][k]) > 0:
                best[side][k], at[side][k] = y, x_
    return WorstCase(best[0], best[1], at[0], at[1], failed)


def _climb(study: Study, x: np.ndarray, which: np.ndarray, sign: np.ndarray, low: Any, high: Any, steps: int):
    """Steps to the corner of a box that shrinks where it does not help, for many at once."""
    half, radius = (high - low) / 2, np.full(len(x), 0.5)
    rows = np.arange(len(x))

    def look(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, slopes = linearised(study, x)
        return sign * values[rows, which], sign[:, None] * slopes[rows, which]

    y, g = look(x)
    for _ in range(steps):
        trial = np.clip(x + np.sign(g) * half * radius[:, None], low, high)
        # in one dimension the search halves the way; in several, the gradient tells where less is enough
        if np.all(np.abs(trial - x) <= 1e-12 * half):
            break
        y_new, g_new = look(trial)
        better = y_new > y
        x, y, g = np.where(better[:, None], trial, x), np.where(better, y_new, y), np.where(better[:, None], g_new, g)
        radius = np.where(better, np.minimum(2 * radius, 1.0), radius / 2)
        if np.all(radius < 1e-9):
            break
    return x, sign * y


class DesignPoint(NamedTuple):
    """Where a limit of a measure is most likely broken (first-order reliability method).

    - `value`, `limit`, `side`: which value of the study, its limit, `"lower"` or `"upper"`.
    - `beta`: the reliability index, the distance of the limit in standard normal scores; negative where the limit is
        broken at the medians.
    - `probability`: of breaking it, exact where the limit is a plane in the scores.
    - `scores`, `dimensions`: the point.
    - `importance`: the part of each score in it; they sum to 1.
    - `converged`: whether it was found.
    """

    value: str
    limit: float
    side: str
    beta: float
    probability: float
    scores: np.ndarray
    dimensions: np.ndarray
    importance: np.ndarray
    converged: bool


def form(study: Study, *, max_steps: int = 60, along: bool = False) -> list[DesignPoint]:
    """The design point and the reliability index of every limit (FORM), by the iteration of Hasofer and Lind, Rackwitz
    and Fiessler with a line search, all limits at once; `along` takes in those of values along a stroke.

    !!! Example

        >>> import mbsjax as mbs
        >>> gap = mbs.Study(lambda p: p, {"hole": 10.0, "pin": 9.9}, {"hole": mbs.Normal(sigma=0.03), "pin":
        ...     mbs.Normal(sigma=0.04)}, {"gap": lambda p: p["hole"] - p["pin"]}, limits={"gap": (0.0, None)})
        >>> point, = mbs.form(gap)
        >>> round(point.beta, 9), point.importance.round(9).tolist()
        (2.0, [0.36, 0.64])
    """
    bounds = np.stack([np.asarray(study.lower), np.asarray(study.upper)])
    wanted = np.isfinite(bounds)
    if not along:
        single = np.array(
            [isinstance(k, int) for k, n in zip(study.slices.values(), study.sizes) for _ in range(max(n, 1))]
        )
        wanted &= single
    side, which = np.nonzero(wanted)
    if len(which) == 0:
        return []
    limit, sign = bounds[side, which], np.where(side == 1, 1.0, -1.0)
    rows, scale = np.arange(len(which)), np.maximum(first_order(study).std[which], 1e-300)

    def look(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How much room there is to the limit, in standard deviations, and its gradient in the scores."""
        x, dx = (np.asarray(v) for v in _dimensions(study, jnp.asarray(u)))
        values, slopes = linearised(study, x)
        room = sign * (limit - values[rows, which]) / scale
        return room, np.einsum("ki,kij->kj", -sign[:, None] * slopes[rows, which] / scale[:, None], dx)

    def merit(u: np.ndarray, room: np.ndarray, g: np.ndarray) -> np.ndarray:
        weight = 2 * np.linalg.norm(u, axis=1) / np.maximum(np.linalg.norm(g, axis=1), 1e-300) + 10
        return (u**2).sum(1) / 2 + weight * np.abs(room)

    u = np.zeros((len(which), len(study.names)))
    room, g = look(u)
    done = np.zeros(len(which), bool)
    step, direction = np.ones(len(which)), _toward(u, room, g)
    for _ in range(max_steps):
        trial = u + step[:, None] * direction
        room_new, g_new = look(trial)
        fine = np.isfinite(room_new) & (merit(trial, room_new, g) <= merit(u, room, g) + 1e-12) & ~done
        u, room, g = (
            np.where(fine[:, None], trial, u),
            np.where(fine, room_new, room),
            np.where(fine[:, None], g_new, g),
        )
        direction = _toward(u, room, g)
        step = np.where(fine, 1.0, step / 2)
        done = (np.abs(room) < 1e-9) & (np.linalg.norm(direction, axis=1) < 1e-7 * (1 + np.linalg.norm(u, axis=1)))
        if np.all(done | (step < 1e-6)):
            break
    size = np.linalg.norm(g, axis=1, keepdims=True)
    alpha = -g / np.where(size > 0, size, 1.0)
    beta = (alpha * u).sum(1)
    dimensions = np.asarray(_dimensions(study, jnp.asarray(u))[0])
    told = zip(which, limit, side, beta, ndtr(-beta), u, dimensions, alpha**2, done)
    return [
        DesignPoint(study.columns[k], float(at), ("lower", "upper")[s], float(b), float(p), u, x, a, bool(ok))
        for k, at, s, b, p, u, x, a, ok in told
    ]


def _toward(u: np.ndarray, room: np.ndarray, g: np.ndarray) -> np.ndarray:
    square = (g**2).sum(1)
    square = np.where(square > 0, square, 1.0)
    return (((g * u).sum(1) - room) / square)[:, None] * g - u


@eqx.filter_jit
def _dimensions(study: Study, u: Array) -> tuple[Array, Array]:
    return jax.vmap(study.dimensions)(u), jax.vmap(jax.jacfwd(study.dimensions))(u)
