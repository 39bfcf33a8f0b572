"""A motion to look at: one page that plays it, with its events and plots, and needs nothing else."""

import base64
import dataclasses
import html
import importlib.resources
import json
import pathlib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .. import frames
from .._dynamics.solution import Solution
from .._events.log import Event
from .._events.results import RESULTS
from .._kinematics.motion import Motion
from .._kinematics.system import System, system
from .._model.force.spring import Spring
from .._model.gauge import Distance
from .._model.mechanism import GROUND, Mechanism, unknown
from .._numerics.groups import SE2
from .._programs.precision import is_concrete
from .._programs.trees import once
from .scene import Shape, mark, shapes


class Viewer(eqx.Module):
    """A page that shows a motion, made by [`mbsjax.view`][]. Notebooks show it as it is.

    - `html`: the whole page.
    """

    html: str = eqx.field(static=True)

    def save(self, path: Any) -> pathlib.Path:
        """Writes the page, and gives its path. Folders that are missing are made."""
        path = pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.html, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        style = "width:100%;height:860px;border:1px solid #8884;border-radius:8px"
        page = html.escape(self.html)
        return f'<iframe srcdoc="{page}" style="{style}" sandbox="allow-scripts" title="mbsjax"></iframe>'

    def __repr__(self) -> str:
        return f"Viewer({len(self.html) / 1000:.0f} kB; .save(path) writes the page)"


def view(
    what: Any, *, variants: Iterable[Any] = (), plots: Iterable[str] | None = None, title: str | None = None
) -> Viewer:
    """A page that plays a motion: bodies with their profiles, joints, contacts with their normals and forces, a
    timeline with all events, and plots. It is one file, which works without a network and can be sent to anybody.

    In the page: space plays, arrows go a step on or back, and with shift to the next event; the wheel zooms,
    dragging moves (in space, turns) the picture. `page.html#t=1.5` opens it at a time.

    **Arguments:**

    - `what`: an [`mbsjax.Motion`][] or an [`mbsjax.Solution`][]. What ended before its time is shown as far as it came,
        and the page says why it ended.
    - `variants`: further ones of mechanisms with the same bodies and joints, such as
        `[sample.outcome(i) for i in range(40)]` of a Monte Carlo: drawn as thin outlines around the first, and as bands
        in the plots.
    - `plots`: names of coordinates, joints, gauges and contacts. By default all coordinates and gauges that move, the
        gaps of all contacts and their forces.
    - `title`: of the page.

    **Returns:** an [`mbsjax.Viewer`][].

    !!! Example

        >>> import mbsjax as mbs
        >>> crank = mbs.Mechanism([mbs.Body("crank", points={"E": (1.0, 0.0)})], [mbs.Revolute("A", "ground", "crank")])
        >>> motion = mbs.kinematics(crank, {"A": mbs.constant_speed(1.0)}, jnp.linspace(0.0, 6.0, 61))
        >>> page = mbs.view(motion, title="A crank")
        >>> "<title>A crank</title>" in page.html
        True
    """
    _check(what, "what is to be seen")
    first, mech = _reel(what), what.mech
    others, idle = [], 0
    for i, variant in enumerate(variants):
        _check(variant, f"variant {i}")
        _check_variant(what, variant, i)
        if _reached(variant).any():
            others.append(_reel(variant))
        else:
            idle += 1
    names = None if plots is None else [plots] if isinstance(plots, str) else list(plots)
    if title is None:
        title = f"{'Simulation' if isinstance(what, Solution) else 'Motion'} of {', '.join(mech.links[1:])}"
    content = {
        "title": title,
        "simulated": isinstance(what, Solution),
        "planar": mech.planar,
        "t": _packed(first.t, np.float64),
        "events": [_event(e, i) for e, i in first.events],
        "outputs": len(what.ts),
        "until": float(what.ts[-1]),
        "end": _end(what),
        "bodies": [_body(shape, first.poses[shape.body], mech.planar) for shape in shapes(mech, _FINENESS)],
        "joints": _joints(mech),
        "ties": _ties(mech),
        "contacts": [_contact(first, k, c.name) for k, c in enumerate(mech.contacts)],
        "panels": _panels(first, others, names),
        "variants": [_variant(other) for other in others],
        "idle": idle,
    }
    return Viewer(_page(str(title), content))


_FINENESS = 4


def _page(title: str, content: dict) -> str:
    template = importlib.resources.files("mbsjax._pictures").joinpath("viewer.html").read_text(encoding="utf-8")
    data = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":  # nothing in it can end the script, or begin another
        data = data.replace(character, f"\\u{ord(character):04x}")
    filling = {"TITLE": html.escape(title), "DATA": data}
    return re.sub("{{(TITLE|DATA)}}", lambda found: filling[found[1]], template)


class _Reel(NamedTuple):
    """A motion as frames: its output times, and the dates of its events among them, so that nothing is interpolated
    across an event.

    `sheets` are motions whose rows are the outputs or the events; `order` says which of all their rows each frame is.
    `events` have the number of their frame.
    """

    mech: Mechanism
    sheets: list[Any]
    order: np.ndarray
    t: np.ndarray
    events: list[tuple[Event, int]]
    on: np.ndarray  # (frames, contacts)
    poses: dict[str, np.ndarray]  # (frames, 3): x, y, angle; in space (frames, 7): x, y, z, Euler parameters
    size: float  # of the mechanism
    tracks: dict[tuple[int, str], Any]  # what was read already

    def read(self, name: str, field: str) -> np.ndarray:
        """A field of a track, one row for each frame."""
        return np.concatenate([self.read_sheet(k, name, field) for k in range(len(self.sheets))])[self.order]

    def read_sheet(self, k: int, name: str, field: str) -> np.ndarray:
        if (k, name) not in self.tracks:
            self.tracks[k, name] = self.sheets[k][name]
        return np.asarray(getattr(self.tracks[k, name], field))


def _reel(what: Any) -> _Reel:
    alive = _reached(what)
    if not alive.any():
        raise ValueError(f"there is nothing to see: {RESULTS[what.result]}")
    mech, said, ts, n = what.mech, _said(what), np.asarray(what.ts), len(what.ts)
    dates, count = np.array([event.t for event in said]), len(said)
    rows = np.flatnonzero(alive)
    after = rows[np.minimum(np.searchsorted(ts[rows], dates), len(rows) - 1)]
    sheets = [what]
    for start in range(0, count, n):
        some = np.resize(np.arange(start, min(start + n, count)), n)  # as many as there are outputs: one program
        sheets.append(_at_events(what, after, some))
    rows = np.flatnonzero(alive & ~np.isin(ts, dates))  # the event itself tells of both sides
    t, every = np.concatenate([ts[rows], dates]), np.concatenate([rows, n + np.arange(count)])
    place = np.argsort(t, kind="stable")
    t, order = t[place], every[place]
    events = list(zip(said, np.argsort(place)[len(rows) :].tolist()))
    if isinstance(what, Motion):
        passed = [Event(date, "bifurcation", "", None, None, None) for date in what.bifurcations()]
        events += [(event, int(np.searchsorted(t, event.t))) for event in passed]
        events.sort(key=lambda e: e[0].t)
    plan = system(eqx.tree_at(lambda m: (m.contacts, m.forces), mech, ((), ())))
    X = np.concatenate([np.asarray(_poses(plan, sheet.q)) for sheet in sheets])[order]
    poses = {name: _smooth(X[:, plan.layout.body_numbers[name]]) for name in mech.links}
    return _Reel(mech, sheets, order, t, events, _active(what, said, order), poses, float(plan.size), {})


def _reached(what: Any) -> np.ndarray:
    return np.asarray(np.isfinite(what.q).all(-1))


def _said(what: Any) -> list[Event]:
    if isinstance(what, Solution):
        return what.events.list(what.mech, what.triggers)
    return [] if what.events is None else what.events.list(what.mech)


def _at_events(what: Any, after: np.ndarray, some: np.ndarray) -> Any:
    """The motion with some events as its rows; `after` is the next output of each event."""
    log: Any = what.events
    places = what.mode.places
    elements = _elements(log, after, np.stack([places.e1, places.e2], -1))[some]
    mode = jax.tree_util.tree_map(lambda x: x[after[some]], what.mode)
    places = mode.places._replace(e1=jnp.asarray(elements[..., 0]), e2=jnp.asarray(elements[..., 1]))
    mode = mode._replace(places=places)
    same: dict[str, Any] = {"ts": log.t[some], "q": log.q[some], "v": log.v_after[some]}
    if isinstance(what, Motion):
        return dataclasses.replace(what, **same, a=log.a_after[some], mode=mode)
    on = log.active[some]
    press = jnp.where(on, what.press[after[some]], 0.0)
    return dataclasses.replace(what, **same, a=what.a[after[some]], held=mode._replace(active=on), press=press)


def _elements(log: Any, after: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The elements of all contacts after each event, from those at the outputs: back from the next output to the first
    event before it, then on from event to event."""
    contact, old, new = (np.asarray(x) for x in (log.contact, log.before, log.after))
    of_contact = contact < rows.shape[1]  # not of a force or a trigger
    found = rows[after]
    for row in np.unique(after):
        events, now = np.flatnonzero(after == row), rows[row].copy()
        for i in events[::-1]:
            if of_contact[i]:
                now[contact[i]] = old[i]
        for i in events:
            if of_contact[i]:
                now[contact[i]] = new[i]
            found[i] = now
    return found


def _active(what: Any, said: list[Event], order: np.ndarray) -> np.ndarray:
    """Which contacts are active in each frame: at an event, after it."""
    names = [c.name for c in what.mech.contacts]
    if not names:
        return np.zeros((len(order), 0), bool)
    if isinstance(what, Solution):
        rows, at_events = np.asarray(what.mode.active), np.asarray(what.events.active)[: len(said)]
    else:
        rows = np.asarray(jax.vmap(lambda mode: mode.active)(what.mode))
        now, at_events = rows[np.flatnonzero(_reached(what))[0]].copy(), np.zeros((len(said), len(names)), bool)
        for i, event in enumerate(said):
            if event.kind in ("closed", "released", "deleted"):
                now[names.index(event.contact)] = event.kind == "closed"
            if event.gave_way:
                now[names.index(event.gave_way)] = False
            at_events[i] = now
    return np.concatenate([rows, at_events])[order]


@once
def _poses(plan: System, q: Array) -> Array:
    def one(q: Array) -> Array:
        X = plan.poses(q)
        if isinstance(X, SE2):
            return jnp.stack([X.x, X.y, X.angle], -1)
        M = X.matrix()
        return jnp.concatenate([M[..., :3, 3], frames.quaternion(M[..., :3, :3])], -1)

    return jax.vmap(one)(q)


def _smooth(X: np.ndarray) -> np.ndarray:
    """Euler parameters without changes of sign from one frame to the next."""
    if X.shape[1] == 3:
        return X
    flips = np.sign(np.sum(X[1:, 3:] * X[:-1, 3:], 1))
    X = X.copy()
    X[1:, 3:] *= np.cumprod(np.where(flips == 0, 1.0, flips))[:, None]
    return X


def _check(what: Any, name: str) -> None:
    if not isinstance(what, Motion | Solution):
        raise ValueError(f"{name} must be a Motion or a Solution, got {what!r}")
    if not is_concrete(what):
        raise ValueError(f"{name} is being traced: a motion can be seen outside of jit, vmap and grad only")
    if what.q.ndim != 2:
        raise ValueError(f"{name} is a batch of motions: give one of them, `.lane(i)`, and the others as variants")


def _check_variant(first: Any, variant: Any, i: int) -> None:
    mech = first.mech
    if type(first) is not type(variant):
        raise ValueError(f"variant {i} is a {type(variant).__name__}, and the first a {type(first).__name__}")
    for what, tell in (
        ("bodies", lambda m: m.links),
        ("profiles", lambda m: tuple(f"{b.name}.{p}" for b in m.bodies for p in b.profiles)),
        ("joints", lambda m: tuple((j.name, type(j.pair).__name__, j.body_a, j.body_b) for j in m.joints)),
        ("contacts", lambda m: tuple(c.name for c in m.contacts)),
        ("gauges", lambda m: tuple(g.name for g in m.gauges)),
    ):
        mine, its = tell(mech), tell(variant.mech)
        if mine != its:
            raise ValueError(f"variant {i} is of another mechanism: its {what} are {its}, not {mine}")
    if variant.mech.planar != mech.planar:
        raise ValueError(f"variant {i} is of another mechanism: one of them is planar, the other is not")


def _event(event: Event, frame: int) -> dict:
    return {"t": event.t, "kind": event.kind, "name": event.contact, "text": _words(event), "frame": frame}


def _words(event: Event) -> str:
    if event.kind == "bifurcation":
        return f"t = {event.t:.9g}: passed a bifurcation"
    return str(event)


def _end(what: Any) -> dict | None:
    if not bool(what.result != RESULTS.successful):
        return None
    at = float(what.stopped_at)
    return {"t": at if np.isfinite(at) else None, "why": RESULTS[what.result]}


def _body(shape: Shape, poses: np.ndarray, planar: bool) -> dict:
    lines, plate = _bones(shape, planar)
    wheel = any(m.kind in ("gear", "rolling", "rack") for m in shape.marks)
    alone = not (shape.outlines or lines or plate is not None or wheel or shape.body == GROUND)
    slide = next((m for m in shape.marks if m.kind in ("prismatic", "cylindrical")), None)
    seat = shape.marks[0] if slide is None and shape.marks else slide
    return {
        "name": shape.body,
        "pose": [_packed(x) for x in poses.T],
        "outlines": _outlines(shape),
        "lines": [_short(line) for line in lines],
        "plate": None if plate is None else _short(plate),
        "block": [_short(seat.place), _short(seat.axis)] if alone and seat is not None else None,
        "points": [[name, _short(p)] for name, p in shape.points.items()],
    }


def _outlines(shape: Shape, kind: Any = np.float32) -> list[dict]:
    return [
        {"closed": o.closed, "points": [_packed(x, kind) for x in _thinned(o.points, o.closed).T]}
        for o in shape.outlines
    ]


def _joints(mech: Mechanism) -> list[dict]:
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
            "places": [_short(a.place), _short(b.place)],
            "axes": [_short(a.axis), _short(b.axis)],
        }
        found.append(entry)
    return found


def _ties(mech: Mechanism) -> list[dict]:
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
            "places": [_short(g.point_a), _short(g.point_b)],
        }
        for name, kind, g in along
        if isinstance(g, Distance)
    ]


def _contact(reel: _Reel, k: int, name: str) -> dict:
    on, force = reel.on[:, k], None
    if isinstance(reel.sheets[0], Solution):
        force = _packed(np.where(on, reel.read(name, "force"), 0.0))
    point, normal = ([_packed(x) for x in reel.read(name, field).T] for field in ("point", "normal"))
    return {"name": name, "on": _packed(on, np.uint8), "point": point, "normal": normal, "force": force}


def _panels(first: _Reel, others: list[_Reel], names: list[str] | None) -> list[dict]:
    mech, contacts = first.mech, [c.name for c in first.mech.contacts]
    gauges = [g.name for g in mech.gauges]
    if names is None:
        stored = [s for j in mech.joints for s in j.pair.slots]
        chosen = [name for name, slot in zip(mech.coordinates, stored) if slot is not None]
        chosen += [g.name for g in mech.gauges if g.value is None] + contacts
    else:
        chosen = names
        known = [*mech.coordinates, *(j.name for j in mech.joints if j.pair.rest), *gauges, *contacts]
        for name in chosen:
            if name not in known:
                raise ValueError(f"plots names {unknown('coordinate, joint, gauge or contact', name, known)}")
    panels = []
    for name in chosen:
        for label, columns, field in _readings(first, name):
            y = first.read(name, field).reshape(len(first.t), -1)
            finite = y[np.isfinite(y)]
            size = max(np.abs(finite).max(initial=0.0), first.size if field == "gap" else 1e-3)
            if names is None and (finite.size == 0 or np.ptp(finite) <= 1e-9 * size):
                continue
            lines = [
                {"label": column, "y": _packed(y[:, i]), "band": _band(first.t, y[:, i], others, name, field, i)}
                for i, column in enumerate(columns)
            ]
            panels.append({"label": label, "lines": lines, "jumps": field == "force"})
    return panels


def _readings(reel: _Reel, name: str) -> list[tuple[str, list[str], str]]:
    """What is plotted of a name: the label, those of the curves, and the field of its track."""
    mech = reel.mech
    if name in [c.name for c in mech.contacts]:
        fields = ("gap", "force") if isinstance(reel.sheets[0], Solution) else ("gap",)
        return [(f"{name}: {field}", [""], field) for field in fields]
    columns = [""]
    joint = next((j for j in mech.joints if j.name == name), None)
    if joint is not None and len(joint.pair.rest) > 1:
        columns = [f"e{i}" for i in range(len(joint.pair.rest))]
        for coordinate, slot in zip(joint.pair.coordinates, joint.pair.slots):
            if slot is not None:
                columns[slot] = coordinate
    return [(name, columns, "q")]


def _band(t: np.ndarray, y: np.ndarray, others: list[_Reel], name: str, field: str, i: int) -> list | None:
    """The least and the largest of all variants."""
    if not others:
        return None
    every = [y]
    for other in others:
        ts, there = np.asarray(other.sheets[0].ts), _reached(other.sheets[0])
        its = other.read_sheet(0, name, field).reshape(len(ts), -1)[there, i]
        every.append(np.interp(t, ts[there], its, left=np.nan, right=np.nan))
    rows = np.stack(every)
    there = np.isfinite(rows)
    low, high = np.where(there, rows, np.inf).min(0), np.where(there, rows, -np.inf).max(0)
    return [_packed(np.where(there.any(0), x, np.nan)) for x in (low, high)]


def _variant(reel: _Reel) -> dict:
    bodies = []
    for shape in shapes(reel.mech, _FINENESS):
        lines, plate = _bones(shape, reel.mech.planar)
        bodies.append(
            {
                "pose": [_packed(x, np.uint16) for x in reel.poses[shape.body].T],
                "outlines": _outlines(shape, np.uint16),
                "lines": [_short(x) for x in lines],
                "plate": None if plate is None else _short(plate),
            }
        )
    return {"t": _packed(reel.t), "bodies": bodies}


def _bones(shape: Shape, planar: bool) -> tuple[list[np.ndarray], np.ndarray | None]:
    """How the parts of a body hang together: lines, and the plate that a link with three joints or more is."""
    if shape.body == GROUND:
        return [], None
    places = shape.skeleton
    if not shape.outlines:
        if len(places) < 2:
            return [], None
        if not planar:
            pairs = [(i, j) for i in range(len(places)) for j in range(i)] if len(places) < 5 else []
            return [places[[i, j]] for i, j in pairs] or [places], None
        hull = _hull(places)
        return ([], hull) if len(hull) > 2 else ([places[[0, -1]]], None)
    if len(places) == 0:
        return [], None
    base = shape.marks[0].place if shape.marks else places[0]
    reach = max(float(np.ptp(np.concatenate([o.points for o in shape.outlines]), axis=0).max()), 1e-12)
    lines, home = [], [o for o in shape.outlines if _within(base, o.points, o.closed)]
    for outline in shape.outlines:
        near = _nearest(base, outline.points, outline.closed)
        if not any(outline is o for o in home) and np.linalg.norm(near - base) > 1e-6 * reach:
            lines.append(np.stack([base, near]))
    for place in places:
        inside = any(_within(place, o.points, o.closed) for o in home)
        if not inside and np.linalg.norm(place - base) > 1e-6 * reach:
            lines.append(np.stack([base, place]))
    return lines, None


def _within(p: np.ndarray, points: np.ndarray, closed: bool) -> bool:
    if not closed or len(p) == 3:
        return False
    (x, y), (u, v) = (points - p).T, (np.roll(points, -1, 0) - p).T
    crosses = (y > 0) != (v > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        right = x - y * (u - x) / (v - y) > 0
    return bool(np.sum(crosses & right) % 2)


def _nearest(p: np.ndarray, points: np.ndarray, closed: bool) -> np.ndarray:
    starts, ends = (points, np.roll(points, -1, 0)) if closed else (points[:-1], points[1:])
    d = ends - starts
    s = np.clip(np.sum((p - starts) * d, 1) / np.maximum(np.sum(d * d, 1), 1e-300), 0, 1)
    on = starts + s[:, None] * d
    return on[np.argmin(np.linalg.norm(on - p, axis=1))]


def _hull(points: np.ndarray) -> np.ndarray:
    """The convex hull, counter-clockwise; two points where they lie on a line."""

    def half(points: np.ndarray) -> list[np.ndarray]:
        chain: list[np.ndarray] = []
        for p in points:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], p) <= flat:
                chain.pop()
            chain.append(p)
        return chain[:-1]

    flat = 1e-6 * float(np.ptp(points, axis=0).max()) ** 2
    ordered = points[np.lexsort(points.T[::-1])]
    return np.array(half(ordered) + half(ordered[::-1]))


def _turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _thinned(points: np.ndarray, closed: bool) -> np.ndarray:
    """Without points on the straight way between their neighbours."""
    if len(points) < 3:
        return points
    before, after = np.roll(points, 1, 0) - points, np.roll(points, -1, 0) - points
    a, b = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300) for x in (before, after))
    keep = np.linalg.norm(a + b, axis=1) > 1e-7
    if not closed:
        keep[[0, -1]] = True
    return points[keep]


def _short(x: Any) -> list:
    """A few numbers, rounded to nine digits."""
    x = np.asarray(x, float)
    return [_short(row) for row in x] if x.ndim > 1 else [float(f"{v:.9g}") for v in x]


def _packed(x: Any, kind: Any = np.float32) -> Any:
    """A row of numbers for the page: one number if they are all the same; else their bytes, in base64. With uint16
    they are parts of the way from the least to the largest, the last code standing for what is not finite."""
    x = np.asarray(x, float)
    there = np.isfinite(x)
    x = np.where(there, x, np.nan)
    if len(x) and there.all() and np.ptp(x) <= 1e-12 * np.abs(x).max():
        return [len(x), float(f"{x[0]:.9g}")]
    name = np.dtype(kind).name
    if kind is not np.uint16:
        return {"kind": name, "bytes": _text(np.asarray(x, kind))}
    low, high = (np.nanmin(x), np.nanmax(x)) if there.any() else (0.0, 1.0)
    parts = np.where(there, np.round((x - low) / max(high - low, 1e-300) * 65534), 65535)
    return {"kind": name, "bytes": _text(parts.astype(kind)), "low": float(low), "high": float(high)}


def _text(x: np.ndarray) -> str:
    return base64.b64encode(x.astype(x.dtype.newbyteorder("<")).tobytes()).decode()
