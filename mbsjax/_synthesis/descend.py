"""Synthesis along the gradient, step by step: for long problems, noisy ones, and many variables."""

import pathlib
import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._dynamics.outcome import CLASSES
from .._programs.deprecated import renamed_arguments
from .._programs.progress import bar
from .._programs.trees import as_function, lasting
from .search import merit
from .synthesize import Design, design_at, told, values_at
from .task import Found, Task


class SequenceWarning(UserWarning):
    """The sequence of contacts changed during a search: the objective may jump there, and slopes do not tell it."""


class Descent(NamedTuple):
    """What [`mbsjax.descend`][] found.

    - `best`: the best design on the way, one that keeps the conditions before one that does not.
    - `history`: a row for each step: the objective, and how far the worst condition is passed.
    - `jumps`: the steps at which the sequence of contacts changed.
    - `state`: to go on from: `descend(task, resume=found)`.
    """

    task: Task
    best: Design
    history: Float[np.ndarray, "steps 2"]
    jumps: list[int]
    state: Any

    def __repr__(self) -> str:
        lines = [f"Descent of {len(self.history)} steps", *told(self.task, self.best)]
        if self.jumps:
            lines.append(f"  the sequence of contacts changed at steps {', '.join(map(str, self.jumps))}")
        return "\n".join(lines)


class _Way(NamedTuple):
    """Where a descent is: variables, optimizer, prices and weight of conditions, sharpness of maxima, steps so far."""

    x: Any
    optimizer: Any
    prices: Any
    weight: Any
    sharpness: Any
    steps: Any


@renamed_arguments(optimiser="optimizer")
def descend(
    task: Task,
    *,
    optimizer: Any = None,
    steps: int = 200,
    start: Any = None,
    resume: Any = None,
    save: Any = None,
    reprice: int = 25,
    reverse: bool | None = None,
    progress: bool = False,
) -> Descent:
    """Improves one design along the gradient with an optax optimizer.

    Variables are scaled by the width between their bounds (or by their size), so that a learning rate of 0.01 is one
    part in a hundred; what leaves the bounds is put back. A step to where the analysis fails is taken back, and the
    next ones are shorter.

    **Arguments:**

    - `optimizer`: of optax, with any schedule; `optax.adam(0.01)` by default.
    - `steps`: how many more.
    - `start`: the variables to start from; those of the task by default.
    - `resume`: a [`mbsjax.Descent`][] to go on with; its task may have other numbers, but not another form.
    - `save`: a file to keep the state in, every ten seconds and at the end. If it is there already, the descent goes on
        from it, if it belongs to the same task.
    - `reprice`: after how many steps the multipliers of the conditions are updated, and maxima are sharpened.
    - `reverse`: whether to take the gradient in reverse; by default where there are more than 12 variables.
    - `progress`: whether to show a bar with the objective.

    !!! Example

        >>> import mbsjax as mbs
        >>> task = mbs.Task(lambda p: p, {"a": 3.0, "b": 4.0}, {"a": (0.0, 9.0), "b": (1.0, 9.0)},
        ...                 {"size": mbs.Minimize(lambda p: p["a"] ** 2 + p["b"] ** 2)})
        >>> found = mbs.descend(task, steps=300)
        >>> found.best.x.round(2).tolist(), found.best.active
        ([0.0, 1.0], ['the lower bound of a', 'the lower bound of b'])
    """
    if optimizer is None:
        import optax  # here, for those who do without

        optimizer = optax.adam(0.01)
    optimizer = type(optimizer)(*map(as_function, optimizer))
    reverse = len(task.names) > 12 if reverse is None else reverse
    if reprice < 1:
        raise ValueError(f"multipliers of conditions are updated after one step or more, got reprice={reprice}")
    path = None if save is None else pathlib.Path(save)
    way, record = begun = _begun(task, optimizer, start, resume, path)
    count, saved = int(way.steps) + steps, time.monotonic()
    try:
        with bar(count, progress, int(way.steps), "steps") as shown:
            for way, record, new in _evaluations(task, optimizer, *begun, count, reprice, reverse):
                if not new:
                    continue
                shown.update(1)
                shown.set_postfix_str(f"objective {record.rows[-1][0]:.6g}")
                if path is not None and time.monotonic() - saved > 10:
                    _keep(task, path, way, record)
                    saved = time.monotonic()
    except KeyboardInterrupt:
        if record.best is None:
            raise
    best = record.best
    if best is None:  # no step was asked for
        best = _Best(np.asarray(way.x), values_at(task, way.x))
    if path is not None:
        _keep(task, path, way, record._replace(best=best))
    history = np.array(record.rows).reshape(-1, 2)
    return Descent(task, design_at(task, best.x, best.y, np.asarray(way.prices)), history, record.jumps, way)


class _Best(NamedTuple):
    """The variables of the best design so far, and what was measured."""

    x: np.ndarray
    y: np.ndarray


class _Record(NamedTuple):
    """What a descent has found so far: the objective and the worst excess of each step, the steps at which the sequence
    of contacts changed, and the best design."""

    rows: list[tuple[float, float]]
    jumps: list[int]
    best: _Best | None


def _begun(
    task: Task, optimizer: Any, start: Any, resume: Descent | None, path: pathlib.Path | None
) -> tuple[_Way, _Record]:
    """Where a descent begins: at its start, or where another one ended."""
    begin = np.asarray(task.choice.values if start is None else start, float)
    if begin.shape != (len(task.names),):
        raise ValueError(f"the start must be {len(task.names)} numbers, one for each variable, got {begin.shape}")
    low, high = np.asarray(task.lower), np.asarray(task.upper)
    if np.any(begin < low) or np.any(begin > high):
        name = task.names[int(np.argmax((begin < low) | (begin > high)))]
        raise ValueError(f"the start of {name!r} is outside its bounds")
    way = _Way(
        jnp.asarray(begin), optimizer.init(jnp.zeros(len(begin))), jnp.zeros(task.limits), jnp.asarray(10.0),
        jnp.ones(len(task.goals)), jnp.zeros((), int),
    )  # fmt: skip
    if resume is not None:
        rows, best = [tuple(row) for row in resume.history.tolist()], _Best(resume.best.x, resume.best.y)
        if not np.array_equal(_mark(task), _mark(resume.task)):  # another task has another best
            rows, best = [(np.inf, np.inf)] * len(rows), None
        return resume.state, _Record(rows, list(resume.jumps), best)
    if path is not None and path.exists():
        return _restored(task, path, way)
    return way, _Record([], [], None)


def _evaluations(
    task: Task, optimizer: Any, way: _Way, record: _Record, count: int, reprice: int, reverse: bool
) -> Iterator[tuple[_Way, _Record, bool]]:
    """Steps until there are so many: after each evaluation where the descent is, what it has found, and whether that
    is a new step. Where the analysis fails, the last step is taken again, half as long."""
    top = min(map(_rank, record.rows), default=(True, np.inf))
    seen, factor, before = None, jnp.ones(()), way
    while int(way.steps) < count:
        k = int(way.steps)
        found, after = _stepped(task, optimizer, way, factor, jnp.asarray(k % reprice == 0), reverse)
        if not bool(after.ok):
            if not record.rows:
                where = ", ".join(f"{n} = {x:.6g}" for n, x in zip(task.names, np.asarray(way.x)))
                raise ValueError(
                    f"the task has no finite objective and gradient ({CLASSES[int(found.kind)]}) at {where}"
                )
            if float(factor) < 1e-9:
                return
            way, factor = before, factor / 2
            yield way, record, False
            continue
        before, way = way, after.way
        new = k >= len(record.rows)  # else it is here again, to take a shorter step
        if new:
            row = float(after.objective), float(after.over)
            record.rows.append(row)
            if record.best is None or _rank(row) < top:
                top, record = _rank(row), record._replace(best=_Best(np.asarray(before.x), np.asarray(found.y)))
            if seen is not None and int(found.sequence) != seen:
                record.jumps.append(k)
                _warn_of_jump(k, *record.rows[-2:])
            seen = int(found.sequence)
        yield way, record, new


def _warn_of_jump(k: int, was: tuple[float, float], now: tuple[float, float]) -> None:
    change = f"the sequence of contacts changed at step {k}, the objective from {was[0]:.6g} to {now[0]:.6g}"
    warnings.warn(change, SequenceWarning, stacklevel=4)  # it is of the call of `descend`


def _rank(row: tuple[float, float]) -> tuple[bool, float]:
    """What keeps the conditions goes before what does not."""
    objective, over = row
    return over > 1e-6, objective if over <= 1e-6 else over


class _After(NamedTuple):
    ok: Any
    objective: Any
    over: Any
    way: _Way


@lasting
def _stepped(task: Task, optimizer: Any, way: _Way, factor: Array, turn: Array, reverse: bool) -> tuple[Found, _After]:
    """What is measured here, and the next step, with new prices and sharpness if it is their `turn`."""
    room = task.upper - task.lower
    size = jnp.where(jnp.isfinite(room), room, jnp.maximum(1.0, jnp.abs(way.x)))

    def measured(u: Array) -> Any:
        found = task(way.x + size * u)
        here = jax.lax.stop_gradient(found.y)
        pressed = jnp.maximum(way.prices + way.weight * task.excess(here), 0.0)
        prices = jnp.where(turn & (way.steps > 0), pressed, way.prices)
        sizes = jnp.stack([jnp.max(jnp.abs(part)) for part in task.split(here)[0]])
        finer = jnp.where(way.steps == 0, 0.1 * sizes, jnp.maximum(way.sharpness / 2, 1e-6 * sizes))
        sharpness = jnp.where(turn, jnp.maximum(finer, 1e-300), way.sharpness)
        return merit(task, found.y, prices, way.weight, sharpness), (found, prices, sharpness)

    zero = jnp.zeros_like(way.x)
    g, (found, prices, sharpness) = (jax.grad if reverse else jax.jacfwd)(measured, has_aux=True)(zero)
    move, state = optimizer.update(g, way.optimizer, zero)
    x = jnp.clip(way.x + factor * size * move, task.lower, task.upper)
    ok = jnp.all(jnp.isfinite(g)) & jnp.all(jnp.isfinite(found.y))
    over = jnp.max(task.excess(found.y), initial=-jnp.inf)
    weight = jnp.where(turn & (way.steps > 0) & (over > 1e-4), jnp.minimum(2 * way.weight, 1e9), way.weight)
    next_way = _Way(x, state, prices, weight, sharpness, way.steps + 1)
    return found, _After(ok, task.objective(found.y), over, next_way)


def _mark(task: Task) -> np.ndarray:
    """Numbers that tell a task from another one: all that it has."""
    return np.concatenate(
        [np.ravel(np.asarray(x, float)) for x in jax.tree_util.tree_leaves(eqx.filter(task, eqx.is_array_like))]
    )


def _keep(task: Task, path: pathlib.Path, way: _Way, record: _Record) -> None:
    rows, jumps, best = record
    kept: dict[str, Any] = {f"leaf{i}": np.asarray(x) for i, x in enumerate(jax.tree_util.tree_leaves((way, best)))}
    kept |= {"mark": _mark(task), "rows": np.array(rows).reshape(-1, 2), "jumps": np.array(jumps, int)}
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        np.savez(file, **kept)
    new.replace(path)


def _restored(task: Task, path: pathlib.Path, like: _Way) -> tuple[_Way, _Record]:
    with np.load(path) as kept:
        leaves, structure = jax.tree_util.tree_flatten((like, _Best(np.asarray(like.x), np.zeros(sum(task.sizes)))))
        names = [f"leaf{i}" for i in range(len(leaves))]
        fits = set(names) | {"mark", "rows", "jumps"} == set(kept.files) and np.array_equal(kept["mark"], _mark(task))
        if not fits or any(kept[n].shape != np.shape(x) for n, x in zip(names, leaves)):
            raise ValueError(f"{path} belongs to another task or optimizer; give another file, or remove it")
        way, best = jax.tree_util.tree_unflatten(structure, [jnp.asarray(kept[n]) for n in names])
        rows = [tuple(row) for row in kept["rows"].tolist()]
        return way, _Record(rows, kept["jumps"].tolist(), _Best(*map(np.asarray, best)))
