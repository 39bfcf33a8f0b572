"""Scenes with closed forms: discs and rods that fly freely and hit walls without friction.

A referee for simulations, in NumPy alone. Between impacts the center of a disc is on a parabola, and it meets a wall
where that parabola meets the wall shifted by the disc's radius: a quadratic for a line, a quartic for an arc or a
corner. The ends of a rod are sampled so densely that the bound on their accelerations leaves no room for a root unseen.
All scenes of a family are solved side by side; numbers are in extended precision where the machine has it.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np


G = 9.81
HORIZON = 1.2  # the time a scene lasts
MOST = 16  # events that are looked for in a scene
SLOWEST = 3e-3  # an impact that is slower ends a scene,
CLOSE = 1e-7  # and so do two events that are nearer to each other, and a foot that is nearer to an element's end,
GRAZING = 1e-3  # a part of the speed: an impact that is more oblique,
GROWTH = 1e3  # and an event whose time depends on the start by more than this
TINY = 1e-10  # the change of the start that tells this

real = np.longdouble
_WINDOW, _FINE = 0.16, 160  # how far ahead the ends of a rod are looked at, and at how many moments


class Walls(NamedTuple):
    """The boundaries of n scenes, element by element along the chain, corners included, the material on the left. A
    line has a place where it begins, a direction and a length; an arc or corner a center, a radius (negative where
    it is concave) and a sector: the direction of its middle, seen from the center, and half its width, negative for a
    corner that is not there. `back` are hollow corners and lines as seen from behind, which end a scene.
    """

    line: np.ndarray  # [elements], the others are round
    base: np.ndarray  # [n, elements, 2]
    along: np.ndarray  # [n, elements]: the direction of a line, the middle of a sector
    extent: np.ndarray  # [n, elements]: the length of a line, half the width of a sector
    radius: np.ndarray  # [n, elements]
    back: np.ndarray  # [elements]
    number: np.ndarray  # [elements]: what the profile calls it


class Scenes(NamedTuple):
    """n scenes: their walls, the disc's radius (or half the rod's length), restitution, where and how fast it starts,
    the square of its radius of inertia; and the numbers of the drawing."""

    walls: Walls
    size: np.ndarray  # [n]
    restitution: np.ndarray
    position: np.ndarray  # [n, 3]: x, y, angle
    velocity: np.ndarray
    inertia: np.ndarray  # [n]
    rod: bool
    drawing: dict[str, np.ndarray]

    def picked(self, i: np.ndarray) -> "Scenes":
        """Some of them."""
        w = self.walls
        walls = w._replace(base=w.base[i], along=w.along[i], extent=w.extent[i], radius=w.radius[i])
        rows = (self.size[i], self.restitution[i], self.position[i], self.velocity[i], self.inertia[i])
        return Scenes(walls, *rows, self.rod, {name: x[i] for name, x in self.drawing.items()})


class Answer(NamedTuple):
    """What happens in n scenes: times and elements of the impacts (and which end of a rod hits), the time until
    which the answer is sure, position and velocity then, and by how much these change with the start; and what kinds of
    events they are."""

    t: np.ndarray  # [n, MOST], infinite after the last
    element: np.ndarray
    end: np.ndarray
    count: np.ndarray  # [n]
    until: np.ndarray
    position: np.ndarray  # [n, 3]
    velocity: np.ndarray
    spread: np.ndarray
    kind: np.ndarray  # [n, MOST]: a word of `mbsjax.EVENTS`


# ---------------------------------------- chains


def _turned(angle: np.ndarray) -> np.ndarray:
    return (angle + np.pi) % (2 * np.pi) - np.pi


def _unit(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], -1)


def _heading(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The direction from one point to another, and how far that is."""
    d = b - a
    return np.arctan2(d[..., 1], d[..., 0]), np.hypot(d[..., 0], d[..., 1])


def _piece(kind: str, a: np.ndarray, b: np.ndarray, *numbers: np.ndarray) -> tuple:
    """A piece of a chain: where it ends, its directions of travel at both ends, and its row: line or not, base, along,
    extent, radius."""
    if kind == "round":
        radius, heading, turn = a, b, numbers[1]
        left = np.where(radius < 0, 1, -1)  # a concave one turns to the right
        last = heading - left * turn
        end = numbers[0] + radius[:, None] * _unit(last - np.pi / 2)
        return end, heading, last, (False, numbers[0], (heading + last) / 2 + left * np.pi / 2, turn / 2, radius)
    heading, length = _heading(a, b)
    if kind == "line":
        return b, heading, heading, (True, a, heading, length, 0.0)
    radius = numbers[0]
    half = np.sign(radius) * np.arcsin(length / 2 / np.abs(radius))
    center = (a + b) / 2 + (radius * np.cos(half))[:, None] * _unit(heading + np.pi / 2)
    middle = heading - np.sign(half) * np.pi / 2
    return b, heading - half, heading + half, (False, center, middle, np.abs(half), radius)


def chain(pieces: list[tuple], closed: bool = True, smooth: bool = False) -> Walls:
    """The boundary along pieces `("line", a, b)`, `("arc", a, b, radius)`, the shorter arc of that radius, and
    `("round", radius, heading, center, turn)`, the arc that begins with that direction of travel; radii are negative
    where they are concave. Between two pieces stands a corner, unless the chain is `smooth`, at the ends of an open one
    a round tip."""
    ends, first, last, found = zip(*(_piece(*piece) for piece in pieces))
    rows = []  # line or not, base, along, extent, radius, whether it is a back, its number
    for end, heading, on, row in zip(ends, last, first[1:] + first[:1], found):
        rows.append((*row, False, len(rows)))
        if not smooth:  # a corner sticks out where the chain turns to the left
            turn = _turned(on - heading)
            there = np.where(turn > 1e-9, turn / 2, -1.0)
            rows.append((False, end, heading + turn / 2 - np.pi / 2, there, 0.0, False, len(rows)))
    if not closed:
        count = len(rows) - 1
        rows[-1] = (False, pieces[-1][2], last[-1], np.pi / 2, 0.0, False, count)
        rows.append((False, pieces[0][1], first[0] + np.pi, np.pi / 2, 0.0, False, count + 1))
        rows += [(True, b, *_heading(b, a), 0.0, True, -1) for _, a, b in pieces]
        turns = [_turned(on - end) for end, on in zip(last, first[1:])]
        hollow = zip(pieces, last, turns)
        rows += [(False, b, end, np.where(turn < -1e-9, np.pi, -1.0), 0.0, True, -1) for (_, _, b), end, turn in hollow]
    line, base, *numbers, back, number = zip(*rows)
    shape = first[0].shape
    along, extent, radius = (np.stack([np.broadcast_to(y, shape) for y in x], 1).astype(real) for x in numbers)
    return Walls(
        np.array(line), np.stack(base, 1).astype(real), along, extent, radius, np.array(back), np.array(number)
    )


def outside(walls: Walls, place: np.ndarray) -> np.ndarray:
    """How far points [n, 2] are from closed walls; negative in the material. The nearest place of the boundary decides
    on which side a point is; to a hollow corner only what is behind it is nearest."""
    p, d = place[:, None] - walls.base, _unit(walls.along)
    foot = np.sum(p * d, -1)
    far = np.hypot(p[..., 0], p[..., 1])
    beside = p[..., 0] * d[..., 1] - p[..., 1] * d[..., 0]
    off = np.abs(_turned(np.arctan2(p[..., 1], p[..., 0]) - walls.along))
    of_round = np.where(walls.radius < 0, -walls.radius - far, far - walls.radius)
    of_round = np.where(off <= walls.extent, of_round, np.where((walls.extent < 0) & (walls.radius == 0), -far, np.inf))
    of_line = np.where((foot >= 0) & (foot <= walls.extent), beside, np.inf)
    signed = np.where(walls.back, np.inf, np.where(walls.line, of_line, of_round))
    return np.take_along_axis(signed, np.argmin(np.abs(signed), 1)[:, None], 1)[:, 0]


def overlap(scenes: "Scenes", q: np.ndarray) -> np.ndarray:
    """By how much bodies that stand at q [n, 3] are in the material of closed walls."""
    if not scenes.rod:
        return scenes.size - outside(scenes.walls, q[:, :2])
    arms = scenes.size[:, None] * _unit(q[:, 2])
    return -np.minimum(*(outside(scenes.walls, q[:, :2] + side * arms) for side in (-1, 1)))


def clearance(walls: Walls, place: np.ndarray) -> np.ndarray:
    """How far points [n, 2] are from the lines."""
    p, d = place[:, None] - walls.base[:, walls.line], _unit(walls.along[:, walls.line])
    s = np.clip(np.sum(p * d, -1), 0, walls.extent[:, walls.line])
    off = p - s[..., None] * d
    return np.min(np.hypot(off[..., 0], off[..., 1]), -1)


# ---------------------------------------- the flight


class Candidates(NamedTuple):
    """Moments at which something may be met, in any order: `sure`, or so near to not being met that the scene ends
    there. An `element` of a rod is counted on from the last one for its second end."""

    scene: np.ndarray
    element: np.ndarray
    t: np.ndarray
    sure: np.ndarray


def _newton(c: np.ndarray, t: np.ndarray, steps: int = 4) -> np.ndarray:
    """Polishes the roots t [..., k] of polynomials c [..., degree + 1], lowest power first."""
    for _ in range(steps):
        value, slope = np.zeros_like(t), np.zeros_like(t)
        for k in range(c.shape[-1] - 1, -1, -1):
            slope = slope * t + value
            value = value * t + c[..., k, None]
        t = t - np.where(slope != 0, value / np.where(slope != 0, slope, 1), 0)
    return t


def _quadratic(c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both roots of polynomials [..., 3], and how far from the real axis they are."""
    c0, c1, c2 = np.moveaxis(c, -1, 0)
    square = c1**2 - 4 * c0 * c2
    q = -(c1 + np.where(c1 < 0, -1, 1) * np.sqrt(np.maximum(square, 0))) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.stack([np.where(c2 != 0, q / c2, np.inf), np.where(q != 0, c0 / q, np.inf)], -1)
        vertex = np.where(c2 != 0, -c1 / (2 * c2), np.inf)
        off = np.where(square < 0, np.sqrt(np.maximum(-square, 0)) / np.abs(2 * c2), 0)
    return np.where((square < 0)[..., None], vertex[..., None], t), np.repeat(off[..., None], 2, -1)


def _quartic(c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All roots of polynomials [..., 5], the eigenvalues of their companion matrices."""
    companion = np.zeros((*c.shape[:-1], 4, 4))
    companion[..., range(1, 4), range(3)] = 1.0
    companion[..., :, 3] = -(c[..., :4] / c[..., 4:])
    found = np.linalg.eigvals(companion)
    t, off = found.real.astype(real), np.abs(found.imag)
    return np.where(off < 1e-6, _newton(c, t), t), off


def _judged(scene, element, t, off, rate, speed, inside, back) -> Candidates:
    plain = (off < 1e-6) & (rate < -GRAZING * speed) & (inside > CLOSE) & ~back
    doubtful = (off < 1e-3) & (rate < GRAZING * speed) & (inside > -CLOSE)
    keep = (t > 0) & np.isfinite(t) & (plain | doubtful)
    return Candidates(scene[keep], element[keep], t[keep], plain[keep])


def disc_meets(scenes: Scenes, q: np.ndarray, v: np.ndarray, hit: np.ndarray) -> Candidates:
    """When the center's parabola meets the walls' offset curves; `hit` is the element that it leaves just now, -1 for
    none."""
    walls, g = scenes.walls, np.array([0, -G], real)
    found = []
    for roots, chosen in ((_line_roots, walls.line), (_round_roots, ~walls.line)):
        k = np.flatnonzero(chosen)
        of = Walls(*(x[k] if x.ndim == 1 else x[:, k] for x in walls))
        p = q[:, None, :2] - of.base
        V = np.broadcast_to(v[:, None, :2], p.shape)
        t, off = roots(of, p, V, scenes.size[:, None], k == hit[:, None])
        with np.errstate(invalid="ignore"):
            s = t[..., None]
            at, moving = p[:, :, None] + s * V[:, :, None] + s**2 * g / 2, V[:, :, None] + s * g
            d, far = _unit(of.along)[:, :, None], np.hypot(at[..., 0], at[..., 1])
            if roots is _line_roots:
                foot = np.sum(at * d, -1)
                rate = np.sum(moving * np.stack([d[..., 1], -d[..., 0]], -1), -1)
                inside = np.minimum(foot, of.extent[..., None] - foot)
            else:
                outward = np.where(of.radius < 0, -1, 1)[..., None]
                rate = outward * np.sum(at * moving, -1) / np.where(far > 0, far, 1)
                turned = np.abs(_turned(np.arctan2(at[..., 1], at[..., 0]) - of.along[..., None]))
                inside = np.where(of.extent[..., None] >= np.pi, 1, of.extent[..., None] - turned)
                narrow = (of.radius < 0) & (scenes.size[:, None] >= -of.radius)  # the disc does not come as far
                inside = np.where(narrow[..., None], -1, inside)
            speed = np.hypot(moving[..., 0], moving[..., 1])
        scene, element, _ = np.broadcast_arrays(np.arange(len(q))[:, None, None], k[:, None], t)
        back = np.broadcast_to(of.back[:, None], t.shape)
        found.append(_judged(scene, element, t, off, rate, speed, inside, back))
    return Candidates(*(np.concatenate(x) for x in zip(*found)))


def _line_roots(walls: Walls, p: np.ndarray, v: np.ndarray, R: np.ndarray, leaving: np.ndarray):
    d = _unit(walls.along)
    normal = np.stack([d[..., 1], -d[..., 0]], -1)
    gap = np.where(leaving, 0, np.sum(p * normal, -1) - R)
    t, off = _quadratic(np.stack([gap, np.sum(v * normal, -1), -G / 2 * normal[..., 1]], -1))
    return np.where(leaving[..., None] & (np.abs(t) < 1e-15), np.inf, t), off


def _round_roots(walls: Walls, p: np.ndarray, v: np.ndarray, R: np.ndarray, leaving: np.ndarray):
    reach = walls.radius + R
    c = [np.sum(p * p, -1) - reach**2, 2 * np.sum(p * v, -1), np.sum(v * v, -1) - G * p[..., 1], -G * v[..., 1]]
    c = np.stack([*c, np.full(reach.shape, real(G) ** 2 / 4)], -1)
    # of an element that it leaves the root at zero is taken out, and one at -1 put in its place
    zero = np.zeros_like(c[..., :1])
    without = np.concatenate([c[..., 1:], zero], -1) + np.concatenate([zero, c[..., 1:]], -1)
    return _quartic(np.where(leaving[..., None], without, c))


def rod_meets(scenes: Scenes, q: np.ndarray, v: np.ndarray, hit: np.ndarray) -> Candidates:
    """When the ends of a rod meet the lines. The distance of an end from a line is sampled at intervals h; where it has
    the same sign at two moments, there is no root between them if it is more than a h^2 / 8 at both, where a bounds its
    second derivative."""
    walls = scenes.walls
    n, m = walls.along.shape
    tau = np.linspace(0, _WINDOW, _FINE + 1)
    bound = (G + scenes.size * v[:, 2] ** 2) * tau[1] ** 2 / 8
    d = _unit(walls.along)
    normal = np.stack([d[..., 1], -d[..., 0]], -1)
    found = []
    for end in (0, 1):
        tip = lambda i, t, end=end: _tip(scenes, q, v, i, t, end)
        points = _tip(scenes, q.astype(float), v.astype(float), np.arange(n)[:, None], tau[None], end)[0]
        f = np.einsum("ntk,nmk->nmt", points, normal.astype(float))
        f -= np.sum(walls.base * normal, -1).astype(float)[..., None]
        left = hit[:, None] == np.arange(m) + end * m
        f[left, 0] = np.inf  # it begins on its way out
        low = np.minimum(f[..., :-1], f[..., 1:])
        falls = (f[..., :-1] > 0) & (f[..., 1:] <= 0)
        near = (low > 0) & (low < bound.astype(float)[:, None, None])
        i, j, k = np.nonzero((falls | near) & walls.line[:, None])
        falls = falls[i, j, k]
        t, lo, hi = (tau[k] + tau[k + 1]) / 2, tau[k].astype(real), tau[k + 1].astype(real)
        for _ in range(12):  # Newton's method, within a bracket
            p, moving = tip(i, t)
            gap, rate = (np.sum(x * normal[i, j], -1) for x in (p - walls.base[i, j], moving))
            lo, hi = np.where(gap > 0, t, lo), np.where(gap > 0, hi, t)
            on = t - gap / np.where(rate != 0, rate, 1)
            t = np.where((rate < 0) & (on >= lo) & (on <= hi), on, (lo + hi) / 2)
        t = np.where(falls, t, tau[k])
        p, moving = tip(i, t)
        foot = np.sum((p - walls.base[i, j]) * d[i, j], -1)
        rate, speed = np.sum(moving * normal[i, j], -1), np.hypot(moving[:, 0], moving[:, 1])
        inside = np.minimum(foot, walls.extent[i, j] - foot)
        inside = np.where(falls, inside, np.where(inside > -tau[1] * speed, 0, -1))
        found.append(_judged(i, j + end * m, t, 0 * t, np.where(falls, rate, 0), speed, inside, np.zeros(len(t), bool)))
    return Candidates(*(np.concatenate(x) for x in zip(*found)))


def _tip(scenes: Scenes, q, v, i: np.ndarray, t: np.ndarray, end: int) -> tuple[np.ndarray, np.ndarray]:
    """Where an end of the rods i is at the moments t, and how fast."""
    angle, arm, s = q[i, 2] + v[i, 2] * t, (2 * end - 1) * scenes.size[i], t[..., None]
    place = q[i, :2] + s * v[i, :2] + s**2 * np.array([0, -G / 2]) + arm[..., None] * _unit(angle)
    return place, v[i, :2] + s * np.array([0, -G]) + (arm * v[i, 2])[..., None] * _unit(angle + np.pi / 2)


def _flown(q: np.ndarray, v: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    g, t = np.array([0, -G, 0], real), t[:, None]
    return q + t * v + t**2 * g / 2, v + t * g


def _struck(scenes: Scenes, q: np.ndarray, v: np.ndarray, element: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The velocities after an impact without friction on an element, and how fast the bodies met."""
    walls, lanes = scenes.walls, np.arange(len(q))
    m, k = walls.along.shape[1], element % walls.along.shape[1]
    angle, p = walls.along[lanes, k], q[:, :2] - walls.base[lanes, k]
    d = _unit(angle)
    far = np.hypot(p[:, 0], p[:, 1])
    outward = p / np.where(far > 0, far, 1)[:, None] * np.where(walls.radius[lanes, k] < 0, -1, 1)[:, None]
    normal = np.where(walls.line[k][:, None], np.stack([d[:, 1], -d[:, 0]], -1), outward)
    arm = np.where(element >= m, 1, -1)[:, None] * scenes.size[:, None] * _unit(q[:, 2])
    lever = arm[:, 0] * normal[:, 1] - arm[:, 1] * normal[:, 0] if scenes.rod else np.zeros_like(far)
    rate = np.sum(v[:, :2] * normal, -1) + lever * v[:, 2]
    impulse = -(1 + scenes.restitution) * rate / (1 + lever**2 / scenes.inertia)
    return v + np.stack([*(impulse * normal.T), impulse * lever / scenes.inertia], 1), -rate


def _moved(scenes: Scenes, by: float) -> Scenes:
    """The same scenes, started elsewhere, by that much, and faster, by that part."""
    position = scenes.position.astype(real) + by * np.array([1, 1, -1], real)
    return scenes._replace(position=position, velocity=scenes.velocity.astype(real) * (1 + by * np.array([1, -1, 1])))


def _followed(scenes: Scenes) -> Answer:
    n, m = scenes.walls.along.shape
    meets = rod_meets if scenes.rod else disc_meets
    q, v = scenes.position.copy(), scenes.velocity.copy()
    t, hit, live = np.zeros(n, real), np.full(n, -1), np.ones(n, bool)
    count, until = np.zeros(n, int), np.full(n, HORIZON, real)
    times, elements = np.full((n, MOST), np.inf, real), np.full((n, MOST), -1)
    window = _WINDOW - CLOSE if scenes.rod else np.inf
    while live.any():
        i = np.flatnonzero(live)
        mine = scenes.picked(i)
        found = meets(mine, q[i], v[i], hit[i])
        order = np.lexsort((found.t, found.scene))
        found = Candidates(*(x[order] for x in found))
        first = np.searchsorted(found.scene, np.arange(len(i)))
        # behind the last one stands one that never comes
        at = lambda x, k, never: np.append(x, never)[np.minimum(k, len(x))]
        comes = at(found.scene, first, -1) == np.arange(len(i))
        again = comes & (at(found.scene, first + 1, -1) == np.arange(len(i)))
        dt = np.where(comes, at(found.t, first, np.inf), np.inf)
        next_ = np.where(again, at(found.t, first + 1, np.inf), np.inf)
        element = at(found.element, first, -1)
        over = t[i] + np.minimum(dt, window) >= HORIZON - CLOSE
        flies = ~over & (dt >= window)
        q_, v_ = _flown(q[i], v[i], np.where(over, 0, np.minimum(dt, window)))
        after, speed = _struck(mine, q_, v_, element)
        clear = at(found.sure, first, False) & (next_ > dt + CLOSE) & (speed > SLOWEST) & (count[i] < MOST)
        hits, ends = ~over & ~flies & clear, ~over & ~flies & ~clear
        until[i[ends]] = (t[i] + dt)[ends]
        k, f = i[hits], i[flies]
        q[k], v[k], t[k], hit[k] = q_[hits], after[hits], (t[i] + dt)[hits], element[hits]
        q[f], v[f], t[f], hit[f] = q_[flies], v_[flies], t[f] + window, -1
        times[k, count[k]], elements[k, count[k]] = t[k], element[hits]
        count[k] += 1
        live[i[over | ends]] = False
    kind = np.where(elements < 0, "", "impact")
    return Answer(times, elements % m, np.where(elements < 0, -1, elements // m), count, until, q, v, until, kind)


def _ended(scenes: Scenes, answer: Answer, count: np.ndarray, until: np.ndarray) -> list[np.ndarray]:
    """Position and velocity at a time, after the first impacts of an answer."""
    t, q, v = np.zeros(len(count), real), scenes.position, scenes.velocity
    element = answer.element + answer.end * scenes.walls.along.shape[1]
    for k in range(MOST):
        on = k < count
        q_, v_ = _flown(q, v, np.where(on, np.where(on, answer.t[:, k], 0) - t, 0))
        v_, _ = _struck(scenes, q_, v_, np.where(on, element[:, k], 0))
        t = np.where(on, answer.t[:, k], t)
        q, v = np.where(on[:, None], q_, q), np.where(on[:, None], v_, v)
    return list(_flown(q, v, until - t))


def solve(scenes: Scenes) -> Answer:
    """The impacts of all scenes, up to where they are sure; there, half-way to what is not, the answer ends."""
    starts = [_moved(scenes, by) for by in (0.0, TINY)]
    one, two = (_followed(x) for x in starts)
    n, lanes = len(one.count), np.arange(len(one.count))
    known = np.isfinite(one.t) & np.isfinite(two.t)
    moved = np.abs(np.where(known, two.t, np.inf) - np.where(known, one.t, 0))
    same = (one.element == two.element) & (one.end == two.end) & (moved < GROWTH * TINY)
    count = np.sum(np.cumprod(same, 1), 1)
    times = np.concatenate([np.zeros((n, 1), real), one.t, np.full((n, 1), np.inf, real)], 1)
    beyond = np.where(count < one.count, times[lanes, count + 1], one.until)
    until = np.where(beyond >= HORIZON, HORIZON, (times[lanes, count] + beyond) / 2)
    (q, v), other = (_ended(x, found, count, until) for x, found in zip(starts, (one, two)))
    spread = sum(np.max(np.abs(x - y), 1) for x, y in zip((q, v), other)) / TINY
    fill = lambda x, none: np.where(np.arange(MOST) < count[:, None], x, none)
    number = scenes.walls.number[np.maximum(one.element, 0)]
    kind = fill(one.kind, "")
    answer = Answer(fill(one.t, np.inf), fill(number, -1), fill(one.end, -1), count, until, q, v, spread, kind)
    return Answer(*(x.astype(float) if x.dtype == real else x for x in answer))


# ---------------------------------------- the scenes


BLOCK = 256  # scenes that are drawn together


def polygon_walls(vertices: np.ndarray) -> Walls:
    corners = np.moveaxis(vertices, 1, 0)
    return chain([("line", a, b) for a, b in zip(corners, np.roll(corners, -1, 0))])


def mixed_walls(vertices: np.ndarray, radii: np.ndarray) -> Walls:
    a, b, c, d = np.moveaxis(vertices, 1, 0)
    return chain([("line", a, b), ("arc", b, c, -radii[:, 0]), ("line", c, d), ("arc", d, a, radii[:, 1])])


def open_walls(vertices: np.ndarray) -> Walls:
    corners = np.moveaxis(vertices, 1, 0)
    return chain([("line", a, b) for a, b in pairwise(corners)], closed=False)


def slot_walls(vertices: np.ndarray, radii: np.ndarray) -> Walls:
    """A slot with round ends about two centers."""
    (a, b), w = np.moveaxis(vertices, 1, 0), radii[:, 0]
    along, half = _heading(a, b)[0], np.full(len(w), np.pi, real)
    aside = w[:, None] * _unit(along + np.pi / 2)
    return chain(
        [
            ("line", a + aside, b + aside),
            ("round", -w, along, b, half),
            ("line", b - aside, a - aside),
            ("round", -w, along + np.pi, a, half),
        ],
        smooth=True,
    )


def rounded_walls(vertices: np.ndarray, radii: np.ndarray) -> Walls:
    """A room whose corners, drawn clockwise, are rounded."""
    corners, r = np.moveaxis(vertices, 1, 0), radii[:, 0]
    headings = [_heading(a, b)[0] for a, b in zip(corners, np.roll(corners, -1, 0))]
    turns = [_turned(before - on) for before, on in zip(headings[-1:] + headings[:-1], headings)]
    cuts = [(r * np.tan(turn / 2))[:, None] for turn in turns]
    pieces = []
    for k, heading in enumerate(headings):
        on = (k + 1) % len(headings)
        end = corners[on] - cuts[on] * _unit(heading)
        center = end + r[:, None] * _unit(heading - np.pi / 2)
        pieces.append(("line", corners[k] + cuts[k] * _unit(heading), end))
        pieces.append(("round", -r, heading, center, turns[on]))
    return chain(pieces, smooth=True)


WALLS = {"polygon": polygon_walls, "mixed": mixed_walls, "open": open_walls, "rod": polygon_walls,
         "floor": open_walls, "slot": slot_walls, "rounded": rounded_walls}  # fmt: skip


def _rotated(points: np.ndarray, angle: np.ndarray) -> np.ndarray:
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    x, y = points[..., 0], points[..., 1]
    return np.stack([c * x - s * y, s * x + c * y], -1)


def _star(rng: np.random.Generator, n: int, inner: float = 0.4) -> np.ndarray:
    """Six corners round the origin, counter-clockwise."""
    angle = 2 * np.pi * (np.arange(6) + rng.uniform(-0.35, 0.35, (n, 6))) / 6 + rng.uniform(0, 2 * np.pi, (n, 1))
    radius = np.where(
        rng.uniform(size=(n, 6)) < 0.5, rng.uniform(inner, inner + 0.2, (n, 6)), rng.uniform(1.0, 1.4, (n, 6))
    )
    return radius[..., None] * _unit(angle)


def _convex(rng: np.random.Generator, n: int) -> np.ndarray:
    """Six corners on an ellipse."""
    angle = 2 * np.pi * (np.arange(6) + rng.uniform(-0.4, 0.4, (n, 6))) / 6
    return _rotated(_unit(angle) * rng.uniform(0.7, 1.3, (n, 1, 2)), rng.uniform(0, 2 * np.pi, n))


def _thinned(rng: np.random.Generator, points: np.ndarray) -> np.ndarray:
    """Half of them pressed together, to a hundredth at most."""
    n = len(points)
    squash = np.where(rng.uniform(size=n) < 0.5, 10 ** rng.uniform(-2, 0, n), 1.0)
    return _rotated(0.6 * points * np.stack([np.ones(n), squash], -1)[:, None], rng.uniform(0, 2 * np.pi, n))


def _within(rng: np.random.Generator, vertices: np.ndarray, most: float = 0.95) -> np.ndarray:
    """A point within each polygon that the origin sees all of."""
    n, m, _ = vertices.shape
    k, s = rng.integers(m, size=n), rng.uniform(size=(n, 1))
    a, b = vertices[np.arange(n), k], vertices[np.arange(n), (k + 1) % m]
    return rng.uniform(0, most, (n, 1)) * (a + s * (b - a))


def _thrown(rng: np.random.Generator, n: int, fastest: float = 12.0) -> np.ndarray:
    return np.exp(rng.uniform(np.log(0.5), np.log(fastest), (n, 1))) * _unit(rng.uniform(0, 2 * np.pi, n))


def _aimed(rng: np.random.Generator, start: np.ndarray, target: np.ndarray) -> np.ndarray:
    time = rng.uniform(0.15, 0.7, (len(start), 1))
    return (target - start) / time + np.array([0, G / 2]) * time


def _clear_start(rng: np.random.Generator, walls: Walls, vertices: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Points in rooms that are clear of the walls; the origin always is."""
    start = np.zeros((len(room), 2))
    for _ in range(8):
        place = _within(rng, vertices)
        good = (clearance(walls, place.astype(real)) > room) & ~start.any(1)
        start = np.where(good[:, None], place, start)
    return start


def _sizes(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.exp(rng.uniform(np.log(0.005), np.log(0.22), n))


def _room(shape):
    def draw(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
        vertices, R = shape(rng, n)[:, ::-1], _sizes(rng, n)
        start = _clear_start(rng, polygon_walls(vertices), vertices, R + 0.02)
        return {"vertices": vertices, "size": R, "start": start, "throw": _thrown(rng, n)}

    return draw


def _obstacle(shape):
    def draw(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
        vertices = _thinned(rng, shape(rng, n))
        start = rng.uniform(1.4, 3.0, (n, 1)) * _unit(rng.uniform(0, 2 * np.pi, n))
        throw = _aimed(rng, start, _within(rng, vertices))
        return {"vertices": vertices, "size": _sizes(rng, n), "start": start,
                "throw": throw}  # fmt: skip

    return draw


def _arc_radius(half_chord: np.ndarray, height: np.ndarray) -> np.ndarray:
    return (half_chord**2 + height**2) / (2 * height)


def _wedge(rng: np.random.Generator, n: int, x: np.ndarray, y: np.ndarray, height: np.ndarray) -> np.ndarray:
    """Corners behind an arc of the given height over the chord from (x, y) to (x, -y): in half of the scenes its
    tangents lead there, in the others they are anywhere near."""
    half = np.arcsin(y / _arc_radius(y, height))
    reach = rng.uniform(1.4, 1.8, n)
    smooth = (rng.uniform(size=n) < 0.5)[:, None]
    there = np.stack([x - reach, y + reach / np.tan(half)], 1)
    return np.where(smooth, there, np.stack([x - reach, y + rng.uniform(-0.2, 0.4, n)], 1))


def _slot(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """A room with a concave end at the right, and a convex one that bulges into it at the left."""
    x, y = rng.uniform(0.8, 1.0, n), rng.uniform(0.5, 0.8, n)
    height = y * rng.uniform(0.6, 0.95, n)
    up, down = _wedge(rng, n, x, y, height), _wedge(rng, n, x, y, height)
    mirrored = rng.uniform(size=n) < 0.5
    down = np.where(mirrored[:, None], up, down) * [1, -1]
    chord = np.hypot(*(up - down).T) / 2
    vertices = np.stack([up, np.stack([x, y], 1), np.stack([x, -y], 1), down], 1)
    radii = np.stack([_arc_radius(y, height), _arc_radius(chord, rng.uniform(0.05, 0.3, n))], 1)
    angle, R = rng.uniform(0, 2 * np.pi, n), _sizes(rng, n)
    start = np.stack([rng.uniform(0.0, 0.5, n), rng.uniform(-0.2, 0.2, n)], 1)
    vertices, start = _rotated(vertices, angle), _rotated(start[:, None], angle)[:, 0]
    return {"vertices": vertices, "radii": radii, "size": R, "start": start, "throw": _thrown(rng, n)}


def _rounded_slot(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """A slot with round ends, whose play is from a thousandth to nearly all of its width."""
    w, half, angle = rng.uniform(0.2, 0.8, n), rng.uniform(0.1, 1.5, n), rng.uniform(0, 2 * np.pi, n)
    play = w * 10 ** rng.uniform(-3, -0.02, n)
    start = np.stack([rng.uniform(-1, 1, n) * half, rng.uniform(-0.9, 0.9, n) * play], 1)
    ends = np.stack([-half, 0 * half, half, 0 * half], 1).reshape(n, 2, 2)
    return {"vertices": _rotated(ends, angle), "radii": w[:, None], "size": w - play,
            "start": _rotated(start[:, None], angle)[:, 0], "throw": _thrown(rng, n)}  # fmt: skip


def _rounded_room(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """A room with hollow fillets; of ten discs, one does not fit into these, and some that do have little play."""
    angle = 2 * np.pi * (np.arange(4) + rng.uniform(-0.3, 0.3, (n, 4))) / 4
    vertices = _rotated(_unit(angle) * rng.uniform(0.6, 1.3, (n, 1, 2)), rng.uniform(0, 2 * np.pi, n))[:, ::-1]
    length, heading = (np.roll(vertices, -1, 1) - vertices for _ in range(2))
    length, heading = np.hypot(*np.moveaxis(length, -1, 0)), np.arctan2(heading[..., 1], heading[..., 0])
    steep = np.tan(_turned(np.roll(heading, 1, 1) - heading) / 2)
    r = rng.uniform(0.3, 0.95, n) * np.min(length / (steep + np.roll(steep, -1, 1)), 1)
    size = np.where(rng.uniform(size=n) < 0.1, 1.1, 1 - 10 ** rng.uniform(-3, -0.02, n)) * r
    walls = rounded_walls(vertices.astype(real), r[:, None].astype(real))
    middle = np.mean(vertices, 1)
    size = np.minimum(size, 0.9 * outside(walls, middle.astype(real)).astype(float))
    start = middle
    for _ in range(8):
        place = middle + _within(rng, vertices - middle[:, None])
        clear = outside(walls, place.astype(real)) > size * 1.0001
        start = np.where((clear & np.all(start == middle, 1))[:, None], place, start)
    return {"vertices": vertices, "radii": r[:, None], "size": size, "start": start, "throw": _thrown(rng, n)}


def _bite(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """An obstacle with a convex end, and a concave bite in the other."""
    x, y = rng.uniform(0.3, 0.5, n), rng.uniform(0.2, 0.4, n)
    height = y * rng.uniform(0.4, 0.95, n)
    up, down = _wedge(rng, n, x, y, height), _wedge(rng, n, x, y, height)
    down = np.where((rng.uniform(size=n) < 0.5)[:, None], up, down) * [1, -1]
    chord = np.hypot(*(up - down).T) / 2
    vertices = np.stack([np.stack([x, y], 1), up, down, np.stack([x, -y], 1)], 1) + [0.5, 0.0]
    # no deeper than where it would come out through a line
    corners = [_heading(vertices[:, k], vertices[:, j])[0] for k, j in ((1, 0), (1, 2), (2, 1), (2, 3))]
    narrow = np.minimum(*(np.abs(_turned(b - a)) for a, b in (corners[:2], corners[2:])))
    deep = np.minimum(chord * np.tan((narrow - 0.2) / 2), rng.uniform(0.1, 0.6, n))
    radii = np.stack([_arc_radius(chord, deep), _arc_radius(y, height)], 1)
    angle, R = rng.uniform(0, 2 * np.pi, n), _sizes(rng, n)
    start = rng.uniform(2.0, 3.0, (n, 1)) * _unit(rng.uniform(0, 2 * np.pi, n))
    target = _rotated(rng.uniform(-1, 1, (n, 1, 2)) * [0.9, 0.5], angle)[:, 0]
    throw = _aimed(rng, start, target)
    return {"vertices": _rotated(vertices, angle), "radii": radii, "size": R, "start": start, "throw": throw}


def _open(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Three lines, the material below, at whose ends and corners it is aimed."""
    x = np.array([1.0, 0.33, -0.33, -1.0]) + rng.uniform(-0.2, 0.2, (n, 4))
    vertices = np.stack([x, rng.uniform(-0.4, 0.4, (n, 4))], -1)
    k, s = rng.integers(3, size=n), rng.uniform(size=(n, 1))
    s = s + np.where((rng.uniform(size=n) < 0.5) & (k != 1), np.where(k == 2, 0.2, -0.2), 0.0)[:, None]
    a, b = vertices[np.arange(n), k], vertices[np.arange(n), k + 1]
    start = rng.uniform(1.7, 2.5, (n, 1)) * _unit(rng.uniform(-0.3, np.pi + 0.3, n))
    throw = _aimed(rng, start, a + s * (b - a))
    R = _sizes(rng, n)
    return {"vertices": vertices, "size": R, "start": start, "throw": throw}


def _rod(rng: np.random.Generator, n: int, room: bool) -> dict[str, np.ndarray]:
    """A rod with points at its ends, instead of a disc."""
    drawing = (_room if room else _obstacle)(_star)(rng, n)
    turn, half = np.stack([rng.uniform(0, 2 * np.pi, n), rng.uniform(-8, 8, n)], 1), rng.uniform(0.05, 0.22, n)
    if room:
        walls = polygon_walls(drawing["vertices"])
        clear = clearance(walls, drawing["start"].astype(real)) > half + 0.02
        drawing["start"] = np.where(clear[:, None], drawing["start"], 0.0)
    return {**drawing, "size": half, "turn": turn, "inertia": half**2 * rng.uniform(0.2, 0.8, n)}


def _floor(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """A long floor, level, sloping or steep, onto which a spinning disc is thrown. Half of the discs stay on it, and
    some of them begin a hair above it."""
    share = lambda part: rng.uniform(size=n) < part
    slope = np.where(share(0.6), rng.uniform(-0.3, 0.3, n), rng.uniform(0.7, 1.3, n) * np.where(share(0.5), -1, 1))
    tilt, R = np.where(share(0.4), 0.0, slope), rng.uniform(0.05, 0.4, n)
    height, falls = rng.uniform(0.01, 0.4, n), rng.uniform(-2.0, 0.5, n)
    near = share(0.25)
    height, falls = np.where(near, 1e-4, height), np.where(near, -0.2, falls)[:, None]
    d, up = _unit(tilt), _unit(tilt + np.pi / 2)
    mass = 10 ** rng.uniform(-1, 1, n)
    return {
        "vertices": np.stack([25 * d, -25 * d], 1),
        "size": R,
        "start": (R + height)[:, None] * up,
        "throw": rng.uniform(-5, 5, (n, 1)) * d + falls * up,
        "turn": np.stack([np.zeros(n), rng.uniform(-25, 25, n)], 1),
        "mass": mass,
        "inertia": rng.uniform(0.3, 1.0, n) * mass * R**2,
        "friction": rng.uniform(0.02, 0.6, n),
        "restitution": np.where(share(0.5), 0.0, rng.uniform(0.4, 1.0, n)),
    }


FAMILIES = {
    "room": ("polygon", _room(_convex)),
    "star room": ("polygon", _room(_star)),
    "obstacle": ("polygon", _obstacle(_convex)),
    "star obstacle": ("polygon", _obstacle(lambda rng, n: _star(rng, n, 0.3))),
    "slot": ("mixed", _slot),
    "bite": ("mixed", _bite),
    "open chain": ("open", _open),
    "rod in a room": ("rod", lambda rng, n: _rod(rng, n, True)),
    "rod outside": ("rod", lambda rng, n: _rod(rng, n, False)),
    "floor with friction": ("floor", _floor),
    "rounded slot": ("slot", _rounded_slot),
    "rounded room": ("rounded", _rounded_room),
}


def scenes_of(structure: str, drawing: dict[str, np.ndarray]) -> Scenes:
    """Scenes from the numbers of their drawings: `vertices`, `size`, `restitution`, `start` and `throw`; of mixed ones
    also the `radii` of the concave and the convex arc, of rods and on floors `turn`, angle and angular speed, and
    `inertia`; on floors `mass` and `friction`."""
    n = len(drawing["size"])
    turn = drawing.get("turn", np.zeros((n, 2)))
    walls = WALLS[structure](*(drawing[name].astype(real) for name in ("vertices", "radii") if name in drawing))
    state = [np.concatenate([drawing[x], turn[:, k, None]], 1) for k, x in enumerate(("start", "throw"))]
    inertia = drawing.get("inertia", np.ones(n))
    return Scenes(walls, drawing["size"], drawing["restitution"], *state, inertia, structure == "rod", drawing)


def scenes(family: str, first: int, count: int) -> Scenes:
    """Scenes of a family by their numbers: each depends on its number alone."""
    structure, draw = FAMILIES[family]
    blocks = []
    for block in range(first // BLOCK, -(-(first + count) // BLOCK)):
        rng = np.random.default_rng([list(FAMILIES).index(family), block])
        drawing = draw(rng, BLOCK)
        blocks.append({"restitution": rng.uniform(0.5, 1.0, BLOCK), **drawing})
    skip = first % BLOCK
    drawing = {name: np.concatenate([b[name] for b in blocks])[skip : skip + count] for name in blocks[0]}
    return scenes_of(structure, drawing)
