"""Results of `jax.vmap`: many side by side, read like one."""

import abc
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax


class AbstractBatch(eqx.Module):
    """A result that `jax.vmap` makes many of: they stand on axes before those of a single one, in every array of it."""

    @property
    @abc.abstractmethod
    def batch(self) -> tuple[int, ...]:
        """The sizes of the axes that `jax.vmap` has added; `()` of a single result."""

    def lane(self, *index: int) -> Any:
        """One result of a batch: `run.lane(3)`, or with as many numbers as there are axes."""
        sizes = self.batch[: len(index)]
        if len(sizes) < len(index) or not all(-n <= i < n for i, n in zip(index, sizes)):
            raise IndexError(f"there is no lane {index} in a batch of shape {self.batch}")
        return jax.tree_util.tree_map(lambda x: x[index], self)


def lane_by_lane(read: Callable) -> Any:
    """A method that reads a single result, for batches too."""

    @functools.wraps(read)
    def reading(self: AbstractBatch, *args: Any, **options: Any) -> Any:
        one = lambda lane: read(lane, *args, **options)
        for _ in self.batch:
            one = jax.vmap(one)
        return one(self)

    return reading


def single(what: AbstractBatch, told: str) -> None:
    """Raises where something can be told of a single result only."""
    if what.batch:
        raise ValueError(
            f"{told} of a single result only, and this is a batch of shape {what.batch}: pick one with `.lane(i)`"
        )
