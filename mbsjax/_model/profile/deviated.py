"""Form error: elements that leave their nominal shape."""

import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._programs.precision import as_float
from .base import AbstractCurve, AbstractElement
from .profile import Profile, endless


class Deviated(AbstractCurve):
    """An element moved along its own outward normal by a smooth function of its coordinate."""

    kind: ClassVar[str] = "deviated"
    element: AbstractElement
    offsets: Float[Array, " n"]
    basis: str = eqx.field(static=True)
    closed: bool = eqx.field(static=True)
    samples: int = eqx.field(static=True)

    def __init__(self, element: AbstractElement, offsets: Any, kind: str):
        if kind not in _BASES:
            raise ValueError(f"the form error of a profile is of the kind {', '.join(map(repr, _BASES))}, not {kind!r}")
        self.element, self.basis, self.closed = element, kind, endless(element)
        self.offsets = as_float(offsets, "the offsets of a profile")
        least = element.samples if isinstance(element, AbstractCurve) else 32
        self.samples = max(least, 4 * len(self.offsets))

    def position(self, s: Float[Array, ""]) -> Float[Array, "2"]:
        here = self.element(s)
        return here.position + _BASES[self.basis](s, len(self.offsets), self.closed) @ self.offsets * here.normal


def _fourier(s: Array, n: int, closed: bool) -> Array:
    k = np.arange(n)
    if closed:  # cos, sin of one wave, of two, ...
        angle = 2 * jnp.pi * (k // 2 + 1) * s
        return jnp.where(k % 2 == 0, jnp.cos(angle), jnp.sin(angle))
    return jnp.sin(jnp.pi * (k + 1) * s)  # nothing at the ends, where the neighbors begin


def _bumps(s: Array, n: int, closed: bool) -> Array:
    """Uniform cubic B-splines: each number raises a bump, 1 in its middle and four segments wide."""
    segments = n if closed else n + 3
    x = s * segments - np.arange(n) - (0 if closed else 2)
    if closed:
        x = x - segments * jnp.round(x / segments)
    a = jnp.minimum(jnp.abs(x), 2.0)
    return jnp.where(a < 1, 1 - 1.5 * a**2 + 0.75 * a**3, (2 - a) ** 3 / 4)


def _through(s: Array, n: int, closed: bool) -> Array:
    """Each number is the height in the middle of its bump, whatever the others are."""
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    apart = np.minimum(apart, n - apart) if closed else apart
    heights = np.where(apart == 0, 1.0, np.where(apart == 1, 0.25, 0.0))  # of all bumps, in the middle of each
    return _bumps(s, n, closed) @ np.linalg.inv(heights)


_BASES = {"fourier": _fourier, "spline": _bumps, "through": _through}


def deviated(profile: Profile, offsets: Any, *, kind: str = "fourier") -> Profile:
    """A profile with an error of form: every element is moved along its outward normal, more here and less there. Where
    the offsets are dimensions of a study, nominally zero, with a tolerance, its parts are as the shop makes them.

    **Arguments:**

    - `profile`: the nominal one. Elements of a chain keep their ends.
    - `offsets`: n numbers for each element, a row for each element, or n for the only one.
    - `kind`: `"fourier"`: amplitudes of waves: of a closed element the cosine and sine of one wave, of two, and so on;
        of another, of half a wave, of a whole one, ... `"spline"`: heights of bumps side by side. `"through"`: the
        deviations themselves at places side by side, through which the curve goes: of a closed element the first is at
        its beginning; what [`mbsjax.ProfileZone`][] is for.

    !!! Example

        A disc that is out of round by two waves.

        >>> import mbsjax as mbs
        >>> oval = mbs.deviated(mbs.disc(2.0), [0.0, 0.0, 0.1, 0.0])
        >>> [round(float(oval(q).position[k]), 9) for q, k in ((0.0, 0), (0.25, 1))]
        [2.1, 1.9]
    """
    rows = as_float(offsets, "the offsets of a profile")
    rows = rows[None] if rows.ndim == 1 else rows
    n = len(profile.elements)
    if rows.ndim != 2 or rows.shape[0] != n or rows.shape[1] == 0:
        raise ValueError(f"a profile of {n} elements needs {n} rows of offsets, got shape {rows.shape}")
    if kind in ("spline", "through") and rows.shape[1] < 4 and endless(profile.elements[0]):
        raise ValueError(f"a closed element needs at least four bumps to stay smooth, got {rows.shape[1]}")
    elements = [Deviated(e, row, kind) for e, row in zip(profile.elements, rows)]
    return dataclasses.replace(profile, elements=tuple(elements))
