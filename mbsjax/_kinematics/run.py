"""What motions and simulations have in common: reading by name, and tables of what there is to read."""

import abc
from typing import Any, Generic, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from equinox import AbstractVar
from jaxtyping import Array, Float

from .._events.log import Events, Log, times_of
from .._model.mechanism import Mechanism
from .._programs.batch import lane_by_lane, single
from .._programs.custom_types import Numbers
from .._programs.precision import as_float, known
from .._programs.trees import once
from .table import AbstractTable
from .track import (
    AbstractReader,
    Configuration,
    GaugeReader,
    PointReader,
    PoseReader,
    Track,
    TurnReader,
    check_kind,
    check_readable,
    kind_of,
)


_Contact = TypeVar("_Contact")  # what a contact is read as


def output_times(ts: Any) -> Float[Array, " times"]:
    """A row of output times, at least one."""
    ts = as_float(ts, "the output times")
    if ts.ndim != 1 or ts.shape[0] == 0:
        raise ValueError(f"the output times must be a row of at least one number, got shape {ts.shape}")
    return ts


class AbstractRun(AbstractTable, Generic[_Contact]):
    """A mechanism along a row of output times. Of a batch made by `jax.vmap`, what is read by name has the axes of the
    batch first, and `run.lane(i)` is one run."""

    mech: AbstractVar[Mechanism]
    ts: AbstractVar[Float[Array, " times"]]
    q: AbstractVar[Float[Array, "times nq"]]
    v: AbstractVar[Float[Array, "times nv"]]
    a: AbstractVar[Float[Array, "times nv"]]
    events: AbstractVar[Events | Log | None]

    @abc.abstractmethod
    def contact(self, name: str) -> _Contact:
        """What there is to read of a contact."""

    @abc.abstractmethod
    def sources(self) -> list[str]:
        """The names of what makes events, in the order in which its log counts them."""

    @abc.abstractmethod
    def more(self) -> dict[str, Any]:
        """Further columns of its table."""

    @property
    def batch(self) -> tuple[int, ...]:
        return self.q.shape[:-2]

    @lane_by_lane
    def __getitem__(self, name: str) -> Track | _Contact:
        """A coordinate, a gauge or a contact, whichever has this name. Where an editor is to know which, there are
        `coordinate`, `gauge` and `contact`."""
        check_readable(self.mech, name)
        kind = kind_of(self.mech, name)
        if kind == "contact":
            return self.contact(name)
        return self.gauge(name) if kind == "gauge" else self.coordinate(name)

    @lane_by_lane
    def coordinate(self, name: str) -> Track:
        """Position, velocity and acceleration of a joint, or of one of its coordinates: `"A"`, `"sleeve.travel"`.

        !!! Example

            >>> import mbsjax as mbs
            >>> crank = mbs.Mechanism([mbs.Body("crank")], [mbs.Revolute("A", "ground", "crank")])
            >>> motion = mbs.kinematics(crank, {"A": mbs.constant_speed(2.0)}, jnp.array([0.0, 0.5]))
            >>> motion.coordinate("A").q.tolist(), motion.coordinate("A").v.tolist()
            ([0.0, 1.0], [2.0, 2.0])
            >>> motion.contact("A")
            Traceback (most recent call last):
            KeyError: "'A' is a coordinate: read it with .coordinate('A')"
        """
        check_kind(self.mech, name, "coordinate")
        stored, free = np.array(self.mech.stored(name)), np.array(self.mech.freedoms(name))
        track = (known(self.q)[:, stored], known(self.v)[:, free], known(self.a)[:, free])
        return Track(*(jnp.asarray(x[:, 0] if x.shape[1] == 1 else x) for x in track))

    @lane_by_lane
    def gauge(self, name: str) -> Track:
        """The reading of a gauge, with its rates.

        !!! Example

            The distance to a point of a slide at (0, 3), which moves from 0 to 4.

            >>> import mbsjax as mbs
            >>> slide = mbs.Mechanism([mbs.Body("slide")], [mbs.Prismatic("P", "ground", "slide")],
            ...                       [mbs.Distance("d", "ground", "slide", None, (0.0, 3.0))])
            >>> motion = mbs.kinematics(slide, {"P": mbs.constant_speed(4.0)}, jnp.array([0.0, 1.0]))
            >>> motion.gauge("d").q.round(9).tolist(), motion.gauge("d").v.round(9).tolist()
            ([3.0, 5.0], [0.0, 3.2])
        """
        check_kind(self.mech, name, "gauge")
        return self._read(GaugeReader(self.mech, name))

    @lane_by_lane
    def point(self, body: str, point: Numbers | str | None = None) -> Track:
        """Position, velocity and acceleration in ground of a point of a body: coordinates in the body,
        or the name of a point; its origin by default."""
        return self._read(PointReader(self.mech, body, point))

    @lane_by_lane
    def orientation(self, body: str) -> Track:
        """A body's orientation (an angle in the plane, Euler parameters in space), with its angular velocity
        and acceleration in ground."""
        return self._read(TurnReader(self.mech, body))

    @lane_by_lane
    def pose(self, body: str) -> Float[Array, "times 4 4"]:
        """The pose of a body in ground as 4x4 matrices."""
        return _poses(PoseReader(self.mech, body), self.q)

    def event_times(self, name: str, kind: str) -> Float[Array, "*batch events"]:
        """When events of a kind happened to a contact (or to a joint with friction, a switch of a force, a trigger):
        one of [`mbsjax.EVENTS`][]. There is room for `max_events`: times in order, then `inf`. They have derivatives.

        !!! Example

            A ball falls from a height of 1, and keeps half of its speed when it bounces. Its first impact is at
            `sqrt(2/g)`, which grows by half of that for each unit of height.

            >>> import jax, mbsjax as mbs
            >>> floor = mbs.Profile.chain([mbs.Line((1.0, 0.0), (-1.0, 0.0))], closed=False)
            >>> ball = mbs.Mechanism(
            ...     [mbs.Body("ground", profiles={"floor": floor}),
            ...      mbs.Body("ball", mass=1.0, profiles={"rim": mbs.disc(0.1)})],
            ...     [mbs.Prismatic("y", "ground", "ball", axis=(0.0, 1.0)),
            ...      mbs.Contact("C", "ground.floor", "ball.rim", restitution=0.5)],
            ...     gravity=(0.0, -9.81))
            >>> def first(height):
            ...     start = mbs.state(ball, {"y": 0.1 + height})
            ...     return mbs.simulate(ball, start, 0.6, max_steps=64, max_events=4).event_times("C", "impact")[0]
            >>> [round(float(x), 8) for x in jax.jvp(first, (1.0,), (1.0,))]
            [0.45152364, 0.22576182]
        """
        return times_of(self.events, self.sources(), name, kind)

    @lane_by_lane
    def at(self, i: int) -> Configuration:
        """The position at output time number `i`."""
        n = self.q.shape[0]
        if not -n <= i < n:
            raise IndexError(f"there is no output time number {i}: there are {n}")
        return Configuration(self.mech, self.q[i])

    def _read(self, reader: AbstractReader) -> Track:
        return _tracks(reader, self.q, self.v, self.a)

    def columns(self) -> dict[str, np.ndarray]:
        """All there is to read by name, a column each: `t`; `A.q`, `A.v`, `A.a` of every coordinate and gauge; of
        rotations in space their Euler parameters `ball.e0`, ...; of points of interest `rod.E.x`, ...; of contacts
        `C.gap`, `C.active`, `C.force`; of contacts and joints with friction `C.friction`, `C.sliding`, `C.sticks`."""
        single(self, "a table can be made")
        found: dict[str, Any] = {"t": self.ts}
        for joint in self.mech.joints:
            rows = self.mech.stored(joint.name)
            told = {slot: c for c, slot in zip(joint.pair.coordinates, joint.pair.slots) if slot is not None}
            for k, row in enumerate(rows):
                name = f"{joint.name}.{told[k]}" if k in told and len(joint.pair.coordinates) > 1 else joint.name
                found[f"{name}.q" if k in told else f"{joint.name}.e{k}"] = self.q[:, row]
        for rate, values in (("v", self.v), ("a", self.a)):
            found |= {f"{name}.{rate}": values[:, k] for k, name in enumerate(self.mech.coordinates)}
        for gauge in self.mech.gauges:
            found |= {f"{gauge.name}.{rate}": x for rate, x in zip("qva", self.gauge(gauge.name))}
        for body in self.mech.bodies:
            for point in body.points:
                rows = self.point(body.name, point).q.T
                found |= {f"{body.name}.{point}.{axis}": row for axis, row in zip("xyz", rows)}
        for contact in self.mech.contacts:
            track: Any = self.contact(contact.name)
            found |= {f"{contact.name}.q{k + 1}": track.q[:, k] for k in range(2)}
            found |= {f"{contact.name}.gap": track.gap, f"{contact.name}.active": track.active}
            if hasattr(track, "force"):
                found[f"{contact.name}.force"] = track.force
        return {name: np.asarray(x) for name, x in (found | self.more()).items()}


@once
def _tracks(reader: AbstractReader, q: Array, v: Array, a: Array) -> Track:
    return jax.vmap(reader.track)(q, v, a)


@once
def _poses(reader: PoseReader, q: Array) -> Array:
    return jax.vmap(lambda q: reader(q).matrix())(q)
