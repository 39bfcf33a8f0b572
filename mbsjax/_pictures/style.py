"""How pictures look: colors that the color-blind tell apart (Okabe and Ito), thin lines, axes to draw in. The page that
plays a motion has its colors from here."""

import contextlib
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np


INK, SOFT = "#222222", "#8a8a8a"
BLUE, ORANGE, GREEN, PURPLE, SKY, RED = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
COLORS = (BLUE, ORANGE, GREEN, PURPLE, SKY, SOFT)  # of bodies, in turn; red is kept for contacts

# color, line and marker of each of mbsjax.EVENTS
KINDS = {
    "closed": (GREEN, "-", "o"),
    "transition": (SOFT, ":", "|"),
    "shifted": ("#7A57C9", "-.", "D"),
    "released": (BLUE, "--", "^"),
    "deleted": (PURPLE, "--", "s"),
    "jammed": ("#8F0F1C", "-", "X"),
    "impact": (RED, "-", "v"),
    "switched": (SKY, "-.", "P"),
    "triggered": (ORANGE, "-.", "*"),
    "sticks": (INK, ":", "s"),
    "slips": ("#B37400", ":", ">"),
    "reverses": ("#8C5A3C", "--", "d"),
}
PAGE = {
    "bodies": COLORS,
    "events": {kind: color for kind, (color, *_) in KINDS.items()} | {"bifurcation": "#B1339B"},
    "force": RED,
    "ink": INK,
    "soft": SOFT,
}  # the colors of the page, where it is light

_STYLE = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8.5,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#555555",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.use_mathtext": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "grid.linestyle": "-",
    "lines.linewidth": 1.2,
    "patch.linewidth": 0.8,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "figure.dpi": 150,
}


@contextlib.contextmanager
def style() -> Iterator[None]:
    """For what is drawn inside; nothing stays changed."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError('a picture needs matplotlib: pip install "mbsjax[plots]"') from error
    with matplotlib.rc_context(_STYLE | {"axes.prop_cycle": matplotlib.cycler(color=COLORS)}):  # pyright: ignore
        yield


_MADE: weakref.WeakSet[Any] = weakref.WeakSet()  # figures of ours, whose size may follow what is drawn


def canvas(axes: Any, *, count: int = 1, space: bool = False, size: tuple[float, float] = (5.0, 5.0)) -> Any:
    """The axes given, or those of a new figure, one below the other: an array of them."""
    if axes is None:
        import matplotlib.pyplot as plt

        kind = {"projection": "3d"} if space else {}
        made = plt.subplots(
            count, 1, figsize=size, sharex=count > 1, squeeze=False, layout="constrained", subplot_kw=kind
        )
        _MADE.add(made[0])
        return made[1][:, 0]
    given = np.atleast_1d(np.asarray(axes, dtype=object)).reshape(-1)
    if len(given) != count:
        raise ValueError(f"this picture needs {count} axes, got {len(given)}")
    if space and given[0].name != "3d":
        raise ValueError('a spatial mechanism needs 3D axes: plt.subplots(subplot_kw={"projection": "3d"})')
    return given


def plain(name: str) -> str:
    """A name as it is, not as mathematics."""
    return name.replace("$", r"\$")


def legend(axes: Any) -> None:
    """What was drawn, each label once, on the right of the axes."""
    once = {label: handle for handle, label in zip(*axes.get_legend_handles_labels())}
    if once and axes.name == "3d":
        axes.legend(once.values(), once, loc="upper right")
    elif once:
        axes.legend(once.values(), once, loc="upper left", bbox_to_anchor=(1.02, 1.02), borderaxespad=0.4)


def fit(axes: Any, longest: float = 4.2) -> None:
    """Makes a figure of ours as large as what is drawn in it: axes with equal scales whose longer side, or in space
    both, is so long in inches, and what stands around them."""
    figure = axes.figure
    if figure not in _MADE:
        return
    figure.draw_without_rendering()
    around = figure.get_tightbbox().size - axes.get_window_extent().size / figure.dpi
    width, height = 1.0, 1.0
    if axes.name != "3d":
        width, height = np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())
    box = longest * np.array([width, height]) / max(width, height)
    figure.set_size_inches(*(box + around + 0.08))


def mark_events(axes: Any, events: Iterable[Any]) -> None:
    """A line across the axes at each event."""
    for event in events:
        color, line, _ = KINDS[event.kind]
        axes.axvline(event.t, color=color, ls=line, lw=0.7, zorder=1.2, label=event.kind)
