"""What a program that uses mbsjax sets before it begins: float64, and a compilation cache that outlives it."""

import os
import pathlib
from typing import Any

import jax

from . import kept


def keep_programs(folder: Any = None) -> pathlib.Path:
    """Keeps compiled programs between runs: call it before anything is computed. What has been compiled once, the next
    process loads, and does not trace: an analysis that is called with numbers, a study, a task, a function with its
    slopes by [`mbsjax.value_and_slopes`][]. All else is kept in JAX's persistent compilation cache, in the same folder.

    A program is used again only for the same structure, shapes, options and functions, on the same machine, with the
    same versions of everything. `mbsjax cache` tells how much there is, `mbsjax cache --clear` deletes it; what was not
    used for longest is deleted from 2 GiB on.

    **Arguments:**

    - `folder`: where; by default what `JAX_COMPILATION_CACHE_DIR` says, or `mbsjax` among the caches of the user. It
        may be removed at any time. It must be your own, for what is in it is executed.
        `JAX_ENABLE_COMPILATION_CACHE=false` in the environment switches it off.

    **Returns:** the folder.

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.keep_programs(".cache/jax")  # doctest: +SKIP
        PosixPath('.cache/jax')
    """
    path = programs_folder(folder)
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    # with XLA's own caches beside it, the name of the folder would be a part of what programs are found by
    jax.config.update("jax_persistent_cache_enable_xla_caches", "none")
    kept.keep(path if kept.setting("jax_enable_compilation_cache") else None)
    return path


def programs_folder(folder: Any = None) -> pathlib.Path:
    """Where programs are kept, if nothing else is said."""
    home = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return pathlib.Path(folder or os.environ.get("JAX_COMPILATION_CACHE_DIR") or home / "mbsjax")


def prepare(cache: Any = None, keep: bool = True) -> None:
    """Switches float64 on, and keeps compiled programs."""
    jax.config.update("jax_enable_x64", True)
    if keep:
        keep_programs(cache)
    else:
        jax.config.update("jax_enable_compilation_cache", False)
        kept.keep(None)
