"""Linear equations of small motions about a state."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._kinematics.drive import problem as make_problem
from .._model.mechanism import Mechanism
from .._programs.custom_types import Laws
from .._programs.precision import is_concrete
from .._programs.reprs import by_fields
from .._programs.trees import once
from .build import plant as make_plant
from .mode import Mode
from .plant import Plant
from .state import State, check_size, first_mode


class Linearization(eqx.Module):
    """Small motions about a state: x' = A x, where x holds displacements z along the directions `Z` and their rates.

    - `A`: the matrix.
    - `Z`: the directions, in the degrees of freedom of the mechanism (columns).
    - `eigenvalues`: of A; for vibrations about a stable rest they are imaginary.
    """

    A: Float[Array, "n n"]
    Z: Float[Array, "nv k"]

    @property
    def eigenvalues(self) -> Array:
        return jnp.linalg.eigvals(self.A)

    __repr__ = by_fields


def linearize(mech: Mechanism, state0: State, *, drive: Laws | None = None) -> Linearization:
    """The linear equations of small motions about a state, with the contacts that are `active` held, without
    friction, which has no small motions at rest. Joints with play are held where they lie in it; for the motions within
    it, take [`mbsjax.loosened`][]`(mech)`. It looks at values: not under `jit`, `vmap` or `grad`.

    !!! Example

        >>> import mbsjax as mbs
        >>> pendulum = mbs.Mechanism([mbs.Body("bob", mass=1.0, center=(0.0, -2.5))],
        ...                          [mbs.Revolute("O", "ground", "bob")], gravity=(0.0, -10.0))
        >>> mbs.linearize(pendulum, mbs.state(pendulum)).A.round(9).tolist()
        [[0.0, 1.0], [-4.0, 0.0]]
    """
    check_size(mech, state0, "where joints have play, give mbsjax.loosened(mech), or a state of its equilibrium")
    plant = dataclasses.replace(make_plant(mech, make_problem(mech, dict(drive or {}))), friction=None)
    if not is_concrete(plant, state0):
        raise ValueError(
            "`linearize` looks at values, to count the degrees of freedom that are left: it cannot be called under "
            "jit, vmap or grad"
        )
    mode = first_mode(plant, tuple(c.active for c in mech.contacts), state0.q)
    C = np.asarray(_rows(plant, state0.q, state0.t, mode))
    _, s, V = np.linalg.svd(C, full_matrices=True)
    rank = int(np.sum(s > 1e-9 * max(s.max(initial=0.0), 1e-300)))
    return Linearization(*_linear(plant, jnp.asarray(V[rank:].T), state0, mode))


@once
def _rows(plant: Plant, q: Array, t: Array, mode: Mode) -> Array:
    frame = plant.frame(q, t, mode)
    return frame.C[:, plant.problem.unknown] * plant.columns[None] / plant.row_sizes[:, None]


@once
def _linear(plant: Plant, Z: Array, state0: State, mode: Mode) -> tuple[Array, Array]:
    t, n, nd = state0.t, Z.shape[1], len(plant.problem.columns)
    spread = lambda y: plant.spread(y * plant.columns, jnp.zeros(nd))
    if mode.signs.shape[0]:
        frame = plant.frame(state0.q, t, mode)
        mode = mode.sided(plant.switches(t, frame.q, state0.v, frame))

    def accelerations(x: Array) -> Array:
        q = plant.problem.system.retract(state0.q, spread(Z @ x[:n]))
        for _ in range(2):
            q = plant.project(q, t, mode)
        frame = plant.frame(q, t, mode)
        v = state0.v + spread(Z @ x[n:])
        now = plant.instant(t, q, plant.momentum(frame, v), mode)
        return Z.T @ (now.a[plant.problem.unknown] / plant.columns)

    rows = jax.jacfwd(accelerations)(jnp.zeros(2 * n))
    top = jnp.concatenate([jnp.zeros((n, n)), jnp.eye(n)], 1)
    return jnp.concatenate([top, rows]), jax.vmap(spread, 1, 1)(Z)
