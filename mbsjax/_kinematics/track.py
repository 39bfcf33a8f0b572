"""Reading positions, velocities and accelerations by name."""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from equinox import AbstractVar
from jaxtyping import Array, Float

from .. import frames
from .._model.gauge import AbstractGauge, to_dim
from .._model.mechanism import Mechanism
from .._numerics.groups import SE2, AbstractPose, one
from .._numerics.rates import derivatives_at_zero, moving_pose
from .._programs.batch import AbstractBatch, lane_by_lane
from .._programs.custom_types import Numbers
from .._programs.names import unknown
from .._programs.precision import as_float
from .._programs.reprs import by_fields
from .._programs.trees import once
from .mode import Mode
from .system import System, system


class Track(NamedTuple):
    """A quantity along a motion: its value `q`, its rate `v`, and the rate of that, `a`."""

    q: Array
    v: Array
    a: Array

    __repr__ = by_fields


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

    def __init__(self, mech: Mechanism, body: str, point: Numbers | str | None = None):
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
        place, at = to_dim(self.place, X), moving_pose(X, V, A)
        return Track(*derivatives_at_zero(lambda s: at(s).apply(place)))


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
        paths = [moving_pose(*body.moving(q, v, a)) for body in self.bodies]
        return Track(*derivatives_at_zero(lambda s: self.gauge.measure(*(at(s) for at in paths))))


def check_readable(mech: Mechanism, name: str) -> None:
    """Raises a KeyError where a name is none of what can be read, telling the names that are."""
    known = [*mech.coordinates, *(x.name for x in (*mech.gauges, *mech.contacts))]
    if name in known or name.partition(".")[0] in [j.name for j in mech.joints]:
        return
    raise KeyError(f"an unknown coordinate, gauge or contact {name!r}; there are {', '.join(map(repr, known))}")


def kind_of(mech: Mechanism, name: str) -> str:
    """What a name that can be read stands for, by the method that reads it."""
    if name in [gauge.name for gauge in mech.gauges]:
        return "gauge"
    return "contact" if name in [contact.name for contact in mech.contacts] else "coordinate"


def check_kind(mech: Mechanism, name: str, kind: str) -> None:
    """Raises a KeyError where a name is of another kind than the method that was called reads, telling which does."""
    if name in mech.links:
        raise KeyError(f"{name!r} is a body: read it with .point({name!r}) or .pose({name!r})")
    check_readable(mech, name)
    found = kind_of(mech, name)
    if found != kind:
        raise KeyError(f"{name!r} is a {found}: read it with .{found}({name!r})")


class AbstractPosition(AbstractBatch):
    """A mechanism in one position, read by name."""

    mech: AbstractVar[Mechanism]
    q: AbstractVar[Float[Array, " nq"]]

    @property
    def batch(self) -> tuple[int, ...]:
        return self.q.shape[:-1]

    @lane_by_lane
    def __getitem__(self, name: str) -> Array:
        """The coordinate(s) of a joint, one coordinate, the reading of a gauge, or q1, q2, q3 of a contact."""
        check_readable(self.mech, name)
        readers = {"gauge": self.gauge, "contact": self.contact, "coordinate": self.coordinate}
        return readers[kind_of(self.mech, name)](name)

    @lane_by_lane
    def coordinate(self, name: str) -> Array:
        """The coordinate(s) of a joint, or one of them: `"A"`, `"sleeve.travel"`."""
        check_kind(self.mech, name, "coordinate")
        value = self.q[jnp.array(self.mech.stored(name))]
        return value[0] if value.shape[0] == 1 else value

    @lane_by_lane
    def gauge(self, name: str) -> Array:
        """The reading of a gauge."""
        check_kind(self.mech, name, "gauge")
        return _read(GaugeReader(self.mech, name), self.q)

    @lane_by_lane
    def contact(self, name: str) -> Array:
        """q1, q2, q3 of a contact: the places on its two profiles, and the gap."""
        check_kind(self.mech, name, "contact")
        return _read(ContactReader(self.mech, name).coordinates, self.q)

    @lane_by_lane
    def point(self, body: str, point: Numbers | str | None = None) -> Array:
        """Where a point of a body stands in ground: coordinates in the body, or the name of a point."""
        return _read(PointReader(self.mech, body, point), self.q)

    @lane_by_lane
    def pose(self, body: str) -> Array:
        """The pose of a body in ground, a 4x4 matrix."""
        return _read(PoseReader(self.mech, body), self.q).matrix()


class Configuration(AbstractPosition):
    """A mechanism in a position."""

    mech: Mechanism
    q: Float[Array, " nq"]


@once
def _read(reader: Callable[[Array], Any], q: Array) -> Any:
    return reader(q)


class ContactTrack(NamedTuple):
    """A contact along a motion.

    - `q`, `v`, `a`: its coordinates q1, q2, q3 (columns): the places on the two profiles, each the number of an element
        and a local coordinate, and the gap; with their rates, one-sided where an element ends. Where there is no
        common normal the gap is infinite. Of a contact that is restricted to some elements, or of an open profile, the
        only common normals may lead through a body: the gap is negative then, and the contact does not close.
    - `active`: whether it is active.
    - `point`, `normal`: the place on the first profile, and the common normal, out of the first body, in ground.
    """

    q: Array
    v: Array
    a: Array
    active: Array
    point: Array
    normal: Array

    @property
    def gap(self) -> Array:
        return self.q[..., 2]

    __repr__ = by_fields


class ContactReader(eqx.Module):
    """The coordinates of a contact."""

    system: System
    number: int = eqx.field(static=True)
    bodies: tuple[PoseReader, PoseReader]

    def __init__(self, mech: Mechanism, name: str):
        contact = mech.contact(name)
        self.system, self.number = system(mech), mech.contacts.index(contact)
        self.bodies = PoseReader(mech, contact.body_a), PoseReader(mech, contact.body_b)

    def coordinates(self, q: Array) -> Array:
        """q1, q2, q3 of the closest elements, where the coordinates are q."""
        contact = self.system.contact(self.number)
        near = contact.closest_pair(contact.relative(*contact.planes(*(body(q) for body in self.bodies))))
        return jnp.stack([near.e1 + near.s1, near.e2 + near.s2, near.gap])

    def __call__(self, q: Array, v: Array, a: Array, mode: Mode) -> ContactTrack:
        k, contact = self.number, self.system.contact(self.number)
        poses, *twists = zip(*(body.moving(q, v, a) for body in self.bodies))
        moving = list(zip(contact.planes(*poses), *twists))
        paths = [moving_pose(*each) for each in moving]
        near, on = contact.closest_pair(contact.relative(*(P for P, _, _ in moving))), mode.active[k]
        pairs = zip(mode.places, near)
        e1, e2, s1, s2 = (jnp.where(on, mine[k], there) for mine, there in pairs)

        def coordinates(s: Array) -> Array:
            found = contact.common_normal(contact.relative(*(at(s) for at in paths)), e1, e2, s1, s2)
            return jnp.stack([e1 + found.s1, e2 + found.s2, found.gap])

        value, rate, second_rate = derivatives_at_zero(coordinates)
        apart = ~on & ~jnp.isfinite(near.gap)
        value = jnp.where(apart, jnp.stack([jnp.nan, jnp.nan, jnp.inf]), value)
        point, normal = contact.spot(moving[0][0], moving[1][0], e1, value[0] - e1)
        return ContactTrack(value, rate, second_rate, on, point, normal)
