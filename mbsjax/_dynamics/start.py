"""Where a simulation begins: a state put on the constraints, and whether it can begin there."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from .._events.closure import is_closed
from .._kinematics.start import check_start, closest_pairs_and_poses, overlapping
from .._model.mechanism import Mechanism
from .._model.profile.closest_pair import ClosestPair
from .._numerics.groups import SE2
from .._programs.trees import frozen, once
from .instant import Frame
from .mode import Mode, signs_of
from .plant import Plant
from .reset import decide_friction
from .state import OFF, State, first_mode
from .step_size import weights


class Begin(NamedTuple):
    """What the first step begins with."""

    q: Array  # position and
    p: Array  # momenta, put on the constraints,
    mode: Mode
    units: Array  # and what one unit of q and p weighs


class Start(NamedTuple):
    """Where a simulation begins."""

    at: Begin
    closed: Array  # whether the constraints are closed there
    given: Frame  # the position as it was given,
    rate: Array  # and how fast the constraints would be left
    around: tuple[ClosestPair, SE2] | None  # what is around the contacts,
    clear: Array  # and whether they are open


@once
def start(plant: Plant, active: tuple[bool, ...], state0: State, t1: Array) -> Start:
    """The state put on the constraints, with the contacts that are active there."""
    system, t = plant.problem.system, state0.t
    plant_, q_ = frozen((plant, state0.q))
    near = closest_pairs_and_poses(plant_.problem.system, q_) if plant.laws else None
    mode = first_mode(plant_, active, q_, None if near is None else near[0])
    clear = jnp.ones((), bool)
    if near is not None:
        clear = ~overlapping(near[0], plant_.problem.system.size, mode.active | ~jnp.asarray(plant.rigid))

    def put_back(q: Array, _: None) -> tuple[Array, Frame]:
        frame = plant.frame(q, t, mode)
        return system.retract(frame.q, plant.way_back(frame.C, frame.residual, mode)), frame

    q = system.retract(state0.q, jnp.zeros_like(state0.v))
    _, frames = jax.lax.scan(put_back, q, None, length=2)
    given, frame = (jax.tree_util.tree_map(lambda x, k=k: x[k], frames) for k in (0, 1))
    if plant.friction is not None:
        mode = mode._replace(slide=jnp.ones(plant.friction.count))
    v = plant.velocity(frame, mode, plant.solver(frame, mode), plant.momentum(frame, state0.v), t)
    if plant.friction is not None:
        none = jnp.zeros(plant.friction.count)
        plant_, t_, v_, frame_ = frozen((plant, t, v, frame))
        if mode.signs.shape[0]:  # what sticks depends on which forces act
            mode = mode.sided(plant_.switches(t_, frame_.q, v_, frame_))
        still = mode._replace(slide=none)
        slide = decide_friction(plant_, t_, frame_.q, v_, frame_, still, none > 0, none > 0, jnp.ones_like(t_, bool))
        mode = mode._replace(slide=slide)
        v = plant.velocity(frame, mode, plant.solver(frame, mode), plant.momentum(frame, v), t)
    p = plant.momentum(frame, v)
    if plant.friction is not None:
        p = jnp.concatenate([p, jnp.zeros(plant.friction.count)])
    closed = is_closed(frozen(frame.residual / plant.row_sizes))
    if mode.signs.shape[0]:
        mode = mode._replace(signs=_signs(*frozen((plant, t, frame.q, p, mode, t1))))
    units, given, rate = frozen((weights(plant, frame, t1 - t), given, given.C @ state0.v + given.drift))
    return Start(Begin(frame.q, p, mode, units), closed, given, rate, near, clear)


def begin_shapes(plant: Plant, q: Any) -> Begin:
    """What `start` finds to begin with, as shapes of arrays; q is that of the coordinates."""
    r, n = 0 if plant.friction is None else plant.friction.count, len(plant.triggers)
    n += sum(force.n_switches for force in plant.forces)
    m = len(plant.problem.unknown) + r
    p, units = (jax.ShapeDtypeStruct((k,), q.dtype) for k in (m, q.shape[0] + m))
    return Begin(q, p, Mode.shapes(len(plant.laws), n, r, q.dtype), units)  # pyright: ignore


def _signs(plant: Plant, t: Array, q: Array, p: Array, mode: Mode, t1: Array) -> Array:
    """On which sides of zero the switches are."""
    now = plant.instant(t, q, p, mode)
    values = plant.switches(t, q, now.v, now.frame)
    # on its very edge, the side is that of a moment later
    s = 1e-7 * (t1 - t)
    later = q + s * now.q_dot
    there = plant.frame(later, t + s, mode)
    onward = plant.switches(t + s, later, now.v + s * now.a, there)
    return signs_of(jnp.where(jnp.abs(values) < 1e-12, onward, values))


def check_state(mech: Mechanism, plant: Plant, state0: State, begin: Start) -> None:
    """Raises where a state is off the constraints, saying how far, and where an inertia is missing, naming a
    coordinate; and where bodies interpenetrate."""
    frame, rate = begin.given, begin.rate
    v_d, rows, columns = (np.asarray(x) for x in _measures(plant, state0.t))
    off = np.abs(np.asarray(frame.residual)) / rows
    if off.size and off.max() > OFF():
        raise ValueError(
            f"the positions of the state are off the constraints by {off.max():.3g} (in radians, or parts of the "
            "mechanism's size): make the state with mbsjax.state(mech, ..., drive=...)"
        )
    speeds = np.abs(np.asarray(state0.v)) / columns
    scale = max(float(speeds.max(initial=0.0)), float(np.abs(np.asarray(rate) / rows).max(initial=0.0)), 1e-300)
    driven = np.array(plant.problem.columns, dtype=int)
    miss = float(np.abs(np.asarray(rate) / rows).max(initial=0.0)) / scale
    apart = np.abs(np.asarray(state0.v)[driven] - v_d).max(initial=0.0)
    if miss > OFF() or apart > OFF() * max(float(np.abs(v_d).max(initial=0.0)), scale):
        raise ValueError(
            f"the velocities of the state do not go together with the constraints and drivers: they miss them by "
            f"{max(miss, apart):.3g}; make the state with mbsjax.state(mech, ..., drive=...)"
        )
    _check_inertia(mech, plant.problem.unknown, frame, rows, columns)
    if begin.around is not None:
        check_start(mech, *begin.around)


def _check_inertia(mech: Mechanism, u: np.ndarray, frame: Frame, rows: np.ndarray, columns: np.ndarray) -> None:
    """Raises where the freedoms u can move without moving any inertia, naming one."""
    if len(u) == 0:
        return
    D = columns[u]
    J = np.asarray(frame.C)[:, u] * D / rows[:, None]
    M = np.asarray(frame.M)[np.ix_(u, u)] * D[:, None] * D[None]
    _, s, V = np.linalg.svd(J, full_matrices=True)
    free = V[int(np.sum(s > 1e-9 * max(s.max(initial=0.0), 1e-300))) :]
    weights, vectors = np.linalg.eigh(free @ M @ free.T)
    if len(weights) and weights[0] <= 1e-13 * max(float(np.trace(M)), 1e-300):
        loose = int(np.argmax(np.abs(vectors[:, 0] @ free)))
        raise ValueError(
            f"nothing has inertia when {mech.coordinates[u[loose]]!r} moves: give the bodies that it moves a mass or "
            "an inertia, or drive it"
        )


@once
def _measures(plant: Plant, t: Array) -> tuple[Array, Array, Array]:
    """Velocities of the driven coordinates; what one unit of each row and each freedom weighs."""
    return plant.driven(t)[0], plant.row_sizes, plant.problem.system.column_sizes()
