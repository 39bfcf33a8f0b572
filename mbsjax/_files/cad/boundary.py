"""Curves of a drawing joined into the boundary of a body, whatever the file they come from."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from ..._model.profile.profile import Profile
from ..._model.profile.shapes import MOST_POINTS
from .pieces import Piece


_LEAST = 1e-12  # of the size: no tolerance is finer
_LARGEST = 1e100  # of a coordinate: squares of larger ones overflow
_NEARLY = 1e-2  # of its size: a chain whose ends are nearer to each other was meant to be closed
_STRAIGHT = 1e-6  # by how much directions may differ where there is no corner


@dataclass(frozen=True)
class Chain:
    """Curves in a row, each going on where the one before ends."""

    pieces: list[Piece]
    order: list[int]  # which curve of the drawing each of them is
    as_drawn: list[bool]  # and whether it runs as it does there
    closed: bool

    @property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        points = np.concatenate([p.at(np.linspace(0.0, 1.0, 17)) for p in self.pieces])
        return points.min(0), points.max(0)

    @property
    def size(self) -> float:
        low, high = self.box
        return float(np.hypot(*(high - low)))

    @property
    def area(self) -> float:
        return sum(p.area() for p in self.pieces)

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        return self.pieces[0].at(0.0), self.pieces[-1].at(1.0)

    def turned(self) -> "Chain":
        """The other way round; a closed one still begins with the same curve."""
        places = list(range(len(self.pieces)))[::-1]
        places = places[-1:] + places[:-1] if self.closed else places
        pieces, order = [self.pieces[k].turned() for k in places], [self.order[k] for k in places]
        return Chain(pieces, order, [not self.as_drawn[k] for k in places], self.closed)

    def directed(self, hole: bool) -> "Chain":
        """With the material on its left; an open one as the first curve of it runs that has a direction."""
        if self.closed:
            return self.turned() if (self.area < 0) != hole else self
        told = [k for k, p in enumerate(self.pieces) if p.directed] or list(range(len(self.pieces)))
        return self if self.as_drawn[min(told, key=lambda k: self.order[k])] else self.turned()

    def __str__(self) -> str:
        (x0, y0), (x1, y1) = self.box
        what = f"closed, area {abs(self.area):.6g}" if self.closed else "open, {} to {}".format(*map(_pair, self.ends))
        return f"{what}, x {x0:.6g} to {x1:.6g}, y {y0:.6g} to {y1:.6g}"


def boundary(
    pieces: list[Piece], name: str, *, index: int | None, hole: bool, closed: bool | None, tolerance: float
) -> Profile:
    """The profile that curves make. `name` tells errors what they are read from."""
    if not pieces:
        raise ValueError(f"{name}: there is no curve in it that a profile can be made of")
    if len(pieces) > MOST_POINTS:
        raise ValueError(f"{name}: there are more than {MOST_POINTS} curves in it")
    if not 0 <= tolerance < 1:
        raise ValueError(f"`tolerance` is a part of the drawing's size, from 0 to 1, got {tolerance!r}")
    tolerance = max(tolerance, _LEAST)
    points = np.array([p.at(np.linspace(0.0, 1.0, 9)) for p in pieces])
    if not np.all(np.abs(points) < _LARGEST):
        raise ValueError(f"{name}: a curve of it has numbers that are too large, or not finite")
    near = tolerance * float(np.ptp(points.reshape(-1, 2), 0).max())
    chain = _chosen(_chains(pieces, points, near, name), index, near, name)
    if not chain.closed:
        _check_gap(chain, closed, near, name)
    chain = chain.directed(hole)
    found = chain.pieces
    smooth = [_smooth(a, b) for a, b in zip(found, found[1:] + found[:1] * chain.closed)]
    hole = hole and chain.closed
    try:
        # a boundary among others has a smaller size than the drawing
        apart = tolerance * max(1.0, near / tolerance / (chain.size / 2)) if chain.size > 0 else tolerance
        elements = [p.element() for p in found]
        return Profile.chain(elements, closed=chain.closed, smooth=smooth, hole=hole, tolerance=apart)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _chains(pieces: list[Piece], points: np.ndarray, near: float, name: str) -> list[Chain]:
    """All chains, the largest first. What has no extent, and what is drawn twice, is left out."""
    kept = [k for k in _single(points, near) if pieces[k].endless or np.ptp(points[k], 0).max() > near]
    lone = [k for k in kept if pieces[k].endless]
    links = [k for k in kept if not pieces[k].endless]
    found = [Chain([pieces[k]], [k], [True], True) for k in lone]
    if links:
        nodes = _meeting(points[links][:, [0, -1]].reshape(-1, 2), near).reshape(-1, 2)
        crowded = np.flatnonzero(np.bincount(nodes.ravel()) > 2)
        if crowded.size:
            k, side = np.argwhere(nodes == crowded[0])[0]
            where = _pair(points[links[k], -side])
            raise ValueError(f"{name}: more than two curves meet at {where}: take away what is no part of the boundary")
        for row, closed in _walks(nodes):
            way = [(links[k], forward) for k, forward in row]
            run = [pieces[k] if forward else pieces[k].turned() for k, forward in way]
            found.append(Chain(run, [k for k, _ in way], [forward for _, forward in way], closed))
    return sorted(found, key=lambda c: -c.size)


def _single(points: np.ndarray, near: float) -> list[int]:
    """The numbers of the curves, each but once: in either direction it has the same points."""
    kept: list[int] = []
    middles = KDTree(points[:, 4])
    for k, mine in enumerate(points):
        twins = [j for j in middles.query_ball_point(mine[4], near) if j < k and j in kept]
        same = (min(np.abs(mine - points[j]).max(), np.abs(mine - points[j][::-1]).max()) <= near for j in twins)
        if not any(same):
            kept.append(k)
    return kept


def _meeting(ends: np.ndarray, near: float) -> np.ndarray:
    """For each end, the number of the place that it shares with others."""
    i, j = KDTree(ends).query_pairs(near, output_type="ndarray").T
    return connected_components(coo_array((np.ones(len(i)), (i, j)), shape=(len(ends),) * 2), directed=False)[1]


def _walks(nodes: np.ndarray) -> list[tuple[list[tuple[int, bool]], bool]]:
    """Rows of (curve, whether forward), and whether each comes back to its start."""
    at: dict[int, list[int]] = {}
    for k, (a, b) in enumerate(nodes):
        at.setdefault(int(a), []).append(k)
        at.setdefault(int(b), []).append(k)
    left, found = dict.fromkeys(range(len(nodes))), []
    while left:
        first = next(iter(left))
        del left[first]
        row, (start, end) = [(first, True)], map(int, nodes[first])
        while onward := [k for k in at[end] if k in left]:
            k = onward[0]
            del left[k]
            forward = int(nodes[k, 0]) == end
            row.append((k, forward))
            end = int(nodes[k, 1 if forward else 0])
        while end != start and (before := [k for k in at[start] if k in left]):
            k = before[0]
            del left[k]
            forward = int(nodes[k, 1]) == start
            row.insert(0, (k, forward))
            start = int(nodes[k, 0 if forward else 1])
        found.append((row, start == end))
    return found


def _chosen(chains: list[Chain], index: int | None, near: float, name: str) -> Chain:
    if not chains:
        raise ValueError(f"{name}: its curves have no extent")
    if index is None and len(chains) == 1:
        return chains[0]
    listed = "; ".join(f"{k}: {c}" for k, c in enumerate(chains[:12])) + ("; ..." if len(chains) > 12 else "")
    if index is None:
        gap = _nearest([c for c in chains if not c.closed])
        raise ValueError(
            f"{name}: its curves make {len(chains)} boundaries: {listed}. Choose one of them by its number, `index`"
            + (f". Or is there a gap? {gap}, and what meets is at most {near:.3g} apart" if gap else "")
        )
    if not 0 <= index < len(chains):
        raise ValueError(f"{name}: there is no boundary number {index}; there are {listed}")
    return chains[index]


def _nearest(chains: list[Chain]) -> str:
    """The two ends of different chains that are nearest to each other."""
    ends = np.array([c.ends for c in chains]).reshape(-1, 2)
    if len(ends) < 4:
        return ""
    apart = np.linalg.norm(ends[:, None] - ends[None], axis=2)
    apart[np.arange(len(ends))[:, None] // 2 == np.arange(len(ends)) // 2] = np.inf
    i, j = np.unravel_index(int(apart.argmin()), apart.shape)
    return f"The nearest ends are {_pair(ends[i])} and {_pair(ends[j])}, {apart[i, j]:.3g} apart"


def _check_gap(chain: Chain, closed: bool | None, near: float, name: str) -> None:
    """Raises for an open chain where a closed one is asked for, or was meant."""
    a, b = chain.ends
    apart = float(np.linalg.norm(b - a))
    if closed or (closed is None and apart < _NEARLY * chain.size):
        raise ValueError(
            f"{name}: the boundary is not closed: it ends at {_pair(b)} and begins at {_pair(a)}, {apart:.3g} apart, "
            f"and what meets is at most {near:.3g} apart. Close the gap, or give a larger `tolerance`, or closed=False"
        )


def _smooth(a: Piece, b: Piece) -> bool:
    (x, y), (u, v) = a.tangents[1], b.tangents[0]
    return bool(abs(np.arctan2(x * v - y * u, x * u + y * v)) < _STRAIGHT)


def _pair(p: np.ndarray) -> str:
    return f"({p[0]:.6g}, {p[1]:.6g})"
