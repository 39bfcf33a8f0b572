"""Design points: where limits are most likely broken, all of them, also where a limit has edges."""

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
import scipy
from jaxtyping import Array

from .._programs.reprs import brief, has_numbers
from .._programs.trees import lasting
from .evaluate import in_rows, linearized
from .study import Study
from .taylor import first_order


_FAR = 12.0  # scores beyond which no limit is searched: a probability of 1e-33


class DesignPoint(eqx.Module):
    """Where a limit of a measure is most likely broken (first-order reliability method). A limit may have several.

    - `value`, `limit`, `side`: which value of the study, its limit, `"lower"` or `"upper"`.
    - `beta`: the reliability index, the distance of the limit in standard normal scores; negative where the limit is
        broken at the medians, infinite where it cannot be reached.
    - `probability`: of breaking it, exact where the limit is a plane in the scores.
    - `scores`, `dimensions`: the point.
    - `importance`: the part of each score in it; they sum to 1.
    - `converged`: whether it was found; if not, but for an infinite `beta`, the numbers are NaN.
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

    def __repr__(self) -> str:
        if not has_numbers(self.beta) or np.ndim(self.beta):
            return brief(self, self.value, side=self.side, beta=self.beta, probability=self.probability)
        found = f"beta {self.beta:.7g}, probability {self.probability:.4g}" if self.converged else "not found"
        found = "out of reach" if np.isinf(self.beta) else found
        return f"DesignPoint of {self.value!r} at its {self.side} limit {self.limit:.7g}: {found}"


def form(
    study: Study, *, along: bool = False, starts: int = 8, max_steps: int = 60, seed: int = 0
) -> list[DesignPoint]:
    """The design points of all limits: where the first-order reliability method puts the rejects. Those of one limit
    follow each other, the nearest first.

    The search of Hasofer and Lind, Rackwitz and Fiessler, from several starts, with exact gradients; where a measure
    has kinks, as the largest or smallest value of a stroke has, it goes on with the linearizations of both sides.
    Values along a stroke have many limits; they are searched only if `along`.

    !!! Example

        >>> import mbsjax as mbs
        >>> study = mbs.Study(lambda p: p, {"a": 0.0, "b": 0.0},
        ...                   {"a": mbs.Normal(sigma=3.0), "b": mbs.Normal(sigma=4.0)},
        ...                   {"sum": lambda p: p["a"] + p["b"]}, limits={"sum": (None, 10.0)})
        >>> (point,) = mbs.form(study)
        >>> print(point.beta.round(9), point.importance.round(9))
        2.0 [0.36 0.64]
    """
    limits = limits_of(study, rows="each" if along else "none")
    found = search(study, limits, [spread(len(study.names), starts, seed)] * len(limits), max_steps)
    return [point for each in design_points(study, limits, found) for point in each]


class Limit(NamedTuple):
    """A limit of one value, or of a row of values, which is broken where one of them breaks it."""

    name: str
    side: str
    columns: np.ndarray
    bounds: np.ndarray
    scale: float  # about the standard deviation of the values

    def room(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How much room there is to the limit, in units of `scale`, negative where it is broken, NaN where there is no
        value; and the column that has least."""
        sign = 1.0 if self.side == "upper" else -1.0
        left = sign * (self.bounds - values[:, self.columns]) / self.scale
        at = np.argmin(np.where(np.isnan(left), -np.inf, left), 1)
        return left[np.arange(len(left)), at], self.columns[at]

    def broken(self, values: np.ndarray) -> np.ndarray:
        """Where it is broken; a sample without a value breaks it."""
        return ~(self.room(values)[0] >= 0)

    def out(self, values: np.ndarray) -> np.ndarray:
        """Where values are beyond it."""
        return self.room(values)[0] < 0

    def lacks(self, values: np.ndarray) -> np.ndarray:
        """Where there is no value to judge."""
        return np.isnan(self.room(values)[0])


def limits_of(study: Study, *, rows: str) -> list[Limit]:
    """All limits that there are. Rows of values along a stroke: `"none"`, `"each"` value, or the `"whole"` row."""
    spread, center = first_order(study).std, np.asarray(study.at_nominal.values)
    found = []
    for side, bound in (("lower", np.asarray(study.lower)), ("upper", np.asarray(study.upper))):
        for name, at in study.slices.items():
            every = np.atleast_1d(np.arange(len(bound))[at])
            every = every[np.isfinite(bound[every])]
            if not isinstance(at, int):
                every = {"none": every[:0], "each": every, "whole": every}[rows]
            groups = [every] if rows == "whole" and len(every) else every[:, None]
            for columns in groups:
                label = name if len(columns) > 1 else study.columns[columns[0]]
                away = np.abs(bound[columns] - center[columns]).min()
                scale = spread[columns].max()
                scale = scale if scale > 1e-3 * away else away  # flat at its mean, it is not flat everywhere
                found.append(Limit(label, side, columns, bound[columns], float(scale) if scale > 0 else 1.0))
    return found


class Found(NamedTuple):
    """What a search for the design points of one limit found.

    - `points`: scores, one row for each, the nearest first; `done`: whether the search there has converged.
    - `sign`: 1, or -1 where the limit is broken at the medians: the points are then the nearest that keep it.
    - `reached`: whether the limit was met anywhere.
    """

    points: np.ndarray
    done: np.ndarray
    sign: int
    reached: bool


def search(study: Study, limits: list[Limit], starts: Sequence[np.ndarray], max_steps: int = 60) -> list[Found]:
    """The design points of each limit, from the starts for each."""
    if not limits:
        return []
    owner = np.repeat(np.arange(len(limits)), [len(s) for s in starts])
    middle = np.zeros((len(limits), len(study.names)))
    at_median = states(study, limits, middle, np.ones(len(limits)))[0]
    sign = np.where(at_median < 0, -1, 1)
    paths = [_Path(u) for u in np.concatenate(starts)]
    active = list(range(len(paths)))
    for _ in range(max_steps):
        trials = np.stack([paths[i].trial for i in active])
        state = states(study, [limits[owner[i]] for i in active], trials, sign[owner[active]])
        for i, u, r, g in zip(active, trials, *state):
            paths[i].take(u, r, g)
        active = [i for i in active if not paths[i].ended]
        if not active:
            break
    found = []
    for k in range(len(limits)):
        mine = [p for p, o in zip(paths, owner) if o == k]
        reached = any(p.least <= 1e-9 for p in mine)
        near = [p for p in mine if np.isfinite(p.room) and abs(p.room) < 1e-3]
        found.append(_distinct(near, int(sign[k]), reached, len(study.names)))
    return _minima(study, limits, found)


class _Path:
    """One search: each step goes to the nearest point of the limit as its linearization has it (Hasofer and Lind,
    Rackwitz and Fiessler), with what steps have told of its curvature (sequential quadratic programming, BFGS, damped
    as Powell has it); where steps fail, as they do at a kink, to the nearest point that all linearizations met nearby
    allow. A step is halved where the merit, of distance and room, does not fall."""

    def __init__(self, start: np.ndarray):
        self.trial, self.u = start, start
        self.room, self.g, self.least = np.inf, np.zeros_like(start), np.inf
        self.cuts: list[tuple[np.ndarray, float, np.ndarray]] = []
        self.B, self.price = np.eye(len(start)), 0.0
        self.aim, self.step, self.failures, self.walls = start, 1.0, 0, 0
        self.done = self.ended = False

    def take(self, u: np.ndarray, room: float, g: np.ndarray) -> None:
        """What was found at the trial point; chooses the next one."""
        there = np.isfinite(room) and np.all(np.isfinite(g))
        self.walls += not there
        if there:
            self.least = min(self.least, room)
            self.cuts = [*self.cuts[-5:], (u, room, g)]
        if there and self._better(u, room):
            if np.isfinite(self.room):
                self._learn(u - self.u, g - self.g)
            self.u, self.room, self.g, self.step = u, room, g, 1.0
            self.failures = max(self.failures - 1, 0)
        else:
            self.step, self.failures = self.step / 2, self.failures + 1
        if not np.isfinite(self.room):  # nothing is known yet: nearer to the middle there may be something
            self.trial, self.ended = self.trial / 2, self.failures > 8
            return
        self.aim = self._aim()
        reach = 1 + np.linalg.norm(self.u)
        self.done = bool(abs(self.room) < 1e-9 * reach and np.linalg.norm(self.aim - self.u) < 1e-7 * reach)
        self.ended = self.done or self.step < 1e-6 or self.walls > 8 or not np.any(self.g)
        self.trial = self.u + self.step * (self.aim - self.u)
        beyond = np.linalg.norm(self.trial) / _FAR
        if beyond > 1:  # nothing is that unlikely: look there, and if it is farther still, no more
            self.ended |= np.linalg.norm(self.u) > 0.99 * _FAR
            self.trial = self.trial / beyond

    def _better(self, u: np.ndarray, room: float) -> bool:
        if not np.isfinite(self.room):
            return True
        far = max(np.linalg.norm(self.u), np.linalg.norm(self.aim))
        weight = 2 * far / max(float(np.linalg.norm(self.g)), 1e-12) + 10
        before, after = (x @ x / 2 + weight * abs(r) for x, r in ((self.u, self.room), (u, room)))
        return bool(after <= before + 1e-12 * (1 + before))

    def _learn(self, s: np.ndarray, bend: np.ndarray) -> None:
        """The curvature of the distance along the limit, from one step."""
        y, Bs = s + self.price * bend, self.B @ s
        whole = s @ Bs
        if not whole > 0:
            return
        part = s @ y
        theta = 1.0 if part >= 0.2 * whole else 0.8 * whole / (whole - part)
        y = theta * y + (1 - theta) * Bs
        self.B = self.B + np.outer(y, y) / (s @ y) - np.outer(Bs, Bs) / whole

    def _aim(self) -> np.ndarray:
        """Where the nearest point of the limit is expected."""
        if not np.any(self.g):
            return self.u
        solved = np.linalg.solve(self.B, np.stack([self.u, self.g], 1))
        self.price = (self.room - self.g @ solved[:, 0]) / (self.g @ solved[:, 1])
        here = self.u - solved @ np.array([1.0, self.price])
        if self.failures < 2:
            return here
        near = max(4 * self.step * float(np.linalg.norm(here - self.u)), 1e-5)
        cuts = [c for c in self.cuts if np.linalg.norm(c[0] - self.u) <= near]
        A = np.stack([g for _, _, g in cuts] + [self.g])
        b = np.array([g @ u - r for u, r, g in cuts] + [self.g @ self.u - self.room])
        found = nearest(A, b)
        return here if found is None else found


def nearest(A: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """The shortest v with A v <= b, None if there is none (least distance programming by non-negative least squares,
    Lawson and Hanson)."""
    n = A.shape[1]
    E, f = np.concatenate([-A.T, -b[None]]), np.concatenate([np.zeros(n), [1.0]])
    y, norm = scipy.optimize.nnls(E, f)
    left = E @ y - f
    return None if norm < 1e-9 or left[n] == 0 else -left[:n] / left[n]


def _distinct(paths: list[_Path], sign: int, reached: bool, d: int) -> Found:
    """Of points that lie together, the nearest; those that have converged first."""
    kept: list[_Path] = []
    for p in sorted(paths, key=lambda p: (not p.done, np.linalg.norm(p.u))):
        if all(np.linalg.norm(p.u - k.u) > 0.02 * (1 + np.linalg.norm(k.u)) for k in kept):
            kept.append(p)
    kept.sort(key=lambda p: np.linalg.norm(p.u))
    points = np.array([p.u for p in kept]).reshape(-1, d)
    return Found(points, np.array([p.done for p in kept], bool), sign, reached)


def _minima(study: Study, limits: list[Limit], found: list[Found]) -> list[Found]:
    """Without the points where the distance is stationary but not least: there, a limit is broken nearer by, aside."""
    rng, d = np.random.default_rng(0), len(study.names)
    if d == 1:
        return found
    rows, aside = [], []
    for k, f in enumerate(found):
        for i, u in enumerate(f.points):
            beta = np.linalg.norm(u)
            t = rng.normal(size=(8, d))
            t -= np.outer(t @ u, u) / max(beta**2, 1e-300)
            t *= 0.1 * beta / np.linalg.norm(t, axis=1, keepdims=True)
            near = u + t
            rows += [(k, i)] * 8
            aside.append((beta - 1e-6) * near / np.linalg.norm(near, axis=1, keepdims=True))
    if not rows:
        return found
    each = [limits[k] for k, _ in rows]
    room = states(study, each, np.concatenate(aside), np.array([found[k].sign for k, _ in rows]))[0]
    passed = {at for at, r in zip(rows, room) if r < 0}
    kept = [np.array([(k, i) not in passed for i in range(len(f.points))], bool) for k, f in enumerate(found)]
    kept = [keep if keep.any() else ~keep for keep in kept]  # on a ring, all are alike
    return [f._replace(points=f.points[keep], done=f.done[keep]) for f, keep in zip(found, kept)]


def design_points(study: Study, limits: list[Limit], found: list[Found]) -> list[list[DesignPoint]]:
    """What was found, by limit: at least one point each, which says why where there is none."""
    nothing = np.full(len(study.names), np.nan)
    every = []
    for limit, f in zip(limits, found):
        made = lambda beta, u, x, part, done, limit=limit: DesignPoint(
            value=limit.name,
            limit=np.float64(limit.bounds[0]),
            side=limit.side,
            beta=np.float64(beta),
            probability=np.float64(scipy.special.ndtr(-beta)),
            scores=u,
            dimensions=x,
            importance=part,
            converged=np.bool_(done),
        )
        points = f.points[f.done]
        if len(points):
            x = placed(study, points)[0]
            square = np.maximum((points**2).sum(1, keepdims=True), 1e-300)
            beta = f.sign * np.linalg.norm(points, axis=1)
            every.append([made(b, u, v, u**2 / s, True) for b, u, v, s in zip(beta, points, x, square)])
        else:
            every.append([made(np.nan if f.reached else f.sign * np.inf, nothing, nothing, nothing, False)])
    return every


def spread(d: int, count: int, seed: int) -> np.ndarray:
    """The medians, nearly, and points about them, opposite ones in pairs."""
    rng = np.random.default_rng(seed)
    aside = rng.normal(size=(max(count - 1, 1) // 2 + 1, d))
    aside *= 3 / np.linalg.norm(aside, axis=1, keepdims=True)
    pairs = np.stack([aside, -aside], 1).reshape(-1, d)
    return np.concatenate([np.zeros((1, d)), pairs])[:count]


def states(study: Study, limits: list[Limit], u: np.ndarray, sign: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How much room there is to each limit, negative on the side that is searched, and its gradient in the scores."""
    room, slopes = np.zeros(len(u)), np.zeros_like(u)
    x, dx = placed(study, u)
    values, by_dimension = linearized(study, x)
    for i, limit in enumerate(limits):
        r, at = limit.room(values[i : i + 1])
        way = -1.0 if limit.side == "upper" else 1.0
        room[i], slopes[i] = sign[i] * r[0], sign[i] * way / limit.scale * by_dimension[i, at[0]] @ dx[i]
    return room, slopes


def placed(study: Study, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The dimensions at scores, and their slopes in these."""
    return in_rows(_dimensions, study, u)


@lasting
def _dimensions(study: Study, u: Array) -> tuple[Array, Array]:
    return jax.vmap(study.dimensions)(u), jax.vmap(jax.jacfwd(study.dimensions))(u)
