"""Lines, areas and symbols of drawings; in the plane they have the size of the mechanism's units."""

from typing import Any

import numpy as np

from .._model.units import Units
from .quantities import labeled
from .style import INK, RED, plain


def line(axes: Any, points: Any, color: str, lw: Any, alpha: Any = 1.0, zorder: Any = 3.0, **options: Any) -> None:
    axes.plot(*np.asarray(points).T, color=color, lw=lw, alpha=alpha, zorder=zorder, solid_capstyle="round",
              solid_joinstyle="round", **options)  # fmt: skip


def fill(axes: Any, rims: list[np.ndarray], color: str, alpha: Any, zorder: Any = 3.0, paper: bool = False) -> None:
    """The material within closed outlines, light; holes in it, which run clockwise, are left out."""
    if not rims:
        return
    if rims[0].shape[1] == 3:
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection

        axes.add_collection3d(Poly3DCollection(rims, facecolor=color, alpha=0.15 * alpha))
        return
    areas = [float(np.sum(r[:, 0] * np.roll(r[:, 1], -1) - r[:, 1] * np.roll(r[:, 0], -1))) for r in rims]
    if max(areas) <= 0:  # holes alone: the material goes on all round
        return
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    path = Path.make_compound_path(*(Path(np.concatenate([r, r[:1]]), closed=True) for r in rims))
    if paper:
        axes.add_patch(PathPatch(path, fc="white", ec="none", zorder=zorder))
    axes.add_patch(PathPatch(path, fc=color, ec="none", alpha=0.18 * alpha, zorder=zorder))


def pin(axes: Any, place: np.ndarray, u: Any) -> None:
    if len(place) == 3:
        axes.plot(*place, "o", color=INK, ms=3, mfc="white", mew=0.7, zorder=6)
        return
    from matplotlib.patches import Circle

    axes.add_patch(Circle(tuple(place), 0.5 * u, fc="white", ec=INK, lw=0.9, zorder=6))


def pivot(axes: Any, place: np.ndarray, u: Any) -> None:
    """A bearing in ground."""
    from matplotlib.patches import Polygon

    feet = place + u * np.array([[-1.2, -2.2], [1.2, -2.2]])
    axes.add_patch(Polygon([place, *feet], fc="white", ec=INK, lw=0.9, zorder=2.5))
    hatched(axes, feet + 0.8 * u * np.array([[-1.0, 0.0], [1.0, 0.0]]), u, -1)


def hatched(axes: Any, points: np.ndarray, u: Any, side: int = -1) -> None:
    """The boundary of something fixed: a line with short strokes on its left (1) or right (-1)."""
    from matplotlib.collections import LineCollection

    line(axes, points, INK, 1.0, 1.0, 2.6)
    pieces = np.diff(points, axis=0)
    lengths = np.linalg.norm(pieces, axis=1)
    ends = np.cumsum(lengths)
    count = max(int(ends[-1] / (0.7 * u)), 1)
    at = (np.arange(count) + 0.5) * ends[-1] / count
    k = np.searchsorted(ends, at)
    along = pieces[k] / lengths[k, None]
    feet = points[k] + along * (at - ends[k] + lengths[k])[:, None]
    left = np.stack([-along[:, 1], along[:, 0]], 1)
    strokes = np.stack([feet, feet + 0.75 * u * (side * left - 0.8 * along)], 1)
    axes.add_collection(LineCollection(list(strokes), colors=INK, linewidths=0.5, zorder=2.5))


def arrow(axes: Any, start: np.ndarray, way: np.ndarray, color: str = RED) -> None:
    """A force."""
    if len(start) == 3:
        axes.quiver(*start, *way, color=color, lw=1.4, arrow_length_ratio=0.2)
        return
    axes.quiver(*start, *way, angles="xy", scale_units="xy", scale=1, color=color, width=0.006, zorder=8)
    axes.update_datalim([start, start + way])


def label(axes: Any, place: np.ndarray, text: str, color: str) -> None:
    from matplotlib.patheffects import withStroke

    axes.text(*place, plain(text), color=color, fontsize=7, zorder=9, ha="center", va="center",
              path_effects=[withStroke(linewidth=2, foreground="white")])  # fmt: skip
    if len(place) == 2:
        axes.update_datalim([place])


def point_along(axes: Any, a: np.ndarray, b: np.ndarray) -> None:
    """The direction of a curve, from one of its points to the next."""
    if len(a) == 3:
        way = (b - a) / np.linalg.norm(b - a)
        size = 0.08 * float(np.ptp([axes.get_xlim3d(), axes.get_ylim3d(), axes.get_zlim3d()], axis=1).max())
        axes.quiver(*a, *(size * way), color=RED, lw=1.0, arrow_length_ratio=0.6)
        return
    head = {"arrowstyle": "-|>", "color": RED, "lw": 1.0, "mutation_scale": 10, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", tuple(b), tuple(a), arrowprops=head, zorder=5)


def frame(axes: Any, units: Units | None) -> None:
    """Equal scales and names of the axes; in space, no box that is too thin to read."""
    x, y, z = (labeled(units, name, "length") for name in "xyz")
    axes.set(xlabel=x, ylabel=y)
    if axes.name != "3d":
        axes.autoscale_view()
        axes.set_aspect("equal", adjustable="box")
        return
    limits = np.array([axes.get_xlim3d(), axes.get_ylim3d(), axes.get_zlim3d()])
    half = np.maximum(np.ptp(limits, axis=1), 0.4 * np.ptp(limits, axis=1).max()) / 2
    low, high = limits.mean(1) - half, limits.mean(1) + half
    axes.set(zlabel=z, **{f"{name}lim": pair for name, *pair in zip("xyz", low, high)})
    axes.set_aspect("equal", adjustable="box")
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.get_major_locator().set_params(nbins=4)


def coil(ends: np.ndarray, u: Any) -> np.ndarray:
    """The zigzag of a spring between two points."""
    n, along = 14, ends[1] - ends[0]
    length = float(np.linalg.norm(along)) or 1.0
    side = np.array([-along[1], along[0]]) if len(along) == 2 else across(along / length)[0] * length
    part = np.concatenate([[0.0], np.linspace(0.15, 0.85, n), [1.0]])
    swing = np.concatenate([[0.0, 0.0], np.resize([1.0, -1.0], n - 2), [0.0, 0.0]]) * 0.8 * u / length
    return ends[0] + part[:, None] * along + swing[:, None] * side


def across(axis: np.ndarray) -> np.ndarray:
    """Rows: two directions square to an axis, and the axis."""
    first = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(axis, first), axis])
