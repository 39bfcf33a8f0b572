"""One search for a design: damped Newton steps within bounds, with exact slopes, and prices for the conditions."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._dynamics.outcome import CLASSES
from .._programs.trees import lasting, without_unused
from .task import Task


class Lane(NamedTuple):
    """A search on its way: many of them run side by side.

    - `x`, `y`, `J`: the design, what is measured of it, and the slopes; `merit`: what is to fall.
    - `B`: the part of the curvature that the slopes do not tell, learned from step to step.
    - `damping`: of the steps; `prices`, `weight`: of the conditions; `sharpness`: of maxima, one for each goal.
    - `stage`: how often prices and sharpness were set; `still`: steps in a row that did not help.
    - `steps`: how many were tried; `kind`, `sequence`: as in `Found`; `jumps`: steps that changed the contact sequence.
    - `done`: whether it has ended.
    """

    x: Any
    y: Any
    J: Any
    merit: Any
    B: Any
    damping: Any
    prices: Any
    weight: Any
    sharpness: Any
    stage: Any
    still: Any
    steps: Any
    kind: Any
    sequence: Any
    jumps: Any
    done: Any


class Settings(NamedTuple):
    """How long to search: steps in all, stages of prices and sharpness, and what relative gain is none, all of them
    arrays, so that others need no other program; and whether slopes are taken forward."""

    max_steps: Any
    stages: Any
    rtol: Any
    forward: bool


def lane(task: Task, x: Float[Array, " d"]) -> Lane:
    """A search that has not looked at its start yet."""
    d, m = x.size, sum(task.sizes)
    zero, no = jnp.zeros(()), jnp.zeros((), int)
    return Lane(
        x=x, y=jnp.zeros(m), J=jnp.zeros((m, d)), merit=zero + jnp.inf, B=jnp.zeros((d, d)), damping=zero + 0.1,
        prices=jnp.zeros(task.limits), weight=zero + 10.0, sharpness=jnp.ones(len(task.goals)), stage=no, still=no,
        steps=no, kind=no, sequence=jnp.zeros((), jnp.uint32), jumps=no, done=jnp.zeros((), bool),
    )  # fmt: skip


@lasting
def advance(task: Task, lanes: Lane, settings: Settings, count: int) -> Lane:
    """All searches by some steps each."""
    step = lambda one: jax.tree_util.tree_map(lambda a, b: jnp.where(one.done, a, b), one, _step(task, one, settings))
    if lanes.x.shape[0] == 1:  # a batch of one costs more to compile
        every = lambda many: jax.tree_util.tree_map(
            lambda x: x[None], step(jax.tree_util.tree_map(lambda x: x[0], many))
        )
    else:
        every = jax.vmap(step)
    return jax.lax.fori_loop(0, count, lambda _, many: every(many), lanes)


def merit(task: Task, y: Array, prices: Array, weight: Array, sharpness: Array) -> Array:
    """Costs, and an augmented Lagrangian of the conditions: a convex function of what is measured."""
    parts, _ = task.split(y)
    total = sum(e * goal.smooth(part, s) for goal, part, s, e in zip(task.goals, parts, sharpness, task.emphasis))
    pressed = jnp.maximum(prices + weight * task.excess(y), 0.0)
    return total + jnp.sum(pressed**2 - prices**2) / (2 * weight)


def _look(task: Task, x: Array, forward: bool) -> tuple[Array, Array, Array, Array]:
    """What is measured, and its slopes."""

    measured = without_unused(task, x)

    def twice(x: Array) -> Any:
        found = measured(x)
        return found.y, found

    J, found = (jax.jacfwd if forward else jax.jacrev)(twice, has_aux=True)(x)
    return found.y, J, found.kind, found.sequence


def _step(task: Task, s: Lane, settings: Settings) -> Lane:
    first = s.steps == 0
    cost = lambda y: merit(task, y, s.prices, s.weight, s.sharpness)
    slope = jax.grad(cost)
    g = s.J.T @ slope(s.y)
    bends = jax.vmap(lambda v: jax.jvp(slope, (s.y,), (v,))[1], 1, 1)(s.J)
    H = s.J.T @ bends + s.B

    # what a bound holds back stays there; the step ends where it meets the next bound
    room = jnp.where(jnp.isfinite(task.upper - task.lower), task.upper - task.lower, 1.0 + jnp.abs(s.x))
    eps, tiny = jnp.finfo(s.x.dtype).eps, jnp.finfo(s.x.dtype).tiny
    low, high = s.x <= task.lower + eps * room, s.x >= task.upper - eps * room
    bent = jnp.abs(jnp.diag(H))
    size = jnp.sqrt(jnp.maximum(bent, 1e-3 * jnp.abs(g) / room) + 1e-12 * jnp.max(bent) + tiny)
    free = ~(low & (g > 0) | high & (g < 0))
    move = _damped(H, g, size, s.damping, free)
    move = _damped(H, g, size, s.damping, free & ~(low & (move < 0) | high & (move > 0)))
    move = jnp.where(low & (move < 0) | high & (move > 0), 0.0, move)
    way = jnp.where(move > 0, task.upper, task.lower) - s.x
    short = jnp.min(jnp.where(move == 0, jnp.inf, way / jnp.where(move == 0, 1.0, move)))
    sound = jnp.all(jnp.isfinite(move))  # if not, H is not convex here: damp more
    part = jnp.minimum(short, 1.0)
    meets = (move != 0) & (
        jnp.abs(way) <= part * jnp.abs(move) * (1 + 1e-9)
    )  # to the bound, not to the number beside it
    x = jnp.clip(s.x + part * move, task.lower, task.upper)
    x = jnp.where(meets, jnp.where(move > 0, task.upper, task.lower), x)
    x = jnp.where(sound & ~first, x, s.x)
    move = x - s.x
    promised = -(g @ move + move @ H @ move / 2)

    y, J, kind, seq = _look(task, x, settings.forward)
    value = cost(y)
    there = jnp.isfinite(value) & jnp.all(jnp.isfinite(J)) & (sound | first)
    kind = jnp.where(~there & (kind == 0), CLASSES.index("no value"), kind)
    better = there & (value < s.merit)
    gain = (s.merit - value) / jnp.where(promised > 0, promised, 1.0)
    damping = jnp.where(
        better, jnp.where(gain > 0.75, s.damping / 5, jnp.where(gain < 0.25, 2.0, 1.0) * s.damping), 4 * s.damping
    )
    least = jnp.maximum(settings.rtol, eps) * jnp.abs(s.merit) + 1e3 * tiny
    little = better & (s.merit - value <= least) | ~better & (s.damping > 1e9)
    little |= sound & (promised >= 0) & (promised <= least)
    still = jnp.where(little, s.still + 1, 0)

    learned = _learned(s, move, J, slope(y), g)
    keep = lambda new, old: jnp.where(better, new, old)
    moved = s._replace(
        x=keep(x, s.x), y=keep(y, s.y), J=keep(J, s.J), merit=keep(value, s.merit),
        B=jnp.where(better & ~first, learned, s.B), damping=jnp.where(first, s.damping, jnp.clip(damping, 1e-15, 1e12)),
        still=jnp.where(first, 0, still), steps=s.steps + 1, kind=jnp.where(better | first, kind, s.kind),
        sequence=keep(seq, s.sequence), jumps=s.jumps + (better & ~first & (seq != s.sequence)),
    )  # fmt: skip
    return _staged(task, moved, settings, dead=first & ~there)


def _damped(H: Array, g: Array, size: Array, damping: Array, free: Array) -> Array:
    """The step of those that are free; not finite where H, damped, is not convex."""
    A = jnp.where(free[:, None] & free, H / jnp.outer(size, size), 0.0) + jnp.diag(jnp.where(free, damping, 1.0))
    b = jnp.where(free, g / size, 0.0)
    return -jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(A), True), b) / size


def _learned(s: Lane, move: Array, J: Array, slope: Array, g: Array) -> Array:
    """The curvature of what is measured, from how the slopes changed (Dennis, Gay and Welsch)."""
    change, rest = J.T @ slope - g, (J - s.J).T @ slope
    sBs = move @ s.B @ move
    B = s.B * jnp.minimum(1.0, jnp.abs(move @ rest) / jnp.where(sBs == 0, 1.0, jnp.abs(sBs)))
    off, stretch = rest - B @ move, move @ change
    safe = jnp.where(stretch > 0, stretch, 1.0)
    B += (jnp.outer(off, change) + jnp.outer(change, off)) / safe
    B -= (move @ off) / safe**2 * jnp.outer(change, change)
    sound = stretch > 1e-12 * jnp.linalg.norm(move) * jnp.linalg.norm(change)
    return jnp.where(sound & jnp.all(jnp.isfinite(B)), B, s.B)


def _staged(task: Task, s: Lane, settings: Settings, dead: Array) -> Lane:
    """New prices and sharper maxima where a search stands still; the end where there is nothing more to gain."""
    rest = (s.still >= 3) | (s.steps == 1)
    last = s.stage >= settings.stages
    turn = rest & ~last & ~dead
    over = task.excess(s.y)
    prices = jnp.where(s.steps == 1, s.prices, jnp.maximum(s.prices + s.weight * over, 0.0))
    behind = (s.steps > 1) & (jnp.max(over, initial=0.0) > 1e-7)  # what is not kept yet weighs more
    weight = jnp.where(behind, jnp.minimum(10 * s.weight, 1e12), s.weight)
    sizes = jnp.stack([jnp.max(jnp.abs(part)) for part in task.split(s.y)[0]])
    sharpness = jnp.maximum(0.1 * 0.25**s.stage * sizes, jnp.finfo(sizes.dtype).tiny)
    choose = lambda new, old: jnp.where(turn, new, old)
    prices, weight = choose(prices, s.prices), choose(weight, s.weight)
    sharpness = choose(sharpness, s.sharpness)
    value = merit(task, s.y, prices, weight, sharpness)
    done = dead | (s.steps >= settings.max_steps) | ((s.still >= 3) & last)
    return s._replace(
        prices=prices, weight=weight, sharpness=sharpness, stage=s.stage + turn, merit=choose(value, s.merit),
        still=choose(0, s.still), damping=choose(jnp.where(s.steps == 1, s.damping, 1e-3), s.damping), done=done,
    )  # fmt: skip
