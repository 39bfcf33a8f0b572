"""Programs outlive the process that made them: they are found only where all is the same, and give the same bits."""

import errno
import importlib.resources
import json
import os
import subprocess
import sys
import types
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from click.testing import CliRunner

import mbsjax as mbs
from mbsjax._cli.main import main
from mbsjax._dynamics import simulate as _simulate
from mbsjax._kinematics import motion as _motion
from mbsjax._kinematics.mobility import counted_freedoms
from mbsjax._kinematics.mode import Mode
from mbsjax._programs import called, kept
from mbsjax._programs.snapshot import fingerprint
from mbsjax._programs.trees import as_function


# what is called by itself in a process: bits of its results, and which programs it has traced
STARTED = """
import hashlib, json, sys
import jax, jax.numpy as jnp, numpy as np
import mbsjax as mbs
from mbsjax._programs import called

jax.config.update("jax_enable_x64", True)
mbs.keep_programs(sys.argv[1])
made, traced = called._traced, []
called._traced = lambda f, *rest: (traced.append(f.__name__), made(f, *rest))[1]

floor = mbs.Profile.chain([mbs.Line((1.0, 0.0), (-1.0, 0.0))], closed=False)
ball = mbs.Mechanism(
    [mbs.Body("ground", profiles={"floor": floor}), mbs.Body("ball", mass=1.0, profiles={"rim": mbs.disc(0.1)})],
    [mbs.Prismatic("y", "ground", "ball", axis=(0.0, 1.0), start=1.1),
     mbs.Contact("C", "ground.floor", "ball.rim", restitution=0.5)],
    gravity=(0.0, -9.81))
sol = mbs.simulate(ball, lambda: mbs.state(ball), 0.6, drive=None, max_steps=64, max_events=4)
crank = mbs.Mechanism([mbs.Body("crank")], [mbs.Revolute("A", "ground", "crank")])
turned = mbs.kinematics(crank, {"A": lambda t: 2.0 * t + jnp.sin(t)}, jnp.linspace(0.0, 1.0, 5))
study = mbs.Study(lambda p: p["a"] ** 2, {"a": 1.0}, {"a": mbs.Normal(0.1)}, {"y": lambda y: y})
value, slopes = mbs.value_and_slopes(lambda x: jnp.sqrt(2 * x["h"] / x["g"]), {"h": 2.0, "g": 9.0})
sampled = mbs.monte_carlo(study, 64, chunk=64).values
found = [sol.q, sol.event_times("C", "impact"), turned.a, value, slopes, sampled]
told = [hashlib.sha256(np.asarray(x).tobytes()).hexdigest() for x in jax.tree_util.tree_leaves(found)]
print(json.dumps([told, traced]))
"""


def begun(*folders):
    """The results of new processes, all at once, each with its folder of programs."""
    flags = {"XLA_FLAGS": os.environ["XLA_FLAGS"], "JAX_ENABLE_COMPILATION_CACHE": "1"}
    run = lambda x: subprocess.Popen([sys.executable, "-c", STARTED, x], stdout=-1, text=True, env=os.environ | flags)
    processes = [run(x) for x in folders]
    told = [p.communicate()[0] for p in processes]
    assert [p.returncode for p in processes] == [0] * len(folders)
    return [json.loads(x.splitlines()[-1]) for x in told]


def test_a_second_process_traces_nothing_and_finds_the_same_bits(tmp_path):
    (first, traced), (other, more) = begun(tmp_path / "a", tmp_path / "a")  # two at once, in one folder
    longest = ("_recorded", "start", "outputs", "_run")  # made beforehand, and not once more
    assert all(x.count(name) <= 1 for x in (traced, more) for name in longest)
    assert first == other and {"_recorded", "_run", "_value_and_slopes"} <= {*traced, *more}
    files = sorted((tmp_path / "a").glob("*.program"))
    assert files and not list((tmp_path / "a").glob("*~"))
    victim, cut = (next(x for x in files if x.name.startswith(name)) for name in ("recorded", "outputs"))
    ((again, traced),) = begun(tmp_path / "a")
    assert (again, traced) == (first, [])
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    cut.write_bytes(cut.read_bytes()[:100])
    ((again, traced),) = begun(tmp_path / "a")
    assert (again, sorted(traced)) == (first, ["_recorded", "outputs"])
    ((again, traced),) = begun(tmp_path / "a")  # they were written anew
    assert (again, traced) == (first, [])


@pytest.fixture
def folder(tmp_path):
    """Where this process keeps programs, of which it knows none."""
    before = kept._folder
    called.forget()
    kept.keep(tmp_path)
    yield tmp_path
    kept.keep(before)
    called.forget()


def made():
    """A small program is called; its result."""
    return np.asarray(mbs.frames.from_points((0.0, 0.0, 0.1), (1.0, 0.2, 0.0), (0.0, 1.0, 0.3)))


@pytest.fixture
def traced(monkeypatch):
    """Counts what is traced."""
    names, was = [], called._traced
    monkeypatch.setattr(called, "_traced", lambda f, *rest: (names.append(f.__name__), was(f, *rest))[1])
    return names


CHANGED = {
    "code": lambda patch: patch.setattr(kept, "_own_code", lambda: b"another version"),
    "packages": lambda patch: patch.setattr(kept, "_installed", lambda: ["jax-99.0.dist-info"]),
    "processor": lambda patch: patch.setattr(kept, "_processor", lambda: "another one"),
    "flags": lambda patch: patch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true"),
}


@pytest.mark.parametrize("change", CHANGED)
def test_a_program_of_other_versions_is_not_found(folder, traced, monkeypatch, change):
    kept._circumstances.cache_clear()
    try:
        first = made()
        called.forget()
        assert np.array_equal(made(), first) and len(traced) == 1
        CHANGED[change](monkeypatch)
        kept._circumstances.cache_clear()
        called.forget()
        assert np.array_equal(made(), first) and len(traced) == 2
    finally:
        kept._circumstances.cache_clear()


def test_a_full_disk_loses_nothing(folder, traced, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        first = made()
    assert list(folder.iterdir()) == []
    called.forget()
    assert np.array_equal(made(), first) and len(traced) == 2 and len(list(folder.glob("*.program"))) == 1
    called.forget()
    kept.keep(folder / "a file" / "below")
    (folder / "a file").write_text("")
    assert np.array_equal(made(), first) and len(traced) == 3


def test_a_file_that_is_something_else_is_made_anew(folder, traced):
    first = made()
    (file,) = folder.glob("*.program")
    whole = file.read_bytes()
    for content in (b"", b"something else", whole[:-1], whole + b"1"):
        file.write_bytes(content)
        called.forget()
        assert np.array_equal(made(), first) and file.read_bytes()[: len(kept._HEAD)] == kept._HEAD
    assert len(traced) == 5


def test_what_was_not_used_for_longest_is_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "MOST", 250)
    for k in range(4):
        file = tmp_path / f"{k}.program"
        kept._write(file, bytes(50))
        os.utime(file, (k if k else 10, k if k else 10))
        for other in ("mine.txt", "jax-cache"):
            (tmp_path / other).write_bytes(bytes(300))
    kept._make_room(tmp_path)
    sizes = {x.name: x.stat().st_size for x in tmp_path.iterdir()}
    assert {*sizes} >= {"mine.txt", "jax-cache", "0.program"} and "1.program" not in sizes
    assert sum(sizes.values()) - 600 <= 250


def key(about, f=mbs.frames.from_points, options=None, kinds=()):
    return kept.key_of(f, options or {}, about, kinds)


def test_keys_are_equal_only_if_all_is():
    speed = lambda k: as_function(lambda t: k * t)
    other = lambda a: jax.tree_util.tree_structure(a)
    every = [
        key(speed(2.0)), key(speed(3.0)), key(speed(jnp.ones(2))), key(1), key(1.0), key(True), key("1"),
        key(other({"a": 1})), key(other({"b": 1})), key(other([1])), key(other((1,))), key(1, options={"level": 0}),
        key(1, kinds=((3,), "float64")), key(1, kinds=((3,), "float32")), key(1, f=mbs.frames.from_axis),
    ]  # fmt: skip
    assert None not in every and len({*every}) == len(every)
    assert key(speed(2.0)) == key(speed(2.0)) and key(other({"a": 1})) == key(other({"a": 2}))
    with jax.enable_x64(False):
        assert key(1) not in every
    assert key(1, f=lambda: None) is None  # who changes it is not known


def test_classes_of_users_are_known_by_what_they_do():
    def field(factor, name="Field", more=None):
        source = f"class {name}(eqx.Module):\n    k: float = eqx.field(static=True)\n"
        source += f"    def __call__(self, t):\n        return {factor} * self.k * t\n"
        names = {"eqx": eqx, "__name__": "theirs", "jnp": jnp} | (more or {})
        exec(source, names)
        return names[name]

    like = lambda cls, k=2.0: fingerprint(jax.tree_util.tree_structure(cls(k)))
    every = [like(field("2")), like(field("3")), like(field("2", "Other")), like(field("2"), 3.0),
             like(field("c", more={"c": 1.0})), like(field("c", more={"c": 2.0}))]  # fmt: skip
    assert None not in every and len({*every}) == len(every) and like(field("2")) == every[0]
    theirs = types.ModuleType("theirs_too")
    theirs.c = 1.0  # pyright: ignore
    assert like(field("m.c", more={"m": theirs})) is None  # what else it may look up there is not known
    assert fingerprint(object()) == fingerprint(object())
    with pytest.warns(UserWarning, match="open"):
        assert fingerprint(as_function(lambda t: open(t))) is None


def test_two_threads_make_a_program_once(folder, traced):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as threads:
        found = [x.result() for x in [threads.submit(made) for _ in range(4)]]
    assert len(traced) == 1 and all(np.array_equal(x, found[0]) for x in found)


def test_slopes_by_both_modes():
    x = {"a": 2.0, "b": jnp.arange(3.0), "n": 3}
    f = lambda x: {"y": x["a"] * x["b"], "z": x["a"] ** x["n"]}
    for reverse in (None, False, True):
        value, slopes = mbs.value_and_slopes(f, x, reverse=reverse)
        assert np.allclose(value["y"], [0, 2, 4]) and value["z"] == 8.0
        assert np.allclose(slopes["y"]["b"], 2 * np.eye(3)) and np.allclose(slopes["y"]["a"], [0, 1, 2])
        assert slopes["z"]["a"] == 12.0 and np.allclose(slopes["z"]["b"], 0)
        assert np.allclose(slopes["z"]["n"], 8 * np.log(2.0))
    (value, slopes), again = (mbs.value_and_slopes(lambda x: jnp.sum(x**2), 3) for _ in range(2))
    assert (value, slopes) == again == (9.0, 6.0)


def test_the_command_tells_and_deletes(tmp_path):
    (tmp_path / "a.program").write_bytes(bytes(2_000_000))
    (tmp_path / "b-cache").write_bytes(bytes(1_000_000))
    (tmp_path / "mine.txt").write_text("mine")
    told = CliRunner().invoke(main, ["--cache", str(tmp_path), "cache"])
    assert told.exit_code == 0 and "2 files, 3.0 MB" in told.output.replace("\n", " ")
    told = CliRunner().invoke(main, ["--cache", str(tmp_path), "cache", "--clear"])
    assert "deleted" in told.output and [x.name for x in tmp_path.iterdir()] == ["mine.txt"]


class Enough(Exception):
    pass


@pytest.mark.parametrize(
    ("name", "of"), [("over_center", "simulate"), ("latch_friction", "simulate"), ("cam_roller", "kinematics")]
)
def test_a_course_is_traced_before_its_beginning_is_known(monkeypatch, name, of):
    """With contacts, friction, forces that switch: its shapes are told, and must be those that it begins with."""
    beginning, course = _simulate.start, _motion._start

    def told(shapes: Any) -> Any:
        return jax.tree_util.tree_map(lambda x: (x.shape, x.dtype, x.weak_type), shapes)

    def start(plant, active, state0, t1):
        found = eqx.filter_eval_shape(beginning, plant, active, state0, t1)
        assert told(found.at) == told(_simulate.begin_shapes(plant, state0.q))
        raise Enough

    def _start(problem, q, t, n, active):
        found = eqx.filter_eval_shape(course, problem, q, t, n, active)
        assert n == counted_freedoms(problem) and told(found.mode) == told(
            Mode.shapes(n, len(problem.system.layout.holds), q.dtype)
        )
        raise Enough

    monkeypatch.setattr(_simulate, "start", start)
    monkeypatch.setattr(_motion, "_start", _start)
    with importlib.resources.as_file(importlib.resources.files("mbsjax") / "examples" / f"{name}.toml") as path:
        model = mbs.load(path)
    with pytest.raises(Enough):
        model.run(of)
