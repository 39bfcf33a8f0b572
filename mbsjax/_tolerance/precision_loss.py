"""What single precision costs a study: the same samples in both precisions."""

import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._programs.reprs import by_fields
from .evaluate import evaluated
from .sample import monte_carlo
from .sampler import counts
from .study import Study


class PrecisionLoss(NamedTuple):
    """By how much the samples of a study differ in single precision.

    - `median`, `largest`: for each measure, by name, of the differences of its values, over the samples that are of one
        class in both precisions; of a row, where it differs most. NaN where there are none.
    - `changed`: how many samples are of another class in single precision; `sequences`, how many go through another
        sequence of contact events: bounces that are too low for single precision are summed up, and not told one by
        one.
    - `samples`: of how many.
    """

    median: dict[str, float]
    largest: dict[str, float]
    changed: int
    sequences: int
    samples: int

    __repr__ = by_fields


def precision_loss(study: Study, n: int = 256, *, seed: int = 0) -> PrecisionLoss:
    """What a campaign of a study would lose in single precision, whose steps take a GPU about half the time: n samples
    are evaluated in both.

    Without `jax_enable_x64`, all that mbsjax computes is in single precision: that is how such a campaign is run.
    Each sample is compared with the nominal variant in the same precision, as there.

    **Arguments:**

    - `study`: made in double precision. Arrays that its functions close over must be of NumPy, or made in them.
    - `n`, `seed`: how many samples, and which ones.

    **Returns:** an [`mbsjax.PrecisionLoss`][].

    !!! Example

        >>> import mbsjax as mbs
        >>> stack = mbs.Study(lambda p: p, {"slot": 30.0, "a": 10.0, "b": 19.8}, {"slot": 0.1, "a": 0.05, "b": 0.05},
        ...                   {"clearance": lambda p: p["slot"] - p["a"] - p["b"]})
        >>> loss = mbs.precision_loss(stack)
        >>> 1e-7 < loss.largest["clearance"] < 1e-5, loss.changed
        (True, 0)
    """
    if study.nominal.dtype != jnp.float64:
        raise ValueError(
            "`precision_loss` compares with double precision, and this study is in single precision: call "
            'jax.config.update("jax_enable_x64", True) first'
        )
    n, seed = counts(samples=n, seed=seed)
    double = monte_carlo(study, n, seed=seed, chunk=n)
    x = np.concatenate([np.asarray(study.nominal)[None], double.dimensions(slice(None))])
    with jax.enable_x64(False), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "mbsjax is computing in float32")
        canonical = lambda x: jnp.asarray(np.asarray(x)) if isinstance(x, jax.Array) else x
        single = evaluated(jax.tree_util.tree_map(canonical, study), x, chunk=n + 1)
    sequence, kind = single.sequence[1:], single.kind[1:]
    kind = np.where(kind <= 1, sequence != single.sequence[0], kind)
    same = kind == double.kind
    off = np.abs(single.values[1:] - double.values)[same]
    of_each = {name: off[:, at].reshape(len(off), -1).max(1) for name, at in study.slices.items()}
    told = lambda f: {name: float(f(x)) if np.isfinite(x).any() else np.nan for name, x in of_each.items()}
    others = int(np.sum(sequence != double.sequence))
    return PrecisionLoss(told(np.nanmedian), told(np.nanmax), int(np.sum(~same)), others, n)
