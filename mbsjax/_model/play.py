"""Play: how loose a joint is, where the pin lies in it, and what happens when it hits."""

from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._programs.custom_types import Given, Number, Numbers
from .._programs.precision import as_float, is_concrete
from .._programs.reprs import by_fields
from .contact_laws import AbstractContactLaw
from .friction import Coulomb, contact_friction


RULES = ("loaded", "worst", "random")


class Play(eqx.Module):
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
        self.size = _number(size, "size")
        self.lies = as_float(jnp.zeros(0) if lies is None else lies, "where a play lies").reshape(-1)
        self.radius = None if radius is None else _number(radius, "radius")
        self.length = None if length is None else _number(length, "length")
        self.restitution = _number(restitution, "restitution", 1.0)
        if law is not None and not isinstance(law, AbstractContactLaw):
            raise ValueError(f"the law of a play must be a contact law such as HuntCrossley, got {law!r}")
        self.law, self.friction, self.rule = law, contact_friction(friction, "of a play"), rule

    __repr__ = by_fields


def joint_play(given: Any, name: str, *, places: int) -> Play | None:
    """The play of a joint, as it is given: a size or a [`mbsjax.Play`][], which lies at as many `places`."""
    if given is None:
        return None
    if not places:
        raise ValueError(f"joint {name!r} cannot have play")
    play = given if isinstance(given, Play) else Play(as_float(given, f"the play of joint {name!r}"))
    if play.lies.shape == (0,):
        return eqx.tree_at(lambda p: p.lies, play, jnp.zeros(places))
    if play.lies.shape != (places,):
        raise ValueError(f"the play of joint {name!r} lies at {places} number(s), got {play.lies.shape[0]}")
    return play


def guide_play(given: Any, length: Any, name: str) -> Play | None:
    """The play of a block in its guide, which needs a length."""
    if given is None:
        if length is not None:
            raise ValueError(f"joint {name!r} has no play that its length would matter to")
        return None
    play = given if isinstance(given, Play) else Play(as_float(given, f"the play of joint {name!r}"))
    if (length is None) == (play.length is None):
        raise ValueError(f"the play of joint {name!r} needs the length of its block, once")
    if length is None:
        return play
    length = _number(length, "length")
    return eqx.tree_at(lambda p: p.length, play, length, is_leaf=lambda x: x is None)


def _number(x: Any, what: str, most: float = np.inf) -> Float[Array, ""]:
    x = as_float(x, f"the {what} of a play")
    if x.ndim:
        raise ValueError(f"the {what} of a play must be a number, got shape {x.shape}")
    if is_concrete(x) and not 0 <= float(x) <= most:
        raise ValueError(f"the {what} of a play must not be {'negative' if x < 0 else f'above {most:.6g}'}, got {x}")
    return x
