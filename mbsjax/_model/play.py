"""Play: how loose a joint is, where the pin lies in it, and what happens when it hits."""

from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._programs.custom_types import Given, Number, Numbers
from .._programs.modules import AbstractModule
from .._programs.precision import as_float, number, positive, value
from .._programs.reprs import by_fields
from .contact_laws import AbstractContactLaw
from .friction import Coulomb, contact_friction


RULES = ("loaded", "worst", "random")


class Play(AbstractModule):
    """The play of a joint, an argument of [`mbsjax.Revolute`][], [`mbsjax.Prismatic`][], [`mbsjax.PinSlot`][],
    [`mbsjax.Spherical`][] and [`mbsjax.Gear`][]; `play=0.02` is short for `play=Play(0.02)`.

    **Arguments:**

    - `size`: how far the pin can go from the middle to one side, a length: the radius of the bore less that of the
        pin, half of what a slot or a guide is wider. Of a gear, how far wheel b can turn to one side, an angle.
    - `lies`: where it lies, in units of `size`. Of a hinge or a pin in a slot, the place of the pin in the bore,
        along the axes of frame k-: x and y, of a slot the one across it, of a ball x, y and z. Of a guide, the places
        of the front and the rear end of the block across it, each from -1 to 1. In the middle by default. It is what
        [`mbsjax.assemble`][] and [`mbsjax.kinematics`][] take; in [`mbsjax.simulate`][] the pin is free.
    - `rule`: where it lies in studies: `"loaded"`, pressed against the bore by the reactions; `"worst"`, wherever a
        measure becomes largest or smallest; `"random"`, anywhere.
    - `radius`: of the pin or the ball, or half the height of the block in a guide: what friction acts on.
    - `length`: of the block in a guide.
    - `restitution`, `law`, `friction`: of the contact in simulation, as those of [`mbsjax.Contact`][].

    !!! Example

        >>> import mbsjax as mbs
        >>> mbs.Revolute("B", "crank", "rod", play=0.02).play.size.item()
        0.02
    """

    size: Float[Array, ""]
    lies: Float[Array, " n"]
    radius: Float[Array, ""] | None
    length: Float[Array, ""] | None
    restitution: Float[Array, ""]
    law: AbstractContactLaw | None
    friction: Coulomb | None
    rule: str = eqx.field(static=True)

    def __init__(
        self,
        size: Number,
        lies: Numbers | None = None,
        *,
        rule: Given[Literal["loaded", "worst", "random"]] = "worst",
        radius: Number | None = None,
        length: Number | None = None,
        restitution: Number = 0.0,
        law: Given[AbstractContactLaw] | None = None,
        friction: Number | Coulomb | None = None,
    ):
        if rule not in RULES:
            raise ValueError(f"the rule of a play must be one of {', '.join(map(repr, RULES))}, got {rule!r}")
        self.size = number(size, "the size of a play", least=0.0)
        self.lies = as_float(jnp.zeros(0) if lies is None else lies, "where a play lies").reshape(-1)
        self.radius = None if radius is None else number(radius, "the radius of a play", least=0.0)
        self.length = None if length is None else positive(length, "the length of a play")
        self.restitution = number(restitution, "the restitution of a play", least=0.0, most=1.0)
        if law is not None and not isinstance(law, AbstractContactLaw):
            raise ValueError(f"the law of a play must be a contact law such as HuntCrossley, got {law!r}")
        self.law, self.friction, self.rule = law, contact_friction(friction, "the friction of a play"), rule

    __repr__ = by_fields


def joint_play(given: Any, name: str, *, discs: tuple[int, ...]) -> Play | None:
    """The play of a joint, as it is given: a size or a [`mbsjax.Play`][], which lies in discs of these dimensions."""
    if given is None:
        return None
    if not discs:
        raise ValueError(f"joint {name!r} cannot have play")
    play = _play(given, name)
    if play.lies.shape == (0,):
        return eqx.tree_at(lambda p: p.lies, play, jnp.zeros(sum(discs)))
    if play.lies.shape != (sum(discs),):
        raise ValueError(f"the play of joint {name!r} lies at {sum(discs)} number(s), got {play.lies.shape[0]}")
    check_lies(play.lies, discs, name)
    return play


def check_lies(lies: Float[Array, "*many n"], discs: tuple[int, ...], name: str) -> None:
    """Raises where a pin lies outside of its bore, as far as that can be seen."""
    parts = np.split(value(lies), np.cumsum(discs)[:-1], -1)
    if any(np.any(np.linalg.norm(part, axis=-1) > 1 + 1e-6) for part in parts):
        raise ValueError(f"the play of joint {name!r} must lie within it, at most 1 from its middle")


def _play(given: Any, name: str) -> Play:
    return given if isinstance(given, Play) else Play(number(given, f"the play of joint {name!r}", least=0.0))


def guide_play(given: Any, length: Any, name: str) -> Play | None:
    """The play of a block in its guide, which needs a length."""
    if given is None:
        if length is not None:
            raise ValueError(f"joint {name!r} has no play that its length would matter to")
        return None
    play = _play(given, name)
    if (length is None) == (play.length is None):
        raise ValueError(f"the play of joint {name!r} needs the length of its block, once")
    if length is None:
        return play
    length = positive(length, f"the length of the block of joint {name!r}")
    return eqx.tree_at(lambda p: p.length, play, length, is_leaf=lambda x: x is None)
