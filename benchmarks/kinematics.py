"""How fast closed loops are followed: against pylinkage's tolerance loop, and up a ladder of four-bars.

`python -m benchmarks.kinematics [--check]`: prints two tables and, on the last line, the headline figures; with
`--check` it exits with 1 if an aim is missed.
"""

import argparse
import os
import sys


# JAX sees each core as a device of its own: a batch is then split over all of them
os.environ.setdefault("XLA_FLAGS", f"--xla_force_host_platform_device_count={os.cpu_count()}")

import jax
import jax.numpy as jnp
import numpy as np

import mbsjax as mbs
from tests.mechanisms import ladder

from ._timing import best, compiled


SAMPLES, POSITIONS, AIM = 1000, 200, 50.0
NOMINAL = np.array([1.0, 3.0, 3.0, 4.0])  # crank, coupler, rocker, ground
TOLERANCE = 0.01


def four_bar(lengths) -> mbs.Mechanism:
    crank, coupler, rocker, ground = lengths
    return mbs.Mechanism(
        [mbs.Body("crank"), mbs.Body("coupler"), mbs.Body("rocker")],
        [
            mbs.Revolute("A", "ground", "crank"),
            # estimates: the nominal links at a crank angle of zero, where pylinkage starts from too
            mbs.Revolute("B", "crank", "coupler", (crank, 0.0), start=np.pi / 3),
            mbs.Revolute("C", "coupler", "rocker", (coupler, 0.0), (rocker, 0.0), start=np.pi / 3),
            mbs.Revolute("D", "ground", "rocker", (ground, 0.0), start=2 * np.pi / 3),
        ],
    )


def rocker_tip(lengths):
    """The path of joint C over one turn, which is what pylinkage records; and the residuals."""
    crank = mbs.constant_speed(2 * jnp.pi / POSITIONS, 0.0)
    motion = mbs.kinematics(four_bar(lengths), {"A": crank}, jnp.arange(1.0, POSITIONS + 1), throw=False)
    angle = motion["D"].q
    return lengths[3] + lengths[2] * jnp.cos(angle), lengths[2] * jnp.sin(angle), motion.residual


def pylinkage_loop():
    """pylinkage's tolerance loop, and the link sets that it draws."""
    from pylinkage.actuators import Crank
    from pylinkage.components import Ground
    from pylinkage.dyads import RRRDyad
    from pylinkage.linkage.sensitivity import analyze_tolerance
    from pylinkage.simulation import Linkage

    a, b, c, d = (float(x) for x in NOMINAL)
    pivot_a, pivot_d = Ground(0.0, 0.0, name="A"), Ground(d, 0.0, name="D")
    crank = Crank(anchor=pivot_a, radius=a, angular_velocity=2 * np.pi / POSITIONS, name="crank")
    rocker = RRRDyad(anchor1=crank.output, anchor2=pivot_d, distance1=b, distance2=c, name="rocker")
    linkage = Linkage([pivot_a, pivot_d, crank, rocker], name="four-bar")
    tolerances = {"crank_radius": TOLERANCE, "rocker_dist1": TOLERANCE, "rocker_dist2": TOLERANCE}

    def loop():
        return analyze_tolerance(linkage, tolerances, n_samples=SAMPLES, iterations=POSITIONS, seed=0).output_cloud

    # it draws crank, coupler and rocker of one variant after the other
    draws = np.random.default_rng(0).uniform(-TOLERANCE, TOLERANCE, (SAMPLES, 3))
    return loop, jnp.asarray(NOMINAL + np.pad(draws, ((0, 0), (0, 1))))


def against_pylinkage() -> float:
    loop, lengths = pylinkage_loop()
    theirs, cloud = best(loop, 3), loop()
    cores = jax.sharding.Mesh(jax.devices(), ("core",))
    split = jax.sharding.PartitionSpec("core")
    lengths = jax.device_put(lengths, jax.sharding.NamedSharding(cores, split))
    batch = jax.shard_map(jax.vmap(rocker_tip), mesh=cores, in_specs=split, out_specs=split, check_vma=False)
    run, compile_time = compiled(lambda x: batch(x)[:2], lengths)
    ours = best(lambda: run(lengths), 10)
    x, y = run(lengths)
    residual = jax.jit(batch)(lengths)[2]
    difference = np.abs(np.stack([x, y], -1) - cloud).max()
    ratio = theirs / ours
    print(f"four-bar, {SAMPLES} link sets x {POSITIONS} crank positions")
    print(f"  {'':24}{'seconds':>10}{'us a position':>16}")
    for name, seconds in (("pylinkage, its loop", theirs), ("mbsjax, one call", ours)):
        print(f"  {name:24}{seconds:10.3f}{seconds / SAMPLES / POSITIONS * 1e6:16.3f}")
    print(f"  compiled in {compile_time:.1f} s; {ratio:.1f} times faster after that (aim: {AIM:.0f})")
    print(f"  largest difference of a position {difference:.1e}, largest loop residual {float(residual.max()):.1e}")
    assert difference < 1e-9 and float(residual.max()) < 1e-11
    return ratio


def growth() -> None:
    print("ladder of N four-bars, 50 positions")
    print(f"  {'N':>4}{'joints':>8}{'compile s':>12}{'us a position':>16}{'residual':>12}")
    for n in (1, 4, 16, 64):
        mech = ladder(n)

        def positions(speed, mech=mech):
            drive = {"A0": mbs.constant_speed(speed, 1.0)}
            motion = mbs.kinematics(mech, drive, jnp.arange(50.0), throw=False)
            return motion.q, motion.residual

        run, compile_time = compiled(positions, 0.01)
        seconds = best(lambda run=run: run(0.01), 3)
        residual = float(run(0.01)[1].max())
        print(f"  {n:4}{len(mech.joints):8}{compile_time:12.1f}{seconds / 50 * 1e6:16.1f}{residual:12.1e}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if an aim is missed")
    check = parser.parse_args().check
    jax.config.update("jax_enable_x64", True)
    growth()
    ratio = against_pylinkage()
    print(f"kinematics: {ratio:.1f} times pylinkage (aim {AIM:.0f})")
    return int(check and ratio < AIM)


if __name__ == "__main__":
    sys.exit(main())
