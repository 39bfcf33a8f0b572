"""Bodies of any shape that tumble among walls of any shape, and what no simulation of them may do: a referee.

Where no closed form tells what happens, a simulation can still be held to what it tells: from each event to the next
one the body flies as it must, and is in no wall on the way; at each impact it touches, the impulse acts there, along
the normal of one of the two boundaries, and turns round the speed of approach. Whoever keeps to all of that has
missed nothing and added nothing. Distances are found here in NumPy, from places along the boundaries that are made
finer round the nearest ones: nothing of normals, elements or closest pairs is shared.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import mbsjax as mbs


G = 9.81
T1 = 1.0
MOST = 40  # events
ON_THE_WAY = 12  # moments of each flight at which a body is looked at
ALLOWED = 1e-9  # in parts of the room's size
ALONG = 1e-5  # where a touch is, along the boundaries: the distance hardly changes there,
SPEED = 1e-4  # and speeds that follow from it
ORDERS = (0, 1, 2, 3)  # of a polynomial
FALL = np.array([0.0, -G, 0.0])
GRID = np.linspace(0.0, 1.0, 25)
FINE = np.linspace(0.0, 1.0, 97)

Piece = tuple  # a kind and numbers: of an arc its center, radius, start and turn, negative where it is hollow


# ---------------------------------------- boundaries in NumPy, a scene in each lane


def unit(angle: Any) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], -1)


def right_of(d: np.ndarray) -> np.ndarray:
    return np.stack([d[..., 1], -d[..., 0]], -1)


def turned(p: np.ndarray, angle: np.ndarray) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * p[..., 0] - s * p[..., 1], s * p[..., 0] + c * p[..., 1]], -1)


def _lanes(x: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Numbers of each scene beside an array with more axes behind the first."""
    return x.reshape(len(x), *[1] * (like.ndim - 1), *x.shape[1:])


def place(piece: Piece, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where a piece is at local coordinates [n, ...], and in which direction it goes there."""
    kind, *numbers = piece
    if kind == "spline":
        return _on_spline(numbers[0], s)
    if kind == "line":
        a, b = (_lanes(x, s) for x in numbers)
        return a + s[..., None] * (b - a), np.broadcast_to(b - a, (*s.shape, 2))
    if kind in ("arc", "hollow"):
        center, radius, start, turn = (_lanes(x, s) for x in numbers)
        angle = start + turn * s
        return center + radius[..., None] * unit(angle), (radius * turn)[..., None] * unit(angle + np.pi / 2)
    c, start, end = numbers
    first, last = _lanes(start, s), _lanes(end, s)
    angle = first + (last - first) * s
    r = sum(_lanes(c[:, k], s) * angle**n for k, n in enumerate(ORDERS))
    dr = sum(_lanes(c[:, k], s) * n * angle ** max(n - 1, 0) for k, n in enumerate(ORDERS))
    along = dr[..., None] * unit(angle) + r[..., None] * unit(angle + np.pi / 2)
    return r[..., None] * unit(angle), along * (last - first)[..., None]


def _on_spline(points: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """On the cubic spline through points [n, k, 2] at equal steps, which runs into itself."""
    k = points.shape[1]
    shifted = np.eye(k)[(np.arange(k) + 1) % k]
    second = np.linalg.solve(4 * np.eye(k) + shifted + shifted.T, 6 * (shifted + shifted.T - 2 * np.eye(k)))
    bend = np.einsum("ij,njx->nix", second, points)  # how much it bends at its points, in parts of a step squared
    i, u = np.divmod(s % 1.0 * k, 1.0)
    i, u = i.astype(int) % k, u[..., None]
    lanes = np.arange(len(points)).reshape(-1, *[1] * (s.ndim - 1))
    p, q, b, c = points[lanes, i], points[lanes, (i + 1) % k], bend[lanes, i], bend[lanes, (i + 1) % k]
    at = p + u * (q - p) - u * (1 - u) * ((2 - u) * b + (1 + u) * c) / 6
    along = q - p - ((2 - 6 * u + 3 * u**2) * b + (1 - 3 * u**2) * c) / 6
    return at, along * k


def least(f: Callable, lo: np.ndarray, hi: np.ndarray, turns: int = 42) -> np.ndarray:
    """Where functions have their least value between two ends, by the golden section."""
    part = (np.sqrt(5) - 1) / 2
    a, b = hi - part * (hi - lo), lo + part * (hi - lo)
    at_a, at_b = f(a), f(b)
    for _ in range(turns):
        left = at_a < at_b
        lo, hi = np.where(left, lo, a), np.where(left, b, hi)
        new = np.where(left, hi - part * (hi - lo), lo + part * (hi - lo))
        at_new = f(new)
        a, b, at_a, at_b = (
            np.where(left, new, b), np.where(left, a, new), np.where(left, at_new, at_b), np.where(left, at_a, at_new),
        )  # fmt: skip
    ends = np.stack([(lo + hi) / 2, lo, hi])
    return np.take_along_axis(ends, np.argmin(np.stack([f(x) for x in ends]), 0)[None], 0)[0]


def foot(piece: Piece, p: np.ndarray) -> np.ndarray:
    """The local coordinate of the place of a piece that is nearest to points [n, ..., 2]."""
    kind, *numbers = piece
    if kind == "line":
        a, b = (_lanes(x, p[..., 0]) for x in numbers)
        return np.clip(np.sum((p - a) * (b - a), -1) / np.sum((b - a) ** 2, -1), 0, 1)
    if kind in ("arc", "hollow"):
        center, _, start, turn = (_lanes(x, p[..., 0]) for x in numbers)
        d = p - center
        aside = np.sign(turn) * (np.arctan2(d[..., 1], d[..., 0]) - start) - np.abs(turn) / 2  # from the middle
        aside = (aside + np.pi) % (2 * np.pi) - np.pi
        return np.clip(aside / np.abs(turn) + 0.5, 0, 1)
    flat = p.reshape(len(p), -1, 2)
    grid = place(piece, np.broadcast_to(FINE, (len(p), len(FINE))))[0]
    first = np.stack([_nearest(x, y) for x, y in zip(flat, grid)])
    away = lambda s: np.sum((place(piece, s)[0] - flat) ** 2, -1)
    lo, hi = FINE[first] - FINE[1], FINE[first] + FINE[1]
    if kind != "spline":  # which is closed
        lo, hi = np.maximum(lo, 0), np.minimum(hi, 1)
    return least(away, lo, hi).reshape(p.shape[:-1])


def _nearest(points: np.ndarray, grid: np.ndarray) -> np.ndarray:
    found = [
        np.argmin(np.sum((x[:, None] - grid) ** 2, -1), 1) for x in np.array_split(points, len(points) // 4096 + 1)
    ]
    return np.concatenate(found)


def outside(pieces: list[Piece], p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far points are from a boundary, negative in the material, and the normal at the place that is nearest, zero
    at a corner."""
    n, best = len(p), np.full(p.shape[:-1], np.inf)
    signed, normal = np.zeros_like(best), np.zeros_like(p)
    zero, one = np.zeros((n, 1)), np.ones((n, 1))
    for k, piece in enumerate(pieces):
        s = foot(piece, p)
        at, along = place(piece, s)
        square = lambda d: d / np.linalg.norm(d, axis=-1, keepdims=True)
        mine = right_of(square(along))
        whole = len(pieces) == 1
        side = mine
        if not whole:
            (_, before), (_, after) = (place(pieces[j % len(pieces)], x) for j, x in ((k - 1, one), (k + 1, zero)))
            for end, other in ((0.0, before), (1.0, after)):
                there = (s == end)[..., None]
                both = mine + right_of(square(other)).reshape(n, *[1] * (p.ndim - 2), 2)
                side = np.where(there, both, side)
        d = np.linalg.norm(p - at, axis=-1)
        near = d < best
        best = np.where(near, d, best)
        inner = np.full(s.shape, True) if whole else (s > 0) & (s < 1)
        beside = np.sum((p - at) * side, -1)  # between the ends a foot that is slightly off does not matter to it
        signed = np.where(near, np.where(inner, beside, d * np.where(beside < 0, -1, 1)), signed)
        normal = np.where(near[..., None], np.where(inner[..., None], mine, 0), normal)
    return signed, normal


class Touch(NamedTuple):
    """Of poses of a body among walls: how far apart they are (negative: how deep it is in them), where, and the
    normals of the walls and of the body there, zero at corners."""

    gap: np.ndarray
    place: np.ndarray
    walls: np.ndarray
    body: np.ndarray


def touch(walls: list[Piece], body: list[Piece], poses: np.ndarray, candidates: int = 9) -> Touch:
    """The nearest places of a body and walls, in poses [n, m, (x, y, angle)]: the least of `outside` along the body's
    boundary."""
    n, m, _ = poses.shape
    moved = lambda p: poses[..., None, :2] + turned(p, poses[..., None, 2])
    grid = np.broadcast_to(GRID, (n, m, len(GRID)))
    rows = np.stack([outside(walls, moved(place(piece, grid)[0]))[0] for piece in body], 2)  # [n, m, pieces, places]
    padded = np.pad(rows, ((0, 0),) * 3 + ((1, 1),), constant_values=np.inf)
    low = np.pad((rows <= padded[..., :-2]) & (rows <= padded[..., 2:]), ((0, 0),) * 3 + ((1, 1),))
    near = low[..., 1:-1] | low[..., :-2] | low[..., 2:]  # where it is low, another place may be hidden beside it
    first = np.argsort(np.where(near, rows, np.inf).reshape(n, m, -1), -1)[..., :candidates]
    which, s = np.divmod(first, len(GRID))
    ends = (GRID[s] - GRID[1], GRID[s] + GRID[1])
    lo, hi = ends if body[0][0] == "spline" else np.clip(ends, 0, 1)

    def at(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = [place(piece, s) for piece in body]
        pick = lambda k: sum(np.where((which == i)[..., None], x[k], 0.0) for i, x in enumerate(found))
        return pick(0), pick(1)

    best = least(lambda s: outside(walls, moved(at(s)[0]))[0], lo, hi)
    p, along = at(best)
    gap, normal = outside(walls, moved(p))
    take = lambda x: np.take_along_axis(x, k.reshape(n, m, 1, *[1] * (x.ndim - 3)), 2)[:, :, 0]
    k = np.argmin(gap, -1)
    corner = (best == 0) | (best == 1) if len(body) > 1 else best < -1
    out = turned(right_of(along / np.linalg.norm(along, axis=-1, keepdims=True)), poses[..., None, 2])
    return Touch(take(gap), take(moved(p)), take(normal), take(np.where(corner[..., None], 0.0, out)))


# ---------------------------------------- shapes


def _ring(rng: np.random.Generator, n: int, k: int, spread: float = 0.3) -> np.ndarray:
    return 2 * np.pi * (np.arange(k) + rng.uniform(-spread, spread, (n, k))) / k


def _quad(rng: np.random.Generator, n: int) -> np.ndarray:
    return unit(_ring(rng, n, 4)) * rng.uniform(0.7, 1.0, (n, 1, 2))


def _star(rng: np.random.Generator, n: int) -> np.ndarray:
    radius = np.where(np.arange(6) % 2, rng.uniform(0.2, 0.3, (n, 6)), rng.uniform(0.8, 1.0, (n, 6)))
    return unit(_ring(rng, n, 6, 0.1)) * radius[..., None]


def _lines(vertices: np.ndarray) -> list[Piece]:
    corners = list(np.moveaxis(vertices, 1, 0))
    return [("line", a, b) for a, b in zip(corners, corners[1:] + corners[:1])]


def rounded(vertices: np.ndarray, radius: np.ndarray, concave: tuple[int, ...] = ()) -> list[Piece]:
    """A polygon, counter-clockwise, with arcs that touch both sides of each corner; at the hollow ones named."""
    corners = list(np.moveaxis(vertices, 1, 0))
    ahead = [b - a for a, b in zip(corners, corners[1:] + corners[:1])]
    heading = [np.arctan2(d[:, 1], d[:, 0]) for d in ahead]
    turns = [(b - a + np.pi) % (2 * np.pi) - np.pi for a, b in zip(heading[-1:] + heading[:-1], heading)]
    assert all(np.all((turn < 0) == (k in concave)) for k, turn in enumerate(turns))
    cuts = [radius * np.abs(np.tan(t / 2)) for t in turns]
    found = []
    for k, at in enumerate(heading):
        to = (k + 1) % len(corners)
        end, side = corners[to] - cuts[to][:, None] * unit(at), -1 if to in concave else 1
        center = end + side * radius[:, None] * unit(at + np.pi / 2)
        found.append(("line", corners[k] + cuts[k][:, None] * unit(at), end))
        found.append(("arc" if side > 0 else "hollow", center, radius, at - side * np.pi / 2, turns[to]))
    return found


def _bow(a: np.ndarray, b: np.ndarray, height: np.ndarray) -> Piece:
    """An arc from one point to another that stands out to the right by a height, or to the left."""
    chord = np.linalg.norm(b - a, axis=1)
    turn = 4 * np.arctan(2 * height / chord)
    radius = chord / 2 / np.abs(np.sin(turn / 2))
    across = np.arctan2(*(b - a).T[::-1]) + np.pi / 2
    center = (a + b) / 2 + (chord / 2 / np.tan(turn / 2))[:, None] * unit(across)
    return ("arc" if turn[0] > 0 else "hollow", center, radius, np.arctan2(*(a - center).T[::-1]), turn)


def _lens(rng: np.random.Generator, n: int) -> list[Piece]:
    a, b = (np.stack([rng.uniform(0.7, 1.0, n) * s, rng.uniform(-0.2, 0.2, n)], 1) for s in (-1, 1))
    return [_bow(a, b, rng.uniform(0.2, 0.7, n)), _bow(b, a, rng.uniform(0.2, 0.7, n))]


def _moon(rng: np.random.Generator, n: int) -> list[Piece]:
    a, b = (np.stack([0.8 * s + rng.uniform(-0.2, 0.2, n), rng.uniform(0.1, 0.3, n)], 1) for s in (-1, 1))
    deep = rng.uniform(0.7, 1.0, n)
    return [_bow(a, b, deep), _bow(b, a, -deep * rng.uniform(0.2, 0.5, n))]


def _stadium(rng: np.random.Generator, n: int) -> list[Piece]:
    w, half, pi = rng.uniform(0.2, 0.5, n), rng.uniform(0.1, 0.6, n), np.full(n, np.pi)
    x, y = half[:, None] * [1, 0], w[:, None] * [0, 1]
    arcs = [("arc", x, w, -pi / 2, pi), ("arc", -x, w, pi / 2, pi)]
    return [("line", -x - y, x - y), arcs[0], ("line", x + y, -x + y), arcs[1]]


def _round(rng: np.random.Generator, n: int) -> list[Piece]:
    return [("arc", rng.uniform(-0.3, 0.3, (n, 2)), rng.uniform(0.5, 0.9, n), np.zeros(n), np.full(n, 2 * np.pi))]


def _wavy(rng: np.random.Generator, n: int) -> list[Piece]:
    """Points round an oval, which is hollow in places."""
    angle = 2 * np.pi * np.arange(12) / 12
    phase, waves = rng.uniform(0, 2 * np.pi, (n, 1)), rng.uniform(0, 0.12, (n, 1))
    radius = 0.8 + waves * np.cos(3 * angle + phase) + rng.uniform(0, 0.15, (n, 1)) * np.cos(2 * angle + 2 * phase)
    return [("spline", unit(np.broadcast_to(angle, (n, 12))) * radius[..., None])]


def _cap(rng: np.random.Generator, n: int) -> list[Piece]:
    """A polynomial between two ends, and the chord behind it."""
    start, end = rng.uniform(-0.4, 0.2, n), rng.uniform(2.8, 3.6, n)
    low, high = (rng.uniform(0.7, 1.0, n) for _ in range(2))
    # between two radii, as smoothly as a cubic goes
    span, rise = end - start, high - low
    x = [np.array([1.0, 0, 0, 0]), np.array([0, 1.0, 0, 0])]
    u = (x[1] - start[:, None] * x[0]) / span[:, None]  # as polynomials in the angle
    times = lambda p, q: np.stack([sum(p[:, i] * q[:, k - i] for i in range(k + 1)) for k in range(4)], 1)
    u2, u3 = times(u, u), times(u, times(u, u))
    c = low[:, None] * x[0] + rise[:, None] * (3 * u2 - 2 * u3)
    return [("polynomial", c, start, end), ("line", high[:, None] * unit(end), low[:, None] * unit(start))]


SHAPES: dict[str, tuple[Callable[..., list[Piece]], bool]] = {  # and whether its junctions are smooth
    "quad": (lambda rng, n: _lines(_quad(rng, n)), False),
    "star": (lambda rng, n: _lines(_star(rng, n)), False),
    "rounded quad": (lambda rng, n: rounded(_quad(rng, n), rng.uniform(0.05, 0.25, n)), True),
    "rounded star": (lambda rng, n: rounded(_star(rng, n), rng.uniform(0.02, 0.07, n), (1, 3, 5)), True),
    "stadium": (_stadium, True),
    "lens": (_lens, False),
    "moon": (_moon, False),
    "round": (_round, True),
    "wavy": (_wavy, True),
    "cap": (_cap, False),
}


def scaled(piece: Piece, by: np.ndarray) -> Piece:
    kind, *numbers = piece
    sizes = {"arc": 2, "hollow": 2, "polynomial": 1}.get(kind, len(numbers))  # the others are angles
    return (kind, *(x * by.reshape(-1, *[1] * (x.ndim - 1)) for x in numbers[:sizes]), *numbers[sizes:])


def backwards(piece: Piece) -> Piece:
    kind, *numbers = piece
    if kind in ("arc", "hollow"):
        center, radius, start, turn = numbers
        return ("arc" if kind == "hollow" else "hollow", center, radius, start + turn, -turn)
    if kind == "polynomial":
        return (kind, numbers[0], numbers[2], numbers[1])
    return (kind, numbers[0][:, ::-1]) if kind == "spline" else (kind, numbers[1], numbers[0])


def profile(kinds: list[str], pieces: list[list[Any]], smooth: bool, hole: bool) -> mbs.Profile:
    """The boundary of one scene, from the same numbers."""
    elements: list[Any] = []
    for kind, numbers in zip(kinds, pieces):
        if kind == "spline":
            return mbs.from_table(numbers[0], hole=hole)
        if kind == "line":
            elements.append(mbs.Line(*numbers))
        elif kind == "polynomial":
            elements.append(mbs.Polynomial(numbers[0], ORDERS, numbers[1], numbers[2]))
        elif len(pieces) == 1:
            elements.append(mbs.Circle(*numbers[:3], concave=hole))
        else:
            center, radius, start, turn = numbers
            elements.append(mbs.Arc(center, radius, start, jnp.abs(turn), concave=kind == "hollow"))
    return mbs.Profile.chain(elements, smooth=smooth, hole=hole)


# ---------------------------------------- scenes


class Scenes(NamedTuple):
    """Walls and a body in n scenes, the body's square of the radius of inertia, its restitution, and how it starts."""

    walls: list[Piece]
    body: list[Piece]
    inertia: np.ndarray
    restitution: np.ndarray
    pose: np.ndarray  # [n, 3]: x, y, angle
    velocity: np.ndarray


def picked(pieces: list[Piece], i: np.ndarray) -> list[Piece]:
    return [(kind, *(x[i] for x in numbers)) for kind, *numbers in pieces]


def scenes(walls: str, body: str, way: str, seed: int, n: int) -> Scenes:
    """Bodies in a `room`, in a `pocket`, a room of their own shape with play from a thousandth on, or thrown at an
    `obstacle`. They begin at some distance."""
    rng, pool = np.random.default_rng([len(walls), len(body), len(way), seed]), 12 * n
    around = SHAPES[walls][0](rng, pool)
    hole = way != "obstacle"
    if way == "pocket":
        play = 10 ** rng.uniform(-3, -0.3, pool)
        pieces = [scaled(x, 1 - play) for x in around]
        size = 1 - play
        jitter = play[:, None] * rng.uniform(-0.2, 0.2, (pool, 3))
        pose = jitter
    else:
        size = np.exp(rng.uniform(np.log(0.04), np.log(0.35), pool))
        pieces = [scaled(x, size) for x in SHAPES[body][0](rng, pool)]
        far = rng.uniform(0.0, 0.6, pool) if hole else rng.uniform(1.4, 2.0, pool)
        pose = np.concatenate([far[:, None] * unit(rng.uniform(0, 2 * np.pi, pool)), rng.uniform(0, 7, (pool, 1))], 1)
    if hole:
        around = [backwards(x) for x in around[::-1]]
        throw = np.exp(rng.uniform(np.log(0.5), np.log(6.0), (pool, 1))) * unit(rng.uniform(0, 2 * np.pi, pool))
    else:
        time = rng.uniform(0.15, 0.5, (pool, 1))
        throw = (rng.uniform(-0.5, 0.5, (pool, 2)) - pose[:, :2]) / time + np.array([0, G / 2]) * time
    spin = rng.uniform(-8, 8, (pool, 1))
    good = np.flatnonzero(touch(around, pieces, pose[:, None]).gap[:, 0] > (1e-5 if way == "pocket" else 1e-2))[:n]
    assert len(good) == n, f"only {len(good)} scenes of {walls} and {body}"
    every = Scenes(around, pieces, 0.3 * size**2, rng.uniform(0.5, 1.0, pool), pose, np.concatenate([throw, spin], 1))
    return Scenes(picked(around, good), picked(pieces, good), *(x[good] for x in every[2:]))


class Simulated(NamedTuple):
    result: Any
    t: Any
    kind: Any
    count: Any
    pose: Any  # at events: x, y, angle
    before: Any
    after: Any
    last: Any  # in the end


@cache
def program(walls: tuple, body: tuple, hole: bool):
    """Simulates bodies side by side; each boundary is its kinds of elements and whether they are joined smoothly."""

    def run(around, pieces, inertia, restitution, pose, velocity) -> Simulated:
        ground = mbs.Body("ground", profiles={"walls": profile(*walls[:1], around, walls[1], hole)})
        moving = mbs.Body(
            "body", mass=1.0, inertia=inertia, profiles={"rim": profile(*body[:1], pieces, body[1], False)}
        )
        joints = [
            mbs.Planar("at", "ground", "body"),
            mbs.Contact("C", "ground.walls", "body.rim", restitution=restitution),
        ]
        mech = mbs.Mechanism([ground, moving], joints, gravity=(0.0, -G))
        start = mbs.State(*(jnp.roll(x, 1) for x in (pose, velocity)), jnp.zeros(()))
        sol = mbs.simulate(
            mech, start, T1, ts=jnp.array([0.0, T1]), max_steps=1500, max_events=MOST, rest_speed=1e-5, throw=False
        )
        e, order = sol.events, jnp.array([1, 2, 0])
        told = (e.q[:, order], e.v_before[:, order], e.v_after[:, order], sol.q[-1][order])
        return Simulated(sol.result._value, e.t, e.kind, e.count, *told)

    return jax.jit(jax.vmap(run))


def simulated(of: Scenes, names: tuple[str, str], way: str) -> Simulated:
    kinds = [tuple(kind for kind, *_ in pieces) for pieces in (of.walls, of.body)]
    both = [(k, SHAPES[name][1]) for k, name in zip(kinds, names)]
    numbers = [[x for _, *x in pieces] for pieces in (of.walls, of.body)]
    found = program(*both, way != "obstacle")(*numbers, *of[2:])
    return Simulated(*(np.asarray(x) for x in found))


# ---------------------------------------- what holds


class Errors(NamedTuple):
    """What is wrong in each scene: how far a flight is from a parabola, how deep the body is in walls on the way, how
    far it is from them at an impact, how far an impulse is from a normal there, and what is wrong with its speeds."""

    flight: np.ndarray
    inside: np.ndarray
    apart: np.ndarray
    aside: np.ndarray
    speed: np.ndarray
    impacts: np.ndarray  # how many were looked at
    over: np.ndarray  # whether it did not come to its end, or went over to something else than flights

    def wrong(self) -> dict[str, list[int]]:
        """The scenes in which something is wrong."""
        bounds = {"flight": ALLOWED, "inside": ALLOWED, "apart": ALLOWED, "aside": ALONG, "speed": SPEED}
        found = {name: np.flatnonzero(~(getattr(self, name) <= most)).tolist() for name, most in bounds.items()}
        return {name: lanes for name, lanes in found.items() if lanes}


def certified(of: Scenes, found: Simulated) -> Errors:
    """What is wrong up to where a body does anything else than fly and hit, as when it comes to rest."""
    impact = (found.kind == mbs.EVENTS.index("impact")) & (np.arange(MOST) < found.count[:, None])
    sure = np.cumprod(impact, 1).astype(bool)  # up to where it does anything else
    over = (found.count > sure.sum(1)) | (found.result != mbs.RESULTS.successful._value)
    return Errors(*_flights(of, found, sure.sum(1), over), *_impacts(of, found, *np.nonzero(sure)), sure.sum(1), over)


def _flights(of: Scenes, found: Simulated, count: np.ndarray, over: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far flights between impacts, and up to the end where it is not `over` before, are from parabolas, and how
    deep the bodies are in walls on their way."""
    n, k = len(of.pose), np.arange(MOST + 1)
    impacts, last = k < count[:, None], (k == count[:, None]) & ~over[:, None]
    beside = lambda lanes, x: lanes.reshape(*lanes.shape, *[1] * (x.ndim - 2))  # of events, with more axes behind
    known = lambda x: np.where(beside(impacts[:, :MOST], x), x, 0.0)
    begin = lambda first, rest: np.concatenate([first[:, None], known(rest)], 1)
    end = lambda rest, x: np.where(beside(last, rest), x, np.concatenate([known(rest), np.zeros_like(rest[:, :1])], 1))
    t0, q0, v0 = begin(np.zeros(n), found.t), begin(of.pose, found.pose), begin(of.velocity, found.after)
    t1, q1, v1 = end(found.t, T1), end(found.pose, found.last[:, None]), end(found.before, 0.0)
    dt = np.where(impacts | last, t1 - t0, 0.0)[..., None]
    fly = lambda s: q0 + s * v0 + s**2 * FALL / 2
    off = lambda x, y, which: np.max(np.where(which[..., None], np.abs(x - y), 0.0), (1, 2))
    flight = np.maximum(off(fly(dt), q1, impacts | last), off(v0 + dt * FALL, v1, impacts))
    lane, leg = np.nonzero(impacts | last)
    parts = (np.arange(ON_THE_WAY) + 0.5) / ON_THE_WAY
    poses = np.stack([fly(dt * part)[lane, leg] for part in parts], 1)
    inside = np.zeros(n)
    for b in np.array_split(np.arange(len(lane)), len(lane) // 400 + 1):
        gap = touch(picked(of.walls, lane[b]), picked(of.body, lane[b]), poses[b]).gap
        np.maximum.at(inside, lane[b], np.max(-gap, 1))
    return flight, inside


def _impacts(of: Scenes, found: Simulated, lane: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, ...]:
    """Of impacts of scenes, what is wrong with gaps, impulses and speeds."""
    at = found.pose[lane, which]
    near = [np.zeros((0, *x)) for x in ((), (2,), (2,), (2,))]
    for b in np.array_split(np.arange(len(lane)), len(lane) // 2000 + 1):
        found_here = touch(picked(of.walls, lane[b]), picked(of.body, lane[b]), at[b, None])
        near = [np.concatenate([x, y[:, 0]]) for x, y in zip(near, found_here)]
    gap, place, walls, body = near
    before, after = found.before[lane, which], found.after[lane, which]
    push, lever = after - before, place - at[:, :2]
    size = np.linalg.norm(push[:, :2], axis=1)
    along = push[:, :2] / size[:, None]
    moment = lever[:, 0] * along[:, 1] - lever[:, 1] * along[:, 0]
    cross = lambda normal: np.where(np.any(normal != 0, 1), np.linalg.norm(along - normal, axis=1), np.inf)
    twist = np.abs(of.inertia[lane] * push[:, 2] / size - moment) / np.sqrt(of.inertia[lane])
    rate = lambda v: np.sum(v[:, :2] * along, 1) + moment * v[:, 2]
    wrong = np.abs(rate(after) + of.restitution[lane] * rate(before))
    told = np.abs(gap), np.maximum(np.minimum(cross(walls), cross(-body)), twist), wrong
    worst = np.zeros((3, len(of.pose)))
    for row, x in zip(worst, (*told[:2], np.where(rate(before) < 0, told[2], np.inf))):
        np.maximum.at(row, lane, x)
    return tuple(worst)
