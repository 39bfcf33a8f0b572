"""A mechanism as other programs describe it: a tree of bodies with hinges, slides and balls, and closed loops."""

import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from ..._model.body import Body
from ..._model.joint.base import AbstractPair
from ..._model.joint.composite import CompositePair
from ..._model.joint.fixed import FixedPair
from ..._model.joint.joint import Joint, coordinate_names
from ..._model.joint.planar import PinSlotPair, PlanarPair
from ..._model.joint.prismatic import PrismaticPair
from ..._model.joint.revolute import RevolutePair
from ..._model.joint.screw import CylindricalPair
from ..._model.joint.spherical import FreePair, SphericalPair
from ..._model.joint.universal import UniversalPair
from ..._model.mechanism import Mechanism
from ..._model.topology import topology
from ..._numerics.groups import SE3


X, Y, Z = np.eye(3)
_TILT = np.array([[1.0, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0], [0, 0, 0, 1]])  # between the axes of a universal joint
_STEPS: dict[type[AbstractPair], list[tuple[str, np.ndarray, int]]] = {  # motions in a row; of which stored number
    FixedPair: [],
    RevolutePair: [("hinge", Z, 0)],
    PrismaticPair: [("slide", Z, 0)],
    CylindricalPair: [("slide", Z, 1), ("hinge", Z, 0)],
    PlanarPair: [("slide", X, 1), ("slide", Y, 2), ("hinge", Z, 0)],
    PinSlotPair: [("slide", X, 1), ("hinge", Z, 0)],
    SphericalPair: [("ball", Z, 0)],
    FreePair: [("slide", X, 4), ("slide", Y, 5), ("slide", Z, 6), ("ball", Z, 0)],
    UniversalPair: [("hinge", Z, 0), ("hinge", Z, 1)],
}
CLOSING = (RevolutePair, SphericalPair, FixedPair)  # the joints that can close a loop


class Step(NamedTuple):
    """A motion of a body against the one before: about or along `axis` at `point`, both in the frame of the body where
    it stands at `value`."""

    name: str
    kind: str  # "hinge", "slide" or "ball"
    axis: np.ndarray
    point: np.ndarray
    value: float
    coordinate: str | None  # of the mechanism, if it is one


class Branch(NamedTuple):
    """A body in the tree: its pose in the body before, and how it moves there."""

    body: Body
    parent: str
    joint: Joint
    pose: np.ndarray
    steps: list[Step]


class Tree(NamedTuple):
    """Bodies, those before them first, and the joints that close loops."""

    branches: list[Branch]
    chords: list[Joint]


def tree(mech: Mechanism, q: np.ndarray) -> Tree:
    """The tree of a mechanism where its stored coordinates are q. Joints with springs are in it, if they can be."""
    for joint in mech.joints:
        if not _written(joint.pair):
            raise ValueError(
                f"joint {joint.name!r} is a {joint.pair.kind} joint, which cannot be written: leave it out, and add it "
                "by hand"
            )
    pulled = {need.partition(".")[0] for f in mech.forces for need in f.needs if isinstance(need, str)}
    firmly = lambda j: (isinstance(j.pair, CLOSING), j.name not in pulled)
    kept = _spanning(mech.links, sorted(mech.joints, key=firmly))
    chords = [j for j in mech.joints if j.name not in kept]
    for joint in chords:
        if not isinstance(joint.pair, CLOSING):
            raise ValueError(
                f"joint {joint.name!r} closes a loop without revolute, spherical or fixed joints: it cannot be written"
            )
    inside = [j for j in mech.joints if j.name in kept]
    graph = topology(mech.links, [(j.name, j.body_a, j.body_b) for j in inside])
    found = []
    for joint, parent, child in (row for generation in graph.generations for row in generation):
        mine, name = inside[joint], mech.links[child]
        pose, steps = _moves(mine, q[list(mech.stored(mine.name))], forward=mine.body_b == name)
        found.append(Branch(mech.body(name), mech.links[parent], mine, pose, steps))
    return Tree(found, chords)


def text(x: Any) -> str:
    """Numbers as they stand in XML, to the last digit."""
    return " ".join("0" if v == 0 else repr(float(v)).removesuffix(".0") for v in np.ravel(np.asarray(x)))


def add(parent: ET.Element, tag: str, **attributes: str) -> ET.Element:
    """A node in a node."""
    return ET.SubElement(parent, tag, attributes)


def quaternion(R: np.ndarray) -> str:
    return text(Rotation.from_matrix(R).as_quat(canonical=True, scalar_first=True))


def seats(joint: Joint) -> tuple[np.ndarray, np.ndarray]:
    """The frames of a joint in its bodies."""
    a, b = (np.asarray(x.matrix()) for x in joint.seats(SE3))
    return a, b


def inertia(branch: Branch, mech: Mechanism) -> tuple[float, np.ndarray, np.ndarray]:
    """The mass of a body, its principal moments about the center, and their axes as columns. Other programs have no
    bodies without mass: a billionth of the largest in the mechanism stands for it."""
    body, J = branch.body, np.asarray(branch.body.inertia)
    least, small = negligible(mech)
    moments, axes = (np.diagonal(J), np.eye(3)) if not np.any(J - np.diag(np.diagonal(J))) else np.linalg.eigh(J)
    moments = np.maximum(moments, small)
    a, b, c = np.sort(moments)
    if a + b < c * (1 - 1e-12):
        if not mech.planar:
            raise ValueError(f"no body has the inertia of body {body.name!r}, and other programs refuse it")
        moments, axes = J[2, 2] * np.array([0.5, 0.5, 1.0]), np.eye(3)  # in the plane the last one counts alone
    return max(float(body.mass), least), moments, axes * np.sign(np.linalg.det(axes))


def negligible(mech: Mechanism) -> tuple[float, float]:
    """A mass and a moment of inertia that are as good as none."""
    places = [x[:3, 3] for j in mech.joints for x in seats(j)]
    mass = 1e-9 * (max((float(b.mass) for b in mech.bodies), default=0.0) or 1.0)
    return mass, mass * (float(np.abs(places).max(initial=0.0)) or 1.0) ** 2


def left_out(mech: Mechanism, forces: list[str], program: str) -> list[str]:
    """What cannot be written, told by a warning too."""
    rubbing = [f"the friction of joint {j.name!r}" for j in mech.joints if j.friction is not None]
    found = [*(f"contact {c.name!r}" for c in mech.contacts), *rubbing, *forces]
    if found:
        warnings.warn(f"{program} has no counterpart of these, which are left out: {', '.join(found)}", stacklevel=3)
    return found


def _written(pair: AbstractPair) -> bool:
    return all(map(_written, pair.pairs)) if isinstance(pair, CompositePair) else type(pair) in _STEPS


def _spanning(links: Iterable[str], joints: list[Joint]) -> set[str]:
    """The names of joints that make a tree, taken in their order (Kruskal)."""
    group = {link: link for link in links}

    def root(link: str) -> str:
        while group[link] != link:
            link = group[link]
        return link

    kept = set()
    for joint in joints:
        a, b = root(joint.body_a), root(joint.body_b)
        if a != b:
            group[b] = a
            kept.add(joint.name)
    return kept


def _row(pair: AbstractPair, q: np.ndarray) -> list[tuple[Any, Any, Any]]:
    """A pair as motions and fixed matrices in a row: (kind, axis, stored numbers), or ("fixed", matrix, None)."""
    if isinstance(pair, CompositePair):
        sizes = [len(p.rest) for p in pair.pairs]
        starts = np.cumsum([0, *sizes])
        found = _row(pair.pairs[0], q[: sizes[0]])
        for link, inner, start, size in zip(pair.links, pair.pairs[1:], starts[1:], sizes[1:]):
            found += [("fixed", np.asarray(link), None), *_row(inner, q[start : start + size])]
        return found
    row = [(kind, axis, q[k : k + 4] if kind == "ball" else q[k]) for kind, axis, k in _STEPS[type(pair)]]
    if isinstance(pair, UniversalPair):
        row.insert(1, ("fixed", _TILT, None))
    return row


def _moves(joint: Joint, q: np.ndarray, *, forward: bool) -> tuple[np.ndarray, list[Step]]:
    """The pose of a body in the one before it, where the joint between them stands at q, and its motions from there.
    Backward, the joint's first body follows its second: motions are taken in the other order, their axes turned."""
    (A, B), row = seats(joint), _row(joint.pair, q)
    if not forward:
        A, B = B, A
        row = [(k, np.linalg.inv(x) if k == "fixed" else -x, v) for k, x, v in reversed(row)]
    after = np.linalg.inv(B)
    moves = []
    for kind, axis, value in reversed(row):
        if kind != "fixed":
            back = np.linalg.inv(after)
            moves.insert(0, (kind, back[:3, :3] @ axis, back[:3, 3], value))
        after = _motion(kind, axis, value, forward) @ after
    names = _names(joint, [m[0] for m in moves], forward)
    steps = [
        Step(name, kind, axis, point, 0.0 if kind == "ball" else float(value), coordinate)
        for (name, coordinate), (kind, axis, point, value) in zip(names, moves)
    ]
    return A @ after, steps


def _motion(kind: str, axis: np.ndarray, value: Any, forward: bool) -> np.ndarray:
    if kind == "fixed":
        return axis
    X = np.eye(4)
    if kind == "slide":
        X[:3, 3] = axis * value
    elif kind == "hinge":
        X[:3, :3] = Rotation.from_rotvec(axis * value).as_matrix()
    else:
        R = Rotation.from_quat(value, scalar_first=True).as_matrix()
        X[:3, :3] = R if forward else R.T
    return X


def _names(joint: Joint, kinds: list[str], forward: bool) -> list[tuple[str, str | None]]:
    """A name for each motion, and the coordinate of the mechanism that it is."""
    if len(kinds) == 1:
        return [(joint.name, joint.name if kinds[0] != "ball" else None)]
    if isinstance(joint.pair, CompositePair):
        return [(f"{joint.name}.{k}", None) for k in range(len(kinds))]
    own, slots = coordinate_names(joint), joint.pair.slots
    of = {slot: name for slot, name in zip(slots, own) if slot is not None}
    row = [(of.get(k, f"{joint.name}.rotation"), of.get(k)) for _, _, k in _STEPS[type(joint.pair)]]
    return row if forward else row[::-1]
