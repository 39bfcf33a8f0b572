"""How fast tolerances are sampled.

(a) a four-bar tolerance study, 1000 samples x 200 positions, against pylinkage's loop over samples; a campaign of it;
(b) campaigns of simulated cams that lose contact: that of the thesis (4.4), and a disc with a flat follower;
(c) memory of campaigns from 10^4 to 10^6 samples.

`python -m benchmarks.montecarlo [--check] [--only a|b|c] [--samples N] [--chunk N]`: prints tables and, on the last
line, the headline figure; with `--check` it exits with 1 if an aim is missed. `--samples` and `--chunk` set the size of
the campaigns of (a) and (b), for other machines.
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
from tests.impacts import FLAT, TWO_TURNS, flat_follower, turning

from .kinematics import NOMINAL, POSITIONS, SAMPLES, TOLERANCE, four_bar, pylinkage_loop


AIM = 0.050
LINKS: dict[str, float] = dict(zip(("crank", "coupler", "rocker"), NOMINAL.tolist()))


def path_study() -> mbs.Study:
    """How far joint C strays from its nominal path, the sum of both coordinates' deviations at each position."""

    def path(p: dict) -> mbs.Motion:
        crank = mbs.constant_speed(2 * jnp.pi / POSITIONS, 0.0)
        lengths = [p["crank"], p["coupler"], p["rocker"], NOMINAL[3]]
        return mbs.kinematics(four_bar(lengths), {"A": crank}, jnp.arange(1.0, POSITIONS + 1), throw=False)

    return mbs.Study(path, LINKS, dict.fromkeys(LINKS, mbs.Uniform(TOLERANCE)), {"angle": lambda m: m["D"].q})


def against_pylinkage(samples: int, chunk: int) -> float:
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
    swing = {"swing": lambda m: jnp.max(m["D"].q) - jnp.min(m["D"].q)}
    tolerances = dict.fromkeys(LINKS, mbs.Uniform(TOLERANCE))
    timed("the four-bar's swing", mbs.Study(study.model, LINKS, tolerances, swing), samples, chunk)
    return ours


def timed(name: str, study: mbs.Study, samples: int, chunk: int) -> None:
    """A campaign, after a first chunk on each device to compile it."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        mbs.campaign(study, chunk * len(jax.devices()), f"{folder}/first", chunk=chunk, progress=False)
        first = time.perf_counter() - start
        start = time.perf_counter()
        done = mbs.campaign(study, samples, f"{folder}/all", chunk=chunk, seed=1, progress=False)
        seconds = time.perf_counter() - start
    p, error = done.tally.changed
    print(
        f"campaign of {name}: {samples} samples in chunks of {chunk}: {seconds:.2f} s, {samples / seconds:.0f} a second"
    )
    print(f"  the first chunk took {first:.0f} s; another sequence than nominal: {100 * p:.2f} +- {100 * error:.2f} %")


def lift_off(sol: mbs.Solution):
    there = (sol.events.kind == mbs.EVENTS.index("released")) & jnp.isfinite(sol.events.t)
    return jnp.where(jnp.any(there), sol.events.t[jnp.argmax(there)], jnp.inf)


def cams(samples: int, chunk: int) -> None:
    lengths = dict.fromkeys(("e", "R", "l", "w", "r"), mbs.Normal(0.1))
    thesis = mbs.Study(
        lambda p: lost_contact(p, 2), SPRUNG, {**lengths, "k": mbs.Normal(0.03)}, {"lift-off": lift_off}
    )  # fmt: skip
    timed("the cam of the thesis with contact loss", thesis, samples, chunk)

    def flat(p: dict) -> mbs.Solution:
        mech, drive, ts = flat_follower(p), turning(), jnp.array([0.0, TWO_TURNS])
        start = mbs.state(mech, drive=drive, throw=False)
        return mbs.simulate(
            mech, start, TWO_TURNS, ts=ts, drive=drive, rest_speed=1e-3, max_steps=512, max_events=48, throw=False
        )

    few = {"R": 5e-4, "e": 2e-4, "m": 5e-3, "k": 20.0, "F0": 0.2}
    timed("a flat follower that bounces", mbs.Study(flat, FLAT, few, {"lift-off": lift_off}), samples, chunk)


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
        seconds = against_pylinkage(given.samples or 65536, given.chunk or 4096)
    if given.only in (None, "b"):
        cams(given.samples or 4096, given.chunk or 2048)
    if given.only in (None, "c"):
        memory()
    print(f"montecarlo: four-bar study in {1e3 * seconds:.0f} ms (aim {1e3 * AIM:.0f})")
    return int(given.check and seconds > AIM)


if __name__ == "__main__":
    sys.exit(main())
