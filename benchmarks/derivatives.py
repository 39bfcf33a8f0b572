"""Whether every number has its derivative: all examples, all analyses, all parameters, and all arrays of the mechanism.

For each example and each analysis that its file asks for, all that the analysis tells (positions, velocities,
accelerations, forces, times of events, measures) is differentiated: called as it is written, in reverse mode, with
default arguments; in forward mode under `jit`; and by differences, along each parameter of the file, and along a random
direction of each array of the mechanism. Each number that is told is compared by itself, in parts of its own change.
What is told can jump (a bounce more or less) or have a scale of its own, so that the best of some steps counts, and it
can have a kink (the least of two equal numbers), where the derivative lies between those of both sides.
An array of an element among others is left out: moved alone, it tears the outline. One that is there twice keeps the
mechanism from closing if it is moved alone: there is nothing to compare, and it is counted as torn.

`python -m benchmarks.derivatives [--check] [--examples A,B] [--quick] [--workers N]`: prints a table and, on the last
line, the headline figure; with `--check` it exits with 1 if a derivative is wrong. With `--quick`, reverse mode is left
out: it takes most of the time.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import resources
from typing import Any, NamedTuple

import numpy as np

from ._workers import forget, prepare


TOLD = ("q", "v", "a", "press", "drive", "kinetic", "potential")  # of an analysis, as far as it has them,
OF_EVENTS = ("t", "q", "v_before", "v_after", "impulse", "friction", "speed", "energy")  # and of its events
STEPS = (1e-5, 1e-4, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)  # of a number, for differences of fourth order,
NEAR = [1, 0, 0, 2, 3, 4, 5]  # and with which of them each is compared
ALLOWED = 1e-5  # between derivatives and differences, in parts of how a number changes,
SMALL = 1e-3  # or in parts of this and its change along the direction that changes it most,
SPREAD = 10.0  # or as often by how much differences of two steps differ
ROUGH = 1e-3  # but no more than that, in parts of the largest change
ROUNDING = 1e-13  # of the largest number of a kind, divided by the step,
LOCATED = 1e-10  # and of one of an event of a driven motion, which is located to 1e-11 of the time covered
STEADY = 0.05  # of how much they differ, derivatives of both sides are the same at two steps, where there is a kink
MODES = 1e-8  # between forward and reverse mode, in parts of the largest


def jobs(names: list[str]) -> list[tuple[str, str]]:
    """Every example, with every analysis of its file."""
    found = []
    for name in names:
        tables = set(_model(name).document)
        analyses = [of for of in ("kinematics", "simulate", "equilibrium") if of in tables]
        analyses += ["inverse"] if "kinematics" in tables and _has_masses(name) else []
        found += [(name, of) for of in analyses]
    return found


def _folder() -> Any:
    return resources.files("mbsjax.examples")


def _model(name: str) -> Any:
    import mbsjax as mbs

    return mbs.loads((_folder() / f"{name}.toml").read_text(encoding="utf-8"))


def _has_masses(name: str) -> bool:
    return any(isinstance(body, dict) and "mass" in body for body in _model(name).document["bodies"].values())


def outcome(name: str, of: str) -> tuple[Any, Any, list[tuple[str, np.ndarray]]]:
    """What an analysis tells, as some vectors, and what hangs on events of a driven motion, as others, of a vector of
    numbers: the parameters of the file, and what is added to the arrays of its mechanism; these; and a direction for
    each."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    from mbsjax import EVENTS
    from mbsjax._files import analyses

    model, rng, made = _model(name), np.random.default_rng(0), analyses.made
    mech = model.mechanism()
    arrays, back = ravel_pytree(eqx.filter(mech, eqx.is_inexact_array))
    nominal = np.array([float(x) for x in model.nominal.values()])
    x = jnp.concatenate([jnp.asarray(nominal), jnp.zeros(len(arrays))])

    def told(x: Any) -> tuple[list[Any], list[Any]]:
        analyses.made = lambda *given: eqx.apply_updates(made(*given), back(x[len(nominal) :]))
        try:
            run = model.run(of, dict(zip(model.nominal, x)), throw=False)
        finally:
            analyses.made = made
        parts = [getattr(run, part, None) for part in TOLD]
        events = getattr(run, "events", None)
        late: list[Any] = [getattr(events, part, None) for part in OF_EVENTS]
        if of == "kinematics" and events is not None:  # speeds have no bound where a contact becomes impossible
            deleted = (events.kind == EVENTS.index("deleted"))[:, None]
            for part in ("q", "v_before"):
                late[OF_EVENTS.index(part)] = jnp.where(deleted, jnp.nan, getattr(events, part))
        late += list(model.measured(run).values()) if of == model.analysis else []
        groups = (parts + late, []) if of == "simulate" else (parts, late)
        early, late = ([jnp.ravel(part) for part in group if isinstance(part, jax.Array)] for group in groups)
        return early, late

    # each number moves in parts of itself; only what is zero borrows a size from the others
    sizes = np.where(nominal != 0, np.abs(nominal), 1e-2 * np.abs(nominal).max(initial=0.0))
    directions = [(key, size * np.eye(len(x))[k]) for k, (key, size) in enumerate(zip(model.nominal, sizes))]
    where = len(nominal)
    for path, leaf in jax.tree_util.tree_leaves_with_path(eqx.filter(mech, eqx.is_inexact_array)):
        along = np.zeros(len(x))
        size = np.maximum(np.abs(leaf), 1e-2 * (np.abs(leaf).max(initial=0.0) or 1e-2))
        along[where : where + leaf.size] = (size * rng.normal(size=leaf.shape)).ravel()
        where += leaf.size
        if not _among_others(mech, path):
            directions.append((jax.tree_util.keystr(path), along))
    return told, x, directions


def _among_others(mech: Any, path: tuple) -> bool:
    """Whether the number of a mechanism that stands at a path is that of an element among others."""
    import mbsjax as mbs

    for key in path:
        name = getattr(key, "name", None)
        if name is not None:
            mech = getattr(mech, name)
        else:
            mech = mech[key.key if hasattr(key, "key") else key.idx]
        if isinstance(mech, mbs.Profile):
            return len(mech.elements) > 1
    return False


class Told(NamedTuple):
    """All numbers that an analysis tells, what rounding may leave of each, and the largest derivative of each."""

    y: np.ndarray
    noise: np.ndarray
    most: np.ndarray


class Differences(NamedTuple):
    """How a derivative compares with differences: the largest error in parts of what is allowed, which numbers have one
    of one side only, and whether there was nothing to compare."""

    error: float
    kinks: np.ndarray
    torn: bool


def differences(f: Callable, x: Any, along: np.ndarray, told: Told, slope: np.ndarray) -> Differences:
    """Compares the derivatives along a direction of all that is told."""
    value = lambda h: np.asarray(f(x + h * along))
    central = lambda h: (value(-2 * h) - 8 * value(-h) + 8 * value(h) - value(2 * h)) / (12 * h)
    ahead = tuple(zip((48, -36, 16, -3), (1, 2, 3, 4)))
    one = lambda h: (sum(w * value(k * h) for w, k in ahead) - 25 * told.y) / (12 * h)
    noise = told.noise / np.array(STEPS)[:, None]

    def off(found: np.ndarray, between: np.ndarray) -> np.ndarray:
        """How far the derivatives are from the interval of these, at the best step, in parts of what is allowed."""
        spread = np.nan_to_num(np.maximum(*(np.abs(x - x[NEAR]) for x in (found, between))), nan=np.inf)
        rough = np.minimum(SPREAD * spread, ROUGH * told.most) + noise
        allowed = np.maximum(ALLOWED * np.maximum(np.abs(slope), SMALL * told.most), rough) + 1e-300
        away = np.maximum(np.minimum(found, between) - slope, slope - np.maximum(found, between))
        return np.min(np.nan_to_num(np.maximum(away, 0.0), nan=np.inf) / allowed, 0)

    both = np.stack([central(h) for h in STEPS])
    if not np.isfinite(both).all(1).any():
        return Differences(0.0, np.zeros(len(told.y), bool), True)
    error = off(both, both)
    kinks = error > 1
    if not kinks.any():
        return Differences(float(error.max(initial=0.0)), kinks, False)
    right, left = (np.stack([one(sign * h) for h in STEPS]) for sign in (1, -1))
    steady = [np.abs(x - x[NEAR]) < STEADY * np.abs(right - left) for x in (right, left)]
    other = np.where(steady[0] & steady[1], left, right)
    kinked = [off(right, right), off(left, left), off(right, other)]
    return Differences(float(np.min([error, *kinked], 0).max(initial=0.0)), kinks, False)


def compared(name: str, of: str, quick: bool) -> dict[str, Any]:
    """One of the jobs: how far forward mode and differences are off, and the names of what is wrong."""
    begin, line = time.perf_counter(), {"job": (name, of), "modes": np.nan, "worst": np.nan, "wrong": []}
    line |= {"count": 0, "kinks": 0, "torn": 0}
    try:
        _compare(line, *outcome(name, of), quick)
    except Exception as error:
        line["wrong"] = [f"raised {type(error).__name__}: {error}"]
    forget()
    return line | {"seconds": time.perf_counter() - begin}


def _compare(
    line: dict[str, Any], parts: Callable, x: Any, directions: list[tuple[str, np.ndarray]], quick: bool
) -> None:
    import jax
    import jax.numpy as jnp

    pushed = jax.jit(lambda x, v: jax.jvp(parts, (x,), (v,)))
    groups, _ = pushed(x, jnp.zeros_like(x))
    largest = [[float(np.max(np.abs(y), where=np.isfinite(y), initial=0.0)) for y in group] for group in groups]
    noise = [
        np.full(len(y), part * size)
        for part, *group in zip((ROUNDING, LOCATED), largest, groups)
        for size, y in zip(*group)
    ]
    every = lambda groups: np.concatenate([y for group in groups for y in group])
    keep = np.flatnonzero(np.isfinite(every(groups)))
    y, alone = every(groups)[keep], jax.jit(parts)
    value = lambda x: every(alone(x))[keep]
    slopes = np.stack([every(pushed(x, jnp.asarray(along))[1])[keep] for _, along in directions])
    line["wrong"] += [] if np.isfinite(slopes).all() else ["not finite"]
    told, off = Told(y, np.concatenate(noise)[keep], np.abs(slopes).max(0)), []
    smooth = np.ones(len(y), bool)
    for (what, along), slope in zip(directions, slopes):
        with np.errstate(over="ignore", invalid="ignore"):  # where a motion ends early, nothing is told
            found = differences(value, x, along, told, slope)
        line["torn"] += found.torn
        if not found.torn:
            off.append(found.error)
            smooth &= ~found.kinks
            line["kinks"] += found.kinks.any() and found.error <= 1
            line["wrong"] += [what] if not found.error <= 1 else []
    line |= {"worst": max(off, default=np.nan), "count": len(directions)}
    if quick:
        return
    # at a kink each mode may take another side, as rounding decides
    weights = smooth * np.random.default_rng(1).uniform(0.5, 1.5, len(y)) / np.maximum(np.abs(y), 1e-3)
    flat = lambda x: jnp.concatenate([y for group in parts(x) for y in group])[keep]
    gradient = np.asarray(jax.grad(lambda x: flat(x) @ weights)(x))
    sums, backward = slopes @ weights, np.array([gradient @ along for _, along in directions])
    line["modes"] = float(np.abs(sums - backward).max() / max(np.abs(sums).max(), 1e-300))
    line["wrong"] += [] if line["modes"] <= MODES else ["modes"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a derivative is wrong")
    parser.add_argument("--examples", default="", help="some of them, separated by commas")
    parser.add_argument("--quick", action="store_true", help="in forward mode under `jit` alone")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    args = parser.parse_args()
    prepare()
    import jax

    jax.config.update("jax_enable_x64", True)
    every = sorted(file.name[:-5] for file in _folder().iterdir() if file.name.endswith(".toml"))
    names = args.examples.split(",") if args.examples else every
    begin, lines = time.perf_counter(), []
    heads = ("numbers", "kinks", "torn", "modes", "worst", "s")
    print(f"  {'example, analysis':46}" + "{:>9}{:>6}{:>5}{:>9}{:>10}{:>8}".format(*heads))
    with ProcessPoolExecutor(args.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        for job in as_completed([pool.submit(compared, *given, args.quick) for given in jobs(names)]):
            line = job.result()
            lines.append(line)
            told = f"{line['count']:5}{line['kinks']:5}{line['torn']:5}{line['modes']:10.1e}{line['worst']:10.1e}"
            where = f"  {', '.join(line['job']):50}"
            print(f"{where}{told}{line['seconds']:8.0f}  {' '.join(line['wrong'][:4])}", flush=True)
    wrong = sum(bool(line["wrong"]) for line in lines)
    count, kinks, torn = (sum(line[key] for line in lines) for key in ("count", "kinks", "torn"))
    print(f"  {time.perf_counter() - begin:.0f} s with {args.workers} processes")
    more = f"; {kinks} at kinks, {torn} torn"
    print(f"derivatives: {wrong} of {len(lines)} analyses wrong, in {count} parameters and arrays (aim 0){more}")
    return int(args.check and wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
