"""Laws of compliant contact: the normal force as a function of how deep two bodies overlap, and how fast that grows."""

import abc

import jax.numpy as jnp
from jaxtyping import Array, Float

from .._programs.custom_types import Number
from .._programs.modules import AbstractModule
from .._programs.precision import as_float, number, positive
from .._programs.reprs import by_fields


class AbstractContactLaw(AbstractModule):
    """A compliant contact."""

    @abc.abstractmethod
    def force(self, depth: Float[Array, ""], rate: Float[Array, ""], approach: Float[Array, ""]) -> Float[Array, ""]:
        """The normal force; `approach` is the speed at which the contact closed."""

    __repr__ = by_fields


class Hertz(AbstractContactLaw):
    """`stiffness depth^exponent`: elastic, nothing is lost.

    !!! Example

        >>> Hertz(2.0).force(jnp.array(4.0), jnp.array(1.0), jnp.array(1.0)).item()
        16.0
    """

    stiffness: Float[Array, ""]
    exponent: Float[Array, ""]

    def __init__(self, stiffness: Number, exponent: Number = 1.5):
        self.stiffness = positive(stiffness, "the stiffness of a contact")
        self.exponent = positive(exponent, "the exponent of a contact")

    def force(self, depth: Array, rate: Array, approach: Array) -> Array:
        return self.stiffness * _power(depth, self.exponent)


class KelvinVoigt(AbstractContactLaw):
    """`stiffness depth + damping rate`, where that is not negative: bodies do not pull.

    !!! Example

        >>> KelvinVoigt(2.0, 0.5).force(jnp.array(4.0), jnp.array(1.0), jnp.array(1.0)).item()
        8.5
    """

    stiffness: Float[Array, ""]
    damping: Float[Array, ""]

    def __init__(self, stiffness: Number, damping: Number = 0.0):
        self.stiffness = positive(stiffness, "the stiffness of a contact")
        self.damping = number(damping, "the damping of a contact", least=0.0)

    def force(self, depth: Array, rate: Array, approach: Array) -> Array:
        drag = self.damping * rate
        force = self.stiffness * depth + drag
        # the spring alone goes on beyond the surface, where steps end that end on it: a cut would be a kink there
        return jnp.where((force < 0) & (drag < 0), 0.0, force)


class HuntCrossley(AbstractContactLaw):
    """`(stiffness + hysteresis rate) depth^exponent` (thesis 3.5.3): continuous where bodies meet and part.

    !!! Example

        >>> HuntCrossley(2.0, 0.5).force(jnp.array(4.0), jnp.array(1.0), jnp.array(1.0)).item()
        20.0
    """

    stiffness: Float[Array, ""]
    hysteresis: Float[Array, ""]
    exponent: Float[Array, ""]

    def __init__(self, stiffness: Number, hysteresis: Number, exponent: Number = 1.5):
        self.stiffness = positive(stiffness, "the stiffness of a contact")
        self.exponent = positive(exponent, "the exponent of a contact")
        self.hysteresis = number(hysteresis, "the hysteresis of a contact", least=0.0)

    def force(self, depth: Array, rate: Array, approach: Array) -> Array:
        return (self.stiffness + self.hysteresis * rate) * _power(depth, self.exponent)


class LankaraniNikravesh(AbstractContactLaw):
    """Hunt and Crossley's law with the hysteresis that, at the approach speed v of each impact, loses about what a
    restitution e loses: 3 stiffness (1 - e^2) / (4 v).

    !!! Example

        >>> LankaraniNikravesh(4.0, 0.0).force(jnp.array(1.0), jnp.array(1.0), jnp.array(3.0)).item()
        5.0
    """

    stiffness: Float[Array, ""]
    restitution: Float[Array, ""]
    exponent: Float[Array, ""]

    def __init__(self, stiffness: Number, restitution: Number, exponent: Number = 1.5):
        self.stiffness = positive(stiffness, "the stiffness of a contact")
        self.exponent = positive(exponent, "the exponent of a contact")
        self.restitution = number(restitution, "the restitution of a contact", least=0.0, most=1.0)

    def force(self, depth: Array, rate: Array, approach: Array) -> Array:
        moving = approach > 0
        hysteresis = 3 * self.stiffness * (1 - self.restitution**2) / (4 * jnp.where(moving, approach, 1.0))
        return (self.stiffness + jnp.where(moving, hysteresis, 0.0) * rate) * _power(depth, self.exponent)


def equivalent_restitution(stiffness: Number, hysteresis: Number, approach: Number) -> Float[Array, ""]:
    """The restitution that Hunt and Crossley's law amounts to at an approach speed: e = sqrt(1 - 4 mu v / (3 k))
    (3.5.3-1), good for e near 1.

    !!! Example

        >>> equivalent_restitution(4.0, 0.27, 1.0).item()
        0.9539392014169457
    """
    k, mu, v = (as_float(x, "a number of a contact law") for x in (stiffness, hysteresis, approach))
    return jnp.sqrt(1 - 4 * mu * v / (3 * k))


def _power(depth: Array, exponent: Array) -> Array:
    deep = depth > 0
    return jnp.where(deep, jnp.where(deep, depth, 1.0) ** exponent, 0.0)
