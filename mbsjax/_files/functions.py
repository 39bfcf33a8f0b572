"""Functions of a mechanism that a file gives as formulas."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array

from .._model.force.base import Moment
from .._programs.precision import as_float
from .formula import known_number, names, parse, value


class Formula(eqx.Module):
    """A function given as a formula. Other names than its variables are numbers, which are leaves.

    !!! Example

        >>> tension = Formula("k*x + 2*x**3", ("x",), {"k": 3.0})
        >>> tension(jnp.array(2.0)).item(), tension.numbers["k"].item()
        (22.0, 3.0)
    """

    text: str = eqx.field(static=True)
    variables: tuple[str, ...] = eqx.field(static=True)
    tree: tuple = eqx.field(static=True)
    numbers: dict[str, Any]

    def __init__(self, text: str, variables: Sequence[str], known: Mapping[str, Any]):
        self.text, self.variables, self.tree = text, tuple(variables), parse(text)
        wanted = [name for name in names(self.tree) if name not in self.variables]
        every = {**known, **dict.fromkeys(self.variables)}
        self.numbers = {name: as_float(known_number(name, every, text), f"{name!r}") for name in wanted}

    def __call__(self, *given: Any) -> Any:
        here: dict[str, Any] = {**self.numbers, **dict(zip(self.variables, given))}
        found = value(self.tree, lambda name: here[name])
        return jnp.asarray(found, float)


class Components(eqx.Module):
    """A load whose components are formulas of the time and of what the mechanism does: `t`, `O.q`, `O.v`."""

    parts: tuple[Any, ...]
    single: bool = eqx.field(static=True)

    def __call__(self, t: Array, at: Moment) -> Any:
        found = [evaluated(p, t, at) if isinstance(p, Formula) else p for p in self.parts]
        return found[0] if self.single else tuple(found)


class Switched(eqx.Module):
    """A force whose formula knows the sides of its switches as `s1`, `s2`, ..., 1 or 0."""

    formula: Formula

    def __call__(self, x: Array, v: Array, t: Array, on: Array) -> Array:
        return self.formula(x, v, t, *(on[i].astype(float) for i in range(on.shape[0])))


class Watch(eqx.Module):
    """A trigger given by a formula of `t`, `O.q`, `O.v`."""

    formula: Formula

    def __call__(self, at: Moment) -> Array:
        return evaluated(self.formula, at.t, at)


def evaluated(formula: Formula, t: Array, at: Moment) -> Any:
    """A formula of the state of a mechanism, at an instant."""
    given = []
    for name in formula.variables:
        what, _, rate = name.rpartition(".")
        given.append(t if name == "t" else getattr(at[what], rate))
    return formula(*given)
