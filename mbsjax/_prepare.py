"""What a program that uses mbsjax sets before it begins: float64, and a compilation cache that outlives it."""

import os
import pathlib
from typing import Any


def prepare(cache: Any = None) -> pathlib.Path:
    """Switches float64 and JAX's persistent compilation cache on, and tells where that is: `cache`, or what
    `JAX_COMPILATION_CACHE_DIR` says, or `mbsjax` among the caches of the user."""
    import jax

    home = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    path = pathlib.Path(cache or os.environ.get("JAX_COMPILATION_CACHE_DIR") or home / "mbsjax")
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
    return path
