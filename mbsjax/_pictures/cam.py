"""Pictures of cams."""

from typing import Any

import jax
import numpy as np

from .._model.cam import Cam
from .._model.profile.followers import FlatFace, Oscillating
from .._model.profile.motion_laws import Program
from .._model.units import Units
from .quantities import moved, shown
from .style import BLUE, GREEN, INK, ORANGE, RED, SOFT, canvas, fit, legend, style
from .symbols import frame, line, pin, pivot


def svaj(of: Any, *, speed: Any = None, units: Any = None, axes: Any = None) -> Any:
    """Lift, velocity, acceleration and jerk of a follower over the cam angle.

    **Arguments:**

    - `of`: a [`mbsjax.Cam`][] or a [`mbsjax.Program`][].
    - `speed`: of the cam, in radians per unit of time; without, derivatives are per radian.
    - `units`: of the numbers, an [`mbsjax.Units`][] or its words, for labels: `{"length": "mm"}`.
    - `axes`: four.

    **Returns:** the axes, an array of them.

    !!! Example

        >>> import jax.numpy as jnp, mbsjax as mbs
        >>> from mbsjax import plots
        >>> lift = mbs.Program([mbs.Rise("cycloidal", jnp.pi, 2.0), mbs.Fall("cycloidal", jnp.pi, 2.0)])
        >>> axes = plots.svaj(lift, units={"length": "mm"})
        >>> round(float(axes[0].lines[0].get_ydata().max()), 9), axes[2].get_ylabel()
        (2.0, 'acceleration $a$ [mm/rad²]')
    """
    if not isinstance(of, Cam | Program):
        raise ValueError(f"`svaj` shows a Cam or a Program, got {of!r}")
    program = of.program if isinstance(of, Cam) else of
    theta, starts = _angles(program), np.rad2deg(np.asarray(program.starts))
    units = Units.of(units)
    lift = moved(not (isinstance(of, Cam) and isinstance(of.follower, Oscillating))).kind
    told = [""] * 4 if units is None else _per(units, lift, "rad" if speed is None else units.time)
    with style():
        drawn = canvas(axes, count=4, size=(5.2, 5.6))
        found = program.svaj(theta, 1.0 if speed is None else speed)
        for axis, name, y, unit, color in zip(drawn, found._fields, found, told, (BLUE, GREEN, RED, ORANGE)):
            axis.plot(np.rad2deg(theta), shown(units, lift) * np.asarray(y), color=color, zorder=3)
            axis.axhline(0.0, color=INK, lw=0.6, zorder=1)
            for start in starts[1:]:
                axis.axvline(start, color=SOFT, lw=0.6, ls=":", zorder=1)
            axis.set_ylabel(f"{name} ${name[0] if name != 'lift' else 's'}$" + unit)
        _degrees(drawn[-1])
        drawn[0].figure.align_ylabels(list(drawn))
    return drawn


def pressure_angle(cam: Any, *, limit: Any = None, axes: Any = None) -> Any:
    """The pressure angle of a cam over its angle, with its largest value and its limit.

    **Arguments:**

    - `cam`: a [`mbsjax.Cam`][].
    - `limit`: in radians; 30 degrees for translating followers and 45 for oscillating ones unless given.
    - `axes`: of matplotlib.

    !!! Example

        >>> import jax.numpy as jnp, mbsjax as mbs
        >>> from mbsjax import plots
        >>> lift = mbs.Program([mbs.Rise("cycloidal", jnp.pi, 2.0), mbs.Fall("cycloidal", jnp.pi, 2.0)])
        >>> axes = plots.pressure_angle(mbs.Cam(lift, mbs.Translating(mbs.Roller(1.0)), 4.0))
        >>> axes.get_ylabel()
        'pressure angle [deg]'
    """
    _needs_cam(cam)
    limit = (np.pi / 4 if isinstance(cam.follower, Oscillating) else np.pi / 6) if limit is None else float(limit)
    theta, largest = _angles(cam.program), cam.extremes().pressure_angle
    here = float(cam(largest.at).pressure_angle)
    with style():
        axes = canvas(axes, size=(5.2, 2.6))[0]
        axes.plot(np.rad2deg(theta), np.rad2deg(np.asarray(cam(theta).pressure_angle)), color=BLUE, zorder=3)
        for side in (-1, 1):
            axes.axhline(side * np.rad2deg(limit), color=RED, lw=0.8, ls="--", zorder=2)
        axes.annotate(
            "limit", (360, np.rad2deg(limit)), (-3, -3), textcoords="offset points", fontsize=7, color=RED, ha="right",
            va="top",
        )  # fmt: skip
        axes.axhline(0.0, color=INK, lw=0.6, zorder=1)
        at = np.rad2deg(float(largest.at)), np.rad2deg(here)
        axes.plot(*at, "o", color=BLUE, ms=4, zorder=4)
        axes.annotate(f"{at[1]:.1f}° at {at[0]:.1f}°", at, (6, 3), textcoords="offset points", fontsize=7.5)
        axes.set_ylabel("pressure angle [deg]")
        _degrees(axes)
    return axes


def cam(cam: Any, at: Any = 0.0, *, units: Any = None, axes: Any = None) -> Any:
    """A cam: its profile, the pitch curve, the base circle, and the follower.

    **Arguments:**

    - `cam`: a [`mbsjax.Cam`][]. An undercut one is shown with its loops.
    - `at`: the cam angle, in radians, at which it is shown: the cam turned, the follower in its place.
    - `units`: of the numbers, as in [`mbsjax.plots.svaj`][].
    - `axes`: of matplotlib.

    !!! Example

        >>> import jax.numpy as jnp, mbsjax as mbs
        >>> from mbsjax import plots
        >>> lift = mbs.Program([mbs.Rise("cycloidal", jnp.pi, 2.0), mbs.Fall("cycloidal", jnp.pi, 2.0)])
        >>> axes = plots.cam(mbs.Cam(lift, mbs.Translating(mbs.Roller(1.0)), 4.0))
        >>> [line.get_label() for line in axes.lines if not line.get_label().startswith("_")]
        ['profile', 'pitch curve', 'base circle', 'contact']
    """
    _needs_cam(cam)
    theta, at = _angles(cam.program), float(at)
    follower = cam.follower
    y = follower.home(cam.base_radius) + cam.program(theta)
    tip = _turned(np.asarray(jax.vmap(lambda y: follower.tip_frame(y)[0])(y)), at - theta)
    rim = _turned(np.asarray(cam(theta).contact), at - theta)
    circle = np.linspace(0, 2 * np.pi, 181)
    with style():
        axes = canvas(axes)[0]
        axes.fill(*rim.T, color=BLUE, alpha=0.15, lw=0, zorder=2)
        axes.plot(*rim.T, color=BLUE, lw=1.4, zorder=4, label="profile")
        if follower.tip.rounding() is not None and float(follower.tip.rounding()) > 0:
            axes.plot(*tip.T, "-.", color=GREEN, lw=0.9, zorder=3, label="pitch curve")
        base = float(cam.base_radius)
        axes.plot(base * np.cos(circle), base * np.sin(circle), ":", color=INK, lw=0.9, zorder=3, label="base circle")
        axes.plot(0, 0, "+", color=INK, ms=7, mew=0.9, zorder=5)
        contact = np.asarray(cam(at).contact)
        axes.plot(*contact, "o", color=RED, ms=4, zorder=6, label="contact")
        _follower(axes, cam, at, float(np.abs(rim).max()))
        frame(axes, Units.of(units))
        legend(axes)
        fit(axes)
    return axes


def _needs_cam(cam: Any) -> None:
    if not isinstance(cam, Cam):
        raise ValueError(f"this picture shows a Cam, got {cam!r}")


def _angles(program: Program) -> np.ndarray:
    """Cam angles over a turn, close enough to draw: each segment up to its very end, where the next one holds."""
    starts = np.asarray(program.starts)
    ends = np.append(starts[1:], 2 * np.pi)
    return np.concatenate([np.linspace(a, b * (1 - 1e-13), 121) for a, b in zip(starts, ends)])


def _per(units: Units, lift: str, per: str) -> list[str]:
    """The units of a lift and of its three derivatives, as they stand behind their names."""
    unit = units.label(lift)
    return [f" [{unit}]", *(f" [{unit}/{per}{power}]" for power in ("", "²", "³"))]


def _degrees(axes: Any) -> None:
    axes.set(xlabel="cam angle [deg]", xlim=(0, 360), xticks=range(0, 361, 45))


def _turned(points: np.ndarray, angle: Any) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    x, y = points.T
    return np.stack([c * x - s * y, s * x + c * y], 1)


def _follower(axes: Any, cam: Cam, at: float, size: float) -> None:
    """The tip and what carries it: a stem along the motion, or an arm with its pivot."""
    follower, frame = cam.follower, cam.frame(at)
    home = np.array([float(frame.x), float(frame.y)])
    tip, _ = follower.tip_frame(follower.home(cam.base_radius) + cam.program(at))
    tip = np.asarray(tip)
    outline = _turned(cam.follower_profile().points(4), float(frame.angle)) + home
    if isinstance(follower, Oscillating):
        pivot(axes, home, 0.05 * size)
        pin(axes, home, 0.08 * size)
        stem = np.stack([home, tip])
    else:
        stem = np.stack([tip, tip + np.array([0.0, 0.9 * size])])
    line(axes, stem, INK, 1.6, 0.7, 4.5)
    axes.fill(*outline.T, fc="white", ec="none", zorder=4.6) if not isinstance(follower.tip, FlatFace) else None
    closed = outline if isinstance(follower.tip, FlatFace) else np.concatenate([outline, outline[:1]])
    line(axes, closed, INK, 1.2, 1.0, 4.8)
