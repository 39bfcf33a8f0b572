"""What the requirements of an allocation come to, by the study itself."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from .agreement import SAMPLED
from .allocation_model import PLANES, Model, Planes, Required
from .design_points import DesignPoint, placed
from .reliability import Reliability, assessed
from .study import Study
from .subset import Rare
from .taylor import FirstOrder
from .worst_case import worst_case


SURE = 3.0
"""Standard errors by which a yield must be better than required: it then is, but for one in 700 times."""


class Amount(NamedTuple):
    """What a requirement comes to (of a yield, the rejects) and its error; the same with what makes sure, over what is
    allowed; whether that can be trusted; and how it was found."""

    amount: float
    error: float
    ratio: float
    trusted: bool
    word: str

    @property
    def relative(self) -> float:
        """The error over the amount."""
        return self.error / self.amount if self.amount > 0 else 0.0


class Truth(NamedTuple):
    """What requirements come to with given tolerances."""

    first: FirstOrder
    required: Required
    samples: int
    seed: int

    def __call__(self, model: Model, t: np.ndarray, *, check: bool, again: int = 0) -> "Answer":
        """All of them; `again` is for other samples than before."""
        study, moved = self.first.study, self._with(model, t)
        kinds = {kind for kind, _, _ in self.required} if self.samples else set()
        found, nearby = None, None
        if "yield" in kinds:
            found, nearby = assessed(moved, self.samples, check=check, seed=self.seed + again)
        worst = worst_case(moved) if "worst case" in kinds else None
        every = []
        for (kind, name, x), y in zip(self.required, np.asarray(model.amounts(jnp.asarray(t)))):
            k = study.columns.index(name)
            if kind == "worst case" and worst is not None:
                middle = self.first.middle[k]
                ends = (middle - worst.lower[k], worst.basis_lower[k]), (worst.upper[k] - middle, worst.basis_upper[k])
                amount, basis = max(ends)
                every.append(Amount(amount, 0.0, amount / x, True, f"exact worst case, {basis}"))
            elif kind == "yield" and found is not None:
                every.append(_of_yield(found, name, x, check))
            else:
                y = np.exp(-(y**2) / 2) if kind == "yield" else y
                word = "normal model" if kind == "yield" else "expansion"
                every.append(Amount(float(y), 0.0, float(y / (1 - x if kind == "yield" else x)), True, word))
        return Answer(every, found, nearby)

    def _with(self, model: Model, t: np.ndarray) -> Study:
        """The study with other tolerances."""
        study, T = self.first.study, np.asarray(model.tolerances(jnp.asarray(t)))
        low, high = (np.asarray(x) for x in study.bounds)
        return study.moved(study.nominal, jnp.asarray(T / ((high - low) / 2)))

    def planes(self, model: Model, t: np.ndarray, answer: "Answer") -> Planes:
        """The limits of all yields at their design points, corrected so that rejects, and how they change with each
        tolerance, are those of the study."""
        T = np.asarray(model.tolerances(jnp.asarray(t)))
        planes = Planes.none(len(self.required), T, np.asarray(model.planes.anchors), np.asarray(t))
        if answer.found is None or answer.nearby is None:
            return planes
        moved = self._with(model, t)
        wanted = [(i, name) for i, (kind, name, _) in enumerate(self.required) if kind == "yield"]
        for i, name in wanted:
            for j, row in enumerate(_rows(moved, _points(answer.found, name))):
                for array, x in zip((planes.g, planes.x0, planes.c, planes.J), row):
                    array[i, j] = x
                planes.there[i, j] = True
        said = lambda t: np.asarray(planes.log_rejects(model.tolerances(jnp.asarray(t)), jnp.asarray(t)))
        here = answer.nearby(moved, _NEARBY)
        for k in range(len(t)):
            aside = np.where(np.arange(len(t)) == k, t - _ASIDE, t)
            there = answer.nearby(self._with(model, aside), _NEARBY)
            for i, name in wanted:
                p, q = float(here[name].probability), float(there[name].probability)
                if p > 0:
                    change = np.log(max(q / p, 1e-2)) - (said(aside) - said(t))[i]
                    chance = np.hypot(here[name].error, there[name].error) / p  # where planes may be right, they are
                    change = np.sign(change) * max(abs(change) - chance, 0.0)
                    planes.tilt[i, k] = np.clip(-change / _ASIDE, -60.0, 60.0)
        for i, _ in wanted:
            sure = answer.amounts[i].ratio * (1 - self.required[i][2])
            planes.factor[i] = np.exp(np.clip(np.log(max(sure, 1e-300)) - said(t)[i], -500, 500))
        return planes._replace(used=True)


_NEARBY = 4096  # samples that tell how rejects change with a tolerance,
_ASIDE = 0.05  # when its logarithm is so much less


class Answer(NamedTuple):
    """What requirements come to, and what there is to ask further."""

    amounts: list[Amount]
    found: Reliability | None
    nearby: Callable[[Study, int], dict[str, Rare]] | None


def _points(found: Reliability, name: str) -> list[DesignPoint]:
    every = [*found.of(name), *([] if found.no_value is None else [found.no_value])]
    points = [p for x in every for p in x.points if p.converged]
    return sorted(points, key=lambda p: p.beta)[:PLANES]


def _rows(study: Study, points: list[DesignPoint]) -> list[tuple[np.ndarray, ...]]:
    """A limit at its design points: the gradient of its distance in the scores lies along these."""
    if not points:
        return []
    rows = []
    x, J = placed(study, np.stack([p.scores for p in points]))
    for p, x0, slopes in zip(points, x, J):
        way = p.scores / p.beta if abs(p.beta) > 1e-9 else p.scores  # its length is 1; inward where beta is negative
        rows.append((np.linalg.lstsq(slopes.T, way, rcond=None)[0], x0, x0 - slopes @ p.scores, slopes))
    return rows


def _of_yield(found: Reliability, name: str, required: float, check: bool) -> Amount:
    mine, told = found.of(name), found.rejects[name]
    p, error = float(told.probability), float(told.error)
    trusted = all(bool(z.trusted) for z in mine)
    how = ", ".join(dict.fromkeys(z.method for z in mine)) + f", +-{error:.2g}"
    if found.no_value is not None and found.no_value.method != SAMPLED:
        how += f", without a value by {found.no_value.method}"
    how += "" if trusted or not check else ", NOT TRUSTED"
    return Amount(p, error, (p + SURE * error) / (1 - required), trusted, how)
