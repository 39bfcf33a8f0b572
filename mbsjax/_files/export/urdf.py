"""Mechanisms as URDF."""

import warnings
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from ..._model.force.spring import Spring
from ..._model.joint.spherical import FreePair
from ..._model.mechanism import GROUND, Mechanism
from .tree import Branch, add, inertia, left_out, negligible, text, tree


_KINDS = {"hinge": "continuous", "slide": "prismatic"}


def to_urdf(mech: Mechanism, *, cut: bool = False) -> str:
    """A mechanism as a URDF robot, the text of an XML file: an open chain of links and joints.

    **Arguments:**

    - `mech`: a [`mbsjax.Mechanism`][].
    - `cut`: URDF has no loops. With `cut`, the joints that close them are left out, and named by a warning and in a
        comment; without, they are an error. The tree is that of [`mbsjax.to_mujoco`][].

    Links and joints keep their names. Where a joint has several freedoms, there is a joint for each, with links
    between them of a billionth of the mass. Joints have no limits: hinges are `continuous`, slides go any way. URDF's
    joints are zero where those of the mechanism are. Damping on coordinates is written. Gravity, springs, contacts and
    other forces have no place in URDF and are named likewise; ball joints are an error.

    !!! Example

        >>> import mbsjax as mbs
        >>> bob = mbs.Body("bob", mass=1.0, center=(0.0, -2.0))
        >>> text = to_urdf(mbs.Mechanism([bob], [mbs.Revolute("O", "ground", "bob")]))
        >>> [line.strip() for line in text.splitlines() if "<joint" in line]
        ['<joint name="O" type="continuous">']
    """
    rest = np.concatenate([np.asarray(j.pair.rest, float) for j in mech.joints])
    found = tree(mech, rest)
    held = [g.name for g in mech.gauges if g.value is not None]
    loops = [*(f"joint {j.name!r}" for j in found.chords), *(f"gauge {name!r}" for name in held)]
    if loops and not cut:
        raise ValueError(f"URDF has no loops, and these close some: {', '.join(loops)}; cut=True leaves them out")
    root = ET.Element("robot", name="mechanism")
    add(root, "link", name=GROUND)
    coordinates = [s.coordinate for b in found.branches for s in b.steps]
    dampers = [f for f in mech.forces if _is_damper(f) and f.needs[0] in coordinates]
    origins = {GROUND: np.eye(4)}  # of links, in the frames of their bodies
    for branch in found.branches:
        origins[branch.body.name] = _branch(root, branch, mech, origins[branch.parent], dampers)
    forces = [f"force {f.name!r}" for f in mech.forces if f not in dampers]
    gravity = ["gravity"] if np.any(np.asarray(mech.gravity)) else []
    for name in left_out(mech, [*loops, *forces, *gravity], "URDF"):
        root.insert(0, ET.Comment(f" left out: {name} ".replace("--", "- -")))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _place(pose: np.ndarray) -> dict[str, str]:
    """Position, and roll, pitch and yaw: turns about fixed x, y and z."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where roll and yaw are about the same axis, one of them is zero
        angles = Rotation.from_matrix(pose[:3, :3]).as_euler("xyz")
    return {"xyz": text(pose[:3, 3]), "rpy": text(angles)}


def _is_damper(force: Any) -> bool:
    """Whether a force is a damping alone."""
    if not isinstance(force, Spring) or force.acts != "both" or callable(force.stiffness) or callable(force.damping):
        return False
    return not (float(force.stiffness) or float(force.preload))


def _branch(root: ET.Element, branch: Branch, mech: Mechanism, before: np.ndarray, dampers: list[Any]) -> np.ndarray:
    """The joints and links of a body, whose last link's frame in the body is returned; `before` is that of the body
    before it. A link has its origin where its joint is."""
    body, parent, last = branch.body.name, branch.parent, np.eye(4)
    origin = np.linalg.inv(before) @ branch.pose
    kinds = [(s.name, s.kind, s) for s in branch.steps]
    if isinstance(branch.joint.pair, FreePair):
        kinds = [(branch.joint.name, "floating", None)]
    if any(kind == "ball" for _, kind, _ in kinds):
        raise ValueError(f"joint {branch.joint.name!r} has a ball, which URDF does not know")
    for k, (name, kind, step) in enumerate(kinds or [(branch.joint.name, "fixed", None)]):
        link = body if k + 1 >= len(kinds) else f"{body}.{k}"
        joint = add(root, "joint", name=name, type=_KINDS.get(kind, kind))
        here = np.eye(4)
        here[:3, 3] = 0.0 if step is None else step.point
        add(joint, "origin", **_place(origin @ here if k == 0 else np.linalg.inv(last) @ here))
        add(joint, "parent", link=parent)
        add(joint, "child", link=link)
        if step is not None:
            add(joint, "axis", xyz=text(step.axis))
            damping = sum(float(f.damping) for f in dampers if f.needs[0] == step.coordinate)
            if damping:
                add(joint, "dynamics", damping=text(damping), friction="0")
        if kind == "slide":
            add(joint, "limit", lower="-1e9", upper="1e9", effort="1e9", velocity="1e9")
        if link != body:
            least, small = negligible(mech)
            _link(root, link, least, np.full(3, small), np.eye(4))
        parent, last = link, here
    mass, moments, axes = inertia(branch, mech)
    center = np.eye(4)
    center[:3, :3], center[:3, 3] = axes, np.asarray(branch.body.center)
    _link(root, body, mass, moments, np.linalg.inv(last) @ center)
    return last


def _link(root: ET.Element, name: str, mass: float, moments: np.ndarray, center: np.ndarray) -> None:
    node = add(add(root, "link", name=name), "inertial")
    add(node, "origin", **_place(center))
    add(node, "mass", value=text(mass))
    numbers = dict(zip(("ixx", "iyy", "izz"), map(text, moments)))
    add(node, "inertia", **numbers, ixy="0", ixz="0", iyz="0")
