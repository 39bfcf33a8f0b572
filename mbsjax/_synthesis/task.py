"""A task of synthesis: which dimensions may change, what the mechanism should do, what it must keep."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._dynamics.outcome import failure, sequence
from .._programs.precision import as_float
from .._programs.reprs import has_numbers, head
from .._programs.trees import as_function, surroundings
from .._tolerance.parameters import Choice, picks
from .goal import AbstractGoal, Match, Within


class Found(NamedTuple):
    """One design.

    - `y`: all that is measured, goals before conditions; NaN where the analysis failed.
    - `kind`: 0, or what went wrong, a number of [`mbsjax.CLASSES`][].
    - `sequence`: a number that stands for the sequence of its contact events.
    """

    y: Any
    kind: Any
    sequence: Any


class Task(eqx.Module):
    """A task of synthesis, the input of [`mbsjax.synthesize`][] and [`mbsjax.descend`][].

    **Arguments:**

    - `model`: a function from the dimensions to what is looked at, as in [`mbsjax.Study`][]: a mechanism, a motion, a
        simulation, several of these, or anything else. Call the analyses with `throw=False`.
    - `start`: the dimensions to begin with, any PyTree; what is no variable stays as it is here.
    - `variables`: what may change, by name of the leaf, and within which bounds: `{"crank": (5.0, 50.0)}`; a bound may
        be None or infinite, and one number of an array's bounds stands for all of it. `(where, (lower, upper))` picks a
        leaf by a function, as in [`mbsjax.Study`][].
    - `goals`: by name, what to make small: [`mbsjax.Match`][], [`mbsjax.Minimax`][], [`mbsjax.Minimize`][]; their costs
        are added.
    - `conditions`: by name, what to keep: [`mbsjax.Within`][].
    - `ties`: dimensions that follow from variables: `{"rocker": lambda p: p["coupler"]}`. They see those that are tied
        as they are in `start`.
    - `angles`: variables that come round after a turn, by name: designs that differ by full turns are the same.
    - `exact`: whether least squares are meant to be met exactly (precision points): then more numbers to match than
        variables are refused. How near a design comes is told by its objective.

    !!! Example

        Two links that reach a point, from two starts of the same arm:

        >>> import mbsjax as mbs
        >>> tip = lambda p: jnp.array([jnp.cos(p["a"]) + jnp.cos(p["b"]), jnp.sin(p["a"]) + jnp.sin(p["b"])])
        >>> task = mbs.Task(tip, {"a": 0.0, "b": 1.0}, {"a": (-3.0, 3.0), "b": (-3.0, 3.0)},
        ...                 {"reach": mbs.Match(lambda at: at, (1.0, 1.0))})
        >>> task
        Task of 2 variables
          a = 0, -3 to 3
          b = 1, -3 to 3
          goal reach: Match(measure=<lambda>, target=[1.0, 1.0], weight=1.0), 2 numbers
    """

    choice: Choice
    tied: Choice | None
    lower: Float[Array, " d"]
    upper: Float[Array, " d"]
    goals: tuple[AbstractGoal, ...]
    conditions: tuple[Within, ...]
    emphasis: Float[Array, " goals"]
    caps: Float[Array, " goals"]
    model: Callable
    ties: tuple[Callable, ...]
    sizes: tuple[int, ...] = eqx.field(static=True)
    labels: tuple[str, ...] = eqx.field(static=True)
    angular: tuple[bool, ...] = eqx.field(static=True)
    tied_shapes: tuple[tuple[str, tuple[int, ...]], ...] = eqx.field(static=True)

    def __init__(
        self,
        model: Callable,
        start: Any,
        variables: Mapping[str, Any],
        goals: Mapping[str, Any],
        *,
        conditions: Mapping[str, Any] | None = None,
        ties: Mapping[str, Any] | None = None,
        angles: Iterable[str] = (),
        exact: bool = False,
    ):
        conditions, ties = dict(conditions or {}), dict(ties or {})
        if not variables:
            raise ValueError("a task needs at least one variable")
        if not goals:
            raise ValueError("a task needs at least one goal")
        for name, goal in goals.items():
            if not isinstance(goal, AbstractGoal):
                raise ValueError(f"the goal {name!r} must be a Match, a Minimax or a Minimize, got {goal!r}")
        for name, condition in conditions.items():
            if not isinstance(condition, Within):
                raise ValueError(f"the condition {name!r} must be a Within, got {condition!r}")
            if name in goals:
                raise ValueError(f"a goal and a condition are both called {name!r}")
        measures = [part.measure for part in (*goals.values(), *conditions.values())]
        self.model = as_function(model, of=start, then=measures)
        self.choice = Choice(start, variables, "bounds")
        given = [x[1] if picks(x) else x for x in variables.values()]
        pairs = [_bounds(*x) for x in zip(variables, self.choice.parts(self.choice.values), given)]
        self.lower, self.upper = (self.choice.each(x) for x in zip(*pairs))
        around = {angles} if isinstance(angles, str) else set(angles)
        for name in around - set(variables):
            raise ValueError(f"{name!r} of `angles` is not a variable; they are {', '.join(variables)}")
        self.angular = tuple(k in around for k, n in zip(variables, self.choice.counts) for _ in range(n))
        self.tied = Choice(start, ties, "ties") if ties else None
        self.tied_shapes = ()
        if self.tied is not None:
            self.tied_shapes = tuple((n, jnp.shape(self.tied.leaves[i])) for n, i in zip(ties, self.tied.places))
        self.ties = tuple(as_function(x[1] if picks(x) else x, of=start) for x in ties.values())
        both = set(self.tied.places) & set(self.choice.places) if self.tied else set()
        if both:
            name = next(n for n, i in zip(ties, self.tied.places) if i in both)  # pyright: ignore
            raise ValueError(f"the dimension {name!r} is tied to others, and a variable too")
        self.goals, self.conditions = tuple(goals.values()), tuple(conditions.values())
        self.labels = (*goals, *conditions)
        # trade-offs change these: how much each goal counts, and what it may cost at most
        self.emphasis, self.caps = jnp.ones(len(goals)), jnp.full(len(goals), jnp.inf)
        shapes = jax.eval_shape(lambda x: self._measured(self.outcome(x)), self.choice.values)
        self.sizes = tuple(s.size for s in shapes)
        for name, s, part in zip(self.labels, shapes, (*self.goals, *self.conditions)):
            _check_shape(name, s, part)
        n = sum(size for size, goal in zip(self.sizes, self.goals) if isinstance(goal, Match))
        d = self.choice.values.size
        if exact and n > d:
            raise ValueError(
                f"{n} numbers to match exactly are more than the {d} variables: give fewer precision points or more "
                "variables, or leave out `exact` to come as near as can be (least squares)"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each variable."""
        return self.choice.names

    def room(self, x: Any) -> np.ndarray:
        """How far each variable can go: the width between its bounds, or its size."""
        width = np.asarray(self.upper - self.lower)
        return np.where(np.isfinite(width), width, 1 + np.abs(np.asarray(x)))

    def alike(self, x: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Which designs are the same as this one, to 1e-5 of its size."""
        off = np.abs(x - others)
        off = np.where(self.angular, np.abs((off + np.pi) % (2 * np.pi) - np.pi), off)
        return np.all(off < 1e-5 * np.minimum(self.room(x), 1 + np.abs(x)), axis=1)

    def place(self, x: Float[Array, " d"]) -> Any:
        """The PyTree of dimensions with these variables, and what is tied to them."""
        p = self.choice.place(x)
        if self.tied is None:
            return p
        found = []
        for f, (name, shape) in zip(self.ties, self.tied_shapes):
            value = as_float(f(p), f"the tie of {name!r}")
            if value.shape not in ((), shape):
                raise ValueError(f"the tie of {name!r} must give shape {shape}, got {value.shape}")
            found.append(jnp.ravel(jnp.broadcast_to(value, shape)))
        return self.tied.place(jnp.concatenate(found), p)

    def outcome(self, x: Any) -> Any:
        """What the model gives for a design."""
        return self.model(self.place(jnp.asarray(x)))

    def _measured(self, outcome: Any) -> list[Array]:
        with surroundings(self.model):
            return [jnp.asarray(part.measure(outcome), float) for part in (*self.goals, *self.conditions)]

    def __call__(self, x: Float[Array, " d"]) -> Found:
        """All that is measured of one design."""
        outcome = self.outcome(x)
        y = jnp.concatenate([jnp.ravel(part) for part in self._measured(outcome)])
        failed = failure(outcome)
        kind = jnp.where(failed > 0, failed, jnp.where(jnp.all(jnp.isfinite(y)), 0, 3))
        return Found(jnp.where(failed > 0, jnp.nan, y), kind, sequence(outcome))

    def split(self, y: Float[Array, " m"]) -> tuple[list[Array], list[Array]]:
        """What goals and conditions measured."""
        parts = jnp.split(y, np.cumsum(self.sizes)[:-1].tolist())
        return parts[: len(self.goals)], parts[len(self.goals) :]

    def costs(self, y: Float[Array, " m"]) -> Float[Array, " goals"]:
        """What each goal costs."""
        return jnp.stack([goal.cost(part) for goal, part in zip(self.goals, self.split(y)[0])])

    def excess(self, y: Float[Array, " m"]) -> Float[Array, " limits"]:
        """How far each limit is passed, in parts of its scale: those of conditions, then of what goals may cost."""
        goals, conditions = self.split(y)
        parts = [c.excess(part) for c, part in zip(self.conditions, conditions)]
        for goal, part, cap in zip(self.goals, goals, self.caps):
            some = jnp.where(jnp.isfinite(cap), cap, 1.0)
            over = (goal.sides(part) - some) / jnp.maximum(jnp.abs(some), 1e-12)
            parts.append(jnp.where(jnp.isfinite(cap), over, -jnp.inf))
        return jnp.concatenate(parts)

    @property
    def limits(self) -> int:
        """How many limits there are."""
        return jax.eval_shape(self.excess, jnp.zeros(sum(self.sizes))).size

    def objective(self, y: Float[Array, " m"]) -> Float[Array, ""]:
        """The sum of what the goals cost."""
        return jnp.sum(jnp.where(self.emphasis > 0, self.emphasis * self.costs(y), 0.0))

    def __repr__(self) -> str:
        return head(str(self))

    def __str__(self) -> str:
        lines = [f"Task of {len(self.names)} variables"]
        if has_numbers(self.choice.values, self.lower, self.upper) and self.lower.ndim == 1:
            for name, x, low, high in zip(self.names, self.choice.values, self.lower, self.upper):
                lines.append(f"  {name} = {float(x):.6g}, {float(low):.6g} to {float(high):.6g}")
        kinds = ["goal"] * len(self.goals) + ["condition"] * len(self.conditions)
        for kind, name, part, n in zip(kinds, self.labels, (*self.goals, *self.conditions), self.sizes):
            lines.append(f"  {kind} {name}: {part}, {n} number{'s' * (n != 1)}")
        return "\n".join(lines)


def _bounds(name: str, values: Array, given: Any) -> tuple[np.ndarray, np.ndarray]:
    if not (isinstance(given, (tuple, list, np.ndarray)) and len(given) == 2):
        raise ValueError(f"the bounds of {name!r} must be a pair (lower, upper), got {given!r}")
    low, high = (
        np.ravel(np.asarray(side * np.inf if x is None else x, float)) for side, x in zip((-1, 1), given)
    )  # fmt: skip
    for bound in (low, high):
        if bound.size not in (1, values.size) or np.any(np.isnan(bound)):
            raise ValueError(f"the bounds of {name!r} must be numbers, one or {values.size}, got {given!r}")
    if not np.all(low < high):
        raise ValueError(f"the bounds of {name!r} are in the wrong order: {given!r}")
    x = np.asarray(values)
    if np.any(x < low) or np.any(x > high):
        raise ValueError(f"the variable {name!r} starts at {x.tolist()}, outside its bounds {given!r}")
    return low, high


def _check_shape(name: str, found: Any, part: Any) -> None:
    if found.size == 0:
        raise ValueError(f"{name!r} measures nothing")
    limits = {}
    if isinstance(part, Match):
        limits["target"] = part.target
    if isinstance(part, Within):
        limits |= {"lower limits": part.lower, "upper limits": part.upper}
    for what, given in limits.items():
        if given.ndim and given.shape != found.shape:
            raise ValueError(f"the {what} of {name!r} have shape {given.shape}, what it measures has {found.shape}")
