"""What a model gives, one run or several: whether they succeeded, in which branch, with which contact events."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._events.kinds import EVENTS
from .._events.results import RESULTS
from .._kinematics.assembly import Assembly
from .._kinematics.motion import Motion
from .equilibrium import Equilibrium
from .holding import Holding
from .solution import Solution


_CODES = tuple(name for name in RESULTS._name_to_item if name != "successful")
CLASSES = ("as nominal", "changed sequence", "changed branch", "no value", *(name.replace("_", " ") for name in _CODES))
"""What can become of a variant: all went as nominal; another sequence of contacts; another branch; a measure without a
finite value; or an analysis that failed, as [`mbsjax.RESULTS`][] says."""

_RUNS = (Motion, Solution, Assembly, Equilibrium, Holding)


def runs(outcome: Any) -> list[Any]:
    leaves = jax.tree_util.tree_leaves(outcome, is_leaf=lambda x: isinstance(x, _RUNS))
    return [x for x in leaves if isinstance(x, _RUNS)]


def check(results: list[RESULTS], where: str) -> None:
    """Raises when a run failed."""
    for result in results:
        if bool(result != RESULTS.successful):
            raise ValueError(f"{where}: {RESULTS[result]}")


def failure(outcome: Any) -> Array:
    """The number in [`mbsjax.CLASSES`][] of the first run that failed; 0 if none did."""
    found = jnp.zeros((), int)
    for run in reversed(runs(outcome)):
        for i, name in enumerate(_CODES):
            found = jnp.where(run.result == getattr(RESULTS, name), 4 + i, found)
    return found


def branch(outcome: Any) -> Array:
    """A number that stands for the branches of all motions."""
    found = jnp.zeros((), int)
    for run in runs(outcome):
        if isinstance(run, Motion):
            found = 3 * found + run.branch
    return found


def sequence(outcome: Any) -> Array:
    """A number that stands for the sequence of all contact events: kinds, contacts and elements, not their times."""
    found = jnp.full((), 2166136261, jnp.uint32)
    for run in runs(outcome):
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
