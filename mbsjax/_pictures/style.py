"""How pictures look: colors that the color-blind tell apart (Okabe and Ito), thin lines, axes to draw in."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np


INK, SOFT = "#222222", "#8a8a8a"
BLUE, ORANGE, GREEN, PURPLE, SKY, RED = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"
COLORS = (BLUE, ORANGE, GREEN, PURPLE, SKY, SOFT)  # red is kept for contacts

# color, line and marker of each of mbsjax.EVENTS
KINDS = {
    "closed": (GREEN, "-", "o"),
    "transition": (SOFT, ":", "|"),
    "shifted": (SOFT, "-.", "D"),
    "released": (BLUE, "--", "^"),
    "deleted": (PURPLE, "--", "s"),
    "jammed": (INK, "-", "X"),
    "impact": (RED, "-", "v"),
    "switched": (SKY, "-.", "P"),
    "triggered": (ORANGE, "-.", "*"),
    "sticks": (INK, ":", "s"),
    "slips": (ORANGE, ":", ">"),
    "reverses": (ORANGE, "--", "d"),
}

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


def canvas(axes: Any, *, count: int = 1, space: bool = False, size: tuple[float, float] = (5.0, 3.2)) -> Any:
    """The axes given, or those of a new figure, one below the other: an array of them."""
    if axes is None:
        import matplotlib.pyplot as plt

        kind = {"projection": "3d"} if space else {}
        made = plt.subplots(
            count, 1, figsize=size, sharex=count > 1, squeeze=False, layout="constrained", subplot_kw=kind
        )
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
        axes.legend(once.values(), once, loc="upper left", bbox_to_anchor=(1.0, 1.02), borderaxespad=0.4)


def mark_events(axes: Any, events: Iterable[Any]) -> None:
    """A line across the axes at each event."""
    for event in events:
        color, line, _ = KINDS[event.kind]
        axes.axvline(event.t, color=color, ls=line, lw=0.7, zorder=1.2, label=event.kind)
