"""What an element of a contact profile is: a curve over [0, 1] with the body's material on its left."""

import abc
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from equinox import AbstractVar
from jaxtyping import Array, Float

from ..._programs.modules import AbstractModule
from ..._programs.precision import as_float
from ..._programs.reprs import by_fields
from ...frames import PlanarFrame


class Place(NamedTuple):
    """A place on a profile.

    - `position`: in the frame of the profile.
    - `angle`: of the direction of travel, from x; the material lies to its left.
    - `curvature`: of the boundary, positive where it is convex; infinite at a corner.
    """

    position: Float[Array, "2"]
    angle: Float[Array, ""]
    curvature: Float[Array, ""]

    @property
    def tangent(self) -> Float[Array, "2"]:
        """The direction of travel."""
        return jnp.stack([jnp.cos(self.angle), jnp.sin(self.angle)])

    @property
    def normal(self) -> Float[Array, "2"]:
        """Out of the material, to the right of the direction of travel."""
        return jnp.stack([jnp.sin(self.angle), -jnp.cos(self.angle)])

    @property
    def frame(self) -> PlanarFrame:
        """The contact frame: y along the outward normal (2.4.3)."""
        return PlanarFrame(self.position[0], self.position[1], self.angle + jnp.pi)

    __repr__ = by_fields


class AbstractElement(AbstractModule):
    """A piece of a boundary. Called with a local coordinate from 0 to 1, it gives a [`mbsjax.Place`][]."""

    @abc.abstractmethod
    def __call__(self, s: Float[Array, ""] | float) -> Place:
        """The place with the local coordinate `s`."""

    @property
    def kind(self) -> str:
        """What it is called in logs and tables: `"line"`, `"arc"`; one of the user's own is a curve."""
        return "curve"

    __repr__ = by_fields


class Row(NamedTuple):
    """Points, lines, arcs and circles in one formula: position = base + radius n(angle) + length s t(angle), where
    angle = start + turn s. A point has neither radius nor length, a line no turn, an arc no length. The radius of a
    concave arc is negative."""

    x: Array
    y: Array
    radius: Array
    start: Array
    turn: Array
    length: Array


class AbstractPlain(AbstractElement):
    """An element of constant curvature: contacts between two of these have a closed form. `concave` tells whether its
    material is outside of its circle."""

    concave: AbstractVar[bool]

    @abc.abstractmethod
    def row(self) -> Row:
        """Its numbers in the common formula."""

    def __call__(self, s: Float[Array, ""] | float) -> Place:
        return place_on(self.row(), jnp.asarray(s, float))


def place_on(row: Row, s: Float[Array, "*many"]) -> Place:
    """The place on an element with the local coordinate s, or those on many."""
    angle = row.start + row.turn * s
    c, sn = jnp.cos(angle), jnp.sin(angle)
    position = jnp.stack([row.x + row.radius * sn + row.length * s * c, row.y - row.radius * c + row.length * s * sn])
    flat = row.length != 0
    sharp = row.radius == 0
    curvature = jnp.where(flat, 0.0, jnp.where(sharp, jnp.inf, 1 / jnp.where(flat | sharp, 1.0, row.radius)))
    return Place(position, angle, curvature)


class AbstractCurve(AbstractElement):
    """A smooth curve: contacts on it are found by Newton's method. `samples` tells how many points of it show its shape
    well enough to begin a search from."""

    samples: AbstractVar[int]

    @abc.abstractmethod
    def position(self, s: Float[Array, ""]) -> Float[Array, "2"]:
        """The point with the local coordinate `s`."""

    def __call__(self, s: Float[Array, ""] | float) -> Place:
        s = jnp.asarray(s, float)
        one = jnp.ones_like(s)
        p, (d, dd) = self.position(s), velocity_and_acceleration(self.position, s, one)
        speed = jnp.sqrt(jnp.sum(d * d))
        return Place(p, jnp.arctan2(d[1], d[0]), (d[0] * dd[1] - d[1] * dd[0]) / speed**3)


def right_of(t: Float[Array, "2 *many"]) -> Float[Array, "2 *many"]:
    """A direction, turned clockwise by a right angle: the outward normal, where it is that of travel."""
    return jnp.stack([t[1], -t[0]])


def tangent(curve: Callable[[Array], Array], s: Array) -> tuple[Float[Array, "2"], Float[Array, "2"]]:
    """A point of a curve, and the direction of travel there."""
    p, v = jax.jvp(curve, (s,), (jnp.ones_like(s),))
    return p, v / jnp.sqrt(jnp.sum(v * v))


def velocity_and_acceleration(f, s: Array, one: Array) -> tuple[Array, Array]:
    return jax.jvp(lambda x: jax.jvp(f, (x,), (one,))[1], (s,), (one,))


def point_of(given, what: str) -> Float[Array, "2"]:
    p = as_float(given, what)
    if p.shape != (2,):
        raise ValueError(f"{what} must be a pair of numbers, got {given!r}")
    return p
