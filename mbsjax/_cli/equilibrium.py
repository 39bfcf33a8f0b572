"""The command `equilibrium`: a mechanism at rest."""

import pathlib
from typing import TYPE_CHECKING, Any

import click

from .analysis import analysis_command, analyzed, draw, measures, page_of
from .console import OUT, show, working, wrote
from .load import load_model


if TYPE_CHECKING:
    from .._files.model import Model


@click.command()
@click.option("--free", multiple=True, metavar="NAME", help="A driver of [drive] to leave out; `all` of them.")
@analysis_command
def equilibrium(
    file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, pictures: str, free: tuple[str, ...]
) -> None:
    """Where a mechanism rests under its forces, and what its joints, contacts and springs carry there.

    \b
    Example:
      mbsjax equilibrium lever.toml --set weight=20
      mbsjax equilibrium four_bar.toml --free A
    """
    from .._pictures.columns import in_units, table_with_units, without_noise
    from .._pictures.table import Table

    model = _freed(load_model(file, changes), free)
    rest, problem, folder = analyzed(model, file, output, overwrite, "equilibrium")
    with working("reactions"):
        found = rest.columns()
    rows = [(name, *in_units(rest.mech, name, x)) for name, x in without_noise(rest.mech, found).items()]
    show(table_with_units("at rest", ("name", "value"), rows))
    OUT.print(_stability(rest), markup=False)
    _friction(model, rest)
    path = folder / "results.csv"
    path.write_text(Table("at rest", ("name", "value"), list(found.items())).to_csv(), encoding="utf-8")
    with working("pictures"):
        written = [path, *draw(rest, folder, pictures, ("mechanism",)), page_of(model, rest).save(folder / "view.html")]
    wrote(*written)
    measures(model, rest, "equilibrium")
    if problem:
        raise RuntimeError(problem)


def _freed(model: "Model", names: tuple[str, ...]) -> "Model":
    """The model without some of its drivers, as if `[equilibrium]` said so."""
    table = model.document.get("equilibrium", {})
    named = list(model.document.get("drive", {})) if "all" in names else list(names)
    if named:
        model.document = {**model.document, "equilibrium": {**table, "free": [*table.get("free", []), *named]}}
    return model


def _stability(rest: Any) -> str:
    import numpy as np

    if not np.isfinite(np.asarray(rest.stiffness)).any():
        return "it is held: nothing is left free to move"
    if not bool(rest.stable):
        return "the position is not stable: it would leave it. Near another `estimate` there may be one that is"
    return f"the position is stable; {_frequencies(rest)}"


def _frequencies(rest: Any) -> str:
    """The natural frequencies of small swings about a stable position."""
    from .._dynamics.linearize import linearize

    try:
        found = linearize(rest).frequencies
    except ValueError as error:
        return f"no natural frequencies, as {error}"
    time = "s" if rest.mech.units is None else rest.mech.units.label("time")
    told = ", ".join(f"{w:.6g}" for w in found)
    return f"natural frequencies: {told} rad/{time}" if told else "it does not swing"


def _friction(model: "Model", rest: Any) -> None:
    """Whether friction alone would hold it there."""
    if all(x.friction is None for x in (*rest.mech.contacts, *rest.mech.joints)):
        return
    found = model.holding()
    share = float(found.share)
    told = f"takes {share:.4g} of its limits" if share < float("inf") else "could not, however large"
    OUT.print(f"friction alone {'holds' if bool(found.held) else 'does not hold'} it there: it {told}", markup=False)
