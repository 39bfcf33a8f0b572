"""Whether simulations of bodies of any shape among walls of any shape keep to what they tell.

Polygons, rounded ones, lenses, moons, stadiums, discs, splines and polynomials, convex and hollow, tumble in rooms of
any of these shapes, in pockets of their own shape with play from a thousandth of their size on, or are thrown at each
other. No closed form tells what happens; `tests/tumbling.py` checks, in NumPy, that each flight is one, that no body is
in a wall on the way, and that each impact is where they touch, along the normal there, as fast as it must be.

`python -m benchmarks.tumbling [--check] [--count N] [--seed S] [--way WAY] [--walls SHAPE] [--body SHAPE]`: simulates N
scenes of each pair of shapes and prints what is wrong in them; with `--check` it exits with 1 if anything is.
"""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context

from tests.tumbling import SHAPES, certified, scenes, simulated

from . import _workers


WAYS = ("room", "pocket", "obstacle")


def refereed(walls: str, body: str, way: str, seed: int, count: int) -> tuple[int, int, str]:
    """How many scenes of a pair of shapes are wrong, how many impacts were looked at, and a line that tells."""
    begin = time.perf_counter()
    drawn = scenes(walls, body, way, seed, count)
    errors = certified(drawn, simulated(drawn, (walls, body), way))
    wrong, over = errors.wrong(), int(errors.over.sum())
    lanes = sorted({lane for row in wrong.values() for lane in row})
    _workers.forget()
    told = f"  {way:10}{walls:14}{body:14}{len(lanes):6}{errors.impacts.sum():9}{over:7}{errors.inside.max():10.1e}"
    told += f"{time.perf_counter() - begin:8.0f}" + "".join(f"\n    {name}: {row}" for name, row in wrong.items())
    return len(lanes), int(errors.impacts.sum()), told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if anything is wrong")
    parser.add_argument("--count", type=int, default=64, help="scenes of each pair")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--walls", choices=list(SHAPES))
    parser.add_argument("--body", choices=list(SHAPES))
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    args = parser.parse_args()
    _workers.prepare()
    pairs = product(*([x] if x else y for x, y in ((args.way, WAYS), (args.walls, SHAPES), (args.body, SHAPES))))
    jobs = [(walls, body, way, args.seed, args.count) for way, walls, body in pairs if way != "pocket" or walls == body]
    print("  {:10}{:14}{:14}{:>6}{:>9}{:>7}{:>10}{:>8}".format("", *"walls body wrong impacts over inside s".split()))
    wrong = impacts = 0
    with ProcessPoolExecutor(args.workers, mp_context=get_context("spawn")) as pool:
        for work in [pool.submit(refereed, *job) for job in jobs]:
            *numbers, told = work.result()
            print(told, flush=True)
            wrong, impacts = wrong + numbers[0], impacts + numbers[1]
    all_of_them = len(jobs) * args.count
    print(f"tumbling: {wrong} of {all_of_them} wrong, {impacts} impacts (aim 0)")
    return int(args.check and wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
