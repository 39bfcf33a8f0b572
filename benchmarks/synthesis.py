"""Path generation of published problems from random starts; and case 3 beside SciPy's optimizers.

python -m benchmarks.synthesis --case 3
python -m benchmarks.synthesis --compare
"""

import argparse
import json
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

import mbsjax as mbs


CASES = {
    1: "syn_path_case1_line6",
    2: "syn_path_case2_timed5",
    3: "syn_path_case3_18pt_0.05",
    4: "syn_path_case4_semicircle",
    6: "syn_path_case6_pairs10",
}
STARTS = {1: 512, 2: 256, 3: 512, 4: 1024, 6: 1024}
TURN = 2 * np.pi


def case(number: int) -> dict:
    folder = pathlib.Path(__file__).parent.parent / "tests" / "cases"
    return json.loads((folder / f"{CASES[number]}.json").read_text())


def coupler_point(p: dict) -> jax.Array:
    """Points of a four-bar's coupler at crank angles `theta2`, in the convention of the cases; NaN where it does not
    close."""
    r1, r2, r3, r4 = p["r"]
    A = r2 * jnp.exp(1j * p["theta2"])
    d = r1 - A
    L = jnp.abs(d)
    cosine = (r3**2 + L**2 - r4**2) / (2 * r3 * L)
    closes = jnp.abs(cosine) < 1
    theta3 = jnp.angle(d) + p["branch"] * jnp.arccos(jnp.where(closes, cosine, 0.0))
    P = A + (p["rc"][0] + 1j * p["rc"][1]) * jnp.exp(1j * theta3)
    P = jnp.where(closes, P * jnp.exp(1j * p["theta0"]) + p["at"][0] + 1j * p["at"][1], jnp.nan)
    return jnp.stack([P.real, P.imag], 1)


def can_turn(p: dict) -> jax.Array:
    ground, crank, coupler, rocker = p["r"]
    return mbs.grashof(crank, coupler, rocker, ground)


def task(number: int, branch: float = 1.0) -> tuple[mbs.Task, dict]:
    """A published problem, and where to draw its starts from."""
    data = case(number)
    start = {"r": np.array([4.0, 1.0, 3.0, 4.0]), "rc": np.zeros(2), "theta0": 0.0, "at": np.zeros(2), "branch": branch}
    free = {"theta0": (-20.0, 20.0)}
    draw = {"theta0": (0.0, TURN)}
    ties: dict = {}
    order = {}
    turns = {"crank turns": mbs.Within(lambda out: can_turn(out[0]), lower=0.0)}
    if number in (1, 6):  # the crank angles are free, and increase
        n = 6 if number == 1 else 10
        start |= {"first": 0.0, "steps": np.full(n - 1, 0.5), "theta2": np.zeros(n)}
        free |= {"first": (-20.0, 20.0), "steps": (1e-3, 3.0)}
        draw |= {"first": (0.0, TURN), "steps": (0.05, 2 * TURN / n)}
        ties["theta2"] = lambda p: p["first"] + jnp.concatenate([jnp.zeros(1), jnp.cumsum(p["steps"])])
        order = {"one turn": mbs.Within(lambda out: jnp.sum(out[0]["steps"]), upper=TURN)}
    if number == 1:
        start["r"] = np.array([40.0, 8.0, 30.0, 40.0])
        free |= {"r": (5.0, 60.0), "rc": (-60.0, 60.0), "at": (-60.0, 60.0)}
    elif number == 2:
        start["theta2"] = np.array(data["theta2"])
        free = {"r": (1e-6, 50.0), "rc": (-50.0, 50.0)}
        draw = {"r": (0.1, 10.0), "rc": (-5.0, 5.0)}
    elif number == 3:
        start |= {"first": 0.0, "theta2": np.zeros(18)}
        ties["theta2"] = lambda p: p["first"] + np.deg2rad(20) * np.arange(18)
        free |= {"r": (1e-6, 50.0), "rc": (-50.0, 50.0), "at": (-50.0, 50.0), "first": (-20.0, 20.0)}
        draw |= {"r": (0.1, 3.0), "rc": (-1.0, 1.0), "at": (-1.0, 1.0), "first": (0.0, TURN)}
    elif number == 4:
        start |= {"r": np.array([40.0, 8.0, 30.0, 40.0]), "theta2": np.array(data["theta2"])}
        free |= {"r": (5.0, 50.0), "rc": (-50.0, 50.0), "at": (-50.0, 50.0)}
    else:
        free |= {"r": (1e-6, 60.0), "rc": (-60.0, 60.0), "at": (-60.0, 60.0)}
        draw |= {"r": (0.1, 6.0), "rc": (-3.0, 3.0), "at": (-4.0, 4.0)}
    if number == 6:
        target = np.stack([data["targets_a"], data["targets_b"]])
        goal = mbs.Match(lambda out: jnp.stack([out[1], out[1]]), target)
    else:
        goal = mbs.Match(lambda out: out[1], data["targets"])
    angles = [name for name in ("theta0", "first") if name in free]
    made = mbs.Task(lambda p: (p, coupler_point(p)), start, free, {"path": goal}, conditions=turns | order, ties=ties,
                    angles=angles)  # fmt: skip
    return made, draw


def solve(number: int, starts: int | None = None, seed: int = 0, progress: bool = False) -> mbs.Synthesis:
    made, draw = task(number)
    return mbs.synthesize(made, starts=starts or STARTS[number], draw=draw, seed=seed, progress=progress)


def compare(seconds: float) -> dict[str, list[tuple[float, float]]]:
    """Case 3 without conditions: the best objective against time, of three ways that look at the same function."""
    made, draw = task(3)
    low, high = np.array(made.lower), np.array(made.upper)
    for name, pair in draw.items():
        at = [i for i, n in enumerate(made.names) if n.split("[")[0] == name]
        low[at], high[at] = pair
    target = np.ravel(case(3)["targets"])
    free = mbs.Task(lambda p: coupler_point(p), made.place(made.choice.values), {
        name: tuple(np.array([made.lower, made.upper])[:, [n.split("[")[0] == name for n in made.names]])
        for name in dict.fromkeys(n.split("[")[0] for n in made.names)},
        {"path": mbs.Match(lambda P: P, case(3)["targets"])}, ties={"theta2": made.ties[0]},
        angles=["theta0", "first"])  # fmt: skip
    points = jax.jit(lambda x: free(x).y)
    slopes = jax.jit(jax.jacfwd(lambda x: free(x).y))
    jax.block_until_ready((points(low), slopes(low)))
    off = lambda x: np.nan_to_num(np.asarray(points(x)) - target, nan=10.0)
    found: dict[str, list[tuple[float, float]]] = {}

    def watch(name: str) -> Callable[[float], bool]:
        rows, began = found.setdefault(name, []), time.perf_counter()

        def better(value: float) -> bool:
            if not rows or value < rows[-1][1]:
                rows.append((time.perf_counter() - began, float(value)))
            return time.perf_counter() - began > seconds

        return better

    seen = watch("differential_evolution")
    bounds = list(zip(low, high))
    cost = lambda x: np.sum(off(x) ** 2)
    scipy.optimize.differential_evolution(
        cost, bounds, rng=0, maxiter=10**6, tol=0, polish=False, callback=lambda x, convergence: seen(cost(x))
    )
    exact: Any = lambda x: np.nan_to_num(np.asarray(slopes(x)))
    seen, random, over = watch("least_squares"), np.random.default_rng(0), False
    while not over:
        x = random.uniform(low, high)
        end = scipy.optimize.least_squares(off, x, exact, max_nfev=300)
        over = seen(2 * end.cost)
    began = time.perf_counter()
    history = mbs.synthesize(free, starts=4096, draw=draw).history
    found["mbsjax, compilation included"] = [(t, y) for t, _, y in history if t < seconds]
    print(f"mbsjax: 4096 starts in {time.perf_counter() - began:.1f} s")
    return found


def told(found: dict[str, list[tuple[float, float]]], seconds: float) -> None:
    best = case(3)["best"]["sse"]
    marks = [seconds * part for part in (0.1, 0.25, 0.5, 1.0)]
    print(
        f"{'best objective after':32}"
        + "".join(f"{t:12.1f} s" for t in marks)
        + "   within 1e-6 of the best known after"
    )
    for name, rows in found.items():
        at = [min([y for s, y in rows if s <= t], default=np.inf) for t in marks]
        reached = next((s for s, y in rows if y <= best * (1 + 1e-6)), None)
        print(f"{name:32}" + "".join(f"{y:14.9f}" for y in at) + (f"   {reached:.1f} s" if reached else "   never"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", type=int, choices=CASES, help="solve one published problem")
    parser.add_argument("--starts", type=int, help="how many starts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compare", action="store_true", help="case 3 beside SciPy")
    parser.add_argument("--seconds", type=float, default=40.0, help="for each way")
    parser.add_argument("--check", action="store_true", help="end with an error if a problem is not solved")
    chosen = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    failed = []
    if chosen.compare or chosen.check:
        told(compare(chosen.seconds), chosen.seconds)
    for number in [chosen.case] if chosen.case else [] if chosen.compare else CASES:
        began = time.perf_counter()
        found = solve(number, chosen.starts, chosen.seed, progress=sys.stderr.isatty())
        print(f"case {number}: {time.perf_counter() - began:.1f} s, {sum(found.ended.values())} starts")
        print(found)
        known = case(number)["best"]["sse"]
        print(f"  best known {known:.10g}; over it by {found.best.objective - known:.2e}\n")
        if not found.best.objective <= max(known * (1 + 1e-6), 1e-20):
            failed.append(number)
    if chosen.check and failed:
        raise SystemExit(f"not solved: {failed}")


if __name__ == "__main__":
    main()
