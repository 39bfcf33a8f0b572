"""A tolerance study: what varies, by how much, and what is measured."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from ._assembly import Assembly
from ._distribution.base import AbstractDistribution
from ._distribution.symmetric import Normal
from ._kinematics import Motion
from ._modes import EVENTS
from ._precision import as_float, is_concrete
from ._results import RESULTS
from ._solution import Solution
from ._statics import Equilibrium


_CODES = tuple(name for name in RESULTS._name_to_item if name != "successful")
CLASSES = ("as nominal", "changed sequence", "changed branch", "no value", *(name.replace("_", " ") for name in _CODES))
"""What can become of a variant: all went as nominal; another sequence of contacts; another branch; a measure without a
finite value; or an analysis that failed, as [`mbsjax.RESULTS`][] says."""


class Evaluation(NamedTuple):
    """One variant of a mechanism.

    - `values`: of all measures, one after the other; NaN where the analysis failed.
    - `kind`: a number of [`mbsjax.CLASSES`][].
    - `sequence`: a number that stands for the sequence of its contact events.
    """

    values: Any
    kind: Any
    sequence: Any


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
        their normal scores.

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

    leaves: list
    distributions: tuple[AbstractDistribution, ...]
    nominal: Float[Array, " d"]
    mixing: Float[Array, "d d"]
    lower: Float[Array, " m"]
    upper: Float[Array, " m"]
    at_nominal: Evaluation
    branch: Int[Array, ""]
    along: dict[str, Array]
    model: Callable = eqx.field(static=True)
    measures: tuple[tuple[str, Callable], ...] = eqx.field(static=True)
    sizes: tuple[int, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    places: tuple[int, ...] = eqx.field(static=True)
    counts: tuple[int, ...] = eqx.field(static=True)
    structure: Any = eqx.field(static=True)

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
    ):
        self.model = model
        self.leaves, self.structure = jax.tree_util.tree_flatten(nominal)
        if not tolerances:
            raise ValueError("a study needs at least one tolerance")
        if not measures:
            raise ValueError("a study needs at least one measure")
        where = {name: _place(name, nominal, given) for name, given in tolerances.items()}
        self.places = tuple(where.values())
        if len(set(self.places)) < len(self.places):
            twice = next(n for i, n in enumerate(where) if self.places[i] in self.places[:i])
            raise ValueError(f"the dimension {twice!r} has two tolerances")
        values = [as_float(self.leaves[i], f"the dimension {name!r}") for name, i in where.items()]
        given = [x[1] if _picks(x) else x for x in tolerances.values()]
        self.distributions = tuple(_distribution(*x) for x in zip(where, values, given))
        self.counts = tuple(x.size for x in values)
        self.names = tuple(label for name, x in zip(where, values) for label in labels(name, x.shape))
        self.nominal = jnp.concatenate([x.reshape(-1) for x in values])
        self.mixing = _mixing(correlation, self.names)

        self.measures = tuple(measures.items())
        outcome = model(jax.tree_util.tree_unflatten(self.structure, self.leaves))
        _check_runs(outcome)
        found = {name: as_float_or_bool(measure(outcome), name) for name, measure in self.measures}
        self.sizes = tuple(x.size if x.ndim else 0 for x in found.values())
        for name, x in found.items():
            if not bool(jnp.all(jnp.isfinite(x))):
                raise ValueError(f"the measure {name!r} is not finite at the nominal dimensions: {x.tolist()!r}")
        sequence, self.branch = _sequence(outcome), _branch(outcome)
        twice = [name for i, name in enumerate(self.columns) if name in self.columns[:i]]
        if twice:
            raise ValueError(f"two measures have a value {twice[0]!r}: give one of them another name")
        flat = jnp.concatenate([x.reshape(-1) for x in found.values()])
        self.at_nominal = Evaluation(flat, jnp.zeros((), int), sequence)
        self.lower, self.upper = _limits(dict(limits or {}), found)
        self.along = {
            name: as_float(x, f"the places along {name!r}") for name, x in _known(along, found, "`along`").items()
        }
        for name, x in self.along.items():
            if x.shape != found[name].shape:
                raise ValueError(f"the places along {name!r} must be as many as its values, {found[name].shape}")

    @property
    def mean(self) -> Float[Array, " d"]:
        """The mean dimensions: the nominal ones, where tolerances are symmetric and nothing is shifted."""
        return self.nominal + self.each(lambda d: d.mean)

    @property
    def std(self) -> Float[Array, " d"]:
        return self.each(lambda d: d.std)

    @property
    def bounds(self) -> tuple[Float[Array, " d"], Float[Array, " d"]]:
        """The smallest and the largest dimensions that the tolerances allow."""
        return self.nominal + self.each(lambda d: d.spread.lower), self.nominal + self.each(lambda d: d.spread.upper)

    def each(self, f: Callable) -> Float[Array, " d"]:
        """A number of every contributor's distribution."""
        return jnp.concatenate([jnp.broadcast_to(f(d), (n,)) for d, n in zip(self.distributions, self.counts)])

    @property
    def slices(self) -> dict[str, Any]:
        """Where each measure lies among the values: an index, or a slice."""
        ends = np.cumsum([max(n, 1) for n in self.sizes]).tolist()
        return {
            name: slice(end - n, end) if n else end - 1 for (name, _), n, end in zip(self.measures, self.sizes, ends)
        }

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all values: those of a row have numbers, `lift[3]`."""
        return tuple(
            x for (name, _), n in zip(self.measures, self.sizes) for x in labels(name, (n,) if n else ())
        )  # fmt: skip

    def dimensions(self, scores: Float[Array, " d"]) -> Float[Array, " d"]:
        """The dimensions at independent standard normal scores."""
        z = self.mixing @ scores
        parts = jnp.split(z, np.cumsum(self.counts)[:-1].tolist())
        return self.nominal + jnp.concatenate([d.at(part) for d, part in zip(self.distributions, parts)])

    def place(self, x: Float[Array, " d"]) -> Any:
        """The PyTree of dimensions with those of the contributors."""
        leaves = list(self.leaves)
        for i, part in zip(self.places, jnp.split(x, np.cumsum(self.counts)[:-1].tolist())):
            leaves[i] = part.reshape(jnp.shape(leaves[i]))
        return jax.tree_util.tree_unflatten(self.structure, leaves)

    def outcome(self, x: Float[Array, " d"]) -> Any:
        """What the model gives for one variant: to look at an example."""
        return self.model(self.place(x))

    def __call__(self, x: Float[Array, " d"]) -> Evaluation:
        """All measures of one variant, and its class."""
        outcome = self.outcome(x)
        found = [as_float_or_bool(measure(outcome), name).reshape(-1) for name, measure in self.measures]
        values = jnp.concatenate(found)
        sequence = _sequence(outcome)
        kind = jnp.where(jnp.all(jnp.isfinite(values)), 0, 3)
        kind = jnp.where(sequence != self.at_nominal.sequence, 1, kind)
        kind = jnp.where(_branch(outcome) != self.branch, 2, kind)
        failed = jnp.zeros((), bool)
        for run in reversed(_runs(outcome)):
            for i, name in enumerate(_CODES):
                this = run.result == getattr(RESULTS, name)
                kind, failed = jnp.where(this, 4 + i, kind), failed | this
        return Evaluation(jnp.where(failed, jnp.nan, values), kind, sequence)

    def __repr__(self) -> str:
        count = f"{len(self.names)} dimensions and {len(self.measures)} measure{'s' * (len(self.measures) != 1)}"
        if not is_concrete(self.nominal, self.lower, self.at_nominal):
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


def _plain(x: np.ndarray) -> np.ndarray:
    return x.flat[0] if x.ndim and np.all(x == x.flat[0]) else x


def labels(name: str, shape: tuple[int, ...]) -> list[str]:
    """A name for each number of an array."""
    return [f"{name}[{','.join(map(str, i))}]" if shape else name for i in np.ndindex(*shape)]


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


def _picks(given: Any) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and callable(given[0]) and not isinstance(given[0], eqx.Module)


def _place(name: str, nominal: Any, given: Any) -> int:
    """The number of the leaf that a tolerance is for."""
    paths, structure = jax.tree_util.tree_flatten_with_path(nominal)
    if _picks(given):
        marks = [object() for _ in paths]
        try:
            found = given[0](jax.tree_util.tree_unflatten(structure, marks))
        except (TypeError, AttributeError, KeyError, IndexError) as error:
            raise ValueError(
                f"the function that picks the dimension {name!r} does not lead to a leaf: {error}"
            ) from error
        if not any(found is mark for mark in marks):
            raise ValueError(f"the function that picks the dimension {name!r} must give one number or array, a leaf")
        return [found is mark for mark in marks].index(True)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in paths]
    if name not in names:
        near = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        raise ValueError(f"there is no dimension {name!r} for a tolerance; the dimensions are {near}")
    return names.index(name)


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
    lower, upper = float(found.spread.lower), float(found.spread.upper)
    for x in np.asarray(nominal).reshape(-1):
        if min((x + lower) * x, (x + upper) * x) < 0:
            raise ValueError(
                f"the tolerance of {name!r}, {lower:+.6g} to {upper:+.6g}, is wider than the dimension {x:.6g} itself; "
                "if it may change its sign, let it be the sum of a fixed one and of one that is zero"
            )
    return found


def _mixing(correlation: Any, names: tuple[str, ...]) -> Array:
    """The Cholesky factor of the correlation of all scores."""
    R = np.eye(len(names))
    if isinstance(correlation, Mapping):
        for pair, rho in correlation.items():
            if not (isinstance(pair, tuple) and len(pair) == 2):
                raise ValueError(f"a correlation is one of two dimensions, got {pair!r}")
            for name in pair:
                if name not in names:
                    raise ValueError(f"there is no dimension {name!r} to be correlated; they are {', '.join(names)}")
            i, j = (names.index(name) for name in pair)
            if i == j:
                raise ValueError(f"the dimension {pair[0]!r} cannot be correlated with itself")
            R[i, j] = R[j, i] = float(rho)
    elif correlation is not None:
        R = np.asarray(correlation, float)
        if R.shape != (len(names), len(names)):
            raise ValueError(f"the correlation of {len(names)} dimensions must be a square matrix, got {R.shape}")
        if not (np.allclose(R, R.T) and np.allclose(np.diag(R), 1)):
            raise ValueError("a correlation matrix must be symmetric, with ones on its diagonal")
    least = float(np.linalg.eigvalsh(R).min())
    if not least > 1e-12:
        raise ValueError(f"the correlation is not positive definite: its smallest eigenvalue is {least:.3g}")
    return jnp.asarray(np.linalg.cholesky(R))


def _known(given: Any, found: Mapping[str, Any], what: str) -> dict[str, Any]:
    given = dict(given or {})
    for name in given:
        if name not in found:
            raise ValueError(f"{what} names {name!r}, which is not a measure; these are {', '.join(found)}")
    return given


def _limits(given: dict[str, Any], found: Mapping[str, Array]) -> tuple[Array, Array]:
    given = _known(given, found, "`limits`")
    every = []
    for name, x in found.items():
        pair = given.get(name, (None, None))
        if not (isinstance(pair, (tuple, list, np.ndarray)) and len(pair) == 2):
            raise ValueError(f"the limits of {name!r} must be a pair (lower, upper), got {pair!r}")
        low, high = (
            side * np.inf if limit is None else np.asarray(limit, float) for side, limit in zip((-1, 1), pair)
        )  # fmt: skip
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


_RUNS = (Motion, Solution, Assembly, Equilibrium)


def _runs(outcome: Any) -> list[Any]:
    leaves = jax.tree_util.tree_leaves(outcome, is_leaf=lambda x: isinstance(x, _RUNS))
    return [x for x in leaves if isinstance(x, _RUNS)]


def _check_runs(outcome: Any) -> None:
    for run in _runs(outcome):
        if bool(run.result != RESULTS.successful):
            raise ValueError(f"the study fails at its nominal dimensions: {RESULTS[run.result]}")


def _branch(outcome: Any) -> Array:
    """A number that stands for the branches of all motions."""
    found = jnp.zeros((), int)
    for run in _runs(outcome):
        if isinstance(run, Motion):
            found = 3 * found + run.branch
    return found


def _sequence(outcome: Any) -> Array:
    """A number that stands for the sequence of all contact events: kinds, contacts and elements, not their dates."""
    found = jnp.full((), 2166136261, jnp.uint32)
    for run in _runs(outcome):
        log = getattr(run, "events", None)
        if log is None or log.t.shape[0] == 0:
            continue
        opens = jnp.isin(log.kind, jnp.array([EVENTS.index("released"), EVENTS.index("deleted")]))
        where = jnp.where(opens[:, None], log.before, log.after)  # of an open contact, the elements tell nothing
        rows = jnp.concatenate([log.kind[:, None], log.contact[:, None], where], 1).astype(jnp.uint32)
        there = jnp.isfinite(log.t)
        # Fowler, Noll and Vo's hash, row by row
        words = jnp.sum(rows * jnp.asarray([1, 31, 1009, 65537], jnp.uint32), 1, dtype=jnp.uint32) + 1
        step = lambda h, x: (jnp.where(x[1], (h ^ x[0]) * jnp.uint32(16777619), h), None)
        found, _ = jax.lax.scan(step, found, (words, there))
    return found
