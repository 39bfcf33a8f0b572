"""What makes a study this one and no other, for those who come back to its store."""

import platform
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._programs.copies import Unseen
from .._programs.snapshot import snapshot
from .._programs.trees import Function
from .._programs.version import VERSION
from .study import Study


def described(study: Study, seed: int, method: str, chunk: int, n: int | None) -> dict[str, Any]:
    """All that samples depend on, and some of their values."""
    numbers = lambda x: np.asarray(x, float).reshape(-1).tolist()
    spreads = [
        [type(d).__name__, *(x for part in d.spread for x in numbers(part)), *d.parameters]
        for d, c in zip(study.distributions, study.counts)
        for _ in range(c)
    ]
    return {
        "seed": seed, "method": method, "chunk": chunk, "samples": n,
        "dimensions": list(study.names), "nominal": numbers(study.nominal), "tolerances": spreads,
        "other dimensions": [numbers(x) for x in study.choice.leaves if eqx.is_array_like(x)],
        "correlation": numbers(study.mixing), "measures": list(study.columns),
        "values at nominal": [float(f"{x:.9g}") for x in numbers(study.at_nominal.values)],
        "values aside": [float(f"{x:.9g}") for x in numbers(study(study.mean + study.std / 2).values)],
        "functions": {_circumstances(): _functions(study)},
    }  # fmt: skip


def _functions(study: Study) -> dict[str, Any]:
    """What else values depend on, by name: a key, and what it refers to; None where it cannot be told."""
    measures = {f"measure {name!r}": f for name, f in study.measures.items()}
    dimensions = (study.choice.others, study.choice.structure)
    every = {"model": study.model, **measures, "kind of dimensions": dimensions}
    return {**{name: _key(x) for name, x in every.items()}, "precision": {"key": str(jnp.result_type(float))}}


def _circumstances() -> str:
    """What keys hold for."""
    version = platform.python_version_tuple()
    return f"Python {version[0]}.{version[1]}, mbsjax {VERSION}"


def _key(x: Any) -> dict[str, Any] | None:
    try:
        taken = snapshot(x)
    except Unseen:
        return None
    parts = x.rest.parts if isinstance(x, Function) else {}
    return {"key": taken.digest.hex(), "parts": parts} if taken.lasting else None
