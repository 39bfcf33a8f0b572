"""A motion to look at: one page that plays it, with its events and plots, and needs nothing else."""

import html
import importlib.resources
import json
import pathlib
import re
from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from ..._dynamics.solution import Solution
from ..._events.log import Event
from ..._events.results import RESULTS
from ..._kinematics.motion import Motion
from ..._programs.precision import is_concrete
from ...frames import quaternion_matrix
from ..scene import tangents
from .bodies import bodies, variant_bodies
from .joints import joints, ties
from .keyframes import Keyframes, keyframes, reached
from .packing import packed
from .plots import panels


# The scripts of the page, in the order in which they stand in it, all within one function: what one of them does when
# the page opens may need what stands before it.
_SCRIPTS = (
    "data", "geometry", "colors", "clock", "camera", "drawing", "bodies", "joints", "contacts", "stage", "plots",
    "controls",
)  # fmt: skip


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
        gaps of all contacts, their forces and their friction.
    - `title`: of the page.

    **Returns:** an [`mbsjax.Viewer`][].

    !!! Example

        >>> import mbsjax as mbs
        >>> crank = mbs.Mechanism([mbs.Body("crank", points={"E": (1.0, 0.0)})], [mbs.Revolute("A", "ground", "crank")])
        >>> motion = mbs.kinematics(crank, {"A": mbs.constant_speed(1.0)}, np.linspace(0.0, 6.0, 61))
        >>> page = mbs.view(motion, title="A crank")
        >>> "<title>A crank</title>" in page.html
        True
    """
    _check(what, "what is to be seen")
    first, mech = keyframes(what), what.mech
    others, idle = [], 0
    for i, variant in enumerate(variants):
        _check(variant, f"variant {i}")
        _check_variant(what, variant, i)
        if reached(variant).any():
            others.append(keyframes(variant))
        else:
            idle += 1
    names = None if plots is None else [plots] if isinstance(plots, str) else list(plots)
    if title is None:
        title = f"{'Simulation' if isinstance(what, Solution) else 'Motion'} of {', '.join(mech.links[1:])}"
    content = {
        "title": title,
        "simulated": isinstance(what, Solution),
        "planar": mech.planar,
        "t": packed(first.t, np.float64),
        "events": [_event(e, i) for e, i in first.events],
        "outputs": len(what.ts),
        "until": float(what.ts[-1]),
        "end": _end(what),
        "bodies": bodies(first),
        "joints": joints(mech),
        "ties": ties(mech),
        "contacts": [_contact(first, k, c.name) for k, c in enumerate(mech.contacts)],
        "panels": panels(first, others, names),
        "variants": [variant_bodies(other) for other in others],
        "idle": idle,
    }
    return Viewer(_page(str(title), content))


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


def _contact(frames: Keyframes, k: int, name: str) -> dict:
    on, force, rubs = frames.on[:, k], None, None
    contact, normals = frames.mech.contact(name), frames.read(name, "normal")
    if isinstance(frames.motions[0], Solution):
        force = packed(np.where(on, frames.read(name, "force"), 0.0))
        if contact.friction is not None:
            X = frames.poses[contact.body_a]
            turned = np.asarray(quaternion_matrix(jnp.asarray(X[:, 3:]))) if X.shape[1] == 7 else X
            along = tangents(frames.mech, contact, turned, normals)
            rubs = {
                "force": packed(np.where(on, frames.read(name, "friction"), 0.0)),
                "along": [packed(x) for x in along.T],
                "sticks": packed(on & frames.read(name, "sticks"), np.uint8),
            }
    point, normal = ([packed(x) for x in rows.T] for rows in (frames.read(name, "point"), normals))
    told = {"name": name, "on": packed(on, np.uint8), "point": point, "normal": normal, "force": force}
    return told | {"friction": rubs}


def _page(title: str, content: dict) -> str:
    page = importlib.resources.files("mbsjax._pictures.viewer").joinpath("page")
    read = lambda name: page.joinpath(name).read_text(encoding="utf-8")
    data = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":  # nothing in it can end the script, or begin another
        data = data.replace(character, f"\\u{ord(character):04x}")
    script = "\n".join(read(f"{name}.js") for name in _SCRIPTS)
    filling = {"TITLE": html.escape(title), "STYLE": read("style.css").strip(), "DATA": data, "SCRIPT": script.strip()}
    return re.sub("{{(TITLE|STYLE|DATA|SCRIPT)}}", lambda found: filling[found[1]], read("index.html"))
