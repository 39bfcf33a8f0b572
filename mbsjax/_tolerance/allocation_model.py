"""What an allocation computes with: costs and requirements as functions of the tolerances, by an expansion at the mean
dimensions, or by planes at the design points of limits."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, logsumexp
from jaxtyping import Array

from .._programs.trees import lasting
from .cost import Cost, costed
from .taylor import FirstOrder, SecondOrder


PLANES = 16  # of one requirement
Required = list[tuple[str, str, float]]
"""Kind, name of the measure, and what is required of it."""


class Planes(NamedTuple):
    """Limits as planes at their design points, a row of them for each requirement: beyond the plane g (x - x0) = 0 is a
    reject. Dimensions near it are x = c + J u with independent normal scores u, and move with the tolerances about
    their anchors."""

    g: Any  # [requirements, planes, d]
    x0: Any
    c: Any
    J: Any  # [requirements, planes, d, d]
    there: Any  # [requirements, planes]
    tolerances: Any  # [d], with which these were found
    anchors: Any  # [d]
    factor: Any  # [requirements], what is found over what all planes say
    tilt: Any  # [requirements, costs], how that changes with the logarithms of the tolerances that are chosen,
    place: Any  # [costs], from here
    used: Any  # whether they are, or the expansion

    @staticmethod
    def none(requirements: int, T: np.ndarray, anchors: np.ndarray, place: np.ndarray) -> "Planes":
        d, wide = len(T), (requirements, PLANES)
        g, x0, c, J = (np.zeros((*wide, *shape)) for shape in ((d,), (d,), (d,), (d, d)))
        tilt = np.zeros((requirements, len(place)))
        return Planes(g, x0, c, J, np.zeros(wide, bool), T, anchors, np.ones(requirements), tilt, place, False)

    def log_rejects(self, T: Array, t: Array) -> Array:
        """Of each requirement, with other tolerances T, and the logarithms t of those that are chosen."""
        r = T / self.tolerances
        center = self.anchors + r * (self.c - self.anchors)
        spread = jnp.sum(self.J * (r * self.g)[..., None], -2)
        size = jnp.sqrt(jnp.sum(spread**2, -1) + 1e-300)
        beta = jnp.sum(self.g * (self.x0 - center), -1) / size
        tails = jnp.where(self.there, log_ndtr(-jnp.where(self.there, beta, 0.0)), -700.0)
        return logsumexp(tails, -1) + jnp.log(self.factor) + self.tilt @ (t - self.place)


@lasting
def excess(model: "Model", t: Array) -> Array:
    """How far each choice is from what is required, as the worst of all constraints has it."""
    return jax.vmap(lambda t: jnp.max(model.constraints(t)[: len(model.wanted)]))(t)


def _level(log_rejects: Array) -> Array:
    """Rejects on a scale that is near to that of standard deviations, and never runs out of numbers."""
    return jnp.sqrt(1e-12 - 2 * jnp.minimum(log_rejects, 0.0))


class Model(eqx.Module):
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
    planes: Planes
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
        beyond = _level(self.planes.log_rejects(T, t))
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
                expansion = _level(logsumexp(jnp.stack(tails)))
                found.append(jnp.where(self.planes.used, beyond[len(found)], expansion))
        return jnp.stack(found)

    def log_ratios(self, t: Array) -> Array:
        """Logarithms of what there is over what is asked for, of yields by their rejects."""
        amounts = self.amounts(t)
        rejects = -(amounts**2) / 2 - jnp.log(self.asked)
        return jnp.where(self.yields, rejects, jnp.log(amounts / self.asked))

    def constraints(self, t: Array) -> Array:
        """Logarithms of how much is needed over how much there is: not positive where all is well."""
        room = jnp.where(self.yields, _level(jnp.log(self.asked)), self.asked)
        sign = jnp.where(self.yields, -1.0, 1.0)
        low, high = jnp.log(self.bounds.T)
        return jnp.concatenate([sign * jnp.log(self.amounts(t) / room), low - t, t - high])


def model_of(expansion: FirstOrder | SecondOrder, costs: Mapping[str, Cost], required: Required) -> Model:
    first = expansion.first if isinstance(expansion, SecondOrder) else expansion
    study = first.study
    low, high = (np.asarray(x) for x in study.bounds)
    T0 = (high - low) / 2
    chosen = costed(costs, study)
    n, d = first.slopes.shape
    std, anchors = np.asarray(study.std), np.asarray(study.nominal + study.each(lambda d: d.anchor))
    return Model(
        slopes=jnp.asarray(first.slopes),
        values=jnp.asarray(first.values),
        T0=jnp.asarray(T0),
        ratio=jnp.asarray(std / T0),
        curvatures=jnp.asarray(expansion.curvatures if isinstance(expansion, SecondOrder) else np.zeros((n, d, d))),
        correlation=jnp.asarray(first.covariance / np.outer(std, std)),
        lower=study.lower,
        upper=study.upper,
        lean=jnp.asarray((np.asarray(study.mean) - anchors) / T0),
        costs=jnp.asarray([[c.factor, c.power] for c in costs.values()]),
        bounds=jnp.asarray(
            [[max(c.lower, 1e-9 * T0[i[0]]), min(c.upper, 1e9 * T0[i[0]])] for c, i in zip(costs.values(), chosen)]
        ),
        asked=jnp.asarray([1 - x if kind == "yield" else x for kind, _, x in required]),
        planes=as_arrays(Planes.none(len(required), T0, anchors, np.zeros(len(chosen)))),
        chosen=tuple(map(tuple, chosen)),
        wanted=tuple((kind, study.columns.index(name)) for kind, name, _ in required),
        limited=tuple((bool(np.isfinite(a)), bool(np.isfinite(b))) for a, b in zip(study.lower, study.upper)),
    )


def as_arrays(planes: Planes) -> Planes:
    return Planes(*map(jnp.asarray, planes))


@lasting
def solved(model: Model, rounds: int) -> tuple[Array, Array, Array]:
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
