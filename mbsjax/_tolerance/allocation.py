"""Allocation: the tolerances that cost least and still do what is required."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .allocation_model import Model, Required, as_arrays, excess, model_of, solved
from .allocation_truth import Amount, Truth
from .cost import Catalogue, Cost, costed
from .study import Study
from .taylor import FirstOrder, SecondOrder


COMBINATIONS = 4_000_000
"""How many combinations of processes are looked through, at most."""


class Allocation(NamedTuple):
    """Tolerances that cost least.

    - `tolerances`: T of each contributor, by name: half the width between its limits, which keep their middle (those of
        a one-sided distribution their lower end); `cost`: of all of them; `processes`: which ones, from a catalogue.
    - `met`: of each measure that is required, by name, what it comes to: worst case, RSS or yield; `errors`: the
        standard error of that; `checked`: how it was found.
    - `active`: what stands in the way of a lower cost, by name, with its price: how fast the logarithm of the cost
        falls when the logarithm of this bound is relaxed.
    - `infeasible`: what cannot be met by any tolerances within their bounds; these are then the smallest.
    - `converged`: whether all requirements are met, yields less three of their standard errors, by tolerances that can
        be had, what says so is trusted, and no others near are cheaper.
    """

    tolerances: dict[str, float]
    cost: float
    met: dict[str, float]
    errors: dict[str, float]
    active: dict[str, float]
    converged: bool
    checked: dict[str, str]
    processes: dict[str, str]
    infeasible: tuple[str, ...]

    def __repr__(self) -> str:
        wide = max(map(len, self.tolerances))
        doubt = "" if self.converged or self.infeasible else " (not converged)"
        lines = [f"Allocation, cost {self.cost:.7g}{doubt}"]
        lines += [
            f"  {name:{wide}}  +-{T:.7g}" + (f"  {self.processes[name]}" if name in self.processes else "")
            for name, T in self.tolerances.items()
        ]
        lines += [f"  {name}: {x:.7g} ({self.checked[name]})" for name, x in self.met.items()]
        lines += [f"  held by {name} (price {x:.4g})" for name, x in self.active.items()]
        lines += [f"  infeasible: {name}, even with the smallest tolerances" for name in self.infeasible]
        return "\n".join(lines)


def allocate(
    expansion: FirstOrder | SecondOrder,
    costs: Mapping[str, Cost] | Mapping[str, Catalogue],
    *,
    worst_case: Mapping[str, float] | None = None,
    rss: Mapping[str, float] | None = None,
    good: Mapping[str, float] | None = None,
    samples: int = 16384,
    seed: int = 0,
    rounds: int = 30,
) -> Allocation:
    """Chooses tolerances +-T that cost least while measures keep what is required of them.

    With a [`mbsjax.Cost`][] for each: minimized in the logarithms of T by BFGS (optimistix) with an augmented
    Lagrangian. With a [`mbsjax.Catalogue`][] for each: all combinations, the cheapest that does. Standard deviations
    grow and shrink with the tolerances, as the distributions of the study have it. Contributors without a cost stay as
    they are.

    The expansion, and normal distributions for yields, are where it begins. What they give is then checked with the
    study itself, yields by [`mbsjax.reliability`][] and worst cases by [`mbsjax.worst_case`][]. It goes on with planes
    at the design points that were found there, until the study does what is required: a yield, less three of its
    standard errors, is at least the one that is asked for; or even the smallest tolerances do not do, and it is named
    infeasible.

    **Arguments:**

    - `expansion`: what [`mbsjax.first_order`][] or [`mbsjax.second_order`][] found; with the latter, the shift of the
        mean and the curvature's part in the variance count towards the yield.
    - `costs`: by name of the contributor.
    - `worst_case`, `rss`: by name of the measure, how far it may go from its middle.
    - `good`: by name of the measure, the yield that its limits must leave.
    - `samples`, `seed`: of each check of a yield; with 0 samples nothing is checked, and the expansion is believed.

    !!! Example

        >>> import mbsjax as mbs
        >>> stack = mbs.Study(lambda p: p, {"a": 10.0, "b": 20.0}, {"a": 0.1, "b": 0.1},
        ...                   {"sum": lambda p: p["a"] + p["b"]})
        >>> cheap = mbs.allocate(mbs.first_order(stack), {"a": mbs.Cost(0.0, 1.0), "b": mbs.Cost(0.0, 4.0)},
        ...                      worst_case={"sum": 0.3})
        >>> {name: round(T, 6) for name, T in cheap.tolerances.items()}, list(cheap.active)
        ({'a': 0.1, 'b': 0.2}, ['worst case of sum'])
    """
    first = expansion.first if isinstance(expansion, SecondOrder) else expansion
    costed(costs, first.study, (Cost, Catalogue))
    given = {"worst case": worst_case or {}, "rss": rss or {}, "yield": good or {}}
    required = [(kind, name, float(x)) for kind, each in given.items() for name, x in each.items()]
    if not required or not costs:
        raise ValueError("an allocation needs costs, and at least one requirement")
    _check_requirements(first.study, required, samples)
    truth = Truth(first, required, samples, seed)
    catalogues = {name: c for name, c in costs.items() if isinstance(c, Catalogue)}
    if catalogues:
        return _cheapest(expansion, catalogues, required, truth)
    return _tuned(expansion, {n: c for n, c in costs.items() if isinstance(c, Cost)}, required, truth, rounds)


def _check_requirements(study: Study, required: Required, samples: int) -> None:
    for kind, name, x in required:
        if name not in study.columns:
            raise ValueError(
                f"there is no measure {name!r} to require a {kind} of; they are {', '.join(study.columns)}"
            )
        if not (0 < x and (kind != "yield" or x < 1)):
            raise ValueError(f"the {kind} required of {name!r} must be positive, a yield below 1, got {x:.6g}")
        k = study.columns.index(name)
        if kind == "yield" and not np.isfinite([study.lower[k], study.upper[k]]).any():
            raise ValueError(f"a yield of {name!r} needs limits in the study")
        if kind == "yield" and samples and name not in study.labels:
            raise ValueError(
                f"the yield of {name!r}, one place along a stroke, cannot be checked: make it a measure of its own, or "
                "say `samples=0`"
            )


def _allocation(required: Required, study: Study, T: np.ndarray, amounts: list[Amount], **more: Any) -> Allocation:
    names = [f"{kind} of {name}" for kind, name, _ in required]
    return Allocation(
        tolerances=dict(zip(study.names, T.tolist())),
        met={n: float(1 - a.amount if n.startswith("yield") else a.amount) for n, a in zip(names, amounts)},
        errors={n: float(a.error) for n, a in zip(names, amounts)},
        checked={n: a.word for n, a in zip(names, amounts)},
        **more,
    )


_ROUNDS = 16  # how often the study is asked for shares, or for a size
_REACH, _SETTLED = 0.7, 0.05  # how far the logarithms of tolerances go in a step: at most, and when it is the last
_GAIN = 0.005  # of the cost, for which the study is not asked again
_TIGHT = 0.95  # of the rejects that are allowed, with which it ends


def _tuned(
    expansion: FirstOrder | SecondOrder, costs: Mapping[str, Cost], required: Required, truth: Truth, rounds: int
) -> Allocation:
    """Solves with a model, asks the study, and corrects the model until both agree; then, where there are yields, makes
    all tolerances a little larger or smaller until these are sure to be met, and no more than that."""
    model = model_of(expansion, costs, required)
    _check_dependence(model, costs)
    task = _Task(costs, required, truth, rounds, np.log(np.asarray(model.bounds)))
    sampled = truth.samples > 0 and bool(model.yields.any())
    place = _shared(task, model) if sampled else _repeated(task, model)
    found = _sized(task, place) if sampled else place
    names = [f"{kind} of {name}" for kind, name, _ in required]
    fits = np.array([a.ratio for a in found.amounts]) <= 1 + np.where(model.yields & sampled, 0.0, 1e-6)
    least = bool(np.all(found.t <= task.bounds[:, 0] + 1e-9))
    every = names + [f"lower bound of {x}" for x in costs] + [f"upper bound of {x}" for x in costs]
    if sampled:  # with the bounds that there are, not those of a step
        prices = task.within(found.model, found.t, _REACH)[1]
        held = np.concatenate([np.ones(len(names), bool), *(np.abs(found.t - task.bounds.T) < 1e-6)])
        found = found._replace(prices=np.where(held, prices, 0.0))
    return _allocation(
        required,
        truth.first.study,
        np.asarray(model.tolerances(jnp.asarray(found.t))),
        found.amounts,
        cost=task.cost(found.t),
        active={name: float(p) for name, p in zip(every, found.prices) if p > 1e-6},
        converged=bool(np.all(fits)) and found.done and found.slope < 1e-4 and all(a.trusted for a in found.amounts),
        processes={},
        infeasible=tuple(name for name, good in zip(names, fits) if not good) if least else (),
    )


class _Task(NamedTuple):
    """What is to be done; `bounds` are those of the logarithms of the tolerances."""

    costs: Mapping[str, Cost]
    required: Required
    truth: Truth
    rounds: int
    bounds: np.ndarray

    def cost(self, t: np.ndarray) -> float:
        return float(sum(c.of(np.exp(x)) for c, x in zip(self.costs.values(), t)))

    def within(self, model: Model, t: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray, float]:
        """The solution not farther than so from here."""
        near = np.clip(np.stack([t - reach, t + reach], 1), self.bounds[:, :1], self.bounds[:, 1:])
        return _solution(eqx.tree_at(lambda m: m.bounds, model, jnp.asarray(np.exp(near))), self.rounds, near)


class _Place(NamedTuple):
    """Tolerances, in logarithms, what requirements come to with them, and the model about them; the prices of the last
    solution, and how exact that was; whether nothing is left to be done."""

    t: np.ndarray
    amounts: list[Amount]
    model: Model
    prices: np.ndarray
    slope: float
    done: bool


def _repeated(task: _Task, model: Model) -> _Place:
    """Requirements other than yields: what the expansion says of them is multiplied by what is true over it, until that
    changes no more."""
    for _ in range(_ROUNDS):
        t, prices, slope = _solution(model, task.rounds, task.bounds)
        answer = task.truth(model, t, check=False)
        ratio = np.array([a.ratio for a in answer.amounts])
        place = _Place(t, answer.amounts, model, prices, slope, True)
        loose = (prices[: len(ratio)] > 1e-6) & (ratio < 1 - 1e-6)
        if not np.isfinite(slope) or np.all((ratio <= 1 + 1e-6) & ~loose):
            return place
        model = _corrected(model, answer.amounts, task.truth.planes(model, t, answer), t, task.required)
    return place._replace(done=False)


def _shared(task: _Task, model: Model) -> _Place:
    """How tolerances share what yields leave: yields are modelled by the expansion at first, then by planes at the
    design points that the study has, which are made to change with each tolerance as the study does. A step to what is
    not better, by cost and by what is wanting, is taken back and tried again, not so far (a trust region)."""
    t, prices, slope = _solution(model, task.rounds, task.bounds)
    best, least, seen = _Place(t, [], model, prices, slope, False), np.inf, False
    check, reach, step = True, _REACH, np.inf
    for _ in range(_ROUNDS):
        answer = task.truth(model, t, check=check)
        ratio = np.array([a.ratio for a in answer.amounts])
        # once more is known than a search near the medians would find, it is looked for each time
        check = check and (answer.found is None or answer.found.no_value is not None or not answer.found.trusted)
        merit = np.log(task.cost(t)) + 2 * float(np.sum(np.log(np.maximum(ratio, 1.0))))
        visible = all(a.amount > 0 for a in answer.amounts)  # where there are no rejects, there is nothing to go by
        if not seen or (visible and merit < least):
            reach = min(2 * reach, _REACH) if step > 0.9 * reach else reach
            model = _corrected(model, answer.amounts, task.truth.planes(model, t, answer), t, task.required)
            best, least, seen = _Place(t, answer.amounts, model, prices, slope, False), merit, visible
            tight = bool(np.all(ratio <= 1) and np.max(ratio) >= _TIGHT)
        else:  # planes are planes, and slopes are those of one place
            reach = step / 2
        if reach < _SETTLED:
            return best
        t, prices, slope = task.within(best.model, best.t, reach)
        step = float(np.abs(t - best.t).max())
        if step < _SETTLED or (tight and np.log(task.cost(best.t) / task.cost(t)) < _GAIN):
            return best._replace(t=t, prices=prices, slope=slope)
    return best


def _sized(task: _Task, place: _Place) -> _Place:
    """All tolerances larger or smaller, in the same shares, until the study does what is required and little more."""
    smallest, largest = task.bounds.T
    model, size = place.model, lambda s: np.clip(place.t + s, smallest, largest)
    said = lambda s: float(np.max(np.asarray(model.log_ratios(jnp.asarray(size(s))))))
    slope = max((said(0.01) - said(-0.01)) / 0.02, 1.0)  # of the logarithm of what is found over what is allowed
    s, low, high, last = 0.0, -np.inf, np.inf, None
    for again in range(_ROUNDS):
        answer = task.truth(model, size(s), check=True, again=1 + again)
        ratio, error = (np.array([getattr(a, key) for a in answer.amounts]) for key in ("ratio", "relative"))
        most = float(np.max(ratio))
        fits = most <= 1
        found = place._replace(t=size(s), amounts=answer.amounts, done=fits)
        end = most >= _TIGHT or np.all(size(s) >= largest) if fits else np.all(size(s) <= smallest)
        if end:
            return found
        low, high = (s, high) if fits else (low, s)
        level = np.log(max(most, 1e-3))
        if last is not None and abs(s - last[0]) > 1e-9:
            slope = float(np.clip((level - last[1]) / (s - last[0]), 0.3 * slope, 3 * slope))
        last, aim = (s, level), np.log1p(-min(2 * float(np.max(error)), 0.04) - 0.003)
        s = float(np.clip(s + (aim - level) / slope, s - 0.5, s + 0.5))
        if not low < s < high:
            s = (low + high) / 2 if np.isfinite(low + high) else (high - 0.5 if np.isfinite(high) else low + 0.5)
    return found


def _check_dependence(model: Model, costs: Mapping[str, Cost]) -> None:
    matters = np.abs(np.concatenate([model.slopes[:, None], model.curvatures], 1)).max(1)[[k for _, k in model.wanted]]
    for (name, c), i in zip(costs.items(), model.chosen):
        if c.upper == np.inf and not np.any(matters[:, list(i)]):
            raise ValueError(
                f"nothing that is required depends on {name!r} in the expansion, and its cost has no upper bound; "
                "give it one, or an expansion to second order"
            )


def _solution(model: Model, rounds: int, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Tolerances of least cost by the model, in logarithms, with prices; the smallest, where it sees none that do."""
    smallest, largest = bounds.T
    n = len(model.wanted)
    if np.any(np.asarray(model.constraints(jnp.asarray(smallest)))[:n] > 1e-6):
        return smallest, np.zeros(n + 2 * len(smallest)), np.inf
    t, prices, slope = solved(model, rounds)
    return np.clip(np.asarray(t), smallest, largest), np.asarray(prices), float(slope)


def _corrected(model: Model, amounts: list[Amount], planes: Any, t: np.ndarray, required: Required) -> Model:
    """The model that says at these tolerances what is true. It aims at a little less than all rejects that are allowed:
    with other samples there may be some more."""
    said, allowed = np.asarray(model.amounts(jnp.asarray(t))), _allowed(required)
    true, error = (np.array([getattr(a, key) for a in amounts]) for key in ("amount", "error"))
    aim = np.where(model.yields, 1 - np.clip(2 * error / np.maximum(true, 1e-300), 1e-3, 0.1), 1.0)
    asked = np.where(model.yields, aim * allowed, allowed * said / np.maximum(true, 1e-300))
    if not planes.used:
        asked = np.where(model.yields, np.asarray(model.asked), asked)
    return eqx.tree_at(lambda m: (m.asked, m.planes), model, (jnp.asarray(asked), as_arrays(planes)))


def _cheapest(
    expansion: FirstOrder | SecondOrder, costs: Mapping[str, Catalogue], required: Required, truth: Truth
) -> Allocation:
    """All combinations of processes, the cheapest first, until one does by the study itself. Those that the model finds
    far off are left out: the expansion at first, then planes at the design points of the last one that was asked for;
    and so are those with all tolerances as wide as one that did not do."""
    sizes = [len(c.names) for c in costs.values()]
    count = int(np.prod(sizes, dtype=float))
    if count > COMBINATIONS:
        raise ValueError(
            f"the catalogues have {count:,} combinations, more than the {COMBINATIONS:,} that can be tried"
        )
    model = model_of(expansion, {n: Cost(0.0, 1.0) for n in costs}, required)
    choice = np.stack(np.unravel_index(np.arange(count), sizes), 1)
    pick = lambda key: [np.array(getattr(c, key))[choice[:, i]] for i, c in enumerate(costs.values())]
    total, t = np.sum(pick("costs"), 0), np.log(np.stack(pick("tolerances"), 1))
    order, smallest = np.argsort(total, kind="stable"), int(np.argmin(t.sum(1)))
    left, over = np.ones(count, bool), _over(model, t)
    for _ in range(64):
        near = order[left[order] & (over[order] < (0.3 if truth.samples else 1e-9))]
        i = int(near[0]) if len(near) else smallest
        answer = truth(model, t[i], check=True)
        amounts = answer.amounts
        met = [a.ratio <= 1 + 1e-6 for a in amounts]
        if all(met) or i == smallest or not truth.samples:
            break
        left &= ~np.all(t >= t[i] - 1e-12, 1)
        if model.yields.any():
            model = _corrected(model, amounts, truth.planes(model, t[i], answer), t[i], required)
            over = _over(model, t)
    names = [f"{kind} of {name}" for kind, name, _ in required]
    every = list(zip(costs.items(), choice[i]))
    return _allocation(
        required,
        truth.first.study,
        np.asarray(model.tolerances(jnp.asarray(t[i]))),
        amounts,
        cost=float(total[i]),
        active={},
        converged=all(met) and all(a.trusted for a in amounts),
        processes={name: c.names[k] for (name, c), k in every},
        infeasible=tuple(name for name, good in zip(names, met) if not good),
    )


def _allowed(required: Required) -> np.ndarray:
    return np.array([1 - x if kind == "yield" else x for kind, _, x in required])


def _over(model: Model, t: np.ndarray) -> np.ndarray:
    """How far each choice is from what is required, by the model."""
    parts = np.array_split(t, -(-len(t) // 65536))
    return np.concatenate([np.asarray(excess(model, jnp.asarray(part))) for part in parts])
