"""Pictures of a mechanism: in a position, along a motion, and the paths of its points."""

from typing import Any, NamedTuple

import numpy as np

from .._dynamics.equilibrium import Equilibrium
from .._dynamics.solution import ContactForce, Solution
from .._kinematics.assembly import Assembly, assemble
from .._kinematics.motion import Motion
from .._kinematics.track import Configuration
from .._model.joint.clearance import Clearance
from .._model.mechanism import Mechanism
from .._model.units import unit_label
from .._programs.batch import single
from .scene import placed, tangents
from .sketch import Sketch, Touching, into
from .style import INK, RED, canvas, fit, legend, plain, style
from .symbols import frame, point_along


def mechanism(what: Any, at: Any = 0, *, forces: bool = True, labels: bool = False, axes: Any = None) -> Any:
    """A mechanism in one position: its bodies with their profiles, links, joints, points of interest, and the contacts
    that are closed with their normals.

    **Arguments:**

    - `what`: a [`mbsjax.Mechanism`][], to be assembled; a position of one (`motion.at(3)`, an [`mbsjax.Assembly`][], an
        [`mbsjax.Equilibrium`][]); a [`mbsjax.Motion`][] or [`mbsjax.Solution`][].
    - `at`: which output of a motion; negative numbers count from the last one that it reached.
    - `forces`: whether to draw the contact forces, as they press on the second body, as long as they are strong; the
        largest of the whole solution has a fifth of the mechanism's size. At rest, also the forces that joints exert on
        their second bodies. Friction forces have the color of the event
        `sticks` where they hold, that of `slips` where they do not.
    - `labels`: whether to write the names of bodies, joints and points.
    - `axes`: of matplotlib; in space, 3D axes.

    !!! Example

        >>> import mbsjax as mbs
        >>> from mbsjax import plots
        >>> arm = mbs.Mechanism([mbs.Body("arm", points={"E": (2.0, 0.0)})], [mbs.Revolute("O", "ground", "arm")])
        >>> axes = plots.mechanism(arm, labels=True)
        >>> [text.get_text() for text in axes.texts]
        ['O', 'E', 'arm']
    """
    seen = view(what)
    if not -len(seen.q) <= at < len(seen.q):
        raise ValueError(f"there is no output number {at}: there are {len(seen.q)}")
    sketch, row = Sketch(seen.mech, seen.q), at % len(seen.q)
    closed = touching(seen.source, row)
    with style():
        axes = canvas(axes, space=sketch.dim == 3)[0]
        sketch.bodies(axes, row)
        sketch.joints(axes, row)
        carried = reactions(seen.source, sketch) if forces and isinstance(seen.source, Equilibrium) else []
        sketch.contacts(axes, closed, _largest(seen.source, carried) if forces else None)
        sketch.reactions(axes, carried, _largest(seen.source, carried))
        if labels:
            sketch.labels(axes, row)
        if seen.t is not None and not axes.get_title():
            axes.set_title(f"t = {seen.t[row]:.4g} {unit_label(seen.mech.units, 'time')}".rstrip())
        frame(axes, seen.mech.units)
        fit(axes)
    return axes


def ghosts(
    motion: Any, count: Any = 8, *, strong: Any = -1, labels: bool = False, contacts: bool = True, axes: Any = None
) -> Any:
    """A motion in one picture: faint images at equal times, and one position drawn in full.

    **Arguments:**

    - `motion`: a [`mbsjax.Motion`][] or [`mbsjax.Solution`][].
    - `count`: how many images, from the first output to the last one that the motion reached.
    - `strong`: which of the images to draw in full: `-1` is the last, `0` the first.
    - `labels`: whether to write names.
    - `contacts`: whether to mark the contact points of all images.
    - `axes`: as in [`mbsjax.plots.mechanism`][].

    !!! Example

        >>> import jax.numpy as jnp, mbsjax as mbs
        >>> from mbsjax import plots
        >>> arm = mbs.Mechanism([mbs.Body("arm", points={"E": (2.0, 0.0)})], [mbs.Revolute("O", "ground", "arm")])
        >>> motion = mbs.kinematics(arm, {"O": mbs.constant_speed(1.0)}, jnp.linspace(0.0, 1.0, 31))
        >>> axes = plots.ghosts(motion, 4)
        >>> [round(link.get_alpha(), 2) for link in axes.lines[:4]]
        [0.16, 0.21, 0.27, 1.0]
    """
    needs_motion(motion)
    seen = view(motion)
    if count < 1 or not -count <= strong < count:
        raise ValueError(f"`count` must be positive and `strong` one of the images, got {count} and {strong}")
    rows = np.unique(np.linspace(0, len(seen.q) - 1, count).round().astype(int))
    full = int(np.linspace(0, len(seen.q) - 1, count).round()[strong])
    sketch = Sketch(seen.mech, seen.q[rows])
    with style():
        axes = canvas(axes, space=sketch.dim == 3)[0]
        for i, row in enumerate(rows):
            sketch.bodies(axes, i, 1.0 if row == full else 0.16 + 0.16 * i / max(len(rows) - 1, 1))
        sketch.joints(axes, int(np.flatnonzero(rows == full)[0]))
        if contacts:
            for contact in seen.mech.contacts:
                track = motion[contact.name]
                on = rows[np.asarray(track.active)[rows]]
                axes.plot(*np.asarray(track.point)[on].T, ".", color=RED, ms=3, alpha=0.5, zorder=5)
        if labels:
            sketch.labels(axes, int(np.flatnonzero(rows == full)[0]))
        frame(axes, seen.mech.units)
        fit(axes)
    return axes


def path(motion: Any, body: str, point: Any = None, *, targets: Any = None, axes: Any = None) -> Any:
    """The curve that a point of a body runs along, with its start and direction.

    **Arguments:**

    - `motion`: a [`mbsjax.Motion`][] or [`mbsjax.Solution`][].
    - `body`, `point`: as in `motion.point`: coordinates in the body, or the name of a point; its origin by default.
    - `targets`: places that it was to go through, a row for each, to be numbered.
    - `axes`: may hold a picture of the mechanism already: `path(motion, "rod", "E", axes=mechanism(motion))`.

    !!! Example

        >>> import jax.numpy as jnp, mbsjax as mbs
        >>> from mbsjax import plots
        >>> arm = mbs.Mechanism([mbs.Body("arm")], [mbs.Revolute("O", "ground", "arm")])
        >>> motion = mbs.kinematics(arm, {"O": mbs.constant_speed(1.0)}, jnp.linspace(0.0, jnp.pi, 31))
        >>> axes = plots.path(motion, "arm", (1.0, 0.0), targets=[(0.0, 1.0)])
        >>> [line.get_label() for line in axes.lines]
        ['path of arm', 'start', 'targets']
        >>> axes.lines[0].get_xydata()[-1].round(9).tolist()
        [-1.0, 0.0]
    """
    needs_motion(motion)
    places = np.asarray(motion.point(body, point).q)
    dim, name = places.shape[1], f"{body}.{point}" if isinstance(point, str) else body
    steps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    way = np.concatenate([[0.0], np.nancumsum(steps)])
    wanted = None if targets is None else np.asarray(targets, float)
    if wanted is not None and (wanted.ndim != 2 or wanted.shape[1] != dim):
        raise ValueError(f"the targets of a path must be rows of {dim} numbers, got shape {wanted.shape}")
    with style():
        axes = canvas(axes, space=dim == 3)[0]
        axes.plot(*places.T, color=RED, lw=1.3, zorder=4, label=f"path of {plain(name)}")
        axes.plot(*places[:1].T, "o", color=RED, mfc="white", ms=5, zorder=6, label="start")
        if way[-1] > 0:
            k = int(np.searchsorted(way, 0.12 * way[-1]))
            point_along(axes, places[k - 1], places[k])
        if wanted is not None:
            axes.plot(*wanted.T, "s", color=INK, mfc="none", ls="none", mew=0.8, ms=4.5, zorder=6, label="targets")
            for i, place in enumerate(wanted, 1):
                axes.text(*place, f" {i}", fontsize=7, color=INK, va="bottom", zorder=7)
        frame(axes, motion.mech.units)
        legend(axes)
        fit(axes)
    return axes


def needs_motion(motion: Any) -> None:
    if not isinstance(motion, Motion | Solution):
        raise ValueError(f"this picture shows a Motion or a Solution, got {type(motion).__name__}")
    if motion.q.ndim != 2:
        raise ValueError("this picture shows one motion, not many made by `vmap`: pick one with `.lane(i)`")


class View(NamedTuple):
    """Where a mechanism is told of, its positions as rows of coordinates, and when they were taken, if ever."""

    source: Any
    mech: Mechanism
    q: np.ndarray
    t: np.ndarray | None


def view(what: Any) -> View:
    """What can be shown as a mechanism."""
    if isinstance(what, Mechanism):
        what = assemble(what)
    if isinstance(what, Motion | Solution):
        needs_motion(what)
        reached = np.isfinite(np.asarray(what.q)).all(1)
        if not reached.any():
            raise ValueError("the motion has not reached any of its output times: there is nothing to show")
        return View(what, what.mech, np.asarray(what.q)[reached], np.asarray(what.ts)[reached])
    if isinstance(what, Configuration | Assembly | Equilibrium):
        single(what, "a picture can be made")
        return View(what, what.mech, np.asarray(what.q)[None], None)
    raise ValueError(
        f"a Mechanism, Configuration, Assembly, Equilibrium, Motion or Solution can be shown, got {what!r}"
    )


def _largest(what: Any, carried: list[Touching]) -> float | None:
    """The largest force of a contact or joint that is told of."""
    press = np.asarray(what.press) if isinstance(what, Solution | Equilibrium) else np.zeros(0)
    forces = np.concatenate([np.abs(press).ravel(), [touch.force or 0.0 for touch in carried]])
    return float(np.nanmax(forces, initial=0.0)) if forces.size else None


def reactions(rest: Equilibrium, sketch: Sketch) -> list[Touching]:
    """The forces of the joints on their second bodies, at rest; those that are nothing but rounding are left out."""
    forces = [np.asarray(rest.reaction(joint.name).force_ground) for joint in rest.mech.joints]
    sizes = [float(np.linalg.norm(force)) for force in forces]
    return [
        Touching(joint.name, sketch.seen(0, joint, "b").place, force / size, size)
        for joint, force, size in zip(rest.mech.joints, forces, sizes)
        if size > 1e-9 * max(sizes)
    ]


def touching(what: Any, at: Any) -> list[Touching]:
    """The contacts that are closed: of a motion, those that are active at an output."""
    mech: Mechanism = what.mech
    found = []
    for k, contact in enumerate(mech.contacts):
        rubs: dict[str, Any] = {}
        if isinstance(what, Motion | Solution):
            track: Any = what[contact.name]
            on, point, normal = bool(track.active[at]), track.point[at], track.normal[at]
            force = float(track.force[at]) if isinstance(track, ContactForce) else None
            if on and contact.friction is not None and isinstance(track, ContactForce):
                turned = np.asarray(what.pose(contact.body_a))[at : at + 1, :3, :3]
                along = tangents(mech, contact, turned, np.asarray(normal)[None])[0]
                rubs = {"friction": along * float(track.friction[at]), "sticks": bool(track.sticks[at])}
        else:
            rest = isinstance(what, Equilibrium)
            on, point, normal = _closed(Configuration(what.mech, what.q), contact.name)
            on, force = (bool(what.active[k]), float(what.press[k])) if rest else (on, None)
        if on:
            found.append(Touching(contact.name, np.asarray(point), np.asarray(normal), force, **rubs))
    return found


def _closed(at: Configuration, name: str) -> tuple[bool, np.ndarray, np.ndarray]:
    contact = at.mech.contact(name)
    if isinstance(contact, Clearance):
        return False, np.zeros(2), np.zeros(2)
    rim = at.mech.profiles(contact)[0]
    q1, _, gap = np.asarray(at[name])
    dim, size = 2 if at.mech.planar else 3, np.ptp(rim.points(), 0).max()
    if not np.isfinite(gap):
        return False, np.zeros(dim), np.zeros(dim)
    place = rim(q1)
    ends = np.stack([place.position, place.position + place.normal])
    here = into(np.asarray(at.pose(contact.body_a)), placed(ends, rim.frame, dim))
    return bool(abs(gap) < 1e-6 * max(size, 1e-12)), here[0], here[1] - here[0]
