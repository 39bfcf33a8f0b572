"""Events of the user's own."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._model.force.base import Moment
from .._model.joint.joint import check_name
from .._programs.modules import AbstractModule
from .._programs.reprs import by_fields
from .._programs.trees import as_function


class Trigger(AbstractModule):
    """An event where a function of the mechanism's state passes zero.

    **Arguments:**

    - `name`: how the event log calls it.
    - `function`: of an [`mbsjax.Moment`][], which tells time, positions and velocities by name.
    - `stop`: whether the simulation ends there.

    !!! Example

        >>> Trigger("at the top", lambda at: at["crank"].q - 1.5708, stop=True).name
        'at the top'
    """

    name: str = eqx.field(static=True)
    function: Callable
    stop: bool = eqx.field(static=True)

    def __init__(self, name: str, function: Callable, *, stop: bool = False):
        check_name(name, "a trigger")
        self.name, self.function, self.stop = name, as_function(function), bool(stop)

    def value(self, at: Moment) -> Float[Array, ""]:
        value: Any = self.function(at)
        return jnp.asarray(value, float).reshape(())

    __repr__ = by_fields
