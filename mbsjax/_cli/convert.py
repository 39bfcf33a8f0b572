"""The command `convert`: from one kind of file to another."""

import pathlib
from typing import TYPE_CHECKING, Any

import click

from .console import computes, wrote
from .load import from_dyn, load_model
from .options import new_file


if TYPE_CHECKING:
    from .._files.model import Model


@click.command()
@click.argument("source", type=click.Path(path_type=pathlib.Path))
@click.argument("target", type=click.Path(path_type=pathlib.Path))
@click.option("--profile", metavar="BODY.PROFILE", help="The profile to take out of a model file.")
@click.option("--hole", is_flag=True, help="Whether a drawing is the boundary of a hole.")
@click.option("--overwrite", is_flag=True, help="Whether the target may exist.")
@computes
def convert(source: pathlib.Path, target: pathlib.Path, profile: str | None, hole: bool, overwrite: bool) -> None:
    """From one kind of file to another: model files (.toml) and those of ACDMC (.dyn), either way; a profile of a
    model file to a drawing (.dxf) or a table of points (.csv), and back to a model file.

    \b
    Example:
      mbsjax convert CAM.DYN cam.toml
      mbsjax convert cam.toml cam.dxf --profile cam.rim
    """
    kinds = source.suffix.lower(), target.suffix.lower()
    for kind, path in zip(kinds, (source, target)):
        if kind not in (".toml", ".dyn", ".dxf", ".csv"):
            raise click.UsageError(f"{path}: its kind is not known by its name; there are .toml, .dyn, .dxf, .csv")
    new_file(target, overwrite)
    if kinds[0] in (".dxf", ".csv"):
        if kinds[1] != ".toml":
            raise click.UsageError(f"a profile goes from {source} to a model file (.toml), not to {target}")
        target.write_text(_from_profile(source, hole), encoding="utf-8")
    elif kinds[1] in (".dxf", ".csv"):
        shape = _profile(load_model(source), profile, source)
        shape.to_dxf(target) if kinds[1] == ".dxf" else shape.to_csv(target)
    elif kinds == (".toml", ".dyn"):
        target.write_text(_to_dyn(load_model(source)), encoding="utf-8")
    elif kinds == (".dyn", ".toml"):
        target.write_text(from_dyn(source), encoding="utf-8")
    else:
        raise click.UsageError(f"{source} and {target} are of the same kind")
    wrote(target)


def _to_dyn(model: "Model") -> str:
    from .._files.dyn.content import Dyn
    from .._files.dyn.write import write_dyn

    mech = model.mechanism()
    if "simulate" not in model.document:
        return write_dyn(Dyn(mech, name=model.title))
    first, t1, step = model.beginning()
    independent = [c for c in mech.coordinates if c in first["positions"] or c in first["velocities"]]
    positions, velocities = first["positions"], first["velocities"]
    return write_dyn(
        Dyn(
            mech,
            positions=positions,
            velocities=velocities,
            independent=independent,
            time=t1,
            step=step,
            name=model.title,
        )
    )


def _from_profile(source: pathlib.Path, hole: bool) -> str:
    from .._files.dxf import read_dxf
    from .._files.write import dumps
    from .._model.body import Body
    from .._model.joint.fixed import Fixed
    from .._model.mechanism import Mechanism
    from .._model.profile.shapes import from_table

    shape = read_dxf(source, hole=hole) if source.suffix.lower() == ".dxf" else from_table(source, hole=hole)
    part = Body("part", profiles={"outline": shape})
    return dumps(Mechanism([part], [Fixed("seat", "ground", "part")]), title=source.stem)


def _profile(model: "Model", address: str | None, source: pathlib.Path) -> Any:
    mech = model.mechanism()
    found = {f"{b.name}.{k}": p for b in mech.bodies for k, p in b.profiles.items()}
    known = ", ".join(found) or "none"
    if address is None and len(found) == 1:
        address = next(iter(found))
    if address is None:
        raise click.UsageError(f"which profile of {source}? Say --profile, one of: {known}")
    if address not in found:
        raise click.UsageError(f"there is no profile {address!r} in {source}; there are {known}")
    return found[address]
