"""What tolerances cost: a formula, or a catalogue of processes."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import numpy as np

from .._programs.custom_types import Given, Number
from .._programs.modules import AbstractModule
from .._programs.precision import plain_number
from .._programs.reprs import by_fields
from .study import Study


class Cost(AbstractModule):
    """What a tolerance +-T costs: fixed + factor / T^power. T stays between `lower` and `upper`.

    !!! Example

        >>> Cost(1.0, 0.5, power=2.0).of(0.5)
        3.0
    """

    fixed: float = eqx.field(static=True)
    factor: float = eqx.field(static=True)
    power: float = eqx.field(static=True)
    lower: float = eqx.field(static=True)
    upper: float = eqx.field(static=True)

    def __init__(
        self,
        fixed: Number,
        factor: Number,
        power: Number = 1.0,
        lower: Number = 0.0,
        upper: Number = float("inf"),
    ):
        self.fixed = plain_number(fixed, "the fixed part of a cost")
        self.factor = plain_number(factor, "the factor of a cost", above=0.0)
        self.power = plain_number(power, "the power of a cost", above=0.0)
        self.lower = plain_number(lower, "the lower bound of a cost", least=0.0)
        self.upper = float("inf") if upper == float("inf") else plain_number(upper, "the upper bound of a cost")
        if not self.lower < self.upper:
            raise ValueError(f"the bounds of a cost must have 0 <= lower < upper, got {lower!r}, {upper!r}")

    def of(self, T: Any) -> Any:
        return self.fixed + self.factor / T**self.power

    __repr__ = by_fields


class Catalogue(AbstractModule):
    """The processes that a dimension can be made by: by name, the tolerance +-T that each of them holds, and what it
    costs.

    !!! Example

        >>> Catalogue({"turned": (0.1, 2.0), "ground": (0.02, 5.0)}).of("ground")
        5.0
    """

    names: tuple[str, ...] = eqx.field(static=True)
    tolerances: tuple[float, ...] = eqx.field(static=True)
    costs: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, processes: Mapping[str, Given[tuple[Number, Number]]]):
        if not processes:
            raise ValueError("a catalogue needs at least one process")
        for name, pair in processes.items():
            if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
                raise ValueError(f"the process {name!r} of a catalogue needs (tolerance > 0, cost), got {pair!r}")
            plain_number(pair[0], f"the tolerance of the process {name!r} of a catalogue", above=0.0)
            plain_number(pair[1], f"the cost of the process {name!r} of a catalogue", least=0.0)
        self.names = tuple(processes)
        self.tolerances, self.costs = (tuple(float(x) for x in column) for column in zip(*processes.values()))

    def of(self, process: str) -> float:
        return self.costs[self.names.index(process)]

    __repr__ = by_fields


def costed(costs: Mapping[str, Any], study: Study, kinds: tuple[type, ...] = (Cost,)) -> list[list[int]]:
    """Which numbers of a study each cost is of: one, or all of an array, which share their tolerance. Costs must be of
    contributors, and of one kind."""
    starts = np.concatenate([[0], np.cumsum(study.counts)])
    places = {key: list(range(a, b)) for key, a, b in zip(study.choice.keys, starts, starts[1:])}
    for name, c in costs.items():
        if name not in places:
            alone = name in study.names
            why = "shares its tolerance with the rest of its array" if alone else "is no contributor"
            raise ValueError(f"{name!r}, which has a cost, {why}; there are {', '.join(places)}")
        if not isinstance(c, kinds):
            wanted = " or a ".join(k.__name__ for k in kinds)
            raise ValueError(f"the cost of {name!r} must be a {wanted}, got {c!r}")
    if len({type(c) for c in costs.values()}) > 1:
        raise ValueError("costs must be all of them a Cost, or all of them a Catalogue")
    return [places[name] for name in costs]
