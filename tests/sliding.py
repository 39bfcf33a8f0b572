"""Scenes with friction and closed forms: discs that are thrown onto a floor, bounce or stay there, slide and roll.

Along the floor and at right angles to it, all accelerations are constant between events. With u the speed of the disc's
lowest point along the floor, I = k m R^2 and B = 1 + 1/k, friction changes u by B times what it does to the center's
speed. An impact with the approach speed v ends sliding where |u| / B <= mu (1 + e) v. What stays on the floor slides
until u is zero; there it rolls on where |g_x| / B <= mu g_n, and else slides the other way.
"""

from typing import NamedTuple

import numpy as np

from .scenes import CLOSE, HORIZON, MOST, Answer, G, Scenes, real, solve


BOUNCES = 5  # impacts that are looked at
TOLERANCE = 90.0  # as a spread: states are compared to 1e-8


def solved(structure: str, scenes: Scenes) -> Answer:
    """What happens in scenes of any structure."""
    return slid(scenes) if structure == "floor" else solve(scenes)


class Disc(NamedTuple):
    """n discs in the directions of their floors: x along it, y above it, the angle; and what acts on them."""

    q: np.ndarray  # [3, n]
    v: np.ndarray
    R: np.ndarray  # [n]
    k: np.ndarray  # I / (m R^2)
    mu: np.ndarray
    pull: np.ndarray  # gravity along the floor,
    press: np.ndarray  # and onto it

    @property
    def slip(self) -> np.ndarray:
        return self.v[0] + self.R * self.v[2]

    @property
    def yields(self) -> np.ndarray:
        """B: what a force along the floor does to its lowest point, relative to its center."""
        return 1 + 1 / self.k

    def pushed(self, along: np.ndarray, up: np.ndarray) -> "Disc":
        """After impulses on its lowest point, each by its mass."""
        return self._replace(v=self.v + np.stack([along, up, along / (self.k * self.R)]))

    def moved(self, along: np.ndarray, up: np.ndarray, t: np.ndarray) -> "Disc":
        """A time later, under forces on its lowest point, each by its mass, and gravity."""
        a = np.stack([along + self.pull, up - self.press, along / (self.k * self.R)])
        return self._replace(q=self.q + t * self.v + t**2 * a / 2, v=self.v + t * a)


def _discs(scenes: Scenes) -> tuple[Disc, np.ndarray]:
    """The discs where they start, and the directions along the floor, away from it and of the angle [n, 3, 3]."""
    given = {name: x.astype(real) for name, x in scenes.drawing.items()}
    along = given["vertices"][:, 0] - given["vertices"][:, 1]
    along /= np.hypot(along[:, 0], along[:, 1])[:, None]
    n = len(along)
    axes = np.zeros((n, 3, 3), real)
    axes[:, 0, :2], axes[:, 1, 0], axes[:, 1, 1], axes[:, 2, 2] = along, -along[:, 1], along[:, 0], 1
    q, v = (np.einsum("nij,nj->in", axes, x.astype(real)) for x in (scenes.position, scenes.velocity))
    R = given["size"]
    q[1] -= R
    k = given["inertia"] / (given["mass"] * R**2)
    return Disc(q, v, R, k, given["friction"], -G * along[:, 1], G * along[:, 0]), axes


def _landing(disc: Disc) -> np.ndarray:
    """How long a disc falls until it meets its floor."""
    return (disc.v[1] + np.sqrt(disc.v[1] ** 2 + 2 * disc.press * np.maximum(disc.q[1], 0))) / disc.press


def _struck(disc: Disc, e: np.ndarray) -> tuple[Disc, np.ndarray]:
    """After an impact; and by how much friction is more, or less, than what ends sliding."""
    up = -(1 + e) * disc.v[1]
    needed, most = -disc.slip / disc.yields, disc.mu * up
    return disc.pushed(np.clip(needed, -most, most), up), most - np.abs(needed)


def _rubbed(disc: Disc, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, Disc]:
    """When the sliding of a disc on its floor ends, or never; whether it rolls then; and where it is after a time t."""
    most, holding = disc.mu * disc.press, -disc.pull / disc.yields
    rolls = np.abs(holding) <= most
    way = np.where(np.abs(disc.slip) > 1e-15, np.sign(disc.slip), 0)
    slows = most * disc.yields - way * disc.pull
    end = np.where(way == 0, 0, np.where(slows > 0, np.abs(disc.slip) / np.where(slows > 0, slows, 1), np.inf))
    there = disc.moved(-way * most, disc.press, np.minimum(end, t))
    onward = np.where(rolls, holding, -np.sign(disc.pull) * most)
    return np.where(way == 0, np.inf, end), rolls, there.moved(onward, disc.press, np.maximum(t - end, 0))


def slid(scenes: Scenes) -> Answer:
    """The events of all scenes on floors, until rounding decides, and what is so then."""
    disc, axes = _discs(scenes)
    e, n = scenes.restitution.astype(real), len(scenes.size)
    times, kinds = np.full((n, MOST), np.inf, real), np.full((n, MOST), "", "<U8")
    t, until, stays = np.zeros(n, real), np.full(n, HORIZON, real), e == 0
    at_end = disc.moved(0 * e, 0 * e, until)
    for k in range(BOUNCES + 1):
        live = until == HORIZON
        if k:
            live &= ~stays & np.isfinite(times[:, k - 1])
        wait = _landing(disc)
        hit = disc.moved(0 * e, 0 * e, wait)
        after, margin = _struck(hit, e)
        doubtful = (np.abs(margin) < CLOSE) | (np.abs(t + wait - HORIZON) < CLOSE) | (k == BOUNCES)
        cut = live & doubtful & (t + wait < HORIZON + CLOSE)
        until = np.where(cut, t + wait / 2, until)
        flies = disc.moved(0 * e, 0 * e, until - t)
        hits = live & ~cut & (t + wait < HORIZON)
        times[:, k], kinds[hits, k] = np.where(hits, t + wait, np.inf), np.where(stays[hits], "closed", "impact")
        at_end = _chosen(live, flies, at_end)
        disc, t = _chosen(hits, after, disc), np.where(hits, t + wait, t)
    on = stays & np.isfinite(times[:, 0])
    lasts, rolls, there = _rubbed(disc, until - t)
    ends = on & (t + lasts < until)
    times[ends, 1], kinds[ends, 1] = (t + lasts)[ends], np.where(rolls[ends], "sticks", "reverses")
    at_end = _chosen(on, there, at_end)
    at_end.q[1] += at_end.R
    q, v = (np.einsum("nij,in->nj", axes, x).astype(float) for x in (at_end.q, at_end.v))
    happens = np.isfinite(times)
    number = np.where(happens, 0, -1)
    spread = np.full(n, TOLERANCE)
    return Answer(times.astype(float), number, number, np.sum(happens, 1), until.astype(float), q, v, spread, kinds)


def _chosen(which: np.ndarray, one: Disc, other: Disc) -> Disc:
    return one._replace(q=np.where(which, one.q, other.q), v=np.where(which, one.v, other.v))
