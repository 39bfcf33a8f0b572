"""Whether every number has its derivative: all examples, all analyses, all parameters, and all arrays of the mechanism.

For each example and each analysis that its file asks for, a weighted sum of all that the analysis tells (positions,
velocities, accelerations, forces, times of events, measures) is differentiated: called as it is written, in reverse
mode, with default arguments; in forward mode under `jit`, along a random direction of all numbers at once; and by
differences, for each parameter of the file, and in a random direction of each array of the mechanism.

`python -m benchmarks.derivatives [--check] [--examples A,B] [--workers N]`: prints a table and, on the last line, the
headline figure; with `--check` it exits with 1 if a derivative is wrong.
"""

import argparse
import multiprocessing
import os
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib import resources
from typing import Any

import numpy as np


# compiled in a hurry, as every program runs a few times only
_LOOPS = "while-loop-invariant-code-motion,simplify-while-loops,while-loop-constant-sinking"
_FLAGS = f"--xla_backend_optimization_level=0 --xla_disable_hlo_passes={_LOOPS}"
TOLD = ("q", "v", "a", "press", "drive", "kinetic", "potential")  # of an analysis, as far as it has them
STEP = 1e-5  # of a number, for differences of fourth order
ALLOWED = 1e-5  # between derivatives and differences, in parts of the largest that one number makes
MODES = 1e-8  # between forward and reverse mode


def jobs(names: list[str]) -> list[tuple[str, str, str]]:
    """Every example, with every analysis of its file, in its parameters and in the arrays of its mechanism."""
    found = []
    for name in names:
        tables = set(_model(name).document)
        analyses = [of for of in ("kinematics", "simulate", "equilibrium") if of in tables]
        analyses += ["inverse"] if "kinematics" in tables and _has_masses(name) else []
        found += [(name, of, kind) for of in analyses for kind in ("parameters", "arrays")]
    return found


def _folder() -> Any:
    return resources.files("mbsjax.examples")


def _model(name: str) -> Any:
    import mbsjax as mbs

    return mbs.loads((_folder() / f"{name}.toml").read_text(encoding="utf-8"))


def _has_masses(name: str) -> bool:
    return any(isinstance(body, dict) and "mass" in body for body in _model(name).document["bodies"].values())


def outcome(name: str, of: str, kind: str) -> tuple[Any, Any, list[tuple[str, np.ndarray]]]:
    """What an analysis tells, as a vector, of a vector of numbers; these; and a direction for each name."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    from mbsjax._files import analyses

    model, rng = _model(name), np.random.default_rng(0)

    def told(given: dict[str, Any] | None) -> Any:
        run = model.run(of, given)
        parts = [getattr(run, part) for part in TOLD if isinstance(getattr(run, part, None), jax.Array)]
        if getattr(run, "events", None) is not None:
            parts.append(jnp.where(jnp.isfinite(run.events.t), run.events.t, 0.0))
        if of == model.analysis:
            parts += [jnp.asarray(x) for x in model.measured(run).values()]
        return jnp.concatenate([jnp.ravel(x) for x in parts])

    if kind == "parameters":
        names = list(model.parameters)
        x = jnp.array([float(model.parameters[key]) for key in names])
        size = np.maximum(np.abs(x), 1e-2 * np.abs(x).max())
        return (
            lambda x: told(dict(zip(names, x))),
            x,
            [(key, size[k] * np.eye(len(x))[k]) for k, key in enumerate(names)],
        )
    numbers, structure = eqx.partition(model.mechanism(), eqx.is_inexact_array)
    x, back = ravel_pytree(numbers)

    def with_arrays(x: Any) -> Any:
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
        directions.append((jax.tree_util.keystr(path), along))
    return with_arrays, x, directions


def compared(name: str, of: str, kind: str) -> dict[str, Any]:
    """One of the jobs: how far forward mode and differences are off, and the names of what is wrong."""
    import jax
    import jax.numpy as jnp

    begin, line = time.perf_counter(), {"job": (name, of, kind), "modes": np.nan, "worst": np.nan, "count": 0}
    try:
        f, x, directions = outcome(name, of, kind)
        y = f(x)
        keep, rng = np.isfinite(y), np.random.default_rng(1)
        weights = jnp.asarray(np.where(keep, rng.uniform(0.5, 1.5, len(y)) / np.maximum(np.abs(y), 1e-3), 0.0))
        total = lambda x: jnp.sum(jnp.where(keep, weights * jnp.where(keep, f(x), 0.0), 0.0))
        gradient = np.asarray(jax.grad(total)(x))
        value = jax.jit(total)
        every = sum(along * rng.normal() for _, along in directions)
        slope = float(jax.jit(lambda x, v: jax.jvp(total, (x,), (v,))[1])(x, jnp.asarray(every)))
        most = max(abs(gradient @ along) for _, along in directions)
        line["modes"] = abs(slope - gradient @ every) / max(most, 1e-300)
        wrong = [] if np.isfinite(gradient).all() else ["not finite"]
        off = []
        for told, along in directions:
            h = [float(value(x + k * STEP * along)) for k in (-2, -1, 1, 2)]
            difference = (h[0] - 8 * h[1] + 8 * h[2] - h[3]) / (12 * STEP)
            off.append(abs(difference - gradient @ along) / max(most, abs(float(value(x))), 1e-300))
            wrong += [told] if not off[-1] <= ALLOWED else []
        line |= {"worst": max(off), "count": len(off)}
        wrong += ["modes"] if not line["modes"] <= MODES else []
    except Exception:
        wrong = ["raised: " + traceback.format_exc(limit=-2)]
    return line | {"wrong": wrong, "seconds": time.perf_counter() - begin}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a derivative is wrong")
    parser.add_argument("--examples", default="", help="some of them, separated by commas")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    args = parser.parse_args()
    os.environ |= {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": _FLAGS}
    import jax

    jax.config.update("jax_enable_x64", True)
    every = sorted(file.name[:-5] for file in _folder().iterdir() if file.name.endswith(".toml"))
    names = args.examples.split(",") if args.examples else every
    begin, lines = time.perf_counter(), []
    with ProcessPoolExecutor(
        args.workers, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=8
    ) as pool:
        for job in as_completed([pool.submit(compared, *given) for given in jobs(names)]):
            line = job.result()
            lines.append(line)
            told = f"{line['count']:5} numbers{line['modes']:10.1e}{line['worst']:10.1e}{line['seconds']:8.0f} s"
            print(f"  {', '.join(line['job']):50}{told}  {' '.join(line['wrong'][:4])}", flush=True)
    wrong = sum(bool(line["wrong"]) for line in lines)
    count = sum(line["count"] for line in lines)
    print(f"  {time.perf_counter() - begin:.0f} s with {args.workers} processes")
    print(f"derivatives: {wrong} of {len(lines)} analyses wrong, in {count} parameters and arrays (aim 0)")
    return int(args.check and wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
