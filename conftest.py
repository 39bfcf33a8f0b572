"""float64 throughout, and a compilation cache that outlives the run."""

import os
import pathlib

import jax


jax.config.update("jax_enable_x64", True)
_CACHE = pathlib.Path(os.environ.get("MBSJAX_CACHE", pathlib.Path(__file__).parent / ".cache" / "jax"))
jax.config.update("jax_compilation_cache_dir", str(_CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
