"""Samples drawn wider than parts are made: what is rare is met there, whether or not something announces it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .study import Study
from .subset import Rare, Walk, values_at


SCALES = (1.5, 2.25, 3.4)  # a plane at nine deviations is met by one in 250 of the widest


class Wide(NamedTuple):
    """Samples whose scores have a standard deviation of `scale`, and their values."""

    scale: float
    u: np.ndarray
    values: np.ndarray


def widened(study: Study, n: int, rng: np.random.Generator, chunk: int) -> list[Wide]:
    """Samples of all scales."""
    drawn = [scale * rng.normal(size=(n, len(study.names))) for scale in SCALES]
    values = np.split(values_at(study, np.concatenate(drawn), chunk), len(SCALES))
    return [Wide(*each) for each in zip(SCALES, drawn, values)]


NAME, SLACK = "annealed sampling", 0.35


def annealed(
    study: Study,
    happens: Callable,
    samples: list[Wide],
    rng: np.random.Generator,
    chunk: int,
    *,
    moves: int = 4,
    groups: int = 8,
) -> Walk:
    """The probability of an event of which nothing is known but whether it happens: lock-ups, jams, jumps, limits that
    are flat here and steep there.

    Samples that meet it, of the narrowest spread in which enough do, are moved about where it happens (as in subset
    simulation), and weighed and drawn anew for a narrower spread, until that is the one of the parts (sequential
    importance sampling). The standard error comes from the spread between groups; in many dimensions it is often too
    small where too little is found, but not where too much is. `samples` are sorted by their scale, plain ones first;
    where enough of these meet the event, they do."""
    rates = [float(np.mean(happens(wide.values))) for wide in samples]
    n, d = samples[0].u.shape
    if not any(rates):
        return Walk(Rare(0.0, 1 / n, n), np.zeros((0, d)), NAME)
    if rates[0] >= 0.01:
        p = rates[0]
        return Walk(Rare(p, np.sqrt(p * (1 - p) / n), n), samples[0].u[happens(samples[0].values)], "plain sampling")
    start = next((i for i, rate in enumerate(rates) if rate >= 0.05), int(np.argmax(rates)))
    scale, u, values = samples[start]
    weight, taken, spread = happens(values).astype(float), 0, 0.6
    with np.errstate(divide="ignore"):
        log_p = np.log(weight.reshape(groups, -1).mean(1))
    u = _drawn(u, weight, groups, rng)
    while True:
        for _ in range(moves):
            trial = np.sqrt(1 - spread**2) * u + scale * spread * rng.normal(size=u.shape)
            accepted = happens(values_at(study, trial, chunk))
            u = np.where(accepted[:, None], trial, u)
            spread = float(np.clip(spread * np.exp(accepted.mean() - 0.44), 0.05, 1.0))
            taken += len(u)
        if scale <= 1:
            break
        scale, log_weight = _narrower(scale, u)
        with np.errstate(divide="ignore"):
            log_p = log_p + np.log(np.exp(log_weight).reshape(groups, -1).mean(1))
        u = _drawn(u, np.exp(log_weight - log_weight.max()), groups, rng)
    each = np.exp(log_p)
    estimate = Rare(each.mean(), max(each.std(ddof=1) / np.sqrt(groups), 1e-300), taken)
    return Walk(estimate, u, NAME, SLACK)


def part_of(whole: Walk, mine: np.ndarray) -> Walk:
    """What a walk to several events tells of one of them, which happens at so many of the places it arrived at."""
    share = float(np.mean(mine)) if len(mine) else 0.0
    p, error = whole.estimate.probability, whole.estimate.error
    estimate = Rare(np.nan, np.nan, whole.estimate.samples)  # too few to tell
    if share * len(mine) >= 16:
        few = 4 / (share * len(mine))  # samples of a walk depend on each other
        estimate = Rare(share * p, share * p * np.hypot(error / p, few**0.5), whole.estimate.samples)
    return whole._replace(estimate=estimate, arrived=whole.arrived[mine])


def _narrower(scale: float, u: np.ndarray, left: float = 0.5) -> tuple[float, np.ndarray]:
    """The next spread, not so narrow that less than a part of the samples would count; and the logarithms of what they
    count for."""
    square = (u**2).sum(1)

    def log_weight(to: float) -> np.ndarray:
        return u.shape[1] * np.log(scale / to) - (1 / to**2 - 1 / scale**2) * square / 2

    def counting(to: float) -> float:
        w = np.exp(log_weight(to) - log_weight(to).max())
        return float(w.sum() ** 2 / (w**2).sum() / len(w))

    low, high = 1.0, scale
    if counting(low) >= left:
        return low, log_weight(low)
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if counting(middle) >= left else (middle, high)
    return high, log_weight(high)


def _drawn(u: np.ndarray, weight: np.ndarray, groups: int, rng: np.random.Generator) -> np.ndarray:
    """As many samples as before by their weights, of each group its own; a group that has none takes from all."""
    size = len(u) // groups
    rows = []
    for own in np.arange(len(u)).reshape(groups, size):
        own = own if weight[own].any() else np.arange(len(u))
        part = np.cumsum(weight[own]) / weight[own].sum()
        rows.append(own[np.searchsorted(part, (np.arange(size) + rng.random()) / size).clip(max=len(own) - 1)])
    return u[np.concatenate(rows)]
