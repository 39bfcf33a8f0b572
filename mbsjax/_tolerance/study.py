"""A tolerance study: what varies, by how much, and what is measured."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from .._dynamics.outcome import branch, check, failure, runs, sequence
from .._programs.precision import as_float, numpy_of
from .._programs.reprs import by_fields, has_numbers, head
from .._programs.trees import as_function, once, surroundings, without_unused
from .distribution.base import AbstractDistribution
from .distribution.symmetric import Normal
from .mixing import check_sizes, groups, mixing
from .parameters import Choice, labels, picks


class Evaluation(NamedTuple):
    """One variant of a mechanism.

    - `values`: of all measures, one after the other; NaN where the analysis failed.
    - `kind`: a number of [`mbsjax.CLASSES`][].
    - `sequence`: a number that stands for the sequence of its contact events.
    """

    values: Any
    kind: Any
    sequence: Any

    __repr__ = by_fields


class Study(eqx.Module):
    """A tolerance study, the input of [`mbsjax.tolerance`][] and of the functions that it calls.

    **Arguments:**

    - `model`: a function from the dimensions to what is looked at: a mechanism, a [`mbsjax.Motion`][], a
        [`mbsjax.Solution`][], an [`mbsjax.Assembly`][], or several of these in a tuple or dict. Call the analyses with
        `throw=False`: a variant that cannot be assembled or jams is a result of the study, not an error.
    - `nominal`: the dimensions, any PyTree; often a dict of numbers, or a mechanism itself.
    - `tolerances`: for each dimension that varies, by name, a distribution such as [`mbsjax.Normal`][], or a number or
        pair as short for a normal one. Names of leaves inside other containers have dots: `"spring.k"`. Dimensions
        that are arrays have a contributor for each number. `(where, distribution)` picks a leaf by a function:
        `{"rod": (lambda mech: mech.joint("C").frame_a.x, 0.1)}`.
    - `measures`: by name, functions of what `model` gives, to a number, or to a row of numbers along a stroke.
    - `limits`: of measures, by name, pairs (lower, upper), either of them None or numbers along the stroke.
    - `along`: for measures along a stroke, by name, the places they are taken at.
    - `correlation`: between dimensions: `{("a", "b"): 0.5}`, or a matrix in the order of `study.names`. It is that of
        their normal scores. With 1 or -1 a dimension follows the other one.
    - `lots`: dimensions that come from the same part, tool or setting, by the name of the lot: `{"rods": ["a", "b"]}`.
        They have one score: all at their medians together, all at their limits together. Arrays and zones of as many
        numbers go together number by number. A correlation given to one of a lot holds for all of it. Worst cases
        know limits alone, neither correlation nor lots.

    !!! Example

        Two blocks in a slot.

        >>> import mbsjax as mbs
        >>> stack = mbs.Study(lambda p: p, {"slot": 30.0, "a": 10.0, "b": 19.8}, {"slot": 0.1, "a": 0.05, "b": 0.05},
        ...                   {"clearance": lambda p: p["slot"] - p["a"] - p["b"]}, limits={"clearance": (0.0, None)})
        >>> stack
        Study of 3 dimensions and 1 measure
          slot  30    Normal(+-0.1, mean 0, sigma 0.0333333)
          a     10    Normal(+-0.05, mean 0, sigma 0.0166667)
          b     19.8  Normal(+-0.05, mean 0, sigma 0.0166667)
          clearance = 0.2 at nominal, limits 0 to inf
    """

    choice: Choice
    distributions: tuple[AbstractDistribution, ...]
    mixing: Float[Array, "d d"]
    lower: Float[Array, " m"]
    upper: Float[Array, " m"]
    at_nominal: Evaluation
    branch: Int[Array, ""]
    along: dict[str, Array]
    model: Callable
    functions: tuple[Callable, ...]
    labels: tuple[str, ...] = eqx.field(static=True)
    sizes: tuple[int, ...] = eqx.field(static=True)

    def __init__(
        self,
        model: Callable,
        nominal: Any,
        tolerances: Mapping[str, Any],
        measures: Mapping[str, Callable],
        *,
        limits: Mapping[str, Any] | None = None,
        along: Mapping[str, Any] | None = None,
        correlation: Any = None,
        lots: Mapping[str, Sequence[str]] | None = None,
    ):
        if not tolerances:
            raise ValueError("a study needs at least one tolerance")
        if not measures:
            raise ValueError("a study needs at least one measure")
        self.choice = Choice(nominal, tolerances, "tolerances")
        given = [x[1] if picks(x) else x for x in tolerances.values()]
        values = self.choice.parts(self.choice.values)
        self.distributions = tuple(_distribution(*x) for x in zip(tolerances, values, given))
        check_sizes(self.distributions, tolerances, self.names)
        self.mixing = mixing(self.distributions, self.choice, correlation, lots or {})

        self.labels, self.functions = tuple(measures), tuple(map(as_function, measures.values()))
        self.model = as_function(model, of=nominal, then=self.functions)
        values, results, self.branch, events = _nominal(self.model, self.functions, self.labels, self.choice)
        check(results, "the study fails at its nominal dimensions")
        found = dict(zip(self.labels, values))
        self.sizes = tuple(x.size if x.ndim else 0 for x in found.values())
        for name, x in found.items():
            if not bool(jnp.all(jnp.isfinite(x))):
                raise ValueError(f"the measure {name!r} is not finite at the nominal dimensions: {x.tolist()!r}")
        twice = [name for i, name in enumerate(self.columns) if name in self.columns[:i]]
        if twice:
            raise ValueError(f"two measures have a value {twice[0]!r}: give one of them another name")
        flat = jnp.concatenate([x.reshape(-1) for x in found.values()])
        self.at_nominal = Evaluation(flat, jnp.zeros((), int), events)
        self.lower, self.upper = _limits(dict(limits or {}), found)
        self.along = {
            name: as_float(x, f"the places along {name!r}") for name, x in _known(along, found, "`along`").items()
        }
        for name, x in self.along.items():
            if x.shape != found[name].shape:
                raise ValueError(f"the places along {name!r} must be as many as its values, {found[name].shape}")

    @property
    def names(self) -> tuple[str, ...]:
        return self.choice.names

    @property
    def measures(self) -> dict[str, Callable]:
        return dict(zip(self.labels, self.functions))

    @property
    def counts(self) -> tuple[int, ...]:
        """How many numbers each contributor has."""
        return self.choice.counts

    @property
    def groups(self) -> dict[str, tuple[int, ...]]:
        """Which numbers vary together, by name: zones, lots, correlated dimensions; each of the others by itself."""
        return groups(self.distributions, self.choice, self.mixing)

    @property
    def nominal(self) -> Float[Array, " d"]:
        return self.choice.values

    @property
    def mean(self) -> Float[Array, " d"]:
        """The mean dimensions: the nominal ones, where tolerances are symmetric and nothing is shifted."""
        return self.nominal + self.each(lambda d: d.mean)

    @property
    def std(self) -> Float[Array, " d"]:
        """Standard deviations; that of a zone which grows with a size, over all sizes."""
        own = self.each(lambda d: d.std)
        if not self.grows:
            return own
        mean = self.each(lambda d: d.mean)  # the growth is linear: its square has the mean of both
        return own * jnp.sqrt((self.growth(mean + own) ** 2 + self.growth(mean - own) ** 2) / 2)

    @property
    def bounds(self) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
        """The smallest and the largest dimensions that the tolerances allow."""
        lower, upper = self._limits
        if self.grows:
            most = jnp.maximum(self.growth(lower), self.growth(upper))
            lower, upper = lower * most, upper * most
        return self.nominal + lower, self.nominal + upper

    @property
    def _limits(self) -> tuple[Array, Array]:
        return self.each(lambda d: d.spread.lower), self.each(lambda d: d.spread.upper)

    @property
    def grows(self) -> bool:
        """Whether there is a zone that grows with a size."""
        return any(d.mmc is not None for d in self.distributions)

    def growth(self, deviations: Float[Array, " d"]) -> Float[Array, " d"]:
        """By how much zones are larger than at maximum material, at these deviations of the sizes; 1 for others."""
        lower, upper = self._limits
        size = {d.mmc: self.names.index(d.mmc) for d in self.distributions if d.mmc is not None}
        room = lambda k: (deviations[k] - lower[k], upper[k] - deviations[k])
        return self.each(lambda d: 1.0 if d.mmc is None else d.growth(*room(size[d.mmc])))

    def allowed(self, x: Float[Array, " d"]) -> Array:
        """Whether dimensions lie within all tolerances: each within its limits, positions in their circles, which
        belong to the sizes that are there.

        !!! Example

            >>> import jax.numpy as jnp, mbsjax as mbs
            >>> plate = mbs.Study(lambda p: p, {"hole": jnp.zeros(2)}, {"hole": mbs.Position(0.2)},
            ...                   {"x": lambda p: p["hole"][0]})
            >>> [bool(plate.allowed(jnp.array(x))) for x in ([0.06, 0.08], [0.1, 0.1])]
            [True, False]
        """
        lower, upper = self._limits
        away = x - self.nominal
        size = self.growth(away) if self.grows else 1.0
        parts = self.choice.parts((away - (lower + upper) / 2) / ((upper - lower) / 2 * size))
        return jnp.all(jnp.concatenate([d.extent(p) for d, p in zip(self.distributions, parts)]) <= 1 + 1e-9)

    def within(self, t: Float[Array, " d"]) -> Float[Array, " d"]:
        """The dimensions at places within all tolerances: -1 at their lower limits, 1 at their upper ones; what lies
        beyond the rim of a zone is put on it."""
        lower, upper = self._limits
        parts = self.choice.parts(t)
        parts = [d.inside(p) for d, p in zip(self.distributions, parts)]
        away = (lower + upper) / 2 + jnp.concatenate(parts) * (upper - lower) / 2
        return self.nominal + (away * self.growth(away) if self.grows else away)

    def farthest(self, slopes: Any) -> Any:
        """Where within its limits, -1 to 1, each dimension makes a value with these slopes largest; of many values, in
        rows."""
        numpy = numpy_of(slopes)
        parts = numpy.split(slopes, np.cumsum(self.counts)[:-1].tolist(), axis=-1)
        return numpy.concatenate([d.farthest(g) for d, g in zip(self.distributions, parts)], -1)

    def extreme(self, slopes: Float[Array, " d"]) -> Float[Array, " d"]:
        """The dimensions, within all tolerances, at which a value with these slopes is largest: a corner of the box;
        positions on their circles. Of sizes that zones grow with, the better end is taken."""
        lower, upper = self._limits
        way = self.farthest(slopes)
        away = (lower + upper) / 2 + way * (upper - lower) / 2
        if not self.grows:
            return self.nominal + away
        for name in {d.mmc: None for d in self.distributions if d.mmc is not None}:
            k = self.names.index(name)
            ends = [away.at[k].set(limit[k]) for limit in (lower, upper)]
            value = [jnp.sum(slopes * self.growth(x) * x) for x in ends]
            away = jnp.where(value[1] > value[0], ends[1], ends[0])
        return self.nominal + away * self.growth(away)

    def each(self, f: Callable) -> Float[Array, " d"]:
        """A number of every contributor's distribution."""
        return self.choice.each([f(d) for d in self.distributions])

    @property
    def slices(self) -> dict[str, Any]:
        """Where each measure lies among the values: an index, or a slice."""
        ends = np.cumsum([max(n, 1) for n in self.sizes]).tolist()
        return {name: slice(end - n, end) if n else end - 1 for name, n, end in zip(self.labels, self.sizes, ends)}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all values: those of a row have numbers, `lift[3]`."""
        return tuple(
            x for name, n in zip(self.labels, self.sizes) for x in labels(name, (n,) if n else ())
        )  # fmt: skip

    def dimensions(self, scores: Float[Array, " d"]) -> Float[Array, " d"]:
        """The dimensions at independent standard normal scores."""
        parts = self.choice.parts(self.mixing @ scores)
        away = jnp.concatenate([d.at(part) for d, part in zip(self.distributions, parts)])
        if self.grows:
            location = self.each(lambda d: d.spread.location)
            away = location + (away - location) * self.growth(away)
        return self.nominal + away

    def moved(self, nominal: Float[Array, " d"], ratio: Float[Array, " d"]) -> "Study":
        """The same study about other nominal dimensions, its tolerances wider or narrower by a ratio each. What is a
        change of branch or sequence is still judged by the nominal dimensions of this one."""
        every = []
        for d, r in zip(self.distributions, self.choice.parts(ratio)):
            a, s = d.anchor, d.spread
            lower, upper, location = (a + r[0] * (x - a) for x in (s.lower, s.upper, s.location))
            structure = jax.tree_util.tree_structure(d)
            every.append(jax.tree_util.tree_unflatten(structure, [lower, upper, location, r[0] * s.scale]))
        where = lambda s: (s.choice.values, s.distributions)
        return eqx.tree_at(where, self, (nominal, tuple(every)), is_leaf=lambda x: x is self.distributions)

    def outcome(self, x: Float[Array, " d"]) -> Any:
        """What the model gives for one variant: to look at an example."""
        return self.model(self.choice.place(x))

    def __call__(self, x: Float[Array, " d"]) -> Evaluation:
        """All measures of one variant, and its class."""
        outcome = self.outcome(x)
        with surroundings(self.model):
            each = [as_float_or_bool(f(outcome), name).reshape(-1) for name, f in self.measures.items()]
        values = jnp.concatenate(each)
        found = sequence(outcome)
        kind = jnp.where(jnp.all(jnp.isfinite(values)), 0, 3)
        kind = jnp.where(found != self.at_nominal.sequence, 1, kind)
        kind = jnp.where(branch(outcome) != self.branch, 2, kind)
        failed = failure(outcome)
        return Evaluation(jnp.where(failed > 0, jnp.nan, values), jnp.where(failed > 0, failed, kind), found)

    def __repr__(self) -> str:
        return head(str(self))

    def __str__(self) -> str:
        count = f"{len(self.names)} dimensions and {len(self.labels)} measure{'s' * (len(self.labels) != 1)}"
        if not has_numbers(self.choice.values, self.lower, self.at_nominal) or self.lower.ndim > 1:
            return f"Study of {count}"
        lines = [f"Study of {count}"]
        width, numbers = max(map(len, self.names)), [f"{float(x):.7g}" for x in self.nominal]
        every = [d for d, n in zip(self.distributions, self.counts) for _ in range(n)]
        wide = max(map(len, numbers))
        lines += [f"  {n:{width}}  {x:{wide}}  {d}" for n, x, d in zip(self.names, numbers, every)]
        for name, at in self.slices.items():
            x, lower, upper = (np.asarray(v[at]) for v in (self.at_nominal.values, self.lower, self.upper))
            told = f"{float(x):.7g}" if x.ndim == 0 else f"{x.min():.7g} to {x.max():.7g} along {len(x)} places"
            bound = [f"{float(v):.7g}" if v.ndim == 0 or np.ptp(v) == 0 else "..." for v in map(_plain, (lower, upper))]
            limits = f", limits {bound[0]} to {bound[1]}" if np.isfinite([lower, upper]).any() else ""
            lines.append(f"  {name} = {told} at nominal{limits}")
        return "\n".join(lines)


@once
def _nominal(model: Callable, functions: tuple[Callable, ...], names: tuple[str, ...], choice: Choice) -> Any:
    """All measures at the nominal dimensions, the results of the analyses, their branch, their contact events."""

    def measured(x: Array) -> Any:
        outcome = model(choice.place(x))
        with surroundings(model):
            values = [as_float_or_bool(f(outcome), name) for name, f in zip(names, functions)]
        return values, [run.result for run in runs(outcome)], branch(outcome), sequence(outcome)

    return without_unused(measured, choice.values)(choice.values)


def _plain(x: Any) -> Any:
    return x.flat[0] if x.ndim and np.all(x == x.flat[0]) else x


def as_float_or_bool(x: Any, name: str) -> Array:
    """What a measure gave, as a number or a row of numbers."""
    try:
        if x is None:
            raise TypeError("nothing")
        x = jnp.asarray(x)
    except TypeError as error:
        raise ValueError(f"the measure {name!r} must give a number or a row of numbers, got {x!r}") from error
    if x.ndim > 1 or x.size == 0 or jnp.issubdtype(x.dtype, jnp.complexfloating):
        raise ValueError(f"the measure {name!r} must give a number or a row of numbers, got shape {x.shape}")
    return x.astype(jnp.result_type(float))


def _distribution(name: str, nominal: Array, given: Any) -> AbstractDistribution:
    if isinstance(given, AbstractDistribution):
        found = given
    else:
        try:
            found = Normal(given)
        except ValueError as error:
            raise ValueError(f"the tolerance of {name!r}: {error}") from error
    if found.spread.scale.shape != ():
        raise ValueError(f"the tolerance of {name!r} must be one number for all of it")
    if found.together is not None and nominal.size != found.together:
        raise ValueError(
            f"the tolerance of {name!r}, a {type(found).__name__}, is for {found.together} numbers together, and "
            f"there {'is 1' if nominal.size == 1 else f'are {nominal.size}'}"
        )
    return found


def _known(given: Any, found: Mapping[str, Any], what: str) -> dict[str, Any]:
    given = dict(given or {})
    for name in given:
        if name not in found:
            raise ValueError(f"{what} names {name!r}, which is not a measure; these are {', '.join(found)}")
    return given


def _limit(given: Any, side: int, name: str) -> np.ndarray:
    """One limit of a measure, or one for each of its values; infinite where it has none."""
    found = np.asarray(side * np.inf if given is None else given)
    if found.dtype.kind not in "iuf" or np.any(np.isnan(found)):
        raise ValueError(f"a limit of {name!r} must be a number, or None for none, got {given!r}")
    return found.astype(float)


def _limits(given: dict[str, Any], found: Mapping[str, Array]) -> tuple[Array, Array]:
    given = _known(given, found, "`limits`")
    every = []
    for name, x in found.items():
        pair = given.get(name, (None, None))
        if not (isinstance(pair, (tuple, list, np.ndarray)) and len(pair) == 2):
            raise ValueError(f"the limits of {name!r} must be a pair (lower, upper), got {pair!r}")
        low, high = (_limit(limit, side, name) for side, limit in zip((-1, 1), pair))
        try:
            low, high = (np.broadcast_to(v, x.shape).reshape(-1) for v in (low, high))
        except ValueError as error:
            raise ValueError(f"the limits of {name!r} must be numbers, or as many as its values") from error
        if not np.all(low < high):
            k = int(np.argmin(low < high))
            raise ValueError(f"the limits of {name!r} are in the wrong order: {low[k]:.6g}, {high[k]:.6g}")
        every.append((low, high))
    lower, upper = (jnp.asarray(np.concatenate(x)) for x in zip(*every))
    return lower, upper
