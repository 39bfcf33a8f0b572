"""Runs a campaign of the clutch: python -m tests.campaign_script store samples chunk [coordinator processes number]"""

import os
import sys

import jax


def main(store: str, samples: str, chunk: str, *cluster: str) -> None:
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_compilation_cache_dir", os.environ.get("JAX_COMPILATION_CACHE_DIR"))
    if cluster:
        address, count, number = cluster
        jax.distributed.initialize(address, int(count), int(number))
    import mbsjax as mbs
    from tests.tolerances import clutch_study

    done = mbs.campaign(clutch_study(), int(samples), store, chunk=int(chunk), progress=False)
    print(len(jax.devices()), repr(done.tally.mean.tolist()), repr(done.tally.errors.std.tolist()))


if __name__ == "__main__":
    main(*sys.argv[1:])
