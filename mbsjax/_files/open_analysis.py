"""An analysis of a model file in which some parameters are left open: what studies and tasks are made of."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from .._model.units import is_quantity
from .analyses import drivers, made, run, times
from .document import Document
from .grammar import TABLES
from .measures import Measure


class OpenFile:
    """A model file in which some parameters are left open. Two are equal if all else that an analysis reads of them is:
    then one program does for both."""

    def __init__(self, file: Document, free: tuple[str, ...]):
        self.file = file
        tables = {k: file.document.get(k) for k in ("gravity", "planar", "units", *TABLES)}
        fixed = {name: x for name, x in file.document.get("parameters", {}).items() if name not in free}
        self.key = repr((tables, fixed, free))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, OpenFile) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class OpenAnalysis(eqx.Module):
    """An analysis of a model file as a function of some of its parameters; others are leaves."""

    others: dict[str, Array]
    file: OpenFile = eqx.field(static=True)
    of: str = eqx.field(static=True)

    def __call__(self, given: Mapping[str, Any]) -> Any:
        numbers = {**self.others, **given}
        return run(self.file.file, self.of, numbers, throw=False), numbers


class OpenMeasure(eqx.Module):
    """A measure as a function of an outcome and the parameters that vary."""

    file: OpenFile = eqx.field(static=True)
    formula: Measure
    path: tuple[str, ...] = eqx.field(static=True)

    def __call__(self, pair: Any) -> Array:
        outcome, given = pair
        reader = self.file.file.reader(given)
        return reader.guarded(self.path, self.formula, outcome, reader.numbers)


def open_analysis(file: Document, of: str, varied: tuple[str, ...]) -> OpenAnalysis:
    """The analysis with all those parameters as leaves that are decimal numbers, if the mechanism can be made while
    these are not known: whole numbers count something, and some shapes depend on values."""
    decimal = lambda x: all(map(decimal, x)) if isinstance(x, list) else isinstance(x, float) or is_quantity(x)
    every = {name: jnp.asarray(x, float) for name, x in file.nominal.items()}
    given = file.document.get("parameters", {})
    others = {name: x for name, x in every.items() if name not in varied and decimal(given[name])}
    if others and not _may_be_open(file, {**others, **{name: every[name] for name in varied}}, of):
        others = {}
    return OpenAnalysis(others, OpenFile(file, (*sorted(others), *sorted(varied))), of)


def _may_be_open(file: Document, numbers: dict[str, Array], of: str) -> bool:
    """Whether the mechanism is the same, but for its numbers, when the values of these parameters are not known."""

    def parts(given: Any) -> Any:
        return made(file, given), drivers(file, given), times(file, of, given)

    try:
        found = eqx.filter_eval_shape(parts, numbers)
    except (ValueError, TypeError):
        return False
    return jax.tree_util.tree_structure(found) == jax.tree_util.tree_structure(parts(None))
