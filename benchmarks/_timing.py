"""Timing: compile once, then the shortest of several runs."""

import time

import jax


def best(f, repeat: int) -> float:
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        jax.block_until_ready(f())
        times.append(time.perf_counter() - start)
    return min(times)


def compiled(f, *args):
    start = time.perf_counter()
    executable = jax.jit(f).lower(*args).compile()
    return executable, time.perf_counter() - start
