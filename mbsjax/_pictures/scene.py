"""What there is to see of a mechanism: the outlines, links and joints of its bodies, in their own frames."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .. import frames
from .._kinematics.system import System, system
from .._model.gauge import Distance
from .._model.joint.clearance import Clearance
from .._model.joint.contact import Contact
from .._model.joint.joint import Joint
from .._model.mechanism import Mechanism
from .._numerics.groups import SE2, SE3
from .._programs.trees import once
from ..frames import PlanarFrame


class Outlined(NamedTuple):
    """A profile of a body: its points, `(n, dim)`, and whether the last is followed by the first."""

    name: str
    points: np.ndarray
    closed: bool


class Mark(NamedTuple):
    """A joint as seen on one of its bodies: where its frame is, and the direction of its axis (of a slide, of its
    travel) there."""

    joint: str
    kind: str
    place: np.ndarray
    axis: np.ndarray


class Shape(NamedTuple):
    """A body to draw, in its own frame. A body without outlines is seen as the `skeleton` of lines between its
    joints and points."""

    body: str
    outlines: list[Outlined]
    marks: list[Mark]
    points: dict[str, np.ndarray]
    ends: list[np.ndarray]  # of rods: of distances that are held

    @property
    def skeleton(self) -> np.ndarray:
        """The places of joints and points of interest, those that are farthest apart first and last."""
        places = [m.place for m in self.marks] + list(self.points.values()) + self.ends
        every = np.unique(np.round(np.array(places), 12), axis=0) if places else np.zeros((0, 2))
        if len(every) < 3:
            return every
        apart = np.linalg.norm(every[:, None] - every[None], axis=2)
        i, j = np.unravel_index(int(apart.argmax()), apart.shape)
        along = (every - every[i]) @ (every[j] - every[i])
        return every[np.argsort(along)]


def shapes(mech: Mechanism, fineness: int = 2) -> list[Shape]:
    """Every body of a mechanism, ground first."""
    dim = 2 if mech.planar else 3
    found = []
    for name in mech.links:
        body = mech.body(name)
        outlines = [
            Outlined(key, placed(p.points(fineness), p.frame, dim), p.closed) for key, p in body.profiles.items()
        ]
        marks = [
            mark(mech, joint, side)
            for joint in mech.joints
            for side, owner in (("a", joint.body_a), ("b", joint.body_b))
            if owner == name
        ]
        points = {key: np.resize([*np.asarray(p), 0.0], dim) for key, p in body.points.items()}
        ends = [
            np.resize([*np.asarray(place), 0.0], dim)
            for gauge in mech.gauges
            if isinstance(gauge, Distance) and gauge.value is not None
            for owner, place in zip(gauge.bodies, (gauge.point_a, gauge.point_b))
            if owner == name
        ]
        found.append(Shape(name, outlines, marks, points, ends))
    return found


def poses(mech: Mechanism, q: Any) -> np.ndarray:
    """The poses in ground of all bodies, ground first, for rows of coordinates: `(rows, bodies, 4, 4)`."""
    plan = system(mech)
    order = [plan.layout.body_numbers[name] for name in mech.links]
    return np.asarray(_poses(plan, jnp.asarray(q)))[:, order]


@once
def _poses(plan: System, q: Array) -> Array:
    return jax.vmap(lambda q: plan.poses(q).matrix())(q)


def mark(mech: Mechanism, joint: Joint, side: str) -> Mark:
    """How a joint looks on one of its bodies, `"a"` or `"b"`."""
    frame = joint.frame_a if side == "a" else joint.frame_b
    kind = joint.pair.kind
    X = np.asarray(joint.placed(frame, SE2 if mech.planar else SE3).matrix())
    if not mech.planar:
        return Mark(joint.name, kind, X[:3, 3], X[:3, 2])
    return Mark(joint.name, kind, X[:2, 3], X[:2, 0])  # the x axis: that of a slide


def placed(points: np.ndarray, frame: PlanarFrame | object, dim: int) -> np.ndarray:
    """Points of a profile in the frame of its body."""
    X = np.asarray(frames.embed(frame) if isinstance(frame, PlanarFrame) else frame)
    flat = np.concatenate([points, np.zeros((len(points), 1))], 1)
    return (flat @ X[:3, :3].T + X[:3, 3])[:, :dim]


def tangents(mech: Mechanism, contact: Contact | Clearance, turned: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """The directions in which the first profile of a contact is drawn, where the normals out of it are known, `(rows,
    dim)`, and how its body is turned, `(rows, 3, 3)`."""
    if normal.shape[1] == 2:
        return np.stack([-normal[:, 1], normal[:, 0]], 1)
    frame = contact.frame_a if isinstance(contact, Clearance) else mech.profiles(contact)[0].frame
    X = np.asarray(frames.embed(frame) if isinstance(frame, PlanarFrame) else frame)
    return np.cross(turned @ X[:3, 2], normal)
