"""Whether studies know their errors: random problems with closed forms, and allocations that many samples check.

`coverage`: studies with lock-outs, jumps, kinks, flat and far limits, in normal, uniform and triangular dimensions
(`tests/random_studies.py`), whose rejects have closed forms: the stated errors of `reliability` cover them as often as
they should, and no estimate that is trusted is off by more than five of them. `allocation`: tolerances of the least
cost for a yield, of the largest of several bent sums: ten million samples have that yield.

`python -m benchmarks.studies [--check] [--count N] [--allocations N] [--first N] [--workers N]`: prints a table and, on
the last line, the headline figures; with `--check` it exits with 1 if they miss their aims.
"""

import argparse
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np


DRAWN = 10_000_000
KINDS = ("normal", "normal", "uniform", "triangular")


def covered(number: int) -> dict[str, Any]:
    """A random problem: how far the estimate is off, in its errors."""
    import mbsjax as mbs
    from tests.random_studies import random_problem, random_study

    numbers, truth = random_problem(np.random.default_rng([20, number]))
    found = mbs.reliability(random_study(numbers), 4096, seed=number, chunk=2048)
    off = abs(found.reject.probability - truth) / found.reject.error
    return {"number": number, "truth": truth, "off": off, "trusted": found.trusted, "error": found.reject.error / truth}


def allocated(number: int) -> dict[str, Any]:
    """A random allocation: what was asked for, and what samples have."""
    import mbsjax as mbs

    rng = np.random.default_rng([21, number])
    asked = float(rng.choice([0.99, 0.9973, 0.999, 0.9999]))
    slopes, bend = rng.normal(size=(3, 4)), rng.uniform(0, 0.3, 4) * (rng.random() < 0.5)
    apart = np.array([0.0, *rng.uniform(0, 0.3, 2)])  # how far each sum is below the largest, at the mean
    names = [f"x.{k}" for k in range(4)]
    nominal = {"x": [0.0] * 4, "slopes": slopes, "bend": bend, "apart": apart}
    made = {"normal": mbs.Normal, "uniform": mbs.Uniform, "triangular": mbs.Triangular}
    tolerances = {name: made[kind](0.3) for name, kind in zip(names, KINDS)}
    study = mbs.Study(_largest, nominal, tolerances, {"y": _same}, limits={"y": (None, 1.0)})
    costs = {name: mbs.Cost(0.0, float(c)) for name, c in zip(names, 10 ** rng.uniform(-0.5, 0.5, 4))}
    found = mbs.allocate(mbs.first_order(study), costs, good={"y": asked})
    T, inside = [float(found.tolerances[name]) for name in names], 0
    for k in range(DRAWN // 500_000):
        x = _drawn(np.random.default_rng([22, number, k]), T, 500_000)
        inside += np.count_nonzero(np.max(x @ slopes.T - apart, 1) + (x * x) @ bend <= 1.0)
    good = inside / DRAWN
    enough = good >= asked - 3 * np.sqrt(asked * (1 - asked) / DRAWN)
    return {"number": number, "asked": asked, "good": good, "converged": found.converged, "wrong": not enough}


def _largest(p: Any) -> Any:
    import jax.numpy as jnp

    x = jnp.stack(p["x"])
    return jnp.max(p["slopes"] @ x - p["apart"]) + p["bend"] @ (x * x)


def _same(y: Any) -> Any:
    return y


def _drawn(rng: np.random.Generator, T: list[float], n: int) -> np.ndarray:
    """Dimensions as they are made, by NumPy."""
    draw = {
        "normal": lambda t: rng.normal(0.0, t / 3, n),
        "uniform": lambda t: rng.uniform(-t, t, n),
        "triangular": lambda t: rng.triangular(-t, 0.0, t, n),
    }
    return np.stack([draw[kind](t) for kind, t in zip(KINDS, T)], 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if an aim is missed")
    parser.add_argument("--count", type=int, default=200, help="random problems")
    parser.add_argument("--allocations", type=int, default=24, help="random allocations")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    args = parser.parse_args()
    os.environ |= {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "OMP_NUM_THREADS": "1"}
    begin = time.perf_counter()
    with ProcessPoolExecutor(args.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        problems = list(pool.map(covered, range(args.first, args.first + args.count)))
        allocations = list(pool.map(allocated, range(args.first, args.first + args.allocations)))
    off = np.array([line["off"] for line in problems])
    trusted = np.array([line["trusted"] for line in problems], bool)
    missed = [line["number"] for line in problems if line["trusted"] and line["off"] > 5]
    short = [line["number"] for line in allocations if line["converged"] and line["wrong"]]
    met = sum(line["converged"] and not line["wrong"] for line in allocations)
    errors = [line["error"] for line in problems]
    print(
        f"  {len(off)} problems: errors of {np.median(errors):.3f} of the rejects (median), {max(errors):.2f} at most"
    )
    print(
        f"  not trusted: {[line['number'] for line in problems if not line['trusted']]}; off by five errors: {missed}"
    )
    for line in allocations:
        told = "" if line["converged"] else "  not converged"
        print(f"  allocation {line['number']}: asked {line['asked']}, has {line['good']:.6f}{told}")
    within, due = [float(np.mean(off < k)) for k in (1, 2)], (0.6827, 0.9545)
    slack = [3 * np.sqrt(p * (1 - p) / len(off)) for p in due]
    good = all(abs(w - p) < s for w, p, s in zip(within, due, slack)) and not missed and not short
    print(f"  {time.perf_counter() - begin:.0f} s with {args.workers} processes")
    print(
        f"studies: {100 * within[0]:.1f} % within one error, {100 * within[1]:.1f} % within two (due 68.3, 95.4), "
        f"{len(missed)} trusted and wrong, {np.mean(trusted):.3f} trusted; {met} of {len(allocations)} allocations met "
        f"(aim all), {len(short)} said so and are not"
    )
    return int(args.check and not (good and met == len(allocations)))


if __name__ == "__main__":
    sys.exit(main())
