"""How fast tolerances are sampled.

(a) a four-bar tolerance study, 1000 samples x 200 positions, against pylinkage's loop over samples;
(b) the cam of the thesis (4.4) with contact loss, 4096 simulated variants;
(c) memory of campaigns from 10^4 to 10^6 samples.

`python -m benchmarks.montecarlo [--check] [--only a|b|c] [--samples N] [--chunk N]`: prints tables and, on the last
line, the headline figure; with `--check` it exits with 1 if an aim is missed. `--samples` and `--chunk` set the size of
(b), and of a larger run of (a), for other machines.
"""

import argparse
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time


# JAX sees each core as a device of its own: chunks are then run on all of them
os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={os.cpu_count()}")

import jax
import jax.numpy as jnp
import numpy as np

import mbsjax as mbs
from mbsjax.demo import SPRUNG, lost_contact

from .kinematics import NOMINAL, POSITIONS, SAMPLES, TOLERANCE, four_bar, pylinkage_loop


AIM = 0.050


def path_study() -> mbs.Study:
    """How far joint C strays from its nominal path, the sum of both coordinates' deviations at each position."""

    def path(p: dict) -> mbs.Motion:
        crank = mbs.constant_speed(2 * jnp.pi / POSITIONS, 0.0)
        lengths = [p["crank"], p["coupler"], p["rocker"], NOMINAL[3]]
        return mbs.kinematics(four_bar(lengths), {"A": crank}, jnp.arange(1.0, POSITIONS + 1), throw=False)

    links = dict(zip(("crank", "coupler", "rocker"), NOMINAL.tolist()))
    return mbs.Study(path, links, dict.fromkeys(links, mbs.Uniform(TOLERANCE)), {"angle": lambda m: m["D"].q})


def against_pylinkage(samples: int | None, chunk: int | None) -> float:
    study = path_study()
    size = SAMPLES // len(jax.devices())
    run = lambda n, k: mbs.monte_carlo(study, n, chunk=k)
    start = time.perf_counter()
    run(SAMPLES, size)
    compile_time = time.perf_counter() - start
    ours = _best(lambda: run(SAMPLES, size), 10)
    print(f"four-bar tolerance study, {SAMPLES} samples x {POSITIONS} positions, on {jax.devices()}")
    print(f"  mbsjax, statistics and all {ours:8.3f} s; compiled in {compile_time:.1f} s")
    try:
        theirs = _best(pylinkage_loop()[0], 3)
        print(f"  pylinkage, its loop        {theirs:8.3f} s, {theirs / ours:.0f} times as long")
    except ImportError:
        print("  pylinkage is not installed")
    if samples and chunk:
        run(chunk * len(jax.devices()), chunk)
        seconds = _best(lambda: run(samples, chunk), 1)
        print(f"  {samples} samples in chunks of {chunk}: {seconds:.2f} s, {samples / seconds:.0f} samples/s")
    return ours


def cam_study() -> mbs.Study:
    def lift_off(sol: mbs.Solution):
        there = (sol.events.kind == mbs.EVENTS.index("released")) & jnp.isfinite(sol.events.t)
        return jnp.where(jnp.any(there), sol.events.t[jnp.argmax(there)], jnp.inf)

    tolerances = {**dict.fromkeys(("e", "R", "l", "w", "r"), mbs.Normal(0.1)), "k": mbs.Normal(0.03)}
    return mbs.Study(lambda p: lost_contact(p, 2), SPRUNG, tolerances, {"lift-off": lift_off})


def dynamic(samples: int, chunk: int) -> None:
    study = cam_study()
    start = time.perf_counter()
    mbs.monte_carlo(study, chunk * len(jax.devices()), chunk=chunk)
    first = time.perf_counter() - start
    start = time.perf_counter()
    sample = mbs.monte_carlo(study, samples, chunk=chunk, seed=1)
    seconds = time.perf_counter() - start
    p, error = sample.tally.changed
    print(f"cam with contact loss, {samples} simulated variants in chunks of {chunk}")
    print(f"  {seconds:.2f} s, {samples / seconds:.0f} samples/s; the first call took {first:.0f} s")
    print(f"  other sequences of contacts than the nominal one: {100 * p:.1f} +- {100 * error:.1f} %")


def memory() -> None:
    print("campaigns of the four-bar at 8 positions: largest memory of the process")
    for n in (10_000, 100_000, 1_000_000):
        command = [sys.executable, "-m", "benchmarks.montecarlo", "--campaign", str(n)]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
        print(f"  {n:8} samples: {told}")


def one_campaign(n: int) -> None:
    """What `memory` runs in a process of its own."""
    short = lambda p: mbs.kinematics(
        four_bar([p["crank"], 3.0, 3.0, 4.0]), {"A": lambda t: t}, jnp.linspace(0.0, 1.0, 8), throw=False
    )
    study = mbs.Study(short, {"crank": 1.0}, {"crank": 0.01}, {"angle": lambda m: m["D"].q})
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        mbs.campaign(study, n, pathlib.Path(folder) / "store", chunk=4096, progress=False)
        seconds = time.perf_counter() - start
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB, {seconds:.1f} s with compilation")


def _best(f, repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if an aim is missed")
    parser.add_argument("--only", choices="abc")
    parser.add_argument("--samples", type=int)
    parser.add_argument("--chunk", type=int)
    parser.add_argument("--campaign", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    if given.campaign:
        one_campaign(given.campaign)
        return 0
    seconds = np.nan
    if given.only in (None, "a"):
        seconds = against_pylinkage(given.samples, given.chunk)
    if given.only in (None, "b"):
        dynamic(given.samples or 4096, given.chunk or 2048)
    if given.only in (None, "c"):
        memory()
    print(f"montecarlo: four-bar study in {1e3 * seconds:.0f} ms (aim {1e3 * AIM:.0f})")
    return int(given.check and seconds > AIM)


if __name__ == "__main__":
    sys.exit(main())
