"""Robust synthesis: nominal dimensions and tolerances together."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, logsumexp
from jaxtyping import Array

from .._tolerance.cost import Cost, costed
from .._tolerance.design_points import DesignPoint, form
from .._tolerance.evaluate import linearized
from .._tolerance.study import Study
from .goal import Minimize, Within
from .synthesize import synthesize
from .task import Task


class Robust(NamedTuple):
    """Dimensions and tolerances that belong together.

    - `nominals`, `tolerances`: by name, of all contributors; T is half the width between the limits.
    - `cost`: of the tolerances that have one; None if none has.
    - `rejects`: by name of the measure, the parts beyond its limits, by the design points of the study found (FORM).
    - `study`: the same study with these dimensions and tolerances, to be looked into by the other analyses.
    - `rounds`: how often the design points were searched; `converged`: whether the last round changed nothing and all
        requirements are met.
    """

    nominals: dict[str, float]
    tolerances: dict[str, float]
    cost: float | None
    rejects: dict[str, float]
    study: Study
    rounds: int
    converged: bool

    def __repr__(self) -> str:
        told = "" if self.cost is None else f", cost {self.cost:.7g}"
        lines = [f"Robust design{told}" + ("" if self.converged else " (not converged: can it be met?)")]
        wide = max(map(len, self.nominals))
        lines += [f"  {n:{wide}}  {x:.8g} +-{self.tolerances[n]:.6g}" for n, x in self.nominals.items()]
        lines += [f"  {name}: {1e6 * p:.6g} ppm rejects" for name, p in self.rejects.items()]
        return "\n".join(lines)


def robust(
    study: Study,
    nominals: Mapping[str, Any],
    *,
    costs: Mapping[str, Cost] | None = None,
    good: Mapping[str, float] | None = None,
    rounds: int = 20,
) -> Robust:
    """Chooses nominal dimensions and tolerances together: those of least cost that leave a required yield; or, without
    costs, the nominal dimensions of the highest yield for the tolerances there are.

    Each round finds the design points of all limits ([`mbsjax.form`][]), takes the limits for planes there, and solves
    the task that is left. Where it ends, the planes touch the limits at the design points: the rejects are those of
    the first-order reliability method.

    **Arguments:**

    - `study`: with limits on its measures.
    - `nominals`: by name, between which bounds a nominal dimension may lie.
    - `costs`: by name, an [`mbsjax.Cost`][] of a tolerance; tolerances without one stay as they are.
    - `good`: with costs, by name of a measure, the yield that is required.

    !!! Example

        The nominal gap is best in the middle of its limits, and the tolerances that cost least are not alike.

        >>> import mbsjax as mbs
        >>> gap = mbs.Study(lambda p: p, {"hole": 10.0, "pin": 9.9}, {"hole": 0.06, "pin": 0.06},
        ...                 {"gap": lambda p: p["hole"] - p["pin"]}, limits={"gap": (0.0, 0.1)})
        >>> found = mbs.robust(gap, {"pin": (9.8, 10.0)}, good={"gap": 0.9973},
        ...                    costs={"hole": mbs.Cost(0.0, 8.0), "pin": mbs.Cost(0.0, 1.0)})
        >>> round(found.nominals["pin"], 6), round(found.tolerances["hole"] / found.tolerances["pin"], 6)
        (9.95, 2.0)
    """
    costs, good = dict(costs or {}), dict(good or {})
    places = costed(costs, study)
    for name, pair in nominals.items():
        if name not in study.names:
            raise ValueError(f"there is no contributor {name!r} to change; they are {', '.join(study.names)}")
        if not (len(pair) == 2 and pair[0] < pair[1]):
            raise ValueError(f"the bounds of {name!r} are in the wrong order: {pair!r}")
    if bool(costs) != bool(good):
        raise ValueError("costs of tolerances and a required yield belong together: give both or none")
    for name, x in good.items():
        if name not in study.columns or not 0 < x < 1:
            raise ValueError(f"a yield between 0 and 1 is required of a measure of the study, got {name!r}: {x!r}")
    bounds = {study.names.index(name): pair for name, pair in nominals.items()}
    prices = {tuple(i): c for i, c in zip(places, costs.values())}
    before, done, count = np.inf, False, 0
    while not done and count < rounds:
        planes, points = _planes(study)
        for name in good.keys() - {p.value for p in points}:
            raise ValueError(f"a yield of {name!r} needs limits in the study")
        found = _solved(study, planes, points, bounds, prices, good)
        count += 1
        after = np.concatenate([found.nominal, found.each(lambda d: d.spread.upper - d.spread.lower)])
        done = bool(np.all(np.abs(after - before) <= 1e-7 * np.abs(after)))
        study, before = found, after
    _, points = _planes(study)
    rejects = _rejects(points)
    T = np.asarray(study.each(lambda d: (d.spread.upper - d.spread.lower) / 2)).tolist()
    met = all(rejects[name] <= (1 - x) * (1 + 1e-4) for name, x in good.items())
    cost = sum(c.of(T[i[0]]) for i, c in prices.items()) if costs else None
    found = dict(zip(study.names, np.asarray(study.nominal).tolist()))
    return Robust(found, dict(zip(study.names, T)), cost, rejects, study, count, done and met)


class _Planes(NamedTuple):
    """Limits as planes, a row for each: slopes and place of the design point, the deviations there with their
    derivatives in the scores, and the side."""

    slopes: Array
    place: Array
    scores: Array
    deviation: Array
    rates: Array
    sign: Array


def _planes(study: Study) -> tuple[_Planes, list[DesignPoint]]:
    points = form(study)
    if not points:
        raise ValueError("a robust design needs limits in the study")
    for p in points:
        if not p.converged:
            raise ValueError(
                f"no design point was found for the {p.side} limit of {p.value!r}: can it be reached at all?"
            )
    x = np.stack([p.dimensions for p in points])
    _, slopes = linearized(study, x)
    rows = np.arange(len(points)), np.array([study.columns.index(p.value) for p in points])
    u = jnp.asarray(np.stack([p.scores for p in points]))
    rates = jax.vmap(jax.jacfwd(study.dimensions))(u)
    sign = jnp.asarray([1.0 if p.side == "upper" else -1.0 for p in points])
    return _Planes(jnp.asarray(slopes[rows]), jnp.asarray(x), u, jnp.asarray(x) - study.nominal, rates, sign), points


def _rejects(points: list[DesignPoint]) -> dict[str, float]:
    found: dict[str, float] = {}
    for p in points:
        found[p.value] = found.get(p.value, 0.0) + p.probability
    return found


def _solved(
    study: Study, planes: _Planes, points: list[DesignPoint], nominals: dict, costs: dict, good: Mapping[str, float]
) -> Study:
    """The best study while the limits are planes."""
    chosen, priced = np.array(list(nominals), int), np.array([i[0] for i in costs], int)
    T = study.each(lambda d: (d.spread.upper - d.spread.lower) / 2)
    anchor = study.each(lambda d: d.anchor)
    measures = list(dict.fromkeys(p.value for p in points))
    member = np.array([[p.value == name for p in points] for name in measures])

    def spread(ratio: Array) -> Array:
        """Of all numbers, from those that have a cost."""
        every = jnp.ones_like(T)
        for i, r in zip(costs, ratio):
            every = every.at[np.array(i)].set(r)
        return every

    def tails(p: dict) -> Array:
        """The logarithm of the rejects of each measure."""
        nominal = study.nominal.at[chosen].set(p["nominal"])
        ratio = spread(jnp.exp(p["log T"] - jnp.log(T[priced])))
        at_zero = planes.deviation - jnp.einsum("kij,kj->ki", planes.rates, planes.scores) - anchor
        mean = jnp.sum(planes.slopes * (nominal + anchor + ratio * at_zero - planes.place), 1)
        w = jnp.einsum("ki,kij->kj", planes.slopes * ratio, planes.rates)
        each = log_ndtr(planes.sign * mean / jnp.sqrt(jnp.sum(w**2, 1)))
        return jnp.stack([logsumexp(jnp.where(row, each, -jnp.inf)) for row in member])

    def cost(p: dict) -> Array:
        return logsumexp(jnp.stack([jnp.log(c.factor) - c.power * t for c, t in zip(costs.values(), p["log T"])]))

    start = {"nominal": study.nominal[chosen], "log T": jnp.log(T[priced])}
    variables: dict[str, Any] = {}
    if nominals:
        variables["nominal"] = tuple(np.array(list(nominals.values()), float).T)
        start["nominal"] = jnp.clip(start["nominal"], *map(jnp.asarray, variables["nominal"]))
    if costs:
        bounds = np.array([[max(c.lower, 1e-9 * t), min(c.upper, 1e9 * t)] for c, t in zip(costs.values(), T[priced])])
        variables["log T"] = tuple(np.log(bounds).T)
        start["log T"] = jnp.clip(start["log T"], *map(jnp.asarray, variables["log T"]))
    if costs:
        limits = np.log([1 - good[name] for name in measures if name in good])
        these = np.array([name in good for name in measures])
        goals, conditions = {"cost": Minimize(cost)}, {"rejects": Within(lambda p: tails(p)[these], upper=limits)}
    else:
        goals, conditions = {"rejects": Minimize(lambda p: logsumexp(tails(p)))}, {}
    best = synthesize(Task(lambda p: p, start, variables, goals, conditions=conditions), max_steps=1000).best.dimensions
    nominal = study.nominal.at[chosen].set(best["nominal"])
    ratio = spread(jnp.exp(best["log T"]) / T[priced])
    return study.moved(nominal, ratio)
