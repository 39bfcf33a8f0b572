"""Several goals at once: by levels of importance, and as a front of designs none of which is better in all."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._programs.reprs import brief
from .synthesize import Design, Synthesis, synthesize
from .task import Task


class Front(NamedTuple):
    """Designs between the best for one goal and the best for another, none of them better than another in both.

    - `goals`: the names of the two; `designs`: in the order of the first one's cost; look at their `met`.
    """

    goals: tuple[str, str]
    designs: list[Design]

    @property
    def costs(self) -> np.ndarray:
        """The costs of both goals, a row for each design."""
        return np.array([[d.costs[name] for name in self.goals] for d in self.designs])

    def plot(self, axes: Any = None) -> Any:
        """The front."""
        import matplotlib.pyplot as plt

        axes = plt.subplots()[1] if axes is None else axes
        axes.plot(*self.costs.T, "o-")
        axes.set(xlabel=self.goals[0], ylabel=self.goals[1])
        return axes

    def __repr__(self) -> str:
        return brief(self, goals=self.goals, costs=self.costs)


def levels(task: Task, order: Sequence[str], *, worsening: Any = 0.05, **options: Any) -> list[Synthesis]:
    """Goals one after the other, the most important first: each is made as small as can be while those before it get
    worse by no more than a part of what they had reached (lexicographic goals).

    **Arguments:**

    - `order`: the names of all goals.
    - `worsening`: the part by which a goal may get worse for those after it; one for all, or one each.
    - `options`: of [`mbsjax.synthesize`][].

    **Returns:** the syntheses of all levels; the last one's `best` is the design wanted.

    !!! Example

        >>> import mbsjax as mbs
        >>> task = mbs.Task(lambda p: p["x"], {"x": 0.0}, {"x": (-3.0, 3.0)},
        ...                 {"near 1": mbs.Minimize(lambda x: 1 + (x - 1) ** 2),
        ...                  "near 0": mbs.Minimize(lambda x: x**2)})
        >>> first, second = mbs.levels(task, ["near 1", "near 0"], worsening=0.25)
        >>> round(float(first.best.x[0]), 6), round(float(second.best.x[0]), 6)
        (1.0, 0.5)
    """
    names = task.labels[: len(task.goals)]
    if sorted(order) != sorted(names):
        raise ValueError(f"`order` must name every goal once, they are {', '.join(names)}; got {list(order)!r}")
    allowed = np.broadcast_to(np.asarray(worsening, float), (len(names),))
    if np.any(allowed < 0):
        raise ValueError(f"a goal cannot get worse by a negative part, got {worsening!r}")
    limits: dict[str, float] = {}
    found: list[Synthesis] = []
    for name, part in zip(order, allowed):
        starts: dict[str, Any] = options if not found else options | {"starts": found[-1].best.x[None]}
        found.append(synthesize(limited(task, name, limits), **starts))
        reached = found[-1].best.costs[name]
        limits[name] = reached + part * abs(reached)
    return found


def pareto(task: Task, first: str, second: str, *, count: int = 11, **options: Any) -> Front:
    """The front between two goals: the best for each, and between them the best for one with limits on the other, at
    equal steps. Where the front is bent inwards, weights would not find it; limits do.

    **Arguments:**

    - `first`, `second`: the names of the goals.
    - `count`: how many designs, the two ends included.
    - `options`: of [`mbsjax.synthesize`][]; they are used for the first end, from which the others are found.

    !!! Example

        >>> import mbsjax as mbs
        >>> task = mbs.Task(lambda p: p["x"], {"x": 0.0}, {"x": (-3.0, 3.0)},
        ...                 {"near 1": mbs.Minimize(lambda x: (x - 1) ** 2), "near 0": mbs.Minimize(lambda x: x**2)})
        >>> mbs.pareto(task, "near 1", "near 0", count=3).costs.round(4).tolist()
        [[0.0, 1.0], [0.0858, 0.5], [1.0, 0.0]]
    """
    names = task.labels[: len(task.goals)]
    for name in (first, second):
        if name not in names:
            raise ValueError(f"there is no goal {name!r}; they are {', '.join(names)}")
    if count < 2 or first == second:
        raise ValueError("a front needs two goals, and at least its two ends")
    best = synthesize(limited(task, first, {}), **options).best
    near = lambda d: options | {"starts": d.x[None]}
    other = synthesize(limited(task, second, {}), **near(best)).best
    designs = [best]
    for limit in np.linspace(best.costs[second], other.costs[second], count)[1:-1]:
        designs.append(synthesize(limited(task, first, {second: limit}), **near(designs[-1])).best)
    return Front((first, second), [*designs, other])  # each tells in `met` whether its limit was kept


def limited(task: Task, name: str, limits: dict[str, float]) -> Task:
    """The task with one goal only, and limits on what others cost. All of them have the same form, and are compiled
    once."""
    names = task.labels[: len(task.goals)]
    emphasis = jnp.asarray([1.0 if n == name else 0.0 for n in names])
    caps = jnp.asarray([limits.get(n, np.inf) for n in names])
    return eqx.tree_at(lambda t: (t.emphasis, t.caps), task, (emphasis, caps))
