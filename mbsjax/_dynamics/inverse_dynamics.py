"""Inverse dynamics: the forces that go with a prescribed motion."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._events.places import Places
from .._kinematics.drive import problem as make_problem
from .._kinematics.motion import Motion, kinematics
from .._model.mechanism import Mechanism
from .._numerics.groups import one
from .._programs.batch import AbstractBatch, lane_by_lane
from .._programs.custom_types import Laws, Numbers
from .._programs.reprs import brief, has_numbers
from .._programs.trees import once
from .build import plant as make_plant
from .mode import Mode
from .plant import Plant
from .reaction import Reaction, reaction
from .rubbing import Rubbing, friction_of, rubbing_of


class Efforts(AbstractBatch):
    """The forces that go with a prescribed motion.

    - `motion`: the motion, a [`mbsjax.Motion`][].
    - `drive`: the force or torque of each driver, one column for each, in the order they were given (coordinates first,
        then gauges); `efforts["A"]` is one of them by name.
    - `press`: the normal force of every contact.
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
    mode: Mode

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

    @lane_by_lane
    def reaction(self, joint: str) -> Reaction:
        """What a joint transmits; see [`mbsjax.Reaction`][]."""
        m = self.motion
        return reaction(m.mech, self.plant, joint, m.ts, m.q, m.v, self.mode)

    @lane_by_lane
    def friction(self, name: str) -> Rubbing:
        """The friction of a contact or a joint, by its name; see [`mbsjax.Rubbing`][]."""
        return rubbing_of(self.plant, self.rubbing, name)

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
    motion = kinematics(mech, drive, ts, **options)
    problem = make_problem(mech, drive)
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
    mode, drive_, press, rubbing, jammed = _efforts(plant, motion.ts, motion.q, motion.v, mode)
    driven = [mech.coordinates[k] for k in problem.columns] + [mech.gauges[k].name for k in problem.gauges]
    return Efforts(motion, plant, tuple(driven), drive_, press, rubbing, jammed, mode)


@once
def _efforts(plant: Plant, ts: Array, q: Array, v: Array, mode: Mode) -> tuple[Mode, Array, Array, Rubbing, Array]:
    problem, system = plant.problem, plant.problem.system

    def at(t: Array, q: Array, v: Array, mode: Mode):
        frame = plant.frame(q, t, mode)
        if mode.signs.shape[0]:
            mode = mode._replace(signs=jnp.where(plant.switches(t, frame.q, v, frame) >= 0, 1.0, -1.0))
        if plant.friction is not None:
            speed = frame.T @ v
            slow = 1e-12 * jnp.max(jnp.abs(v / system.column_sizes()), initial=0.0)
            mode = mode._replace(slide=jnp.where(jnp.abs(speed) <= slow, 0.0, jnp.sign(speed)))
        now = plant.instant(t, q, plant.momentum(frame, v), mode)
        first = frame.C.shape[0] - int(plant.rigid.sum()) - len(problem.gauges)
        along = []
        for k, (i, target) in enumerate(problem.targets(t)):
            poses = [one(frame.X, system.layout.body_numbers[name]) for name in system.layout.gauge_bodies[i]]
            slope = jax.grad(lambda x, i=i, poses=poses: system.gauges[i].residual(x, *poses))(target)
            along.append(-now.lam[first + k] * slope)
        drive, jammed = jnp.concatenate([now.drive, jnp.stack(along) if along else jnp.zeros(0)]), jnp.zeros((), bool)
        press, rubbing = now.press, friction_of(plant, now, mode)
        if now.friction is not None:
            jammed = ~now.friction.solved
            lost = lambda x: jnp.where(jammed, jnp.nan, x)
            drive, press, rubbing = jax.tree_util.tree_map(lost, (drive, press, rubbing))
        return mode, drive, press, rubbing, jammed

    return jax.vmap(at)(ts, q, v, mode)
