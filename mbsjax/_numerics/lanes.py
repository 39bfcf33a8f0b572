"""Many lanes that wait for few: those at work, which take the next one as soon as they are done."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from .._programs.trees import tree_where


_FEWEST = {"cpu": 512}  # lanes that keep a device busy,
_FEWEST_ELSEWHERE = 131072
_IDLE = 16  # lanes are filled again once one of so many is done


def lanes_at_work(n: int) -> int:
    """How many of n lanes to work at, at a time."""
    fewest = _FEWEST.get(jax.default_backend(), _FEWEST_ELSEWHERE)
    return n if n < 2 * fewest else fewest


class Work(NamedTuple):
    """How one lane, or many on the last axis, are worked at."""

    begin: Callable[[Any], Any]  # from what a lane brings to its state, which has an entry `done`
    attempt: Callable[[Any], Callable]  # from that to a function of state, table and lane number: the next two
    result: Callable[[Any], Any]  # what there is to tell of a state that is done


def in_turn(work: Work, every: Any, table: Any, results: Any) -> tuple[Any, Any]:
    """Works at all lanes, some at a time; one that is done takes the next, so that time follows the mean number of
    attempts and not the largest. `every` is what the lanes bring, `table` what attempts write to, `results` has a place
    for the result of each lane: all of them have all lanes on the last axis."""
    n = jax.tree_util.tree_leaves(every)[0].shape[-1]

    def turn(carry):
        queue, mine, state, table, results = carry
        attempt = work.attempt(mine)
        state, table = jax.lax.while_loop(
            lambda carry: queue.goes_on(n, carry[0].done),
            lambda carry: attempt(*carry, queue.lane),
            (state, table),
        )
        results, done = queue.put(results, state.done, work.result(state)), state.done
        queue = queue.filled(n, done)
        mine = tree_where(done, queue.taken(every), mine)
        new = work.begin(mine)
        new = new._replace(done=new.done | (queue.lane >= n))
        return queue, mine, tree_where(done, new, state), table, results

    queue = Queue.first(lanes_at_work(n))
    mine = queue.taken(every)
    carry = queue, mine, work.begin(mine), table, results
    *_, table, results = jax.lax.while_loop(lambda carry: jnp.any(carry[0].lane < n), turn, carry)
    return table, results


class Queue(NamedTuple):
    """Which of n lanes those at work are at; from n on, at none."""

    lane: Int[Array, " w"]
    next: Int[Array, ""]

    @staticmethod
    def first(width: int) -> "Queue":
        return Queue(jnp.arange(width), jnp.asarray(width))

    def goes_on(self, n: int, done: Bool[Array, " w"]) -> Array:
        """Whether to go on before lanes are filled again."""
        idle = jnp.sum(done) * _IDLE >= done.shape[0]
        return ~jnp.all(done) & ~(idle & (self.next < n))

    def filled(self, n: int, done: Bool[Array, " w"]) -> "Queue":
        """With the next lanes in the places of those that are done."""
        new = self.next + jnp.cumsum(done) - 1
        new = jnp.where(new < n, new, n + jnp.arange(done.shape[0]))
        return Queue(jnp.where(done, new, self.lane), jnp.minimum(self.next + jnp.sum(done), n))

    def taken(self, every: Any) -> Any:
        """Of all lanes, those at work."""
        return jax.tree_util.tree_map(lambda x: x.at[..., self.lane].get(mode="clip"), every)

    def put(self, every: Any, done: Bool[Array, " w"], found: Any) -> Any:
        """All lanes, with what was found in those that are done."""
        n = jax.tree_util.tree_leaves(every)[0].shape[-1]
        at = jnp.where(done, self.lane, n + jnp.arange(done.shape[0]))
        write = lambda x, y: x.at[..., at].set(y, mode="drop", unique_indices=True)
        return jax.tree_util.tree_map(write, every, found)
