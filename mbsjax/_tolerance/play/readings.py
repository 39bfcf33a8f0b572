"""Measures of a motion, one after the other in a row."""

from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._programs.trees import as_function
from ..study import as_float_or_bool


class Readings(eqx.Module):
    """Measures, by name: functions of a motion to a number, or to a row of numbers."""

    functions: tuple[Callable, ...]
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, measures: Mapping[str, Callable]):
        if not measures:
            raise ValueError("there must be at least one measure")
        self.names, self.functions = tuple(measures), tuple(map(as_function, measures.values()))

    def __call__(self, motion: Any) -> Float[Array, " values"]:
        """All values, one after the other."""
        return jnp.concatenate([x.reshape(-1) for x in self.each(motion).values()])

    def each(self, motion: Any) -> dict[str, Array]:
        return {name: as_float_or_bool(f(motion), name) for name, f in zip(self.names, self.functions)}

    def sizes(self, motion: Any) -> tuple[int, ...]:
        """How many values each measure has; 0 where it is a number."""
        found = eqx.filter_eval_shape(lambda m: tuple(self.each(m).values()), motion)
        return tuple(x.size if x.ndim else 0 for x in found)

    def slices(self, sizes: tuple[int, ...]) -> dict[str, slice]:
        """Where each measure is among the values."""
        ends = np.cumsum([max(n, 1) for n in sizes]).tolist()
        return {name: slice(end - max(n, 1), end) for name, n, end in zip(self.names, sizes, ends)}

    def split(self, values: Any, sizes: tuple[int, ...]) -> dict[str, Any]:
        """The values of each measure."""
        at = self.slices(sizes)
        return {name: values[at[name]] if n else values[at[name].start] for name, n in zip(self.names, sizes)}
