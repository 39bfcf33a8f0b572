"""What a newcomer tries first works as it is printed."""

import pathlib
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest


ROOT = pathlib.Path(__file__).parent.parent


def test_examples_of_the_readme_print_what_they_say(capsys):
    first, second, third = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    names = {}
    exec(compile(first, "README.md", "exec"), names)
    printed = [float(x) for x in capsys.readouterr().out.split()]
    np.testing.assert_allclose(printed, [4.0, 1.25], atol=1e-12)
    exec(compile(second, "README.md", "exec"), names)
    speeds = np.array(capsys.readouterr().out.strip(" []\n").split(), float)
    bend = np.pi / 6
    expected = np.cos(bend) / (1 - (np.sin(bend) * np.cos(np.linspace(0, 3, 31))) ** 2)
    np.testing.assert_allclose(speeds, expected, atol=1e-7)
    exec(compile(third, "README.md", "exec"), names)
    words = capsys.readouterr().out
    assert words.count("transition") == 8
    date = 2 * np.arctan2(25.0, 15.0)  # the roller's centre above the end of the arc
    assert f"t = {date:.9g}: contact 'C23' transition (arc 0 - circle 0 -> point 1 - circle 0)" in words
    lift, *place = (float(x) for x in words.splitlines()[-1].replace("[", "").replace("]", "").split())
    np.testing.assert_allclose([lift, *place], [40.0, 0.5, 0.5, 0.0], atol=1e-9)


@pytest.mark.slow
def test_demo_prints_its_tables_and_writes_its_picture(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mbsjax.demo"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (tmp_path / "out" / "demo.png").stat().st_size > 10_000
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r"\s+\d+\s+-?\d+\.\d{6}", line)]
    assert len(rows) == 14
    # the slider-crank, 1 and 3: travel and its rates at a crank angle of 60 degrees
    travel = lambda x: jnp.cos(x) + jnp.sqrt(9 - jnp.sin(x) ** 2)
    angle = jnp.pi / 3
    expected = [travel(angle), jax.grad(travel)(angle), jax.grad(jax.grad(travel))(angle)]
    np.testing.assert_allclose([float(x) for x in rows[8][1:4]], expected, atol=1e-6)
    # the cam: its first event, the end of the arc
    event = next(line.split() for line in done.stdout.splitlines() if line.endswith("arc -> point"))
    np.testing.assert_allclose([float(x) for x in event[:2]], [2 * np.arctan2(25.0, 15.0), np.hypot(15, 25)], atol=1e-6)
