"""How much each play does to each measure."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..._kinematics.displaced import loose_joints, moved, where_it_lies
from ..._kinematics.motion import Motion
from ..._pictures.table import Table
from ..._programs.trees import once
from .anywhere import anywhere
from .directions import chosen, discs, lengths, owners
from .loaded import pressed
from .readings import Readings


class PlayParts(NamedTuple):
    """How much each play does to each measure, to first order: by name of the measure, then of the joint. Of a measure
    along the stroke, for each of its values.

    - `worst`: how far the play moves it to either side at worst. The sum over all joints is the worst case.
    - `random`: its standard deviation, if the pin lies anywhere in the play, the same along the stroke. The root of the
        sum of squares over all joints is that of all.
    - `loaded`: how far it moves when the pin is pressed from the middle to where forces and gravity press it; NaN for
        mechanisms with contacts.

    `print` shows a table; of a measure along the stroke the largest.
    """

    worst: dict[str, dict[str, np.ndarray]]
    random: dict[str, dict[str, np.ndarray]]
    loaded: dict[str, dict[str, np.ndarray]]

    @property
    def table(self) -> Table:
        largest = lambda x: float(np.ravel(x)[np.argmax(np.abs(np.nan_to_num(np.ravel(x))))])
        rows = [
            (measure, joint, *(largest(part[measure][joint]) for part in self))
            for measure, joints in self.worst.items()
            for joint in joints
        ]
        return Table("What plays do", ("measure", "joint", "worst", "random, sigma", "loaded"), rows)

    def __repr__(self) -> str:
        return str(self.table)


def play_parts(motion: Motion, measures: Mapping[str, Callable]) -> PlayParts:
    """How much each play does to each measure, whatever its rule: the contributions of plays.

    **Arguments:**

    - `motion`: a driven motion of joints with play.
    - `measures`: by name, functions of a motion to a number, or to a row of numbers along the stroke.

    **Returns:** [`mbsjax.PlayParts`][].

    !!! Example

        >>> import mbsjax as mbs
        >>> arm = mbs.Mechanism([mbs.Body("crank"), mbs.Body("arm")],
        ...                     [mbs.Revolute("A", "ground", "crank", play=0.1),
        ...                      mbs.Revolute("B", "crank", "arm", (2.0, 0.0), play=0.2)],
        ...                     forces=[mbs.Load("arm", force=(3.0, 4.0))])
        >>> motion = mbs.kinematics(arm, {"A": 0.0, "B": 0.0}, jnp.zeros(1))
        >>> mbs.play_parts(motion, {"x": lambda m: m.point("arm").q[0, 0]})
        What plays do
        -------------
        measure  joint  worst  random, sigma  loaded
        x            A    0.1           0.05    0.06
        x            B    0.2            0.1    0.12
    """
    mech, reading = motion.mech, Readings(measures)
    mask = chosen(mech, None)
    if not any(mask):
        raise ValueError("no joint of this mechanism has play")
    sizes = reading.sizes(motion)
    G, lies = (np.asarray(x) for x in _slopes(motion, reading, mask))
    found = [{name: {} for name in reading.names} for _ in range(3)]
    places, long = discs(mech), np.asarray(lengths(jnp.asarray(G), mech)).sum(1)
    for joint in loose_joints(mech):
        own = [k for k, owner in enumerate(owners(mech)) if owner == joint.name]
        columns = np.concatenate([np.arange(places[k].start, places[k].stop) for k in own])
        worst = long[:, own].sum(1)
        drawn = float(anywhere(joint).std) * np.sqrt((G[..., columns].sum(1) ** 2).sum(-1))
        loaded = np.einsum("vtn,tn->v", G[..., columns], lies[:, columns])
        for into, x in zip(found, (worst, drawn, loaded)):
            for name, values in reading.split(x, sizes).items():
                into[name][joint.name] = values
    return PlayParts(*found)


@once
def _slopes(motion: Motion, reading: Readings, mask: tuple[bool, ...]) -> tuple[Array, Array]:
    """The derivatives of all values in where pins lie at each time, and where they are pressed to."""
    start = where_it_lies(motion)
    G = jax.jacrev(lambda lies: reading(moved(motion, lies)))(start)
    if motion.mech.contacts:
        return G, jnp.full_like(start, jnp.nan)
    return G, pressed(motion, start, mask) - start
