"""What a program that uses mbsjax sets before it begins: float64, and a compilation cache that outlives it."""

import os
import pathlib
from typing import Any

import jax


def keep_programs(folder: Any = None) -> pathlib.Path:
    """Keeps compiled programs between runs, in JAX's persistent compilation cache: call it before anything is computed.

    **Arguments:**

    - `folder`: where; by default what `JAX_COMPILATION_CACHE_DIR` says, or `mbsjax` among the caches of the user. It
        may be removed at any time. `JAX_ENABLE_COMPILATION_CACHE=false` in the environment switches it off.

    **Returns:** the folder.

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.keep_programs(".cache/jax")  # doctest: +SKIP
        PosixPath('.cache/jax')
    """
    home = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    path = pathlib.Path(folder or os.environ.get("JAX_COMPILATION_CACHE_DIR") or home / "mbsjax")
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    # with XLA's own caches beside it, the name of the folder would be a part of what programs are found by
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")
    return path


def prepare(cache: Any = None, keep: bool = True) -> None:
    """Switches float64 on, and keeps compiled programs."""
    jax.config.update("jax_enable_x64", True)
    if keep:
        keep_programs(cache)
    else:
        jax.config.update("jax_enable_compilation_cache", False)
