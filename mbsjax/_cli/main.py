"""The command `mbsjax`: everything that a model file asks for, from the shell."""

import contextlib
import functools
import importlib.resources
import json
import pathlib
import re
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table as RichTable

from .._programs.prepare import prepare


if TYPE_CHECKING:
    from .._files.model import Model

OUT, ERR = Console(soft_wrap=True, highlight=False), Console(stderr=True, highlight=False)
FAILED, BAD = 1, 2  # exit codes: what was asked for did not succeed; what was asked for makes no sense


def _safe(command: Callable) -> Callable:
    """Complaints of the library become a line on standard error and an exit code."""

    @functools.wraps(command)
    def run(*given: Any, **more: Any) -> None:
        try:
            command(*given, **more)
        except click.ClickException:
            raise
        except KeyboardInterrupt:
            ERR.print("interrupted", style="yellow")
            raise SystemExit(130) from None
        except (ValueError, ImportError) as error:
            _complain(error, BAD)
        except OSError as error:
            _complain(f"{error.filename}: {error.strerror}" if error.filename else error, BAD)
        except RuntimeError as error:
            _complain(error, FAILED)

    return run


def _complain(error: Any, code: int) -> None:
    ERR.print("error:", style="bold red", end=" ")
    ERR.print(str(error), markup=False, soft_wrap=True)
    raise SystemExit(code) from None


@contextlib.contextmanager
def _working(what: str) -> Iterator[None]:
    began = time.perf_counter()
    with ERR.status(f"{what} ..."):
        yield
    ERR.print(f"{what}: {time.perf_counter() - began:.1f} s", style="dim")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="mbsjax")
@click.option("--cache", metavar="FOLDER", help="Where compiled programs are kept; by default ~/.cache/mbsjax.")
@click.option("--no-cache", is_flag=True, help="Keep no compiled programs.")
def main(cache: str | None, no_cache: bool) -> None:
    """Mechanisms with contact joints: how they move, what their tolerances do, which dimensions do better.

    \b
    Begin with an example:
      mbsjax examples                 # lists them
      mbsjax examples four_bar        # copies four_bar.toml here
      mbsjax kinematics four_bar.toml
      mbsjax view four_bar.toml
    """
    prepare(cache, not no_cache)


def _file_argument(f: Callable) -> Callable:
    return click.argument("file", type=click.Path(path_type=pathlib.Path))(f)


def _changes(f: Callable) -> Callable:
    help = "Another value of a parameter, a number or a formula; may be given several times."
    return click.option("--set", "-s", "changes", multiple=True, metavar="NAME=VALUE", help=help)(f)


def _output(f: Callable) -> Callable:
    f = click.option("--overwrite", is_flag=True, help="Whether the folder may exist; files in it are replaced.")(f)
    help = "Folder for the results; by default the file's name with that of the command."
    return click.option("--output", "-o", type=click.Path(path_type=pathlib.Path), metavar="FOLDER", help=help)(f)


def _load(file: pathlib.Path, changes: tuple[str, ...] = ()) -> "Model":
    """A model file; a .DYN file by way of what it would be as one."""
    from .._files.model import load, loads

    if file.suffix.lower() == ".dyn":
        model = loads(_from_dyn(file), source=str(file))
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

    if name not in model.nominal:
        free = ", ".join(model.nominal) or "none"
        raise click.BadParameter(
            f"there is no parameter {name!r} that is a number; there are {free}", param_hint="--set"
        )
    try:
        return float(value(parse(text), lambda n: known_number(n, model.parameters, text)))
    except (ValueError, TypeError) as error:
        raise click.BadParameter(f"{name}: {error}", param_hint="--set") from None


def _from_dyn(file: pathlib.Path) -> str:
    from .._files.dyn.read import read_dyn
    from .._files.write import dumps

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dyn = read_dyn(file)
    for warning in caught:
        ERR.print(f"note: {warning.message}", style="yellow", markup=False)
    first = {
        key: {c: float(given[c]) for c in dyn.independent}
        for key, given in (("positions", dyn.positions), ("velocities", dyn.velocities))
    }
    outputs = min(max(round(float(dyn.time / dyn.step)) + 1, 2), 10001)
    return dumps(dyn.mech, title=dyn.name, simulate={"t1": float(dyn.time), "outputs": outputs, **first})


def _folder(
    output: pathlib.Path | None, file: pathlib.Path, command: str, overwrite: bool, make: bool = False
) -> pathlib.Path:
    """Where results go: refused at once if it may not be used, made when there are some."""
    folder = output or pathlib.Path(f"{file.stem}_{command}")
    if folder.exists() and not folder.is_dir():
        raise click.UsageError(f"{folder} is not a folder")
    if folder.exists() and any(folder.iterdir()) and not overwrite:
        raise click.UsageError(f"the folder {folder} is not empty: name another one by -o, or say --overwrite")
    if make:
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _show(table: Any) -> None:
    """A table of the library."""
    from .._pictures.table import shown

    if not OUT.is_terminal:
        OUT.print(f"{table}\n", markup=False)
        return
    drawn = RichTable(title=table.title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for k, column in enumerate(table.columns):
        drawn.add_column(str(column), justify="left" if k == 0 else "right", no_wrap=True)
    for row in table.rows:
        drawn.add_row(*(_plain(shown(x)) for x in row))
    OUT.print(drawn)
    OUT.print()


def _plain(text: str) -> str:
    return text.replace("[", r"\[")


def _wrote(*paths: Any) -> None:
    for path in paths:
        OUT.print(f"wrote {path}", markup=False)


# -- reading -----------------------------------------------------------------------------------------------------


@main.command()
@_file_argument
@_changes
@_safe
def info(file: pathlib.Path, changes: tuple[str, ...]) -> None:
    """What a mechanism is made of: bodies, joints, loops, freedom, redundant equations.

    \b
    Example:
      mbsjax info four_bar.toml
    """
    model = _load(file, changes)
    with _working("looking at the mechanism"):
        text = repr(model.mechanism())
    OUT.print(model.title, style="bold", markup=False)
    OUT.print(text, markup=False)
    if model.parameters:
        from .._pictures.table import Table

        OUT.print()
        given = model.document.get("parameters", {})
        rows = [(n, _told(x), given[n] if isinstance(given[n], str) else "") for n, x in model.parameters.items()]
        _show(Table("parameters", ("name", "value", "formula"), rows))


def _told(x: Any) -> Any:
    import numpy as np

    return float(x) if np.ndim(x) == 0 else str(np.asarray(x).tolist())


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@_safe
def check(files: tuple[pathlib.Path, ...]) -> None:
    """Reads model files and says what is wrong with them, and where.

    \b
    Example:
      mbsjax check four_bar.toml cam.toml
    """
    from .._files.read import FileError

    wrong = 0
    for file in files:
        try:
            OUT.print(f"{file}: {', '.join(_load(file).check())}", markup=False)
        except (FileError, ValueError) as error:
            wrong += 1
            ERR.print("error:", style="bold red", end=" ")
            ERR.print(str(error), markup=False, soft_wrap=True)
    if wrong:
        raise SystemExit(BAD)


# -- running -----------------------------------------------------------------------------------------------------

_FORMAT = click.option(
    "--format", "kind", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True, help="Of the table."
)


def _run(file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, kind: str, of: str) -> None:
    model = _load(file, changes)
    _folder(output, file, of, overwrite)
    run, problem = _reached(model, of)
    folder = _folder(output, file, of, overwrite, make=True)
    OUT.print(run, markup=False)
    table = run.to_csv(folder / "results.csv") if kind == "csv" else run.to_parquet(folder / "results.parquet")
    with _working("pictures"):
        written = [table, *_pictures(run, folder), _viewed(model, run).save(folder / "view.html")]
    _wrote(*written)
    if of == model.analysis:
        _measures(model, run)
    if problem:
        raise RuntimeError(problem)


def _reached(model: "Model", of: str) -> tuple[Any, str]:
    """A run, and why it ended before its time, if it did. Where it cannot even begin, the complaint of the library."""
    from .._files.read import FileError

    with _working(of):
        try:
            return model.run(of), ""
        except FileError as error:
            if not isinstance(error.__cause__, RuntimeError):
                raise
            return model.run(of, throw=False), str(error)


def _measures(model: "Model", run: Any) -> None:
    from .._pictures.table import Table

    rows = [(name, _told(x)) for name, x in model.measured(run).items()]
    if rows:
        OUT.print()
        _show(Table("measures", ("name", "value"), rows))


def _viewed(model: "Model", run: Any) -> Any:
    from .._pictures.viewer import view

    return view(run, title=model.title)


def _pictures(run: Any, folder: pathlib.Path) -> list[pathlib.Path]:
    """The mechanism, and its curves; nothing where matplotlib is missing."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    from .. import plots

    found = []
    for name, draw in (("ghosts", plots.ghosts), ("contacts", plots.contacts)):
        if name == "contacts" and not run.mech.contacts:
            continue
        figure = draw(run).figure
        figure.savefig(folder / f"{name}.png", dpi=150)
        found.append(folder / f"{name}.png")
    return found


@main.command()
@_file_argument
@_changes
@_output
@_FORMAT
@_safe
def kinematics(file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, kind: str) -> None:
    """How a driven mechanism moves: a table, pictures and a page to play it.

    \b
    Example:
      mbsjax kinematics four_bar.toml --set crank=1.2 -o longer_crank
    """
    _run(file, changes, output, overwrite, kind, "kinematics")


@main.command()
@_file_argument
@_changes
@_output
@_FORMAT
@_safe
def simulate(file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, kind: str) -> None:
    """How a mechanism moves under its forces, with its contacts and impacts.

    \b
    Example:
      mbsjax simulate cam_roller.toml --set stiffness=1.5
    """
    _run(file, changes, output, overwrite, kind, "simulate")


@main.command()
@_file_argument
@_changes
@click.option("--of", type=click.Choice(["kinematics", "simulate"]), help="What to show; simulate if the file has it.")
@click.option("--output", "-o", type=click.Path(path_type=pathlib.Path), metavar="FILE", help="The page to write.")
@click.option("--overwrite", is_flag=True, help="Whether the page may exist.")
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@_safe
def view(file: pathlib.Path, changes: tuple, of: str | None, output: Any, overwrite: bool, show: bool) -> None:
    """One page to play a motion or a simulation, that needs nothing else.

    \b
    Example:
      mbsjax view cam_roller.toml --open
    """
    model = _load(file, changes)
    path = _new(output or pathlib.Path(f"{file.stem}.html"), overwrite)
    of = of or ("simulate" if "simulate" in model.document else "kinematics")
    run, problem = _reached(model, of)
    _wrote(_viewed(model, run).save(path))
    if show:
        click.launch(str(path))
    if problem:
        raise RuntimeError(problem)


def _new(path: pathlib.Path, overwrite: bool) -> pathlib.Path:
    if path.exists() and not overwrite:
        raise click.UsageError(f"{path} exists: name another file by -o, or say --overwrite")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


# -- studies -----------------------------------------------------------------------------------------------------

_SEED = click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the samples.")
_METHODS = click.Choice(["random", "latin", "sobol"])


@main.command()
@_file_argument
@_changes
@_output
@click.option("--samples", "-n", type=click.IntRange(0), default=0, show_default=True, help="How many, beside slopes.")
@_SEED
@click.option("--second/--first", default=True, show_default=True, help="Expand to second order, or first alone.")
@click.option("--worst/--no-worst", default=True, show_default=True, help="Look for the exact worst case.")
@_safe
def tolerance(
    file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, samples: int, seed: int, second: bool, worst: bool
) -> None:
    """Which dimensions matter, and what their tolerances do: sensitivities, worst case, RSS, yield.

    \b
    Example:
      mbsjax tolerance four_bar.toml -n 4096
    """
    from .._tolerance.report import tolerance as analyse

    model = _load(file, changes)
    _folder(output, file, "tolerance", overwrite)
    with _working("the nominal mechanism"):
        study = model.study()
    with _working("tolerances"):
        report = analyse(study, samples=samples, seed=seed, second=second, worst=worst)
    folder = _folder(output, file, "tolerance", overwrite, make=True)
    for table in report.tables:
        _show(table)
    _wrote(*report.to_csv(folder), report.to_json(folder / "report.json"))
    with contextlib.suppress(ImportError):
        _wrote(report.to_html(folder / "report.html", title=model.title))


@main.command()
@_file_argument
@_changes
@click.option("--samples", "-n", type=click.IntRange(1), default=10000, show_default=True, help="How many.")
@_SEED
@click.option("--method", type=_METHODS, default="random", show_default=True, help="How they are spread.")
@click.option("--chunk", type=click.IntRange(1), default=4096, show_default=True, help="How many at once.")
@click.option(
    "--output", "-o", type=click.Path(path_type=pathlib.Path), metavar="FOLDER", help="Where chunks are kept."
)
@click.option("--resume", is_flag=True, help="Go on with the samples of a folder that exists.")
@_safe
def montecarlo(
    file: pathlib.Path,
    changes: tuple,
    samples: int,
    seed: int,
    method: str,
    chunk: int,
    output: Any,
    resume: bool,
) -> None:
    """Samples a tolerance study by the hundred thousand, on all devices; killed, it goes on with --resume.

    \b
    Example:
      mbsjax montecarlo four_bar.toml -n 100000 -o samples
      mbsjax montecarlo four_bar.toml -n 100000 -o samples --resume
    """
    from .._pictures.table import Table
    from .._tolerance.campaign import campaign

    model = _load(file, changes)
    folder = output or pathlib.Path(f"{file.stem}_montecarlo")
    if folder.exists() and any(folder.iterdir()) and not resume:
        raise click.UsageError(f"the folder {folder} is not empty: name another one by -o, or say --resume")
    with _working("the nominal mechanism"):
        study = model.study()
    done = campaign(study, samples, folder, seed=seed, method=method, chunk=chunk)
    tally = done.tally
    moments, errors = tally.moments, tally.errors
    names = ("mean", "sigma", "skewness", "kurtosis")
    rows = [(f"{name}, standard error", *_pairs(x, e)) for name, x, e in zip(names, moments, errors)]
    rows += [("least", *map(float, tally.least)), ("largest", *map(float, tally.largest))]
    _show(Table(f"{samples} samples", ("", *study.columns), rows))
    rejects = [(name, 1e6 * float(rate), 1e6 * float(error)) for name, (rate, error) in tally.rejects.items()]
    if rejects:
        _show(Table("rejects", ("measure", "ppm", "standard error"), rejects))
    _show(_classes(tally))
    _wrote(folder)


def _pairs(values: Any, errors: Any) -> list[str]:
    return [f"{float(x):.8g} +- {float(e):.2g}" for x, e in zip(values, errors)]


def _classes(tally: Any) -> Any:
    from .._dynamics.outcome import CLASSES
    from .._pictures.table import Table

    rows = [(name, int(n)) for name, n in zip(CLASSES, tally.classes) if n]
    return Table("what became of them", ("class", "samples"), rows)


@main.command()
@_file_argument
@_changes
@_output
@click.option("--starts", "-n", type=click.IntRange(1), help="How many searches; by default what the file says.")
@click.option("--seed", type=click.IntRange(0), help="Of the starts.")
@_safe
def synthesize(
    file: pathlib.Path, changes: tuple, output: Any, overwrite: bool, starts: int | None, seed: int | None
) -> None:
    """Which dimensions do better: searches from many starts, and writes the file with the best ones.

    \b
    Example:
      mbsjax synthesize four_bar_path.toml --starts 256
    """
    from .._synthesis.synthesize import synthesize as search

    model = _load(file, changes)
    _folder(output, file, "synthesize", overwrite)
    options = model.search()
    options |= {k: x for k, x in (("starts", starts), ("seed", seed)) if x is not None}
    with _working("the task"):
        task = model.task()
    OUT.print(task, markup=False)
    found = search(task, progress=True, **options)
    OUT.print(found, markup=False)
    if not found.designs:
        raise RuntimeError("no start led to a design")
    folder = _folder(output, file, "synthesize", overwrite, make=True)
    _show(found.table())
    _show(found.before_and_after())
    (folder / "designs.csv").write_text(found.table(len(found.designs)).to_csv())
    best = folder / f"{file.stem}.toml"
    best.write_text(model.changed(found.best.dimensions), encoding="utf-8")
    _wrote(folder / "designs.csv", best)
    with contextlib.suppress(ImportError):
        import matplotlib

        matplotlib.use("Agg")
        found.plot_history().figure.savefig(folder / "history.png", dpi=150)
        _wrote(folder / "history.png")
    if not found.best.met:
        raise RuntimeError("the best design does not keep all conditions")


# -- files -------------------------------------------------------------------------------------------------------


@main.command()
@click.argument("source", type=click.Path(path_type=pathlib.Path))
@click.argument("target", type=click.Path(path_type=pathlib.Path))
@click.option("--profile", metavar="BODY.PROFILE", help="The profile to take out of a model file.")
@click.option("--hole", is_flag=True, help="Whether a drawing is the boundary of a hole.")
@click.option("--overwrite", is_flag=True, help="Whether the target may exist.")
@_safe
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
    _new(target, overwrite)
    if kinds[0] in (".dxf", ".csv"):
        if kinds[1] != ".toml":
            raise click.UsageError(f"a profile goes from {source} to a model file (.toml), not to {target}")
        target.write_text(_from_profile(source, hole), encoding="utf-8")
    elif kinds[1] in (".dxf", ".csv"):
        shape = _profile(_load(source), profile, source)
        shape.to_dxf(target) if kinds[1] == ".dxf" else shape.to_csv(target)
    elif kinds == (".toml", ".dyn"):
        target.write_text(_to_dyn(_load(source)), encoding="utf-8")
    elif kinds == (".dyn", ".toml"):
        target.write_text(_from_dyn(source), encoding="utf-8")
    else:
        raise click.UsageError(f"{source} and {target} are of the same kind")
    _wrote(target)


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


@main.command()
@click.argument("name", required=False)
@click.option("--output", "-o", type=click.Path(path_type=pathlib.Path), metavar="FILE", help="Where to copy it.")
@click.option("--overwrite", is_flag=True, help="Whether the file may exist.")
@_safe
def examples(name: str | None, output: Any, overwrite: bool) -> None:
    """Lists the examples, or copies one out.

    \b
    Example:
      mbsjax examples
      mbsjax examples latch
    """
    from .._pictures.table import Table

    folder = importlib.resources.files("mbsjax") / "examples"
    files = {f.name.removesuffix(".toml"): f for f in folder.iterdir() if f.name.endswith(".toml")}
    if name is None:
        title = re.compile(r'^title\s*=\s*"(.*)"', re.M)
        rows = [(n, (title.search(files[n].read_text(encoding="utf-8")) or [n, n])[1]) for n in sorted(files)]
        table = Table("examples", ("name", "what it is"), rows)
        OUT.print(str(table), markup=False)
        return
    name = name.removesuffix(".toml")
    if name not in files:
        raise click.UsageError(f"there is no example {name!r}; there are {', '.join(sorted(files))}")
    path = _new(output or pathlib.Path(f"{name}.toml"), overwrite)
    with importlib.resources.as_file(files[name]) as file:
        shutil.copyfile(file, path)
    _wrote(path)


@main.command()
@_safe
def schema() -> None:
    """Prints the JSON Schema of model files, for editors that check and complete them.

    \b
    Example:
      mbsjax schema > model.schema.json
    """
    from .._files.schema import schema as made

    click.echo(json.dumps(made(), indent=2))


if __name__ == "__main__":
    main()
