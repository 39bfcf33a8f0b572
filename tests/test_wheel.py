"""What pip installs is whole: the wheel, alone in an environment of its own, does what a newcomer asks first."""

import ast
import csv
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile

import numpy as np
import pytest

import mbsjax as mbs


ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel, and the archive of sources."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def run(built, tmp_path_factory):
    """Runs a command of an environment that has the wheel, in an empty folder: what it prints. The dependencies are
    those of the tests, and no checkout is seen: folders that a `.pth` names are searched last, and their own `.pth`
    files, such as that of an editable installation, are not read."""
    home, folder = tmp_path_factory.mktemp("venv"), tmp_path_factory.mktemp("work")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    names = {"base": str(home), "platbase": str(home)}
    bin_, site = (pathlib.Path(sysconfig.get_path(name, "venv", names)) for name in ("scripts", "purelib"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    install = ["--python", str(bin_ / "python"), "install", "--quiet", "--no-deps", "--no-index", str(built[0])]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"NO_COLOR": "1", "COLUMNS": "200"}

    def run(program, *given):
        done = subprocess.run([bin_ / program, *given], cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run.folder, run.site = folder, site
    return run


def _files() -> set[str]:
    """The files of the package, from git: what is not there is not to be published."""
    told = subprocess.run(["git", "ls-files", "mbsjax"], cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in told.stdout.splitlines() if (ROOT / name).exists()}


def _declared() -> tuple[dict[str, str], dict[str, str]]:
    """The lowest versions of what the package requires, and of what its extras for users do."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    asked = re.search(r"\[(.*)\]", extras["all"][0])
    assert asked is not None
    more = [line for name in asked[1].split(",") for line in extras[name] if not line.startswith("mbsjax")]
    first, second = (dict(line.split(">=") for line in lines) for lines in (project["dependencies"], more))
    return first, second


def test_what_is_required_is_imported_and_what_is_imported_is_required():
    """Optional packages are those of an extra; what comes with another one, as jaxlib with JAX, is not required."""
    imported = set()
    for name in _files():
        if name.endswith(".py"):
            for line in ast.walk(ast.parse((ROOT / name).read_text())):
                if isinstance(line, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in line.names}
                elif isinstance(line, ast.ImportFrom) and not line.level:
                    imported.add((line.module or "").split(".")[0])
    required, optional = _declared()
    ours = imported - set(sys.stdlib_module_names) - {"mbsjax"}
    assert set(required) <= ours
    assert ours - set(required) - set(optional) <= {"IPython", "cycler", "dask", "jaxlib", "mpl_toolkits"}


def test_the_lowest_versions_that_are_declared_are_those_that_are_tried():
    """`make test-lowest` installs them."""
    required, optional = _declared()
    tried = dict(line.split("==") for line in (ROOT / "tests/lowest.txt").read_text().split())
    exactly = lambda version: [int(x) for x in f"{version}.0.0".split(".")[:3]]
    for name, lowest in (required | optional).items():
        assert exactly(tried.pop(name)) == exactly(lowest), name
    assert not tried


def test_archives_hold_the_package_and_nothing_else(built):
    wheel, source = built
    info = f"mbsjax-{mbs.__version__}.dist-info/"
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if not name.startswith(info)}
        metadata = archive.read(f"{info}METADATA").decode()
    assert inside == _files()
    assert {"mbsjax/py.typed", "mbsjax/_pictures/viewer/page/index.html", "mbsjax/_tolerance/page/index.html"} <= inside
    assert f"\nVersion: {mbs.__version__}\n" in metadata and "\nProvides-Extra: all\n" in metadata
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    beside = {"CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "pyproject.toml", "PKG-INFO", ".gitignore"}
    assert _files() <= inside <= _files() | beside


def test_wheel_alone_runs_the_first_commands(run):
    found = run("python", "-c", "import importlib.util; print(importlib.util.find_spec('mbsjax').origin)")
    assert found.strip() == str(run.site / "mbsjax" / "__init__.py")
    assert run("mbsjax", "--version").split()[-1] == mbs.__version__
    listed = run("mbsjax", "examples")
    assert all(path.stem in listed for path in (ROOT / "mbsjax" / "examples").glob("*.toml"))
    run("mbsjax", "examples", "bouncing_ball")
    assert "bouncing_ball.toml: 5 parameters" in run("mbsjax", "check", "bouncing_ball.toml")
    run("mbsjax", "simulate", "bouncing_ball.toml", "-o", "out")
    with open(run.folder / "out" / "results.csv", newline="") as file:
        heights = {float(row["t"]): float(row["height.q"]) for row in csv.DictReader(file)}
    t, height = next((t, h) for t, h in heights.items() if t > 0.3)  # it falls freely
    np.testing.assert_allclose(height, 1.1 - 9.81 / 2 * t**2, rtol=1e-9)
    run("mbsjax", "examples", "slider_crank")
    run("mbsjax", "view", "slider_crank.toml", "-o", "page.html")
    for page, title in {"out/view.html": "Bouncing ball", "page.html": "Slider-crank"}.items():
        text = (run.folder / page).read_text()
        assert f"<title>{title}</title>" in text and "</script>" in text and "://" not in text
