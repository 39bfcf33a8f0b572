"""A motion as frames to play: its outputs, and its events between them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ... import frames
from ..._dynamics.equilibrium import Equilibrium
from ..._dynamics.inverse_dynamics import Efforts, efforts_along
from ..._dynamics.solution import Solution
from ..._events.log import Event
from ..._events.results import RESULTS
from ..._kinematics.assembly import assemble
from ..._kinematics.drive import Problem, problem as make_problem
from ..._kinematics.motion import Motion
from ..._kinematics.system import System, system
from ..._model.mechanism import Mechanism
from ..._numerics.groups import SE2
from ..._programs.trees import once
from .forces import pushes
from .sides import at_events, told


class Keyframes(NamedTuple):
    """A motion as frames: its output times, and the times of its events among them, so that nothing is interpolated
    across an event.

    `motions` are motions whose rows are the outputs, or states after events and before them; `order` says which of all
    their rows each frame is, `before` which are just before the events. `events` have the number of their frame.
    """

    mech: Mechanism
    motions: list[Any]
    order: np.ndarray
    before: np.ndarray
    t: np.ndarray
    events: list[tuple[Event, int]]
    on: np.ndarray  # (frames, contacts)
    poses: dict[str, np.ndarray]  # (frames, 3): x, y, angle; in space (frames, 7): x, y, z, Euler parameters
    size: float  # of the mechanism
    drivers: list[tuple[str, np.ndarray]]  # what is driven, and how fast in each frame
    tracks: dict[tuple[int, str], Any]  # what was read already
    efforts: Efforts | None = None  # of a driven motion, if they are known

    def acting(self, k: int) -> Any:
        """What tells of the forces in the rows of one of the motions: a simulation, or efforts; None without these."""
        if isinstance(self.motions[k], Solution):
            return self.motions[k]
        if k == 0 or self.efforts is None:
            return self.efforts
        if (k, ".efforts") not in self.tracks:
            self.tracks[k, ".efforts"] = efforts_along(self.motions[k])
        return self.tracks[k, ".efforts"]

    def read(self, name: str, field: str) -> np.ndarray:
        """A field of a track, one row for each frame."""
        return self.every(lambda k: self.read_motion(k, name, field))[self.order]

    def read_before(self, name: str, field: str) -> np.ndarray:
        """A field of a track just before each event."""
        return self.every(lambda k: self.read_motion(k, name, field))[self.before]

    def every(self, read: Callable[[int], np.ndarray]) -> np.ndarray:
        """What `read` gives for each of the motions, in one."""
        return np.concatenate([read(k) for k in range(len(self.motions))])

    def read_motion(self, k: int, name: str, field: str) -> np.ndarray:
        """A field of a coordinate, gauge or contact, or of a point (`"rod.E"`), in the rows of one of the motions."""
        if (k, name) not in self.tracks:
            points = {f"{b.name}.{p}": (b.name, p) for b in self.mech.bodies for p in b.points}
            known = name in self.mech.coordinates or name not in points
            self.tracks[k, name] = self.motions[k][name] if known else self.motions[k].point(*points[name])
        return np.asarray(getattr(self.tracks[k, name], field))

    def pushes(self, k: int) -> np.ndarray:
        """What springs and actuators push with, in the rows of one of the motions."""
        if (k, "") not in self.tracks:
            motion = self.motions[k]
            self.tracks[k, ""] = pushes(self.mech, motion.ts, motion.q, motion.v)
        return self.tracks[k, ""]


def keyframes(what: Any) -> Keyframes:
    """A motion, with or without its efforts, or a simulation as frames."""
    if isinstance(what, Efforts):
        return keyframes(what.motion)._replace(efforts=what)
    alive = reached(what)
    if not alive.any():
        raise ValueError(f"there is nothing to see: {RESULTS[what.result]}")
    mech, said, ts, n = what.mech, told(what), np.asarray(what.ts), len(what.ts)
    times, count = np.array([event.t for event in said]), len(said)
    motions = [what, *at_events(what, said, alive)]
    rows = np.flatnonzero(alive & ~np.isin(ts, times))  # the event itself tells of both sides
    t, every = np.concatenate([ts[rows], times]), np.concatenate([rows, n + np.arange(count)])
    place = np.argsort(t, kind="stable")
    t, order = t[place], every[place]
    events = list(zip(said, np.argsort(place)[len(rows) :].tolist()))
    if isinstance(what, Motion):
        passed = [Event(date, "bifurcation", "", None, None, None) for date in what.bifurcations()]
        events += [(event, int(np.searchsorted(t, event.t))) for event in passed]
        events.sort(key=lambda e: e[0].t)
    (poses, size), on = _placed(mech, motions, order), _active(what, said, order)
    # of several events at once, there are only what was before the first, and what is after the last
    last = np.searchsorted(times, times, side="right") - 1
    before = n + np.where(np.diff(times, prepend=np.nan) == 0, last, count + np.arange(count))
    order = np.concatenate([np.arange(n), n + last])[order]
    frames = Keyframes(mech, motions, order, before, t, events, on, poses, size, [], {})
    problem = what.problem if isinstance(what, Motion) else what.plant.problem
    return frames._replace(drivers=[(name, frames.read(name, "v")) for name in _driven(mech, problem)])


class Still(NamedTuple):
    """A mechanism in a position, as the only row of a motion."""

    mech: Mechanism
    ts: np.ndarray
    q: np.ndarray
    v: np.ndarray
    events: None = None


def still(mech: Mechanism, drive: Any, estimate: Any) -> Keyframes:
    """A mechanism as it is assembled, at the time 0 of its drivers."""
    begin = _laws_at(_driven(mech, make_problem(mech, drive)), 0.0)
    q = assemble(mech, estimate, fixed={name: value for name, (value, _) in begin.items()}).q
    return _standing(mech, q, 0.0, begin)


def at_rest(rest: Equilibrium) -> Keyframes:
    """A mechanism in a position of rest."""
    return _standing(rest.mech, rest.q, float(rest.t), _laws_at(_driven(rest.mech, rest.plant.problem), rest.t))


def _laws_at(laws: dict[str, Any], t: Any) -> dict[str, tuple[Array, Array]]:
    """Values and speeds of drivers."""
    return {name: jax.jvp(law, (jnp.asarray(t, float),), (jnp.ones(()),)) for name, law in laws.items()}


def _standing(mech: Mechanism, q: Array, t: float, begin: dict[str, tuple[Array, Array]]) -> Keyframes:
    where = Still(mech, np.full(1, t), np.asarray(q)[None], np.zeros((1, len(mech.coordinates))))
    poses, size = _placed(mech, [where], np.arange(1))
    on, driven = (
        np.zeros((1, len(mech.contacts)), bool),
        [(name, np.asarray(v)[None]) for name, (_, v) in begin.items()],
    )
    rows, none = np.arange(1), np.arange(0)
    return Keyframes(mech, [where], rows, none, np.full(1, t), [], on, poses, size, driven, {})


def _driven(mech: Mechanism, problem: Problem) -> dict[str, Any]:
    """The laws of the driven coordinates and gauges, by name."""
    laws = {mech.coordinates[i]: law for i, law in zip(problem.columns, problem.functions)}
    gauges = zip([mech.gauges[i] for i in problem.gauges], problem.gauge_functions)
    return laws | {gauge.name: law for gauge, law in gauges if gauge.value is None}


def _placed(mech: Mechanism, motions: list[Any], order: np.ndarray) -> tuple[dict[str, np.ndarray], float]:
    """The poses of all bodies in all frames, and the size of the mechanism."""
    plan = system(mech.replaced(contacts=(), forces=()))
    X = np.concatenate([np.asarray(_poses(plan, jnp.asarray(motion.q))) for motion in motions])[order]
    return {name: _smooth(X[:, plan.layout.body_numbers[name]]) for name in mech.links}, float(plan.size)


def reached(what: Any) -> np.ndarray:
    """Which outputs there are: those before its end."""
    what = what.motion if isinstance(what, Efforts) else what
    return np.asarray(np.isfinite(what.q).all(-1))


def _active(what: Any, said: list[Event], order: np.ndarray) -> np.ndarray:
    """Which contacts are active in each frame: at an event, after it."""
    names = [c.name for c in what.mech.contacts]
    if not names:
        return np.zeros((len(order), 0), bool)
    if isinstance(what, Solution):
        rows, at_events = np.asarray(what.mode.active), np.asarray(what.events.active)[: len(said)]
    else:
        rows = np.asarray(jax.vmap(lambda mode: mode.active)(what.mode))
        now, at_events = rows[np.flatnonzero(reached(what))[0]].copy(), np.zeros((len(said), len(names)), bool)
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
