"""Joints, rods and springs in the page."""

from typing import Any

from ..._model.force.spring import Spring
from ..._model.gauge import Distance
from ..._model.mechanism import Mechanism
from ..scene import mark
from .packing import rounded


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
        }
        found.append(entry)
    return found


def ties(mech: Mechanism) -> list[dict]:
    """Rods, which are distances that are held, and springs along a distance."""
    along = [(g.name, "rod", g) for g in mech.gauges if g.value is not None]
    for force in mech.forces:
        if isinstance(force, Spring):
            on = [g for g in mech.gauges if g.name == force.on] if isinstance(force.on, str) else [force.on]
            along += [(force.name, "spring", gauge) for gauge in on]
    return [
        {
            "name": name,
            "kind": kind,
            "bodies": [mech.links.index(body) for body in g.bodies],
            "places": [rounded(g.point_a), rounded(g.point_b)],
        }
        for name, kind, g in along
        if isinstance(g, Distance)
    ]
