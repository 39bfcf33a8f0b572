"""Whether every number has its derivative: all examples, all analyses, all parameters, and all arrays of the mechanism.

For each example and each analysis that its file asks for, all that the analysis tells (positions, velocities,
accelerations, forces, times of events, measures) is differentiated: called as it is written, in reverse mode, with
default arguments; in forward mode under `jit`; and by differences, along each parameter of the file, and along a random
direction of each array of the mechanism. Each number that is told is compared by itself, in parts of its own change.
What is told can jump (a bounce more or less) or have a scale of its own, so that the best of some steps counts, and it
can have a kink (the least of two equal numbers), where the derivative of one side will do; kinks are counted.
An array of an element among others is left out: moved alone, it tears the outline. One that is there twice keeps the
mechanism from closing if it is moved alone: there is nothing to compare, and it is counted as torn.

`python -m benchmarks.derivatives [--check] [--examples A,B] [--workers N]`: prints a table and, on the last line, the
headline figure; with `--check` it exits with 1 if a derivative is wrong.
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

from ._workers import prepare


TOLD = ("q", "v", "a", "press", "drive", "kinetic", "potential")  # of an analysis, as far as it has them,
OF_EVENTS = ("t", "q", "v_before", "v_after", "impulse", "friction", "speed", "energy")  # and of its events
STEPS = (1e-5, 1e-4, 1e-6, 1e-7)  # of a number, for differences of fourth order
ALLOWED = 1e-5  # between derivatives and differences, in parts of how a number changes,
SMALL = 1e-3  # or in parts of this and its change along the direction that changes it most,
SPREAD = 10.0  # or as often by how much differences of two steps differ
ROUGH = 1e-3  # but no more than that, in parts of the largest change
ROUNDING = 1e-13  # of the largest number of a kind, divided by the step
MODES = 1e-8  # between forward and reverse mode, in parts of the largest


def jobs(names: list[str]) -> list[tuple[str, str, str]]:
    """Every example, with every analysis of its file, in its parameters and in the arrays of its mechanism."""
    found = []
    for name in names:
        tables = set(_model(name).document)
        analyses = [of for of in ("kinematics", "simulate", "equilibrium") if of in tables]
        analyses += ["inverse"] if "kinematics" in tables and _has_masses(name) else []
        kinds = ["parameters"] * bool(_model(name).nominal) + ["arrays"]
        found += [(name, of, kind) for of in analyses for kind in kinds]
    return found


def _folder() -> Any:
    return resources.files("mbsjax.examples")


def _model(name: str) -> Any:
    import mbsjax as mbs

    return mbs.loads((_folder() / f"{name}.toml").read_text(encoding="utf-8"))


def _has_masses(name: str) -> bool:
    return any(isinstance(body, dict) and "mass" in body for body in _model(name).document["bodies"].values())


def outcome(name: str, of: str, kind: str) -> tuple[Any, Any, list[tuple[str, np.ndarray]]]:
    """What an analysis tells, as some vectors, of a vector of numbers; these; and a direction for each name."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    from mbsjax._files import analyses

    model, rng = _model(name), np.random.default_rng(0)

    def told(given: dict[str, Any] | None) -> list[Any]:
        run = model.run(of, given)
        parts = [getattr(run, part) for part in TOLD if isinstance(getattr(run, part, None), jax.Array)]
        events = getattr(run, "events", None)
        parts += [] if events is None else [x for part in OF_EVENTS if (x := getattr(events, part, None)) is not None]
        if of == model.analysis:
            parts += [jnp.asarray(x) for x in model.measured(run).values()]
        return [jnp.ravel(x) for x in parts]

    if kind == "parameters":
        names = list(model.nominal)
        x = jnp.array([float(model.nominal[key]) for key in names])
        size = np.maximum(np.abs(x), 1e-2 * np.abs(x).max())
        return (
            lambda x: told(dict(zip(names, x))),
            x,
            [(key, size[k] * np.eye(len(x))[k]) for k, key in enumerate(names)],
        )
    numbers, structure = eqx.partition(model.mechanism(), eqx.is_inexact_array)
    x, back = ravel_pytree(numbers)

    def with_arrays(x: Any) -> list[Any]:
        kept = analyses.made
        analyses.made = lambda *_: eqx.combine(back(x), structure)
        try:
            return told(None)
        finally:
            analyses.made = kept

    where, directions = 0, []
    for path, leaf in jax.tree_util.tree_leaves_with_path(numbers):
        along = np.zeros(len(x))
        size = np.maximum(np.abs(leaf), 1e-2 * np.abs(leaf).max(initial=1e-2))
        along[where : where + leaf.size] = (size * rng.normal(size=leaf.shape)).ravel()
        where += leaf.size
        if not _among_others(model.mechanism(), path):
            directions.append((jax.tree_util.keystr(path), along))
    return with_arrays, x, directions


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
    """All numbers that an analysis tells, the largest of the kind of each, and the largest derivative of each."""

    y: np.ndarray
    size: np.ndarray
    most: np.ndarray


class Differences(NamedTuple):
    """How a derivative compares with differences: the largest error in parts of what is allowed, whether it is that of
    one side only, and whether there was nothing to compare."""

    error: float
    kink: bool
    torn: bool


def differences(f: Callable, x: Any, along: np.ndarray, told: Told, slope: np.ndarray) -> Differences:
    """Compares the derivatives along a direction of all that is told."""
    value = lambda h: np.asarray(f(x + h * along))
    central = lambda h: (value(-2 * h) - 8 * value(-h) + 8 * value(h) - value(2 * h)) / (12 * h)
    one = lambda h: (-11 * told.y + 18 * value(h) - 9 * value(2 * h) + 2 * value(3 * h)) / (6 * h)
    errors, torn = [], False
    for stencil in (central, one, lambda h: one(-h)):
        found = np.stack([stencil(h) for h in STEPS])
        torn |= not errors and not np.isfinite(found).all(1).any()
        off = np.nan_to_num(np.abs(found - slope), nan=np.inf)
        spread = np.nan_to_num(np.abs(found - found[[1, 0, 0, 2]]), nan=np.inf)
        rough = np.minimum(SPREAD * spread, ROUGH * told.most) + ROUNDING * told.size / np.array(STEPS)[:, None]
        allowed = np.maximum(ALLOWED * np.maximum(np.abs(slope), SMALL * told.most), rough) + 1e-300
        errors.append(np.min(off / allowed, 0))
        if torn or np.all(errors[0] <= 1):
            break
    return Differences(float(np.min(errors, 0).max(initial=0.0)), len(errors) > 1, torn)


def compared(name: str, of: str, kind: str) -> dict[str, Any]:
    """One of the jobs: how far forward mode and differences are off, and the names of what is wrong."""
    begin, line = time.perf_counter(), {"job": (name, of, kind), "modes": np.nan, "worst": np.nan, "wrong": []}
    line |= {"count": 0, "kinks": 0, "torn": 0}
    try:
        _compare(line, *outcome(name, of, kind))
    except Exception as error:
        line["wrong"] = [f"raised {type(error).__name__}: {error}"]
    return line | {"seconds": time.perf_counter() - begin}


def _compare(line: dict[str, Any], parts: Callable, x: Any, directions: list[tuple[str, np.ndarray]]) -> None:
    import jax
    import jax.numpy as jnp

    f = lambda x: jnp.concatenate(parts(x))[keep]
    sizes = [np.abs(np.asarray(y)) for y in parts(x)]
    keep = np.flatnonzero(np.isfinite(np.concatenate(sizes)))
    size = np.concatenate([np.full(len(y), np.max(y, where=np.isfinite(y), initial=0.0)) for y in sizes])[keep]
    y, value = np.asarray(f(x)), jax.jit(f)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, len(y)) / np.maximum(np.abs(y), 1e-3)
    gradient = np.asarray(jax.grad(lambda x: f(x) @ weights)(x))
    forward = jax.jit(lambda x, v: jax.jvp(f, (x,), (v,))[1])
    slopes = np.stack([np.asarray(forward(x, jnp.asarray(along))) for _, along in directions])
    sums, backward = slopes @ weights, np.array([gradient @ along for _, along in directions])
    line["modes"] = float(np.abs(sums - backward).max() / max(np.abs(sums).max(), 1e-300))
    line["wrong"] += [] if np.isfinite(gradient).all() and np.isfinite(slopes).all() else ["not finite"]
    line["wrong"] += [] if line["modes"] <= MODES else ["modes"]
    told, off = Told(y, size, np.abs(slopes).max(0)), []
    for (what, along), slope in zip(directions, slopes):
        found = differences(value, x, along, told, slope)
        line["torn"] += found.torn
        if not found.torn:
            off.append(found.error)
            line["kinks"] += found.kink and found.error <= 1
            line["wrong"] += [what] if not found.error <= 1 else []
    line |= {"worst": max(off, default=np.nan), "count": len(directions)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a derivative is wrong")
    parser.add_argument("--examples", default="", help="some of them, separated by commas")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    args = parser.parse_args()
    prepare()
    import jax

    jax.config.update("jax_enable_x64", True)
    every = sorted(file.name[:-5] for file in _folder().iterdir() if file.name.endswith(".toml"))
    names = args.examples.split(",") if args.examples else every
    begin, lines = time.perf_counter(), []
    heads = ("numbers", "kinks", "torn", "modes", "worst", "s")
    print(f"  {'example, analysis, kind':46}" + "{:>9}{:>6}{:>5}{:>9}{:>10}{:>8}".format(*heads))
    with ProcessPoolExecutor(
        args.workers, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=8
    ) as pool:
        for job in as_completed([pool.submit(compared, *given) for given in jobs(names)]):
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
