"""Every command through its real entry point, on good and on bad files."""

import contextlib
import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import types

import equinox as eqx
import jsonschema
import numpy as np
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import mbsjax as mbs
from mbsjax._cli.main import main
from mbsjax._cli.montecarlo import _chunk
from mbsjax._files.schema import schema
from tests.green import area

from .test_files import FOUR_BAR


PROGRAM = pathlib.Path(sys.executable).with_name("mbsjax")
CASES = pathlib.Path(__file__).parent / "cases"


def run(*given, cwd, code=0):
    """Runs the command, and checks its exit code; its output."""
    env = os.environ | {"COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run([PROGRAM, *map(str, given)], cwd=cwd, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli")
    (path / "four_bar.toml").write_text(FOUR_BAR)
    (path / "bad.toml").write_text(FOUR_BAR.replace('body_a = "ground"', 'body_a = "grund"', 1))
    (path / "locked.toml").write_text(FOUR_BAR.replace("rocker = 2.5", "rocker = 0.7"))
    return path


@pytest.mark.parametrize(
    "given", [["--help"], ["--version"], ["examples"], ["schema"], ["check", "four_bar.toml"]], ids=str
)
def test_light_commands_do_without_jax(folder, given):
    code = "import sys; from mbsjax._cli.main import main; main(standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *given], cwd=folder, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "mbsjax._cli.main" in loaded and not {"jax", "equinox", "scipy"} & set(loaded)


@pytest.fixture
def interruptible():
    """Ctrl-C interrupts, also where tests run in the background of a shell, which has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.long
def test_an_interrupted_search_keeps_what_it_has_found(folder, monkeypatch, interruptible):
    """Ctrl-C at the third look at the bar, which has moved before."""
    moved = []

    @contextlib.contextmanager
    def impatient(total, *_, **__):
        def update(n):
            moved.append(n)
            if len(moved) == 3:
                os.kill(os.getpid(), signal.SIGINT)

        yield types.SimpleNamespace(update=update, set_postfix_str=lambda _: None)

    monkeypatch.setattr("mbsjax._synthesis.synthesize.bar", impatient)
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(main, ["synthesize", "four_bar.toml", "--starts", "1", "-o", "part"])
    assert done.exit_code == 130 and "1 interrupted" in done.output, done.output
    assert moved == [4, 4, 4]  # steps of the one search, which may take 300
    better = mbs.load(folder / "part" / "four_bar.toml").kinematics()["D"].q
    before = mbs.load(folder / "four_bar.toml").kinematics()["D"].q
    assert abs(np.rad2deg(np.ptp(better)) - 45) < abs(np.rad2deg(np.ptp(before)) - 45)


def test_help_shows_an_example(folder):
    names = "info check kinematics simulate tolerance montecarlo synthesize view convert examples schema".split()
    text = run("--help", cwd=folder)
    assert all(f"\n  {name} " in text for name in names)
    for name in names:
        told = main.commands[name].help or ""
        assert "Example:" in told and f"mbsjax {name}" in told
    assert run("--version", cwd=folder).strip().endswith(mbs.__version__)
    assert "No such command 'simulat'" in run("simulat", cwd=folder, code=2)


def test_examples_are_listed_and_copied(folder):
    listed = dict(line.split(maxsplit=1) for line in run("examples", cwd=folder).splitlines()[3:] if line)
    files = pathlib.Path(mbs.__file__).parent.glob("examples/*.toml")
    assert listed == {file.stem: file.read_text().split("\n")[0].removeprefix("# Question: ") for file in files}
    run("examples", "bouncing_ball", cwd=folder)
    assert mbs.load(folder / "bouncing_ball.toml").title == "Bouncing ball"
    assert "exists" in run("examples", "bouncing_ball", cwd=folder, code=2)
    assert "there is no example 'ball'" in run("examples", "ball", cwd=folder, code=2)


def test_info_and_check(folder):
    text = run("info", "four_bar.toml", "--set", "crank=2/4", cwd=folder)
    assert "degrees of freedom: 1 by rank, 1 by counting" in text
    assert "ground - crank - coupler - rocker - ground" in text
    assert "coupler    1.5  3*crank" in text
    text = run("check", "four_bar.toml", "bad.toml", "nothing.toml", cwd=folder, code=2)
    assert "four_bar.toml: 5 parameters" in text and "nothing.toml: there is no such file" in text
    line = (folder / "bad.toml").read_text().splitlines().index('body_a = "grund"') + 1
    assert f"bad.toml, line {line}, joints.A.body_a: an unknown body 'grund'; did you mean 'ground'?" in text
    assert "unknown body 'grund'" in run("info", "bad.toml", cwd=folder, code=2)


def test_kinematics(folder):
    text = run("kinematics", "four_bar.toml", "-o", "out", "--pictures", "pdf", cwd=folder)
    assert "largest residual" in text
    written = {f.name for f in (folder / "out").iterdir()}
    assert written == {"results.csv", "view.html", "ghosts.pdf", "curves.pdf"}
    assert (folder / "out" / "ghosts.pdf").read_bytes().startswith(b"%PDF")
    with open(folder / "out" / "results.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    motion = mbs.load(folder / "four_bar.toml").kinematics()
    np.testing.assert_allclose([float(r["D.a"]) for r in rows], motion["D"].a, rtol=1e-9, atol=1e-12)
    assert "out is not empty" in run("kinematics", "four_bar.toml", "-o", "out", cwd=folder, code=2)
    assert "'cranc'" in run("kinematics", "four_bar.toml", "--set", "cranc=1", cwd=folder, code=2)
    text = run("kinematics", "locked.toml", cwd=folder, code=1)  # the crank cannot turn
    assert "At t = " in text and "swing" in text and (folder / "locked_kinematics" / "view.html").exists()


@pytest.mark.long
def test_simulate_and_view(folder):
    (folder / "free.toml").write_text(FOUR_BAR.replace('A = "speed*t"', ""))
    text = run("simulate", "free.toml", "--format", "parquet", cwd=folder)
    assert "'passed' triggered" in text
    table = pyarrow.parquet.read_table(folder / "free_simulate" / "results.parquet")
    sol = mbs.load(folder / "free.toml").simulate()
    np.testing.assert_allclose(table["A.v"].to_numpy(), sol["A"].v, rtol=1e-7)
    np.testing.assert_allclose(table["kinetic"].to_numpy(), sol.kinetic, rtol=1e-7)
    run("view", "free.toml", "-o", "page.html", cwd=folder)
    page = (folder / "page.html").read_text()
    assert "Crank and rocker" in page and "://" not in page
    assert "exists" in run("view", "free.toml", "-o", "page.html", cwd=folder, code=2)
    run("view", "four_bar.toml", "--of", "model", "-o", "model.html", cwd=folder)
    assert '"kind":"mechanism"' in (folder / "model.html").read_text()
    assert "`t1`, is missing" in run("view", "bouncing.toml", cwd=_without_end(folder), code=2)


def _without_end(folder):
    text = (folder / "bouncing_ball.toml").read_text() if (folder / "bouncing_ball.toml").exists() else FOUR_BAR
    lines = [line for line in text.splitlines() if not line.startswith("t1")]
    (folder / "bouncing.toml").write_text("\n".join(lines))
    return folder


@pytest.mark.long
def test_tolerance_and_montecarlo(folder):
    (folder / "what_if.toml").write_text("[tolerances]\ncrank = 0.01\n[limits]\nswing = [0.0, 90.0]\n")
    options = ["--first", "--no-worst", "--target", 0.99, "--what-if", "what_if.toml"]
    text = run("tolerance", "four_bar.toml", *options, cwd=folder)
    assert "contributors of swing" in text
    report = json.loads((folder / "four_bar_tolerance" / "report.json").read_text())
    assert (folder / "four_bar_tolerance" / "report.html").exists()
    assert [row[0] for row in report["ranking"]["rows"]] == ["crank"]
    row = dict(zip(report["summary"]["columns"], report["summary"]["rows"][0], strict=True))
    assert (row["lower limit"], row["upper limit"], row["verdict"]) == (0.0, 90.0, "pass"), row
    run("montecarlo", "four_bar.toml", "-n", 64, "--chunk", 64, "-o", "samples", cwd=folder)
    text = run("montecarlo", "four_bar.toml", "-n", 128, "-o", "samples", "--resume", cwd=folder)  # the chunk as before
    assert "128 samples" in text and "as nominal" in text
    assert len(list((folder / "samples").glob("*.parquet"))) == 2
    assert "--resume" in run("montecarlo", "four_bar.toml", "-o", "samples", cwd=folder, code=2)
    (folder / "no_study.toml").write_text(FOUR_BAR.replace("[tolerances]", "[measures]", 1).replace(
        'crank = 0.01\nrocker = {type = "uniform", tol = 0.02}\n\n[measures]\n', ""))  # fmt: skip
    assert "[tolerances] is missing" in run("tolerance", "no_study.toml", cwd=folder, code=2)


@pytest.mark.parametrize("samples, chunk", [(1, 1), (256, 32), (257, 33), (10**6, 4096)])
def test_a_bar_of_few_samples_moves(samples, chunk):
    assert _chunk(samples) == chunk


@pytest.mark.long
def test_synthesize(folder):
    text = run("synthesize", "four_bar.toml", "--starts", 2, cwd=folder)
    assert "best objective" in text
    better = mbs.load(folder / "four_bar_synthesize" / "four_bar.toml")
    assert np.rad2deg(np.ptp(better.kinematics()["D"].q)) == pytest.approx(45.0, abs=1e-7)
    assert "# m" in better.text  # comments stay
    assert "not empty" in run("synthesize", "four_bar.toml", cwd=folder, code=2)


@pytest.mark.long
def test_convert(folder):
    listing = CASES / "example_4_4.DYN"
    assert "note:" in run("convert", listing, "cam.toml", cwd=folder)
    mech = mbs.load(folder / "cam.toml").mechanism()
    with pytest.warns(mbs.DynWarning):
        assert bool(eqx.tree_equal(mech, mbs.read_dyn(listing).mech))
    run("convert", "cam.toml", "cam.dyn", cwd=folder)
    again = mbs.read_dyn(folder / "cam.dyn").mech
    assert bool(eqx.tree_equal(again, mech, rtol=1e-12, atol=1e-12))
    body = next(b for b in mech.bodies if b.profiles)
    address = f"{body.name}.{next(iter(body.profiles))}"
    run("convert", "cam.toml", "cam.csv", "--profile", address, cwd=folder)
    run("convert", "cam.csv", "again.toml", cwd=folder)
    table = np.loadtxt(folder / "cam.csv", delimiter=",", skiprows=1)
    rim = mbs.load(folder / "again.toml").mechanism().body("part").profiles["outline"]
    assert np.linalg.norm(np.asarray(rim(0.0).position) - table, axis=1).min() < 1e-9
    assert "same kind" in run("convert", "cam.toml", "other.toml", cwd=folder, code=2)
    assert "there is no profile 'cam.x'" in run(
        "convert", "cam.toml", "x.dxf", "--profile", "cam.x", cwd=folder, code=2
    )
    assert "cam.txt" in run("convert", "cam.toml", "cam.txt", cwd=folder, code=2)


@pytest.mark.long
def test_convert_drawings_and_mechanisms(folder):
    """From SVG to a model file, on to a drawing, MuJoCo and URDF, each of which has what the file says."""
    (folder / "plate.svg").write_text(
        '<svg width="8mm" viewBox="0 0 4 4"><rect id="rim" width="4" height="3" rx="1"/></svg>'
    )
    run("convert", "plate.svg", "plate.toml", "--name", "rim", "--unit", "mm", cwd=folder)
    rim = mbs.load(folder / "plate.toml").mechanism().body("part").profiles["outline"]
    assert area(rim) == pytest.approx(4 * (12 - 4 + np.pi), rel=1e-12)
    run("convert", "plate.toml", "plate.dxf", "--own-frames", cwd=folder)
    assert area(mbs.read_dxf(folder / "plate.dxf", layer="part.outline")) == pytest.approx(area(rim), rel=1e-12)
    run("convert", "plate.toml", "plate.urdf", cwd=folder)
    assert '<joint name="seat" type="fixed">' in (folder / "plate.urdf").read_text()
    run("convert", "plate.toml", "plate.xml", cwd=folder)
    assert '<body name="part" pos="0 0 0" quat="1 0 0 0">' in (folder / "plate.xml").read_text()
    assert "there are 'rim'" in run("convert", "plate.svg", "x.toml", "--name", "hub", cwd=folder, code=2)
    assert "not to" in run("convert", "plate.svg", "x.xml", cwd=folder, code=2)
    (folder / "points.csv").write_text("x,y\n0,0\n1,0\n1,1\n0,1\n")
    assert "--name, --index and --unit" in run("convert", "points.csv", "x.toml", "--index", "0", cwd=folder, code=2)


def test_schema_is_that_of_the_files(folder):
    published = json.loads(run("schema", cwd=folder))
    assert published == schema()
    kept = pathlib.Path(__file__).parent.parent / "docs" / "model.schema.json"
    assert json.loads(kept.read_text()) == published  # mbsjax schema > docs/model.schema.json
    import tomllib

    jsonschema.Draft202012Validator.check_schema(published)
    checker = jsonschema.Draft202012Validator(published)
    examples = pathlib.Path(mbs.__file__).parent / "examples"
    for file in examples.glob("*.toml"):
        checker.validate(tomllib.loads(file.read_text()))
    checker.validate(tomllib.loads(FOUR_BAR))
    assert not checker.is_valid(tomllib.loads(FOUR_BAR.replace("[drive]", "[drives]")))
    assert not checker.is_valid(tomllib.loads(FOUR_BAR.replace("mass = 1.0", "mas = 1.0")))
