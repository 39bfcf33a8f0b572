"""Pictures of what is told of a motion by name: curves, contacts, switching functions, bands."""

from typing import Any, NamedTuple

import jax
import numpy as np

from .._dynamics.solution import ContactForce, Solution
from .._events.kinds import EVENTS
from .._events.log import Event
from .._kinematics.motion import Motion
from .._model.mechanism import Mechanism
from .._model.units import Units
from .mechanism import needs_motion
from .quantities import labeled, shown
from .series import Series, at_events, read, read_one
from .style import BLUE, COLORS, GREEN, INK, KINDS, ORANGE, PURPLE, RED, canvas, legend, mark_events, plain, style


def curves(
    motion: Any,
    names: Any,
    *,
    rates: Any = (0,),
    against: str | None = None,
    events: bool = True,
    axes: Any = None,
) -> Any:
    """Coordinates, gauges and contacts along a motion, with its events.

    **Arguments:**

    - `motion`: a [`mbsjax.Motion`][] or [`mbsjax.Solution`][].
    - `names`: one or several: of coordinates (`"D"`, `"sleeve.travel"`, or a joint with all of its coordinates), of
        gauges, or of contacts: `"C.gap"` (or `"C"`), `"C.q1"`, `"C.q2"`, and of a solution `"C.force"`, `"C.static"`,
        `"C.dynamic"`, `"C.friction"`, `"C.sliding"`.
    - `rates`: what to draw of them: 0 the value, 1 its rate, 2 the second rate; axes for each, one below the other.
    - `against`: a name as in `names`, instead of the time.
    - `events`: whether to mark the events: by lines, or against another coordinate by marks on the curves.
    - `axes`: as many as there are `rates`.

    **Returns:** the axes; an array of them with several rates. Where the mechanism has units, they are told: of one
    quantity on the axis, of several in the legend. Angles are in degrees where its units say so.

    !!! Example

        >>> import jax.numpy as jnp, mbsjax as mbs
        >>> from mbsjax import plots
        >>> arm = mbs.Mechanism([mbs.Body("arm")], [mbs.Revolute("O", "ground", "arm")])
        >>> motion = mbs.kinematics(arm, {"O": mbs.constant_speed(2.0)}, jnp.linspace(0.0, 1.0, 11))
        >>> value, rate = plots.curves(motion, "O", rates=(0, 1))
        >>> value.lines[0].get_ydata()[-1].item(), rate.lines[0].get_ydata()[-1].item(), rate.get_ylabel()
        (2.0, 2.0, 'angular velocity of O')
    """
    needs_motion(motion)
    names = [names] if isinstance(names, str) else list(names)
    if not names or not len(rates) or any(rate not in (0, 1, 2) for rate in rates):
        raise ValueError(f"`curves` needs names, and rates out of 0, 1 and 2, got {names} and {tuple(rates)}")
    found = [[series for name in names for series in read(motion, name, rate)] for rate in rates]
    units, t = motion.mech.units, np.asarray(motion.ts)
    over = None if against is None else read_one(motion, against)
    happened = _happened(motion) if events else []
    with style():
        drawn = canvas(axes, count=len(rates), size=(6.0, 1.0 + 1.8 * len(rates)))
        for axis, rate, series in zip(drawn, rates, found):
            what, labels = _labels(units, series, rate)
            for i, (one, label) in enumerate(zip(series, labels)):
                axis.plot(t if over is None else over.y, one.y, color=COLORS[i % len(COLORS)], zorder=3, label=label)
                if over is not None:
                    _mark(axis, (at_events(motion, over, 0), at_events(motion, one, rate)), happened)
            if over is None:
                mark_events(axis, happened)
                axis.set_xlim(t[0], t[-1])
            axis.set_ylabel(what)
        if len(found[0]) > 1 or happened:
            legend(drawn[0])
        drawn[-1].set_xlabel(labeled(units, "time", "time") if over is None else _labels(units, [over], 0)[0])
        drawn[0].figure.align_ylabels(list(drawn))
    return drawn[0] if len(rates) == 1 else drawn


def contacts(motion: Any, *, axes: Any = None) -> Any:
    """When which contact is active: a row for each, with a bar for each pair of elements, colored by what they are and
    numbered as in their profiles, and the events.

    **Arguments:**

    - `motion`: a [`mbsjax.Motion`][] or [`mbsjax.Solution`][] of a mechanism with contacts.
    - `axes`: of matplotlib.

    !!! Example

        >>> import jax.numpy as jnp, mbsjax as mbs
        >>> from mbsjax import plots
        >>> from mbsjax.demo import CAM, cam_follower
        >>> motion = mbs.kinematics(cam_follower(CAM), {"O": mbs.constant_speed(-0.5)}, jnp.linspace(0.0, 3.0, 31))
        >>> axes = plots.contacts(motion)
        >>> round(float(axes.patches[0].get_width()), 6)  # the first bar ends where the arc does
        2.060754
    """
    needs_motion(motion)
    mech: Mechanism = motion.mech
    if not mech.contacts:
        raise ValueError("the mechanism has no contacts")
    bars, names = _bars(motion), [c.name for c in mech.contacts]
    start, end = _span(motion)
    kinds = {bar.kinds: None for bar in bars}
    colors = {kind: COLORS[i % len(COLORS)] for i, kind in enumerate(kinds)}
    with style():
        axes = canvas(axes, size=(6.4, 0.9 + 0.36 * len(names)))[0]
        axes.hlines(range(len(names)), start, end, color="#cccccc", lw=0.8, zorder=2)
        for bar in bars:
            axes.barh(bar.contact, bar.end - bar.start, 0.56, bar.start, color=colors[bar.kinds], ec="white", lw=0.6,
                      zorder=3, label=" on ".join(bar.kinds))  # fmt: skip
            if bar.end - bar.start > 0.02 * (end - start):
                axes.text((bar.start + bar.end) / 2, bar.contact, f"{bar.elements[0]},{bar.elements[1]}",
                          ha="center", va="center", fontsize=6, color="white", zorder=4, clip_on=True)  # fmt: skip
        for event in _happened(motion):
            if event.contact in names:
                color, _, marker = KINDS[event.kind]
                axes.plot(event.t, names.index(event.contact) - 0.36, marker, color=color, ms=4.5, mew=0.9, zorder=5,
                          ls="none", label=event.kind)  # fmt: skip
        axes.set_yticks(range(len(names)), [plain(name) for name in names])
        axes.set(xlabel=labeled(mech.units, "time", "time"), xlim=(start, end), ylim=(len(names) - 0.4, -0.8))
        axes.grid(False, axis="y")
        legend(axes)
    return axes


def switching(motion: Any, contact: str, *, axes: Any = None) -> Any:
    """The switching functions of a contact (thesis 2.5, 3.6, figures 3.7-2 and 3.7-3): its gap q3, whose zeros are
    impacts and closings; its force with the static and the dynamic part, whose zeros release it, and its friction; and
    its places q1, q2 on the two profiles, which pass an integer at every transition. The events are marked where their
    function is zero.

    **Arguments:**

    - `motion`: a [`mbsjax.Solution`][], or a [`mbsjax.Motion`][], which has no forces.
    - `contact`: its name.
    - `axes`: three; two of a motion.

    **Returns:** the axes, an array of them.

    !!! Example

        >>> import jax.numpy as jnp, mbsjax as mbs
        >>> from mbsjax import plots
        >>> from mbsjax.demo import CAM, cam_follower
        >>> motion = mbs.kinematics(cam_follower(CAM), {"O": mbs.constant_speed(-0.5)}, jnp.linspace(0.0, 3.0, 31))
        >>> [axes.get_ylabel() for axes in plots.switching(motion, "C23")]
        ['gap $q_3$', 'places $q_1$, $q_2$']
    """
    needs_motion(motion)
    motion.mech.contact(contact)  # complains
    track: Any = motion[contact]
    units, t, on = motion.mech.units, np.asarray(motion.ts), np.asarray(track.active)
    events = [event for event in _happened(motion) if event.contact == contact]
    pressed = isinstance(track, ContactForce)
    with style():
        drawn = canvas(axes, count=3 if pressed else 2, size=(6.4, 5.0 if pressed else 3.6))
        gap, places = drawn[0], drawn[-1]
        gap.plot(t, np.where(np.isfinite(track.gap), track.gap, np.nan), color=BLUE, zorder=3, label="gap")
        zero = {"impact", "closed", "released", "deleted"}
        _zeros(gap, [e for e in events if e.kind in zero])
        gap.set_ylabel(labeled(units, "gap $q_3$", "length"))
        if pressed:
            factor = shown(units, "force")
            active = lambda y: np.where(on, factor * y, np.nan)
            drawn[1].plot(t, factor * np.asarray(track.force), color=RED, zorder=3.2, label="contact force")
            drawn[1].plot(t, active(track.static), "--", color=GREEN, lw=0.9, zorder=3, label="static part")
            drawn[1].plot(t, active(track.dynamic), "-.", color=ORANGE, lw=0.9, zorder=3, label="dynamic part")
            if motion.mech.contact(contact).friction is not None:
                drawn[1].plot(t, active(track.friction), color=PURPLE, lw=0.9, zorder=3, label="friction")
            _zeros(drawn[1], [e for e in events if e.kind == "released"])
            drawn[1].set_ylabel(labeled(units, "force $F_n$", "force"))
        for k, color in ((0, BLUE), (1, ORANGE)):
            q = np.asarray(track.q)[:, k]
            jumps = np.abs(np.diff(q, prepend=q[:1])) > 0.5  # round a closed profile, or over to other elements
            places.plot(t, np.where(jumps, np.nan, q), color=color, zorder=3, label=f"$q_{k + 1}$")
        places.set_ylabel("places $q_1$, $q_2$")
        places.yaxis.get_major_locator().set_params(integer=True)
        for axis in drawn:
            mark_events(axis, events)
            if axis is not places:
                axis.axhline(0.0, color=INK, lw=0.6, zorder=1)
            axis.set_xlim(t[0], t[-1])
            legend(axis)
        for axis in drawn[1:]:  # the kinds of events are told once
            _without_events(axis)
        places.set_xlabel(labeled(units, "time", "time"))
        places.figure.align_ylabels(list(drawn))
    return drawn


def bands(
    motions: Any,
    name: str,
    *,
    nominal: Any = None,
    rate: Any = 0,
    quantiles: Any = (0.05, 0.25),
    axes: Any = None,
) -> Any:
    """How a quantity scatters over many motions, as of manufactured variants: the nominal curve (or the median) in the
    band from the least to the largest value, and in bands between quantiles.

    **Arguments:**

    - `motions`: a [`mbsjax.Motion`][] or [`mbsjax.Solution`][] made by `vmap`, or a sequence of them, with the same
        times.
    - `name`: as in [`mbsjax.plots.curves`][].
    - `nominal`: the nominal motion.
    - `rate`: 0 for the value, 1 for its rate, 2 for the second rate.
    - `quantiles`: each q gives the band from q to 1 - q.
    - `axes`: of matplotlib.

    For the measures of a tolerance study there is `report.bands`.

    !!! Example

        >>> import jax, jax.numpy as jnp, mbsjax as mbs
        >>> from mbsjax import plots
        >>> arm = mbs.Mechanism([mbs.Body("arm")], [mbs.Revolute("O", "ground", "arm")])
        >>> turn = lambda w: mbs.kinematics(arm, {"O": mbs.constant_speed(w)}, jnp.linspace(0, 1, 5), throw=False)
        >>> axes = plots.bands(jax.vmap(turn)(jnp.linspace(0.9, 1.1, 21)), "O", nominal=turn(jnp.asarray(1.0)))
        >>> axes.get_legend_handles_labels()[1]
        ['least to largest', '5 to 95 %', '25 to 75 %', 'nominal']
    """
    many = not isinstance(motions, Motion | Solution)
    if many and not len(motions):
        raise ValueError("`bands` needs at least one motion")
    if any(not 0 < q < 0.5 for q in quantiles):
        raise ValueError(f"`quantiles` must lie between 0 and 0.5, got {tuple(quantiles)}")
    if many:
        rows = list(motions)
    elif motions.q.ndim != 3:
        raise ValueError("`motions` must be many: made by `vmap`, or a sequence")
    else:
        rows = [jax.tree_util.tree_map(lambda x, i=i: x[i], motions) for i in range(len(motions.q))]
    every, units, t = [read_one(m, name, rate) for m in rows], rows[0].mech.units, np.asarray(rows[0].ts)
    y = np.stack([series.y for series in every])
    with style():
        axes = canvas(axes, size=(5.4, 2.8))[0]
        axes.fill_between(t, np.nanmin(y, 0), np.nanmax(y, 0), color=BLUE, alpha=0.12, lw=0, label="least to largest")
        for i, q in enumerate(sorted(quantiles)):
            low, high = np.nanquantile(y, [q, 1 - q], axis=0)
            text = f"{100 * q:g} to {100 - 100 * q:g} %"
            axes.fill_between(t, low, high, color=BLUE, alpha=min(0.2 + 0.15 * i, 0.8), lw=0, label=text)
        middle = np.nanmedian(y, 0) if nominal is None else read_one(nominal, name, rate).y
        axes.plot(t, middle, color=INK, lw=1.1, label="median" if nominal is None else "nominal")
        what, _ = _labels(units, every[:1], rate)
        axes.set(xlabel=labeled(units, "time", "time"), ylabel=what, xlim=(t[0], t[-1]))
        legend(axes)
    return axes


def _labels(units: Units | None, series: list[Series], rate: Any) -> tuple[str, list[str]]:
    """What stands at an axis, and what in its legend: units where they hold for all, else beside each name."""
    names, kinds = [plain(one.name) for one in series], [one.quantity.kind for one in series]
    if len({one.quantity for one in series}) == 1:
        words = series[0].quantity.words
        if len(series) == 1:
            words = f"{words} of {names[0]}" if rate else names[0]
        return labeled(units, words, kinds[0]), names
    moves = rate > 0 or set(kinds) <= {"angle", "length"}
    what = ("position", "velocity", "acceleration")[rate] if moves else "value"
    return what, [labeled(units, name, kind) for name, kind in zip(names, kinds)]


def _happened(motion: Any) -> list[Event]:
    if isinstance(motion, Solution):
        return motion.events.list(motion.mech, motion.triggers)
    return [] if motion.events is None else motion.events.list(motion.mech)


def _mark(axes: Any, at: tuple[np.ndarray, np.ndarray], events: list[Event]) -> None:
    """Marks of the events on a curve."""
    for event, x, y in zip(events, *at):
        color, _, marker = KINDS[event.kind]
        axes.plot(x, y, marker, color=color, ms=4.5, mew=0.9, ls="none", zorder=4, label=event.kind)


def _zeros(axes: Any, events: list[Event]) -> None:
    """Where a switching function is zero."""
    for event in events:
        color, _, marker = KINDS[event.kind]
        axes.plot(event.t, 0.0, marker, color=color, ms=4, zorder=4, ls="none")


def _without_events(axes: Any) -> None:
    for artist in axes.lines:
        if artist.get_label() in KINDS:
            artist.set_label("_" + artist.get_label())
    legend(axes)


class Bar(NamedTuple):
    """A contact, by its number, active from `start` to `end` between the same elements."""

    contact: int
    start: float
    end: float
    elements: tuple[int, int]
    kinds: tuple[str, str]


def _span(motion: Any) -> tuple[float, float]:
    t = np.asarray(motion.ts)
    return float(t[0]), float(min(t[-1], float(motion.stopped_at)))


def _bars(motion: Any) -> list[Bar]:
    """The stretches in which contacts are active, from the state at the first output and the events after it."""
    mech: Mechanism = motion.mech
    start, end = _span(motion)
    now = motion.mode
    on = np.asarray(jax.vmap(lambda mode: mode.active)(now))[0].copy()
    pairs = np.stack([np.asarray(e)[0] for e in now.places[:2]], 1)
    since, found = np.full(len(on), start), []

    def close(k: int, t: float) -> None:
        if on[k] and t > since[k]:
            a, b = (kinds[int(e)] for kinds, e in zip(mech.element_kinds(mech.contacts[k]), pairs[k]))
            found.append(Bar(k, float(since[k]), t, (int(pairs[k][0]), int(pairs[k][1])), (a, b)))
        since[k] = t

    events = motion.events
    for i in range(int(events.count)):
        t, k = float(events.t[i]), int(events.contact[i])
        if not start < t <= end:
            continue
        after = _after(motion, i, on)
        for c in range(len(on)):
            if c == k or after[c] != on[c]:
                close(c, t)
        if k < len(on):
            pairs[k] = np.asarray(events.after[i])
        on = after
    for c in range(len(on)):
        close(c, end)
    return sorted(found)


def _after(motion: Any, i: int, on: np.ndarray) -> np.ndarray:
    """Which contacts are active after event number i."""
    events = motion.events
    if isinstance(motion, Solution):
        return np.asarray(events.active[i]).copy()
    kind, after = EVENTS[int(events.kind[i])], on.copy()
    if kind in ("closed", "transition", "shifted"):
        after[int(events.contact[i])] = True
    elif kind in ("released", "deleted"):
        after[int(events.contact[i])] = False
    if int(events.gave_way[i]) >= 0:
        after[int(events.gave_way[i])] = False
    return after
