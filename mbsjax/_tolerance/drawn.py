"""What there is to ask of samples, kept in memory or in a store."""

import abc
import operator
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._dynamics.outcome import runs
from .._dynamics.solution import Solution
from .._kinematics.motion import Motion
from .._pictures.viewer.view import view
from .._programs.reprs import by_fields
from .._programs.trees import lasting
from .evaluate import DrawnDimensions
from .sampler import AbstractSampler, counts
from .statistics import WORST
from .study import Study
from .tally import Convergence, Regression, Tally, known


class WorstSample(NamedTuple):
    """One of the worst samples.

    - `number`: of the sample; `measure`: by which it is one.
    - `margin`: the distance of its value to the nearest limit, along a row the smallest, in standard deviations;
        negative beyond the limit. Of a measure without limits, minus the distance from the mean.
    - `values`: of all measures, `dimensions`: of all dimensions, by name.
    """

    number: int
    measure: str
    margin: float
    values: dict[str, Any]
    dimensions: dict[str, float]

    __repr__ = by_fields


class AbstractDrawn(eqx.Module):
    """Samples of a study, by their numbers."""

    study: eqx.AbstractVar[Study]
    sampler: eqx.AbstractVar[AbstractSampler]
    tally: eqx.AbstractVar[Tally]

    @property
    @abc.abstractmethod
    def numbers(self) -> range:
        """Of the samples that there are."""

    @abc.abstractmethod
    def quantile(self, name: str, p: Any) -> np.ndarray:
        """Quantiles of the finite values of a measure."""

    def quantiles(self, p: Any) -> dict[str, np.ndarray]:
        """Quantiles of the finite values of all measures, by name."""
        return {name: self.quantile(name, p) for name in self.study.labels}

    @property
    def convergence(self) -> Convergence:
        """How the yield and its standard error have come about, an [`mbsjax.Convergence`][]."""
        return self.tally.convergence

    def regression(self, name: str) -> Regression:
        """Slopes of a measure in all dimensions, as the samples have it: where derivatives at the mean dimensions do
        not tell the whole, or are not to be had. From the samples that go through the nominal sequence of contacts, or,
        where these are too few, from all that have a value."""
        return self.tally.regression(name)

    def drawn(self, numbers: Any) -> np.ndarray:
        """The dimensions of samples, by their numbers among all: they are made anew, not stored."""
        return np.asarray(_each(DrawnDimensions(self.study, self.sampler), jnp.asarray(numbers)))

    def worst(self, count: int = 10, measure: str | None = None) -> list[WorstSample]:
        """The samples that come closest to a limit of a measure or are farthest beyond it, worst first: at most 32,
        each an [`mbsjax.WorstSample`][]. By default by all measures that have limits, or, where none has, by all.
        Samples without a value are not among them: see the examples of their classes."""
        (count,) = counts(samples=count)
        if count > WORST:
            raise ValueError(f"the {WORST} worst samples are known, not {count}")
        study, tally = self.study, self.tally
        limited = np.isfinite(tally.lower) | np.isfinite(tally.upper)
        names = [name for name, at in study.slices.items() if np.any(limited[at])] or list(study.labels)
        found: dict[int, tuple[float, int, int]] = {}
        for k in map(study.labels.index, names if measure is None else [known(study, measure)]):
            for place in np.flatnonzero(tally.numbers[k] >= 0):
                number, margin = int(tally.numbers[k, place]), float(tally.margins[k, place])
                if number not in found or margin < found[number][0]:
                    found[number] = margin, k, int(place)
        order = sorted(found, key=lambda number: (found[number][0], number))[:count]
        dimensions = self.drawn(order) if order else []
        entries = []
        for number, x in zip(order, dimensions):
            margin, k, place = found[number]
            values = {name: tally.worst_values[k, place, at] for name, at in study.slices.items()}
            entries.append(WorstSample(number, study.labels[k], margin, values, dict(zip(study.names, x.tolist()))))
        return entries

    def outcome(self, number: int) -> Any:
        """What the model gives for a sample: to look at an example."""
        if operator.index(number) not in self.numbers:
            raise ValueError(f"there is no sample {number}, but {self.numbers.start} to {self.numbers.stop - 1}")
        return self.study.outcome(jnp.asarray(self.drawn([number])[0]))

    def view(self, number: int, path: Any) -> pathlib.Path:
        """Simulates a sample again, and writes a page that plays it, with the outlines of the nominal mechanism: see
        [`mbsjax.view`][]."""
        both = self.outcome(number), self.study.outcome(self.study.nominal)
        own, nominal = ([run for run in runs(x) if isinstance(run, Motion | Solution)] for x in both)
        if not own:
            raise ValueError("a sample can be seen where the model of the study gives a Motion or a Solution")
        return view(own[0], variants=nominal[:1], title=f"Sample {number}").save(path)


@lasting
def _each(f: Callable, index: Array) -> Array:
    return jax.vmap(f)(index)
