"""The same four problems in mbsjax, MuJoCo, Exudyn and pylinkage, as one would write them: `benchmarks/same_problems`.

Each script prints a result and its derivative with respect to one number of the model. Both are compared with closed
forms:

- four_bar: the angle of the rocker, by the law of cosines;
- bounce: a height after one bounce without loss;
- cam: when the flat follower of an eccentric comes back, thrown off at cos a = -(k e + F)/(m e w^2 - k e) and flying on
  its spring (a root of one equation);
- stick_slip: the period of a box on a belt, 2 D/V + (2 pi - 2 atan(D w/V))/w.

Told are the lines of a script (without docstring, comments, imports and blank lines), the seconds from starting Python
to its last line, those of one more evaluation in the same process, and the errors. The derivatives are `jax.jvp` in
mbsjax, and central differences in the others.

`python -m benchmarks.comparison [--check] [--only NAME]`: prints a table a problem; with `--check` it exits with 1 if
an error of mbsjax is larger than 1e-7 of its value.
"""

import argparse
import ast
import math
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from scipy.optimize import brentq


FOLDER = pathlib.Path(__file__).parent / "same_problems"
AIM = 1e-7
_RUN = """
import runpy, sys, time
script, name, x = sys.argv[1:4]
del sys.argv[1:4]
f = runpy.run_path(script)[name]
float(f(float(x)))
begin = time.perf_counter()
float(f(float(x)))
print(time.perf_counter() - begin)
"""


def rocker(coupler: float) -> float:
    """Angle of the rocker: crank 1 at 100 degrees, rocker 2.5, pivots 3.5 apart."""
    x, y = math.cos(math.radians(100)) - 3.5, math.sin(math.radians(100))
    far = math.hypot(x, y)
    return math.atan2(y, x) - math.acos((far**2 + 2.5**2 - coupler**2) / (2 * far * 2.5))


def after_a_second(height: float, g: float = 9.81) -> float:
    fall = math.sqrt(2 * height / g)
    t = 1.0 - fall
    return g * fall * t - g * t**2 / 2


def comes_back(k: float, m: float = 0.2, e: float = 0.005, w: float = 200.0, force: float = 10.0) -> float:
    off = math.acos(-(k * e + force) / (m * e * w**2 - k * e)) / w
    lift = lambda t: e * (1 - math.cos(w * t))
    speed, own = e * w * math.sin(w * off), math.sqrt(k / m)
    flight = lambda s: (lift(off) + force / k) * math.cos(own * s) + speed / own * math.sin(own * s) - force / k
    root: Any = brentq(lambda t: flight(t - off) - lift(t), 0.02, 0.03, xtol=1e-15)
    return float(root)


def period(speed: float) -> float:
    d, w = 0.15 * 9.81 / 100, 10.0
    return 2 * d / speed + (2 * math.pi - 2 * math.atan(d * w / speed)) / w


def slope(f: Callable[[float], float], x: float) -> float:
    """By a central difference of the fourth order."""
    h = 1e-3 * x
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


class Problem(NamedTuple):
    """A closed form, where it is taken, and the steps of those who take steps."""

    truth: Callable[[float], float]
    x: float
    steps: tuple[str, ...] = ()
    packages: tuple[str, ...] = ("mbsjax", "mujoco", "exudyn")


PROBLEMS = {
    "four_bar": Problem(rocker, 3.0, packages=("mbsjax", "pylinkage", "mujoco", "exudyn")),
    "bounce": Problem(after_a_second, 1.0, ("1e-3", "1e-4", "1e-5")),
    "cam": Problem(comes_back, 2000.0, ("1e-4", "1e-5", "1e-6")),
    "stick_slip": Problem(period, 0.1, ("1e-3", "1e-4", "1e-5")),
}


def lines(script: pathlib.Path) -> int:
    """Lines of code: without docstring, comments, imports and blank lines."""
    text = script.read_text()
    skipped = set()
    for node in ast.parse(text).body:
        told = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if told or isinstance(node, ast.Import | ast.ImportFrom):
            skipped |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    rows = [(i, row.strip()) for i, row in enumerate(text.splitlines(), 1)]
    return sum(1 for i, row in rows if row and not row.startswith("#") and i not in skipped)


def measure(name: str, package: str, step: str | None) -> tuple[float, float, float, float]:
    """Result, derivative, seconds to the first result, seconds of another one; in a process of its own, which keeps no
    compiled programs."""
    problem, script = PROBLEMS[name], FOLDER / f"{name}_{package}.py"
    plain = {k: v for k, v in os.environ.items() if not k.startswith("JAX_COMPILATION_CACHE")}
    given = [str(script), problem.truth.__name__, str(problem.x), *([step] if step else [])]
    begin = time.perf_counter()
    value, derivative = (float(x) for x in _last_line([str(script), *given[3:]], plain).split())
    first = time.perf_counter() - begin
    return value, derivative, first, float(_last_line(["-c", _RUN, *given], plain))


def _last_line(arguments: list[str], env: dict[str, str]) -> str:
    """What a script prints at its end; solvers may tell of themselves before."""
    told = subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True)
    if told.returncode:
        raise RuntimeError(told.stderr.strip().splitlines()[-1])
    return told.stdout.strip().splitlines()[-1]


def compare(name: str) -> float:
    """Prints the table of one problem; the larger relative error of mbsjax."""
    problem = PROBLEMS[name]
    truth, due = problem.truth(problem.x), slope(problem.truth, problem.x)
    print(f"\n{name}: {truth:.12g}, derivative {due:.12g}\n")
    print("| | lines | first result s | another s | error | error of the derivative |\n|---|---|---|---|---|---|")
    ours = math.inf
    for package in problem.packages:
        size = lines(FOLDER / f"{name}_{package}.py")
        for step in (None,) if package in ("mbsjax", "pylinkage") or not problem.steps else problem.steps:
            which = package + (f", step {step}" if step else "")
            try:
                value, derivative, first, again = measure(name, package, step)
            except RuntimeError as error:
                print(f"| {which} | {size} | {error} | | | |", flush=True)
                continue
            errors = abs(value / truth - 1), abs(derivative / due - 1)
            print(f"| {which} | {size} | {first:.1f} | {again:.2g} | {errors[0]:.0e} | {errors[1]:.0e} |", flush=True)
            if package == "mbsjax":
                ours = max(errors)
    return ours


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", choices=list(PROBLEMS))
    given = parser.parse_args()
    errors = {name: compare(name) for name in ([given.only] if given.only else PROBLEMS)}
    worst = max(errors.values())
    print(f"\ncomparison: largest relative error of mbsjax {worst:.1e} (aim {AIM:.0e})")
    return int(given.check and not worst <= AIM)


if __name__ == "__main__":
    sys.exit(main())
