"""A mechanism in a position, and at an instant."""

from typing import Any, NamedTuple

from jaxtyping import Array

from .._numerics.groups import AbstractPose
from .friction import FrictionForces, SlidingProblem
from .inertia import AbstractInertia


class Holding(NamedTuple):
    """The freedoms that joints are held in: what holds them is what these joints carry."""

    S: Array  # their twists,
    C: Array  # and their columns of C,
    slopes: Array  # of the slopes of the gaps,
    T: Array  # and of T


class Frame(NamedTuple):
    """What holds in a position, whatever the velocity."""

    q: Array
    X: AbstractPose
    S: Array  # twists of the freedoms
    C: Array  # all constraint rows, idle ones zero: loops, gauges, rigid contacts
    drift: Array  # C v + drift = 0
    residual: Array
    planes: Any  # of the profiles of all contacts,
    gaps: Array  # on their present elements
    spots: tuple[Array, Array]  # the local coordinates there
    slopes: Array
    inertia: AbstractInertia
    M: Array
    T: Array  # of the pairs with friction, their sliding speeds in the freedoms, scaled
    holding: Holding | None


class Instant(NamedTuple):
    """What holds at an instant."""

    frame: Frame
    v: Array  # velocities and
    a: Array  # accelerations of all freedoms
    lam: Array  # multipliers of the rows of C; for a contact its normal force
    press: Array  # the normal force of every contact, rigid or compliant
    gap_rates: Array  # of all contacts, on their present elements
    gap_rates_dot: Array
    p: Array  # momenta of the freedoms that are not driven, and the work that each friction has done,
    p_dot: Array
    q_dot: Array
    drive: Array  # what the drivers of coordinates push with
    scale: Array  # a typical generalized force, scaled as an energy
    sliding: SlidingProblem | None  # of the pairs with friction,
    friction: FrictionForces | None
