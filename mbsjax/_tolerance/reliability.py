"""Probabilities of breaking limits, from a few per cent to a few in a billion, each found in independent ways."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import equinox as eqx
import numpy as np

from .._programs.reprs import brief, has_numbers, head
from .agreement import SAMPLED, Judged, confirmed, judged, referee
from .design_points import DesignPoint, Found, Limit, design_points, limits_of, search, spread
from .evaluate import CHUNK
from .failures import lost, nearest_failures
from .importance import Event, centers_of, mixed
from .sampler import counts
from .sorm import sorm
from .study import Study
from .subset import Rare, Walk, subset, values_at
from .widened import Wide, annealed, part_of, widened


NO_VALUE = "no value"


class LimitReliability(eqx.Module):
    """How likely one limit is broken.

    - `value`, `side`: which one; of a row of values along a stroke, it is broken where one of them breaks it.
    - `probability`, `error`: with its standard error; to be believed, if `trusted`. `method` says how it was found,
        `why` why it is believed, or not.
    - `points`: the design points, the nearest first.
    - `form`: their probabilities, summed, for limits that are planes. `breitung`, `hohenbichler`: with the curvature of
        the limits there (second-order reliability method); NaN at a kink, or where limits bend too much.
    - `importance`: from samples about the design points; `subset`: from a walk that does not know them, subset
        simulation or annealed sampling, as `why` says.
    """

    value: str = eqx.field(static=True)
    side: str = eqx.field(static=True)
    probability: np.float64
    error: np.float64
    trusted: np.bool_
    method: str = eqx.field(static=True)
    why: str = eqx.field(static=True)
    points: tuple[DesignPoint, ...]
    form: np.float64
    breitung: np.float64
    hohenbichler: np.float64
    importance: Rare
    subset: Rare

    def __repr__(self) -> str:
        if not has_numbers(self.probability) or np.ndim(self.probability):
            return brief(self, self.value, side=self.side, probability=self.probability, error=self.error)
        doubt = "" if self.trusted else "  NOT TRUSTED"
        name = f"{self.value}, {self.side} limit" if self.side else self.value
        return f"{name}: {self.probability:.4g} +- {self.error:.2g}, {self.method}{doubt} ({self.why})"


class Reliability(eqx.Module):
    """What [`mbsjax.reliability`][] found.

    - `limits`: one [`mbsjax.LimitReliability`][] for each limit.
    - `no_value`: the probability that a part has no value: that it locks, jams, cannot be assembled; None where no
        sample did, however widely spread.
    - `reject`: the probability that any limit is broken, or that there is no value, with its standard error.
    - `rejects`: by name, the same of each measure that has limits.
    - `trusted`: whether all of it is.
    """

    limits: tuple[LimitReliability, ...]
    reject: Rare
    no_value: LimitReliability | None
    rejects: dict[str, Rare]

    @property
    def good(self) -> float:
        """The yield: the part that keeps all limits."""
        return float(1 - self.reject.probability)

    @property
    def trusted(self) -> bool:
        return bool(all(x.trusted for x in self.limits) and (self.no_value is None or self.no_value.trusted))

    def of(self, name: str) -> tuple[LimitReliability, ...]:
        """The limits of a measure."""
        found = tuple(x for x in self.limits if x.value == name)
        if not found:
            known = ", ".join(dict.fromkeys(x.value for x in self.limits)) or "none"
            raise KeyError(f"there is no limit of {name!r}; there are limits of {known}")
        return found

    def __repr__(self) -> str:
        if not has_numbers(self.reject) or np.ndim(self.reject.probability):
            return brief(self, reject=self.reject, limits=[x.value for x in self.limits])
        lines = [f"Reliability: {1e6 * self.reject.probability:.5g} +- {1e6 * self.reject.error:.2g} ppm rejects"]
        lines += [f"  {x!r}" for x in (*self.limits, *([] if self.no_value is None else [self.no_value]))]
        return head("\n".join(lines))


def reliability(
    study: Study, n: int = 8192, *, starts: int = 8, check: bool = True, seed: int = 0, chunk: int = CHUNK
) -> Reliability:
    """How likely each limit of a study is broken, and any of them.

    Subset simulation (Au and Beck) walks out to each limit, wherever it is broken; samples of a wider spread meet what
    it passes by. From where these arrive, and from other starts, the design points are searched ([`mbsjax.form`][]), as
    many as there are. Importance sampling from the mixture of normal distributions about all of them then gives the
    probability, with a standard error. Two estimates must agree: where they do not, the result says so and is not
    `trusted`, and tells the larger one, with an error that reaches the other.

    Parts that lock, jam, cannot be assembled or have no value for another reason are an event of its own, with design
    points of its own, `no_value`: whatever the limits are, widely spread samples meet it.

    **Arguments:**

    - `study`: with limits; a sample without a value breaks all of them.
    - `n`: samples of the mixture. The check takes 2048 plain samples, 1024 of each of three wider spreads, and some ten
        thousand to draw these in (annealed sampling); for limits that fewer than one in a hundred break, also subset
        simulation with four times 2048 for each factor of ten.
    - `starts`: of the search for design points, beside those from the samples.
    - `check`: without it there is no other estimate, no search for what has no value, and no result is `trusted`.
    - `seed`, `chunk`: as in [`mbsjax.monte_carlo`][].

    !!! Example

        Both sides of x^2 > 25 count, though a search from the middle finds one of them.

        >>> import mbsjax as mbs
        >>> normal = mbs.Normal(sigma=1.0)
        >>> bent = mbs.Study(lambda p: p, {"x": 0.0, "z": 0.0}, {"x": normal, "z": normal},
        ...                  {"y": lambda p: p["x"] ** 2 + 0.01 * p["z"]}, limits={"y": (None, 25.0)})
        >>> found = mbs.reliability(bent).limits[0]
        >>> bool(found.trusted), bool(abs(found.probability - 5.73e-7) < 3 * found.error < 1e-7)
        (True, True)
    """
    return assessed(study, n, starts=starts, check=check, seed=seed, chunk=chunk)[0]


def assessed(
    study: Study, n: int, *, starts: int = 8, check: bool = True, seed: int = 0, chunk: int = CHUNK
) -> tuple[Reliability, Callable[[Study, int], dict[str, Rare]]]:
    """What `reliability` gives; and a function that tells the rejects of each measure of a study that is nearly the
    same, from so many samples, always the same ones, about the same places: so that differences are not of chance."""
    n, seed, chunk = counts(samples=n, seed=seed, chunk=chunk)
    limits, rng, d = limits_of(study, rows="whole"), np.random.default_rng(seed), len(study.names)
    if not limits:
        raise ValueError("a study without limits has none that could be broken: give it `limits`")
    every = _Everything(study, limits, [[] for _ in limits], [], _nothing(d))
    if check:
        every = _walked(every, rng, chunk)
    found = search(study, limits, [spread(d, starts, seed)] * len(limits))
    found = [_further(f, walks, _search(study, limit)) for limit, f, walks in zip(limits, found, every.walks)]
    sampled = every.sampled(found, n, rng, chunk)
    doubtful = [k for k, walks in enumerate(every.walks) if check and not confirmed(sampled.out[k], walks)]
    if doubtful:  # once more, with more of everything
        plain = _plain(study, rng, chunk, 8192)
        for k in doubtful:
            every.walks[k].append(subset(study, limits[k], *plain[1:], rng, chunk))
            found[k] = _further(found[k], every.walks[k], _search(study, limits[k]))
        sampled = every.sampled(found, n, rng, chunk)

    def nearby(other: Study, n: int) -> dict[str, Rare]:
        return every._replace(study=other).sampled(found, n, np.random.default_rng(seed), chunk).rejects

    return _reliability(every, found, sampled), nearby


class _Everything(NamedTuple):
    """A study with its limits; the walks that went out to each of these, and those to where there is no value, with the
    design points of that."""

    study: Study
    limits: list[Limit]
    walks: list[list[Walk]]
    lost: list[Walk]
    ends: Found

    def sampled(self, found: list[Found], n: int, rng: np.random.Generator, chunk: int) -> "_Sampled":
        """All events, by importance sampling about the design points that were found."""
        limits, ends = self.limits, self.ends
        events, centers = [], []
        for limit, f, walks in zip(limits, found, self.walks):
            arrived = tuple(w.arrived for w in walks)
            events.append(Event(limit.out, f.points[f.done] if f.sign > 0 else f.points[:0], arrived))
            # where a limit is broken at the medians, samples about these will do
            centers.append(_centers(f, walks) if f.sign > 0 else f.points[:0])
        none = Event(lost, ends.points[ends.done], tuple(w.arrived for w in self.lost))
        centers.append(_centers(ends, self.lost))
        names = list(dict.fromkeys(limit.name for limit in limits))
        first = [next(limit for limit in limits if limit.name == name) for name in names]
        events += [none._replace(happens=limit.lacks) for limit in first] + [none]
        unions = [
            [k for k, limit in enumerate(limits) if limit.name == name] + [len(limits) + i]
            for i, name in enumerate(names)
        ]
        unions.append([*range(len(limits)), len(events) - 1])
        every = iter(mixed(self.study, events, unions, centers, n, rng, chunk))
        take = lambda count: [next(every) for _ in range(count)]
        out, lacking, (no_value,) = take(len(limits)), take(len(names)), take(1)
        return _Sampled(out, dict(zip(names, lacking)), no_value, dict(zip(names, take(len(names)))), next(every))


class _Sampled(NamedTuple):
    """What importance sampling found: of each limit, that values are beyond it; of each measure that has limits, that
    it has no value; that any has none; of each measure, that it is a reject for either reason; of all."""

    out: list[Rare]
    lacking: dict[str, Rare]
    no_value: Rare
    rejects: dict[str, Rare]
    any: Rare


def _walked(every: _Everything, rng: np.random.Generator, chunk: int) -> _Everything:
    """Subset simulation out to each limit; widely spread samples, drawn in to any reject, and to what has no value."""
    study, limits = every.study, every.limits
    plain = _plain(study, rng, chunk, 2048)
    walks = [[subset(study, limit, *plain[1:], rng, chunk)] for limit in limits]
    samples = [plain, *widened(study, 1024, rng, chunk)]
    reject = lambda values: np.any([lost(values), *(limit.out(values) for limit in limits)], 0)
    whole = annealed(study, reject, samples, rng, chunk)
    if len(whole.arrived):
        values = values_at(study, whole.arrived, chunk)
        for own, limit in zip(walks, limits):
            own.append(part_of(whole, limit.out(values)))
    if not any(lost(wide.values).any() for wide in samples):
        return every._replace(walks=walks)
    none = [annealed(study, lost, samples, rng, chunk)]
    ends = _further(every.ends, none, lambda starts: nearest_failures(study, starts, chunk))
    return every._replace(walks=walks, lost=none, ends=ends._replace(reached=True))


def _plain(study: Study, rng: np.random.Generator, chunk: int, n: int) -> Wide:
    u = rng.normal(size=(n, len(study.names)))
    return Wide(1.0, u, values_at(study, u, chunk))


def _nothing(d: int) -> Found:
    return Found(np.zeros((0, d)), np.zeros(0, bool), 1, False)


def _search(study: Study, limit: Limit) -> Callable[[np.ndarray], Found]:
    return lambda starts: search(study, [limit], [starts])[0]


def _centers(found: Found, walks: Sequence[Walk]) -> np.ndarray:
    return centers_of(found.points, np.concatenate([found.points[:0], *(w.arrived for w in walks)]))


def _further(found: Found, walks: Sequence[Walk], searched: Callable[[np.ndarray], Found]) -> Found:
    """With the design points that are found from where walks arrived and no design point is near."""
    for _ in range(2 if found.sign > 0 else 0):
        known = {tuple(u) for u in found.points}
        left = np.array([u for u in _centers(found, walks) if tuple(u) not in known])
        if not len(left):
            break
        found = searched(np.concatenate([found.points, left[:6]]))
    return found


def _reliability(every: _Everything, found: list[Found], sampled: _Sampled) -> Reliability:
    """What is told of each limit, and of all."""
    study, limits, none, d = every.study, every.limits, None, len(every.study.names)
    if every.lost:
        walk = referee(sampled.no_value, every.lost, d)
        told = judged(every.ends, sampled.no_value, walk)
        (points,) = design_points(study, [Limit(NO_VALUE, "", np.zeros(0, int), np.full(1, np.nan), 1.0)], [every.ends])
        none = _made(NO_VALUE, "", told, points, (np.nan, np.nan), sampled.no_value, walk.estimate)
    made = []
    for limit, f, points, own, walks in zip(
        limits, found, design_points(study, limits, found), sampled.out, every.walks
    ):
        walk = referee(own, walks, d)
        told, walk = judged(f, own, walk), walk.estimate
        curved = [sorm(study, limit, u) if done else (np.nan, np.nan) for u, done in zip(f.points, f.done)]
        sums = tuple(map(sum, zip(*curved))) if curved and f.sign > 0 else (np.nan, np.nan)
        if none is not None:  # what has no value breaks the limit too
            missing = sampled.lacking[limit.name]
            own, walk = _sum(own, missing), _sum(walk, none.subset)
            if none.method != SAMPLED and missing.probability > 0:
                missing = Rare(none.probability, none.error, 0)
            both = _sum(Rare(told.probability, told.error, 0), missing)
            why = told.why if none.trusted else f"{told.why}; of parts without a value {none.why}"
            trusted = told.trusted and bool(none.trusted)
            told = Judged(both.probability, both.error, told.method, trusted, why)
        made.append(_made(limit.name, limit.side, told, points, sums, own, walk))
    rejects = {name: _all([x for x in made if x.value == name], none, x) for name, x in sampled.rejects.items()}
    return Reliability(tuple(made), _all(made, none, sampled.any), none, rejects)


def _sum(a: Rare, b: Rare) -> Rare:
    """Of events that exclude each other."""
    return Rare(min(a.probability + b.probability, 1.0), np.hypot(a.error, b.error), a.samples + b.samples)


def _all(told: Sequence[LimitReliability], none: LimitReliability | None, sampled: Rare) -> Rare:
    """Rejects of several limits together: from importance sampling; where it does not do for one of them, their sum,
    which is not less."""
    every = [*told, *([] if none is None else [none])]
    if all(x.method == SAMPLED for x in every):
        wide = max((x.error for x in every if not x.trusted), default=0.0)
        return Rare(sampled.probability, max(sampled.error, wide), sampled.samples)
    again = none.probability if none is not None else 0.0  # it is in each limit, and counts once
    p = sum(x.probability - again for x in told) + again
    return Rare(min(max(p, 0.0), 1.0), float(np.linalg.norm([x.error for x in every])), sampled.samples)


def _made(
    name: str, side: str, told: Judged, points: list[DesignPoint], curved: tuple[float, ...], sampled: Rare, walk: Rare
) -> LimitReliability:
    return LimitReliability(
        value=name,
        side=side,
        probability=np.float64(told.probability),
        error=np.float64(told.error),
        trusted=np.bool_(told.trusted),
        method=told.method,
        why=told.why,
        points=tuple(points),
        form=np.float64(min(float(sum(x.probability for x in points)), 1.0)),
        breitung=np.float64(curved[0]),
        hohenbichler=np.float64(curved[1]),
        importance=sampled,
        subset=walk,
    )
