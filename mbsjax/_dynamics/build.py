"""A mechanism laid out for dynamics."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._kinematics.drive import Problem
from .._kinematics.layout import Layout
from .._model.body import Body
from .._model.force.base import Moment
from .._model.force.load import Load
from .._model.friction import JointFriction
from .._model.joint.base import AbstractPair
from .._model.joint.revolute import RevolutePair
from .._model.joint.screw import ScrewPair
from .._model.mechanism import Mechanism
from .._programs.precision import numpy_of
from .._programs.trees import Function, as_function, once
from .friction import Friction
from .inertia import AbstractInertia, inertia
from .plant import Plant


def plant(
    mech: Mechanism,
    problem: Problem,
    triggers: tuple = (),
    names: tuple[tuple[str, ...], tuple[str, ...]] | None = None,
    friction: Friction | None = None,
) -> Plant:
    """A mechanism laid out for dynamics. `names` are those of its freedoms and gauges, `friction` its friction, if not
    the mechanism's own."""
    plan = problem.system.layout
    own = names or (mech.coordinates, tuple(g.name for g in mech.gauges))
    bodies = sorted(plan.body_numbers, key=plan.body_numbers.__getitem__)
    inertias, gravity = _weights([mech.body(name) for name in bodies], mech.gravity, mech.planar)
    laid_out = Plant(
        problem=problem,
        inertia=inertias,
        gravity=gravity,
        forces=mech.forces,
        triggers=triggers,
        restitution=_row([c.restitution for c in mech.contacts]),
        laws=tuple(c.law for c in mech.contacts),
        friction=_friction(mech, plan, problem.system.size) if friction is None else friction,
        names=own,
    )
    loads = any(isinstance(force, Load) for force in mech.forces)
    if not loads and not triggers:
        return laid_out
    at = eqx.filter_eval_shape(some_moment, laid_out)
    forces = tuple(_opened(f, at.t, at) if isinstance(f, Load) else f for f in mech.forces)
    return dataclasses.replace(laid_out, forces=forces, triggers=_opened(triggers, at))


def _friction(mech: Mechanism, plan: Layout, size: Array) -> Friction | None:
    contacts = [(k, c) for k, c in enumerate(mech.contacts) if c.friction is not None]
    joints = [(i, j) for i, j in enumerate(mech.joints) if j.friction is not None]
    if not contacts and not joints:
        return None
    held = [(i, j.pair, j.friction) for i, j in joints if isinstance(j.friction, JointFriction)]
    numbers = [i for i, *_ in held]
    lengths = [True] * len(contacts) + [j.pair.lengths[0] for _, j in joints]
    laws = [owner.friction for _, owner in (*contacts, *joints)]
    return Friction(
        *_laws(laws, lengths, [(pair, law) for _, pair, law in held], plan.group.rows, size),
        contacts=tuple(k for k, _ in contacts),
        freedoms=tuple(int(plan.columns[i][0]) for i, _ in joints),
        wrench_of=tuple(numbers.index(i) if i in numbers else -1 for i, _ in joints),
        sides=tuple("ab".index(law.guide) for *_, law in held),
        layout=dataclasses.replace(plan, held=tuple(numbers)),
        names=tuple(owner.name for _, owner in (*contacts, *joints)),
    )


@once
def _laws(laws: list, lengths: list[bool], held: list, rows: int, size: Array) -> tuple[Array, ...]:
    """The numbers of all frictions, stacked."""
    either = lambda x, y: jnp.asarray(y if x is None else x)
    columns = [(f.sliding, either(f.static, f.sliding), either(f.stribeck, 0.0), either(f.viscous, 0.0)) for f in laws]
    carries = [_carries(pair, friction, rows) for pair, friction in held]
    return (
        *(jnp.stack(x) for x in zip(*columns)),
        jnp.where(np.array(lengths), size, 1.0),
        jnp.stack(carries) if carries else jnp.zeros((0, 2, 3, rows)),
    )


def _carries(pair: AbstractPair, friction: JointFriction, rows: int) -> Float[Array, "2 3 rows"]:
    """The forces at the places where a joint rubs, from the moments and forces that it carries in its frame; for a
    hinge times the radius, for a screw as they act along its travel."""
    turn = np.eye(rows)[: 1 if rows == 3 else 3]
    push = np.eye(rows)[len(turn) :]
    places = np.zeros((2, 3, rows))
    if isinstance(pair, RevolutePair):
        assert friction.radius is not None
        places[0, : len(push)] = push
        return friction.radius * places
    if isinstance(pair, ScrewPair):
        assert friction.radius is not None
        pitch = pair.lead / (2 * jnp.pi)
        along = jnp.sqrt(1 + (friction.radius / pitch) ** 2)
        slope = jnp.sqrt(friction.radius**2 + pitch**2)
        normal = along * (friction.radius * push[2] - pitch * turn[2] / friction.radius) / slope
        return jnp.asarray(places).at[0, 0].set(normal)
    # a slide: along x of its frame in the plane, along z in space
    lateral, tilting = (push[1:], turn) if rows == 3 else (push[:2], np.stack([turn[1], -turn[0]]))
    if friction.length is None:
        places[0, : len(lateral)] = lateral
        return jnp.asarray(places)
    ends = jnp.stack([lateral / 2 + tilting / friction.length, lateral / 2 - tilting / friction.length])
    return jnp.concatenate([ends, jnp.zeros((2, 3 - len(lateral), rows))], 1)


@once
def _weights(bodies: list[Body], gravity: Array, planar: bool) -> tuple[AbstractInertia, Array]:
    return inertia(bodies, planar), gravity[: 2 if planar else 3]


def _row(numbers: list[Array]) -> Array:
    return jnp.asarray(numpy_of(*numbers).stack(numbers)) if numbers else jnp.zeros(0)


def some_moment(plant: Plant) -> Moment:
    """A moment as forces and triggers of this plant will see it, where all coordinates are zero."""
    system, t = plant.problem.system, jnp.zeros(())
    q = jnp.zeros(sum(system.layout.n_stored))
    X, _, S = system.poses_and_twists(q)
    return plant.moment(t, q, jnp.zeros(len(plant.names[0])), X, S)


def _opened(tree: Any, *args: Any) -> Any:
    """Functions of these arguments, with the numbers that they have closed over as leaves."""
    plain = lambda x: isinstance(x, Function)
    return jax.tree_util.tree_map(lambda f: as_function(f, *args) if plain(f) else f, tree, is_leaf=plain)
