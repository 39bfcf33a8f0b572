"""What was compiled once is found again: other numbers, written down anew, need no other program."""

import contextlib
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from click.testing import CliRunner

import mbsjax as mbs
from mbsjax._cli.main import main
from mbsjax._programs.functions import Plain


FILE = """
[parameters]
length = 0.5
speed = 1.5
height = 0.125
[bodies.bob]
mass = 1.0
center = ["length", "height"]
points.tip = ["length", "height"]
[joints.O]
type = "revolute"
body_a = "ground"
body_b = "bob"
[drive]
O = "speed*t"
[kinematics]
t1 = 1
outputs = 5
[tolerances]
length = 0.01
[measures]
reach = "max(bob.tip.x)"
[limits]
reach = [0.4, 0.6]
[synthesis]
variables = {length = [0.1, 1.0]}
goals = {reach = {measure = "bob.tip.x[0]", target = 0.75}}
"""
_COMPILED, _TRACED = (f"/jax/core/compile/{what}_duration" for what in ("backend_compile", "jaxpr_trace"))
_SHAPES = ("_fn", "<lambda>", "excess")  # looked at for their shapes alone


@pytest.fixture
def programs():
    """The names of all programs that are made, and of the functions that are traced."""
    made: list[str] = []

    def listen(event: str, _: float, **about: str) -> None:
        name = str(about.get("fun_name"))
        if event == _COMPILED or (event == _TRACED and name not in _SHAPES):
            made.append(name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield made
    with contextlib.suppress(AttributeError, ValueError):
        jax.monitoring.unregister_event_duration_listener(listen)


def twice(programs, walk, first, second):
    walk(*first)
    assert programs
    programs.clear()
    walk(*second)
    assert programs == []


def pendulum(length, damping):
    bob = mbs.Body("bob", mass=2.0, center=(length, 0.0), inertia=0.1)
    forces = [mbs.Spring("O", stiffness=damping), mbs.Actuator("O", lambda x, v, t: -0.125 * v)]
    return mbs.Mechanism([bob], [mbs.Revolute("O", "ground", "bob")], forces=forces, gravity=(0.0, -10.0))


def test_driven_motion(programs):
    def walk(length, speed):
        mech, ts = pendulum(length, 1.0), jnp.linspace(0.0, speed, 5)
        drive = {"O": lambda t: jnp.sin(t)}
        motion = mbs.kinematics(mech, drive, ts)
        repr(mech), repr(motion), motion["O"], motion.point("bob"), motion.pose("bob")
        repr(mbs.assemble(mech, {"O": speed}))
        mbs.inverse_dynamics(mech, {"O": mbs.constant_speed(speed)}, ts)

    twice(programs, walk, (0.5, 1.0), (0.75, 1.25))


def test_motion_under_forces(programs):
    def walk(length, speed):
        mech = pendulum(length, speed)
        state = mbs.state(mech, {"O": length}, {"O": speed})
        sol = mbs.simulate(mech, state, speed, rtol=1e-6 * length)
        repr(sol), sol["O"], sol.energy, sol.point("bob"), sol.reaction("O")
        repr(mbs.equilibrium(mech, {"O": -length}))
        repr(mbs.linearize(mech, state))

    twice(programs, walk, (0.5, 1.0), (0.75, 1.25))


def test_studies_and_tasks_of_files(programs, tmp_path):
    def walk(text, folder):
        model = mbs.loads(text)
        study = model.study()
        report = mbs.tolerance(study, samples=64, chunk=32)
        str(report), report.sample.dimensions(3)
        mbs.campaign(study, 64, tmp_path / folder, chunk=32, progress=False)
        str(mbs.synthesize(model.task(), starts=2, max_steps=5))

    other = FILE.replace("0.5\n", "0.52\n").replace("0.125", "0.25").replace("1.5", "1.25").replace("0.01", "0.02")
    twice(programs, walk, (FILE, "first"), (other.replace("0.6]", "0.65]").replace("0.75", "0.7"), "second"))


def test_functions_that_are_written_anew(programs):
    def walk(width, moved):
        shift = jnp.array([0.25, 0.5])  # of the functions below, and the same at every call
        study = mbs.Study(lambda p: p["a"] + shift, {"a": width}, {"a": moved}, {"sum": lambda y: jnp.sum(y)})
        mbs.second_order(study), mbs.worst_case(study), mbs.monte_carlo(study, 16, chunk=16)
        task = mbs.Task(lambda p: p["a"] + shift, {"a": width}, {"a": (0.0, 3.0)}, {"y": mbs.Match(lambda y: y, moved)})
        mbs.descend(task, steps=2)

    twice(programs, walk, (1.0, 0.1), (2.0, 0.2))


def test_functions_are_equal_only_if_all_they_refer_to_is():
    def made(k, more=0.0):
        helper = lambda t: k * t
        return Plain(lambda t: helper(t) + jnp.sin(more))

    assert made(2.0) == made(2.0) and hash(made(2.0)) == hash(made(2.0))
    assert made(jnp.ones(3)) == made(jnp.ones(3))
    different = [made(2.0), made(2), made(-0.0), made(0.0), made(2.0, 1.0), made(jnp.ones(3)), made(jnp.ones(2))]
    assert all((f == g) == (i == j) for i, f in enumerate(different) for j, g in enumerate(different))
    thing = type("Thing", (), {"k": 2.0})()
    before = Plain(lambda t: thing.k * t)
    assert before == Plain(lambda t: thing.k * t)
    thing.k = 3.0
    assert before != Plain(lambda t: thing.k * t)
    names = {"k": 2.0}
    first, second = (eval("lambda t: k * t", names) for _ in range(2))
    before = Plain(first)
    assert before == Plain(second)
    names["k"] = 3.0
    assert before != Plain(second)


def test_importing_takes_in_no_more_than_needed():
    code = "import sys, mbsjax; print(*sys.modules); [getattr(mbsjax, x) for x in set(dir(mbsjax)) - {'simulate'}]"
    code += "; 'simulate' in dir(mbsjax) or sys.exit('no simulate'); print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    light, found = (line.split() for line in told.splitlines())
    assert not {"jax", "numpy"} & set(light)
    needless = ["click", "diffrax", "matplotlib", "optax", "optimistix", "pandas", "pyarrow", "rich"]
    needless += ["scipy.interpolate", "scipy.optimize", "scipy.stats", "xarray"]
    assert "equinox" in found and not set(needless) & set(found)
    assert mbs.simulate.__module__ == "mbsjax._dynamics.simulate"
    with pytest.raises(AttributeError, match="simulat"):
        getattr(mbs, "simulat")  # noqa: B009


def test_programs_are_found_in_a_folder_that_was_moved(tmp_path):
    code = "import sys, jax, mbsjax; mbsjax.keep_programs(sys.argv[1]); jax.jit(lambda x: 3 * x + 0.125)(2.0)"
    found = []
    for name in ("a", "b"):
        folder = tmp_path / name
        subprocess.run([sys.executable, "-c", code, folder], check=True)
        found.append({x.name for x in folder.iterdir() if x.name.endswith("-cache")})
    assert found[0] == found[1] and len(found[0]) > 0


def test_programs_are_kept_where_asked(monkeypatch, tmp_path):
    names = ("jax_compilation_cache_dir", "jax_enable_compilation_cache", "jax_persistent_cache_min_compile_time_secs")
    names += ("jax_persistent_cache_enable_xla_caches",)
    before = {name: getattr(jax.config, name) for name in names}
    try:
        assert mbs.keep_programs(tmp_path / "a") == tmp_path / "a"
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / "a")
        monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "b"))
        assert mbs.keep_programs() == tmp_path / "b"
        monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert mbs.keep_programs() == pathlib.Path(tmp_path, "mbsjax")
        CliRunner().invoke(main, ["--no-cache", "info", str(tmp_path / "nothing.toml")])
        assert not jax.config.jax_enable_compilation_cache
    finally:
        for name, x in before.items():
            jax.config.update(name, x)
