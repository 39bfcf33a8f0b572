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
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    first, second, third, fourth, fifth, sixth = blocks
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
    left_at = 2 * np.arctan2(25.0, 15.0)  # the roller's center above the end of the arc
    assert f"t = {left_at:.9g}: contact 'C23' transition (arc 0 - circle 0 -> point 1 - circle 0)" in words
    lift, *place = (float(x) for x in words.splitlines()[-1].replace("[", "").replace("]", "").split())
    np.testing.assert_allclose([lift, *place], [40.0, 0.5, 0.5, 0.0], atol=1e-9)
    exec(compile(fourth, "README.md", "exec"), names)
    numbers = [float(x) for x in re.findall(r"Array\((.*?), dtype", capsys.readouterr().out)]
    bounce = lambda h: 0.1 + 2 * jnp.sqrt(2 * 9.81 * h) - 3 * h - 9.81 / 2  # v s - g s^2 / 2, s = 1 - v / g
    np.testing.assert_allclose(numbers, [bounce(1.0), jax.grad(bounce)(1.0)], atol=1e-7)
    exec(compile(fifth, "README.md", "exec"), names)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[3:]]
    assert {row[0]: float(row[5]) for row in rows} == {"rod": 1.25, "crank": -0.75}
    exec(compile(sixth, "README.md", "exec"), names)
    found = np.array(capsys.readouterr().out.strip(" []\n").split(), float)
    np.testing.assert_allclose(found, [2.0, 5.0], atol=1e-6)


@pytest.mark.slow
def test_demo_prints_its_tables_and_leaves_its_pages(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mbsjax.demo"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    written = [tmp_path / line.strip() for line in done.stdout.splitlines() if line.startswith("  out/")]
    assert [p.suffix for p in written] == [".html", ".html", ".png", ".png", ".png", ".png"]
    assert all(p.stat().st_size > 10_000 for p in written)
    # the follower is thrown off twice, and meets the cam again each time
    events = [line.split()[-1] for line in done.stdout.splitlines() if re.search(r"(released|impact|closed)$", line)]
    assert events[0] == "released" and events[1] == "impact" and events.count("released") == 2
    # the four-bar by Freudenstein's equation, and the cam by the end of its arc
    rows = [line.split() for line in done.stdout.splitlines() if re.match(r"\s+\d+\s+-?\d+\.\d{6}", line)]
    crank, rocker = np.array([[float(x) for x in row[:2]] for row in rows]).T
    r1, r2, r3, r4 = 1.0, 3.0, 2.5, 3.5
    k = r4 / r1, r4 / r3, (r1**2 + r3**2 + r4**2 - r2**2) / (2 * r1 * r3)
    crank = np.deg2rad(crank)
    freudenstein = k[0] * np.cos(rocker) - k[1] * np.cos(crank) + k[2] - np.cos(crank - rocker)
    assert len(rows) == 7 and np.abs(freudenstein).max() < 1e-5
    event = next(line.split() for line in done.stdout.splitlines() if line.endswith("arc -> point"))
    np.testing.assert_allclose([float(x) for x in event[:2]], [2 * np.arctan2(25.0, 15.0), np.hypot(15, 25)], atol=1e-6)
