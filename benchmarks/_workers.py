"""The processes of a referee: one thread each; and compiled in a hurry, as every program runs a few times only."""

import gc
import os
import pathlib

import jax


_LOOPS = "while-loop-invariant-code-motion,simplify-while-loops,while-loop-constant-sinking"
_FLAGS = (
    "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1 --xla_backend_optimization_level=0 "
    f"--xla_disable_hlo_passes={_LOOPS}"
)
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_MAPS = pathlib.Path("/proc/self/maps")


def prepare() -> None:
    """Says so to the processes that are started from now on."""
    flags = _FLAGS + (" --xla_cpu_use_fusion_emitters=false" if jax.__version_info__ < (0, 11) else "")
    os.environ |= {"XLA_FLAGS": flags, "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", **dict.fromkeys(_THREADS, "1")}


def forget(most: int = 0) -> None:
    """Lets go of compiled programs where a process has more than `most` stretches of memory: Linux gives it 65530."""
    if not _MAPS.exists() or _MAPS.read_bytes().count(b"\n") > most:
        jax.clear_caches()
        gc.collect()
