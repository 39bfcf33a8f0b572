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
from .study import Study
from .taylor import FirstOrder, SecondOrder


class Cost(NamedTuple):
    """What a tolerance +-T costs: fixed + factor / T^power. T stays between `lower` and `upper`.

    !!! Example

        >>> Cost(1.0, 0.5, power=2.0).of(0.5)
        3.0
    """

    fixed: float
    factor: float
    power: float = 1.0
    lower: float = 0.0
    upper: float = float("inf")

    def of(self, T: Any) -> Any:
        return self.fixed + self.factor / T**self.power


class Allocation(NamedTuple):
    """Tolerances that cost least.

    - `tolerances`: T of each contributor, by name: half the width between its limits, which keep their middle (those of
        a one-sided distribution their lower end); `cost`: of all of them.
    - `met`: of each measure that is required, by name, what it comes to: worst case, RSS or yield.
    - `active`: what stands in the way of a lower cost, by name, with its price: how fast the logarithm of the cost
        falls when the logarithm of this bound is relaxed.
    - `converged`: whether all requirements are met, to 1e-6, by tolerances that can be had, and no others near are
        cheaper.
    """

    tolerances: dict[str, float]
    cost: float
    met: dict[str, float]
    active: dict[str, float]
    converged: bool

    def __repr__(self) -> str:
        wide = max(map(len, self.tolerances))
        lines = [f"Allocation, cost {self.cost:.7g}" + ("" if self.converged else " (not converged: can it be met?)")]
        lines += [f"  {name:{wide}}  +-{T:.7g}" for name, T in self.tolerances.items()]
        lines += [f"  {name}: {x:.7g}" for name, x in self.met.items()]
        lines += [f"  held by {name} (price {x:.4g})" for name, x in self.active.items()]
        return "\n".join(lines)


def allocate(
    expansion: FirstOrder | SecondOrder,
    costs: Mapping[str, Cost],
    *,
    worst_case: Mapping[str, float] | None = None,
    rss: Mapping[str, float] | None = None,
    good: Mapping[str, float] | None = None,
    rounds: int = 30,
) -> Allocation:
    """Chooses tolerances +-T that cost least while measures keep what is required of them.

    Minimized in the logarithms of T by BFGS (optimistix) with an augmented Lagrangian. Standard deviations grow and
    shrink with the tolerances, as the distributions of the study have it. Contributors without a cost stay as they are.

    **Arguments:**

    - `expansion`: what [`mbsjax.first_order`][] or [`mbsjax.second_order`][] found; with the latter, the shift of the
        mean and the curvature's part in the variance count towards the yield.
    - `costs`: by name of the contributor, an [`mbsjax.Cost`][].
    - `worst_case`, `rss`: by name of the measure, how far it may go from its middle.
    - `good`: by name of the measure, the yield that its limits must leave.

    !!! Example

        >>> import mbsjax as mbs
        >>> stack = mbs.Study(lambda p: p, {"a": 10.0, "b": 20.0}, {"a": 0.1, "b": 0.1},
        ...                   {"sum": lambda p: p["a"] + p["b"]})
        >>> cheap = mbs.allocate(mbs.first_order(stack), {"a": mbs.Cost(0.0, 1.0), "b": mbs.Cost(0.0, 4.0)},
        ...                      worst_case={"sum": 0.3})
        >>> {name: round(T, 6) for name, T in cheap.tolerances.items()}, list(cheap.active)
        ({'a': 0.1, 'b': 0.2}, ['worst case of sum'])
    """
    study = (expansion.first if isinstance(expansion, SecondOrder) else expansion).study
    check_costs(costs, study.names)
    given = {"worst case": worst_case or {}, "rss": rss or {}, "yield": good or {}}
    required = [(kind, name, float(x)) for kind, each in given.items() for name, x in each.items()]
    if not required or not costs:
        raise ValueError("an allocation needs costs, and at least one requirement")
    _check_requirements(study, required)
    model = _model(expansion, costs, required)
    t, prices, slope = _solve(model, rounds)
    return _allocation(study, costs, required, model, t, prices, slope)


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


def _allocation(
    study: Study,
    costs: Mapping[str, Cost],
    required: list[tuple[str, str, float]],
    model: "_Model",
    t: Array,
    prices: Array,
    slope: Array,
) -> Allocation:
    """The allocation that the logarithms t of the chosen tolerances stand for."""
    T, over, amounts = (np.asarray(x) for x in (model.tolerances(t), model.constraints(t), model.amounts(t)))
    names = [f"{kind} of {name}" for kind, name, _ in required]
    names += [f"lower bound of {n}" for n in costs] + [f"upper bound of {n}" for n in costs]
    active = {name: float(p) for name, p in zip(names, prices) if p > 1e-6}
    met = {
        f"{kind} of {name}": float(-np.expm1(-(x**2) / 2) if kind == "yield" else x)
        for (kind, name, _), x in zip(required, amounts)
    }
    total = sum(c.of(T[i]) for c, i in zip(costs.values(), model.chosen))
    found = dict(zip(study.names, T.tolist()))
    return Allocation(found, float(total), met, active, bool(np.all(over < 1e-6) and slope < 1e-4))


def check_costs(costs: Mapping[str, Cost], names: tuple[str, ...]) -> None:
    for name, c in costs.items():
        if name not in names:
            raise ValueError(f"there is no contributor {name!r} to cost; they are {', '.join(names)}")
        if not (c.factor > 0 and c.power > 0 and 0 <= c.lower < c.upper):
            raise ValueError(f"the cost of {name!r} needs a positive factor and power, and lower < upper: {c}")


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
    chosen: tuple[int, ...] = eqx.field(static=True)
    wanted: tuple[tuple[str, int, float], ...] = eqx.field(static=True)
    limited: tuple[tuple[bool, bool], ...] = eqx.field(static=True)

    def tolerances(self, t: Array) -> Array:
        return self.T0.at[np.array(self.chosen)].set(jnp.exp(t))

    def cost(self, t: Array) -> Array:
        """The logarithm of what the choice costs; what is fixed does not matter."""
        factor, power = self.costs.T
        return logsumexp(jnp.log(factor) - power * t)

    def sides(self, k: int) -> list[tuple[float, Array]]:
        """The limits that there are."""
        low, high = self.limited[k]
        return [(1.0, self.lower)] * low + [(-1.0, self.upper)] * high

    def amounts(self, t: Array) -> Array:
        """What is limited: worst cases, RSS, and of yields the level that `_level` gives, negative."""
        T = self.tolerances(t)
        std = T * self.ratio
        covariance = std[:, None] * self.correlation * std
        found = []
        for kind, k, _ in self.wanted:
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
                found.append(-_level(logsumexp(jnp.stack(tails))))
        return jnp.stack(found)

    def constraints(self, t: Array) -> Array:
        """Logarithms of how much is needed over how much there is: not positive where all is well."""
        room = [-_level(jnp.log1p(-x)) if kind == "yield" else jnp.asarray(x) for kind, _, x in self.wanted]
        sign = jnp.asarray([-1.0 if kind == "yield" else 1.0 for kind, _, _ in self.wanted])
        low, high = jnp.log(self.bounds.T)
        return jnp.concatenate([sign * jnp.log(self.amounts(t) / jnp.stack(room)), low - t, t - high])


def _model(
    expansion: FirstOrder | SecondOrder, costs: Mapping[str, Cost], required: list[tuple[str, str, float]]
) -> _Model:
    first = expansion.first if isinstance(expansion, SecondOrder) else expansion
    study = first.study
    low, high = (np.asarray(x) for x in study.bounds)
    T0 = (high - low) / 2
    chosen = [study.names.index(name) for name in costs]
    n, d = first.slopes.shape
    return _Model(
        slopes=jnp.asarray(first.slopes),
        values=jnp.asarray(first.values),
        T0=jnp.asarray(T0),
        ratio=jnp.asarray(np.asarray(study.std) / T0),
        curvatures=jnp.asarray(expansion.curvatures if isinstance(expansion, SecondOrder) else np.zeros((n, d, d))),
        correlation=jnp.asarray(first.covariance / np.outer(study.std, study.std)),
        lower=study.lower,
        upper=study.upper,
        lean=jnp.asarray((np.asarray(study.mean) - np.asarray(study.nominal + study.each(lambda d: d.anchor))) / T0),
        costs=jnp.asarray([c[1:3] for c in costs.values()]),
        bounds=jnp.asarray(
            [[max(c.lower, 1e-9 * T), min(c.upper, 1e9 * T)] for c, T in zip(costs.values(), T0[chosen])]
        ),
        chosen=tuple(chosen),
        wanted=tuple((kind, study.columns.index(name), x) for kind, name, x in required),
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
    here, low, high = jnp.log(model.T0[np.array(model.chosen)]), *jnp.log(model.bounds.T)
    fits = lambda s: jnp.all(model.constraints(here + s)[:n] <= 0)
    halve = lambda _, s: jnp.where(
        fits((s[0] + s[1]) / 2), jnp.stack([sum(s) / 2, s[1]]), jnp.stack([s[0], sum(s) / 2])
    )
    start = jnp.clip(here + jax.lax.fori_loop(0, 60, halve, jnp.array([-30.0, 30.0]))[0], low, high)
    (t, prices), _ = jax.lax.scan(once, (start, jnp.zeros(n + 2 * len(model.chosen))), None, length=rounds)
    slope = jax.grad(lambda t: model.cost(t) + prices @ model.constraints(t))(t)
    return t, prices, jnp.max(jnp.abs(slope))
