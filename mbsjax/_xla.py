"""What XLA is told before it starts."""

import os


# On a CPU, a loop that touches less than so many bytes in a turn is compiled as one piece, instead of calling each of
# its operations: a single simulation then takes a tenth of the time. Loops over many lanes touch more.
_SMALL_LOOP = "xla_cpu_small_while_loop_byte_threshold=131072"

if "xla_backend_extra_options" not in (flags := os.environ.get("XLA_FLAGS", "")):
    os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_extra_options={_SMALL_LOOP}".strip()
