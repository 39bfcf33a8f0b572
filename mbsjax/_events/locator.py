"""The search for the time of an event: a bracket of lengths of step, closed by chords with the weights of the Illinois
method, and halved where these lead nowhere.

A guard passes zero in the bracket if it is positive at its lower end and not at its upper end. Where several do, the
search goes for the first. All functions work along lanes, which stand behind.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .._programs.precision import Threshold


JUMP = Threshold(1e-6, 1e-3)  # a guard that changes its sign by more than this in no time did not pass through zero
_CHORDS = 8  # attempts after which every other one halves the bracket
_ASIDE = 1e-3  # of the bracket: no attempt is nearer to its ends, so that it closes from both sides


class Bracket(NamedTuple):
    """Two lengths of step between which a guard passes zero, and all guards there. `hi` is infinite where none does."""

    lo: Float[Array, "*lanes"]
    hi: Float[Array, "*lanes"]
    g_lo: Float[Array, "guards *lanes"]
    g_hi: Float[Array, "guards *lanes"]
    moved: Int[Array, "*lanes"]  # which end moved last: 1 the lower, -1 the upper, 0 none
    weight: Float[Array, "*lanes"]  # what the upper end counts in chords, if the lower counts one

    @property
    def locating(self) -> Bool[Array, "*lanes"]:
        return jnp.isfinite(self.hi)

    @property
    def crossed(self) -> Bool[Array, "guards *lanes"]:
        """The guards that pass zero in it."""
        return (self.g_lo > 0) & (self.g_hi <= 0) & self.locating

    @property
    def roots(self) -> Float[Array, "guards *lanes"]:
        """Where they do, by the chord, as parts of the bracket; 1 for the others."""
        crossed = self.crossed
        return jnp.where(crossed, self.g_lo / jnp.where(crossed, self.g_lo - self.weight * self.g_hi, 1.0), 1.0)


def no_bracket(g: Float[Array, "guards *lanes"]) -> Bracket:
    """Before anything is known."""
    zero = jnp.zeros(g.shape[1:])
    nothing = jnp.zeros_like(g)
    return Bracket(zero, jnp.full_like(zero, jnp.inf), nothing, nothing, zero.astype(int), jnp.ones_like(zero))


def narrowed(
    b: Bracket,
    raised: Bool[Array, "*lanes"],
    lo: Float[Array, "*lanes"],
    g_lo: Float[Array, "guards *lanes"],
    lowered: Bool[Array, "*lanes"],
    hi: Float[Array, "*lanes"],
    g_hi: Float[Array, "guards *lanes"],
) -> Bracket:
    """With a lower end that is `raised`, an upper end that is `lowered`, or both. An end that stays for the
    second time counts half: that draws the next chord towards it (the Illinois method)."""
    stays_hi = raised & ~lowered & (b.moved == 1)
    stays_lo = lowered & ~raised & (b.moved == -1)
    weight = jnp.where(raised | lowered, 1.0, b.weight)
    return Bracket(
        jnp.where(raised, lo, b.lo),
        jnp.where(lowered, hi, b.hi),
        jnp.where(raised, g_lo, b.g_lo),
        jnp.where(lowered, g_hi, b.g_hi),
        jnp.where(lowered, -1, jnp.where(raised, 1, b.moved)),
        jnp.where(stays_hi, 0.5 * b.weight, jnp.where(stays_lo, 2 * b.weight, weight)),
    )


def aim(b: Bracket, tries: Int[Array, "*lanes"], halve: Bool[Array, "*lanes"]) -> Float[Array, "*lanes"]:
    """The length of step to try next: the first root of the chords, or the middle, where `halve` asks for it and, after
    many tries, every other time."""
    part = jnp.clip(jnp.min(b.roots, 0, initial=1.0), _ASIDE, 1 - _ASIDE)
    part = jnp.where(halve | ((tries > _CHORDS) & (tries % 2 == 0)), 0.5, part)
    return b.lo + part * (b.hi - b.lo)


def first(b: Bracket) -> Int[Array, "*lanes"]:
    """The guard that passes zero first."""
    return jnp.argmin(jnp.where(b.crossed, b.roots, jnp.inf), 0)
