"""Inverse dynamics: the forces that go with a prescribed motion."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._events.places import Places
from .._events.results import RESULTS
from .._kinematics.motion import Motion, kinematics
from .._kinematics.table import AbstractTable
from .._model.mechanism import Mechanism
from .._programs.batch import lane_by_lane
from .._programs.custom_types import Laws, Numbers
from .._programs.reprs import brief, has_numbers
from .._programs.trees import once
from .applied import ForceTrack, driver_names, effort_of, force_of, gauge_efforts, sided
from .build import plant as make_plant
from .mode import Mode
from .plant import Plant
from .reaction import Reaction, reaction
from .rubbing import Rubbing, friction_of, rubbing_of


class Efforts(AbstractTable):
    """The forces that go with a prescribed motion.

    - `motion`: the motion, a [`mbsjax.Motion`][].
    - `drive`: the force or torque of each driver, one column for each, in the order they were given (coordinates first,
        then gauges); `efforts["A"]` is one of them by name.
    - `press`: the normal force of every contact.
    - `kinetic`, `potential`: energies.
    - `jammed`: where no torque or force of the drivers, however large, could make this motion: friction grows with it
        (self-locking). What is told of forces is NaN there.

    Friction is that of sliding, against the motion; a pair that does not slide has none.
    """

    motion: Motion
    plant: Plant
    names: tuple[str, ...] = eqx.field(static=True)
    drive: Float[Array, "times nd"]
    press: Float[Array, "times c"]
    rubbing: Rubbing
    jammed: Bool[Array, " times"]
    kinetic: Float[Array, " times"]
    potential: Float[Array, " times"]
    mode: Mode

    @property
    def mech(self) -> Mechanism:
        """The mechanism."""
        return self.motion.mech

    @property
    def ts(self) -> Float[Array, " times"]:
        """The output times."""
        return self.motion.ts

    @property
    def result(self) -> RESULTS:
        """How the motion ended."""
        return self.motion.result

    @property
    def energy(self) -> Float[Array, "*batch times"]:
        """Kinetic and potential energy together."""
        return self.kinetic + self.potential

    @property
    def batch(self) -> tuple[int, ...]:
        return self.drive.shape[:-2]

    def __getitem__(self, name: str) -> Array:
        contacts = [c.name for c in self.motion.mech.contacts]
        if name in contacts:
            return self.press[..., contacts.index(name)]
        if name not in self.names:
            known = ", ".join(map(repr, [*self.names, *contacts]))
            raise KeyError(f"{name!r} is neither driven nor a contact; there are {known}")
        return self.drive[..., self.names.index(name)]

    def effort(self, name: str) -> Array:
        """What a driver pushes with, by the name of what it drives."""
        return effort_of(self.names, self.drive, name)

    @lane_by_lane
    def power(self, name: str | None = None) -> Array:
        """The power of a driver, or of all together."""
        names = self.names if name is None else (name,)
        rates = [self.motion[n].v for n in names]  # pyright: ignore
        return sum((self.effort(n) * v for n, v in zip(names, rates)), jnp.zeros_like(self.ts))

    @lane_by_lane
    def force(self, name: str) -> ForceTrack:
        """A spring, an actuator or a load, by its name; see [`mbsjax.ForceTrack`][]."""
        m = self.motion
        return force_of(m.mech, self.plant, name, m.ts, m.q, m.v, self.mode)

    @lane_by_lane
    def reaction(self, joint: str) -> Reaction:
        """What a joint transmits; see [`mbsjax.Reaction`][]."""
        m = self.motion
        return reaction(m.mech, self.plant, joint, m.ts, m.q, m.v, self.mode)

    @lane_by_lane
    def friction(self, name: str) -> Rubbing:
        """The friction of a contact or a joint, by its name; see [`mbsjax.Rubbing`][]."""
        return rubbing_of(self.plant, self.rubbing, name)

    def columns(self) -> dict[str, np.ndarray]:
        """The columns of its motion, and the forces: `A.effort` and `A.power` of every driver; of every joint `A.fx`,
        `A.fy`, `A.moment` and the size of its force, `A.reaction`; `C.force` of contacts; of springs, actuators and
        loads `spring.force`, `spring.length`; friction; energies, and the `power` of all drivers."""
        found: dict[str, Any] = dict(self.motion.columns())
        for name in self.names:
            found |= {f"{name}.effort": self.effort(name), f"{name}.power": self.power(name)}
        for joint in self.mech.joints:
            found |= self.reaction(joint.name).columns(joint.name)
        found |= {f"{contact.name}.force": self.press[:, k] for k, contact in enumerate(self.mech.contacts)}
        for force in self.mech.forces:
            track = self.force(force.name)
            found[f"{force.name}.force"] = track.force
            found |= {} if track.length is None else {f"{force.name}.length": track.length}
        for name in () if self.plant.friction is None else self.plant.friction.names:
            found[f"{name}.friction"] = self.friction(name).force
        found |= {"kinetic": self.kinetic, "potential": self.potential, "power": self.power()}
        return {name: np.asarray(x) for name, x in found.items()}

    def __repr__(self) -> str:
        if not has_numbers(self.drive, self.press):
            return brief(self, drive=self.drive, press=self.press)
        drive, press = np.asarray(self.drive), np.asarray(self.press)
        contacts = [c.name for c in self.motion.mech.contacts]
        shown = {
            "drive": {name: drive[..., k] for k, name in enumerate(self.names)},
            "press": {name: press[..., k] for k, name in enumerate(contacts)} or None,
        }
        return brief(self, **shown)


def inverse_dynamics(mech: Mechanism, drive: Laws, ts: Numbers, **options: Any) -> Efforts:
    """The forces and torques that drivers need for a motion, and what contacts and joints transmit.

    **Arguments:** as for [`mbsjax.kinematics`][].

    **Returns:** an [`mbsjax.Efforts`][].

    !!! Example

        The torque that turns a pendulum of mass 2 and length 0.5 evenly.

        >>> import mbsjax as mbs
        >>> pendulum = mbs.Mechanism([mbs.Body("bob", mass=2.0, center=(0.5, 0.0))],
        ...                          [mbs.Revolute("O", "ground", "bob")], gravity=(0.0, -10.0))
        >>> efforts = mbs.inverse_dynamics(pendulum, {"O": mbs.constant_speed(jnp.pi)}, jnp.array([0.0, 1.0]))
        >>> efforts["O"].round(9).tolist()
        [10.0, -10.0]
        >>> efforts
        Efforts(drive={'O': [10.0, -10.0]})
    """
    return efforts_along(kinematics(mech, drive, ts, **options))


def efforts_along(motion: Motion) -> Efforts:
    """The forces that go with a motion that is known."""
    mech, problem = motion.mech, motion.problem
    plant = make_plant(mech, problem)
    n, c = len(motion.ts), len(mech.contacts)
    side = jnp.ones((n, sum(force.n_switches for force in mech.forces)))
    slide = jnp.ones((n, 0 if plant.friction is None else plant.friction.count))
    if motion.mode is None:
        none = jnp.zeros((n, 0), int)
        zero = jnp.zeros((n, 0))
        mode = Mode(none > 0, Places(none, none, zero, zero), zero, side, slide)
    else:
        active = jax.vmap(lambda mode: mode.active)(motion.mode)
        mode = Mode(active, motion.mode.places, jnp.zeros((n, c)), side, slide)
    mode, *found = _efforts(plant, motion.ts, motion.q, motion.v, mode)
    return Efforts(motion, plant, driver_names(mech, problem), *found, mode)  # pyright: ignore


@once
def _efforts(plant: Plant, ts: Array, q: Array, v: Array, mode: Mode) -> tuple:
    system = plant.problem.system

    def at(t: Array, q: Array, v: Array, mode: Mode):
        frame = plant.frame(q, t, mode)
        mode = sided(plant, frame, t, v, mode)
        if plant.friction is not None:
            speed = frame.T @ v
            slow = 1e-12 * jnp.max(jnp.abs(v / system.column_sizes()), initial=0.0)
            mode = mode._replace(slide=jnp.where(jnp.abs(speed) <= slow, 0.0, jnp.sign(speed)))
        now = plant.instant(t, q, plant.momentum(frame, v), mode)
        drive = jnp.concatenate([now.drive, gauge_efforts(plant, frame, t, now.lam)])
        jammed = jnp.zeros((), bool)
        press, rubbing = now.press, friction_of(plant, now, mode)
        if now.friction is not None:
            jammed = ~now.friction.solved
            lost = lambda x: jnp.where(jammed, jnp.nan, x)
            drive, press, rubbing = jax.tree_util.tree_map(lost, (drive, press, rubbing))
        return mode, drive, press, rubbing, jammed, *plant.energies(t, frame, v, mode)

    return jax.vmap(at)(ts, q, v, mode)
