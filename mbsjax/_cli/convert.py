"""The command `convert`: from one kind of file to another."""

import pathlib
from typing import TYPE_CHECKING, Any

import click

from .console import computes, wrote
from .load import from_dyn, load_model, with_notes
from .options import new_file


if TYPE_CHECKING:
    from .._files.model import Model


_DRAWINGS = (".dxf", ".svg", ".step", ".stp", ".csv")
_TARGETS = (".toml", ".dyn", ".dxf", ".csv", ".xml", ".urdf")


@click.command()
@click.argument("source", type=click.Path(path_type=pathlib.Path))
@click.argument("target", type=click.Path(path_type=pathlib.Path))
@click.option("--profile", metavar="BODY.PROFILE", help="The profile to take out of a model file.")
@click.option(
    "--name", help="Of a drawing, what to read: a layer of a .dxf, an id or layer of an .svg, a face of a .step."
)
@click.option("--index", type=click.IntRange(0), help="Which boundary of a drawing; the largest is number 0.")
@click.option("--unit", help="Of lengths, m, cm, mm, in, ...: of a drawing to read, or of one of a file without units.")
@click.option("--hole", is_flag=True, help="Whether a drawing is the boundary of a hole.")
@click.option("--own-frames", is_flag=True, help="Draw each body in its own frame, not where it stands.")
@click.option("--cut", is_flag=True, help="Leave out joints that close loops, which URDF does not know.")
@click.option("--overwrite", is_flag=True, help="Whether the target may exist.")
@computes
def convert(
    source: pathlib.Path,
    target: pathlib.Path,
    profile: str | None,
    own_frames: bool,
    cut: bool,
    overwrite: bool,
    **options: Any,
) -> None:
    """From one kind of file to another: model files (.toml) and those of ACDMC (.dyn), either way; a profile from a
    drawing (.dxf, .svg, .step) or a table of points (.csv) to a model file; a mechanism to a drawing (.dxf), to MuJoCo
    (.xml) or URDF (.urdf), or one profile of it to .dxf or .csv.

    \b
    Example:
      mbsjax convert CAM.DYN cam.toml
      mbsjax convert plate.svg plate.toml --name rim --unit mm
      mbsjax convert cam.toml cam.dxf
      mbsjax convert cam.toml rim.dxf --profile cam.rim
      mbsjax convert four_bar.toml four_bar.xml
    """
    from .._model.profile.drawing import unit_of_length

    kinds = source.suffix.lower(), target.suffix.lower()
    for kind, path, known in zip(kinds, (source, target), ((".toml", ".dyn", *_DRAWINGS), _TARGETS)):
        if kind not in known:
            raise click.UsageError(f"{path}: its kind is not known by its name; there are {', '.join(known)}")
    if kinds[0] in _DRAWINGS and kinds[1] != ".toml":
        raise click.UsageError(f"a profile goes from {source} to a model file (.toml), not to {target}")
    if kinds[0] == kinds[1]:
        raise click.UsageError(f"{source} and {target} are of the same kind")
    new_file(target, overwrite)
    if kinds[0] in _DRAWINGS:
        target.write_text(_from_profile(source, **options), encoding="utf-8")
    elif kinds == (".dyn", ".toml"):
        target.write_text(from_dyn(source), encoding="utf-8")
    else:
        model = load_model(source)
        if kinds[1] == ".csv" or (kinds[1] == ".dxf" and profile is not None):
            shape = _profile(model, profile, source)
            length = unit_of_length(model.system, options["unit"])
            shape.to_dxf(target, unit=length) if kinds[1] == ".dxf" else shape.to_csv(target)
        else:
            _written(model, target, own_frames, cut, options["unit"])
    wrote(target)


def _written(model: "Model", target: pathlib.Path, own_frames: bool, cut: bool, unit: str | None) -> None:
    """Writes a mechanism in the format that the name of the target says."""
    from .._files.cad.dxf_write import write_dxf
    from .._files.export.mujoco import to_mujoco
    from .._files.export.urdf import to_urdf

    kind = target.suffix.lower()
    if kind == ".dxf":
        return write_dxf(model.mechanism(), target, own_frames=own_frames, unit=unit)
    makers = {
        ".dyn": _to_dyn,
        ".xml": lambda model: to_mujoco(model.mechanism()),
        ".urdf": lambda model: to_urdf(model.mechanism(), cut=cut),
    }
    target.write_text(with_notes(makers[kind], model), encoding="utf-8")


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


def _from_profile(source: pathlib.Path, name: str | None, index: int | None, unit: str | None, hole: bool) -> str:
    from .._files.cad.dxf import read_dxf
    from .._files.cad.step import read_step
    from .._files.cad.svg import read_svg
    from .._files.write import dumps
    from .._model.body import Body
    from .._model.joint.fixed import Fixed
    from .._model.mechanism import Mechanism
    from .._model.profile.shapes import from_table

    kind = source.suffix.lower()
    if kind == ".csv":
        if (name, index, unit) != (None, None, None):
            raise click.UsageError(
                "--name, --index and --unit are for drawings, and a table of points has none of these"
            )
        shape = from_table(source, hole=hole)
    elif kind == ".dxf":
        shape = read_dxf(source, layer=name, index=index, unit=unit, hole=hole)
    elif kind == ".svg":
        shape = read_svg(source, id=name, index=index, unit=unit, hole=hole)
    else:
        face = int(name) if name is not None and name.isdecimal() else name
        shape = read_step(source, face=face, index=index, unit=unit, hole=hole)
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
