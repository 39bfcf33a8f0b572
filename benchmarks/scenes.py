"""Whether simulations see every impact: random scenes against a reference with closed forms.

Discs and rods fly among lines, corners and arcs, in rooms, round obstacles and past the ends of open chains. The
reference (`tests/scenes.py`, in NumPy) finds all impacts from quadratics and quartics, up to where rounding decides;
the simulation must find the same ones, at the same times to 1e-9, and no others. On floors with friction
(`tests/sliding.py`) spinning discs bounce, slide and roll: sticking and sliding back are such events too.

`python -m benchmarks.scenes [--check] [--count N] [--family NAME] [--first N] [--batch N]`: prints a table and, on the
last line, the headline figure; with `--check` it exits with 1 if any scene is wrong. The wrong ones are named by their
numbers: `--family NAME --first NUMBER --count 1` replays one.
"""

import argparse
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import jax
import numpy as np

from tests.scenes import FAMILIES, Answer, Scenes, scenes
from tests.sliding import solved
from tests.thrown import judged, simulated


SHARES = {"rod in a room": 0.3, "rod outside": 0.3}  # relative to the other families: the reference takes longer


def _solved(family: str, first: int, count: int) -> tuple[Scenes, Answer]:
    drawn = scenes(family, first, count)
    return drawn, solved(FAMILIES[family][0], drawn)


def _told(number: int, k: int, answer: Answer, found) -> str:
    row = lambda t, e: " ".join(f"{x:.8f}:{y}" for x, y in zip(t, e) if np.isfinite(x))
    return f"    {number}: {row(answer.t[k], answer.element[k])} | {row(found.t[k], found.element[k])}"


def referee(pool: ProcessPoolExecutor, family: str, first: int, count: int, batch: int) -> tuple[int, int, float]:
    """Runs scenes of a family; how many are wrong, how many events were compared, and the largest error of a time."""
    begin = time.perf_counter()
    starts = range(first, first + count, batch)
    work = [pool.submit(_solved, family, k, batch) for k in starts]
    wrong, events, worst, sums = [], 0, 0.0, np.zeros(5, int)
    for start, job in zip(starts, work):
        drawn, answer = job.result()
        found = simulated(FAMILIES[family][0], drawn, answer)
        verdict, mine = judged(drawn, answer, found), np.arange(start, start + batch) < first + count
        sums += [int(np.sum(x & mine)) for x in verdict[:5]]
        wrong += [_told(start + k, k, answer, found) for k in np.flatnonzero(verdict.wrong & mine).tolist()]
        events, worst = events + int(answer.count[mine].sum()), max(worst, float(verdict.error[mine].max()))
    taken = time.perf_counter() - begin
    print(f"  {family:20}{count:8}{events:9}" + "".join(f"{x:10}" for x in sums) + f"{worst:10.1e}{taken:8.0f}")
    if wrong:
        print("    number: times and elements of the reference | of the simulation")
        print("\n".join(wrong[:5]), flush=True)
    return len(wrong), events, worst


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a scene is wrong")
    parser.add_argument("--count", type=int, default=4096, help="scenes in all")
    parser.add_argument("--family", choices=list(FAMILIES), help="only this one")
    parser.add_argument("--first", type=int, default=0, help="the number of the first scene of each family")
    parser.add_argument("--batch", type=int, default=2048, help="scenes in one call")
    args = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    families = [args.family] if args.family else list(FAMILIES)
    shares = np.array([SHARES.get(x, 1.0) for x in families])
    counts = np.ceil(args.count * shares / shares.sum()).astype(int).tolist()
    batch = min(args.batch, max(counts))
    print(f"scenes with closed forms, on {jax.devices()[0]}")
    names = ("family", "scenes", "events", "missed", "added", "misdated", "other", "inside", "worst", "s")
    print("  {:20}{:>8}{:>9}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>8}".format(*names))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max(1, (os.cpu_count() or 2) - 1), mp_context=context) as pool:
        results = [referee(pool, x, args.first, n, batch) for x, n in zip(families, counts)]
    wrong, events = (sum(r[k] for r in results) for k in (0, 1))
    worst = max(r[2] for r in results)
    print(f"scenes: {wrong} of {sum(counts)} wrong, {events} events, times to {worst:.1e} (aim 0, 1e-9)")
    return int(args.check and wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
