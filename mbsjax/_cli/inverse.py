"""The command `inverse`: the forces that go with a driven motion."""

import pathlib
from typing import Any

import click

from .analysis import analyzed, draw, measures, motion_command, page_of
from .console import show, working, wrote
from .load import load_model


@click.command()
@motion_command
def inverse(
    file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, kind: str, pictures: str, over: str | None
) -> None:
    """What drivers have to do: their torques, and all reactions, for a driven motion.

    \b
    Example:
      mbsjax inverse slider_crank.toml --set speed=10 --over A --pictures pdf
    """
    model = load_model(file, changes)
    efforts, problem, folder = analyzed(model, file, output, overwrite, "inverse", over)
    with working("reactions"):
        columns = efforts.columns()
    table = efforts.to_csv(folder / "results.csv") if kind == "csv" else efforts.to_parquet(folder / "results.parquet")
    show(_peaks(efforts.mech, columns))
    with working("pictures"):
        page = page_of(model, efforts).save(folder / "view.html")
        drawn = [*draw(efforts.motion, folder, pictures), *draw(efforts, folder, pictures, ("efforts",), over)]
        wrote(table, *drawn, page)
    measures(model, efforts, "inverse")
    if problem:
        raise RuntimeError(problem)


def _peaks(mech: Any, columns: dict[str, Any]) -> Any:
    """The largest of every force, in absolute value, and when it is."""
    import numpy as np

    from .._pictures.columns import in_units, table_with_units, without_noise
    from .._pictures.quantities import labeled

    forces = (".effort", ".power", ".reaction", ".across", ".moment", ".force", ".friction")
    rows = {name: x for name, x in columns.items() if name.endswith(forces) and np.isfinite(x).any()}
    places = {name: int(np.nanargmax(np.abs(x))) for name, x in rows.items()}
    largest = without_noise(mech, {name: float(rows[name][k]) for name, k in places.items()})
    time = labeled(mech.units, "at t", "time")
    found = []
    for name, x in largest.items():
        shown, unit = in_units(mech, name, x)
        found.append((name, shown, float(columns["t"][places[name]]) if x else None, unit))
    return table_with_units("largest forces", ("name", "largest", time), found)
