"""Dry friction, of contacts and of joints: how large a force resists sliding, and how large a one prevents it."""

from typing import Any, Literal

import equinox as eqx
from equinox import AbstractVar
from jaxtyping import Array, Float

from .._programs.custom_types import Number
from .._programs.modules import AbstractModule
from .._programs.precision import number, positive, value
from .._programs.reprs import by_fields


class AbstractFriction(AbstractModule):
    """Dry friction, as numbers: the law, which [`mbsjax.Coulomb`][] tells, is the same for all."""

    sliding: AbstractVar[Float[Array, ""]]
    static: AbstractVar[Float[Array, ""] | None]
    stribeck: AbstractVar[Float[Array, ""] | None]
    viscous: AbstractVar[Float[Array, ""] | None]

    __repr__ = by_fields


class Coulomb(AbstractFriction):
    """Friction in a contact. The force that resists sliding at a speed w is `coefficient(w) N + viscous w`, where N is
    the normal force; what sticks is held by up to `static N`.

    The coefficient is `sliding`, and, where a speed `stribeck` is given, it falls from `static` to `sliding` as
    `exp(-|w| / stribeck)`. Without it, the force jumps when something that stuck begins to slide.

    **Arguments:**

    - `sliding`, `static`: the coefficients; the same, if one is given.
    - `stribeck`: the sliding speed over which the one falls to the other.
    - `viscous`: a resistance for each unit of sliding speed, beside that.

    !!! Example

        >>> Coulomb(0.25, static=0.35).static.item()
        0.35
    """

    sliding: Float[Array, ""]
    static: Float[Array, ""] | None
    stribeck: Float[Array, ""] | None
    viscous: Float[Array, ""] | None

    def __init__(
        self,
        sliding: Number,
        static: Number | None = None,
        *,
        stribeck: Number | None = None,
        viscous: Number | None = None,
    ):
        self.sliding, self.static, self.stribeck, self.viscous = _checked(sliding, static, stribeck, viscous)


class JointFriction(AbstractFriction):
    """Friction in a joint, from what the joint carries.

    - A hinge: the moment `mu radius |F|`, where F is the force on its pin (the friction circle).
    - A slide: the force `mu (|N1| + |N2|)`, where N1 and N2 are the forces on the two ends of a guide of `length`:
        together they make the lateral force and the tilting moment. Without a length, that of the lateral force alone.
    - A screw: the force `mu N` along its thread at the mean `radius`, N at right angles to the thread.

    **Arguments:**

    - `sliding`, `static`, `stribeck`, `viscous`: as in [`mbsjax.Coulomb`][]; speeds are those of the joint's
        coordinate.
    - `radius`: of the pin, or the thread.
    - `length`: of the guide of a slide, `guide` whose middle is at the joint's frame on body_a, or on body_b.

    !!! Example

        >>> JointFriction(0.14, radius=5.0).radius.item()
        5.0
    """

    sliding: Float[Array, ""]
    static: Float[Array, ""] | None
    stribeck: Float[Array, ""] | None
    viscous: Float[Array, ""] | None
    radius: Float[Array, ""] | None
    length: Float[Array, ""] | None
    guide: str = eqx.field(static=True)

    def __init__(
        self,
        sliding: Number,
        static: Number | None = None,
        *,
        radius: Number | None = None,
        length: Number | None = None,
        guide: Literal["a", "b"] = "a",
        stribeck: Number | None = None,
        viscous: Number | None = None,
    ):
        self.sliding, self.static, self.stribeck, self.viscous = _checked(sliding, static, stribeck, viscous)
        self.radius = None if radius is None else positive(radius, "the radius of a friction")
        self.length = None if length is None else positive(length, "the length of a friction")
        if guide not in ("a", "b"):
            raise ValueError(f'the guide of a friction must be on body "a" or "b", got {guide!r}')
        self.guide = guide


class DryTorque(AbstractFriction):
    """A given resistance in a joint, whatever it carries, as of a seal or a preloaded bearing: a torque for a hinge, a
    force for a slide or a screw.

    **Arguments:** as those of [`mbsjax.Coulomb`][], `sliding` and `static` the torque or force itself.

    !!! Example

        >>> DryTorque(0.2).sliding.item()
        0.2
    """

    sliding: Float[Array, ""]
    static: Float[Array, ""] | None
    stribeck: Float[Array, ""] | None
    viscous: Float[Array, ""] | None

    def __init__(
        self,
        sliding: Number,
        static: Number | None = None,
        *,
        stribeck: Number | None = None,
        viscous: Number | None = None,
    ):
        self.sliding, self.static, self.stribeck, self.viscous = _checked(sliding, static, stribeck, viscous)


def contact_friction(given: Any, what: str) -> Coulomb | None:
    """The friction of a contact, as it is given: a coefficient, or a law. `what` names it."""
    if given is None or isinstance(given, Coulomb):
        return given
    if isinstance(given, AbstractFriction):
        raise ValueError(f"{what} must be a number or a Coulomb, got {given!r}")
    return Coulomb(number(given, what, least=0.0))


def joint_friction(
    given: Any, name: str, *, needs: tuple[str, ...] = (), takes: tuple[str, ...] = ()
) -> AbstractFriction | None:
    """The friction of a joint. Of the dimensions of a [`mbsjax.JointFriction`][] it `needs` some and `takes` others."""
    if given is None or isinstance(given, DryTorque):
        return given
    if not isinstance(given, JointFriction):
        raise ValueError(f"the friction of joint {name!r} must be a JointFriction or a DryTorque, got {given!r}")
    for dimension in ("radius", "length"):
        there = getattr(given, dimension) is not None
        if dimension in needs and not there:
            raise ValueError(f"the friction of joint {name!r} needs a {dimension}")
        if there and dimension not in (*needs, *takes):
            raise ValueError(f"the friction of joint {name!r} has no use for a {dimension}")
    return given


def _checked(sliding: Any, static: Any, stribeck: Any, viscous: Any) -> tuple:
    mu = number(sliding, "the sliding coefficient of a friction", least=0.0)
    most = None if static is None else number(static, "the static coefficient of a friction", least=0.0)
    speed = None if stribeck is None else positive(stribeck, "the Stribeck speed of a friction")
    slope = None if viscous is None else number(viscous, "the viscous part of a friction", least=0.0)
    if most is not None and value(most) < value(mu):
        raise ValueError(
            f"the static coefficient of a friction must not be less than the sliding one, got {static} < {sliding}"
        )
    if speed is not None and most is None:
        raise ValueError("a friction with a Stribeck speed needs a static coefficient")
    return mu, most, speed, slope
