"""Results of `jax.vmap`: many side by side, read like one."""

import abc
import functools
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax


_Batch = TypeVar("_Batch", bound="AbstractBatch")
_Method = TypeVar("_Method", bound=Callable)


class AbstractBatch(eqx.Module):
    """A result that `jax.vmap` makes many of: they stand on axes before those of a single one, in every array of it."""

    @property
    @abc.abstractmethod
    def batch(self) -> tuple[int, ...]:
        """The sizes of the axes that `jax.vmap` has added; `()` of a single result."""

    def lane(self: _Batch, *index: int) -> _Batch:
        """One result of a batch: `run.lane(3)`, or with as many numbers as there are axes."""
        sizes = self.batch[: len(index)]
        if len(sizes) < len(index) or not all(-n <= i < n for i, n in zip(index, sizes)):
            raise IndexError(f"there is no lane {index} in a batch of shape {self.batch}")
        return jax.tree_util.tree_map(lambda x: x[index], self)


def lane_by_lane(read: _Method) -> _Method:
    """A method that reads a single result, for batches too."""

    def reading(self: AbstractBatch, *args: Any, **options: Any) -> Any:
        one = lambda lane: read(lane, *args, **options)
        for _ in self.batch:
            one = jax.vmap(one)
        return one(self)

    wrapped: Any = functools.wraps(read)(reading)
    return wrapped


def single(what: AbstractBatch, told: str) -> None:
    """Raises where something can be told of a single result only."""
    if what.batch:
        raise ValueError(
            f"{told} of a single result only, and this is a batch of shape {what.batch}: pick one with `.lane(i)`"
        )
