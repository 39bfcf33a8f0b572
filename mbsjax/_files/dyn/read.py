"""Reads ACDMC's `.DYN` files. They may come from anywhere: sizes are limited, what is wrong is a `ValueError`."""

import contextlib
import math
import os
import pathlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..._model.body import Body
from ..._model.force.base import AbstractForce
from ..._model.force.spring import Actuator, Spring
from ..._model.joint.contact import Contact
from ..._model.joint.joint import Joint
from ..._model.joint.prismatic import PrismaticPair
from ..._model.mechanism import GROUND, Mechanism
from ..._model.profile.profile import Profile
from ...frames import at
from ..dyn import text as words
from .content import PAIRS, Dyn, DynWarning, coordinates_of
from .curve import Part, profile_of
from .text import MOST, Field, Record, records_of, short


LARGEST_FILE = 1 << 20  # characters
MOST_CURVES = 2000  # in a file, where an arc counts as 16 lines and a polynomial as 32: as many points are compared
MOST_TERMS, HIGHEST_ORDER = 64, 100


def read_dyn(source: Any) -> Dyn:
    """Reads a `.DYN` file of ACDMC, the program of D. Wang's thesis (its appendix D).

    **Arguments:**

    - `source`: the path of a file; or its text. A text in one line is taken as a path only if it ends in `.DYN`.

    **Returns:** an [`mbsjax.Dyn`][]: the mechanism, where its motion begins, and the rest of the file.

    Keywords may be French or English, in any mixture, as in the thesis. Irregularities are told by a
    [`mbsjax.DynWarning`][], with the line and what was assumed; they are in `.notes` too. What cannot be read raises a
    `ValueError`, with the line.

    - Units are those of the file: the format names none, and all fits any consistent system. The examples of the
        thesis are in mm, kg, s (4.3) and in cm, kg, s (4.4). Joint coordinates are in radians (the 0.5 rad/s of 4.4
        stands as such in its file), the angles of polynomials, `Ao` and `Ko`, in degrees; here, all are in radians.
    - `STIFF` is the slope of the force along the joint's coordinate: in the file of 4.3, a spring that draws the
        follower back has a negative one. The spring is relaxed at `LENGTH`.
    - `MASS` is the integral of r r^T dm, r = (x, y, z, 1), in the frame of the link (3.3.2-10).
    - `GRAVITY` acts along -y: the format tells no direction.
    - `AR0` is not needed: positions follow from the joint coordinates.
    - A curve is closed if it ends where it begins. An element without `PINIT` begins where the one before ends. A
        polynomial without `PEND` ends where its radius is the one that the next element begins with.

    !!! Example

        >>> import mbsjax as mbs
        >>> pendulum = mbs.Mechanism([mbs.Body("bob", mass=2.0)], [mbs.Revolute("O", "ground", "bob")])
        >>> text = mbs.write_dyn(pendulum)
        >>> mbs.read_dyn(text).mech.body("bob").mass.item()
        2.0
    """
    with np.errstate(all="ignore"):
        dyn = _File(records_of(_text(source))).dyn()
    for note in dyn.notes:
        warnings.warn(note, DynWarning, stacklevel=2)
    return dyn


def _text(source: Any) -> str:
    if isinstance(source, str) and not (source.lower().endswith(".dyn") and "\n" not in source):
        text = source
    elif isinstance(source, bytes):
        text = _decoded(source)
    elif isinstance(source, str | os.PathLike):
        with pathlib.Path(source).open("rb") as file:
            text = _decoded(file.read(LARGEST_FILE + 1))
    else:
        raise ValueError(f"a .DYN file is given by its path or its text, got {source!r}")
    if len(text) > LARGEST_FILE:
        raise ValueError(f"a .DYN file may have {LARGEST_FILE} characters, this one has more")
    return text


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


@contextlib.contextmanager
def _blamed(line: int, what: str) -> Iterator[None]:
    """Errors of what is built here, with the line that it comes from, unless they tell it already."""
    try:
        yield
    except ValueError as error:
        if str(error).startswith("line "):
            raise
        raise ValueError(f"line {line}: {what}: {error}") from error


class _Surface(NamedTuple):
    line: int
    frame: np.ndarray | None
    profile: Profile | None


class _Link(NamedTuple):
    record: Record
    surfaces: dict[str, _Surface]


class _File:
    def __init__(self, records: list[Record]):
        self.records, self.notes, self.budget = records, list[str](), MOST_CURVES

    def of(self, what: str) -> list[Record]:
        return [r for r in self.records if r.what == what]

    def get(self, record: Record, key: str) -> Field:
        return record.get(key, self.notes)

    def name(self, record: Record, key: str = "name") -> str:
        return self.get(record, key).name()

    def number(self, record: Record, key: str, default: float) -> float:
        field = record.maybe(key, self.notes)
        return default if field is None else field.number()

    def truth(self, record: Record, key: str) -> bool:
        field = record.maybe(key, self.notes)
        return False if field is None else field.word_of(words.TRUE)

    def note(self, line: int, text: str) -> None:
        self.notes.append(f"line {line}: {text}")

    def dyn(self) -> Dyn:
        if not self.of("MACH"):
            raise ValueError("line 1: expected ENTITY : MACH, which is missing")
        mach = self.of("MACH")[0]
        g, time, step = (self.number(mach, *x) for x in (("gravity", 0.0), ("time", 1.0), ("step", 0.01)))
        for field in (*mach.all("time"), *mach.all("step")):
            if not field.number() > 0:
                raise field.fail("a positive number")
        name, stage = self.name(mach), mach.maybe("state", self.notes)
        links = self.links()
        ground = self.ground(links)
        bodies = [self.body(name, link, GROUND if name == ground else name) for name, link in links.items()]
        joints, contacts, forces = list[Joint](), list[Contact](), list[AbstractForce]()
        given: dict[str, dict[str, Any]] = {"positions": {}, "velocities": {}, "places": {}}
        independent, surfaces = list[str](), list[tuple[str, str, str]]()
        motions = self.motions()
        for record in self.of("PAIR"):
            motion = motions.get(self.name(record))
            if motion is None:
                self.note(record.line, f"no OCPA tells of PAIR {self.name(record)!r}: taken to be at rest at zero")
                motion = Record("OCPA", record.line)
            q, v = self.initial(motion)
            joint = self.pair(record, motion, links, ground, q)
            motors = [i for i in range(6) if self.truth(motion, f"motor{i + 1}")]
            if isinstance(joint, Contact):
                contacts.append(joint)
                given["places"][joint.name], names = q[:3], ()
            else:
                joints.append(joint)
                names = coordinates_of(joint)
                surfaces.append((joint.name, self.name(record, "surf_a"), self.name(record, "surf_b")))
                given["positions"] |= dict(zip(names, q))
                given["velocities"] |= dict(zip(names, v))
                if any(q[len(names) :] + v[len(names) :]):
                    self.note(motion.line, f"OCPA of {joint.name!r}: numbers beyond its {len(names)} are left out")
            if [i for i in motors if i >= len(names)]:
                raise ValueError(f"line {motion.line}: OCPA: expected ARMOTOR for {len(names)} coordinate(s) only")
            independent += [names[i] for i in motors]
            forces += self.forces(motion, joint)
        with _blamed(mach.line, "MACH"):
            mech = Mechanism(bodies, [*joints, *contacts], forces=forces, gravity=(0.0, -g + 0.0, 0.0))
        self.check_loops()
        return Dyn(
            mech, **given, independent=independent, surfaces=surfaces, notes=dict.fromkeys(self.notes), ground=ground,
            time=time, step=step, name=name, stage=stage.text if stage else "",
        )  # fmt: skip

    def links(self) -> dict[str, _Link]:
        links: dict[str, _Link] = {}
        link: _Link | None = None
        for record in self.records:
            if record.what == "LINK":
                name = self.name(record)
                if name in links:
                    raise ValueError(
                        f"line {record.line}: LINK {name!r} stands in line {links[name].record.line} already"
                    )
                links[name] = link = _Link(record, {})
            elif record.what == "SURF":
                if link is None:
                    raise ValueError(f"line {record.line}: SURF: expected a LINK before it, which it belongs to")
                name = self.name(record)
                if name in link.surfaces:
                    raise ValueError(f"line {record.line}: SURF {name!r}: its link has one of this name already")
                link.surfaces[name] = self.surface(record, name)
        return links

    def ground(self, links: Mapping[str, _Link]) -> str:
        told = {}
        for record in self.of("OCLI"):
            name = self.name(record)
            if name not in links or name in told:
                raise ValueError(f"line {record.line}: OCLI: expected the name of a LINK, once, got {short(name)}")
            told[name] = self.truth(record, "fixed")
        for name, link in links.items():
            if name not in told:
                self.note(link.record.line, f"no OCLI tells of LINK {name!r}: taken to move")
        fixed = [name for name in told if told[name]]
        if len(fixed) != 1:
            line = self.of("OCLI")[-1].line if told else 1
            raise ValueError(f"line {line}: OCLI: expected FIXED : TRUE for one link, got it for {len(fixed)}")
        if GROUND in links and fixed[0] != GROUND:
            raise ValueError(f"line {links[GROUND].record.line}: LINK: a link that moves cannot be called {GROUND!r}")
        return fixed[0]

    def body(self, name: str, link: _Link, called: str) -> Body:
        record = link.record
        field = record.maybe("aro", self.notes)
        if field is not None and field.numbers(12) != np.eye(4)[:3].ravel().tolist():
            self.note(field.line, f"AR0 of LINK {name!r} is left out: its position follows from its joints")
        profiles = {k: s.profile for k, s in link.surfaces.items() if s.profile is not None}
        field = record.maybe("mass", self.notes)
        J = np.array(field.numbers(16) if field else [0.0] * 16).reshape(4, 4)
        with _blamed(field.line if field else record.line, f"LINK {name!r}"):
            m, first = J[3, 3], J[:3, 3]
            scale = np.abs(J).max()
            if np.abs(J - J.T).max() > 1e-9 * scale or (m == 0 and first.any()):
                raise ValueError("expected a symmetric matrix, without first moments where there is no mass")
            center = first / m if m else first
            second = (J + J.T)[:3, :3] / 2 - m * np.outer(center, center)
            values, axes = np.linalg.eigh(second)
            if values[0] < -1e-6 * scale:
                raise ValueError(f"no body has this MASS: a second moment about the center would be {values[0]:.6g}")
            if values[0] < 0:  # a digit too few
                second = axes @ np.diag(np.maximum(values, 0.0)) @ axes.T
                second = (second + second.T) / 2
            inertia = np.trace(second) * np.eye(3) - second
            return Body(called, mass=m, center=center, inertia=inertia, profiles=profiles)

    def surface(self, record: Record, name: str) -> _Surface:
        if self.get(record, "type").word_of(words.SURFACES) == "frame":
            X = np.array([*self.get(record, "shape").numbers(12), 0.0, 0.0, 0.0, 1.0]).reshape(4, 4)
            R = X[:3, :3]
            if np.abs(R @ R.T - np.eye(3)).max() > 1e-6 or np.linalg.det(R) < 0:
                raise self.get(record, "shape").fail("three perpendicular unit vectors and a point")
            return _Surface(record.line, X, None)
        normal = record.maybe("normal", self.notes)
        parts = self.parts(record)
        with _blamed(record.line, f"SURF {name!r}"):
            profile = profile_of(parts, normal.numbers(3) if normal else [0.0, 0.0, 1.0], self.note)
        return _Surface(record.line, None, profile)

    def parts(self, record: Record) -> list[Part]:
        """The elements of a curve."""
        pieces: list[Record] = []
        for field in record.fields:
            if field.key == "curve":
                pieces.append(Record("SURF element", field.line))
            if pieces:
                pieces[-1].fields.append(field)
        parts = [self.part(piece) for piece in pieces]
        if not parts:
            raise ValueError(f"line {record.line}: SURF: expected TYPE OF CURVE, which is missing")
        for i, piece in enumerate(pieces):
            field = piece.maybe("end", self.notes)
            ends = field.word_of(words.YES) if field else None
            if ends is None or ends != (i == len(pieces) - 1):
                line = (field or piece).line
                if ends:
                    raise ValueError(f"line {pieces[i + 1].line}: SURF: expected no element after FIN in line {line}")
                self.note(line, "FIN is not told as it is: the curve is taken to end with its last element")
        return parts

    def part(self, piece: Record) -> Part:
        kind = self.get(piece, "curve").word_of(words.CURVES)
        self.budget -= {"point": 1, "line": 1, "polynomial": 32}.get(kind, 16)
        if self.budget < 0:
            raise ValueError(f"line {piece.line}: SURF: expected no more than {MOST_CURVES} lines, arcs counting 16")
        side, *fields = (piece.maybe(key, self.notes) for key in ("side", "pinit", "pend", "center"))
        points = [np.array(f.numbers(2, 3)) if f else None for f in fields]
        part = Part(kind, piece.line, *points, concave=bool(side and side.word_of(words.SIDES)))
        if kind in ("arc", "circle", "polynomial"):
            self.get(piece, "center")
            self.get(piece, "side")
        if kind == "circle":
            part = part._replace(radius=self.get(piece, "radius").number())
        if kind == "polynomial":
            n = self.get(piece, "num").whole(MOST_TERMS)
            orders = self.get(piece, "order")
            if not all(x.is_integer() and 0 <= x <= HIGHEST_ORDER for x in orders.numbers(n)):
                raise orders.fail(f"{n} whole numbers, from 0 to {HIGHEST_ORDER}")
            ro, ko = piece.maybe("ro", self.notes), piece.maybe("ko", self.notes)
            if ro and ro.number() != 1:
                raise ro.fail("1: the thesis does not tell what another value means")
            if ko and ko.number() == 0:
                raise ko.fail("a scale, other than 0")
            part = part._replace(
                coefficients=tuple(self.get(piece, "coeffi").numbers(n)),
                orders=tuple(int(x) for x in orders.numbers(n)),
                offset=self.number(piece, "ao", 0.0),
                scale=ko.number() if ko else 1.0,
            )
        return part

    def motions(self) -> dict[str, Record]:
        """OCPA by the name of the joint."""
        known = {self.name(record): record for record in self.of("PAIR")}
        if len(known) < len(self.of("PAIR")):
            raise ValueError(f"line {self.of('PAIR')[-1].line}: PAIR: expected different names for all pairs")
        motions: dict[str, Record] = {}
        for record in self.of("OCPA"):
            name = self.name(record, "joint")
            if name not in known or name in motions:
                raise ValueError(f"line {record.line}: OCPA: expected the name of a PAIR, once, got {short(name)}")
            motions[name] = record
            for field in (*record.all("last"), *record.all("next")):
                self.note(field.line, f"{field.word} is left out: the thesis does not tell what it means")
            for key in ("link_a", "link_b"):
                field = record.maybe(key, self.notes)
                if field and field.name() != self.name(known[name], key):
                    theirs = self.name(known[name], key)
                    self.note(field.line, f"{field.word} of joint {name!r} is {theirs!r} in its PAIR, which is taken")
        return motions

    def initial(self, motion: Record) -> tuple[list[float], list[float]]:
        """Six positions and six velocities."""
        at_rest = [0.0] * 6
        twice = motion.all("position")
        if len(twice) == 2 and not motion.all("velocity"):
            self.note(twice[1].line, f"a second {twice[1].word}, and no velocity: taken as the velocity")
            return twice[0].numbers(6), twice[1].numbers(6)
        q, v = (motion.maybe(key, self.notes) for key in ("position", "velocity"))
        return q.numbers(6) if q else at_rest, v.numbers(6) if v else at_rest

    def pair(
        self, record: Record, motion: Record, links: Mapping[str, _Link], ground: str, q: list[float]
    ) -> Joint | Contact:
        name, kind = self.name(record), self.get(record, "type").word_of(words.PAIRS)
        bodies, surfaces = [], []
        for side in ("a", "b"):
            link, surf = self.get(record, f"link_{side}"), self.get(record, f"surf_{side}")
            if link.name() not in links:
                raise link.fail("the name of a LINK")
            if surf.name() not in links[link.name()].surfaces:
                raise surf.fail(f"the name of a SURF of LINK {link.name()!r}")
            found = links[link.name()].surfaces[surf.name()]
            if (found.profile is None) == (kind == "contact"):
                raise surf.fail(f"a surface of the type {words.SURFACES['curve' if kind == 'contact' else 'frame'][0]}")
            bodies.append(GROUND if link.name() == ground else link.name())
            surfaces.append(found)
        with _blamed(record.line, f"PAIR {name!r}"):
            if kind == "contact":
                a, b = (f"{body}.{self.name(record, s)}" for body, s in zip(bodies, ("surf_a", "surf_b")))
                active, e = self.truth(motion, "active"), self.number(motion, "restitution", 0.0)
                return Contact(name, a, b, active=active, restitution=e)
            frames = [_flat(s.frame, kind) for s in surfaces]
            pair = PAIRS[kind]()
            start = q[: len(pair.rest)]
            rests = np.array_equal(start, pair.rest)  # a file tells all coordinates, also those nobody estimated
            return Joint(name, bodies[0], bodies[1], pair, *frames, start=None if rests else start)

    def forces(self, motion: Record, joint: Joint | Contact) -> list[AbstractForce]:
        F, k, length = (self.number(motion, key, 0.0) for key in ("force", "stiff", "length"))
        if not (F or k or length):
            return []
        if isinstance(joint, Contact) or len(joint.pair.coordinates) != 1:
            raise ValueError(
                f"line {motion.line}: OCPA of {joint.name!r}: expected no FORCE, STIFF and LENGTH, since this joint "
                "has not just one coordinate to act along"
            )
        if not (k or length):
            return [Actuator(joint.name, F)]
        return [Spring(joint.name, stiffness=-k + 0.0, free_length=length, preload=-F + 0.0)]

    def check_loops(self) -> None:
        """ACDMC writes the loops it has found. They are found anew here, but should be loops."""
        pairs = {self.name(r): [self.name(r, k) for k in ("link_a", "link_b")] for r in self.of("PAIR")}
        for record in self.of("LOOP"):
            steps = []
            for field in record.all("along"):
                if not field.rows or field.rows[0] not in pairs:
                    raise ValueError(f"line {field.line}: {field.word}: expected the name of a PAIR in the next line")
                a, b = pairs[field.rows[0]]
                steps.append((a, b) if field._replace(rows=[]).word_of(words.TRUE) else (b, a))
            chain = record.maybe("chain", self.notes)
            closed = chain is None or chain.word_of(words.CHAINS) == "closed"
            field = record.maybe("num", self.notes)
            joined = all(x[1] == y[0] for x, y in zip(steps, steps[1:] + steps[:closed]))
            if not (steps and joined) or (field and field.whole(MOST["PAIR"]) != len(steps)):
                self.note(record.line, "LOOP is not a loop of the pairs as they are: loops are found anew")


def _flat(X: np.ndarray | None, kind: str) -> Any:
    """A joint's frame, in the plane if it lies there."""
    assert X is not None
    lift = PrismaticPair.lift if kind == "prismatic" else np.eye(4)
    F = X @ lift.T
    if kind in ("revolute", "prismatic", "planar") and np.abs(F - _PLANE)[_FIXED].max() <= 1e-12:
        return at(F[0, 3], F[1, 3], math.atan2(F[1, 0], F[0, 0]))
    return X


_PLANE = np.eye(4)
_FIXED = np.ones((4, 4), bool)
_FIXED[:2, :2] = _FIXED[:2, 3] = False
