"""How fast contacts are followed: one turn of the cam of the thesis 4.4, alone and as 1000 variants in one call.

`python -m benchmarks.contacts [--check]`: prints a table and, on the last line, the headline figure; with `--check` it
exits with 1 if 1000 variants in one call are not faster than 1000 runs.
"""

import argparse
import sys

import jax
import jax.numpy as jnp
import numpy as np

import mbsjax as mbs
from mbsjax.demo import CAM, cam_follower

from ._timing import best, compiled


VARIANTS, OUTPUTS = 1000, 361


def turn(p):
    """The lift over one turn, the times of the events, and the largest residual."""
    ts = jnp.linspace(0.0, 4 * jnp.pi, OUTPUTS)
    motion = mbs.kinematics(cam_follower(p), {"O": mbs.constant_speed(-0.5)}, ts, max_events=16, throw=False)
    assert motion.events is not None
    return motion["guide"].q, motion.events.t, jnp.max(motion.residual)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if the aim is missed")
    check = parser.parse_args().check
    jax.config.update("jax_enable_x64", True)
    nominal = {k: jnp.asarray(v) for k, v in CAM.items()}
    keys = jax.random.split(jax.random.key(0), len(CAM))
    spread = [1 + 0.02 * jax.random.uniform(key, (VARIANTS,), minval=-1.0) for key in keys]
    variants = {k: v * x for x, (k, v) in zip(spread, nominal.items())}
    single, single_compile = compiled(turn, nominal)
    many, many_compile = compiled(jax.vmap(turn), variants)
    one, batch = best(lambda: single(nominal), 20), best(lambda: many(variants), 3)
    lift, times, residual = many(variants)
    for i in range(0, VARIANTS, 250):
        alone = single({k: v[i] for k, v in variants.items()})
        np.testing.assert_allclose(lift[i], alone[0], atol=1e-9)
        np.testing.assert_allclose(times[i], alone[1], atol=1e-9)
    ratio = VARIANTS * one / batch
    print(f"cam of the thesis 4.4, one turn, {OUTPUTS} outputs, 8 elements and a roller, 8 events")
    print(f"  {'':28}{'compile s':>10}{'run s':>10}{'ms a turn':>12}")
    print(f"  {'one run':28}{single_compile:10.1f}{one:10.4f}{1e3 * one:12.2f}")
    print(f"  {f'{VARIANTS} variants in one call':28}{many_compile:10.1f}{batch:10.3f}{1e3 * batch / VARIANTS:12.3f}")
    print(f"  largest residual {float(residual.max()):.1e}")
    print(f"contacts: {VARIANTS} variants in one call are {ratio:.1f} times as fast as {VARIANTS} runs")
    return int(check and ratio < 1)


if __name__ == "__main__":
    sys.exit(main())
