"""How large programs are, how long a first result takes, and how run times grow with a mechanism.

(a) programs: equations, and seconds to trace, lower, compile and run, beside the same models written by hand;
(b) first results: each in a process of its own, without a cache, from the end of its imports;
(c) second starts: the same in a process that finds the programs which another one has kept, and slopes;
(d) growth: a ladder of four-bars from 4 to 64, and a chain of forty parallelograms that swings.

`python -m benchmarks.compile [--check] [--only NAME]`: prints tables and, on the last line, how many aims are met; with
`--check` it exits with 1 if one is missed. NAME is a table (programs, first, second, growth), or a case: `squeezer`
for its first result, `slopes_of_squeezer` for its second start.
"""

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import mbsjax as mbs
from tests.mechanisms import air_compressor, heavy_ladder, ladder, turn

from ._programs import equations, example, final_lift, nominal, pendulum, swing, swing_by_hand
from ._timing import best
from .dynamics import by_hand, follower, variants


class Aim(NamedTuple):
    """A figure that is to become as small as `aim`, and what it was at first."""

    name: str
    before: float
    aim: float


class Line(NamedTuple):
    """An aim, and what is measured now."""

    aim: Aim
    now: float

    @property
    def met(self) -> bool:
        return self.now <= self.aim.aim

    def __str__(self) -> str:
        numbers = (f"{x:10,.0f}" if x >= 100 else f"{x:10.3g}" for x in (self.aim.before, self.now, self.aim.aim))
        return f"  {self.aim.name:52}{''.join(numbers)}  {'met' if self.met else 'missed'}"


def table(title: str) -> None:
    print(f"{title}\n  {'':52}{'before':>10}{'now':>10}{'aim':>10}", flush=True)


# (a) ------------------------------------------------------------------------------------------------------------------


class Program(NamedTuple):
    """A compiled program: how large it is, and what each stage takes."""

    equations: int
    trace: float
    lower: float
    compile: float
    run: float
    result: Any

    @property
    def prepare(self) -> float:
        return self.trace + self.lower + self.compile


def program(f: Callable, given: Any, repeat: int = 10) -> Program:
    jax.clear_caches()
    begun = time.perf_counter()
    traced = jax.jit(f).trace(given)
    traced_at = time.perf_counter()
    lowered = traced.lower()
    lowered_at = time.perf_counter()
    run = lowered.compile()
    done = time.perf_counter()
    return Program(
        equations=equations(traced.jaxpr.jaxpr),
        trace=traced_at - begun,
        lower=lowered_at - traced_at,
        compile=done - lowered_at,
        run=best(lambda: run(given), repeat),
        result=run(given),
    )


LANES = 4096
WRITTEN = {
    "flat follower": (follower, nominal, 20),
    "flat follower by hand": (by_hand, nominal, 50),
    "gradient of the flat follower": (jax.grad(final_lift), nominal, 5),
    "flat follower, 4096 variants": (jax.vmap(follower), lambda: variants(LANES), 2),
    "flat follower by hand, 4096 variants": (jax.vmap(by_hand), lambda: variants(LANES), 2),
    "four-bar": (swing, lambda: 1.0, 10),
    "four-bar by hand": (swing_by_hand, lambda: 1.0, 50),
}


def programs() -> list[Line]:
    print("(a) programs")
    print(f"  {'':40}{'equations':>10}{'trace s':>10}{'lower s':>10}{'compile s':>10}{'run s':>10}")
    made = {}
    for name, (f, given, repeat) in WRITTEN.items():
        found = made[name] = program(f, given(), repeat)
        seconds = "".join(f"{x:10.2f}" for x in (found.trace, found.lower, found.compile))
        print(f"  {name:40}{found.equations:>10,}{seconds}{found.run:10.4f}", flush=True)
    cam, gradient, bars = (made[x] for x in ("flat follower", "gradient of the flat follower", "four-bar"))
    cam_hand, bars_hand = made["flat follower by hand"], made["four-bar by hand"]
    many, many_hand = (made[f"flat follower{x}, 4096 variants"] for x in ("", " by hand"))
    gap = abs(float(bars.result - bars_hand.result))
    print(f"  the final angles of the four-bars agree to {gap:.1e} rad")
    assert gap < 1e-7
    lines = [
        Line(Aim("flat follower: equations", 13_800, 7_000), cam.equations),
        Line(Aim("its gradient: equations", 37_500, 18_000), gradient.equations),
        Line(Aim("four-bar: equations", 6_300, 3_500), bars.equations),
        Line(Aim("flat follower: trace, lower, compile, seconds", 9.6, 4), cam.prepare),
        Line(Aim("its gradient: trace, lower, compile, seconds", 47.9, 12), gradient.prepare),
        Line(Aim("flat follower: trace to compile, by hand = 1", 41 / 2.0, 6), cam.prepare / cam_hand.prepare),
        Line(Aim("flat follower: run, by hand = 1", 34 / 1.8, 3), cam.run / cam_hand.run),
        Line(Aim("4096 variants of it: run, by hand = 1", 24.2 / 4.3, 3), many.run / many_hand.run),
        Line(Aim("its gradient: run, its value = 1", 9.0, 4), gradient.run / cam.run),
        Line(Aim("four-bar: run, by hand = 1", 52 / 3.1, 4), bars.run / bars_hand.run),
    ]
    table("  what was aimed at")
    print(*lines, sep="\n", flush=True)
    return lines


# (b) ------------------------------------------------------------------------------------------------------------------


def moved(name: str, of: str, **given: float) -> Callable:
    return lambda: example(name).run(of, given).q


def tolerance(coupler: float) -> str:
    """The report of the file with this tolerance of the coupler."""
    text = example("four_bar").text.replace("\ncoupler = 0.02\n", f"\ncoupler = {coupler}\n")
    return str(mbs.tolerance(mbs.loads(text).study(), samples=4096))


def compressor() -> Any:
    return mbs.kinematics(air_compressor(), {"A": turn()}, jnp.linspace(0.0, 1.0, 101)).q


def parallelograms() -> Any:
    mech, begin = heavy_ladder(40)
    return mbs.simulate(mech, begin, 20.0, ts=jnp.linspace(0.0, 20.0, 41), max_steps=8192).q


# what is done in one process, step by step
FIRST: dict[str, list[tuple[Aim, Callable]]] = {
    "pendulum": [(Aim("pendulum: simulate", 2.7, 1.2), lambda: pendulum(0.0))],
    "four_bar_print": [(Aim("four_bar.toml: print", 2.1, 1), lambda: str(example("four_bar").mechanism()))],
    "four_bar": [(Aim("four_bar.toml: kinematics", 2.6, 1.2), moved("four_bar", "kinematics"))],
    "four_bar_tolerance": [
        (Aim("four_bar.toml: tolerance, 4096 samples", 24, 8), lambda: tolerance(0.02)),
        (Aim("  again with other tolerances", 4.9, 0.5), lambda: tolerance(0.01)),
    ],
    "cam_roller": [(Aim("cam_roller.toml: simulate", 11.8, 5), moved("cam_roller", "simulate"))],
    "thesis_cam_43": [(Aim("thesis_cam_43.toml: kinematics", 19.3, 8), moved("thesis_cam_43", "kinematics"))],
    "squeezer": [
        (Aim("squeezer.toml: simulate", 11.6, 5), moved("squeezer", "simulate")),
        (Aim("  again with another torque", 0.37, 0.1), moved("squeezer", "simulate", mom=0.0331)),
    ],
    "compressor_print": [(Aim("air compressor, 8 bodies in space: print", 5.0, 2), lambda: str(air_compressor()))],
    "compressor": [(Aim("air compressor: kinematics", 7.2, 3), compressor)],
    "cam_synthesis": [
        (
            Aim("cam_synthesis.toml: task and one start", 70, 25),
            lambda: mbs.synthesize(example("cam_synthesis").task(), starts=1).best.objective,
        )
    ],
    "valve_train": [(Aim("valve_train.toml: simulate", 38.5, 12), moved("valve_train", "simulate"))],
}


# what is differentiated, by the door whose programs are kept; before: made anew from a warm compilation cache
SLOPES: dict[str, list[tuple[Aim, Callable]]] = {
    "slopes_of_cam_roller": [
        (Aim("cam_roller.toml: value and slopes", 16.9, 1), lambda: slopes("cam_roller", "simulate"))
    ],
    "slopes_of_squeezer": [(Aim("squeezer.toml: value and slopes", 12.6, 1), lambda: slopes("squeezer", "simulate"))],
    "slopes_of_four_bar": [(Aim("four_bar.toml: value and slopes", 3.4, 1), lambda: slopes("four_bar", "kinematics"))],
}


def slopes(name: str, of: str) -> Any:
    """Where an example ends, and how that depends on three of its parameters."""
    model = example(name)
    given = dict(list(model.parameters.items())[:3])
    return mbs.value_and_slopes(lambda p: model.run(of, p, throw=False).q[-1], given)


def laps(name: str) -> list[float]:
    """Seconds that the steps of a case take in this process."""
    took = []
    for _, step in CASES[name]:
        start = time.perf_counter()
        jax.block_until_ready(step())
        took.append(time.perf_counter() - start)
    return took


def alone(code: str, keep: bool = False) -> list[float]:
    """What a new process prints, which finds no compiled programs."""
    env = os.environ | {"JAX_ENABLE_X64": "1", "JAX_ENABLE_COMPILATION_CACHE": str(int(keep))}
    done = subprocess.run([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def case(name: str) -> list[Line]:
    seconds = alone(f"from benchmarks.compile import laps; print(laps({name!r}))")
    lines = [Line(aim, x) for (aim, _), x in zip(CASES[name], seconds, strict=True)]
    print(*lines, sep="\n", flush=True)
    return lines


def imported() -> list[Line]:
    code = "import time, jax.numpy; start = time.perf_counter(); import mbsjax; print([time.perf_counter() - start])"
    line = Line(Aim("import mbsjax, JAX being there", 1.8, 1), min(alone(code)[0] for _ in range(3)))
    print(line, flush=True)
    return [line]


def first() -> list[Line]:
    table("(b) first results, seconds")
    return [*imported(), *(line for name in FIRST for line in case(name))]


# (c) ------------------------------------------------------------------------------------------------------------------


def started_again(name: str) -> list[Line]:
    """A case twice, in two processes; what the first of them keeps, the second finds."""
    with tempfile.TemporaryDirectory() as folder:
        keep = f"import mbsjax; mbsjax.keep_programs({folder!r})"
        code = f"{keep}; from benchmarks.compile import laps; print(laps({name!r}))"
        before, now = (alone(code, keep=True)[0] for _ in range(2))
    line = Line(Aim(CASES[name][0][0].name, before, 1), now)
    print(line, flush=True)
    return [line]


def second() -> list[Line]:
    table("(c) second starts, seconds")
    return [line for name in FIRST | SLOPES for line in started_again(name)]


# (d) ------------------------------------------------------------------------------------------------------------------


LARGE: dict[str, list[tuple[Aim, Callable]]] = {
    "parallelograms": [(Aim("forty parallelograms, twenty seconds", 85, 10), parallelograms)]
}


def turned_ladder(n: int) -> Callable:
    mech, ts = ladder(n), jnp.arange(50.0)
    return lambda speed: mbs.kinematics(mech, {"A0": mbs.constant_speed(speed, 1.0)}, ts, throw=False).q


def growth() -> list[Line]:
    print("(d) ladder of N four-bars, 50 positions")
    print(f"  {'N':>4}{'run s':>10}")
    sizes, seconds = np.array([4, 8, 16, 32, 64]), []
    for n in sizes:
        seconds.append(program(turned_ladder(n), 0.01).run)
        print(f"  {n:4}{seconds[-1]:10.5f}", flush=True)
    large = sizes >= 16
    exponent = np.polyfit(np.log(sizes[large]), np.log(np.array(seconds)[large]), 1)[0]
    table("  what was aimed at")
    line = Line(Aim("exponent of N in the run time, from 16 on", 1.9, 1.3), exponent)
    print(line, flush=True)
    return [line, *case("parallelograms")]


CASES = FIRST | SLOPES | LARGE
TABLES: dict[str, Callable[[], list[Line]]] = {"programs": programs, "first": first, "second": second, "growth": growth}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit with 1 if an aim is missed")
    parser.add_argument("--only", choices=[*TABLES, "import", *CASES], metavar="NAME", help="a table, or a case")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    single: dict[str, Callable[[], list[Line]]] = {"import": imported}
    for name in CASES:
        single[name] = functools.partial(started_again if name in SLOPES else case, name)
    chosen = [(TABLES | single)[args.only]] if args.only else TABLES.values()
    lines = [line for made in chosen for line in made()]
    met = sum(line.met for line in lines)
    print(f"compile: {met} of {len(lines)} aims met")
    return int(args.check and met < len(lines))


if __name__ == "__main__":
    sys.exit(main())
