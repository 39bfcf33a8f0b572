"""Pictures of the forces of a prescribed motion."""

from typing import Any

import numpy as np

from .._dynamics.inverse_dynamics import Efforts
from .._programs.batch import single
from .style import COLORS, canvas, legend, plain, style


def efforts(what: Any, *, joints: Any = None, axes: Any = None) -> Any:
    """What drivers push with along a motion, and below it how large the reactions of joints are.

    **Arguments:**

    - `what`: an [`mbsjax.Efforts`][].
    - `joints`: names of the joints to show; all by default.
    - `axes`: two.

    **Returns:** the axes, an array of them.

    !!! Example

        >>> import jax.numpy as jnp, mbsjax as mbs
        >>> from mbsjax import plots
        >>> arm = mbs.Mechanism([mbs.Body("arm", mass=2.0, center=(0.5, 0.0))], [mbs.Revolute("O", "ground", "arm")],
        ...                     gravity=(0.0, -10.0))
        >>> found = mbs.inverse_dynamics(arm, {"O": mbs.constant_speed(1.0)}, jnp.linspace(0.0, 1.0, 11))
        >>> above, below = plots.efforts(found)
        >>> above.lines[0].get_label(), above.lines[0].get_ydata()[0].item(), below.get_ylabel()
        ('O', 10.0, 'reactions')
    """
    if not isinstance(what, Efforts):
        raise ValueError(f"this picture shows Efforts, of `inverse_dynamics`, got {type(what).__name__}")
    single(what, "a picture can be made")
    names = [joint.name for joint in what.mech.joints] if joints is None else list(joints)
    t = np.asarray(what.ts)
    rows = [{name: what.effort(name) for name in what.names}]
    rows.append({name: what.reaction(name).columns(name)[f"{name}.reaction"] for name in names})
    with style():
        drawn = canvas(axes, count=2, size=(6.0, 4.6))
        for axis, lines, label in zip(drawn, rows, ("efforts of drivers", "reactions")):
            for i, (name, y) in enumerate(lines.items()):
                axis.plot(t, np.asarray(y), color=COLORS[i % len(COLORS)], zorder=3, label=plain(name))
            axis.set(ylabel=label, xlim=(t[0], t[-1]))
            legend(axis)
        drawn[-1].set_xlabel("time")
        drawn[0].figure.align_ylabels(list(drawn))
    return drawn
