"""Where parts have no value: they lock, jam, cannot be assembled. Nothing is known there but that it is so."""

import numpy as np
import scipy

from .design_points import Found
from .study import Study
from .subset import values_at


_ASIDE = 0.3  # how far from a point the boundary is looked at, in scores
_CLOSE = 1e-5  # how closely it is found
_FAR = 12.0  # as far as anything is looked for


def lost(values: np.ndarray) -> np.ndarray:
    """Whether there is no value, of any measure."""
    return np.asarray(~np.isfinite(values).all(1))


def nearest_failures(study: Study, starts: np.ndarray, chunk: int, rounds: int = 4) -> Found:
    """The design points of what has no value, from points that have none.

    On rays from the medians the boundary is found by bisection, on as many as tell the plane through it; the nearest
    point of that plane is where it is looked at next, closer by."""
    d, width = len(study.names), _ASIDE
    u = _boundary(study, starts, chunk)
    u = u[np.isfinite(u).all(1)]
    done = np.zeros(len(u), bool)
    for _ in range(rounds if len(u) else 0):
        across = [width * scipy.linalg.null_space(x[None]).T for x in u]
        rays = np.concatenate([x + np.concatenate([np.zeros((1, d)), t, -t]) for x, t in zip(u, across)])
        met = _boundary(study, rays, chunk).reshape(len(u), -1, d)
        aim = np.stack([_foot(x[np.isfinite(x).all(1)], here) for x, here in zip(met, u)])
        after = _boundary(study, aim, chunk)
        nearer = np.linalg.norm(after, axis=1) <= np.linalg.norm(u, axis=1) * (1 + _CLOSE)  # not where there is none
        after = np.where(nearer[:, None], after, u)
        done = nearer & (np.linalg.norm(after - u, axis=1) < 0.02 * np.linalg.norm(u, axis=1))
        u, width = after, width / 2
    kept: list[int] = []  # of points that lie together, the nearest
    for i in np.argsort(np.linalg.norm(u, axis=1)):
        if all(np.linalg.norm(u[i] - u[k]) > 0.1 * (1 + np.linalg.norm(u[k])) for k in kept):
            kept.append(int(i))
    return Found(u[kept], done[kept], 1, bool(len(starts)))


def _foot(x: np.ndarray, here: np.ndarray) -> np.ndarray:
    """The point nearest to the medians of the plane through points; `here`, if these are too few."""
    if len(x) < x.shape[1]:
        return here
    normal = np.linalg.lstsq(x, np.ones(len(x)), rcond=None)[0]
    return normal / (normal @ normal) if np.any(normal) else here


def _boundary(study: Study, ways: np.ndarray, chunk: int) -> np.ndarray:
    """Where values end on rays from the medians: at the first of many places that has none, more and more closely; NaN
    where there is no end. A ray goes as far as the point that it is given by; if that has a value, twice as far."""
    if not len(ways):
        return ways
    length = np.linalg.norm(ways, axis=1)
    way, rows = ways / length[:, None], np.arange(len(ways))
    fails = lost(values_at(study, ways, chunk))
    low, high = np.zeros(len(ways)), np.where(fails, length, np.minimum(2 * length, _FAR))
    count = max(chunk // len(ways), 2)
    while np.any(high - low > _CLOSE * (1 + high)):
        places = low[:, None] + (high - low)[:, None] * np.arange(1, count + 1) / count
        values = values_at(study, (places[..., None] * way[:, None]).reshape(-1, ways.shape[1]), chunk)
        fails = lost(values).reshape(places.shape)
        first = np.argmax(fails, 1)
        high = np.where(fails.any(1), places[rows, first], np.nan)
        low = np.where(first > 0, places[rows, first - 1], low)
    return high[:, None] * way
