"""A motion to look at: one page that plays it, with its events and plots, and needs nothing else."""

import html
import importlib.resources
import json
import pathlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..._dynamics.equilibrium import Equilibrium
from ..._dynamics.inverse_dynamics import Efforts
from ..._dynamics.solution import Solution
from ..._events.results import RESULTS
from ..._kinematics.motion import Motion
from ..._model.mechanism import Mechanism
from ..._model.units import unit_label
from ..._programs.batch import single
from ..._programs.custom_types import ByName, Laws
from ..._programs.precision import is_concrete
from ...frames import quaternion_matrix
from ..mechanism import reactions, touching
from ..quantities import shown
from ..scene import tangents
from ..sketch import Sketch, Touching
from ..style import PAGE
from .bodies import bodies, variant_bodies
from .events import events
from .joints import drivers, joints, ties
from .keyframes import Keyframes, Still, at_rest, keyframes, reached, still
from .meshes import looks_of
from .packing import packed
from .plots import panels


# The scripts that show a lane, in the order in which they stand in the page, all within one function: what one of them
# does when it opens may need what stands before it.
_SCRIPTS = (
    "lane", "geometry", "colors", "clock", "camera", "drawing", "bodies", "meshes", "joints", "ties", "senses",
    "contacts", "stage", "plots", "download", "controls",
)  # fmt: skip
_MOST = 200  # lanes in a page


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
        return (
            f'<iframe srcdoc="{page}" style="{style}" sandbox="allow-scripts allow-downloads" title="mbsjax"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Viewer({len(self.html) / 1000:.0f} kB; .save(path) writes the page)"


def view(
    what: Any,
    *,
    variants: Iterable[Any] = (),
    over: Mapping[str, Any] | None = None,
    plots: Iterable[str] | None = None,
    drive: Laws | None = None,
    estimate: ByName | Array | None = None,
    looks: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> Viewer:
    """A page that plays a motion: bodies with their profiles, joints, springs, contacts with their normals, forces and
    impulses, a timeline with all events, and plots. It is one file, which works without a network and can be sent to
    anybody. Of a mechanism, it shows the position in which it is assembled, which way its drivers move it, and whether
    its springs pull or push: before anything is computed.

    In the page: space plays, arrows go a step on or back, and with shift to the next event; the wheel zooms,
    dragging moves (in space, turns) the picture. What is plotted, and over what, is chosen above and below each plot.
    `page.html#t=1.5` opens it at a time.

    **Arguments:**

    - `what`: an [`mbsjax.Motion`][] or an [`mbsjax.Solution`][]; or the [`mbsjax.Efforts`][] of a motion, whose plots
        begin with what drivers push with and end with the reactions of joints. What ended before its time is shown as
        far as it came, and the page says why it ended. A batch of them, made by `jax.vmap`: its lanes are chosen in the
        page. A dictionary of several, by name: these are chosen from a list. Or an [`mbsjax.Mechanism`][], or where one
        rests, an [`mbsjax.Equilibrium`][], with the forces of its contacts and joints.
    - `variants`: further ones of mechanisms with the same bodies and joints, such as
        `[sample.outcome(i) for i in range(40)]` of a Monte Carlo: drawn as thin outlines around the first, and as bands
        in the plots.
    - `over`: of a batch, what its lanes differ in, by name: `{"crank": values}` makes a slider.
    - `plots`: names of coordinates, joints, gauges and contacts; `"A.v"` and `"A.a"` are velocity and acceleration,
        `"rod.E.q"` the position of a point, `"C.force"` and `"spring.force"` forces, `"energy"` the energies,
        `"A.effort"` the torque or force of a driver, `"A.reaction"` what a joint transmits, `"A.v over A.q"` a phase
        plot. By default all coordinates and gauges that move, the gaps of all contacts, their forces and their
        friction. The page offers all of these but, of a simulation, reactions.
    - `drive`, `estimate`: of a mechanism, as in [`mbsjax.kinematics`][].
    - `looks`: in space, files with what bodies look like, by name: `{"crank": "crank.stl"}`; STL, GLB or glTF, in the
        frame and the unit of length of the body. Fine meshes are made coarser.
    - `title`: of the page.

    **Returns:** an [`mbsjax.Viewer`][].

    !!! Example

        >>> import mbsjax as mbs
        >>> crank = mbs.Mechanism([mbs.Body("crank", points={"E": (1.0, 0.0)})], [mbs.Revolute("A", "ground", "crank")])
        >>> motion = mbs.kinematics(crank, {"A": mbs.constant_speed(1.0)}, np.linspace(0.0, 6.0, 61))
        >>> page = mbs.view(motion, title="A crank", plots=["A", "crank.E.v over A"])
        >>> "<title>A crank</title>" in page.html
        True
    """
    asked = None if plots is None else [plots] if isinstance(plots, str) else list(plots)
    names, runs = _lanes(what, over)
    others, idle = _variants(runs[0], variants)
    contents = [_content(_frames(run, drive, estimate), others, asked) | _at_rest(run) for run in runs]
    first, mech = contents[0], runs[0] if isinstance(runs[0], Mechanism) else runs[0].mech
    first |= {"looks": looks_of(mech, looks or {})}
    if title is None:
        title = f"{first['kind'].capitalize()} of {', '.join(mech.links[1:])}"
    ghosts = len(runs) > 1 and not isinstance(what, Mapping)
    for content in contents:
        content |= {"ghosts": ghosts}
    first |= {"title": title, "idle": idle, "lanes": contents[1:], "names": names, "over": over and next(iter(over))}
    return Viewer(_page(str(title), first))


def _lanes(what: Any, over: Mapping[str, Any] | None) -> tuple[list[str], list[Any]]:
    """The motions to choose from, and their names."""
    if isinstance(what, Mapping):
        if not what:
            raise ValueError("there is nothing to see: the dictionary is empty")
        names, runs = [str(name) for name in what], list(what.values())
        for name, run in zip(names, runs):
            _check(run, f"{name!r}")
        return _not_over(names, over), runs
    _check(what, "what is to be seen", batch=True)
    if isinstance(what, Mechanism | Equilibrium) or not what.batch:
        return _not_over([""], over), [what]
    if len(what.batch) > 1:
        raise ValueError(f"a batch of shape {what.batch} has several axes: give one of them, `.lane(i)`")
    n = what.batch[0]
    if n > _MOST:
        raise ValueError(f"a batch of {n} lanes is too large for a page, which can have {_MOST}: give some, `.lane(i)`")
    named = {name: np.asarray(x) for name, x in (over or {}).items()}
    for name, values in named.items():
        if values.shape != (n,):
            raise ValueError(f"over[{name!r}] must have a number for each of the {n} lanes, got shape {values.shape}")
    names = [", ".join(f"{name} = {x[i]:.6g}" for name, x in named.items()) or f"lane {i}" for i in range(n)]
    lanes = [(name, what.lane(i)) for i, name in enumerate(names)]
    there = [(name, lane) for name, lane in lanes if reached(lane).any()] or lanes[:1]
    return [name for name, _ in there], [lane for _, lane in there]


def _not_over(names: list[str], over: Mapping[str, Any] | None) -> list[str]:
    if over:
        raise ValueError("`over` tells what the lanes of a batch differ in, and this is none")
    return names


def _variants(first: Any, variants: Iterable[Any]) -> tuple[list[Keyframes], int]:
    """Variants as frames, and how many of them did not move at all."""
    others, idle = [], 0
    for i, variant in enumerate(variants):
        _check(variant, f"variant {i}", model=False)
        _check_variant(first, variant, i)
        if reached(variant).any():
            others.append(keyframes(variant))
        else:
            idle += 1
    return others, idle


def _frames(run: Any, drive: Any, estimate: Any) -> Keyframes:
    if isinstance(run, Mechanism):
        return still(run, drive or {}, estimate)
    if drive is not None or estimate is not None:
        raise ValueError("`drive` and `estimate` are for a mechanism: a motion has its own")
    return at_rest(run) if isinstance(run, Equilibrium) else keyframes(run)


def _content(frames: Keyframes, others: list[Keyframes], asked: list[str] | None) -> dict:
    """What there is in the page of one motion, or of a mechanism that rests."""
    mech, what = frames.mech, frames.motions[0]
    rests = isinstance(what, Still)
    plotted, more = ([], []) if rests else panels(frames, others, asked)
    return {
        "kind": "mechanism" if rests else "simulation" if isinstance(what, Solution) else "motion",
        "planar": mech.planar,
        "t": packed(frames.t, np.float64),
        "time_unit": unit_label(mech.units, "time"),
        "shown": {kind: [shown(mech.units, kind), unit_label(mech.units, kind)] for kind in ("force", "impulse")},
        "events": events(frames),
        "outputs": len(what.ts),
        "until": float(what.ts[-1]),
        "end": None if rests else _end(what),
        "bodies": bodies(frames),
        "joints": joints(mech),
        "ties": ties(frames),
        "drivers": drivers(frames),
        "contacts": [] if rests else [_contact(frames, k, c.name) for k, c in enumerate(mech.contacts)],
        "reactions": [],
        "panels": plotted,
        "more": more,
        "variants": [variant_bodies(other) for other in others],
    }


def _at_rest(what: Any) -> dict:
    """The forces in the page of a position of rest."""
    if not isinstance(what, Equilibrium):
        return {}
    sketch = Sketch(what.mech, np.asarray(what.q)[None])
    forces = {"contacts": touching(what, 0), "reactions": reactions(what, sketch)}
    return {"kind": "rest"} | {key: [_arrow(touch) for touch in found] for key, found in forces.items()}


def _arrow(touch: Touching) -> dict:
    rows = {key: [packed(x[None]) for x in getattr(touch, key)] for key in ("point", "normal")}
    force = packed(np.array([touch.force]))
    return {
        "name": touch.name,
        "on": packed(np.ones(1), np.uint8),
        "force": force,
        "before": None,
        "friction": None,
    } | rows


def _check(what: Any, name: str, *, batch: bool = False, model: bool = True) -> None:
    if model and isinstance(what, Mechanism):
        if not is_concrete(what):
            raise ValueError(f"{name} is being traced: a mechanism can be seen outside of jit, vmap and grad only")
        return
    rests = model and isinstance(what, Equilibrium)
    if not rests and not isinstance(what, Motion | Solution) and not (model and isinstance(what, Efforts)):
        either = "a Motion, a Solution or Efforts" if model else "a Motion or a Solution"
        raise ValueError(f"{name} must be {either}, got {what!r}")
    if not is_concrete(what):
        raise ValueError(f"{name} is being traced: a motion can be seen outside of jit, vmap and grad only")
    if rests:
        single(what, "a page can be made")
    elif what.batch and not batch:
        raise ValueError(f"{name} is a batch of motions: give one of them, `.lane(i)`")


def _check_variant(first: Any, variant: Any, i: int) -> None:
    mech = first if isinstance(first, Mechanism) else first.mech
    if type(first) is not type(variant):
        raise ValueError(f"variant {i} is a {type(variant).__name__}, and the first a {type(first).__name__}")
    for what, tell in (
        ("bodies", lambda m: m.links),
        ("profiles", lambda m: tuple(f"{b.name}.{p}" for b in m.bodies for p in b.profiles)),
        ("joints", lambda m: tuple((j.name, j.pair.kind, j.body_a, j.body_b) for j in m.joints)),
        ("contacts", lambda m: tuple(c.name for c in m.contacts)),
        ("gauges", lambda m: tuple(g.name for g in m.gauges)),
    ):
        mine, its = tell(mech), tell(variant.mech)
        if mine != its:
            raise ValueError(f"variant {i} is of another mechanism: its {what} are {its}, not {mine}")
    if variant.mech.planar != mech.planar:
        raise ValueError(f"variant {i} is of another mechanism: one of them is planar, the other is not")


def _end(what: Any) -> dict | None:
    if not bool(what.result != RESULTS.successful):
        return None
    at = float(what.stopped_at)
    return {"t": at if np.isfinite(at) else None, "why": RESULTS[what.result]}


def _contact(frames: Keyframes, k: int, name: str) -> dict:
    on, force, before, rubs = frames.on[:, k], None, None, None
    contact, normals = frames.mech.contact(name), frames.read(name, "normal")
    if isinstance(frames.motions[0], Solution):
        force, before = packed(np.where(on, frames.read(name, "force"), 0.0)), packed(frames.read_before(name, "force"))
        if contact.friction is not None:
            X = frames.poses[contact.body_a]
            turned = np.asarray(quaternion_matrix(jnp.asarray(X[:, 3:]))) if X.shape[1] == 7 else X
            along = tangents(frames.mech, contact, turned, normals)
            rubs = {
                "force": packed(np.where(on, frames.read(name, "friction"), 0.0)),
                "before": packed(frames.read_before(name, "friction")),
                "along": [packed(x) for x in along.T],
                "sticks": packed(on & frames.read(name, "sticks"), np.uint8),
            }
    point, normal = ([packed(x) for x in rows.T] for rows in (frames.read(name, "point"), normals))
    told = {"name": name, "on": packed(on, np.uint8), "point": point, "normal": normal, "force": force}
    return told | {"before": before, "friction": rubs}


def _page(title: str, content: dict) -> str:
    page = importlib.resources.files("mbsjax._pictures.viewer").joinpath("page")
    read = lambda name: page.joinpath(name).read_text(encoding="utf-8")
    data = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":  # nothing in it can end the script, or begin another
        data = data.replace(character, f"\\u{ord(character):04x}")
    lane = "\n".join(read(f"{name}.js") for name in _SCRIPTS)
    colors = f"const COLORS = {json.dumps(PAGE)};\n"
    script = f"{read('data.js')}{colors}const open = (data, was) => {{\n{lane}}};\n{read('lanes.js')}"
    filling = {"TITLE": html.escape(title), "STYLE": read("style.css").strip(), "DATA": data, "SCRIPT": script.strip()}
    return re.sub("{{(TITLE|STYLE|DATA|SCRIPT)}}", lambda found: filling[found[1]], read("index.html"))
