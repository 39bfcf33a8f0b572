"""From a mechanism to the text of a model file that gives it back, number by number."""

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._kinematics.drive import Hold, Uniform
from .._model.body import Body
from .._model.force.load import Load
from .._model.force.spring import Actuator, Spring
from .._model.friction import AbstractFriction, Coulomb, DryTorque, JointFriction
from .._model.gauge import AbstractGauge, Angle, Distance, Offset
from .._model.joint.clearance import Clearance
from .._model.joint.composite import CompositePair
from .._model.joint.contact import Contact
from .._model.joint.gear import GearPair, RackPair, RollingPair
from .._model.joint.joint import Joint
from .._model.joint.screw import ScrewPair
from .._model.mechanism import Mechanism
from .._model.play import Play
from .._model.points import PointName
from .._model.profile.base import AbstractElement
from .._model.profile.curves import Polynomial, Spline
from .._model.profile.deviated import Deviated
from .._model.profile.elements import Arc, Circle, Line, Point
from .._model.profile.followers import AbstractFollower, AbstractTip, CamCurve
from .._model.profile.involute import Involute
from .._model.profile.motion_laws import LAWS, Law
from .._model.profile.profile import Profile, endless
from .._programs.precision import is_concrete
from .._tolerance.distribution.base import AbstractDistribution
from .._tolerance.distribution.zone import Position, ProfileZone
from ..frames import PlanarFrame
from .functions import Components, Formula, Switched, Watch
from .words import WORDS, arguments


def dumps(mech: Mechanism, *, title: str | None = None, drive: Mapping[str, Any] | None = None, **sections: Any) -> str:
    """A mechanism as the text of a model file. [`mbsjax.loads`][] makes the same mechanism of it, to the last digit.

    **Arguments:**

    - `mech`: the mechanism. Functions in it must be formulas of a model file; other Python functions cannot be written.
    - `title`: of the file.
    - `drive`: its drivers: numbers, or those that [`mbsjax.constant_speed`][] makes.
    - other tables by name, such as `simulate={"t1": 2.0}`, as they are to stand in the file; `tolerances` may have
        distributions.

    !!! Example

        >>> import mbsjax as mbs
        >>> print(dumps(mbs.Mechanism([mbs.Body("bob", mass=2.0)], [mbs.Revolute("O", "ground", "bob")])))
        [bodies.bob]
        mass = 2.0
        <BLANKLINE>
        [joints.O]
        type = "revolute"
        body_a = "ground"
        body_b = "bob"
        frame_a = {x = 0.0, y = 0.0, angle = 0.0}
        frame_b = {x = 0.0, y = 0.0, angle = 0.0}
        <BLANKLINE>
    """
    if not is_concrete(mech):
        raise ValueError("a mechanism whose dimensions are being traced cannot be written")
    tables: dict[str, Any] = {} if title is None else {"title": title}
    gravity = _numbers(mech.gravity)
    if any(gravity):
        tables["gravity"] = gravity
    by_default = Mechanism(mech.bodies, (*mech.joints, *mech.contacts), mech.gauges, forces=mech.forces).planar
    if mech.planar != by_default:
        tables["planar"] = mech.planar
    if mech.units is not None:
        said = {word: unit for word, unit in dataclasses.asdict(mech.units).items() if unit is not None}
        sections["units"] = {**said, **sections.get("units", {})}
    contacts = {c.name: _contact(c) for c in mech.contacts}
    tables["bodies"] = {b.name: _body(b) for b in mech.bodies}
    joints, gauges, forces = mech.as_given
    tables["joints"] = {j.name: _joint(j) for j in joints}
    tables["contacts"] = contacts
    tables["gauges"] = {g.name: _gauge(g) for g in gauges}
    tables["forces"] = {f.name: _force(f) for f in forces}
    tables["drive"] = {name: _driver(name, f) for name, f in (drive or {}).items()}
    if "tolerances" in sections:
        sections["tolerances"] = {name: _tolerance(x) for name, x in sections["tolerances"].items()}
    return toml({k: v for k, v in tables.items() if v != {}} | sections)


def dump(mech: Mechanism, path: Any, **more: Any) -> None:
    """Writes a model file; arguments as for [`mbsjax.dumps`][].

    !!! Example

        >>> import tempfile, os, mbsjax as mbs
        >>> bob = mbs.Mechanism([mbs.Body("bob", mass=2.0)], [mbs.Revolute("O", "ground", "bob")])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     dump(bob, os.path.join(folder, "bob.toml"), title="Bob")
        ...     mbs.load(os.path.join(folder, "bob.toml")).title
        'Bob'
    """
    text = dumps(mech, **more)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# -- parts -----------------------------------------------------------------------------------------------------


def _numbers(x: Any) -> Any:
    return np.asarray(x, float).tolist()


def _body(body: Body) -> dict[str, Any]:
    found: dict[str, Any] = {"mass": _numbers(body.mass)} if float(body.mass) else {}
    if np.any(body.center):
        found["center"] = _numbers(body.center)
    if np.any(body.inertia):
        found["inertia"] = _numbers(body.inertia)
    if body.points:
        found["points"] = {k: _numbers(p) for k, p in body.points.items()}
    if body.profiles:
        found["profiles"] = {k: _profile(p, f"profile {k!r} of body {body.name!r}") for k, p in body.profiles.items()}
    return found


def _point(point: Any) -> Any:
    return point.name if isinstance(point, PointName) else _numbers(point)


def _frame(frame: Any) -> Any:
    if isinstance(frame, PointName):
        return {"point": frame.name, **({} if frame.axis is None else {"axis": _numbers(frame.axis)})}
    if isinstance(frame, PlanarFrame):
        return {"x": _numbers(frame.x), "y": _numbers(frame.y), "angle": _numbers(frame.angle)}
    return _numbers(frame)


_PAIRS = {"pinslot": "pin_slot", "rack": "rack_pinion"}


def _joint(joint: Joint) -> dict[str, Any]:
    pair = joint.pair
    kind = pair.kind
    more: dict[str, Any] = {}
    if isinstance(pair, CompositePair):
        parts = [p.kind for p in pair.pairs]
        kind = "_".join(parts).replace("prismatic_spherical", "strut").replace("prismatic", "translational")
        if kind in ("revolute_revolute", "revolute_spherical"):
            link = np.asarray(pair.links[0])
            more["length"] = float(link[0, 3])
            if kind == "revolute_revolute" and link[2, 2] == 0:
                more["crossed"] = True
    elif isinstance(pair, GearPair):
        more["ratio"] = _numbers(pair.ratio)
    elif isinstance(pair, RollingPair):
        a, b = float(pair.radius_a), float(pair.radius_b)
        more = {"radii": [abs(a), b], **({"internal": True} if a < 0 else {})}
    elif isinstance(pair, RackPair):
        more["radius"] = _numbers(pair.radius)
    elif isinstance(pair, ScrewPair):
        more["lead"] = _numbers(pair.lead)
    kind = _PAIRS.get(kind, kind)
    if kind not in WORDS["joint"]:
        raise ValueError(f"joint {joint.name!r} is of a kind that model files do not know: {type(pair).__name__}")
    found = {"type": kind, "body_a": joint.body_a, "body_b": joint.body_b}
    found |= {"frame_a": _frame(joint.frame_a), "frame_b": _frame(joint.frame_b), **more}
    told = joint.given or not np.array_equal(joint.start, pair.rest)
    if told and joint.start.size:
        found["start"] = _numbers(joint.start)
    found |= {} if joint.friction is None else {"friction": _friction(joint.friction)}
    return found | ({} if joint.play is None else {"play": _play(joint.play, joint.name)})


def _play(play: Play, name: str) -> Any:
    """Its size, or a table where there is more to tell."""
    found: dict[str, Any] = {"size": _numbers(play.size)}
    if np.any(play.lies):
        found["lies"] = _numbers(play.lies)
    if play.rule != "worst":
        found["rule"] = play.rule
    found |= {k: _numbers(x) for k in ("radius", "length") if (x := getattr(play, k)) is not None}
    found |= _touching(play, f"the play of joint {name!r}")
    return found["size"] if len(found) == 1 else found


def _touching(x: Play | Contact, what: str) -> dict[str, Any]:
    """What happens where bodies meet."""
    found: dict[str, Any] = {}
    if float(x.restitution):
        found["restitution"] = _numbers(x.restitution)
    if x.law is not None:
        found["law"] = _named("contact law", x.law, f"the law of {what}")
    if x.friction is not None:
        friction = _friction(x.friction)
        found["friction"] = friction["sliding"] if len(friction) == 1 else friction
    return found


def _contact(contact: Contact | Clearance) -> dict[str, Any]:
    if isinstance(contact, Clearance):
        raise ValueError(f"{contact.name!r} cannot be written: write the mechanism that has the play")
    found: dict[str, Any] = {
        "profile_a": f"{contact.body_a}.{contact.profile_a}",
        "profile_b": f"{contact.body_b}.{contact.profile_b}",
    }
    if contact.active:
        found["active"] = True
    if contact.hold != "keep":
        found["hold"] = contact.hold
    if contact.moves is not None:
        found["moves"] = contact.moves
    found |= _touching(contact, f"contact {contact.name!r}")
    for key in ("elements_a", "elements_b"):
        if getattr(contact, key) is not None:
            found[key] = list(getattr(contact, key))
    return found


def _friction(friction: AbstractFriction) -> dict[str, Any]:
    """Its numbers as they are given; `dry` instead of `sliding` for one that does not depend on a load."""
    if not isinstance(friction, Coulomb | JointFriction | DryTorque):
        raise ValueError(f"a model file cannot hold a friction of the user's own, {type(friction).__name__}")
    fields = {f.name: getattr(friction, f.name) for f in dataclasses.fields(friction)}
    found = {k: _value(x, k) for k, x in fields.items() if x is not None and not (k == "guide" and x == "a")}
    return {"dry": found.pop("sliding"), **found} if isinstance(friction, DryTorque) else found


def _named(group: str, part: Any, what: str) -> dict[str, Any]:
    """A module whose fields are the arguments of its constructor."""
    for kind, maker in WORDS[group].items():
        if maker is type(part):
            fields = {f.name: getattr(part, f.name) for f in dataclasses.fields(part)}
            return {"type": kind, **{k: _value(x, what) for k, x in fields.items() if x is not None}}
    raise ValueError(f"{what} is of a kind that model files do not know: {type(part).__name__}")


def _value(x: Any, what: str) -> Any:
    if isinstance(x, (bool, str, int)):
        return x
    if isinstance(x, AbstractTip):
        return _named("tip", x, what)
    if isinstance(x, AbstractFollower):
        return _named("follower", x, what)
    return _numbers(x)


def _gauge(gauge: AbstractGauge) -> dict[str, Any]:
    found: dict[str, Any] = {"body_a": gauge.bodies[0], "body_b": gauge.bodies[1]}
    if isinstance(gauge, Distance | Offset):
        points = {"point_a": gauge.point_a, "point_b": gauge.point_b}
        found |= {key: _point(point) for key, point in points.items() if point is not None}
    if isinstance(gauge, Offset):
        found |= {"axis": _numbers(gauge.axis)}
        if gauge.bodies[2] != gauge.bodies[0]:
            found["axis_body"] = gauge.bodies[2]
    elif not isinstance(gauge, Distance | Angle):
        raise ValueError(f"gauge {gauge.name!r} is of a kind that model files do not know: {type(gauge).__name__}")
    if gauge.value is not None:
        found["value"] = _numbers(gauge.value)
    return {"type": gauge.kind, **found}


def _function(f: Any, what: str) -> Any:
    """A number, or the text of a formula with its parameters put in."""
    if not callable(f):
        return _numbers(f)
    if isinstance(f, Switched | Watch):
        f = f.formula
    if not isinstance(f, Formula):
        raise ValueError(f"{what} is a Python function, which a model file cannot hold: make it a formula")
    text = f.text
    for name, number in sorted(f.numbers.items(), key=lambda x: -len(x[0])):
        text = re.sub(rf"(?<![\w.`])(?:{re.escape(name)}|`{re.escape(name)}`)(?![\w.`])", f"({float(number)!r})", text)
    return text


def _on(on: Any) -> Any:
    return on if isinstance(on, str) else {**_gauge(on), "name": on.name}


def _force(force: Any) -> dict[str, Any]:
    what = f"of {force.name!r}"
    if isinstance(force, Spring):
        found: dict[str, Any] = {"type": "spring", "on": _on(force.on)}
        found |= {k: _function(getattr(force, k), f"the {k} {what}") for k in ("stiffness", "damping")}
        found |= {k: _numbers(getattr(force, k)) for k in ("free_length", "preload")}
        return found | ({"acts": force.acts} if force.acts != "both" else {})
    if isinstance(force, Actuator):
        found = {"type": "actuator", "on": _on(force.on), "function": _function(force.function, f"the force {what}")}
        switches = [_function(f, f"a switch {what}") for f in force.guards]
        return found | ({"switches": switches} if switches else {})
    if isinstance(force, Load):
        found = {"type": "load", "body": force.body, "point": _point(force.point)}
        for key in ("force", "torque"):
            given = getattr(force, key)
            if isinstance(given, Components):
                parts = [_function(p, f"the {key} {what}") for p in given.parts]
                found[key] = parts[0] if given.single else parts
            elif given is not None:
                found[key] = _function(given, f"the {key} {what}")
        return found | ({"fixed_in": "body"} if force.fixed_in == "body" else {})
    raise ValueError(f"force {force.name!r} is of a kind that model files do not know: {type(force).__name__}")


def _driver(name: str, f: Any) -> Any:
    if isinstance(f, Hold):
        return _numbers(f.value)
    if isinstance(f, Uniform):
        return f"({float(f.start)!r}) + ({float(f.speed)!r})*t"
    return _function(f, f"the driver of {name!r}")


def _profile(profile: Profile, what: str) -> dict[str, Any]:
    elements = [_element(e, f"element {i} of {what}") for i, e in enumerate(profile.elements)]
    found: dict[str, Any] = {"type": "chain", "elements": elements}
    lone = endless(profile.elements[0])
    if not profile.closed or (lone and not profile.corners):
        found["closed"] = False
    if not lone and not all(profile.corners):
        found["smooth"] = [not c for c in profile.corners] if any(profile.corners) else True
    if not profile.closed and not profile.ends and not isinstance(profile.elements[0], Point):
        found["ends"] = False
    if profile.names:
        found["names"] = list(profile.names)
    frame = profile.frame
    if not isinstance(frame, PlanarFrame) or any(map(float, (frame.x, frame.y, frame.angle))):
        found["frame"] = _frame(frame)
    choices: list[dict[str, Any]] = [{}, {"hole": True}, {"tolerance": 1.0}, {"tolerance": 1.0, "hole": True}]
    for more in choices:
        try:
            Profile.chain(profile.elements, closed=found.get("closed", True), smooth=found.get("smooth", False), **more)
            return found | more
        except ValueError:
            pass
    raise ValueError(f"{what} is no boundary that could be read back")


def _element(element: AbstractElement, what: str) -> dict[str, Any]:
    if isinstance(element, Point):
        return {"type": "point", **{k: _numbers(getattr(element, k)) for k in ("position", "start", "turn")}}
    if isinstance(element, Line | Circle | Polynomial | Spline | Involute | Arc):
        return _named("element", element, what) | (
            {"orders": list(element.orders)} if isinstance(element, Polynomial) else {}
        )
    if isinstance(element, Deviated):
        inner = _element(element.element, what)
        return {"type": "deviated", "element": inner, "offsets": _numbers(element.offsets), "kind": element.basis}
    if isinstance(element, CamCurve):
        found = {k: _numbers(getattr(element, k)) for k in ("y", "theta", "angle", "height")}
        follower = _named("follower", element.follower, what)
        return {"type": "cam_curve", "follower": follower, "law": _law(element.law, what), **found}
    raise ValueError(f"{what} is a {type(element).__name__}, which a model file cannot hold")


def _law(law: Any, what: str) -> Any:
    if isinstance(law, Law):
        for name, f in LAWS.items():
            if Law(f).function.rest == law.function.rest:
                return name
        raise ValueError(f"{what} has a Python function for its motion law, which a model file cannot hold")
    return _named("motion law", law, what)


def _tolerance(given: Any) -> Any:
    """A distribution by what makes the same one again: its limits, and what differs from what these alone make."""
    if not isinstance(given, AbstractDistribution):
        return given
    kind, make = next(((k, f) for k, f in WORDS["distribution"].items() if f is type(given)), ("", None))
    if make is None:
        raise ValueError(f"a model file cannot hold a distribution of the user's own, {type(given).__name__}")
    own = {"cut": "at"}
    fields = {own.get(f.name, f.name): getattr(given, f.name) for f in dataclasses.fields(given)}
    known = arguments("distribution", kind)
    more = {k: x for k, x in fields.items() if k in known and x is not None and x != known[k].default}
    if isinstance(given, Position) and given.mmc is not None:
        more["mmc"] = given.mmc
    low, high = (float(x) for x in given.spread[:2])
    wide = 2 if isinstance(given, Position | ProfileZone) else 1  # zones are given by their whole width
    tol = wide * high if low == -high else [low, high]
    apart = lambda made: np.max(np.abs(_numbers(given.spread.location - made.spread.location))) > 1e-15 * (high - low)
    made = make(tol, **more)
    if apart(made) or abs(float(made.std / given.std) - 1) > 1e-15:
        try:
            made = make(tol, **more | {"sigma": float(given.std)})
            more["sigma"] = float(given.std)
        except ValueError:  # of one that has ends, beyond its limits: by how badly these are kept
            more["cpk"] = float(made.std / given.std)
            made = make(tol, **more)
    if apart(made):
        more["shift"] = _numbers(given.spread.location - made.spread.location)
    return {"type": kind, "tol": tol, **more}


# -- TOML ------------------------------------------------------------------------------------------------------


def toml(tables: Mapping[str, Any]) -> str:
    """Tables as a text: one table for each member of a group, long arrays over several lines."""
    top = [f"{_key(k)} = {_shown(v)}" for k, v in tables.items() if not isinstance(v, dict)]
    blocks = ["\n".join(top)] if top else []
    for name, table in tables.items():
        if isinstance(table, dict):
            blocks += _blocks((name,), table)
    return "\n\n".join(blocks) + "\n"


def _blocks(path: tuple[str, ...], table: Mapping[str, Any]) -> list[str]:
    """A table, and the tables in it; tables of plain values alone stay on a line."""
    inner = {k: v for k, v in table.items() if isinstance(v, dict) and not _flat(v, path)}
    own = [f"{_key(k)} = {_shown(v)}" for k, v in table.items() if k not in inner]
    head = f"[{'.'.join(map(_key, path))}]"
    blocks = ["\n".join([head, *own])] if own or not inner else []
    for name, more in inner.items():
        blocks += _blocks((*path, name), more)
    return blocks


def _flat(table: dict, path: tuple[str, ...]) -> bool:
    grouped = len(path) == 1 and path[0] in ("bodies", "joints", "contacts", "gauges", "forces")
    return not grouped and len(_shown(table)) < 100


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _shown(x: Any) -> str:
    if isinstance(x, dict):
        return "{" + ", ".join(f"{_key(k)} = {_shown(v)}" for k, v in x.items()) + "}"
    if isinstance(x, (list, tuple)):
        parts = [_shown(v) for v in x]
        line = f"[{', '.join(parts)}]"
        if len(line) < 100 or not isinstance(x[0], (dict, list)):
            return line
        return "[\n" + "".join(f"    {p},\n" for p in parts) + "]"
    if isinstance(x, bool):
        return "true" if x else "false"
    if isinstance(x, str):
        return json.dumps(x, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(x)
