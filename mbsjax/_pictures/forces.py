"""Pictures of the forces of a prescribed motion."""

from typing import Any

import numpy as np

from .._dynamics.inverse_dynamics import Efforts
from .._programs.batch import single
from .quantities import is_length, labeled, pushed, shown
from .series import read_one
from .style import COLORS, canvas, legend, plain, style


def efforts(what: Any, *, joints: Any = None, against: str | None = None, axes: Any = None) -> Any:
    """What drivers push with along a motion, and below it how large the reactions of joints are.

    **Arguments:**

    - `what`: an [`mbsjax.Efforts`][].
    - `joints`: names of the joints to show; all by default.
    - `against`: a coordinate, such as the angle of a crank, instead of the time.
    - `axes`: two.

    **Returns:** the axes, an array of them.

    !!! Example

        >>> import jax.numpy as jnp, mbsjax as mbs
        >>> from mbsjax import plots
        >>> arm = mbs.Mechanism([mbs.Body("arm", mass=2.0, center=(0.5, 0.0))], [mbs.Revolute("O", "ground", "arm")],
        ...                     gravity=(0.0, -10.0))
        >>> found = mbs.inverse_dynamics(arm, {"O": mbs.constant_speed(1.0)}, jnp.linspace(0.0, 1.0, 11))
        >>> above, below = plots.efforts(found)
        >>> above.lines[0].get_label(), above.lines[0].get_ydata()[0].item(), above.get_ylabel(), below.get_ylabel()
        ('O', 10.0, 'driving torque', 'reactions')
    """
    if not isinstance(what, Efforts):
        raise ValueError(f"this picture shows Efforts, of `inverse_dynamics`, got {type(what).__name__}")
    single(what, "a picture can be made")
    names = [joint.name for joint in what.mech.joints] if joints is None else list(joints)
    over = None if against is None else read_one(what.motion, against)
    t = np.asarray(what.ts) if over is None else over.y
    units, kinds = what.mech.units, [pushed(bool(is_length(what.mech, name))) for name in what.names]
    same = len(set(kinds)) == 1
    says = [labeled(units, f"driving {kinds[0]}", kinds[0]) if same else "driving force or torque"]
    says.append(labeled(units, "reactions", "force"))
    pairs = list(zip(what.names, kinds))
    rows = [{name if same else labeled(units, name, k): shown(units, k) * what.effort(name) for name, k in pairs}]
    size = lambda name: what.reaction(name).columns(name)[f"{name}.reaction"]
    rows.append({name: shown(units, "force") * size(name) for name in names})
    with style():
        drawn = canvas(axes, count=2, size=(6.0, 4.6))
        for axis, lines, label in zip(drawn, rows, says):
            for i, (name, y) in enumerate(lines.items()):
                axis.plot(t, np.asarray(y), color=COLORS[i % len(COLORS)], zorder=3, label=plain(name))
            axis.set(ylabel=label, xlim=(t[0], t[-1]) if over is None else None)
            legend(axis)
        axis_label = ("time", "time") if over is None else (plain(over.name), over.quantity.kind)
        drawn[-1].set_xlabel(labeled(units, *axis_label))
        drawn[0].figure.align_ylabels(list(drawn))
    return drawn
