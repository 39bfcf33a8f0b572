"""Writes ACDMC's `.DYN` files."""

import itertools
import math
import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from ... import frames
from ..._model.body import Body, inertia_matrix
from ..._model.force.spring import Actuator, Spring
from ..._model.joint.clearance import Clearance
from ..._model.joint.contact import Contact
from ..._model.joint.joint import Joint
from ..._model.mechanism import GROUND, Mechanism
from ..._model.profile.curves import Polynomial
from ..._model.profile.elements import Arc, Circle, Line
from ..._model.profile.profile import Profile, endless
from ..._numerics.groups import SE3
from ..._programs.precision import is_concrete
from ..dyn import text as words
from .content import PAIRS, Dyn, DynWarning, coordinates_of
from .curve import LOOSE


KINDS = {pair: kind for kind, pair in PAIRS.items()}


def write_dyn(source: Any, *, decimals: int | None = None, language: Literal["english", "french"] = "english") -> str:
    """A mechanism as the text of a `.DYN` file of ACDMC, the program of D. Wang's thesis (its appendix D).

    **Arguments:**

    - `source`: an [`mbsjax.Dyn`][], or a mechanism, which then begins at rest where its joints' estimates are.
    - `decimals`: how many to write; by default as many as tell each number exactly.
    - `language`: of the keywords.

    [`mbsjax.read_dyn`][] reads it back: names, topology, contacts, and every number that stands in the file as it is in
    the mechanism exactly. Angles of frames and arcs, and moments of inertia, stand there as matrices and points, and
    come back but for rounding; a profile's own frame is worked into its points. Forces get their usual names.

    The format knows corners, lines, arcs, circles and polynomials; revolute, prismatic, cylindrical, universal and
    planar joints; a spring and a constant force on each joint that has one coordinate; gravity along -y. Anything else
    raises a `ValueError` that names it; points of interest are left out with a [`mbsjax.DynWarning`][].

    !!! Example

        >>> import mbsjax as mbs
        >>> pendulum = mbs.Mechanism([mbs.Body("bob", mass=2.0)], [mbs.Revolute("O", "ground", "bob")])
        >>> print(mbs.write_dyn(pendulum)[:27])
        ENTITY       : MACH
        NAME
    """
    dyn = source if isinstance(source, Dyn) else Dyn(source) if isinstance(source, Mechanism) else None
    if dyn is None:
        raise ValueError(f"a .DYN file is written from a Dyn or a Mechanism, got {source!r}")
    if language not in ("english", "french"):
        raise ValueError(f"the language of a .DYN file is 'english' or 'french', got {language!r}")
    if not is_concrete(dyn):
        raise ValueError("a .DYN file holds numbers: it cannot be written while the mechanism is traced")
    return "\n".join(_Writer(dyn, decimals, language == "french").lines()) + "\n"


class _Writer:
    def __init__(self, dyn: Dyn, decimals: int | None, french: bool):
        self.dyn, self.mech, self.decimals, self.french = dyn, dyn.mech, decimals, french
        self.what = ""
        for group in (self.mech.gauges, self.mech.forces):
            for member in group:
                kind = type(member).__name__
                if not (isinstance(member, Spring | Actuator) and isinstance(member.on, str)):
                    raise ValueError(f"a .DYN file cannot hold {member.name!r}: it has no {kind} of this kind")
        self.springs = {joint.name: self.spring(joint) for joint in self.mech.joints}
        for force in self.mech.forces:
            if force.needs[0] not in self.springs:
                raise ValueError(f"a .DYN file cannot hold {force.name!r}: it acts on {force.needs[0]!r}, not a joint")
        self.names = self.surface_names()

    # -- words and numbers

    def pick(self, spellings: tuple[str, ...]) -> str:
        return spellings[self.french]

    def field(self, key: str, value: str = "", bare: bool = False) -> str:
        word = self.pick(words.KEYS[self.what][key])
        return word if bare else f"{word:<12} : {value}".rstrip()

    def entity(self, what: str) -> Iterator[str]:
        self.what = what
        if what != "MACH":
            yield ""
        yield f"{self.pick(words.ENTITY):<12} : {what}"

    def number(self, x: Any) -> str:
        x = float(x) + 0.0  # no negative zeros
        return repr(x) if self.decimals is None else f"{x:.{self.decimals}f}"

    def row(self, numbers: Any) -> str:
        return " ".join(self.number(x) for x in np.asarray(numbers, float).ravel())

    def matrix(self, key: str, M: Any) -> Iterator[str]:
        yield self.field(key, bare=True)
        yield from (self.row(row) for row in np.asarray(M))

    def text(self, name: str, what: str) -> str:
        if name != name.strip() or any(c in name for c in "\r\n\x1a"):
            raise ValueError(f"a .DYN file cannot hold {what} {name!r}: its name has blanks round it, or several lines")
        return name

    def link(self, body: str) -> str:
        return self.dyn.ground if body == GROUND else body

    # -- entities

    def lines(self) -> Iterator[str]:
        mech, dyn = self.mech, self.dyn
        x, y, z = (float(g) for g in mech.gravity)
        if x or z:
            raise ValueError(f"a .DYN file cannot hold gravity {(x, y, z)}: it acts along -y there")
        yield from self.entity("MACH")
        yield self.field("name", self.text(dyn.name, "mechanism"))
        yield self.field("gravity", self.number(-y))
        yield self.field("time", self.number(dyn.time))
        yield self.field("step", self.number(dyn.step))
        yield self.field("state", self.text(dyn.stage, "stage"))
        clash = [name for name in mech.links[1:] if name == dyn.ground]
        if clash:
            raise ValueError(f"the fixed link of a .DYN file cannot be called {dyn.ground!r}: a body is")
        bodies = mech.bodies if GROUND in [b.name for b in mech.bodies] else (Body(GROUND), *mech.bodies)
        for body in bodies:
            yield from self.body(body)
        for joint in (*mech.joints, *mech.contacts):
            yield from self.pair(joint)
        for body in bodies:
            yield from self.entity("OCLI")
            yield self.field("name", self.link(body.name))
            yield self.field("solid", self.link(body.name))
            yield self.field("fixed", self.pick(words.TRUE[body.name == GROUND]))
        for joint in (*mech.joints, *mech.contacts):
            yield from self.motion(joint)
        yield from self.loops()

    def body(self, body: Body) -> Iterator[str]:
        yield from self.entity("LINK")
        yield self.field("name", self.text(self.link(body.name), "body"))
        yield from self.matrix("aro", np.eye(4)[:3])
        yield from self.matrix("mass", inertia_matrix(body))
        if body.points:
            warnings.warn(f"points of body {body.name!r} are not written to a .DYN file", DynWarning, stacklevel=5)
        for joint in self.mech.joints:
            for side, (owner, frame) in enumerate(((joint.body_a, joint.frame_a), (joint.body_b, joint.frame_b))):
                if owner == body.name:
                    yield from self.entity("SURF")
                    yield self.field("name", self.names[joint.name][side])
                    yield self.field("type", self.pick(words.SURFACES["frame"]))
                    yield from self.matrix("shape", joint.placed(frame, SE3).matrix()[:3])
        for name, profile in body.profiles.items():
            yield from self.entity("SURF")
            yield self.field("name", self.text(name, f"profile of body {body.name!r}"))
            yield self.field("type", self.pick(words.SURFACES["curve"]))
            yield from self.curve(profile, f"profile {name!r} of body {body.name!r}")

    def curve(self, profile: Profile, what: str) -> Iterator[str]:
        frame = profile.frame
        X = np.asarray(frames.embed(frame) if isinstance(frame, frames.PlanarFrame) else frame)
        for element in profile.elements:
            if not isinstance(element, Line | Arc | Circle | Polynomial):
                kind = type(element).__name__
                raise ValueError(f"a .DYN file cannot hold {what}: it has no {kind} that stands for itself")
        ends = [_ends(element, what) for element in profile.elements]
        size = max(float(np.ptp(np.array(ends).reshape(-1, 2), axis=0).max()), 1e-300)
        meet = float(np.linalg.norm(ends[-1][1] - ends[0][0])) <= LOOSE * size
        if meet and not (profile.closed or endless(profile.elements[0])):
            raise ValueError(f"a .DYN file cannot hold {what}: it is open, though its ends meet")
        if not profile.closed and not profile.ends:
            raise ValueError(f"a .DYN file cannot hold {what}: its ends are left out (`ends=False`)")

        def point(p: Any, exact: bool) -> str:
            # sines and cosines are rounded where rounding errors begin
            p = np.asarray(p) if exact else np.round(p, 15 - math.ceil(math.log10(max(np.abs(p).max(), 1e-300))))
            return self.row(X[:3, :2] @ p + X[:3, 3])

        yield self.field("normal", self.row(X[:3, 2]))
        corners = [*profile.corners, False][: len(profile.elements)]
        for i, (element, corner) in enumerate(zip(profile.elements, corners)):
            kind = element.kind
            last, line = i == len(corners) - 1, kind == "line"
            yield self.field("curve", self.pick(words.CURVES[kind]))
            if isinstance(element, Polynomial):
                yield self.field("num", str(len(element.orders)))
                yield self.field("coeffi", self.row(element.coefficients))
                yield self.field("order", " ".join(map(str, element.orders)))
                yield self.field("ao", self.number(_degrees(element.start - element.reference)))
                yield self.field("ro", "1")
                yield self.field("ko", self.number(_degrees(element.scale)))
            if isinstance(element, Arc | Circle | Polynomial):
                yield self.field("center", point(element.center, True))
            if isinstance(element, Circle):
                yield self.field("radius", self.number(element.radius))
            yield self.field("pinit", point(ends[i][0], line))
            if not isinstance(element, Circle):
                yield self.field("pend", point(ends[i][1], line))
            if isinstance(element, Arc | Circle | Polynomial):
                runs_back = element.end < element.start if isinstance(element, Polynomial) else element.concave
                yield self.field("side", self.pick(words.SIDES[bool(runs_back)]))
            yield self.field("end", self.pick(words.YES[last and not corner]))
            if corner:
                yield self.field("curve", self.pick(words.CURVES["point"]))
                yield self.field("end", self.pick(words.YES[last]))

    def pair(self, joint: Joint | Contact | Clearance) -> Iterator[str]:
        if isinstance(joint, Clearance):
            raise ValueError(f"a .DYN file cannot hold {joint.name!r}: it has no play")
        if isinstance(joint, Contact):
            kind, (a, b) = "contact", (joint.profile_a, joint.profile_b)
            for option in ("law", "friction", "elements_a", "elements_b", "moves"):
                if getattr(joint, option) is not None:
                    raise ValueError(f"a .DYN file cannot hold contact {joint.name!r}: it has a `{option}`")
            if joint.hold != "keep":
                raise ValueError(f"a .DYN file cannot hold contact {joint.name!r}: its `hold` is {joint.hold!r}")
        else:
            kind, (a, b) = KINDS.get(type(joint.pair), ""), self.names[joint.name]
            if not kind:
                pair = type(joint.pair).__name__.removesuffix("Pair")
                raise ValueError(f"a .DYN file cannot hold joint {joint.name!r}: it has no {pair}")
            for option in ("friction", "play"):
                if getattr(joint, option) is not None:
                    raise ValueError(f"a .DYN file cannot hold joint {joint.name!r}: it has a `{option}`")
        yield from self.entity("PAIR")
        yield self.field("name", self.text(joint.name, "joint"))
        yield self.field("link_a", self.link(joint.body_a))
        yield self.field("surf_a", a)
        yield self.field("link_b", self.link(joint.body_b))
        yield self.field("surf_b", b)
        yield self.field("type", self.pick(words.PAIRS[kind]))

    def motion(self, joint: Joint | Contact | Clearance) -> Iterator[str]:
        names = () if isinstance(joint, Contact | Clearance) else coordinates_of(joint)
        q, v = ([float(x[c]) for c in names] for x in (self.dyn.positions, self.dyn.velocities))
        if isinstance(joint, Contact) and joint.name in self.dyn.places:
            q = [float(x) for x in self.dyn.places[joint.name]]
        yield from self.entity("OCPA")
        yield self.field("name", joint.name)
        yield self.field("joint", joint.name)
        for key, x in zip(("force", "stiff", "length"), self.springs.get(joint.name, (0.0, 0.0, 0.0))):
            yield self.field(key, self.number(x))
        yield self.field("link_a", self.link(joint.body_a))
        yield self.field("link_b", self.link(joint.body_b))
        for key, x in (("position", q), ("velocity", v)):
            yield self.field(key)
            yield self.row(x + [0.0] * (6 - len(x)))
        for i in range(6):
            motor = names[i : i + 1] != () and names[i] in self.dyn.independent
            yield self.field(f"motor{i + 1}", self.pick(words.TRUE[motor]))
        if isinstance(joint, Contact):
            yield self.field("active", self.pick(words.TRUE[joint.active]))
            yield self.field("restitution", self.number(joint.restitution))

    def loops(self) -> Iterator[str]:
        """One loop for every joint outside the tree, and for every contact: up to the joint, over it, and back."""
        graph = self.mech.topology
        tree = {(p, c): graph.joints[j] for generation in graph.generations for j, p, c in generation}
        tree = {(graph.links[p], graph.links[c]): joint for (p, c), joint in tree.items()}
        closing = [graph.joints[i] for i in graph.chords]
        closing += [(contact.name, contact.body_a, contact.body_b) for contact in self.mech.contacts]
        for number, (name, a, b) in enumerate(closing, 1):
            way = graph.way_round(a, b)
            steps = list(itertools.pairwise(way))
            over = steps.index((a, b))
            yield from self.entity("LOOP")
            yield self.field("name", str(number))
            yield self.field("chain", self.pick(words.CHAINS["closed"]))
            yield self.field("num", str(len(steps)))
            for i, (x, y) in enumerate(steps):
                joint, first, _ = (name, a, b) if i == over else tree.get((x, y)) or tree[y, x]
                yield self.field("along", self.pick(words.TRUE[first == x]))
                yield joint

    # -- what is found before

    def spring(self, joint: Joint) -> tuple[float, float, float]:
        """Force, slope and free length on a joint."""
        force = stiffness = length = 0.0
        for member in self.mech.forces:
            if member.needs[0] != joint.name:
                continue
            told = f"a .DYN file cannot hold {member.name!r}: "
            if isinstance(member, Actuator):
                if callable(member.function):
                    raise ValueError(told + "its force is a function")
                force += float(member.function)
            elif isinstance(member, Spring):
                if callable(member.stiffness) or callable(member.damping) or float(member.damping):
                    raise ValueError(told + "it has a damper, or a law of its own")
                if member.acts != "both":
                    raise ValueError(told + f"it acts in {member.acts} only")
                if stiffness or length:
                    raise ValueError(told + f"joint {joint.name!r} has another spring")
                stiffness, length = float(member.stiffness), float(member.free_length)
                force -= float(member.preload)
        return force, -stiffness, length

    def surface_names(self) -> dict[str, tuple[str, str]]:
        """Names of joint frames, which no other surface of their link has: k- and k+, unless they have been given."""
        given = {joint: (a, b) for joint, a, b in self.dyn.surfaces}
        taken = {body.name: set(body.profiles) for body in self.mech.bodies}
        names = {}
        for joint in self.mech.joints:
            pair = []
            for body, name in zip(
                (joint.body_a, joint.body_b), given.get(joint.name, (f"{joint.name}-", f"{joint.name}+"))
            ):
                others = taken.setdefault(body, set())
                while name in others:
                    name += "'"
                others.add(name)
                pair.append(self.text(name, "surface"))
            names[joint.name] = tuple(pair)
        return names


def _degrees(x: Any) -> float:
    """Rounded where rounding errors begin."""
    return round(math.degrees(float(x)), 13)


def _ends(element: Any, what: str) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last point of an element."""
    if isinstance(element, Line):
        return np.asarray(element.start), np.asarray(element.end)
    if isinstance(element, Polynomial):
        turn = float(element.end - element.start)
        x = (np.array([element.start, element.end]) - float(element.reference)) / float(element.scale)
        r = sum(float(c) * x**n for c, n in zip(element.coefficients, element.orders))
        angles = np.array([element.start, element.end])
        if not np.all(np.asarray(r) > 0):
            raise ValueError(f"a .DYN file cannot hold {what}: the radius of a polynomial is not positive at its ends")
    else:
        way = -1.0 if element.concave else 1.0
        turn = 2 * math.pi if isinstance(element, Circle) else float(element.turn)
        r, angles = float(element.radius), float(element.start) + np.array([0.0, way * turn])
    if not 1e-8 < abs(turn) < 2 * math.pi + 1e-9:
        raise ValueError(f"a .DYN file cannot hold {what}: an element turns by {turn:.6g}, not within a full turn")
    points = np.asarray(element.center) + np.stack([r * np.cos(angles), r * np.sin(angles)], 1)
    return points[0], points[1]
