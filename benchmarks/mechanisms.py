"""Whether any mechanism is computed rightly: random structures against a model in absolute coordinates.

Trees of joints, in the plane and in space, closed by rods and further joints, with springs, dampers and loads
(`tests/drawn_mechanisms.py`), beside a referee in NumPy and SciPy that shares no code (`tests/absolute.py`). Each of
them gets one family of analyses, with several draws of its numbers: a motion with its energies, what a joint transmits,
and the same from a file that was written and read; a position of rest with none to all of its freedoms held, what holds
it, and small motions about it; or the forces of a driven motion.

`python -m benchmarks.mechanisms [--check] [--count N] [--first N] [--numbers N] [--workers N] [--out FILE]`: prints a
table and, on the last line, the headline figure; with `--check` it exits with 1 if any structure is wrong. A line of
JSON for each structure goes to FILE as soon as it is done. `--first SEED --count 1` replays one.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np

from ._workers import forget, prepare


FAMILIES = ("motion", "rest", "driven")


def refereed(seed: int, draws: int) -> dict[str, Any]:
    """The largest errors of a structure's analyses, over several draws of its numbers."""
    begin = time.perf_counter()
    from tests.drawn_mechanisms import drawn_structure

    structure, family = drawn_structure(seed), FAMILIES[seed % len(FAMILIES)]
    size = f"{'planar' if structure.planar else 'spatial'}, {structure.bodies} bodies, {structure.freedom} free"
    line: dict[str, Any] = {"seed": seed, "family": family, "structure": size, "errors": {}, "raised": None}
    try:
        for errors in _analyzed(structure, family, seed, draws):
            for name, error in errors.items():
                line["errors"][name] = max(error, line["errors"].get(name, 0.0))
    except Exception:
        line["raised"] = traceback.format_exc(limit=-3)
    forget(20000)
    return line | {"wrong": _wrong(line), "seconds": round(time.perf_counter() - begin, 2)}


def _analyzed(structure: Any, family: str, seed: int, draws: int) -> Any:
    from tests import refereed as referee
    from tests.drawn_mechanisms import drawn_numbers

    rng = np.random.default_rng([seed, 8])
    joint = str(rng.choice(structure.joint_names)) if rng.random() < 0.5 else None
    share, small_motions = float(rng.choice([0.0, 0.0, 0.5, 1.0, 1.0])), joint is None
    drive, names = bool(rng.random() < 0.5), []
    for k in range(draws):
        case = referee.case(structure, drawn_numbers(structure, seed + 1_000_000 * k))
        if family == "motion":
            yield referee.motion_errors(case, seed, joint, again=k == 0)
            continue
        if k == 0:
            names = referee.held_names(case, seed, 1.0 if family == "driven" else share)
        elif not referee.can_be_held(case, names):
            continue
        if family == "rest":
            values = referee.held_values(case, names, seed)
            yield referee.rest_errors(case, names, values, drive, joint, small_motions)
        elif len(names) == structure.freedom:
            yield referee.driven_errors(case, names, referee.swings(case, names, seed), joint)


def _wrong(line: dict[str, Any]) -> list[str]:
    from tests.refereed import ALLOWED

    return [*(name for name, x in line["errors"].items() if not x <= ALLOWED[name]), *["raised"] * bool(line["raised"])]


def table(lines: list[dict[str, Any]]) -> None:
    """Of each figure: in how many structures it was compared, its median and its largest error, and who is wrong."""
    from tests.refereed import ALLOWED

    print(f"  {'':30}{'structures':>10}{'median':>10}{'worst':>10}{'allowed':>10}{'wrong':>7}  seeds")
    for name, allowed in ALLOWED.items():
        rows = [(line["errors"][name], line["seed"]) for line in lines if name in line["errors"]]
        if not rows:
            continue
        errors, wrong = [x for x, _ in rows], [seed for x, seed in rows if not x <= allowed]
        figures = f"{np.median(errors):10.1e}{max(errors):10.1e}{allowed:10.0e}{len(wrong):7}"
        print(f"  {name:30}{len(rows):10}{figures}  {' '.join(map(str, wrong[:12]))}")
    for line in [line for line in lines if line["raised"]][:5]:
        print(f"  seed {line['seed']} raised:\n{line['raised']}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a structure is wrong")
    parser.add_argument("--count", type=int, default=48, help="structures")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first one")
    parser.add_argument("--numbers", type=int, default=3, help="draws of the numbers of each structure")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--out", type=pathlib.Path, help="a file for a line of JSON for each structure")
    args = parser.parse_args()
    prepare()
    begin, lines = time.perf_counter(), []
    out = args.out.open("a", encoding="utf-8") if args.out else None
    with ProcessPoolExecutor(args.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        jobs = [pool.submit(refereed, seed, args.numbers) for seed in range(args.first, args.first + args.count)]
        try:
            for job in as_completed(jobs):
                lines.append(job.result())
                if out:
                    print(json.dumps(lines[-1]), file=out, flush=True)
        except BrokenProcessPool as error:
            print(f"  a process died: {error}")
    taken, work = time.perf_counter() - begin, sum(line["seconds"] for line in lines)
    table(lines)
    wrong = sorted(line["seed"] for line in lines if line["wrong"])
    missing = args.count - len(lines)
    print(f"  {taken:.0f} s with {args.workers} processes, {work / max(len(lines), 1):.1f} s a structure")
    told = f"mechanisms: {len(wrong)} of {len(lines)} structures wrong (aim 0)"
    print(told + (f", {missing} not looked at" if missing else "") + (f": {wrong[:20]}" if wrong else ""))
    return int(args.check and (bool(wrong) or missing > 0))


if __name__ == "__main__":
    sys.exit(main())
