"""Mechanisms as MuJoCo's XML."""

import xml.etree.ElementTree as ET
from typing import Any

import numpy as np

from ..._model.force.spring import Actuator, Spring
from ..._model.gauge import AbstractGauge, Distance
from ..._model.joint.fixed import FixedPair
from ..._model.joint.joint import Joint
from ..._model.joint.revolute import RevolutePair
from ..._model.joint.spherical import FreePair
from ..._model.mechanism import GROUND, Mechanism
from ..._pictures.mechanism import view
from .tree import Branch, add, inertia, left_out, quaternion, seats, text, tree


def to_mujoco(what: Any, *, timestep: float = 1e-3) -> str:
    """A mechanism as a model of MuJoCo, the text of an XML file.

    **Arguments:**

    - `what`: a [`mbsjax.Mechanism`][], to be assembled, or a position of one (an [`mbsjax.Assembly`][],
        `motion.at(3)`): MuJoCo's model begins there.
    - `timestep`: of MuJoCo. Loops are closed by constraints that are soft over two steps: a smaller one makes them
        stiffer.

    Bodies and joints keep their names, and the positions of hinges and slides their values; of a joint with several
    freedoms there is a MuJoCo joint for each. Revolute, spherical and fixed joints that close loops become `connect`
    and `weld`, distances that are held become tendons of fixed length. Springs with numbers on coordinates of the
    tree become `stiffness`, `springref` and `damping` there, those on distances become tendons. Contacts, friction,
    loads and forces that are functions are left out, and named by a warning and in a comment. Bodies without mass
    have a billionth of the largest one.

    !!! Example

        >>> import mbsjax as mbs
        >>> bob = mbs.Body("bob", mass=1.0, center=(0.0, -2.0))
        >>> text = to_mujoco(mbs.Mechanism([bob], [mbs.Revolute("O", "ground", "bob")], gravity=(0.0, -9.81)))
        >>> [line.strip() for line in text.splitlines() if "joint" in line]
        ['<joint name="O" type="hinge" axis="0 0 1" pos="0 0 0" ref="0" />']
    """
    seen = view(what)
    mech = seen.mech
    found = tree(mech, seen.q[0])
    root = ET.Element("mujoco", model="mechanism")
    add(root, "compiler", angle="radian", autolimits="true")
    add(root, "option", gravity=text(mech.gravity), timestep=text(timestep), integrator="RK4")
    bodies = {GROUND: add(root, "worldbody")}
    joints: dict[str, ET.Element] = {}
    for branch in found.branches:
        bodies[branch.body.name] = _body(bodies[branch.parent], branch, mech, joints)
    groups = {name: add(root, name) for name in ("tendon", "equality", "actuator")}
    stiff = {"solref": f"{text(2 * timestep)} 1", "solimp": "0.9999 0.9999 0.001 0.5 2"}
    for joint in found.chords:
        _closed(joint, bodies, groups["equality"], mech.planar, stiff)
    for gauge in mech.gauges:
        if gauge.value is not None:
            _tendon(gauge, gauge.name, bodies, groups["tendon"])
            add(groups["equality"], "tendon", tendon1=gauge.name, **stiff)
    forces = [f"force {f.name!r}" for f in mech.forces if not _force(f, mech, joints, bodies, groups)]
    for name in left_out(mech, forces, "MuJoCo"):
        root.insert(0, ET.Comment(f" left out: {name} ".replace("--", "- -")))
    for group in groups.values():
        if not len(group):
            root.remove(group)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _place(pose: np.ndarray) -> dict[str, str]:
    return {"pos": text(pose[:3, 3]), "quat": quaternion(pose[:3, :3])}


def _body(parent: ET.Element, branch: Branch, mech: Mechanism, joints: dict[str, ET.Element]) -> ET.Element:
    node = add(parent, "body", name=branch.body.name, **_place(branch.pose))
    mass, moments, axes = inertia(branch, mech)
    quat = quaternion(axes)
    center = text(branch.body.center)
    if isinstance(branch.joint.pair, FreePair) and branch.parent == GROUND and branch.joint.body_a == GROUND:
        add(node, "freejoint", name=branch.joint.name)
    else:
        for step in branch.steps:
            where = {} if step.kind == "ball" else {"axis": text(step.axis)}
            more = {} if step.kind == "ball" else {"ref": text(step.value)}
            joint = add(node, "joint", name=step.name, type=step.kind, **where, pos=text(step.point), **more)
            if step.coordinate is not None:
                joints[step.coordinate] = joint
    add(node, "inertial", pos=center, quat=quat, mass=text(mass), diaginertia=text(moments))
    return node


def _site(bodies: dict[str, ET.Element], body: str, name: str, pose: np.ndarray) -> str:
    add(bodies[body], "site", name=name, **_place(pose))
    return name


def _closed(
    joint: Joint, bodies: dict[str, ET.Element], equality: ET.Element, planar: bool, stiff: dict[str, str]
) -> None:
    """A joint that closes a loop: frames weld together, or points are held together; a hinge in space has two."""
    A, B = seats(joint)
    along = [0.0, 1.0] if isinstance(joint.pair, RevolutePair) and not planar else [0.0]
    for k, z in enumerate(along):
        step = np.eye(4)
        step[2, 3] = z
        name = joint.name if k == 0 else f"{joint.name}.axis"
        first, second = (
            _site(bodies, body, f"{name}.{side}", X @ step)
            for body, side, X in ((joint.body_a, "a", A), (joint.body_b, "b", B))
        )
        kind = "weld" if isinstance(joint.pair, FixedPair) else "connect"
        add(equality, kind, name=name, site1=first, site2=second, **stiff)


def _tendon(gauge: AbstractGauge, name: str, bodies: dict[str, ET.Element], tendons: ET.Element) -> ET.Element:
    """A line between two points."""
    if not isinstance(gauge, Distance):
        raise ValueError(f"gauge {gauge.name!r} is held, and is no distance: it cannot be written")
    node = add(tendons, "spatial", name=name)
    for side, body, point in zip("ab", gauge.bodies, (gauge.point_a, gauge.point_b)):
        place = np.eye(4)
        place[: len(point), 3] = np.asarray(point)
        add(node, "site", site=_site(bodies, body, f"{name}.{side}", place))
    return node


def _force(
    force: Any,
    mech: Mechanism,
    joints: dict[str, ET.Element],
    bodies: dict[str, ET.Element],
    groups: dict[str, ET.Element],
) -> bool:
    """Writes a force; false if there is no way to."""
    if not isinstance(force, Spring | Actuator):
        return False
    named = {g.name: g for g in mech.gauges}
    on = named.get(force.on, force.on) if isinstance(force.on, str) else force.on
    if isinstance(force, Actuator):
        if callable(force.function) or not isinstance(on, str) or on not in joints:
            return False
        always = {"gaintype": "fixed", "gainprm": "0", "biastype": "affine", "biasprm": f"{text(force.function)} 0 0"}
        add(groups["actuator"], "general", name=force.name, joint=joints[on].get("name", ""), **always)
        return True
    if callable(force.stiffness) or callable(force.damping):
        return False
    k, c, preload, free = (float(x) for x in (force.stiffness, force.damping, force.preload, force.free_length))
    if (preload and not k) or (force.acts != "both" and (preload or c)):
        return False
    relaxed = free - preload / k if k else free
    if isinstance(on, Distance):
        ends = {"both": [relaxed], "tension": [0.0, relaxed], "compression": [relaxed, 1e10]}[force.acts]
        line = _tendon(on, force.name, bodies, groups["tendon"])
        line.attrib |= {"stiffness": text(k), "springlength": text(ends), "damping": text(c)}
        return True
    if not isinstance(on, str) or on not in joints or force.acts != "both":
        return False
    joint = joints[on]
    before, at, damping = (float(joint.get(key, 0.0)) for key in ("stiffness", "springref", "damping"))
    rest = (before * at + k * relaxed) / (before + k) if before + k else 0.0
    joint.attrib |= {"stiffness": text(before + k), "springref": text(rest), "damping": text(damping + c)}
    return True
