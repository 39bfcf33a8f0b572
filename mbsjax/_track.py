"""Reading positions, velocities and accelerations by name."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from . import frames
from ._gauge import AbstractGauge, to_dim
from ._groups import SE2, AbstractPose, one
from ._mechanism import Mechanism, unknown
from ._precision import as_float
from ._system import System, drifted, second, system


class Track(NamedTuple):
    """A quantity along a motion: its value `q`, its rate `v`, and the rate of that, `a`."""

    q: Array
    v: Array
    a: Array


class AbstractReader(eqx.Module):
    """Something to read of a mechanism: at rest from the coordinates, along a motion with its rates."""

    @abc.abstractmethod
    def __call__(self, q: Array) -> Any:
        """The value where the coordinates are q."""

    @abc.abstractmethod
    def track(self, q: Array, v: Array, a: Array) -> Track:
        """The value and its rates, where the freedoms move with v and a."""


class PoseReader(eqx.Module):
    """The pose of a body."""

    system: System
    number: int = eqx.field(static=True)

    def __init__(self, mech: Mechanism, body: str):
        if body not in mech.links:
            raise ValueError(unknown("body", body, mech.links))
        self.system = system(mech)
        self.number = self.system.layout.body_numbers[body]

    def __call__(self, q: Array) -> AbstractPose:
        return one(self.system.poses(q), self.number)

    def moving(self, q: Array, v: Array, a: Array) -> tuple[AbstractPose, Array, Array]:
        """The pose, the twist in ground, and the rate of the twist."""
        X, V, A = self.system.rates(q, v, a)
        way = self.system.layout.paths[self.number]
        return one(X, self.number), jnp.sum(way * V, -1), jnp.sum(way * A, -1)


class TurnReader(AbstractReader):
    """The orientation of a body: an angle in the plane, Euler parameters in space; the rates are the angular
    velocity and acceleration in ground."""

    body: PoseReader

    def __init__(self, mech: Mechanism, body: str):
        self.body = PoseReader(mech, body)

    def __call__(self, q: Array) -> Array:
        X = self.body(q)
        return X.angle if isinstance(X, SE2) else frames.quaternion(X.matrix()[:3, :3])

    def track(self, q: Array, v: Array, a: Array) -> Track:
        X, V, A = self.body.moving(q, v, a)
        if isinstance(X, SE2):
            return Track(X.angle, V[0], A[0])
        return Track(frames.quaternion(X.matrix()[:3, :3]), V[:3], A[:3])


class PointReader(AbstractReader):
    """The position in ground of a point of a body."""

    body: PoseReader
    place: Array

    def __init__(self, mech: Mechanism, body: str, point: Any = None):
        self.body = PoseReader(mech, body)
        dim = 2 if mech.planar else 3
        if isinstance(point, str):
            points = mech.body(body).points
            if point not in points:
                raise ValueError(unknown(f"point of body {body!r}", point, list(points)))
            point = points[point]
        self.place = jnp.zeros(dim) if point is None else as_float(point, f"a point of body {body!r}")
        if self.place.shape not in ((2,), (3,)) or self.place.shape[0] > dim:
            raise ValueError(f"a point of body {body!r} must be {dim} numbers, got {point!r}")

    def __call__(self, q: Array) -> Array:
        X = self.body(q)
        return X.apply(to_dim(self.place, X))

    def track(self, q: Array, v: Array, a: Array) -> Track:
        X, V, A = self.body.moving(q, v, a)
        return Track(*second(lambda s: (lambda Y: Y.apply(to_dim(self.place, Y)))(drifted(X, V, A, s))))


class GaugeReader(AbstractReader):
    """The reading of a gauge."""

    bodies: tuple[PoseReader, ...]
    gauge: AbstractGauge

    def __init__(self, mech: Mechanism, name: str):
        self.gauge = mech.gauge(name)
        self.bodies = tuple(PoseReader(mech, body) for body in self.gauge.bodies)

    def __call__(self, q: Array) -> Array:
        return self.gauge.measure(*(body(q) for body in self.bodies))

    def track(self, q: Array, v: Array, a: Array) -> Track:
        moving = [body.moving(q, v, a) for body in self.bodies]
        return Track(*second(lambda s: self.gauge.measure(*(drifted(X, V, A, s) for X, V, A in moving))))


class Configuration(eqx.Module):
    """A mechanism in a position."""

    mech: Mechanism
    q: Float[Array, " nq"]

    def __getitem__(self, name: str) -> Array:
        if name in [g.name for g in self.mech.gauges]:
            return _read(GaugeReader(self.mech, name), self.q)
        value = self.q[jnp.array(self.mech.stored(name))]
        return value[0] if value.shape[0] == 1 else value

    def point(self, body: str, point: Any = None) -> Array:
        return _read(PointReader(self.mech, body, point), self.q)

    def pose(self, body: str) -> Array:
        return _read(PoseReader(self.mech, body), self.q).matrix()


@eqx.filter_jit
def _read(reader: Callable[[Array], Any], q: Array) -> Any:
    return reader(q)
