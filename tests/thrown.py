"""The scenes of `tests/scenes.py` as mechanisms, and what simulations of them make of each."""

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import mbsjax as mbs

from .scenes import MOST, Answer, Scenes, overlap


WRONG = 1e-9  # of an event's time
ASTRAY = 1e-10  # of the state at the end, as a change of that at the start,
SPREAD = 1e5  # where that does not change it by more than this
LOOKS = 8  # moments at which bodies are looked at,
INSIDE = 1e-9  # and no body is further in another one


def walls(structure: str, p: dict[str, Any]) -> mbs.Profile:
    if structure == "slot":
        return mbs.slot(*p["vertices"], 2 * p["radii"][0])
    if structure == "rounded":
        return mbs.polygon(p["vertices"], p["radii"][0], hollow=range(4), hole=True)
    corners = list(p["vertices"])
    on = corners[1:] + corners[:1]
    if structure == "mixed":
        pieces = [
            mbs.Line(corners[0], on[0]),
            mbs.Arc.between(corners[1], on[1], radius=p["radii"][0], concave=True),
            mbs.Line(corners[2], on[2]),
            mbs.Arc.between(corners[3], on[3], radius=p["radii"][1]),
        ]
        return mbs.Profile.chain(pieces)
    if structure in ("open", "floor"):
        return mbs.Profile.chain([mbs.Line(a, b) for a, b in zip(corners, on[:-1])], closed=False)
    return mbs.Profile.chain([mbs.Line(a, b) for a, b in zip(corners, on)])


def mechanism(structure: str, p: dict[str, Any]) -> mbs.Mechanism:
    """A disc, or a rod with a point at each end, that floats in the plane among walls."""
    flying: dict[str, Any] = {"rim": mbs.disc(p["size"])}
    if structure == "rod":
        ends = {"tail": -1.0, "head": 1.0}
        points = {name: mbs.Point((s * p["size"], 0.0), (s, 0.0), 2 * jnp.pi) for name, s in ends.items()}
        flying = {name: mbs.Profile.chain([point], closed=False) for name, point in points.items()}
    ground = mbs.Body("ground", profiles={"walls": walls(structure, p)})
    law = {"restitution": p["restitution"], "friction": p.get("friction")}
    contacts = [mbs.Contact(f"{x} hits", "ground.walls", f"body.{x}", **law) for x in flying]
    return mbs.Mechanism(
        [ground, mbs.Body("body", mass=p.get("mass", 1.0), inertia=p.get("inertia", 1.0), profiles=flying)],
        [mbs.Planar("at", "ground", "body"), *contacts],
        gravity=(0.0, -9.81),
    )


class Simulated(NamedTuple):
    """What a simulation made of a scene."""

    t: Any
    kind: Any
    element: Any
    contact: Any
    count: Any
    position: Any  # x, y, angle
    velocity: Any
    passed: Any  # positions on the way
    result: Any
    steps: Any
    rejected: Any


@cache
def program(structure: str):
    """Simulates scenes of a structure side by side, up to a time for each."""
    most = 2000 if structure == "rod" else 600  # a short one that is hit near its end spins through 60 turns

    def run(p, until) -> Simulated:
        mech = mechanism(structure, p)
        angle, spin = p.get("turn", jnp.zeros(2))
        q, v = (jnp.stack([x, *y]) for x, y in ((angle, p["start"]), (spin, p["throw"])))
        start = mbs.State(q, v, jnp.zeros(()))
        sol = mbs.simulate(
            mech,
            start,
            until,
            ts=until * jnp.arange(1, LOOKS + 1) / LOOKS,
            max_steps=most,
            max_events=MOST + 8,
            throw=False,
        )
        e = sol.events
        order = jnp.array([1, 2, 0])
        return Simulated(
            e.t, e.kind, e.after[:, 0], e.contact, e.count, sol.q[-1][order], sol.v[-1][order],
            sol.q[:, order], sol.result._value, sol.stats.steps, sol.stats.rejected,
        )  # fmt: skip

    return jax.jit(jax.vmap(run))


def simulated(structure: str, scenes: Scenes, answer: Answer) -> Simulated:
    found = program(structure)(scenes.drawing, answer.until)
    return Simulated(*(np.asarray(x) for x in found))


class Verdict(NamedTuple):
    """How a simulation differs from the answer, scene by scene: an event that it missed, one that it added, one whose
    time, element or kind is another, another state at the end, or a body in a wall; and the largest error of a time
    that it found."""

    missed: np.ndarray
    added: np.ndarray
    misdated: np.ndarray
    other: np.ndarray
    inside: np.ndarray
    error: np.ndarray

    @property
    def wrong(self) -> np.ndarray:
        return self.missed | self.added | self.misdated | self.other | self.inside


def within(scenes: Scenes, found: Simulated) -> np.ndarray:
    """Whether a body was in a wall at any of the moments at which it was looked at. Of an open chain one comes behind
    past its end, further than by its own size."""
    looks = found.passed.reshape(-1, 3)
    every = scenes.picked(np.repeat(np.arange(len(found.count)), LOOKS))
    deep = overlap(every, np.where(np.isfinite(looks), looks, every.position)).reshape(-1, LOOKS)
    most = scenes.size[:, None] if scenes.walls.back.any() else np.inf
    return np.any((deep > INSIDE * (1 + np.abs(looks).max(-1).reshape(-1, LOOKS))) & (deep < most), 1)


def judged(scenes: Scenes, answer: Answer, found: Simulated) -> Verdict:
    """Compares all events up to the end of the answer, and the state there."""
    n = len(answer.count)
    pad = lambda x, fill: np.concatenate([x, np.full((n, found.t.shape[1] - MOST), fill, x.dtype)], 1)
    t = pad(answer.t, np.inf)
    both = np.isfinite(t) & np.isfinite(found.t)
    off = np.where(both, np.abs(np.where(both, t, 0) - np.where(both, found.t, 0)), 0)
    same = ((off <= 1e-5) & both) | (~np.isfinite(t) & ~np.isfinite(found.t))
    first = np.argmin(same, 1)  # where the two part
    parts = ~np.all(same, 1)
    lanes = np.arange(n)
    late = t[lanes, first] < found.t[lanes, first]
    alike = np.cumprod(same, 1).astype(bool) & both
    error = np.max(np.where(alike, off, 0), 1)
    names = np.array(mbs.EVENTS)[found.kind]
    differs = (
        (names != pad(answer.kind, ""))
        | (found.element != pad(answer.element, -1))
        | (found.contact != pad(answer.end, -1))
    )
    away = np.max(np.abs(found.position - answer.position), 1) + np.max(np.abs(found.velocity - answer.velocity), 1)
    astray = (answer.spread < SPREAD) & ~(away < WRONG + ASTRAY * answer.spread)
    other = np.any(differs & alike, 1) | astray | (found.result != mbs.RESULTS.successful._value)
    return Verdict(parts & late, parts & ~late, error > WRONG, other & ~parts, within(scenes, found), error)
