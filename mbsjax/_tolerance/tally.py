"""Statistics that are gathered chunk by chunk, in memory that does not grow."""

from typing import Any

import numpy as np

from .._dynamics.outcome import CLASSES
from .._programs.reprs import brief
from .capability import Capability, Moments, indices
from .study import Study


_BINS = 480


class Sequences(dict):
    """For every sequence of contact events that was seen: how many samples went through it, and the first of them."""

    def add(self, sequence: np.ndarray, index: np.ndarray) -> None:
        for key, first, count in zip(*np.unique(sequence, return_index=True, return_counts=True)):
            seen, example = self.get(int(key), (0, int(index[first])))
            self[int(key)] = (seen + int(count), example)


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

    Statistics are of the finite values; rates are of all samples, a sample without a value counts as a reject.
    Standard errors come from the spread between independent groups of samples.
    """

    def __init__(self, study: Study, groups: int, independent: bool):
        m = len(study.columns)
        self.study, self.independent = study, independent
        self.origin = np.asarray(study.at_nominal.values)  # of the first chunk on, its own mean
        self.lower, self.upper = np.asarray(study.lower), np.asarray(study.upper)
        self.n = 0
        self.classes, self.examples = np.zeros(len(CLASSES), int), np.full(len(CLASSES), -1)
        self.sequences = Sequences()
        self.powers = np.zeros((groups, 5, m))  # sums of (value - nominal)^k, k = 0 ... 4
        self.least, self.largest = np.full(m, np.inf), np.full(m, -np.inf)
        self.tails = np.zeros((groups, 2, m))
        self.bad = np.zeros((groups, len(study.labels) + 1))
        self.drawn = np.zeros(groups)
        self.edges, self.bins = np.zeros((m, 0)), np.zeros((m, 0), int)

    def add(self, index: np.ndarray, group: np.ndarray, values: np.ndarray, kind: np.ndarray, sequence: np.ndarray):
        """One more chunk of samples."""
        self.n += len(index)
        self.classes += np.bincount(kind, minlength=len(CLASSES))
        for k in np.unique(kind[self.examples[kind] < 0]):
            self.examples[k] = index[np.argmax(kind == k)]
        self.sequences.add(sequence, index)

        order = np.argsort(group, kind="stable")
        values = values[order]
        present, starts = np.unique(group[order], return_index=True)
        total = lambda x: np.add.reduceat(x, starts, axis=0, dtype=float)
        there = np.isfinite(values)
        if self.n == len(index):
            known = there.sum(0)
            self.origin = np.where(known > 0, np.where(there, values, 0.0).sum(0) / np.maximum(known, 1), self.origin)
        away = np.where(there, values - self.origin, 0.0)
        power = there.astype(float)
        for k in range(5):
            self.powers[present, k] += total(power)
            power *= away
        self.least = np.minimum(self.least, np.where(there, values, np.inf).min(0))
        self.largest = np.maximum(self.largest, np.where(there, values, -np.inf).max(0))
        low, high = (values < self.lower) & there, (values > self.upper) & there
        self.tails[present, 0] += total(low)
        self.tails[present, 1] += total(high)
        wrong = low | high | ~there
        bad = np.stack([wrong[:, at].reshape(len(index), -1).any(1) for at in self.study.slices.values()], 1)
        self.bad[present] += total(np.concatenate([bad, bad.any(1, keepdims=True)], 1))
        self.drawn += np.bincount(group, minlength=len(self.drawn))
        self._fill(values, there)

    def _fill(self, values: np.ndarray, there: np.ndarray) -> None:
        if not self.edges.shape[1]:  # the first chunk tells how wide the histograms are to be
            std = np.nan_to_num(np.where(self.std > 0, self.std, 1.0), nan=1.0)
            middle = np.where(self.count > 0, self.mean, self.origin)
            self.edges = middle[:, None] + std[:, None] * np.linspace(-6.0, 6.0, _BINS + 1)
            self.bins = np.zeros((values.shape[1], _BINS + 2), int)
        low, high = self.edges[:, 0], self.edges[:, -1]
        place = np.floor((np.where(there, values, low) - low) * (_BINS / (high - low)))
        place = np.clip(place, -1, _BINS).astype(int) + 1 + (_BINS + 2) * np.arange(values.shape[1])
        self.bins += np.bincount(place[there], minlength=self.bins.size).reshape(self.bins.shape)

    @property
    def count(self) -> np.ndarray:
        return self.powers[:, 0].sum(0)

    def _raw(self) -> tuple[np.ndarray, ...]:
        sums = self.powers.sum(0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return tuple(sums[1:] / sums[0])

    @property
    def mean(self) -> np.ndarray:
        return self.origin + self._raw()[0]

    @property
    def std(self) -> np.ndarray:
        first, second = self._raw()[:2]
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.sqrt(np.maximum(second - first**2, 0.0) * self.count / (self.count - 1))

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
        four = self.moments
        with np.errstate(divide="ignore", invalid="ignore"):
            sigma = np.sqrt(np.maximum(b - a**2, 0.0))
            n = self.powers[:, 0]
            raw = self.powers[:, 1:] / np.where(n > 0, n, np.nan)[:, None]
            # how much a sample at z standard deviations moves each moment, averaged over a group
            z1 = (raw[:, 0] - a) / sigma
            z2 = (raw[:, 1] - 2 * a * raw[:, 0] + a**2) / sigma**2
            z3 = (raw[:, 2] - 3 * a * raw[:, 1] + 3 * a**2 * raw[:, 0] - a**3) / sigma**3
            z4 = (raw[:, 3] - 4 * a * raw[:, 2] + 6 * a**2 * raw[:, 1] - 4 * a**3 * raw[:, 0] + a**4) / sigma**4
            s, k = four.skewness, four.kurtosis
            moved = [z1 * sigma, (z2 - 1) * sigma / 2, z3 - s - 1.5 * s * (z2 - 1) - 3 * z1]
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
