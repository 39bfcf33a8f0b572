"""A mechanism: bodies, joints, contacts, gauges, forces, by name. Every number is a leaf, structure is static."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .. import frames
from .._programs.custom_types import Numbers
from .._programs.modules import AbstractModule
from .._programs.names import unknown
from .._programs.precision import as_float, numpy_of
from .body import Body, point3
from .force.base import AbstractForce
from .gauge import AbstractGauge
from .joint.clearance import ELEMENTS, Clearance
from .joint.contact import Contact, allowed_elements
from .joint.joint import Joint, coordinate_names
from .points import has_names
from .printing import printed
from .profile.profile import Profile
from .topology import Topology, topology
from .units import Units


GROUND = "ground"


class Mechanism(AbstractModule):
    """Bodies connected by joints, one of them `"ground"`.

    **Arguments:**

    - `bodies`: the moving bodies. `Body("ground", ...)` may be among them, to carry points and profiles.
    - `joints`: what connects them, articulated joints and contacts; the order is that of the coordinates.
    - `gauges`: scalars to read, to drive, or, where they have a value, to hold.
    - `forces`: springs, actuators and loads; see [`mbsjax.Spring`][], [`mbsjax.Actuator`][], [`mbsjax.Load`][].
    - `gravity`: the acceleration of free fall, two or three numbers; none by default.
    - `planar`: whether to solve the mechanism in the plane, with three equations a loop instead of
        six. By default it is planar if every joint and every gauge was described in the plane (points
        as pairs of numbers).
    - `units`: those of all its numbers, an [`mbsjax.Units`][] or its words: `{"length": "mm", "mass": "kg"}`. They
        label tables, pictures and pages; nothing is computed with them.

    A mechanism is a PyTree: any function of it can be differentiated with respect to any number in it.

    !!! Example

        >>> import mbsjax as mbs
        >>> pendulum = mbs.Mechanism([mbs.Body("bob")], [mbs.Revolute("O", "ground", "bob")])
        >>> pendulum.coordinates
        ('O',)
    """

    bodies: tuple[Body, ...]
    _joints: tuple[Joint, ...]  # as they were given, with names of points where they have some
    contacts: tuple[Contact | Clearance, ...]
    _gauges: tuple[AbstractGauge, ...]
    _forces: tuple[AbstractForce, ...]
    gravity: Float[Array, "3"]
    planar: bool = eqx.field(static=True)
    units: Units | None = eqx.field(static=True)
    _by_name: bool = eqx.field(static=True)  # whether there are names of points

    def __init__(
        self,
        bodies: Iterable[Any],
        joints: Iterable[Any],
        gauges: Iterable[Any] = (),
        *,
        forces: Iterable[Any] = (),
        gravity: Numbers = (0.0, 0.0, 0.0),
        planar: bool | None = None,
        units: Units | Mapping[str, str] | None = None,
    ):
        joints = tuple(joints)
        self.bodies, self._gauges, self._forces = tuple(bodies), tuple(gauges), tuple(forces)
        self.gravity = point3(gravity, "the gravity of a mechanism")
        self.units = Units.of(units)
        self._joints = tuple(j for j in joints if not isinstance(j, Contact | Clearance))
        self.contacts = tuple(j for j in joints if isinstance(j, Contact | Clearance))
        for members, kind, what in (
            (self.bodies, Body, "bodies"),
            (self._joints, Joint, "joints"),
            (self._gauges, AbstractGauge, "gauges"),
            (self._forces, AbstractForce, "forces"),
        ):
            for member in members:
                if not isinstance(member, kind):
                    raise ValueError(f"{what} of a mechanism must be a {kind.__name__}, got {member!r}")
        self._by_name = has_names((self._joints, self._gauges, self._forces))
        self._check_names()
        self._check_profiles()
        self._check_forces()
        own = [need for force in self.forces for need in force.needs if isinstance(need, AbstractGauge)]
        culprits = [x.name for x in (*self.joints, *self.gauges, *own) if not x.planar]
        culprits += [c.name for c in self.contacts if not self._flat(c)]
        if planar and culprits:
            raise ValueError(
                f"the mechanism cannot be planar: {culprits[0]!r} is described in space (give its points as pairs)"
            )
        if planar is None:
            planar = not culprits
        self.planar = planar
        for gauge in self.gauges:
            if not planar and gauge.dimension == 0:
                raise ValueError(
                    f"angle {gauge.name!r} needs a planar mechanism, and {culprits or 'this one'} is spatial"
                )
        if self.topology.unreached:
            raise ValueError(
                f"body {self.topology.unreached[0]!r} is not connected with ground by joints; "
                "a body that floats needs a Planar or a Free joint to ground"
            )

    def _check_names(self) -> None:
        seen: dict[str, str] = {GROUND: "the ground"}
        groups = (
            ("body", self.bodies),
            ("joint", self._joints),
            ("contact", self.contacts),
            ("gauge", self._gauges),
            ("force", self._forces),
        )
        for what, members in groups:
            for member in members:
                other = seen.get(member.name)
                if other is not None and not (what == "body" and other == "the ground"):
                    both = f"a {what} and {other}" if other != f"a {what}" else f"more than one {what}"
                    raise ValueError(f"the name {member.name!r} is given to {both}")
                seen[member.name] = f"a {what}"
        for joint in self._joints:
            for body in (joint.body_a, joint.body_b):
                if body not in self.links:
                    raise ValueError(f"joint {joint.name!r} names {unknown('body', body, self.links)}")
        for contact in self.contacts:
            for body in (contact.body_a, contact.body_b):
                if body not in self.links:
                    raise ValueError(f"contact {contact.name!r} names {unknown('body', body, self.links)}")
        for gauge in self._gauges:
            for body in gauge.bodies:
                if body not in self.links:
                    raise ValueError(f"gauge {gauge.name!r} names {unknown('body', body, self.links)}")

    def _check_profiles(self) -> None:
        for contact in self.contacts:
            if isinstance(contact, Clearance):
                continue
            if contact.moves is not None and contact.moves not in self.coordinates:
                what = unknown("coordinate", contact.moves, self.coordinates)
                raise ValueError(f"contact {contact.name!r} moves {what}")
            for side, body, profile in (
                ("a", contact.body_a, contact.profile_a),
                ("b", contact.body_b, contact.profile_b),
            ):
                known = list(self.body(body).profiles)
                if profile not in known:
                    what = unknown(f"profile of body {body!r}", profile, known)
                    raise ValueError(f"contact {contact.name!r} names {what}")
                given = contact.elements_a if side == "a" else contact.elements_b
                what = f"elements_{side} of contact {contact.name!r}"
                allowed_elements(self.body(body).profiles[profile], given, what)

    def _check_forces(self) -> None:
        gauges = [g.name for g in self._gauges]
        for force in self._forces:
            for need in force.needs:
                if isinstance(need, AbstractGauge):
                    missing = [b for b in need.bodies if b not in self.links]
                    if missing:
                        raise ValueError(f"{force.name!r} names {unknown('body', missing[0], self.links)}")
                elif need not in (*self.coordinates, *gauges):
                    what = unknown("coordinate or gauge", need, [*self.coordinates, *gauges])
                    raise ValueError(f"{force.name!r} names {what}")
            for body in force.bodies:
                if body not in self.links:
                    raise ValueError(f"{force.name!r} names {unknown('body', body, self.links)}")

    def profiles(self, contact: Contact) -> tuple[Profile, Profile]:
        """The two profiles of a contact."""
        return (
            self.body(contact.body_a).profiles[contact.profile_a],
            self.body(contact.body_b).profiles[contact.profile_b],
        )

    def element_kinds(self, contact: Contact | Clearance) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What the two sides of a contact are made of, element by element."""
        if isinstance(contact, Clearance):
            walls, inside = ELEMENTS[contact.kind]
            return walls, (inside,)
        first, second = self.profiles(contact)
        return first.kinds, second.kinds

    def element_names(self, contact: Contact | Clearance) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What the elements of the two sides of a contact are called: by their names, or their kind and number."""
        plain = [tuple(f"{kind} {i}" for i, kind in enumerate(kinds)) for kinds in self.element_kinds(contact)]
        if isinstance(contact, Clearance):
            return plain[0], plain[1]
        first, second = (own.labels if own.names else told for own, told in zip(self.profiles(contact), plain))
        return first, second

    def _flat(self, contact: Contact | Clearance) -> bool:
        if isinstance(contact, Clearance):
            return contact.planar
        return all(isinstance(p.frame, frames.PlanarFrame) for p in self.profiles(contact))

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The articulated joints."""
        return self._located(self._joints)

    @property
    def gauges(self) -> tuple[AbstractGauge, ...]:
        """The scalars to read, to drive or to hold."""
        return self._located(self._gauges)

    @property
    def forces(self) -> tuple[AbstractForce, ...]:
        """Springs, actuators and loads."""
        return self._located(self._forces)

    def _located(self, members: tuple[Any, ...]) -> tuple[Any, ...]:
        """Members with coordinates where they have names of points; as they were given, as long as the coordinates are
        no numbers: while a tree is looked through, or where there are many of them, one for each variant."""
        points = [p for body in self.bodies for p in body.points.values()] if self._by_name else []
        if not self._by_name or any(not isinstance(p, jax.Array | np.ndarray) or p.ndim != 1 for p in points):
            return members
        return tuple(member.located(self._point) for member in members)

    def _point(self, body: str, name: str, what: str) -> Array:
        if body not in self.links:
            raise ValueError(f"{what} names {unknown('body', body, self.links)}")
        points = self.body(body).points
        if name not in points:
            raise ValueError(f"{what} names {unknown(f'point of body {body!r}', name, list(points))}")
        return points[name]

    @property
    def as_given(self) -> tuple[tuple[Joint, ...], tuple[AbstractGauge, ...], tuple[AbstractForce, ...]]:
        """Joints, gauges and forces with the names of points that they were given."""
        return self._joints, self._gauges, self._forces

    def replaced(self, **members: tuple[Any, ...]) -> "Mechanism":
        """The same mechanism with other `joints`, `contacts` or `forces`, as many or none."""
        names = [name if name == "contacts" else f"_{name}" for name in members]
        return eqx.tree_at(lambda m: [getattr(m, name) for name in names], self, list(members.values()))

    @property
    def links(self) -> tuple[str, ...]:
        """The names of the bodies, ground first."""
        return (GROUND, *(b.name for b in self.bodies if b.name != GROUND))

    @property
    def topology(self) -> Topology:
        """The graph of the mechanism: tree, chords, loops."""
        return topology(self.links, [(j.name, j.body_a, j.body_b) for j in self._joints])

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The names of all freedoms, joint by joint: `"O"`, or `"sleeve.angle"` where there are several."""
        return tuple(name for j in self._joints for name in coordinate_names(j))

    @property
    def start(self) -> Float[Array, " nq"]:
        """The estimate of all stored coordinates that the joints carry."""
        starts = [j.start for j in self._joints]
        return jnp.asarray(numpy_of(*starts).concatenate(starts))

    def body(self, name: str) -> Body:
        """The body of this name.

        !!! Example

            >>> import mbsjax as mbs
            >>> mech = mbs.Mechanism([mbs.Body("bob", mass=2.0)], [mbs.Revolute("O", "ground", "bob")])
            >>> mech.body("bob").mass.item()
            2.0
        """
        return find("body", name, (*self.bodies, *(() if GROUND in [b.name for b in self.bodies] else (Body(GROUND),))))

    def joint(self, name: str) -> Joint:
        """The joint of this name.

        !!! Example

            >>> import mbsjax as mbs
            >>> mech = mbs.Mechanism([mbs.Body("bob")], [mbs.Revolute("O", "ground", "bob")])
            >>> mech.joint("O").body_b
            'bob'
        """
        return self._located((find("joint", name, self._joints),))[0]

    def contact(self, name: str) -> Contact | Clearance:
        """The contact joint of this name.

        !!! Example

            >>> import mbsjax as mbs
            >>> disc = mbs.Profile.chain([mbs.Circle((0.0, 0.0), 1.0)])
            >>> bodies = [mbs.Body("ground", profiles={"peg": disc}), mbs.Body("bob", profiles={"rim": disc})]
            >>> joints = [mbs.Planar("float", "ground", "bob"), mbs.Contact("C", "ground.peg", "bob.rim")]
            >>> mbs.Mechanism(bodies, joints).contact("C").body_b
            'bob'
        """
        return find("contact", name, self.contacts)

    def gauge(self, name: str) -> AbstractGauge:
        """The gauge of this name.

        !!! Example

            >>> import mbsjax as mbs
            >>> height = mbs.Offset("height", "ground", "bob", axis=(0.0, 1.0))
            >>> mech = mbs.Mechanism([mbs.Body("bob")], [mbs.Revolute("O", "ground", "bob")], [height])
            >>> mech.gauge("height").dimension
            1
        """
        return self._located((find("gauge", name, self._gauges),))[0]

    def estimate(self, given: Mapping[str, Any] | Array | None = None) -> Float[Array, " nq"]:
        """All stored coordinates as one array: those given by name, the others from the joints' `start`.

        Names are those of joints (all stored numbers of the joint) or of single coordinates.

        !!! Example

            >>> import mbsjax as mbs
            >>> mech = mbs.Mechanism([mbs.Body("bob")], [mbs.Revolute("O", "ground", "bob")])
            >>> mech.estimate({"O": 0.5}).tolist()
            [0.5]
        """
        q = self.start
        if given is None:
            return q
        if not isinstance(given, Mapping):
            given = as_float(given, "the estimate")
            if given.shape != q.shape:
                raise ValueError(f"the estimate must hold {q.shape[0]} numbers, got shape {given.shape}")
            return given
        for name, value in given.items():
            value = as_float(value, f"the estimate of {name!r}")
            places = self.stored(name)
            if value.size != len(places):
                raise ValueError(f"the estimate of {name!r} must hold {len(places)} number(s), got {value.size}")
            q = q.at[jnp.array(places)].set(value.reshape(-1))
        return q

    def given(self, estimate: Mapping[str, Any] | Array | None = None) -> tuple[int, ...]:
        """The freedoms that an estimate is given for: by name, by all numbers, or by the joint's `start`.

        !!! Example

            >>> import mbsjax as mbs
            >>> joints = [mbs.Revolute("O", "ground", "a"), mbs.Prismatic("P", "a", "b", start=1.0)]
            >>> mech = mbs.Mechanism([mbs.Body("a"), mbs.Body("b")], joints)
            >>> mech.given(), mech.given({"O": 0.5})
            ((1,), (0, 1))
        """
        if estimate is not None and not isinstance(estimate, Mapping):
            return tuple(range(len(self.coordinates)))
        names = [*(j.name for j in self._joints if j.given), *(estimate or ())]
        return tuple(sorted({i for name in names for i in self.freedoms(name)}))

    def stored(self, name: str) -> tuple[int, ...]:
        """The places in q of a joint, or of one coordinate of it.

        !!! Example

            >>> import mbsjax as mbs
            >>> mech = mbs.Mechanism([mbs.Body("bob")], [mbs.Planar("float", "ground", "bob")])
            >>> mech.stored("float"), mech.stored("float.x")
            ((0, 1, 2), (1,))
        """
        joint, coordinate = self._address(name)
        start = sum(len(j.pair.rest) for j in self._joints[: self._joints.index(joint)])
        if coordinate is None:
            return tuple(range(start, start + len(joint.pair.rest)))
        slot = joint.pair.slots[coordinate]
        if slot is None:
            raise ValueError(f"{name!r} is a rotation stored as a quaternion: give all of joint {joint.name!r}")
        return (start + slot,)

    def freedoms(self, name: str) -> tuple[int, ...]:
        """The places among all freedoms of a joint, or of one coordinate of it.

        !!! Example

            >>> import mbsjax as mbs
            >>> mech = mbs.Mechanism([mbs.Body("bob")], [mbs.Spherical("ball", "ground", "bob")])
            >>> mech.stored("ball"), mech.freedoms("ball")
            ((0, 1, 2, 3), (0, 1, 2))
        """
        joint, coordinate = self._address(name)
        start = sum(len(j.pair.coordinates) for j in self._joints[: self._joints.index(joint)])
        if coordinate is None:
            return tuple(range(start, start + len(joint.pair.coordinates)))
        return (start + coordinate,)

    def _address(self, name: str) -> tuple[Joint, int | None]:
        """The joint, and the number of its coordinate, that a name means."""
        joint, _, coordinate = name.partition(".")
        joint = find("joint", joint, self._joints)
        if not coordinate:
            return joint, None
        if coordinate not in joint.pair.coordinates:
            raise ValueError(unknown("coordinate", name, [f"{joint.name}.{c}" for c in joint.pair.coordinates]))
        return joint, joint.pair.coordinates.index(coordinate)

    def __repr__(self) -> str:
        return printed(self)

    __str__ = __repr__


def find(what: str, name: str, members: Sequence[Any]) -> Any:
    for member in members:
        if member.name == name:
            return member
    raise ValueError(unknown(what, name, [m.name for m in members]))
