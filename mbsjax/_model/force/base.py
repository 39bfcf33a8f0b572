"""What a force is: something that, at an instant, works on the freedoms of a mechanism."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from equinox import AbstractVar
from jaxtyping import Array, Float

from ..._numerics.groups import AbstractPose, one
from ..._programs.custom_types import Numbers
from ..._programs.modules import AbstractModule
from ..._programs.reprs import brief, by_fields
from ..gauge import AbstractGauge, to_dim
from ..points import Find


class Reading(NamedTuple):
    """A quantity at an instant, and its rate."""

    q: Array
    v: Array

    __repr__ = by_fields


class Moment(AbstractModule):
    """A mechanism at an instant: what forces and triggers are functions of.

    `at["A"]` is the [`mbsjax.Reading`][] (`.q`, `.v`) of a coordinate or gauge, `at.point("rod", (1.0, 0.0))` that of a
    point in ground, `at.t` the time.
    """

    t: Float[Array, "*lanes"]
    q: Float[Array, "nq *lanes"]
    v: Float[Array, "nv *lanes"]
    X: AbstractPose
    S: Float[Array, "rows nv *lanes"]
    gauges: tuple[AbstractGauge, ...]
    layout: Any = eqx.field(static=True)  # who stands where
    names: tuple[tuple[str, ...], tuple[str, ...]] = eqx.field(static=True)  # of the freedoms and the gauges

    def __getitem__(self, name: str) -> Reading:
        value, row = self.along(name)
        return Reading(value, jnp.sum(row * self.v))

    def point(self, body: str, point: Numbers = (0.0, 0.0)) -> Reading:
        """Where a point of a body is in ground, and how fast it moves."""
        number = self.layout.body_numbers[body]
        X = one(self.X, number)
        place = to_dim(jnp.asarray(point, float), X)
        V = jnp.sum(self.layout.paths[number] * self.S * self.v, -1)
        return Reading(X.apply(place), X.carried(V).apply(place))

    def along(self, what: Any) -> tuple[Float[Array, ""], Float[Array, " nv"]]:
        """The value of a coordinate or gauge, and its derivative in the freedoms."""
        coordinates, gauges = self.names
        if isinstance(what, str) and what in coordinates:
            j = coordinates.index(what)
            return self.q[self.layout.slots[j]], jnp.zeros(self.S.shape[1]).at[j].set(1.0)
        if isinstance(what, str) and what not in gauges:
            known = ", ".join(map(repr, (*coordinates, *gauges)))
            raise KeyError(f"an unknown coordinate or gauge {what!r}; there are {known}")
        gauge = self.gauges[gauges.index(what)] if isinstance(what, str) else what
        numbers = [self.layout.body_numbers[name] for name in gauge.bodies]
        poses = [one(self.X, number) for number in numbers]

        value, slopes = jax.value_and_grad(lambda poses: gauge.measure(*poses))(poses)
        wrenches = jnp.stack([X.wrench(slope) for X, slope in zip(poses, slopes, strict=True)])
        return value, jnp.sum(self.layout.paths[numbers] * jnp.sum(wrenches[:, :, None] * self.S[None], 1), 0)

    def push(self, body: str, wrench: Float[Array, " rows"]) -> Float[Array, " nv"]:
        """What a wrench in ground on a body does to the freedoms."""
        return self.layout.paths[self.layout.body_numbers[body]] * jnp.sum(wrench[:, None] * self.S, 0)

    def __repr__(self) -> str:
        return brief(self, t=self.t, q=self.q, v=self.v)


class AbstractForce(AbstractModule):
    """A force of any kind. Where its formula changes with the state, it has switches: their sides are held while the
    motion is integrated, and change where one passes zero, at an event."""

    name: AbstractVar[str]

    @property
    @abc.abstractmethod
    def needs(self) -> tuple[Any, ...]:
        """The coordinates and gauges it acts along, by name; or gauges of its own."""

    @property
    @abc.abstractmethod
    def bodies(self) -> tuple[str, ...]:
        """The bodies it acts on, by name."""

    @property
    @abc.abstractmethod
    def n_switches(self) -> int:
        """How many switches it has."""

    @abc.abstractmethod
    def switches(self, at: Moment) -> Float[Array, " n"]:
        """Functions whose signs decide on the formula."""

    @abc.abstractmethod
    def act(self, at: Moment, sides: Float[Array, " n"]) -> Float[Array, " nv"]:
        """The generalized forces; `sides` are the signs of the switches."""

    @abc.abstractmethod
    def strength(self, at: Moment, sides: Float[Array, " n"]) -> Float[Array, ""]:
        """How strong it is, one number: a tension, a push, or the size of a force."""

    @abc.abstractmethod
    def potential(self, at: Moment, sides: Float[Array, " n"]) -> Float[Array, ""]:
        """The energy stored in it; zero for what stores none."""

    def located(self, find: Find) -> "AbstractForce":
        """The force with coordinates where it has names of points."""
        return self

    __repr__ = by_fields
