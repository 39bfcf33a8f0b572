"""The forces on a mechanism that stands still. Written for one lane."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .inertia import turned
from .instant import Frame
from .mode import Mode
from .plant import Plant


def rest_load(plant: Plant, t: Array, frame: Frame, mode: Mode) -> Array:
    """The forces on all freedoms that would act if all stood still."""
    paths, still = plant.problem.system.layout.paths, jnp.zeros(len(plant.names[0]))
    weight = jnp.sum(paths[None] * frame.inertia.weight(plant.gravity)[:, :, None], 1)
    load = jnp.sum(frame.S * weight, 0)
    load = plant.each_force(lambda f, at, sides: f.act(at, sides), t, frame, still, mode, load)
    return load + plant.compliant(frame, jnp.zeros_like(frame.gaps), mode) @ frame.slopes


def steady_load(plant: Plant, t: Array, frame: Frame, mode: Mode) -> Array:
    """The forces on all freedoms, those of inertia among them, if those that are not driven stood still while the
    drivers go on."""
    system, driven = plant.problem.system, np.array(plant.problem.columns, dtype=int)
    v_d, a_d = plant.driven(t)
    v = plant.spread(jnp.zeros(len(plant.problem.unknown)), v_d)
    twists = lambda s: system.poses_and_twists(system.retract(frame.q, s * v))[2]
    S_dot = jax.jvp(twists, (jnp.zeros(()),), (jnp.ones(()),))[1]
    paths = system.layout.paths
    V, A = (jnp.sum(paths * (x * v)[:, None], 2) for x in (frame.S, S_dot))
    push = frame.inertia.weight(plant.gravity) - frame.inertia.momentum(A) - turned(V, frame.inertia.momentum(V))
    load = jnp.sum(frame.S * jnp.sum(paths[None] * push[:, :, None], 1), 0) - frame.M[:, driven] @ a_d
    load = plant.each_force(lambda f, at, sides: f.act(at, sides), t, frame, v, mode, load)
    return load + plant.compliant(frame, frame.slopes @ v, mode) @ frame.slopes


def static_press(plant: Plant, t: Array, frame: Frame, mode: Mode) -> Array:
    """The normal forces that would hold if all stood still (3.6.2)."""
    rigid = np.flatnonzero(plant.rigid)
    load = rest_load(plant, t, frame, mode)
    soft = plant.compliant(frame, jnp.zeros_like(frame.gaps), mode)
    _, lam = plant.solver(frame, mode)(load[plant.problem.unknown][:, None], jnp.zeros((frame.C.shape[0], 1)))
    return soft.at[rigid].set(lam[lam.shape[0] - len(rigid) :, 0])


def carried_at_rest(plant: Plant, t: Array, frame: Frame, mode: Mode) -> Array:
    """What the joints carry that are held, if all stood still, without what constraints and friction add."""
    assert frame.holding is not None
    still = jnp.zeros(len(plant.names[0]))
    _, applied = plant.applied(t, frame, still, mode, still)
    soft = plant.compliant(frame, jnp.zeros_like(frame.gaps), mode)
    base, _ = plant.carried(frame, -frame.inertia.weight(plant.gravity), applied, soft)
    return base
