"""What a `.DYN` file of ACDMC holds (thesis 4.2, appendix D)."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from ..._dynamics.state import State, state as make_state
from ..._kinematics.drive import Uniform, constant_speed
from ..._model.joint.base import AbstractPair
from ..._model.joint.joint import Joint
from ..._model.joint.planar import PlanarPair
from ..._model.joint.prismatic import PrismaticPair
from ..._model.joint.revolute import RevolutePair
from ..._model.joint.screw import CylindricalPair
from ..._model.joint.universal import UniversalPair
from ..._model.mechanism import Mechanism
from ..._programs.names import unknown
from ..._programs.precision import as_float
from ..._programs.reprs import brief


PAIRS: dict[str, type[AbstractPair]] = {
    "revolute": RevolutePair,
    "prismatic": PrismaticPair,
    "cylindrical": CylindricalPair,
    "universal": UniversalPair,
    "planar": PlanarPair,
}


class DynWarning(UserWarning):
    """Something irregular in a `.DYN` file: the line, and what was assumed; or something that a file leaves out."""


class Dyn(eqx.Module):
    """What a `.DYN` file of ACDMC, the program of D. Wang's thesis, tells: a mechanism and where its motion begins.
    Made by [`mbsjax.read_dyn`][], written by [`mbsjax.write_dyn`][].

    **Arguments:**

    - `mech`: the mechanism.
    - `positions`, `velocities`: of coordinates, by name, at the start; by default the joints' estimates, and rest.
    - `independent`: the coordinates that ACDMC integrates (`ARMOTOR`), by name.
    - `places`: q1, q2 and q3 of contacts at the start, by name: ACDMC's estimates. They are not needed here.
    - `time`, `step`: how long ACDMC simulates, and in which steps.
    - `name`, `stage`: of the mechanism, and how far ACDMC had come with it.
    - `ground`: the name of the fixed link, which is `"ground"` in `mech`.
    - `surfaces`: (joint, name on the preceding link, name on the following link) of joint frames.
    - `notes`: the irregularities of the file.

    What ACDMC does by command is done by these:

    | command | here |
    |---|---|
    | CREATE, INPUT | `write_dyn(dyn)`, `read_dyn(path)` |
    | TOPO | `dyn.mech.topology`, `print(dyn.mech)` |
    | INITI | `dyn.state()`, `assemble(dyn.mech)` |
    | DRIVE | `dyn.independent`; `partition(dyn.mech, q)` finds others |
    | DYNA | `simulate(dyn.mech, dyn.state(), dyn.time)`; at constant speed, `kinematics(dyn.mech, dyn.drive, ts)` |
    | ANIMA | a picture or an animation of either |

    !!! Example

        >>> import mbsjax as mbs
        >>> pendulum = mbs.Mechanism([mbs.Body("bob", mass=2.0)], [mbs.Revolute("O", "ground", "bob")])
        >>> dyn = mbs.Dyn(pendulum, velocities={"O": 0.5}, independent=["O"])
        >>> dyn.drive["O"].speed.item(), dyn.state().v.tolist()
        (0.5, [0.5])
    """

    mech: Mechanism
    positions: dict[str, Float[Array, ""]]
    velocities: dict[str, Float[Array, ""]]
    places: dict[str, Float[Array, "3"]]
    time: Float[Array, ""]
    step: Float[Array, ""]
    independent: tuple[str, ...] = eqx.field(static=True)
    name: str = eqx.field(static=True)
    stage: str = eqx.field(static=True)
    ground: str = eqx.field(static=True)
    surfaces: tuple[tuple[str, str, str], ...] = eqx.field(static=True)
    notes: tuple[str, ...] = eqx.field(static=True)

    def __init__(
        self,
        mech: Mechanism,
        *,
        positions: Mapping[str, Any] | None = None,
        velocities: Mapping[str, Any] | None = None,
        independent: Any = (),
        places: Mapping[str, Any] | None = None,
        time: Any = 1.0,
        step: Any = 0.01,
        name: str = "mechanism",
        stage: str = "INPUT",
        ground: str = "ground",
        surfaces: Any = (),
        notes: Any = (),
    ):
        self.mech, self.independent = mech, tuple(independent)
        flat = [j for j in mech.joints if None not in j.pair.slots]
        start = {c: x for joint in flat for c, x in zip(coordinates_of(joint), joint.start)}
        q, v = {**start, **(positions or {})}, {**dict.fromkeys(start, 0.0), **(velocities or {})}
        for coordinate in (*q, *v, *self.independent):
            if coordinate not in start:
                what = unknown("coordinate", coordinate, list(start))
                raise ValueError(f"the positions, velocities or independent coordinates of a Dyn name {what}")
        self.positions = {c: as_float(x, f"the position of {c!r}") for c, x in q.items()}
        self.velocities = {c: as_float(x, f"the velocity of {c!r}") for c, x in v.items()}
        self.places = {mech.contact(c).name: as_float(x, f"the place of {c!r}") for c, x in (places or {}).items()}
        self.time, self.step = as_float(time, "the time of a simulation"), as_float(step, "the step of a simulation")
        self.name, self.stage, self.ground = name, stage, ground
        self.surfaces, self.notes = tuple(tuple(x) for x in surfaces), tuple(notes)

    @property
    def drive(self) -> dict[str, Uniform]:
        """Drivers for [`mbsjax.kinematics`][]: the independent coordinates, each at its initial velocity."""
        return {c: constant_speed(self.velocities[c], self.positions[c]) for c in self.independent}

    def state(self) -> State:
        """Where a simulation begins: the independent coordinates as given, the others as the loops make them."""
        first = [{c: x[c] for c in self.independent} for x in (self.positions, self.velocities)]
        return make_state(self.mech, *first)

    def __repr__(self) -> str:
        told = {"positions": self.positions, "velocities": self.velocities, "independent": self.independent}
        return brief(self, self.name, **told, time=self.time, step=self.step)


def coordinates_of(joint: Joint) -> tuple[str, ...]:
    """The names of a joint's coordinates in its mechanism."""
    names = joint.pair.coordinates
    return (joint.name,) if len(names) == 1 else tuple(f"{joint.name}.{c}" for c in names)
