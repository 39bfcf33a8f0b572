"""The places within all plays that make measures smallest and largest."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._kinematics.displaced import Displaced, by_name, moved, where_it_lies, with_some_play
from ..._kinematics.motion import Motion
from ..._programs.precision import is_concrete
from ..._programs.reprs import by_fields
from ..._programs.trees import frozen, once
from .directions import chosen, farthest, some_direction
from .readings import Readings
from .reductions import ALL, HALF, ONE, reduces, spread_slopes


STEPS = 20  # how often the search looks at a place and sets out for the next, at most
TURNS = 4, 7  # of a largest or smallest number: the steps that go along slopes of all, and then of half of them
CLOSE = 1e-9  # places this close, in units of the play, are the same


class WorstPlay(NamedTuple):
    """How small and how large measures become, wherever pins lie.

    - `least`, `most`: by name, the measures where they are smallest and largest.
    - `middle`: with the pins where they are in the motion.
    - `lies_least`, `lies_most`: by name of the measure, then of the joint, where it lies then: for each output time; of
        a measure along the stroke, where it lies for the value at that time.
    """

    least: dict[str, Array]
    most: dict[str, Array]
    middle: dict[str, Array]
    lies_least: dict[str, dict[str, Array]]
    lies_most: dict[str, dict[str, Array]]

    __repr__ = by_fields


def worst_play(motion: Motion, measures: Mapping[str, Callable], *, joints: Sequence[str] | None = None) -> WorstPlay:
    """How small and how large measures become, wherever the pins lie within their plays.

    Pins may lie elsewhere at each position of the motion. The search sets out from the middle for the places farthest
    along the gradient, and goes on from there until these are the same; the best is kept. Where a measure is the
    largest or smallest of many values (`jnp.max`, `jnp.min`, `jnp.ptp`), such as a maximum over the stroke, all of
    them are searched, not only the one that it begins with. It is exact where measures are linear in where pins lie,
    so that to first order in the size of the plays it is exact for any; beyond, it is a value that is reached, no bound
    that is proved. Derivatives are those with the pins held there, which are those of the extreme.

    **Arguments:**

    - `motion`: a driven motion of joints with play.
    - `measures`: by name, functions of a motion to a number, or to a row of numbers along the stroke.
    - `joints`: the names of the joints that lie anywhere, all that have play by default; others stay where they are.

    **Returns:** a [`mbsjax.WorstPlay`][].

    !!! Example

        Play between crank and rod makes the rod longer or shorter: 5 +- 0.02, where the crank is 3 and upright.

        >>> import mbsjax as mbs
        >>> slider_crank = mbs.Mechanism(
        ...     [mbs.Body("crank"), mbs.Body("rod"), mbs.Body("slider")],
        ...     [mbs.Revolute("A", "ground", "crank"), mbs.Revolute("B", "crank", "rod", (3.0, 0.0), play=0.02),
        ...      mbs.Revolute("C", "rod", "slider", (5.0, 0.0)), mbs.Prismatic("P", "ground", "slider", start=4.0)])
        >>> motion = mbs.kinematics(slider_crank, {"A": jnp.pi / 2}, jnp.zeros(1))
        >>> found = mbs.worst_play(motion, {"rod": lambda m: jnp.hypot(m["P"].q[0], 3.0)})
        >>> round(float(found.least["rod"]), 9), round(float(found.most["rod"]), 9)
        (4.98, 5.02)
    """
    mask, reading = chosen(motion.mech, joints), Readings(measures)
    if not any(mask):
        raise ValueError("there is no joint with play whose worst places could be sought")
    sizes = reading.sizes(motion)
    lanes = searches(motion, reading, sizes)
    start = where_it_lies(motion)
    middle, values, lies = _extremes(motion, reading, start, mask, lanes)
    at = reading.slices(sizes)
    least, most = (reading.split(extreme(values, lanes, k), sizes) for k in (0, 1))
    places = [{name: _places(motion, lies, lanes.lane[k][at[name]]) for name in at} for k in (0, 1)]
    return WorstPlay(least, most, reading.split(middle, sizes), places[0], places[1])


def _places(motion: Motion, lies: Array, lanes: np.ndarray) -> dict[str, Array]:
    """Where each joint lies for the values of a measure: those of coupled values differ, and are told at their time."""
    alone = len(lanes) == len(motion.ts) and len(set(lanes.tolist())) > 1
    return by_name(motion.mech, lies[lanes, np.arange(len(lanes))] if alone else lies[lanes[0]])


class Searches(NamedTuple):
    """The searches that are done side by side, for the largest of some values, or the smallest.

    - `sign`: of each search, 1 or -1.
    - `judge`: of each search, for each output time, the value that tells how good it is where pins lie at that time: of
        a row along the stroke the one at that time, else the same for all times.
    - `lane`: the searches that find the least and the most of each value.
    """

    sign: np.ndarray
    judge: np.ndarray
    lane: tuple[np.ndarray, np.ndarray]


def searches(motion: Motion, values: Callable, sizes: tuple[int, ...]) -> Searches:
    """What has to be sought: of a row along the stroke whose values depend on their own positions alone, all values at
    once; else each value by itself. `values` are those of a displaced motion, one after the other."""
    n, ends = motion.ts.shape[0], np.cumsum([max(k, 1) for k in sizes])
    times = np.concatenate([np.arange(k) if k == n else np.full(max(k, 1), -1) for k in sizes])
    mixed = _mixed(motion, values, times) if n > 1 and n in sizes else np.zeros(len(times), bool)
    lane, judge = np.zeros(len(times), int), []
    for k, end in zip(sizes, ends):
        own = np.arange(end - max(k, 1), end)
        together = k == n and not mixed[own].any()
        lane[own] = len(judge) + (0 if together else np.arange(len(own)))
        judge += [own] if together else [np.full(n, i) for i in own]
    sign = np.ones(len(judge))
    return Searches(np.concatenate([-sign, sign]), np.stack(judge + judge), (lane, len(judge) + lane))


def _mixed(motion: Motion, values: Callable, times: np.ndarray) -> np.ndarray:
    """Which values depend on other positions than those at their own `times`. This is seen by any numbers: two times
    differ in a bit of their numbers, and all positions with this bit are changed, then all without."""
    shape = eqx.filter_eval_shape(lambda m: moved(m, where_it_lies(m)).rows, motion)
    rng, n = np.random.default_rng(0), motion.ts.shape[0]
    is_shape = lambda x: isinstance(x, jax.ShapeDtypeStruct)
    bits = (np.arange(n)[None] >> np.arange(int(n - 1).bit_length())[:, None]) & 1
    sets = np.concatenate([bits, 1 - bits]).astype(bool)

    def any_number(x: Any) -> Any:
        if not is_shape(x):
            return x
        real = jnp.issubdtype(x.dtype, jnp.inexact)
        return jnp.asarray(rng.uniform(0.5, 1.5, x.shape) if real else np.zeros(x.shape), x.dtype)

    with jax.ensure_compile_time_eval():
        rows = jax.tree_util.tree_map(any_number, shape, is_leaf=is_shape)
        slopes = _slopes(values, rows, jnp.asarray(sets))
    if not is_concrete(slopes):  # measures of numbers that are traced: nobody can tell
        return np.ones(len(times), bool)
    return (np.where(sets[:, times], 0.0, slopes) != 0).any(0)


@once
def _slopes(values: Callable, rows: Motion, sets: Array) -> Array:
    """How fast values change when some positions do, for each set of these."""
    mech = jax.tree_util.tree_map(lambda x: x[0], rows.mech)
    real, others = eqx.partition(rows, eqx.is_inexact_array)

    def reading(real: Any) -> Array:
        whole = eqx.combine(real, others)
        return values(Displaced(mech, jnp.zeros((rows.ts.shape[0], 0)), whole, whole.result))

    def slope(on: Array) -> Array:
        ways = jax.tree_util.tree_map(lambda x: x * on.reshape(-1, *(1,) * (x.ndim - 1)), real)
        return jax.jvp(reading, (real,), (ways,))[1]

    return jax.vmap(slope)(sets.astype(float))


def search(
    motion: Motion, values: Callable, start: Float[Array, "times n"], mask: tuple[bool, ...], lanes: Searches
) -> Float[Array, "lanes times n"]:
    """Where pins lie that make values largest, for each search; `values` are those of a displaced motion."""
    motion, start = with_some_play(frozen(motion)), frozen(start)
    free, aside = jnp.asarray(mask), some_direction(motion.mech)
    largest = reduces(values, eqx.filter_eval_shape(moved, motion, start))
    turns = TURNS if largest else (0, 0)
    told = spread_slopes(values) if largest else lambda _, displaced: values(displaced)

    def of(sign: Array, judge: Array) -> Array:
        def gain(lies: Array, which: Array) -> tuple[Array, Array]:
            each = sign * told(which, moved(motion, lies))[judge]
            return jnp.sum(each), each

        def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
            k, lies, best, most, _ = state
            which = jnp.where(k < turns[0], ALL, jnp.where(k < turns[1], HALF, ONE))
            slope, each = jax.grad(gain, has_aux=True)(lies, which)
            better = each > most
            best, most = jnp.where(better[:, None], lies, best), jnp.where(better, each, most)
            # what has no slope steps aside; but once only the largest one has, the others stay where they were best
            still = jnp.where(largest & (k >= turns[1]), best, aside)
            onward = jnp.where(free, farthest(slope, motion.mech, still), start)
            if largest:  # each turn begins with the best
                onward = jnp.where((k + 1 == turns[0]) | (k + 1 == turns[1]), best, onward)
            return k + 1, onward, best, most, jnp.max(jnp.abs(onward - lies))

        def unfinished(state: tuple[Array, ...]) -> Array:
            k, *_, change = state
            return (k < STEPS) & ((change > CLOSE) | (k <= turns[1]))

        none = jnp.full(start.shape[0], -jnp.inf)
        begin = jnp.zeros((), int), start, start, none, jnp.full((), jnp.inf)
        return jax.lax.while_loop(unfinished, step, begin)[2]

    return jax.lax.stop_gradient(jax.vmap(of)(jnp.asarray(lanes.sign), jnp.asarray(lanes.judge)))


def extreme(values: Float[Array, "lanes values"], lanes: Searches, side: int) -> Float[Array, " values"]:
    """The least (side 0) or the most (1) of each value, from all values of all searches."""
    return values[lanes.lane[side], np.arange(values.shape[1])]


@once
def _extremes(motion: Motion, reading: Callable, start: Array, mask: tuple[bool, ...], lanes: Searches) -> Any:
    lies = search(motion, frozen(reading), start, mask, lanes)
    every = jax.vmap(lambda x: reading(moved(motion, x)))(jnp.concatenate([start[None], lies]))
    return every[0], every[1:], lies
