"""Runs a campaign of the clutch: python -m tests.campaign_script store samples chunk [coordinator processes number].
With `--shared` before, it is one of a simple study; it says when it is ready, waits for a line, and tells how many
chunks it made."""

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
    tell(len(jax.devices()), done)


def shared(store: str, samples: str, chunk: str) -> None:
    jax.config.update("jax_enable_x64", True)
    import mbsjax as mbs
    from mbsjax._tolerance.store import Store

    study = mbs.Study(lambda p: p, {"a": 2.0}, {"a": 0.3}, {"square": lambda p: p["a"] ** 2})
    for _ in range(2):  # what makes a chunk, and what reads it, are compiled
        mbs.campaign(study, int(chunk), "memory://first", chunk=int(chunk), progress=False)
    made, write = [], Store.write
    Store.write = lambda *given: (made.append(given[1]), write(*given))
    print("ready", flush=True)
    sys.stdin.readline()
    done = mbs.campaign(study, int(samples), store, chunk=int(chunk), progress=False)
    tell(len(made), done)


def tell(number, done):
    print(number, repr(done.tally.mean.tolist()), repr(done.tally.errors.std.tolist()))


if __name__ == "__main__":
    if sys.argv[1] == "--shared":
        shared(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
