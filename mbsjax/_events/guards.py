"""The table of guards: switching functions that are positive as long as nothing happens.

Every contact has six: its gap, or, once it is active, the gap elsewhere (G_I in the thesis); how far its places are
from the ends of their elements, two on each profile (G_T); and its force, or, in kinematics, the speed at which it
pushes (G_F). The guards of pairs with friction follow, one for each: how fast it slides, or, where it sticks, how much
more it could hold. Then those of forces and triggers. A new guard of every contact is a new row of
`stacked` and a number here.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from .._numerics.groups import pick


PER_CONTACT = 6
GAP, RELEASE = 0, 5  # between them the four ends


class GuardTable(NamedTuple):
    """Which guard stands where: those of the contacts, contact by contact, then those of the pairs with friction, then
    the others. Lanes stand behind."""

    contacts: int
    others: int
    lanes: int
    pairs: int = 0

    @property
    def count(self) -> int:
        return PER_CONTACT * self.contacts + self.pairs + self.others

    def _column(self, of_guards: np.ndarray) -> np.ndarray:
        return of_guards.reshape(-1, *(1,) * self.lanes)

    def _of_kind(self, kind: int) -> np.ndarray:
        numbers = np.arange(self.count)
        return self._column((numbers % PER_CONTACT == kind) & (numbers < PER_CONTACT * self.contacts))

    @property
    def is_gap(self) -> np.ndarray:
        return self._of_kind(GAP)

    @property
    def is_end(self) -> np.ndarray:
        return self._column(np.arange(self.count) < self.first_pair) & ~self.is_gap & ~self.is_release

    @property
    def is_release(self) -> np.ndarray:
        return self._of_kind(RELEASE)

    @property
    def first_pair(self) -> int:
        """Where the guards of the pairs with friction begin."""
        return PER_CONTACT * self.contacts

    @property
    def is_friction(self) -> np.ndarray:
        numbers = np.arange(self.count) - self.first_pair
        return self._column((numbers >= 0) & (numbers < self.pairs))

    @property
    def contact_numbers(self) -> np.ndarray:
        return self._column(np.arange(self.contacts))

    @property
    def numbers(self) -> np.ndarray:
        return self._column(np.arange(self.count))

    def of_contacts(self, x: Array, fill: Any) -> Array:
        """A quantity of the contacts, for each guard; `fill` for the guards that belong to none."""
        owners = np.append(
            np.repeat(np.arange(self.contacts), PER_CONTACT), np.full(self.pairs + self.others, self.contacts)
        )
        return pick(jnp.concatenate([x, jnp.full((1, *x.shape[1:]), fill, x.dtype)]), owners)

    def gaps(self, g: Float[Array, "guards *lanes"]) -> Float[Array, "c *lanes"]:
        """The guards that are gaps."""
        return g[: PER_CONTACT * self.contacts : PER_CONTACT]


def stacked(
    gaps: Float[Array, "c *lanes"], ends: Float[Array, "c 4 *lanes"], forces: Float[Array, "c *lanes"]
) -> Float[Array, "guards *lanes"]:
    """The guards of all contacts, one after the other."""
    return jnp.concatenate([gaps[:, None], ends, forces[:, None]], 1).reshape(-1, *gaps.shape[1:])


def contact_of(guard: Int[Array, "*lanes"]) -> Int[Array, "*lanes"]:
    """The contact that a guard belongs to."""
    return guard // PER_CONTACT


def kind_of(guard: Int[Array, "*lanes"]) -> Int[Array, "*lanes"]:
    """Which of the six guards of its contact it is."""
    return guard % PER_CONTACT


def is_end(kind: Int[Array, "*lanes"]) -> Bool[Array, "*lanes"]:
    """Whether it is one of the four ends."""
    return (kind > GAP) & (kind < RELEASE)
