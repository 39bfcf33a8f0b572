"""Joints, rods, springs, dampers, actuators and drivers in the page."""

from typing import Any

import numpy as np

from ..._model.gauge import Distance, Offset
from ..._model.mechanism import Mechanism
from ..scene import mark
from .forces import actors
from .keyframes import Keyframes
from .packing import packed, rounded


def joints(mech: Mechanism) -> list[dict]:
    found = []
    for joint in mech.joints:
        a, b = mark(mech, joint, "a"), mark(mech, joint, "b")
        radii = None
        if a.kind == "rolling":
            radii = [abs(float(joint.pair.radius_a)), abs(float(joint.pair.radius_b))]  # pyright: ignore
        elif a.kind == "rack":
            radii = [0.0, abs(float(joint.pair.radius))]  # pyright: ignore
        entry: dict[str, Any] = {"name": joint.name, "kind": a.kind, "radii": radii}
        if a.kind == "gear":
            entry["ratio"] = float(joint.pair.ratio)  # pyright: ignore
        links = mech.links.index(joint.body_a), mech.links.index(joint.body_b)
        entry |= {
            "bodies": links,
            "places": [rounded(a.place), rounded(b.place)],
            "axes": [rounded(a.axis), rounded(b.axis)],
            "turns": [not length for length in joint.pair.lengths],
        }
        found.append(entry)
    return found


def ties(frames: Keyframes) -> list[dict]:
    """What is drawn between two points: rods, which are distances that are held; springs, dampers and actuators along a
    gauge or a coordinate, with what they push with; distances that are driven."""
    mech, driven = frames.mech, [name for name, _ in frames.drivers]
    found = [_between(mech, g.name, "rod", g) for g in mech.gauges if isinstance(g, Distance) and g.value is not None]
    found += [_between(mech, g.name, "drive", g) for g in mech.gauges if isinstance(g, Distance) and g.name in driven]
    for i, actor in enumerate(actors(mech)):
        if isinstance(actor.gauge, Distance | Offset):
            entry = _between(mech, actor.name, actor.kind, actor.gauge)
        elif actor.coordinate is not None:
            entry = {"name": actor.name, "kind": actor.kind} | _joint_of(mech, actor.coordinate)
        else:
            continue  # an angle between two bodies has no place
        push = np.concatenate([frames.pushes(k)[:, i] for k in range(len(frames.motions))])[frames.order]
        found.append(entry | {"push": packed(push, np.uint16), "turns": actor.turns})
    return found


def _between(mech: Mechanism, name: str, kind: str, gauge: Distance | Offset) -> dict:
    links = [mech.links.index(body) for body in gauge.bodies[:2]]
    places = [rounded(gauge.point_a), rounded(gauge.point_b)]
    return {"name": name, "kind": kind, "joint": None, "bodies": links, "places": places, "push": None, "turns": False}


def _joint_of(mech: Mechanism, coordinate: str) -> dict:
    """The joint that has a coordinate."""
    names = [i for i, joint in enumerate(mech.joints) for _ in joint.pair.coordinates]
    i = names[mech.coordinates.index(coordinate)]
    joint = mech.joints[i]
    places = [rounded(mark(mech, joint, side).place) for side in "ab"]
    links = [mech.links.index(body) for body in (joint.body_a, joint.body_b)]
    return {"joint": i, "bodies": links, "places": places}


def drivers(frames: Keyframes) -> list[dict]:
    """Driven coordinates and gauges, with their speeds: `joint` and `turns` tell where they are, or `gauge`."""
    mech, found = frames.mech, []
    lengths = [length for joint in mech.joints for length in joint.pair.lengths]
    for name, speed in frames.drivers:
        entry: dict[str, Any] = {"name": name, "speed": packed(speed, np.uint16)}
        if name in mech.coordinates:
            turns = not lengths[mech.coordinates.index(name)]
            entry |= {"joint": _joint_of(mech, name)["joint"], "turns": turns, "gauge": None}
        else:
            entry |= {"joint": None, "turns": False, "gauge": name}
        found.append(entry)
    return found
