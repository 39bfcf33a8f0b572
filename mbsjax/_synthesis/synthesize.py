"""Synthesis from many starts at once, and what came of it."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from .._dynamics.outcome import CLASSES
from .._pictures.table import Table
from .._programs.progress import bar
from .._programs.reprs import by_fields
from .._programs.trees import once
from .goal import Match, Minimax
from .search import Lane, Settings, advance, lane
from .task import Task


class Design(NamedTuple):
    """A design that was found.

    - `x`: its variables, in the order of `task.names`; `dimensions`: the PyTree with them.
    - `objective`: the sum of `costs`, which are those of the goals by name.
    - `met`: whether all conditions are kept; `excess`: by name, how far the worst of its limits is passed, in parts of
        the condition's scale; negative: the room that is left.
    - `active`: bounds and conditions that hold it back, in words.
    - `y`: all that is measured, goals before conditions.
    - `starts`: how many starts ended here.
    - `cognate`: the number of the first design of which all that is measured is the same, though it is another one;
        None if there is none.
    """

    x: np.ndarray
    dimensions: Any
    objective: float
    costs: dict[str, float]
    met: bool
    excess: dict[str, float]
    active: list[str]
    y: np.ndarray
    starts: int = 1
    cognate: int | None = None

    __repr__ = by_fields


class Synthesis(NamedTuple):
    """What [`mbsjax.synthesize`][] found. `print` tells it.

    - `task`, `options`: what it was asked: `synthesize(found.task, **found.options)` gives the same again.
    - `designs`: the distinct ones, best first, those that keep all conditions before those that do not.
    - `ended`: how many starts ended how.
    - `history`: rows of seconds, evaluations so far, and the best objective that keeps the conditions.
    - `jumps`: in how many steps of all searches the sequence of contacts changed: there the objective may have a jump
        or a corner, and slopes tell but one side of it.
    """

    task: Task
    options: dict[str, Any]
    designs: list[Design]
    ended: dict[str, int]
    history: np.ndarray
    jumps: int

    @property
    def best(self) -> Design:
        return self.designs[0]

    @property
    def seconds(self) -> float:
        return float(self.history[-1, 0])

    @property
    def evaluations(self) -> int:
        return int(self.history[-1, 1])

    def table(self, count: int = 10) -> Table:
        """The best designs, as a table."""
        columns = ("design", "objective", "starts", *self.task.names, "")
        rows = []
        for i, d in enumerate(self.designs[:count]):
            notes = [] if d.met else ["conditions not kept"]
            notes += [] if d.cognate is None else [f"cognate of {d.cognate}"]
            rows.append((str(i), d.objective, d.starts, *map(float, d.x), ", ".join(notes)))
        return Table("Designs", columns, rows)

    def before_and_after(self, design: int = 0) -> Table:
        """Variables, costs and conditions of the start and of a design."""
        d, task = self.designs[design], self.task
        x = np.asarray(task.choice.values)
        old = design_at(task, x, values_at(task, x), np.zeros(task.limits))
        rows = [(name, float(a), float(b)) for name, a, b in zip(task.names, x, d.x)]
        rows += [(f"goal {name}", old.costs[name], d.costs[name]) for name in d.costs]
        rows += [(f"condition {name}, beyond its limit by", old.excess[name], d.excess[name]) for name in d.excess]
        return Table("Before and after", ("", "start", f"design {design}"), rows)

    def __repr__(self) -> str:
        ended = ", ".join(f"{n} {how}" for how, n in self.ended.items())
        lines = [
            f"Synthesis of {len(self.task.names)} variables: {len(self.designs)} designs from "
            f"{sum(self.ended.values())} starts ({ended}), {self.evaluations} evaluations, {self.seconds:.1f} s"
        ]
        lines += told(self.task, self.best)
        if self.jumps:
            lines.append(f"  the sequence of contacts changed in {self.jumps} steps: there the objective may jump")
        return "\n".join(lines)

    def plot_match(self, goal: str, design: int = 0, axes: Any = None) -> Any:
        """What a [`mbsjax.Match`][] wants, with the start and a design: points of a path, numbered in their order, or
        numbers in a row."""
        import matplotlib.pyplot as plt

        names = self.task.labels[: len(self.task.goals)]
        match = self.task.goals[names.index(goal)] if goal in names else None
        if not isinstance(match, Match):
            raise ValueError(f"there is no goal {goal!r} to match; the goals are {', '.join(names)}")
        axes = plt.subplots()[1] if axes is None else axes
        k = names.index(goal)
        shape = jnp.broadcast_shapes(match.target.shape, (self.task.sizes[k],) if match.target.ndim == 0 else ())
        parts = {"start": values_at(self.task, self.task.choice.values), f"design {design}": self.designs[design].y}
        rows = {name: np.asarray(self.task.split(jnp.asarray(y))[0][k]).reshape(shape) for name, y in parts.items()}
        target = np.broadcast_to(np.asarray(match.target), shape)
        path = len(shape) == 2 and shape[1] == 2
        for (name, row), color in zip(rows.items(), ("0.7", "tab:blue")):
            axes.plot(*(row.T if path else (np.ravel(row),)), ".-", color=color, label=name)
        axes.plot(*(target.T if path else (np.ravel(target),)), "o", color="tab:red", mfc="none", label="target")
        if path:
            axes.set_aspect("equal")
            for i, place in enumerate(target, 1):
                axes.annotate(str(i), place, textcoords="offset points", xytext=(4, 4), fontsize=7)
        axes.legend()
        return axes

    def plot_history(self, axes: Any = None) -> Any:
        """The best objective against the evaluations."""
        import matplotlib.pyplot as plt

        axes = plt.subplots()[1] if axes is None else axes
        axes.step(self.history[:, 1], self.history[:, 2], where="post")
        axes.set(xlabel="evaluations", ylabel="best objective", xscale="log")
        known = self.history[np.isfinite(self.history[:, 2]), 2]
        if len(known) and known.min() > 0:
            axes.set_yscale("log")
        return axes


def synthesize(
    task: Task,
    *,
    starts: Any = 1,
    seed: int = 0,
    draw: Mapping[str, Any] | None = None,
    width: int = 256,
    max_steps: int = 300,
    rtol: float = 1e-12,
    progress: bool = False,
) -> Synthesis:
    """Searches for the best designs from many starts side by side.

    Each search takes damped Newton steps (Levenberg and Marquardt) with exact slopes, within the bounds. Goals are
    convex functions of what is measured, so the slopes tell most of the curvature; the rest is learned on the way
    (Dennis, Gay and Welsch). Conditions get multipliers (augmented Lagrangian), maxima are sharpened, both in stages. A
    step to where the mechanism cannot be assembled is taken back. Where more is measured than may vary, slopes are
    taken forward, otherwise in reverse.

    A search that has ended makes room for the next start, so none waits for the slowest. Interrupted (Ctrl-C), it
    gives what was found so far.

    **Arguments:**

    - `task`: the [`mbsjax.Task`][].
    - `starts`: how many: the task's own, and others spread over the bounds; or their variables, an array with a row for
        each.
    - `seed`: of the starts.
    - `draw`: by name of a variable or dimension, where to draw starts from, if not from between the bounds. If it is
        given, all starts are drawn, and the task's own is not among them.
    - `width`: how many searches run side by side.
    - `max_steps`: of each search.
    - `rtol`: a relative gain that is none.
    - `progress`: whether to show a bar, by steps of all searches, with the best objective so far.

    !!! Example

        >>> import mbsjax as mbs
        >>> tip = lambda p: jnp.array([jnp.cos(p["a"]) + jnp.cos(p["b"]), jnp.sin(p["a"]) + jnp.sin(p["b"])])
        >>> task = mbs.Task(tip, {"a": 0.0, "b": 1.0}, {"a": (-3.0, 3.0), "b": (-3.0, 3.0)},
        ...                 {"reach": mbs.Match(lambda at: at, (1.0, 1.0))}, exact=True)
        >>> found = mbs.synthesize(task, starts=16)
        >>> [d.objective < 1e-20 for d in found.designs[:2]], found.designs[1].cognate  # elbow up and down
        ([True, True], 0)
    """
    began = time.perf_counter()
    options = {"starts": starts, "seed": seed, "draw": draw, "width": width, "max_steps": max_steps, "rtol": rtol}
    if width < 1:
        raise ValueError(f"at least one search must run at a time, got a width of {width}")
    x = _starts(task, starts, seed, draw)
    hard = bool(task.conditions) or any(isinstance(goal, Minimax) for goal in task.goals)
    hard = hard or bool(np.isfinite(task.caps).any())
    limits = (jnp.asarray(limit) for limit in (max_steps, 12 if hard else 1, rtol))
    settings = Settings(*limits, forward=sum(task.sizes) >= x.shape[1])
    ends, history = _multistart(task, x, settings, min(width, len(x)), progress, began)
    return _judged(task, options, ends, history)


_TOLERANCE = 1e-6  # by which a condition may be passed, in parts of its scale


def _multistart(
    task: Task, x: np.ndarray, settings: Settings, width: int, progress: bool, began: float
) -> tuple[list["_End"], np.ndarray]:
    """Searches from all starts, so many side by side: how each ended, and the history. Interrupted, those that have
    begun."""
    fresh = jax.vmap(lambda x: lane(task, x))
    lanes, waiting = fresh(jnp.asarray(x[:width])), width
    owner = np.arange(width)  # which start each lane works on; -1: none
    ends: dict[int, _End] = {}
    history: list[tuple[float, int, float]] = []
    spent, best, most, taken = 0, np.inf, int(settings.max_steps), 0
    try:
        with bar(len(x) * most, progress, unit="steps") as shown:
            while len(ends) < len(x):
                lanes = advance(task, lanes, settings, 12 if width > 1 else 4)
                now, scores = Lane(*map(np.array, lanes)), _Scores(*map(np.asarray, _scores(task, lanes.y)))
                finished = np.flatnonzero(now.done & (owner >= 0))
                ends |= _ends(now, scores, owner, finished)
                kept = np.isfinite(now.merit[finished]) & (scores.worst[finished] <= _TOLERANCE)
                best = min([best, *map(float, scores.objective[finished][kept])])
                running = int(now.steps[owner >= 0].sum())
                history.append((time.perf_counter() - began, spent + running, best))
                before, taken = taken, len(ends) * most + int(now.steps[(owner >= 0) & ~now.done].sum())
                shown.update(taken - before)
                least = min([best, *map(float, scores.objective[(owner >= 0) & (scores.worst <= _TOLERANCE)])])
                shown.set_postfix_str(f"best {least:.6g}, {len(ends)} of {len(x)} starts done")
                spent += int(now.steps[finished].sum())
                owner[finished] = -1
                free = finished[: len(x) - waiting]
                if len(free):
                    owner[free] = np.arange(waiting, waiting + len(free))
                    for old, new in zip(now, fresh(jnp.asarray(x[owner[free]]))):
                        old[free] = np.asarray(new)
                    waiting += len(free)
                    lanes = Lane(*map(jnp.asarray, now))
    except KeyboardInterrupt:
        if not history:
            raise
        now, scores = Lane(*map(np.array, lanes)), _Scores(*map(np.asarray, _scores(task, lanes.y)))
        ends |= _ends(now, scores, owner, np.flatnonzero((owner >= 0) & (now.steps > 0)))
    return [ends[i] for i in sorted(ends)], np.array(history)


def _ends(lanes: Lane, scores: "_Scores", owner: np.ndarray, which: np.ndarray) -> dict[int, "_End"]:
    """How the searches in these lanes ended, by number of the start."""
    return {int(owner[i]): _End(Lane(*_row(lanes, i)), _Scores(*_row(scores, i))) for i in which}


def _row(columns: Any, i: Any) -> list[np.ndarray]:
    """One row of all columns, as copies: the lane goes on with another start."""
    return [np.array(column[i]) for column in columns]


class _Scores(NamedTuple):
    """How good designs are: the objective, the worst excess, costs of goals, and excess of conditions."""

    objective: Any
    worst: Any
    costs: Any
    excess: Any


@once
def _scores(task: Task, y: Any) -> _Scores:
    def one(y: Any) -> _Scores:
        each = [jnp.max(c.excess(part)) for c, part in zip(task.conditions, task.split(y)[1])]
        return _Scores(task.objective(y), jnp.max(task.excess(y)), task.costs(y), jnp.stack([*each, jnp.zeros(())]))

    return jax.vmap(one)(y)


def told(task: Task, design: Design) -> list[str]:
    """A design in words."""
    wide = max(map(len, task.names))
    lines = [f"  best objective {design.objective:.10g}" + ("" if design.met else " (conditions not kept)")]
    lines += [f"  {name:{wide}}  {x:.8g}" for name, x in zip(task.names, design.x)]
    return lines + [f"  held by {what}" for what in design.active]


def design_at(task: Task, x: np.ndarray, y: np.ndarray, prices: np.ndarray, scores: Any = None) -> Design:
    """A design from its variables, what is measured of it, and the prices of its conditions."""
    if scores is None:
        scores = _Scores(*(np.asarray(part)[0] for part in _scores(task, jnp.asarray(y)[None])))
    n, active = len(task.goals), _active(task, x, prices)
    costs, excess = (dict(zip(names, part.tolist())) for names, part in (
        (task.labels[:n], scores.costs), (task.labels[n:], scores.excess)))  # fmt: skip
    dimensions, kept = task.place(jnp.asarray(x)), bool(scores.worst <= _TOLERANCE)
    return Design(x, dimensions, float(scores.objective), costs, kept, excess, active, y)


def values_at(task: Task, x: Any) -> np.ndarray:
    """What is measured of a design."""
    return np.asarray(_measured(task, jnp.asarray(x)))


@once
def _measured(task: Task, x: Any) -> Any:
    return task(x).y


class _End(NamedTuple):
    """How a search ended."""

    lane: Lane
    scores: _Scores

    @property
    def begun(self) -> bool:
        return bool(np.isfinite(self.lane.merit))

    @property
    def kept(self) -> bool:
        return bool(self.scores.worst <= _TOLERANCE)


def _judged(task: Task, options: dict[str, Any], ends: list[_End], history: np.ndarray) -> Synthesis:
    ended: dict[str, int] = {}
    for end in ends:
        if not end.begun:
            how = f"could not be evaluated ({CLASSES[int(end.lane.kind)]})"
        elif not end.lane.done:
            how = "interrupted"
        elif not end.kept:
            how = "did not keep the conditions"
        else:
            how = "converged" if end.lane.still >= 3 else "ran out of steps"
        ended[how] = ended.get(how, 0) + 1
    begun = [end for end in ends if end.begun]
    if not begun:
        first = ", ".join(f"{name} = {x:.6g}" for name, x in zip(task.names, ends[0].lane.x))
        told = ", ".join(f"{n} {how}" for how, n in ended.items())
        raise ValueError(f"none of the {len(ends)} starts could be used: {told}; the first was {first}")
    begun.sort(key=lambda end: (not end.kept, end.scores.objective))
    designs: list[Design] = []
    X, Y = np.empty((len(begun), len(task.names))), np.empty((len(begun), sum(task.sizes)))
    kept = np.zeros(len(begun), bool)
    for end in begun:
        n, x, y = len(designs), end.lane.x, end.lane.y
        same = np.flatnonzero(task.alike(x, X[:n]) & (kept[:n] == end.kept))
        if len(same):
            designs[same[0]] = designs[same[0]]._replace(starts=designs[same[0]].starts + 1)
            continue
        design = design_at(task, x, y, end.lane.prices, end.scores)
        equal = np.all(np.abs(Y[:n] - y) < 1e-6 * np.abs(y).max() + 1e-12, axis=1) & end.kept
        first = next((int(k) for k in np.flatnonzero(equal) if designs[k].cognate is None), None)
        X[n], Y[n], kept[n] = x, y, end.kept
        designs.append(design._replace(cognate=first))
    return Synthesis(task, options, designs, ended, history, sum(int(end.lane.jumps) for end in begun))


def _active(task: Task, x: np.ndarray, prices: np.ndarray) -> list[str]:
    low, high, near = np.asarray(task.lower), np.asarray(task.upper), 1e-14 * task.room(x)
    found = [f"the lower bound of {name}" for name, at in zip(task.names, x - low < near) if at]
    found += [f"the upper bound of {name}" for name, at in zip(task.names, high - x < near) if at]
    start = 0
    for name, n in zip(task.labels[len(task.goals) :], task.sizes[len(task.goals) :]):
        if np.any(prices[start : start + 2 * n] > 0):
            found.append(f"the condition {name}")
        start += 2 * n
    for name, goal, n in zip(task.labels, task.goals, task.sizes):
        sides = goal.sides(jnp.zeros(n)).size
        found += [f"what {name} may cost"] * bool(np.any(prices[start : start + sides] > 0))
        start += sides
    return found


def _starts(task: Task, given: Any, seed: int, draw: Mapping[str, Any] | None) -> np.ndarray:
    d = len(task.names)
    own = np.asarray(task.choice.values)
    if not isinstance(given, (int, np.integer)):
        x = np.array(given, float)
        if x.ndim != 2 or x.shape[1] != d or len(x) == 0 or not np.all(np.isfinite(x)):
            raise ValueError(f"the starts must be rows of {d} numbers, finite, one for each variable, got {x.shape}")
        return np.clip(x, np.asarray(task.lower), np.asarray(task.upper))
    if len(draw or {}) and any(np.shape(pair) != (2,) for pair in (draw or {}).values()):
        raise ValueError(f"`draw` must give a pair (lower, upper) for each variable, got {draw!r}")
    if given < 1:
        raise ValueError(f"there must be at least one start, got {given}")
    low, high = np.array(task.lower), np.array(task.upper)
    for name, pair in (draw or {}).items():
        at = [i for i, n in enumerate(task.names) if n == name or n.startswith(f"{name}[")]
        if not at:
            raise ValueError(f"there is no variable {name!r} to draw; they are {', '.join(task.names)}")
        low[at], high[at] = pair
    if (given > 1 or draw) and not np.all(np.isfinite(high - low)):
        name = task.names[int(np.argmin(np.isfinite(high - low)))]
        raise ValueError(f"starts cannot be drawn for {name!r}, which has no bounds: say where from with `draw`")
    if not np.all(low <= high):
        raise ValueError(f"the starts of {task.names[int(np.argmin(low <= high))]!r} are drawn from an empty range")
    count = int(given) if draw else int(given) - 1
    if count == 0:
        return own[None]
    points = scipy.stats.qmc.Sobol(d, rng=np.random.default_rng(seed)).random(1 << count.bit_length())[:count]
    drawn = np.clip(low + points * (high - low), task.lower, task.upper)
    return drawn if draw else np.concatenate([own[None], drawn])
