"""Statistics that are gathered chunk by chunk, in memory that does not grow."""

from typing import Any, NamedTuple

import numpy as np

from .._dynamics.outcome import CLASSES
from .._programs.reprs import brief, by_fields
from .capability import Capability, Moments, indices
from .sampler import AbstractSampler, Random
from .statistics import BINS, REACH, WORST, Scale, Statistics, frame_of
from .study import Study


_POINTS = 512


def known(study: Study, name: str) -> str:
    """The name of a measure, or an error that tells which there are."""
    if name not in study.labels:
        raise ValueError(f"there is no measure {name!r}; there are {', '.join(study.labels)}")
    return name


class Sequences(dict):
    """For every sequence of contact events that was seen: how many samples went through it, and the first of them."""

    def add(self, sequences: np.ndarray, counts: np.ndarray, examples: np.ndarray) -> None:
        for key, count, first in zip(sequences.tolist(), counts.tolist(), examples.tolist()):
            seen, example = self.get(key, (0, first))
            self[key] = (seen + count, example)


class CompensatedSum:
    """A sum of arrays and of what was lost in rounding (Knuth's two-sum)."""

    def __init__(self, shape: tuple[int, ...]):
        self.total, self.lost = np.zeros(shape), np.zeros(shape)

    def add(self, x: np.ndarray) -> None:
        total = self.total + x
        taken = total - self.total
        self.lost += (self.total - (total - taken)) + (x - taken)
        self.total = total

    @property
    def value(self) -> np.ndarray:
        return self.total + self.lost


class Regression(NamedTuple):
    """Slopes of a measure from samples, their standard errors, the part of its variance that they explain, and how many
    samples they come from."""

    slopes: np.ndarray
    errors: np.ndarray
    explained: float
    samples: int

    __repr__ = by_fields


class Convergence(NamedTuple):
    """The yield over the samples so far, and its standard error: after `n` samples each."""

    n: np.ndarray
    part: np.ndarray
    error: np.ndarray

    __repr__ = by_fields


class Tally:
    """Running statistics of a sampled study.

    - `n`: samples so far; `classes`: how many of each of [`mbsjax.CLASSES`][]; `examples`: the number of the first
        sample of each; `sequences`: by a number that stands for a sequence of contact events, how many, and the first.
    - `count`: how many finite values; `least`, `largest`.
    - `mean`, `std`, `moments`, and their standard `errors`; `quantile(p)`.
    - `capability`: Pp and Ppk of the samples that have a value (the survivors, where some have none), and the parts of
        all samples below and above the limits; `rejects`: of each measure, the part of the samples that have a value
        out of its limits, or none.
    - `edges`, `bins`: a histogram of each value, with the ends open.
    - `convergence`: how the yield and its standard error have come about, an [`mbsjax.Convergence`][].
    - `regression(name)`: slopes of a measure in all dimensions, an [`mbsjax.Regression`][].

    Statistics are of the finite values; rates are of all samples, a sample without a value counts as a reject.
    Standard errors come from the spread between independent groups of samples.
    """

    def __init__(self, study: Study, plan: AbstractSampler, scale: Scale):
        m, groups, names = len(study.columns), plan.groups, len(study.names)
        self.study, self.independent, self.scale = study, isinstance(plan, Random), scale
        self.lower, self.upper = np.asarray(study.lower), np.asarray(study.upper)
        self.n = 0
        self.classes, self.examples = np.zeros(len(CLASSES), int), np.full(len(CLASSES), -1)
        self.sequences = Sequences()
        self._powers = CompensatedSum((groups, 5, m))
        self._products = CompensatedSum((2, study.sizes.count(0), names + 2, names + 2))
        self.least, self.largest = np.full(m, np.inf), np.full(m, -np.inf)
        self.tails = np.zeros((groups, 2, m), int)
        self.bad = np.zeros((groups, len(study.labels) + 1), int)
        self.drawn = np.zeros(groups, int)
        self.bins = np.zeros((m, BINS + 2), int)
        measures = len(study.labels)
        self.margins, self.numbers = np.zeros((measures, 0)), np.zeros((measures, 0), int)
        self.worst_values = np.zeros((measures, 0, m))
        self._points, self._every, self._merged = [], 1, 0

    def merge(self, chunk: Statistics) -> None:
        """The samples of one more chunk. Chunks are merged in the order of their numbers: results then depend neither
        on who made them nor on when."""
        self.n += chunk.n
        self.classes += chunk.classes
        self.examples = np.where(self.examples < 0, chunk.examples, self.examples)
        self.sequences.add(chunk.sequences, chunk.of_sequence, chunk.first_of_sequence)
        self._powers.add(chunk.powers)
        self._products.add(chunk.products)
        self.least, self.largest = np.minimum(self.least, chunk.least), np.maximum(self.largest, chunk.largest)
        self.tails += chunk.tails
        self.bad += chunk.rejects
        self.drawn += chunk.drawn
        self.bins += chunk.bins
        both = np.concatenate([self.margins, chunk.margins], 1)
        order = np.argsort(both, axis=1, kind="stable")[:, :WORST]  # of the same margin, the earlier samples first
        self.margins = np.take_along_axis(both, order, 1)
        self.numbers = np.take_along_axis(np.concatenate([self.numbers, chunk.numbers], 1), order, 1)
        values = np.concatenate([self.worst_values, chunk.values], 1)
        self.worst_values = np.take_along_axis(values, order[..., None], 1)
        self._merged += 1
        if self._merged % self._every == 0:
            self._points.append(self._yield())
            if len(self._points) > _POINTS:
                self._points, self._every = self._points[1::2], 2 * self._every

    def _yield(self) -> tuple[int, float, float]:
        p, error = self.rejects[""]
        return self.n, 1 - p, error

    @property
    def convergence(self) -> Convergence:
        """The yield after each chunk, or each second, fourth, ... where there are many; and now."""
        points = self._points + ([self._yield()] if self._merged % self._every else [])
        return Convergence(*(np.array(x) for x in zip(*points)))

    @property
    def origin(self) -> np.ndarray:
        return self.scale.origin

    @property
    def powers(self) -> np.ndarray:
        """By group: the sums of z^k, k = 0 ... 4, where z is the distance from the origin of the scale in its unit."""
        return self._powers.value

    @property
    def edges(self) -> np.ndarray:
        return self.origin[:, None] + self.scale.width[:, None] * np.linspace(-REACH, REACH, BINS + 1)

    def regression(self, name: str) -> Regression:
        """Slopes of a measure in all dimensions, as the samples have it: where derivatives at the mean dimensions do
        not tell the whole, or are not to be had. From the samples that go through the nominal sequence of contacts, or,
        where these are too few, from all that have a value."""
        study, d = self.study, len(self.study.names)
        at = study.slices[known(study, name)]
        if isinstance(at, slice):
            raise ValueError(f"the measure {name!r} is a row of numbers, not one")
        single = [label for label, size in zip(study.labels, study.sizes) if not size]
        products = self._products.value[:, single.index(name)]
        own = products[0] if products[0, 0, 0] >= 4 * d else products[1]
        n = round(own[0, 0])
        if n < 2 * d:
            raise ValueError(f"{n} samples with a value of {name!r} are too few for {d} dimensions")
        mean = own[0, 1:] / n
        covariance = own[1:, 1:] / n - np.outer(mean, mean)
        inverse, common = np.linalg.pinv(covariance[:-1, :-1], hermitian=True), covariance[:-1, -1]
        total = covariance[-1, -1]
        slopes = inverse @ common
        left = max(total - slopes @ common, 0.0)
        errors = np.sqrt(np.diag(inverse) * left / max(n - d - 1, 1))
        unit = self.scale.width[at] * frame_of(study, self.scale).per_std
        return Regression(slopes * unit, errors * unit, float(1 - left / total) if total > 0 else 1.0, n)

    @property
    def count(self) -> np.ndarray:
        return self.powers[:, 0].sum(0)

    def _raw(self) -> tuple[np.ndarray, ...]:
        sums = self.powers.sum(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return tuple(sums[1:] / sums[0])

    @property
    def mean(self) -> np.ndarray:
        return self.origin + self.scale.width * self._raw()[0]

    @property
    def std(self) -> np.ndarray:
        first, second = self._raw()[:2]
        with np.errstate(divide="ignore", invalid="ignore"):
            square = np.maximum(second - first**2, 0.0) * self.count / (self.count - 1)
            return self.scale.width * np.sqrt(square)

    @property
    def moments(self) -> Moments:
        a, b, c, d = self._raw()
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.maximum(b - a**2, 0.0)
            third, fourth = c - 3 * a * b + 2 * a**3, d - 4 * a * c + 6 * a**2 * b - 3 * a**4
            return Moments(self.mean, self.std, third / variance**1.5, fourth / variance**2)

    @property
    def errors(self) -> Moments:
        """The standard errors of the moments."""
        a, b, _, _ = self._raw()
        four, unit, powers = self.moments, self.scale.width, self.powers
        with np.errstate(divide="ignore", invalid="ignore"):
            sigma = np.sqrt(np.maximum(b - a**2, 0.0))
            n = powers[:, 0]
            raw = powers[:, 1:] / np.where(n > 0, n, np.nan)[:, None]
            # how much a sample at z standard deviations moves each moment, averaged over a group
            z1 = (raw[:, 0] - a) / sigma
            z2 = (raw[:, 1] - 2 * a * raw[:, 0] + a**2) / sigma**2
            z3 = (raw[:, 2] - 3 * a * raw[:, 1] + 3 * a**2 * raw[:, 0] - a**3) / sigma**3
            z4 = (raw[:, 3] - 4 * a * raw[:, 2] + 6 * a**2 * raw[:, 1] - 4 * a**3 * raw[:, 0] + a**4) / sigma**4
            s, k = four.skewness, four.kurtosis
            moved = [z1 * sigma * unit, (z2 - 1) * sigma * unit / 2, z3 - s - 1.5 * s * (z2 - 1) - 3 * z1]
            moved.append(z4 - k - 2 * k * (z2 - 1) - 4 * s * z1)
            return Moments(*(self._error(x, n) for x in moved))

    def _error(self, means: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Of a mean, from the means of the groups."""
        weights = np.broadcast_to(
            np.reshape(weights, (len(means), *[1] * (means.ndim - weights.ndim), *weights.shape[1:])), means.shape
        )
        there = weights > 0
        used = there.sum(0)
        part = np.where(there, weights, 0.0) / np.maximum(weights.sum(0), 1e-300)
        middle = np.sum(part * np.where(there, means, 0.0), 0)
        square = np.sum(part**2 * np.where(there, means - middle, 0.0) ** 2, 0)
        return np.where(used > 1, np.sqrt(square * used / np.maximum(used - 1, 1)), np.nan)

    def rate(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A part of all samples and its standard error, from how many there were in each group."""
        p = counts.sum(0) / max(self.n, 1)
        if self.independent:
            error = np.sqrt(p * (1 - p) / max(self.n, 1))
        else:
            drawn = np.where(self.drawn > 0, self.drawn, np.nan)
            error = self._error(counts / drawn.reshape(-1, *[1] * (counts.ndim - 1)), self.drawn)
        return p, np.fmax(error, 1.0 / max(self.n, 1))  # what was never seen is not impossible

    @property
    def capability(self) -> Capability:
        """Pp and Ppk from the moments, which are those of the survivors, the samples that have a value; and the parts
        of all samples that have a value out of limits. What has no value is counted in `rejects` alone."""
        below, above = self.rate(self.tails)[0]
        return Capability(*indices(self.moments, self.lower, self.upper), below, above)

    @property
    def rejects(self) -> dict[str, tuple[float, float]]:
        """Of each measure, the part of the samples that leave its limits (along a stroke: anywhere) or have no value,
        with its standard error; `""` stands for all measures together."""
        p, error = self.rate(self.bad)
        return {name: (float(x), float(e)) for name, x, e in zip([*self.study.slices, ""], p, error)}

    @property
    def kinds(self) -> dict[str, tuple[float, float, int]]:
        """Of each class that was seen: the part of the samples, its standard error, and the number of the first."""
        p = self.classes / max(self.n, 1)
        error = np.maximum(np.sqrt(p * (1 - p) / max(self.n, 1)), 1 / max(self.n, 1))
        return {CLASSES[k]: (float(p[k]), float(error[k]), int(self.examples[k])) for k in np.flatnonzero(self.classes)}

    @property
    def changed(self) -> tuple[float, float]:
        """The probability that a sample fails, or does not go through the nominal sequence of contact events on the
        nominal branch, and its standard error."""
        as_nominal = self.classes[CLASSES.index("as nominal")] + self.classes[CLASSES.index("no value")]
        p = 1 - float(as_nominal) / max(self.n, 1)
        return p, max(float(np.sqrt(p * (1 - p) / max(self.n, 1))), 1 / max(self.n, 1))

    def quantile(self, p: Any) -> np.ndarray:
        """Quantiles of all values from their histograms: one row for each p."""
        p = np.atleast_1d(np.asarray(p, float))
        found = np.full((len(p), len(self.origin)), np.nan)
        for k, (edges, bins) in enumerate(zip(self.edges, self.bins)):
            if bins.sum():
                ends = np.concatenate([[min(self.least[k], edges[0])], edges, [max(self.largest[k], edges[-1])]])
                found[:, k] = np.interp(p, np.concatenate([[0], np.cumsum(bins)]) / bins.sum(), ends)
        return np.clip(found, self.least, self.largest)

    def __repr__(self) -> str:
        classes = {CLASSES[k]: int(self.classes[k]) for k in np.flatnonzero(self.classes)}
        statistics = {"mean": self.mean, "std": self.std} if self.n else {}
        return brief(self, n=self.n, classes=classes, **statistics)
