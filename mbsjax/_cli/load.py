"""The model that a command works on: its file, with other values of some parameters."""

import pathlib
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .console import ERR


if TYPE_CHECKING:
    from .._files.model import Model


def load_model(file: pathlib.Path, changes: tuple[str, ...] = ()) -> "Model":
    """A model file; a .DYN file by way of what it would be as one."""
    from .. import load, loads

    if file.suffix.lower() == ".dyn":
        model = loads(from_dyn(file), source=str(file))
    else:
        model = load(file)
    values = {}
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals:
            raise click.BadParameter(f"{change!r} is not NAME=VALUE", param_hint="--set")
        values[name.strip()] = _value(model, name.strip(), text)
    return loads(model.changed(values), source=str(file)) if values else model


def _value(model: "Model", name: str, text: str) -> float:
    from .._files.formula import known_number, parse, value
    from .._model.units import is_quantity

    if name not in model.nominal:
        free = ", ".join(model.nominal) or "none"
        raise click.BadParameter(
            f"there is no parameter {name!r} that is a number; there are {free}", param_hint="--set"
        )
    try:
        if is_quantity(text):
            return model.reader().number(text, ("parameters", name))
        found = float(value(parse(text), lambda n: known_number(n, model.parameters, text)))
        if is_quantity(model.document["parameters"][name]):
            ERR.print(f"note: {name} = {found:g} {model.units[name]}: the file gives it with a unit", style="yellow")
        return found
    except (ValueError, TypeError) as error:
        raise click.BadParameter(f"{name}: {error}", param_hint="--set") from None


def with_notes(make: Callable[[Any], Any], given: Any) -> Any:
    """What a function makes; its warnings are told as notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = make(given)
    for warning in caught:
        ERR.print(f"note: {warning.message}", style="yellow", markup=False)
    return made


def from_dyn(file: pathlib.Path) -> str:
    """The text of a model file that describes what a .DYN file does."""
    from .._files.dyn.read import read_dyn
    from .._files.write import dumps

    dyn = with_notes(read_dyn, file)
    first = {
        key: {c: float(given[c]) for c in dyn.independent}
        for key, given in (("positions", dyn.positions), ("velocities", dyn.velocities))
    }
    outputs = min(max(round(float(dyn.time / dyn.step)) + 1, 2), 10001)
    return dumps(dyn.mech, title=dyn.name, simulate={"t1": float(dyn.time), "outputs": outputs, **first})
