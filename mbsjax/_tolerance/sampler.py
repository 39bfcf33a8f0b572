"""Where to sample: standard normal scores as a pure function of a seed and an index."""

import abc
import operator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax.scipy.special import ndtri
from jaxtyping import Array, Float, Int, UInt32

from .._programs.reprs import by_fields


METHODS = ("random", "latin", "sobol")
_REPLICATES = 16
_MOST_SAMPLES = 2**32


class AbstractSampler(eqx.Module):
    """Scores of sample number `index`, whatever else is sampled; and which of a number of independent groups it
    belongs to, which standard errors are taken from."""

    @property
    @abc.abstractmethod
    def groups(self) -> int: ...

    @abc.abstractmethod
    def scores(self, index: Int[Array, ""]) -> Float[Array, " d"]: ...

    @abc.abstractmethod
    def group(self, index: np.ndarray) -> np.ndarray: ...

    @abc.abstractmethod
    def runs(self, count: int) -> int:
        """How many groups `count` samples in a row can be of, all of a group one after the other; 0 where the groups
        take turns."""

    __repr__ = by_fields


class Random(AbstractSampler):
    """Independent samples, about a center."""

    key: Array
    center: Float[Array, " d"]

    @property
    def groups(self) -> int:
        return 64

    def scores(self, index: Int[Array, ""]) -> Float[Array, " d"]:
        key = jax.random.fold_in(self.key, index)
        return self.center + jax.random.normal(key, self.center.shape, self.center.dtype)

    def group(self, index: np.ndarray) -> np.ndarray:
        return index % self.groups

    def runs(self, count: int) -> int:
        return 0


class Latin(AbstractSampler):
    """Latin hypercubes: of the samples of each group, one in each of as many slices of every dimension."""

    key: Array
    d: int = eqx.field(static=True)
    size: int = eqx.field(static=True)
    count: int = eqx.field(static=True)

    @property
    def groups(self) -> int:
        return self.count

    def scores(self, index: Int[Array, ""]) -> Float[Array, " d"]:
        group, i = index // self.size, index % self.size
        rounds = jax.random.bits(jax.random.fold_in(self.key, group), (6, self.d), jnp.uint32)
        slice_ = shuffled(jnp.broadcast_to(i.astype(jnp.uint32), (self.d,)), self.size, rounds)
        within = jax.random.uniform(jax.random.fold_in(jax.random.fold_in(self.key, group), index), (self.d,))
        return ndtri((slice_ + within) / self.size)

    def group(self, index: np.ndarray) -> np.ndarray:
        return index // self.size

    def runs(self, count: int) -> int:
        return _runs(count, self.size, self.groups)


class Sobol(AbstractSampler):
    """Sobol sequences, each group scrambled on its own (the generating matrices and the digital shift are SciPy's)."""

    shift: UInt32[Array, "g d"]
    directions: UInt32[Array, "g b d"]
    size: int = eqx.field(static=True)

    @property
    def groups(self) -> int:
        return self.shift.shape[0]

    def scores(self, index: Int[Array, ""]) -> Float[Array, " d"]:
        group, i = index // self.size, (index % self.size).astype(jnp.uint32)
        gray = i ^ (i >> 1)
        bits = self.directions.shape[1]
        on = (gray >> jnp.arange(bits, dtype=jnp.uint32)) & 1
        parts = jnp.where(on[:, None] == 1, self.directions[group], jnp.uint32(0))
        x = self.shift[group] ^ jax.lax.reduce(parts, jnp.uint32(0), jax.lax.bitwise_xor, (0,))
        return ndtri((x.astype(jnp.result_type(float)) + 0.5) / 2.0**32)

    def group(self, index: np.ndarray) -> np.ndarray:
        return index // self.size

    def runs(self, count: int) -> int:
        return _runs(count, self.size, self.groups)


def sampler(method: str, n: int, d: int, seed: int) -> AbstractSampler:
    """A sampler of n samples in d dimensions."""
    if method not in METHODS:
        raise ValueError(f"there is no way of sampling {method!r}; there are {', '.join(METHODS)}")
    key = jax.random.key(seed)
    if method == "random":
        return Random(key, jnp.zeros(d))
    groups = min(_REPLICATES, n)
    size = -(-n // groups)
    if method == "latin":
        return Latin(key, d, size, groups)
    parts = [_digits(d, max(size - 1, 1).bit_length(), np.random.default_rng([seed, g])) for g in range(groups)]
    shift, directions = (jnp.asarray(np.stack(x)) for x in zip(*parts))
    return Sobol(shift, directions, size)


def _runs(count: int, size: int, groups: int) -> int:
    """Rounded to powers of two: programs depend on it."""
    return min(1 << ((count + size - 2) // size).bit_length(), groups)


def counts(**given: Any) -> list[int]:
    """Whole numbers, positive but for the seed, which may be zero. Samples are told apart by 32 bits: of more of them,
    some would come again."""
    for name, x in given.items():
        try:
            known = operator.index(x) >= (0 if name == "seed" else 1) and not isinstance(x, bool)
        except TypeError:
            known = False
        if not known:
            raise ValueError(f"`{name}` must be a positive whole number{', or zero' * (name == 'seed')}, got {x!r}")
        if name == "samples" and x > _MOST_SAMPLES:
            raise ValueError(
                f"there are {_MOST_SAMPLES} samples that differ, and {x} are asked for: rejects that are too rare to "
                "be seen among them are found by `reliability`"
            )
    return [operator.index(x) for x in given.values()]


def _digits(d: int, bits: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The shift and the scrambled direction numbers of a Sobol sequence. It goes in the order of Gray's code, so that
    number 2^(j+1) - 1 differs from the first in the direction j alone."""
    engine = scipy.stats.qmc.Sobol(d, scramble=True, bits=32, rng=rng)
    words, at = [], 0
    for i in [0] + [2 ** (j + 1) - 1 for j in range(bits)]:
        if i > at:
            engine.fast_forward(i - at)
        words.append((engine.random(1)[0] * 2.0**32).astype(np.uint32))
        at = i + 1
    shift, rest = words[0], np.stack(words[1:])
    return shift, rest ^ shift


def shuffled(i: UInt32[Array, " d"], n: int, rounds: UInt32[Array, "r d"]) -> UInt32[Array, " d"]:
    """Where a random permutation of 0 ... n - 1 sends i, without a table: a Feistel network, walked until it comes back
    below n."""
    half = max((max(n - 1, 1).bit_length() + 1) // 2, 1)
    mask = jnp.uint32(2**half - 1)

    def mixed(i: Array) -> Array:
        left, right = i >> half, i & mask
        for key in rounds:
            x = (right ^ key) * jnp.uint32(0x9E3779B1)
            x = (x ^ (x >> 15)) * jnp.uint32(0x85EBCA77)
            left, right = right, left ^ ((x ^ (x >> 13)) & mask)
        return (left << half) | right

    return jax.lax.while_loop(lambda x: jnp.any(x >= n), lambda x: jnp.where(x >= n, mixed(x), x), mixed(i))
