"""Allocation: the tolerances that cost least and still do what is required."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, logsumexp
from jaxtyping import Array

from .._programs.trees import lasting
from .cost import Catalogue, Cost, costed
from .reliability import reliability
from .study import Study
from .taylor import FirstOrder, SecondOrder
from .worst_case import worst_case as exact_worst_case


COMBINATIONS = 4_000_000
"""How many combinations of processes are looked through, at most."""


class Allocation(NamedTuple):
    """Tolerances that cost least.

    - `tolerances`: T of each contributor, by name: half the width between its limits, which keep their middle (those of
        a one-sided distribution their lower end); `cost`: of all of them; `processes`: which ones, from a catalogue.
    - `met`: of each measure that is required, by name, what it comes to: worst case, RSS or yield; `checked`: how that
        was found.
    - `active`: what stands in the way of a lower cost, by name, with its price: how fast the logarithm of the cost
        falls when the logarithm of this bound is relaxed.
    - `infeasible`: what cannot be met by any tolerances within their bounds; these are then the smallest.
    - `converged`: whether all requirements are met, as far as `checked` can tell, by tolerances that can be had, and no
        others near are cheaper.
    """

    tolerances: dict[str, float]
    cost: float
    met: dict[str, float]
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
    study itself, yields by [`mbsjax.reliability`][] and worst cases by [`mbsjax.worst_case`][], and what is asked of
    the expansion is corrected until the study does what is required.

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
    _check_requirements(first.study, required)
    truth = _Truth(first, required, samples, seed)
    catalogues = {name: c for name, c in costs.items() if isinstance(c, Catalogue)}
    if catalogues:
        return _cheapest(expansion, catalogues, required, truth)
    return _tuned(expansion, {n: c for n, c in costs.items() if isinstance(c, Cost)}, required, truth, rounds)


def _check_requirements(study: Study, required: list[tuple[str, str, float]]) -> None:
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


class _Amount(NamedTuple):
    """What a requirement comes to (of a yield, the rejects), over what is allowed; how sure that is; and
    how it was found."""

    amount: float
    ratio: float
    error: float
    word: str


class _Truth(NamedTuple):
    """What requirements come to, by the study itself."""

    first: FirstOrder
    required: list[tuple[str, str, float]]
    samples: int
    seed: int

    def __call__(self, T: np.ndarray, model: "_Model", t: Array, check: bool = True) -> list[_Amount]:
        study = self.first.study
        low, high = (np.asarray(x) for x in study.bounds)
        moved = study.moved(study.nominal, jnp.asarray(T / ((high - low) / 2)))
        kinds = {kind for kind, _, _ in self.required} if self.samples else set()
        found = reliability(moved, self.samples, check=check, seed=self.seed) if "yield" in kinds else None
        worst = exact_worst_case(moved) if "worst case" in kinds else None
        every = []
        for (kind, name, x), y in zip(self.required, np.asarray(model.amounts(t))):
            k = study.columns.index(name)
            if kind == "worst case" and worst is not None:
                middle = self.first.middle[k]
                ends = (middle - worst.lower[k], worst.basis_lower[k]), (worst.upper[k] - middle, worst.basis_upper[k])
                amount, basis = max(ends)
                every.append(_Amount(amount, amount / x, 1e-6, f"exact worst case, {basis}"))
            elif kind == "yield" and found is not None:
                mine = [z for z in found.limits if z.value == name]
                p, error = sum(z.probability for z in mine), float(np.linalg.norm([z.error for z in mine]))
                how = ", ".join(dict.fromkeys(z.method for z in mine)) + f", +-{error:.2g}"
                how += "" if all(z.trusted for z in mine) else ", NOT TRUSTED"
                every.append(_Amount(p, p / (1 - x), error / (1 - x), how))
            else:
                y = np.exp(-(y**2) / 2) if kind == "yield" else y
                word = "normal model" if kind == "yield" else "expansion"
                every.append(_Amount(float(y), float(y / (1 - x if kind == "yield" else x)), 1e-6, word))
        return every


def _allocation(
    required: list[tuple[str, str, float]], study: Study, T: np.ndarray, amounts: list[_Amount], **more: Any
) -> Allocation:
    names = [f"{kind} of {name}" for kind, name, _ in required]
    return Allocation(
        tolerances=dict(zip(study.names, T.tolist())),
        met={n: float(1 - a.amount if n.startswith("yield") else a.amount) for n, a in zip(names, amounts)},
        checked={n: a.word for n, a in zip(names, amounts)},
        **more,
    )


def _tuned(
    expansion: FirstOrder | SecondOrder,
    costs: Mapping[str, Cost],
    required: list[tuple[str, str, float]],
    truth: _Truth,
    rounds: int,
) -> Allocation:
    """Solves with the expansion, checks with the study, and asks for more or less until both agree."""
    model = _model(expansion, costs, required)
    matters = np.abs(np.concatenate([model.slopes[:, None], model.curvatures], 1)).max(1)[[k for _, k in model.wanted]]
    for (name, c), i in zip(costs.items(), model.chosen):
        if c.upper == np.inf and not np.any(matters[:, list(i)]):
            raise ValueError(
                f"nothing that is required depends on {name!r} in the expansion, and its cost has no upper bound; "
                "give it one, or an expansion to second order"
            )
    names = [f"{kind} of {name}" for kind, name, _ in required]
    n, allowed = len(required), np.log(np.asarray(model.asked))
    asked, low, high = allowed.copy(), np.full(n, -np.inf), np.full(n, np.inf)
    smallest, largest = np.log(np.asarray(model.bounds)).T
    converged, infeasible = False, ()
    for _ in range(16):
        model = eqx.tree_at(lambda m: m.asked, model, jnp.asarray(np.exp(asked)))
        impossible = np.asarray(model.constraints(jnp.asarray(smallest)))[:n] > 1e-6
        if np.any(impossible):
            t, prices, slope = jnp.asarray(smallest), np.zeros(n + 2 * len(costs)), 0.0
        else:
            t, prices, slope = _solve(model, rounds)
            t = jnp.clip(t, smallest, largest)
        T = np.asarray(model.tolerances(t))
        amounts = truth(T, model, t, check=False)
        ratio, error = (np.array([getattr(a, key) for a in amounts]) for key in ("ratio", "error"))
        # the expansion is right as far as samples can tell; once it is not, they lead, the same ones each time
        error = np.where(model.yields, np.where(asked == allowed, 3 * error, np.minimum(error, 0.01)), error)
        fits = ratio <= 1 + error
        if np.any(impossible):
            infeasible = tuple(name for name, good in zip(names, fits) if not good)
        idle = np.asarray(prices)[:n] <= 1e-6
        if infeasible or np.all(fits & (idle | (ratio >= 1 - error))):
            converged = not infeasible and bool(slope < 1e-4)
            break
        with np.errstate(divide="ignore"):
            step = np.clip(np.log(ratio), -2.0, 2.0)
        high = np.where(step > 0, np.minimum(high, asked), high)
        low = np.where(step <= 0, np.maximum(low, asked), low)
        aim = np.where(fits & idle, asked, asked - step)
        aim = np.where((aim >= high) | (aim <= low), (low + high) / 2, aim)
        asked = np.where(np.isfinite(aim), np.minimum(aim, np.where(model.yields, -1e-3, np.inf)), asked)
    amounts = truth(T, model, t) if truth.samples and model.yields.any() else amounts
    every = names + [f"lower bound of {x}" for x in costs] + [f"upper bound of {x}" for x in costs]
    return _allocation(
        required,
        truth.first.study,
        T,
        amounts,
        cost=float(sum(c.of(np.exp(x)) for c, x in zip(costs.values(), np.asarray(t)))),
        active={name: float(p) for name, p in zip(every, prices) if p > 1e-6},
        converged=converged,
        processes={},
        infeasible=infeasible,
    )


def _cheapest(
    expansion: FirstOrder | SecondOrder,
    costs: Mapping[str, Catalogue],
    required: list[tuple[str, str, float]],
    truth: _Truth,
) -> Allocation:
    """All combinations of processes, the cheapest first, until one does by the study itself. Those that the expansion
    finds far off are left out."""
    sizes = [len(c.names) for c in costs.values()]
    count = int(np.prod(sizes, dtype=float))
    if count > COMBINATIONS:
        raise ValueError(
            f"the catalogues have {count:,} combinations, more than the {COMBINATIONS:,} that can be tried"
        )
    model = _model(expansion, {n: Cost(0.0, 1.0) for n in costs}, required)
    choice = np.stack(np.unravel_index(np.arange(count), sizes), 1)
    pick = lambda key: [np.array(getattr(c, key))[choice[:, i]] for i, c in enumerate(costs.values())]
    total, t = np.sum(pick("costs"), 0), np.log(np.stack(pick("tolerances"), 1))
    over = np.concatenate(
        [np.asarray(_excess(model, jnp.asarray(part))) for part in np.array_split(t, -(-count // 65536))]
    )
    order = np.argsort(total, kind="stable")
    likely = order[over[order] < 0.3][:64] if truth.samples else order[over[order] <= 1e-9][:1]
    smallest = np.argmin(t.sum(1))
    for i in [*likely, smallest]:
        T = np.asarray(model.tolerances(jnp.asarray(t[i])))
        amounts = truth(T, model, jnp.asarray(t[i]))
        met = [a.ratio <= 1 + a.error for a in amounts]
        if all(met):
            break
    names = [f"{kind} of {name}" for kind, name, _ in required]
    every = list(zip(costs.items(), choice[i]))
    return _allocation(
        required,
        truth.first.study,
        T,
        amounts,
        cost=float(total[i]),
        active={},
        converged=all(met),
        processes={name: c.names[k] for (name, c), k in every},
        infeasible=tuple(name for name, good in zip(names, met) if not good),
    )


@lasting
def _excess(model: "_Model", t: Array) -> Array:
    """How far each choice is from what is required, as the worst of all constraints has it."""
    return jax.vmap(lambda t: jnp.max(model.constraints(t)[: len(model.wanted)]))(t)


def _level(log_rejects: Array) -> Array:
    """Rejects on a scale that is near to that of standard deviations, and never runs out of numbers."""
    return jnp.sqrt(1e-12 - 2 * jnp.minimum(log_rejects, 0.0))


class _Model(eqx.Module):
    """Costs and requirements as functions of the logarithms of the tolerances that are chosen."""

    slopes: Array
    values: Array
    T0: Array
    ratio: Array
    curvatures: Array
    correlation: Array
    lower: Array
    upper: Array
    lean: Array  # how far the mean moves when T grows
    costs: Array
    bounds: Array
    asked: Array  # how far, or how many rejects
    chosen: tuple[tuple[int, ...], ...] = eqx.field(static=True)
    wanted: tuple[tuple[str, int], ...] = eqx.field(static=True)
    limited: tuple[tuple[bool, bool], ...] = eqx.field(static=True)

    @property
    def yields(self) -> np.ndarray:
        return np.array([kind == "yield" for kind, _ in self.wanted])

    def tolerances(self, t: Array) -> Array:
        owner = np.repeat(np.arange(len(self.chosen)), [len(i) for i in self.chosen])
        return self.T0.at[np.concatenate(self.chosen)].set(jnp.exp(t)[owner])

    @property
    def before(self) -> Array:
        """The tolerances that are chosen, as they are now."""
        return self.T0[np.array([i[0] for i in self.chosen])]

    def cost(self, t: Array) -> Array:
        """The logarithm of what the choice costs; what is fixed does not matter."""
        factor, power = self.costs.T
        return logsumexp(jnp.log(factor) - power * t)

    def sides(self, k: int) -> list[tuple[float, Array]]:
        """The limits that there are."""
        low, high = self.limited[k]
        return [(1.0, self.lower)] * low + [(-1.0, self.upper)] * high

    def amounts(self, t: Array) -> Array:
        """What is limited: worst cases, RSS, and of yields the level that `_level` gives."""
        T = self.tolerances(t)
        std = T * self.ratio
        covariance = std[:, None] * self.correlation * std
        found = []
        for kind, k in self.wanted:
            g, H = self.slopes[k], self.curvatures[k]
            if kind == "worst case":
                found.append(jnp.sum(jnp.abs(g) * T))
            elif kind == "rss":
                found.append(jnp.sqrt(jnp.sum((g * T) ** 2) + 1e-300))
            else:
                bent = H @ covariance
                mean = self.values[k] + g @ (self.lean * (T - self.T0)) + jnp.trace(bent) / 2
                sigma = jnp.sqrt(g @ covariance @ g + jnp.trace(bent @ bent) / 2 + 1e-300)
                tails = [log_ndtr(side * (limit[k] - mean) / sigma) for side, limit in self.sides(k)]
                found.append(_level(logsumexp(jnp.stack(tails))))
        return jnp.stack(found)

    def constraints(self, t: Array) -> Array:
        """Logarithms of how much is needed over how much there is: not positive where all is well."""
        room = jnp.where(self.yields, _level(jnp.log(self.asked)), self.asked)
        sign = jnp.where(self.yields, -1.0, 1.0)
        low, high = jnp.log(self.bounds.T)
        return jnp.concatenate([sign * jnp.log(self.amounts(t) / room), low - t, t - high])


def _model(
    expansion: FirstOrder | SecondOrder, costs: Mapping[str, Cost], required: list[tuple[str, str, float]]
) -> _Model:
    first = expansion.first if isinstance(expansion, SecondOrder) else expansion
    study = first.study
    low, high = (np.asarray(x) for x in study.bounds)
    T0 = (high - low) / 2
    chosen = costed(costs, study)
    n, d = first.slopes.shape
    std = np.asarray(study.std)
    return _Model(
        slopes=jnp.asarray(first.slopes),
        values=jnp.asarray(first.values),
        T0=jnp.asarray(T0),
        ratio=jnp.asarray(std / T0),
        curvatures=jnp.asarray(expansion.curvatures if isinstance(expansion, SecondOrder) else np.zeros((n, d, d))),
        correlation=jnp.asarray(first.covariance / np.outer(std, std)),
        lower=study.lower,
        upper=study.upper,
        lean=jnp.asarray((np.asarray(study.mean) - np.asarray(study.nominal + study.each(lambda d: d.anchor))) / T0),
        costs=jnp.asarray([[c.factor, c.power] for c in costs.values()]),
        bounds=jnp.asarray(
            [[max(c.lower, 1e-9 * T0[i[0]]), min(c.upper, 1e9 * T0[i[0]])] for c, i in zip(costs.values(), chosen)]
        ),
        asked=jnp.asarray([1 - x if kind == "yield" else x for kind, _, x in required]),
        chosen=tuple(map(tuple, chosen)),
        wanted=tuple((kind, study.columns.index(name)) for kind, name, _ in required),
        limited=tuple((bool(np.isfinite(a)), bool(np.isfinite(b))) for a, b in zip(study.lower, study.upper)),
    )


@lasting
def _solve(model: _Model, rounds: int) -> tuple[Array, Array, Array]:
    """An augmented Lagrangian: each round minimizes the cost with the prices of the last."""
    import optimistix as optx  # here, as most do without

    solver = optx.BFGS(rtol=1e-10, atol=1e-10)

    def merit(t: Array, args: tuple[Array, float]) -> Array:
        prices, weight = args
        pressed = jnp.maximum(prices + weight * model.constraints(t), 0.0)
        return model.cost(t) + jnp.sum(pressed**2) / (2 * weight)

    def once(state: tuple[Array, Array], _: Any) -> tuple[tuple[Array, Array], None]:
        t, prices = state
        weight = 10.0
        t = optx.minimise(merit, solver, t, args=(prices, weight), max_steps=400, throw=False).value
        return (t, jnp.maximum(prices + weight * model.constraints(t), 0.0)), None

    # begin where all tolerances together, larger or smaller than now, just do
    n = len(model.wanted)
    here, low, high = jnp.log(model.before), *jnp.log(model.bounds.T)
    fits = lambda s: jnp.all(model.constraints(here + s)[:n] <= 0)
    halve = lambda _, s: jnp.where(
        fits((s[0] + s[1]) / 2), jnp.stack([sum(s) / 2, s[1]]), jnp.stack([s[0], sum(s) / 2])
    )
    start = jnp.clip(here + jax.lax.fori_loop(0, 60, halve, jnp.array([-30.0, 30.0]))[0], low, high)
    (t, prices), _ = jax.lax.scan(once, (start, jnp.zeros(n + 2 * len(model.chosen))), None, length=rounds)
    slope = jax.grad(lambda t: model.cost(t) + prices @ model.constraints(t))(t)
    return t, prices, jnp.max(jnp.abs(slope))
