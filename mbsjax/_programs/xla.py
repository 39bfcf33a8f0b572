"""What XLA is told where the user has not told it: before it starts, and with a program that is compiled in a hurry."""

import os
from typing import Any


_flags = os.environ.get("XLA_FLAGS", "")

_ON_A_CPU = ",".join(
    (
        # A loop that touches less than so many bytes in a turn is compiled as one piece, instead of calling each of its
        # operations: a single simulation then takes a tenth of the time. Loops over many lanes touch more.
        "xla_cpu_small_while_loop_byte_threshold=131072",
        # The newer ways of making fused loops take twice the time to compile, and what they make is no faster.
        "xla_cpu_disable_new_fusion_emitters=true",
        "xla_cpu_disable_tiled_emitter=true",
    )
)

if "xla_backend_extra_options" not in _flags:
    os.environ["XLA_FLAGS"] = f"{_flags} --xla_backend_extra_options={_ON_A_CPU}".strip()

# What looks for all that a loop does not change, again and again, takes a fifth of the time and finds little.
_LOOKING_AT_LOOPS = "while-loop-invariant-code-motion,simplify-while-loops,while-loop-constant-sinking"


def quick_compile_options(level: int) -> dict[str, Any]:
    """The options of a program that is compiled at a level of optimization, of 0 to 3, and is called with few lanes:
    most take far longer to compile than to run."""
    if "xla_backend_optimization_level" in _flags:
        return {}
    import jax  # here: the flags above are set when the package is imported, which is done without JAX

    options: dict[str, Any] = {"xla_backend_optimization_level": level, "xla_disable_hlo_passes": _LOOKING_AT_LOOPS}
    if jax.__version_info__ < (0, 11):  # later ones do not know it
        options["xla_cpu_use_fusion_emitters"] = False
    return options
